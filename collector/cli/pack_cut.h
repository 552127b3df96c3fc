/* SPDX-License-Identifier: Apache-2.0 */
/* For `vramscope pack`: a trace that is too large is cut to what fits. */
#ifndef VS_CLI_PACK_CUT_H
#define VS_CLI_PACK_CUT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "cut/cut.h"
#include "replay/analysis.h"

/* The part of a run that somebody chose, monotonic. */
struct pack_window {
    uint64_t from_ns, to_ns;
};

/* Begins as zeros. */
struct pack_cut {
    const char *path;
    pthread_t thread; /* that looks through the trace */
    bool begun;
    struct vs_cut *trace;
    int error;
    struct vs_error why; /* it cannot be cut; "" unless something went wrong */
    uint64_t bytes;      /* of the cut trace; 0: there is none */
    struct vs_cuts cuts; /* what was taken out */
};

/* Looks through the trace at `path`, which stays, while the caller does something else. */
void pack_cut_begin(struct pack_cut *cut, const char *path);
/*
 * Cuts it to at most `limit_bytes`, into `fd` (regular; for reading and writing): as little as
 * has to be, or with `chosen` (NULL: none) all but that part and what matters. Nothing is cut
 * where what has to stay is larger.
 */
void pack_cut_make(struct pack_cut *cut, const char *path, int fd, uint64_t limit_bytes,
                   const struct pack_window *chosen);
void pack_cut_release(struct pack_cut *cut);

#endif
