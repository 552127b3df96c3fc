/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Phases the program marks (vramscope_begin/vramscope_end), per device: what its
 * top layer held at the start, at most, and at the end. Phases of a thread nest.
 */
#include <errno.h>

#include "analysis.h"
#include "grow.h"

static int64_t live_bytes(const struct vs_device_state *device)
{
    return device->layers[vs_device_top_layer(device)].live_bytes;
}

static void open_on(struct vs_phases *phases, const struct vs_state *state,
                    const struct vs_sequenced_event *event, const struct vs_device_state *device)
{
    if (phases->count == VS_PHASES_KEPT || phases->open_count == VS_PHASES_OPEN) {
        phases->omitted++;
        return;
    }
    if (!vs_grow(&phases->items, &phases->room, phases->count + 1, sizeof(*phases->items))) {
        phases->error = -ENOMEM;
        return;
    }
    struct vs_phase *phase = &phases->items[phases->count];
    *phase = (struct vs_phase){.name = (uint32_t)event->event.extra[0],
                               .thread = event->thread,
                               .device = device->device,
                               .layer = (uint8_t)vs_device_top_layer(device),
                               .start_ns = state->now_ns,
                               .entry_bytes = live_bytes(device),
                               .peak_bytes = live_bytes(device)};
    phases->open[phases->open_count++] = phases->count++;
}

static void begin(struct vs_phases *phases, const struct vs_state *state,
                  const struct vs_sequenced_event *event)
{
    for (size_t i = 0; i < VS_DEVICE_SLOTS; i++) {
        const struct vs_device_state *device = state->devices[i];
        if (device != NULL && device->device >= 0)
            open_on(phases, state, event, device);
    }
}

static void close_at(struct vs_phases *phases, const struct vs_state *state, size_t position,
                     bool ended)
{
    struct vs_phase *phase = &phases->items[phases->open[position]];
    const struct vs_device_state *device = vs_state_device(state, phase->device);
    phase->ended = ended;
    phase->end_ns = state->now_ns;
    if (device != NULL)
        phase->exit_bytes = live_bytes(device);
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
        if (phase->thread != thread)
            continue;
        if (found && (phase->start_ns != start_ns || phase->name != name))
            return;
        found = true;
        start_ns = phase->start_ns;
        name = phase->name;
        close_at(phases, state, i, true);
    }
}

static void follow(struct vs_phases *phases, const struct vs_state *state)
{
    for (size_t i = 0; i < phases->open_count; i++) {
        struct vs_phase *phase = &phases->items[phases->open[i]];
        const struct vs_device_state *device = vs_state_device(state, phase->device);
        if (device == NULL)
            continue;
        int64_t live = live_bytes(device);
        if (live > phase->peak_bytes)
            phase->peak_bytes = live;
    }
}

static void on_event(void *self, const struct vs_state *state,
                     const struct vs_sequenced_event *event)
{
    struct vs_phases *phases = self;
    if (event->event.kind == VS_KIND_PHASE_BEGIN) {
        begin(phases, state, event);
    } else if (event->event.kind == VS_KIND_PHASE_END) {
        end(phases, state, event->thread);
    } else if (event->event.kind == VS_KIND_STEP) {
        if (phases->steps++ == 0)
            phases->first_step = event->event.size;
        phases->last_step = event->event.size;
    } else if (phases->open_count != 0) {
        follow(phases, state);
    }
}

int vs_phases_start(struct vs_phases *phases, struct vs_state *state)
{
    struct vs_subscriber subscriber = {.self = phases, .event = on_event};
    return vs_state_subscribe(state, &subscriber);
}

void vs_phases_finish(struct vs_phases *phases, const struct vs_state *state)
{
    while (phases->open_count != 0)
        close_at(phases, state, phases->open_count - 1, false);
}

void vs_phases_release(struct vs_phases *phases)
{
    free(phases->items);
}
