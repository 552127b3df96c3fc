/* SPDX-License-Identifier: Apache-2.0 */
/* "shared" of the report: memory that crosses processes by IPC and is there at the end. */
#include <inttypes.h>

#include "replay/shared.h"
#include "report_json.h"

static json_t *handle_json(uint64_t handle)
{
    char text[24];
    snprintf(text, sizeof(text), "%016" PRIx64, handle);
    return json_string(text);
}

/* The processes of the folder's other traces that have the same memory. */
static json_t *others_json(const struct report *report, const struct vs_shared_memory *memory,
                           bool exported)
{
    json_t *list = json_array();
    size_t from = 0;
    const struct report_other *other;
    while ((other = report_shared_with(report, memory, exported, &from)) != NULL) {
        json_t *object = json_object();
        json_set(object, "pid", json_integer(other->pid));
        json_set(object, "file", json_text(other->path));
        json_array_append_new(list, object);
    }
    return list;
}

static json_t *list_json(const struct report *report, const struct vs_shared_memory *items,
                         size_t count, bool exported)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        const struct vs_shared_memory *memory = &items[i];
        json_t *object = json_object();
        json_set(object, "handle", memory->pieces == 0 ? handle_json(memory->handle) : json_null());
        json_set(object, "pieces",
                 json_integer_if(memory->pieces != 0, (json_int_t)memory->pieces));
        json_set(object, "device", json_integer_if(memory->device >= 0, memory->device));
        json_set(object, "at_ns", time_at(report->summary, memory->time_ns));
        json_set(object, "stack", report_json_stack(report, memory->site));
        json_set(object, "bytes", json_integer_if(memory->bytes != 0, (int64_t)memory->bytes));
        if (exported) {
            json_set(object, "live_bytes",
                     json_integer_if(memory->live_known, (int64_t)memory->live_bytes));
        } else {
            json_set(object, "opens",
                     json_integer_if(memory->pieces == 0, (json_int_t)memory->opens));
        }
        if (report->others != NULL)
            json_set(object, exported ? "open_in" : "exported_by",
                     others_json(report, memory, exported));
        json_array_append_new(list, object);
    }
    return list;
}

json_t *report_json_shared(const struct report *report)
{
    struct vs_shared shared;
    json_t *object = json_object();
    if (vs_shared_take(report->summary->state, &report->summary->objects, &shared) == 0) {
        json_set(object, "exported",
                 list_json(report, shared.exported, shared.exported_count, true));
        json_set(object, "opened", list_json(report, shared.opened, shared.opened_count, false));
    }
    vs_shared_release(&shared);
    return object;
}
