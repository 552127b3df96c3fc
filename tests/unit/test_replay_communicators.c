/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's communicators in the fold: which there are, and which memory is known to be whose. */
#include "replay_lab.h"

enum { OTHER_THREAD = 9 };
#define RANK_UNKNOWN UINT64_MAX

static uint64_t begin(struct lab *lab)
{
    return lab_put(lab, (struct vs_event){.kind = VS_KIND_COMM_BEGIN, .size = 4, .extra = {1, 0}});
}

static void end(struct lab *lab, uint64_t begun, uint64_t handle)
{
    lab_put(lab,
            (struct vs_event){
                .kind = VS_KIND_COMM_CREATE, .handle = handle, .size = 4, .extra = {begun, 1}});
}

static void make(struct lab *lab, uint64_t handle)
{
    end(lab, begin(lab), handle);
}

static uint64_t destroy(struct lab *lab, uint64_t handle)
{
    return lab_put(lab, (struct vs_event){.kind = VS_KIND_COMM_DESTROY,
                                          .handle = handle,
                                          .flags = VS_EVENT_INTENT});
}

static const struct vs_communicator *by_handle(const struct lab *lab, uint64_t handle)
{
    for (size_t i = 0; i < lab->state->communicator_count; i++)
        if (lab->state->communicators[i].handle == handle)
            return &lab->state->communicators[i];
    cr_assert_fail("no communicator has that handle");
    return NULL;
}

static int64_t unsplit(const struct lab *lab)
{
    int64_t known, all;
    vs_state_communicator_bytes(lab->state, &known, &all);
    return all - known;
}

Test(communicators, memory_taken_while_one_is_made_on_the_thread_is_its_own)
{
    struct lab lab = lab_open();
    make(&lab, 0xa);
    uint64_t begun = begin(&lab);
    lab_alloc(&lab, NCCL, 0x100000, 3 * MIB);
    lab_alloc(&lab, PROGRAM, 0x900000, 5 * MIB);
    lab.thread = OTHER_THREAD;
    lab_alloc(&lab, NCCL, 0x500000, MIB);
    lab.thread = 7;
    end(&lab, begun, 0xb);
    lab_alloc(&lab, NCCL, 0x700000, 2 * MIB);
    cr_expect_eq(by_handle(&lab, 0xb)->bytes, 3 * (int64_t)MIB);
    cr_expect_eq(by_handle(&lab, 0xa)->bytes, 0);
    cr_expect_eq(unsplit(&lab), 3 * (int64_t)MIB);
    lab_free(&lab, 0x100000);
    cr_expect_eq(by_handle(&lab, 0xb)->bytes, 0);
    lab_close(&lab);
}

Test(communicators, of_the_only_one_is_all_that_nccl_takes)
{
    struct lab lab = lab_open();
    uint64_t begun = begin(&lab);
    lab.thread = OTHER_THREAD;
    lab_alloc(&lab, NCCL, 0x100000, MIB);
    lab.thread = 7;
    end(&lab, begun, 0xa);
    lab_alloc(&lab, NCCL, 0x300000, MIB);
    cr_expect_eq(by_handle(&lab, 0xa)->bytes, 2 * (int64_t)MIB);
    destroy(&lab, 0xa);
    lab_alloc(&lab, NCCL, 0x500000, MIB);
    cr_expect_eq(unsplit(&lab), (int64_t)MIB, "it was gone");
    lab_close(&lab);
}

Test(communicators, what_two_that_are_made_at_once_take_is_not_split)
{
    struct lab lab = lab_open();
    uint64_t first = begin(&lab), second = begin(&lab);
    lab_alloc(&lab, NCCL, 0x100000, MIB);
    end(&lab, first, 0xa);
    end(&lab, second, 0xb);
    cr_expect_eq(unsplit(&lab), (int64_t)MIB);
    lab_close(&lab);
}

