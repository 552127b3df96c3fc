/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON lines, schema vramscope-events/1: a line about the trace and what was left
 * out, then one object per event with every field that is not zero; before the
 * first event of a stack {"stack":ID,"frames":[…]}, innermost first.
 */
#include <errno.h>
#include <inttypes.h>

#include "formats.h"
#include "seen.h"
#include "texts.h"

enum { ROW_ROOM = 1024 };

struct lines {
    struct vs_export *export;
    struct vs_texts *texts;
    struct vs_frames *frames;
    struct vs_seen seen;
};

/* ---- the first line -----------------------------------------------------------------------------
 */

static json_t *devices_json(const struct vs_reader *reader)
{
    json_t *list = json_array();
    for (size_t i = 0; i < vs_reader_device_count(reader); i++) {
        const struct vs_device_def *device = vs_reader_device(reader, i);
        json_t *name = json_string(device->name);
        json_array_append_new(list, json_pack("{s:i, s:o, s:I}", "index", (int)device->device,
                                              "name", name != NULL ? name : json_null(),
                                              "total_bytes", (json_int_t)device->total_bytes));
    }
    return list;
}

static int put_head(const struct vs_export *export)
{
    json_t *head =
        json_pack("{s:s, s:o, s:I, s:O, s:o}", "schema", "vramscope-events/1", "filter",
                  vs_export_filter_json(export), "start_ns", (json_int_t) export->start_ns,
                  "process", export->process, "devices", devices_json(export->reader));
    char *text = head == NULL ? NULL : json_dumps(head, JSON_COMPACT);
    json_decref(head);
    if (text == NULL)
        return -ENOMEM;
    vs_sink_text(export->sink, text);
    vs_sink_text(export->sink, "\n");
    free(text);
    return 0;
}

/* ---- stacks
 * --------------------------------------------------------------------------------------- */

static void put_member(struct vs_sink *sink, const char *name, const char *text)
{
    if (text == NULL)
        return;
    vs_sink_printf(sink, ",\"%s\":", name);
    vs_sink_json_text(sink, text);
}

static void put_frame(struct vs_sink *sink, const struct vs_frame *frame)
{
    static const char *const kinds[] = {
        [VS_FRAME_NATIVE] = "native", [VS_FRAME_PYTHON] = "python", [VS_FRAME_NOTE] = "note"};
    vs_sink_printf(sink, "{\"kind\":\"%s\"", kinds[frame->kind]);
    put_member(sink, frame->kind == VS_FRAME_NOTE ? "text" : "function", frame->function);
    put_member(sink, "file", frame->file);
    if (frame->line != 0)
        vs_sink_printf(sink, ",\"line\":%" PRIu32, frame->line);
    put_member(sink, "module", frame->module);
    if (frame->kind == VS_FRAME_NATIVE)
        vs_sink_printf(sink, ",\"address\":%" PRIu64, frame->address);
    vs_sink_text(sink, frame->inlined ? ",\"inlined\":true}" : "}");
}

static int put_stack(struct lines *lines, uint32_t stack)
{
    struct vs_sink *sink = lines->export->sink;
    int fresh = vs_seen_add(&lines->seen, stack);
    if (fresh <= 0)
        return fresh;
    const struct vs_frame *frames;
    long count = vs_frames_of(lines->frames, stack, &frames);
    vs_sink_printf(sink, "{\"stack\":%" PRIu32 ",\"frames\":[", stack);
    for (long i = 0; i < count; i++) {
        if (i > 0)
            vs_sink_text(sink, ",");
        put_frame(sink, &frames[i]);
    }
    vs_sink_text(sink, "]}\n");
    return count < 0 ? (int)count : 0;
}

/* ---- events
 * --------------------------------------------------------------------------------------- */

#define PUT_LITERAL(at, text) vs_put_bytes(at, text, sizeof(text) - 1)
#define PUT_NUMBER(at, name, value) \
    ((value) == 0 ? (at) : vs_put_number(PUT_LITERAL(at, ",\"" name "\":"), (value)))
#define PUT_QUOTED(at, name, text) \
    ((text).bytes == 0             \
         ? (at)                    \
         : vs_put_bytes(PUT_LITERAL(at, ",\"" name "\":"), (text).data, (text).bytes))

