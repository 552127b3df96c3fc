/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What became of the traces: the private folder in which the collectors report
 * (collector/rundir.h), waiting for those of the started program, and the one
 * line that `vramscope run` ends with.
 */
#ifndef VS_CLI_RUN_TRACES_H
#define VS_CLI_RUN_TRACES_H

#include <linux/limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "run_preload.h"

struct run_traces {
    char folder[PATH_MAX];
    char around[PATH_MAX]; /* of a `vramscope run` around us, in which ours lies; empty: none */
    int lock;              /* on our folder, as long as we live; -1 none */
};

/*
 * Makes the folder and names it in the environment; inside another `vramscope
 * run` it lies in that one's, which so counts our traces among its own. Returns 0
 * or a negative errno value.
 */
int run_traces_open(struct run_traces *traces);

/*
 * Waits until the collectors of the command `pid` (a zombie) and of every other
 * process that is dead have finished their files, as long as they get on. On a terminal says after
 * a second what it waits for. True when they have; false when it gave up.
 */
bool run_traces_wait(const struct run_traces *traces, pid_t pid);

/* Writes the closing line, without "vramscope: ", into `out`. `command`: what was run. */
void run_traces_describe(const struct run_traces *traces, const char *command,
                         const struct run_dropped *dropped, char *out, size_t out_bytes);

/* Removes the folder, unless a run around us is still to read it or a collector to report. */
void run_traces_close(struct run_traces *traces);

#endif
