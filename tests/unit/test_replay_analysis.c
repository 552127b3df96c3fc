/* SPDX-License-Identifier: Apache-2.0 */
/* The analyses over events by hand: sites and peaks, out of memory, failures, objects, phases. */
#include "replay/format_size.h"
#include "replay_lab.h"

/* ---- sites and peaks ---------------------------------------------------------------- */

/* 100 B that stay and 20 B that come and go: the table explains all of the peak. */
Test(sites, sum_up_to_the_peak)
{
    struct lab lab = lab_open();
    struct vs_sites sites = {0};
    struct vs_peaks peaks = {{0}};
    vs_sites_start(&sites, lab.state);
    vs_peaks_start(&peaks, lab.state);
    lab_alloc(&lab, PROGRAM, 0x1000, 100);
    for (int step = 0; step < 5; step++) {
        lab_alloc(&lab, NCCL, 0x2000, 20);
        lab_free(&lab, 0x2000);
    }
    cr_assert_eq(vs_sites_finish(&sites, lab.state), 0);
    cr_assert_eq(lab_device(&lab)->layers[VS_LAYER_DRIVER].peak_bytes, 120);
    int64_t sum = 0;
    for (size_t i = 0; i < sites.count; i++)
        sum += sites.stats[i].peak_bytes;
    cr_assert_eq(sum, 120);
    cr_assert_eq(sites.stats[0].peak_bytes, 100);
    cr_assert_eq(sites.stats[1].peak_bytes, 20);
    cr_assert_eq(sites.stats[1].allocs, 5);
    cr_assert_eq(sites.stats[1].frees, 5);
    cr_assert_eq(sites.stats[1].bytes, 100);
    cr_assert_eq(sites.stats[1].live_bytes, 0);
    cr_assert_not_null(vs_peaks_allocated(&peaks, lab_device(&lab)));
    vs_sites_release(&sites);
    vs_peaks_release(&peaks);
    lab_close(&lab);
}

Test(sites, memory_of_before_recording_is_a_site)
{
    struct lab lab = lab_open();
    struct vs_sites sites = {0};
    vs_sites_start(&sites, lab.state);
    lab.allocated = 100;
    lab.reserved = 2 * MIB;
    lab_block(&lab, 0x5000, 20);
    lab_block_free(&lab, 0x5000, 20);
    cr_assert_eq(vs_sites_finish(&sites, lab.state), 0);
    cr_assert_eq(lab_device(&lab)->layers[VS_LAYER_FRAMEWORK].peak_bytes, 120);
    int64_t named = 0, before = 0;
    for (size_t i = 0; i < sites.count; i++)
        *(lab.state->sites[i].kind == VS_SITE_BEFORE_RECORDING ? &before : &named) +=
            sites.stats[i].peak_bytes;
    cr_assert_eq(named, 20);
    cr_assert_eq(before, 100);
    vs_sites_release(&sites);
    lab_close(&lab);
}

Test(sites, every_layer_has_a_peak_of_its_own)
{
    struct lab lab = lab_open();
    struct vs_sites sites = {0};
    vs_sites_start(&sites, lab.state);
    uint32_t seed = 4242;
    for (uint64_t i = 0; i < 20000; i++) {
        seed = seed * 1664525 + 1013904223;
        uint64_t address = 0x1000 * (1 + (seed >> 8) % 300);
        if (vs_allocations_get(&lab.state->allocations, address) != NULL)
            lab_free(&lab, address);
        else
            lab_alloc(&lab, 1 + (seed >> 20) % 4, address, 1 + (seed >> 12) % 5000);
    }
    cr_assert_eq(vs_sites_finish(&sites, lab.state), 0);
    int64_t peak = 0, live = 0;
    for (size_t i = 0; i < sites.count; i++) {
        peak += sites.stats[i].peak_bytes;
        live += sites.stats[i].live_bytes;
    }
    cr_assert_eq(peak, lab_device(&lab)->layers[VS_LAYER_DRIVER].peak_bytes);
    cr_assert_eq(live, lab_device(&lab)->layers[VS_LAYER_DRIVER].live_bytes);
    vs_sites_release(&sites);
    lab_close(&lab);
}

/* ---- out of memory --------------------------------------------------------------------- */

static void refuse(struct lab *lab, uint8_t kind, uint32_t module, uint64_t size,
                   uint64_t free_bytes)
{
    lab_put(lab, (struct vs_event){.kind = kind,
                                   .module = module,
                                   .size = size,
                                   .result = 2,
                                   .free_bytes = free_bytes,
                                   .flags = VS_EVENT_FREE_SAMPLED});
}

static void give_up(struct lab *lab, uint64_t size)
{
    lab_put(lab, (struct vs_event){.kind = VS_KIND_FW_OOM,
                                   .module = TORCH,
                                   .size = size,
                                   .extra = {lab->allocated, lab->reserved}});
}

/* A device of 16 GiB on which the framework holds 2 × 4 GiB and blocks leave holes. */
static struct lab fragmented_device(struct vs_ooms *ooms)
{
    struct lab lab = lab_open();
    lab_device(&lab)->others_known = true;
    vs_ooms_start(ooms, lab.state);
    lab_sample(&lab, 15 * GIB);
    lab_segment(&lab, 0x100000000, 4 * GIB);
    lab_segment(&lab, 0x300000000, 4 * GIB);
    lab_block(&lab, 0x100000000 + 2 * GIB, GIB);
    lab_block(&lab, 0x300000000 + 2 * GIB, GIB);
    return lab;
}

