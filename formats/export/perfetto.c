/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace for Perfetto: per device a counter for each column of the curves, per
 * thread its slow calls, its marked phases and what failed, the steps, and as heap
 * profiles what each place held at the instant asked for. The trace is folded twice:
 * for what happens in time, and by place.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "formats.h"
#include "perfetto_packets.h"
#include "profile.h"
#include "replay/curve_row.h"
#include "replay/grow.h"
#include "replay/reader_facts.h"
#include "texts.h"

/* A shorter call is no slice: a viewer would be full of them. docs/man says so. */
#define SLOW_CALL_NS 100000U

enum { PHASES_OPEN = 32 };
/* Ids of tracks. */
enum { TRACK_PROCESS = 1, TRACK_STEPS = 2, TRACK_DEVICES = 1 << 16, TRACKS_PER_DEVICE = 64 };
#define TRACK_THREADS (1ULL << 32)
#define TRACK_PHASES (1ULL << 33)

struct thread {
    uint32_t thread, depth, open[PHASES_OPEN]; /* names of the phases it is in */
    uint64_t last_ns;                          /* end of its last slice */
    bool put, phases_put;
};
VS_MAP_DEFINE(thread_map, uint32_t);

struct counters {
    int64_t value[VS_CURVE_COLUMNS];
    bool known[VS_CURVE_COLUMNS], put[VS_CURVE_COLUMNS];
    bool described;
};

struct tracks {
    struct vs_export *export;
    struct perfetto_packets packets;
    struct vs_state *state;
    struct vs_timeline timeline;
    struct vs_failures failures;
    struct vs_ooms ooms;
    size_t failed_last; /* the failure seen last, and how often it had happened */
    uint64_t failed_count;
    struct counters *counters[VS_DEVICE_SLOTS];
    struct thread *threads;
    size_t thread_count, thread_room;
    struct thread_map thread_index;
    uint64_t pid, step, end_ns;
    bool begun, step_open, steps_put;
    int error;
};

static uint64_t within(const struct vs_export *export, uint64_t time_ns)
{
    return time_ns > export->from_ns ? time_ns : export->from_ns;
}

/* ---- counters ----------------------------------------------------------------------------- */

static uint64_t device_track(int device)
{
    return (uint64_t)TRACK_DEVICES + (uint64_t)(device + VS_DEVICE_OFFSET) * TRACKS_PER_DEVICE;
}

static void describe_device(struct tracks *tracks, int device)
{
    const struct vs_reader *reader = tracks->export->reader;
    char name[128];
    snprintf(name, sizeof(name), "GPU %d", device);
    for (size_t i = 0; i < vs_reader_device_count(reader); i++)
        if (vs_reader_device(reader, i)->device == device)
            snprintf(name, sizeof(name), "GPU %d: %s", device, vs_reader_device(reader, i)->name);
    perfetto_put_track(&tracks->packets, device_track(device), TRACK_PROCESS, name);
}

static void put_counter(struct tracks *tracks, int device, struct counters *counters, int column,
                        uint64_t time_ns)
{
    uint64_t track = device_track(device) + 1 + (uint64_t)column;
    char name[96];
    if (!counters->described)
        describe_device(tracks, device);
    counters->described = true;
    if (!counters->put[column]) {
        snprintf(name, sizeof(name), "GPU %d %s", device, vs_curve_columns[column]);
        perfetto_put_byte_counter(&tracks->packets, track, device_track(device), name);
    }
    counters->put[column] = true;
    perfetto_put_counter(&tracks->packets, track, time_ns, counters->value[column]);
}

static struct counters *counters_of(struct tracks *tracks, int device)
{
    struct counters **slot = &tracks->counters[device + VS_DEVICE_OFFSET];
    if (*slot == NULL)
        *slot = calloc(1, sizeof(**slot));
    if (*slot == NULL)
        tracks->error = -ENOMEM;
    return *slot;
}

