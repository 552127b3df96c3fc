/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks that are handed out front to back: see arena.h. */
#include "arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES 65536U
#define ALIGNMENT 16U

struct vs_arena_block {
    struct vs_arena_block *next;
    size_t used, capacity;
    _Alignas(ALIGNMENT) uint8_t data[];
};

void *vs_arena_get(struct vs_arena *arena, size_t bytes)
{
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    struct vs_arena_block *block = arena->blocks;
    if (block == NULL || block->capacity - block->used < bytes) {
        size_t capacity = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
        block = malloc(sizeof *block + capacity);
        if (block == NULL)
            return NULL;
        *block = (struct vs_arena_block){.next = arena->blocks, .capacity = capacity};
        arena->blocks = block;
    }
    void *got = block->data + block->used;
    block->used += bytes;
    return got;
}

char *vs_arena_text(struct vs_arena *arena, const char *data, size_t bytes)
{
    char *copy = vs_arena_get(arena, bytes + 1);
    if (copy == NULL)
        return NULL;
    if (bytes > 0)
        memcpy(copy, data, bytes);
    copy[bytes] = '\0';
    return copy;
}

void vs_arena_free(struct vs_arena *arena)
{
    while (arena->blocks != NULL) {
        struct vs_arena_block *next = arena->blocks->next;
        free(arena->blocks);
        arena->blocks = next;
    }
}
