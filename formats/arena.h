/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is only ever given back as a whole: what a reader knows of a trace
 * is many small things that live as long as the reader.
 */
#ifndef VS_FORMATS_ARENA_H
#define VS_FORMATS_ARENA_H

#include <stddef.h>

struct vs_arena_block;

/* Zero is the empty one. */
struct vs_arena {
    struct vs_arena_block *blocks;
};

/* Aligned for anything; NULL when there is no memory. */
void *vs_arena_get(struct vs_arena *arena, size_t bytes);
/* A copy with a terminating zero. */
char *vs_arena_text(struct vs_arena *arena, const char *data, size_t bytes);
void vs_arena_free(struct vs_arena *arena);

#endif