/* A counter holds its value until the next: only changes are written. */
static void on_row(void *self, const struct vs_state *state, const struct vs_device_state *device,
                   const struct vs_bands *bands, struct vs_free_blocks *free_blocks)
{
    struct tracks *tracks = self;
    const struct vs_export *export = tracks->export;
    struct counters *counters;
    struct vs_curve_row row;
    if (bands == NULL) /* in a gap of a cut trace a counter goes on as it was */
        return;
    if ((export->device >= 0 && device->device != export->device) ||
        (counters = counters_of(tracks, device->device)) == NULL)
        return;
    vs_curve_row(free_blocks, state, device, bands, &row);
    for (int i = 0; i < VS_CURVE_COLUMNS; i++) {
        if (!row.known[i] || (counters->known[i] && counters->value[i] == row.value[i]))
            continue;
        counters->known[i] = true;
        counters->value[i] = row.value[i];
        if (tracks->begun)
            put_counter(tracks, device->device, counters, i, state->now_ns);
    }
}

/* ---- threads ------------------------------------------------------------------------------ */

static struct thread *thread_of(struct tracks *tracks, uint32_t id)
{
    uint32_t *slot = thread_map_put(&tracks->thread_index, id);
    if (slot == NULL || (*slot == 0 && !vs_grow(&tracks->threads, &tracks->thread_room,
                                                tracks->thread_count + 1, sizeof(struct thread)))) {
        tracks->error = -ENOMEM;
        return NULL;
    }
    if (*slot == 0) {
        tracks->threads[tracks->thread_count++].thread = id;
        *slot = (uint32_t)tracks->thread_count;
    }
    return &tracks->threads[*slot - 1];
}

static uint64_t thread_track(struct tracks *tracks, struct thread *thread)
{
    uint64_t track = TRACK_THREADS + thread->thread;
    const struct vs_thread_def *named = vs_reader_thread(tracks->export->reader, thread->thread);
    if (!thread->put)
        perfetto_put_thread(&tracks->packets, track, tracks->pid, thread->thread,
                            named == NULL || named->name[0] == 0 ? NULL : named->name);
    thread->put = true;
    return track;
}

static uint64_t phase_track(struct tracks *tracks, struct thread *thread)
{
    uint64_t track = TRACK_PHASES + thread->thread;
    if (!thread->phases_put)
        perfetto_put_track(&tracks->packets, track, thread_track(tracks, thread), "phases");
    thread->phases_put = true;
    return track;
}

/* ---- slices ------------------------------------------------------------------------------- */

static void put_edge(struct tracks *tracks, enum perfetto_event type, uint64_t track,
                     const char *category, const char *name, uint64_t time_ns)
{
    perfetto_event_begin(&tracks->packets, type, track, category, name);
    perfetto_event_end(&tracks->packets, time_ns);
}

static void put_phase_begin(struct tracks *tracks, struct thread *thread, uint32_t name,
                            uint64_t time_ns)
{
    put_edge(tracks, PERFETTO_BEGIN, phase_track(tracks, thread), "phase",
             vs_state_string(tracks->state, name), time_ns);
}

static void begin_phase(struct tracks *tracks, struct thread *thread, uint32_t name,
                        uint64_t time_ns)
{
    if (thread->depth < PHASES_OPEN) {
        thread->open[thread->depth] = name;
        if (tracks->begun)
            put_phase_begin(tracks, thread, name, time_ns);
    }
    thread->depth++;
}

static void end_phase(struct tracks *tracks, struct thread *thread, uint64_t time_ns)
{
    if (thread->depth == 0 || thread->depth-- > PHASES_OPEN || !tracks->begun)
        return;
    put_edge(tracks, PERFETTO_END, phase_track(tracks, thread), NULL, NULL, time_ns);
}

static void end_step(struct tracks *tracks, uint64_t time_ns)
{
    if (tracks->step_open && tracks->begun)
        put_edge(tracks, PERFETTO_END, TRACK_STEPS, NULL, NULL, time_ns);
}

static void put_step(struct tracks *tracks, uint64_t time_ns)
{
    char name[40];
    if (!tracks->steps_put)
        perfetto_put_track(&tracks->packets, TRACK_STEPS, TRACK_PROCESS, "steps");
    tracks->steps_put = true;
    snprintf(name, sizeof(name), "step %" PRIu64, tracks->step);
    put_edge(tracks, PERFETTO_BEGIN, TRACK_STEPS, "step", name, time_ns);
}

static void begin_step(struct tracks *tracks, uint64_t step, uint64_t time_ns)
{
    end_step(tracks, time_ns);
    tracks->step = step;
    tracks->step_open = true;
    if (tracks->begun)
        put_step(tracks, time_ns);
}

