/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lifetimes and churn over imitated programs: each block's end in its class, the
 * temporaries of a peak to the byte, and what comes and goes at the driver, with a
 * healthy twin that is silent.
 */
#include "replay/churn.h"
#include "replay/lifetimes.h"
#include "replay_lab.h"

enum { INPUT = 1, INNER, OUTPUT, KEPT, QUEUED, EMPTY };
enum { STEPS = 20, QUEUE = 3 };

struct program {
    struct lab lab;
    struct vs_sites sites;
    struct vs_objects objects;
    struct vs_growth growth;
    struct vs_lifetimes lifetimes;
    struct vs_churn churn;
    struct vs_places places;
    struct vs_grown_list grown;
    struct vs_lifetimes_found found;
    uint64_t next;
};

struct block {
    uint64_t address, size;
};

static long no_frames(void *self, uint32_t stack, const struct vs_frame **out)
{
    static struct vs_frame frames[16];
    (void)self;
    frames[stack] = (struct vs_frame){
        .kind = VS_FRAME_PYTHON, .function = "f", .file = "/a/b.py", .line = stack, .own = true};
    *out = &frames[stack];
    return 1;
}

static void begin(struct program *program)
{
    *program = (struct program){.lab = lab_open(), .next = 0x10000000};
    struct vs_state *state = program->lab.state;
    cr_assert_eq(vs_sites_start(&program->sites, state), 0);
    cr_assert_eq(vs_objects_start(&program->objects, state), 0);
    cr_assert_eq(vs_growth_start(&program->growth, state, &program->objects), 0);
    cr_assert_eq(vs_lifetimes_start(&program->lifetimes, state, &program->growth), 0);
    cr_assert_eq(vs_churn_start(&program->churn, state, &program->growth), 0);
    lab_segment(&program->lab, program->next, 8 * GIB);
}

static void find(struct program *program)
{
    struct vs_stack_source source = {NULL, no_frames};
    struct vs_state *state = program->lab.state;
    vs_churn_finish(&program->churn);
    cr_assert_eq(vs_sites_finish(&program->sites, state), 0);
    cr_assert_eq(vs_places_create(state, &program->sites, &source, VS_BY_LINE, &program->places),
                 0);
    cr_assert_eq(vs_growth_find(&program->growth, &program->places, &program->grown), 0);
    cr_assert_eq(vs_lifetimes_find(&program->lifetimes, state, &program->sites,
                                   &program->grown.steps, &program->found),
                 0);
}

static void end(struct program *program)
{
    vs_lifetimes_found_release(&program->found);
    vs_grown_release(&program->grown);
    vs_places_release(&program->places);
    vs_churn_release(&program->churn);
    vs_lifetimes_release(&program->lifetimes);
    vs_growth_release(&program->growth);
    vs_objects_release(&program->objects);
    vs_sites_release(&program->sites);
    lab_close(&program->lab);
}

static struct block make(struct program *program, uint32_t line, uint64_t size)
{
    struct block block = {program->next, size};
    program->next += size;
    program->lab.allocated += size;
    lab_put(&program->lab,
            (struct vs_event){.kind = VS_KIND_FW_ALLOC,
                              .module = TORCH,
                              .stack = line,
                              .address = block.address,
                              .size = size,
                              .extra = {program->lab.allocated, program->lab.reserved}});
    return block;
}

static void drop(struct program *program, struct block *block)
{
    if (block->size != 0)
        lab_block_free(&program->lab, block->address, block->size);
    block->size = 0;
}

static void mark_step(struct program *program, uint64_t number)
{
    lab_put(&program->lab, (struct vs_event){.kind = VS_KIND_STEP, .size = number});
}

static const struct vs_site_life *site_of(const struct program *program, uint32_t line)
{
    for (uint32_t id = 1; id <= program->lab.state->site_count; id++)
        if (vs_state_site(program->lab.state, id)->stack == line)
            return &program->found.sites[id - 1];
    cr_assert_fail("no site of line %u", line);
    return NULL;
}

static void expect_life(const struct program *program, uint32_t line, enum vs_life_end life,
                        uint64_t count, int64_t bytes)
{
    const struct vs_life_sums *sums = &site_of(program, line)->sums;
    cr_expect_eq(sums->count[life], count, "line %u, %s: %lu", line, vs_life_name(life),
                 (unsigned long)sums->count[life]);
    cr_expect_eq(sums->bytes[life], bytes, "line %u, %s: %ld", line, vs_life_name(life),
                 (long)sums->bytes[life]);
}

