/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Imitated programs of test_replay_growth.c: training and inference loops of every
 * kind, each with its leak of one block per step if the program leaks.
 */
#ifndef VS_GROWTH_PROGRAMS_H
#define VS_GROWTH_PROGRAMS_H

#include "replay/growth.h"
#include "replay_lab.h"

/* ---- a program ----------------------------------------------------------------------- */

enum { LEAK = 90, BUILDS = 125 /* lines of a constructor, from here on */ };

struct program {
    struct lab lab;
    struct vs_sites sites;
    struct vs_objects objects;
    struct vs_growth growth;
    struct vs_places places;
    struct vs_grown_list grown;
    uint64_t next;
    bool leaks;
};

/* A tensor of the program. */
struct tensor {
    uint64_t address, size;
};

static long no_frames(void *self, uint32_t stack, const struct vs_frame **out)
{
    static struct vs_frame frames[128];
    (void)self;
    frames[stack] = (struct vs_frame){.kind = VS_FRAME_PYTHON,
                                      .function = stack < BUILDS ? "f" : "Model.__init__",
                                      .file = "/home/ann/train.py",
                                      .line = stack,
                                      .own = true};
    *out = &frames[stack];
    return 1;
}

static void begin(struct program *program, bool leaks)
{
    *program = (struct program){.lab = lab_open(), .next = 0x10000000, .leaks = leaks};
    cr_assert_eq(vs_sites_start(&program->sites, program->lab.state), 0);
    cr_assert_eq(vs_objects_start(&program->objects, program->lab.state), 0);
    cr_assert_eq(vs_growth_start(&program->growth, program->lab.state, &program->objects), 0);
    lab_segment(&program->lab, 0x10000000, 8 * GIB);
}

static struct tensor make(struct program *program, uint32_t line, uint64_t size)
{
    struct tensor tensor = {program->next, (size + 511) / 512 * 512};
    program->next += tensor.size;
    program->lab.allocated += tensor.size;
    lab_put(&program->lab,
            (struct vs_event){.kind = VS_KIND_FW_ALLOC,
                              .module = TORCH,
                              .stack = line,
                              .address = tensor.address,
                              .size = tensor.size,
                              .extra = {program->lab.allocated, program->lab.reserved}});
    return tensor;
}

static void drop(struct program *program, struct tensor *tensor)
{
    if (tensor->size != 0)
        lab_block_free(&program->lab, tensor->address, tensor->size);
    tensor->size = 0;
}

static void object(struct program *program, uint8_t kind, uint32_t line, uint64_t handle)
{
    lab_put(&program->lab,
            (struct vs_event){
                .kind = kind, .module = PROGRAM, .stack = line, .handle = handle, .device = 0});
}

static void leak(struct program *program)
{
    if (program->leaks)
        make(program, LEAK, 512);
}

static void find(struct program *program)
{
    struct vs_stack_source source = {NULL, no_frames};
    cr_assert_eq(vs_sites_finish(&program->sites, program->lab.state), 0);
    cr_assert_eq(vs_places_create(program->lab.state, &program->sites, &source, VS_BY_LINE,
                                  &program->places),
                 0);
    cr_assert_eq(vs_growth_find(&program->growth, &program->places, &program->grown), 0);
}

static void end(struct program *program)
{
    vs_grown_release(&program->grown);
    vs_places_release(&program->places);
    vs_growth_release(&program->growth);
    vs_objects_release(&program->objects);
    vs_sites_release(&program->sites);
    lab_close(&program->lab);
}

static uint32_t line_of(const struct program *program, const struct vs_grown *grown)
{
    return vs_places_site(&program->places, &program->places.items[grown->place])->stack;
}

/* ---- healthy programs and their mutants ---------------------------------------------- */

enum { PARAMETERS = 12, LAYERS = 6 };

struct model {
    struct tensor parameters[PARAMETERS], gradients[PARAMETERS], state[2 * PARAMETERS];
    bool has_state;
};

static void build(struct program *program, struct model *model)
{
    *model = (struct model){0};
    for (int i = 0; i < PARAMETERS; i++)
        model->parameters[i] = make(program, 1, 4096);
}

