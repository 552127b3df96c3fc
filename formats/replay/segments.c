/* SPDX-License-Identifier: Apache-2.0 */
/* Lays the live blocks over the segments: see segments.h. */
#include "segments.h"

#include <errno.h>
#include <stdlib.h>

#include "grow.h"

static int by_address(const void *a, const void *b)
{
    uint64_t left = ((const struct vs_segment_block *)a)->address,
             right = ((const struct vs_segment_block *)b)->address;
    return (left > right) - (left < right);
}

static int take_blocks(const struct vs_state *state, int8_t device, bool idle,
                       struct vs_layout *layout)
{
    size_t index = 0, most = state->blocks.count + state->waits.count + 1;
    layout->blocks = malloc(most * sizeof(*layout->blocks));
    if (layout->blocks == NULL)
        return -ENOMEM;
    uint64_t address;
    const struct vs_block *block;
    const struct vs_wait *wait;
    while ((block = vs_blocks_next(&state->blocks, &index, &address)) != NULL)
        if (block->device == device)
            layout->blocks[layout->block_count++] =
                (struct vs_segment_block){address, block->size, block->site, false};
    index = 0;
    while (!idle && (wait = vs_waits_next(&state->waits, &index, &address)) != NULL)
        if (wait->device == device)
            layout->blocks[layout->block_count++] =
                (struct vs_segment_block){address, wait->size, 0, true};
    qsort(layout->blocks, layout->block_count, sizeof(*layout->blocks), by_address);
    return 0;
}

/* ---- one segment --------------------------------------------------------------------- */

/* Whether a mapping goes on where another one ended: no reservation begins between them. */
static bool goes_on(const struct vs_state *state, const struct vs_range *next, uint64_t end,
                    int8_t device)
{
    if (next == NULL || next->start != end || next->kind != VS_SEGMENT_PIECE ||
        next->device != device)
        return false;
    const struct vs_range *reservation = vs_ranges_from(&state->reservations, end);
    return reservation == NULL || reservation->start != end;
}

/* All mappings of one segment serve the same stream and pool; not all were cut from yet. */
static void note_use(struct vs_segment *segment, const struct vs_range *range)
{
    if (range->stream_known) {
        segment->stream = range->stream;
        segment->stream_known = true;
    }
    if (range->pool != VS_CACHE_POOL_UNSEEN) {
        segment->pool = range->pool;
        segment->pool_site = range->pool_site;
    }
}

/* The segment that starts with `*at`, which becomes the range behind it. */
static struct vs_segment span_of(const struct vs_state *state, struct vs_range **at)
{
    struct vs_segment segment = {.address = (*at)->start,
                                 .size = (*at)->size,
                                 .reserved_bytes = (*at)->bytes,
                                 .kind = (enum vs_segment_kind)(*at)->kind};
    int8_t device = (*at)->device;
    uint64_t end = segment.address + segment.size;
    note_use(&segment, *at);
    struct vs_range *next = vs_ranges_from(&state->segments, end);
    while (segment.kind == VS_SEGMENT_PIECE && goes_on(state, next, end, device)) {
        end += next->size;
        segment.reserved_bytes += next->bytes;
        note_use(&segment, next);
        next = vs_ranges_from(&state->segments, end);
    }
    segment.size = end - segment.address;
    *at = next;
    return segment;
}

/* Memory behind the mappings that lie in a hole as a whole. */
static uint64_t mapped_within(const struct vs_state *state, uint64_t from, uint64_t to)
{
    uint64_t bytes = 0;
    const struct vs_range *piece = vs_ranges_from(&state->segments, from);
    while (piece != NULL && piece->start + piece->size <= to) {
        bytes += piece->backed;
        piece = vs_ranges_from(&state->segments, piece->start + piece->size);
    }
    return bytes;
}

static size_t hole_size(uint64_t bytes)
{
    size_t size = 63 - (size_t)__builtin_clzll(bytes);
    return size < VS_HOLE_SIZES ? size : VS_HOLE_SIZES - 1;
}

static void note_hole(const struct vs_state *state, struct vs_layout *layout,
                      struct vs_segment *segment, uint64_t from, uint64_t to)
{
    if (to <= from)
        return;
    struct vs_holes *alike = &layout->holes[hole_size(to - from)];
    alike->count++;
    alike->bytes += to - from;
    segment->free_bytes += to - from;
    if (to - from > segment->largest_free_bytes)
        segment->largest_free_bytes = to - from;
    if (segment->kind == VS_SEGMENT_PIECE)
        segment->releasable_bytes += mapped_within(state, from, to);
}

/* Goes through the blocks from `*used` on. False: one lies before the segment, in none. */
static bool fill(const struct vs_state *state, struct vs_layout *layout, size_t *used,
                 struct vs_segment *segment)
{
    uint64_t from = segment->address, end = segment->address + segment->size;
    uint64_t limit = segment->reserved_bytes < segment->size ? from + segment->reserved_bytes : end;
    bool known = true;
    segment->first_block = *used;
    for (; *used < layout->block_count && layout->blocks[*used].address < end; ++*used) {
        const struct vs_segment_block *block = &layout->blocks[*used];
        known = known && block->address >= from;
        note_hole(state, layout, segment, from, block->address);
        from = block->address + block->size;
        *(block->waits ? &segment->waiting_bytes : &segment->live_bytes) += block->size;
        segment->live_count += !block->waits;
    }
    segment->block_count = *used - segment->first_block;
    note_hole(state, layout, segment, from, limit);
    if (segment->kind != VS_SEGMENT_PIECE && segment->block_count == 0)
        segment->releasable_bytes = mapped_within(state, segment->address, end);
    return known && from <= end;
}

/* ---- all of them ---------------------------------------------------------------------- */

static int add(struct vs_layout *layout, const struct vs_segment *segment)
{
    if (!vs_grow(&layout->segments, &layout->room, layout->count + 1, sizeof(*layout->segments)))
        return -ENOMEM;
    layout->segments[layout->count++] = *segment;
    layout->waiting_bytes += segment->waiting_bytes;
    layout->free_bytes += segment->free_bytes;
    layout->releasable_bytes += segment->releasable_bytes;
    if (segment->largest_free_bytes > layout->largest_free_bytes)
        layout->largest_free_bytes = segment->largest_free_bytes;
    return 0;
}

static int take(const struct vs_state *state, const struct vs_device_state *device, bool idle,
                struct vs_layout *out)
{
    *out = (struct vs_layout){.known = vs_layout_possible(device)};
    size_t used = 0;
    int result = take_blocks(state, device->device, idle, out);
    struct vs_range *at = vs_ranges_from(&state->segments, 0);
    while (at != NULL && result == 0) {
        if (at->device != device->device) {
            at = vs_ranges_from(&state->segments, at->start + at->size);
            continue;
        }
        struct vs_segment segment = span_of(state, &at);
        out->known = fill(state, out, &used, &segment) && out->known;
        result = add(out, &segment);
    }
    out->known = out->known && used == out->block_count;
    return result;
}

int vs_layout_take(const struct vs_state *state, const struct vs_device_state *device,
                   struct vs_layout *out)
{
    return take(state, device, false, out);
}

int vs_layout_take_idle(const struct vs_state *state, const struct vs_device_state *device,
                        struct vs_layout *out)
{
    return take(state, device, true, out);
}

void vs_layout_release(struct vs_layout *layout)
{
    free(layout->segments);
    free(layout->blocks);
    *layout = (struct vs_layout){0};
}
