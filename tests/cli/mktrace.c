/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a .vscope from a script of events, one a line, for the golden tests:
 *
 *   meta NAME {JSON}                      facts about the process
 *   device N TOTAL NAME                   a device of TOTAL bytes
 *   thread N NAME
 *   module PATH                           one more of that path: the next generation's
 *   code N LINE NAME | FILE               a code object that begins at LINE
 *   symbol PATH OFFSET NAME | FILE | LINE [; NAME | FILE | LINE …]   inlined calls first
 *   stack N [generation=N] WORD …         frames, innermost first: py:CODE:LINE, entry:CODE:LINE
 *                                         (the outermost of one call of the loop),
 *                                         PATH+OFFSET (of the call), note:N
 *   KIND [field=value …]                  an event; KIND as in record.h ("alloc", "fw_free", …)
 *   times N LINE [; LINE …]               the lines N times
 *   flush                                 ends a chunk
 *   taken_out EVENTS GAPS                 the trace is cut from a longer one
 *   incomplete                            no END chunk
 *
 * Fields: t (ns; without it 1 ms after the last), dev, addr, size, stream, ctx, pool, handle,
 * x0, x1, free, dur, res, thread, stack; call, label, text (names: defined when first used), module
 * (a path), flags (names joined by "+"); seq (of this record, for a later undo: its number is
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

#include "frame_word.h"
#include "trace.h"

enum { WORDS = 256, INLINED = 8 };
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
    uint32_t generation; /* of the module map */
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

/* Modules lie one behind the other; what they say of themselves begins at 0. */
static uint64_t module_start(uint32_t id)
{
    return (uint64_t)id << 32;
}

static void write_module(struct making *making, uint32_t id, const char *path)
{
    struct vs_module_def module = {.id = id,
                                   .generation = making->generation,
                                   .start = module_start(id),
                                   .end = module_start(id) + 0x100000,
                                   .load_bias = module_start(id),
                                   .path = path};
    check(making, vs_writer_module(making->writer, &module));
}

static uint32_t module_id(struct making *making, const char *path)
{
    bool added;
    uint32_t id = name_id(making, &making->modules, path, &added);
    if (added)
        write_module(making, id, path);
    return id;
}

/* ---- stacks ------------------------------------------------------------------------------ */

/* The same object mapped again somewhere else, after another one had gone. */
static void make_module(struct making *making, const char *path)
{
    making->generation++;
    if (making->modules.count == NAMES)
        die(making, "too many names at", path);
    for (uint32_t i = 0; i < making->modules.count; i++) {
        if (strcmp(making->modules.text[i], path) != 0)
            continue;
        free(making->modules.text[i]);
        making->modules.text[i] = strdup("");
    }
    making->modules.text[making->modules.count] = strdup(path);
    write_module(making, ++making->modules.count, path);
}

/* "NAME | FILE | LINE": cuts the fields apart, without the blanks around them. */
static char *next_field(char **rest, const char *separator)
{
    char *field = strsep(rest, separator);
    if (field == NULL)
        return field;
    field += strspn(field, " ");
    size_t length = strlen(field);
    while (length > 0 && field[length - 1] == ' ')
        field[--length] = 0;
    return field;
}

static void make_code(struct making *making, char *rest)
{
    const char *id = strsep(&rest, " "), *line = strsep(&rest, " ");
    const char *name = next_field(&rest, "|"), *file = next_field(&rest, "|");
    if (file == NULL)
        die(making, "not a code object:", id);
    struct vs_code_def code = {.id = (uint32_t)number(making, id),
                               .first_line = (uint32_t)number(making, line),
                               .name = name,
                               .file = file};
    check(making, vs_writer_code(making->writer, &code));
}

static void make_symbol(struct making *making, char *rest)
{
    struct vs_symbol_frame frames[INLINED] = {{0}};
    const char *path = strsep(&rest, " "), *address = strsep(&rest, " ");
    if (address == NULL)
        die(making, "not a symbol:", path);
    struct vs_symbol_def symbol = {
        .module = module_id(making, path), .address = number(making, address), .frames = frames};
    for (char *part; symbol.count < INLINED && (part = strsep(&rest, ";")) != NULL;) {
        struct vs_symbol_frame *frame = &frames[symbol.count++];
        frame->function = next_field(&part, "|");
        frame->file = next_field(&part, "|");
        const char *line = next_field(&part, "|");
        frame->file = frame->file == NULL ? "" : frame->file;
        frame->line = line == NULL ? 0 : (uint32_t)number(making, line);
    }
    check(making, vs_writer_symbol(making->writer, &symbol));
}

static uint64_t word_of(struct making *making, char *text)
{
    unsigned code, line;
    if (sscanf(text, "py:%u:%u", &code, &line) == 2)
        return vs_frame_interpreter(code, line, false);
    if (sscanf(text, "entry:%u:%u", &code, &line) == 2)
        return vs_frame_interpreter(code, line, true);
    if (sscanf(text, "note:%u", &code) == 1)
        return vs_frame_note((enum vs_stack_note)code);
    char *plus = strrchr(text, '+');
    if (plus == NULL)
        die(making, "not a frame:", text);
    *plus = 0;
    return module_start(module_id(making, text)) + number(making, plus + 1) + 1;
}

static void make_stack(struct making *making, char *rest)
{
    uint64_t words[WORDS];
    struct vs_stack_def stack = {.generation = making->generation, .frames = words};
    stack.id = (uint32_t)number(making, strsep(&rest, " "));
    for (char *text; (text = strsep(&rest, " ")) != NULL;) {
        if (strncmp(text, "generation=", 11) == 0)
            stack.generation = (uint32_t)number(making, text + 11);
        else if (text[0] != 0 && stack.frame_count < WORDS)
            words[stack.frame_count++] = word_of(making, text);
    }
    check(making, vs_writer_stack(making->writer, &stack));
}

/* ---- events -------------------------------------------------------------------------------- */

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
    else if (strcmp(name, "stack") == 0)
        event->stack = (uint32_t)number(making, value);
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

/* False when `word` defines nothing. */
static bool make_definition(struct making *making, const char *word, char *rest)
{
    if (strcmp(word, "device") == 0)
        make_device(making, rest);
    else if (strcmp(word, "thread") == 0)
        make_thread(making, rest);
    else if (strcmp(word, "module") == 0)
        make_module(making, rest);
    else if (strcmp(word, "code") == 0)
        make_code(making, rest);
    else if (strcmp(word, "symbol") == 0)
        make_symbol(making, rest);
    else if (strcmp(word, "stack") == 0)
        make_stack(making, rest);
    else
        return false;
    return true;
}

static void make_line(struct making *making, char *line);

static void make_times(struct making *making, char *rest)
{
    for (uint64_t times = number(making, strsep(&rest, " ")); times > 0; times--) {
        char copy[4096];
        snprintf(copy, sizeof(copy), "%s", rest);
        char *left = copy;
        for (char *one; (one = next_field(&left, ";")) != NULL;)
            make_line(making, one);
    }
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
    } else if (make_definition(making, word, rest)) {
        return;
    } else if (strcmp(word, "times") == 0) {
        make_times(making, rest);
    } else if (strcmp(word, "flush") == 0) {
        check(making, vs_writer_flush(making->writer));
    } else if (strcmp(word, "taken_out") == 0) {
        uint64_t events = number(making, strsep(&rest, " \t"));
        check(making, vs_writer_cut(making->writer, events, number(making, rest)));
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
