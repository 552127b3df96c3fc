/* SPDX-License-Identifier: Apache-2.0 */
/* vramscope dump: the events of a trace, one a line, in their order. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "dump_segments.h"
#include "dump_stacks.h"
#include "replay/format_size.h"
#include "trace_argument.h"

static const char help[] =
    "usage: vramscope dump [--json] [--stacks | --segments-at WHEN] TRACE\n"
    "\n"
    "Prints every event, one a line: sequence, time since the first one, thread,\n"
    "device, kind, outermost call, address, size, result. With --json one JSON object\n"
    "a line with every field that is not zero; names instead of ids.\n"
    "\n"
    "  --stacks   below each event where it came from, the innermost frame first:\n"
    "             py: FUNCTION (FILE:LINE)         a Python frame\n"
    "             FUNCTION (MODULE) [FILE:LINE]    a native one; MODULE+0xADDRESS when its\n"
    "                                              name is not known\n"
    "             -- TEXT                          what is missing here\n"
    "             With --json an event has the id of its stack, and before the first\n"
    "             event of a stack comes {\"stack\":ID,\"frames\":[…]}: kind (python, native,\n"
    "             note), function, file, line, module, address in it, inlined; text.\n"
    "  --segments-at WHEN\n"
    "             instead of events the segments of a framework's cache and the blocks in\n"
    "             them, as they were at WHEN: peak (most allocated, of each GPU), end, or at\n"
    "             the marks whose text is WHEN, in which * and ? stand for any characters.\n"
    "             A block is allocated or free; one that waits for a stream counts as free.\n"
    "\n"
    "Exit status: 0 done, 1 the trace could not be read, or not all of it.\n";

struct dump {
    const struct vs_reader *reader;
    struct dump_stacks *stacks; /* NULL: not asked for */
    bool json;
    bool want_stacks;
    const char *segments_at; /* NULL: events */
    uint64_t first_time_ns;
    bool started;
};

static const char *name_of(const struct dump *dump, uint32_t id)
{
    const char *name = id == 0 ? NULL : vs_reader_string(dump->reader, id);
    return name == NULL ? "" : name;
}

static uint64_t elapsed(const struct dump *dump, uint64_t time_ns)
{
    return time_ns > dump->first_time_ns ? time_ns - dump->first_time_ns : 0;
}

static bool names_text(const struct vs_event *event)
{
    return event->kind == VS_KIND_MARK || event->kind == VS_KIND_PHASE_BEGIN;
}

/* The call; for a loss, the kind of what was lost. */
static const char *label_of(const struct dump *dump, const struct vs_event *event)
{
    if (event->kind == VS_KIND_LOSS)
        return vs_kind_name(event->label);
    if (names_text(event))
        return name_of(dump, (uint32_t)event->extra[0]);
    return name_of(dump, event->label != 0 ? event->label : event->call);
}

static void print_result(const struct dump *dump, const struct vs_event *event)
{
    char buffer[32];
    if (event->result != 0)
        printf("  %s",
               vs_cuda_error_name(name_of(dump, event->label != 0 ? event->label : event->call),
                                  event->result, buffer, sizeof(buffer)));
}

/* In words, for whoever reads the list. */
static void print_cut(const struct dump *dump, const struct vs_event *event)
{
    const struct vs_gap gap = {event->size, event->time_ns, event->extra[0]};
    char text[160];
    vs_gap_text(&gap, dump->first_time_ns, text, sizeof(text));
    printf(" cut: %s\n", text);
}

static void print_line(const struct dump *dump, const struct vs_sequenced_event *sequenced)
{
    const struct vs_event *event = &sequenced->event;
    uint64_t time = elapsed(dump, event->time_ns);
    printf("%8" PRIu64 " %6" PRIu64 ".%09" PRIu64 " %7" PRIu32 " ", sequenced->sequence,
           time / UINT64_C(1000000000), time % UINT64_C(1000000000), sequenced->thread);
    if (event->device >= 0)
        printf("%3d", event->device);
    else
        fputs("  -", stdout);
    if (event->kind == VS_KIND_CUT) {
        print_cut(dump, event);
        return;
    }
    bool last = event->address == 0 && event->size == 0 && event->handle == 0 &&
                event->free_bytes == VS_FREE_UNKNOWN && event->result == 0;
    const char *label = label_of(dump, event);
    printf(" %-*s", last && label[0] == 0 ? 0 : 18, vs_kind_name(event->kind));
    if (!last || label[0] != 0)
        printf(" %-*s", last ? 0 : 28, label);
    if (event->address != 0)
        printf(" 0x%012" PRIx64, event->address);
    if (event->size != 0)
        printf(" %" PRIu64, event->size);
    if (event->handle != 0)
        printf(" handle=0x%" PRIx64, event->handle);
    if (event->free_bytes != VS_FREE_UNKNOWN)
        printf(" free=%" PRIu64, event->free_bytes);
    print_result(dump, event);
    putchar('\n');
}

static void set_number(json_t *object, const char *name, uint64_t value)
{
    if (value != 0)
        json_object_set_new(object, name, json_integer((json_int_t)value));
}

