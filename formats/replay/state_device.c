/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is used on a device: the last measurement, moved since by what is known;
 * which calls cost memory without asking for any; the bands.
 */

#include "state_internal.h"

/* What a framework holds of the memory that lost events took or gave back. */
static int64_t lost_of_segments(const struct vs_device_state *device)
{
    return device->lost_count != 0 || device->lost_bytes != 0 ? device->unseen_reserved : 0;
}

/* Direct memory that lost events took or gave back. */
static int64_t lost_direct(const struct vs_device_state *device)
{
    return device->lost_bytes - lost_of_segments(device) + device->lost_measured;
}

int64_t device_lost_pages(const struct vs_device_state *device)
{
    int64_t live = device->asked_count + device->lost_count;
    int64_t most = live > 0 ? live * (int64_t)VS_GRANULARITY : 0;
    return device->lost_pages < most ? device->lost_pages : most;
}

/* What the device is taken to round on top of direct allocations, by the model of numbers.md. */
static int64_t model_rounding(const struct vs_device_state *device)
{
    int64_t packed = device->direct_small > 0 ? device->direct_small : 0;
    int64_t rounded = device->direct_large +
                      (int64_t)vs_round_up((uint64_t)packed, VS_GRANULARITY) -
                      device->direct_asked + device->rounding;
    int64_t pages = device_lost_pages(device), lost = device->lost_rounding;
    lost = lost > pages ? pages : lost < -pages ? -pages : lost;
    if (device->lost_count == 0)
        return rounded + lost;
    /* Some of what is counted live is gone, or more is live than is known: in proportion. */
    int64_t live = device->asked_count + device->lost_count;
    if (live <= 0 || device->asked_count <= 0)
        return lost;
    return (int64_t)((double)rounded * (double)live / (double)device->asked_count) + lost;
}

int64_t device_direct(const struct vs_device_state *device)
{
    return device->direct_asked + model_rounding(device) + device->physical_bytes +
           device->own_pool_reserved + lost_direct(device);
}

/* All that this process holds on the device by calls that say so. */
int64_t device_own(const struct vs_device_state *device)
{
    return device_direct(device) + device->segment_backed + lost_of_segments(device) +
           device->pool_reserved;
}

/* Reserve that the framework reports and no event shows: backed, as far as is known. */
static int64_t unseen_backed(const struct vs_device_state *device)
{
    bool counts =
        device->framework_seen && (device->unseen_reserved > 0 || lost_of_segments(device) != 0);
    return counts ? device->unseen_reserved : 0;
}

int64_t device_unexplained(const struct vs_device_state *device)
{
    int64_t known =
        device->base_own - lost_of_segments(device) + unseen_backed(device) + device->base_others;
    for (int i = 0; i < VS_IMPLICITS; i++)
        known += device->implicit_bytes[i];
    return device->base_used - known;
}

/* ---- calls that cost memory -------------------------------------------------------- */

int device_implicit_of(const struct vs_event *event)
{
    switch (event->kind) {
    case VS_KIND_CONTEXT_CREATE:
    case VS_KIND_CONTEXT_DESTROY:
    case VS_KIND_CONTEXT_RETAIN:
    case VS_KIND_CONTEXT_RELEASE:
    case VS_KIND_CONTEXT_RESET:
        return VS_IMPLICIT_CONTEXT;
    case VS_KIND_MODULE_LOAD:
    case VS_KIND_MODULE_UNLOAD:
        return VS_IMPLICIT_MODULES;
    case VS_KIND_GRAPH_INSTANTIATE:
    case VS_KIND_GRAPH_EXEC_DESTROY:
    case VS_KIND_GRAPH_LAUNCH:
    case VS_KIND_GRAPH_UPLOAD:
    case VS_KIND_GRAPH_TRIM:
        return VS_IMPLICIT_GRAPHS;
    case VS_KIND_LIMIT_SET:
        return VS_IMPLICIT_LOCAL_MEMORY;
    case VS_KIND_STREAM_CREATE:
    case VS_KIND_STREAM_DESTROY:
        return VS_IMPLICIT_OTHER;
    default:
        return -1;
    }
}

