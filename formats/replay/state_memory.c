/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that one call gives and one call takes: cuMemAlloc and its kin, managed,
 * pinned and registered host memory, arrays, memory of other processes and APIs.
 * A free is told before the real call and may be taken back.
 */
#include <stdlib.h>

#include "state_internal.h"

static void count_direct(struct vs_state *state, struct vs_device_state *device,
                         const struct vs_allocation *allocation, int sign)
{
    uint64_t size = allocation->size;
    state_owner_add(state, device, allocation->owner, sign * (int64_t)size);
    if (size < VS_SMALL_ALLOCATION)
        device->direct_small += sign * (int64_t)vs_round_up(size, VS_SMALL_ALIGNMENT);
    else
        device->direct_large += sign * (int64_t)vs_round_up(size, VS_GRANULARITY);
    device->direct_changes++;
}

static void count_host(struct vs_state *state, const struct vs_allocation *allocation, int sign)
{
    state->host_pinned += sign * (int64_t)vs_round_up(allocation->size, VS_HOST_PAGE);
    state->host_pinned_requested += sign * (int64_t)allocation->size;
}

void memory_count(struct vs_state *state, const struct vs_allocation *allocation, int sign)
{
    struct vs_device_state *device = state_device(state, allocation->device);
    if (device == NULL)
        return;
    int64_t bytes = (int64_t)allocation->size;
    switch (allocation->type) {
    case VS_ALLOCATION_DIRECT:
    case VS_ALLOCATION_ARRAY:
        if (allocation->segment)
            device->segment_backed += sign * bytes;
        else
            count_direct(state, device, allocation, sign);
        break;
    case VS_ALLOCATION_MANAGED:
        device->managed_bytes += sign * bytes;
        break;
    case VS_ALLOCATION_POOL:
        pool_count(state, allocation, sign);
        bytes = (int64_t)allocation->granted;
        break;
    case VS_ALLOCATION_HOST:
    case VS_ALLOCATION_REGISTERED:
        count_host(state, allocation, sign);
        break;
    default:
        return;
    }
    state_move(state, allocation->site, sign * bytes, sign);
}

static void add_segment(struct vs_state *state, struct vs_device_state *device, uint64_t address,
                        const struct vs_allocation *allocation, uint64_t counted)
{
    uint64_t size = allocation->size;
    if (vs_ranges_overlap(&state->segments, address, size) != NULL || address + size < address)
        return;
    struct vs_range *segment = vs_ranges_insert(&state->segments, address, size);
    if (segment == NULL) {
        state_fail(state);
        return;
    }
    segment->bytes = counted;
    segment->backed = size;
    segment->device = allocation->device;
    segment->owner = allocation->owner;
    segment->kind = VS_SEGMENT_DIRECT;
    device->segment_bytes += (int64_t)counted;
}

static void drop_segment(struct vs_state *state, uint64_t address)
{
    struct vs_range *segment = vs_ranges_find(&state->segments, address);
    if (segment != NULL && segment->start == address && segment->kind == VS_SEGMENT_DIRECT)
        vmm_drop_segment(state, segment);
}

void memory_promote(struct vs_state *state, uint64_t address, struct vs_allocation *allocation,
                    uint64_t counted)
{
    struct vs_device_state *device = state_device(state, allocation->device);
    if (device == NULL)
        return;
    count_direct(state, device, allocation, -1);
    allocation->segment = true;
    device->segment_backed += (int64_t)allocation->size;
    add_segment(state, device, address, allocation, counted);
}

/* Takes an allocation out of a map and of the totals. */
static void forget(struct vs_state *state, struct vs_allocations *map, uint64_t key,
                   const struct vs_allocation *known)
{
    struct vs_allocation gone = *known;
    vs_allocations_remove(map, key);
    memory_count(state, &gone, -1);
    if (gone.segment)
        drop_segment(state, key);
}

static void remember_in(struct vs_state *state, struct vs_allocations *map, uint64_t key,
                        const struct vs_allocation *allocation)
{
    struct vs_allocation *slot = vs_allocations_get(map, key);
    if (slot != NULL) {
        /* Its free was not seen, or was told later than this: the order is repaired. */
        state->counts.alloc_on_live++;
        forget(state, map, key, slot);
    }
    slot = vs_allocations_put(map, key);
    if (slot == NULL) {
        state_fail(state);
        return;
    }
    *slot = *allocation;
    memory_count(state, allocation, +1);
    struct vs_device_state *device = state_device(state, allocation->device);
    if (allocation->segment && device != NULL)
        add_segment(state, device, key, allocation, allocation->size);
}

void memory_remember(struct vs_state *state, uint64_t address,
                     const struct vs_allocation *allocation)
{
    remember_in(state, &state->allocations, address, allocation);
}

static struct vs_allocation from_event(struct vs_state *state, const struct vs_event *event,
                                       enum vs_allocation_type type, enum vs_layer layer)
{
    bool segment = type == VS_ALLOCATION_DIRECT && vs_state_by_framework(state, event);
    return (struct vs_allocation){.size = event->size,
                                  .context = event->context,
                                  .site =
                                      vs_state_site_of(state, event, event->device, layer, segment),
                                  .owner = state_owner(state, event->module),
                                  .device = event->device,
                                  .type = (uint8_t)type,
                                  .segment = segment};
}

