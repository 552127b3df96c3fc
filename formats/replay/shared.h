/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory that crosses processes and is there now: what this process gave out handles of,
 * and what it opened. A handle of legacy IPC has a hash that is the same in both traces; memory
 * of cuMemCreate crosses by a descriptor, which tells nothing. Made when somebody asks, from what
 * the fold and the objects keep anyway.
 */
#ifndef VS_REPLAY_SHARED_H
#define VS_REPLAY_SHARED_H

#include "analysis.h"

struct vs_shared_memory {
    uint64_t handle;     /* hash of its 64 bytes; of VMM memory none */
    uint64_t address;    /* in this process; of VMM memory 0 */
    uint64_t pieces;     /* of VMM memory: how many of cuMemCreate there are of one place; else 0 */
    uint64_t bytes;      /* 0 not known: never known of what another process made */
    uint64_t live_bytes; /* of a segment of a framework's cache: in its live blocks */
    uint64_t opens;      /* not closed yet; 0 for what was exported */
    uint64_t time_ns;    /* of the first call for it */
    uint32_t site;
    int8_t device;
    bool live_known;
};

struct vs_shared {
    struct vs_shared_memory *exported, *opened; /* the largest, then the oldest first */
    size_t exported_count, opened_count;
};

/* Whether anything was ever exported, imported or opened. */
bool vs_shared_any(const struct vs_state *state, const struct vs_objects *objects);
/* Returns 0 or -ENOMEM; release it in any case. */
int vs_shared_take(const struct vs_state *state, const struct vs_objects *objects,
                   struct vs_shared *out);
void vs_shared_release(struct vs_shared *shared);

#endif
