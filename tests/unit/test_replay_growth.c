/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growth over imitated programs: healthy ones are silent, and each with a leak of
 * one block or object per step says where, how much, and since when.
 */
#include "growth_programs.h"

/* ---- healthy programs and their mutants ---------------------------------------------- */

struct case_of {
    const char *name;
    void (*run)(struct program *program);
    uint64_t steps; /* found */
};

static const struct case_of cases[] = {
    {"plain", plain, 40},
    {"long", long_run, 5000},
    {"evaluation", with_evaluation, 100},
    {"accumulation", with_accumulation, 50},
    {"plain accumulation", with_plain_accumulation, 50},
    {"shapes", with_shapes, 80},
    {"longer batches", with_longer_batches, 60},
    {"checkpoints", with_checkpoints, 30},
    {"warm-up", with_warm_up, 200},
    {"one-off", with_one_off, 60},
    {"queue", with_a_queue, 120},
    {"inference", inference, 50},
    {"twins", twins, 3000},
    {"four layers", four_layers, 40},
    {"one layer", one_layer, 40},
    {"deep", deep, 40},
    {"deep inference", deep_inference, 50},
    {"epochs", with_epochs, 200},
    {"large evaluation", with_large_evaluation, 96},
    {"generation", generation, 40},
    {"graphs", graphs, 40},
    {"trained and launched", trained_and_launched, 100},
};

Test(growth, healthy_programs_do_not_grow)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct program program;
        begin(&program, false);
        cases[i].run(&program);
        find(&program);
        cr_expect_eq(program.grown.count, 0, "%s: line %u grows", cases[i].name,
                     program.grown.count == 0 ? 0 : line_of(&program, &program.grown.items[0]));
        end(&program);
    }
}

static void expect_leak(const struct program *program, const struct case_of *of)
{
    const struct vs_grown *grown = program->grown.items;
    cr_expect_eq(program->grown.count, 1, "%s: %zu places grow", of->name, program->grown.count);
    if (program->grown.count == 0)
        return;
    cr_expect_eq(line_of(program, grown), LEAK, "%s", of->name);
    cr_expect_eq(grown->bytes_per_step, 512, "%s: %g", of->name, grown->bytes_per_step);
    cr_expect_eq(grown->count_per_step, 1, "%s: %g", of->name, grown->count_per_step);
    cr_expect_leq(grown->first_step, (int64_t)(of->steps / 1000 + 1), "%s: step %ld", of->name,
                  (long)grown->first_step);
    cr_expect_geq(grown->steps, of->steps - 2 - of->steps / 100, "%s: %lu", of->name,
                  (unsigned long)grown->steps);
    cr_expect_leq(grown->steps, of->steps, "%s: %lu", of->name, (unsigned long)grown->steps);
    cr_expect_eq(grown->end_bytes, (int64_t)of->steps * 512, "%s", of->name);
    cr_expect_eq(grown->confidence, VS_GROWTH_HIGH, "%s", of->name);
    cr_expect_eq(program->grown.steps.source, VS_STEPS_FOUND);
}

Test(growth, each_mutant_is_found)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct program program;
        begin(&program, true);
        cases[i].run(&program);
        find(&program);
        expect_leak(&program, &cases[i]);
        end(&program);
    }
}

/* Twelve graphs of twenty layers each are captured, and kept; what happens behind is `launches`. */
static void capture_layers(struct program *program, int launches, bool inside)
{
    struct vs_event begin_it = {.kind = VS_KIND_CAPTURE_BEGIN, .stream = 3};
    struct vs_event end_it = {.kind = VS_KIND_CAPTURE_END, .stream = 3};
    for (uint64_t graph = 1; graph <= 12; graph++) {
        if (inside)
            lab_put(&program->lab, begin_it);
        for (int layer = 0; layer < 20; layer++)
            infer_lines(program, 101, 109);
        end_it.handle = 0x700 + graph;
        if (inside)
            lab_put(&program->lab, end_it);
        object(program, VS_KIND_GRAPH_INSTANTIATE, 111, graph);
    }
    for (int launch = 0; launch < launches; launch++) {
        infer_lines(program, 112, 113);
        leak(program);
    }
}

