/* SPDX-License-Identifier: Apache-2.0 */
/* The fold to the instant asked for, by place: see profile.h. */
#include "profile.h"

#include <errno.h>
#include <stdlib.h>

#include "frame_word.h"

static const char left_out[] = "[places below --min-bytes]";

/* ---- the fold ---------------------------------------------------------------------------------
 */

static void on_peak(void *self, const struct vs_state *state, const struct vs_device_state *device,
                    unsigned which)
{
    struct vs_profile *profile = self;
    (void)state;
    if ((which & (1U << vs_device_top_layer(device))) == 0)
        return;
    profile->at_peak[device->device + VS_DEVICE_OFFSET].known = profile->step_known;
    profile->at_peak[device->device + VS_DEVICE_OFFSET].step = profile->step;
}

static bool is_over(const struct vs_profile *profile, const struct vs_sequenced_event *event)
{
    const struct vs_export *export = profile->export;
    uint64_t time = event->event.time_ns;
    return time > export->to_ns || (export->at == VS_AT_TIME && time > export->moment_ns);
}

static int fold(void *self, const struct vs_sequenced_event *event)
{
    struct vs_profile *profile = self;
    const struct vs_export *export = profile->export;
    if (is_over(profile, event))
        return 1;
    if (!profile->begun && event->event.time_ns >= export->from_ns) {
        profile->begun = true;
        if (export->from_ns > export->start_ns) {
            vs_state_restart_peaks(profile->state, export->from_ns);
            vs_sites_restart(&profile->sites);
        }
    }
    if (event->event.kind == VS_KIND_STEP) {
        profile->step_known = true;
        profile->step = event->event.size;
    }
    profile->instant_ns = event->event.time_ns;
    int result = vs_state_event(profile->state, event);
    return result != 0 ? result : event->sequence == profile->over_sequence;
}

static long frames_of(void *self, uint32_t stack, const struct vs_frame **out)
{
    return vs_frames_of(self, stack, out);
}

int vs_profile_begin(struct vs_export *export, struct vs_profile *profile)
{
    *profile = (struct vs_profile){.export = export};
    struct vs_subscriber watch = {.self = profile, .peak = on_peak};
    profile->rest = calloc(VS_DEVICE_SLOTS, sizeof(*profile->rest));
    int result = profile->rest == NULL ? -ENOMEM : vs_export_state(export, &profile->state);
    if (result == 0)
        result = vs_sites_start(&profile->sites, profile->state);
    return result != 0 ? result : vs_state_subscribe(profile->state, &watch);
}

int vs_profile_fold(struct vs_profile *profile)
{
    struct vs_export *export = profile->export;
    int result = 0;
    if (export->at == VS_AT_OOM)
        result = vs_export_find_oom(export, &profile->over_sequence);
    if (result == 0)
        result = vs_export_each(export, fold, profile);
    if (result == 0)
        result = vs_sites_finish(&profile->sites, profile->state);
    if (result == 0)
        result = vs_frames_new(export->reader, &profile->frames);
    struct vs_stack_source source = {profile->frames, frames_of};
    return result != 0 ? result
                       : vs_places_create(profile->state, &profile->sites, &source, VS_BY_STACK,
                                          &profile->places);
}

int vs_profile_make(struct vs_export *export, struct vs_profile *profile)
{
    int result = vs_profile_begin(export, profile);
    if (result == 0 && export->last != 0)
        result = vs_export_refuse_last(export);
    return result != 0 ? result : vs_profile_fold(profile);
}

void vs_profile_release(struct vs_profile *profile)
{
    vs_places_release(&profile->places);
    vs_sites_release(&profile->sites);
    vs_frames_free(profile->frames);
    vs_state_destroy(profile->state);
    free(profile->rest);
}

/* ---- samples ------------------------------------------------------------------------------------
 */

static bool is_top(const struct vs_profile *profile, const struct vs_site *site)
{
    const struct vs_device_state *device = vs_state_device(profile->state, site->device);
    return device != NULL && site->device >= 0 && site->layer == vs_device_top_layer(device) &&
           (profile->export->device < 0 || profile->export->device == site->device);
}

