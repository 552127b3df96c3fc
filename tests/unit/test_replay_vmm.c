/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory: references, expandable segments, sleep modes, imports. */
#include "replay_lab.h"

#define BASE 0x200000000ULL

/* Two pieces of an expandable segment, as PyTorch makes them. */
static void expand(struct lab *lab, uint64_t at, uint64_t handle)
{
    lab_create(lab, TORCH, handle, 20 * MIB);
    lab_map(lab, TORCH, at, 20 * MIB, handle);
    lab->reserved += 20 * MIB;
}

Test(vmm, physical_memory_lives_by_references)
{
    struct lab lab = lab_open();
    lab_range(&lab, VS_KIND_RESERVE, NCCL, BASE, GIB, 0);
    cr_assert_eq(lab_bands(&lab).direct, 0, "a reservation costs nothing");
    lab_create(&lab, NCCL, 0x11, 4 * MIB);
    cr_assert_eq(lab_owned(&lab, "libnccl"), (int64_t)(4 * MIB));
    lab_map(&lab, NCCL, BASE, 4 * MIB, 0x11);
    lab_range(&lab, VS_KIND_PHYS_RELEASE, NCCL, 0, 0, 0x11);
    cr_assert_eq(lab_owned(&lab, "libnccl"), (int64_t)(4 * MIB), "the mapping holds it");
    lab_range(&lab, VS_KIND_PHYS_RETAIN, NCCL, BASE + 8192, 0, 0x12);
    lab_range(&lab, VS_KIND_UNMAP, NCCL, BASE, 4 * MIB, 0);
    cr_assert_eq(lab_owned(&lab, "libnccl"), (int64_t)(4 * MIB), "the retained handle holds it");
    lab_range(&lab, VS_KIND_PHYS_RELEASE, NCCL, 0, 0, 0x12);
    cr_assert_eq(lab_bands(&lab).direct, 0);
    lab_range(&lab, VS_KIND_UNRESERVE, NCCL, BASE, GIB, 0);
    cr_assert_eq(lab.state->counts.handles_unknown, 0);
    cr_assert_eq(lab.state->counts.ranges_unknown, 0);
    lab_check_identities(&lab);
    lab_close(&lab);
}

Test(vmm, a_handle_value_can_be_used_again)
{
    struct lab lab = lab_open();
    lab_range(&lab, VS_KIND_RESERVE, NCCL, BASE, GIB, 0);
    for (uint64_t i = 0; i < 3; i++) {
        lab_create(&lab, NCCL, 0x11, 4 * MIB);
        lab_map(&lab, NCCL, BASE + i * 4 * MIB, 4 * MIB, 0x11);
        lab_range(&lab, VS_KIND_PHYS_RELEASE, NCCL, 0, 0, 0x11);
    }
    cr_assert_eq(lab_owned(&lab, "libnccl"), (int64_t)(12 * MIB));
    cr_assert_eq(lab.state->counts.alloc_on_live, 0);
    lab_range(&lab, VS_KIND_UNMAP, NCCL, BASE, 12 * MIB, 0);
    cr_assert_eq(lab_bands(&lab).direct, 0, "one unmap over three mappings");
    lab_close(&lab);
}

