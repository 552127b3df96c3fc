/* SPDX-License-Identifier: Apache-2.0 */
/* What memory is for: a training by hand, with stacks of a table, and its rules. */
#include "replay/categories.h"
#include "replay_lab.h"

enum { MAIN_THREAD = 7, BACKWARD_THREAD = 9 };

enum {
    APPLIED = 1,
    BUILT,
    INITIALISED,
    LOADED,
    FORWARD,
    WITHIN_FORWARD,
    GRADIENT,
    IN_BACKWARD,
    RECOMPUTED,
    ADAM_STATE,
    MOMENTUM,
    IN_STEP,
    BLAS,
    BLAS_HANDLE,
    BUCKET,
    BATCH,
    STACKS
};

#define TORCH_FILE(path) "/v/site-packages/torch/" path
#define PYTHON(name, path)                                                 \
    {                                                                      \
        .kind = VS_FRAME_PYTHON, .function = name, .file = path, .line = 1 \
    }
#define NATIVE(name)                                                                        \
    {                                                                                       \
        .kind = VS_FRAME_NATIVE, .function = name, .module = "/v/libtorch.so", .address = 1 \
    }
#define ENGINE NATIVE("torch::autograd::Engine::thread_main(x)")

static const struct vs_frame table[STACKS][4] = {
    [APPLIED] = {PYTHON("Module._apply", TORCH_FILE("nn/modules/module.py"))},
    [BUILT] = {PYTHON("Linear.__init__", TORCH_FILE("nn/modules/linear.py"))},
    [INITIALISED] = {PYTHON("trunc_normal_", TORCH_FILE("nn/init.py")),
                     PYTHON("Linear.__init__", TORCH_FILE("nn/modules/linear.py"))},
    [LOADED] = {PYTHON("Module.load_state_dict", TORCH_FILE("nn/modules/module.py"))},
    [FORWARD] = {PYTHON("Linear.forward", TORCH_FILE("nn/modules/linear.py"))},
    [WITHIN_FORWARD] = {PYTHON("softmax", TORCH_FILE("nn/functional.py"))},
    [GRADIENT] = {NATIVE("mm_mat2_backward"), ENGINE},
    [IN_BACKWARD] = {NATIVE("mm_mat1_backward"), ENGINE},
    [RECOMPUTED] = {PYTHON("recompute_fn", TORCH_FILE("utils/checkpoint.py")), ENGINE},
    [ADAM_STATE] = {PYTHON("Adam._init_group", TORCH_FILE("optim/adam.py")),
                    PYTHON("Adam.step", TORCH_FILE("optim/adam.py"))},
    [MOMENTUM] = {PYTHON("_multi_tensor_sgd", TORCH_FILE("optim/sgd.py")),
                  PYTHON("SGD.step", TORCH_FILE("optim/sgd.py"))},
    [IN_STEP] = {PYTHON("_multi_tensor_adam", TORCH_FILE("optim/adam.py")),
                 PYTHON("Adam.step", TORCH_FILE("optim/adam.py"))},
    [BLAS] = {NATIVE("at::cuda::getNewWorkspace()"),
              PYTHON("Linear.forward", TORCH_FILE("nn/modules/linear.py"))},
    [BLAS_HANDLE] = {NATIVE("at::cuda::getCurrentCUDABlasHandle()"), ENGINE},
    [BUCKET] = {NATIVE("c10d::Reducer::initialize_buckets(x)")},
    [BATCH] = {PYTHON("<module>", "/home/ann/train.py")},
};

static long frames_of(void *self, uint32_t stack, const struct vs_frame **out)
{
    (void)self;
    *out = table[stack];
    long count = 0;
    while (count < 4 && table[stack][count].function != NULL)
        count++;
    return count;
}

struct training {
    struct lab lab;
    struct vs_sites sites;
    struct vs_lives lives;
    struct vs_places places;
    struct vs_categories categories;
};

