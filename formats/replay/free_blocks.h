/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The free blocks inside the segments of a caching layer, kept while events are
 * folded, so that the largest of them is known after every event. A block that
 * comes or goes costs O(log n). Whenever segments change, and whenever a block does
 * not fit what is kept, all is taken anew by walking the segments (segments.h) when
 * somebody asks next. Nothing is kept before the first question.
 */
#ifndef VS_REPLAY_FREE_BLOCKS_H
#define VS_REPLAY_FREE_BLOCKS_H

#include "state.h"

struct vs_free_space_of; /* one device's */

struct vs_free_blocks {
    struct vs_free_space_of *devices[VS_DEVICE_SLOTS]; /* those asked about */
    size_t count;
    uint64_t segment_changes, waits, on_live; /* of the state, after the event before */
};

/* After an event took effect. */
void vs_free_blocks_event(struct vs_free_blocks *free_blocks, const struct vs_state *state,
                          const struct vs_event *event);
/*
 * The largest free block of a device's segments, in bytes, now. Where all has to be taken anew,
 * that is done once in so many questions that each costs a look at 16 blocks. False: not known,
 * as blocks and segments do not fit together, or it was not taken.
 */
bool vs_free_blocks_largest(struct vs_free_blocks *free_blocks, const struct vs_state *state,
                            const struct vs_device_state *device, uint64_t *bytes);
void vs_free_blocks_release(struct vs_free_blocks *free_blocks);

#endif
