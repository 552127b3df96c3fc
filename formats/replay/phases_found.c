/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Phases that nobody marked: up to the first capture of a graph, each capture up
 * to where its graph is instantiated, after the last one, and up to the first
 * allocation that an optimizer's step makes.
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis.h"
#include "categories.h"
#include "grow.h"
#include "places.h"

enum { DEVICE_OFFSET = 128 };

static struct vs_phase_watch *watch_of(struct vs_phases *phases, int8_t device)
{
    struct vs_phase_watch **slot = &phases->watches[device + DEVICE_OFFSET];
    if (*slot == NULL)
        *slot = calloc(1, sizeof(**slot));
    if (*slot == NULL)
        phases->error = -ENOMEM;
    return *slot;
}

static void raise_to(struct vs_levels *peak, const struct vs_levels *now)
{
    for (size_t i = 0; i < VS_PHASE_BANDS; i++)
        if (now->bytes[i] > peak->bytes[i])
            peak->bytes[i] = now->bytes[i];
}

void vs_phases_watch(struct vs_phases *phases, const struct vs_state *state,
                     const struct vs_device_state *device, const struct vs_levels *now)
{
    (void)state;
    struct vs_phase_watch *watch = watch_of(phases, device->device);
    if (watch == NULL)
        return;
    raise_to(&watch->peak, now);
    if (watch->between)
        raise_to(&watch->after.peak, now);
}

/* ---- captures ---------------------------------------------------------------------------- */

static void begin_capture(struct vs_phases *phases, const struct vs_state *state,
                          const struct vs_sequenced_event *event,
                          const struct vs_device_state *device, struct vs_phase_watch *watch)
{
    struct vs_levels now = vs_phase_levels(device);
    if (watch->captures++ == 0) {
        struct vs_phase before = {.device = device->device,
                                  .kind = VS_PHASE_BEFORE_CAPTURE,
                                  .start_ns = state->start_ns,
                                  .end_ns = state->now_ns,
                                  .ended = true,
                                  .framework = device->framework_seen,
                                  .measured = device->measured,
                                  .peak = watch->peak,
                                  .exit = now};
        vs_phases_add(phases, &before);
    }
    watch->between = false;
    struct vs_phase capture = {.name = watch->captures,
                               .thread = event->thread,
                               .key = event->event.stream,
                               .device = device->device,
                               .kind = VS_PHASE_CAPTURE,
                               .start_ns = state->now_ns,
                               .entry = now,
                               .peak = now};
    vs_phases_open(phases, &capture);
}

/* Position of an open capture: of a stream while it goes on, of a graph once it ended. */
static size_t find_capture(const struct vs_phases *phases, bool over, uint64_t key)
{
    for (size_t i = phases->open_count; i-- > 0;) {
        const struct vs_phase *phase = &phases->items[phases->open[i]];
        if (phase->kind == VS_PHASE_CAPTURE && (phase->end_ns != 0) == over && phase->key == key)
            return i;
    }
    return phases->open_count;
}

static bool is_capturing(const struct vs_phases *phases, int8_t device)
{
    for (size_t i = 0; i < phases->open_count; i++) {
        const struct vs_phase *phase = &phases->items[phases->open[i]];
        if (phase->kind == VS_PHASE_CAPTURE && phase->device == device && phase->end_ns == 0)
            return true;
    }
    return false;
}

/* From here on, if no other capture begins, is after the last one. */
static void start_after(struct vs_phases *phases, const struct vs_state *state, int8_t device)
{
    struct vs_phase_watch *watch = watch_of(phases, device);
    const struct vs_device_state *of = vs_state_device(state, device);
    if (watch == NULL || of == NULL || is_capturing(phases, device))
        return;
    watch->between = true;
    watch->after = (struct vs_phase){.device = device,
                                     .kind = VS_PHASE_AFTER_CAPTURE,
                                     .start_ns = state->now_ns,
                                     .entry = vs_phase_levels(of)};
    watch->after.peak = watch->after.entry;
}

/* The phase stays open for the instantiation; `exit` is as of now if there is none. */
static void end_capture(struct vs_phases *phases, const struct vs_state *state,
                        const struct vs_event *event)
{
    size_t position = find_capture(phases, false, event->stream);
    if (position == phases->open_count)
        return;
    struct vs_phase *phase = &phases->items[phases->open[position]];
    int8_t device = phase->device;
    const struct vs_device_state *of = vs_state_device(state, device);
    if (event->result != 0 || of == NULL) {
        vs_phases_close(phases, state, position, true);
    } else {
        phase->key = event->handle;
        phase->end_ns = state->now_ns;
        phase->capture_peak = phase->peak;
        phase->exit = vs_phase_levels(of);
        phase->framework = of->framework_seen;
        phase->measured = of->measured;
    }
    start_after(phases, state, device);
}

static void instantiate(struct vs_phases *phases, const struct vs_state *state,
                        const struct vs_event *event)
{
    size_t position = find_capture(phases, true, event->extra[0]);
    if (position == phases->open_count)
        return;
    int8_t device = phases->items[phases->open[position]].device;
    vs_phases_close(phases, state, position, true);
    start_after(phases, state, device);
}