Test(growth, layers_of_captured_graphs_are_no_steps)
{
    struct program program;
    begin(&program, false);
    capture_layers(&program, 0, true);
    find(&program);
    cr_expect_eq(program.grown.count, 0, "graphs were captured, nothing grew");
    cr_expect_eq(program.grown.steps.source, VS_STEPS_NONE);
    end(&program);
    begin(&program, false); /* the same outside of captures is a loop that makes graphs */
    capture_layers(&program, 0, false);
    find(&program);
    cr_expect_eq(program.grown.count, 1);
    end(&program);
    begin(&program, true);
    capture_layers(&program, 40, true);
    find(&program);
    cr_expect_eq(program.grown.count, 1);
    cr_expect_eq(line_of(&program, program.grown.items), LEAK, "what follows is the loop");
    end(&program);
}

/* ---- what is not one block a step ---------------------------------------------------- */

static void expect_one(const struct program *program, uint32_t line, double bytes, double count,
                       int64_t first_step)
{
    const struct vs_grown *grown = program->grown.items;
    cr_assert_eq(program->grown.count, 1, "%zu", program->grown.count);
    cr_assert_eq(line_of(program, grown), line);
    cr_assert_eq(grown->bytes_per_step, bytes, "%g", grown->bytes_per_step);
    cr_assert_eq(grown->count_per_step, count, "%g", grown->count_per_step);
    cr_assert_eq(grown->first_step, first_step, "%ld", (long)grown->first_step);
}

Test(growth, begins_at_a_step_and_survives_the_end)
{
    struct program program;
    struct model model;
    struct tensor kept[60];
    begin(&program, true);
    build(&program, &model);
    for (int step = 0; step < 60; step++) {
        forward_backward(&program, &model, 8192, false);
        optimize(&program, &model);
        if (step >= 20)
            kept[step] = make(&program, LEAK, 1 * MIB);
    }
    for (int step = 20; step < 60; step++) /* the interpreter ends */
        drop(&program, &kept[step]);
    find(&program);
    expect_one(&program, LEAK, 1 * MIB, 1, 21);
    cr_assert_eq(program.grown.items[0].end_bytes, 39 * (int64_t)MIB);
    cr_assert_eq(program.grown.items[0].given_back_bytes, 39 * (int64_t)MIB);
    cr_assert_eq(program.grown.items[0].oldest_steps, 39, "the last step has no end");
    cr_assert_eq(program.grown.items[0].median_steps, 20);
    end(&program);
}

/* A list that an epoch drops: the last one says it. */
Test(growth, within_an_epoch)
{
    struct program program;
    struct model model;
    struct tensor kept[100];
    begin(&program, true);
    build(&program, &model);
    for (int step = 0; step < 300; step++) {
        forward_backward(&program, &model, 8192, false);
        optimize(&program, &model);
        kept[step % 100] = make(&program, LEAK, 2048);
        for (int i = 0; i < 100 && step % 100 == 99; i++)
            drop(&program, &kept[i]);
    }
    find(&program);
    cr_assert_eq(program.grown.steps.count, 299);
    expect_one(&program, LEAK, 2048, 1, 201);
    cr_assert(program.grown.items[0].falls);
    cr_assert_eq(program.grown.items[0].confidence, VS_GROWTH_MEDIUM);
    end(&program);
}

/* One tensor, made anew a little larger each time. */
Test(growth, of_one_block_that_is_joined_to)
{
    struct program program;
    struct model model;
    struct tensor all = {0};
    begin(&program, true);
    build(&program, &model);
    for (int step = 0; step < 50; step++) {
        forward_backward(&program, &model, 8192, false);
        struct tensor larger = make(&program, LEAK, (uint64_t)(step + 1) * 4096);
        drop(&program, &all);
        all = larger;
    }
    find(&program);
    expect_one(&program, LEAK, 4096, 0, 1);
    cr_assert_eq(program.grown.items[0].end_count, 1);
    end(&program);
}

