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

/* Whether the device has more or less free when the call returns. */
static bool moves_memory(const struct vs_event *event)
{
    if (event->result != 0)
        return false;
    switch (event->kind) {
    case VS_KIND_ALLOC:
    case VS_KIND_FREE:
    case VS_KIND_POOL_ALLOC: /* not POOL_FREE: its stream decides when */
    case VS_KIND_POOL_DESTROY:
    case VS_KIND_POOL_TRIM:
    case VS_KIND_PHYS_CREATE:
    case VS_KIND_PHYS_RELEASE:
    case VS_KIND_UNMAP:
    case VS_KIND_ARRAY_CREATE:
    case VS_KIND_ARRAY_DESTROY:
        return true;
    default:
        return device_implicit_of(event) >= 0;
    }
}

static uint64_t begin_of_call(const struct vs_event *event)
{
    return event->time_ns > event->duration_ns ? event->time_ns - event->duration_ns : 0;
}

static struct vs_conclusion *conclusion_at(struct vs_device_state *device, unsigned place)
{
    return &device->conclusions[(device->oldest_conclusion + place) % VS_CONCLUSIONS_KEPT];
}

/* Everything as it was before the conclusion; what happened since is still to be explained. */
static void restore(struct vs_device_state *device, const struct vs_conclusion *kept)
{
    memcpy(device->implicit_bytes, kept->implicit_bytes, sizeof(kept->implicit_bytes));
    device->implicit_uncertainty = kept->implicit_uncertainty;
    /* What is held is known otherwise now; what was measured is not. */
    device->base_own += kept->rounding - device->rounding;
    device->rounding = kept->rounding;
    device->settled_used = kept->settled_used;
    device->settled_own = kept->settled_own;
    device->settled_others = kept->settled_others;
}

/* Gives back what was concluded at moments at which a call of `thread` was under way. */
static void take_back(struct vs_device_state *device, uint64_t since_ns, uint32_t thread)
{
    unsigned first = device->conclusion_count;
    for (unsigned i = device->conclusion_count; i-- > 0;) {
        const struct vs_conclusion *kept = conclusion_at(device, i);
        if (kept->until_ns <= since_ns)
            break;
        if (kept->thread != thread)
            first = i;
    }
    if (first == device->conclusion_count)
        return;
    restore(device, conclusion_at(device, first));
    for (unsigned i = first; i < device->conclusion_count; i++) {
        device->implicit_pending |= conclusion_at(device, i)->implicit_pending;
        device->direct_slack += conclusion_at(device, i)->direct_slack;
    }
    device->conclusion_count = first;
}

static void keep_conclusion(struct vs_device_state *device, uint32_t thread)
{
    if (device->conclusion_count == VS_CONCLUSIONS_KEPT) {
        device->conclusion_count--;
        device->oldest_conclusion = (device->oldest_conclusion + 1) % VS_CONCLUSIONS_KEPT;
    }
    struct vs_conclusion *kept = conclusion_at(device, device->conclusion_count++);
    *kept = (struct vs_conclusion){.until_ns = device->measured_until_ns,
                                   .thread = thread,
                                   .implicit_pending = device->implicit_pending,
                                   .direct_slack = device->direct_slack,
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
        if (event->time_ns > device->returned_ns)
            device->returned_ns = event->time_ns;
    }
}

/* Whether the last measurement has seen just what has been told. */
static bool is_quiet(const struct vs_state *state, const struct vs_device_state *device)
{
    size_t index = 0;
    uint64_t thread, begin_ns = device->measured_ns;
    const struct vs_call_under_way *call;
    if (begin_ns < device->returned_ns)
        return false; /* a call that is told already may have returned after it */
    if (state->under_way.count == 0)
        return true;
    while ((call = vs_calls_under_way_next(&state->under_way, &index, &thread)) != NULL)
        if ((call->device == device->device || call->device < 0) &&
            begin_ns < call->since_ns + CALL_MOST_NS)
            return false;
    return true;
}

/* ---- what measurements explain ---------------------------------------------------------- */

