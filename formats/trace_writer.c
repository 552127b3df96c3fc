/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a trace: buffers definitions and events and turns them into chunks.
 * What a flush puts into small chunks stays in its buffer, so that larger ones
 * replace them (trace_shelf.c) and their room is used again (trace_space.c).
 * After the first failed write nothing more is written: what is there stays
 * readable.
 */
#include "trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "trace_chunk.h"
#include "trace_events.h"
#include "trace_facts.h"
#include "trace_shelf.h"
#include "trace_space.h"
#include "trace_table.h"

#define TABLES_MAX_BYTES \
    (1U << 20) /* buffered definitions are written for good when they reach this */
#define CHUNK_EVENTS_MAX 65536U
#define STACK_FRAMES_MAX 65536U

/*
 * The order in which a flush writes them: definitions before what refers to them
 * (modules and code objects before stacks), then the facts, then the events.
 */
enum table_index {
    TABLE_STRINGS,
    TABLE_THREADS,
    TABLE_MODULES,
    TABLE_DEVICES,
    TABLE_CODES,
    TABLE_STACKS,
    TABLE_SYMBOLS,
    TABLES
};

static const uint16_t table_types[TABLES] = {VS_CHUNK_STRINGS, VS_CHUNK_THREADS, VS_CHUNK_MODULES,
                                             VS_CHUNK_DEVICES, VS_CHUNK_CODES,   VS_CHUNK_STACKS,
                                             VS_CHUNK_SYMBOLS};

/* Rows since the last chunk that will not be merged any more. */
struct definitions {
    struct vs_table table;
    struct vs_shelf shelf;
    struct vs_extent last; /* the chunk of this kind that was put last */
};

struct vs_writer {
    int error; /* the first write error; sticky */
    struct vs_space space;
    uint64_t next_index;    /* events given so far, buffered ones included */
    uint64_t next_sequence; /* position behind the last event's cells */
    uint64_t symbol_rows;   /* rows of SYMBOLS so far: their running id */
    struct vs_packer *packer;
    struct vs_bytes payload;
    struct definitions definitions[TABLES];
    struct vs_facts facts;
    struct vs_table facts_table;
    struct vs_extent facts_place; /* the chunk that holds them */
    struct vs_sequenced_event *events;
    size_t event_count, event_capacity;
    struct vs_shelf event_shelf;
};

/* ---- chunks --------------------------------------------------------------------- */

/* Remembers the error and takes the unfinished chunk off the file, if the system lets us. */
static int fail(struct vs_writer *writer, int error)
{
    if (writer->error == 0) {
        writer->error = error;
        if (ftruncate(writer->space.fd, (off_t)writer->space.end) != 0) {
            /* The tail stays: readers find no header there. */
        }
    }
    return writer->error;
}

/* Packs what is in `payload` and puts it into the file. */
static int put_payload(struct vs_writer *writer, struct vs_chunk_header *header,
                       struct vs_extent *out)
{
    const uint8_t *stored;
    int error = vs_packer_pack(writer->packer, writer->payload.data, writer->payload.bytes, header,
                               &stored);
    writer->payload.bytes = 0;
    return error != 0 ? error : vs_space_put(&writer->space, header, stored, false, out);
}

struct rows {
    struct vs_writer *writer;
    const struct vs_table *table;
    struct vs_extent *last;
};

static int write_rows(void *context, size_t first, size_t count, struct vs_extent *out)
{
    const struct rows *rows = context;
    struct vs_chunk_header header = {.type = rows->table->shape->type, .count = (uint32_t)count};
    vs_table_id_range(rows->table, first, count, &header.first, &header.mark);
    int error = vs_table_encode_rows(rows->table, first, count, &rows->writer->payload);
    if (error == 0)
        error = put_payload(rows->writer, &header, out);
    if (error == 0)
        *rows->last = *out;
    return error;
}

static int write_events(void *context, size_t first, size_t count, struct vs_extent *out)
{
    struct vs_writer *writer = context;
    struct vs_chunk_header header = {.type = VS_CHUNK_EVENTS,
                                     .first = writer->next_index - writer->event_count + first,
                                     .mark = writer->events[first].sequence,
                                     .count = (uint32_t)count};
    int error = vs_events_encode(writer->events + first, count, &writer->payload);
    return error != 0 ? error : put_payload(writer, &header, out);
}

