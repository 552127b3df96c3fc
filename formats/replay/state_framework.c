/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks of a caching layer, and its own totals against ours: at every event
 * both are compared; a difference is counted, then our figure is set to its, so
 * that one fault is one count and later totals are right again.
 */
#include "layers.h"
#include "state_internal.h"

/* ---- totals -------------------------------------------------------------------- */

static void anchor_allocated(struct vs_state *state, struct vs_device_state *device,
                             int64_t difference)
{
    enum vs_site_kind kind = device->reported ? VS_SITE_UNCERTAIN : VS_SITE_BEFORE_RECORDING;
    if (!device->reported)
        device->before_recording = difference;
    state_move(state, state_special_site(state, device->device, VS_LAYER_FRAMEWORK, kind),
               difference, 0);
}

static void compare_totals(struct vs_state *state, struct vs_device_state *device,
                           const struct vs_sequenced_event *event)
{
    uint64_t allocated = event->event.extra[0], reserved = event->event.extra[1];
    if (allocated > INT64_MAX || reserved > INT64_MAX)
        return; /* a framework without totals */
    int64_t allocated_difference =
        (int64_t)allocated - device->layers[VS_LAYER_FRAMEWORK].live_bytes;
    if (state->cut && device->reported) {
        /* Blocks that were live here are not in the trace: their difference is no fault. */
        device->cut_allocated = device->layers[VS_LAYER_FRAMEWORK].live_bytes;
        device->cut_reported = true;
        allocated_difference = 0;
    }
    int64_t reserved_difference = (int64_t)reserved - vs_device_reserved(device);
    if (reserved_difference < 0 && device->reported)
        /* Given back through an allocator that keeps the addresses: only now it shows. */
        reserved_difference += vmm_drop_unmapped(state, device, -reserved_difference);
    state->counts.totals_compared++;
    if (device->reported && (allocated_difference != 0 || reserved_difference != 0)) {
        if (device->mismatches++ == 0)
            device->first_mismatch = event->sequence;
    }
    if (allocated_difference != 0)
        anchor_allocated(state, device, allocated_difference);
    device->unseen_reserved += reserved_difference;
    device->reported_allocated = allocated;
    device->reported_reserved = reserved;
    device->reported = true;
}

/* ---- a gap of a cut trace --------------------------------------------------------- */

void framework_cut(struct vs_state *state, const struct vs_event *event)
{
    state->cut = true;
    state->cut_events += event->size;
    for (size_t i = 0; i < VS_DEVICE_SLOTS; i++)
        if (state->devices[i] != NULL)
            state->devices[i]->cut_reported = false;
}

/* At a device's last report in the gap nothing is missing: what differs there is not of the cut. */
void framework_cut_end(struct vs_state *state)
{
    if (!state->cut)
        return;
    state->cut = false;
    for (size_t i = 0; i < VS_DEVICE_SLOTS; i++) {
        struct vs_device_state *device = state->devices[i];
        if (device == NULL || !device->cut_reported)
            continue;
        int64_t difference = (int64_t)device->reported_allocated - device->cut_allocated;
        if (difference != 0)
            anchor_allocated(state, device, difference);
    }
}

/* ---- segments ------------------------------------------------------------------- */

static bool is_inside(struct vs_state *state, uint64_t address, uint64_t size)
{
    struct vs_range *at = vs_ranges_find(&state->segments, address);
    while (at != NULL && at->start + at->size - address < size) {
        uint64_t end = at->start + at->size;
        size -= end - address;
        address = end;
        at = vs_ranges_find(&state->segments, end);
    }
    return at != NULL;
}

/* A block outside of every segment: an allocator under the cache got the memory (MemPool). */
static bool promote(struct vs_state *state, struct vs_device_state *device,
                    const struct vs_event *event)
{
    int64_t missing = event->extra[1] > INT64_MAX /* a framework without totals */
                          ? 0
                          : (int64_t)event->extra[1] - vs_device_reserved(device);
    struct vs_allocation *direct = vs_allocations_get(&state->allocations, event->address);
    if (direct != NULL && direct->type == VS_ALLOCATION_DIRECT && !direct->segment) {
        bool fits = missing > 0 && (uint64_t)missing <= direct->size;
        memory_promote(state, event->address, direct, fits ? (uint64_t)missing : direct->size);
        return true;
    }
    return vmm_promote(state, device, event->address, missing);
}

static void check_place(struct vs_state *state, struct vs_device_state *device,
                        const struct vs_event *event)
{
    state->counts.blocks_checked++;
    if (is_inside(state, event->address, event->size))
        return;
    if (vs_ranges_find(&state->segments, event->address) == NULL && promote(state, device, event) &&
        is_inside(state, event->address, event->size)) {
        cache_pool_unknown(state, device, event->address, event->size);
        return;
    }
    state->counts.blocks_outside++;
}

