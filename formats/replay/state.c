/* SPDX-License-Identifier: Apache-2.0 */
/* The fold's frame: devices, moves, and which file takes which kind of event. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "state_internal.h"

void state_fail(struct vs_state *state)
{
    state->error = -ENOMEM;
}

/* ---- devices ------------------------------------------------------------------- */

struct vs_device_state *state_touch_device(struct vs_state *state, int device)
{
    int slot = device + VS_DEVICE_OFFSET;
    struct vs_device_state *found = state->devices[slot];
    if (found == NULL) {
        found = calloc(1, sizeof(*found));
        if (found == NULL) {
            state_fail(state);
            return NULL;
        }
        found->device = (int8_t)device;
        found->last_free_bytes = VS_FREE_UNKNOWN;
        state->devices[slot] = found;
    }
    if (!found->touched &&
        state->touched_count < sizeof(state->touched) / sizeof(state->touched[0])) {
        found->touched = true;
        state->touched[state->touched_count++] = found;
    }
    return found;
}

int vs_state_device_total(struct vs_state *state, int8_t device, uint64_t total_bytes)
{
    struct vs_device_state *known = state_device(state, device);
    if (known == NULL)
        return -ENOMEM;
    if (total_bytes != 0)
        known->total_bytes = total_bytes;
    return 0;
}

void state_owner_add(struct vs_state *state, struct vs_device_state *device, uint16_t owner,
                     int64_t bytes)
{
    if (owner >= device->owner_slots) {
        size_t slots = (size_t)owner + 8;
        int64_t *grown = realloc(device->owner_bytes, slots * sizeof(*grown));
        if (grown == NULL) {
            state_fail(state);
            return;
        }
        memset(grown + device->owner_slots, 0, (slots - device->owner_slots) * sizeof(*grown));
        device->owner_bytes = grown;
        device->owner_slots = slots;
    }
    device->owner_bytes[owner] += bytes;
}

/* ---- moves ---------------------------------------------------------------------- */

static void tell_move(const struct vs_state *state, const struct vs_move *move)
{
    for (size_t i = 0; i < state->movers.count; i++) {
        const struct vs_subscriber *subscriber = &state->subscribers[state->movers.members[i]];
        subscriber->move(subscriber->self, state, move);
    }
}

void state_move(struct vs_state *state, uint32_t site, int64_t bytes, int32_t count)
{
    state_move_of(state, site, bytes, count, NULL);
}

void state_move_of(struct vs_state *state, uint32_t site, int64_t bytes, int32_t count,
                   uint32_t *note)
{
    const struct vs_site *at = vs_state_site(state, site);
    if (at == NULL)
        return;
    struct vs_device_state *device = state_device(state, at->device);
    if (device == NULL)
        return;
    struct vs_move move = {.site = site, .bytes = bytes, .count = count, .note = note};
    tell_move(state, &move);
    device->layers[at->layer].live_bytes += bytes;
}

/* The layer a failed request belongs to; false for calls that ask for no memory. */
static bool request_layer(const struct vs_event *event, enum vs_layer *layer)
{
    switch (event->kind) {
    case VS_KIND_ALLOC:
    case VS_KIND_POOL_ALLOC:
    case VS_KIND_RESERVE:
    case VS_KIND_PHYS_CREATE:
    case VS_KIND_MAP:
    case VS_KIND_ARRAY_CREATE:
        *layer = VS_LAYER_DRIVER;
        return true;
    case VS_KIND_HOST_ALLOC:
    case VS_KIND_HOST_REGISTER:
        *layer = VS_LAYER_HOST;
        return true;
    case VS_KIND_FW_OOM:
        *layer = VS_LAYER_FRAMEWORK;
        return true;
    default:
        return false;
    }
}

static void note_failed_request(struct vs_state *state, const struct vs_event *event)
{
    enum vs_layer layer;
    if (!request_layer(event, &layer))
        return;
    bool segment = layer == VS_LAYER_DRIVER && vs_state_by_framework(state, event);
    uint32_t site = vs_state_site_of(state, event, event->device, layer, segment);
    struct vs_move move = {.site = site, .failed = true, .asked_bytes = event->size};
    if (site != 0)
        tell_move(state, &move);
}

/* ---- one event -------------------------------------------------------------------- */

static void count_event(struct vs_state *state, const struct vs_event *event)
{
    struct vs_counts *counts = &state->counts;
    char layer = vs_kind_layer(event->kind);
    counts->events++;
    if (event->kind == VS_KIND_FW_ALLOC || event->kind == VS_KIND_FW_FREE)
        counts->framework_events++;
    else if (communicator_kind(event->kind))
        return; /* of a library above CUDA */
    else if (layer == 'D' || layer == 'H' || layer == 'O')
        *(event->flags & VS_EVENT_RUNTIME ? &counts->runtime_events : &counts->driver_events) += 1;
}

