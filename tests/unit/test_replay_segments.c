/* SPDX-License-Identifier: Apache-2.0 */
/* Segments with their blocks, holes and what could be given back, at one instant. */
#include "replay/fragmentation.h"
#include "replay/segments.h"

#include "replay_lab.h"

#define BASE 0x7000000000ULL

static struct vs_layout layout_of(const struct lab *lab)
{
    struct vs_layout layout;
    cr_assert_eq(vs_layout_take(lab->state, lab_device(lab), &layout), 0);
    return layout;
}

static void map_piece(struct lab *lab, uint64_t address, uint64_t size, uint64_t handle)
{
    lab_create(lab, TORCH, handle, size);
    lab_map(lab, TORCH, address, size, handle);
    lab->reserved += size;
}

Test(segments, allocated_ones_stay_apart)
{
    struct lab lab = lab_open();
    lab_segment(&lab, BASE + 20 * MIB, 20 * MIB);
    lab_segment(&lab, BASE, 20 * MIB);
    lab_block(&lab, BASE + 22 * MIB, MIB);
    lab_block(&lab, BASE + 30 * MIB, 2 * MIB);
    struct vs_layout layout = layout_of(&lab);
    cr_assert(layout.known);
    cr_assert_eq(layout.count, 2U);
    cr_assert_eq(layout.segments[0].address, BASE);
    cr_assert_eq(layout.segments[0].block_count, 0U);
    cr_assert_eq(layout.segments[0].releasable_bytes, 20 * MIB);
    cr_assert_eq(vs_segment_held(&layout.segments[0]), 0U);
    cr_assert_eq(layout.segments[1].block_count, 2U);
    cr_assert_eq(layout.segments[1].live_bytes, 3 * MIB);
    cr_assert_eq(layout.segments[1].free_bytes, 17 * MIB);
    cr_assert_eq(layout.segments[1].largest_free_bytes, 8 * MIB);
    cr_assert_eq(vs_segment_held(&layout.segments[1]), 17 * MIB);
    cr_assert_eq(layout.blocks[layout.segments[1].first_block].address, BASE + 22 * MIB);
    cr_assert_eq(layout.largest_free_bytes, 20 * MIB);
    cr_assert_eq(layout.releasable_bytes, 20 * MIB);
    vs_layout_release(&layout);
    lab_close(&lab);
}

/* Of an expandable segment the mappings that no block touches can be given back. */
Test(segments, mappings_are_one_within_a_reservation)
{
    struct lab lab = lab_open();
    lab_range(&lab, VS_KIND_RESERVE, TORCH, BASE, 80 * MIB, 0);
    lab_range(&lab, VS_KIND_RESERVE, TORCH, BASE + 80 * MIB, 80 * MIB, 0);
    for (uint64_t i = 0; i < 5; i++) /* the last one begins the second reservation */
        map_piece(&lab, BASE + i * 20 * MIB, 20 * MIB, i + 1);
    lab_block(&lab, BASE, MIB);
    lab_block(&lab, BASE + 55 * MIB, 10 * MIB);
    struct vs_layout layout = layout_of(&lab);
    cr_assert(layout.known);
    cr_assert_eq(layout.count, 2U);
    cr_assert_eq(layout.segments[0].size, 80 * MIB);
    cr_assert_eq(layout.segments[0].free_bytes, 69 * MIB);
    cr_assert_eq(layout.segments[0].largest_free_bytes, 54 * MIB);
    cr_assert_eq(layout.segments[0].releasable_bytes, 20 * MIB);
    cr_assert_eq(vs_segment_held(&layout.segments[0]), 49 * MIB);
    cr_assert_eq(layout.segments[1].address, BASE + 80 * MIB);
    cr_assert_eq(layout.segments[1].releasable_bytes, 20 * MIB);
    vs_layout_release(&layout);
    lab_close(&lab);
}

Test(segments, what_lies_in_no_segment_is_not_hidden)
{
    struct lab lab = lab_open();
    lab_segment(&lab, BASE, 20 * MIB);
    lab_block(&lab, BASE + 100 * MIB, MIB);
    struct vs_layout layout = layout_of(&lab);
    cr_assert(!layout.known);
    cr_assert_eq(layout.count, 1U);
    cr_assert_eq(layout.block_count, 1U);
    vs_layout_release(&layout);
    lab_close(&lab);
}

/* ---- fragmentation --------------------------------------------------------------------- */

static void give_up(struct lab *lab, uint64_t size)
{
    lab_put(lab, (struct vs_event){.kind = VS_KIND_FW_OOM,
                                   .module = TORCH,
                                   .size = size,
                                   .extra = {lab->allocated, lab->reserved}});
}