/* Forward and backward of one batch; layers share their lines. */
static void forward_backward(struct program *program, struct model *model, uint64_t width,
                             bool checkpoints)
{
    struct tensor input = make(program, 10, width), kept[LAYERS];
    for (int i = 0; i < LAYERS; i++) {
        struct tensor inner = make(program, 11, 2 * width);
        kept[i] = make(program, 12, width);
        drop(program, &inner);
    }
    struct tensor loss = make(program, 13, 4), gradient = make(program, 14, width);
    for (int i = LAYERS; i-- > 0;) {
        if (checkpoints) {
            struct tensor again = make(program, 15, 2 * width);
            drop(program, &again);
        }
        for (int k = 2 * i; k < 2 * i + 2; k++) {
            struct tensor new = make(program, 16, 4096);
            if (model->gradients[k].size == 0)
                model->gradients[k] = new;
            else
                drop(program, &new);
        }
        struct tensor next = make(program, 17, width);
        drop(program, &gradient);
        drop(program, &kept[i]);
        gradient = next;
    }
    drop(program, &gradient);
    drop(program, &loss);
    drop(program, &input);
}

static void optimize(struct program *program, struct model *model)
{
    for (int i = 0; i < 2 * PARAMETERS && !model->has_state; i++)
        model->state[i] = make(program, 20, 4096);
    model->has_state = true;
    struct tensor scratch = make(program, 21, 4096 * PARAMETERS);
    struct tensor more = make(program, 22, 4096 * PARAMETERS);
    drop(program, &scratch);
    drop(program, &more);
    for (int i = 0; i < PARAMETERS; i++)
        drop(program, &model->gradients[i]);
}

static void train(struct program *program, int steps)
{
    struct model model;
    build(program, &model);
    for (int step = 0; step < steps; step++) {
        forward_backward(program, &model, 8192, false);
        optimize(program, &model);
        leak(program);
    }
}

static void plain(struct program *program)
{
    train(program, 40);
}

static void long_run(struct program *program)
{
    train(program, 5000);
}

static void evaluate(struct program *program, int batches)
{
    struct tensor sum = make(program, 34, 4);
    for (int i = 0; i < batches; i++) {
        struct tensor input = make(program, 30, 8192), hidden = make(program, 31, 8192);
        struct tensor logits = make(program, 32, 1024), best = make(program, 33, 64);
        struct tensor more = make(program, 34, 4);
        drop(program, &sum);
        drop(program, &hidden);
        drop(program, &logits);
        drop(program, &best);
        drop(program, &input);
        sum = more;
    }
    drop(program, &sum);
}

static void with_evaluation(struct program *program)
{
    struct model model;
    build(program, &model);
    for (int step = 0; step < 100; step++) {
        forward_backward(program, &model, 8192, false);
        optimize(program, &model);
        leak(program);
        if (step % 10 == 9)
            evaluate(program, 7);
    }
}

static void with_accumulation(struct program *program)
{
    struct model model;
    build(program, &model);
    for (int step = 0; step < 50; step++) {
        for (int batch = 0; batch < 4; batch++)
            forward_backward(program, &model, 8192, false);
        optimize(program, &model);
        leak(program);
    }
}

/* Without anything that the optimizer allocates, only the gradients tell. */
static void with_plain_accumulation(struct program *program)
{
    struct model model;
    build(program, &model);
    for (int step = 0; step < 50; step++) {
        for (int batch = 0; batch < 4; batch++)
            forward_backward(program, &model, 8192, false);
        for (int i = 0; i < PARAMETERS; i++)
            drop(program, &model.gradients[i]);
        leak(program);
    }
}

static void with_shapes(struct program *program)
{
    struct model model;
    uint64_t random = 1;
    build(program, &model);
    for (int step = 0; step < 80; step++) {
        random = random * 6364136223846793005ULL + 1442695040888963407ULL;
        forward_backward(program, &model, 4096 * (1 + (random >> 40) % 30), false);
        optimize(program, &model);
        leak(program);
    }
}

/* A longer batch now and then, and a buffer that is made larger when one comes. */
static void with_longer_batches(struct program *program)
{
    struct model model;
    struct tensor buffer = {0};
    uint64_t longest = 0;
    build(program, &model);
    for (int step = 0; step < 60; step++) {
        uint64_t length = 1 + (uint64_t)(step * 37 % 17) + (step == 40 ? 64 : 0);
        if (length > longest) {
            struct tensor larger = make(program, 40, length * 4096);
            drop(program, &buffer);
            buffer = larger;
            longest = length;
        }
        forward_backward(program, &model, 4096 * length, false);
        optimize(program, &model);
        leak(program);
    }
}

static void with_checkpoints(struct program *program)
{
    struct model model;
    build(program, &model);
    for (int step = 0; step < 30; step++) {
        forward_backward(program, &model, 8192, true);
        optimize(program, &model);
        leak(program);
    }
}