Test(ooms, a_give_up_holds_its_attempts)
{
    struct vs_ooms ooms = {0};
    struct lab lab = fragmented_device(&ooms);
    refuse(&lab, VS_KIND_ALLOC, TORCH, 8 * GIB, 7 * GIB);
    refuse(&lab, VS_KIND_ALLOC, TORCH, 8 * GIB, 7 * GIB);
    give_up(&lab, 3 * GIB);
    cr_assert_eq(vs_ooms_finish(&ooms, false), 0);
    cr_assert_eq(ooms.count, 1);
    const struct vs_oom *oom = &ooms.items[0];
    cr_assert_eq(oom->layer, VS_LAYER_FRAMEWORK);
    cr_assert_eq(oom->attempt_count, 2);
    cr_assert_eq(oom->attempts[1].bytes, 8 * GIB);
    cr_assert_eq(oom->requested, 3 * GIB);
    cr_assert_not(oom->handled);
    cr_assert_eq(oom->class, VS_OOM_FRAGMENTED, "%s", oom->why);
    cr_assert_eq(oom->largest_free, 2 * GIB);
    cr_assert_eq(oom->cached, (int64_t)(6 * GIB));
    cr_assert_eq(oom->free_bytes, 7 * GIB);
    cr_assert_not_null(strstr(oom->why, "2.00 GiB"), "%s", oom->why);
    vs_ooms_release(&ooms);
    lab_close(&lab);
}

Test(ooms, a_retry_that_succeeds_is_handled)
{
    struct vs_ooms ooms = {0};
    struct lab lab = fragmented_device(&ooms);
    refuse(&lab, VS_KIND_ALLOC, TORCH, 8 * GIB, 7 * GIB);
    lab_segment(&lab, 0x600000000, 5 * GIB);
    lab_block(&lab, 0x600000000, 5 * GIB);
    cr_assert_eq(vs_ooms_finish(&ooms, false), 0);
    cr_assert_eq(ooms.count, 1);
    cr_assert(ooms.items[0].handled);
    cr_assert(ooms.items[0].repaired);
    cr_assert_eq(ooms.items[0].requested, 5 * GIB);
    vs_ooms_release(&ooms);
    lab_close(&lab);
}

Test(ooms, the_program_went_on)
{
    struct vs_ooms ooms = {0};
    struct lab lab = fragmented_device(&ooms);
    give_up(&lab, 3 * GIB);
    lab_block_free(&lab, 0x100000000 + 2 * GIB, GIB);
    cr_assert_eq(ooms.open_count, 1, "frees are what an ending program does too");
    lab_block(&lab, 0x100000000, MIB);
    give_up(&lab, 3 * GIB);
    cr_assert_eq(vs_ooms_finish(&ooms, false), 0);
    cr_assert_eq(ooms.count, 2);
    cr_assert(ooms.items[0].handled);
    cr_assert_not(ooms.items[1].handled);
    vs_ooms_release(&ooms);
    lab_close(&lab);
}

Test(ooms, a_good_end_means_handled)
{
    struct vs_ooms ooms = {0};
    struct lab lab = fragmented_device(&ooms);
    give_up(&lab, 3 * GIB);
    cr_assert_eq(vs_ooms_finish(&ooms, true), 0);
    cr_assert(ooms.items[0].handled);
    vs_ooms_release(&ooms);
    lab_close(&lab);
}

struct class_case {
    const char *name;
    uint8_t kind;
    uint32_t module;
    uint64_t size, free_bytes, others;
    enum vs_oom_class expected;
};