/*
 * One step: an input that lives to its end, a temporary, an output that the next one
 * replaces, a queue of QUEUE, and a block that stays.
 */
static void step(struct program *program, struct block *output, struct block *queue,
                 uint64_t number)
{
    struct block input = make(program, INPUT, 1 * MIB), inner = make(program, INNER, 4 * MIB);
    drop(program, &inner);
    struct block new = make(program, OUTPUT, 2 * MIB);
    drop(program, output);
    *output = new;
    drop(program, &queue[number % QUEUE]);
    queue[number % QUEUE] = make(program, QUEUED, 512);
    make(program, KEPT, 512);
    drop(program, &input);
}

static void run(struct program *program, uint64_t steps, bool marked)
{
    struct block output = {0}, queue[QUEUE] = {{0}};
    for (uint64_t i = 0; i < steps; i++) {
        if (marked)
            mark_step(program, i);
        step(program, &output, queue, i);
    }
}

Test(lifetimes, marked_steps_tell_every_class)
{
    struct program program;
    begin(&program);
    run(&program, STEPS, true);
    find(&program);
    enum { WHOLE = STEPS - 1 }; /* where the last one ends is not known */
    cr_expect_eq(program.found.rule, VS_LIFE_BY_STEP);
    cr_expect_eq(program.found.source, VS_STEPS_MARKED);
    cr_expect_eq(program.found.steps, WHOLE);
    cr_expect_eq(program.found.first_step, 0);
    expect_life(&program, INPUT, VS_LIFE_AT_STEP_END, WHOLE, WHOLE * (int64_t)MIB);
    expect_life(&program, INNER, VS_LIFE_IN_STEP, WHOLE, WHOLE * 4 * (int64_t)MIB);
    expect_life(&program, OUTPUT, VS_LIFE_NEXT_STEP, WHOLE, WHOLE * 2 * (int64_t)MIB);
    expect_life(&program, QUEUED, VS_LIFE_LATER, STEPS - QUEUE, (STEPS - QUEUE) * 512);
    expect_life(&program, QUEUED, VS_LIFE_NOT_FREED, QUEUE - 1, (QUEUE - 1) * 512);
    expect_life(&program, KEPT, VS_LIFE_NOT_FREED, WHOLE, WHOLE * 512);
    uint64_t count = 0;
    for (size_t i = 0; i < VS_LIVES; i++)
        count += program.found.total.count[i];
    cr_expect_eq(count, 5 * WHOLE);
    end(&program);
}

/* The place that repeats may lie anywhere in the step: the step begins where least is live. */
Test(lifetimes, found_steps_begin_where_least_is_live)
{
    struct program program;
    begin(&program);
    run(&program, STEPS, false);
    find(&program);
    cr_expect_eq(program.found.rule, VS_LIFE_BY_STEP);
    cr_expect_eq(program.found.source, VS_STEPS_FOUND);
    cr_assert_geq(program.found.steps, STEPS - 4);
    uint64_t steps = program.found.steps;
    expect_life(&program, INNER, VS_LIFE_IN_STEP, steps, (int64_t)(steps * 4 * MIB));
    expect_life(&program, INPUT, VS_LIFE_AT_STEP_END, steps, (int64_t)(steps * MIB));
    expect_life(&program, OUTPUT, VS_LIFE_NEXT_STEP, steps, (int64_t)(steps * 2 * MIB));
    end(&program);
}

Test(lifetimes, of_many_steps_the_length_is_known)
{
    struct program program;
    begin(&program);
    run(&program, 3 * VS_BEATS_KEPT, true);
    find(&program);
    cr_expect_eq(program.found.rule, VS_LIFE_BY_LENGTH);
    uint64_t steps = program.found.steps;
    cr_assert_gt(steps, 0);
    expect_life(&program, INNER, VS_LIFE_IN_STEP, steps, (int64_t)(steps * 4 * MIB));
    expect_life(&program, KEPT, VS_LIFE_NOT_FREED, steps, (int64_t)(steps * 512));
    end(&program);
}

/* A step's number says nothing of how many blocks are live. */
Test(lifetimes, steps_may_have_large_numbers)
{
    struct program program;
    begin(&program);
    struct block output = {0}, queue[QUEUE] = {{0}};
    for (uint64_t i = 0; i < STEPS; i++) {
        mark_step(&program, i * 100000000);
        step(&program, &output, queue, i);
    }
    find(&program);
    cr_expect_eq(program.found.rule, VS_LIFE_BY_STEP);
    cr_expect_eq(program.found.steps, STEPS - 1);
    expect_life(&program, INNER, VS_LIFE_IN_STEP, STEPS - 1, (STEPS - 1) * 4 * (int64_t)MIB);
    end(&program);
}

