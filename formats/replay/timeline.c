/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The curves: every change of a device's bands as a row, and for drawing the
 * highest values in equal stretches of time, whose length doubles as the trace
 * grows, so that one pass is enough and memory is fixed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis.h"

#define FIRST_BUCKET_NS 1000ULL

static void keep_higher(int64_t *kept, int64_t value)
{
    if (value > *kept)
        *kept = value;
}

static void halve(struct vs_curve *curve)
{
    int64_t *series[] = {curve->allocated, curve->reserved, curve->used};
    for (size_t which = 0; which < 3; which++) {
        int64_t *values = series[which];
        for (size_t i = 0; i < VS_CURVE_BUCKETS / 2; i++) {
            values[i] = values[2 * i];
            keep_higher(&values[i], values[2 * i + 1]);
        }
        memset(values + VS_CURVE_BUCKETS / 2, 0, VS_CURVE_BUCKETS / 2 * sizeof(*values));
    }
    curve->filled = (curve->filled + 1) / 2;
}

static void hold(struct vs_curve *curve, size_t bucket)
{
    keep_higher(&curve->allocated[bucket], curve->now_allocated);
    keep_higher(&curve->reserved[bucket], curve->now_reserved);
    keep_higher(&curve->used[bucket], curve->now_used);
}

/* The values held so far go on until `bucket`. */
static void extend(struct vs_curve *curve, size_t bucket)
{
    while (curve->filled <= bucket)
        hold(curve, curve->filled++);
}

static size_t bucket_of(struct vs_timeline *timeline, uint64_t elapsed_ns)
{
    while (elapsed_ns / timeline->bucket_ns >= VS_CURVE_BUCKETS) {
        timeline->bucket_ns *= 2;
        for (size_t i = 0; i < VS_DEVICE_SLOTS; i++)
            if (timeline->curves[i] != NULL)
                halve(timeline->curves[i]);
    }
    return (size_t)(elapsed_ns / timeline->bucket_ns);
}

static struct vs_curve *curve_of(struct vs_timeline *timeline, int8_t device)
{
    struct vs_curve **slot = &timeline->curves[device + VS_DEVICE_OFFSET];
    if (*slot == NULL)
        *slot = calloc(1, sizeof(**slot));
    if (*slot == NULL)
        timeline->error = -ENOMEM;
    return *slot;
}

static void draw(struct vs_timeline *timeline, const struct vs_state *state,
                 const struct vs_device_state *device)
{
    struct vs_curve *curve = curve_of(timeline, device->device);
    if (curve == NULL)
        return;
    size_t bucket = bucket_of(timeline, state->now_ns - state->start_ns);
    extend(curve, bucket);
    curve->now_allocated = device->layers[vs_device_top_layer(device)].live_bytes;
    curve->now_reserved = vs_device_reserved(device);
    curve->now_used = device->measured ? device->used_bytes : 0;
    hold(curve, bucket);
}

static void tell_device(struct vs_timeline *timeline, const struct vs_state *state,
                        const struct vs_device_state *device)
{
    if (device->device < 0)
        return;
    draw(timeline, state, device);
    if (timeline->row == NULL)
        return;
    struct vs_bands bands;
    vs_state_bands(state, device, &bands);
    timeline->row(timeline->row_self, state, device, &bands, &timeline->free_blocks);
}

/* Where a gap begins nothing is known any more; where it ends everything is. */
static void on_cut(struct vs_timeline *timeline, const struct vs_state *state)
{
    for (size_t i = 0; i < VS_DEVICE_SLOTS; i++) {
        const struct vs_device_state *device = state->devices[i];
        if (device == NULL || device->device < 0)
            continue;
        if (!state->cut)
            tell_device(timeline, state, device);
        else if (timeline->row != NULL)
            timeline->row(timeline->row_self, state, device, NULL, &timeline->free_blocks);
    }
}

static void on_event(void *self, const struct vs_state *state,
                     const struct vs_sequenced_event *event)
{
    struct vs_timeline *timeline = self;
    vs_free_blocks_event(&timeline->free_blocks, state, &event->event);
    if (event->event.kind == VS_KIND_CUT || event->event.kind == VS_KIND_CUT_END)
        on_cut(timeline, state);
    else if (!state->cut)
        for (size_t i = 0; i < state->touched_count; i++)
            tell_device(timeline, state, state->touched[i]);
}

int vs_timeline_start(struct vs_timeline *timeline, struct vs_state *state, vs_timeline_row *row,
                      void *row_self)
{
    timeline->bucket_ns = FIRST_BUCKET_NS;
    timeline->row = row;
    timeline->row_self = row_self;
    struct vs_subscriber subscriber = {.self = timeline, .event = on_event};
    return vs_state_subscribe(state, &subscriber);
}

void vs_timeline_finish(struct vs_timeline *timeline, const struct vs_state *state)
{
    if (state->counts.events == 0)
        return;
    size_t bucket = bucket_of(timeline, state->now_ns - state->start_ns);
    for (size_t i = 0; i < VS_DEVICE_SLOTS; i++)
        if (timeline->curves[i] != NULL)
            extend(timeline->curves[i], bucket);
}

void vs_timeline_release(struct vs_timeline *timeline)
{
    for (size_t i = 0; i < VS_DEVICE_SLOTS; i++)
        free(timeline->curves[i]);
    vs_free_blocks_release(&timeline->free_blocks);
}
