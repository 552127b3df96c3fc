/* SPDX-License-Identifier: Apache-2.0 */
/* A caching layer over direct segments: totals, places, anchors, free space. */
#include "replay_lab.h"

Test(framework, totals_agree)
{
    struct lab lab = lab_open();
    lab_segment(&lab, 0x10000000, 20 * MIB);
    lab_block(&lab, 0x10000000, 4 * MIB);
    lab_block(&lab, 0x10000000 + 4 * MIB, 6 * MIB);
    lab_block_free(&lab, 0x10000000, 4 * MIB);
    struct vs_bands bands = lab_bands(&lab);
    cr_assert_eq(bands.reserved, (int64_t)(20 * MIB));
    cr_assert_eq(bands.backed, (int64_t)(20 * MIB));
    cr_assert_eq(bands.allocated, (int64_t)(6 * MIB));
    cr_assert_eq(bands.direct, 0);
    cr_assert_eq(lab_device(&lab)->mismatches, 0);
    cr_assert_eq(lab_device(&lab)->layers[VS_LAYER_FRAMEWORK].peak_bytes, (int64_t)(10 * MIB));
    cr_assert_eq(lab.state->counts.blocks_outside, 0);
    cr_assert_eq(lab.state->counts.totals_compared, 3);
    lab_check_identities(&lab);
    lab_close(&lab);
}

/* empty_cache is not followed by a report: reserved comes from the segments. */
Test(framework, reserved_after_empty_cache)
{
    struct lab lab = lab_open();
    lab_segment(&lab, 0x10000000, 20 * MIB);
    lab_segment(&lab, 0x20000000, 2 * MIB);
    lab_block(&lab, 0x20000000, 512);
    lab_free(&lab, 0x10000000);
    cr_assert_eq(lab_bands(&lab).reserved, (int64_t)(2 * MIB));
    cr_assert_eq(lab_device(&lab)->reserved_peak, (int64_t)(22 * MIB));
    lab_close(&lab);
}

Test(framework, a_difference_is_one_mismatch)
{
    struct lab lab = lab_open();
    lab_segment(&lab, 0x10000000, 20 * MIB);
    lab_block(&lab, 0x10000000, MIB);
    lab.allocated += 4096; /* a block we never saw */
    lab_block(&lab, 0x10000000 + MIB, MIB);
    lab_block(&lab, 0x10000000 + 2 * MIB, MIB);
    cr_assert_eq(lab_device(&lab)->mismatches, 1);
    cr_assert_eq(lab_bands(&lab).allocated, (int64_t)(3 * MIB + 4096), "its total is taken over");
    lab_close(&lab);
}

Test(framework, what_was_live_before_recording)
{
    struct lab lab = lab_open();
    lab.allocated = 8 * MIB;
    lab.reserved = 20 * MIB;
    lab_segment(&lab, 0x10000000, 2 * MIB);
    lab_block(&lab, 0x10000000, MIB);
    cr_assert_eq(lab_device(&lab)->mismatches, 0);
    cr_assert_eq(lab_bands(&lab).allocated, (int64_t)(9 * MIB));
    cr_assert_eq(lab_bands(&lab).reserved, (int64_t)(22 * MIB));
    lab_block_free(&lab, 0x77000000, 3 * MIB);
    cr_assert_eq(lab_bands(&lab).allocated, (int64_t)(6 * MIB));
    cr_assert_eq(lab_device(&lab)->mismatches, 0);
    cr_assert_eq(lab.state->counts.framework_frees_unknown, 0, "one of those of before");
    lab_block_free(&lab, 0x78000000, 6 * MIB - MIB);
    cr_assert_eq(lab.state->counts.framework_frees_unknown, 0);
    lab_block_free(&lab, 0x79000000, 512);
    cr_assert_eq(lab.state->counts.framework_frees_unknown, 1, "nothing of before is left");
    lab_close(&lab);
}

Test(framework, a_block_outside_of_segments_is_told)
{
    struct lab lab = lab_open();
    lab_segment(&lab, 0x10000000, 2 * MIB);
    lab_block(&lab, 0x10000000 + MIB, 2 * MIB);
    cr_assert_eq(lab.state->counts.blocks_outside, 1);
    lab_close(&lab);
}

Test(framework, memory_of_a_pluggable_allocator_becomes_a_segment)
{
    struct lab lab = lab_open();
    lab_alloc(&lab, NCCL, 0x10000000, 20 * MIB);
    cr_assert_eq(lab_owned(&lab, "libnccl"), (int64_t)(20 * MIB));
    lab.reserved += 20 * MIB;
    lab_block(&lab, 0x10000000, MIB);
    cr_assert_eq(lab_owned(&lab, "libnccl"), 0);
    cr_assert_eq(lab_bands(&lab).reserved, (int64_t)(20 * MIB));
    cr_assert_eq(lab_device(&lab)->mismatches, 0);
    lab_block_free(&lab, 0x10000000, MIB);
    lab_free(&lab, 0x10000000);
    cr_assert_eq(lab_bands(&lab).reserved, 0);
    lab_check_identities(&lab);
    lab_close(&lab);
}

/* PYTORCH_NO_CUDA_MEMORY_CACHING: the library allocates but reports no blocks. */
Test(framework, a_library_that_reports_nothing_is_an_owner)
{
    struct lab lab = lab_open();
    lab_alloc(&lab, TORCH, 0x10000000, 20 * MIB);
    struct vs_bands bands = lab_bands(&lab);
    cr_assert_eq(bands.reserved, 0);
    cr_assert_eq(bands.direct, (int64_t)(20 * MIB));
    cr_assert_eq(lab_owned(&lab, "libc10_cuda"), (int64_t)(20 * MIB));
    cr_assert_eq(vs_device_top_layer(lab_device(&lab)), VS_LAYER_DRIVER);
    lab_check_identities(&lab);
    lab_close(&lab);
}

Test(framework, free_space_by_walking)
{
    struct lab lab = lab_open();
    lab_segment(&lab, 0x10000000, 20 * MIB);
    lab_segment(&lab, 0x10000000 + 20 * MIB, 20 * MIB); /* side by side, never joined */
    lab_segment(&lab, 0x40000000, 2 * MIB);
    lab_block(&lab, 0x10000000, 5 * MIB);
    lab_block(&lab, 0x10000000 + 5 * MIB, 5 * MIB);
    lab_block(&lab, 0x10000000 + 20 * MIB, 8 * MIB);
    lab_block_free(&lab, 0x10000000, 5 * MIB);
    struct vs_layout space = lab_free_space(&lab);
    cr_assert(space.known);
    cr_assert_eq(space.free_bytes, 29 * MIB);
    cr_assert_eq(space.free_bytes, (uint64_t)lab_bands(&lab).cached);
    cr_assert_eq(space.largest_free_bytes, 12 * MIB);
    cr_assert_eq(space.releasable_bytes, 2 * MIB);
    lab_close(&lab);
}
