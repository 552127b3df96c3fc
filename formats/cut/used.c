/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which definitions a cut trace needs: those of the ids in its events, and of what
 * they refer to in turn. Each is written before the first event that needs it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cut_internal.h"
#include "frame_word.h"
#include "redact.h"
#include "replay/state.h"

struct vs_cut_used {
    const struct vs_reader *reader;
    struct vs_writer *writer;
    struct vs_sizes strings, threads, modules, codes, stacks; /* ids written, or to be */
    struct vs_sizes symbols;                                  /* module and address in one */
    uint32_t *wanted;                                         /* stacks to be written */
    size_t wanted_count, wanted_room;
};

struct vs_cut_used *cut_used_new(const struct vs_reader *reader, struct vs_writer *writer)
{
    struct vs_cut_used *used = calloc(1, sizeof(*used));
    if (used != NULL) {
        used->reader = reader;
        used->writer = writer;
    }
    return used;
}

void cut_used_free(struct vs_cut_used *used)
{
    if (used == NULL)
        return;
    vs_sizes_release(&used->strings);
    vs_sizes_release(&used->threads);
    vs_sizes_release(&used->modules);
    vs_sizes_release(&used->codes);
    vs_sizes_release(&used->stacks);
    vs_sizes_release(&used->symbols);
    free(used->wanted);
    free(used);
}

/* 1 when it is the first time, 0 when not, -ENOMEM. */
static int first_time(struct vs_sizes *set, uint64_t id)
{
    size_t before = set->count;
    if (vs_sizes_put(set, id) == NULL)
        return -ENOMEM;
    return set->count > before;
}

/* ---- what belongs to no event ----------------------------------------------------------- */

static int take_fact(void *self, uint16_t chunk_type, const struct vs_table_row *row)
{
    struct vs_cut_used *used = self;
    if (chunk_type != VS_CHUNK_META)
        return 0;
    char *name = strndup(row->texts[0].data, row->texts[0].bytes);
    int error = name == NULL
                    ? -ENOMEM
                    : vs_writer_meta(used->writer, name, row->texts[1].data, row->texts[1].bytes);
    free(name);
    return error == -EINVAL ? 0 : error; /* no JSON: nobody reads it */
}

int cut_used_facts(struct vs_cut_used *used, const char *path, bool whole)
{
    static const char not_whole[] = "{\"complete\":false}";
    struct vs_error error;
    int result = vs_definition_rows(path, take_fact, used, &error);
    /* What was damaged is not in the copy, which would look whole. */
    if (result == 0 && !whole)
        result = vs_writer_meta(used->writer, "end", not_whole, sizeof(not_whole) - 1);
    for (size_t i = 0; result == 0 && i < vs_reader_device_count(used->reader); i++)
        result = vs_writer_device(used->writer, vs_reader_device(used->reader, i));
    return result;
}

/* ---- what an event refers to ---------------------------------------------------------------- */

static int use_string(struct vs_cut_used *used, uint32_t id)
{
    int first = id == 0 ? 0 : first_time(&used->strings, id);
    const char *text = first == 1 ? vs_reader_string(used->reader, id) : NULL;
    return first < 0      ? first
           : text == NULL ? 0
                          : vs_writer_string(used->writer, id, text, strlen(text));
}

static int use_module(struct vs_cut_used *used, const struct vs_module_def *module)
{
    int first = module == NULL ? 0 : first_time(&used->modules, module->id);
    return first == 1 ? vs_writer_module(used->writer, module) : first;
}

static int use_thread(struct vs_cut_used *used, uint32_t id)
{
    int first = first_time(&used->threads, id);
    const struct vs_thread_def *thread = first == 1 ? vs_reader_thread(used->reader, id) : NULL;
    return first < 0 ? first : thread == NULL ? 0 : vs_writer_thread(used->writer, thread);
}

static int want_stack(struct vs_cut_used *used, uint32_t id)
{
    int first = id == 0 ? 0 : first_time(&used->stacks, id);
    if (first != 1)
        return first;
    if (used->wanted_count == used->wanted_room) {
        size_t room = used->wanted_room == 0 ? 256 : 2 * used->wanted_room;
        uint32_t *grown = realloc(used->wanted, room * sizeof(*grown));
        if (grown == NULL)
            return -ENOMEM;
        used->wanted = grown;
        used->wanted_room = room;
    }
    used->wanted[used->wanted_count++] = id;
    return 0;
}

static bool names_text(const struct vs_event *event)
{
    return event->kind == VS_KIND_MARK || event->kind == VS_KIND_PHASE_BEGIN;
}

int cut_used_event(struct vs_cut_used *used, const struct vs_sequenced_event *sequenced)
{
    const struct vs_event *event = &sequenced->event;
    int error = use_thread(used, sequenced->thread);
    if (error == 0)
        error = use_string(used, event->call);
    if (error == 0)
        error = use_string(used, event->label);
    if (error == 0 && names_text(event))
        error = use_string(used, (uint32_t)event->extra[0]);
    if (error == 0 && event->module != 0)
        error = use_module(used, vs_reader_module(used->reader, event->module));
    return error != 0 ? error : want_stack(used, event->stack);
}

/* ---- stacks ------------------------------------------------------------------------------------
 */

/* Module and address as one number; 0 when they do not go into one. */
static uint64_t symbol_key(uint32_t module, uint64_t address)
{
    return module >> 20 != 0 || address >> 44 != 0 ? 0 : (uint64_t)module << 44 | address;
}

static int use_native(struct vs_cut_used *used, uint64_t word, uint32_t generation)
{
    uint64_t address = vs_frame_lookup_address(word);
    const struct vs_module_def *module = vs_reader_module_at(used->reader, address, generation);
    int error = use_module(used, module);
    if (error != 0 || module == NULL)
        return error;
    uint64_t key = symbol_key(module->id, address - module->load_bias);
    int first = key == 0 ? 1 : first_time(&used->symbols, key);
    const struct vs_symbol_def *symbol =
        first == 1 ? vs_reader_symbol(used->reader, module->id, address - module->load_bias) : NULL;
    return first < 0 ? first : symbol == NULL ? 0 : vs_writer_symbol(used->writer, symbol);
}

static int use_code(struct vs_cut_used *used, uint32_t id)
{
    int first = id == 0 ? 0 : first_time(&used->codes, id);
    const struct vs_code_def *code = first == 1 ? vs_reader_code(used->reader, id) : NULL;
    return first < 0 ? first : code == NULL ? 0 : vs_writer_code(used->writer, code);
}

static int write_stack(struct vs_cut_used *used, uint32_t id)
{
    const struct vs_stack_def *stack = vs_reader_stack(used->reader, id);
    int error = 0;
    for (uint32_t i = 0; stack != NULL && i < stack->frame_count && error == 0; i++) {
        uint64_t word = stack->frames[i];
        error = vs_frame_is_interpreter(word) ? use_code(used, vs_frame_code(word))
                                              : use_native(used, word, stack->generation);
    }
    return error != 0 || stack == NULL ? error : vs_writer_stack(used->writer, stack);
}

static int by_id(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

int cut_used_stacks(struct vs_cut_used *used)
{
    int error = 0;
    if (used->wanted_count > 1) /* the order in which a reader finds them quickly */
        qsort(used->wanted, used->wanted_count, sizeof(*used->wanted), by_id);
    for (size_t i = 0; i < used->wanted_count && error == 0; i++)
        error = write_stack(used, used->wanted[i]);
    used->wanted_count = 0;
    return error;
}
