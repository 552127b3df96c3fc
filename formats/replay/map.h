/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash map from a 64-bit key (address, handle) to a small value, in one array:
 * open addressing, linear probing, deletion that moves followers back, so that a
 * map never grows with the number of deletions. Values move when the map
 * changes: a pointer into it is good until the next put or remove.
 *
 *   VS_MAP_DEFINE(blocks, struct block)  makes
 *     struct blocks { … }                        zero is an empty map
 *     blocks_get(map, key)      → value or NULL
 *     blocks_put(map, key)      → value (zeroed when new) or NULL: no memory
 *     blocks_remove(map, key)   → true when it was there
 *     blocks_next(map, &index, &key) → each value once, in no order; NULL at the end
 *     blocks_release(map)
 */
#ifndef VS_REPLAY_MAP_H
#define VS_REPLAY_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * Slots hold key ^ VS_MAP_MARK, so that zero, which fresh memory has, is an
 * unused slot and the key 0 is one like any other. The mark itself is kept as
 * its neighbour.
 */
#define VS_MAP_MARK 0x9e3779b97f4a7c15ULL

static inline uint64_t vs_map_key(uint64_t key)
{
    return key == VS_MAP_MARK ? 1 : key ^ VS_MAP_MARK;
}

static inline size_t vs_map_slot(uint64_t key, unsigned bits)
{
    key ^= key >> 29;
    key *= 0xbf58476d1ce4e5b9ULL;
    key ^= key >> 32;
    key *= 0x9e3779b97f4a7c15ULL;
    return (size_t)(key >> (64 - bits));
}

#define VS_MAP_DEFINE(name, value_type)                                                         \
    struct name##_slot {                                                                        \
        uint64_t key;                                                                           \
        value_type value;                                                                       \
    };                                                                                          \
    struct name {                                                                               \
        struct name##_slot *slots;                                                              \
        size_t count;                                                                           \
        unsigned bits;                                                                          \
    };                                                                                          \
    static inline size_t name##_capacity(const struct name *map)                                \
    {                                                                                           \
        return map->slots == NULL ? 0 : (size_t)1 << map->bits;                                 \
    }                                                                                           \
    static inline struct name##_slot *name##_find(const struct name *map, uint64_t key)         \
    {                                                                                           \
        size_t mask = ((size_t)1 << map->bits) - 1;                                             \
        size_t at = vs_map_slot(key, map->bits);                                                \
        while (map->slots[at].key != key && map->slots[at].key != 0)                            \
            at = (at + 1) & mask;                                                               \
        return &map->slots[at];                                                                 \
    }                                                                                           \
    static inline value_type *name##_get(const struct name *map, uint64_t key)                  \
    {                                                                                           \
        if (map->count == 0)                                                                    \
            return NULL;                                                                        \
        struct name##_slot *slot = name##_find(map, vs_map_key(key));                           \
        return slot->key == 0 ? NULL : &slot->value;                                            \
    }                                                                                           \
    static inline bool name##_grow(struct name *map)                                            \
    {                                                                                           \
        struct name larger = {.bits = map->slots == NULL ? 6 : map->bits + 1};                  \
        size_t capacity = (size_t)1 << larger.bits;                                             \
        larger.slots = calloc(capacity, sizeof(*larger.slots));                                 \
        if (larger.slots == NULL)                                                               \
            return false;                                                                       \
        for (size_t at = 0; at < name##_capacity(map); at++)                                    \
            if (map->slots[at].key != 0)                                                        \
                *name##_find(&larger, map->slots[at].key) = map->slots[at];                     \
        larger.count = map->count;                                                              \
        free(map->slots);                                                                       \
        *map = larger;                                                                          \
        return true;                                                                            \
    }                                                                                           \
    static inline value_type *name##_put(struct name *map, uint64_t key)                        \
    {                                                                                           \
        if ((map->count + 1) * 4 > name##_capacity(map) * 3 && !name##_grow(map))               \
            return NULL;                                                                        \
        struct name##_slot *slot = name##_find(map, vs_map_key(key));                           \
        if (slot->key == 0) {                                                                   \
            slot->key = vs_map_key(key);                                                        \
            memset(&slot->value, 0, sizeof(slot->value));                                       \
            map->count++;                                                                       \
        }                                                                                       \
        return &slot->value;                                                                    \
    }                                                                                           \
    static inline bool name##_remove(struct name *map, uint64_t key)                            \
    {                                                                                           \
        if (map->count == 0)                                                                    \
            return false;                                                                       \
        struct name##_slot *slot = name##_find(map, vs_map_key(key));                           \
        if (slot->key == 0)                                                                     \
            return false;                                                                       \
        size_t mask = ((size_t)1 << map->bits) - 1;                                             \
        size_t hole = (size_t)(slot - map->slots);                                              \
        for (size_t at = (hole + 1) & mask; map->slots[at].key != 0; at = (at + 1) & mask) {    \
            size_t home = vs_map_slot(map->slots[at].key, map->bits);                           \
            if (((at - home) & mask) >= ((at - hole) & mask)) {                                 \
                map->slots[hole] = map->slots[at];                                              \
                hole = at;                                                                      \
            }                                                                                   \
        }                                                                                       \
        map->slots[hole].key = 0;                                                               \
        map->count--;                                                                           \
        return true;                                                                            \
    }                                                                                           \
    static inline value_type *name##_next(const struct name *map, size_t *index, uint64_t *key) \
    {                                                                                           \
        while (*index < name##_capacity(map)) {                                                 \
            struct name##_slot *slot = &map->slots[(*index)++];                                 \
            if (slot->key != 0) {                                                               \
                *key = slot->key ^ VS_MAP_MARK;                                                 \
                return &slot->value;                                                            \
            }                                                                                   \
        }                                                                                       \
        return NULL;                                                                            \
    }                                                                                           \
    static inline void name##_release(struct name *map)                                         \
    {                                                                                           \
        free(map->slots);                                                                       \
        *map = (struct name){0};                                                                \
    }                                                                                           \
    struct name

#endif