Test(ooms, classes_that_the_trace_shows)
{
    /* The framework holds 8 GiB, 6 of them cached in pieces of 2; NCCL 1 GiB. */
    static const struct class_case cases[] = {
        {"larger than the device", VS_KIND_FW_OOM, TORCH, 20 * GIB, 6 * GIB, 0,
         VS_OOM_REQUEST_EXCEEDS_DEVICE},
        {"would fit if the cache were one", VS_KIND_FW_OOM, TORCH, 5 * GIB, GIB, 0,
         VS_OOM_FRAGMENTED},
        {"a library beside the cache", VS_KIND_ALLOC, NCCL, 3 * GIB, GIB, 0, VS_OOM_HELD_BY_CACHE},
        {"would fit if the cache and the device's rest were one", VS_KIND_FW_OOM, TORCH, 10 * GIB,
         6 * GIB, 0, VS_OOM_FRAGMENTED},
        {"in use", VS_KIND_FW_OOM, TORCH, 13 * GIB + 512 * MIB, 6 * GIB, 0, VS_OOM_FULL},
        {"somebody else", VS_KIND_FW_OOM, TORCH, 7 * GIB, 0, 8 * GIB, VS_OOM_OTHER_PROCESS},
        {"addresses only", VS_KIND_RESERVE, NCCL, 64 * GIB, 6 * GIB, 0, VS_OOM_ADDRESS_SPACE},
        {"multicast", VS_KIND_MULTICAST_BIND, NCCL, GIB, 6 * GIB, 0, VS_OOM_MULTICAST},
        {"host", VS_KIND_HOST_ALLOC, PROGRAM, 64 * GIB, 6 * GIB, 0, VS_OOM_HOST_MEMORY},
        {"the device had room", VS_KIND_PHYS_CREATE, NCCL, 7 * GIB, 7 * GIB, 0, VS_OOM_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct vs_ooms ooms = {0};
        struct lab lab = fragmented_device(&ooms);
        lab_alloc(&lab, NCCL, 0x700000000, GIB);
        if (cases[i].others != 0)
            lab_put(&lab, (struct vs_event){
                              .kind = VS_KIND_OTHER_PROCESS, .handle = 9, .size = cases[i].others});
        lab_put(&lab, (struct vs_event){.kind = cases[i].kind,
                                        .module = cases[i].module,
                                        .size = cases[i].size,
                                        .extra = {1, 0},
                                        .result = cases[i].kind == VS_KIND_FW_OOM ? 0 : 2,
                                        .free_bytes = cases[i].free_bytes,
                                        .flags = VS_EVENT_FREE_SAMPLED});
        cr_assert_eq(vs_ooms_finish(&ooms, false), 0);
        cr_assert_eq(ooms.count, 1, "%s", cases[i].name);
        cr_assert_eq(ooms.items[0].class, cases[i].expected, "%s: %s (%s)", cases[i].name,
                     vs_oom_class_name(ooms.items[0].class), ooms.items[0].why);
        vs_ooms_release(&ooms);
        lab_close(&lab);
    }
}

/* A segment of 8 GiB with one block left in it, cut for stream 5; the device has 6 GiB free. */
static struct vs_oom refused_beside(uint64_t block, struct vs_event event, bool attempted)
{
    struct vs_ooms ooms = {0};
    struct lab lab = lab_open();
    vs_ooms_start(&ooms, lab.state);
    lab_sample(&lab, 14 * GIB);
    lab_segment(&lab, 0x100000000, 8 * GIB);
    lab.allocated += block;
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_FW_ALLOC,
                                    .module = TORCH,
                                    .address = 0x100000000,
                                    .size = block,
                                    .stream = 5,
                                    .extra = {lab.allocated, lab.reserved}});
    if (attempted)
        refuse(&lab, VS_KIND_ALLOC, TORCH, event.size, 6 * GIB);
    event.kind = VS_KIND_FW_OOM;
    event.module = TORCH;
    event.free_bytes = 6 * GIB;
    event.flags = VS_EVENT_FREE_SAMPLED;
    event.extra[0] = lab.allocated;
    event.extra[1] = lab.reserved;
    lab_put(&lab, event);
    cr_assert_eq(vs_ooms_finish(&ooms, false), 0);
    cr_assert_eq(ooms.count, 1);
    struct vs_oom oom = ooms.items[0];
    vs_ooms_release(&ooms);
    lab_close(&lab);
    return oom;
}

Test(ooms, a_hole_of_another_stream)
{
    struct vs_event asked = {.size = 7 * GIB, .stream = 6, .handle = 1};
    struct vs_oom oom = refused_beside(512 * MIB, asked, true);
    cr_assert_eq(oom.class, VS_OOM_OTHER_STREAM, "%s", oom.why);
    cr_assert_not_null(strstr(oom.why, "on stream 0x6; a free block of 7.50 GiB"), "%s", oom.why);
    cr_assert_not_null(strstr(oom.why, "for stream 0x5"), "%s", oom.why);
    asked.stream = 5;
    oom = refused_beside(512 * MIB, asked, true);
    cr_assert_eq(oom.class, VS_OOM_UNKNOWN, "its own stream: %s", oom.why);
    asked = (struct vs_event){.size = 7 * GIB};
    oom = refused_beside(512 * MIB, asked, true);
    cr_assert_eq(oom.class, VS_OOM_UNKNOWN, "which stream asked is not known: %s", oom.why);
}

/* Half of a segment waits for a side stream, or did until its event completed. */
static struct vs_oom refused_while_waiting(uint64_t size, bool completed)
{
    struct vs_ooms ooms = {0};
    struct lab lab = lab_open();
    vs_ooms_start(&ooms, lab.state);
    lab_sample(&lab, 8 * GIB);
    lab_segment(&lab, 0x100000000, 8 * GIB);
    lab_block(&lab, 0x100000000, 4 * GIB);
    lab_block(&lab, 0x200000000, 3 * GIB);
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_EVENT_RECORD, .module = TORCH, .handle = 9});
    lab_block_free(&lab, 0x200000000, 3 * GIB);
    if (completed)
        lab_put(&lab, (struct vs_event){.kind = VS_KIND_EVENT_QUERY, .module = TORCH, .handle = 9});
    refuse(&lab, VS_KIND_ALLOC, TORCH, size, GIB);
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_FW_OOM,
                                    .module = TORCH,
                                    .size = size,
                                    .extra = {lab.allocated, lab.reserved}});
    cr_assert_eq(vs_ooms_finish(&ooms, false), 0);
    cr_assert_eq(ooms.count, 1);
    struct vs_oom oom = ooms.items[0];
    vs_ooms_release(&ooms);
    lab_close(&lab);
    return oom;
}

Test(ooms, freed_blocks_that_wait_were_missing)
{
    struct vs_oom oom = refused_while_waiting(4 * GIB, false);
    cr_assert_eq(oom.class, VS_OOM_WAITING_STREAMS, "%s", oom.why);
    cr_assert_not_null(strstr(oom.why, "3.00 GiB of freed blocks"), "%s", oom.why);
    cr_assert_eq(oom.waiting, 3 * GIB);
    cr_assert(oom.retry_known && !oom.retry_fits);
    oom = refused_while_waiting(5 * GIB, false);
    cr_assert_neq(oom.class, VS_OOM_WAITING_STREAMS, "would not have fitted: %s", oom.why);
    oom = refused_while_waiting(4 * GIB, true);
    cr_assert_neq(oom.class, VS_OOM_WAITING_STREAMS, "nothing waits: %s", oom.why);
    cr_assert(oom.retry_known && oom.retry_fits, "its block is free");
}

