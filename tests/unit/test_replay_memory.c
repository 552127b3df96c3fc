/* SPDX-License-Identifier: Apache-2.0 */
/* Direct, host and pool memory: owners, frees that fail, order, losses. */
#include "replay_lab.h"

Test(memory, owners_by_module)
{
    struct lab lab = lab_open();
    lab_alloc(&lab, NCCL, 0x10000000, 64 * MIB);
    lab_alloc(&lab, PROGRAM, 0x20000000, 3 * MIB);
    struct vs_bands bands = lab_bands(&lab);
    cr_assert_eq(lab_owned(&lab, "libnccl"), (int64_t)(64 * MIB));
    cr_assert_eq(lab_owned(&lab, "train"), (int64_t)(3 * MIB));
    cr_assert_eq(bands.direct, (int64_t)(68 * MIB), "3 MiB take 4 of the device");
    cr_assert_eq(bands.rounding, (int64_t)MIB);
    cr_assert_eq(bands.reserved, 0);
    lab_check_identities(&lab);
    lab_close(&lab);
}

Test(memory, small_allocations_share_a_page)
{
    struct lab lab = lab_open();
    for (uint64_t i = 0; i < 16; i++)
        lab_alloc(&lab, PROGRAM, 0x10000000 + i * 4096, 4096);
    cr_assert_eq(lab_bands(&lab).direct, (int64_t)(2 * MIB));
    for (uint64_t i = 0; i < 16; i++)
        lab_free(&lab, 0x10000000 + i * 4096);
    cr_assert_eq(lab_bands(&lab).direct, 0);
    lab_close(&lab);
}

Test(memory, a_free_that_fails_is_taken_back)
{
    struct lab lab = lab_open();
    lab_alloc(&lab, NCCL, 0x10000000, 8 * MIB);
    uint64_t sequence = lab_free(&lab, 0x10000000);
    cr_assert_eq(lab_bands(&lab).direct, 0);
    lab_undo(&lab, sequence, 700);
    cr_assert_eq(lab_owned(&lab, "libnccl"), (int64_t)(8 * MIB));
    cr_assert_eq(lab.state->counts.undone, 1);
    sequence = lab_free(&lab, 0x99999000);
    cr_assert_eq(lab.state->counts.frees_unknown, 1);
    lab_undo(&lab, sequence, 1);
    cr_assert_eq(lab.state->counts.frees_unknown, 0, "the program's mistake, not ours");
    lab_free(&lab, 0x10000000);
    cr_assert_eq(lab_bands(&lab).direct, 0);
    lab_close(&lab);
}

Test(memory, frees_after_the_driver_shut_down_stay_frees)
{
    struct lab lab = lab_open();
    lab_alloc(&lab, NCCL, 0x10000000, 8 * MIB);
    lab_undo(&lab, lab_free(&lab, 0x10000000), 4);
    cr_assert_eq(lab_bands(&lab).direct, 0);
    cr_assert_eq(lab.state->counts.frees_at_shutdown, 1);
    cr_assert_eq(lab.state->counts.undone, 0);
    lab_close(&lab);
}

/* A runtime free that the driver's own free beneath it tells again. */
Test(memory, a_free_told_twice_is_one)
{
    struct lab lab = lab_open();
    lab_alloc(&lab, NCCL, 0x10000000, 8 * MIB);
    uint64_t outer = lab_put(&lab, (struct vs_event){.kind = VS_KIND_FREE,
                                                     .address = 0x10000000,
                                                     .flags = VS_EVENT_INTENT | VS_EVENT_RUNTIME});
    lab_put(&lab, (struct vs_event){
                      .kind = VS_KIND_POOL_FREE, .address = 0x10000000, .flags = VS_EVENT_INTENT});
    lab_undo(&lab, outer, 0);
    cr_assert_eq(lab_bands(&lab).direct, 0);
    cr_assert_eq(lab.state->counts.frees_unknown, 0);
    cr_assert_eq(lab.state->counts.undone, 0);
    lab_close(&lab);
}

Test(memory, an_exec_that_failed_is_no_fault)
{
    struct lab lab = lab_open();
    uint64_t end = lab_put(
        &lab, (struct vs_event){.kind = VS_KIND_PROCESS_END, .handle = VS_END_EXEC, .device = -1});
    lab_undo(&lab, end, 2);
    cr_assert_eq(lab.state->counts.undo_unmatched, 0);
    lab_close(&lab);
}

Test(memory, an_allocation_on_a_live_address_is_repaired)
{
    struct lab lab = lab_open();
    lab_alloc(&lab, NCCL, 0x10000000, 8 * MIB);
    lab_alloc(&lab, PROGRAM, 0x10000000, 2 * MIB);
    cr_assert_eq(lab.state->counts.alloc_on_live, 1);
    cr_assert_eq(lab_owned(&lab, "libnccl"), 0);
    cr_assert_eq(lab_owned(&lab, "train"), (int64_t)(2 * MIB));
    lab_close(&lab);
}

Test(memory, a_reset_takes_everything)
{
    struct lab lab = lab_open();
    lab_alloc(&lab, NCCL, 0x10000000, 8 * MIB);
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_HOST_ALLOC, .address = 0x7000, .size = 5000});
    cr_assert_eq(lab_bands(&lab).host_pinned, 8192);
    cr_assert_eq(lab_bands(&lab).host_pinned_requested, 5000);
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_CONTEXT_RESET});
    cr_assert_eq(lab_bands(&lab).direct, 0);
    cr_assert_eq(lab_bands(&lab).host_pinned, 0);
    lab_close(&lab);
}