static uint64_t address_of(uint32_t stack, unsigned which)
{
    return 0x1000000 + (uint64_t)stack * 0x10000 + which * 0x1000ULL;
}

static void make(struct training *training, uint32_t thread, uint32_t stack, unsigned which)
{
    training->lab.thread = thread;
    training->lab.allocated += 512;
    lab_put(&training->lab,
            (struct vs_event){.kind = VS_KIND_FW_ALLOC,
                              .module = TORCH,
                              .address = address_of(stack, which),
                              .size = 512,
                              .stack = stack,
                              .extra = {training->lab.allocated, training->lab.reserved}});
}

static void drop(struct training *training, uint32_t thread, uint32_t stack, unsigned which)
{
    training->lab.thread = thread;
    lab_block_free(&training->lab, address_of(stack, which), 512);
}

static void one_step(struct training *training, bool first)
{
    make(training, MAIN_THREAD, BATCH, 0);
    make(training, MAIN_THREAD, WITHIN_FORWARD, 0);
    make(training, MAIN_THREAD, FORWARD, 0);
    drop(training, MAIN_THREAD, WITHIN_FORWARD, 0);
    make(training, BACKWARD_THREAD, IN_BACKWARD, 0);
    make(training, BACKWARD_THREAD, RECOMPUTED, 0);
    make(training, BACKWARD_THREAD, GRADIENT, 0);
    drop(training, BACKWARD_THREAD, FORWARD, 0);
    drop(training, BACKWARD_THREAD, RECOMPUTED, 0);
    drop(training, BACKWARD_THREAD, IN_BACKWARD, 0);
    if (first) {
        make(training, MAIN_THREAD, ADAM_STATE, 0);
        make(training, MAIN_THREAD, MOMENTUM, 0);
    }
    make(training, MAIN_THREAD, IN_STEP, 0);
    drop(training, MAIN_THREAD, IN_STEP, 0);
    drop(training, MAIN_THREAD, GRADIENT, 0);
}

static void train(struct training *training)
{
    static const uint32_t once[] = {APPLIED, BUILT, LOADED, BLAS, BLAS_HANDLE, BUCKET};
    *training = (struct training){.lab = lab_open()};
    vs_sites_start(&training->sites, training->lab.state);
    vs_lives_start(&training->lives, training->lab.state, NULL);
    lab_segment(&training->lab, 0x1000000, 16 * MIB);
    for (size_t i = 0; i < sizeof(once) / sizeof(once[0]); i++)
        make(training, MAIN_THREAD, once[i], 0);
    make(training, MAIN_THREAD, INITIALISED, 0);
    drop(training, MAIN_THREAD, INITIALISED, 0);
    for (int step = 0; step < 3; step++) {
        if (step != 0)
            drop(training, MAIN_THREAD, BATCH, 0);
        one_step(training, step == 0);
    }
    struct vs_stack_source source = {NULL, frames_of};
    cr_assert_eq(vs_sites_finish(&training->sites, training->lab.state), 0);
    cr_assert_eq(vs_places_create(training->lab.state, &training->sites, &source, VS_BY_LINE,
                                  &training->places),
                 0);
    cr_assert_eq(
        vs_categories_find(&training->places, &training->lives, NULL, NULL, &training->categories),
        0);
}

static void end(struct training *training)
{
    vs_categories_release(&training->categories);
    vs_places_release(&training->places);
    vs_lives_release(&training->lives);
    vs_sites_release(&training->sites);
    lab_close(&training->lab);
}

static enum vs_category_rule rule_of(const struct training *training, uint32_t stack)
{
    const struct vs_places *places = &training->places;
    for (size_t i = 0; i < places->count; i++)
        if (vs_places_site(places, &places->items[i])->stack == stack)
            return vs_categories_rule(&training->categories, places, &places->items[i]);
    cr_assert_fail("no place has stack %u", stack);
    return VS_RULE_NONE;
}