/* Only of a thread that had a request refused, and only a call that asks for nothing. */
Test(ooms, an_error_handed_on)
{
    static const struct {
        uint8_t kind;
        bool same_thread, follows;
    } cases[] = {{VS_KIND_EVENT_RECORD, true, true},
                 {VS_KIND_EVENT_RECORD, false, false},
                 {VS_KIND_GRAPH_LAUNCH, true, false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct vs_ooms ooms = {0};
        struct lab lab = lab_open();
        vs_ooms_start(&ooms, lab.state);
        refuse(&lab, VS_KIND_ALLOC, PROGRAM, 20 * GIB, GIB);
        lab.thread += !cases[i].same_thread;
        lab_put(&lab, (struct vs_event){.kind = cases[i].kind, .handle = 9, .result = 2});
        cr_assert_eq(vs_ooms_finish(&ooms, false), 0);
        cr_assert_eq(ooms.count, 2);
        cr_assert_eq(ooms.items[1].class == VS_OOM_FOLLOW_UP, cases[i].follows, "%zu: %s", i,
                     ooms.items[1].why);
        vs_ooms_release(&ooms);
        lab_close(&lab);
    }
}

Test(ooms, few_live_bytes_keep_a_segment)
{
    struct vs_event asked = {.size = 9 * GIB};
    struct vs_oom oom = refused_beside(GIB, asked, true);
    cr_assert_eq(oom.class, VS_OOM_PINNED_SEGMENT, "%s", oom.why);
    cr_assert_not_null(strstr(oom.why, "1.00 GiB in 1 live block of a segment of 8.00 GiB"), "%s",
                       oom.why);
    oom = refused_beside(GIB + MIB, asked, true);
    cr_assert_neq(oom.class, VS_OOM_PINNED_SEGMENT, "more than an eighth: %s", oom.why);
    asked.size = 15 * GIB;
    oom = refused_beside(GIB, asked, true);
    cr_assert_neq(oom.class, VS_OOM_PINNED_SEGMENT, "all of it would not do: %s", oom.why);
}

Test(ooms, the_frameworks_own_limit)
{
    struct vs_event asked = {.size = 6 * GIB};
    struct vs_oom oom = refused_beside(4 * GIB, asked, false);
    cr_assert_eq(oom.class, VS_OOM_LIMIT, "%s", oom.why);
    cr_assert_not_null(strstr(oom.why, "6.00 GiB were free"), "%s", oom.why);
    oom = refused_beside(4 * GIB, asked, true);
    cr_assert_neq(oom.class, VS_OOM_LIMIT, "the driver refused: %s", oom.why);
    asked.size = 6 * GIB + 1;
    oom = refused_beside(4 * GIB, asked, false);
    cr_assert_neq(oom.class, VS_OOM_LIMIT, "the device had no room either: %s", oom.why);
}

Test(ooms, memory_outside_of_the_framework)
{
    struct vs_ooms ooms = {0};
    struct lab lab = lab_open();
    vs_ooms_start(&ooms, lab.state);
    lab_device(&lab)->others_known = true;
    lab_sample(&lab, 15 * GIB);
    lab_segment(&lab, 0x100000000, 4 * GIB);
    lab_block(&lab, 0x100000000, 4 * GIB);
    lab_alloc(&lab, NCCL, 0x300000000, 10 * GIB);
    refuse(&lab, VS_KIND_ALLOC, TORCH, 3 * GIB, GIB);
    give_up(&lab, 3 * GIB);
    cr_assert_eq(vs_ooms_finish(&ooms, false), 0);
    cr_assert_eq(ooms.items[0].class, VS_OOM_OUTSIDE, "%s", ooms.items[0].why);
    cr_assert_not_null(strstr(ooms.items[0].why, "10.0 GiB"), "%s", ooms.items[0].why);
    vs_ooms_release(&ooms);
    lab_close(&lab);
}

Test(ooms, a_pools_user_asks_for_less)
{
    struct vs_ooms ooms = {0};
    struct lab lab = lab_open();
    vs_ooms_start(&ooms, lab.state);
    lab_sample(&lab, 15 * GIB);
    refuse(&lab, VS_KIND_POOL_ALLOC, TORCH, 20 * GIB, 15 * GIB);
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_POOL_ALLOC,
                                    .module = TORCH,
                                    .address = 0x1000000,
                                    .size = MIB,
                                    .extra = {32 * MIB, MIB}});
    cr_assert_eq(vs_ooms_finish(&ooms, false), 0);
    cr_assert_eq(ooms.count, 1);
    cr_assert_not(ooms.items[0].repaired);
    cr_assert(ooms.items[0].handled);
    cr_assert_eq(ooms.items[0].class, VS_OOM_REQUEST_EXCEEDS_DEVICE);
    vs_ooms_release(&ooms);
    lab_close(&lab);
}