/*
 * Whoever was there before the first measurement is not the context. What has come since, and
 * nobody explained, is theirs before that.
 */
static void note_first_answer(struct vs_device_state *device, int64_t bytes)
{
    int64_t *context = &device->implicit_bytes[VS_IMPLICIT_CONTEXT];
    int64_t unexplained = device_unexplained(device);
    int64_t since = unexplained < 0 ? 0 : unexplained < bytes ? unexplained : bytes;
    device->first_answers--;
    device->base_others += bytes;
    device->settled_others += bytes;
    int64_t before = bytes - since;
    int64_t taken = *context > before ? before : *context;
    *context -= taken;
    device->context_of_others += taken;
    device->conclusion_count = 0;
}

/* What a measurement had shown before NVML told of it was this; only the rest moves the device. */
static void note_later_answer(struct vs_device_state *device, int64_t change)
{
    int64_t seen = device->measured ? device_unexplained(device) : 0;
    if (change > 0)
        seen = seen < 0 ? 0 : seen < change ? seen : change;
    else
        seen = seen > 0 ? 0 : seen > change ? seen : change;
    if (seen == 0)
        return;
    device->base_others += seen;
    device->settled_others += seen;
    device->conclusion_count = 0;
}

static void note_answered(struct vs_device_state *device, uint64_t processes)
{
    device->others_known = true;
    device->first_answers = device->measured ? processes : 0;
    device->implicit_uncertainty -= device->others_uncertainty;
    device->others_uncertainty = 0;
    device->conclusion_count = 0;
}

static void note_other_process(struct vs_state *state, const struct vs_event *event)
{
    struct vs_device_state *device = state_device(state, event->device);
    if (device == NULL || event->size > INT64_MAX)
        return;
    if (event->handle == 0) {
        note_answered(device, event->size);
        return;
    }
    device->others_known = true;
    if (event->handle == state->own_pid)
        return;
    uint64_t *bytes = vs_sizes_put(&device->others, event->handle);
    if (bytes == NULL) {
        state_fail(state);
        return;
    }
    int64_t change = (int64_t)event->size - (int64_t)*bytes;
    device->other_bytes += change;
    *bytes = event->size;
    if (device->first_answers > 0)
        note_first_answer(device, change);
    else
        note_later_answer(device, change);
    if (event->size == 0)
        vs_sizes_remove(&device->others, event->handle);
}

static int64_t bytes_or_unknown(uint64_t bytes)
{
    return bytes <= INT64_MAX ? (int64_t)bytes : -1;
}

static void note_host(struct vs_state *state, const struct vs_event *event)
{
    if (event->kind == VS_KIND_HOST_SHARED) {
        state->host_shared = bytes_or_unknown(event->size);
        state->host_shared_torch = bytes_or_unknown(event->extra[0]);
        state->host_shared_files = bytes_or_unknown(event->extra[1]);
        return;
    }
    if (event->kind == VS_KIND_HOST_OOM_KILLS) {
        state->host_oom_kills = event->size;
        return;
    }
    if (event->kind == VS_KIND_HOST_RECLAIMABLE) {
        state->host_reclaimable = bytes_or_unknown(event->size);
        return;
    }
    state->host_rss = bytes_or_unknown(event->size);
    state->cgroup_limit = event->extra[1] != 0 ? bytes_or_unknown(event->extra[1]) : -1;
    state->cgroup_used = state->cgroup_limit >= 0 ? bytes_or_unknown(event->extra[0]) : -1;
}

