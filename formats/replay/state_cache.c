/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a framework's cache keeps apart. A segment serves the stream and the pool
 * that its first block was asked for: a capture's own pool when that stream was
 * being captured, else the default one. A block that other streams may still use
 * when it is freed waits: the cache records an event on each of them right before
 * it reports the free, and asks for them later; the block is free when all have
 * completed. Inside a capture, or while a pool of the program's is used, the cache puts the events
 * off until that is over.
 */
#include <errno.h>

#include "state_internal.h"

/* cudaErrorStreamCaptureUnmatched and …WrongThread: the call did not end the capture. */
enum { RESULT_CAPTURE_UNMATCHED = 903, RESULT_CAPTURE_WRONG_THREAD = 908 };

/* ---- pools of segments ------------------------------------------------------------ */

void cache_count(struct vs_device_state *device, const struct vs_range *segment, int sign)
{
    int64_t bytes = sign * (int64_t)segment->bytes;
    if (segment->pool == VS_CACHE_POOL_UNKNOWN)
        device->unknown_pool_bytes += bytes;
    else if (segment->pool >= VS_CACHE_POOL_PRIVATE)
        device->private_reserved += bytes;
}

/* The capture that the block was asked for in, if there is only one that it can be. */
static const struct vs_capture *capture_of(const struct vs_state *state,
                                           const struct vs_sequenced_event *sequenced)
{
    const struct vs_capture *of_thread = NULL;
    for (size_t i = 0; i < state->capture_count; i++) {
        const struct vs_capture *capture = &state->captures[i];
        if (sequenced->event.handle == 1 && capture->stream == sequenced->event.stream)
            return capture;
        if (capture->thread == sequenced->thread)
            of_thread = capture;
    }
    if (!(sequenced->event.flags & VS_EVENT_CAPTURING))
        return NULL;
    /* A stream that joined a capture. */
    return state->capture_count == 1 ? &state->captures[0] : of_thread;
}

/* The capture works on a pool that was there before: what it took itself is of that one. */
static void join_pool(struct vs_state *state, struct vs_capture *capture,
                      const struct vs_range *joined)
{
    uint32_t pool = joined->pool, site = joined->pool_site;
    struct vs_range *segment = capture->has_segments ? vs_ranges_from(&state->segments, 0) : NULL;
    while (segment != NULL) {
        if (segment->pool == capture->pool) {
            segment->pool = pool;
            segment->pool_site = site;
        }
        segment = vs_ranges_from(&state->segments, segment->start + segment->size);
    }
    capture->pool = pool;
    capture->site = site;
}

static struct vs_cache_owner owner_of(const struct vs_state *state,
                                      const struct vs_sequenced_event *sequenced,
                                      const struct vs_capture *capture)
{
    struct vs_cache_owner unknown = {.pool = VS_CACHE_POOL_UNKNOWN};
    bool sure = state->captures_missed == 0 && !(sequenced->event.flags & VS_EVENT_CAPTURING);
    if (capture != NULL)
        return user_pool_used(state, sequenced->thread)
                   ? unknown
                   : (struct vs_cache_owner){capture->pool, capture->site};
    return sure ? user_pool_of(state, sequenced) : unknown;
}

uint32_t vs_state_request_pool(const struct vs_state *state,
                               const struct vs_sequenced_event *sequenced)
{
    return owner_of(state, sequenced,
                    state->capture_count != 0 ? capture_of(state, sequenced) : NULL)
        .pool;
}

/* The ranges under [address, address + size) that no block was cut from yet. */
static void mark_ranges(struct vs_state *state, struct vs_device_state *device,
                        struct vs_cache_owner use, const struct vs_event *event)
{
    uint64_t end = event->address + event->size;
    struct vs_range *range = vs_ranges_find(&state->segments, event->address);
    while (range != NULL && range->start < end) {
        if (range->pool == VS_CACHE_POOL_UNSEEN) {
            range->pool = use.pool;
            range->pool_site = use.site;
            cache_count(device, range, +1);
        }
        if (!range->stream_known && (event->handle == 1 || event->stream != 0)) {
            range->stream = event->stream;
            range->stream_known = true;
        }
        range = vs_ranges_from(&state->segments, range->start + range->size);
    }
}

void cache_keep(struct vs_state *state, uint64_t address, struct vs_undo *undo)
{
    const struct vs_range *range = vs_ranges_find(&state->segments, address);
    if (range != NULL)
        undo->use = (struct vs_cache_use){range->stream, range->pool, range->pool_site,
                                          range->stream_known};
}

