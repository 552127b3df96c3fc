/* SPDX-License-Identifier: Apache-2.0 */
/* What happened, of the report: failures, objects, time in calls. */
#include "report_fragmentation.h"
#include "report_json.h"

static json_t *attempts_json(const struct vs_summary *summary, const struct vs_oom *oom)
{
    json_t *list = json_array();
    for (size_t i = 0; i < oom->attempt_count && i < VS_OOM_ATTEMPTS; i++) {
        const struct vs_oom_attempt *attempt = &oom->attempts[i];
        char buffer[ERROR_NAME_BYTES];
        json_t *object = json_object();
        json_set(object, "api", json_text(label_text(summary, attempt->label)));
        json_set(object, "bytes", json_count(attempt->bytes));
        json_set(object, "error",
                 json_text(report_error_name(summary, attempt->label, attempt->result, buffer,
                                             sizeof(buffer))));
        json_array_append_new(list, object);
    }
    return list;
}

/* The stream that most of what was freed waited for. */
static json_t *pending_on_json(const struct vs_oom *oom)
{
    if (oom->waited_bytes == 0)
        return json_null();
    json_t *object = json_object();
    json_set(object, "stream", json_count(oom->waited_stream));
    json_set(object, "bytes", json_count(oom->waited_bytes));
    return object;
}

static json_t *oom_json(const struct report *report, const struct vs_oom *oom)
{
    const struct vs_summary *summary = report->summary;
    json_t *object = json_object();
    json_set(object, "at_ns", time_at(summary, oom->time_ns));
    json_set(object, "device", json_integer_if(oom->device >= 0, oom->device));
    json_set(object, "layer", json_string(report_layer_name(oom->layer)));
    json_set(object, "api", json_text(label_text(summary, oom->label)));
    json_set(object, "requested_bytes", json_count(oom->requested));
    json_set(object, "free_bytes",
             oom->free_bytes == VS_FREE_UNKNOWN ? json_null() : json_count(oom->free_bytes));
    json_set(object, "handled", json_boolean(oom->handled));
    json_set(object, "repaired", json_boolean(oom->repaired));
    json_set(object, "given_back_bytes",
             json_integer_if(oom->repaired && oom->given_back >= 0, oom->given_back));
    json_set(object, "lost_ns", oom->repaired ? json_count(oom->lost_ns) : json_null());
    json_set(object, "class", json_string(vs_oom_class_name(oom->class)));
    json_set(object, "why", json_text(oom->why));
    json_set(object, "stack", report_json_stack(report, oom->site));
    json_set(object, "largest_free_block_bytes",
             json_integer_if(oom->largest_known, (int64_t)oom->largest_free));
    json_set(object, "cached_bytes", json_integer_if(oom->cached_known, oom->cached));
    json_set(object, "pending_bytes", json_integer_if(oom->largest_known, (int64_t)oom->waiting));
    json_set(object, "pending_on", pending_on_json(oom));
    json_set(object, "retry_would_succeed",
             oom->retry_known ? json_boolean(oom->retry_fits) : json_null());
    json_set(object, "fragmentation", report_json_fragmentation_then(report, oom));
    json_set(object, "attempts", attempts_json(summary, oom));
    json_set(object, "attempt_count", json_count(oom->attempt_count));
    json_set(object, "other_processes",
             report_json_others_then(report, (size_t)(oom - summary->ooms.items)));
    return object;
}

json_t *report_json_ooms(const struct report *report)
{
    const struct vs_summary *summary = report->summary;
    json_t *list = json_array();
    for (size_t i = 0; i < summary->ooms.count; i++)
        if (report_lists_oom(report, &summary->ooms.items[i]))
            json_array_append_new(list, oom_json(report, &summary->ooms.items[i]));
    return list;
}

json_t *report_json_failures(const struct report *report)
{
    const struct vs_summary *summary = report->summary;
    json_t *list = json_array();
    for (size_t i = 0; i < summary->failures.count; i++) {
        const struct vs_failure *failure = &summary->failures.items[i];
        char buffer[ERROR_NAME_BYTES];
        json_t *object = json_object();
        json_set(object, "api", json_text(label_text(summary, failure->label)));
        json_set(object, "kind", json_string(vs_kind_name(failure->kind)));
        json_set(object, "error",
                 json_text(report_error_name(summary, failure->label, failure->result, buffer,
                                             sizeof(buffer))));
        json_set(object, "count", json_count(failure->count));
        json_set(object, "first_ns", time_at(summary, failure->first_ns));
        json_set(object, "last_ns", time_at(summary, failure->last_ns));
        json_set(object, "stack", report_json_stack(report, failure->site));
        json_set(object, "hint", json_text(vs_failure_hint(failure)));
        json_array_append_new(list, object);
    }
    return list;
}

/* Bytes measured for a kind of object over all devices, where a band holds just that kind. */
static json_t *object_bytes(const struct vs_summary *summary, enum vs_object_kind kind)
{
    int which = kind == VS_OBJECT_MODULE       ? VS_IMPLICIT_MODULES
                : kind == VS_OBJECT_GRAPH_EXEC ? VS_IMPLICIT_GRAPHS
                : kind == VS_OBJECT_CONTEXT    ? VS_IMPLICIT_CONTEXT
                                               : -1;
    bool measured = false;
    int64_t bytes = 0, all = 0;
    if (kind == VS_OBJECT_COMMUNICATOR) {
        vs_state_communicator_bytes(summary->state, &bytes, &all);
        return json_integer(bytes);
    }
    for (size_t i = DEVICE_OFFSET; i < VS_DEVICE_SLOTS && which >= 0; i++) {
        const struct vs_device_state *device = summary->state->devices[i];
        if (device == NULL || !device->measured)
            continue;
        measured = true;
        bytes += device->implicit_bytes[which];
    }
    return json_integer_if(measured, bytes);
}

json_t *report_json_objects(const struct report *report)
{
    const struct vs_summary *summary = report->summary;
    json_t *list = json_array();
    for (unsigned kind = 0; kind < VS_OBJECT_KINDS; kind++) {
        uint64_t created = summary->objects.kinds[kind].created;
        if (created == 0)
            continue;
        json_t *object = json_object();
        json_set(object, "kind", json_string(vs_object_name((enum vs_object_kind)kind)));
        json_set(object, "live", json_count(summary->objects.kinds[kind].live.count));
        json_set(object, "created", json_count(created));
        json_set(object, "destroyed", json_count(summary->objects.kinds[kind].destroyed));
        json_set(object, "bytes", object_bytes(summary, (enum vs_object_kind)kind));
        json_set(object, "stack", report_json_stack(report, summary->objects.kinds[kind].site));
        json_array_append_new(list, object);
    }
    return list;
}

json_t *report_json_slow_calls(const struct report *report)
{
    const struct vs_summary *summary = report->summary;
    json_t *list = json_array();
    for (size_t i = 0; i < summary->slow_calls.count; i++) {
        const struct vs_call_time *time = &summary->slow_calls.items[i];
        json_t *object = json_object();
        json_set(object, "api", json_text(label_text(summary, time->call)));
        json_set(object, "count", json_count(time->count));
        json_set(object, "total_ns", json_count(time->total_ns));
        json_set(object, "max_ns", json_count(time->max_ns));
        json_array_append_new(list, object);
    }
    return list;
}