Test(vmm, expandable_segments)
{
    struct lab lab = lab_open();
    lab_range(&lab, VS_KIND_RESERVE, TORCH, BASE, 18 * GIB, 0);
    expand(&lab, BASE, 1);
    expand(&lab, BASE + 20 * MIB, 2);
    lab_block(&lab, BASE, 30 * MIB); /* over both pieces */
    struct vs_bands bands = lab_bands(&lab);
    cr_assert_eq(bands.reserved, (int64_t)(40 * MIB));
    cr_assert_eq(bands.backed, (int64_t)(40 * MIB));
    cr_assert_eq(bands.direct, 0);
    cr_assert_eq(lab.state->counts.blocks_outside, 0);
    struct vs_layout space = lab_free_space(&lab);
    cr_assert_eq(space.largest_free_bytes, 10 * MIB);
    lab_block_free(&lab, BASE, 30 * MIB);
    lab_range(&lab, VS_KIND_UNMAP, TORCH, BASE + 20 * MIB, 20 * MIB, 0);
    lab_range(&lab, VS_KIND_PHYS_RELEASE, TORCH, 0, 0, 2);
    cr_assert_eq(lab_bands(&lab).reserved, (int64_t)(20 * MIB));
    cr_assert_eq(lab_bands(&lab).backed, (int64_t)(20 * MIB));
    cr_assert_eq(lab_device(&lab)->mismatches, 0);
    lab_check_identities(&lab);
    lab_close(&lab);
}

/* pause and resume behind the allocator: the address stays, the memory goes. */
Test(vmm, released_behind_the_framework)
{
    struct lab lab = lab_open();
    lab_range(&lab, VS_KIND_RESERVE, TORCH, BASE, 20 * MIB, 0);
    expand(&lab, BASE, 1);
    lab_block(&lab, BASE, 20 * MIB);
    lab_range(&lab, VS_KIND_UNMAP, SAVER, BASE, 20 * MIB, 0);
    lab_range(&lab, VS_KIND_PHYS_RELEASE, SAVER, 0, 0, 1);
    struct vs_bands paused = lab_bands(&lab);
    cr_assert_eq(paused.reserved, (int64_t)(20 * MIB));
    cr_assert_eq(paused.backed, 0);
    cr_assert_eq(paused.unbacked, (int64_t)(20 * MIB));
    lab_create(&lab, SAVER, 9, 20 * MIB);
    lab_map(&lab, SAVER, BASE, 20 * MIB, 9);
    cr_assert_eq(lab_bands(&lab).backed, (int64_t)(20 * MIB));
    cr_assert_eq(lab_bands(&lab).reserved, (int64_t)(20 * MIB));
    cr_assert_eq(lab_bands(&lab).direct, 0);
    lab_block_free(&lab, BASE, 20 * MIB);
    lab_range(&lab, VS_KIND_UNMAP, TORCH, BASE, 20 * MIB, 0);
    lab_range(&lab, VS_KIND_UNRESERVE, TORCH, BASE, 20 * MIB, 0);
    cr_assert_eq(lab_bands(&lab).reserved, 0);
    cr_assert_eq(lab_device(&lab)->mismatches, 0);
    lab_close(&lab);
}

/* A MemPool whose allocator maps by itself: known only by the block inside. */
Test(vmm, a_mempool_that_unmaps_and_remaps)
{
    struct lab lab = lab_open();
    lab_range(&lab, VS_KIND_RESERVE, SAVER, BASE, 64 * MIB, 0);
    lab_create(&lab, SAVER, 1, 64 * MIB);
    lab_map(&lab, SAVER, BASE, 64 * MIB, 1);
    lab.reserved += 64 * MIB;
    lab_block(&lab, BASE, 10 * MIB);
    cr_assert_eq(lab_device(&lab)->mismatches, 0);
    cr_assert_eq(lab_bands(&lab).backed, (int64_t)(64 * MIB));
    cr_assert_eq(lab_bands(&lab).direct, 0);
    lab_range(&lab, VS_KIND_UNMAP, SAVER, BASE, 64 * MIB, 0);
    lab_range(&lab, VS_KIND_PHYS_RELEASE, SAVER, 0, 0, 1);
    cr_assert_eq(lab_bands(&lab).unbacked, (int64_t)(64 * MIB));
    lab_block(&lab, BASE + 10 * MIB, MIB);
    cr_assert_eq(lab_device(&lab)->mismatches, 0, "its own total did not change either");
    lab_create(&lab, SAVER, 2, 64 * MIB);
    lab_map(&lab, SAVER, BASE, 64 * MIB, 2);
    cr_assert_eq(lab_bands(&lab).unbacked, 0);
    lab_block_free(&lab, BASE, 10 * MIB);
    lab_block_free(&lab, BASE + 10 * MIB, MIB);
    lab_range(&lab, VS_KIND_UNMAP, SAVER, BASE, 64 * MIB, 0);
    lab_range(&lab, VS_KIND_UNRESERVE, SAVER, BASE, 64 * MIB, 0);
    lab_range(&lab, VS_KIND_PHYS_RELEASE, SAVER, 0, 0, 2);
    cr_assert_eq(lab_bands(&lab).reserved, 0);
    cr_assert_eq(lab_bands(&lab).direct, 0);
    lab_check_identities(&lab);
    lab_close(&lab);
}