/* ---- what a flush does ------------------------------------------------------------ */

static int flush_table(struct vs_writer *writer, struct definitions *definitions, bool seal)
{
    struct rows rows = {writer, &definitions->table, &definitions->last};
    int error = (seal ? vs_shelf_seal : vs_shelf_flush)(&definitions->shelf, &writer->space,
                                                        definitions->table.rows, write_rows, &rows);
    if (seal)
        vs_table_clear(&definitions->table);
    return error;
}

/* All facts in one chunk, in place of the one before. */
static int flush_facts(struct vs_writer *writer)
{
    struct vs_extent before = writer->facts_place, place;
    struct rows rows = {writer, &writer->facts_table, &writer->facts_place};
    if (!writer->facts.changed)
        return 0;
    int error = vs_facts_rows(&writer->facts, &writer->facts_table);
    if (error == 0)
        error = write_rows(&rows, 0, writer->facts_table.rows, &place);
    return error != 0 ? error : vs_space_release(&writer->space, &before, before.bytes > 0);
}

/* A table that has grown large is given up for merging, and so are all of them at the end. */
static int flush_definitions(struct vs_writer *writer, bool seal)
{
    int error = 0;
    for (size_t i = 0; i < TABLES && error == 0; i++) {
        struct definitions *definitions = &writer->definitions[i];
        bool full = vs_table_bytes(&definitions->table) >= TABLES_MAX_BYTES;
        error = flush_table(writer, definitions, seal || full);
    }
    return error != 0 ? error : flush_facts(writer);
}

static int flush_events(struct vs_writer *writer, bool seal)
{
    int error = (seal ? vs_shelf_seal : vs_shelf_flush)(&writer->event_shelf, &writer->space,
                                                        writer->event_count, write_events, writer);
    if (seal)
        writer->event_count = 0;
    return error;
}

static int flush(struct vs_writer *writer, bool seal_definitions, bool seal_events)
{
    if (writer->error != 0)
        return writer->error;
    int error = flush_definitions(writer, seal_definitions);
    if (error == 0)
        error = flush_events(writer, seal_events);
    return error != 0 ? fail(writer, error) : 0;
}

int vs_writer_flush(struct vs_writer *writer)
{
    return flush(writer, false, false);
}

/* ---- life ----------------------------------------------------------------------- */