static void note_loss(struct vs_state *state, const struct vs_event *event)
{
    state->counts.lost_events += event->extra[0];
    state->counts.lost_bytes += event->size;
    struct vs_device_state *device = state_device(state, event->device);
    if (device == NULL)
        return;
    device->losses += event->extra[0];
    memory_loss(state, device, event);
    for (size_t i = 0; i < VS_DEVICE_SLOTS; i++) /* some calls do not name theirs */
        if (state->devices[i] != NULL)
            measure_lost(state, state->devices[i]);
}

static void apply_memory(struct vs_state *state, const struct vs_event *event, struct vs_undo *undo)
{
    switch (event->kind) {
    case VS_KIND_ALLOC:
        memory_alloc(state, event);
        break;
    case VS_KIND_FREE:
    case VS_KIND_POOL_FREE:
    case VS_KIND_IPC_CLOSE:
        memory_free(state, event, undo);
        break;
    case VS_KIND_HOST_ALLOC:
    case VS_KIND_HOST_REGISTER:
        memory_host(state, event);
        break;
    case VS_KIND_HOST_FREE:
    case VS_KIND_HOST_UNREGISTER:
        memory_host_free(state, event, undo);
        break;
    case VS_KIND_IPC_OPEN:
        memory_ipc_open(state, event);
        break;
    case VS_KIND_EXTERNAL_MAP:
        memory_external_map(state, event);
        break;
    case VS_KIND_GRAPH_ALLOC_NODE:
        memory_graph_node(state, event);
        break;
    case VS_KIND_ARRAY_CREATE:
        memory_array(state, event);
        break;
    case VS_KIND_ARRAY_DESTROY:
        memory_array_free(state, event, undo);
        break;
    default:
        vmm_event(state, event, undo);
        break;
    }
}

static void apply_other(struct vs_state *state, const struct vs_sequenced_event *sequenced)
{
    const struct vs_event *event = &sequenced->event;
    struct vs_undo *undo = undo_begin(state, sequenced);
    switch (event->kind) {
    case VS_KIND_FW_ALLOC:
        framework_alloc(state, sequenced);
        break;
    case VS_KIND_FW_FREE:
        framework_free(state, sequenced);
        break;
    case VS_KIND_FW_OOM:
        note_failed_request(state, event);
        break;
    case VS_KIND_LOSS:
        note_loss(state, event);
        break;
    case VS_KIND_TORN:
        state->counts.torn++;
        break;
    case VS_KIND_CUT:
        framework_cut(state, event);
        break;
    case VS_KIND_CUT_END:
        framework_cut_end(state);
        break;
    case VS_KIND_POOL_ALLOC:
        pool_alloc(state, event);
        break;
    case VS_KIND_POOL_CREATE:
        pool_create(state, event);
        break;
    case VS_KIND_POOL_DESTROY:
        pool_destroy(state, event);
        break;
    case VS_KIND_POOL_TRIM:
        pool_report(state, event, event->pool);
        break;
    case VS_KIND_COMM_BEGIN:
    case VS_KIND_COMM_CREATE:
    case VS_KIND_COMM_DESTROY:
        communicator_event(state, sequenced);
        break;
    default:
        apply_memory(state, event, undo);
        device_note(state, event, undo);
        break;
    }
}

/* What has been carried out, and holds from its place in the order on. */
static void apply_done(struct vs_state *state, const struct vs_sequenced_event *event)
{
    struct vs_device_state *device = vs_state_device(state, event->event.device);
    if (device == NULL || !measure_has_seen(device, &event->event)) {
        apply_other(state, event);
        return;
    }
    int64_t own = device_own(device);
    apply_other(state, event);
    measure_told_late(state, device, own, event->thread);
}

static void apply(struct vs_state *state, const struct vs_sequenced_event *event)
{
    state->undone = NULL;
    state->communicator_now = 0;
    state->thread_now = event->thread;
    measure_calls(state, event);
    if (event->event.kind == VS_KIND_UNDO)
        undo_take(state, event);
    else if (event->event.result == 0)
        apply_done(state, event);
    else if (communicator_kind(event->event.kind))
        communicator_event(state, event);
    else
        note_failed_request(state, &event->event);
    if (event->event.free_bytes != VS_FREE_UNKNOWN && event->event.device >= 0 &&
        (event->event.flags & VS_EVENT_FREE_SAMPLED || event->event.kind == VS_KIND_SAMPLE ||
         event->event.kind == VS_KIND_MEM_INFO))
        measure_event(state, event);
}

/* Times are for display: they never go backwards here, whatever the clocks did. */
static void advance_time(struct vs_state *state, const struct vs_sequenced_event *event)
{
    uint64_t time = event->event.time_ns;
    if (state->counts.events == 1 && (state->start_ns == 0 || state->start_ns > time))
        state->start_ns = time;
    if (time > state->now_ns)
        state->now_ns = time;
    state->last_time_ns = state->now_ns;
    state->now_thread = event->thread;
    if (event->sequence < state->last_sequence)
        state->counts.sequence_backwards++;
    state->last_sequence = event->sequence;
}

