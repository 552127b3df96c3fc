/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cache keeps the memory of graphs in pools of their own: what is free there is
 * of use to nobody else, and what is free elsewhere is of none to a capture, which
 * gives nothing back to the device while it goes on.
 */
#include "oom_pools.h"

#include <inttypes.h>
#include <stdio.h>

#include "format_size.h"

static struct vs_size_text size(uint64_t bytes)
{
    return vs_format_size((int64_t)bytes);
}

bool vs_oom_pool_gives_back(const struct vs_state *state, const struct vs_segment *segment)
{
    return segment->pool < VS_CACHE_POOL_PRIVATE || !vs_state_pool_in_use(state, segment->pool);
}

struct vs_oom_free vs_oom_usable(const struct vs_oom *oom, const struct vs_layout *layout)
{
    struct vs_oom_free usable = {0};
    for (size_t i = 0; i < layout->count; i++) {
        const struct vs_segment *segment = &layout->segments[i];
        if (!vs_oom_may_use(oom, segment))
            continue;
        usable.bytes += segment->free_bytes;
        if (segment->largest_free_bytes > usable.largest)
            usable.largest = segment->largest_free_bytes;
    }
    return usable;
}

/* What is free in the pools that the request could not use. */
struct elsewhere {
    uint64_t private_free;    /* in private pools that somebody may still use */
    uint64_t private_largest; /* the largest block of it */
    size_t pools, users;      /* those with something free; of them the program's own */
    uint64_t releasable;      /* in the others: the default pool's, and those nobody uses */
};

/* Of one pool, counted at its first segment in the layout. */
static void add_pool(struct elsewhere *sum, const struct vs_layout *layout, size_t first)
{
    uint32_t pool = layout->segments[first].pool;
    uint64_t free_bytes = 0;
    for (size_t i = 0; i < layout->count; i++) {
        const struct vs_segment *segment = &layout->segments[i];
        if (segment->pool != pool)
            continue;
        if (i < first)
            return; /* counted */
        free_bytes += segment->free_bytes;
        if (segment->largest_free_bytes > sum->private_largest)
            sum->private_largest = segment->largest_free_bytes;
    }
    sum->private_free += free_bytes;
    sum->pools += free_bytes != 0;
    sum->users += free_bytes != 0 && pool >= VS_CACHE_POOL_USER;
}

static struct elsewhere look_elsewhere(const struct vs_state *state, const struct vs_oom *oom,
                                       const struct vs_layout *layout)
{
    struct elsewhere sum = {0};
    for (size_t i = 0; i < layout->count; i++) {
        const struct vs_segment *segment = &layout->segments[i];
        if (vs_oom_may_use(oom, segment))
            continue;
        if (vs_oom_pool_gives_back(state, segment))
            sum.releasable += segment->releasable_bytes;
        else
            add_pool(&sum, layout, i);
    }
    return sum;
}

/* A capture, or what is asked for beside it, does without what is cached elsewhere. */
static bool decided_by_capture(struct vs_oom *oom, const struct elsewhere *sum, uint64_t lack)
{
    if (!vs_pool_is_graphs(oom->pool) || sum->releasable < lack)
        return false;
    vs_oom_decide(oom, VS_OOM_HELD_BY_CACHE,
                  "%s were asked for inside a capture and %s were free on the device; %s that no "
                  "block touches were cached outside of the capture's pool, and a capture gives "
                  "nothing back: torch.cuda.empty_cache() before it does",
                  size(oom->requested).text, size(oom->free_bytes).text,
                  size(sum->releasable).text);
    return true;
}

static bool decided_by_private(struct vs_oom *oom, const struct elsewhere *sum, uint64_t lack)
{
    if (sum->private_free < lack && sum->private_largest < oom->requested)
        return false;
    bool one = sum->pools == 1, users = sum->users == sum->pools;
    const char *owners = users             ? (one ? "its MemPool" : "their MemPools")
                         : sum->users != 0 ? "their graphs and MemPools"
                                           : (one ? "its graph" : "their graphs");
    char pools[32] = "a private pool", remedy[64];
    if (!one)
        snprintf(pools, sizeof(pools), "%zu private pools", sum->pools);
    if (vs_pool_is_graphs(oom->pool) && sum->users == 0)
        snprintf(remedy, sizeof(remedy),
                 "graphs that never run at the same time can share one (pool=)");
    else
        snprintf(remedy, sizeof(remedy), "it goes back when %s %s deleted", owners,
                 one ? "is" : "are");
    vs_oom_decide(oom, VS_OOM_FULL,
                  "%s were asked for and %s free on the device, while %s lay free in %s, which "
                  "only %s can use; %s",
                  size(oom->requested).text, size(oom->free_bytes).text,
                  size(sum->private_free).text, pools, owners, remedy);
    oom->by_pools = true;
    return true;
}

bool vs_oom_decided_by_pools(const struct vs_state *state, struct vs_oom *oom,
                             const struct vs_layout *layout)
{
    if (oom->layer != VS_LAYER_FRAMEWORK || oom->pool < VS_CACHE_POOL_DEFAULT ||
        oom->free_bytes > INT64_MAX)
        return false;
    struct elsewhere sum = look_elsewhere(state, oom, layout);
    uint64_t lack = oom->requested > oom->free_bytes ? oom->requested - oom->free_bytes : 0;
    struct vs_oom_free usable = vs_oom_usable(oom, layout);
    if (lack == 0)
        return false;
    if (decided_by_capture(oom, &sum, lack))
        return true;
    return sum.private_free > usable.bytes && decided_by_private(oom, &sum, lack);
}
