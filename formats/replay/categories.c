/* SPDX-License-Identifier: Apache-2.0 */
/* What memory is for: rules over the frames of a place and the lives of its blocks. */
#include "categories.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    PLACES_LOOKED_AT = 65536, /* of more, only those that hold memory at the peak or the end */
    THREADS_KEPT = 64,
    PART_OF_THE_RUN = 10,
    LEAST_KEPT = 256 /* one block in so many outlives the backward pass: these are gradients */
};

/* ---- names -------------------------------------------------------------------------------- */

static const struct {
    enum vs_category category;
    const char *name;
} rules[VS_RULES] = {
    [VS_RULE_NONE] = {VS_CATEGORY_UNKNOWN, NULL},
    [VS_RULE_MODULE_APPLY] = {VS_CATEGORY_PARAMETERS, "module_apply"},
    [VS_RULE_MODULE_INIT] = {VS_CATEGORY_PARAMETERS, "module_init"},
    [VS_RULE_WEIGHTS_LOADED] = {VS_CATEGORY_PARAMETERS, "weights_loaded"},
    [VS_RULE_OPTIMIZER_INIT] = {VS_CATEGORY_OPTIMIZER_STATE, "optimizer_init"},
    [VS_RULE_OPTIMIZER_KEPT] = {VS_CATEGORY_OPTIMIZER_STATE, "optimizer_kept"},
    [VS_RULE_OPTIMIZER_FREED] = {VS_CATEGORY_TEMPORARIES, "optimizer_freed"},
    [VS_RULE_BACKWARD_KEPT] = {VS_CATEGORY_GRADIENTS, "backward_kept"},
    [VS_RULE_BACKWARD_FREED] = {VS_CATEGORY_TEMPORARIES, "backward_freed"},
    [VS_RULE_RECOMPUTED] = {VS_CATEGORY_ACTIVATIONS, "recomputed"},
    [VS_RULE_FREED_IN_BACKWARD] = {VS_CATEGORY_ACTIVATIONS, "freed_in_backward"},
    [VS_RULE_FREED_WITHIN] = {VS_CATEGORY_TEMPORARIES, "freed_within"},
    [VS_RULE_COLLECTIVE] = {VS_CATEGORY_COMMUNICATION, "collective"},
    [VS_RULE_COMMUNICATION_OWNER] = {VS_CATEGORY_COMMUNICATION, "owner"},
    [VS_RULE_WORKSPACE] = {VS_CATEGORY_WORKSPACE, "workspace"},
    [VS_RULE_WORKSPACE_OWNER] = {VS_CATEGORY_WORKSPACE, "owner"},
};

enum vs_category vs_rule_category(enum vs_category_rule rule)
{
    return rules[rule].category;
}

const char *vs_rule_name(enum vs_category_rule rule)
{
    return rules[rule].name;
}

const char *vs_category_name(enum vs_category category)
{
    static const char *const names[VS_CATEGORIES] = {
        [VS_CATEGORY_UNKNOWN] = "unknown",
        [VS_CATEGORY_PARAMETERS] = "parameters",
        [VS_CATEGORY_GRADIENTS] = "gradients",
        [VS_CATEGORY_OPTIMIZER_STATE] = "optimizer_state",
        [VS_CATEGORY_ACTIVATIONS] = "activations",
        [VS_CATEGORY_TEMPORARIES] = "temporaries",
        [VS_CATEGORY_COMMUNICATION] = "communication",
        [VS_CATEGORY_WORKSPACE] = "workspace",
    };
    return names[category];
}

/* ---- frames ------------------------------------------------------------------------------- */

static bool is_python_in(const struct vs_frame *frame, const char *path)
{
    return frame->kind == VS_FRAME_PYTHON && frame->file != NULL &&
           strstr(frame->file, path) != NULL;
}

/* The function's own name: "step" of "Adam.step", all of "step". */
static const char *last_name(const struct vs_frame *frame)
{
    const char *dot = frame->function == NULL ? NULL : strrchr(frame->function, '.');
    return dot != NULL ? dot + 1 : frame->function != NULL ? frame->function : "";
}

static bool is_python_function(const struct vs_frame *frame, const char *path, const char *name)
{
    return is_python_in(frame, path) && strcmp(last_name(frame), name) == 0;
}

