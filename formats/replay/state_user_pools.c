/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools of the program's own, used without a capture (PyTorch's use_mem_pool). What
 * is seen is that the pool's id is asked for, and from where: as a use begins, as
 * it ends (twice), or by somebody else, who may do anything with it. From then on
 * a segment whose pool does not follow is of none that is known.
 */
#include <string.h>

#include "state_internal.h"

enum asked { BY_BEGIN, BY_END, BY_LOOKER, BY_OTHER };

static bool ends_in(const char *text, const char *end)
{
    size_t length = text == NULL ? 0 : strlen(text), least = strlen(end);
    return length >= least && strcmp(text + length - least, end) == 0;
}

/* The function that a frame runs, if it is one of PyTorch's file of that name; NULL else. */
static const char *function_in(const struct vs_state *state, uint32_t stack, unsigned index,
                               const char *file)
{
    const char *of = NULL;
    const char *name = state->names.code == NULL || stack == 0
                           ? NULL
                           : state->names.code(state->names.self, stack, index, &of);
    return name != NULL && ends_in(of, file) ? name : NULL;
}

static enum asked who_asked(const struct vs_state *state, uint32_t stack)
{
    static const char memory[] = "torch/cuda/memory.py";
    unsigned at = 0;
    const char *function = function_in(state, stack, at, memory);
    if (ends_in(function, "MemPool.id") || (function != NULL && strcmp(function, "id") == 0))
        function = function_in(state, stack, ++at, memory);
    if (ends_in(function, "snapshot"))
        return BY_LOOKER;
    if (!ends_in(function, "use_mem_pool"))
        return BY_OTHER;
    const char *caller = function_in(state, stack, at + 1, "contextlib.py");
    return ends_in(caller, "__enter__")  ? BY_BEGIN
           : ends_in(caller, "__exit__") ? BY_END
                                         : BY_OTHER;
}

/* The framework numbers a program's own pools apart from those of graphs. */
static uint32_t pool_of_id(const struct vs_event *event)
{
    return event->extra[0] == 0 && event->extra[1] < VS_CACHE_POOL_USER
               ? VS_CACHE_POOL_USER + (uint32_t)event->extra[1]
               : VS_CACHE_POOL_UNKNOWN;
}

static void begin_use(struct vs_state *state, const struct vs_sequenced_event *sequenced)
{
    const struct vs_event *event = &sequenced->event;
    struct vs_pool_use *use = vs_pool_uses_put(&state->pool_uses, sequenced->thread);
    if (use == NULL) {
        state_fail(state);
        return;
    }
    if (use->depth < VS_POOL_USES) {
        use->pools[use->depth] = pool_of_id(event);
        use->sites[use->depth] =
            vs_state_site_of(state, event, event->device, VS_LAYER_DRIVER, false);
        use->devices[use->depth] = event->device;
    }
    use->depth++;
    use->ended = false;
}

static void end_use(struct vs_state *state, uint32_t thread)
{
    struct vs_pool_use *use = vs_pool_uses_get(&state->pool_uses, thread);
    if (use == NULL)
        return;
    use->ended = !use->ended;
    if (use->ended && use->depth > 0)
        use->depth--;
    if (!use->ended && use->depth == 0)
        vs_pool_uses_remove(&state->pool_uses, thread);
}

void user_pool_asked(struct vs_state *state, const struct vs_sequenced_event *sequenced)
{
    const struct vs_event *event = &sequenced->event;
    uint32_t pool = pool_of_id(event);
    state->pools_seen = true;
    state->pool_of_all = state->pool_of_all || event->pool != 0;
    if (pool >= VS_CACHE_POOL_USER)
        cache_keeper_comes(state, event->handle, pool);
    switch (who_asked(state, event->stack)) {
    case BY_BEGIN:
        begin_use(state, sequenced);
        break;
    case BY_END:
        end_use(state, sequenced->thread);
        break;
    case BY_LOOKER:
        break;
    case BY_OTHER:
        state->pools_unclear = true;
        break;
    }
}

bool user_pool_used(const struct vs_state *state, uint32_t thread)
{
    const struct vs_pool_use *use = vs_pool_uses_get(&state->pool_uses, thread);
    return use != NULL && use->depth > 0;
}

/* A use is for one device, which need not be the one that was current, if any was. */
static bool is_for_device(const struct vs_state *state, const struct vs_pool_use *use,
                          int8_t device)
{
    size_t count = 0;
    if (use->devices[0] != device && use->devices[0] != VS_DEVICE_UNKNOWN)
        return false;
    for (size_t i = VS_DEVICE_OFFSET; i < VS_DEVICE_SLOTS; i++)
        count += state->devices[i] != NULL && state->devices[i]->framework_seen;
    return count <= 1;
}

bool user_pools_used(const struct vs_state *state)
{
    size_t index = 0;
    uint64_t thread;
    const struct vs_pool_use *use;
    while ((use = vs_pool_uses_next(&state->pool_uses, &index, &thread)) != NULL)
        if (use->depth > 0)
            return true;
    return false;
}

/* The graph trees of torch.compile warm up in the pool of their graphs, and ask nobody. */
static bool by_graph_trees(const struct vs_state *state, uint32_t stack)
{
    const char *file;
    for (unsigned i = 0; state->names.code != NULL && stack != 0; i++) {
        file = NULL;
        if (state->names.code(state->names.self, stack, i, &file) == NULL)
            return false;
        if (ends_in(file, "torch/_inductor/cudagraph_trees.py"))
            return true;
    }
    return false;
}

struct vs_cache_owner user_pool_of(const struct vs_state *state,
                                   const struct vs_sequenced_event *sequenced)
{
    const struct vs_event *event = &sequenced->event;
    const struct vs_pool_use *use = vs_pool_uses_get(&state->pool_uses, sequenced->thread);
    struct vs_cache_owner unknown = {.pool = VS_CACHE_POOL_UNKNOWN};
    if (state->pools_seen && vs_state_lossy(state))
        return unknown;
    if (use == NULL || use->depth == 0)
        return state->pools_unclear || (state->pool_of_all && user_pools_used(state)) ||
                       by_graph_trees(state, event->stack)
                   ? unknown
                   : (struct vs_cache_owner){.pool = VS_CACHE_POOL_DEFAULT};
    if (use->depth > VS_POOL_USES || !is_for_device(state, use, event->device))
        return unknown;
    for (uint32_t i = 1; i < use->depth; i++)
        if (use->pools[i] != use->pools[0])
            return unknown;
    return (struct vs_cache_owner){use->pools[0], use->sites[0]};
}
