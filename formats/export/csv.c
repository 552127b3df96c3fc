/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One row per event, as it was recorded; the first line names the columns. A field
 * that does not apply is empty. A line that begins with "#" before it says what was
 * left out; without a filter there is none.
 */
#include <errno.h>

#include "formats.h"
#include "texts.h"

static const char header[] = "sequence,time_ns,thread,device,kind,call,label,module,address,size,"
                             "stream,context,pool,handle,extra0,extra1,free_bytes,duration_ns,"
                             "error,stack,flags\n";

/* Numbers of a row, commas and the names of kind and error. */
enum { ROW_ROOM = 1024 };

static char *put_field(char *at, uint64_t value)
{
    if (value != 0)
        at = vs_put_number(at, value);
    *at++ = ',';
    return at;
}

static char *put_text(char *at, struct vs_quoted text)
{
    at = vs_put_bytes(at, text.data, text.bytes);
    *at++ = ',';
    return at;
}

static char *put_name(char *at, const char *name)
{
    return put_text(at, (struct vs_quoted){name, strlen(name)});
}

static char *put_device(char *at, int device)
{
    if (device >= 0)
        at = vs_put_number(at, (uint64_t)device);
    *at++ = ',';
    return at;
}

static char *put_error(struct vs_texts *texts, char *at, const struct vs_event *event)
{
    char buffer[32];
    if (event->result == 0) {
        *at++ = ',';
        return at;
    }
    return put_name(at, vs_export_error(texts->export, event, buffer, sizeof(buffer)));
}

static char *put_numbers(char *at, const struct vs_event *event)
{
    at = put_field(at, event->address);
    at = put_field(at, event->size);
    at = put_field(at, event->stream);
    at = put_field(at, event->context);
    at = put_field(at, event->pool);
    at = put_field(at, event->handle);
    at = put_field(at, event->extra[0]);
    at = put_field(at, event->extra[1]);
    if (event->free_bytes != VS_FREE_UNKNOWN)
        at = vs_put_number(at, event->free_bytes);
    *at++ = ',';
    return put_field(at, event->duration_ns);
}

static int put_row(void *self, const struct vs_sequenced_event *sequenced)
{
    struct vs_texts *texts = self;
    const struct vs_event *event = &sequenced->event;
    struct vs_quoted call = vs_texts_string(texts, event->call),
                     label = vs_texts_label(texts, event),
                     module = vs_texts_module(texts, event->module);
    char *at =
        vs_sink_room(texts->export->sink, ROW_ROOM + call.bytes + label.bytes + module.bytes);
    at = vs_put_number(at, sequenced->sequence);
    *at++ = ',';
    at = vs_put_number(at, vs_export_since(texts->export, event->time_ns));
    *at++ = ',';
    at = put_field(at, sequenced->thread);
    at = put_device(at, event->device);
    at = put_name(at, vs_kind_name(event->kind));
    at = put_text(at, call);
    at = put_text(at, label);
    at = put_text(at, module);
    at = put_numbers(at, event);
    at = put_error(texts, at, event);
    at = put_field(at, event->stack);
    if (event->flags != 0)
        at = vs_put_number(at, event->flags);
    *at++ = '\n';
    vs_sink_wrote(texts->export->sink, at);
    return texts->failed ? -ENOMEM : 0;
}

int vs_export_csv(struct vs_export *export)
{
    struct vs_texts *texts = vs_texts_new(export, vs_quote_csv);
    char filter[256];
    if (texts == NULL)
        return -ENOMEM;
    vs_export_filter_text(export, filter, sizeof(filter));
    if (filter[0] != 0)
        vs_sink_printf(export->sink, "# vramscope export: only events: %s\n", filter);
    vs_sink_text(export->sink, header);
    int result = vs_export_each_chosen(export, put_row, texts);
    vs_texts_free(texts);
    return result;
}