/* A window ends here: what comes after it adds no entry, but says what became of these. */
Test(ooms, what_follows_a_window_tells_the_outcome)
{
    struct vs_ooms ooms = {0};
    struct lab lab = fragmented_device(&ooms);
    give_up(&lab, 3 * GIB);
    struct vs_sequenced_event later = {.sequence = lab.sequence, .thread = lab.thread};
    later.event = (struct vs_event){.kind = VS_KIND_FW_OOM, .size = GIB, .result = 2};
    vs_ooms_outcome(&ooms, &later);
    cr_assert_eq(ooms.count, 1, "a failure of its own is none of the window's");
    cr_assert_not(ooms.items[0].handled);
    uint64_t window_end = lab.state->now_ns;
    later.event = (struct vs_event){
        .kind = VS_KIND_FW_ALLOC, .address = 0x1000, .size = 1, .time_ns = lab.time_ns + 10};
    vs_ooms_outcome(&ooms, &later);
    cr_assert(ooms.items[0].handled);
    cr_assert_eq(lab.state->now_ns, window_end, "the state stays as it was");
    vs_ooms_release(&ooms);
    lab_close(&lab);
}

Test(ooms, a_give_up_behind_a_window_closes_its_attempts)
{
    struct vs_ooms ooms = {0};
    struct lab lab = fragmented_device(&ooms);
    refuse(&lab, VS_KIND_ALLOC, TORCH, 8 * GIB, 7 * GIB);
    struct vs_sequenced_event later = {.sequence = lab.sequence, .thread = lab.thread};
    later.event = (struct vs_event){.kind = VS_KIND_FW_OOM,
                                    .module = TORCH,
                                    .size = 3 * GIB,
                                    .result = 2,
                                    .free_bytes = VS_FREE_UNKNOWN};
    vs_ooms_outcome(&ooms, &later);
    cr_assert_eq(vs_ooms_finish(&ooms, false), 0);
    cr_assert_eq(ooms.count, 1);
    cr_assert_eq(ooms.items[0].requested, 3 * GIB);
    cr_assert_eq(ooms.items[0].attempt_count, 1);
    vs_ooms_release(&ooms);
    lab_close(&lab);
}

/* A mapping is of the device its memory is of, and takes page tables only. */
Test(ooms, a_mapping_takes_page_tables)
{
    static const struct {
        uint64_t free_bytes;
        enum vs_oom_class class;
    } cases[] = {{MIB, VS_OOM_FULL}, {2 * MIB, VS_OOM_UNKNOWN}, {4 * GIB, VS_OOM_UNKNOWN}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lab lab = lab_open();
        struct vs_ooms ooms = {0};
        vs_ooms_start(&ooms, lab.state);
        lab_create(&lab, PROGRAM, 0x51, 64 * MIB);
        lab_sample(&lab, cases[i].free_bytes);
        lab_put(&lab, (struct vs_event){.kind = VS_KIND_MAP,
                                        .device = VS_DEVICE_UNKNOWN,
                                        .handle = 0x51,
                                        .size = 64 * MIB,
                                        .result = 2,
                                        .free_bytes = VS_FREE_UNKNOWN});
        cr_assert_eq(vs_ooms_finish(&ooms, true), 0);
        cr_assert_eq(ooms.count, 1);
        cr_expect_eq(ooms.items[0].device, 0);
        cr_expect_eq(ooms.items[0].class, cases[i].class, "%s", ooms.items[0].why);
        cr_expect_not(ooms.items[0].retry_known);
        vs_ooms_release(&ooms);
        lab_close(&lab);
    }
}

/* ---- failures and objects ---------------------------------------------------------------- */

Test(failures, grouped_by_call_and_error)
{
    struct lab lab = lab_open();
    struct vs_failures failures = {0};
    vs_failures_start(&failures, lab.state);
    for (int i = 0; i < 3; i++)
        lab_put(&lab, (struct vs_event){.kind = VS_KIND_MAP, .label = MEM_MAP, .result = 1});
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_MULTICAST_BIND, .result = 801});
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_ALLOC, .result = 2});
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_EVENT_QUERY, .result = 600});
    lab_alloc(&lab, NCCL, 0x10000000, MIB);
    lab_undo(&lab, lab_free(&lab, 0x10000000), 719);
    cr_assert_eq(failures.count, 3);
    cr_assert_eq(failures.items[0].count, 3);
    cr_assert_eq(failures.items[0].label, MEM_MAP);
    cr_assert_eq(failures.items[2].kind, VS_KIND_FREE, "the free that was taken back");
    cr_assert_eq(failures.last, 2);
    for (size_t i = 0; i < failures.count; i++)
        cr_assert_gt(strlen(vs_failure_hint(&failures.items[i])), 10);
    vs_failures_release(&failures);
    lab_close(&lab);
}