Test(memory, memory_of_another_process_is_counted_there)
{
    struct lab lab = lab_open();
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_IPC_OPEN, .address = 0x30000000});
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_IPC_OPEN, .address = 0x30000000});
    cr_assert_eq(lab_bands(&lab).direct, 0);
    for (int i = 0; i < 2; i++)
        lab_put(&lab, (struct vs_event){.kind = VS_KIND_IPC_CLOSE, .address = 0x30000000});
    cr_assert_eq(lab.state->counts.frees_unknown, 0);
    cr_assert_eq(lab.state->counts.alloc_on_live, 0);
    cr_assert_eq(lab.state->allocations.count, 0);
    lab_close(&lab);
}

Test(memory, a_captured_allocation_is_a_node)
{
    struct lab lab = lab_open();
    struct vs_event event = {.kind = VS_KIND_POOL_ALLOC,
                             .flags = VS_EVENT_CAPTURING,
                             .address = 0x40000000,
                             .size = 4 * MIB};
    lab_put(&lab, event);
    cr_assert_eq(lab_bands(&lab).direct, 0);
    lab_free(&lab, 0x40000000);
    cr_assert_eq(lab.state->counts.frees_unknown, 0, "a graph's memory may be freed outside of it");
    lab_close(&lab);
}

static void pool_event(struct lab *lab, uint8_t kind, uint32_t module, uint64_t address,
                       uint64_t size, uint64_t reserved, uint64_t used)
{
    lab_put(lab, (struct vs_event){.kind = kind,
                                   .module = module,
                                   .address = address,
                                   .size = size,
                                   .pool = 0x500,
                                   .extra = {reserved, used}});
}

Test(pool, a_programs_pool_is_direct_memory)
{
    struct lab lab = lab_open();
    pool_event(&lab, VS_KIND_POOL_ALLOC, PROGRAM, 0x1000000, 3 * MIB, 32 * MIB, 3 * MIB);
    pool_event(&lab, VS_KIND_POOL_ALLOC, PROGRAM, 0x2000000, 5 * MIB, 32 * MIB, 8 * MIB);
    cr_assert_eq(lab_owned(&lab, "train"), (int64_t)(32 * MIB));
    cr_assert_eq(lab_device(&lab)->layers[VS_LAYER_DRIVER].live_bytes, (int64_t)(8 * MIB));
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_POOL_FREE, .address = 0x1000000});
    cr_assert_eq(lab_device(&lab)->own_pool_used, (int64_t)(5 * MIB));
    pool_event(&lab, VS_KIND_POOL_TRIM, PROGRAM, 0, 0, 6 * MIB, 5 * MIB);
    cr_assert_eq(lab_bands(&lab).direct, (int64_t)(6 * MIB));
    lab_check_identities(&lab);
    lab_close(&lab);
}

Test(pool, of_the_framework_is_its_cache)
{
    struct lab lab = lab_open();
    pool_event(&lab, VS_KIND_POOL_ALLOC, TORCH, 0x1000000, 1000, 32 * MIB, 1024);
    pool_event(&lab, VS_KIND_POOL_ALLOC, TORCH, 0x2000000, 512, 32 * MIB, 1536);
    struct vs_bands bands = lab_bands(&lab);
    cr_assert_eq(bands.reserved, (int64_t)(32 * MIB));
    cr_assert_eq(bands.allocated, 1536, "as the driver counts it");
    cr_assert_eq(bands.direct, 0);
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_POOL_FREE, .address = 0x1000000});
    cr_assert_eq(lab_bands(&lab).allocated, 512);
    cr_assert_eq(lab_device(&lab)->layers[VS_LAYER_FRAMEWORK].peak_bytes, 1536);
    lab_check_identities(&lab);
    lab_close(&lab);
}

Test(pool, the_drivers_figure_wins)
{
    struct lab lab = lab_open();
    pool_event(&lab, VS_KIND_POOL_ALLOC, TORCH, 0x1000000, 512, 32 * MIB, 512);
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_POOL_FREE, .address = 0x1000000});
    /* The driver has not reached that free yet. */
    pool_event(&lab, VS_KIND_POOL_ALLOC, TORCH, 0x2000000, 4 * MIB, 32 * MIB, 4 * MIB + 512);
    cr_assert_eq(lab_bands(&lab).allocated, (int64_t)(4 * MIB + 512));
    pool_event(&lab, VS_KIND_POOL_ALLOC, TORCH, 0x3000000, 512, 32 * MIB, 4 * MIB + 512);
    cr_assert_eq(lab_bands(&lab).allocated, (int64_t)(4 * MIB + 512), "now it has");
    lab_close(&lab);
}

Test(memory, losses_excuse_what_does_not_fit)
{
    struct lab lab = lab_open();
    cr_assert_not(vs_state_lossy(lab.state));
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_LOSS,
                                    .handle = VS_LOSS_FULL_DROP,
                                    .label = VS_KIND_ALLOC,
                                    .size = 4 * MIB,
                                    .extra = {3, 0}});
    cr_assert(vs_state_lossy(lab.state));
    cr_assert_eq(lab.state->counts.lost_events, 3);
    cr_assert_eq(lab_device(&lab)->losses, 3);
    lab_close(&lab);
}
