/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Around a peak, over imitated programs: what of its live set was made last, to the byte;
 * what the ends of steps show; for how long and how often it was nearly reached.
 */
#include "replay/dwell.h"
#include "replay/recent.h"
#include "replay_lab.h"

enum { LARGE = 1, INNER, KEPT };
enum { STEPS = 20, PEAK_STEP = 10 };

struct program {
    struct lab lab;
    struct vs_sites sites;
    struct vs_objects objects;
    struct vs_growth growth;
    struct vs_lifetimes lifetimes;
    struct vs_dwells dwells;
    struct vs_places places;
    struct vs_grown_list grown;
    struct vs_lifetimes_found found;
    struct vs_recents recents;
    uint64_t next;
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
    cr_assert_eq(vs_dwells_start(&program->dwells, state), 0);
    lab_segment(&program->lab, program->next, 8 * GIB);
}

static void find(struct program *program)
{
    struct vs_stack_source source = {NULL, no_frames};
    struct vs_state *state = program->lab.state;
    vs_dwells_finish(&program->dwells, program->lab.time_ns + 10);
    cr_assert_eq(vs_sites_finish(&program->sites, state), 0);
    cr_assert_eq(vs_places_create(state, &program->sites, &source, VS_BY_LINE, &program->places),
                 0);
    cr_assert_eq(vs_growth_find(&program->growth, &program->places, &program->grown), 0);
    cr_assert_eq(vs_lifetimes_find(&program->lifetimes, state, &program->sites,
                                   &program->grown.steps, &program->found),
                 0);
    cr_assert_eq(vs_recents_find(&program->lifetimes, &program->found, &program->grown.steps, state,
                                 &program->recents),
                 0);
}

static void end(struct program *program)
{
    vs_recents_release(&program->recents);
    vs_lifetimes_found_release(&program->found);
    vs_grown_release(&program->grown);
    vs_places_release(&program->places);
    vs_dwells_release(&program->dwells);
    vs_lifetimes_release(&program->lifetimes);
    vs_growth_release(&program->growth);
    vs_objects_release(&program->objects);
    vs_sites_release(&program->sites);
    lab_close(&program->lab);
}

static uint64_t make_on(struct program *program, uint32_t line, uint64_t size, int8_t device)
{
    uint64_t address = program->next;
    program->next += size;
    program->lab.allocated += device == 0 ? size : 0;
    lab_put(&program->lab, (struct vs_event){.kind = VS_KIND_FW_ALLOC,
                                             .module = TORCH,
                                             .stack = line,
                                             .address = address,
                                             .size = size,
                                             .device = device,
                                             .extra = {device == 0 ? program->lab.allocated : size,
                                                       program->lab.reserved}});
    return address;
}

static uint64_t make(struct program *program, uint32_t line, uint64_t size)
{
    return make_on(program, line, size, 0);
}

static void drop(struct program *program, uint64_t address, uint64_t size)
{
    lab_block_free(&program->lab, address, size);
}

/* Keeps 1 MiB, and holds `large` for a moment. */
static void step(struct program *program, uint64_t large)
{
    uint64_t inner = make(program, INNER, MIB);
    make(program, KEPT, MIB);
    uint64_t block = make(program, LARGE, large);
    drop(program, block, large);
    drop(program, inner, MIB);
}

static void run(struct program *program, bool marked)
{
    for (uint64_t i = 0; i < STEPS; i++) {
        if (marked)
            lab_put(&program->lab, (struct vs_event){.kind = VS_KIND_STEP, .size = 100 + i});
        step(program, i == PEAK_STEP ? 500 * MIB : 100 * MIB);
    }
}

static const struct vs_recent_sums *sums_of(const struct program *program, uint32_t line)
{
    for (uint32_t id = 1; id <= program->lab.state->site_count; id++)
        if (vs_state_site(program->lab.state, id)->stack == line)
            return &program->recents.sites[id - 1];
    cr_assert_fail("no site of line %u", line);
    return NULL;
}

