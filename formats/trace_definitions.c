/* SPDX-License-Identifier: Apache-2.0 */
/* The reader's tables of definitions: see trace_definitions.h. */
#include "trace_definitions.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "trace_symbols.h"

#define BUILD_ID_MAX sizeof(((struct vs_module_def *)NULL)->build_id)
/* Names of META objects: four are defined, the rest is for later versions. */
#define FACTS_MAX 64U

/* ---- id → definition ------------------------------------------------------------- */

struct id_slot {
    uint32_t id;
    void *value; /* NULL: free */
};

struct id_map {
    struct id_slot *slots;
    size_t capacity; /* power of two, at least twice `used` */
    size_t used;
};

static struct id_slot *id_slot(const struct id_map *map, uint32_t id)
{
    size_t at = (size_t)((id * 0x9e3779b97f4a7c15ULL) >> 20) & (map->capacity - 1);
    while (map->slots[at].value != NULL && map->slots[at].id != id)
        at = (at + 1) & (map->capacity - 1);
    return &map->slots[at];
}

static void *id_find(const struct id_map *map, uint32_t id)
{
    return map->capacity == 0 ? NULL : id_slot(map, id)->value;
}

static int id_grow(struct id_map *map)
{
    struct id_map grown = {.capacity = map->capacity ? map->capacity * 2 : 64, .used = map->used};
    grown.slots = calloc(grown.capacity, sizeof *grown.slots);
    if (grown.slots == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < map->capacity; i++)
        if (map->slots[i].value != NULL)
            *id_slot(&grown, map->slots[i].id) = map->slots[i];
    free(map->slots);
    *map = grown;
    return 0;
}

static int id_put(struct id_map *map, uint32_t id, void *value)
{
    if (value == NULL || (map->used * 2 >= map->capacity && id_grow(map) != 0))
        return -ENOMEM;
    struct id_slot *slot = id_slot(map, id);
    if (slot->value == NULL)
        map->used++;
    *slot = (struct id_slot){id, value};
    return 0;
}

/* ---- the set ----------------------------------------------------------------------- */

struct facts {
    char *name;
    json_t *object;
    char *text; /* made when asked for */
};

struct vs_definitions {
    struct vs_arena arena;
    struct id_map strings, threads, modules, codes;
    struct id_map stacks; /* those of a left-over ring only: trace_stacks.c has the others */
    struct vs_module_map module_map;
    bool module_map_stale; /* modules came since it was made */
    struct vs_symbols symbols;
    struct vs_device_def *devices[256]; /* in order of ordinal: an event's device is one byte */
    size_t device_count;
    struct facts facts[FACTS_MAX];
    size_t facts_count;
};

struct vs_definitions *vs_definitions_new(void)
{
    return calloc(1, sizeof(struct vs_definitions));
}

void vs_definitions_free(struct vs_definitions *set)
{
    if (set == NULL)
        return;
    free(set->strings.slots);
    free(set->threads.slots);
    free(set->modules.slots);
    free(set->codes.slots);
    free(set->stacks.slots);
    vs_module_map_free(&set->module_map);
    vs_symbols_free(&set->symbols);
    for (size_t i = 0; i < set->facts_count; i++) {
        free(set->facts[i].name);
        json_decref(set->facts[i].object);
        free(set->facts[i].text);
    }
    vs_arena_free(&set->arena);
    free(set);
}

static char *text_copy(struct vs_definitions *set, const struct vs_text *text)
{
    return vs_arena_text(&set->arena, text->data, text->bytes);
}

/* Text into a field of fixed size, always terminated. */
static void copy_text(char *out, size_t capacity, const struct vs_text *text)
{
    size_t bytes = text->bytes < capacity - 1 ? text->bytes : capacity - 1;
    memset(out, 0, capacity);
    if (bytes > 0)
        memcpy(out, text->data, bytes);
}

static int take_string(struct vs_definitions *set, const struct vs_table_row *row)
{
    return id_put(&set->strings, (uint32_t)row->numbers[0], text_copy(set, &row->texts[0]));
}

static int take_thread(struct vs_definitions *set, const struct vs_table_row *row)
{
    struct vs_thread_def *thread = vs_arena_get(&set->arena, sizeof *thread);
    if (thread == NULL)
        return -ENOMEM;
    thread->thread = (uint32_t)row->numbers[0];
    copy_text(thread->name, sizeof thread->name, &row->texts[0]);
    return id_put(&set->threads, thread->thread, thread);
}

