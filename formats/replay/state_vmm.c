/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory management: ranges of addresses, physical memory, and what is
 * mapped where. Physical memory lives while a handle or a mapping refers to it.
 * What the framework counts (segments) is kept apart from what backs it.
 */
#include <stdlib.h>

#include "state_internal.h"

/* ---- physical memory --------------------------------------------------------------- */

/* Takes `bytes` of physical memory out of the direct ones (sign -1) or puts them back. */
static void count_direct(struct vs_state *state, const struct vs_physical *physical, uint64_t bytes,
                         int sign)
{
    struct vs_device_state *device = state_device(state, physical->device);
    if (device == NULL || physical->host)
        return;
    device->physical_bytes += sign * (int64_t)bytes;
    state_owner_add(state, device, physical->owner, sign * (int64_t)bytes);
}

static void count_physical(struct vs_state *state, struct vs_physical *physical, int sign)
{
    if (!physical->ours)
        return;
    if (physical->host) {
        state->host_pinned += sign * (int64_t)physical->size;
        state->host_pinned_requested += sign * (int64_t)physical->size;
    }
    count_direct(state, physical, physical->size - physical->mapped_in_segments, sign);
    communicator_add(state, physical->communicator, (int64_t)physical->size, sign);
    state_move_of(state, physical->site, sign * (int64_t)physical->size, sign, &physical->note);
}

/* Index + 1 of a free slot; 0 without memory. */
static uint32_t take_slot(struct vs_state *state)
{
    if (state->spare_physical != 0) {
        uint32_t object = state->spare_physical;
        state->spare_physical = state->physicals[object - 1].handles;
        return object;
    }
    if (state->physical_count == state->physical_room) {
        size_t room = state->physical_room == 0 ? 64 : state->physical_room * 2;
        struct vs_physical *grown =
            room > UINT32_MAX ? NULL : realloc(state->physicals, room * sizeof(*grown));
        if (grown == NULL) {
            state_fail(state);
            return 0;
        }
        state->physicals = grown;
        state->physical_room = room;
    }
    return (uint32_t)++state->physical_count;
}

static uint32_t add_physical(struct vs_state *state, const struct vs_physical *wanted)
{
    uint32_t object = take_slot(state);
    if (object == 0)
        return 0;
    state->physicals[object - 1] = *wanted;
    state->physicals[object - 1].live = true;
    count_physical(state, &state->physicals[object - 1], +1);
    return object;
}

static void drop_if_unused(struct vs_state *state, uint32_t object)
{
    struct vs_physical *physical = &state->physicals[object - 1];
    if (!physical->live || physical->handles != 0 || physical->mappings != 0)
        return;
    count_physical(state, physical, -1);
    *physical = (struct vs_physical){.handles = state->spare_physical};
    state->spare_physical = object;
}

/* The memory a copy stands for: itself if it still lives, else made again. */
static uint32_t revive(struct vs_state *state, uint32_t object, const struct vs_physical *copy)
{
    if (object == 0)
        return 0;
    if (state->physicals[object - 1].live && state->physicals[object - 1].serial == copy->serial)
        return object;
    struct vs_physical again = *copy;
    again.handles = 0;
    again.mappings = 0;
    again.mapped_in_segments = 0;
    return add_physical(state, &again);
}

static void refer(struct vs_state *state, uint64_t key, uint32_t object)
{
    struct vs_handle *handle = vs_handles_put(&state->handles, key);
    if (handle == NULL) {
        state_fail(state);
        return;
    }
    if (handle->references != 0 && handle->physical != object) {
        /* It stood for something else, whose release was not seen. */
        uint32_t before = handle->physical;
        state->physicals[before - 1].handles -= handle->references;
        handle->references = 0;
        drop_if_unused(state, before);
    }
    handle->physical = object;
    handle->references++;
    state->physicals[object - 1].handles++;
}

/* Exported or imported: the call of the first time is kept. */
static void note_shared(struct vs_state *state, const struct vs_event *event,
                        struct vs_physical *physical)
{
    if (physical->shared_site != 0)
        return;
    int8_t device = physical->device >= 0 ? physical->device : event->device;
    physical->shared_site = vs_state_site_of(state, event, device, VS_LAYER_DRIVER, false);
    physical->shared_ns = state->now_ns;
    state->shared_physicals = true;
}

static void export_handle(struct vs_state *state, const struct vs_event *event)
{
    const struct vs_handle *handle =
        event->pool == 0 ? vs_handles_get(&state->handles, event->handle) : NULL;
    if (handle != NULL)
        note_shared(state, event, &state->physicals[handle->physical - 1]);
}