static bool is_native(const struct vs_frame *frame, const char *part)
{
    return frame->kind == VS_FRAME_NATIVE && frame->function != NULL &&
           strstr(frame->function, part) != NULL;
}

bool vs_frame_is_optimizer_step(const struct vs_frame *frame)
{
    return is_python_function(frame, "/torch/optim/", "step");
}

static bool loads_weights(const struct vs_frame *frame)
{
    return is_python_function(frame, "/torch/nn/modules/module.py", "load_state_dict") ||
           is_python_function(frame, "/accelerate/utils/modeling.py",
                              "set_module_tensor_to_device") ||
           (is_python_in(frame, "/transformers/modeling_utils.py") && frame->function != NULL &&
            strstr(frame->function, "load") != NULL);
}

static bool prepares_state(const struct vs_frame *frame)
{
    return is_python_function(frame, "/torch/optim/", "_init_group") ||
           is_python_function(frame, "/torch/optim/", "load_state_dict");
}

/* PyTorch gives a CUDA library its workspace where it makes the library's handle (2.5 on). */
static bool prepares_workspace(const struct vs_frame *frame)
{
    return is_native(frame, "Workspace") || is_native(frame, "getCurrentCUDABlas") ||
           is_native(frame, "getCurrentCUDASparse") || is_native(frame, "getCurrentCUDASolver") ||
           is_native(frame, "getCudnnHandle");
}

/* What the frames of a stack say; several can hold. */
struct origin {
    bool workspace, collective, checkpoint, engine;
    bool optimizer_init, optimizer_step;
    bool module_apply, module_init, initialiser, loads;
};

static struct origin origin_of(const struct vs_frame *frames, long count)
{
    struct origin origin = {0};
    for (long i = 0; i < count; i++) {
        const struct vs_frame *frame = &frames[i];
        origin.workspace |= prepares_workspace(frame);
        origin.collective |= is_native(frame, "c10d::");
        origin.engine |= is_native(frame, "torch::autograd::Engine::");
        origin.checkpoint |= is_python_in(frame, "/torch/utils/checkpoint.py");
        origin.optimizer_init |= prepares_state(frame);
        origin.optimizer_step |= vs_frame_is_optimizer_step(frame);
        origin.module_apply |= is_python_function(frame, "/torch/nn/modules/module.py", "_apply");
        origin.module_init |= is_python_function(frame, "/torch/nn/modules/", "__init__");
        origin.initialiser |= is_python_in(frame, "/torch/nn/init.py");
        origin.loads |= loads_weights(frame);
    }
    return origin;
}

/* ---- lives -------------------------------------------------------------------------------- */

/* Of all sites of a place; `live`: blocks at the end. */
struct life {
    uint64_t within, later, elsewhere, live, within_ticks;
    uint32_t thread, freer;
};

static void add_life(struct life *sum, const struct vs_life *life)
{
    sum->within += life->within;
    sum->later += life->later;
    sum->elsewhere += life->elsewhere;
    sum->within_ticks += life->within_ticks;
    sum->thread = life->thread;
    if (life->elsewhere != 0)
        sum->freer = life->freer;
}

static uint64_t kept(const struct life *life)
{
    return life->later + life->elsewhere + life->live;
}

/* Threads that run backward passes. */
struct threads {
    uint32_t items[THREADS_KEPT];
    size_t count;
};

static bool is_among(const struct threads *threads, uint32_t thread)
{
    for (size_t i = 0; i < threads->count; i++)
        if (threads->items[i] == thread)
            return true;
    return false;
}

static void add_thread(struct threads *threads, uint32_t thread)
{
    if (!is_among(threads, thread) && threads->count < THREADS_KEPT)
        threads->items[threads->count++] = thread;
}

struct looking {
    const struct vs_places *places;
    struct life *lives; /* by place */
    struct threads backward;
    uint64_t longest_ticks; /* that a temporary lives */
};

/* ---- the rules ------------------------------------------------------------------------------ */

/* Where one thread does all, what it holds for the whole run is freed before another allocates. */
static bool is_short(const struct life *life, uint64_t longest_ticks)
{
    return life->within_ticks / (life->within == 0 ? 1 : life->within) <= longest_ticks;
}