/* Every third step, of sizes that differ. */
Test(growth, of_irregular_leaks)
{
    struct program program;
    struct model model;
    begin(&program, true);
    build(&program, &model);
    for (int step = 0; step < 240; step++) {
        forward_backward(&program, &model, 8192, false);
        optimize(&program, &model);
        if (step * 7 % 11 < 4)
            make(&program, LEAK, 512 * (1 + (uint64_t)step % 5));
    }
    find(&program);
    cr_assert_eq(program.grown.count, 1);
    cr_assert_eq(line_of(&program, &program.grown.items[0]), LEAK);
    cr_assert_float_eq(program.grown.items[0].count_per_step, 4.0 / 11, 0.02);
    cr_assert_float_eq(program.grown.items[0].bytes_per_step, 4.0 / 11 * 3 * 512, 60);
    end(&program);
}

Test(growth, that_stopped_is_none)
{
    struct program program;
    struct model model;
    begin(&program, true);
    build(&program, &model);
    for (int step = 0; step < 200; step++) {
        forward_backward(&program, &model, 8192, false);
        optimize(&program, &model);
        if (step < 100)
            make(&program, LEAK, 512);
    }
    find(&program);
    cr_assert_eq(program.grown.count, 0);
    end(&program);
}

/* Nothing is ever freed: two blocks for each of `rounds` rounds, every `odd`th of another size. */
static void keep_all(struct program *program, uint32_t line, int rounds, int odd)
{
    begin(program, true);
    for (int i = 0; i < rounds; i++) {
        make(program, line, i % odd == odd - 1 ? 16384 : 4096);
        make(program, line + 1, i % odd == odd - 1 ? 2048 : 512);
    }
}

static void expect_set_up(struct program *program, const char *what)
{
    find(program);
    cr_expect_eq(program->grown.steps.source, VS_STEPS_NONE, "%s has steps", what);
    cr_expect_eq(program->grown.count, 0, "%s grows", what);
    end(program);
}

/* Setting up is a loop, too; without anything that comes and goes it is no step. */
Test(growth, setting_up_is_no_step)
{
    struct program program;
    keep_all(&program, BUILDS, 300, 1000);
    expect_set_up(&program, "a constructor");
    keep_all(&program, 1, 300, 4);
    expect_set_up(&program, "a row of weights of several sizes");
    keep_all(&program, 1, 20, 1000);
    expect_set_up(&program, "a short row");
    keep_all(&program, 1, 300, 1000);
    program.lab.time_ns += 20000; /* 600 events took 6,000 ns */
    lab_put(&program.lab, (struct vs_event){.kind = VS_KIND_MARK});
    expect_set_up(&program, "a row of buffers that is used for long");
}

Test(growth, all_that_a_loop_makes_stays)
{
    struct program program;
    keep_all(&program, 1, 60, 1000);
    find(&program);
    cr_assert_eq(program.grown.count, 2, "%zu", program.grown.count);
    for (uint32_t i = 0; i < 2; i++) {
        const struct vs_grown *grown = &program.grown.items[i];
        cr_expect_eq(line_of(&program, grown), i + 1);
        cr_expect_eq(grown->bytes_per_step, i == 0 ? 4096 : 512, "%g", grown->bytes_per_step);
        cr_expect_eq(grown->confidence, VS_GROWTH_MEDIUM);
    }
    end(&program);
}

