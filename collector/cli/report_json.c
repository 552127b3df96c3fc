/* SPDX-License-Identifier: Apache-2.0 */
/* `vramscope report --json`: schema "vramscope-report/1". */
#include <stdlib.h>
#include <string.h>

#include "report.h"

enum { ERROR_NAME_BYTES = 32, DEVICE_OFFSET = 128 };

static void set(json_t *object, const char *name, json_t *value)
{
    json_object_set_new(object, name, value);
}

static void set_bytes(json_t *object, const char *name, int64_t bytes)
{
    set(object, name, json_integer(bytes));
}

static json_t *count(uint64_t value)
{
    return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

static json_t *integer_if(bool known, int64_t value)
{
    return known ? json_integer(value) : json_null();
}

/* Text of the trace that may not be UTF-8: null then, rather than an invalid document. */
static json_t *text(const char *value)
{
    json_t *string = value == NULL || value[0] == 0 ? NULL : json_string(value);
    return string != NULL ? string : json_null();
}

static json_t *copy_of(const json_t *object, const char *field)
{
    json_t *value = json_object_get(object, field);
    return value != NULL ? json_incref(value) : json_null();
}

static json_t *site_or_null(uint32_t site)
{
    return site == 0 ? json_null() : json_integer(site);
}

static json_t *time_at(const struct vs_summary *summary, uint64_t time_ns)
{
    return count(vs_summary_at(summary, time_ns));
}

static const char *label_text(const struct vs_summary *summary, uint16_t label)
{
    return vs_state_string(summary->state, label);
}

/* ---- trace, process, hooks -------------------------------------------------------------- */

static json_t *lost_json(const struct vs_summary *summary)
{
    json_t *list = json_array();
    for (size_t i = 0; i < summary->losses.count; i++) {
        const struct vs_loss *loss = &summary->losses.items[i];
        json_t *object = json_object();
        set(object, "kind", json_string(vs_kind_name(loss->kind)));
        set(object, "cause", json_string(vs_loss_cause_name(loss->cause)));
        set(object, "device", integer_if(loss->device >= 0, loss->device));
        set(object, "events", count(loss->events));
        set(object, "bytes", count(loss->bytes));
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
    set(object, "events_ns", count(spent));
    set(object, "waits_ns", count(waited));
    set(object, "percent", summary->duration_ns == 0 ? json_null() : json_real(percent));
    return object;
}

static json_t *trace_json(const struct vs_summary *summary)
{
    const struct vs_trace_status *status = &summary->status;
    json_t *object = json_object();
    set(object, "file", text(vs_reader_path(summary->reader)));
    set(object, "format_version", json_integer(status->format_version));
    set(object, "bytes", count(status->file_bytes));
    set(object, "events", count(summary->state->counts.events));
    set(object, "lost", count(summary->lost));
    set(object, "lost_detail", lost_json(summary));
    set(object, "torn", count(summary->torn));
    set(object, "complete", json_boolean(summary->complete));
    set(object, "damaged_chunks", count(status->damaged_chunks));
    set(object, "truncated", json_boolean(status->truncated));
    set(object, "ended", json_string(summary->ended));
    set(object, "exit_code", integer_if(summary->exit_code_known, summary->exit_code));
    set(object, "signal", integer_if(summary->signal_known, summary->signal));
    set(object, "duration_ns", count(summary->duration_ns));
    set(object, "overhead", overhead_json(summary));
    return object;
}

static json_t *process_json(const struct vs_summary *summary)
{
    static const char *const fields[] = {
        "pid",     "host_pid", "parent_pid", "exe",        "title",  "title_end",     "host",
        "boot_id", "rank",     "local_rank", "world_size", "job_id", "driver_version"};
    json_t *object = json_object();
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        set(object, fields[i], copy_of(summary->process, fields[i]));
    json_t *versions = json_object_get(summary->process, "runtime_versions");
    json_t *settings = json_object_get(summary->process, "settings");
    set(object, "runtime_versions", json_is_array(versions) ? json_incref(versions) : json_array());
    set(object, "settings", json_is_object(settings) ? json_incref(settings) : json_object());
    return object;
}

static json_t *hooks_json(const struct vs_summary *summary)
{
    const struct vs_counts *counts = &summary->state->counts;
    json_t *object = json_object();
    json_t *warnings = json_object_get(summary->hooks, "warnings");
    set(object, "driver_events", count(counts->driver_events));
    set(object, "runtime_events", count(counts->runtime_events));
    set(object, "framework_events", count(counts->framework_events));
    set(object, "static_runtime", copy_of(summary->hooks, "static_runtime"));
    set(object, "warnings", json_is_array(warnings) ? json_incref(warnings) : json_array());
    return object;
}

/* ---- bands ----------------------------------------------------------------------------------- */

static json_t *owners_json(const struct vs_summary *summary, const struct vs_bands *bands)
{
    json_t *object = json_object();
    for (size_t i = 0; i < bands->owners; i++)
        set_bytes(object, vs_state_owner_name(summary->state, bands->by_owner[i].owner),
                  bands->by_owner[i].bytes);
    if (bands->rounding != 0)
        set_bytes(object, "(rounding)", bands->rounding);
    if (bands->lost != 0)
        set_bytes(object, "(lost)", bands->lost);
    if (bands->more_owners != 0)
        set_bytes(object, "(others)", bands->more_owners);
    return object;
}

static json_t *implicit_json(const struct vs_bands *bands)
{
    if (!bands->device_known)
        return json_null();
    json_t *object = json_object();
    for (unsigned i = 0; i < VS_IMPLICITS; i++)
        set_bytes(object, report_implicit_name(i), bands->implicit[i]);
    set_bytes(object, "uncertainty", bands->implicit_uncertainty);
    return object;
}

static json_t *bands_json(const struct vs_summary *summary, const struct vs_bands *bands)
{
    bool known = bands->device_known;
    json_t *object = json_object();
    set(object, "device_bytes", integer_if(known, bands->device));
    set(object, "other_process_bytes", integer_if(known, bands->other_process));
    set(object, "implicit_bytes", implicit_json(bands));
    set_bytes(object, "reserved_bytes", bands->reserved);
    set_bytes(object, "backed_bytes", bands->backed);
    set_bytes(object, "unbacked_bytes", bands->unbacked);
    set_bytes(object, "allocated_bytes", bands->allocated);
    set_bytes(object, "cached_bytes", bands->cached);
    set(object, "pending_bytes", json_null());
    set(object, "private_pool_bytes", json_null());
    set_bytes(object, "direct_bytes", bands->direct);
    set(object, "by_owner", owners_json(summary, bands));
    set(object, "unexplained_bytes", integer_if(known, bands->unexplained));
    set_bytes(object, "managed_bytes", bands->managed);
    set(object, "reclaimable_host_bytes", json_null());
    set_bytes(object, "host_pinned_bytes", bands->host_pinned);
    set_bytes(object, "host_pinned_requested_bytes", bands->host_pinned_requested);
    set(object, "cgroup_limit_bytes", integer_if(bands->cgroup_limit >= 0, bands->cgroup_limit));
    set(object, "host_shared_bytes", json_null());
    set(object, "host_rss_bytes", integer_if(bands->host_rss >= 0, bands->host_rss));
    return object;
}

static json_t *bands_or_null(const struct vs_summary *summary, const struct vs_bands *bands)
{
    return bands == NULL ? json_null() : bands_json(summary, bands);
}

/* ---- devices ----------------------------------------------------------------------------------
 */

static json_t *uuid_json(const char *prefix, const uint8_t uuid[16])
{
    static const uint8_t none[16];
    char out[64];
    if (memcmp(uuid, none, sizeof(none)) == 0)
        return json_null();
    int at = snprintf(out, sizeof(out), "%s-", prefix);
    for (int i = 0; i < 16; i++) {
        bool dash = i == 4 || i == 6 || i == 8 || i == 10;
        at += snprintf(out + at, sizeof(out) - (size_t)at, "%s%02x", dash ? "-" : "", uuid[i]);
    }
    return json_string(out);
}

/* A fixed-size text field of the trace, which may fill its room without a terminator. */
static json_t *field_text(const char *field, size_t room)
{
    json_t *string = json_stringn(field, strnlen(field, room));
    bool usable = string != NULL && field[0] != 0;
    if (!usable)
        json_decref(string);
    return usable ? string : json_null();
}

static void add_identity(json_t *object, const struct vs_device_def *device)
{
    if (device == NULL) {
        static const char *const fields[] = {"uuid", "mig_uuid", "pci_id", "name", "integrated"};
        for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
            set(object, fields[i], json_null());
        return;
    }
    set(object, "uuid", uuid_json("GPU", device->uuid));
    set(object, "mig_uuid", uuid_json("MIG", device->mig_uuid));
    set(object, "pci_id", field_text(device->pci_id, sizeof(device->pci_id)));
    set(object, "name", field_text(device->name, sizeof(device->name)));
    set(object, "integrated", json_boolean(device->integrated));
}

static json_t *context_json(const struct vs_summary *summary, const struct vs_device_state *device)
{
    if (!device->context_seen)
        return json_null();
    json_t *object = json_object();
    set(object, "at_ns", time_at(summary, device->context_time_ns));
    set(object, "api", text(label_text(summary, device->context_label)));
    set(object, "stack", site_or_null(device->context_site));
    return object;
}

static json_t *peak_json(const struct vs_summary *summary, const struct vs_device_state *device)
{
    enum vs_layer top = vs_device_top_layer(device);
    const struct vs_layer_total *total = &device->layers[top];
    bool reserved = device->framework_seen;
    json_t *object = json_object();
    set(object, "layer", json_string(report_layer_name(top)));
    set_bytes(object, "allocated_bytes", total->peak_bytes);
    set(object, "allocated_at_ns",
        total->peak_bytes == 0 ? json_null() : time_at(summary, total->peak_time_ns));
    set_bytes(object, "reserved_bytes", device->reserved_peak);
    set(object, "reserved_at_ns",
        reserved ? time_at(summary, device->reserved_peak_ns) : json_null());
    set(object, "device_bytes", integer_if(device->measured, device->used_peak));
    set(object, "device_at_ns",
        device->measured ? time_at(summary, device->used_peak_ns) : json_null());
    set(object, "device_measured",
        device->measured ? json_boolean(device->used_peak_is_measured) : json_null());
    set(object, "bands_at_allocated_peak",
        bands_or_null(summary, vs_peaks_allocated(&summary->peaks, device)));
    set(object, "bands_at_device_peak",
        bands_or_null(summary, vs_peaks_used(&summary->peaks, device)));
    return object;
}

static json_t *fragmentation_json(const struct vs_summary *summary,
                                  const struct vs_device_state *device)
{
    struct vs_free_space space = {0};
    bool known = vs_state_free_space(summary->state, device, &space) == 0 && space.known;
    json_t *object = json_object();
    set(object, "free_in_segments_bytes", integer_if(known, (int64_t)space.free_bytes));
    set(object, "largest_free_block_bytes", integer_if(known, (int64_t)space.largest_bytes));
    set(object, "releasable_bytes", integer_if(known, (int64_t)space.releasable_bytes));
    set(object, "pinned_segments", json_null());
    return object;
}

static json_t *framework_json(const struct vs_summary *summary,
                              const struct vs_device_state *device)
{
    json_t *object = json_object();
    set(object, "reported_allocated_bytes",
        integer_if(device->reported, (int64_t)device->reported_allocated));
    set(object, "reported_reserved_bytes",
        integer_if(device->reported, (int64_t)device->reported_reserved));
    set(object, "events", count(device->framework_events));
    set(object, "mismatches", count(report_mismatches(summary, device)));
    return object;
}

static json_t *device_json(const struct vs_summary *summary, const struct vs_device_state *device)
{
    struct vs_bands end;
    vs_state_bands(summary->state, device, &end);
    json_t *object = json_object();
    set(object, "index", json_integer(device->device));
    add_identity(object, vs_summary_device_def(summary, device->device));
    set(object, "total_bytes", device->total_bytes == 0 ? json_null() : count(device->total_bytes));
    set(object, "context_created", context_json(summary, device));
    set(object, "end", bands_json(summary, &end));
    set(object, "peak", peak_json(summary, device));
    set(object, "fragmentation", fragmentation_json(summary, device));
    set(object, "framework", framework_json(summary, device));
    return object;
}

static json_t *devices_json(const struct vs_summary *summary)
{
    json_t *list = json_array();
    for (size_t i = DEVICE_OFFSET; i < VS_DEVICE_SLOTS; i++)
        if (summary->state->devices[i] != NULL)
            json_array_append_new(list, device_json(summary, summary->state->devices[i]));
    return list;
}

/* ---- sites
 * ---------------------------------------------------------------------------------------- */

static const char *site_kind_name(uint8_t kind)
{
    return kind == VS_SITE_CALL               ? "call"
           : kind == VS_SITE_BEFORE_RECORDING ? "before_recording"
                                              : "uncertain";
}

static json_t *site_json(const struct vs_summary *summary, size_t index)
{
    const struct vs_site *site = &summary->state->sites[index];
    const struct vs_site_stats *stats = &summary->sites.stats[index];
    bool call = site->kind == VS_SITE_CALL;
    json_t *object = json_object();
    set(object, "stack", count(index + 1));
    set(object, "kind", json_string(site_kind_name(site->kind)));
    set(object, "layer", json_string(report_layer_name(site->layer)));
    set(object, "device", integer_if(site->device >= 0, site->device));
    set(object, "owner",
        call ? text(vs_state_owner_name(summary->state, site->owner)) : json_null());
    set(object, "api", call ? text(label_text(summary, site->label)) : json_null());
    set(object, "segment", json_boolean(site->segment));
    set(object, "allocs", count(stats->allocs));
    set(object, "frees", count(stats->frees));
    set(object, "failed", count(stats->failed));
    set(object, "bytes", count(stats->bytes));
    set_bytes(object, "peak_bytes", stats->peak_bytes);
    set_bytes(object, "peak_count", stats->peak_count);
    set_bytes(object, "end_bytes", stats->live_bytes);
    set_bytes(object, "end_count", stats->live_count);
    set(object, "frames", json_array());
    return object;
}

static json_t *sites_json(const struct vs_summary *summary)
{
    json_t *list = json_array();
    for (size_t i = 0; i < summary->sites.count; i++)
        json_array_append_new(list, site_json(summary, i));
    return list;
}

/* ---- what failed
 * ------------------------------------------------------------------------------------ */

static json_t *attempts_json(const struct vs_summary *summary, const struct vs_oom *oom)
{
    json_t *list = json_array();
    for (size_t i = 0; i < oom->attempt_count && i < VS_OOM_ATTEMPTS; i++) {
        const struct vs_oom_attempt *attempt = &oom->attempts[i];
        char buffer[ERROR_NAME_BYTES];
        json_t *object = json_object();
        set(object, "api", text(label_text(summary, attempt->label)));
        set(object, "bytes", count(attempt->bytes));
        set(object, "error",
            text(report_error_name(summary, attempt->label, attempt->result, buffer,
                                   sizeof(buffer))));
        json_array_append_new(list, object);
    }
    return list;
}

static json_t *oom_json(const struct vs_summary *summary, const struct vs_oom *oom)
{
    json_t *object = json_object();
    set(object, "at_ns", time_at(summary, oom->time_ns));
    set(object, "device", integer_if(oom->device >= 0, oom->device));
    set(object, "layer", json_string(report_layer_name(oom->layer)));
    set(object, "api", text(label_text(summary, oom->label)));
    set(object, "requested_bytes", count(oom->requested));
    set(object, "free_bytes",
        oom->free_bytes == VS_FREE_UNKNOWN ? json_null() : count(oom->free_bytes));
    set(object, "handled", json_boolean(oom->handled));
    set(object, "repaired", json_boolean(oom->repaired));
    set(object, "class", json_string(vs_oom_class_name(oom->class)));
    set(object, "why", text(oom->why));
    set(object, "stack", site_or_null(oom->site));
    set(object, "largest_free_block_bytes",
        integer_if(oom->largest_known, (int64_t)oom->largest_free));
    set(object, "cached_bytes", integer_if(oom->cached_known, oom->cached));
    set(object, "attempts", attempts_json(summary, oom));
    set(object, "attempt_count", count(oom->attempt_count));
    return object;
}

static json_t *ooms_json(const struct vs_summary *summary)
{
    json_t *list = json_array();
    for (size_t i = 0; i < summary->ooms.count; i++)
        json_array_append_new(list, oom_json(summary, &summary->ooms.items[i]));
    return list;
}

static json_t *failures_json(const struct vs_summary *summary)
{
    json_t *list = json_array();
    for (size_t i = 0; i < summary->failures.count; i++) {
        const struct vs_failure *failure = &summary->failures.items[i];
        char buffer[ERROR_NAME_BYTES];
        json_t *object = json_object();
        set(object, "api", text(label_text(summary, failure->label)));
        set(object, "kind", json_string(vs_kind_name(failure->kind)));
        set(object, "error",
            text(report_error_name(summary, failure->label, failure->result, buffer,
                                   sizeof(buffer))));
        set(object, "count", count(failure->count));
        set(object, "first_ns", time_at(summary, failure->first_ns));
        set(object, "last_ns", time_at(summary, failure->last_ns));
        set(object, "stack", site_or_null(failure->site));
        set(object, "hint", text(vs_failure_hint(failure)));
        json_array_append_new(list, object);
    }
    return list;
}

/* ---- the rest
 * ------------------------------------------------------------------------------------------ */

static json_t *phases_json(const struct vs_summary *summary)
{
    json_t *list = json_array();
    for (size_t i = 0; i < summary->phases.count; i++) {
        const struct vs_phase *phase = &summary->phases.items[i];
        int64_t base =
            phase->entry_bytes > phase->exit_bytes ? phase->entry_bytes : phase->exit_bytes;
        bool framework = phase->layer == VS_LAYER_FRAMEWORK;
        json_t *object = json_object();
        set(object, "name", text(vs_state_string(summary->state, phase->name)));
        set(object, "start_ns", time_at(summary, phase->start_ns));
        set(object, "end_ns", phase->ended ? time_at(summary, phase->end_ns) : json_null());
        set(object, "device", json_integer(phase->device));
        set(object, "band", json_string(framework ? "allocated_bytes" : "direct_bytes"));
        set_bytes(object, "entry_bytes", phase->entry_bytes);
        set_bytes(object, "peak_bytes", phase->peak_bytes);
        set_bytes(object, "exit_bytes", phase->exit_bytes);
        set_bytes(object, "transient_bytes", phase->peak_bytes - base);
        set_bytes(object, "resident_bytes", phase->exit_bytes - phase->entry_bytes);
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
    int64_t bytes = 0;
    for (size_t i = DEVICE_OFFSET; i < VS_DEVICE_SLOTS && which >= 0; i++) {
        const struct vs_device_state *device = summary->state->devices[i];
        if (device == NULL || !device->measured)
            continue;
        measured = true;
        bytes += device->implicit_bytes[which];
    }
    return integer_if(measured, bytes);
}

static json_t *objects_json(const struct vs_summary *summary)
{
    json_t *list = json_array();
    for (unsigned kind = 0; kind < VS_OBJECT_KINDS; kind++) {
        uint64_t created = summary->objects.kinds[kind].created;
        if (created == 0)
            continue;
        json_t *object = json_object();
        set(object, "kind", json_string(vs_object_name((enum vs_object_kind)kind)));
        set(object, "live", count(summary->objects.kinds[kind].live.count));
        set(object, "created", count(created));
        set(object, "destroyed", count(summary->objects.kinds[kind].destroyed));
        set(object, "bytes", object_bytes(summary, (enum vs_object_kind)kind));
        set(object, "stack", site_or_null(summary->objects.kinds[kind].site));
        json_array_append_new(list, object);
    }
    return list;
}

static json_t *slow_calls_json(const struct vs_summary *summary)
{
    json_t *list = json_array();
    for (size_t i = 0; i < summary->slow_calls.count; i++) {
        const struct vs_call_time *time = &summary->slow_calls.items[i];
        json_t *object = json_object();
        set(object, "api", text(label_text(summary, time->call)));
        set(object, "count", count(time->count));
        set(object, "total_ns", count(time->total_ns));
        set(object, "max_ns", count(time->max_ns));
        json_array_append_new(list, object);
    }
    return list;
}

static json_t *others_json(const struct report_others *others)
{
    json_t *list = json_array();
    for (size_t i = 0; i < others->count; i++) {
        const struct report_other *other = &others->items[i];
        json_t *object = json_object();
        set(object, "file", text(other->path));
        set(object, "rank", integer_if(other->rank >= 0, other->rank));
        set(object, "ended", json_string(other->ended));
        set_bytes(object, "peak_bytes", other->peak_bytes);
        json_array_append_new(list, object);
    }
    return list;
}

json_t *report_json(const struct vs_summary *summary, const struct report_others *others)
{
    json_t *root = json_object();
    if (root == NULL)
        return NULL;
    set(root, "schema", json_string("vramscope-report/1"));
    set(root, "trace", trace_json(summary));
    set(root, "process", process_json(summary));
    set(root, "hooks", hooks_json(summary));
    set(root, "devices", devices_json(summary));
    set(root, "sites", sites_json(summary));
    set(root, "growth", json_null());
    set(root, "ooms", ooms_json(summary));
    set(root, "failures", failures_json(summary));
    set(root, "phases", phases_json(summary));
    set(root, "objects", objects_json(summary));
    set(root, "slow_calls", slow_calls_json(summary));
    if (others != NULL && others->count != 0)
        set(root, "others", others_json(others));
    return root;
}
