/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of several threads, which come in the order they were recorded in: what
 * measurements taken meanwhile may and may not be made of.
 */
#include "replay_lab.h"

enum { FIRST = 7, SECOND = 8 };
#define MS 1000000ULL

/* An event of `thread` at a time of its own. */
static uint64_t put(struct lab *lab, uint32_t thread, uint64_t time_ns, struct vs_event event)
{
    lab->thread = thread;
    lab->time_ns = time_ns - 10; /* lab_put adds it */
    return lab_put(lab, event);
}

static void sample(struct lab *lab, uint32_t thread, uint64_t time_ns, uint64_t used,
                   uint32_t duration_ns)
{
    put(lab, thread, time_ns,
        (struct vs_event){.kind = VS_KIND_SAMPLE,
                          .size = 16 * GIB,
                          .duration_ns = duration_ns,
                          .free_bytes = 16 * GIB - used});
}

static struct vs_event alloc(uint64_t address, uint64_t size, uint64_t used, uint32_t duration_ns)
{
    return (struct vs_event){.kind = VS_KIND_ALLOC,
                             .module = PROGRAM,
                             .address = address,
                             .size = size,
                             .duration_ns = duration_ns,
                             .flags = VS_EVENT_FREE_SAMPLED,
                             .free_bytes = 16 * GIB - used};
}

static struct vs_event intent(uint64_t address)
{
    return (struct vs_event){
        .kind = VS_KIND_FREE, .address = address, .flags = VS_EVENT_INTENT, .module = PROGRAM};
}

static struct lab with_context(void)
{
    struct lab lab = lab_open();
    lab_device(&lab)->others_known = true;
    put(&lab, FIRST, MS,
        (struct vs_event){.kind = VS_KIND_CONTEXT_RETAIN,
                          .context = 0x77,
                          .flags = VS_EVENT_FREE_SAMPLED,
                          .free_bytes = 16 * GIB - 300 * MIB});
    return lab;
}

/* The first thread measures, the second allocates, measures and tells; then the first tells. */
Test(threads, the_measurement_that_began_last_counts)
{
    struct lab lab = with_context();
    put(&lab, SECOND, 3 * MS, alloc(0x20000000, 8 * MIB, 308 * MIB, 100));
    sample(&lab, FIRST, 2 * MS, 300 * MIB, 1000);
    struct vs_bands bands = lab_bands(&lab);
    cr_assert_eq(bands.device, (int64_t)(308 * MIB));
    cr_assert_eq(bands.unexplained, 0);
    lab_check_identities(&lab);
    lab_close(&lab);
}

/* The program's own question is stamped when it returned: it began before. */
Test(threads, a_question_began_before_its_time)
{
    struct lab lab = with_context();
    put(&lab, SECOND, 3 * MS, alloc(0x20000000, 8 * MIB, 308 * MIB, 100));
    put(&lab, FIRST, 4 * MS,
        (struct vs_event){.kind = VS_KIND_MEM_INFO,
                          .size = 16 * GIB,
                          .duration_ns = 2 * MS,
                          .flags = VS_EVENT_FREE_SAMPLED,
                          .free_bytes = 16 * GIB - 300 * MIB});
    cr_assert_eq(lab_bands(&lab).device, (int64_t)(308 * MIB));
    lab_close(&lab);
}

/* A free is told, another thread measures before it has happened, then it happens. */
Test(threads, nothing_is_concluded_while_a_free_is_under_way)
{
    struct lab lab = with_context();
    put(&lab, FIRST, 2 * MS, alloc(0x20000000, MIB, 302 * MIB, 100));
    put(&lab, SECOND, 3 * MS, intent(0x20000000));
    put(&lab, FIRST, 4 * MS, alloc(0x40000000, 2 * MIB, 304 * MIB, 100));
    sample(&lab, SECOND, 5 * MS, 302 * MIB, 1000);
    struct vs_bands bands = lab_bands(&lab);
    cr_assert_eq(bands.unexplained, 0);
    cr_assert_eq(bands.rounding, 0);
    cr_assert_eq(bands.direct, (int64_t)(2 * MIB));
    lab_check_identities(&lab);
    lab_close(&lab);
}

