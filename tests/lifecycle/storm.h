/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The storm's own log: a file mapped shared, so that it survives any end of the
 * program. Each thread appends to its own part; an entry counts once `count` has
 * been raised past it. storm.py reads this layout with struct.unpack.
 */
#ifndef LIFECYCLE_STORM_H
#define LIFECYCLE_STORM_H

#include <stdatomic.h>
#include <stdint.h>

#define STORM_MAGIC 0x314d524f545356ULL
enum { STORM_MAX_THREADS = 16, STORM_HEADER_BYTES = 4096 };

struct storm_entry {
    uint64_t time_ns; /* CLOCK_MONOTONIC, before the call */
    uint64_t address;
    uint64_t size;   /* 0: a free */
    uint64_t number; /* the thread's own counter */
};

struct storm_thread {
    _Atomic uint64_t count;    /* entries whose call has returned */
    _Atomic uint64_t produced; /* the same, when no entries are kept */
    uint32_t tid;
    uint32_t reserved;
};

struct storm_header {
    uint64_t magic;
    uint32_t threads;
    uint32_t pid;
    uint64_t entries_per_thread;
    _Atomic uint64_t started; /* threads inside their loop */
    struct storm_thread thread[STORM_MAX_THREADS];
};

_Static_assert(sizeof(struct storm_header) <= STORM_HEADER_BYTES, "the header fits its page");

#endif
