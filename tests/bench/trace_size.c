/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes per event of a recorded stream when it comes at another rate: the events
 * of a trace are written anew by the real writer on a simulated clock, flushed
 * and told facts as the collector does, and the file is taken apart.
 * trace_size TRACE EVENTS_PER_SECOND pauses|stretched OUTPUT; trace_size TRACE takes the
 * trace apart as it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "trace.h"
#include "trace_columns.h"
#include "trace_events.h"
#include "trace_recovery.h"

#define NS_PER_SECOND 1000000000ULL
#define FLUSH_NS (NS_PER_SECOND / 4 / 4 * 3) /* the collector's, of VRAMSCOPE_FLUSH_MS = 250 */
#define FACTS_NS (2 * NS_PER_SECOND)
#define CHUNK_EVENTS 16384U
#define ZSTD_LEVEL 3
#define PAUSE_EVENTS 800U /* a training step: the program waits for its device at the end */
#define IDS (1U << 16)
#define FRAMEWORK_MIN 80U
#define FRAMEWORK_MAX 84U

static void die(const char *what, int error)
{
    fprintf(stderr, "trace_size: %s: %s\n", what, strerror(-error));
    exit(1);
}

static void check(const char *what, int result)
{
    if (result < 0)
        die(what, result);
}

/* ---- writing ------------------------------------------------------------------------ */

struct replay {
    struct vs_reader *reader;
    struct vs_writer *writer;
    uint64_t rate;
    bool stretched;
    uint64_t first_ns, last_ns; /* of the recorded stream's steady part */
    uint64_t count;
    double factor;
    uint64_t clock_ns, recorded_ns, last_flush_ns, last_facts_ns, written;
    uint64_t writer_cpu_ns;
    struct vs_sequenced_event *events; /* the stream, read before the clock runs */
    uint8_t strings[IDS], stacks[IDS], modules[IDS], thread_known;
};

static uint64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

static void define_string(struct replay *replay, uint32_t id)
{
    const char *text =
        id < IDS && !replay->strings[id] ? vs_reader_string(replay->reader, id) : NULL;
    if (text == NULL)
        return;
    replay->strings[id] = 1;
    check("string", vs_writer_string(replay->writer, id, text, strlen(text)));
}

static void define(struct replay *replay, const struct vs_sequenced_event *event)
{
    const struct vs_event *e = &event->event;
    define_string(replay, e->call);
    define_string(replay, e->label);
    const struct vs_module_def *module = e->module < IDS && !replay->modules[e->module]++
                                             ? vs_reader_module(replay->reader, e->module)
                                             : NULL;
    const struct vs_stack_def *stack = e->stack < IDS && !replay->stacks[e->stack]++
                                           ? vs_reader_stack(replay->reader, e->stack)
                                           : NULL;
    if (module != NULL)
        check("module", vs_writer_module(replay->writer, module));
    if (stack != NULL)
        check("stack", vs_writer_stack(replay->writer, stack));
    const struct vs_thread_def *thread = vs_reader_thread(replay->reader, event->thread);
    if (!replay->thread_known && thread != NULL) {
        replay->thread_known = 1;
        check("thread", vs_writer_thread(replay->writer, thread));
    }
}

static void tell_facts(struct replay *replay)
{
    static const char *const names[] = {"process", "clock", "hooks"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *text = vs_reader_meta(replay->reader, names[i]);
        if (text != NULL)
            check("facts", vs_writer_meta(replay->writer, names[i], text, strlen(text)));
    }
}

/* The time at which the event would have come. */
static uint64_t retime(struct replay *replay, uint64_t time_ns)
{
    uint64_t step = time_ns - replay->recorded_ns;
    replay->recorded_ns = time_ns;
    if (replay->stretched)
        step = (uint64_t)((double)step * replay->factor);
    replay->clock_ns += step;
    if (!replay->stretched && replay->written % PAUSE_EVENTS == 0) {
        uint64_t due = replay->first_ns + replay->written * NS_PER_SECOND / replay->rate;
        replay->clock_ns = due > replay->clock_ns ? due : replay->clock_ns;
    }
    return replay->clock_ns;
}

