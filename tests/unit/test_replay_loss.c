/* SPDX-License-Identifier: Apache-2.0 */
/* Totals after events were lost: exact, though whose memory it was is not known. */
#include "replay_lab.h"

static void loss(struct lab *lab, uint16_t kind, uint64_t events, uint64_t bytes)
{
    lab_put(lab, (struct vs_event){
                     .kind = VS_KIND_LOSS, .label = kind, .size = bytes, .extra = {events, 0}});
}

/* After the first loss, frees say how much they free. */
static void sized_free(struct lab *lab, uint64_t address, uint64_t size)
{
    lab_put(lab,
            (struct vs_event){
                .kind = VS_KIND_FREE, .address = address, .size = size, .flags = VS_EVENT_INTENT});
}

static int64_t driver_live(const struct lab *lab)
{
    return lab_device(lab)->layers[VS_LAYER_DRIVER].live_bytes;
}

Test(loss, a_lost_free_ends_at_nothing)
{
    struct lab lab = lab_open();
    lab_alloc(&lab, PROGRAM, 0x10000000, 3 * MIB);
    lab_alloc(&lab, PROGRAM, 0x20000000, 5000);
    loss(&lab, VS_KIND_FREE, 2, 3 * MIB + 5000);
    cr_assert_eq(lab_bands(&lab).direct, 0);
    cr_assert_eq(driver_live(&lab), 0);
    lab_check_identities(&lab);
    lab_close(&lab);
}

Test(loss, a_lost_allocation_counts)
{
    struct lab lab = lab_open();
    lab_alloc(&lab, PROGRAM, 0x10000000, 4 * MIB);
    loss(&lab, VS_KIND_ALLOC, 1, 6 * MIB);
    cr_assert_eq(lab_bands(&lab).direct, (int64_t)(10 * MIB));
    cr_assert_eq(lab_bands(&lab).lost, (int64_t)(6 * MIB));
    sized_free(&lab, 0x90000000, 6 * MIB);
    cr_assert_eq(lab_bands(&lab).direct, (int64_t)(4 * MIB));
    sized_free(&lab, 0x10000000, 4 * MIB);
    cr_assert_eq(lab_bands(&lab).direct, 0);
    cr_assert_eq(driver_live(&lab), 0);
    lab_check_identities(&lab);
    lab_close(&lab);
}

/* The free of 0x10000000 was lost; the address comes back before the LOSS record does. */
Test(loss, an_address_that_comes_back_is_not_freed_twice)
{
    struct lab lab = lab_open();
    lab_alloc(&lab, PROGRAM, 0x10000000, 4 * MIB);
    lab_alloc(&lab, PROGRAM, 0x10000000, 8 * MIB);
    loss(&lab, VS_KIND_FREE, 1, 4 * MIB);
    cr_assert_eq(lab_bands(&lab).direct, (int64_t)(8 * MIB));
    cr_assert_eq(driver_live(&lab), (int64_t)(8 * MIB));
    sized_free(&lab, 0x10000000, 8 * MIB);
    cr_assert_eq(lab_bands(&lab).direct, 0);
    lab_close(&lab);
}

Test(loss, a_free_of_lost_memory_that_fails)
{
    struct lab lab = lab_open();
    loss(&lab, VS_KIND_ALLOC, 1, 6 * MIB);
    sized_free(&lab, 0x90000000, 6 * MIB);
    lab_undo(&lab, lab.sequence - 2, 1);
    cr_assert_eq(lab_bands(&lab).direct, (int64_t)(6 * MIB));
    cr_assert_eq(lab.state->counts.frees_unknown, 0);
    lab_close(&lab);
}