Test(categories, each_rule_decides_its_own)
{
    static const struct {
        uint32_t stack;
        enum vs_category_rule rule;
    } expected[] = {
        {APPLIED, VS_RULE_MODULE_APPLY},
        {BUILT, VS_RULE_MODULE_INIT},
        {INITIALISED, VS_RULE_FREED_WITHIN},
        {LOADED, VS_RULE_WEIGHTS_LOADED},
        {FORWARD, VS_RULE_FREED_IN_BACKWARD},
        {WITHIN_FORWARD, VS_RULE_FREED_WITHIN},
        {GRADIENT, VS_RULE_BACKWARD_KEPT},
        {IN_BACKWARD, VS_RULE_BACKWARD_FREED},
        {RECOMPUTED, VS_RULE_RECOMPUTED},
        {ADAM_STATE, VS_RULE_OPTIMIZER_INIT},
        {MOMENTUM, VS_RULE_OPTIMIZER_KEPT},
        {IN_STEP, VS_RULE_OPTIMIZER_FREED},
        {BLAS, VS_RULE_WORKSPACE},
        {BLAS_HANDLE, VS_RULE_WORKSPACE},
        {BUCKET, VS_RULE_COLLECTIVE},
        {BATCH, VS_RULE_NONE},
    };
    struct training training;
    train(&training);
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        cr_expect_eq(rule_of(&training, expected[i].stack), expected[i].rule, "stack %u: %d",
                     expected[i].stack, rule_of(&training, expected[i].stack));
    end(&training);
}

Test(categories, sums_are_those_of_the_layer)
{
    struct training training;
    train(&training);
    const struct vs_layer_total *layer = &lab_device(&training.lab)->layers[VS_LAYER_FRAMEWORK];
    struct vs_category_sums sums =
        vs_categories_sum(&training.categories, &training.places, 0, VS_LAYER_FRAMEWORK);
    int64_t peak = 0, at_end = 0;
    for (int i = 0; i < VS_CATEGORIES; i++) {
        peak += sums.at_peak[i];
        at_end += sums.at_end[i];
    }
    cr_assert_eq(peak, layer->peak_bytes);
    cr_assert_eq(at_end, layer->live_bytes);
    cr_assert_eq(sums.at_end[VS_CATEGORY_PARAMETERS], 3 * 512);
    cr_assert_eq(sums.at_end[VS_CATEGORY_OPTIMIZER_STATE], 2 * 512);
    cr_assert_eq(sums.at_end[VS_CATEGORY_GRADIENTS], 0);
    cr_assert_eq(sums.at_end[VS_CATEGORY_UNKNOWN], 512);
    end(&training);
}

/* What a library asks of the driver is told by whose it is. */
Test(categories, driver_memory_by_its_owner)
{
    struct training training = {.lab = lab_open()};
    vs_sites_start(&training.sites, training.lab.state);
    lab_alloc(&training.lab, NCCL, 0x100000, 4 * MIB);
    lab_alloc(&training.lab, PROGRAM, 0x900000, 2 * MIB);
    struct vs_stack_source source = {NULL, frames_of};
    cr_assert_eq(vs_sites_finish(&training.sites, training.lab.state), 0);
    cr_assert_eq(vs_places_create(training.lab.state, &training.sites, &source, VS_BY_LINE,
                                  &training.places),
                 0);
    cr_assert_eq(
        vs_categories_find(&training.places, &training.lives, NULL, NULL, &training.categories), 0);
    struct vs_category_sums sums =
        vs_categories_sum(&training.categories, &training.places, 0, VS_LAYER_DRIVER);
    cr_assert_eq(sums.at_peak[VS_CATEGORY_COMMUNICATION], 4 * (int64_t)MIB);
    cr_assert_eq(sums.at_peak[VS_CATEGORY_UNKNOWN], 2 * (int64_t)MIB);
    end(&training);
}
