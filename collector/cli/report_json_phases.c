/* SPDX-License-Identifier: Apache-2.0 */
/* "phases" of the report: an entry for each band of each device in each phase. */
#include "report_json.h"

enum { NAME_BYTES = 1024 };

static const char *const band_names[VS_PHASE_BANDS] = {
    [VS_PHASE_ALLOCATED] = "allocated_bytes", [VS_PHASE_RESERVED] = "reserved_bytes",
    [VS_PHASE_DIRECT] = "direct_bytes",       [VS_PHASE_GRAPHS] = "graphs",
    [VS_PHASE_DEVICE] = "device_bytes",
};

static const char *const kind_names[] = {
    [VS_PHASE_MARKED] = "marked",
    [VS_PHASE_BEFORE_CAPTURE] = "before_first_capture",
    [VS_PHASE_CAPTURE] = "capture",
    [VS_PHASE_AFTER_CAPTURE] = "after_last_capture",
    [VS_PHASE_BEFORE_STEP] = "before_first_optimizer_step",
};

/* A band without a figure has no entry, nor has one that nothing was in. */
static bool is_listed(const struct vs_phase *phase, enum vs_phase_band band)
{
    bool framework = band == VS_PHASE_ALLOCATED || band == VS_PHASE_RESERVED;
    bool measured = band == VS_PHASE_GRAPHS || band == VS_PHASE_DEVICE;
    bool nothing = phase->peak.bytes[band] == 0 && phase->exit.bytes[band] == 0;
    if (framework)
        return phase->framework;
    if (measured)
        return phase->measured && (band == VS_PHASE_DEVICE || !nothing);
    return !phase->framework || !nothing;
}

static json_t *band_json(const struct report *report, const struct vs_phase *phase,
                         enum vs_phase_band band)
{
    const struct vs_summary *summary = report->summary;
    int64_t entry = phase->entry.bytes[band], peak = phase->peak.bytes[band],
            at_exit = phase->exit.bytes[band];
    char name[NAME_BYTES];
    vs_phase_name(summary->state, phase, name, sizeof(name));
    json_t *object = json_object();
    json_set(object, "name", json_text(name));
    json_set(object, "kind", json_string(kind_names[phase->kind]));
    json_set(object, "start_ns", time_at(summary, phase->start_ns));
    json_set(object, "end_ns", phase->ended ? time_at(summary, phase->end_ns) : json_null());
    json_set(object, "device", json_integer(phase->device));
    json_set(object, "band", json_string(band_names[band]));
    json_set_bytes(object, "entry_bytes", entry);
    json_set_bytes(object, "peak_bytes", peak);
    json_set_bytes(object, "exit_bytes", at_exit);
    json_set_bytes(object, "transient_bytes", peak - (entry > at_exit ? entry : at_exit));
    json_set_bytes(object, "resident_bytes", at_exit - entry);
    return object;
}

json_t *report_json_phases(const struct report *report)
{
    const struct vs_summary *summary = report->summary;
    json_t *list = json_array();
    for (size_t i = 0; i < summary->phases.count; i++) {
        const struct vs_phase *phase = &summary->phases.items[i];
        if (report_hides_device(report, phase->device))
            continue;
        for (int band = 0; band < VS_PHASE_BANDS; band++)
            if (is_listed(phase, (enum vs_phase_band)band))
                json_array_append_new(list, band_json(report, phase, (enum vs_phase_band)band));
    }
    return list;
}

static json_t *sum_json(const struct vs_summary *summary, const struct vs_phase_sum *sum)
{
    const char *first = vs_state_string(summary->state, sum->first.name);
    char pattern[NAME_BYTES];
    vs_name_pattern_text(first, pattern, sizeof(pattern));
    json_t *object = json_object();
    json_set(object, "name", json_text(sum->numbered ? pattern : first));
    json_set(object, "kind", json_string(kind_names[VS_PHASE_MARKED]));
    json_set(object, "count", json_count(sum->count));
    json_set(object, "first_start_ns", time_at(summary, sum->first.start_ns));
    json_set(object, "device", json_integer(sum->first.device));
    json_set(object, "band", json_string(band_names[vs_phase_main_band(&sum->first)]));
    json_set_bytes(object, "entry_bytes", sum->entry);
    json_set_bytes(object, "peak_bytes", sum->peak);
    json_set_bytes(object, "exit_bytes", sum->exit);
    json_set_bytes(object, "transient_bytes", sum->transient);
    json_set_bytes(object, "resident_bytes", sum->resident);
    return object;
}

json_t *report_json_phases_summed(const struct report *report)
{
    const struct vs_phases *phases = &report->summary->phases;
    json_t *list = json_array();
    for (size_t i = 0; i < phases->sum_count; i++)
        if (!report_hides_device(report, phases->sums[i].first.device))
            json_array_append_new(list, sum_json(report->summary, &phases->sums[i]));
    return list;
}
