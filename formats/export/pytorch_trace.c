/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entries of one device up to its instant, from a fold of its own. Blocks come
 * from a caching layer's own events; what of segments appeared and went is told by
 * comparing what the fold holds with what was there before the event.
 */
#include "pytorch_trace.h"

#include <errno.h>
#include <stdlib.h>

#include "pytorch_frames.h"
#include "replay/grow.h"

/* A segment; where there is no caching layer, an allocation or a mapping. */
struct extent {
    uint64_t size;
    int8_t device;
    bool piece; /* mapped into a reservation */
    bool shown; /* memory of this process on the device */
};
VS_MAP_DEFINE(extents, struct extent);
VS_MAP_DEFINE(waiting, struct vs_wait);

struct entry {
    const char *action;
    uint64_t address, size, stream, time_ns, device_free;
    uint32_t stack;
};

struct entries {
    struct vs_snapshot *snapshot;
    struct vs_state *state;
    struct vs_pickle_list list;
    struct extents extents; /* of all devices, by address */
    struct waiting waiting;
    struct entry pending; /* a segment's, until the stream is known that it serves */
    uint64_t *gone;       /* addresses */
    size_t gone_room;
    uint64_t seen, skip;
    uint64_t stream_before; /* of the segment at the event's address, before the event */
    int8_t device;
    bool framework, counting;
};

static const char action_alloc[] = "alloc", action_requested[] = "free_requested",
                  action_completed[] = "free_completed", action_taken[] = "segment_alloc",
                  action_released[] = "segment_free", action_mapped[] = "segment_map",
                  action_unmapped[] = "segment_unmap", action_oom[] = "oom";

/* ---- one entry ---------------------------------------------------------------------------------
 */

static void write_entry(struct entries *entries, const struct entry *entry)
{
    struct vs_snapshot *snapshot = entries->snapshot;
    vs_pickle_item(&snapshot->pickle, &entries->list);
    vs_pickle_dict(&snapshot->pickle);
    vs_pickle_members(&snapshot->pickle);
    vs_pickle_name(&snapshot->pickle, "action");
    vs_pickle_name(&snapshot->pickle, entry->action);
    if (entry->action == action_oom)
        vs_snapshot_number(snapshot, "device_free", entry->device_free);
    else
        vs_snapshot_number(snapshot, "addr", entry->address);
    vs_snapshot_number(snapshot, "size", entry->size);
    vs_snapshot_number(snapshot, "stream", entry->stream);
    vs_snapshot_number(snapshot, "time_us", (entry->time_ns + snapshot->time_offset_ns) / 1000);
    vs_snapshot_frames(snapshot, entry->stack);
    vs_pickle_dict_end(&snapshot->pickle);
}

static bool is_block(const struct entry *entry)
{
    return entry->action == action_alloc || entry->action == action_requested ||
           entry->action == action_completed;
}

static void put(struct entries *entries, const struct entry *entry)
{
    const struct vs_export *export = entries->snapshot->export;
    if (entry->time_ns < export->from_ns || (is_block(entry) && entry->size < export->min_bytes))
        return;
    entries->seen++;
    if (!entries->counting && entries->seen > entries->skip)
        write_entry(entries, entry);
}

static uint64_t stream_at(struct entries *entries, uint64_t address)
{
    const struct vs_range *range = vs_ranges_find(&entries->state->segments, address);
    return range != NULL && range->stream_known ? range->stream : 0;
}

static void leave_out(struct entries *entries)
{
    if (!entries->counting)
        entries->snapshot->left_out++;
}

static void put_pending(struct entries *entries)
{
    struct entry entry = entries->pending;
    entries->pending.action = NULL;
    if (entry.action == NULL)
        return;
    if (entry.action == action_taken || entry.action == action_mapped)
        entry.stream = stream_at(entries, entry.address);
    put(entries, &entry);
}

/* Mappings side by side that come one after the other are told as one, as PyTorch does. */
static void put_segment(struct entries *entries, const struct entry *entry)
{
    struct entry *pending = &entries->pending;
    bool piece = entry->action == action_mapped || entry->action == action_unmapped;
    if (piece && pending->action == entry->action && pending->stream == entry->stream &&
        pending->address + pending->size == entry->address) {
        pending->size += entry->size;
        return;
    }
    put_pending(entries);
    *pending = *entry;
}