/* ---- events ---------------------------------------------------------------------- */

static const struct vs_caching_layer *layer_of(struct vs_state *state, const struct vs_event *event)
{
    if (event->call != state->last_call) {
        state->last_call = event->call;
        state->last_layer =
            event->call == 0 ? NULL : vs_layer_of_call(vs_state_string(state, event->call));
    }
    return event->call == 0 ? NULL : state->last_layer;
}

/* Of the memory an address lies in: a block, a segment, or an allocation that will be one. */
static int8_t device_at(struct vs_state *state, uint64_t address)
{
    const struct vs_block *block = vs_blocks_get(&state->blocks, address);
    const struct vs_range *segment = vs_ranges_find(&state->segments, address);
    const struct vs_allocation *allocation = vs_allocations_get(&state->allocations, address);
    return block != NULL        ? block->device
           : segment != NULL    ? segment->device
           : allocation != NULL ? allocation->device
                                : VS_DEVICE_UNKNOWN;
}

/*
 * The event, or a copy that says which device a layer's block is on where the layer does not;
 * NULL for a block on no device that is known: the host's.
 */
static const struct vs_sequenced_event *place(struct vs_state *state,
                                              const struct vs_sequenced_event *told,
                                              struct vs_sequenced_event *copy)
{
    const struct vs_caching_layer *layer = layer_of(state, &told->event);
    if (layer == NULL || !layer->by_place)
        return told;
    *copy = *told;
    copy->event.device = device_at(state, told->event.address);
    return copy->event.device == VS_DEVICE_UNKNOWN ? NULL : copy;
}

static void note_framework(struct vs_state *state, struct vs_device_state *device,
                           const struct vs_event *event)
{
    device->framework_events++;
    if (device->framework_seen)
        return;
    device->framework_seen = true;
    device->framework_owner = state_owner(state, event);
    device->caching_layer = layer_of(state, event);
}

void framework_alloc(struct vs_state *state, const struct vs_sequenced_event *told)
{
    struct vs_sequenced_event copy;
    const struct vs_sequenced_event *sequenced = place(state, told, &copy);
    if (sequenced == NULL)
        return;
    const struct vs_event *event = &sequenced->event;
    struct vs_device_state *device = state_device(state, event->device);
    if (device == NULL || event->address == 0 || event->size > INT64_MAX)
        return;
    note_framework(state, device, event);
    struct vs_block *block = vs_blocks_put(&state->blocks, event->address);
    if (block == NULL) {
        state_fail(state);
        return;
    }
    if (block->site != 0) {
        state->counts.framework_alloc_on_live++;
        state_move_of(state, block->site, -(int64_t)block->size, -1, &block->note);
        device->private_allocated -= block->private_pool ? (int64_t)block->size : 0;
    }
    block->size = event->size;
    block->device = event->device;
    block->site = vs_state_site_of(state, event, event->device, VS_LAYER_FRAMEWORK, false);
    state_move_of(state, block->site, (int64_t)event->size, +1, &block->note);
    check_place(state, device, event);
    cache_block(state, device, sequenced, block);
    compare_totals(state, device, sequenced);
}

/* A block from before the first event, or one whose allocation was lost. */
static void free_unknown(struct vs_state *state, struct vs_device_state *device, int64_t size)
{
    enum vs_site_kind kind = VS_SITE_UNCERTAIN;
    if (!device->reported || device->before_recording >= size) {
        kind = VS_SITE_BEFORE_RECORDING;
        device->before_recording -= device->reported ? size : 0;
    } else {
        state->counts.framework_frees_unknown++;
    }
    state_move(state, state_special_site(state, device->device, VS_LAYER_FRAMEWORK, kind), -size,
               0);
}

void framework_free(struct vs_state *state, const struct vs_sequenced_event *told)
{
    struct vs_sequenced_event copy;
    const struct vs_sequenced_event *sequenced = place(state, told, &copy);
    if (sequenced == NULL)
        return;
    const struct vs_event *event = &sequenced->event;
    struct vs_device_state *device = state_device(state, event->device);
    if (device == NULL || event->address == 0 || event->size > INT64_MAX)
        return;
    note_framework(state, device, event);
    struct vs_block *known = vs_blocks_get(&state->blocks, event->address);
    if (known == NULL) {
        free_unknown(state, device, (int64_t)event->size);
    } else {
        if (event->size != 0 && known->size != event->size)
            state->counts.free_size_differs++;
        struct vs_block gone = *known;
        vs_blocks_remove(&state->blocks, event->address);
        cache_block_freed(state, device, sequenced, &gone);
        state_move_of(state, gone.site, -(int64_t)gone.size, -1, &gone.note);
    }
    compare_totals(state, device, sequenced);
}