Test(failures, what_they_usually_mean)
{
    static const struct {
        struct vs_failure failure;
        const char *says;
    } cases[] = {
        {{.kind = VS_KIND_IPC_GET, .result = 1}, "expandable segments"},
        {{.kind = VS_KIND_MULTICAST_BIND, .result = 1}, "fabric manager"},
        {{.kind = VS_KIND_MULTICAST_CREATE, .result = 801}, "fabric manager"},
        {{.kind = VS_KIND_OTHER_CALL, .result = 802}, "fabric manager"},
        {{.kind = VS_KIND_PHYS_IMPORT, .result = 1}, "pidfd_getfd"},
        {{.kind = VS_KIND_PHYS_IMPORT, .result = 719}, "earlier kernel"},
        {{.kind = VS_KIND_PHYS_EXPORT, .result = 801}, "asked for when it is created"},
        {{.kind = VS_KIND_IPC_OPEN, .result = 208}, "open already"},
        {{.kind = VS_KIND_SET_ACCESS, .result = 1}, "not mapped"},
        {{.kind = VS_KIND_HOST_REGISTER, .result = 801}, "ReadOnly"},
        {{.kind = VS_KIND_HOST_REGISTER, .result = 712}, "pinned already"},
        {{.kind = VS_KIND_HOST_UNREGISTER, .result = 713}, "not pinned"},
        {{.kind = VS_KIND_OTHER_CALL, .result = 217}, "cannot reach"},
        {{.kind = VS_KIND_OTHER_CALL, .result = 704}, "enabled before"},
        {{.kind = VS_KIND_OTHER_CALL, .result = 705}, "not enabled"},
        {{.kind = VS_KIND_OTHER_CALL, .result = 711}, "enabled already"},
        {{.kind = VS_KIND_FREE, .result = 1}, "freed already"},
        {{.kind = VS_KIND_FREE, .result = 801}, "not supported"},
        {{.kind = VS_KIND_FREE, .result = 12345}, "manual"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        cr_expect_not_null(strstr(vs_failure_hint(&cases[i].failure), cases[i].says), "%zu: %s", i,
                           vs_failure_hint(&cases[i].failure));
}

Test(objects, live_created_destroyed)
{
    struct lab lab = lab_open();
    struct vs_objects objects = {0};
    vs_objects_start(&objects, lab.state);
    for (uint64_t i = 1; i <= 5; i++)
        lab_put(&lab, (struct vs_event){.kind = VS_KIND_MODULE_LOAD, .handle = i});
    uint64_t unload = lab_put(
        &lab,
        (struct vs_event){.kind = VS_KIND_MODULE_UNLOAD, .handle = 2, .flags = VS_EVENT_INTENT});
    cr_assert_eq(objects.kinds[VS_OBJECT_MODULE].live.count, 4);
    lab_undo(&lab, unload, 400);
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_MODULE_UNLOAD, .handle = 3});
    uint64_t strange = lab_put(
        &lab,
        (struct vs_event){.kind = VS_KIND_MODULE_UNLOAD, .handle = 77, .flags = VS_EVENT_INTENT});
    lab_undo(&lab, strange, 0); /* removed nothing, brings nothing back */
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_CONTEXT_RETAIN, .context = 0x77});
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_CONTEXT_RETAIN, .context = 0x77});
    cr_assert_eq(objects.kinds[VS_OBJECT_MODULE].live.count, 4);
    cr_assert_eq(objects.kinds[VS_OBJECT_MODULE].created, 5);
    cr_assert_eq(objects.kinds[VS_OBJECT_MODULE].destroyed, 1);
    cr_assert_eq(objects.kinds[VS_OBJECT_CONTEXT].created, 1);
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_CONTEXT_RELEASE});
    cr_assert_eq(objects.kinds[VS_OBJECT_CONTEXT].live.count, 1);
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_CONTEXT_RELEASE});
    cr_assert_eq(objects.kinds[VS_OBJECT_CONTEXT].live.count, 0);
    vs_objects_release(&objects);
    lab_close(&lab);
}

/* Streams, modules and graphs end with their context; a destroy that failed brings them back. */
Test(objects, of_a_context_end_with_it)
{
    struct lab lab = lab_open();
    struct vs_objects objects = {0};
    vs_objects_start(&objects, lab.state);
    for (uint64_t context = 0x77; context <= 0x78; context++) {
        lab_put(&lab, (struct vs_event){.kind = VS_KIND_CONTEXT_CREATE, .context = context});
        for (uint64_t i = 1; i <= 300; i++)
            lab_put(&lab, (struct vs_event){.kind = VS_KIND_STREAM_CREATE,
                                            .stream = context << 16 | i,
                                            .context = context});
        lab_put(&lab, (struct vs_event){
                          .kind = VS_KIND_MODULE_LOAD, .handle = context, .context = context});
    }
    uint64_t end = lab_put(&lab, (struct vs_event){.kind = VS_KIND_CONTEXT_DESTROY,
                                                   .context = 0x77,
                                                   .flags = VS_EVENT_INTENT});
    cr_assert_eq(objects.kinds[VS_OBJECT_STREAM].live.count, 300);
    cr_assert_eq(objects.kinds[VS_OBJECT_STREAM].destroyed, 300);
    cr_assert_eq(objects.kinds[VS_OBJECT_MODULE].live.count, 1);
    cr_assert_eq(objects.kinds[VS_OBJECT_CONTEXT].live.count, 1);
    lab_undo(&lab, end, 709);
    cr_assert_eq(objects.kinds[VS_OBJECT_STREAM].live.count, 600);
    cr_assert_eq(objects.kinds[VS_OBJECT_MODULE].live.count, 2);
    cr_assert_eq(objects.kinds[VS_OBJECT_CONTEXT].live.count, 2);
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_CONTEXT_DESTROY, .context = 0x77});
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_CONTEXT_DESTROY, .context = 0x78});
    cr_assert_eq(objects.kinds[VS_OBJECT_STREAM].live.count, 0);
    cr_assert_eq(objects.kinds[VS_OBJECT_STREAM].destroyed, 600);
    vs_objects_release(&objects);
    lab_close(&lab);
}

/* ---- phases, curves, text ------------------------------------------------------------------- */