static void note_limit(struct vs_state *state, struct vs_device_state *device,
                       const struct vs_event *event)
{
    if (event->handle >= VS_LIMITS)
        return; /* of caches: no memory */
    device->limit_waits = true;
    device->limits[event->handle] = (struct vs_limit){
        .bytes = event->size,
        .time_ns = state->now_ns,
        .site = vs_state_site_of(state, event, event->device, VS_LAYER_DRIVER, false),
        .label = event->label != 0 ? event->label : event->call,
        .set = true};
}

void device_note(struct vs_state *state, const struct vs_event *event, struct vs_undo *undo)
{
    if (event->kind == VS_KIND_OTHER_PROCESS) {
        note_other_process(state, event);
        return;
    }
    if (event->kind == VS_KIND_HOST_SAMPLE || event->kind == VS_KIND_HOST_SHARED ||
        event->kind == VS_KIND_HOST_RECLAIMABLE || event->kind == VS_KIND_HOST_OOM_KILLS) {
        note_host(state, event);
        return;
    }
    int implicit = device_implicit_of(event);
    if (implicit < 0 || event->device < 0)
        return;
    struct vs_device_state *device = state_device(state, event->device);
    if (device == NULL)
        return;
    device->implicit_pending |= 1U << implicit;
    if (event->kind == VS_KIND_LIMIT_SET)
        note_limit(state, device, event);
    if (implicit == VS_IMPLICIT_CONTEXT)
        context_event(state, device, event, undo);
}

/* ---- after every event ------------------------------------------------------------------ */

static unsigned layer_peaks(const struct vs_state *state, struct vs_device_state *device)
{
    unsigned which = 0;
    for (unsigned layer = 0; layer < VS_LAYERS; layer++) {
        struct vs_layer_total *total = &device->layers[layer];
        if (total->live_bytes <= total->peak_bytes)
            continue;
        total->peak_bytes = total->live_bytes;
        total->peak_time_ns = state->now_ns;
        total->peak_epoch++;
        which |= 1U << layer;
    }
    return which;
}

static unsigned reserved_peak(const struct vs_state *state, struct vs_device_state *device)
{
    int64_t reserved = vs_device_reserved(device);
    if (reserved <= device->reserved_peak)
        return 0;
    device->reserved_peak = reserved;
    device->reserved_peak_ns = state->now_ns;
    return VS_PEAK_RESERVED;
}

static unsigned used_peak(const struct vs_state *state, struct vs_device_state *device)
{
    if (!device->measured)
        return 0;
    int64_t moved =
        device_own(device) - device->base_own + device->other_bytes - device->base_others;
    device->used_bytes = device->base_used + moved;
    device->used_is_measured = moved == 0;
    if (device->used_bytes <= device->used_peak)
        return 0;
    device->used_peak = device->used_bytes;
    device->used_peak_ns = state->now_ns;
    device->used_peak_is_measured = device->used_is_measured;
    return VS_PEAK_USED;
}

static void tell_peak(const struct vs_state *state, const struct vs_device_state *device,
                      unsigned which)
{
    for (size_t i = 0; i < state->peakers.count; i++) {
        const struct vs_subscriber *subscriber = &state->subscribers[state->peakers.members[i]];
        subscriber->peak(subscriber->self, state, device, which);
    }
}

void device_settle(struct vs_state *state, struct vs_device_state *device)
{
    unsigned which = layer_peaks(state, device);
    which |= reserved_peak(state, device);
    which |= used_peak(state, device);
    if (which != 0)
        tell_peak(state, device, which);
}

/* ---- a window ---------------------------------------------------------------------------- */

static void restart_device(const struct vs_state *state, struct vs_device_state *device)
{
    unsigned which = VS_PEAK_RESERVED;
    for (unsigned layer = 0; layer < VS_LAYERS; layer++) {
        struct vs_layer_total *total = &device->layers[layer];
        total->peak_bytes = total->live_bytes;
        total->peak_time_ns = state->now_ns;
        total->peak_epoch++;
        which |= 1U << layer;
    }
    device->reserved_peak = vs_device_reserved(device);
    device->reserved_peak_ns = state->now_ns;
    if (device->measured) {
        device->used_peak = device->used_bytes;
        device->used_peak_ns = state->now_ns;
        device->used_peak_is_measured = device->used_is_measured;
        which |= VS_PEAK_USED;
    }
    tell_peak(state, device, which);
}