static enum vs_category_rule rule_of_life(const struct life *life, const struct looking *looking)
{
    const struct threads *backward = &looking->backward;
    uint64_t frees = life->within + life->later + life->elsewhere;
    if (frees == 0)
        return VS_RULE_NONE;
    if (life->elsewhere * 2 >= frees && is_among(backward, life->freer))
        return VS_RULE_FREED_IN_BACKWARD;
    return life->within >= 9 * kept(life) && is_short(life, looking->longest_ticks)
               ? VS_RULE_FREED_WITHIN
               : VS_RULE_NONE;
}

static enum vs_category_rule rule_of_block(const struct origin *origin, const struct life *life,
                                           const struct looking *looking)
{
    if (origin->workspace)
        return VS_RULE_WORKSPACE;
    if (origin->collective)
        return VS_RULE_COLLECTIVE;
    if (origin->optimizer_init)
        return VS_RULE_OPTIMIZER_INIT;
    if (origin->optimizer_step)
        return kept(life) > life->within ? VS_RULE_OPTIMIZER_KEPT : VS_RULE_OPTIMIZER_FREED;
    if (origin->engine && origin->checkpoint)
        return VS_RULE_RECOMPUTED;
    if (origin->engine)
        return kept(life) * LEAST_KEPT >= life->within + kept(life) ? VS_RULE_BACKWARD_KEPT
                                                                    : VS_RULE_BACKWARD_FREED;
    if (origin->module_apply)
        return VS_RULE_MODULE_APPLY;
    if (origin->loads)
        return VS_RULE_WEIGHTS_LOADED;
    if (origin->module_init && !origin->initialiser && kept(life) > life->within)
        return VS_RULE_MODULE_INIT;
    return rule_of_life(life, looking);
}

static bool begins_with_any(const char *name, const char *const *parts)
{
    for (; *parts != NULL; parts++)
        if (strncmp(name, *parts, strlen(*parts)) == 0)
            return true;
    return false;
}

static enum vs_category_rule rule_of_owner(const char *owner)
{
    static const char *const communication[] = {"libnccl", "libnvshmem", "libmpi", NULL};
    static const char *const workspace[] = {"libcublas",   "libcudnn",  "libcufft", "libcusolver",
                                            "libcusparse", "libcurand", NULL};
    if (begins_with_any(owner, communication))
        return VS_RULE_COMMUNICATION_OWNER;
    return begins_with_any(owner, workspace) ? VS_RULE_WORKSPACE_OWNER : VS_RULE_NONE;
}

/* ---- all places ----------------------------------------------------------------------------- */

static bool is_looked_at(const struct vs_places *places, const struct vs_place *place)
{
    return places->count <= PLACES_LOOKED_AT || place->stats.peak_bytes != 0 ||
           place->stats.live_bytes != 0;
}

static struct origin origin_of_place(const struct vs_places *places, const struct vs_place *place)
{
    const struct vs_frame *frames = NULL;
    long count = place->has_stack ? vs_places_frames(places, place, &frames) : 0;
    return origin_of(frames, count);
}

static void collect_lives(struct looking *looking, const struct vs_lives *lives)
{
    const struct vs_places *places = looking->places;
    for (size_t site = 0; site < lives->count; site++)
        add_life(&looking->lives[places->of_site[site]], &lives->items[site]);
    for (size_t i = 0; i < places->count; i++)
        if (places->items[i].stats.live_count > 0)
            looking->lives[i].live = (uint64_t)places->items[i].stats.live_count;
}

/* The first look: which threads run backward passes. */
static void find_backward(struct looking *looking)
{
    const struct vs_places *places = looking->places;
    for (size_t i = 0; i < places->count; i++) {
        const struct vs_place *place = &places->items[i];
        if (place->has_stack && vs_places_site(places, place)->layer == VS_LAYER_FRAMEWORK &&
            is_looked_at(places, place) && origin_of_place(places, place).engine)
            add_thread(&looking->backward, looking->lives[i].thread);
    }
}