Test(phases, entry_peak_and_exit)
{
    struct lab lab = lab_open();
    struct vs_phases phases = {0};
    vs_phases_start(&phases, lab.state);
    lab_alloc(&lab, PROGRAM, 0x1000, 100 * MIB);
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_PHASE_BEGIN, .extra = {OTHER_LABEL, 0}});
    lab_alloc(&lab, PROGRAM, 0x2000, 50 * MIB);
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_PHASE_BEGIN, .extra = {CUDA_MALLOC, 0}});
    lab_alloc(&lab, PROGRAM, 0x3000, 500 * MIB);
    lab_free(&lab, 0x3000);
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_PHASE_END});
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_PHASE_END});
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_PHASE_END});
    vs_phases_finish(&phases, lab.state);
    cr_assert_eq(phases.count, 2);
    cr_assert_eq(phases.items[0].entry.bytes[VS_PHASE_DIRECT], 100 * (int64_t)MIB);
    cr_assert_eq(phases.items[0].peak.bytes[VS_PHASE_DIRECT], 650 * (int64_t)MIB);
    cr_assert_eq(phases.items[0].exit.bytes[VS_PHASE_DIRECT], 150 * (int64_t)MIB);
    cr_assert_eq(phases.items[1].entry.bytes[VS_PHASE_DIRECT], 150 * (int64_t)MIB);
    cr_assert_eq(phases.items[1].exit.bytes[VS_PHASE_DIRECT], 150 * (int64_t)MIB);
    cr_assert_lt(phases.items[1].end_ns, phases.items[0].end_ns);
    vs_phases_release(&phases);
    lab_close(&lab);
}

static void range(struct lab *lab, uint8_t kind, uint64_t nest, uint64_t id)
{
    lab_put(lab, (struct vs_event){.kind = kind, .handle = nest, .extra = {OTHER_LABEL, id}});
}

/* An end is of the same nest, or of the same id; one without a beginning is of none. */
Test(phases, end_by_nest_and_by_id)
{
    struct lab lab = lab_open();
    struct vs_phases phases = {0};
    vs_phases_start(&phases, lab.state);
    lab_alloc(&lab, PROGRAM, 0x1000, 100 * MIB);
    range(&lab, VS_KIND_PHASE_BEGIN, 1, 0);
    range(&lab, VS_KIND_PHASE_BEGIN, 2, 0);
    range(&lab, VS_KIND_PHASE_BEGIN, 1, 7);
    range(&lab, VS_KIND_PHASE_BEGIN, 1, 8);
    range(&lab, VS_KIND_PHASE_END, 3, 0);
    range(&lab, VS_KIND_PHASE_END, 1, 9);
    lab_alloc(&lab, PROGRAM, 0x2000, 10 * MIB);
    range(&lab, VS_KIND_PHASE_END, 1, 0);
    lab_alloc(&lab, PROGRAM, 0x3000, 10 * MIB);
    range(&lab, VS_KIND_PHASE_END, 1, 7);
    lab_alloc(&lab, PROGRAM, 0x4000, 10 * MIB);
    range(&lab, VS_KIND_PHASE_END, 2, 0);
    range(&lab, VS_KIND_PHASE_END, 1, 0);
    vs_phases_finish(&phases, lab.state);
    cr_assert_eq(phases.count, 4);
    static const int64_t mebibytes[] = {110, 130, 120, 130};
    for (size_t i = 0; i < 4; i++) {
        cr_expect_eq(phases.items[i].exit.bytes[VS_PHASE_DIRECT], mebibytes[i] * (int64_t)MIB);
        cr_expect_eq(phases.items[i].ended, i != 3);
    }
    vs_phases_release(&phases);
    lab_close(&lab);
}

/* What begins after the first VS_PHASES_MARKED_KEPT is in a sum. */
Test(phases, late_ones_are_summed_up)
{
    enum { MORE = 10 };
    struct lab lab = lab_open();
    struct vs_phases phases = {0};
    vs_phases_start(&phases, lab.state);
    lab_alloc(&lab, PROGRAM, 0x1000, 100 * MIB);
    for (int i = 0; i < VS_PHASES_MARKED_KEPT + MORE; i++) {
        range(&lab, VS_KIND_PHASE_BEGIN, 1, 0);
        if (i >= VS_PHASES_MARKED_KEPT) {
            lab_alloc(&lab, PROGRAM, 0x2000, 10 * MIB);
            lab_free(&lab, 0x2000);
        }
        range(&lab, VS_KIND_PHASE_END, 1, 0);
    }
    range(&lab, VS_KIND_PHASE_BEGIN, 1, 0);
    vs_phases_finish(&phases, lab.state);
    cr_assert_eq(phases.count, VS_PHASES_MARKED_KEPT);
    cr_assert_eq(phases.omitted, 0);
    cr_assert_eq(phases.sum_count, 1);
    cr_expect_eq(phases.sums[0].count, MORE + 1);
    cr_expect_eq(phases.sums[0].peak, 110 * (int64_t)MIB);
    cr_expect_eq(phases.sums[0].transient, 10 * (int64_t)MIB);
    cr_expect_eq(phases.sums[0].resident, 0);
    vs_phases_release(&phases);
    lab_close(&lab);
}

Test(phases, names_that_differ_in_numbers)
{
    char text[16];
    cr_expect_eq(vs_name_pattern("step 9, of 10"), vs_name_pattern("step 10, of 2"));
    cr_expect_neq(vs_name_pattern("step 9"), vs_name_pattern("step"));
    cr_expect_neq(vs_name_pattern("step 9"), vs_name_pattern("steq 9"));
    vs_name_pattern_text("a12b3", text, sizeof(text));
    cr_expect_str_eq(text, "a#b#");
    vs_name_pattern_text("0123456789abcdefghijklmnop", text, sizeof(text));
    cr_expect_str_eq(text, "#abcdefghijklmn");
}