static void describe_event(struct tracks *tracks, const struct vs_event *event)
{
    char buffer[32];
    if (event->size != 0)
        perfetto_event_number(&tracks->packets, "bytes", event->size);
    if (event->device >= 0)
        perfetto_event_number(&tracks->packets, "device", (uint64_t)event->device);
    if (event->result != 0)
        perfetto_event_text(&tracks->packets, "error",
                            vs_export_error(tracks->export, event, buffer, sizeof(buffer)));
}

static const char *name_of(const struct tracks *tracks, const struct vs_event *event)
{
    const char *name =
        vs_state_string(tracks->state, event->label != 0 ? event->label : event->call);
    return name[0] != 0 ? name : vs_kind_name(event->kind);
}

/* A call is recorded at its end. On one thread none begins before the one before ended. */
static void put_slow_call(struct tracks *tracks, struct thread *thread,
                          const struct vs_event *event, uint64_t time_ns)
{
    const struct vs_export *export = tracks->export;
    uint64_t least = within(export, export->start_ns);
    uint64_t start = time_ns > least + event->duration_ns ? time_ns - event->duration_ns : least;
    if (start < thread->last_ns)
        start = thread->last_ns;
    if (start > time_ns)
        return;
    uint64_t track = thread_track(tracks, thread);
    perfetto_event_begin(&tracks->packets, PERFETTO_BEGIN, track, "call", name_of(tracks, event));
    describe_event(tracks, event);
    perfetto_event_stack(&tracks->packets, event->stack);
    perfetto_event_end(&tracks->packets, start);
    put_edge(tracks, PERFETTO_END, track, NULL, NULL, time_ns);
    thread->last_ns = time_ns;
}

/* ---- what failed -------------------------------------------------------------------------- */

/* The analysis that counts failures for the report saw the event before. */
static bool has_failed(struct tracks *tracks)
{
    const struct vs_failures *failures = &tracks->failures;
    if (failures->count == 0)
        return false;
    uint64_t count = failures->items[failures->last].count;
    bool more = failures->last != tracks->failed_last || count != tracks->failed_count;
    tracks->failed_last = failures->last;
    tracks->failed_count = count;
    return more;
}

static void put_failure(struct tracks *tracks, struct thread *thread, const struct vs_event *event,
                        uint64_t time_ns)
{
    const struct vs_failure *failure = &tracks->failures.items[tracks->failed_last];
    const struct vs_event *told = event;
    if (event->kind == VS_KIND_UNDO && tracks->state->undone != NULL)
        told = tracks->state->undone;
    uint64_t track = thread_track(tracks, thread);
    struct vs_event failed = *told;
    failed.result = failure->result;
    perfetto_event_begin(&tracks->packets, PERFETTO_INSTANT, track, "failure",
                         name_of(tracks, told));
    describe_event(tracks, &failed);
    perfetto_event_text(&tracks->packets, "hint", vs_failure_hint(failure));
    perfetto_event_stack(&tracks->packets, told->stack);
    perfetto_event_end(&tracks->packets, time_ns);
}

static void put_oom(struct tracks *tracks, const struct vs_oom *oom)
{
    struct thread *thread = thread_of(tracks, oom->thread);
    const struct vs_site *site = oom->site == 0 ? NULL : vs_state_site(tracks->state, oom->site);
    struct perfetto_packets *packets = &tracks->packets;
    if (thread == NULL)
        return;
    uint64_t track = thread_track(tracks, thread);
    perfetto_event_begin(packets, PERFETTO_INSTANT, track, "out_of_memory", "out of memory");
    perfetto_event_number(packets, "requested_bytes", oom->requested);
    if (oom->device >= 0)
        perfetto_event_number(packets, "device", (uint64_t)oom->device);
    if (oom->free_bytes != VS_FREE_UNKNOWN)
        perfetto_event_number(packets, "free_bytes", oom->free_bytes);
    perfetto_event_text(packets, "class", vs_oom_class_name(oom->class));
    perfetto_event_text(packets, "why", oom->why);
    perfetto_event_text(packets, "handled", oom->handled ? "yes" : "no");
    perfetto_event_stack(packets, site == NULL ? 0 : site->stack);
    perfetto_event_end(packets, within(tracks->export, oom->time_ns));
}