static enum vs_category_rule decide(const struct looking *looking, size_t index)
{
    const struct vs_places *places = looking->places;
    const struct vs_place *place = &places->items[index];
    const struct vs_site *site = vs_places_site(places, place);
    if (site->kind != VS_SITE_CALL || site->segment || !is_looked_at(places, place))
        return VS_RULE_NONE;
    if (site->layer != VS_LAYER_FRAMEWORK)
        return rule_of_owner(vs_state_owner_name(places->state, site->owner));
    struct origin origin = origin_of_place(places, place);
    return rule_of_block(&origin, &looking->lives[index], looking);
}

/* ---- gradients at a peak ----------------------------------------------------------------------
 */

struct summing {
    const struct vs_places *places;
    struct vs_categories *categories;
};

/* A later backward pass adds its gradients to those that are there, and frees them at once. */
static void note_added(void *self, const struct vs_lifetime *life)
{
    const struct summing *summing = self;
    uint32_t place = summing->places->of_site[life->site - 1];
    if (life->within && summing->categories->rules[place] == VS_RULE_BACKWARD_KEPT)
        summing->categories->added_bytes[place] += life->bytes;
}

static void find_added(const struct vs_places *places, const struct vs_lifetimes *lifetimes,
                       struct vs_categories *out)
{
    struct summing summing = {places, out};
    for (size_t i = 0; i < VS_DEVICE_SLOTS; i++)
        if (places->state->devices[i] != NULL && places->state->devices[i]->device >= 0)
            vs_lifetimes_each_at_peak(lifetimes, places->state, places->state->devices[i],
                                      note_added, &summing);
}

/* Two steps (an output lives until the next one is there); without steps, a tenth of the run. */
static uint64_t longest_of_temporaries(const struct vs_lifetimes *lifetimes,
                                       const struct vs_steps *steps)
{
    if (lifetimes == NULL)
        return UINT64_MAX;
    if (steps->beats == NULL || steps->count == 0)
        return lifetimes->growth->tick / PART_OF_THE_RUN;
    uint64_t ticks = steps->beats->items[steps->windows].tick - steps->beats->items[0].tick;
    return 2 * (ticks / steps->count + 1);
}

int vs_categories_find(const struct vs_places *places, const struct vs_lives *lives,
                       const struct vs_lifetimes *lifetimes, const struct vs_steps *steps,
                       struct vs_categories *out)
{
    struct looking looking = {.places = places,
                              .longest_ticks = longest_of_temporaries(lifetimes, steps),
                              .lives = calloc(places->count + 1, sizeof(*looking.lives))};
    *out =
        (struct vs_categories){.rules = calloc(places->count + 1, sizeof(*out->rules)),
                               .added_bytes = calloc(places->count + 1, sizeof(*out->added_bytes)),
                               .count = places->count};
    bool room = looking.lives != NULL && out->rules != NULL && out->added_bytes != NULL;
    if (room) {
        collect_lives(&looking, lives);
        find_backward(&looking);
        for (size_t i = 0; i < places->count; i++)
            out->rules[i] = (uint8_t)decide(&looking, i);
        if (lifetimes != NULL)
            find_added(places, lifetimes, out);
    }
    free(looking.lives);
    return room ? 0 : -ENOMEM;
}

void vs_categories_release(struct vs_categories *categories)
{
    free(categories->rules);
    free(categories->added_bytes);
}

enum vs_category_rule vs_categories_rule(const struct vs_categories *categories,
                                         const struct vs_places *places,
                                         const struct vs_place *place)
{
    return (enum vs_category_rule)categories->rules[place - places->items];
}

struct vs_category_sums vs_categories_sum(const struct vs_categories *categories,
                                          const struct vs_places *places, int8_t device,
                                          enum vs_layer layer)
{
    struct vs_category_sums sums = {{0}, {0}};
    for (size_t i = 0; i < places->count; i++) {
        const struct vs_place *place = &places->items[i];
        const struct vs_site *site = vs_places_site(places, place);
        if (site->device != device || site->layer != layer)
            continue;
        enum vs_category category = vs_rule_category((enum vs_category_rule)categories->rules[i]);
        sums.at_peak[category] += place->stats.peak_bytes - categories->added_bytes[i];
        sums.at_peak[VS_CATEGORY_TEMPORARIES] += categories->added_bytes[i];
        sums.at_end[category] += place->stats.live_bytes;
    }
    return sums;
}