/* A pinned segment's blocks are less than the free bytes that they keep; the worst comes first. */
Test(fragmentation, pinned_segments_by_what_they_hold)
{
    struct lab lab = lab_open();
    lab_segment(&lab, BASE, 20 * MIB);
    lab_segment(&lab, BASE + GIB, 500 * MIB);
    lab_segment(&lab, BASE + 2 * GIB, 40 * MIB);
    lab_segment(&lab, BASE + 3 * GIB, 100 * MIB); /* nothing lives here */
    lab_block(&lab, BASE, 2 * MIB);
    lab_block(&lab, BASE + GIB + 100 * MIB, MIB);
    lab_block(&lab, BASE + GIB + 300 * MIB, 3 * MIB);
    lab_block(&lab, BASE + 2 * GIB, 30 * MIB); /* full enough */
    struct vs_fragmentation now;
    cr_assert_eq(vs_fragmentation_of(lab.state, lab_device(&lab), &now), 0);
    cr_assert(now.known);
    cr_assert_eq(now.pinned_count, 2U);
    cr_assert_eq(now.kept, 2U);
    cr_assert_eq(now.pinned_held_bytes, (496 + 18) * MIB);
    cr_assert_eq(now.releasable_bytes, 100 * MIB);
    cr_assert_eq(now.largest_free_bytes, 199 * MIB);
    cr_assert_eq(now.pinned[0].address, BASE + GIB);
    cr_assert_eq(now.pinned[0].live_bytes, 4 * MIB);
    cr_assert_eq(now.pinned[0].live_count, 2U);
    cr_assert_eq(now.pinned[0].site_count, 1U);
    cr_assert_eq(now.pinned[1].address, BASE);
    lab_close(&lab);
}

Test(fragmentation, more_pinned_segments_than_are_kept)
{
    struct lab lab = lab_open();
    enum { SEGMENTS = 3 * VS_PINNED_KEPT };
    for (uint64_t i = 0; i < SEGMENTS; i++) {
        uint64_t rank = i * 7 % SEGMENTS; /* in no order; 7 and 48 have no divisor in common */
        lab_segment(&lab, BASE + i * GIB, (20 + rank) * MIB);
        lab_block(&lab, BASE + i * GIB, MIB);
    }
    struct vs_fragmentation now;
    cr_assert_eq(vs_fragmentation_of(lab.state, lab_device(&lab), &now), 0);
    cr_assert_eq(now.pinned_count, (uint64_t)SEGMENTS);
    cr_assert_eq(now.kept, (size_t)VS_PINNED_KEPT);
    for (uint64_t i = 0; i < VS_PINNED_KEPT; i++)
        cr_assert_eq(now.pinned[i].bytes, (20 + SEGMENTS - 1 - i) * MIB);
    lab_close(&lab);
}

/* Kept as it was when the request failed; of many failures the last ones are. */
Test(fragmentation, at_failures)
{
    struct lab lab = lab_open();
    static struct vs_fragmentations kept;
    memset(&kept, 0, sizeof(kept));
    cr_assert_eq(vs_fragmentations_start(&kept, lab.state), 0);
    lab_segment(&lab, BASE, 20 * MIB);
    lab_block(&lab, BASE, 2 * MIB);
    uint64_t first = lab.sequence, last = first;
    give_up(&lab, GIB);
    lab_block_free(&lab, BASE, 2 * MIB);
    cr_assert_not_null(vs_fragmentations_at(&kept, first));
    cr_assert_eq(vs_fragmentations_at(&kept, first)->pinned_count, 1U);
    cr_assert_null(vs_fragmentations_at(&kept, first + 2));
    for (int i = 0; i < VS_FRAGMENTATIONS_KEPT; i++) {
        last = lab.sequence;
        give_up(&lab, GIB);
    }
    cr_assert_null(vs_fragmentations_at(&kept, first));
    cr_assert_eq(vs_fragmentations_at(&kept, last)->pinned_count, 0U);
    cr_assert_eq(vs_fragmentations_at(&kept, last)->releasable_bytes, 20 * MIB);
    vs_fragmentations_release(&kept);
    lab_close(&lab);
}

/* A new segment is looked at with the block it was taken for; free as a whole or cut. */
Test(fragmentation, at_the_highest_reserve)
{
    struct lab lab = lab_open();
    static struct vs_fragmentations kept;
    memset(&kept, 0, sizeof(kept));
    cr_assert_eq(vs_fragmentations_start(&kept, lab.state), 0);
    lab_segment(&lab, BASE, 20 * MIB);
    lab_block(&lab, BASE, 20 * MIB);
    lab_block_free(&lab, BASE, 20 * MIB);
    lab_segment(&lab, BASE + GIB, 40 * MIB);
    lab_block(&lab, BASE + GIB, 30 * MIB);
    lab_block_free(&lab, BASE + GIB, 30 * MIB);
    lab_free(&lab, BASE + GIB);
    lab.reserved -= 40 * MIB;
    lab_block(&lab, BASE, MIB);
    vs_fragmentations_finish(&kept, lab.state);
    const struct vs_fragmentation *then = vs_fragmentation_at_peak(&kept, lab_device(&lab));
    cr_assert_not_null(then);
    cr_assert_eq(then->free_bytes, 30 * MIB);
    cr_assert_eq(then->unsplit_free_bytes, 20 * MIB);
    cr_assert_eq(then->largest_free_bytes, 20 * MIB);
    cr_assert_eq(then->part_count, 1U);
    cr_assert_eq(then->parts[0].pool, (uint32_t)VS_CACHE_POOL_DEFAULT);
    cr_assert_eq(then->parts[0].reserved_bytes, 60 * MIB);
    cr_assert_eq(then->parts[0].live_bytes, 30 * MIB);
    cr_assert_eq(then->holes[24].count, 1U, "20 MiB lies from 16 MiB on");
    cr_assert_eq(then->holes[23].bytes, 10 * MIB);
    vs_fragmentations_release(&kept);
    lab_close(&lab);
}