/* A framework's segments among the lost: its own total says how much of it is its. */
Test(loss, segments_are_not_direct_memory)
{
    struct lab lab = lab_open();
    lab_segment(&lab, 0x100000000, 20 * MIB);
    lab_block(&lab, 0x100000000, MIB);
    lab.reserved += 40 * MIB;
    loss(&lab, VS_KIND_ALLOC, 2, 40 * MIB + 6 * MIB);
    lab_block(&lab, 0x100000000 + MIB, MIB);
    struct vs_bands bands = lab_bands(&lab);
    cr_assert_eq(bands.reserved, (int64_t)(60 * MIB));
    cr_assert_eq(bands.backed, (int64_t)(60 * MIB));
    cr_assert_eq(bands.direct, (int64_t)(6 * MIB));
    lab.reserved -= 20 * MIB;
    loss(&lab, VS_KIND_FREE, 1, 20 * MIB);
    lab_block(&lab, 0x100000000 + 2 * MIB, MIB);
    bands = lab_bands(&lab);
    cr_assert_eq(bands.reserved, (int64_t)(40 * MIB));
    cr_assert_eq(bands.backed, (int64_t)(40 * MIB));
    cr_assert_eq(bands.direct, (int64_t)(6 * MIB));
    lab_check_identities(&lab);
    lab_close(&lab);
}

Test(loss, any_loss_of_a_storm_adds_up)
{
    enum { SLOTS = 200, STEPS = 20000 };
    static uint64_t sizes[SLOTS];
    static const uint16_t kinds[] = {VS_KIND_ALLOC, VS_KIND_FREE};
    struct lab lab = lab_open();
    struct vs_sites sites = {0};
    vs_sites_start(&sites, lab.state);
    uint64_t random = 99, live = 0, lost_bytes[2] = {0}, lost_count[2] = {0};
    memset(sizes, 0, sizeof(sizes));
    lab_alloc(&lab, PROGRAM, 0x1000, 512);
    loss(&lab, VS_KIND_FREE, 1, 512); /* the first loss: from here on frees have sizes */
    for (int i = 0; i < STEPS; i++) {
        random = random * 6364136223846793005U + 1442695040888963407U;
        unsigned slot = (unsigned)(random >> 33) % SLOTS;
        uint64_t address = 0x100000000ULL + slot * 0x10000000ULL;
        bool is_free = sizes[slot] != 0, is_lost = (random >> 55) % 3 == 0;
        uint64_t size = is_free ? sizes[slot] : 512 * (1 + (random >> 40) % 8000);
        if (is_lost) {
            lost_bytes[is_free] += size;
            lost_count[is_free]++;
        } else if (is_free) {
            sized_free(&lab, address, size);
        } else {
            lab_alloc(&lab, PROGRAM, address, size);
        }
        sizes[slot] = is_free ? 0 : size;
        live += is_free ? -size : size;
        if (i % 500 != 499)
            continue;
        for (int which = 0; which < 2; which++) {
            loss(&lab, kinds[which], lost_count[which], lost_bytes[which]);
            lost_bytes[which] = lost_count[which] = 0;
        }
        struct vs_bands bands = lab_bands(&lab);
        cr_assert_eq(bands.direct - bands.rounding, (int64_t)live, "step %d", i);
        cr_assert_eq(driver_live(&lab), (int64_t)live);
        lab_check_identities(&lab);
    }
    cr_assert_eq(vs_sites_finish(&sites, lab.state), 0);
    vs_sites_release(&sites);
    lab_close(&lab);
}

/* ---- what only a measurement can place ------------------------------------------------------ */

static void measured(struct lab *lab, uint64_t used)
{
    lab_put(lab, (struct vs_event){.kind = VS_KIND_SAMPLE,
                                   .size = 16 * GIB,
                                   .free_bytes = 16 * GIB - used,
                                   .flags = VS_EVENT_FREE_SAMPLED});
}

static void unplaced_loss(struct lab *lab, uint16_t kind, uint64_t events, uint64_t bytes)
{
    lab_put(lab, (struct vs_event){.kind = VS_KIND_LOSS,
                                   .label = kind,
                                   .size = bytes,
                                   .extra = {events, 0},
                                   .device = VS_DEVICE_UNKNOWN});
}

static void physical(struct lab *lab, uint64_t handle, uint64_t size)
{
    lab_put(lab, (struct vs_event){.kind = VS_KIND_PHYS_CREATE,
                                   .module = PROGRAM,
                                   .handle = handle,
                                   .size = size,
                                   .extra = {1, 0}});
}

