/* SPDX-License-Identifier: Apache-2.0 */
/* `vramscope report --json`: schema "vramscope-report/1". */
#include "report_json.h"

/* ---- trace, process, hooks -------------------------------------------------------------- */

static json_t *lost_json(const struct vs_summary *summary)
{
    json_t *list = json_array();
    for (size_t i = 0; i < summary->losses.count; i++) {
        const struct vs_loss *loss = &summary->losses.items[i];
        json_t *object = json_object();
        json_set(object, "kind", json_string(vs_kind_name(loss->kind)));
        json_set(object, "cause", json_string(vs_loss_cause_name(loss->cause)));
        json_set(object, "device", json_integer_if(loss->device >= 0, loss->device));
        json_set(object, "events", json_count(loss->events));
        json_set(object, "bytes", json_count(loss->bytes));
        json_array_append_new(list, object);
    }
    return list;
}

static json_t *overhead_json(const struct vs_summary *summary)
{
    uint64_t spent, waited;
    double percent;
    if (!report_overhead(summary, &spent, &waited, &percent))
        return json_null();
    json_t *object = json_object();
    json_set(object, "events_ns", json_count(spent));
    json_set(object, "waits_ns", json_count(waited));
    json_set(object, "percent", summary->duration_ns == 0 ? json_null() : json_real(percent));
    return object;
}

/* Events that were taken out when the trace was made smaller. */
static json_t *cut_json(const struct vs_summary *summary, const struct vs_cuts *cuts)
{
    json_t *object = json_object(), *list = json_array();
    for (size_t i = 0; i < cuts->count; i++) {
        const struct vs_gap *gap = &cuts->items[i];
        json_t *entry = json_object();
        json_set(entry, "events", json_count(gap->events));
        json_set(entry, "from_ns", json_count(vs_summary_at(summary, gap->from_ns)));
        json_set(entry, "to_ns", json_count(vs_summary_at(summary, gap->to_ns)));
        json_array_append_new(list, entry);
    }
    json_set(object, "events", json_count(cuts->events));
    json_set(object, "gap_count", json_count(cuts->gaps));
    json_set(object, "gaps", list);
    return object;
}

static json_t *trace_json(const struct vs_summary *summary)
{
    const struct vs_trace_status *status = &summary->status;
    json_t *object = json_object();
    json_set(object, "file", json_text(vs_reader_path(summary->reader)));
    json_set(object, "format_version", json_integer(status->format_version));
    json_set(object, "bytes", json_count(status->file_bytes));
    json_set(object, "events",
             json_count(summary->windowed ? status->events : summary->state->counts.events));
    json_set(object, "lost", json_count(summary->lost));
    json_set(object, "lost_detail", lost_json(summary));
    json_set(object, "torn", json_count(summary->torn));
    json_set(object, "complete", json_boolean(summary->complete));
    if (summary->cuts.gaps != 0)
        json_set(object, "cut", cut_json(summary, &summary->cuts));
    json_set(object, "damaged_chunks", json_count(status->damaged_chunks));
    json_set(object, "truncated", json_boolean(status->truncated));
    json_set(object, "ended", json_string(summary->ended));
    json_set(object, "exit_code", json_integer_if(summary->exit_code_known, summary->exit_code));
    json_set(object, "signal", json_integer_if(summary->signal_known, summary->signal));
    json_set(object, "duration_ns", json_count(summary->duration_ns));
    json_set(object, "overhead", overhead_json(summary));
    return object;
}

static json_t *process_json(const struct vs_summary *summary)
{
    static const char *const fields[] = {
        "pid",     "host_pid", "parent_pid", "exe",        "title",  "title_end",     "host",
        "boot_id", "rank",     "local_rank", "world_size", "job_id", "driver_version"};
    json_t *object = json_object();
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        json_set(object, fields[i], json_copy_of(summary->process, fields[i]));
    json_t *versions = json_object_get(summary->process, "runtime_versions");
    json_t *settings = json_object_get(summary->process, "settings");
    json_set(object, "runtime_versions",
             json_is_array(versions) ? json_incref(versions) : json_array());
    json_set(object, "oom_kills", json_count(summary->state->host_oom_kills));
    json_set(object, "settings", json_is_object(settings) ? json_incref(settings) : json_object());
    return object;
}