/* Something is kept for each new shape; there are 24. */
static void with_warm_up(struct program *program)
{
    struct model model;
    bool seen[24] = {false};
    uint64_t random = 5;
    build(program, &model);
    for (int step = 0; step < 200; step++) {
        random = random * 6364136223846793005ULL + 1442695040888963407ULL;
        uint64_t shape = (random >> 40) % 24;
        if (!seen[shape])
            make(program, 50, 1 * MIB);
        seen[shape] = true;
        forward_backward(program, &model, 8192, false);
        optimize(program, &model);
        leak(program);
    }
}

static void with_one_off(struct program *program)
{
    struct model model;
    build(program, &model);
    for (int step = 0; step < 60; step++) {
        forward_backward(program, &model, 8192, false);
        optimize(program, &model);
        leak(program);
        for (int i = 0; i < 40 && step == 30; i++)
            make(program, 51, 1 * MIB);
    }
}

/* The last 16 outputs are kept, and the oldest is let go for each new one. */
static void with_a_queue(struct program *program)
{
    struct model model;
    struct tensor queue[16] = {{0}};
    build(program, &model);
    for (int step = 0; step < 120; step++) {
        forward_backward(program, &model, 8192, false);
        optimize(program, &model);
        drop(program, &queue[step % 16]);
        queue[step % 16] = make(program, 52, 4096);
        leak(program);
    }
}

/* Without gradients: every layer leaves as much as it found. */
static void inference(struct program *program)
{
    struct model model;
    build(program, &model);
    for (int step = 0; step < 50; step++) {
        struct tensor ids = make(program, 60, 64), x = make(program, 61, 8192);
        struct tensor mask = make(program, 62, 512), place = make(program, 63, 512);
        for (int i = 0; i < LAYERS; i++) {
            struct tensor next = make(program, 64, 8192);
            drop(program, &x);
            x = next;
        }
        struct tensor logits = make(program, 65, 4096), best = make(program, 66, 64);
        drop(program, &x);
        drop(program, &logits);
        drop(program, &mask);
        drop(program, &place);
        drop(program, &ids);
        drop(program, &best);
        leak(program);
    }
}

/* Two layers, and nothing that allocates once in a step. */
static void twins(struct program *program)
{
    struct model model;
    build(program, &model);
    for (int step = 0; step < 3000; step++) {
        struct tensor kept[2][8];
        for (int layer = 0; layer < 2; layer++)
            for (uint32_t i = 0; i < 8; i++)
                kept[layer][i] = make(program, 70 + i, 8192);
        for (int layer = 2; layer-- > 0;)
            for (uint32_t i = 8; i-- > 0;) {
                struct tensor gradient = make(program, 80 + i, 8192);
                drop(program, &gradient);
                drop(program, &kept[layer][i]);
            }
        leak(program);
    }
}

/*
 * Layers alike, with many lines each, and gradients that are given back behind the next
 * forward pass: nothing falls where a step ends.
 */
static void train_layers(struct program *program, int layers, int steps)
{
    enum { LINES = 8, MOST = 24 };
    struct model model;
    struct tensor gradients[MOST] = {{0}};
    build(program, &model);
    for (int step = 0; step < steps; step++) {
        struct tensor kept[MOST][LINES], input = make(program, 60, 8192);
        for (int layer = 0; layer < layers; layer++)
            for (uint32_t i = 0; i < LINES; i++)
                kept[layer][i] = make(program, 70 + i, 8192);
        struct tensor loss = make(program, 61, 4);
        for (int layer = 0; layer < layers; layer++)
            drop(program, &gradients[layer]);
        for (int layer = layers; layer-- > 0;) {
            for (uint32_t i = LINES; i-- > 0;) {
                struct tensor gradient = make(program, 80 + i, 8192);
                drop(program, &gradient);
                drop(program, &kept[layer][i]);
            }
            gradients[layer] = make(program, 88, 4096);
        }
        struct tensor scratch = make(program, 62, 4096);
        drop(program, &scratch);
        drop(program, &loss);
        drop(program, &input);
        leak(program);
    }
}

static void four_layers(struct program *program)
{
    train_layers(program, 4, 40);
}

static void one_layer(struct program *program)
{
    train_layers(program, 1, 40);
}

static void deep(struct program *program)
{
    train_layers(program, 24, 40);
}

