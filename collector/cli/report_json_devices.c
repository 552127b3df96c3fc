/* SPDX-License-Identifier: Apache-2.0 */
/* "devices" of the report: what each holds at its peaks and at the end. */
#include "report_fragmentation.h"
#include "report_json.h"

/* ---- bands ----------------------------------------------------------------------------- */

static json_t *owners_json(const struct vs_summary *summary, const struct vs_bands *bands)
{
    json_t *object = json_object();
    for (size_t i = 0; i < bands->owners; i++)
        json_set_bytes(object, vs_state_owner_name(summary->state, bands->by_owner[i].owner),
                       bands->by_owner[i].bytes);
    if (bands->rounding != 0)
        json_set_bytes(object, "(rounding)", bands->rounding);
    if (bands->lost != 0)
        json_set_bytes(object, "(lost)", bands->lost);
    if (bands->more_owners != 0)
        json_set_bytes(object, "(others)", bands->more_owners);
    return object;
}

static json_t *implicit_json(const struct vs_bands *bands)
{
    if (!bands->device_known)
        return json_null();
    json_t *object = json_object();
    for (unsigned i = 0; i < VS_IMPLICITS; i++)
        json_set_bytes(object, report_implicit_name(i), bands->implicit[i]);
    json_set_bytes(object, "uncertainty", bands->implicit_uncertainty);
    return object;
}

static bool shares_host_memory(const struct vs_summary *summary,
                               const struct vs_device_state *device)
{
    const struct vs_device_def *known = vs_summary_device_def(summary, device->device);
    return known != NULL && known->integrated;
}

static json_t *bands_json(const struct vs_summary *summary, const struct vs_device_state *device,
                          const struct vs_bands *bands)
{
    bool known = bands->device_known;
    bool reclaimable = bands->host_reclaimable >= 0 && shares_host_memory(summary, device);
    json_t *object = json_object();
    json_set(object, "device_bytes", json_integer_if(known, bands->device));
    json_set(object, "other_process_bytes", json_integer_if(known, bands->other_process));
    json_set(object, "implicit_bytes", implicit_json(bands));
    json_set_bytes(object, "reserved_bytes", bands->reserved);
    json_set_bytes(object, "backed_bytes", bands->backed);
    json_set_bytes(object, "unbacked_bytes", bands->unbacked);
    json_set_bytes(object, "allocated_bytes", bands->allocated);
    json_set_bytes(object, "cached_bytes", bands->cached);
    json_set(object, "pending_bytes", json_integer_if(bands->pending_known, bands->pending));
    json_set(object, "private_pool_bytes",
             json_integer_if(bands->private_pool_known, bands->private_pool));
    json_set_bytes(object, "direct_bytes", bands->direct);
    json_set(object, "by_owner", owners_json(summary, bands));
    json_set(object, "unexplained_bytes", json_integer_if(known, bands->unexplained));
    json_set_bytes(object, "managed_bytes", bands->managed);
    json_set(object, "reclaimable_host_bytes",
             json_integer_if(reclaimable, bands->host_reclaimable));
    json_set_bytes(object, "host_pinned_bytes", bands->host_pinned);
    json_set_bytes(object, "host_pinned_requested_bytes", bands->host_pinned_requested);
    json_set(object, "cgroup_limit_bytes",
             json_integer_if(bands->cgroup_limit >= 0, bands->cgroup_limit));
    json_set(object, "cgroup_used_bytes",
             json_integer_if(bands->cgroup_used >= 0, bands->cgroup_used));
    json_set_bytes(object, "host_registered_bytes", bands->host_registered);
    json_set_bytes(object, "host_framework_bytes", bands->host_framework);
    json_set_bytes(object, "host_framework_rounding_at_most_bytes", bands->host_rounding);
    json_set(object, "host_shared_bytes",
             json_integer_if(bands->host_shared >= 0, bands->host_shared));
    json_set(object, "host_rss_bytes", json_integer_if(bands->host_rss >= 0, bands->host_rss));
    return object;
}

static json_t *bands_or_null(const struct vs_summary *summary, const struct vs_device_state *device,
                             const struct vs_bands *bands)
{
    return bands == NULL ? json_null() : bands_json(summary, device, bands);
}

/* ---- devices --------------------------------------------------------------------------- */

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
            json_set(object, fields[i], json_null());
        return;
    }
    json_set(object, "uuid", uuid_json("GPU", device->uuid));
    json_set(object, "mig_uuid", uuid_json("MIG", device->mig_uuid));
    json_set(object, "pci_id", field_text(device->pci_id, sizeof(device->pci_id)));
    json_set(object, "name", field_text(device->name, sizeof(device->name)));
    json_set(object, "integrated", json_boolean(device->integrated));
}

