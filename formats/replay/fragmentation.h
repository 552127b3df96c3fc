/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fragmentation of a framework's cache: what is free in its segments, what of it
 * could be given back, and the segments that few live bytes keep from it. Looked
 * at when asked for, and at each request that the framework gave up on.
 */
#ifndef VS_REPLAY_FRAGMENTATION_H
#define VS_REPLAY_FRAGMENTATION_H

#include "segments.h"

enum {
    VS_PINNED_KEPT = 16,
    VS_PINNED_SITES = 8,
    VS_FRAGMENTATIONS_KEPT = 8,
    VS_CACHE_PARTS_KEPT = 32
};

/* What a cache holds for one pool and stream. */
struct vs_cache_part {
    uint64_t stream;  /* valid with stream_known */
    uint32_t pool;    /* enum vs_cache_pool */
    uint32_t made_by; /* site where a private pool was made, 0 not known */
    bool stream_known;
    uint64_t segments, reserved_bytes, live_bytes, waiting_bytes;
    uint64_t free_bytes, largest_free_bytes, releasable_bytes;
};

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
    uint64_t free_bytes, largest_free_bytes, releasable_bytes, waiting_bytes;
    uint64_t unsplit_free_bytes; /* of free_bytes: in segments that are free as a whole */
    struct vs_holes holes[VS_HOLE_SIZES];
    struct vs_cache_part parts[VS_CACHE_PARTS_KEPT]; /* most reserved first */
    size_t part_count, parts_left_out;
    uint64_t pinned_count, pinned_held_bytes; /* of all pinned segments */
    struct vs_pinned pinned[VS_PINNED_KEPT];  /* most held bytes first */
    size_t kept;
};

/* As it is now. Returns 0 or -ENOMEM. */
int vs_fragmentation_of(const struct vs_state *state, const struct vs_device_state *device,
                        struct vs_fragmentation *out);

/* The last requests that a framework gave up on, and every device's highest reserve. */
struct vs_fragmentations {
    struct {
        uint64_t sequence; /* of the event, 0 none */
        struct vs_fragmentation then;
    } items[VS_FRAGMENTATIONS_KEPT];
    size_t next;
    struct vs_fragmentation *at_reserved_peak[VS_DEVICE_SLOTS]; /* NULL: not looked at */
    bool due[VS_DEVICE_SLOTS]; /* a new highest reserve, not looked at yet */
    uint64_t walked_blocks, walked_at_peaks;
    int error;
};
int vs_fragmentations_start(struct vs_fragmentations *kept, struct vs_state *state);
/* Once, after the last event. */
void vs_fragmentations_finish(struct vs_fragmentations *kept, const struct vs_state *state);
void vs_fragmentations_release(struct vs_fragmentations *kept);
/* When the device's framework had reserved most; NULL: not looked at, or not known. */
const struct vs_fragmentation *vs_fragmentation_at_peak(const struct vs_fragmentations *kept,
                                                        const struct vs_device_state *device);
/* Of the request that failed in this event; NULL: not looked at, or not known. */
const struct vs_fragmentation *vs_fragmentations_at(const struct vs_fragmentations *kept,
                                                    uint64_t sequence);

#endif
