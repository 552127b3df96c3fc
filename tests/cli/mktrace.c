/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a .vscope from a script of events, one a line, for the golden tests:
 *
 *   meta NAME {JSON}                      facts about the process
 *   device N TOTAL NAME                   a device of TOTAL bytes
 *   thread N NAME
 *   KIND [field=value …]                  an event; KIND as in record.h ("alloc", "fw_free", …)
 *   flush                                 ends a chunk
 *   incomplete                            no END chunk
 *
 * Fields: t (ns; without it 1 ms after the last), dev, addr, size, stream, ctx, pool, handle,
 * x0, x1, free, dur, res, thread; call, label, text (names: defined when first used), module (a
 * path), flags (names joined by "+"); seq (of this record, for a later undo: its number is
 * otherwise 64 and up in steps of 2). Numbers take K, M, G. "#" begins a comment.
 *
 * usage: mktrace SCRIPT OUT.vscope
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace.h"

enum { NAMES = 256, FIRST_SEQUENCE = 64, DEFAULT_THREAD = 7, CHUNK_EVENTS = 4096 };
#define STEP_NS 1000000ULL
#define START_NS 1000000000ULL

struct names {
    char *text[NAMES];
    uint32_t count;
};

struct making {
    struct vs_writer *writer;
    struct names strings, modules;
    uint64_t sequence, time_ns;
    bool complete;
    unsigned line;
};

static void die(const struct making *making, const char *what, const char *text)
{
    fprintf(stderr, "mktrace: line %u: %s '%s'\n", making->line, what, text);
    exit(1);
}

static void check(const struct making *making, int result)
{
    if (result < 0)
        die(making, "the writer says", strerror(-result));
}

static uint64_t number(const struct making *making, const char *text)
{
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 0);
    unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    if (errno != 0 || end == text || end[shift != 0] != 0)
        die(making, "not a number:", text);
    return value << shift;
}

/* Id of a name, 1 and up; `added` when it is new. */
static uint32_t name_id(const struct making *making, struct names *names, const char *text,
                        bool *added)
{
    *added = false;
    for (uint32_t i = 0; i < names->count; i++)
        if (strcmp(names->text[i], text) == 0)
            return i + 1;
    if (names->count == NAMES)
        die(making, "too many names at", text);
    names->text[names->count] = strdup(text);
    *added = true;
    return ++names->count;
}

static uint32_t string_id(struct making *making, const char *text)
{
    bool added;
    uint32_t id = name_id(making, &making->strings, text, &added);
    if (added)
        check(making, vs_writer_string(making->writer, id, text, strlen(text)));
    return id;
}

static uint32_t module_id(struct making *making, const char *path)
{
    bool added;
    uint32_t id = name_id(making, &making->modules, path, &added);
    struct vs_module_def module = {
        .id = id, .start = (uint64_t)id << 32, .end = ((uint64_t)id << 32) + 4096, .path = path};
    if (added)
        check(making, vs_writer_module(making->writer, &module));
    return id;
}

static unsigned kind_by_name(const char *name)
{
    for (unsigned kind = 1; kind < 256; kind++)
        if (strcmp(vs_kind_name(kind), name) == 0)
            return kind;
    return 0;
}

static uint16_t flags_by_names(const struct making *making, char *text)
{
    static const char *const names[] = {"managed",      "capturing",      "runtime",
                                        "nested",       "intent",         "real_missing",
                                        "free_sampled", "pinned_portable"};
    unsigned flags = 0;
    for (char *name = strtok_r(text, "+", &text); name != NULL; name = strtok_r(NULL, "+", &text)) {
        unsigned bit = 0;
        while (bit < 8 && strcmp(names[bit], name) != 0)
            bit++;
        if (bit == 8)
            die(making, "no such flag:", name);
        flags |= 1U << bit;
    }
    return (uint16_t)flags;
}

static uint64_t *field_by_name(struct vs_event *event, const char *name)
{
    const struct {
        const char *name;
        uint64_t *field;
    } fields[] = {{"t", &event->time_ns},      {"addr", &event->address}, {"size", &event->size},
                  {"stream", &event->stream},  {"ctx", &event->context},  {"pool", &event->pool},
                  {"handle", &event->handle},  {"x0", &event->extra[0]},  {"x1", &event->extra[1]},
                  {"free", &event->free_bytes}};
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (strcmp(fields[i].name, name) == 0)
            return fields[i].field;
    return NULL;
}

