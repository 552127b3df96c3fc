/* SPDX-License-Identifier: Apache-2.0 */
/* Segments with their blocks, holes and what could be given back, at one instant. */
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
