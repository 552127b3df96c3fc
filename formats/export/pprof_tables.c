/* SPDX-License-Identifier: Apache-2.0 */
/* Texts, functions, locations and mappings of a profile: see pprof_tables.h. */
#include "pprof_tables.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

#include "proto.h"
#include "replay/grow.h"

enum { PROFILE_MAPPING = 3, PROFILE_LOCATION = 4, PROFILE_FUNCTION = 5, PROFILE_STRING = 6 };
enum {
    MAPPING_ID = 1,
    MAPPING_START = 2,
    MAPPING_LIMIT = 3,
    MAPPING_FILE = 5,
    MAPPING_BUILD_ID = 6,
    MAPPING_HAS_FUNCTIONS = 7
};
enum { LOCATION_ID = 1, LOCATION_MAPPING = 2, LOCATION_ADDRESS = 3, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1, LINE_LINE = 2 };
enum { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_FILE = 4 };

/* ---- texts
 * ------------------------------------------------------------------------------------------ */

static uint32_t add_text(struct pprof_tables *tables, const char *text)
{
    if (!vs_grow(&tables->texts, &tables->text_room, tables->text_count + 1,
                 sizeof(*tables->texts))) {
        tables->failed = true;
        return 0;
    }
    tables->texts[tables->text_count] = text;
    return (uint32_t)tables->text_count++;
}

/* Two texts of one hash: the second is kept under the next number that is free. */
static uint32_t *text_slot(struct pprof_tables *tables, const char *text, uint64_t *key)
{
    uint32_t *known;
    *key = XXH3_64bits(text, strlen(text));
    while ((known = pprof_index_get(&tables->text_index, *key)) != NULL &&
           strcmp(tables->texts[*known], text) != 0)
        ++*key;
    return known;
}

static uint32_t index_of(struct pprof_tables *tables, const char *text, bool copy)
{
    uint64_t key;
    if (text == NULL || text[0] == 0)
        return 0;
    const uint32_t *known = text_slot(tables, text, &key);
    if (known != NULL)
        return *known;
    if (copy)
        text = vs_arena_text(&tables->arena, text, strlen(text));
    uint32_t *slot = text == NULL ? NULL : pprof_index_put(&tables->text_index, key);
    if (slot == NULL) {
        tables->failed = true;
        return 0;
    }
    return *slot = add_text(tables, text);
}

uint32_t pprof_string(struct pprof_tables *tables, const char *text)
{
    return index_of(tables, text, false);
}

uint32_t pprof_string_copy(struct pprof_tables *tables, const char *text)
{
    return index_of(tables, text, true);
}

/* ---- functions and mappings
 * --------------------------------------------------------------------------- */

/* 0: without a name. */
static uint32_t function_of(struct pprof_tables *tables, const char *name, const char *file)
{
    struct pprof_function function = {pprof_string(tables, name), pprof_string(tables, file)};
    uint64_t key = (uint64_t)function.name << 32 | function.file;
    uint32_t *slot = pprof_index_put(&tables->function_index, key);
    if (slot == NULL || (*slot == 0 && !vs_grow(&tables->functions, &tables->function_room,
                                                tables->function_count + 1, sizeof(function)))) {
        tables->failed = true;
        return 0;
    }
    if (*slot == 0) {
        tables->functions[tables->function_count++] = function;
        *slot = (uint32_t)tables->function_count;
    }
    return *slot;
}

static uint32_t add_mapping(struct pprof_tables *tables, const struct vs_module_def *module)
{
    if (!vs_grow(&tables->mappings, &tables->mapping_room, tables->mapping_count + 1,
                 sizeof(*tables->mappings))) {
        tables->failed = true;
        return 0;
    }
    tables->mappings[tables->mapping_count++] = (struct pprof_mapping){.module = module};
    return (uint32_t)tables->mapping_count;
}

/* A frame names its module by the path that the module's definition owns. */
static uint64_t key_of_path(const char *path)
{
    return (uint64_t)(uintptr_t)path;
}

static int index_modules(struct pprof_tables *tables, const struct vs_reader *reader,
                         const char *exe)
{
    for (size_t i = 0; i < vs_reader_module_count(reader); i++) {
        const struct vs_module_def *module = vs_reader_module_number(reader, i);
        if (module->path == NULL)
            continue;
        uint32_t *slot = pprof_index_put(&tables->module_index, key_of_path(module->path));
        if (slot == NULL)
            return -ENOMEM;
        *slot = module->id;
        if (exe != NULL && tables->mapping_count == 0 && strcmp(module->path, exe) == 0)
            add_mapping(tables, module);
    }
    return tables->failed ? -ENOMEM : 0;
}

