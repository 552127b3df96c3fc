/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The segments of a caching layer and the blocks in them at one instant: what is
 * live, and the holes between. Made when somebody asks, from what the fold keeps
 * anyway; nothing is done per event. O(blocks · log).
 */
#ifndef VS_REPLAY_SEGMENTS_H
#define VS_REPLAY_SEGMENTS_H

#include "state.h"

enum { VS_HOLE_SIZES = 48 };

struct vs_segment_block {
    uint64_t address, size;
    uint32_t site; /* 0: it waits */
    bool waits;    /* freed, and other streams may still use it */
};

/* One segment; mappings side by side in one reservation are one. */
struct vs_segment {
    uint64_t address, size; /* the addresses it spans */
    uint64_t reserved_bytes;
    uint64_t live_bytes, waiting_bytes, free_bytes, largest_free_bytes;
    uint64_t releasable_bytes;       /* could be given back: no block touches them */
    size_t first_block, block_count; /* of vs_layout.blocks */
    size_t live_count;               /* of these, without those that wait */
    uint64_t stream;                 /* that it serves; valid with stream_known */
    uint32_t pool;                   /* enum vs_cache_pool */
    uint32_t pool_site;              /* where a private pool was made, 0 not known */
    enum vs_segment_kind kind;
    bool stream_known;
};

struct vs_layout {
    struct vs_segment *segments; /* by address */
    size_t count, room;
    struct vs_segment_block *blocks; /* live ones and those that wait, by address */
    size_t block_count;
    uint64_t waiting_bytes, free_bytes, largest_free_bytes, releasable_bytes;
    struct vs_holes {
        uint64_t count, bytes;
    } holes[VS_HOLE_SIZES]; /* free blocks by size: [i] of 2^i bytes up to twice as many */
    bool known;             /* blocks and segments fit together */
};

/* The free bytes of a segment that its blocks keep from being given back. */
static inline uint64_t vs_segment_held(const struct vs_segment *segment)
{
    return segment->free_bytes - segment->releasable_bytes;
}

/* Whether all of its segments are known: none is a driver's pool or from before the recording. */
static inline bool vs_layout_possible(const struct vs_device_state *device)
{
    return device->pool_reserved == 0 && device->framework_seen && device->unseen_reserved == 0;
}

/* Returns 0 or -ENOMEM; release the layout in any case. */
int vs_layout_take(const struct vs_state *state, const struct vs_device_state *device,
                   struct vs_layout *out);
/* The same as if no block waited. */
int vs_layout_take_idle(const struct vs_state *state, const struct vs_device_state *device,
                        struct vs_layout *out);
void vs_layout_release(struct vs_layout *layout);

#endif