static void create(struct vs_state *state, const struct vs_event *event, bool ours)
{
    struct vs_handle *known = vs_handles_get(&state->handles, event->handle);
    if (known != NULL && event->kind == VS_KIND_PHYS_IMPORT) {
        refer(state, event->handle, known->physical);
        return;
    }
    if (known != NULL) {
        /* Its release was not seen. */
        uint32_t object = known->physical;
        state->counts.alloc_on_live++;
        state->physicals[object - 1].handles -= known->references;
        vs_handles_remove(&state->handles, event->handle);
        drop_if_unused(state, object);
    }
    bool host = event->kind == VS_KIND_PHYS_CREATE && event->extra[0] != 1;
    enum vs_layer layer = host ? VS_LAYER_HOST : VS_LAYER_DRIVER;
    bool segment = !host && vs_state_by_framework(state, event);
    struct vs_physical physical = {.size = event->size,
                                   .serial = ++state->physical_serial,
                                   .handles = 1,
                                   .owner = state_owner(state, event),
                                   .device = event->device,
                                   .ours = ours && event->size <= INT64_MAX,
                                   .host = host};
    if (physical.ours && !host)
        physical.communicator = communicator_of(state, event);
    if (physical.ours)
        physical.site = vs_state_site_of(state, event, event->device, layer, segment);
    if (event->kind == VS_KIND_PHYS_IMPORT && event->pool == 0)
        note_shared(state, event, &physical);
    uint32_t object = add_physical(state, &physical);
    struct vs_handle *handle = object == 0 ? NULL : vs_handles_put(&state->handles, event->handle);
    if (handle == NULL) {
        state_fail(state);
        return;
    }
    *handle = (struct vs_handle){.physical = object, .references = 1};
}

static void retain(struct vs_state *state, const struct vs_event *event)
{
    const struct vs_handle *handle = vs_handles_get(&state->handles, event->handle);
    const struct vs_range *mapping = vs_ranges_find(&state->mappings, event->address);
    uint32_t object = handle != NULL ? handle->physical : mapping != NULL ? mapping->object : 0;
    if (object == 0)
        state->counts.handles_unknown++;
    else
        refer(state, event->handle, object);
}

static void release(struct vs_state *state, const struct vs_event *event, struct vs_undo *undo)
{
    struct vs_handle *handle = vs_handles_get(&state->handles, event->handle);
    if (handle == NULL) {
        state->counts.handles_unknown++;
        if (undo != NULL)
            undo->unknown = true;
        return;
    }
    uint32_t object = handle->physical;
    if (undo != NULL) {
        undo->what = VS_UNDO_HANDLE;
        undo->handle_object = object;
        undo->physical = state->physicals[object - 1];
    }
    state->physicals[object - 1].handles--;
    if (--handle->references == 0)
        vs_handles_remove(&state->handles, event->handle);
    drop_if_unused(state, object);
}

/* ---- backing of segments --------------------------------------------------------------- */

static uint64_t common_bytes(const struct vs_range *a, const struct vs_range *b)
{
    uint64_t from = a->start > b->start ? a->start : b->start;
    uint64_t a_end = a->start + a->size, b_end = b->start + b->size;
    uint64_t to = a_end < b_end ? a_end : b_end;
    return to > from ? to - from : 0;
}

/* A mapping becomes backing of a segment. Memory mapped twice is counted once. */
static void attach(struct vs_state *state, struct vs_range *mapping, struct vs_range *segment)
{
    if (mapping->object == 0 || mapping->backed != 0)
        return;
    struct vs_physical *physical = &state->physicals[mapping->object - 1];
    struct vs_device_state *device = state_device(state, segment->device);
    if (!physical->ours || physical->host || device == NULL)
        return;
    uint64_t bytes = common_bytes(mapping, segment);
    uint64_t left = physical->size - physical->mapped_in_segments;
    mapping->backed = bytes < left ? bytes : left;
    count_direct(state, physical, mapping->backed, -1);
    physical->mapped_in_segments += mapping->backed;
    segment->backed += mapping->backed;
    device->segment_backed += (int64_t)mapping->backed;
}

static void detach(struct vs_state *state, struct vs_range *mapping)
{
    struct vs_range *segment = vs_ranges_overlap(&state->segments, mapping->start, mapping->size);
    if (mapping->object == 0 || mapping->backed == 0 || segment == NULL)
        return;
    struct vs_physical *physical = &state->physicals[mapping->object - 1];
    struct vs_device_state *device = state_device(state, segment->device);
    if (device == NULL)
        return;
    physical->mapped_in_segments -= mapping->backed;
    count_direct(state, physical, mapping->backed, +1);
    segment->backed -= mapping->backed;
    device->segment_backed -= (int64_t)mapping->backed;
    mapping->backed = 0;
}