/* A graph captured, launched and destroyed in each step. */
Test(growth, graphs_captured_anew_are_steps)
{
    struct vs_event begin_it = {.kind = VS_KIND_CAPTURE_BEGIN, .stream = 3};
    struct program program;
    begin(&program, true);
    for (uint64_t step = 1; step <= 40; step++) {
        lab_put(&program.lab, begin_it);
        infer_lines(&program, 101, 109);
        lab_put(&program.lab,
                (struct vs_event){.kind = VS_KIND_CAPTURE_END, .stream = 3, .handle = 0x700});
        object(&program, VS_KIND_GRAPH_INSTANTIATE, 111, 0x800);
        object(&program, VS_KIND_GRAPH_EXEC_DESTROY, 112, 0x800);
        leak(&program);
    }
    find(&program);
    cr_assert_eq(program.grown.count, 1, "%zu", program.grown.count);
    cr_expect_eq(line_of(&program, program.grown.items), LEAK);
    end(&program);
}

/* Layers come to a model while it is trained: steps are whole passes, not layers. */
Test(growth, a_model_that_becomes_deeper_has_the_same_steps)
{
    struct program program;
    begin(&program, true);
    for (int step = 0; step < 80; step++) {
        infer_lines(&program, 20, 60);
        for (int layer = 0; layer < 3 + step / 10; layer++)
            infer_lines(&program, 61, 75);
        leak(&program);
    }
    find(&program);
    cr_assert_eq(program.grown.count, 1, "%zu", program.grown.count);
    cr_expect_eq(line_of(&program, program.grown.items), LEAK);
    cr_expect_eq(program.grown.items[0].bytes_per_step, 512, "%g",
                 program.grown.items[0].bytes_per_step);
    end(&program);
}

/* ---- loops beside the steps ------------------------------------------------------------ */

Test(growth, of_evaluations_between_the_steps)
{
    for (int leaks = 0; leaks < 2; leaks++) {
        struct program program;
        begin(&program, leaks);
        rounds_between(&program);
        find(&program);
        if (leaks)
            expect_one(&program, LEAK, 8 * 512 / 40.0, 8 / 40.0, 40);
        else
            cr_assert_eq(program.grown.count, 0);
        cr_assert_eq(program.grown.steps.count, 159);
        end(&program);
    }
}

Test(growth, of_an_evaluation_behind_the_steps)
{
    for (int leaks = 0; leaks < 2; leaks++) {
        struct program program;
        begin(&program, leaks);
        rounds_behind(&program);
        find(&program);
        cr_assert_eq(program.grown.steps.count, 99);
        if (leaks) {
            expect_one(&program, LEAK, 512, 1, 1);
            cr_assert(program.grown.items[0].behind);
            cr_assert_eq(program.grown.items[0].steps, 31);
            cr_assert_eq(program.grown.items[0].confidence, VS_GROWTH_MEDIUM);
        } else {
            cr_assert_eq(program.grown.count, 0);
        }
        end(&program);
    }
}

/* Layers are thawed in four stages: each gets its state at once, with a scratch block. */
static void thawing(struct program *program)
{
    struct model model;
    build(program, &model);
    for (int step = 0; step < 160; step++) {
        forward_backward(program, &model, 8192, false);
        optimize(program, &model);
        if (step % 40 != 20)
            continue;
        struct tensor scratch = make(program, 111, 4096);
        drop(program, &scratch);
        for (int i = 0; i < 8; i++)
            make(program, 110, 4096);
    }
}

/* Each layer of a model behind the training needs a scratch block; then it is used. */
static void built_behind(struct program *program)
{
    train(program, 100);
    for (int layer = 0; layer < 32; layer++) {
        make(program, 112, 4096);
        struct tensor scratch = make(program, 113, 4096);
        drop(program, &scratch);
    }
    for (int batch = 0; batch < 40; batch++)
        infer_lines(program, 100, 107);
}

/* Predictions behind the training, kept until they are joined. */
static void predictions_joined(struct program *program)
{
    struct tensor kept[32];
    train(program, 100);
    for (int batch = 0; batch < 32; batch++) {
        infer_lines(program, 100, 107);
        kept[batch] = make(program, 108, 512);
    }
    struct tensor joined = make(program, 109, (uint64_t)32 * 512);
    for (int batch = 0; batch < 32; batch++)
        drop(program, &kept[batch]);
    struct tensor best = make(program, 110, 512);
    drop(program, &joined);
    drop(program, &best);
}

