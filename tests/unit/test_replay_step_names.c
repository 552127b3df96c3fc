/* SPDX-License-Identifier: Apache-2.0 */
/* Which names of phases, ranges and marks are taken for steps. */
#include <criterion/criterion.h>

#include "replay/analysis.h"
#include "replay/growth.h"

static void expect_all(const char *const *names, enum vs_name_says says)
{
    for (; *names != NULL; names++)
        cr_expect_eq(vs_step_name_says(*names), says, "\"%s\" says %d", *names,
                     vs_step_name_says(*names));
}

Test(step_names, steps)
{
    static const char *const names[] = {"step",
                                        "step 12",
                                        "Step: 12",
                                        "STEP 3",
                                        "step12",
                                        "step_12",
                                        "train_step",
                                        "trainStep",
                                        "TrainStep",
                                        "NCCLStep",
                                        "training_step",
                                        "train.step/7",
                                        "global step 100",
                                        "timestep 4",
                                        "iter",
                                        "iter 5",
                                        "iteration_3",
                                        "Iteration 3",
                                        "iteration",
                                        "epoch 2 iter 5",
                                        "12th step",
                                        "Optimizer.step#AdamW.step",
                                        "library:step 3",
                                        "forward of step 3",
                                        "höhe step",
                                        NULL};
    expect_all(names, VS_SAYS_STEP);
}

Test(step_names, passes)
{
    static const char *const names[] = {
        "batch",          "batch 12", "train_batch", "microbatch",      "processBatch",
        "Linear.forward", "forward",  "batch_12",    "norm of a batch", NULL};
    expect_all(names, VS_SAYS_PASS);
}

Test(step_names, others_are_none)
{
    static const char *const names[] = {"",
                                        " ",
                                        "12",
                                        "::",
                                        "stepper motor",
                                        "steps",
                                        "footsteps",
                                        "stepwise",
                                        "stepping",
                                        "SummaryWriter",
                                        "writer",
                                        "literal",
                                        "criteria",
                                        "criterion",
                                        "arbiter",
                                        "iterator",
                                        "iterate",
                                        "reiterated",
                                        "BatchNorm2d",
                                        "batch_norm",
                                        "native_batch_norm",
                                        "batch_size",
                                        "batch size 8",
                                        "BATCH SIZE",
                                        "batches",
                                        "aten::batch_norm, seq = 1",
                                        "aten::step",
                                        "autograd::engine::evaluate_function: AddBackward0",
                                        "forwarded",
                                        "feedforward",
                                        "epoch 3",
                                        "evaluate",
                                        "st ep",
                                        "s t e p",
                                        "schritt",
                                        "pas à pas",
                                        "\xff\xfe",
                                        NULL};
    expect_all(names, VS_SAYS_NOTHING);
}

/* Longer than is looked at: what is behind 31 letters is not told. */
Test(step_names, may_be_long)
{
    static const char *const names[] = {"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz_step",
                                        "x x x x x x x x step", NULL};
    expect_all(names, VS_SAYS_STEP);
    cr_expect_eq(vs_step_name_says("abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"),
                 VS_SAYS_NOTHING);
}

/* Names that differ in numbers only are one name. */
Test(step_names, numbers_make_no_other_name)
{
    static const char *const same[][2] = {{"step 1", "step 22"},
                                          {"iteration_3", "iteration_0"},
                                          {"epoch 1 step 2", "epoch 10 step 99"},
                                          {"12", "7"}};
    static const char *const different[][2] = {{"step 1", "step"},          {"step 1", "Step 1"},
                                               {"step 1", "step_1"},        {"step 1", "step 1.5"},
                                               {"train step", "eval step"}, {"step 1", "step x"}};
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
        cr_expect_eq(vs_name_pattern(same[i][0]), vs_name_pattern(same[i][1]), "%s", same[i][0]);
    for (size_t i = 0; i < sizeof(different) / sizeof(different[0]); i++)
        cr_expect_neq(vs_name_pattern(different[i][0]), vs_name_pattern(different[i][1]), "%s, %s",
                      different[i][0], different[i][1]);
}
