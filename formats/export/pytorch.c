/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The snapshot that torch.cuda.memory._dump_snapshot writes, which memory_viz and
 * torch.cuda._memory_viz read. Segments of a device are those of its caching layer;
 * where there is none, each allocation of the driver is a segment of one block. The
 * trace is read once to find the instant of each device, once for what is there at
 * it, and once for the entries of each device.
 */
#include <errno.h>
#include <stdlib.h>

#include "formats.h"
#include "pytorch_frames.h"
#include "pytorch_trace.h"
#include "replay/grow.h"
#include "replay/segments.h"

/* PyTorch's segments for small blocks, and its mappings for them. */
enum { SMALL_SEGMENT = 2 << 20 };

static const char state_allocated[] = "active_allocated", state_pending[] = "active_pending_free",
                  state_inactive[] = "inactive";

struct taking {
    struct vs_snapshot *snapshot;
    struct vs_state *state;
    struct vs_pickle_list list;
};

/* One segment as it is written; of `layout`, or of one block. */
struct segment {
    uint64_t address, size, allocated, active, stream, pool;
    bool user_pool; /* made by the program: numbered apart from those of graphs */
    int8_t device;
    bool small, expandable;
    uint32_t stack;
};

static void put_name(struct vs_snapshot *snapshot, const char *name, const char *value)
{
    vs_pickle_name(&snapshot->pickle, name);
    vs_pickle_name(&snapshot->pickle, value);
}

/* ---- blocks ------------------------------------------------------------------------------------
 */

static void put_block(struct vs_snapshot *snapshot, struct vs_pickle_list *list, uint64_t address,
                      uint64_t bytes, const char *state, uint32_t stack)
{
    vs_pickle_item(&snapshot->pickle, list);
    vs_pickle_dict(&snapshot->pickle);
    vs_pickle_members(&snapshot->pickle);
    vs_snapshot_number(snapshot, "address", address);
    vs_snapshot_number(snapshot, "size", bytes);
    vs_snapshot_number(snapshot, "requested_size", state == state_inactive ? 0 : bytes);
    put_name(snapshot, "state", state);
    vs_snapshot_frames(snapshot, stack);
    vs_pickle_dict_end(&snapshot->pickle);
}

static void put_blocks(struct taking *taking, const struct vs_layout *layout,
                       const struct vs_segment *of, uint64_t end)
{
    struct vs_snapshot *snapshot = taking->snapshot;
    struct vs_pickle_list list;
    uint64_t from = of->address;
    vs_pickle_items(&snapshot->pickle, &list);
    for (size_t i = 0; i < of->block_count; i++) {
        const struct vs_segment_block *block = &layout->blocks[of->first_block + i];
        const struct vs_site *site = vs_state_site(taking->state, block->site);
        if (block->address > from)
            put_block(snapshot, &list, from, block->address - from, state_inactive, 0);
        put_block(snapshot, &list, block->address, block->size,
                  block->waits ? state_pending : state_allocated, site == NULL ? 0 : site->stack);
        from = block->address + block->size;
    }
    if (end > from)
        put_block(snapshot, &list, from, end - from, state_inactive, 0);
    vs_pickle_list_end(&snapshot->pickle);
}

/* ---- segments ----------------------------------------------------------------------------------
 */

/* All but the blocks, which follow. */
static void begin_segment(struct taking *taking, const struct segment *segment)
{
    struct vs_snapshot *snapshot = taking->snapshot;
    struct vs_pickle *pickle = &snapshot->pickle;
    vs_pickle_item(pickle, &taking->list);
    vs_pickle_dict(pickle);
    vs_pickle_members(pickle);
    vs_snapshot_number(snapshot, "device", (uint64_t)segment->device);
    vs_snapshot_number(snapshot, "address", segment->address);
    vs_snapshot_number(snapshot, "total_size", segment->size);
    vs_snapshot_number(snapshot, "allocated_size", segment->allocated);
    vs_snapshot_number(snapshot, "active_size", segment->active);
    vs_snapshot_number(snapshot, "requested_size", segment->active);
    vs_snapshot_number(snapshot, "stream", segment->stream);
    put_name(snapshot, "segment_type", segment->small ? "small" : "large");
    vs_pickle_name(pickle, "segment_pool_id");
    vs_pickle_pair(pickle, segment->user_pool ? 0 : segment->pool,
                   segment->user_pool ? segment->pool : 0);
    vs_pickle_name(pickle, "is_expandable");
    vs_pickle_bool(pickle, segment->expandable);
    vs_snapshot_frames(snapshot, segment->stack);
    vs_pickle_name(pickle, "blocks");
    vs_pickle_list(pickle);
}