/* A mask for each new length, through scratch blocks of each layer: new ones become rare. */
static void masks(struct program *program)
{
    struct model model;
    build(program, &model);
    for (int step = 0, next = 0, apart = 1; step < 160; step++) {
        forward_backward(program, &model, 8192, false);
        optimize(program, &model);
        for (int layer = 0; layer < LAYERS && step == next; layer++) {
            make(program, 112, 4096);
            struct tensor scratch = make(program, 113, 4096);
            drop(program, &scratch);
        }
        next += step == next ? apart++ : 0;
    }
}

Test(growth, loops_that_end_or_become_rare_are_none)
{
    static void (*const programs[])(struct program *) = {thawing, built_behind, predictions_joined,
                                                         masks};
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        struct program program;
        begin(&program, false);
        programs[i](&program);
        find(&program);
        cr_expect_eq(program.grown.count, 0, "%zu: line %u grows", i,
                     program.grown.count == 0 ? 0 : line_of(&program, &program.grown.items[0]));
        end(&program);
    }
}

/* ---- objects ------------------------------------------------------------------------- */

static void modules(struct program *program, bool leaks)
{
    for (uint64_t i = 0; i < 256; i++) {
        object(program, VS_KIND_MODULE_LOAD, 70, 0x1000 + i);
        if (leaks)
            object(program, VS_KIND_MODULE_LOAD, LEAK, 0x9000 + i);
        object(program, VS_KIND_MODULE_UNLOAD, 71, 0x1000 + i);
    }
}

Test(growth, modules_loaded_and_unloaded)
{
    for (int leaks = 0; leaks < 2; leaks++) {
        struct program program;
        begin(&program, leaks);
        modules(&program, leaks);
        find(&program);
        if (leaks) {
            expect_one(&program, LEAK, 0, 1, 1);
            cr_assert_eq(program.grown.items[0].object, VS_OBJECT_MODULE + 1);
            cr_assert_eq(program.grown.items[0].end_count, 256);
        } else {
            cr_assert_eq(program.grown.count, 0);
        }
        end(&program);
    }
}

Test(growth, modules_all_loaded_then_unloaded)
{
    struct program program;
    begin(&program, false);
    for (uint64_t i = 0; i < 256; i++)
        object(&program, VS_KIND_MODULE_LOAD, 70, 0x1000 + i);
    for (uint64_t i = 0; i < 256; i++)
        object(&program, VS_KIND_MODULE_UNLOAD, 71, 0x1000 + i);
    find(&program);
    cr_assert_eq(program.grown.count, 0);
    end(&program);
}

/* One module and one stream with each training step; a handle as well. */
Test(growth, objects_are_ranked_behind_bytes)
{
    struct program program;
    struct model model;
    begin(&program, true);
    build(&program, &model);
    for (uint64_t step = 0; step < 40; step++) {
        forward_backward(&program, &model, 8192, false);
        optimize(&program, &model);
        object(&program, VS_KIND_MODULE_LOAD, 80, 0x1000 + step);
        for (uint64_t i = 0; i < 2; i++)
            lab_put(&program.lab, (struct vs_event){.kind = VS_KIND_STREAM_CREATE,
                                                    .module = PROGRAM,
                                                    .stack = 81,
                                                    .stream = 0x100000 + 2 * step + i});
        lab_put(&program.lab, (struct vs_event){.kind = VS_KIND_PHYS_CREATE,
                                                .module = PROGRAM,
                                                .stack = 82,
                                                .handle = 0x5000 + step,
                                                .size = 2 * MIB,
                                                .extra = {1, 0}});
    }
    find(&program);
    cr_assert_eq(program.grown.count, 3);
    cr_assert_eq(line_of(&program, &program.grown.items[0]), 82);
    cr_assert_eq(program.grown.items[0].bytes_per_step, 2 * MIB);
    cr_assert_eq(line_of(&program, &program.grown.items[1]), 81);
    cr_assert_eq(program.grown.items[1].count_per_step, 2);
    cr_assert_eq(line_of(&program, &program.grown.items[2]), 80);
    end(&program);
}

