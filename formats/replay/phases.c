/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Phases, per device: what its bands held at the start, at most, and at the end.
 * Those the program marks (vramscope_begin/vramscope_end) nest per thread; those
 * that are found are opened by phases_found.c.
 */
#include <errno.h>
#include <stdio.h>

#include "analysis.h"
#include "grow.h"

struct vs_levels vs_phase_levels(const struct vs_device_state *device)
{
    struct vs_levels levels = {{0}};
    if (device->framework_seen) {
        levels.bytes[VS_PHASE_ALLOCATED] = device->layers[VS_LAYER_FRAMEWORK].live_bytes;
        levels.bytes[VS_PHASE_RESERVED] = vs_device_reserved(device);
    }
    levels.bytes[VS_PHASE_DIRECT] = vs_device_direct(device);
    if (device->measured) {
        levels.bytes[VS_PHASE_GRAPHS] = device->implicit_bytes[VS_IMPLICIT_GRAPHS];
        levels.bytes[VS_PHASE_DEVICE] = device->used_bytes;
    }
    return levels;
}

struct vs_phase *vs_phases_add(struct vs_phases *phases, const struct vs_phase *phase)
{
    if (phases->count == VS_PHASES_KEPT) {
        phases->omitted++;
        return NULL;
    }
    if (!vs_grow(&phases->items, &phases->room, phases->count + 1, sizeof(*phases->items))) {
        phases->error = -ENOMEM;
        return NULL;
    }
    phases->items[phases->count] = *phase;
    return &phases->items[phases->count++];
}

void vs_phases_open(struct vs_phases *phases, const struct vs_phase *phase)
{
    if (phases->open_count == VS_PHASES_OPEN)
        phases->omitted++;
    else if (vs_phases_add(phases, phase) != NULL)
        phases->open[phases->open_count++] = phases->count - 1;
}

static void begin(struct vs_phases *phases, const struct vs_state *state,
                  const struct vs_sequenced_event *event)
{
    for (size_t i = 0; i < VS_DEVICE_SLOTS; i++) {
        const struct vs_device_state *device = state->devices[i];
        if (device == NULL || device->device < 0)
            continue;
        struct vs_phase phase = {.name = (uint32_t)event->event.extra[0],
                                 .thread = event->thread,
                                 .device = device->device,
                                 .kind = VS_PHASE_MARKED,
                                 .start_ns = state->now_ns,
                                 .entry = vs_phase_levels(device)};
        phase.peak = phase.entry;
        vs_phases_open(phases, &phase);
    }
}

void vs_phases_close(struct vs_phases *phases, const struct vs_state *state, size_t position,
                     bool ended)
{
    struct vs_phase *phase = &phases->items[phases->open[position]];
    const struct vs_device_state *device = vs_state_device(state, phase->device);
    phase->ended = ended;
    phase->end_ns = state->now_ns;
    if (device != NULL) {
        phase->exit = vs_phase_levels(device);
        phase->framework = device->framework_seen;
        phase->measured = device->measured;
    }
    phases->open_count--;
    memmove(phases->open + position, phases->open + position + 1,
            (phases->open_count - position) * sizeof(phases->open[0]));
}

/* The end belongs to the phase this thread began last: its entries share one start. */
static void end(struct vs_phases *phases, const struct vs_state *state, uint32_t thread)
{
    bool found = false;
    uint64_t start_ns = 0;
    uint32_t name = 0;
    for (size_t i = phases->open_count; i-- > 0;) {
        const struct vs_phase *phase = &phases->items[phases->open[i]];
        if (phase->thread != thread || phase->kind != VS_PHASE_MARKED)
            continue;
        if (found && (phase->start_ns != start_ns || phase->name != name))
            return;
        found = true;
        start_ns = phase->start_ns;
        name = phase->name;
        vs_phases_close(phases, state, i, true);
    }
}

/* ---- every event ----------------------------------------------------------------------- */