static uint32_t stack_of_segment(const struct taking *taking, uint64_t address)
{
    const struct vs_allocation *allocation =
        vs_allocations_get(&taking->state->allocations, address);
    const struct vs_site *site =
        allocation == NULL ? NULL : vs_state_site(taking->state, allocation->site);
    return site == NULL ? 0 : site->stack;
}

static void put_layout_segment(struct taking *taking, const struct vs_layout *layout,
                               const struct vs_segment *of, int8_t device)
{
    uint64_t bytes = of->reserved_bytes < of->size ? of->reserved_bytes : of->size;
    const struct vs_range *first = vs_ranges_find(&taking->state->segments, of->address);
    struct segment segment = {.address = of->address,
                              .size = bytes,
                              .allocated = of->live_bytes,
                              .active = of->live_bytes + of->waiting_bytes,
                              .stream = of->stream_known ? of->stream : 0,
                              .device = device,
                              .small = first != NULL && first->size <= SMALL_SEGMENT,
                              .expandable = of->kind == VS_SEGMENT_PIECE,
                              .stack = stack_of_segment(taking, of->address)};
    if (of->pool >= VS_CACHE_POOL_PRIVATE)
        segment.pool = vs_pool_number(of->pool);
    segment.user_pool = of->pool >= VS_CACHE_POOL_USER;
    if (of->block_count > 0) {
        const struct vs_segment_block *last =
            &layout->blocks[of->first_block + of->block_count - 1];
        if (last->address + last->size > of->address + bytes)
            segment.size = last->address + last->size - of->address;
    }
    begin_segment(taking, &segment);
    put_blocks(taking, layout, of, of->address + segment.size);
    vs_pickle_dict_end(&taking->snapshot->pickle);
}

static int take_layout(struct taking *taking, const struct vs_device_state *device)
{
    struct vs_layout layout;
    int result = vs_layout_take(taking->state, device, &layout);
    taking->snapshot->uncertain[vs_snapshot_slot(device->device)] = !layout.known;
    for (size_t i = 0; i < layout.count && result == 0; i++)
        put_layout_segment(taking, &layout, &layout.segments[i], device->device);
    vs_layout_release(&layout);
    return result;
}

/* ---- without a caching layer -------------------------------------------------------------------
 */

struct single {
    uint64_t address, size;
    uint32_t site;
};

struct singles {
    struct single *items;
    size_t count, room;
};

static int add_single(struct singles *singles, uint64_t address, uint64_t size, uint32_t site)
{
    if (!vs_grow(&singles->items, &singles->room, singles->count + 1, sizeof(*singles->items)))
        return -ENOMEM;
    singles->items[singles->count++] = (struct single){address, size, site};
    return 0;
}

static int collect(const struct vs_state *state, int8_t device, struct singles *singles)
{
    size_t index = 0;
    uint64_t address;
    const struct vs_allocation *allocation;
    int result = 0;
    while (result == 0 &&
           (allocation = vs_allocations_next(&state->allocations, &index, &address)) != NULL)
        if (allocation->device == device && vs_snapshot_shows(allocation))
            result = add_single(singles, address, allocation->size, allocation->site);
    const struct vs_range *mapping = vs_ranges_from(&state->mappings, 0);
    for (; mapping != NULL && result == 0;
         mapping = vs_ranges_from(&state->mappings, mapping->start + mapping->size))
        if (mapping->device == device && vs_snapshot_shows_mapping(state, mapping))
            result = add_single(singles, mapping->start, mapping->size,
                                state->physicals[mapping->object - 1].site);
    return result;
}

static int by_address(const void *a, const void *b)
{
    const struct single *left = a, *right = b;
    return (left->address > right->address) - (left->address < right->address);
}

static int take_singles(struct taking *taking, int8_t device)
{
    struct singles singles = {0};
    struct vs_snapshot *snapshot = taking->snapshot;
    int result = collect(taking->state, device, &singles);
    if (result == 0 && singles.count != 0)
        qsort(singles.items, singles.count, sizeof(*singles.items), by_address);
    for (size_t i = 0; i < singles.count && result == 0; i++) {
        const struct single *single = &singles.items[i];
        const struct vs_site *site = vs_state_site(taking->state, single->site);
        struct segment segment = {.address = single->address,
                                  .size = single->size,
                                  .allocated = single->size,
                                  .active = single->size,
                                  .device = device,
                                  .small = single->size <= SMALL_SEGMENT,
                                  .stack = site == NULL ? 0 : site->stack};
        struct vs_pickle_list list;
        begin_segment(taking, &segment);
        vs_pickle_items(&snapshot->pickle, &list);
        put_block(snapshot, &list, single->address, single->size, state_allocated, segment.stack);
        vs_pickle_list_end(&snapshot->pickle);
        vs_pickle_dict_end(&snapshot->pickle);
    }
    free(singles.items);
    return result;
}