Test(vmm, imported_memory_and_multicast_own_nothing)
{
    struct lab lab = lab_open();
    lab_range(&lab, VS_KIND_RESERVE, NCCL, BASE, GIB, 0);
    lab_range(&lab, VS_KIND_PHYS_IMPORT, NCCL, 0, 64 * MIB, 0x21);
    lab_range(&lab, VS_KIND_MULTICAST_CREATE, NCCL, 0, 64 * MIB, 0x22);
    lab_map(&lab, NCCL, BASE, 64 * MIB, 0x21);
    lab_map(&lab, NCCL, BASE + 64 * MIB, 64 * MIB, 0x22);
    cr_assert_eq(lab_bands(&lab).direct, 0);
    cr_assert_eq(lab.state->counts.handles_unknown, 0);
    lab_close(&lab);
}

Test(vmm, host_memory_is_not_the_devices)
{
    struct lab lab = lab_open();
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_PHYS_CREATE,
                                    .module = NCCL,
                                    .handle = 5,
                                    .size = 4 * MIB,
                                    .extra = {3, 0}});
    cr_assert_eq(lab_bands(&lab).direct, 0);
    cr_assert_eq(lab_bands(&lab).host_pinned, (int64_t)(4 * MIB));
    lab_range(&lab, VS_KIND_PHYS_RELEASE, NCCL, 0, 0, 5);
    cr_assert_eq(lab_bands(&lab).host_pinned, 0);
    lab_close(&lab);
}

static uint64_t intent(struct lab *lab, uint8_t kind, uint64_t address, uint64_t size,
                       uint64_t handle)
{
    return lab_put(lab, (struct vs_event){.kind = kind,
                                          .module = TORCH,
                                          .address = address,
                                          .size = size,
                                          .handle = handle,
                                          .flags = VS_EVENT_INTENT});
}

Test(vmm, failed_unmap_and_release_are_taken_back)
{
    struct lab lab = lab_open();
    lab_range(&lab, VS_KIND_RESERVE, TORCH, BASE, GIB, 0);
    expand(&lab, BASE, 1);
    lab_block(&lab, BASE, MIB);
    lab_undo(&lab, intent(&lab, VS_KIND_UNMAP, BASE, 20 * MIB, 0), 1);
    cr_assert_eq(lab_bands(&lab).reserved, (int64_t)(20 * MIB));
    cr_assert_eq(lab_bands(&lab).backed, (int64_t)(20 * MIB));
    lab_undo(&lab, intent(&lab, VS_KIND_PHYS_RELEASE, 0, 0, 1), 1);
    intent(&lab, VS_KIND_PHYS_RELEASE, 0, 0, 1);
    /* The mapping was the last reference: the failed unmap must bring the memory back. */
    lab_undo(&lab, intent(&lab, VS_KIND_UNMAP, BASE, 20 * MIB, 0), 1);
    cr_assert_eq(lab_bands(&lab).backed, (int64_t)(20 * MIB));
    lab_undo(&lab, intent(&lab, VS_KIND_UNRESERVE, BASE, GIB, 0), 1);
    cr_assert_eq(lab.state->reservations.count, 1);
    cr_assert_eq(lab_bands(&lab).reserved, (int64_t)(20 * MIB));
    cr_assert_eq(lab.state->counts.handles_unknown, 0);
    lab_check_identities(&lab);
    lab_close(&lab);
}

