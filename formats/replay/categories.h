/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What memory is for, told without touching the program: from where it was asked
 * for and how long it lives. A place has one category and the rule that decided
 * it, or `unknown`, where none did. The rules are in docs/numbers.md.
 */
#ifndef VS_REPLAY_CATEGORIES_H
#define VS_REPLAY_CATEGORIES_H

#include "lifetimes.h"
#include "places.h"

enum vs_category {
    VS_CATEGORY_UNKNOWN,
    VS_CATEGORY_PARAMETERS,
    VS_CATEGORY_GRADIENTS,
    VS_CATEGORY_OPTIMIZER_STATE,
    VS_CATEGORY_ACTIVATIONS,
    VS_CATEGORY_TEMPORARIES,
    VS_CATEGORY_COMMUNICATION,
    VS_CATEGORY_WORKSPACE,
    VS_CATEGORIES
};

enum vs_category_rule {
    VS_RULE_NONE,
    VS_RULE_MODULE_APPLY,
    VS_RULE_MODULE_INIT,
    VS_RULE_WEIGHTS_LOADED,
    VS_RULE_OPTIMIZER_INIT,
    VS_RULE_OPTIMIZER_KEPT,
    VS_RULE_OPTIMIZER_FREED,
    VS_RULE_BACKWARD_KEPT,
    VS_RULE_BACKWARD_FREED,
    VS_RULE_RECOMPUTED,
    VS_RULE_FREED_IN_BACKWARD,
    VS_RULE_FREED_WITHIN,
    VS_RULE_COLLECTIVE,
    VS_RULE_COMMUNICATION_OWNER,
    VS_RULE_WORKSPACE,
    VS_RULE_WORKSPACE_OWNER,
    VS_RULES
};

struct vs_categories {
    uint8_t *rules; /* of each place: enum vs_category_rule */
    /*
     * Of each place of gradients: those of its device's peak that were about to be added to others
     * and are no gradients, but temporaries. Of the top layer only.
     */
    int64_t *added_bytes;
    size_t count;
};

/* What the top layer of one device held, by category; the sums are the layer's own figures. */
struct vs_category_sums {
    int64_t at_peak[VS_CATEGORIES], at_end[VS_CATEGORIES];
};

/*
 * 0 or -ENOMEM; release in any case. Of very many places only those that hold memory are told.
 * `lifetimes` NULL: gradients that are about to be added are not told from others, nor what one
 * thread holds for long from temporaries. `steps` as growth found them; not looked at then.
 */
int vs_categories_find(const struct vs_places *places, const struct vs_lives *lives,
                       const struct vs_lifetimes *lifetimes, const struct vs_steps *steps,
                       struct vs_categories *out);
void vs_categories_release(struct vs_categories *categories);

enum vs_category_rule vs_categories_rule(const struct vs_categories *categories,
                                         const struct vs_places *places,
                                         const struct vs_place *place);
struct vs_category_sums vs_categories_sum(const struct vs_categories *categories,
                                          const struct vs_places *places, int8_t device,
                                          enum vs_layer layer);

enum vs_category vs_rule_category(enum vs_category_rule rule);
/* "optimizer_init"; NULL for VS_RULE_NONE. */
const char *vs_rule_name(enum vs_category_rule rule);
/* "optimizer_state". */
const char *vs_category_name(enum vs_category category);

/* A frame of the step of one of PyTorch's optimizers. */
bool vs_frame_is_optimizer_step(const struct vs_frame *frame);

#endif
