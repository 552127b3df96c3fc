/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between collector_start.c, which runs as the program, and collector_child.c,
 * which runs in the clones that share the program's memory.
 */
#ifndef VS_SHIM_COLLECTOR_CHILD_H
#define VS_SHIM_COLLECTOR_CHILD_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define COLLECTOR_RING_FD 3
#define COLLECTOR_PIDFD 4
#define COLLECTOR_ARGUMENTS 16
#define COLLECTOR_STACK_BYTES 65536U

struct vs_ring_header;

/* Lies in a mapping of its own, together with the clones' stacks. */
struct collector_launch {
    /* from the program */
    int target;
    bool stay; /* the middle clone stays our child and the collector's parent */
    uint64_t ring_bytes;
    char ring_path[PATH_MAX]; /* empty: a memfd */
    const char *collector;
    char *arguments[COLLECTOR_ARGUMENTS];
    char **environment;
    char *pidfd_argument; /* set to "-1" when there is no pidfd */
    char *collector_stack_top;
    uint32_t forked_from;
    uint32_t parent;

    /* from the clones */
    struct vs_ring_header *ring;
    uint64_t mapped_bytes;
    bool clock_is_counter; /* event_clock_is_counter() */
    int collector_pid;
    int error;             /* negative errno of the step that failed */
    _Atomic uint32_t done; /* the collector runs, or `error` says why not; a futex */
};

/* Entry of the middle clone; starts the collector's. */
int collector_middle_main(void *launch);

#endif