/* ---- the peak -------------------------------------------------------------------------- */

/* Held at the peak: input and inner of its step, which go; output before it, which stays on. */
Test(lifetimes, temporaries_of_the_peak)
{
    struct program program;
    begin(&program);
    struct block output = {0}, queue[QUEUE] = {{0}};
    for (uint64_t i = 0; i < STEPS; i++) {
        mark_step(&program, i);
        if (i == STEPS / 2) {
            struct block input = make(&program, INPUT, 64 * MIB);
            struct block inner = make(&program, INNER, 32 * MIB);
            drop(&program, &inner);
            drop(&program, &input);
        }
        step(&program, &output, queue, i);
    }
    find(&program);
    cr_assert_eq(program.found.peak_count, 1);
    cr_expect_eq(program.found.peaks[0].rule, VS_TEMPORARY_IN_STEP);
    cr_expect_eq(program.found.peaks[0].temporary_bytes, 96 * (int64_t)MIB);
    cr_expect_eq(program.found.peaks[0].temporary_count, 2);
    cr_expect_eq(site_of(&program, INPUT)->temporary_bytes, 64 * (int64_t)MIB);
    cr_expect_eq(site_of(&program, OUTPUT)->temporary_bytes, 0);
    end(&program);
}

/* The program ends at its peak: what its places did in the steps before decides. */
Test(lifetimes, a_peak_in_the_last_step_goes_by_place)
{
    struct program program;
    begin(&program);
    run(&program, STEPS, true);
    mark_step(&program, STEPS);
    make(&program, INNER, 128 * MIB);
    make(&program, KEPT, 64 * MIB);
    find(&program);
    cr_assert_eq(program.found.peak_count, 1);
    cr_expect_eq(program.found.peaks[0].rule, VS_TEMPORARY_BY_PLACE);
    cr_expect_eq(program.found.peaks[0].temporary_bytes, 128 * (int64_t)MIB);
    end(&program);
}

Test(lifetimes, without_steps_short_lives_are_temporaries)
{
    struct program program;
    begin(&program);
    struct block first = make(&program, INPUT, MIB), short_lived = make(&program, INNER, 8 * MIB);
    drop(&program, &short_lived);
    for (uint32_t i = 0; i < 400; i++) /* of several sizes: set-up, no steps */
        make(&program, KEPT, 512 + i % 3 * 512);
    drop(&program, &first);
    find(&program);
    cr_expect_eq(program.found.rule, VS_LIFE_UNKNOWN);
    cr_assert_eq(program.found.peak_count, 1);
    cr_expect_eq(program.found.peaks[0].rule, VS_TEMPORARY_SHORT);
    cr_expect_eq(program.found.peaks[0].temporary_bytes, 8 * (int64_t)MIB);
    end(&program);
}

/* ---- to the driver and back -------------------------------------------------------------- */

static void put_call(struct program *program, uint8_t kind, uint32_t line, uint64_t address,
                     uint32_t module, int32_t result)
{
    lab_put(&program->lab, (struct vs_event){.kind = kind,
                                             .module = module,
                                             .stack = line,
                                             .address = address,
                                             .size = kind == VS_KIND_ALLOC ? 16 * MIB : 0,
                                             .duration_ns = kind == VS_KIND_ALLOC ? 1000 : 0,
                                             .result = result});
}

/* Every `every` steps the cache gives a segment back, which the next step takes again. */
static void run_emptying(struct program *program, uint64_t every, bool refused, bool again)
{
    const uint64_t AT = 0x700000000;
    put_call(program, VS_KIND_ALLOC, INPUT, AT, TORCH, 0);
    for (uint64_t i = 1; i <= STEPS * 2; i++) {
        mark_step(program, i);
        struct block inner = make(program, INNER, MIB);
        drop(program, &inner);
        if (i % every != 0)
            continue;
        if (refused)
            put_call(program, VS_KIND_ALLOC, INPUT, 0, TORCH, 2);
        put_call(program, VS_KIND_FREE, EMPTY, AT + (i - every) * GIB, TORCH, 0);
        if (again)
            put_call(program, VS_KIND_ALLOC, INPUT, AT + i * GIB, TORCH, 0);
    }
}

