/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Free blocks by address: see free_blocks.h. They are a treap in which every node
 * knows the largest block below it. Which blocks are taken is kept as well, since an
 * event that frees one does not always say how large it was.
 */
#include "free_blocks.h"

#include <stdlib.h>

#include "grow.h"
#include "segments.h"

enum { BLOCKS_PER_QUESTION = 16 };

/* Node 0 is no node. */
struct node {
    uint64_t start, end, most; /* most: bytes of the largest block in the tree below */
    uint32_t left, right, priority;
};

struct span {
    uint64_t start, end;
};

struct vs_free_space_of {
    int8_t device;
    bool kept;             /* what follows is the state's */
    uint64_t questions;    /* since it was taken */
    struct vs_sizes taken; /* blocks that live or wait, by address */
    struct span *spans;    /* segments, by address */
    size_t span_count, span_room;
    struct node *nodes;
    size_t node_count, node_room;
    uint32_t root, spare, seed; /* spare: a list by `left` */
};

/* ---- the tree ------------------------------------------------------------------------- */

static void refresh(struct vs_free_space_of *space, uint32_t at)
{
    struct node *node = &space->nodes[at];
    uint64_t left = space->nodes[node->left].most, right = space->nodes[node->right].most;
    node->most = node->end - node->start;
    if (left > node->most)
        node->most = left;
    if (right > node->most)
        node->most = right;
}

static uint32_t new_node(struct vs_free_space_of *space, uint64_t start, uint64_t end)
{
    uint32_t at = space->spare;
    if (at != 0) {
        space->spare = space->nodes[at].left;
    } else {
        if (!vs_grow(&space->nodes, &space->node_room, space->node_count + 2,
                     sizeof(*space->nodes)))
            return 0;
        at = (uint32_t)++space->node_count;
    }
    space->seed = space->seed * 1664525U + 1013904223U;
    space->nodes[at] = (struct node){start, end, end - start, 0, 0, space->seed >> 8};
    return at;
}

/* Cuts a tree into what starts below `start` and the rest. */
static void split(struct vs_free_space_of *space, uint32_t tree, uint64_t start, uint32_t *below,
                  uint32_t *rest)
{
    uint32_t part = 0;
    if (tree == 0) {
        *below = *rest = 0;
        return;
    }
    if (space->nodes[tree].start < start) {
        split(space, space->nodes[tree].right, start, &part, rest);
        space->nodes[tree].right = part;
        *below = tree;
    } else {
        split(space, space->nodes[tree].left, start, below, &part);
        space->nodes[tree].left = part;
        *rest = tree;
    }
    refresh(space, tree);
}

/* Everything in `below` starts before everything in `above`. */
static uint32_t join(struct vs_free_space_of *space, uint32_t below, uint32_t above)
{
    if (below == 0 || above == 0)
        return below == 0 ? above : below;
    bool down = space->nodes[below].priority > space->nodes[above].priority;
    uint32_t root = down ? below : above;
    uint32_t under = down ? join(space, space->nodes[below].right, above)
                          : join(space, below, space->nodes[above].left);
    *(down ? &space->nodes[root].right : &space->nodes[root].left) = under;
    refresh(space, root);
    return root;
}

static bool insert(struct vs_free_space_of *space, uint64_t start, uint64_t end)
{
    uint32_t below, rest, at = start == end ? 0 : new_node(space, start, end);
    if (at == 0)
        return start == end;
    split(space, space->root, start, &below, &rest);
    space->root = join(space, join(space, below, at), rest);
    return true;
}

/* Takes the free block that starts there out; it is in the tree. */
static void erase(struct vs_free_space_of *space, uint64_t start)
{
    uint32_t below, rest, at;
    split(space, space->root, start, &below, &rest);
    split(space, rest, start + 1, &at, &rest);
    space->root = join(space, below, rest);
    space->nodes[at].left = space->spare;
    space->spare = at;
}