/* Their class is known when all is read. */
static int put_ooms(struct tracks *tracks)
{
    int device = tracks->export->device;
    bool ended_well = vs_fact_ended_well(tracks->export->end);
    int result = tracks->begun ? vs_ooms_finish(&tracks->ooms, ended_well) : 0;
    for (size_t i = 0; i < tracks->ooms.count && result == 0; i++)
        if (device < 0 || tracks->ooms.items[i].device < 0 ||
            tracks->ooms.items[i].device == device)
            put_oom(tracks, &tracks->ooms.items[i]);
    return result;
}

/* ---- the fold ----------------------------------------------------------------------------- */

/* What was under way when the window begins. */
static int begin_window(struct tracks *tracks)
{
    uint64_t from_ns = within(tracks->export, tracks->export->start_ns);
    int result = vs_ooms_start(&tracks->ooms, tracks->state);
    if (result == 0)
        result = vs_failures_start(&tracks->failures, tracks->state);
    tracks->begun = true;
    for (int slot = 0; slot < VS_DEVICE_SLOTS; slot++)
        for (int i = 0; tracks->counters[slot] != NULL && i < VS_CURVE_COLUMNS; i++)
            if (tracks->counters[slot]->known[i])
                put_counter(tracks, slot - VS_DEVICE_OFFSET, tracks->counters[slot], i, from_ns);
    for (size_t i = 0; i < tracks->thread_count; i++)
        for (uint32_t at = 0; at < tracks->threads[i].depth && at < PHASES_OPEN; at++)
            put_phase_begin(tracks, &tracks->threads[i], tracks->threads[i].open[at], from_ns);
    if (tracks->step_open)
        put_step(tracks, from_ns);
    return result;
}

static void follow(struct tracks *tracks, struct thread *thread, const struct vs_event *event,
                   uint64_t time_ns)
{
    bool chosen = tracks->begun && (tracks->export->device < 0 || event->device < 0 ||
                                    event->device == tracks->export->device);
    if ((event->kind == VS_KIND_PHASE_BEGIN || event->kind == VS_KIND_PHASE_END) &&
        event->extra[1] != 0)
        return; /* it may end on another thread: no slice of this one */
    if (event->kind == VS_KIND_PHASE_BEGIN)
        begin_phase(tracks, thread, (uint32_t)event->extra[0], time_ns);
    else if (event->kind == VS_KIND_PHASE_END)
        end_phase(tracks, thread, time_ns);
    else if (event->kind == VS_KIND_STEP)
        begin_step(tracks, event->size, time_ns);
    else if (chosen && event->call != 0 && event->duration_ns >= SLOW_CALL_NS)
        put_slow_call(tracks, thread, event, time_ns);
    if (tracks->begun && has_failed(tracks) && chosen)
        put_failure(tracks, thread, event, time_ns);
}

static bool concerns_threads(const struct vs_event *event)
{
    return event->kind == VS_KIND_PHASE_BEGIN || event->kind == VS_KIND_PHASE_END ||
           event->kind == VS_KIND_STEP || event->duration_ns >= SLOW_CALL_NS || event->result != 0;
}

static int take(void *self, const struct vs_sequenced_event *event)
{
    struct tracks *tracks = self;
    const struct vs_export *export = tracks->export;
    if (event->event.time_ns > export->to_ns)
        return 1;
    int result = 0;
    if (!tracks->begun && event->event.time_ns >= export->from_ns)
        result = begin_window(tracks);
    if (result == 0)
        result = vs_state_event(tracks->state, event);
    tracks->end_ns = tracks->state->now_ns;
    if (result == 0 && concerns_threads(&event->event)) {
        struct thread *thread = thread_of(tracks, event->thread);
        if (thread != NULL)
            follow(tracks, thread, &event->event, tracks->end_ns);
    }
    if (result == 0)
        result = tracks->error != 0 ? tracks->error : perfetto_packets_error(&tracks->packets);
    return result;
}

/* Slices that are open when the trace or the window ends. */
static void close_slices(struct tracks *tracks)
{
    for (size_t i = 0; i < tracks->thread_count; i++)
        while (tracks->threads[i].depth != 0)
            end_phase(tracks, &tracks->threads[i], tracks->end_ns);
    end_step(tracks, tracks->end_ns);
}

/* ---- heap profiles ------------------------------------------------------------------------ */

/*
 * What is in use is what a place allocated less what it freed: of a place whose memory
 * was there before the window, or before recording, at least that much was allocated.
 */
