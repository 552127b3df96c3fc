/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that fail while NVML has not answered, or beside a pool of the driver's. */
#include "replay_lab.h"

static enum vs_oom_class class_after_answer(uint64_t others)
{
    struct vs_ooms ooms = {0};
    struct lab lab = lab_open();
    vs_ooms_start(&ooms, lab.state);
    lab_sample(&lab, 16 * GIB - 300 * MIB);
    lab_segment(&lab, 0x100000000, 13 * GIB);
    lab_block(&lab, 0x100000000, 13 * GIB);
    lab_sample(&lab, 3 * GIB - 300 * MIB);
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_FW_OOM,
                                    .module = TORCH,
                                    .size = 3 * GIB - 100 * MIB,
                                    .extra = {lab.allocated, lab.reserved}});
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_OTHER_PROCESS, .size = others != 0});
    if (others != 0)
        lab_put(&lab,
                (struct vs_event){.kind = VS_KIND_OTHER_PROCESS, .handle = 9, .size = others});
    cr_assert_eq(vs_ooms_finish(&ooms, true), 0);
    cr_assert_eq(ooms.count, 1);
    enum vs_oom_class class = ooms.items[0].class;
    vs_ooms_release(&ooms);
    lab_close(&lab);
    return class;
}

/* The context and the request are too much, unless a part of the context is somebody else's. */
Test(oom_beside, what_nvml_says_later_decides_whether_it_was_full)
{
    cr_expect_eq(class_after_answer(0), VS_OOM_FULL);
    cr_expect_neq(class_after_answer(250 * MIB), VS_OOM_FULL);
}

/* A pool that is no framework's: 6 GiB reserved, 2 GiB of it used, 4 GiB are wanted beside it. */
static enum vs_oom_class class_beside_pool(uint64_t device_free, bool trimmed)
{
    struct vs_ooms ooms = {0};
    struct lab lab = lab_open();
    lab_device(&lab)->others_known = true;
    vs_ooms_start(&ooms, lab.state);
    lab_sample(&lab, 16 * GIB);
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_POOL_ALLOC,
                                    .module = NCCL,
                                    .address = 0x100000000,
                                    .size = 4 * GIB,
                                    .pool = 7,
                                    .extra = {4 * GIB, 4 * GIB}});
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_POOL_ALLOC,
                                    .module = NCCL,
                                    .address = 0x300000000,
                                    .size = 2 * GIB,
                                    .pool = 7,
                                    .extra = {6 * GIB, 6 * GIB}});
    lab_put(&lab,
            (struct vs_event){
                .kind = VS_KIND_POOL_FREE, .module = NCCL, .address = 0x100000000, .pool = 7});
    if (trimmed)
        lab_put(&lab, (struct vs_event){
                          .kind = VS_KIND_POOL_TRIM, .pool = 7, .extra = {6 * GIB, 2 * GIB}});
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_ALLOC,
                                    .module = NCCL,
                                    .size = 4 * GIB,
                                    .result = 2,
                                    .free_bytes = device_free,
                                    .flags = VS_EVENT_FREE_SAMPLED});
    cr_assert_eq(vs_ooms_finish(&ooms, false), 0);
    cr_assert_eq(ooms.count, 1);
    enum vs_oom_class class = ooms.items[0].class;
    vs_ooms_release(&ooms);
    lab_close(&lab);
    return class;
}

Test(oom_beside, what_a_pool_of_the_driver_keeps)
{
    cr_expect_eq(class_beside_pool(GIB, false), VS_OOM_HELD_BY_CACHE);
    cr_expect_eq(class_beside_pool(0, false), VS_OOM_HELD_BY_CACHE, "exactly what was missing");
    cr_expect_eq(class_beside_pool(GIB, true), VS_OOM_FRAGMENTED, "a trim left it");
    cr_expect_eq(class_beside_pool(4 * GIB, false), VS_OOM_UNKNOWN, "that much was free");
}
