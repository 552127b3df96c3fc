/* SPDX-License-Identifier: Apache-2.0 */
/* "lifetimes", "cache_releases" and "churn" of the report. */
#include "report_churn.h"
#include "report_json.h"

/* ---- lifetimes ------------------------------------------------------------------------ */

static void set_sums(json_t *object, const struct vs_lifetimes_found *found,
                     const struct vs_life_sums *sums)
{
    for (unsigned life = 0; life < VS_LIVES; life++) {
        json_t *of = json_object();
        bool told = found->rule != VS_LIFE_BY_LENGTH || life != VS_LIFE_AT_STEP_END;
        json_set(of, "count", json_integer_if(told, (int64_t)sums->count[life]));
        json_set(of, "bytes", json_integer_if(told, sums->bytes[life]));
        json_set(object, vs_life_name((enum vs_life_end)life), of);
    }
}

static bool has_any(const struct vs_site_life *life)
{
    uint64_t count = life->temporary_count;
    for (unsigned i = 0; i < VS_LIVES; i++)
        count += life->sums.count[i];
    return count != 0;
}

static json_t *sites_json(const struct report *report)
{
    const struct vs_lifetimes_found *found = report->lifetimes;
    json_t *list = json_array();
    for (uint32_t id = 1; id <= found->site_count; id++) {
        const struct vs_site *site = vs_state_site(report->summary->state, id);
        const struct vs_site_life *life = &found->sites[id - 1];
        if (!has_any(life) || report_hides_device(report, site->device))
            continue;
        json_t *object = json_object();
        json_set(object, "stack", report_json_stack(report, id));
        json_set(object, "layer", json_string(report_layer_name(site->layer)));
        json_set(object, "device", json_integer_if(site->device >= 0, site->device));
        set_sums(object, found, &life->sums);
        json_set_bytes(object, "peak_temporary_bytes", life->temporary_bytes);
        json_set(object, "peak_temporary_count", json_count(life->temporary_count));
        json_array_append_new(list, object);
    }
    return list;
}

static json_t *peaks_json(const struct report *report)
{
    const struct vs_lifetimes_found *found = report->lifetimes;
    json_t *list = json_array();
    for (size_t i = 0; i < found->peak_count; i++) {
        const struct vs_peak_life *peak = &found->peaks[i];
        if (report_hides_device(report, peak->device))
            continue;
        bool known = peak->rule != VS_TEMPORARY_UNKNOWN;
        const struct vs_device_state *device =
            vs_state_device(report->summary->state, peak->device);
        json_t *object = json_object();
        json_set(object, "device", json_integer(peak->device));
        json_set(object, "layer", json_string(report_layer_name(peak->layer)));
        json_set_bytes(object, "peak_bytes", device->layers[peak->layer].peak_bytes);
        json_set(object, "temporary_bytes", json_integer_if(known, peak->temporary_bytes));
        json_set(object, "temporary_count", json_integer_if(known, (int64_t)peak->temporary_count));
        json_set(object, "rule",
                 known ? json_string(vs_temporary_rule_name(peak->rule)) : json_null());
        json_array_append_new(list, object);
    }
    return list;
}

json_t *report_json_lifetimes(const struct report *report)
{
    const struct vs_lifetimes_found *found = report->lifetimes;
    bool known = found->rule != VS_LIFE_UNKNOWN;
    json_t *object = json_object(), *total = json_object();
    json_set(object, "rule", known ? json_string(vs_life_rule_name(found->rule)) : json_null());
    json_set(object, "step_source",
             known ? json_string(vs_step_source_name(found->source)) : json_null());
    json_set(object, "steps", json_count(known ? found->steps : 0));
    json_set(object, "first_step", json_integer_if(known, found->first_step));
    set_sums(total, found, &found->total);
    json_set(object, "total", total);
    json_set(object, "peaks", peaks_json(report));
    json_set(object, "sites", sites_json(report));
    return object;
}

/* ---- to the driver and back ------------------------------------------------------------------ */

json_t *report_json_cache_releases(const struct report *report)
{
    const struct vs_churn *churn = &report->summary->churn;
    json_t *list = json_array();
    for (size_t i = 0; i < churn->release_count; i++) {
        const struct vs_release *release = &churn->releases[i];
        const struct vs_site *site = vs_state_site(report->summary->state, release->site);
        if (report_hides_device(report, site->device))
            continue;
        json_t *object = json_object();
        json_set(object, "stack", report_json_stack(report, release->site));
        json_set(object, "device", json_integer_if(site->device >= 0, site->device));
        json_set(object, "by",
                 json_string(report_release_empties(report, release) ? "empty_cache" : "cache"));
        json_set(object, "in_loop", json_boolean(report_tells_release(report, release)));
        json_set(object, "count", json_count(release->rounds));
        json_set(object, "asked_again_count", json_count(release->again_rounds));
        json_set(object, "segments", json_count(release->segments));
        json_set_bytes(object, "bytes", release->bytes);
        json_set_bytes(object, "asked_again_bytes", release->again_bytes);
        json_set(object, "calls", json_count(release->calls));
        json_set(object, "timed_calls", json_count(release->timed_calls));
        json_set(object, "time_ns", json_count(release->time_ns));
        json_array_append_new(list, object);
    }
    return list;
}

json_t *report_json_churn(const struct report *report)
{
    const struct vs_churn *churn = &report->summary->churn;
    json_t *list = json_array();
    for (size_t i = 0; i < churn->cost_count; i++) {
        const struct vs_site *site = &report->summary->state->sites[i];
        if (!report_tells_cost(report, i))
            continue;
        json_t *object = json_object();
        json_set(object, "stack", report_json_stack(report, (uint32_t)i + 1));
        json_set(object, "layer", json_string(report_layer_name(site->layer)));
        json_set(object, "device", json_integer_if(site->device >= 0, site->device));
        json_set(object, "api", json_text(label_text(report->summary, site->label)));
        json_set(object, "allocs", json_count(churn->costs[i].allocs));
        json_set(object, "frees", json_count(churn->costs[i].frees));
        json_set(object, "timed_frees", json_count(churn->costs[i].timed_frees));
        json_set(object, "time_ns", json_count(churn->costs[i].time_ns));
        json_array_append_new(list, object);
    }
    return list;
}
