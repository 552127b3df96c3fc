/* SPDX-License-Identifier: Apache-2.0 */
/* Refused requests that a framework repairs by itself, and what that costs. */
#include "replay_lab.h"

/* A device of 16 GiB on which the framework holds 4 GiB with a hole, and 2 GiB free as a whole. */
static struct lab full_device(struct vs_ooms *ooms)
{
    struct lab lab = lab_open();
    lab_device(&lab)->others_known = true;
    vs_ooms_start(ooms, lab.state);
    lab_sample(&lab, 12 * GIB);
    lab_segment(&lab, 0x100000000, 4 * GIB);
    lab_block(&lab, 0x100000000 + 2 * GIB, GIB);
    lab_segment(&lab, 0x500000000, 2 * GIB);
    return lab;
}

static void refuse(struct lab *lab, uint32_t duration_ns)
{
    lab_put(lab, (struct vs_event){.kind = VS_KIND_ALLOC,
                                   .module = TORCH,
                                   .size = 5 * GIB,
                                   .result = 2,
                                   .duration_ns = duration_ns});
}

/* Returns when the call began. */
static uint64_t meet(struct lab *lab, uint32_t duration_ns)
{
    lab->reserved += 5 * GIB;
    lab_put(lab, (struct vs_event){.kind = VS_KIND_ALLOC,
                                   .module = TORCH,
                                   .address = 0x600000000,
                                   .size = 5 * GIB,
                                   .duration_ns = duration_ns});
    return lab->time_ns - duration_ns;
}

static void give_back(struct lab *lab)
{
    lab_free(lab, 0x500000000);
    lab->reserved -= 2 * GIB;
}

/* Another thread takes memory and gives it back meanwhile, on a device of its own. */
static void work_elsewhere(struct lab *lab)
{
    uint32_t thread = lab->thread++;
    lab_put(lab, (struct vs_event){.kind = VS_KIND_ALLOC,
                                   .module = TORCH,
                                   .device = 1,
                                   .address = 0x900000000,
                                   .size = GIB});
    lab_free(lab, 0x900000000);
    lab->thread = thread;
}

Test(repairs, have_their_cost)
{
    struct vs_ooms ooms = {0};
    struct lab lab = full_device(&ooms);
    refuse(&lab, 4);
    uint64_t began_ns = lab.time_ns - 4;
    give_back(&lab);
    work_elsewhere(&lab);
    lab_create(&lab, TORCH, 9, 2 * MIB); /* a part is met: what counts is the whole */
    refuse(&lab, 3);
    uint64_t met_ns = meet(&lab, 7);
    lab_block(&lab, 0x600000000, 5 * GIB);
    cr_assert_eq(vs_ooms_finish(&ooms, false), 0);
    cr_assert_eq(ooms.count, 1);
    const struct vs_oom *oom = &ooms.items[0];
    cr_assert(oom->repaired);
    cr_assert_eq(oom->given_back, (int64_t)(2 * GIB));
    cr_assert_eq(oom->lost_ns, met_ns - began_ns);
    cr_assert_eq(oom->class, VS_OOM_FRAGMENTED);
    cr_assert_not_null(strstr(oom->why, "after 2.00 GiB of the cache"), "%s", oom->why);
    cr_assert_eq(ooms.repairs.count, 1);
    cr_assert_eq(ooms.repairs.lost_ns, oom->lost_ns);
    cr_assert_eq(ooms.repairs.given_back, (int64_t)(2 * GIB));
    vs_ooms_release(&ooms);
    lab_close(&lab);
}

/* What the cache gave back after a window is not in the state. */
Test(repairs, after_a_window_give_back_what_is_not_known)
{
    struct vs_ooms ooms = {0};
    struct lab lab = full_device(&ooms);
    refuse(&lab, 4);
    struct vs_sequenced_event later = {.sequence = lab.sequence, .thread = lab.thread};
    later.event = (struct vs_event){.kind = VS_KIND_FW_ALLOC,
                                    .address = 0x600000000,
                                    .size = 5 * GIB,
                                    .time_ns = lab.time_ns + 10};
    vs_ooms_outcome(&ooms, &later);
    cr_assert_eq(vs_ooms_finish(&ooms, false), 0);
    cr_assert(ooms.items[0].repaired);
    cr_assert_eq(ooms.items[0].given_back, -1);
    cr_assert_eq(ooms.items[0].lost_ns, 14);
    vs_ooms_release(&ooms);
    lab_close(&lab);
}