/* Returns what it cannot be: no kind is below zero. */
static int64_t add_implicit(struct vs_device_state *device, enum vs_implicit which, int64_t bytes)
{
    int64_t before = device->implicit_bytes[which];
    int64_t after = before + bytes > 0 ? before + bytes : 0;
    device->implicit_bytes[which] = after;
    return bytes - (after - before);
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
    if (!device->others_known) {
        add_uncertainty(device, rest);
        device->others_uncertainty = rest;
    }
}

/* Whether a difference may be one of the model of direct memory. */
static bool is_within(const struct vs_device_state *device, int64_t bytes)
{
    return device->losses == 0 && (bytes < 0 ? -bytes : bytes) <= device->direct_slack;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* A difference that calls which cost memory were in between of. Returns what is left of it. */
static int64_t explain_implicit(struct vs_device_state *device, int64_t residual)
{
    unsigned pending = device->implicit_pending;
    bool single = (pending & (pending - 1)) == 0;
    enum vs_implicit which = single ? (enum vs_implicit)__builtin_ctz(pending) : VS_IMPLICIT_OTHER;
    int64_t left = add_implicit(device, which, residual);
    int64_t taken = residual - left < 0 ? left - residual : residual - left;
    add_uncertainty(device, single ? device->base_others - device->settled_others : taken);
    if (single)
        add_uncertainty(device, least(taken, device->direct_slack));
    return left;
}

/* `residual`: what was measured beyond what was known to move since the last one explained. */
static void explain(struct vs_state *state, struct vs_device_state *device, int64_t residual)
{
    if (residual != 0 && device->implicit_pending != 0)
        residual = explain_implicit(device, residual);
    if (residual != 0 && !is_within(device, residual))
        residual -= pool_adjust(state, device, residual);
    if (is_within(device, residual))
        device->rounding += residual;
}

/* A correction that does no more than balance what is unexplained is none. */
static void cancel_rounding(struct vs_device_state *device)
{
    int64_t unexplained = device->base_used - device_own(device) - device->base_others;
    for (int i = 0; i < VS_IMPLICITS; i++)
        unexplained -= device->implicit_bytes[i];
    if (unexplained > 0 && device->rounding < 0)
        device->rounding += least(unexplained, -device->rounding);
    else if (unexplained < 0 && device->rounding > 0)
        device->rounding -= least(-unexplained, device->rounding);
}

void measure_lost(struct vs_state *state, struct vs_device_state *device)
{
    if (!device->measured || !vs_state_lossy(state) || !is_quiet(state, device))
        return;
    int64_t own = device_own(device);
    memory_place_lost(state, device, device_unexplained(device));
    int64_t placed = device_own(device) - own;
    device->base_own += placed;
    device->settled_own += placed;
}

/* What a limit costs may come with a later launch, which no event tells of. */
static void expect_limit(struct vs_device_state *device, int64_t residual)
{
    if (!device->limit_waits || residual <= device->direct_slack)
        return;
    device->implicit_pending |= 1U << VS_IMPLICIT_LOCAL_MEMORY;
    device->limit_waits = false;
}

/* Explains the last measurement. */
static void settle(struct vs_state *state, struct vs_device_state *device, uint32_t thread)
{
    int64_t known = device->settled_used + device->base_own - device->settled_own +
                    device->base_others - device->settled_others;
    int64_t own = device_own(device);
    expect_limit(device, device->base_used - known);
    if (device->base_used != known || device->implicit_pending != 0 || device->direct_slack != 0)
        keep_conclusion(device, thread);
    explain(state, device, device->base_used - known);
    cancel_rounding(device);
    device->base_own += device_own(device) - own;
    device->settled_used = device->base_used;
    device->settled_own = device->base_own;
    device->settled_others = device->base_others;
    device->implicit_pending = 0;
    device->slack_settled += device->direct_slack;
    device->direct_slack = 0;
    pool_settled(state, device);
    measure_lost(state, device);
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
        device->direct_slack = 0;
    }
    set_base(device, used, event);
    if (is_quiet(state, device))
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
    if (is_quiet(state, device))
        settle(state, device, thread);
}