static json_t *hooks_json(const struct vs_summary *summary)
{
    static const char *const stacks[] = {"native_method", "native_stopped", "python",
                                         "python_state",  "stacks_sent",    "stacks_inline",
                                         "stacks_lost",   "nvtx_left_out",  "nvtx_unnamed"};
    const struct vs_counts *counts = &summary->state->counts;
    json_t *object = json_object();
    json_t *warnings = json_object_get(summary->hooks, "warnings");
    json_set(object, "driver_events", json_count(counts->driver_events));
    json_set(object, "runtime_events", json_count(counts->runtime_events));
    json_set(object, "framework_events", json_count(counts->framework_events));
    json_set(object, "static_runtime", json_copy_of(summary->hooks, "static_runtime"));
    for (size_t i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++)
        json_set(object, stacks[i], json_copy_of(summary->hooks, stacks[i]));
    json_set(object, "warnings", json_is_array(warnings) ? json_incref(warnings) : json_array());
    return object;
}

static json_t *others_json(const struct report_others *others)
{
    json_t *list = json_array();
    for (size_t i = 0; i < others->count; i++) {
        const struct report_other *other = &others->items[i];
        json_t *object = json_object();
        json_set(object, "file", json_text(other->path));
        json_set(object, "rank", json_integer_if(other->rank >= 0, other->rank));
        json_set(object, "ended", json_string(other->end));
        json_set(object, "how", json_string(other->ended));
        json_set(object, "out_of_memory", json_boolean(other->urgency == REPORT_OUT_OF_MEMORY));
        json_set(object, "device", json_integer_if(other->device >= 0, other->device));
        json_set_bytes(object, "peak_bytes", other->peak_bytes);
        json_set_bytes(object, "end_bytes", other->end_bytes);
        json_array_append_new(list, object);
    }
    return list;
}

static json_t *window_json(const struct vs_summary *summary)
{
    json_t *object = json_object();
    json_set(object, "from_ns", json_count(summary->from_ns));
    json_set(object, "to_ns", json_count(summary->to_ns));
    return object;
}

bool report_write_json(FILE *out, const struct report *report)
{
    const struct vs_summary *summary = report->summary;
    struct json_writer root;
    json_writer_begin(&root, out);
    json_writer_member(&root, "schema", json_string("vramscope-report/1"));
    json_writer_member(&root, "trace", trace_json(summary));
    if (summary->windowed)
        json_writer_member(&root, "window", window_json(summary));
    json_writer_member(&root, "process", process_json(summary));
    json_writer_member(&root, "hooks", hooks_json(summary));
    json_writer_member(&root, "devices", report_json_devices(report));
    report_json_sites(report, &root);
    if (report->options->by_given)
        report_json_groups(report, &root);
    json_writer_member(&root, "growth", report_json_growth(report));
    json_writer_member(&root, "lifetimes", report_json_lifetimes(report));
    json_writer_member(&root, "cache_releases", report_json_cache_releases(report));
    json_writer_member(&root, "churn", report_json_churn(report));
    json_writer_member(&root, "ooms", report_json_ooms(report));
    json_writer_member(&root, "siblings", report_json_siblings(report));
    json_writer_member(&root, "failures", report_json_failures(report));
    json_writer_member(&root, "phases", report_json_phases(report));
    json_writer_member(&root, "phases_summed", report_json_phases_summed(report));
    json_writer_member(&root, "phases_left_out", json_count(summary->phases.omitted));
    json_writer_member(&root, "objects", report_json_objects(report));
    if (vs_shared_any(summary->state, &summary->objects))
        json_writer_member(&root, "shared", report_json_shared(report));
    if (summary->objects.kinds[VS_OBJECT_COMMUNICATOR].created != 0)
        json_writer_member(&root, "communicators", report_json_communicators(report));
    json_writer_member(&root, "slow_calls", report_json_slow_calls(report));
    if (report->others != NULL && report->others->count != 0)
        json_writer_member(&root, "others", others_json(report->others));
    if (report->beside != NULL && report->beside->gaps != 0)
        json_writer_member(&root, "trace_beside_cut", cut_json(summary, report->beside));
    return json_writer_end(&root);
}