static unsigned interest_in(const struct vs_event *event)
{
    if (event->result != 0 || event->kind == VS_KIND_FW_OOM)
        return VS_INTEREST_OUTCOME | VS_INTEREST_MEMORY;
    switch (vs_kind_layer(event->kind)) {
    case 'F':
        return VS_INTEREST_BLOCKS;
    case 'D':
    case 'H':
        return VS_INTEREST_MEMORY;
    default:
        return event->kind == VS_KIND_STREAM_CREATE || event->kind == VS_KIND_STREAM_DESTROY ||
                       event->kind == VS_KIND_UNDO || communicator_kind(event->kind)
                   ? VS_INTEREST_MEMORY
                   : VS_INTEREST_OTHER;
    }
}

static void tell_event(const struct vs_state *state, const struct vs_sequenced_event *event)
{
    const struct vs_audience *audience = &state->listeners[interest_in(&event->event)];
    for (size_t i = 0; i < audience->count; i++) {
        const struct vs_subscriber *subscriber = &state->subscribers[audience->members[i]];
        subscriber->event(subscriber->self, state, event);
    }
}

int vs_state_event(struct vs_state *state, const struct vs_sequenced_event *event)
{
    count_event(state, &event->event);
    advance_time(state, event);
    cache_order(state, event);
    apply(state, event);
    for (size_t i = 0; i < state->touched_count; i++) {
        device_settle(state, state->touched[i]);
        state->touched[i]->touched = false;
    }
    tell_event(state, event);
    state->touched_count = 0;
    return state->error;
}

/* ---- life --------------------------------------------------------------------------- */

int vs_state_create(const struct vs_names *names, struct vs_state **out)
{
    struct vs_state *state = calloc(1, sizeof(*state));
    if (state == NULL)
        return -ENOMEM;
    state->names = *names;
    state->host_rss = -1;
    state->host_round_limit = UINT64_MAX;
    state->cgroup_limit = -1;
    state->cgroup_used = -1;
    state->host_shared = -1;
    state->host_reclaimable = -1;
    state->undos = calloc(VS_UNDO_KEPT, sizeof(*state->undos));
    if (state->undos == NULL) {
        free(state);
        return -ENOMEM;
    }
    *out = state;
    return 0;
}

void vs_state_destroy(struct vs_state *state)
{
    if (state == NULL)
        return;
    for (size_t i = 0; i < VS_DEVICE_SLOTS; i++) {
        if (state->devices[i] == NULL)
            continue;
        free(state->devices[i]->owner_bytes);
        vs_sizes_release(&state->devices[i]->others);
        vs_sizes_release(&state->devices[i]->contexts);
        free(state->devices[i]);
    }
    undo_release(state);
    vs_calls_under_way_release(&state->under_way);
    vs_sizes_release(&state->site_index);
    vs_sizes_release(&state->owner_by_module);
    vs_sizes_release(&state->owner_by_stack);
    vs_blocks_release(&state->blocks);
    vs_waits_release(&state->waits);
    vs_wait_events_release(&state->wait_events);
    vs_sizes_release(&state->recorders);
    vs_sizes_release(&state->graph_pools);
    vs_sizes_release(&state->pool_graphs);
    vs_pool_uses_release(&state->pool_uses);
    vs_allocations_release(&state->allocations);
    vs_allocations_release(&state->hosts);
    vs_allocations_release(&state->arrays);
    vs_sizes_release(&state->graph_addresses);
    vs_handles_release(&state->handles);
    vs_pools_release(&state->pools);
    vs_ranges_release(&state->reservations);
    vs_ranges_release(&state->mappings);
    vs_ranges_release(&state->segments);
    free(state->physicals);
    free(state->communicators);
    free(state->sites);
    free(state->owners);
    free(state);
}

static void join(struct vs_audience *audience, size_t index)
{
    audience->members[audience->count++] = (uint8_t)index;
}

int vs_state_subscribe(struct vs_state *state, const struct vs_subscriber *subscriber)
{
    if (state->subscriber_count == VS_SUBSCRIBERS)
        return -ENOSPC;
    size_t index = state->subscriber_count++;
    state->subscribers[index] = *subscriber;
    if (subscriber->move != NULL)
        join(&state->movers, index);
    if (subscriber->peak != NULL)
        join(&state->peakers, index);
    for (unsigned about = 0; subscriber->event != NULL && about < VS_INTERESTS; about++)
        if (subscriber->interest == VS_INTEREST_ALL || subscriber->interest & about)
            join(&state->listeners[about], index);
    return 0;
}

bool vs_state_lossy(const struct vs_state *state)
{
    return state->counts.lost_events != 0 || state->counts.torn != 0;
}