/* ---- the instants ------------------------------------------------------------------------------
 */

struct search {
    struct vs_snapshot *snapshot;
    struct vs_state *state;
    bool begun;
};

static void on_peak(void *self, const struct vs_state *state, const struct vs_device_state *device,
                    unsigned which)
{
    struct search *search = self;
    if ((which & (1U << vs_device_top_layer(device))) != 0)
        search->snapshot->last[vs_snapshot_slot(device->device)] = state->last_sequence;
}

static int look_for_peak(void *self, const struct vs_sequenced_event *event)
{
    struct search *search = self;
    const struct vs_export *export = search->snapshot->export;
    if (vs_snapshot_is_over(search->snapshot, event))
        return 1;
    if (!search->begun && event->event.time_ns >= export->from_ns) {
        search->begun = true;
        if (export->from_ns > export->start_ns)
            vs_state_restart_peaks(search->state, export->from_ns);
    }
    return vs_state_event(search->state, event);
}

static int find_peaks(struct vs_snapshot *snapshot)
{
    struct search search = {.snapshot = snapshot};
    struct vs_subscriber watch = {.self = &search, .peak = on_peak};
    int result = vs_export_state(snapshot->export, &search.state);
    if (result == 0)
        result = vs_state_subscribe(search.state, &watch);
    if (result == 0)
        result = vs_export_each(snapshot->export, look_for_peak, &search);
    vs_state_destroy(search.state);
    return result;
}

static int find_instants(struct vs_snapshot *snapshot)
{
    struct vs_export *export = snapshot->export;
    if (export->at == VS_AT_PEAK)
        return find_peaks(snapshot);
    for (size_t i = 0; i < VS_DEVICE_SLOTS; i++)
        snapshot->last[i] = UINT64_MAX;
    return export->at == VS_AT_OOM ? vs_export_find_oom(export, &snapshot->over_sequence) : 0;
}

static int take_device(struct taking *taking, int slot)
{
    struct vs_snapshot *snapshot = taking->snapshot;
    const struct vs_device_state *device = taking->state->devices[slot];
    if (device == NULL || device->device < 0 ||
        (snapshot->export->device >= 0 && device->device != snapshot->export->device))
        return 0;
    snapshot->taken[slot] = true;
    /* Blocks in a driver's pools have no segments. */
    snapshot->framework[slot] = device->framework_seen && device->pool_reserved == 0;
    return snapshot->framework[slot] ? take_layout(taking, device)
                                     : take_singles(taking, device->device);
}

static int take_reached(void *self, const struct vs_sequenced_event *event)
{
    struct taking *taking = self;
    if (vs_snapshot_is_over(taking->snapshot, event))
        return 1;
    int result = vs_state_event(taking->state, event);
    for (int slot = 0; slot < VS_DEVICE_SLOTS && result == 0; slot++)
        if (taking->snapshot->last[slot] == event->sequence)
            result = take_device(taking, slot);
    return result;
}

static int put_segments(struct vs_snapshot *snapshot)
{
    struct taking taking = {.snapshot = snapshot};
    vs_pickle_name(&snapshot->pickle, "segments");
    vs_pickle_list(&snapshot->pickle);
    vs_pickle_items(&snapshot->pickle, &taking.list);
    int result = vs_export_state(snapshot->export, &taking.state);
    if (result == 0)
        result = vs_export_each(snapshot->export, take_reached, &taking);
    for (int slot = 0; slot < VS_DEVICE_SLOTS && result == 0; slot++)
        if (snapshot->last[slot] == UINT64_MAX)
            result = take_device(&taking, slot);
    vs_state_destroy(taking.state);
    vs_pickle_list_end(&snapshot->pickle);
    return result;
}

/* ---- the rest ----------------------------------------------------------------------------------
 */