static int take_module(struct vs_definitions *set, const struct vs_table_row *row)
{
    if (row->numbers[1] > UINT32_MAX || row->texts[0].bytes > BUILD_ID_MAX)
        return -EBADMSG;
    struct vs_module_def *module = vs_arena_get(&set->arena, sizeof *module);
    char *path = text_copy(set, &row->texts[1]);
    if (module == NULL || path == NULL)
        return -ENOMEM;
    *module = (struct vs_module_def){.id = (uint32_t)row->numbers[0],
                                     .generation = (uint32_t)row->numbers[1],
                                     .start = row->numbers[2],
                                     .end = row->numbers[3],
                                     .load_bias = row->numbers[4],
                                     .build_id_bytes = (uint8_t)row->texts[0].bytes,
                                     .path = path};
    if (row->texts[0].bytes > 0)
        memcpy(module->build_id, row->texts[0].data, row->texts[0].bytes);
    set->module_map_stale = true;
    return id_put(&set->modules, module->id, module);
}

static int take_stack(struct vs_definitions *set, const struct vs_table_row *row)
{
    if (row->numbers[1] > UINT32_MAX)
        return -EBADMSG;
    struct vs_stack_def *stack = vs_arena_get(&set->arena, sizeof *stack);
    uint64_t *frames = vs_arena_get(&set->arena, row->word_count * sizeof *frames);
    if (stack == NULL || frames == NULL)
        return -ENOMEM;
    if (row->word_count > 0)
        memcpy(frames, row->words, row->word_count * sizeof *frames);
    *stack = (struct vs_stack_def){.id = (uint32_t)row->numbers[0],
                                   .generation = (uint32_t)row->numbers[1],
                                   .frame_count = (uint32_t)row->word_count,
                                   .frames = frames};
    return id_put(&set->stacks, stack->id, stack);
}

static int take_code(struct vs_definitions *set, const struct vs_table_row *row)
{
    if (row->numbers[1] > UINT32_MAX)
        return -EBADMSG;
    struct vs_code_def *code = vs_arena_get(&set->arena, sizeof *code);
    char *name = text_copy(set, &row->texts[0]), *file = text_copy(set, &row->texts[1]);
    if (code == NULL || name == NULL || file == NULL)
        return -ENOMEM;
    *code = (struct vs_code_def){.id = (uint32_t)row->numbers[0],
                                 .first_line = (uint32_t)row->numbers[1],
                                 .name = name,
                                 .file = file};
    return id_put(&set->codes, code->id, code);
}

/* Where a device of this ordinal is, or where it belongs. */
static size_t device_place(const struct vs_definitions *set, int32_t ordinal)
{
    size_t at = 0;
    while (at < set->device_count && set->devices[at]->device < ordinal)
        at++;
    return at;
}

static int take_device(struct vs_definitions *set, const struct vs_table_row *row)
{
    if (row->numbers[0] > INT8_MAX || row->texts[0].bytes > 16 || row->texts[1].bytes > 16)
        return -EBADMSG;
    struct vs_device_def *device = vs_arena_get(&set->arena, sizeof *device);
    if (device == NULL)
        return -ENOMEM;
    *device = (struct vs_device_def){.device = (int32_t)row->numbers[0],
                                     .total_bytes = row->numbers[1],
                                     .integrated = row->numbers[2] != 0};
    if (row->texts[0].bytes > 0)
        memcpy(device->uuid, row->texts[0].data, row->texts[0].bytes);
    if (row->texts[1].bytes > 0)
        memcpy(device->mig_uuid, row->texts[1].data, row->texts[1].bytes);
    copy_text(device->pci_id, sizeof device->pci_id, &row->texts[2]);
    copy_text(device->name, sizeof device->name, &row->texts[3]);
    size_t at = device_place(set, device->device);
    if (at == set->device_count || set->devices[at]->device != device->device) {
        for (size_t i = set->device_count++; i > at; i--)
            set->devices[i] = set->devices[i - 1];
    }
    set->devices[at] = device;
    return 0;
}

static struct facts *find_facts(struct vs_definitions *set, const char *name, size_t bytes)
{
    for (size_t i = 0; i < set->facts_count; i++)
        if (strlen(set->facts[i].name) == bytes && memcmp(set->facts[i].name, name, bytes) == 0)
            return &set->facts[i];
    return NULL;
}

static struct facts *add_facts(struct vs_definitions *set, const struct vs_text *name)
{
    if (set->facts_count == FACTS_MAX)
        return NULL;
    struct facts *facts = &set->facts[set->facts_count];
    *facts = (struct facts){.name = strndup(name->data, name->bytes), .object = json_object()};
    if (facts->name == NULL || facts->object == NULL) {
        free(facts->name);
        json_decref(facts->object);
        return NULL;
    }
    set->facts_count++;
    return facts;
}

static int take_meta(struct vs_definitions *set, const struct vs_table_row *row)
{
    const struct vs_text *name = &row->texts[0], *text = &row->texts[1];
    if (name->bytes == 0 || memchr(name->data, 0, name->bytes) != NULL || text->bytes == 0)
        return -EBADMSG;
    json_t *object = json_loadb(text->data, text->bytes, 0, NULL);
    if (!json_is_object(object)) {
        json_decref(object);
        return -EBADMSG;
    }
    struct facts *facts = find_facts(set, name->data, name->bytes);
    if (facts == NULL)
        facts = add_facts(set, name);
    int error = facts == NULL || json_object_update(facts->object, object) != 0 ? -ENOMEM : 0;
    json_decref(object);
    if (facts != NULL) {
        free(facts->text);
        facts->text = NULL;
    }
    return error;
}