/* An allocation is only told when it returns: what was made of it meanwhile is taken back. */
Test(threads, a_conclusion_is_taken_back)
{
    struct lab lab = with_context();
    put(&lab, FIRST, 2 * MS, alloc(0x20000000, 2 * MIB, 302 * MIB, 100));
    /* The second thread's 2 MiB are there, and not told yet. */
    put(&lab, FIRST, 4 * MS, alloc(0x40000000, 2 * MIB, 306 * MIB, 100));
    cr_assert_eq(lab_bands(&lab).rounding, (int64_t)(2 * MIB), "as if the device rounded more");
    put(&lab, SECOND, 5 * MS, alloc(0x60000000, 2 * MIB, 306 * MIB, 2 * MS));
    struct vs_bands bands = lab_bands(&lab);
    cr_assert_eq(bands.rounding, 0);
    cr_assert_eq(bands.unexplained, 0);
    cr_assert_eq(bands.direct, (int64_t)(6 * MIB));
    lab_check_identities(&lab);
    lab_close(&lab);
}

Test(threads, a_module_is_not_another_threads_allocation)
{
    struct lab lab = with_context();
    put(&lab, FIRST, 4 * MS,
        (struct vs_event){.kind = VS_KIND_MODULE_LOAD,
                          .handle = 1,
                          .duration_ns = MS,
                          .flags = VS_EVENT_FREE_SAMPLED,
                          .free_bytes = 16 * GIB - 314 * MIB});
    put(&lab, SECOND, 5 * MS, alloc(0x60000000, 4 * MIB, 314 * MIB, 2 * MS));
    struct vs_bands bands = lab_bands(&lab);
    cr_assert_eq(bands.implicit[VS_IMPLICIT_MODULES], (int64_t)(10 * MIB));
    cr_assert_eq(bands.unexplained, 0);
    cr_assert_eq(bands.implicit_uncertainty, (int64_t)(2 * MIB), "what rounding there may be");
    lab_close(&lab);
}

/* A thread's own calls do not overlap, however coarse the times kept. */
Test(threads, coarse_times_take_nothing_back)
{
    struct lab lab = with_context();
    put(&lab, FIRST, 2 * MS,
        (struct vs_event){.kind = VS_KIND_MODULE_LOAD,
                          .handle = 1,
                          .duration_ns = 500,
                          .flags = VS_EVENT_FREE_SAMPLED,
                          .free_bytes = 16 * GIB - 310 * MIB});
    put(&lab, FIRST, 2 * MS,
        (struct vs_event){.kind = VS_KIND_GRAPH_INSTANTIATE,
                          .handle = 1,
                          .duration_ns = 500,
                          .flags = VS_EVENT_FREE_SAMPLED,
                          .free_bytes = 16 * GIB - 316 * MIB});
    struct vs_bands bands = lab_bands(&lab);
    cr_assert_eq(bands.implicit[VS_IMPLICIT_MODULES], (int64_t)(10 * MIB));
    cr_assert_eq(bands.implicit[VS_IMPLICIT_GRAPHS], (int64_t)(6 * MIB));
    lab_close(&lab);
}

/* A free whose end nobody measured does not keep the device from ever being quiet. */
Test(threads, a_free_is_over_at_some_time)
{
    struct lab lab = with_context();
    put(&lab, FIRST, 2 * MS, alloc(0x20000000, 2 * MIB, 302 * MIB, 100));
    put(&lab, SECOND, 3 * MS, intent(0x20000000));
    put(&lab, FIRST, 500 * MS,
        (struct vs_event){.kind = VS_KIND_MODULE_LOAD,
                          .handle = 1,
                          .flags = VS_EVENT_FREE_SAMPLED,
                          .free_bytes = 16 * GIB - 310 * MIB});
    cr_assert_eq(lab_bands(&lab).implicit[VS_IMPLICIT_MODULES], (int64_t)(10 * MIB));
    lab_close(&lab);
}

/* ---- a device in the making: every interleaving of what threads do and tell --------------- */

enum { THREADS = 4, SLOTS = 4, STEPS = 4000 };

struct worker {
    enum { IDLE, CALLING, CALLED, MEASURED } at;
    bool is_free;
    unsigned slot;
    uint64_t began_ns, ended_ns, read_ns, seen_used;
    uint64_t sizes[SLOTS];
};