static char *put_flags(char *at, unsigned flags)
{
    static const char *const names[] = {"managed",      "capturing",      "runtime",
                                        "nested",       "intent",         "real_missing",
                                        "free_sampled", "pinned_portable"};
    char comma = '[';
    at = PUT_LITERAL(at, ",\"flags\":");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if ((flags & (1U << i)) == 0)
            continue;
        *at++ = comma;
        *at++ = '"';
        at = vs_put_bytes(at, names[i], strlen(names[i]));
        *at++ = '"';
        comma = ',';
    }
    if (comma == '[')
        *at++ = '[';
    *at++ = ']';
    return at;
}

static char *put_result(const struct vs_export *export, char *at, const struct vs_event *event)
{
    char buffer[32];
    const char *name = vs_export_error(export, event, buffer, sizeof(buffer));
    at = PUT_LITERAL(at, ",\"result\":");
    if (event->result < 0)
        *at++ = '-';
    at = vs_put_number(at, (uint64_t)llabs(event->result));
    at = PUT_LITERAL(at, ",\"error\":\"");
    at = vs_put_bytes(at, name, strlen(name));
    *at++ = '"';
    return at;
}

static char *put_numbers(char *at, const struct vs_event *event)
{
    at = PUT_NUMBER(at, "address", event->address);
    at = PUT_NUMBER(at, "size", event->size);
    at = PUT_NUMBER(at, "stream", event->stream);
    at = PUT_NUMBER(at, "context", event->context);
    at = PUT_NUMBER(at, "pool", event->pool);
    at = PUT_NUMBER(at, "handle", event->handle);
    at = PUT_NUMBER(at, "extra0", event->extra[0]);
    at = PUT_NUMBER(at, "extra1", event->extra[1]);
    if (event->free_bytes != VS_FREE_UNKNOWN)
        at = vs_put_number(PUT_LITERAL(at, ",\"free_bytes\":"), event->free_bytes);
    at = PUT_NUMBER(at, "duration_ns", event->duration_ns);
    return PUT_NUMBER(at, "stack", event->stack);
}

static int put_event(void *self, const struct vs_sequenced_event *sequenced)
{
    struct lines *lines = self;
    const struct vs_event *event = &sequenced->event;
    int result = event->stack == 0 ? 0 : put_stack(lines, event->stack);
    struct vs_quoted call = vs_texts_string(lines->texts, event->call),
                     label = vs_texts_label(lines->texts, event),
                     module = vs_texts_module(lines->texts, event->module);
    struct vs_sink *sink = lines->export->sink;
    char *at = vs_sink_room(sink, ROW_ROOM + call.bytes + label.bytes + module.bytes);
    at = vs_put_number(PUT_LITERAL(at, "{\"sequence\":"), sequenced->sequence);
    at = vs_put_number(PUT_LITERAL(at, ",\"time_ns\":"),
                       vs_export_since(lines->export, event->time_ns));
    at = vs_put_number(PUT_LITERAL(at, ",\"thread\":"), sequenced->thread);
    at = PUT_LITERAL(at, ",\"kind\":\"");
    at = vs_put_bytes(at, vs_kind_name(event->kind), strlen(vs_kind_name(event->kind)));
    *at++ = '"';
    if (event->device >= 0)
        at = vs_put_number(PUT_LITERAL(at, ",\"device\":"), (uint64_t)event->device);
    at = PUT_QUOTED(at, "call", call);
    at = PUT_QUOTED(at, "label", label);
    at = PUT_QUOTED(at, "module", module);
    if (event->flags != 0)
        at = put_flags(at, event->flags);
    if (event->result != 0)
        at = put_result(lines->export, at, event);
    at = put_numbers(at, event);
    at = PUT_LITERAL(at, "}\n");
    vs_sink_wrote(sink, at);
    return lines->texts->failed ? -ENOMEM : result;
}

int vs_export_json(struct vs_export *export)
{
    struct lines *lines = calloc(1, sizeof(*lines));
    if (lines == NULL)
        return -ENOMEM;
    lines->export = export;
    lines->texts = vs_texts_new(export, vs_quote_json);
    int result = lines->texts == NULL ? -ENOMEM : vs_frames_new(export->reader, &lines->frames);
    if (result == 0)
        result = put_head(export);
    if (result == 0)
        result = vs_export_each_chosen(export, put_event, lines);
    vs_frames_free(lines->frames);
    vs_texts_free(lines->texts);
    vs_seen_release(&lines->seen);
    free(lines);
    return result;
}