static struct vs_range *add_segment(struct vs_state *state, uint64_t start, uint64_t size,
                                    enum vs_segment_kind kind, uint64_t counted, int8_t of_device)
{
    struct vs_device_state *device = state_device(state, of_device);
    struct vs_range *segment = vs_ranges_insert(&state->segments, start, size);
    if (segment == NULL || device == NULL) {
        state_fail(state);
        return NULL;
    }
    segment->kind = (uint8_t)kind;
    segment->bytes = counted;
    segment->device = of_device;
    device->segment_bytes += (int64_t)counted;
    return segment;
}

void vmm_drop_segment(struct vs_state *state, struct vs_range *segment)
{
    struct vs_device_state *device = state_device(state, segment->device);
    uint64_t end = segment->start + segment->size, at = segment->start;
    while (at < end) {
        struct vs_range *mapping = vs_ranges_overlap(&state->mappings, at, end - at);
        if (mapping == NULL)
            break;
        detach(state, mapping);
        at = mapping->start + mapping->size;
    }
    if (device != NULL) {
        device->segment_bytes -= (int64_t)segment->bytes;
        cache_count(device, segment, -1);
    }
    vs_ranges_remove(&state->segments, segment);
}

/* ---- undo -------------------------------------------------------------------------------- */

static void keep_range(struct vs_state *state, struct vs_undo *undo, int set,
                       const struct vs_range *range)
{
    if (undo == NULL)
        return;
    struct vs_undo_range *grown =
        realloc(undo->ranges, (undo->range_count + 1) * sizeof(*undo->ranges));
    if (grown == NULL) {
        state_fail(state);
        return;
    }
    undo->ranges = grown;
    undo->what = VS_UNDO_RANGES;
    struct vs_undo_range *kept = &grown[undo->range_count++];
    *kept = (struct vs_undo_range){.range = *range};
    kept->set = set == VS_UNDO_MAPPING   ? VS_UNDO_MAPPING
                : set == VS_UNDO_SEGMENT ? VS_UNDO_SEGMENT
                                         : VS_UNDO_RESERVATION;
    if (set == VS_UNDO_MAPPING && range->object != 0)
        kept->physical = state->physicals[range->object - 1];
}

/* ---- mappings ----------------------------------------------------------------------------- */

static struct vs_range *add_mapping(struct vs_state *state, uint64_t start, uint64_t size,
                                    uint32_t object, int8_t device)
{
    struct vs_range *mapping = vs_ranges_insert(&state->mappings, start, size);
    if (mapping == NULL) {
        state_fail(state);
        return NULL;
    }
    mapping->object = object;
    mapping->device = device;
    if (object != 0)
        state->physicals[object - 1].mappings++;
    struct vs_range *segment = vs_ranges_overlap(&state->segments, start, size);
    if (segment != NULL)
        attach(state, mapping, segment);
    return mapping;
}

static void remove_mapping(struct vs_state *state, struct vs_range *mapping)
{
    uint32_t object = mapping->object;
    detach(state, mapping);
    vs_ranges_remove(&state->mappings, mapping);
    if (object == 0)
        return;
    state->physicals[object - 1].mappings--;
    drop_if_unused(state, object);
}

/* Makes a mapping that goes over `address` two. The driver unmaps whole ones; files may not. */
static void cut_mapping(struct vs_state *state, uint64_t address)
{
    struct vs_range *mapping = vs_ranges_find(&state->mappings, address);
    if (mapping == NULL || mapping->start == address)
        return;
    uint64_t end = mapping->start + mapping->size;
    uint32_t object = mapping->object;
    int8_t device = mapping->device;
    detach(state, mapping);
    mapping->size = address - mapping->start;
    struct vs_range *segment = vs_ranges_overlap(&state->segments, mapping->start, mapping->size);
    if (segment != NULL)
        attach(state, mapping, segment);
    add_mapping(state, address, end - address, object, device);
}

static bool unmap(struct vs_state *state, uint64_t start, uint64_t size, struct vs_undo *undo)
{
    bool any = false;
    struct vs_range *mapping;
    cut_mapping(state, start);
    cut_mapping(state, start + size);
    while ((mapping = vs_ranges_overlap(&state->mappings, start, size)) != NULL && !state->error) {
        keep_range(state, undo, VS_UNDO_MAPPING, mapping);
        remove_mapping(state, mapping);
        any = true;
    }
    return any;
}