/* The mapping of a module; 0 for code of no module. */
static uint32_t mapping_of(struct pprof_tables *tables, const struct vs_frame *frame)
{
    const uint32_t *id = frame->module == NULL || frame->kind != VS_FRAME_NATIVE
                             ? NULL
                             : pprof_index_get(&tables->module_index, key_of_path(frame->module));
    const struct vs_module_def *module = id == NULL ? NULL : vs_reader_module(tables->reader, *id);
    if (module == NULL)
        return 0;
    for (size_t i = 0; i < tables->mapping_count; i++)
        if (tables->mappings[i].module == module)
            return (uint32_t)i + 1;
    return add_mapping(tables, module);
}

int pprof_tables_new(const struct vs_reader *reader, const char *exe, struct pprof_tables **out)
{
    struct pprof_tables *tables = calloc(1, sizeof(*tables));
    *out = tables;
    if (tables == NULL)
        return -ENOMEM;
    tables->reader = reader;
    add_text(tables, "");
    return index_modules(tables, reader, exe);
}

void pprof_tables_free(struct pprof_tables *tables)
{
    if (tables == NULL)
        return;
    free(tables->texts);
    free(tables->functions);
    free(tables->lines);
    free(tables->locations);
    free(tables->mappings);
    pprof_index_release(&tables->text_index);
    pprof_index_release(&tables->function_index);
    pprof_index_release(&tables->location_index);
    pprof_index_release(&tables->module_index);
    vs_arena_free(&tables->arena);
    free(tables);
}

/* ---- locations
 * ------------------------------------------------------------------------------------------ */

static bool add_line(struct pprof_tables *tables, uint32_t function, uint32_t line)
{
    if (!vs_grow(&tables->lines, &tables->line_room, tables->line_count + 1,
                 sizeof(*tables->lines)))
        return false;
    tables->lines[tables->line_count++] = (struct pprof_line){function, line};
    return true;
}

static bool same_location(const struct pprof_tables *tables, const struct pprof_location *a,
                          const struct pprof_location *b)
{
    return a->mapping == b->mapping && a->address == b->address && a->line_count == b->line_count &&
           memcmp(tables->lines + a->first_line, tables->lines + b->first_line,
                  a->line_count * sizeof(*tables->lines)) == 0;
}

/* Its lines were added last; they go again when the location is known. */
static uint64_t location_id(struct pprof_tables *tables, const struct pprof_location *location)
{
    uint64_t parts[] = {location->mapping, location->address,
                        XXH3_64bits(tables->lines + location->first_line,
                                    location->line_count * sizeof(*tables->lines))};
    uint64_t key = XXH3_64bits(parts, sizeof(parts));
    const uint32_t *known;
    while ((known = pprof_index_get(&tables->location_index, key)) != NULL &&
           !same_location(tables, &tables->locations[*known - 1], location))
        key++;
    if (known != NULL) {
        tables->line_count = location->first_line;
        return *known;
    }
    uint32_t *slot = pprof_index_put(&tables->location_index, key);
    if (slot == NULL || !vs_grow(&tables->locations, &tables->location_room,
                                 tables->location_count + 1, sizeof(*location))) {
        tables->failed = true;
        return 0;
    }
    tables->locations[tables->location_count++] = *location;
    return *slot = (uint32_t)tables->location_count;
}

static void note_names(struct pprof_mapping *mapping, bool named)
{
    mapping->named |= named;
    mapping->unnamed |= !named;
}

uint64_t pprof_location(struct pprof_tables *tables, const struct vs_frame *frames, size_t count)
{
    const struct vs_frame *last = &frames[count - 1];
    struct pprof_location location = {.mapping = mapping_of(tables, last),
                                      .first_line = (uint32_t)tables->line_count};
    if (last->kind == VS_FRAME_NATIVE)
        location.address = last->address;
    if (location.mapping != 0) {
        struct pprof_mapping *mapping = &tables->mappings[location.mapping - 1];
        location.address += mapping->module->load_bias;
        note_names(mapping, last->function != NULL);
    }
    for (size_t i = 0; i < count && !tables->failed; i++) {
        const char *name = frames[i].function;
        if (name == NULL && frames[i].kind == VS_FRAME_NATIVE)
            continue;
        uint32_t function = function_of(tables, name == NULL ? "?" : name, frames[i].file);
        tables->failed |= !add_line(tables, function, frames[i].line);
        location.line_count++;
    }
    return tables->failed ? 0 : location_id(tables, &location);
}