struct device {
    struct lab lab;
    struct worker workers[THREADS];
    uint64_t used, now_ns, random;
};

static unsigned pick(struct device *device, unsigned below)
{
    device->random = device->random * 6364136223846793005U + 1442695040888963407U;
    return (unsigned)(device->random >> 40) % below;
}

static uint64_t address_of(unsigned worker, unsigned slot)
{
    return 0x100000000ULL * (worker + 1) + 0x1000000ULL * slot;
}

static void begin_call(struct device *device, unsigned index)
{
    struct worker *worker = &device->workers[index];
    worker->slot = pick(device, SLOTS);
    worker->is_free = worker->sizes[worker->slot] != 0;
    worker->began_ns = device->now_ns;
    worker->at = CALLING;
    if (worker->is_free)
        put(&device->lab, index + 1, device->now_ns, intent(address_of(index, worker->slot)));
}

static void tell(struct device *device, unsigned index)
{
    struct worker *worker = &device->workers[index];
    uint64_t size = worker->sizes[worker->slot];
    worker->at = IDLE;
    if (worker->is_free) {
        worker->sizes[worker->slot] = 0;
        sample(&device->lab, index + 1, worker->ended_ns, worker->seen_used,
               (uint32_t)(worker->read_ns - worker->ended_ns));
    } else {
        put(&device->lab, index + 1, worker->ended_ns,
            alloc(address_of(index, worker->slot), size, worker->seen_used,
                  (uint32_t)(worker->ended_ns - worker->began_ns)));
    }
}

/* One of the things a thread does next: begin, carry out, measure, tell. */
static void step(struct device *device, unsigned index)
{
    struct worker *worker = &device->workers[index];
    device->now_ns += 1000;
    switch (worker->at) {
    case IDLE:
        begin_call(device, index);
        break;
    case CALLING:
        if (!worker->is_free)
            worker->sizes[worker->slot] = (1 + pick(device, 4)) * 2 * MIB;
        device->used = worker->is_free ? device->used - worker->sizes[worker->slot]
                                       : device->used + worker->sizes[worker->slot];
        worker->at = CALLED;
        worker->ended_ns = device->now_ns;
        break;
    case CALLED:
        worker->seen_used = device->used;
        worker->read_ns = device->now_ns;
        worker->at = MEASURED;
        break;
    case MEASURED:
        tell(device, index);
        break;
    }
}

Test(threads, everything_is_explained_at_every_barrier)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct device device = {
            .lab = with_context(), .used = 300 * MIB, .now_ns = 10 * MS, .random = seed};
        for (unsigned i = 0; i < STEPS; i++) {
            step(&device, pick(&device, THREADS));
            if (i % 100 != 0)
                continue;
            for (unsigned index = 0; index < THREADS; index++)
                while (device.workers[index].at != IDLE)
                    step(&device, index);
            struct vs_bands bands = lab_bands(&device.lab);
            cr_assert_eq(bands.device, (int64_t)device.used, "seed %d step %u", (int)seed, i);
            cr_assert_eq(bands.unexplained, 0, "seed %d step %u: %lld", (int)seed, i,
                         (long long)bands.unexplained);
            cr_assert_eq(bands.rounding, 0, "seed %d step %u", (int)seed, i);
            lab_check_identities(&device.lab);
        }
        lab_close(&device.lab);
    }
}

/* ---- pools ------------------------------------------------------------------------------------
 */

static void pool_alloc(struct lab *lab, uint32_t thread, uint64_t time_ns, uint64_t address,
                       uint64_t size, uint64_t reserved, uint64_t used)
{
    put(lab, thread, time_ns,
        (struct vs_event){.kind = VS_KIND_POOL_ALLOC,
                          .module = PROGRAM,
                          .address = address,
                          .size = size,
                          .pool = 0x99,
                          .extra = {reserved, used}});
}