/* The free block with the highest start up to `address`; zeros: there is none. */
static struct span last_from(const struct vs_free_space_of *space, uint64_t address)
{
    struct span best = {0, 0};
    for (uint32_t at = space->root; at != 0;) {
        const struct node *node = &space->nodes[at];
        if (node->start <= address)
            best = (struct span){node->start, node->end};
        at = node->start <= address ? node->right : node->left;
    }
    return best;
}

/* ---- blocks ------------------------------------------------------------------------------ */

static const struct span *span_of(const struct vs_free_space_of *space, uint64_t address)
{
    size_t low = 0, high = space->span_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (space->spans[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < space->span_count && space->spans[low].start <= address ? &space->spans[low]
                                                                         : NULL;
}

/* False: it does not lie in one free block. */
static bool take(struct vs_free_space_of *space, uint64_t start, uint64_t end)
{
    struct span hole = last_from(space, start);
    if (start >= end || hole.end < end || hole.end <= start)
        return false;
    erase(space, hole.start);
    uint64_t *size = vs_sizes_put(&space->taken, start);
    if (size == NULL)
        return false;
    *size = end - start;
    return insert(space, hole.start, start) && insert(space, end, hole.end);
}

/* Joins it with the free ones beside it in its segment. */
static bool give_back(struct vs_free_space_of *space, uint64_t start, uint64_t end)
{
    const struct span *segment = span_of(space, start);
    if (segment == NULL || end > segment->end)
        return false;
    struct span before =
        start == segment->start ? (struct span){0, 0} : last_from(space, start - 1);
    struct span after = end == segment->end ? (struct span){0, 0} : last_from(space, end);
    vs_sizes_remove(&space->taken, start);
    if (before.end == start && before.end > before.start) {
        erase(space, before.start);
        start = before.start;
    }
    if (after.start == end && after.end > after.start) {
        erase(space, after.start);
        end = after.end;
    }
    return insert(space, start, end);
}

/* ---- taking it anew ------------------------------------------------------------------------ */

static void forget(struct vs_free_space_of *space)
{
    vs_sizes_release(&space->taken);
    space->taken = (struct vs_sizes){0};
    space->span_count = space->node_count = 0;
    space->root = space->spare = 0;
}

static bool take_segment(struct vs_free_space_of *space, const struct vs_layout *layout,
                         const struct vs_segment *segment)
{
    uint64_t from = segment->address, end = segment->address + segment->size;
    bool fine =
        vs_grow(&space->spans, &space->span_room, space->span_count + 1, sizeof(*space->spans));
    if (fine)
        space->spans[space->span_count++] = (struct span){from, end};
    for (size_t i = 0; i < segment->block_count && fine; i++) {
        const struct vs_segment_block *block = &layout->blocks[segment->first_block + i];
        uint64_t *size = vs_sizes_put(&space->taken, block->address);
        fine = size != NULL && block->address >= from && insert(space, from, block->address);
        from = block->address + block->size;
        if (size != NULL)
            *size = block->size;
    }
    return fine && from <= end && insert(space, from, end);
}

/* Returns whether it is known; kept only where every segment is reserved as a whole. */
static bool take_anew(struct vs_free_space_of *space, const struct vs_state *state,
                      const struct vs_device_state *device, uint64_t *largest)
{
    struct vs_layout layout;
    bool known = vs_layout_take(state, device, &layout) == 0 && layout.known;
    *largest = layout.largest_free_bytes;
    forget(space);
    space->questions = 0;
    space->kept = known && vs_grow(&space->nodes, &space->node_room, 1, sizeof(*space->nodes));
    for (size_t i = 0; i < layout.count && space->kept; i++)
        space->kept = layout.segments[i].reserved_bytes >= layout.segments[i].size &&
                      take_segment(space, &layout, &layout.segments[i]);
    vs_layout_release(&layout);
    return known;
}

/* ---- events --------------------------------------------------------------------------------- */

static struct vs_free_space_of *space_of(const struct vs_free_blocks *free_blocks, int8_t device)
{
    for (size_t i = 0; i < free_blocks->count; i++)
        if (free_blocks->devices[i]->device == device)
            return free_blocks->devices[i];
    return NULL;
}

static uint64_t segment_changes(const struct vs_state *state)
{
    return state->segments.changes + state->reservations.changes;
}

static void note(struct vs_free_blocks *free_blocks, const struct vs_state *state)
{
    free_blocks->segment_changes = segment_changes(state);
    free_blocks->waits = state->waits.count;
    free_blocks->on_live = state->counts.framework_alloc_on_live;
}

/* A block may stop waiting at any event; it begins to when it is freed. */
static bool only_blocks_moved(const struct vs_free_blocks *free_blocks,
                              const struct vs_state *state, const struct vs_event *event)
{
    bool waits = event->kind == VS_KIND_FW_FREE && state->waits.count != 0 &&
                 vs_waits_get(&state->waits, event->address) != NULL;
    return segment_changes(state) == free_blocks->segment_changes && event->kind != VS_KIND_UNDO &&
           state->counts.framework_alloc_on_live == free_blocks->on_live &&
           state->waits.count == free_blocks->waits + waits;
}

static void on_alloc(const struct vs_free_blocks *free_blocks, const struct vs_state *state,
                     uint64_t address)
{
    const struct vs_block *block = vs_blocks_get(&state->blocks, address);
    struct vs_free_space_of *space = block == NULL ? NULL : space_of(free_blocks, block->device);
    if (space != NULL && space->kept)
        space->kept = take(space, address, address + block->size);
}

static void on_free(const struct vs_free_blocks *free_blocks, const struct vs_state *state,
                    uint64_t address)
{
    if (vs_waits_get(&state->waits, address) != NULL)
        return; /* nobody gets it yet */
    for (size_t i = 0; i < free_blocks->count; i++) {
        struct vs_free_space_of *space = free_blocks->devices[i];
        const uint64_t *size = space->kept ? vs_sizes_get(&space->taken, address) : NULL;
        if (size == NULL)
            continue;
        space->kept = give_back(space, address, address + *size);
        return;
    }
}

void vs_free_blocks_event(struct vs_free_blocks *free_blocks, const struct vs_state *state,
                          const struct vs_event *event)
{
    if (free_blocks->count == 0)
        return;
    if (only_blocks_moved(free_blocks, state, event)) {
        if (event->kind == VS_KIND_FW_ALLOC)
            on_alloc(free_blocks, state, event->address);
        else if (event->kind == VS_KIND_FW_FREE)
            on_free(free_blocks, state, event->address);
    } else {
        for (size_t i = 0; i < free_blocks->count; i++)
            free_blocks->devices[i]->kept = false;
    }
    note(free_blocks, state);
}

static struct vs_free_space_of *begin(struct vs_free_blocks *free_blocks,
                                      const struct vs_state *state, int8_t device)
{
    struct vs_free_space_of *space = calloc(1, sizeof(*space));
    if (space == NULL)
        return NULL;
    space->device = device;
    space->questions = UINT64_MAX / 2;
    if (free_blocks->count == 0)
        note(free_blocks, state);
    free_blocks->devices[free_blocks->count++] = space;
    return space;
}

bool vs_free_blocks_largest(struct vs_free_blocks *free_blocks, const struct vs_state *state,
                            const struct vs_device_state *device, uint64_t *bytes)
{
    if (!vs_layout_possible(device))
        return false;
    struct vs_free_space_of *space = space_of(free_blocks, device->device);
    if (space == NULL)
        space = begin(free_blocks, state, device->device);
    if (space == NULL)
        return false;
    space->questions++;
    if (space->kept) {
        *bytes = space->nodes[space->root].most;
        return true;
    }
    return space->questions >= state->blocks.count / BLOCKS_PER_QUESTION &&
           take_anew(space, state, device, bytes);
}

void vs_free_blocks_release(struct vs_free_blocks *free_blocks)
{
    for (size_t i = 0; i < free_blocks->count; i++) {
        forget(free_blocks->devices[i]);
        free(free_blocks->devices[i]->spans);
        free(free_blocks->devices[i]->nodes);
        free(free_blocks->devices[i]);
    }
    *free_blocks = (struct vs_free_blocks){0};
}