uint64_t pprof_place(struct pprof_tables *tables, const char *text)
{
    struct vs_frame frame = {.kind = VS_FRAME_NOTE, .function = text};
    return pprof_location(tables, &frame, 1);
}

/* ---- writing
 * ---------------------------------------------------------------------------------------------- */

static void put_build_id(struct pprof_tables *tables, struct vs_proto *message,
                         const struct vs_module_def *module)
{
    char hex[2 * sizeof(module->build_id) + 1] = "";
    for (size_t i = 0; i < module->build_id_bytes && i < sizeof(module->build_id); i++)
        snprintf(hex + 2 * i, 3, "%02x", module->build_id[i]);
    vs_proto_count(message, MAPPING_BUILD_ID, pprof_string_copy(tables, hex));
}

static void put_mappings(struct pprof_tables *tables, struct vs_sink *sink,
                         struct vs_proto *message)
{
    for (size_t i = 0; i < tables->mapping_count; i++) {
        const struct pprof_mapping *mapping = &tables->mappings[i];
        vs_proto_clear(message);
        vs_proto_count(message, MAPPING_ID, i + 1);
        vs_proto_count(message, MAPPING_START, mapping->module->start);
        vs_proto_count(message, MAPPING_LIMIT, mapping->module->end);
        vs_proto_count(message, MAPPING_FILE, pprof_string(tables, mapping->module->path));
        put_build_id(tables, message, mapping->module);
        /* False asks a reader to look for names itself. */
        vs_proto_count(message, MAPPING_HAS_FUNCTIONS, mapping->named && !mapping->unnamed);
        vs_proto_put(sink, PROFILE_MAPPING, message);
    }
}

static void put_locations(const struct pprof_tables *tables, struct vs_sink *sink,
                          struct vs_proto *message, struct vs_proto *line)
{
    for (size_t i = 0; i < tables->location_count; i++) {
        const struct pprof_location *location = &tables->locations[i];
        vs_proto_clear(message);
        vs_proto_count(message, LOCATION_ID, i + 1);
        vs_proto_count(message, LOCATION_MAPPING, location->mapping);
        vs_proto_count(message, LOCATION_ADDRESS, location->address);
        for (size_t at = 0; at < location->line_count; at++) {
            const struct pprof_line *one = &tables->lines[location->first_line + at];
            vs_proto_clear(line);
            vs_proto_count(line, LINE_FUNCTION, one->function);
            vs_proto_count(line, LINE_LINE, one->line);
            vs_proto_message(message, LOCATION_LINE, line);
        }
        vs_proto_put(sink, PROFILE_LOCATION, message);
    }
}

static void put_functions(const struct pprof_tables *tables, struct vs_sink *sink,
                          struct vs_proto *message)
{
    for (size_t i = 0; i < tables->function_count; i++) {
        vs_proto_clear(message);
        vs_proto_count(message, FUNCTION_ID, i + 1);
        vs_proto_count(message, FUNCTION_NAME, tables->functions[i].name);
        /* Without a system name readers take the name as it is: pprof would cut "<module>". */
        vs_proto_count(message, FUNCTION_FILE, tables->functions[i].file);
        vs_proto_put(sink, PROFILE_FUNCTION, message);
    }
}

void pprof_put_tables(struct pprof_tables *tables, struct vs_sink *sink)
{
    struct vs_proto message = {0}, line = {0};
    put_mappings(tables, sink, &message);
    put_locations(tables, sink, &message, &line);
    put_functions(tables, sink, &message);
    for (size_t i = 0; i < tables->text_count; i++) {
        vs_proto_clear(&message);
        vs_proto_text(&message, PROFILE_STRING, tables->texts[i]);
        if (message.failed)
            vs_sink_fail(sink, -ENOMEM);
        vs_sink_put(sink, message.data, message.used);
    }
    vs_proto_release(&message);
    vs_proto_release(&line);
}