/* Only has to differ from other files': chunks of one file are told from another's by it. */
static void make_file_id(uint8_t id[16])
{
    if (getentropy(id, 16) == 0)
        return;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t words[2] = {(uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec,
                         (uint64_t)getpid()};
    words[0] = vs_payload_hash(words, sizeof words);
    words[1] = vs_payload_hash(words, sizeof words);
    memcpy(id, words, sizeof words);
}

static int write_file_header(struct vs_writer *writer, int fd)
{
    struct vs_file_header header = {.version = VS_TRACE_FORMAT_VERSION};
    uint8_t encoded[VS_FILE_HEADER_BYTES];
    make_file_id(header.file_id);
    vs_file_header_encode(&header, encoded);
    vs_space_init(&writer->space, fd, vs_file_tag(header.file_id), sizeof encoded);
    return vs_space_write(fd, encoded, sizeof encoded, 0);
}

static void free_writer(struct vs_writer *writer)
{
    for (size_t i = 0; i < TABLES; i++)
        vs_table_free(&writer->definitions[i].table);
    vs_table_free(&writer->facts_table);
    vs_facts_free(&writer->facts);
    vs_bytes_free(&writer->payload);
    vs_packer_free(writer->packer);
    free(writer->events);
    free(writer);
}

int vs_writer_create(int fd, size_t chunk_events, int zstd_level, struct vs_writer **out)
{
    *out = NULL;
    struct vs_writer *writer = calloc(1, sizeof *writer);
    if (writer == NULL)
        return -ENOMEM;
    writer->event_capacity = chunk_events == 0                 ? 1
                             : chunk_events > CHUNK_EVENTS_MAX ? CHUNK_EVENTS_MAX
                                                               : chunk_events;
    writer->events = malloc(writer->event_capacity * sizeof *writer->events);
    writer->packer = vs_packer_new(zstd_level);
    for (size_t i = 0; i < TABLES; i++)
        vs_table_init(&writer->definitions[i].table, table_types[i]);
    vs_table_init(&writer->facts_table, VS_CHUNK_META);
    int error =
        writer->events == NULL || writer->packer == NULL ? -ENOMEM : write_file_header(writer, fd);
    if (error != 0) {
        free_writer(writer);
        return error;
    }
    *out = writer;
    return 0;
}

uint64_t vs_writer_bytes(const struct vs_writer *writer)
{
    return writer->space.end;
}

static int write_end(struct vs_writer *writer)
{
    struct vs_chunk_header header = {.type = VS_CHUNK_END,
                                     .first = writer->next_index,
                                     .mark = writer->next_sequence,
                                     .payload_hash = vs_payload_hash(NULL, 0)};
    struct vs_extent place;
    return vs_space_put(&writer->space, &header, NULL, true, &place);
}

int vs_writer_close(struct vs_writer *writer, bool complete)
{
    /* First in small chunks, in case there is no time for more. */
    int error = vs_writer_flush(writer);
    if (error == 0)
        error = flush(writer, true, true);
    if (error == 0) {
        for (size_t i = 0; i < TABLES; i++)
            vs_space_may_move(&writer->space, &writer->definitions[i].last);
        vs_space_may_move(&writer->space, &writer->facts_place);
        error = vs_space_settle(&writer->space);
        if (error == 0 && complete)
            error = write_end(writer);
        if (error != 0)
            fail(writer, error);
    }
    free_writer(writer);
    return error;
}

/* ---- what callers add -------------------------------------------------------------- */

int vs_writer_event(struct vs_writer *writer, const struct vs_sequenced_event *event)
{
    if (writer->error != 0)
        return writer->error;
    uint64_t behind;
    if (event->sequence < writer->next_sequence ||
        __builtin_add_overflow(event->sequence, (uint64_t)event->cells, &behind))
        return -EINVAL;
    writer->events[writer->event_count++] = *event;
    writer->next_index++;
    writer->next_sequence = behind;
    return writer->event_count == writer->event_capacity ? flush(writer, false, true) : 0;
}

int vs_writer_hole(struct vs_writer *writer, uint64_t events)
{
    int error = events == 0 ? 0 : flush(writer, false, true);
    writer->next_index += error == 0 ? events : 0;
    return error;
}

int vs_writer_cut(struct vs_writer *writer, uint64_t events, uint64_t gaps)
{
    struct vs_chunk_header header = {.type = VS_CHUNK_CUT,
                                     .first = events,
                                     .mark = gaps,
                                     .payload_hash = vs_payload_hash(NULL, 0)};
    struct vs_extent place;
    int error = writer->error != 0 ? 0 : vs_space_put(&writer->space, &header, NULL, false, &place);
    return error != 0 ? fail(writer, error) : writer->error;
}

static int write_if_full(struct vs_writer *writer, enum table_index index)
{
    if (vs_table_bytes(&writer->definitions[index].table) < TABLES_MAX_BYTES)
        return 0;
    int error = flush_definitions(writer, false);
    return error != 0 ? fail(writer, error) : 0;
}

static int add_row(struct vs_writer *writer, enum table_index index, const struct vs_table_row *row)
{
    if (writer->error != 0)
        return writer->error;
    int error = vs_table_add(&writer->definitions[index].table, row);
    return error != 0 ? fail(writer, error) : write_if_full(writer, index);
}

int vs_writer_string(struct vs_writer *writer, uint32_t id, const char *text, size_t bytes)
{
    struct vs_table_row row = {.numbers = {id}, .texts = {{text, bytes}}};
    return bytes > VS_TABLE_TEXT_MAX_BYTES ? -EINVAL : add_row(writer, TABLE_STRINGS, &row);
}

int vs_writer_thread(struct vs_writer *writer, const struct vs_thread_def *thread)
{
    struct vs_table_row row = {
        .numbers = {thread->thread},
        .texts = {{thread->name, strnlen(thread->name, sizeof thread->name)}}};
    return add_row(writer, TABLE_THREADS, &row);
}

int vs_writer_module(struct vs_writer *writer, const struct vs_module_def *module)
{
    const char *path = module->path == NULL ? "" : module->path;
    size_t path_bytes = strlen(path);
    if (module->build_id_bytes > sizeof module->build_id || path_bytes > VS_TABLE_TEXT_MAX_BYTES)
        return -EINVAL;
    struct vs_table_row row = {
        .numbers = {module->id, module->generation, module->start, module->end, module->load_bias},
        .texts = {{(const char *)module->build_id, module->build_id_bytes}, {path, path_bytes}}};
    return add_row(writer, TABLE_MODULES, &row);
}

int vs_writer_device(struct vs_writer *writer, const struct vs_device_def *device)
{
    if (device->device < 0 || device->device > INT8_MAX)
        return -EINVAL;
    struct vs_table_row row = {
        .numbers = {(uint64_t)device->device, device->total_bytes, device->integrated},
        .texts = {{(const char *)device->uuid, sizeof device->uuid},
                  {(const char *)device->mig_uuid, sizeof device->mig_uuid},
                  {device->pci_id, strnlen(device->pci_id, sizeof device->pci_id)},
                  {device->name, strnlen(device->name, sizeof device->name)}}};
    return add_row(writer, TABLE_DEVICES, &row);
}

int vs_writer_stack(struct vs_writer *writer, const struct vs_stack_def *stack)
{
    struct vs_table_row row = {.numbers = {stack->id, stack->generation},
                               .words = stack->frames,
                               .word_count = stack->frame_count};
    return stack->frame_count > STACK_FRAMES_MAX ? -EINVAL : add_row(writer, TABLE_STACKS, &row);
}

int vs_writer_code(struct vs_writer *writer, const struct vs_code_def *code)
{
    struct vs_table_row row = {.numbers = {code->id, code->first_line},
                               .texts = {vs_text_of(code->name), vs_text_of(code->file)}};
    if (row.texts[0].bytes > VS_TABLE_TEXT_MAX_BYTES ||
        row.texts[1].bytes > VS_TABLE_TEXT_MAX_BYTES)
        return -EINVAL;
    return add_row(writer, TABLE_CODES, &row);
}

int vs_writer_symbol(struct vs_writer *writer, const struct vs_symbol_def *symbol)
{
    if (writer->error != 0)
        return writer->error;
    int error = vs_table_add_symbol(&writer->definitions[TABLE_SYMBOLS].table, symbol,
                                    &writer->symbol_rows);
    if (error == -EINVAL)
        return error;
    return error != 0 ? fail(writer, error) : write_if_full(writer, TABLE_SYMBOLS);
}

int vs_writer_meta(struct vs_writer *writer, const char *name, const char *json, size_t bytes)
{
    if (writer->error != 0 || bytes > VS_TABLE_TEXT_MAX_BYTES)
        return writer->error != 0 ? writer->error : -EINVAL;
    return vs_facts_lay(&writer->facts, name, json, bytes);
}

/* One part of a key frame: as many events as a chunk takes. */
static int write_keyframe_part(struct vs_writer *writer, uint64_t sequence,
                               const struct vs_sequenced_event *live, size_t count,
                               const struct vs_keyframe_part *part)
{
    struct vs_chunk_header header = {.type = VS_CHUNK_KEYFRAME,
                                     .first = writer->next_index,
                                     .mark = sequence,
                                     .count = (uint32_t)count};
    struct vs_extent place;
    int error = vs_keyframe_encode(live, count, part, &writer->payload);
    if (error == 0)
        error = put_payload(writer, &header, &place);
    return error != 0 ? fail(writer, error) : 0;
}

int vs_writer_keyframe(struct vs_writer *writer, uint64_t sequence,
                       const struct vs_sequenced_event *live, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (live[i].sequence < live[i - 1].sequence)
            return -EINVAL;
    int error = vs_writer_flush(writer);
    size_t done = 0;
    do {
        struct vs_keyframe_part part = {.ordinal = done, .total = count};
        size_t some = count - done < CHUNK_EVENTS_MAX ? count - done : CHUNK_EVENTS_MAX;
        if (error == 0)
            error = write_keyframe_part(writer, sequence, live + done, some, &part);
        done += some;
    } while (error == 0 && done < count);
    return error;
}
