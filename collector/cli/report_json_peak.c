/* SPDX-License-Identifier: Apache-2.0 */
/* "recent", "near" and "step_ends" of a device's peak. */
#include "report_json.h"

static json_t *sites_json(const struct report *report, const struct vs_recent *recent)
{
    const struct vs_recents *recents = report->recents;
    json_t *list = json_array();
    for (uint32_t id = 1; id <= recents->site_count; id++) {
        const struct vs_site *site = vs_state_site(report->summary->state, id);
        const struct vs_recent_sums *sums = &recents->sites[id - 1];
        if (site->device != recent->device || site->layer != recent->layer ||
            sums->last_count + sums->before_count == 0)
            continue;
        json_t *object = json_object();
        json_set(object, "stack", report_json_stack(report, id));
        json_set_bytes(object, "last_bytes", sums->last_bytes);
        json_set(object, "last_count", json_count(sums->last_count));
        json_set_bytes(object, "before_bytes", sums->before_bytes);
        json_set(object, "before_count", json_count(sums->before_count));
        json_array_append_new(list, object);
    }
    return list;
}

json_t *report_json_recent(const struct report *report, const struct vs_device_state *device)
{
    const struct vs_recent *recent = vs_recent_of(report->recents, device->device);
    if (recent == NULL || recent->rule == VS_RECENT_UNKNOWN)
        return json_null();
    bool by_step = recent->rule == VS_RECENT_BY_STEP, by_share = recent->rule == VS_RECENT_BY_SHARE;
    const struct vs_recent_sums *sums = &recent->total;
    json_t *object = json_object();
    json_set(object, "rule", json_string(vs_recent_rule_name(recent->rule)));
    json_set(object, "step_source",
             by_share ? json_null()
                      : json_string(vs_step_source_name(report->grown->steps.source)));
    json_set(object, "step", json_integer_if(by_step, recent->step));
    json_set(object, "steps_before", json_count(recent->steps_before));
    json_set_bytes(object, "last_bytes", sums->last_bytes);
    json_set(object, "last_count", json_count(sums->last_count));
    json_set_bytes(object, "before_bytes", sums->before_bytes);
    json_set(object, "before_count", json_count(sums->before_count));
    json_set_bytes(object, "earlier_bytes",
                   device->layers[recent->layer].peak_bytes - sums->last_bytes -
                       sums->before_bytes);
    json_set(object, "sites", sites_json(report, recent));
    return object;
}

json_t *report_json_near(const struct report *report, const struct vs_device_state *device)
{
    struct vs_near_peak near;
    if (report->summary->cuts.gaps != 0 ||
        !vs_dwells_near_peak(&report->summary->dwells, device, &near))
        return json_null();
    json_t *object = json_object();
    json_set_bytes(object, "least_bytes", near.least_bytes);
    json_set(object, "time_ns", json_count(near.time_ns));
    json_set(object, "times", json_count(near.times));
    return object;
}

json_t *report_json_step_ends(const struct report *report, const struct vs_device_state *device)
{
    struct vs_step_ends ends;
    if (report->summary->cuts.gaps != 0 ||
        !vs_steps_highest_end(&report->summary->growth, &report->grown->steps, device, &ends))
        return json_null();
    json_t *object = json_object();
    json_set(object, "step_source", json_string(vs_step_source_name(report->grown->steps.source)));
    json_set(object, "steps", json_count(ends.count));
    json_set_bytes(object, "highest_bytes", ends.highest_bytes);
    return object;
}