static void drop_segments(struct vs_state *state, uint64_t start, uint64_t size, bool pieces_only,
                          struct vs_undo *undo)
{
    uint64_t end = start + size;
    struct vs_range *segment = vs_ranges_overlap(&state->segments, start, size);
    while (segment != NULL && segment->start < end) {
        uint64_t next = segment->start + segment->size;
        if (segment->kind == VS_SEGMENT_PIECE ||
            (!pieces_only && segment->kind == VS_SEGMENT_RESERVED)) {
            keep_range(state, undo, VS_UNDO_SEGMENT, segment);
            vmm_drop_segment(state, segment);
        }
        segment = vs_ranges_from(&state->segments, next);
    }
}

static bool is_sane(uint64_t start, uint64_t size)
{
    return size != 0 && start + size > start;
}

static void map(struct vs_state *state, const struct vs_event *event)
{
    if (!is_sane(event->address, event->size))
        return;
    const struct vs_handle *handle = vs_handles_get(&state->handles, event->handle);
    uint32_t object = handle == NULL ? 0 : handle->physical;
    if (handle == NULL)
        state->counts.handles_unknown++;
    if (unmap(state, event->address, event->size, NULL))
        state->counts.alloc_on_live++;
    struct vs_physical *physical = object == 0 ? NULL : &state->physicals[object - 1];
    /* An import tells no size: its largest mapping does. */
    if (physical != NULL && !physical->ours && physical->shared_site != 0)
        physical->size = physical->size < event->size ? event->size : physical->size;
    int8_t device = physical != NULL ? physical->device : event->device;
    if (physical != NULL && physical->ours && !physical->host &&
        vs_state_by_framework(state, event) &&
        vs_ranges_overlap(&state->segments, event->address, event->size) == NULL) {
        struct vs_device_state *known = state_device(state, device);
        if (known != NULL)
            known->framework_owner = state_owner(state, event);
        add_segment(state, event->address, event->size, VS_SEGMENT_PIECE, event->size, device);
    }
    add_mapping(state, event->address, event->size, object, device);
}

static void unmap_event(struct vs_state *state, const struct vs_event *event, struct vs_undo *undo)
{
    if (!is_sane(event->address, event->size))
        return;
    if (!unmap(state, event->address, event->size, undo)) {
        state->counts.ranges_unknown++;
        if (undo != NULL)
            undo->unknown = true;
    }
    /* The framework gives a piece back. Anybody else only takes the memory from behind it. */
    if (vs_state_by_framework(state, event))
        drop_segments(state, event->address, event->size, true, undo);
}

/* ---- reservations ---------------------------------------------------------------------------- */

static void reserve(struct vs_state *state, const struct vs_event *event)
{
    if (!is_sane(event->address, event->size))
        return;
    struct vs_range *old;
    while ((old = vs_ranges_overlap(&state->reservations, event->address, event->size)) != NULL) {
        state->counts.alloc_on_live++;
        vs_ranges_remove(&state->reservations, old);
    }
    struct vs_range *range = vs_ranges_insert(&state->reservations, event->address, event->size);
    if (range == NULL)
        state_fail(state);
    else
        range->device = event->device;
}

static void unreserve(struct vs_state *state, const struct vs_event *event, struct vs_undo *undo)
{
    if (!is_sane(event->address, event->size))
        return;
    struct vs_range *range = vs_ranges_find(&state->reservations, event->address);
    if (range == NULL) {
        state->counts.ranges_unknown++;
        if (undo != NULL)
            undo->unknown = true;
        return;
    }
    keep_range(state, undo, VS_UNDO_RESERVATION, range);
    drop_segments(state, range->start, range->size, false, undo);
    vs_ranges_remove(&state->reservations, range);
}

static bool has_blocks(const struct vs_state *state, const struct vs_range *segment)
{
    size_t index = 0;
    uint64_t address;
    while (vs_blocks_next(&state->blocks, &index, &address) != NULL)
        if (address - segment->start < segment->size)
            return true;
    return false;
}

int64_t vmm_drop_unmapped(struct vs_state *state, const struct vs_device_state *device,
                          int64_t bytes)
{
    int64_t dropped = 0;
    struct vs_range *segment = vs_ranges_from(&state->segments, 0);
    while (segment != NULL && dropped < bytes) {
        uint64_t next = segment->start + segment->size;
        if (segment->kind == VS_SEGMENT_RESERVED && segment->device == device->device &&
            segment->backed == 0 && (int64_t)segment->bytes <= bytes - dropped &&
            !has_blocks(state, segment)) {
            dropped += (int64_t)segment->bytes;
            vmm_drop_segment(state, segment);
        }
        segment = vs_ranges_from(&state->segments, next);
    }
    return dropped;
}

