/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses that need a name, each once: see symbol_wanted.h. */
#include "symbol_wanted.h"

#include <stdlib.h>
#include <string.h>

#include "../formats/frame_word.h"

#define RECENT_BITS 17U /* 2 MiB of them */
#define PLACES_FIRST 1024U
#define HASH_FACTOR 0x9e3779b97f4a7c15ULL

/* One of the addresses met lately: most stacks are made of these. */
struct symbol_seen {
    uint64_t address; /* 0: free */
    uint32_t generation;
};

struct symbol_place {
    uint64_t address;
    uint32_t module;
    bool used;
};

void symbol_wanted_init(struct symbol_wanted *wanted, size_t place_most)
{
    *wanted = (struct symbol_wanted){.place_most = place_most};
    wanted->recent = calloc((size_t)1 << RECENT_BITS, sizeof *wanted->recent);
}

void symbol_wanted_free(struct symbol_wanted *wanted)
{
    for (size_t i = 0; i < wanted->module_count; i++)
        free((void *)(uintptr_t)wanted->modules[i]);
    free(wanted->modules);
    vs_module_map_free(&wanted->map);
    free(wanted->recent);
    free(wanted->places);
    *wanted = (struct symbol_wanted){0};
}

static bool is_known(const struct symbol_wanted *wanted, const struct vs_module_def *module)
{
    for (size_t i = wanted->module_count; i-- > 0;)
        if (wanted->modules[i]->id == module->id)
            return true;
    return false;
}

void symbol_wanted_module(struct symbol_wanted *wanted, const struct vs_module_def *module)
{
    size_t path_bytes = strlen(module->path) + 1;
    if (is_known(wanted, module))
        return; /* defined again, as after a loss */
    if (wanted->module_count == wanted->module_capacity) {
        size_t capacity = wanted->module_capacity ? wanted->module_capacity * 2 : 64;
        const struct vs_module_def **grown =
            reallocarray(wanted->modules, capacity, sizeof(void *));
        if (grown == NULL)
            return;
        wanted->modules = grown;
        wanted->module_capacity = capacity;
    }
    struct vs_module_def *kept = malloc(sizeof *kept + path_bytes);
    if (kept == NULL)
        return;
    *kept = *module;
    kept->path = memcpy(kept + 1, module->path, path_bytes);
    wanted->modules[wanted->module_count++] = kept;
    wanted->map_stale = true;
}

/* An address that lay in no module may lie in one of the new ones. */
static void refresh_map(struct symbol_wanted *wanted)
{
    if (vs_module_map_build(&wanted->map, wanted->modules, wanted->module_count) != 0)
        return;
    wanted->map_stale = false;
    if (wanted->recent != NULL)
        memset(wanted->recent, 0, sizeof *wanted->recent << RECENT_BITS);
}

static bool seen_lately(struct symbol_wanted *wanted, uint64_t address, uint32_t generation)
{
    if (wanted->recent == NULL)
        return false;
    struct symbol_seen *seen =
        &wanted->recent[(address ^ generation) * HASH_FACTOR >> (64 - RECENT_BITS)];
    if (seen->address == address && seen->generation == generation)
        return true;
    *seen = (struct symbol_seen){address, generation};
    return false;
}

/* Where a place is in the table, or belongs. */
static struct symbol_place *slot_of(struct symbol_place *places, size_t capacity, uint32_t module,
                                    uint64_t address)
{
    size_t at = (size_t)((address + ((uint64_t)module << 40)) * HASH_FACTOR >> 20) & (capacity - 1);
    while (places[at].used && (places[at].module != module || places[at].address != address))
        at = (at + 1) & (capacity - 1);
    return &places[at];
}

static bool grow_places(struct symbol_wanted *wanted)
{
    size_t capacity = wanted->place_capacity ? wanted->place_capacity * 2 : PLACES_FIRST;
    struct symbol_place *grown =
        wanted->place_count >= wanted->place_most ? NULL : calloc(capacity, sizeof *grown);
    if (grown == NULL)
        return false;
    for (size_t i = 0; i < wanted->place_capacity; i++)
        if (wanted->places[i].used)
            *slot_of(grown, capacity, wanted->places[i].module, wanted->places[i].address) =
                wanted->places[i];
    free(wanted->places);
    wanted->places = grown;
    wanted->place_capacity = capacity;
    return true;
}

/* True when the place is new, and is noted now. */
static bool note_place(struct symbol_wanted *wanted, uint32_t module, uint64_t address)
{
    if (wanted->place_capacity > 0 &&
        slot_of(wanted->places, wanted->place_capacity, module, address)->used)
        return false;
    if (wanted->place_count * 2 >= wanted->place_capacity && !grow_places(wanted)) {
        wanted->refused++;
        return false;
    }
    *slot_of(wanted->places, wanted->place_capacity, module, address) =
        (struct symbol_place){.address = address, .module = module, .used = true};
    wanted->place_count++;
    return true;
}

void symbol_wanted_stack(struct symbol_wanted *wanted, const struct vs_stack_def *stack,
                         symbol_wanted_place *place, void *context)
{
    if (wanted->map_stale)
        refresh_map(wanted);
    for (uint32_t i = 0; i < stack->frame_count; i++) {
        uint64_t word = stack->frames[i];
        if (vs_frame_is_interpreter(word))
            return; /* native words come first */
        uint64_t address = vs_frame_lookup_address(word);
        if (seen_lately(wanted, address, stack->generation))
            continue;
        const struct vs_module_def *module =
            vs_module_map_find(&wanted->map, address, stack->generation);
        if (module != NULL && note_place(wanted, module->id, address - module->load_bias))
            place(context, module, address - module->load_bias);
    }
}
