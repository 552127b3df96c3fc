/* SPDX-License-Identifier: Apache-2.0 */
/* Ordered address ranges as a treap; nodes come from blocks and are reused. */
#include "ranges.h"

#include <stdlib.h>
#include <string.h>

enum { RANGES_PER_BLOCK = 256 };

struct vs_range_block {
    struct vs_range_block *next;
    struct vs_range ranges[RANGES_PER_BLOCK];
};

static bool holds(const struct vs_range *range, uint64_t address)
{
    return address - range->start < range->size;
}

struct vs_range *vs_ranges_find(struct vs_ranges *ranges, uint64_t address)
{
    if (ranges->last != NULL && holds(ranges->last, address))
        return ranges->last;
    struct vs_range *at = ranges->root;
    while (at != NULL) {
        if (holds(at, address)) {
            ranges->last = at;
            return at;
        }
        at = address < at->start ? at->left : at->right;
    }
    return NULL;
}

struct vs_range *vs_ranges_from(const struct vs_ranges *ranges, uint64_t address)
{
    struct vs_range *best = NULL;
    struct vs_range *at = ranges->root;
    while (at != NULL) {
        if (at->start >= address) {
            best = at;
            at = at->left;
        } else {
            at = at->right;
        }
    }
    return best;
}

struct vs_range *vs_ranges_overlap(struct vs_ranges *ranges, uint64_t start, uint64_t size)
{
    if (size == 0)
        return NULL;
    struct vs_range *found = vs_ranges_find(ranges, start);
    if (found != NULL)
        return found;
    found = vs_ranges_from(ranges, start);
    return found != NULL && found->start - start < size ? found : NULL;
}

static uint32_t next_priority(struct vs_ranges *ranges)
{
    uint32_t seed = ranges->seed == 0 ? 2463534242U : ranges->seed;
    seed ^= seed << 13;
    seed ^= seed >> 17;
    seed ^= seed << 5;
    ranges->seed = seed;
    return seed;
}

static struct vs_range *take_spare(struct vs_ranges *ranges)
{
    if (ranges->spare == NULL) {
        struct vs_range_block *block = malloc(sizeof(*block));
        if (block == NULL)
            return NULL;
        block->next = ranges->blocks;
        ranges->blocks = block;
        for (size_t i = 0; i < RANGES_PER_BLOCK; i++) {
            block->ranges[i].left = ranges->spare;
            ranges->spare = &block->ranges[i];
        }
    }
    struct vs_range *range = ranges->spare;
    ranges->spare = range->left;
    memset(range, 0, sizeof(*range));
    return range;
}

/* Cuts a tree into what starts below `start` and the rest. */
static void split(struct vs_range *tree, uint64_t start, struct vs_range **below,
                  struct vs_range **rest)
{
    while (tree != NULL) {
        if (tree->start < start) {
            *below = tree;
            below = &tree->right;
            tree = tree->right;
        } else {
            *rest = tree;
            rest = &tree->left;
            tree = tree->left;
        }
    }
    *below = NULL;
    *rest = NULL;
}

/* Everything in `below` starts before everything in `above`. */
static struct vs_range *join(struct vs_range *below, struct vs_range *above)
{
    struct vs_range *root = NULL;
    struct vs_range **link = &root;
    while (below != NULL && above != NULL) {
        if (below->priority > above->priority) {
            *link = below;
            link = &below->right;
            below = below->right;
        } else {
            *link = above;
            link = &above->left;
            above = above->left;
        }
    }
    *link = below != NULL ? below : above;
    return root;
}

struct vs_range *vs_ranges_insert(struct vs_ranges *ranges, uint64_t start, uint64_t size)
{
    struct vs_range *range = take_spare(ranges);
    if (range == NULL)
        return NULL;
    range->start = start;
    range->size = size;
    range->priority = next_priority(ranges);
    struct vs_range **link = &ranges->root;
    while (*link != NULL && (*link)->priority >= range->priority)
        link = start < (*link)->start ? &(*link)->left : &(*link)->right;
    split(*link, start, &range->left, &range->right);
    *link = range;
    ranges->count++;
    ranges->changes++;
    return range;
}

void vs_ranges_remove(struct vs_ranges *ranges, struct vs_range *range)
{
    struct vs_range **link = &ranges->root;
    while (*link != range)
        link = range->start < (*link)->start ? &(*link)->left : &(*link)->right;
    *link = join(range->left, range->right);
    if (ranges->last == range)
        ranges->last = NULL;
    range->left = ranges->spare;
    ranges->spare = range;
    ranges->count--;
    ranges->changes++;
}

void vs_ranges_release(struct vs_ranges *ranges)
{
    while (ranges->blocks != NULL) {
        struct vs_range_block *next = ranges->blocks->next;
        free(ranges->blocks);
        ranges->blocks = next;
    }
    *ranges = (struct vs_ranges){0};
}