static struct vs_step_ends ends_of(const struct program *program)
{
    struct vs_step_ends ends = {0};
    cr_assert(vs_steps_highest_end(&program->growth, &program->grown.steps,
                                   vs_state_device(program->lab.state, 0), &ends));
    return ends;
}

/* ---- what was made last ------------------------------------------------------------------- */

static void expect_recent(const struct program *program)
{
    const struct vs_recent *recent = vs_recent_of(&program->recents, 0);
    cr_assert_not_null(recent);
    cr_expect_eq(recent->rule, VS_RECENT_BY_STEP);
    cr_expect_eq(recent->steps_before, VS_RECENT_STEPS);
    cr_expect_eq(recent->total.last_bytes, 502 * (int64_t)MIB);
    cr_expect_eq(recent->total.last_count, 3);
    cr_expect_eq(recent->total.before_bytes, 3 * (int64_t)MIB);
    cr_expect_eq(recent->total.before_count, 3);
    cr_expect_eq(sums_of(program, LARGE)->last_bytes, 500 * (int64_t)MIB);
    cr_expect_eq(sums_of(program, LARGE)->before_bytes, 0);
    cr_expect_eq(sums_of(program, KEPT)->last_count, 1);
    cr_expect_eq(sums_of(program, KEPT)->before_bytes, 3 * (int64_t)MIB);
}

Test(recent, since_a_marked_step_began)
{
    struct program program;
    begin(&program);
    run(&program, true);
    find(&program);
    expect_recent(&program);
    cr_expect_eq(vs_recent_of(&program.recents, 0)->step, 100 + PEAK_STEP);
    end(&program);
}

Test(recent, since_a_found_step_began)
{
    struct program program;
    begin(&program);
    run(&program, false);
    find(&program);
    cr_assert_eq(program.grown.steps.source, VS_STEPS_FOUND);
    expect_recent(&program);
    end(&program);
}

/* Its own step has no end, but its beginning is known. */
Test(recent, a_peak_in_the_last_step)
{
    struct program program;
    begin(&program);
    run(&program, true);
    lab_put(&program.lab, (struct vs_event){.kind = VS_KIND_STEP, .size = 100 + STEPS});
    make(&program, LARGE, 700 * MIB);
    find(&program);
    const struct vs_recent *recent = vs_recent_of(&program.recents, 0);
    cr_expect_eq(recent->rule, VS_RECENT_BY_STEP);
    cr_expect_eq(recent->step, 100 + STEPS);
    cr_expect_eq(recent->total.last_bytes, 700 * (int64_t)MIB);
    cr_expect_eq(recent->total.before_bytes, 3 * (int64_t)MIB);
    end(&program);
}

/* Steps that are long over say nothing of what follows, but how long one is. */
Test(recent, a_peak_long_after_the_last_step)
{
    struct program program;
    begin(&program);
    run(&program, true);
    for (unsigned i = 0; i < 50; i++)
        make(&program, LARGE, 100 * MIB);
    find(&program);
    const struct vs_recent *recent = vs_recent_of(&program.recents, 0);
    cr_expect_eq(recent->rule, VS_RECENT_BY_LENGTH);
    cr_expect_eq(recent->total.last_count, 5);
    cr_expect_eq(recent->total.before_count, 15);
    end(&program);
}

Test(recent, without_steps_a_share_of_the_run)
{
    struct program program;
    begin(&program);
    for (unsigned i = 0; i < 2000; i++)
        make(&program, i % 2 == 0 ? LARGE : KEPT, i / 2 % 2 == 0 ? 4096 : 8192); /* no loop */
    find(&program);
    const struct vs_recent *recent = vs_recent_of(&program.recents, 0);
    cr_assert_eq(program.grown.steps.source, VS_STEPS_NONE);
    cr_expect_eq(recent->rule, VS_RECENT_BY_SHARE);
    cr_expect_eq(recent->total.last_count, 20);
    cr_expect_eq(recent->total.before_count, 60);
    cr_expect_eq(sums_of(&program, LARGE)->last_bytes, 5 * 4096 + 5 * 8192);
    end(&program);
}