/* ---- marks and windows
 * ---------------------------------------------------------------------------- */

static void mark(struct program *program, uint8_t kind, uint64_t number)
{
    lab_put(&program->lab,
            (struct vs_event){.kind = kind, .size = number, .extra = {OTHER_LABEL, 0}});
}

Test(growth, marked_steps_win)
{
    struct program program;
    struct model model;
    begin(&program, true);
    build(&program, &model);
    for (uint64_t step = 0; step < 80; step++) {
        if (step % 4 == 0)
            mark(&program, VS_KIND_STEP, 500 + step / 4);
        forward_backward(&program, &model, 8192, false);
        optimize(&program, &model);
        leak(&program);
    }
    find(&program);
    cr_assert_eq(program.grown.steps.source, VS_STEPS_MARKED);
    expect_one(&program, LEAK, 2048, 4, 500);
    cr_assert_eq(program.grown.items[0].steps, 19);
    end(&program);
}

Test(growth, phases_are_steps)
{
    struct program program;
    struct model model;
    begin(&program, true);
    build(&program, &model);
    for (uint64_t step = 0; step < 40; step++) {
        mark(&program, VS_KIND_PHASE_BEGIN, 0);
        for (int batch = 0; batch < 2; batch++)
            forward_backward(&program, &model, 8192, false);
        optimize(&program, &model);
        leak(&program);
        mark(&program, VS_KIND_PHASE_END, 0);
    }
    find(&program);
    cr_assert_eq(program.grown.steps.source, VS_STEPS_NAMED);
    expect_one(&program, LEAK, 512, 1, 1);
    cr_assert_eq(program.grown.items[0].steps, 39);
    end(&program);
}

Test(growth, of_a_window)
{
    struct program program;
    struct model model;
    begin(&program, true);
    build(&program, &model);
    for (int step = 0; step < 100; step++) {
        if (step == 50)
            vs_growth_restart(&program.growth);
        forward_backward(&program, &model, 8192, false);
        optimize(&program, &model);
        leak(&program);
    }
    find(&program);
    expect_one(&program, LEAK, 512, 1, 51);
    cr_assert_eq(program.grown.items[0].steps, 49);
    cr_assert_eq(program.grown.items[0].grown_bytes, 49 * 512);
    end(&program);
}

/* ---- memory
 * ------------------------------------------------------------------------------------------ */

/* What is kept does not grow with the events. */
Test(growth, is_bounded_by_what_is_live)
{
    struct program program;
    struct tensor all = {0};
    begin(&program, false);
    for (uint64_t i = 0; i < 300000; i++) {
        struct tensor larger = make(&program, 1, 512 * (1 + i / 64));
        drop(&program, &all);
        all = larger;
        struct tensor other = make(&program, 2, 512);
        drop(&program, &other);
    }
    size_t levels = 0, beats = 0;
    for (size_t i = 0; i < program.growth.track_count; i++)
        levels += program.growth.tracks[i].level_room;
    for (size_t i = 0; i < VS_CANDIDATES; i++)
        beats += program.growth.candidates[i] == NULL ? 0 : program.growth.candidates[i]->room;
    cr_assert_lt(levels, 2 * VS_BEATS_KEPT + 1000);
    cr_assert_leq(beats, 8 * VS_BEATS_KEPT);
    find(&program);
    cr_assert_eq(program.grown.count, 1, "it does grow");
    cr_assert_float_eq(program.grown.items[0].bytes_per_step, 8, 0.1);
    end(&program);
}
