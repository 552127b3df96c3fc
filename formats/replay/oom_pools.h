/* SPDX-License-Identifier: Apache-2.0 */
/* What the pools of a cache keep from a request of the framework that failed. */
#ifndef VS_REPLAY_OOM_POOLS_H
#define VS_REPLAY_OOM_POOLS_H

#include "analysis.h"
#include "segments.h"

/* Whether the request could be met from the segment's pool; true where a pool is not known. */
static inline bool vs_oom_may_use(const struct vs_oom *oom, const struct vs_segment *segment)
{
    return oom->pool < VS_CACHE_POOL_DEFAULT || segment->pool < VS_CACHE_POOL_DEFAULT ||
           segment->pool == oom->pool;
}

/*
 * Whether whole free segments of it go back to the device when memory runs short, or when the
 * program empties the cache: all but those of a private pool that somebody may still use.
 */
bool vs_oom_pool_gives_back(const struct vs_state *state, const struct vs_segment *segment);

/* Free bytes, and the largest block of them, in the segments that the request could use. */
struct vs_oom_free {
    uint64_t bytes, largest;
};
struct vs_oom_free vs_oom_usable(const struct vs_oom *oom, const struct vs_layout *layout);

/*
 * Decides class and `why` where other pools than the request's hold what was missing. False:
 * they do not. A look at the layout alone: O(segments · pools).
 */
bool vs_oom_decided_by_pools(const struct vs_state *state, struct vs_oom *oom,
                             const struct vs_layout *layout);

#endif