static void capture(struct lab *lab, uint8_t kind, uint64_t stream, uint64_t handle, uint64_t graph)
{
    lab_put(lab, (struct vs_event){
                     .kind = kind, .stream = stream, .handle = handle, .extra = {graph, 0}});
}

static void expect_phase(const struct vs_phase *phase, enum vs_phase_kind kind, uint64_t entry,
                         uint64_t peak, uint64_t at_exit)
{
    cr_assert_eq(phase->kind, kind);
    cr_assert(phase->ended && phase->framework);
    cr_assert_eq(phase->entry.bytes[VS_PHASE_ALLOCATED], (int64_t)(entry * MIB));
    cr_assert_eq(phase->peak.bytes[VS_PHASE_ALLOCATED], (int64_t)(peak * MIB));
    cr_assert_eq(phase->exit.bytes[VS_PHASE_ALLOCATED], (int64_t)(at_exit * MIB));
}

/* Two captures of which the second is never instantiated; in the first a block comes and goes. */
Test(phases, captures_are_found)
{
    struct lab lab = lab_open();
    struct vs_phases phases = {0};
    vs_phases_start(&phases, lab.state);
    lab_segment(&lab, 0x1000000, 40 * MIB);
    lab_block(&lab, 0x1000000, 8 * MIB);
    lab_block(&lab, 0x1800000, 4 * MIB);
    lab_block_free(&lab, 0x1800000, 4 * MIB);
    capture(&lab, VS_KIND_CAPTURE_BEGIN, 5, 0, 0);
    lab_block(&lab, 0x1800000, 1 * MIB);
    capture(&lab, VS_KIND_CAPTURE_END, 5, 0x77, 0);
    lab_block(&lab, 0x1900000, 2 * MIB);
    lab_block_free(&lab, 0x1900000, 2 * MIB);
    capture(&lab, VS_KIND_GRAPH_INSTANTIATE, 0, 0x88, 0x77);
    capture(&lab, VS_KIND_CAPTURE_BEGIN, 5, 0, 0);
    lab_block(&lab, 0x1900000, 3 * MIB);
    capture(&lab, VS_KIND_CAPTURE_END, 5, 0x77, 0);
    lab_block(&lab, 0x2000000, 6 * MIB);
    capture(&lab, VS_KIND_GRAPH_DESTROY, 0, 0x77, 0);
    vs_phases_finish(&phases, lab.state);
    cr_assert_eq(phases.count, 4);
    expect_phase(&phases.items[0], VS_PHASE_BEFORE_CAPTURE, 0, 12, 8);
    expect_phase(&phases.items[1], VS_PHASE_CAPTURE, 8, 11, 9);
    expect_phase(&phases.items[2], VS_PHASE_CAPTURE, 9, 12, 12);
    expect_phase(&phases.items[3], VS_PHASE_AFTER_CAPTURE, 12, 18, 18);
    cr_assert_eq(phases.items[1].name, 1);
    cr_assert_eq(phases.items[2].name, 2);
    vs_phases_release(&phases);
    lab_close(&lab);
}

Test(timeline, keeps_the_highest_of_each_stretch)
{
    struct lab lab = lab_open();
    struct vs_timeline *timeline = calloc(1, sizeof(*timeline));
    vs_timeline_start(timeline, lab.state, NULL, NULL);
    lab_alloc(&lab, PROGRAM, 0x1000, 1000);
    for (int i = 0; i < 200; i++) {
        lab.time_ns += 1000000;
        lab_alloc(&lab, PROGRAM, 0x2000, (uint64_t)(i == 77 ? 5000 : 10));
        lab_free(&lab, 0x2000);
    }
    vs_timeline_finish(timeline, lab.state);
    const struct vs_curve *curve = timeline->curves[128];
    int64_t most = 0, least = INT64_MAX;
    cr_assert_gt(curve->filled, VS_CURVE_BUCKETS / 2);
    for (size_t i = 0; i < curve->filled; i++) {
        most = curve->allocated[i] > most ? curve->allocated[i] : most;
        least = curve->allocated[i] < least ? curve->allocated[i] : least;
    }
    cr_assert_eq(most, 6000);
    cr_assert_eq(least, 1000, "what is held between two events is held in every stretch");
    vs_timeline_release(timeline);
    free(timeline);
    lab_close(&lab);
}

Test(text, sizes_and_times)
{
    cr_assert_str_eq(vs_format_size(0).text, "0 B");
    cr_assert_str_eq(vs_format_size(1023).text, "1023 B");
    cr_assert_str_eq(vs_format_size(1536).text, "1.50 KiB");
    cr_assert_str_eq(vs_format_size(-3 * (int64_t)MIB).text, "-3.00 MiB");
    cr_assert_str_eq(vs_format_size((int64_t)(24 * GIB)).text, "24.0 GiB");
    cr_assert_str_eq(vs_format_size(INT64_MAX).text, "8.00 EiB");
    cr_assert_str_eq(vs_format_time(999).text, "999 ns");
    cr_assert_str_eq(vs_format_time(1500000).text, "1.50 ms");
    cr_assert_str_eq(vs_format_time(7500000000000ULL).text, "2 h 05 min");
}
