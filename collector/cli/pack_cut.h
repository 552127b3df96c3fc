/* SPDX-License-Identifier: Apache-2.0 */
/* For `vramscope pack`: a trace that is too large is cut to what fits. */
#ifndef VS_CLI_PACK_CUT_H
#define VS_CLI_PACK_CUT_H

#include <stdbool.h>
#include <stdint.h>

#include "replay/analysis.h"

struct pack_cut {
    uint64_t bytes;      /* of the cut trace; 0: there is none */
    struct vs_cuts cuts; /* what was taken out */
    bool no_gain;        /* what has to stay is too large */
};

/*
 * Cuts the trace at `path` to at most `limit_bytes`, into `fd` (regular; for reading and writing).
 * False with a line on stderr when that went wrong; `no_gain` is none. Release it in any case.
 */
bool pack_cut_make(const char *path, int fd, uint64_t limit_bytes, struct pack_cut *out);
void pack_cut_release(struct pack_cut *cut);

#endif