static int put_traces(struct vs_snapshot *snapshot)
{
    struct vs_pickle_list list;
    int result = 0, devices = 0;
    for (int device = 0; device <= INT8_MAX; device++)
        if (snapshot->taken[vs_snapshot_slot((int8_t)device)])
            devices = device + 1;
    vs_pickle_name(&snapshot->pickle, "device_traces");
    vs_pickle_list(&snapshot->pickle);
    vs_pickle_items(&snapshot->pickle, &list);
    for (int device = 0; device < devices && result == 0; device++) {
        vs_pickle_item(&snapshot->pickle, &list);
        result = vs_snapshot_trace(snapshot, (int8_t)device);
    }
    vs_pickle_list_end(&snapshot->pickle);
    return result;
}

static void put_settings(struct vs_snapshot *snapshot)
{
    struct vs_pickle *pickle = &snapshot->pickle;
    const json_t *settings = json_object_get(snapshot->export->process, "settings");
    static const char *const names[] = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"};
    vs_pickle_name(pickle, "allocator_settings");
    vs_pickle_dict(pickle);
    vs_pickle_members(pickle);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = json_string_value(json_object_get(settings, names[i]));
        if (value == NULL)
            continue;
        vs_pickle_name(pickle, names[i]);
        vs_pickle_text(pickle, value);
    }
    vs_pickle_dict_end(pickle);
    vs_pickle_name(pickle, "external_annotations");
    vs_pickle_list(pickle);
}

static void put_uncertain(struct vs_snapshot *snapshot)
{
    struct vs_pickle_list list;
    vs_pickle_name(&snapshot->pickle, "uncertain_devices");
    vs_pickle_list(&snapshot->pickle);
    vs_pickle_items(&snapshot->pickle, &list);
    for (int slot = VS_DEVICE_OFFSET; slot < VS_DEVICE_SLOTS; slot++) {
        if (!snapshot->uncertain[slot])
            continue;
        vs_pickle_item(&snapshot->pickle, &list);
        vs_pickle_number(&snapshot->pickle, (uint64_t)slot - VS_DEVICE_OFFSET);
    }
    vs_pickle_list_end(&snapshot->pickle);
}

static void put_about(struct vs_snapshot *snapshot)
{
    struct vs_pickle *pickle = &snapshot->pickle;
    char text[256];
    vs_pickle_name(pickle, "vramscope");
    vs_pickle_dict(pickle);
    vs_pickle_members(pickle);
    vs_export_at_text(snapshot->export, text, sizeof(text));
    vs_pickle_name(pickle, "at");
    vs_pickle_text(pickle, text);
    vs_export_filter_text(snapshot->export, text, sizeof(text));
    vs_pickle_name(pickle, "filter");
    vs_pickle_text(pickle, text);
    vs_pickle_name(pickle, "note");
    vs_pickle_text(pickle, "requested_size and the sizes of alloc and free entries are those of "
                           "blocks: what was asked for below their rounding is not recorded; "
                           "stream is 0 where it is not known; pools are numbered by the capture "
                           "that first used them, (0, 0) is the default one");
    put_uncertain(snapshot);
    vs_snapshot_number(snapshot, "entries_left_out", snapshot->left_out);
    vs_pickle_dict_end(pickle);
}

static int write_all(struct vs_snapshot *snapshot)
{
    vs_pickle_begin(&snapshot->pickle, snapshot->export->sink);
    vs_pickle_dict(&snapshot->pickle);
    vs_pickle_members(&snapshot->pickle);
    int result = put_segments(snapshot);
    if (result == 0)
        result = put_traces(snapshot);
    if (result != 0)
        return result;
    put_settings(snapshot);
    put_about(snapshot);
    vs_pickle_dict_end(&snapshot->pickle);
    vs_pickle_end(&snapshot->pickle);
    return 0;
}

int vs_export_pytorch(struct vs_export *export)
{
    struct vs_snapshot *snapshot = calloc(1, sizeof(*snapshot));
    if (snapshot == NULL)
        return -ENOMEM;
    const json_t *start = json_object_get(export->clock, "start");
    json_int_t day = json_integer_value(json_object_get(start, "real_ns")),
               monotonic = json_integer_value(json_object_get(start, "monotonic_ns"));
    if (day > monotonic)
        snapshot->time_offset_ns = (uint64_t)(day - monotonic);
    snapshot->export = export;
    int result = vs_frames_new(export->reader, &snapshot->frames);
    if (result == 0)
        result = find_instants(snapshot);
    if (result == 0)
        result = write_all(snapshot);
    vs_pickle_release(&snapshot->pickle);
    vs_written_frames_release(&snapshot->written);
    vs_pickle_memos_release(&snapshot->stacks);
    vs_frames_free(snapshot->frames);
    free(snapshot);
    return result;
}