static bool tells_loop(const struct program *program)
{
    bool any = false;
    for (size_t i = 0; i < program->churn.release_count; i++)
        any = any || vs_release_is_loop(&program->churn.releases[i], &program->grown.steps);
    return any;
}

Test(churn, a_cache_emptied_in_every_step)
{
    struct program program;
    begin(&program);
    run_emptying(&program, 1, false, true);
    find(&program);
    cr_assert_eq(program.churn.release_count, 1);
    const struct vs_release *release = &program.churn.releases[0];
    cr_expect_eq(release->rounds, 2 * STEPS);
    cr_expect_eq(release->again_rounds, 2 * STEPS);
    cr_expect_eq(release->segments, 2 * STEPS);
    cr_expect_eq(release->bytes, 2 * STEPS * 16 * (int64_t)MIB);
    cr_expect_eq(release->again_bytes, release->bytes);
    cr_expect_eq(release->time_ns, 2 * STEPS * 1000);
    cr_expect_eq(vs_state_site(program.lab.state, release->site)->stack, EMPTY);
    cr_expect(tells_loop(&program));
    end(&program);
}

/* Now and then; for a request that was refused; and never asked for again. */
Test(churn, healthy_twins_are_silent)
{
    static const struct {
        uint64_t every;
        bool refused, again;
    } twins[] = {{8, false, true}, {1, true, true}, {40, false, false}};
    for (size_t i = 0; i < sizeof(twins) / sizeof(twins[0]); i++) {
        struct program program;
        begin(&program);
        run_emptying(&program, twins[i].every, twins[i].refused, twins[i].again);
        find(&program);
        cr_expect_not(tells_loop(&program), "twin %zu", i);
        end(&program);
    }
}

static const struct vs_call_cost *cost_of(const struct program *program, uint32_t line)
{
    for (size_t i = 0; i < program->churn.cost_count; i++)
        if (vs_state_site(program->lab.state, (uint32_t)i + 1)->stack == line)
            return &program->churn.costs[i];
    return NULL;
}

Test(churn, calls_past_every_cache)
{
    struct program program;
    begin(&program);
    for (uint64_t i = 0; i < 300; i++) {
        put_call(&program, VS_KIND_ALLOC, INPUT, 0x700000000, PROGRAM, 0);
        put_call(&program, VS_KIND_FREE, EMPTY, 0x700000000, PROGRAM, 0);
        put_call(&program, VS_KIND_ALLOC, KEPT, 0x800000000 + i * GIB, PROGRAM, 0);
    }
    find(&program);
    const struct vs_call_cost *churns = cost_of(&program, INPUT), *kept = cost_of(&program, KEPT);
    cr_assert(churns != NULL && kept != NULL);
    cr_expect_eq(churns->allocs, 300);
    cr_expect_eq(churns->frees, 300);
    cr_expect_eq(churns->time_ns, 300 * 1000);
    cr_expect(vs_cost_is_churn(churns, &program.grown.steps));
    cr_expect_not(vs_cost_is_churn(kept, &program.grown.steps));
    end(&program);
}

/* What passes between the free and its measurement is not all the call's. */
Test(churn, a_free_takes_what_its_measurement_says)
{
    enum { CALLS = 300, OF_A_FREE_NS = 7, OF_AN_ALLOC_NS = 1000 };
    struct program program;
    begin(&program);
    for (int i = 0; i < CALLS; i++) {
        put_call(&program, VS_KIND_ALLOC, INPUT, 0x700000000, PROGRAM, 0);
        put_call(&program, VS_KIND_FREE, EMPTY, 0x700000000, PROGRAM, 0);
        program.lab.time_ns += 5000;
        if (i % 3 == 0) /* not every free has a measurement */
            continue;
        lab_put(&program.lab, (struct vs_event){.kind = VS_KIND_SAMPLE,
                                                .flags = VS_EVENT_FREE_SAMPLED,
                                                .size = 16 * GIB,
                                                .free_bytes = 8 * GIB,
                                                .duration_ns = OF_A_FREE_NS});
    }
    find(&program);
    const struct vs_call_cost *churns = cost_of(&program, INPUT);
    cr_assert_not_null(churns);
    cr_expect_eq(churns->timed_frees, CALLS / 3 * 2);
    cr_expect_eq(churns->time_ns, CALLS * OF_AN_ALLOC_NS + CALLS / 3 * 2 * OF_A_FREE_NS);
    end(&program);
}