void memory_alloc(struct vs_state *state, const struct vs_event *event)
{
    if (event->address == 0 || event->size == 0)
        return;
    enum vs_allocation_type type =
        event->flags & VS_EVENT_MANAGED ? VS_ALLOCATION_MANAGED : VS_ALLOCATION_DIRECT;
    struct vs_allocation allocation = from_event(state, event, type, VS_LAYER_DRIVER);
    struct vs_device_state *device = state_device(state, event->device);
    if (device != NULL && allocation.segment)
        device->framework_owner = allocation.owner;
    remember_in(state, &state->allocations, event->address, &allocation);
}

void memory_graph_node(struct vs_state *state, const struct vs_event *event)
{
    if (event->address != 0 && vs_sizes_put(&state->graph_addresses, event->address) == NULL)
        state_fail(state);
}

void memory_host(struct vs_state *state, const struct vs_event *event)
{
    if (event->address == 0 || event->size == 0)
        return;
    enum vs_allocation_type type =
        event->kind == VS_KIND_HOST_ALLOC ? VS_ALLOCATION_HOST : VS_ALLOCATION_REGISTERED;
    struct vs_allocation allocation = from_event(state, event, type, VS_LAYER_HOST);
    remember_in(state, &state->hosts, event->address, &allocation);
}

void memory_ipc_open(struct vs_state *state, const struct vs_event *event)
{
    struct vs_allocation *known = vs_allocations_get(&state->allocations, event->address);
    if (known != NULL && known->type == VS_ALLOCATION_IPC) {
        known->granted++;
        return;
    }
    struct vs_allocation allocation = from_event(state, event, VS_ALLOCATION_IPC, VS_LAYER_DRIVER);
    allocation.granted = 1;
    if (event->address != 0)
        remember_in(state, &state->allocations, event->address, &allocation);
}

void memory_external_map(struct vs_state *state, const struct vs_event *event)
{
    struct vs_allocation allocation =
        from_event(state, event, VS_ALLOCATION_EXTERNAL, VS_LAYER_DRIVER);
    if (event->address != 0)
        remember_in(state, &state->allocations, event->address, &allocation);
}

void memory_array(struct vs_state *state, const struct vs_event *event)
{
    struct vs_allocation allocation =
        from_event(state, event, VS_ALLOCATION_ARRAY, VS_LAYER_DRIVER);
    if (event->handle != 0)
        remember_in(state, &state->arrays, event->handle, &allocation);
}

/* ---- frees ------------------------------------------------------------------------ */

static void free_in(struct vs_state *state, struct vs_allocations *map, uint64_t key,
                    struct vs_undo *undo)
{
    if (key == 0)
        return;
    state->counts.frees++;
    struct vs_allocation *known = vs_allocations_get(map, key);
    if (known == NULL) {
        if (map == &state->allocations && vs_sizes_get(&state->graph_addresses, key) != NULL)
            return;
        if (undo_repeats(state, key))
            return;
        state->counts.frees_unknown++;
        if (undo != NULL)
            undo->unknown = true;
        return;
    }
    if (undo != NULL) {
        undo->what = VS_UNDO_ALLOCATION;
        undo->allocation = *known;
    }
    if (known->type == VS_ALLOCATION_IPC && known->granted > 1)
        known->granted--;
    else
        forget(state, map, key, known);
}

void memory_free(struct vs_state *state, const struct vs_event *event, struct vs_undo *undo)
{
    if (event->flags & VS_EVENT_CAPTURING)
        return;
    free_in(state, &state->allocations, event->address, undo);
}

void memory_host_free(struct vs_state *state, const struct vs_event *event, struct vs_undo *undo)
{
    free_in(state, &state->hosts, event->address, undo);
}

void memory_array_free(struct vs_state *state, const struct vs_event *event, struct vs_undo *undo)
{
    free_in(state, &state->arrays, event->handle, undo);
}

void memory_restore(struct vs_state *state, const struct vs_undo *undo)
{
    const struct vs_event *event = &undo->event;
    struct vs_allocations *map = &state->allocations;
    uint64_t key = event->address;
    if (event->kind == VS_KIND_HOST_FREE || event->kind == VS_KIND_HOST_UNREGISTER)
        map = &state->hosts;
    else if (event->kind == VS_KIND_ARRAY_DESTROY) {
        map = &state->arrays;
        key = event->handle;
    }
    struct vs_allocation *known = vs_allocations_get(map, key);
    if (known != NULL && known->type == VS_ALLOCATION_IPC)
        known->granted++;
    else if (known == NULL)
        remember_in(state, map, key, &undo->allocation);
}

/* ---- the end of a context ------------------------------------------------------------ */

static bool goes_with(const struct vs_allocation *allocation, uint64_t context, int device)
{
    if (allocation->type == VS_ALLOCATION_POOL)
        return false; /* pools belong to the device */
    return context != 0 ? allocation->context == context : allocation->device == device;
}

static void drop_in(struct vs_state *state, struct vs_allocations *map, uint64_t context,
                    int device)
{
    uint64_t *keys = malloc((map->count + 1) * sizeof(*keys));
    if (keys == NULL) {
        state_fail(state);
        return;
    }
    size_t count = 0, index = 0;
    uint64_t key;
    const struct vs_allocation *at;
    while ((at = vs_allocations_next(map, &index, &key)) != NULL)
        if (goes_with(at, context, device))
            keys[count++] = key;
    for (size_t i = 0; i < count; i++)
        forget(state, map, keys[i], vs_allocations_get(map, keys[i]));
    free(keys);
}

void memory_drop(struct vs_state *state, uint64_t context, int device)
{
    drop_in(state, &state->allocations, context, device);
    drop_in(state, &state->hosts, context, device);
    drop_in(state, &state->arrays, context, device);
}