Test(loss, physical_memory_is_found_by_measuring)
{
    struct lab lab = lab_open();
    measured(&lab, 300 * MIB);
    physical(&lab, 1, 8 * MIB);
    measured(&lab, 308 * MIB);
    measured(&lab, 348 * MIB); /* 40 MiB were made unseen: told only later */
    cr_assert_eq(lab_bands(&lab).unexplained, (int64_t)(40 * MIB));
    loss(&lab, VS_KIND_PHYS_CREATE, 2, 40 * MIB);
    cr_assert_eq(lab_bands(&lab).unexplained, 0);
    cr_assert_eq(lab_bands(&lab).lost, (int64_t)(40 * MIB));
    cr_assert_eq(driver_live(&lab), (int64_t)(48 * MIB));
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_PHYS_RELEASE, .handle = 77});
    measured(&lab, 316 * MIB);
    cr_assert_eq(lab_bands(&lab).unexplained, 0);
    cr_assert_eq(lab_bands(&lab).direct, (int64_t)(16 * MIB));
    unplaced_loss(&lab, VS_KIND_PHYS_RELEASE, 2, 0);
    measured(&lab, 300 * MIB);
    cr_assert_eq(lab_bands(&lab).unexplained, 0);
    cr_assert_eq(lab_bands(&lab).direct, 0);
    cr_assert_eq(driver_live(&lab), 0);
    lab_check_identities(&lab);
    lab_close(&lab);
}

/* Lost events explain no more than they can have done. */
Test(loss, the_rest_stays_unexplained)
{
    struct lab lab = lab_open();
    measured(&lab, 300 * MIB);
    loss(&lab, VS_KIND_ARRAY_CREATE, 1, 6 * MIB);
    measured(&lab, 400 * MIB);
    cr_assert_eq(lab_bands(&lab).direct, (int64_t)(8 * MIB)); /* and a page of rounding */
    cr_assert_eq(lab_bands(&lab).unexplained, (int64_t)(92 * MIB));
    measured(&lab, 200 * MIB);
    cr_assert_eq(lab_bands(&lab).direct, 0);
    cr_assert_eq(lab_bands(&lab).unexplained, -(int64_t)(100 * MIB));
    lab_check_identities(&lab);
    lab_close(&lab);
}

static void host(struct lab *lab, uint8_t kind, uint64_t address, uint64_t size)
{
    bool frees = kind == VS_KIND_HOST_FREE;
    lab_put(lab, (struct vs_event){.kind = kind,
                                   .module = PROGRAM,
                                   .address = address,
                                   .size = size,
                                   .flags = frees ? VS_EVENT_INTENT : 0});
}

Test(loss, pinned_host_memory_adds_up)
{
    struct lab lab = lab_open();
    host(&lab, VS_KIND_HOST_ALLOC, 0x7000, 4 * MIB);
    host(&lab, VS_KIND_HOST_ALLOC, 0x7000, 8 * MIB); /* a free was lost */
    loss(&lab, VS_KIND_HOST_ALLOC, 3, 12 * MIB);
    loss(&lab, VS_KIND_HOST_FREE, 1, 4 * MIB);
    cr_assert_eq(lab_bands(&lab).host_pinned, (int64_t)(20 * MIB));
    host(&lab, VS_KIND_HOST_FREE, 0x9000, 6 * MIB); /* of a lost allocation */
    cr_assert_eq(lab_bands(&lab).host_pinned_requested, (int64_t)(14 * MIB));
    lab_undo(&lab, lab.sequence - 2, 1);
    cr_assert_eq(lab_bands(&lab).host_pinned_requested, (int64_t)(20 * MIB));
    host(&lab, VS_KIND_HOST_FREE, 0x7000, 8 * MIB);
    loss(&lab, VS_KIND_HOST_FREE, 3, 12 * MIB);
    cr_assert_eq(lab_bands(&lab).host_pinned, 0);
    cr_assert_eq(lab_device(&lab)->layers[VS_LAYER_HOST].live_bytes, 0);
    lab_close(&lab);
}