/* In a damaged file: the handle of a release that is taken back means other memory by now. */
Test(vmm, a_handle_of_a_failed_release_that_was_reused)
{
    struct lab lab = lab_open();
    lab_create(&lab, NCCL, 1, 4 * MIB);
    uint64_t release = intent(&lab, VS_KIND_PHYS_RELEASE, 0, 0, 1);
    lab_create(&lab, NCCL, 1, 8 * MIB);
    lab_undo(&lab, release, 1);
    cr_assert_eq(lab_owned(&lab, "libnccl"), (int64_t)(4 * MIB), "what came back, alone");
    for (int i = 0; i < 3; i++)
        lab_range(&lab, VS_KIND_PHYS_RELEASE, NCCL, 0, 0, 1);
    cr_assert_eq(lab_owned(&lab, "libnccl"), 0);
    for (uint64_t handle = 1; handle < 200; handle++)
        lab_create(&lab, NCCL, handle, 4 * MIB);
    cr_assert_eq(lab_owned(&lab, "libnccl"), (int64_t)(199 * 4 * MIB));
    lab_close(&lab);
}

Test(vmm, absurd_ranges_do_no_harm)
{
    struct lab lab = lab_open();
    lab_range(&lab, VS_KIND_RESERVE, NCCL, UINT64_MAX - 10, 100, 0);
    lab_range(&lab, VS_KIND_UNMAP, NCCL, 0, UINT64_MAX, 0);
    lab_create(&lab, NCCL, 1, UINT64_MAX);
    lab_map(&lab, NCCL, BASE, UINT64_MAX - BASE, 1);
    lab_map(&lab, NCCL, BASE + 5, 7, 1);
    lab_range(&lab, VS_KIND_UNMAP, NCCL, BASE + 6, 1, 0);
    lab_range(&lab, VS_KIND_UNRESERVE, NCCL, 7, UINT64_MAX, 0);
    cr_assert_eq(lab.state->error, 0);
    lab_close(&lab);
}

/* An allocator under the cache keeps its addresses and gives memory back by unmapping alone. */
Test(vmm, a_segment_cut_from_a_larger_range_goes_with_the_total)
{
    struct lab lab = lab_open();
    lab_block(&lab, 0x10000000, 0); /* the framework's totals are known */
    lab_range(&lab, VS_KIND_RESERVE, SAVER, 0x700000000, GIB, 0);
    lab_create(&lab, SAVER, 5, 20 * MIB);
    lab_map(&lab, SAVER, 0x700000000, 20 * MIB, 5);
    lab.reserved += 20 * MIB;
    lab_block(&lab, 0x700000000, MIB);
    cr_assert_eq(lab_bands(&lab).backed, (int64_t)(20 * MIB));
    lab_block_free(&lab, 0x700000000, MIB);
    lab_range(&lab, VS_KIND_UNMAP, SAVER, 0x700000000, 20 * MIB, 0);
    lab_put(&lab,
            (struct vs_event){.kind = VS_KIND_PHYS_RELEASE, .handle = 5, .flags = VS_EVENT_INTENT});
    cr_assert_eq(lab_bands(&lab).unbacked, (int64_t)(20 * MIB), "asleep, as far as is known");
    lab.reserved -= 20 * MIB;
    lab_segment(&lab, 0x900000000, 2 * MIB);
    lab_block(&lab, 0x900000000, MIB);
    struct vs_bands bands = lab_bands(&lab);
    cr_assert_eq(bands.reserved, (int64_t)(2 * MIB));
    cr_assert_eq(bands.unbacked, 0);
    cr_assert_eq(lab_device(&lab)->mismatches, 0);
    lab_check_identities(&lab);
    lab_close(&lab);
}