/* ---- promotion ---------------------------------------------------------------------------- */

bool vmm_promote(struct vs_state *state, struct vs_device_state *device, uint64_t address,
                 int64_t missing)
{
    const struct vs_range *mapping = vs_ranges_find(&state->mappings, address);
    if (mapping == NULL || mapping->object == 0)
        return false;
    const struct vs_range *around = vs_ranges_find(&state->reservations, address);
    if (around == NULL)
        around = mapping;
    /* A segment begins with its first block and is as long as the framework's total grew. */
    uint64_t start = address, size = (uint64_t)(missing > 0 ? missing : 0);
    uint64_t counted = size;
    if (size == 0 || around->start + around->size - start < size) {
        start = mapping->start;
        size = mapping->size;
        counted = size;
    }
    if (vs_ranges_overlap(&state->segments, start, size) != NULL)
        return false;
    struct vs_range *segment =
        add_segment(state, start, size, VS_SEGMENT_RESERVED, counted, device->device);
    uint64_t end = start + size;
    while (segment != NULL && start < end) {
        struct vs_range *inside = vs_ranges_overlap(&state->mappings, start, end - start);
        if (inside == NULL)
            break;
        attach(state, inside, segment);
        start = inside->start + inside->size;
    }
    return segment != NULL;
}

/* ---- entry points ------------------------------------------------------------------------- */

void vmm_event(struct vs_state *state, const struct vs_event *event, struct vs_undo *undo)
{
    switch (event->kind) {
    case VS_KIND_RESERVE:
        reserve(state, event);
        break;
    case VS_KIND_UNRESERVE:
        unreserve(state, event, undo);
        break;
    case VS_KIND_PHYS_CREATE:
        create(state, event, true);
        break;
    case VS_KIND_PHYS_IMPORT:
    case VS_KIND_MULTICAST_CREATE:
        create(state, event, false);
        break;
    case VS_KIND_PHYS_EXPORT:
        export_handle(state, event);
        break;
    case VS_KIND_PHYS_RETAIN:
        retain(state, event);
        break;
    case VS_KIND_PHYS_RELEASE:
        release(state, event, undo);
        break;
    case VS_KIND_MAP:
        map(state, event);
        break;
    case VS_KIND_UNMAP:
        unmap_event(state, event, undo);
        break;
    default:
        break;
    }
}

static void restore_range(struct vs_state *state, const struct vs_undo_range *kept)
{
    const struct vs_range *range = &kept->range;
    struct vs_ranges *set = kept->set == VS_UNDO_RESERVATION ? &state->reservations
                            : kept->set == VS_UNDO_SEGMENT   ? &state->segments
                                                             : &state->mappings;
    if (vs_ranges_overlap(set, range->start, range->size) != NULL)
        return;
    if (kept->set == VS_UNDO_MAPPING) {
        uint32_t object = revive(state, range->object, &kept->physical);
        add_mapping(state, range->start, range->size, object, range->device);
    } else if (kept->set == VS_UNDO_SEGMENT) {
        struct vs_range *segment =
            add_segment(state, range->start, range->size, (enum vs_segment_kind)range->kind,
                        range->bytes, range->device);
        if (segment == NULL)
            return;
        segment->pool = range->pool;
        segment->pool_site = range->pool_site;
        segment->stream = range->stream;
        segment->stream_known = range->stream_known;
        cache_count(state_device(state, range->device), segment, +1);
    } else {
        struct vs_range *again = vs_ranges_insert(set, range->start, range->size);
        if (again == NULL)
            state_fail(state);
        else
            again->device = range->device;
    }
}

void vmm_restore(struct vs_state *state, const struct vs_undo *undo)
{
    if (undo->what == VS_UNDO_HANDLE) {
        uint32_t object = revive(state, undo->handle_object, &undo->physical);
        if (object != 0)
            refer(state, undo->event.handle, object);
        return;
    }
    /* Segments before the mappings that back them. */
    for (size_t i = 0; i < undo->range_count; i++)
        if (undo->ranges[i].set != VS_UNDO_MAPPING)
            restore_range(state, &undo->ranges[i]);
    for (size_t i = 0; i < undo->range_count; i++)
        if (undo->ranges[i].set == VS_UNDO_MAPPING)
            restore_range(state, &undo->ranges[i]);
}