void vs_state_restart_peaks(struct vs_state *state, uint64_t time_ns)
{
    if (time_ns > state->now_ns)
        state->now_ns = time_ns;
    for (size_t i = 0; i < VS_DEVICE_SLOTS; i++)
        if (state->devices[i] != NULL)
            restart_device(state, state->devices[i]);
}

/* ---- bands --------------------------------------------------------------------------------- */

static void add_band_owner(struct vs_bands *bands, uint16_t owner, int64_t bytes)
{
    for (size_t i = 0; i < bands->owners; i++) {
        if (bands->by_owner[i].owner == owner) {
            bands->by_owner[i].bytes += bytes;
            return;
        }
    }
    if (bands->owners == VS_BANDS_OWNERS) {
        bands->more_owners += bytes;
        return;
    }
    bands->by_owner[bands->owners].owner = owner;
    bands->by_owner[bands->owners++].bytes = bytes;
}

int64_t vs_device_direct(const struct vs_device_state *device)
{
    /* A caching library that reports no blocks: its memory is a program's like any other. */
    return device_direct(device) + (device->framework_seen ? 0 : device->segment_backed);
}

static void direct_bands(const struct vs_device_state *device, struct vs_bands *bands)
{
    int64_t named = 0;
    for (size_t owner = 0; owner < device->owner_slots; owner++) {
        named += device->owner_bytes[owner];
        if (device->owner_bytes[owner] != 0)
            add_band_owner(bands, (uint16_t)owner, device->owner_bytes[owner]);
    }
    bands->direct = vs_device_direct(device);
    bands->lost = lost_direct(device);
    bands->rounding = device_direct(device) - named - bands->lost;
    if (!device->framework_seen && device->segment_backed != 0)
        add_band_owner(bands, device->framework_owner, device->segment_backed);
}

static void framework_bands(const struct vs_state *state, const struct vs_device_state *device,
                            struct vs_bands *bands)
{
    if (!device->framework_seen)
        return;
    bands->reserved = vs_device_reserved(device);
    bands->backed = device->segment_backed + device->pool_reserved + unseen_backed(device);
    bands->unbacked = bands->reserved - bands->backed;
    bands->allocated = device->layers[VS_LAYER_FRAMEWORK].live_bytes;
    bands->cached = bands->reserved - bands->allocated;
    cache_bands(state, device, bands);
}

void vs_state_bands(const struct vs_state *state, const struct vs_device_state *device,
                    struct vs_bands *out)
{
    *out = (struct vs_bands){.device_known = device->measured,
                             .managed = device->managed_bytes,
                             .host_pinned = state->host_pinned,
                             .host_pinned_requested = state->host_pinned_requested,
                             .host_registered = state->host_registered,
                             .host_framework = state->host_framework,
                             .host_rounding = state->host_rounding,
                             .cgroup_limit = state->cgroup_limit,
                             .cgroup_used = state->cgroup_used,
                             .host_rss = state->host_rss,
                             .host_shared = state->host_shared,
                             .host_reclaimable = state->host_reclaimable};
    direct_bands(device, out);
    framework_bands(state, device, out);
    if (!device->measured)
        return;
    out->device = device->used_bytes;
    out->other_process = device->other_bytes;
    int64_t implicit = 0;
    for (int i = 0; i < VS_IMPLICITS; i++) {
        out->implicit[i] = device->implicit_bytes[i];
        implicit += device->implicit_bytes[i];
    }
    out->implicit_uncertainty = device->implicit_uncertainty;
    out->context_of_others = device->context_of_others;
    out->unexplained = out->device - implicit - out->backed - out->direct - out->other_process;
}