static void put_other(struct entries *entries, const struct entry *entry)
{
    put_pending(entries);
    put(entries, entry);
}

/* ---- segments
 * ------------------------------------------------------------------------------------
 */

static struct extent extent_of_range(const struct vs_range *range)
{
    return (struct extent){.size = range->size,
                           .device = range->device,
                           .piece = range->kind == VS_SEGMENT_PIECE,
                           .shown = true};
}

static struct extent extent_of_mapping(const struct vs_state *state, const struct vs_range *range)
{
    return (struct extent){.size = range->size,
                           .device = range->device,
                           .shown = vs_snapshot_shows_mapping(state, range)};
}

static struct extent extent_of_allocation(const struct vs_allocation *allocation)
{
    return (struct extent){.size = allocation->size,
                           .device = allocation->device,
                           .shown = vs_snapshot_shows(allocation)};
}

/* What the fold has at an address now; false: nothing begins there. */
static bool extent_now(const struct entries *entries, uint64_t address, struct extent *out)
{
    struct vs_state *state = entries->state;
    const struct vs_range *range =
        vs_ranges_from(entries->framework ? &state->segments : &state->mappings, address);
    bool begins = range != NULL && range->start == address;
    if (entries->framework) {
        if (begins)
            *out = extent_of_range(range);
        return begins;
    }
    const struct vs_allocation *allocation = vs_allocations_get(&state->allocations, address);
    if (allocation != NULL)
        *out = extent_of_allocation(allocation);
    else if (begins)
        *out = extent_of_mapping(state, range);
    return allocation != NULL || begins;
}

static size_t extents_now(const struct entries *entries)
{
    const struct vs_state *state = entries->state;
    return entries->framework ? state->segments.count
                              : state->allocations.count + state->mappings.count;
}

static void tell_gone(struct entries *entries, const struct vs_event *event, uint64_t address,
                      const struct extent *extent)
{
    struct entry entry = {.action = extent->piece ? action_unmapped : action_released,
                          .address = address,
                          .size = extent->size,
                          .stream = entries->framework ? entries->stream_before : event->stream,
                          .time_ns = event->time_ns,
                          .stack = event->stack};
    if (extent->device != entries->device || !extent->shown)
        return;
    if (!entries->framework) {
        struct entry block = entry;
        block.action = action_requested;
        put_other(entries, &block);
        block.action = action_completed;
        put_other(entries, &block);
    }
    put_segment(entries, &entry);
}

static void tell_new(struct entries *entries, const struct vs_event *event, uint64_t address,
                     const struct extent *extent)
{
    struct entry entry = {.action = extent->piece ? action_mapped : action_taken,
                          .address = address,
                          .size = extent->size,
                          .stream = event->stream,
                          .time_ns = event->time_ns,
                          .stack = event->stack};
    if (extent->device != entries->device || !extent->shown)
        return;
    put_segment(entries, &entry);
    if (!entries->framework) {
        entry.action = action_alloc;
        put_other(entries, &entry);
    }
}

static int compare_at(struct entries *entries, const struct vs_event *event, uint64_t address)
{
    struct extent now, *known = extents_get(&entries->extents, address);
    bool is_there = extent_now(entries, address, &now);
    bool is_same =
        known != NULL && is_there && known->size == now.size && known->device == now.device;
    if (known != NULL && !is_same) {
        tell_gone(entries, event, address, known);
        extents_remove(&entries->extents, address);
    }
    if (!is_there || is_same)
        return 0;
    known = extents_put(&entries->extents, address);
    if (known == NULL)
        return -ENOMEM;
    *known = now;
    tell_new(entries, event, address, &now);
    return 0;
}