static void write_one(struct replay *replay, struct vs_sequenced_event *event)
{
    event->event.time_ns = retime(replay, event->event.time_ns);
    if (replay->clock_ns - replay->last_flush_ns >= FLUSH_NS) {
        if (replay->clock_ns - replay->last_facts_ns >= FACTS_NS) {
            replay->last_facts_ns = replay->clock_ns;
            tell_facts(replay);
        }
        check("flush", vs_writer_flush(replay->writer));
        replay->last_flush_ns = replay->clock_ns;
    }
    define(replay, event);
    check("event", vs_writer_event(replay->writer, event));
    replay->written++;
}

static bool of_framework(const struct vs_event *event)
{
    return event->kind >= FRAMEWORK_MIN && event->kind <= FRAMEWORK_MAX;
}

/* The stream from the framework's first event on: before it the program starts. */
static void load(struct replay *replay)
{
    struct vs_sequenced_event event;
    replay->events = malloc((vs_reader_status(replay->reader)->events + 1) * sizeof event);
    while (replay->events != NULL && vs_reader_next(replay->reader, &event) == 1) {
        if (replay->count == 0 && !of_framework(&event.event))
            continue;
        replay->events[replay->count++] = event;
        if (of_framework(&event.event))
            replay->last_ns = event.event.time_ns;
    }
    if (replay->count < 2)
        die("the trace has no framework events", -EINVAL);
    replay->first_ns = replay->events[0].event.time_ns;
    replay->factor = (double)replay->count / (double)replay->rate /
                     ((double)(replay->last_ns - replay->first_ns) / (double)NS_PER_SECOND);
    replay->clock_ns = replay->recorded_ns = replay->last_flush_ns = replay->first_ns;
}

static void write_stream(struct replay *replay, int fd)
{
    load(replay);
    uint64_t before = cpu_ns();
    check("create", vs_writer_create(fd, CHUNK_EVENTS, ZSTD_LEVEL, &replay->writer));
    tell_facts(replay);
    check("flush", vs_writer_flush(replay->writer));
    for (uint64_t i = 0; i < replay->count; i++)
        write_one(replay, &replay->events[i]);
    check("close", vs_writer_close(replay->writer, true));
    replay->writer_cpu_ns = cpu_ns() - before;
    free(replay->events);
}

/* ---- taking apart --------------------------------------------------------------------- */

#define COLUMNS 80U
#define TYPES 16U

struct sizes {
    uint64_t file, room, event_headers, event_chunks, event_stored;
    uint64_t by_type[TYPES]; /* chunks of definitions, by the type's low bits */
    uint64_t chunks[TYPES];
    uint64_t by_column[COLUMNS]; /* each packed by itself */
    uint8_t coding[COLUMNS];
};

static void add_columns(struct sizes *sizes, struct vs_packer *packer, const uint8_t *raw,
                        size_t bytes)
{
    const uint8_t *at = raw, *start = raw, *end = raw + bytes;
    struct vs_column column;
    while (vs_column_next(&at, end, &column) > 0) {
        struct vs_chunk_header header;
        const uint8_t *stored;
        check("column", vs_packer_pack(packer, start, (size_t)(at - start), &header, &stored));
        if (column.id < COLUMNS) {
            sizes->by_column[column.id] += header.stored_bytes;
            sizes->coding[column.id] = column.coding;
        }
        start = at;
    }
}

/* A trace that was closed has each event in one chunk. */
static void take_apart(const char *path, struct sizes *sizes)
{
    struct vs_source source;
    struct vs_index index;
    struct vs_trace_status status = {0};
    struct vs_unpacker *unpacker = vs_unpacker_new();
    struct vs_packer *packer = vs_packer_new(ZSTD_LEVEL);
    check(path, vs_source_open(path, &source));
    check(path, vs_index_build(&source, &index, &status));
    sizes->file = sizes->room = source.bytes;
    for (size_t i = 0; i < index.count; i++) {
        const struct vs_chunk_header *header = &index.refs[i].header;
        uint64_t span = vs_chunk_span(header);
        const uint8_t *raw;
        int error;
        sizes->room -= span;
        if (header->type != VS_CHUNK_EVENTS) {
            sizes->by_type[header->type % TYPES] += span;
            sizes->chunks[header->type % TYPES]++;
            continue;
        }
        const uint8_t *whole = vs_source_at(&source, index.refs[i].offset, span, &error);
        check(path, error);
        check(path, vs_unpacker_unpack(unpacker, header, whole + VS_CHUNK_HEADER_BYTES, &raw));
        sizes->event_chunks++;
        sizes->event_headers += span - header->stored_bytes;
        sizes->event_stored += header->stored_bytes;
        add_columns(sizes, packer, raw, header->raw_bytes);
    }
    sizes->room -= VS_FILE_HEADER_BYTES + VS_CHUNK_HEADER_BYTES; /* the file's own and END */
    vs_index_free(&index);
    vs_source_close(&source);
    vs_unpacker_free(unpacker);
    vs_packer_free(packer);
}