void cache_restore(struct vs_state *state, uint64_t address, const struct vs_undo *undo)
{
    struct vs_range *range = vs_ranges_find(&state->segments, address);
    struct vs_device_state *device = range == NULL ? NULL : state_device(state, range->device);
    if (device == NULL || range->pool != VS_CACHE_POOL_UNSEEN)
        return;
    range->pool = undo->use.pool;
    range->pool_site = undo->use.pool_site;
    range->stream = undo->use.stream;
    range->stream_known = undo->use.stream_known;
    cache_count(device, range, +1);
}

void cache_pool_unknown(struct vs_state *state, struct vs_device_state *device, uint64_t address,
                        uint64_t size)
{
    struct vs_event event = {.address = address, .size = size};
    mark_ranges(state, device, (struct vs_cache_owner){.pool = VS_CACHE_POOL_UNKNOWN}, &event);
}

void cache_block(struct vs_state *state, struct vs_device_state *device,
                 const struct vs_sequenced_event *sequenced, struct vs_block *block)
{
    const struct vs_event *event = &sequenced->event;
    struct vs_range *segment = vs_ranges_find(&state->segments, event->address);
    const struct vs_capture *of = state->capture_count != 0 ? capture_of(state, sequenced) : NULL;
    struct vs_capture *capture = of == NULL ? NULL : &state->captures[of - state->captures];
    block->private_pool = false;
    if (segment == NULL)
        return;
    if (capture != NULL && segment->pool >= VS_CACHE_POOL_PRIVATE &&
        segment->pool != capture->pool && !user_pool_used(state, sequenced->thread))
        join_pool(state, capture, segment);
    if (capture != NULL && segment->pool == VS_CACHE_POOL_UNSEEN)
        capture->has_segments = true;
    struct vs_cache_owner use = {segment->pool, segment->pool_site};
    if (segment->pool == VS_CACHE_POOL_UNSEEN)
        use = owner_of(state, sequenced, capture);
    mark_ranges(state, device, use, event);
    block->private_pool = segment->pool >= VS_CACHE_POOL_PRIVATE;
    device->private_allocated += block->private_pool ? (int64_t)block->size : 0;
}

/* ---- captures ------------------------------------------------------------------------ */

static void capture_begins(struct vs_state *state, const struct vs_sequenced_event *sequenced)
{
    const struct vs_event *event = &sequenced->event;
    uint32_t pool = VS_CACHE_POOL_PRIVATE + state->capture_number++;
    if (state->capture_count == VS_CAPTURES_OPEN) {
        state->captures_missed++;
        return;
    }
    state->captures[state->capture_count++] = (struct vs_capture){
        .stream = event->stream,
        .thread = sequenced->thread,
        .pool = pool,
        .site = vs_state_site_of(state, event, event->device, VS_LAYER_DRIVER, false)};
}

static void count_graph(struct vs_state *state, uint64_t handle, uint32_t pool)
{
    uint64_t *of = vs_sizes_put(&state->graph_pools, handle);
    uint64_t *live = vs_sizes_put(&state->pool_graphs, pool);
    if (of == NULL || live == NULL) {
        state_fail(state);
        return;
    }
    *of = pool;
    ++*live;
}

void cache_keeper_goes(struct vs_state *state, uint64_t handle)
{
    const uint64_t *of = vs_sizes_get(&state->graph_pools, handle);
    if (of == NULL)
        return;
    uint64_t pool = *of, *live = vs_sizes_get(&state->pool_graphs, pool);
    vs_sizes_remove(&state->graph_pools, handle);
    if (live != NULL && --*live == 0)
        vs_sizes_remove(&state->pool_graphs, pool);
}

/* A new handle: what had it before is gone, whether that was seen or not. */
void cache_keeper_comes(struct vs_state *state, uint64_t handle, uint32_t pool)
{
    cache_keeper_goes(state, handle);
    count_graph(state, handle, pool);
}

static void capture_ends(struct vs_state *state, const struct vs_event *event)
{
    for (size_t i = 0; i < state->capture_count; i++) {
        if (state->captures[i].stream != event->stream)
            continue;
        if (event->result == 0 && event->handle != 0)
            cache_keeper_comes(state, event->handle, state->captures[i].pool);
        state->captures[i] = state->captures[--state->capture_count];
        return;
    }
    state->captures_missed -= state->captures_missed != 0;
}

