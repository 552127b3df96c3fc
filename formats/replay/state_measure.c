/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measurements of a device's free memory, and what they explain. A figure tells
 * what was used at one moment, in the middle of what other threads do: events
 * come in the order in which they were recorded, which says only so much about
 * what a measurement has seen. So the one that began last counts, and nothing is
 * concluded from one while a call of another thread was under way. Some of these
 * calls are told only when they return: then the conclusion is taken back, and
 * drawn again at the next quiet moment.
 */
#include "state_internal.h"

/* A call of which nothing more is heard for so long is over: its end was not measured. */
#define CALL_MOST_NS 100000000ULL

/* ---- calls under way ---------------------------------------------------------------- */

static bool moves_memory(const struct vs_event *event)
{
    return event->result == 0 && (vs_kind_layer(event->kind) == 'D' ||
                                  event->kind == VS_KIND_GRAPH_LAUNCH ||
                                  event->kind == VS_KIND_GRAPH_UPLOAD ||
                                  event->kind == VS_KIND_STREAM_CREATE ||
                                  event->kind == VS_KIND_STREAM_DESTROY);
}

static uint64_t begin_of_call(const struct vs_event *event)
{
    return event->time_ns > event->duration_ns ? event->time_ns - event->duration_ns : 0;
}

/* Gives back what was concluded at moments at which a call of `thread` was under way. */
static void take_back(struct vs_device_state *device, uint64_t since_ns, uint32_t thread)
{
    unsigned first = 0;
    while (first < device->conclusion_count &&
           (device->conclusions[first].until_ns <= since_ns ||
            device->conclusions[first].thread == thread))
        first++;
    if (first == device->conclusion_count)
        return;
    const struct vs_conclusion *kept = &device->conclusions[first];
    memcpy(device->implicit_bytes, kept->implicit_bytes, sizeof(kept->implicit_bytes));
    device->implicit_uncertainty = kept->implicit_uncertainty;
    /* What is held is known otherwise now; what was measured is not. */
    device->base_own += kept->rounding - device->rounding;
    device->rounding = kept->rounding;
    device->settled_used = kept->settled_used;
    device->settled_own = kept->settled_own;
    device->settled_others = kept->settled_others;
    for (unsigned i = first; i < device->conclusion_count; i++) {
        device->implicit_pending |= device->conclusions[i].implicit_pending;
        device->direct_changes += device->conclusions[i].direct_changes;
    }
    device->conclusion_count = first;
}

static void keep_conclusion(struct vs_device_state *device, uint32_t thread)
{
    if (device->conclusion_count == VS_CONCLUSIONS_KEPT) {
        device->conclusion_count--;
        memmove(device->conclusions, device->conclusions + 1,
                device->conclusion_count * sizeof(device->conclusions[0]));
    }
    struct vs_conclusion *kept = &device->conclusions[device->conclusion_count++];
    *kept = (struct vs_conclusion){.until_ns = device->measured_until_ns,
                                   .thread = thread,
                                   .implicit_pending = device->implicit_pending,
                                   .direct_changes = device->direct_changes,
                                   .implicit_uncertainty = device->implicit_uncertainty,
                                   .rounding = device->rounding,
                                   .settled_used = device->settled_used,
                                   .settled_own = device->settled_own,
                                   .settled_others = device->settled_others};
    memcpy(kept->implicit_bytes, device->implicit_bytes, sizeof(kept->implicit_bytes));
}

/* What a thread announced is over with the next that is heard of it. */
static void close_call(struct vs_state *state, const struct vs_sequenced_event *sequenced)
{
    const struct vs_event *event = &sequenced->event;
    const struct vs_call_under_way *call =
        vs_calls_under_way_get(&state->under_way, sequenced->thread);
    if (call == NULL)
        return;
    struct vs_device_state *device = vs_state_device(state, event->device);
    if (event->kind == VS_KIND_SAMPLE && device != NULL)
        take_back(device, call->since_ns, sequenced->thread);
    vs_calls_under_way_remove(&state->under_way, sequenced->thread);
}

void measure_calls(struct vs_state *state, const struct vs_sequenced_event *sequenced)
{
    const struct vs_event *event = &sequenced->event;
    if (state->under_way.count != 0)
        close_call(state, sequenced);
    if (!moves_memory(event))
        return;
    struct vs_device_state *device = vs_state_device(state, event->device);
    if (event->flags & VS_EVENT_INTENT) {
        struct vs_call_under_way *call =
            vs_calls_under_way_put(&state->under_way, sequenced->thread);
        if (call == NULL)
            state_fail(state);
        else
            *call = (struct vs_call_under_way){event->time_ns, event->device};
    } else if (device != NULL) {
        take_back(device, begin_of_call(event), sequenced->thread);
    }
}

static bool is_quiet(const struct vs_state *state, int8_t device, uint64_t begin_ns)
{
    size_t index = 0;
    uint64_t thread;
    const struct vs_call_under_way *call;
    if (state->under_way.count == 0)
        return true;
    while ((call = vs_calls_under_way_next(&state->under_way, &index, &thread)) != NULL)
        if ((call->device == device || call->device < 0) &&
            begin_ns < call->since_ns + CALL_MOST_NS)
            return false;
    return true;
}