/* ---- telling --------------------------------------------------------------------------- */

static const char *const column_names[COLUMNS] = {
    [1] = "sequence", [2] = "cells",     [3] = "thread",    [4] = "time",        [5] = "kind",
    [6] = "address",  [7] = "size",      [8] = "stream",    [9] = "context",     [10] = "pool",
    [11] = "handle",  [12] = "extra[0]", [13] = "extra[1]", [14] = "free_bytes", [15] = "duration",
    [16] = "result",  [17] = "module",   [18] = "stack",    [19] = "call",       [20] = "label",
    [21] = "device",  [22] = "flags",
};
static const char *const type_names[TYPES] = {
    [VS_CHUNK_STRINGS] = "strings",    [VS_CHUNK_THREADS] = "threads",
    [VS_CHUNK_MODULES] = "modules",    [VS_CHUNK_DEVICES] = "devices",
    [VS_CHUNK_STACKS] = "stacks",      [VS_CHUNK_META] = "facts",
    [VS_CHUNK_CODES] = "code objects", [VS_CHUNK_SYMBOLS] = "symbols",
};

static void row(const char *what, uint64_t bytes, uint64_t events)
{
    printf("| %s | %.3f |\n", what, (double)bytes / (double)events);
}

static void tell_events(const struct sizes *sizes, uint64_t events)
{
    row("**an event, everything of it**", sizes->event_stored + sizes->event_headers, events);
    for (size_t i = 0; i < COLUMNS; i++)
        if (sizes->by_column[i] * 2000 >= events && column_names[i] != NULL)
            row(column_names[i], sizes->by_column[i], events);
    row("chunk headers, padding", sizes->event_headers, events);
}

static void tell_tables(const struct sizes *sizes)
{
    for (size_t i = 0; i < TYPES; i++)
        if (sizes->by_type[i] > 0 && type_names[i] != NULL)
            printf("| table: %s | %" PRIu64 " bytes in %" PRIu64 " chunks |\n", type_names[i],
                   sizes->by_type[i], sizes->chunks[i]);
    printf("| unused room | %" PRIu64 " bytes |\n", sizes->room);
}

static struct vs_reader *open_trace(const char *path)
{
    struct vs_reader *reader;
    struct vs_error why;
    if (vs_reader_open(path, &reader, &why) == 0)
        return reader;
    fprintf(stderr, "trace_size: %s\n", why.text);
    exit(1);
}

static void tell_as_it_is(const char *path)
{
    static struct sizes sizes;
    struct vs_reader *reader = open_trace(path);
    uint64_t events = vs_reader_status(reader)->events;
    take_apart(path, &sizes);
    printf("events %" PRIu64 ", file %" PRIu64 " bytes\n", events, sizes.file);
    tell_events(&sizes, events);
    tell_tables(&sizes);
    vs_reader_close(reader);
}

static int rewrite(char **arguments)
{
    static struct replay replay;
    static struct sizes sizes;
    replay.reader = open_trace(arguments[1]);
    replay.rate = strtoull(arguments[2], NULL, 10);
    replay.stretched = strcmp(arguments[3], "stretched") == 0;
    if (replay.rate == 0)
        return 2;
    int fd = open(arguments[4], O_RDWR | O_CREAT | O_TRUNC, 0600);
    check(arguments[4], fd < 0 ? -errno : 0);
    write_stream(&replay, fd);
    close(fd);
    take_apart(arguments[4], &sizes);
    printf("events %" PRIu64 ", chunks of events %" PRIu64 ", file %" PRIu64
           " bytes, writer %.0f ns an event\n",
           replay.written, sizes.event_chunks, sizes.file,
           (double)replay.writer_cpu_ns / (double)replay.written);
    tell_events(&sizes, replay.written);
    tell_tables(&sizes);
    vs_reader_close(replay.reader);
    return 0;
}

int main(int count, char **arguments)
{
    if (count == 5)
        return rewrite(arguments);
    if (count != 2)
        return 2;
    tell_as_it_is(arguments[1]);
    return 0;
}
