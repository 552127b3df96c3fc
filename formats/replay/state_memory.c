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
    device->direct_asked += sign * (int64_t)size;
    if (size < VS_SMALL_ALLOCATION)
        device->direct_small += sign * (int64_t)vs_round_up(size, VS_SMALL_ALIGNMENT);
    else
        device->direct_large += sign * (int64_t)vs_round_up(size, VS_GRANULARITY);
    device->direct_slack += (int64_t)VS_GRANULARITY;
}

int64_t vs_state_host_rounding(const struct vs_state *state, uint16_t owner, uint64_t bytes)
{
    bool rounds = owner < state->owner_count && state->owners[owner].host;
    bool power_of_two = (bytes & (bytes - 1)) == 0;
    bool rounded = power_of_two && bytes > 1 && bytes / 2 < state->host_round_limit;
    return rounds && rounded ? (int64_t)(bytes / 2 - 1) : 0;
}

static void count_host(struct vs_state *state, const struct vs_allocation *allocation, int sign)
{
    int64_t bytes = (int64_t)vs_round_up(allocation->size, VS_HOST_PAGE);
    state->host_pinned += sign * bytes;
    state->host_pinned_requested += sign * (int64_t)allocation->size;
    state->host_registered += allocation->type == VS_ALLOCATION_REGISTERED ? sign * bytes : 0;
    if (allocation->owner < state->owner_count && state->owners[allocation->owner].host) {
        state->host_framework += sign * (int64_t)allocation->size;
        state->host_rounding +=
            sign * vs_state_host_rounding(state, allocation->owner, allocation->size);
    }
}

