/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fragmentation of a framework's cache: what is free in its segments, what of it
 * could be given back, and the segments that few live bytes keep from it. Looked
 * at when asked for, and at each request that the framework gave up on.
 */
#ifndef VS_REPLAY_FRAGMENTATION_H
#define VS_REPLAY_FRAGMENTATION_H

#include "state.h"

enum { VS_PINNED_KEPT = 16, VS_PINNED_SITES = 8, VS_FRAGMENTATIONS_KEPT = 8 };

/* A segment of which the live blocks keep more than they are. */
struct vs_pinned {
    uint64_t address, bytes;
    uint64_t live_bytes, live_count;
    uint64_t held_bytes;             /* free, and kept from being given back */
    uint32_t sites[VS_PINNED_SITES]; /* of the live blocks, most bytes first */
    size_t site_count;               /* may exceed VS_PINNED_SITES: the others are counted only */
};

struct vs_fragmentation {
    bool known; /* blocks and segments fit together */
    uint64_t free_bytes, largest_free_bytes, releasable_bytes;
    uint64_t pinned_count, pinned_held_bytes; /* of all pinned segments */
    struct vs_pinned pinned[VS_PINNED_KEPT];  /* most held bytes first */
    size_t kept;
};

/* As it is now. Returns 0 or -ENOMEM. */
int vs_fragmentation_of(const struct vs_state *state, const struct vs_device_state *device,
                        struct vs_fragmentation *out);

/* The last requests that a framework gave up on. */
struct vs_fragmentations {
    struct {
        uint64_t sequence; /* of the event, 0 none */
        struct vs_fragmentation then;
    } items[VS_FRAGMENTATIONS_KEPT];
    size_t next;
    uint64_t walked_blocks;
    int error;
};
int vs_fragmentations_start(struct vs_fragmentations *kept, struct vs_state *state);
/* Of the request that failed in this event; NULL: not looked at, or not known. */
const struct vs_fragmentation *vs_fragmentations_at(const struct vs_fragmentations *kept,
                                                    uint64_t sequence);

#endif