Test(communicators, physical_memory_counts_until_the_last_mapping_is_gone)
{
    struct lab lab = lab_open();
    make(&lab, 0xa);
    lab_range(&lab, VS_KIND_RESERVE, NCCL, 0x40000000, 2 * MIB, 0);
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_PHYS_CREATE,
                                    .module = NCCL,
                                    .handle = 77,
                                    .size = 2 * MIB,
                                    .extra = {1, 0}});
    lab_range(&lab, VS_KIND_MAP, NCCL, 0x40000000, 2 * MIB, 77);
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_PHYS_RELEASE, .handle = 77});
    cr_expect_eq(by_handle(&lab, 0xa)->bytes, 2 * (int64_t)MIB);
    lab_range(&lab, VS_KIND_UNMAP, NCCL, 0x40000000, 2 * MIB, 0);
    cr_expect_eq(by_handle(&lab, 0xa)->bytes, 0);
    lab_close(&lab);
}

Test(communicators, one_whose_end_failed_is_there_again)
{
    struct lab lab = lab_open();
    struct vs_objects objects = {0};
    cr_assert_eq(vs_objects_start(&objects, lab.state), 0);
    make(&lab, 0xa);
    lab_undo(&lab, destroy(&lab, 0xa), VS_NCCL_RESULTS + 5);
    cr_expect_eq(by_handle(&lab, 0xa)->phase, VS_COMMUNICATOR_LIVE);
    cr_expect_eq(objects.kinds[VS_OBJECT_COMMUNICATOR].live.count, 1);
    destroy(&lab, 0xa);
    cr_expect_eq(objects.kinds[VS_OBJECT_COMMUNICATOR].live.count, 0);
    cr_expect_eq(objects.kinds[VS_OBJECT_COMMUNICATOR].destroyed, 1);
    vs_objects_release(&objects);
    lab_close(&lab);
}

Test(communicators, one_that_was_refused_was_never_there)
{
    struct lab lab = lab_open();
    struct vs_objects objects = {0};
    cr_assert_eq(vs_objects_start(&objects, lab.state), 0);
    uint64_t begun = begin(&lab);
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_COMM_CREATE,
                                    .extra = {begun, RANK_UNKNOWN},
                                    .result = VS_NCCL_RESULTS + 2});
    cr_expect_eq(objects.kinds[VS_OBJECT_COMMUNICATOR].created, 0);
    lab_alloc(&lab, NCCL, 0x100000, MIB);
    cr_expect_eq(unsplit(&lab), (int64_t)MIB);
    vs_objects_release(&objects);
    lab_close(&lab);
}

Test(communicators, an_end_by_a_handle_nobody_knows_ends_one_of_unknown_handle)
{
    struct lab lab = lab_open();
    struct vs_objects objects = {0};
    cr_assert_eq(vs_objects_start(&objects, lab.state), 0);
    make(&lab, 0);
    make(&lab, 0);
    make(&lab, 0xa);
    cr_expect_eq(objects.kinds[VS_OBJECT_COMMUNICATOR].live.count, 3);
    destroy(&lab, 0xb);
    cr_expect_eq(objects.kinds[VS_OBJECT_COMMUNICATOR].live.count, 2);
    destroy(&lab, 0xc);
    destroy(&lab, 0xd);
    cr_expect_eq(objects.kinds[VS_OBJECT_COMMUNICATOR].live.count, 1);
    vs_objects_release(&objects);
    lab_close(&lab);
}

Test(communicators, the_table_holds_those_that_live)
{
    struct lab lab = lab_open();
    for (unsigned i = 0; i < 1000; i++) {
        make(&lab, 0xa0 + i);
        destroy(&lab, 0xa0 + i);
    }
    cr_expect_leq(lab.state->communicator_count, 2);
    lab_close(&lab);
}

Test(communicators, after_a_loss_the_only_one_may_not_be)
{
    struct lab lab = lab_open();
    make(&lab, 0xa);
    lab_put(&lab,
            (struct vs_event){.kind = VS_KIND_LOSS, .label = VS_KIND_COMM_BEGIN, .extra = {1, 0}});
    lab_alloc(&lab, NCCL, 0x100000, MIB);
    cr_expect_eq(by_handle(&lab, 0xa)->bytes, 0);
    lab_close(&lab);
}