Test(threads, a_pools_figures_that_were_asked_for_last_count)
{
    struct lab lab = with_context();
    /* Both got their memory; the second asked after the first, and told before it. */
    pool_alloc(&lab, SECOND, 4 * MS, 0x20000000, 2 * MIB, 64 * MIB, 34 * MIB);
    pool_alloc(&lab, FIRST, 3 * MS, 0x40000000, 32 * MIB, 32 * MIB, 32 * MIB);
    cr_assert_eq(lab_device(&lab)->own_pool_reserved, (int64_t)(64 * MIB));
    cr_assert_eq(lab_device(&lab)->own_pool_used, (int64_t)(34 * MIB));
    lab_check_identities(&lab);
    lab_close(&lab);
}

static void pool_alloc_measured(struct lab *lab, uint64_t time_ns, uint64_t address, uint64_t size,
                                uint64_t reserved, uint64_t pool_used, uint64_t used)
{
    put(lab, FIRST, time_ns,
        (struct vs_event){.kind = VS_KIND_POOL_ALLOC,
                          .module = PROGRAM,
                          .address = address,
                          .size = size,
                          .pool = 0x99,
                          .extra = {reserved, pool_used},
                          .flags = VS_EVENT_FREE_SAMPLED,
                          .free_bytes = 16 * GIB - used});
}

static void pool_free(struct lab *lab, uint64_t time_ns, uint64_t address)
{
    put(lab, FIRST, time_ns,
        (struct vs_event){.kind = VS_KIND_POOL_FREE,
                          .module = PROGRAM,
                          .address = address,
                          .flags = VS_EVENT_INTENT});
}

/* A pool with 6 MiB that it may give back at any time, beside 4 small blocks in pages of 2 MiB. */
static struct lab with_spare_reserve(void)
{
    struct lab lab = with_context();
    for (unsigned i = 0; i < 4; i++)
        put(&lab, FIRST, (2 + i) * MS,
            alloc(0x20000000 + i * 2 * MIB, MIB / 2, (302 + 2 * (uint64_t)i) * MIB, 100));
    pool_alloc_measured(&lab, 10 * MS, 0x40000000, 6 * MIB, 6 * MIB, 6 * MIB, 314 * MIB);
    pool_alloc_measured(&lab, 11 * MS, 0x50000000, 2 * MIB, 8 * MIB, 8 * MIB, 316 * MIB);
    pool_free(&lab, 12 * MS, 0x40000000);
    cr_assert_eq(lab_bands(&lab).unexplained, 0);
    return lab;
}

/* Given back unseen, and grown to the same figure: what was measured in between was the pool's. */
Test(threads, a_pools_reserve_that_went_and_came_back)
{
    struct lab lab = with_spare_reserve();
    put(&lab, SECOND, 20 * MS, intent(0x20000000));
    sample(&lab, SECOND, 21 * MS, 312 * MIB, 100); /* 4 MiB of the pool, and no page */
    cr_assert_eq(lab_bands(&lab).unexplained, 0);
    pool_alloc_measured(&lab, 30 * MS, 0x40000000, 6 * MIB, 8 * MIB, 8 * MIB, 316 * MIB);
    cr_assert_eq(lab_bands(&lab).unexplained, 0);
    lab_check_identities(&lab);
    lab_close(&lab);
}

/* What the pool gave back and a new page balance: it is found when the pool grows again. */
Test(threads, a_pools_reserve_and_a_page_that_balanced)
{
    struct lab lab = with_spare_reserve();
    put(&lab, SECOND, 20 * MS, alloc(0x28000000, MIB / 2, 316 * MIB, 100));
    cr_assert_eq(lab_bands(&lab).unexplained, 0);
    pool_alloc_measured(&lab, 30 * MS, 0x40000000, 6 * MIB, 8 * MIB, 8 * MIB, 318 * MIB);
    cr_assert_eq(lab_bands(&lab).unexplained, 0);
    lab_check_identities(&lab);
    lab_close(&lab);
}

/* Nobody moved direct memory: a difference is not the device's rounding. */
Test(threads, a_pool_alone_does_not_explain_what_others_took)
{
    struct lab lab = with_spare_reserve();
    pool_alloc_measured(&lab, 30 * MS, 0x40000000, 6 * MIB, 8 * MIB, 8 * MIB, 320 * MIB);
    cr_assert_eq(lab_bands(&lab).unexplained, (int64_t)(4 * MIB));
    lab_close(&lab);
}