static void graph_instantiated(struct vs_state *state, const struct vs_event *event)
{
    const uint64_t *of = vs_sizes_get(&state->graph_pools, event->extra[0]);
    if (of != NULL)
        cache_keeper_comes(state, event->handle, (uint32_t)*of);
}

bool vs_state_pool_in_use(const struct vs_state *state, uint32_t pool)
{
    for (size_t i = 0; i < state->capture_count; i++)
        if (state->captures[i].pool == pool)
            return true;
    return vs_sizes_get(&state->pool_graphs, pool) != NULL;
}

/* ---- blocks that wait ------------------------------------------------------------------ */

static void count_wait(struct vs_device_state *device, const struct vs_wait *wait, int sign)
{
    int64_t bytes = sign * (int64_t)wait->size;
    device->waiting_bytes += bytes;
    device->private_waiting += wait->private_pool ? bytes : 0;
}

static void end_wait(struct vs_state *state, uint64_t address)
{
    const struct vs_wait *wait = vs_waits_get(&state->waits, address);
    if (wait == NULL)
        return;
    count_wait(state_device(state, wait->device), wait, -1);
    vs_waits_remove(&state->waits, address);
}

static void event_completes(struct vs_state *state, uint64_t handle)
{
    const struct vs_wait_event *known = vs_wait_events_get(&state->wait_events, handle);
    if (known == NULL)
        return;
    struct vs_wait_event gone = *known;
    vs_wait_events_remove(&state->wait_events, handle);
    if (gone.deferred)
        state_device(state, gone.device)->deferred_waits--;
    struct vs_wait *wait = gone.block == 0 ? NULL : vs_waits_get(&state->waits, gone.block);
    if (wait != NULL && --wait->events == 0)
        end_wait(state, gone.block);
}

/* One more event of this thread that is not known to be for a block yet. */
static void event_recorded(struct vs_state *state, const struct vs_sequenced_event *sequenced)
{
    const struct vs_event *event = &sequenced->event;
    event_completes(state, event->handle); /* used again: what it stood for is over */
    if (event->flags & VS_EVENT_CAPTURING || !vs_state_by_framework(state, event) ||
        state_device(state, event->device) == NULL || event->handle == 0)
        return;
    uint64_t *last = vs_sizes_put(&state->recorders, sequenced->thread);
    struct vs_wait_event *mine = vs_wait_events_put(&state->wait_events, event->handle);
    if (last == NULL || mine == NULL) {
        state_fail(state);
        return;
    }
    *mine =
        (struct vs_wait_event){.previous = *last, .stream = event->stream, .device = event->device};
    *last = event->handle;
}

/* While a capture goes on or a pool of the program's own is used, by any thread. */
static bool puts_off_events(const struct vs_state *state)
{
    return state->capture_count + state->captures_missed != 0 ||
           (state->pool_uses.count != 0 && user_pools_used(state));
}

/* Gives the events that the thread just recorded to `block`; 0: to one that is not known. */
static uint32_t take_recorded(struct vs_state *state, uint32_t thread, uint64_t block)
{
    const uint64_t *last = vs_sizes_get(&state->recorders, thread);
    uint64_t handle = last == NULL ? 0 : *last;
    uint32_t count = 0;
    while (handle != 0) {
        struct vs_wait_event *mine = vs_wait_events_get(&state->wait_events, handle);
        if (mine == NULL || mine->block != 0 || mine->deferred)
            break;
        mine->block = block;
        if (block == 0) {
            mine->deferred = true;
            state_device(state, mine->device)->deferred_waits++;
        }
        handle = mine->previous;
        count++;
    }
    vs_sizes_remove(&state->recorders, thread);
    return count;
}

/* The thread did something else: its events were not for a block. */
static void forget_recorded(struct vs_state *state, uint32_t thread)
{
    const uint64_t *last = vs_sizes_get(&state->recorders, thread);
    uint64_t handle = last == NULL ? 0 : *last;
    while (handle != 0) {
        const struct vs_wait_event *mine = vs_wait_events_get(&state->wait_events, handle);
        if (mine == NULL || mine->block != 0 || mine->deferred)
            break;
        uint64_t previous = mine->previous;
        vs_wait_events_remove(&state->wait_events, handle);
        handle = previous;
    }
    vs_sizes_remove(&state->recorders, thread);
}

