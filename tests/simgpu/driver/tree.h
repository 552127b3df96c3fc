/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address-ordered trees: look-up of the range that contains an address, and first-fit search for
 * room, both in logarithmic time. Nodes are embedded in what they index. Not thread-safe.
 */
#ifndef SIMGPU_DRIVER_TREE_H
#define SIMGPU_DRIVER_TREE_H

#include <stdbool.h>
#include <stdint.h>

struct sim_node {
    uint64_t key;
    uint64_t size;
    uint64_t largest; /* size of the largest range in this subtree */
    uint32_t priority;
    struct sim_node *left, *right;
};

struct sim_tree {
    struct sim_node *root;
};

/* NODE's key and size are set; keys are unique. */
void sim_tree_insert(struct sim_tree *tree, struct sim_node *node);
void sim_tree_remove(struct sim_tree *tree, struct sim_node *node);
struct sim_node *sim_tree_find(const struct sim_tree *tree, uint64_t key);

/* Largest key ≤ KEY, smallest key ≥ KEY; NULL if none. */
struct sim_node *sim_tree_floor(const struct sim_tree *tree, uint64_t key);
struct sim_node *sim_tree_ceiling(const struct sim_tree *tree, uint64_t key);

/* Free ranges, neighbours merged. */
struct sim_extents {
    struct sim_tree tree;
    uint64_t bytes;
};

/* Adds a range, returns the merged range's bounds. False without memory. */
bool sim_extents_give(struct sim_extents *extents, uint64_t start, uint64_t size,
                      uint64_t *merged_start, uint64_t *merged_size);

/* Takes the lowest room for SIZE at a multiple of ALIGNMENT (a power of two). */
bool sim_extents_take(struct sim_extents *extents, uint64_t size, uint64_t alignment,
                      uint64_t *start);

/* Takes exactly [start, start + size) if it is all free. */
bool sim_extents_take_at(struct sim_extents *extents, uint64_t start, uint64_t size);

/* Removes what overlaps [start, start + size), and returns how many bytes that was. */
uint64_t sim_extents_cut(struct sim_extents *extents, uint64_t start, uint64_t size);

void sim_extents_clear(struct sim_extents *extents);

#endif