static int by_address(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* Those that are known and no longer there, in the order of their addresses. */
static int compare_known(struct entries *entries, const struct vs_event *event)
{
    size_t index = 0, count = 0;
    uint64_t address;
    const struct extent *known;
    struct extent now;
    int result = 0;
    while ((known = extents_next(&entries->extents, &index, &address)) != NULL) {
        if (extent_now(entries, address, &now) && now.size == known->size)
            continue;
        if (!vs_grow(&entries->gone, &entries->gone_room, count + 1, sizeof(*entries->gone)))
            return -ENOMEM;
        entries->gone[count++] = address;
    }
    if (count != 0)
        qsort(entries->gone, count, sizeof(*entries->gone), by_address);
    for (size_t i = 0; i < count && result == 0; i++)
        result = compare_at(entries, event, entries->gone[i]);
    return result;
}

static int compare_all(struct entries *entries, const struct vs_event *event)
{
    struct vs_state *state = entries->state;
    const struct vs_ranges *ranges = entries->framework ? &state->segments : &state->mappings;
    size_t index = 0;
    uint64_t address;
    int result = compare_known(entries, event);
    const struct vs_range *range = vs_ranges_from(ranges, 0);
    for (; range != NULL && result == 0; range = vs_ranges_from(ranges, address + 1)) {
        address = range->start;
        result = compare_at(entries, event, address);
    }
    while (!entries->framework && result == 0 &&
           vs_allocations_next(&state->allocations, &index, &address) != NULL)
        result = compare_at(entries, event, address);
    return result;
}

/* Most events move one extent, which begins at their address; else all are compared. */
static int compare(struct entries *entries, const struct vs_event *event)
{
    int result = event->address == 0 ? 0 : compare_at(entries, event, event->address);
    if (result == 0 && entries->extents.count != extents_now(entries))
        result = compare_all(entries, event);
    return result;
}

/* ---- blocks
 * --------------------------------------------------------------------------------------
 */

static struct entry block_entry(struct entries *entries, const char *action,
                                const struct vs_event *event, uint64_t address, uint64_t size)
{
    bool asked_on = event->kind == VS_KIND_FW_ALLOC && event->handle == 1;
    return (struct entry){.action = action,
                          .address = address,
                          .size = size,
                          .stream = asked_on ? event->stream : stream_at(entries, address),
                          .time_ns = event->time_ns,
                          .stack = event->stack};
}

/* Blocks outside of the segments that are known have no place in a reader's picture. */
static void put_block(struct entries *entries, const char *action, const struct vs_event *event,
                      uint64_t address, uint64_t size)
{
    struct entry entry = block_entry(entries, action, event, address, size);
    if (vs_ranges_find(&entries->state->segments, address) != NULL)
        put_other(entries, &entry);
    else
        leave_out(entries);
}

/* Blocks that waited for other streams and wait no more. */
static int end_waits(struct entries *entries, const struct vs_event *event)
{
    struct vs_state *state = entries->state;
    size_t index = 0, count = 0;
    uint64_t address;
    const struct vs_wait *wait;
    if (entries->waiting.count == 0)
        return 0;
    while ((wait = waiting_next(&entries->waiting, &index, &address)) != NULL) {
        if (vs_waits_get(&state->waits, address) != NULL)
            continue;
        if (!vs_grow(&entries->gone, &entries->gone_room, count + 1, sizeof(*entries->gone)))
            return -ENOMEM;
        entries->gone[count++] = address;
    }
    if (count != 0)
        qsort(entries->gone, count, sizeof(*entries->gone), by_address);
    for (size_t i = 0; i < count; i++) {
        wait = waiting_get(&entries->waiting, entries->gone[i]);
        if (wait->device == entries->device)
            put_block(entries, action_completed, event, entries->gone[i], wait->size);
        waiting_remove(&entries->waiting, entries->gone[i]);
    }
    return 0;
}

/* A block that goes: by its free, or because it is handed out again and its free was lost. */
static int free_block(struct entries *entries, const struct vs_event *event,
                      const struct vs_block *block)
{
    const struct vs_wait *wait = vs_waits_get(&entries->state->waits, event->address);
    if (block->device == entries->device)
        put_block(entries, action_requested, event, event->address, block->size);
    if (wait == NULL || event->kind == VS_KIND_FW_ALLOC) {
        if (block->device == entries->device)
            put_block(entries, action_completed, event, event->address, block->size);
        return 0;
    }
    struct vs_wait *kept = waiting_put(&entries->waiting, event->address);
    if (kept == NULL)
        return -ENOMEM;
    *kept = *wait;
    return 0;
}

static void put_oom(struct entries *entries, const struct vs_event *event)
{
    const struct vs_device_state *device = vs_state_device(entries->state, entries->device);
    struct entry entry = {.action = action_oom,
                          .size = event->size,
                          .stream = event->stream,
                          .time_ns = event->time_ns,
                          .stack = event->stack,
                          .device_free = event->free_bytes};
    if (entry.device_free == VS_FREE_UNKNOWN && device != NULL)
        entry.device_free = device->last_free_bytes;
    if (entry.device_free != VS_FREE_UNKNOWN)
        put_other(entries, &entry);
    else
        leave_out(entries);
}

static bool is_oom(const struct entries *entries, const struct vs_event *event)
{
    if (event->device != entries->device)
        return false;
    if (entries->framework)
        return event->kind == VS_KIND_FW_OOM;
    return event->result != 0 && event->size != 0 &&
           vs_export_is_oom(entries->snapshot->export, event);
}

/* ---- the fold
 * ------------------------------------------------------------------------------------
 */

/* `before`: the block at the event's address before it; without size: none. */
static int tell_blocks(struct entries *entries, const struct vs_event *event,
                       const struct vs_block *before)
{
    int result = 0;
    if (before->size != 0)
        result = free_block(entries, event, before);
    if (event->kind != VS_KIND_FW_ALLOC || result != 0)
        return result;
    const struct vs_block *block = vs_blocks_get(&entries->state->blocks, event->address);
    if (block != NULL && block->device == entries->device)
        put_block(entries, action_alloc, event, event->address, block->size);
    return 0;
}

static bool moves_block(const struct vs_event *event)
{
    return event->kind == VS_KIND_FW_ALLOC || event->kind == VS_KIND_FW_FREE;
}

static int fold(void *self, const struct vs_sequenced_event *sequenced)
{
    struct entries *entries = self;
    const struct vs_event *event = &sequenced->event;
    struct vs_block before = {0};
    if (vs_snapshot_is_over(entries->snapshot, sequenced))
        return 1;
    if (entries->framework && moves_block(event)) {
        const struct vs_block *block = vs_blocks_get(&entries->state->blocks, event->address);
        if (block != NULL)
            before = *block;
        else if (event->kind == VS_KIND_FW_FREE && event->device == entries->device)
            leave_out(entries); /* where it came from was lost, or was before the recording */
    }
    entries->stream_before = event->address == 0 ? 0 : stream_at(entries, event->address);
    int result = vs_state_event(entries->state, sequenced);
    if (result == 0)
        result = end_waits(entries, event);
    if (result == 0)
        result = compare(entries, event);
    if (result == 0 && entries->framework && moves_block(event))
        result = tell_blocks(entries, event, &before);
    if (is_oom(entries, event))
        put_oom(entries, event);
    return result != 0
               ? result
               : sequenced->sequence == entries->snapshot->last[vs_snapshot_slot(entries->device)];
}

static int run(struct entries *entries)
{
    struct vs_export *export = entries->snapshot->export;
    int result = vs_export_state(export, &entries->state);
    if (result == 0)
        result = vs_export_each(export, fold, entries);
    if (result == 0)
        put_pending(entries);
    vs_state_destroy(entries->state);
    extents_release(&entries->extents);
    waiting_release(&entries->waiting);
    free(entries->gone);
    return result;
}

int vs_snapshot_trace(struct vs_snapshot *snapshot, int8_t device)
{
    int slot = vs_snapshot_slot(device), result = 0;
    struct entries entries = {
        .snapshot = snapshot, .device = device, .framework = snapshot->framework[slot]};
    vs_pickle_list(&snapshot->pickle);
    if (!snapshot->taken[slot])
        return 0;
    struct entries counted = entries;
    counted.counting = true;
    if (snapshot->export->last != 0)
        result = run(&counted);
    if (counted.seen > snapshot->export->last)
        entries.skip = counted.seen - snapshot->export->last;
    vs_pickle_items(&snapshot->pickle, &entries.list);
    if (result == 0)
        result = run(&entries);
    vs_pickle_list_end(&snapshot->pickle);
    return result;
}
