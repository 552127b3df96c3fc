/* SPDX-License-Identifier: Apache-2.0 */
/* Treaps over addresses, and free ranges on top of them; see tree.h. */
#include "tree.h"

#include <stddef.h>
#include <stdlib.h>

static uint32_t next_priority(void)
{
    static uint32_t state = 2463534242U; /* xorshift: balance needs no more */
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

static void update(struct sim_node *node)
{
    node->largest = node->size;
    if (node->left && node->left->largest > node->largest)
        node->largest = node->left->largest;
    if (node->right && node->right->largest > node->largest)
        node->largest = node->right->largest;
}

/* Splits into keys < KEY and keys ≥ KEY. */
static void split(struct sim_node *node, uint64_t key, struct sim_node **less,
                  struct sim_node **rest)
{
    if (!node) {
        *less = *rest = NULL;
    } else if (node->key < key) {
        split(node->right, key, &node->right, rest);
        *less = node;
        update(node);
    } else {
        split(node->left, key, less, &node->left);
        *rest = node;
        update(node);
    }
}

static struct sim_node *merge(struct sim_node *less, struct sim_node *rest)
{
    if (!less || !rest)
        return less ? less : rest;
    if (less->priority > rest->priority) {
        less->right = merge(less->right, rest);
        update(less);
        return less;
    }
    rest->left = merge(less, rest->left);
    update(rest);
    return rest;
}

static struct sim_node *insert(struct sim_node *root, struct sim_node *node)
{
    if (!root)
        return node;
    if (node->priority > root->priority) {
        split(root, node->key, &node->left, &node->right);
        update(node);
        return node;
    }
    if (node->key < root->key)
        root->left = insert(root->left, node);
    else
        root->right = insert(root->right, node);
    update(root);
    return root;
}

static struct sim_node *detach(struct sim_node *root, const struct sim_node *node)
{
    if (root == node)
        return merge(root->left, root->right);
    if (node->key < root->key)
        root->left = detach(root->left, node);
    else
        root->right = detach(root->right, node);
    update(root);
    return root;
}

void sim_tree_insert(struct sim_tree *tree, struct sim_node *node)
{
    node->left = node->right = NULL;
    node->priority = next_priority();
    update(node);
    tree->root = insert(tree->root, node);
}

void sim_tree_remove(struct sim_tree *tree, struct sim_node *node)
{
    tree->root = detach(tree->root, node);
}

struct sim_node *sim_tree_find(const struct sim_tree *tree, uint64_t key)
{
    struct sim_node *node = tree->root;
    while (node && node->key != key)
        node = key < node->key ? node->left : node->right;
    return node;
}

struct sim_node *sim_tree_floor(const struct sim_tree *tree, uint64_t key)
{
    struct sim_node *best = NULL;
    for (struct sim_node *node = tree->root; node;) {
        if (node->key <= key) {
            best = node;
            node = node->right;
        } else {
            node = node->left;
        }
    }
    return best;
}

struct sim_node *sim_tree_ceiling(const struct sim_tree *tree, uint64_t key)
{
    struct sim_node *best = NULL;
    for (struct sim_node *node = tree->root; node;) {
        if (node->key >= key) {
            best = node;
            node = node->left;
        } else {
            node = node->right;
        }
    }
    return best;
}

/* ---- free ranges ---- */

static bool add(struct sim_extents *extents, uint64_t start, uint64_t size)
{
    struct sim_node *node = malloc(sizeof *node);
    if (!node)
        return false;
    node->key = start;
    node->size = size;
    sim_tree_insert(&extents->tree, node);
    extents->bytes += size;
    return true;
}

static void drop(struct sim_extents *extents, struct sim_node *node)
{
    extents->bytes -= node->size;
    sim_tree_remove(&extents->tree, node);
    free(node);
}

bool sim_extents_give(struct sim_extents *extents, uint64_t start, uint64_t size,
                      uint64_t *merged_start, uint64_t *merged_size)
{
    struct sim_node *before = sim_tree_floor(&extents->tree, start);
    struct sim_node *after = sim_tree_find(&extents->tree, start + size);
    if (before && before->key + before->size == start) {
        start = before->key;
        size += before->size;
        drop(extents, before);
    }
    if (after) {
        size += after->size;
        drop(extents, after);
    }
    if (merged_start) {
        *merged_start = start;
        *merged_size = size;
    }
    return add(extents, start, size);
}

static uint64_t align_up(uint64_t value, uint64_t alignment)
{
    return (value + alignment - 1) & ~(alignment - 1);
}

static struct sim_node *first_fit(struct sim_node *node, uint64_t size, uint64_t alignment)
{
    if (!node || node->largest < size)
        return NULL;
    struct sim_node *found = first_fit(node->left, size, alignment);
    if (found)
        return found;
    uint64_t lost = align_up(node->key, alignment) - node->key;
    if (node->size >= size && node->size - size >= lost)
        return node;
    return first_fit(node->right, size, alignment);
}

static bool take_from(struct sim_extents *extents, struct sim_node *node, uint64_t start,
                      uint64_t size)
{
    uint64_t before = start - node->key;
    uint64_t after = node->size - before - size;
    uint64_t end = start + size;
    drop(extents, node);
    bool added = !before || add(extents, start - before, before);
    return (!after || add(extents, end, after)) && added;
}

bool sim_extents_take(struct sim_extents *extents, uint64_t size, uint64_t alignment,
                      uint64_t *start)
{
    struct sim_node *node = first_fit(extents->tree.root, size, alignment);
    if (!node)
        return false;
    *start = align_up(node->key, alignment);
    return take_from(extents, node, *start, size);
}

bool sim_extents_take_at(struct sim_extents *extents, uint64_t start, uint64_t size)
{
    struct sim_node *node = sim_tree_floor(&extents->tree, start);
    if (!node || start + size > node->key + node->size)
        return false;
    return take_from(extents, node, start, size);
}

uint64_t sim_extents_cut(struct sim_extents *extents, uint64_t start, uint64_t size)
{
    uint64_t end = start + size;
    uint64_t cut = 0;
    struct sim_node *node = sim_tree_floor(&extents->tree, start);
    if (!node || node->key + node->size <= start)
        node = sim_tree_ceiling(&extents->tree, start);
    while (node && node->key < end) {
        uint64_t from = node->key > start ? node->key : start;
        uint64_t to = node->key + node->size < end ? node->key + node->size : end;
        take_from(extents, node, from, to - from);
        cut += to - from;
        node = sim_tree_ceiling(&extents->tree, to);
    }
    return cut;
}

void sim_extents_clear(struct sim_extents *extents)
{
    while (extents->tree.root)
        drop(extents, extents->tree.root);
}
