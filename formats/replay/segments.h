/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The segments of a caching layer and the blocks in them at one instant: what is
 * live, and the holes between. Made when somebody asks, from what the fold keeps
 * anyway; nothing is done per event. O(live blocks · log).
 */
#ifndef VS_REPLAY_SEGMENTS_H
#define VS_REPLAY_SEGMENTS_H

#include "state.h"

struct vs_segment_block {
    uint64_t address, size;
    uint32_t site;
};

/* One segment; mappings side by side in one reservation are one. */
struct vs_segment {
    uint64_t address, size; /* the addresses it spans */
    uint64_t reserved_bytes;
    uint64_t live_bytes, free_bytes, largest_free_bytes;
    uint64_t releasable_bytes;       /* could be given back: no live block touches them */
    size_t first_block, block_count; /* of vs_layout.blocks */
    enum vs_segment_kind kind;
};

struct vs_layout {
    struct vs_segment *segments; /* by address */
    size_t count, room;
    struct vs_segment_block *blocks; /* live ones, by address */
    size_t block_count;
    uint64_t free_bytes, largest_free_bytes, releasable_bytes;
    bool known; /* blocks and segments fit together */
};

/* The free bytes of a segment that its live blocks keep from being given back. */
static inline uint64_t vs_segment_held(const struct vs_segment *segment)
{
    return segment->free_bytes - segment->releasable_bytes;
}

/* Returns 0 or -ENOMEM; release the layout in any case. */
int vs_layout_take(const struct vs_state *state, const struct vs_device_state *device,
                   struct vs_layout *out);
void vs_layout_release(struct vs_layout *layout);

#endif