/* ---- what measurements explain ---------------------------------------------------------- */

static void add_implicit(struct vs_device_state *device, enum vs_implicit which, int64_t bytes)
{
    device->implicit_bytes[which] += bytes;
    if (device->implicit_bytes[which] < 0)
        device->implicit_bytes[which] = 0; /* the rest shows as unexplained */
}

static void add_uncertainty(struct vs_device_state *device, int64_t bytes)
{
    device->implicit_uncertainty += bytes < 0 ? -bytes : bytes;
}

/* Everything used at the first look that nobody is known to hold came with the context. */
static void first_measurement(struct vs_device_state *device, int64_t used)
{
    int64_t rest = used - device_own(device) - device->other_bytes;
    if (rest <= 0)
        return;
    add_implicit(device, VS_IMPLICIT_CONTEXT, rest);
    if (!device->others_known)
        add_uncertainty(device, rest);
}

/* `residual`: what was measured beyond what was known to move since the last one explained. */
static void explain(struct vs_state *state, struct vs_device_state *device, int64_t residual)
{
    unsigned pending = device->implicit_pending;
    int64_t others_moved = device->base_others - device->settled_others;
    if (residual == 0)
        return;
    if (pending != 0) {
        bool single = (pending & (pending - 1)) == 0;
        add_implicit(device, single ? (enum vs_implicit)__builtin_ctz(pending) : VS_IMPLICIT_OTHER,
                     residual);
        add_uncertainty(device, single ? others_moved : residual);
        return;
    }
    int64_t magnitude = residual < 0 ? -residual : residual;
    if (device->direct_changes > 0 && device->losses == 0 &&
        magnitude <= (int64_t)VS_GRANULARITY * (int64_t)device->direct_changes)
        device->rounding += residual;
    else if (residual < 0)
        pool_shrink(state, device->device, magnitude);
}

/* Explains the last measurement. */
static void settle(struct vs_state *state, struct vs_device_state *device, uint32_t thread)
{
    int64_t known = device->settled_used + device->base_own - device->settled_own +
                    device->base_others - device->settled_others;
    int64_t own = device_own(device);
    keep_conclusion(device, thread);
    explain(state, device, device->base_used - known);
    device->base_own += device_own(device) - own;
    device->settled_used = device->base_used;
    device->settled_own = device->base_own;
    device->settled_others = device->base_others;
    device->implicit_pending = 0;
    device->direct_changes = 0;
}

/* The shim stamps its measurements before it takes them, the program's own question after. */
static uint64_t begin_of_measurement(const struct vs_event *event)
{
    return event->kind == VS_KIND_MEM_INFO ? begin_of_call(event) : event->time_ns;
}

static uint64_t end_of_measurement(const struct vs_event *event)
{
    if (event->kind == VS_KIND_MEM_INFO)
        return event->time_ns;
    return event->time_ns +
           (event->kind == VS_KIND_SAMPLE ? event->duration_ns : VS_SAMPLED_WITHIN_NS);
}

static bool take_total(struct vs_device_state *device, const struct vs_event *event)
{
    bool says_total = event->kind == VS_KIND_SAMPLE || event->kind == VS_KIND_MEM_INFO;
    if (says_total && event->size != 0)
        device->total_bytes = event->size;
    return event->free_bytes <= device->total_bytes && device->total_bytes <= INT64_MAX;
}

static void set_base(struct vs_device_state *device, int64_t used, const struct vs_event *event)
{
    device->measured = true;
    device->measured_ns = begin_of_measurement(event);
    device->measured_until_ns = end_of_measurement(event);
    device->base_used = used;
    device->base_own = device_own(device);
    device->base_others = device->other_bytes;
}

void measure_event(struct vs_state *state, const struct vs_sequenced_event *sequenced)
{
    const struct vs_event *event = &sequenced->event;
    struct vs_device_state *device = state_device(state, event->device);
    uint64_t begin_ns = begin_of_measurement(event);
    if (device == NULL || (device->measured && begin_ns < device->measured_ns))
        return;
    device->last_free_bytes = event->free_bytes;
    if (!take_total(device, event))
        return;
    int64_t used = (int64_t)(device->total_bytes - event->free_bytes);
    if (!device->measured) {
        first_measurement(device, used);
        device->settled_used = used;
        device->settled_own = device_own(device);
        device->settled_others = device->other_bytes;
        device->implicit_pending = 0;
        device->direct_changes = 0;
    }
    set_base(device, used, event);
    if (is_quiet(state, event->device, begin_ns))
        settle(state, device, sequenced->thread);
}

bool measure_has_seen(const struct vs_device_state *device, const struct vs_event *event)
{
    return device->measured && moves_memory(event) && !(event->flags & VS_EVENT_INTENT) &&
           event->time_ns < device->measured_ns;
}

void measure_told_late(struct vs_state *state, struct vs_device_state *device, int64_t own,
                       uint32_t thread)
{
    device->base_own += device_own(device) - own;
    if (is_quiet(state, device->device, device->measured_ns))
        settle(state, device, thread);
}
