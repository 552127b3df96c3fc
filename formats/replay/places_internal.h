/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of places.h know of each other. */
#ifndef VS_REPLAY_PLACES_INTERNAL_H
#define VS_REPLAY_PLACES_INTERNAL_H

#include <xxhash.h>

#include "places.h"

/* What a stack id means: hashes of its frames, and of what its group is told by. */
struct stack {
    XXH128_hash_t frames, group;
    uint32_t id;
    uint32_t lowest; /* id of those with the same frames */
    bool known;      /* it has a frame to be named after */
};

struct making {
    struct vs_places *places;
    const struct vs_sites *sites;
    struct stack *stacks; /* by id */
    size_t stack_count;
    struct vs_sizes unnamed;
    XXH3_state_t *hash;
};

/* places_stacks.c: fills `stacks` with every stack id of the sites, once. 0 or -ENOMEM. */
int places_merge_stacks(struct making *making);
/* NULL when no site has this id. */
const struct stack *places_stack(const struct making *making, uint32_t id);

#endif
