/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a reader knows of addresses: which module held one, and which functions
 * are there. Filled and owned by a set of definitions (trace_definitions.c).
 */
#ifndef VS_FORMATS_TRACE_SYMBOLS_H
#define VS_FORMATS_TRACE_SYMBOLS_H

#include "arena.h"
#include "trace.h"
#include "trace_table.h"

/* ---- modules by address ---- */

struct vs_module_span {
    const struct vs_module_def *module;
    uint64_t reach; /* the largest end of this module and all before it */
};

/* Modules in order of their start, made from what is defined now; zero is the empty one. */
struct vs_module_map {
    struct vs_module_span *spans;
    size_t count;
};

/* Takes `modules` in any order. 0 or -ENOMEM. */
int vs_module_map_build(struct vs_module_map *map, const struct vs_module_def *const *modules,
                        size_t count);
void vs_module_map_free(struct vs_module_map *map);
/* Among those that hold `address`, the one of the highest generation not above `generation`. */
const struct vs_module_def *vs_module_map_find(const struct vs_module_map *map, uint64_t address,
                                               uint32_t generation);

/* ---- functions by module and address ---- */

struct vs_symbol; /* a definition that may still grow */

/* The key beside the definition: looking for one touches nothing else. */
struct vs_symbol_slot {
    uint64_t address;
    uint32_t module;
    struct vs_symbol *symbol; /* NULL: free */
};

struct vs_symbols {
    struct vs_symbol_slot *slots;
    size_t capacity, used;
    struct vs_symbol *open; /* the list that the next row may go on with */
};

/*
 * One row of SYMBOLS: place 0 begins a list, the others go on with the one at
 * hand. 0, -ENOMEM, or -EBADMSG when the row does neither.
 */
int vs_symbols_take(struct vs_symbols *symbols, struct vs_arena *arena,
                    const struct vs_table_row *row);
/* A list does not go on in the next chunk. */
void vs_symbols_end_chunk(struct vs_symbols *symbols);
const struct vs_symbol_def *vs_symbols_find(const struct vs_symbols *symbols, uint32_t module,
                                            uint64_t address);
/* The definitions themselves belong to the arena. */
void vs_symbols_free(struct vs_symbols *symbols);

#endif