/* Nearly all is in the layers; between them only the batch is there. */
static void deep_inference(struct program *program)
{
    struct model model;
    build(program, &model);
    for (int step = 0; step < 50; step++) {
        struct tensor ids = make(program, 60, 64), mask = make(program, 61, 512);
        struct tensor x = make(program, 62, 8192);
        for (int layer = 0; layer < 12; layer++) {
            struct tensor inner[8];
            for (uint32_t i = 0; i < 8; i++)
                inner[i] = make(program, 70 + i, 8192);
            for (uint32_t i = 0; i < 7; i++)
                drop(program, &inner[i]);
            drop(program, &x);
            x = inner[7];
        }
        drop(program, &x);
        drop(program, &mask);
        drop(program, &ids);
        leak(program);
    }
}

/* Losses are kept until the epoch's end, where an evaluation follows. */
static void with_epochs(struct program *program)
{
    enum { EPOCH = 25 };
    struct model model;
    struct tensor losses[EPOCH];
    build(program, &model);
    for (int step = 0; step < 8 * EPOCH; step++) {
        forward_backward(program, &model, 8192, false);
        optimize(program, &model);
        losses[step % EPOCH] = make(program, 53, 4);
        leak(program);
        if (step % EPOCH != EPOCH - 1)
            continue;
        for (int i = 0; i < EPOCH; i++)
            drop(program, &losses[i]);
        evaluate(program, 7);
    }
}

/* Lines `first` to `last`, one after the other, each with something for the next one. */
static void infer_lines(struct program *program, uint32_t first, uint32_t last)
{
    struct tensor x = make(program, first, 8192);
    for (uint32_t line = first + 1; line <= last; line++) {
        struct tensor next = make(program, line, 8192);
        drop(program, &x);
        x = next;
    }
    drop(program, &x);
}

/* As many lines evaluate as train, in batches of which the first has lines of its own. */
static void with_large_evaluation(struct program *program)
{
    struct model model;
    build(program, &model);
    for (int step = 0; step < 96; step++) {
        forward_backward(program, &model, 8192, false);
        optimize(program, &model);
        leak(program);
        for (int batch = 0; batch < 5 && step % 8 == 7; batch++)
            infer_lines(program, batch == 0 ? 100 : 104, batch == 0 ? 103 : 107);
    }
}

/* A cache grows by a token at a time and is dropped after each answer, told by three layers. */
static void generation(struct program *program)
{
    for (int answer = 0; answer < 40; answer++) {
        struct tensor cache = make(program, 100, 512);
        for (int token = 0; token < 12; token++) {
            infer_lines(program, 101, 109);
            struct tensor longer = make(program, 110, cache.size + 512);
            drop(program, &cache);
            cache = longer;
        }
        for (int layer = 0; layer < 3; layer++)
            infer_lines(program, 111, 119);
        infer_lines(program, 120, 123);
        drop(program, &cache);
        leak(program);
    }
}

/* Fifty graphs are captured, then forty times one is launched and its output looked at. */
static void graphs(struct program *program)
{
    for (uint64_t graph = 1; graph <= 50; graph++) {
        make(program, 100, 512 * graph);
        for (int layer = 0; layer < 3; layer++)
            infer_lines(program, 101, 109);
        make(program, 110, 512 * graph);
        object(program, VS_KIND_GRAPH_INSTANTIATE, 111, graph);
    }
    for (int launch = 0; launch < 40; launch++) {
        infer_lines(program, 112, 113);
        leak(program);
    }
}

/* A round of evaluation; of each batch one block stays if the program leaks. */
static void evaluation_round(struct program *program)
{
    for (int batch = 0; batch < 8; batch++) {
        infer_lines(program, 100, 107);
        leak(program);
    }
}

static void epochs_with_rounds(struct program *program, int epochs)
{
    struct model model;
    build(program, &model);
    for (int step = 0; step < epochs * 40; step++) {
        forward_backward(program, &model, 8192, false);
        optimize(program, &model);
        if (step % 40 == 39)
            evaluation_round(program);
    }
}

/* Its last round ends the run, the one before is the last that a step ends. */
static void rounds_between(struct program *program)
{
    epochs_with_rounds(program, 4);
}

/* Trained without a leak, then evaluated. */
static void rounds_behind(struct program *program)
{
    bool leaks = program->leaks;
    program->leaks = false;
    train(program, 100);
    program->leaks = leaks;
    for (int round = 0; round < 4; round++)
        evaluation_round(program);
}

/* It trains, and what it has trained is captured and launched: that is not the program. */
static void trained_and_launched(struct program *program)
{
    train(program, 100);
    infer_lines(program, 101, 109);
    object(program, VS_KIND_GRAPH_INSTANTIATE, 111, 1);
    for (int launch = 0; launch < 20; launch++)
        infer_lines(program, 112, 113);
}

#endif
