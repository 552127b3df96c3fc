/* SPDX-License-Identifier: Apache-2.0 */
/* Other processes, of the report: at a failed request, and the traces that they are known from. */
#include "report_json.h"

static json_t *traced_json(const struct vs_sibling *sibling, const struct vs_sibling_use *use)
{
    json_t *object = json_object();
    json_set(object, "pid", json_integer_if(sibling->pid != 0, (int64_t)sibling->pid));
    json_set(object, "traced", json_true());
    json_set(object, "file", json_text(sibling->file));
    json_set(object, "device_bytes", json_integer(use->device_bytes));
    json_set(object, "implicit_bytes", json_integer(use->implicit));
    json_set(object, "uncertain_bytes", json_integer(use->uncertain));
    json_set(object, "allocated_bytes", json_integer_if(use->framework, use->allocated));
    json_set(object, "reserved_bytes", json_integer_if(use->framework, use->reserved));
    json_set(object, "cached_bytes",
             json_integer_if(use->framework, use->reserved - use->allocated));
    json_set(object, "releasable_bytes",
             use->releasable_known ? json_count(use->releasable) : json_null());
    return object;
}

static json_t *untraced_json(const struct vs_summary *summary, const struct vs_oom *oom,
                             const struct vs_oom_other *other)
{
    struct report_other_process who = report_name_other(summary, other->pid, oom->time_ns);
    json_t *object = json_object();
    json_set(object, "pid", json_count(other->pid));
    json_set(object, "traced", json_false());
    json_set(object, "device_bytes", json_count(other->bytes));
    json_set(object, "title", json_text(who.title));
    json_set(object, "exe", json_text(who.exe));
    json_set(object, "parent_pid", json_integer_if(who.parent_pid != 0, (int64_t)who.parent_pid));
    json_set(object, "age_ns", who.age_known ? json_count(who.age_ns) : json_null());
    return object;
}

json_t *report_json_others_then(const struct report *report, size_t oom)
{
    const struct vs_siblings *siblings = &report->summary->siblings;
    const struct vs_oom *failed = &report->summary->ooms.items[oom];
    json_t *list = json_array();
    for (size_t i = 0; i < siblings->count; i++)
        if (siblings->items[i].use[oom].there)
            json_array_append_new(list,
                                  traced_json(&siblings->items[i], &siblings->items[i].use[oom]));
    for (size_t i = 0; i < failed->other_count && i < VS_OOM_OTHERS; i++)
        if (vs_siblings_by_pid(siblings, failed->others[i].pid) == NULL)
            json_array_append_new(list, untraced_json(report->summary, failed, &failed->others[i]));
    return list;
}

static json_t *sibling_json(const struct report *report, const struct vs_sibling *sibling)
{
    uint64_t start_ns = report->summary->start_ns;
    json_t *object = json_object();
    json_set(object, "file", json_text(sibling->file));
    json_set(object, "pid", json_integer_if(sibling->pid != 0, (int64_t)sibling->pid));
    json_set(object, "host_pid",
             json_integer_if(sibling->host_pid != 0, (int64_t)sibling->host_pid));
    json_set(object, "parent_pid",
             json_integer_if(sibling->parent_pid != 0, (int64_t)sibling->parent_pid));
    json_set(object, "title", json_text(sibling->title));
    json_set(object, "exe", json_text(sibling->exe));
    json_set(object, "started_ns", json_integer((json_int_t)(sibling->start_ns - start_ns)));
    json_set(object, "whole", json_boolean(sibling->whole));
    return object;
}

static json_t *context_json(const struct vs_sibling_line *line)
{
    if (line->function == NULL)
        return json_null();
    json_t *object = json_object();
    json_set(object, "function", json_text(line->function));
    json_set(object, "file", line->file == NULL ? json_null() : json_text(line->file));
    json_set(object, "line", json_integer_if(line->line != 0, line->line));
    return object;
}

/* What they held when the device on which most was others' was fullest. */
static json_t *at_peak_json(const struct report *report)
{
    const struct vs_siblings *siblings = &report->summary->siblings;
    struct vs_sibling_peak peak = vs_siblings_peak(report->summary);
    if (peak.device < 0)
        return json_null();
    json_t *object = json_object(), *list = json_array();
    for (size_t i = 0; i < siblings->count; i++) {
        const struct vs_sibling *sibling = &siblings->items[i];
        if (!sibling->peak->there)
            continue;
        json_t *process = traced_json(sibling, sibling->peak);
        json_set(process, "rank", json_integer_if(sibling->rank >= 0, sibling->rank));
        json_set(process, "context_made_by", context_json(&sibling->context));
        json_array_append_new(list, process);
    }
    json_set(object, "device", json_integer(peak.device));
    json_set(object, "time_ns", json_count(vs_summary_at(report->summary, peak.time_ns)));
    json_set(object, "processes", list);
    return object;
}

json_t *report_json_siblings(const struct report *report)
{
    const struct vs_siblings *siblings = &report->summary->siblings;
    if (!siblings->looked)
        return json_null();
    json_t *traces = json_array(), *skipped = json_array(), *object = json_object();
    for (size_t i = 0; i < siblings->count; i++)
        json_array_append_new(traces, sibling_json(report, &siblings->items[i]));
    for (size_t i = 0; i < siblings->skip_count; i++) {
        json_t *skip = json_object();
        json_set(skip, "file", json_text(siblings->skips[i].file));
        json_set(skip, "why", json_text(siblings->skips[i].why));
        json_array_append_new(skipped, skip);
    }
    json_set(object, "at_peak", at_peak_json(report));
    json_set(object, "traces", traces);
    json_set(object, "skipped", skipped);
    json_set(object, "looked_into",
             json_count(siblings->traces - siblings->ignored - siblings->skip_count));
    json_set(object, "not_looked_into", json_count(siblings->ignored));
    return object;
}
