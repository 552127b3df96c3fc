/* SPDX-License-Identifier: Apache-2.0 */
/* Modules by address, functions by module and address: see trace_symbols.h. */
#include "trace_symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- modules by address ------------------------------------------------------------ */

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int by_start(const void *left, const void *right)
{
    const struct vs_module_def *a = ((const struct vs_module_span *)left)->module;
    const struct vs_module_def *b = ((const struct vs_module_span *)right)->module;
    int order = compare(a->start, b->start);
    if (order == 0)
        order = compare(a->generation, b->generation);
    return order != 0 ? order : compare(a->id, b->id);
}

int vs_module_map_build(struct vs_module_map *map, const struct vs_module_def *const *modules,
                        size_t count)
{
    struct vs_module_span *spans = malloc((count ? count : 1) * sizeof *spans);
    if (spans == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        spans[i].module = modules[i];
    qsort(spans, count, sizeof *spans, by_start);
    for (size_t i = 0; i < count; i++) {
        spans[i].reach = spans[i].module->end;
        if (i > 0 && spans[i - 1].reach > spans[i].reach)
            spans[i].reach = spans[i - 1].reach;
    }
    free(map->spans);
    *map = (struct vs_module_map){spans, count};
    return 0;
}

void vs_module_map_free(struct vs_module_map *map)
{
    free(map->spans);
    *map = (struct vs_module_map){0};
}

/* Number of modules that start at or before `address`. */
static size_t starting_before(const struct vs_module_map *map, uint64_t address)
{
    size_t low = 0, high = map->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (map->spans[middle].module->start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct vs_module_def *vs_module_map_find(const struct vs_module_map *map, uint64_t address,
                                               uint32_t generation)
{
    const struct vs_module_def *best = NULL;
    for (size_t i = starting_before(map, address); i-- > 0 && map->spans[i].reach > address;) {
        const struct vs_module_def *module = map->spans[i].module;
        if (address < module->end && module->generation <= generation &&
            (best == NULL || module->generation > best->generation ||
             (module->generation == best->generation && module->id > best->id)))
            best = module;
    }
    return best;
}

/* ---- functions by module and address -------------------------------------------------- */

struct vs_symbol {
    struct vs_symbol_def def;
    struct vs_symbol_frame *frames; /* what def.frames shows */
    uint32_t capacity;
};

static struct vs_symbol_slot *slot_of(const struct vs_symbols *symbols, uint32_t module,
                                      uint64_t address)
{
    uint64_t hash = (address ^ (uint64_t)module << 40) * 0x9e3779b97f4a7c15ULL;
    size_t mask = symbols->capacity - 1, at = (size_t)(hash >> 32) & mask;
    struct vs_symbol_slot *slots = symbols->slots;
    while (slots[at].symbol != NULL && (slots[at].address != address || slots[at].module != module))
        at = (at + 1) & mask;
    return &slots[at];
}

static int grow(struct vs_symbols *symbols)
{
    struct vs_symbols grown = {.capacity = symbols->capacity ? symbols->capacity * 2 : 1024,
                               .used = symbols->used,
                               .open = symbols->open};
    grown.slots = calloc(grown.capacity, sizeof *grown.slots);
    if (grown.slots == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < symbols->capacity; i++)
        if (symbols->slots[i].symbol != NULL)
            *slot_of(&grown, symbols->slots[i].module, symbols->slots[i].address) =
                symbols->slots[i];
    free(symbols->slots);
    *symbols = grown;
    return 0;
}

/* A new list for an address takes the place of the one that is there. */
static struct vs_symbol *begin(struct vs_symbols *symbols, struct vs_arena *arena, uint32_t module,
                               uint64_t address)
{
    if (symbols->used * 2 >= symbols->capacity && grow(symbols) != 0)
        return NULL;
    struct vs_symbol *symbol = vs_arena_get(arena, sizeof *symbol);
    if (symbol == NULL)
        return NULL;
    *symbol = (struct vs_symbol){.def = {.module = module, .address = address}};
    struct vs_symbol_slot *slot = slot_of(symbols, module, address);
    symbols->used += slot->symbol == NULL;
    *slot = (struct vs_symbol_slot){address, module, symbol};
    return symbol;
}

static int add_frame(struct vs_symbol *symbol, struct vs_arena *arena,
                     const struct vs_table_row *row)
{
    if (symbol->def.count == symbol->capacity) {
        uint32_t capacity = symbol->capacity ? symbol->capacity * 2 : 1;
        struct vs_symbol_frame *grown = vs_arena_get(arena, capacity * sizeof *grown);
        if (grown == NULL)
            return -ENOMEM;
        if (symbol->def.count > 0)
            memcpy(grown, symbol->frames, symbol->def.count * sizeof *grown);
        symbol->def.frames = symbol->frames = grown;
        symbol->capacity = capacity;
    }
    struct vs_symbol_frame frame = {
        .function = vs_arena_text(arena, row->texts[0].data, row->texts[0].bytes),
        .file = vs_arena_text(arena, row->texts[1].data, row->texts[1].bytes),
        .line = (uint32_t)row->numbers[4]};
    if (frame.function == NULL || frame.file == NULL)
        return -ENOMEM;
    symbol->frames[symbol->def.count++] = frame;
    return 0;
}

static bool says_nothing(const struct vs_table_row *row)
{
    return row->texts[0].bytes == 0 && row->texts[1].bytes == 0 && row->numbers[4] == 0;
}

int vs_symbols_take(struct vs_symbols *symbols, struct vs_arena *arena,
                    const struct vs_table_row *row)
{
    uint64_t module = row->numbers[1], address = row->numbers[2], place = row->numbers[3];
    if (module > UINT32_MAX || row->numbers[4] > UINT32_MAX)
        return -EBADMSG;
    struct vs_symbol *symbol = symbols->open;
    if (place == 0) {
        symbols->open = symbol = begin(symbols, arena, (uint32_t)module, address);
        if (symbol == NULL)
            return -ENOMEM;
        if (says_nothing(row))
            return 0;
    } else if (symbol == NULL || symbol->def.module != module || symbol->def.address != address ||
               symbol->def.count != place) {
        return -EBADMSG;
    }
    return add_frame(symbol, arena, row);
}

void vs_symbols_end_chunk(struct vs_symbols *symbols)
{
    symbols->open = NULL;
}

const struct vs_symbol_def *vs_symbols_find(const struct vs_symbols *symbols, uint32_t module,
                                            uint64_t address)
{
    if (symbols->capacity == 0)
        return NULL;
    const struct vs_symbol *symbol = slot_of(symbols, module, address)->symbol;
    return symbol == NULL ? NULL : &symbol->def;
}

void vs_symbols_free(struct vs_symbols *symbols)
{
    free(symbols->slots);
    *symbols = (struct vs_symbols){0};
}