static json_t *context_json(const struct report *report, const struct vs_device_state *device)
{
    if (!device->context_seen)
        return json_null();
    json_t *object = json_object();
    json_set(object, "at_ns", time_at(report->summary, device->context_time_ns));
    json_set(object, "api", json_text(label_text(report->summary, device->context_label)));
    json_set(object, "stack", report_json_stack(report, device->context_site));
    return object;
}

/* Limits that the driver keeps memory for, as they were set last. */
static json_t *limits_json(const struct report *report, const struct vs_device_state *device)
{
    static const char *const names[VS_LIMITS] = {"stack_size", "printf_fifo_size",
                                                 "malloc_heap_size", "device_runtime_sync_depth",
                                                 "device_runtime_pending_launch_count"};
    json_t *list = json_array();
    for (size_t i = 0; i < VS_LIMITS; i++) {
        const struct vs_limit *limit = &device->limits[i];
        if (!limit->set)
            continue;
        json_t *object = json_object();
        json_set(object, "limit", json_string(names[i]));
        json_set(object, "value", json_count(limit->bytes));
        json_set(object, "at_ns", time_at(report->summary, limit->time_ns));
        json_set(object, "api", json_text(label_text(report->summary, limit->label)));
        json_set(object, "stack", report_json_stack(report, limit->site));
        json_array_append_new(list, object);
    }
    return list;
}

static json_t *peak_json(const struct report *report, const struct vs_device_state *device)
{
    const struct vs_summary *summary = report->summary;
    enum vs_layer top = vs_device_top_layer(device);
    const struct vs_layer_total *total = &device->layers[top];
    bool reserved = device->framework_seen;
    json_t *object = json_object();
    json_set(object, "layer", json_string(report_layer_name(top)));
    json_set_bytes(object, "allocated_bytes", total->peak_bytes);
    json_set(object, "allocated_at_ns",
             total->peak_bytes == 0 ? json_null() : time_at(summary, total->peak_time_ns));
    json_set_bytes(object, "reserved_bytes", device->reserved_peak);
    json_set(object, "reserved_at_ns",
             reserved ? time_at(summary, device->reserved_peak_ns) : json_null());
    json_set(object, "device_bytes", json_integer_if(device->measured, device->used_peak));
    json_set(object, "device_at_ns",
             device->measured ? time_at(summary, device->used_peak_ns) : json_null());
    json_set(object, "device_measured",
             device->measured ? json_boolean(device->used_peak_is_measured) : json_null());
    json_set(object, "bands_at_allocated_peak",
             bands_or_null(summary, device, vs_peaks_allocated(&summary->peaks, device)));
    json_set(object, "bands_at_device_peak",
             bands_or_null(summary, device, vs_peaks_used(&summary->peaks, device)));
    json_set(object, "recent", report_json_recent(report, device));
    json_set(object, "near", report_json_near(report, device));
    json_set(object, "step_ends", report_json_step_ends(report, device));
    return object;
}

static json_t *framework_json(const struct vs_summary *summary,
                              const struct vs_device_state *device)
{
    json_t *object = json_object();
    json_set(object, "reported_allocated_bytes",
             json_integer_if(device->reported, (int64_t)device->reported_allocated));
    json_set(object, "reported_reserved_bytes",
             json_integer_if(device->reported, (int64_t)device->reported_reserved));
    json_set(object, "events", json_count(device->framework_events));
    json_set(object, "mismatches", json_count(report_mismatches(summary, device)));
    return object;
}

static json_t *device_json(const struct report *report, const struct vs_device_state *device)
{
    const struct vs_summary *summary = report->summary;
    struct vs_bands end;
    vs_state_bands(summary->state, device, &end);
    json_t *object = json_object();
    json_set(object, "index", json_integer(device->device));
    add_identity(object, vs_summary_device_def(summary, device->device));
    json_set(object, "total_bytes",
             device->total_bytes == 0 ? json_null() : json_count(device->total_bytes));
    json_set(object, "context_created", context_json(report, device));
    json_set(object, "limits", limits_json(report, device));
    json_set(object, "end", bands_json(summary, device, &end));
    json_set(object, "peak", peak_json(report, device));
    json_set(object, "categories", report_json_categories(report, device));
    json_set(object, "fragmentation", report_json_fragmentation(report, device));
    json_set(object, "fragmentation_at_reserved_peak",
             report_json_fragmentation_at_peak(report, device));
    json_set(object, "framework", framework_json(summary, device));
    return object;
}

json_t *report_json_devices(const struct report *report)
{
    const struct vs_state *state = report->summary->state;
    json_t *list = json_array();
    for (size_t i = DEVICE_OFFSET; i < VS_DEVICE_SLOTS; i++)
        if (state->devices[i] != NULL && !report_hides_device(report, state->devices[i]->device))
            json_array_append_new(list, device_json(report, state->devices[i]));
    return list;
}