static void put_sample(struct tracks *tracks, const struct vs_profile *profile,
                       const struct vs_profile_sample *sample, uint64_t index)
{
    const int64_t *values = sample->values;
    const struct vs_device_state *device = vs_state_device(profile->state, sample->device);
    bool at_peak = tracks->export->at == VS_AT_PEAK && device != NULL;
    char heap[64];
    snprintf(heap, sizeof(heap), "GPU %d %s", sample->device, vs_export_layer_name(sample->layer));
    struct perfetto_heap_sample one = {
        .heap = heap,
        .pid = tracks->pid,
        .time_ns = at_peak ? device->layers[sample->layer].peak_time_ns : profile->instant_ns,
        .callstack = sample->stack != 0 ? perfetto_callstack(&tracks->packets, sample->stack)
                                        : perfetto_place(&tracks->packets, sample->instead),
        .allocated = values[VS_METRIC_ALLOC_SPACE],
        .allocs = values[VS_METRIC_ALLOC_OBJECTS],
    };
    if (one.allocated < values[VS_METRIC_INUSE_SPACE])
        one.allocated = values[VS_METRIC_INUSE_SPACE];
    if (one.allocs < values[VS_METRIC_INUSE_OBJECTS])
        one.allocs = values[VS_METRIC_INUSE_OBJECTS];
    one.freed = one.allocated - values[VS_METRIC_INUSE_SPACE];
    one.frees = one.allocs - values[VS_METRIC_INUSE_OBJECTS];
    perfetto_put_heap_sample(&tracks->packets, &one, index);
}

static int put_heap(struct tracks *tracks)
{
    struct vs_profile profile;
    struct vs_profile_sample sample;
    uint64_t index = 0;
    int result = vs_profile_make(tracks->export, &profile);
    while (result == 0 && vs_profile_next(&profile, &sample)) {
        put_sample(tracks, &profile, &sample, index++);
        result = perfetto_packets_error(&tracks->packets);
    }
    if (result == 0 && index != 0)
        perfetto_put_heap_end(&tracks->packets, index);
    vs_profile_release(&profile);
    return result;
}

/* ---- the trace ---------------------------------------------------------------------------- */

static void put_process(struct tracks *tracks)
{
    const struct vs_export *export = tracks->export;
    const char *exe = json_string_value(json_object_get(export->process, "exe"));
    char filter[256], text[300];
    tracks->pid = (uint64_t)json_integer_value(json_object_get(export->process, "pid"));
    perfetto_put_process(&tracks->packets, TRACK_PROCESS, tracks->pid, exe == NULL ? "?" : exe);
    vs_export_filter_text(export, filter, sizeof(filter));
    if (filter[0] == 0)
        return;
    snprintf(text, sizeof(text), "vramscope export: only: %s", filter);
    put_edge(tracks, PERFETTO_INSTANT, TRACK_PROCESS, "vramscope", text,
             within(export, export->start_ns));
}

static int put_tracks(struct tracks *tracks)
{
    int result = vs_export_state(tracks->export, &tracks->state);
    if (result == 0)
        result = vs_timeline_start(&tracks->timeline, tracks->state, on_row, tracks);
    if (result == 0)
        result = vs_export_each(tracks->export, take, tracks);
    if (result != 0)
        return result;
    close_slices(tracks);
    return put_ooms(tracks);
}

static void release(struct tracks *tracks)
{
    perfetto_packets_release(&tracks->packets);
    vs_timeline_release(&tracks->timeline);
    vs_failures_release(&tracks->failures);
    vs_ooms_release(&tracks->ooms);
    vs_state_destroy(tracks->state);
    for (int i = 0; i < VS_DEVICE_SLOTS; i++)
        free(tracks->counters[i]);
    free(tracks->threads);
    thread_map_release(&tracks->thread_index);
    free(tracks);
}

int vs_export_perfetto(struct vs_export *export)
{
    if (export->last != 0)
        return vs_export_refuse_last(export);
    struct tracks *tracks = calloc(1, sizeof(*tracks));
    if (tracks == NULL)
        return -ENOMEM;
    tracks->export = export;
    int result = perfetto_packets_new(export, &tracks->packets);
    if (result == 0) {
        perfetto_put_head(&tracks->packets);
        put_process(tracks);
        result = put_tracks(tracks);
    }
    if (result == 0)
        result = put_heap(tracks);
    if (result == 0)
        result = perfetto_packets_error(&tracks->packets);
    release(tracks);
    return result;
}