Test(recent, a_short_run_without_steps_tells_nothing)
{
    struct program program;
    begin(&program);
    make(&program, LARGE, MIB);
    find(&program);
    cr_expect_eq(vs_recent_of(&program.recents, 0)->rule, VS_RECENT_UNKNOWN);
    cr_expect_null(vs_recent_of(&program.recents, 1));
    end(&program);
}

/* ---- what the ends of steps show ----------------------------------------------------------- */

/* The mark behind the last whole step sees what the steps before it kept. */
Test(step_ends, of_marked_steps)
{
    struct program program;
    begin(&program);
    run(&program, true);
    find(&program);
    cr_expect_eq(ends_of(&program).count, STEPS - 1);
    cr_expect_eq(ends_of(&program).highest_bytes, (STEPS - 1) * (int64_t)MIB);
    end(&program);
}

Test(step_ends, of_found_steps)
{
    struct program program;
    begin(&program);
    run(&program, false);
    find(&program);
    cr_expect_eq(ends_of(&program).highest_bytes, (STEPS - 1) * (int64_t)MIB);
    end(&program);
}

/* What the other one holds, live at every end, is none of the first one's. */
Test(step_ends, are_those_of_the_first_of_several_devices)
{
    for (int marked = 0; marked < 2; marked++) {
        struct program program;
        struct vs_step_ends ends;
        begin(&program);
        drop(&program, make(&program, LARGE, MIB), MIB);
        make_on(&program, LARGE, 64 * MIB, 1);
        run(&program, marked);
        find(&program);
        cr_expect_eq(ends_of(&program).highest_bytes, (STEPS - 1) * (int64_t)MIB);
        cr_expect_not(vs_steps_highest_end(&program.growth, &program.grown.steps,
                                           vs_state_device(program.lab.state, 1), &ends));
        end(&program);
    }
}

/* ---- near the peak ------------------------------------------------------------------------- */

static struct vs_near_peak near_of(const struct program *program)
{
    struct vs_near_peak near = {0};
    cr_assert(vs_dwells_near_peak(&program->dwells, vs_state_device(program->lab.state, 0), &near));
    return near;
}

/* Events are 10 ns apart: of each large block from its making to its free. */
Test(near_peak, time_and_times)
{
    struct program program;
    begin(&program);
    for (unsigned i = 0; i < 7; i++) {
        uint64_t block = make(&program, LARGE, i < 3 ? GIB : 2 * GIB);
        uint64_t inner = make(&program, INNER, 64 * MIB);
        drop(&program, inner, 64 * MIB);
        drop(&program, block, i < 3 ? GIB : 2 * GIB);
    }
    find(&program);
    struct vs_near_peak near = near_of(&program);
    int64_t wanted = 2112 * (int64_t)MIB / 10 * 9;
    cr_expect_leq(near.least_bytes, wanted + 1);
    cr_expect_geq(near.least_bytes, wanted - wanted / 500);
    cr_expect_eq(near.times, 4);
    cr_expect_eq(near.time_ns, 4 * 30);
    end(&program);
}

/* What is held at the end is held up to it. */
Test(near_peak, lasts_to_the_end)
{
    struct program program;
    begin(&program);
    make(&program, LARGE, GIB);
    program.lab.time_ns += 1000;
    find(&program);
    cr_expect_eq(near_of(&program).times, 1);
    cr_expect_eq(near_of(&program).time_ns, 1010);
    end(&program);
}

/* In a window the height at its beginning counts as one stretch. */
Test(near_peak, of_a_window)
{
    struct program program;
    begin(&program);
    for (unsigned i = 0; i < 5; i++)
        drop(&program, make(&program, LARGE, GIB), GIB);
    make(&program, KEPT, GIB);
    vs_dwells_restart(&program.dwells, program.lab.time_ns);
    vs_state_restart_peaks(program.lab.state, program.lab.time_ns);
    program.lab.time_ns += 500;
    find(&program);
    cr_expect_eq(near_of(&program).times, 1);
    cr_expect_eq(near_of(&program).time_ns, 510);
    end(&program);
}