void cache_block_freed(struct vs_state *state, struct vs_device_state *device,
                       const struct vs_sequenced_event *sequenced, const struct vs_block *block)
{
    uint64_t address = sequenced->event.address;
    device->private_allocated -= block->private_pool ? (int64_t)block->size : 0;
    if (puts_off_events(state))
        device->freed_in_capture = true;
    uint32_t events =
        state->recorders.count == 0 ? 0 : take_recorded(state, sequenced->thread, address);
    if (events == 0)
        return;
    struct vs_wait *wait = vs_waits_put(&state->waits, address);
    if (wait == NULL) {
        state_fail(state);
        return;
    }
    *wait = (struct vs_wait){.size = block->size,
                             .events = events,
                             .device = device->device,
                             .private_pool = block->private_pool};
    count_wait(device, wait, +1);
}

/* Outside of captures the cache first sees to the blocks that could not wait inside one. */
static void block_given(struct vs_state *state, const struct vs_sequenced_event *sequenced)
{
    struct vs_device_state *device = state_device(state, sequenced->event.device);
    if (state->waits.count != 0)
        end_wait(state, sequenced->event.address); /* a wait that was over, unseen */
    if (device == NULL || !device->freed_in_capture || puts_off_events(state))
        return;
    device->freed_in_capture = false;
    take_recorded(state, sequenced->thread, 0);
}

void cache_order(struct vs_state *state, const struct vs_sequenced_event *sequenced)
{
    const struct vs_event *event = &sequenced->event;
    int32_t result = event->result;
    if (event->kind == VS_KIND_FW_ALLOC)
        block_given(state, sequenced);
    if (state->recorders.count != 0 && event->kind != VS_KIND_EVENT_RECORD &&
        event->kind != VS_KIND_FW_FREE)
        forget_recorded(state, sequenced->thread);
    if (event->kind == VS_KIND_EVENT_RECORD && result == 0)
        event_recorded(state, sequenced);
    else if ((event->kind == VS_KIND_EVENT_QUERY || event->kind == VS_KIND_EVENT_DESTROY) &&
             result == 0)
        event_completes(state, event->handle);
    else if (event->kind == VS_KIND_CAPTURE_BEGIN && result == 0)
        capture_begins(state, sequenced);
    else if (event->kind == VS_KIND_CAPTURE_END && result != RESULT_CAPTURE_UNMATCHED &&
             result != RESULT_CAPTURE_WRONG_THREAD)
        capture_ends(state, event);
    else if (event->kind == VS_KIND_GRAPH_INSTANTIATE && result == 0)
        graph_instantiated(state, event);
    else if ((event->kind == VS_KIND_GRAPH_EXEC_DESTROY || event->kind == VS_KIND_GRAPH_DESTROY) &&
             result == 0)
        cache_keeper_goes(state, event->handle);
    else if (event->kind == VS_KIND_MEM_POOL_ID)
        user_pool_asked(state, sequenced);
    else if (event->kind == VS_KIND_MEM_POOL_DESTROY)
        cache_keeper_goes(state, event->handle);
}

int vs_state_waited_stream(const struct vs_state *state, const struct vs_device_state *device,
                           uint64_t *stream, uint64_t *bytes)
{
    struct vs_sizes sums = {0};
    size_t index = 0;
    uint64_t handle, of;
    const struct vs_wait_event *event;
    int result = 0;
    *stream = *bytes = 0;
    while (result == 0 &&
           (event = vs_wait_events_next(&state->wait_events, &index, &handle)) != NULL) {
        const struct vs_wait *wait =
            event->block == 0 ? NULL : vs_waits_get(&state->waits, event->block);
        if (wait == NULL || wait->device != device->device)
            continue;
        uint64_t *sum = vs_sizes_put(&sums, event->stream);
        if (sum == NULL)
            result = -ENOMEM;
        else
            *sum += wait->size;
    }
    index = 0;
    const uint64_t *sum;
    while ((sum = vs_sizes_next(&sums, &index, &of)) != NULL)
        if (*sum > *bytes || (*sum == *bytes && of < *stream)) {
            *bytes = *sum;
            *stream = of;
        }
    vs_sizes_release(&sums);
    return result;
}

/* ---- bands ------------------------------------------------------------------------------ */

void cache_bands(const struct vs_state *state, const struct vs_device_state *device,
                 struct vs_bands *bands)
{
    bool seen =
        !vs_state_lossy(state) && device->pool_reserved == 0 && device->unseen_reserved == 0;
    bands->pending_known = seen && device->deferred_waits == 0 && !device->freed_in_capture;
    bands->pending = device->waiting_bytes;
    bands->private_pool_known = seen && device->unknown_pool_bytes == 0 && bands->pending_known;
    bands->private_pool =
        device->private_reserved - device->private_allocated - device->private_waiting;
}