static void set_text(json_t *object, const char *name, const char *text)
{
    if (text != NULL && text[0] != 0)
        json_object_set_new(object, name, json_string(text));
}

static json_t *flags_of(const struct vs_event *event)
{
    static const char *const names[] = {"managed",      "capturing",      "runtime",
                                        "nested",       "intent",         "real_missing",
                                        "free_sampled", "pinned_portable"};
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (event->flags & (1U << i))
            json_array_append_new(list, json_string(names[i]));
    return list;
}

static void set_names(const struct dump *dump, const struct vs_event *event, json_t *object)
{
    set_text(object, "call", name_of(dump, event->call));
    set_text(object, "label", label_of(dump, event));
    const struct vs_module_def *module =
        event->module == 0 ? NULL : vs_reader_module(dump->reader, event->module);
    set_text(object, "module", module == NULL ? NULL : module->path);
    if (event->flags != 0)
        json_object_set_new(object, "flags", flags_of(event));
    if (event->result == 0)
        return;
    char buffer[32];
    json_object_set_new(object, "result", json_integer(event->result));
    set_text(object, "error",
             vs_cuda_error_name(name_of(dump, event->label != 0 ? event->label : event->call),
                                event->result, buffer, sizeof(buffer)));
}

static void print_json(const struct dump *dump, const struct vs_sequenced_event *sequenced)
{
    const struct vs_event *event = &sequenced->event;
    json_t *object = json_object();
    json_object_set_new(object, "sequence", json_integer((json_int_t)sequenced->sequence));
    json_object_set_new(object, "time_ns", json_integer((json_int_t)event->time_ns));
    json_object_set_new(object, "thread", json_integer(sequenced->thread));
    json_object_set_new(object, "kind", json_string(vs_kind_name(event->kind)));
    if (event->device >= 0)
        json_object_set_new(object, "device", json_integer(event->device));
    set_names(dump, event, object);
    set_number(object, "address", event->address);
    set_number(object, "size", event->size);
    set_number(object, "stream", event->stream);
    set_number(object, "context", event->context);
    set_number(object, "pool", event->pool);
    set_number(object, "handle", event->handle);
    set_number(object, "extra0", event->extra[0]);
    set_number(object, "extra1", event->extra[1]);
    if (event->free_bytes != VS_FREE_UNKNOWN)
        json_object_set_new(object, "free_bytes", json_integer((json_int_t)event->free_bytes));
    set_number(object, "duration_ns", event->duration_ns);
    set_number(object, "stack", event->stack);
    json_dumpf(object, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(object);
}

static int print_event(const struct dump *dump, const struct vs_sequenced_event *event)
{
    int error = 0;
    if (dump->stacks != NULL && dump->json)
        error = dump_stacks_json(dump->stacks, event->event.stack);
    if (dump->json)
        print_json(dump, event);
    else
        print_line(dump, event);
    if (dump->stacks != NULL && !dump->json)
        error = dump_stacks_text(dump->stacks, event->event.stack);
    return error;
}

static int print_events(struct dump *dump, struct vs_reader *reader)
{
    struct vs_sequenced_event event;
    int got, error = dump->want_stacks ? dump_stacks_new(reader, &dump->stacks) : 0;
    while (error == 0 && (got = vs_reader_next(reader, &event)) != 0 && !ferror(stdout)) {
        if (got < 0)
            return got;
        if (!dump->started)
            dump->first_time_ns = event.event.time_ns;
        dump->started = true;
        error = print_event(dump, &event);
    }
    return error;
}

/* What there is of `when`. Sets `*status` when the trace does not have it. */
static int print_segments(struct vs_reader *reader, const struct dump *dump, const char *path,
                          int *status)
{
    long printed = dump_segments(reader, dump->segments_at, dump->json);
    if (printed != 0)
        return printed < 0 ? (int)printed : 0;
    fprintf(stderr, "vramscope: %s: no moment \"%s\" in it\n", path, dump->segments_at);
    *status = CMD_FAILED;
    return 0;
}

int cmd_dump(int argc, char **argv)
{
    struct dump dump = {0};
    const char *path;
    const struct option_rule rules[] = {{"--json", &dump.json, NULL},
                                        {"--stacks", &dump.want_stacks, NULL},
                                        {"--segments-at", NULL, &dump.segments_at}};
    int status = parse_arguments(argc, argv, help, rules, 3, &path);
    if (status >= 0)
        return status;
    if (dump.want_stacks && dump.segments_at != NULL) {
        fputs("vramscope dump: --stacks and --segments-at do not go together\n", stderr);
        return CMD_USAGE;
    }
    struct vs_reader *reader = NULL;
    struct vs_error error = {{0}};
    if (vs_reader_open(path, &reader, &error) != 0) {
        fprintf(stderr, "vramscope: %s\n", error.text);
        return CMD_FAILED;
    }
    dump.reader = reader;
    status = CMD_DONE;
    int result = dump.segments_at == NULL ? print_events(&dump, reader)
                                          : print_segments(reader, &dump, path, &status);
    status = finish_output(status);
    if (status == CMD_DONE && tell_damage(path, vs_reader_status(reader), result))
        status = CMD_FAILED;
    dump_stacks_free(dump.stacks);
    vs_reader_close(reader);
    return status;
}