/* A graph that was captured and never instantiated: its phase ended with the capture. */
static void forget_capture(struct vs_phases *phases, size_t position)
{
    struct vs_phase *phase = &phases->items[phases->open[position]];
    phase->ended = true;
    phase->peak = phase->capture_peak;
    phases->open_count--;
    memmove(phases->open + position, phases->open + position + 1,
            (phases->open_count - position) * sizeof(phases->open[0]));
}

static void destroy_graph(struct vs_phases *phases, uint64_t graph)
{
    size_t position = find_capture(phases, true, graph);
    if (position != phases->open_count)
        forget_capture(phases, position);
}

void vs_phases_find(struct vs_phases *phases, const struct vs_state *state,
                    const struct vs_sequenced_event *event)
{
    const struct vs_event *call = &event->event;
    if (call->kind == VS_KIND_CAPTURE_END) {
        end_capture(phases, state, call);
    } else if (call->result != 0) {
        return;
    } else if (call->kind == VS_KIND_CAPTURE_BEGIN) {
        const struct vs_device_state *device = vs_state_device(state, call->device);
        struct vs_phase_watch *watch =
            device != NULL && device->device >= 0 ? watch_of(phases, device->device) : NULL;
        if (watch != NULL)
            begin_capture(phases, state, event, device, watch);
    } else if (call->kind == VS_KIND_GRAPH_INSTANTIATE) {
        instantiate(phases, state, call);
    } else if (call->kind == VS_KIND_GRAPH_DESTROY) {
        destroy_graph(phases, call->handle);
    }
}

void vs_phases_found(struct vs_phases *phases, const struct vs_state *state)
{
    for (size_t i = phases->open_count; i-- > 0;) {
        const struct vs_phase *phase = &phases->items[phases->open[i]];
        if (phase->kind == VS_PHASE_CAPTURE && phase->end_ns != 0)
            forget_capture(phases, i);
    }
    for (size_t i = 0; i < VS_DEVICE_SLOTS; i++) {
        struct vs_phase_watch *watch = phases->watches[i];
        if (watch == NULL || !watch->between)
            continue;
        const struct vs_device_state *device = state->devices[i];
        watch->after.end_ns = state->now_ns;
        watch->after.ended = true;
        watch->after.framework = device->framework_seen;
        watch->after.measured = device->measured;
        watch->after.exit = vs_phase_levels(device);
        vs_phases_add(phases, &watch->after);
    }
}

/* ---- the first optimizer step ------------------------------------------------------------- */

void vs_phases_note_site(struct vs_phases *phases, const struct vs_state *state, uint32_t id)
{
    const struct vs_site *site = vs_state_site(state, id);
    if (phases->first_count == VS_PHASE_FIRSTS || site->layer != VS_LAYER_FRAMEWORK ||
        site->device < 0 || site->stack == 0)
        return;
    const struct vs_device_state *device = vs_state_device(state, site->device);
    struct vs_phase_watch *watch = watch_of(phases, site->device);
    if (watch == NULL || device == NULL)
        return;
    if (!vs_grow(&phases->firsts, &phases->first_room, phases->first_count + 1,
                 sizeof(*phases->firsts))) {
        phases->error = -ENOMEM;
        return;
    }
    phases->firsts[phases->first_count++] = (struct vs_phase_first){
        .time_ns = state->now_ns, .site = id, .peak = watch->peak, .now = vs_phase_levels(device)};
}

static bool is_optimizer_step(const struct vs_places *places, uint32_t site)
{
    const struct vs_place *place = vs_places_of(places, site);
    const struct vs_frame *frames;
    long count = place == NULL ? 0 : vs_places_frames(places, place, &frames);
    for (long i = 0; i < count; i++)
        if (vs_frame_is_optimizer_step(&frames[i]))
            return true;
    return false;
}

static int by_start(const void *a, const void *b)
{
    const struct vs_phase *left = a, *right = b;
    if (left->start_ns != right->start_ns)
        return left->start_ns < right->start_ns ? -1 : 1;
    if (left->end_ns != right->end_ns)
        return left->end_ns < right->end_ns ? 1 : -1;
    return left->device - right->device;
}

void vs_phases_find_step(struct vs_phases *phases, const struct vs_state *state,
                         const struct vs_places *places)
{
    bool found[VS_DEVICE_SLOTS] = {false};
    for (size_t i = 0; i < phases->first_count; i++) {
        const struct vs_phase_first *first = &phases->firsts[i];
        const struct vs_site *site = vs_state_site(state, first->site);
        const struct vs_device_state *device = vs_state_device(state, site->device);
        if (found[site->device + DEVICE_OFFSET] || !is_optimizer_step(places, first->site))
            continue;
        found[site->device + DEVICE_OFFSET] = true;
        struct vs_phase phase = {.device = site->device,
                                 .kind = VS_PHASE_BEFORE_STEP,
                                 .start_ns = state->start_ns,
                                 .end_ns = first->time_ns,
                                 .ended = true,
                                 .framework = true,
                                 .measured = device->measured,
                                 .peak = first->peak,
                                 .exit = first->now};
        vs_phases_add(phases, &phase);
    }
    if (phases->count > 1)
        qsort(phases->items, phases->count, sizeof(*phases->items), by_start);
}
