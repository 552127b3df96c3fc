/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which addresses of a process need a name: the module map as the stacks tell
 * it, and every address of a module once. Memory is bounded; what does not fit
 * is counted and stays for `vramscope symbolize`.
 */
#ifndef VS_COLLECTOR_SYMBOL_WANTED_H
#define VS_COLLECTOR_SYMBOL_WANTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../formats/trace.h"
#include "../formats/trace_symbols.h"

struct symbol_wanted {
    const struct vs_module_def **modules; /* owned: with their paths */
    size_t module_count, module_capacity;
    struct vs_module_map map;
    bool map_stale;
    struct symbol_seen *recent;  /* addresses as they were in stacks, met lately */
    struct symbol_place *places; /* every module and address that was given out */
    size_t place_count, place_capacity, place_most;
    uint64_t refused; /* times that an address found no room */
};

/* A place whose name is not known yet. */
typedef void symbol_wanted_place(void *context, const struct vs_module_def *module,
                                 uint64_t address);

/* At most `place_most` places are remembered. */
void symbol_wanted_init(struct symbol_wanted *wanted, size_t place_most);
void symbol_wanted_free(struct symbol_wanted *wanted);

/* A copy is kept; `module->path` is where the file really is. */
void symbol_wanted_module(struct symbol_wanted *wanted, const struct vs_module_def *module);

/* Calls `place` for each native word of a stack that leads somewhere new. */
void symbol_wanted_stack(struct symbol_wanted *wanted, const struct vs_stack_def *stack,
                         symbol_wanted_place *place, void *context);

#endif