int vs_definitions_take(struct vs_definitions *set, uint16_t chunk_type,
                        const struct vs_table_row *row)
{
    if (row->numbers[0] > UINT32_MAX)
        return -EBADMSG;
    switch (chunk_type) {
    case VS_CHUNK_STRINGS:
        return take_string(set, row);
    case VS_CHUNK_THREADS:
        return take_thread(set, row);
    case VS_CHUNK_MODULES:
        return take_module(set, row);
    case VS_CHUNK_DEVICES:
        return take_device(set, row);
    case VS_CHUNK_STACKS:
        return take_stack(set, row);
    case VS_CHUNK_CODES:
        return take_code(set, row);
    case VS_CHUNK_SYMBOLS:
        return vs_symbols_take(&set->symbols, &set->arena, row);
    case VS_CHUNK_META:
        return take_meta(set, row);
    default:
        return -EBADMSG;
    }
}

struct taking {
    struct vs_definitions *set;
    uint16_t chunk_type;
    bool bad_row;
};

/* A row that makes no sense costs that row, not its neighbours. */
static int take_row(void *context, const struct vs_table_row *row)
{
    struct taking *taking = context;
    int error = vs_definitions_take(taking->set, taking->chunk_type, row);
    if (error == -EBADMSG)
        taking->bad_row = true;
    return error == -EBADMSG ? 0 : error;
}

int vs_definitions_take_chunk(struct vs_definitions *set, const struct vs_table_shape *shape,
                              const uint8_t *payload, size_t bytes, size_t rows)
{
    struct taking taking = {set, shape->type, false};
    int error = vs_table_decode(shape, payload, bytes, rows, take_row, &taking);
    vs_symbols_end_chunk(&set->symbols);
    return error == 0 && taking.bad_row ? -EBADMSG : error;
}

const char *vs_definitions_string(const struct vs_definitions *set, uint32_t id)
{
    return id_find(&set->strings, id);
}

const struct vs_thread_def *vs_definitions_thread(const struct vs_definitions *set, uint32_t id)
{
    return id_find(&set->threads, id);
}

const struct vs_module_def *vs_definitions_module(const struct vs_definitions *set, uint32_t id)
{
    return id_find(&set->modules, id);
}

const struct vs_stack_def *vs_definitions_stack(const struct vs_definitions *set, uint32_t id)
{
    return id_find(&set->stacks, id);
}

const struct vs_code_def *vs_definitions_code(const struct vs_definitions *set, uint32_t id)
{
    return id_find(&set->codes, id);
}

static int build_module_map(struct vs_definitions *set)
{
    const struct vs_module_def **modules = malloc((set->modules.used + 1) * sizeof *modules);
    size_t count = 0;
    if (modules == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < set->modules.capacity; i++)
        if (set->modules.slots[i].value != NULL)
            modules[count++] = set->modules.slots[i].value;
    int error = vs_module_map_build(&set->module_map, modules, count);
    free(modules);
    set->module_map_stale = error != 0;
    return error;
}

const struct vs_module_def *vs_definitions_module_at(struct vs_definitions *set, uint64_t address,
                                                     uint32_t generation)
{
    if (set->module_map_stale && build_module_map(set) != 0)
        return NULL;
    return vs_module_map_find(&set->module_map, address, generation);
}

size_t vs_definitions_module_count(struct vs_definitions *set)
{
    return set->module_map_stale && build_module_map(set) != 0 ? 0 : set->module_map.count;
}

const struct vs_module_def *vs_definitions_module_number(struct vs_definitions *set, size_t index)
{
    return index < vs_definitions_module_count(set) ? set->module_map.spans[index].module : NULL;
}

const struct vs_symbol_def *vs_definitions_symbol(const struct vs_definitions *set, uint32_t module,
                                                  uint64_t address)
{
    return vs_symbols_find(&set->symbols, module, address);
}

size_t vs_definitions_device_count(const struct vs_definitions *set)
{
    return set->device_count;
}

const struct vs_device_def *vs_definitions_device(const struct vs_definitions *set, size_t index)
{
    return index < set->device_count ? set->devices[index] : NULL;
}

const char *vs_definitions_meta(struct vs_definitions *set, const char *name)
{
    struct facts *facts = find_facts(set, name, strlen(name));
    if (facts == NULL)
        return NULL;
    if (facts->text == NULL)
        facts->text = json_dumps(facts->object, JSON_COMPACT | JSON_PRESERVE_ORDER);
    return facts->text;
}