static const char *instead_of(const struct vs_profile *profile, const struct vs_site *site)
{
    if (site->kind == VS_SITE_BEFORE_RECORDING)
        return "[live before recording began]";
    if (site->kind == VS_SITE_UNCERTAIN)
        return "[left unknown by lost events]";
    const char *call = vs_state_string(profile->state, site->label);
    return call[0] != 0 ? call : vs_state_owner_name(profile->state, site->owner);
}

static void fill(const struct vs_profile *profile, const struct vs_place *place,
                 const struct vs_site *site, struct vs_profile_sample *sample)
{
    bool peak = profile->export->at == VS_AT_PEAK;
    int slot = site->device + VS_DEVICE_OFFSET;
    *sample = (struct vs_profile_sample){
        .stack = place->has_stack ? site->stack : 0,
        .instead = place->has_stack ? NULL : instead_of(profile, site),
        .device = site->device,
        .layer = site->layer,
        .step_known = peak ? profile->at_peak[slot].known : profile->step_known,
        .step = peak ? profile->at_peak[slot].step : profile->step,
    };
    sample->values[VS_METRIC_INUSE_SPACE] =
        peak ? place->stats.peak_bytes : place->stats.live_bytes;
    sample->values[VS_METRIC_INUSE_OBJECTS] =
        peak ? place->stats.peak_count : place->stats.live_count;
    sample->values[VS_METRIC_ALLOC_SPACE] = (int64_t)place->stats.bytes;
    sample->values[VS_METRIC_ALLOC_OBJECTS] = (int64_t)place->stats.allocs;
}

static bool has_values(const struct vs_profile_sample *sample)
{
    for (size_t i = 0; i < VS_METRICS; i++)
        if (sample->values[i] != 0)
            return true;
    return false;
}

static bool is_small(const struct vs_export *export, const struct vs_profile_sample *sample)
{
    bool allocated = export->metric >= VS_METRIC_ALLOC_SPACE;
    int64_t bytes = sample->values[allocated ? VS_METRIC_ALLOC_SPACE : VS_METRIC_INUSE_SPACE];
    return bytes < 0 || (uint64_t)bytes < export->min_bytes;
}

static void add_to_rest(struct vs_profile *profile, const struct vs_profile_sample *sample)
{
    struct vs_profile_sample *rest = &profile->rest[sample->device + VS_DEVICE_OFFSET];
    int64_t sums[VS_METRICS];
    for (size_t i = 0; i < VS_METRICS; i++)
        sums[i] = rest->values[i] + sample->values[i];
    *rest = *sample;
    rest->stack = 0;
    rest->instead = left_out;
    memcpy(rest->values, sums, sizeof(sums));
}

bool vs_profile_next(struct vs_profile *profile, struct vs_profile_sample *sample)
{
    const struct vs_places *places = &profile->places;
    for (; profile->next < places->count; profile->next++) {
        const struct vs_place *place = &places->items[profile->next];
        const struct vs_site *site = vs_places_site(places, place);
        if (!is_top(profile, site))
            continue;
        fill(profile, place, site, sample);
        if (!has_values(sample))
            continue;
        if (profile->export->min_bytes == 0 || !is_small(profile->export, sample)) {
            profile->next++;
            return true;
        }
        add_to_rest(profile, sample);
    }
    while (profile->next - places->count < VS_DEVICE_SLOTS) {
        *sample = profile->rest[profile->next++ - places->count];
        if (has_values(sample))
            return true;
    }
    return false;
}

size_t vs_profile_devices(const struct vs_profile *profile)
{
    size_t count = 0;
    for (size_t i = 0; i < VS_DEVICE_SLOTS; i++) {
        const struct vs_device_state *device = profile->state->devices[i];
        count += device != NULL && device->device >= 0 &&
                 device->layers[vs_device_top_layer(device)].peak_bytes > 0 &&
                 (profile->export->device < 0 || profile->export->device == device->device);
    }
    return count;
}

bool vs_profile_shows(const struct vs_frame *frame)
{
    return frame->kind != VS_FRAME_NOTE || frame->address == VS_STACK_NOTE_NATIVE_CUT ||
           frame->address == VS_STACK_NOTE_NATIVE_STOPPED ||
           frame->address == VS_STACK_NOTE_PYTHON_CUT;
}
