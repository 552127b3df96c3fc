/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other traced processes of the same machine on the device of a failed request, or on
 * one of which much was not this process's: what each held of it at that moment, from
 * its own trace. A machine is known by its boot id, a device by its UUID; times of one
 * boot are one clock. One trace is folded at a time, up to the last of these moments,
 * and only the figures are kept.
 */
#ifndef VS_REPLAY_SIBLINGS_H
#define VS_REPLAY_SIBLINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vs_oom;
struct vs_summary;

/* What a process held of one device at one moment, by its own events. */
struct vs_sibling_use {
    bool there;     /* it lived then and had used the device; else all is 0 */
    bool framework; /* a caching layer told of blocks */
    bool releasable_known;
    int64_t device_bytes; /* segments, memory beside them, and what is certain of the differences */
    int64_t implicit;     /* of these: what no call asked for, its context above all */
    int64_t uncertain;    /* more that was measured by difference and may be another process's */
    int64_t allocated, reserved;
    uint64_t releasable;   /* of the cache: what its framework gives back when told to */
    const char *give_back; /* the call that does; NULL not known */
};

/* A line of a program, as long as its sibling; `function` NULL: not known. */
struct vs_sibling_line {
    char *file, *module, *function; /* the first two may be NULL */
    uint32_t line;
    bool python;
};

struct vs_sibling {
    char *file; /* in the folder */
    char *title, *exe;
    uint64_t pid, host_pid, parent_pid; /* 0 unknown */
    uint64_t start_ns;
    int64_t rank;                   /* -1 none */
    bool whole;                     /* nothing is missing from its trace */
    struct vs_sibling_use *use;     /* of each failed request, by its place in the summary */
    struct vs_sibling_use *peak;    /* behind these: at the moment of vs_siblings_peak */
    struct vs_sibling_line context; /* what made its context on that device */
};

/* The moment to ask others about without a failure that ended the program. */
struct vs_sibling_peak {
    int8_t device; /* -1: nothing of note was others', or they cannot be known */
    uint64_t time_ns;
};

/* A trace that could not be looked into. */
struct vs_sibling_skip {
    char *file;
    char why[96];
};

struct vs_siblings {
    bool looked;
    struct vs_sibling *items; /* in the order of their files' names */
    size_t count, room;
    struct vs_sibling_skip *skips;
    size_t skip_count, skip_room;
    size_t traces;  /* of the folder beside the reported one */
    size_t ignored; /* of these, beyond what is looked at */
};

/* Whether a sibling's memory could have anything to do with a failure of this kind. */
bool vs_siblings_concern(const struct vs_oom *oom);
/*
 * Of the device on which most was not this process's own when it was fullest, that moment: a
 * sixteenth of what was in use or more, and at least 32 MiB.
 */
struct vs_sibling_peak vs_siblings_peak(const struct vs_summary *summary);
/* Whether the summary has such a failure or such a peak, and knows its machine and the device. */
bool vs_siblings_wanted(const struct vs_summary *summary);

/*
 * Looks at one trace: adds it if it lived on the same machine and used the device
 * at a failure, else does nothing. One that cannot be read is among the skips.
 * 0 or -ENOMEM.
 */
int vs_siblings_add(struct vs_summary *summary, const char *path, const char *file);

/* Once all are added: classes and reasons of the failures that they explain. */
void vs_siblings_explain(struct vs_summary *summary);

/* What to call it: its title, else its program's file; never empty. */
const char *vs_sibling_name(const struct vs_sibling *sibling);

/* The sibling that NVML names by this process id; NULL none. */
const struct vs_sibling *vs_siblings_by_pid(const struct vs_siblings *siblings, uint64_t pid);

void vs_siblings_release(struct vs_siblings *siblings);

#endif