static void set_field(struct making *making, struct vs_sequenced_event *sequenced, const char *name,
                      char *value)
{
    struct vs_event *event = &sequenced->event;
    uint64_t *field = field_by_name(event, name);
    if (field != NULL)
        *field = number(making, value);
    else if (strcmp(name, "dev") == 0)
        event->device = (int8_t)atoi(value);
    else if (strcmp(name, "dur") == 0)
        event->duration_ns = (uint32_t)number(making, value);
    else if (strcmp(name, "res") == 0)
        event->result = (int32_t)number(making, value);
    else if (strcmp(name, "thread") == 0)
        sequenced->thread = (uint32_t)number(making, value);
    else if (strcmp(name, "seq") == 0)
        sequenced->sequence = number(making, value);
    else if (strcmp(name, "call") == 0)
        event->call = (uint16_t)string_id(making, value);
    else if (strcmp(name, "label") == 0)
        event->label = (uint16_t)string_id(making, value);
    else if (strcmp(name, "kind") == 0)
        event->label = (uint16_t)kind_by_name(value);
    else if (strcmp(name, "text") == 0)
        event->extra[0] = string_id(making, value);
    else if (strcmp(name, "module") == 0)
        event->module = module_id(making, value);
    else if (strcmp(name, "flags") == 0)
        event->flags = flags_by_names(making, value);
    else
        die(making, "no such field:", name);
}

static void make_event(struct making *making, unsigned kind, char *rest)
{
    struct vs_sequenced_event sequenced = {
        .sequence = making->sequence, .thread = DEFAULT_THREAD, .cells = 2};
    sequenced.event.kind = (uint8_t)kind;
    sequenced.event.free_bytes = VS_FREE_UNKNOWN;
    sequenced.event.time_ns = making->time_ns + STEP_NS;
    for (char *word = strtok_r(rest, " \t", &rest); word != NULL;
         word = strtok_r(NULL, " \t", &rest)) {
        char *equals = strchr(word, '=');
        if (equals == NULL)
            die(making, "not field=value:", word);
        *equals = 0;
        set_field(making, &sequenced, word, equals + 1);
    }
    if (sequenced.event.label == 0)
        sequenced.event.label = sequenced.event.call;
    check(making, vs_writer_event(making->writer, &sequenced));
    making->sequence = sequenced.sequence + sequenced.cells;
    making->time_ns = sequenced.event.time_ns;
}

static void make_device(struct making *making, char *rest)
{
    struct vs_device_def device = {0};
    char total[32], name[64];
    if (sscanf(rest, "%d %31s %63[^\n]", &device.device, total, name) != 3)
        die(making, "not a device:", rest);
    device.total_bytes = number(making, total);
    for (int i = 0; i < 16; i++)
        device.uuid[i] = (uint8_t)(16 * device.device + i);
    snprintf(device.pci_id, sizeof(device.pci_id), "0000:%02x:00.0", (unsigned)device.device + 1);
    snprintf(device.name, sizeof(device.name), "%s", name);
    check(making, vs_writer_device(making->writer, &device));
}

static void make_thread(struct making *making, const char *rest)
{
    struct vs_thread_def thread = {0};
    if (sscanf(rest, "%" SCNu32 " %63s", &thread.thread, thread.name) != 2)
        die(making, "not a thread:", rest);
    check(making, vs_writer_thread(making->writer, &thread));
}

static void make_line(struct making *making, char *line)
{
    char *comment = line[0] == '#' ? line : strstr(line, " #");
    if (comment != NULL && strncmp(line, "meta", 4) != 0)
        *comment = 0;
    line[strcspn(line, "\n")] = 0;
    char *rest = line + strspn(line, " \t");
    char *word = strsep(&rest, " \t");
    char none[] = "";
    if (rest == NULL)
        rest = none;
    unsigned kind = kind_by_name(word);
    if (word[0] == 0) {
        return;
    } else if (strcmp(word, "meta") == 0) {
        const char *name = strsep(&rest, " \t");
        check(making, vs_writer_meta(making->writer, name, rest, strlen(rest)));
    } else if (strcmp(word, "device") == 0) {
        make_device(making, rest);
    } else if (strcmp(word, "thread") == 0) {
        make_thread(making, rest);
    } else if (strcmp(word, "flush") == 0) {
        check(making, vs_writer_flush(making->writer));
    } else if (strcmp(word, "incomplete") == 0) {
        making->complete = false;
    } else if (kind != 0) {
        make_event(making, kind, rest);
    } else {
        die(making, "no such word:", word);
    }
}

int main(int argc, char **argv)
{
    struct making making = {.sequence = FIRST_SEQUENCE, .time_ns = START_NS, .complete = true};
    char line[4096];
    if (argc != 3) {
        fputs("usage: mktrace SCRIPT OUT.vscope\n", stderr);
        return 2;
    }
    FILE *script = fopen(argv[1], "r");
    int fd = open(argv[2], O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (script == NULL || fd < 0) {
        perror("mktrace");
        return 1;
    }
    check(&making, vs_writer_create(fd, CHUNK_EVENTS, 3, &making.writer));
    while (fgets(line, sizeof(line), script) != NULL) {
        making.line++;
        make_line(&making, line);
    }
    check(&making, vs_writer_close(making.writer, making.complete));
    fclose(script);
    close(fd);
    for (uint32_t i = 0; i < NAMES; i++) {
        free(making.strings.text[i]);
        free(making.modules.text[i]);
    }
    return 0;
}