void memory_count(struct vs_state *state, struct vs_allocation *allocation, int sign)
{
    struct vs_device_state *device = state_device(state, allocation->device);
    if (device == NULL)
        return;
    int64_t bytes = (int64_t)allocation->size;
    device->asked_count += allocation->type == VS_ALLOCATION_DIRECT ? sign : 0;
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
    communicator_add(state, allocation->communicator, bytes, sign);
    state_move_of(state, allocation->site, sign * bytes, sign, &allocation->note);
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

/* ---- losses --------------------------------------------------------------------------- */

static void count_lost(struct vs_state *state, struct vs_device_state *device, int64_t bytes,
                       int64_t count)
{
    device->lost_bytes += bytes;
    device->lost_count += count;
    state_move(state, state_special_site(state, device->device, VS_LAYER_DRIVER, VS_SITE_UNCERTAIN),
               bytes, 0);
}

static void count_lost_host(struct vs_state *state, struct vs_device_state *device, int64_t bytes)
{
    state->host_pinned += bytes;
    state->host_pinned_requested += bytes;
    state_move(state, state_special_site(state, device->device, VS_LAYER_HOST, VS_SITE_UNCERTAIN),
               bytes, 0);
}

/*
 * Something live was freed by an event that was lost, or came from one. The
 * LOSS record may come later than what shows it.
 */
static void note_lost(struct vs_state *state, int device_id, int64_t bytes, int64_t count)
{
    if (bytes == 0 && count == 0)
        return;
    struct vs_device_state *device = state_device(state, device_id);
    if (device == NULL)
        return;
    if (device->losses != 0) {
        count_lost(state, device, bytes, count);
    } else {
        device->held_bytes += bytes;
        device->held_count += count;
    }
}

/* The same of host memory. */
static void note_lost_host(struct vs_state *state, int device_id, int64_t bytes)
{
    struct vs_device_state *device = bytes == 0 ? NULL : state_device(state, device_id);
    if (device == NULL)
        return;
    if (vs_state_lossy(state))
        count_lost_host(state, device, bytes);
    else
        device->held_host_bytes += bytes;
}

static void count_loss(struct vs_state *state, struct vs_device_state *device, unsigned kind,
                       int64_t bytes, int64_t events)
{
    int64_t pages = events * (int64_t)VS_GRANULARITY;
    switch (kind) {
    case VS_KIND_ALLOC:
        count_lost(state, device, bytes, events);
        device->lost_pages += pages;
        break;
    case VS_KIND_FREE:
        count_lost(state, device, -bytes, -events);
        device->lost_pages += pages;
        break;
    case VS_KIND_PHYS_CREATE:
    case VS_KIND_ARRAY_CREATE:
    case VS_KIND_POOL_ALLOC:
        device->lost_room += bytes + pages;
        break;
    case VS_KIND_PHYS_RELEASE:
    case VS_KIND_UNMAP:
    case VS_KIND_ARRAY_DESTROY:
    case VS_KIND_POOL_DESTROY:
    case VS_KIND_POOL_TRIM:
        state->lost_gave_back = true;
        break;
    case VS_KIND_HOST_ALLOC:
    case VS_KIND_HOST_REGISTER:
        count_lost_host(state, device, bytes);
        break;
    case VS_KIND_HOST_FREE:
    case VS_KIND_HOST_UNREGISTER:
        count_lost_host(state, device, -bytes);
        break;
    default:
        break;
    }
}

void memory_loss(struct vs_state *state, struct vs_device_state *device,
                 const struct vs_event *event)
{
    if (device->held_count != 0 || device->held_bytes != 0) {
        count_lost(state, device, device->held_bytes, device->held_count);
        device->held_bytes = device->held_count = 0;
    }
    if (device->held_host_bytes != 0) {
        count_lost_host(state, device, device->held_host_bytes);
        device->held_host_bytes = 0;
    }
    if (event->size <= INT64_MAX / 2 && event->extra[0] <= INT32_MAX)
        count_loss(state, device, event->label, (int64_t)event->size, (int64_t)event->extra[0]);
}

static int64_t within(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

void memory_place_lost(struct vs_state *state, struct vs_device_state *device, int64_t bytes)
{
    int64_t pages = device_lost_pages(device);
    int64_t rounding = within(device->lost_rounding, -pages, pages);
    device->lost_rounding = within(rounding + bytes, -pages, pages);
    bytes -= device->lost_rounding - rounding;
    int64_t counted = device->physical_bytes + device->segment_backed + device->direct_large +
                      device->own_pool_reserved;
    int64_t wanted = within(device->lost_measured + bytes, state->lost_gave_back ? -counted : 0,
                            device->lost_room);
    int64_t change = wanted - device->lost_measured;
    if (change == 0)
        return;
    device->lost_measured = wanted;
    state_move(state, state_special_site(state, device->device, VS_LAYER_DRIVER, VS_SITE_UNCERTAIN),
               change, 0);
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
        if (slot->type == VS_ALLOCATION_DIRECT)
            note_lost(state, slot->device, (int64_t)slot->size, 1);
        else if (map == &state->hosts)
            note_lost_host(state, slot->device, (int64_t)slot->size);
        forget(state, map, key, slot);
    }
    slot = vs_allocations_put(map, key);
    if (slot == NULL) {
        state_fail(state);
        return;
    }
    *slot = *allocation;
    memory_count(state, slot, +1);
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
    return (struct vs_allocation){
        .size = event->size,
        .context = event->context,
        .site = vs_state_site_of(state, event, event->device, layer, segment),
        .communicator = layer == VS_LAYER_DRIVER ? communicator_of(state, event) : 0,
        .owner = state_owner(state, event),
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

static bool is_host_free(const struct vs_event *event)
{
    return event->kind == VS_KIND_HOST_FREE || event->kind == VS_KIND_HOST_UNREGISTER;
}

/*
 * After losses a free says how much it frees: what nobody knew, or not what was
 * known at the address, for its free and another allocation were lost.
 */
static void check_freed(struct vs_state *state, const struct vs_event *event, uint64_t known,
                        struct vs_undo *undo)
{
    bool host = is_host_free(event);
    uint64_t step = host ? VS_HOST_PAGE : VS_SMALL_ALIGNMENT;
    if ((event->kind != VS_KIND_FREE && !host) || event->size == 0 || event->size > INT64_MAX ||
        vs_round_up(event->size, step) == vs_round_up(known, step))
        return;
    int64_t bytes = (int64_t)known - (int64_t)event->size, count = known == 0 ? -1 : 0;
    if (host)
        note_lost_host(state, event->device, bytes);
    else
        note_lost(state, event->device, bytes, count);
    if (undo != NULL) {
        undo->lost_bytes = bytes;
        undo->lost_count = count;
    }
}

static void free_unknown(struct vs_state *state, const struct vs_event *event, struct vs_undo *undo)
{
    state->counts.frees_unknown++;
    check_freed(state, event, 0, undo);
    if (undo != NULL)
        undo->unknown = true;
}

static void free_in(struct vs_state *state, struct vs_allocations *map, uint64_t key,
                    const struct vs_event *event, struct vs_undo *undo)
{
    if (key == 0)
        return;
    state->counts.frees++;
    struct vs_allocation *known = vs_allocations_get(map, key);
    if (known == NULL) {
        if (map == &state->allocations && vs_sizes_get(&state->graph_addresses, key) != NULL)
            return;
        if (!undo_repeats(state, key))
            free_unknown(state, event, undo);
        return;
    }
    if (undo != NULL) {
        undo->what = VS_UNDO_ALLOCATION;
        undo->allocation = *known;
        cache_keep(state, key, undo);
    }
    if (known->type == VS_ALLOCATION_DIRECT || map == &state->hosts)
        check_freed(state, event, known->size, undo);
    if (known->type == VS_ALLOCATION_IPC && known->granted > 1)
        known->granted--;
    else
        forget(state, map, key, known);
}

void memory_free(struct vs_state *state, const struct vs_event *event, struct vs_undo *undo)
{
    if (event->flags & VS_EVENT_CAPTURING)
        return;
    free_in(state, &state->allocations, event->address, event, undo);
}

void memory_host_free(struct vs_state *state, const struct vs_event *event, struct vs_undo *undo)
{
    free_in(state, &state->hosts, event->address, event, undo);
}

void memory_array_free(struct vs_state *state, const struct vs_event *event, struct vs_undo *undo)
{
    free_in(state, &state->arrays, event->handle, event, undo);
}

void memory_restore(struct vs_state *state, const struct vs_undo *undo)
{
    const struct vs_event *event = &undo->event;
    struct vs_allocations *map = &state->allocations;
    uint64_t key = event->address;
    if (is_host_free(event))
        note_lost_host(state, event->device, -undo->lost_bytes);
    else
        note_lost(state, event->device, -undo->lost_bytes, -undo->lost_count);
    if (undo->unknown) {
        state->counts.frees_unknown--;
        return;
    }
    if (is_host_free(event))
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
    cache_restore(state, key, undo);
}

/* ---- the end of a context ------------------------------------------------------------ */

static bool goes_with(const struct vs_allocation *allocation, const struct vs_ending *ending)
{
    if (allocation->type == VS_ALLOCATION_POOL)
        return ending->pools && allocation->device == ending->device;
    return ending->context != 0 ? allocation->context == ending->context
                                : allocation->device == ending->device;
}

static void drop_in(struct vs_state *state, struct vs_allocations *map,
                    const struct vs_ending *ending, struct vs_undo *undo)
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
        if (goes_with(at, ending))
            keys[count++] = key;
    for (size_t i = 0; i < count; i++) {
        at = vs_allocations_get(map, keys[i]);
        if (undo != NULL && !undo_keep_dropped(undo, map, keys[i], at))
            state_fail(state);
        forget(state, map, keys[i], at);
    }
    free(keys);
}

void memory_drop(struct vs_state *state, const struct vs_ending *ending, struct vs_undo *undo)
{
    drop_in(state, &state->allocations, ending, undo);
    drop_in(state, &state->hosts, ending, undo);
    drop_in(state, &state->arrays, ending, undo);
}

void memory_restore_dropped(struct vs_state *state, const struct vs_undo *undo)
{
    for (size_t i = 0; i < undo->dropped_count; i++) {
        const struct vs_undo_dropped *dropped = &undo->dropped[i];
        if (dropped->map == NULL)
            pool_restore(state, dropped->key, (int64_t)dropped->allocation.size);
        else if (vs_allocations_get(dropped->map, dropped->key) == NULL)
            remember_in(state, dropped->map, dropped->key, &dropped->allocation);
    }
}