static void raise_to(struct vs_levels *peak, const struct vs_levels *now)
{
    for (size_t i = 0; i < VS_PHASE_BANDS; i++)
        if (now->bytes[i] > peak->bytes[i])
            peak->bytes[i] = now->bytes[i];
}

static void follow_device(struct vs_phases *phases, const struct vs_state *state,
                          const struct vs_device_state *device)
{
    struct vs_levels now = vs_phase_levels(device);
    for (size_t i = 0; i < phases->open_count; i++) {
        struct vs_phase *phase = &phases->items[phases->open[i]];
        if (phase->device == device->device)
            raise_to(&phase->peak, &now);
    }
    vs_phases_watch(phases, state, device, &now);
}

/* Only devices that the event touched can have moved; of many the state knows the first few. */
static void follow(struct vs_phases *phases, const struct vs_state *state)
{
    bool all = state->touched_count == sizeof(state->touched) / sizeof(state->touched[0]);
    for (size_t i = 0; !all && i < state->touched_count; i++)
        if (state->touched[i]->device >= 0)
            follow_device(phases, state, state->touched[i]);
    for (size_t i = 0; all && i < VS_DEVICE_SLOTS; i++)
        if (state->devices[i] != NULL && state->devices[i]->device >= 0)
            follow_device(phases, state, state->devices[i]);
}

static void on_event(void *self, const struct vs_state *state,
                     const struct vs_sequenced_event *event)
{
    struct vs_phases *phases = self;
    follow(phases, state);
    switch (event->event.kind) {
    case VS_KIND_PHASE_BEGIN:
        begin(phases, state, event);
        break;
    case VS_KIND_PHASE_END:
        end(phases, state, event->thread);
        break;
    case VS_KIND_STEP:
        if (phases->steps++ == 0)
            phases->first_step = event->event.size;
        phases->last_step = event->event.size;
        break;
    case VS_KIND_CAPTURE_BEGIN:
    case VS_KIND_CAPTURE_END:
    case VS_KIND_GRAPH_INSTANTIATE:
    case VS_KIND_GRAPH_DESTROY:
        vs_phases_find(phases, state, event);
        break;
    default:
        break;
    }
}

static void on_move(void *self, const struct vs_state *state, const struct vs_move *move)
{
    struct vs_phases *phases = self;
    if (move->site > phases->newest_site && move->count > 0) {
        phases->newest_site = move->site;
        vs_phases_note_site(phases, state, move->site);
    }
}

int vs_phases_start(struct vs_phases *phases, struct vs_state *state)
{
    struct vs_subscriber subscriber = {.self = phases, .event = on_event, .move = on_move};
    return vs_state_subscribe(state, &subscriber);
}

void vs_phases_finish(struct vs_phases *phases, const struct vs_state *state)
{
    vs_phases_found(phases, state);
    while (phases->open_count != 0)
        vs_phases_close(phases, state, phases->open_count - 1, false);
    if (state->cut_events != 0) /* the peak of a phase may be in a gap */
        phases->count = phases->first_count = 0;
}

void vs_phases_release(struct vs_phases *phases)
{
    for (size_t i = 0; i < VS_DEVICE_SLOTS; i++)
        free(phases->watches[i]);
    free(phases->firsts);
    free(phases->items);
}

void vs_phase_name(const struct vs_state *state, const struct vs_phase *phase, char *out,
                   size_t room)
{
    switch (phase->kind) {
    case VS_PHASE_BEFORE_CAPTURE:
        snprintf(out, room, "before the first capture");
        break;
    case VS_PHASE_CAPTURE:
        snprintf(out, room, "capture %u", phase->name);
        break;
    case VS_PHASE_AFTER_CAPTURE:
        snprintf(out, room, "after the last capture");
        break;
    case VS_PHASE_BEFORE_STEP:
        snprintf(out, room, "before the first optimizer step");
        break;
    default:
        snprintf(out, room, "%s", vs_state_string(state, phase->name));
        break;
    }
}

enum vs_phase_band vs_phase_main_band(const struct vs_phase *phase)
{
    return phase->framework ? VS_PHASE_ALLOCATED : VS_PHASE_DIRECT;
}
