/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How `vramscope run` learns what became of the traces: VRAMSCOPE_RUN_DIR is a
 * private folder in which each collector keeps one small file, PID.trace (then
 * PID.1.trace …), locked with flock(2) as long as the collector lives. The lock
 * goes with its owner, whatever ends it.
 */
#ifndef VS_COLLECTOR_RUNDIR_H
#define VS_COLLECTOR_RUNDIR_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RUNDIR_VARIABLE "VRAMSCOPE_RUN_DIR"
#define RUNDIR_SUFFIX ".trace"
#define RUNDIR_NESTED "run."

/* What a collector says about its trace; all of it again at every change. */
struct rundir_outcome {
    uint32_t pid; /* of the traced process */
    uint64_t bytes, events, lost, torn;
    bool finished; /* the last word: the file is whole */
    bool complete;
    bool out_of_memory; /* ended in it */
    char ended[16];
    int exit_code, signal; /* negative: unknown */
    char warning[512];     /* empty: none */
    char path[PATH_MAX];   /* of the trace; empty when none could be made */
};

struct rundir_report {
    int fd;              /* -1: none */
    char path[PATH_MAX]; /* of the report */
};

/* Makes and locks this collector's report. Returns 0 or a negative errno value (then there is
 * none). */
int rundir_announce(struct rundir_report *report, const char *folder, uint32_t pid);

/* Writes the outcome over what the report says; nothing without one. Returns 0 or a negative errno
 * value. */
int rundir_tell(const struct rundir_report *report, const struct rundir_outcome *outcome);

/* Lets go of the report. When `vramscope run` has ended before, removes it, and the folder with the
 * last. */
void rundir_leave(struct rundir_report *report);

/*
 * Said by `vramscope run` when it ends: removes the folder when it is empty, and
 * those around it whose runs have ended; else whoever leaves last does.
 */
void rundir_abandon(const char *folder);

/* True when the run that made the folder has ended. */
bool rundir_is_abandoned(const char *folder);

/* Reads a file of the folder. Returns 0 or a negative errno value; what is missing stays empty. */
int rundir_read(const char *folder, const char *name, struct rundir_outcome *out);

/* True while the collector that made this file, or the run that made this folder, lives. */
bool rundir_is_alive(const char *folder, const char *name);

#endif
