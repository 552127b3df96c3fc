/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ordered set of address ranges that do not overlap: reservations, mappings,
 * segments. Finding the range that holds an address, inserting and removing take
 * O(log n). Ranges stay where they are in memory until removed.
 */
#ifndef VS_REPLAY_RANGES_H
#define VS_REPLAY_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vs_range {
    uint64_t start;
    uint64_t size;
    /* What the owner of the set keeps about the range. */
    uint64_t bytes;  /* segment: counted as reserved */
    uint64_t backed; /* segment: with memory behind it; mapping: its part of that */
    uint32_t object; /* mapping: index of the physical memory + 1 */
    uint16_t owner;
    int8_t device;
    uint8_t kind;
    bool stream_known;
    uint32_t pool;      /* segment: enum vs_cache_pool */
    uint64_t stream;    /* segment: that the first block of it was asked for on */
    uint32_t pool_site; /* segment: where its pool was made, 0 not known */
    /* The set's own. */
    struct vs_range *left, *right;
    uint32_t priority;
};

struct vs_range_block;

struct vs_ranges {
    struct vs_range *root;
    struct vs_range *spare;
    struct vs_range_block *blocks;
    struct vs_range *last; /* found last: the next question is mostly about it again */
    size_t count;
    uint64_t changes; /* ranges added and removed so far */
    uint32_t seed;
};

/* The range that holds `address`, or NULL. */
struct vs_range *vs_ranges_find(struct vs_ranges *ranges, uint64_t address);
/* The first range that starts at or after `address`, or NULL. */
struct vs_range *vs_ranges_from(const struct vs_ranges *ranges, uint64_t address);
/* The first range that shares a byte with [start, start + size), or NULL. */
struct vs_range *vs_ranges_overlap(struct vs_ranges *ranges, uint64_t start, uint64_t size);
/* Adds a zeroed range; it must be non-empty, must not wrap and overlap nothing. NULL: no memory. */
struct vs_range *vs_ranges_insert(struct vs_ranges *ranges, uint64_t start, uint64_t size);
void vs_ranges_remove(struct vs_ranges *ranges, struct vs_range *range);
void vs_ranges_release(struct vs_ranges *ranges);

#endif
