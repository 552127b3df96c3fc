/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What matters in a trace, and which of its events must stay wherever they are.
 * The fold itself is asked: an event of a block may go if the fold did nothing
 * more at it than to add or to remove that block.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cut_internal.h"
#include "replay/analysis.h"
#include "replay/grow.h"
#include "replay/reader_facts.h"

enum { PEAKS = 5, RESULT_SHUT_DOWN = 4, RESULT_NOT_READY = 600 };

struct looking {
    struct vs_cut *cut;
    struct vs_state *state;
    struct vs_ooms ooms;
    uint64_t now; /* the event being folded */
    uint64_t peaks[VS_DEVICE_SLOTS][PEAKS];
    bool has_peak[VS_DEVICE_SLOTS][PEAKS];
};

/* ---- what an event of a block may not do ---------------------------------------------- */

/* All of the state that such an event can change besides its block and the totals of its site. */
struct besides {
    size_t segments, waits, pending, open;
    int64_t segment_bytes, unseen, unknown_pools, private_reserved, before_recording;
    uint64_t mismatches, outside, unknown, on_live, size_differs;
    bool freed_in_capture;
};

static struct besides besides_of(const struct looking *looking,
                                 const struct vs_device_state *device)
{
    const struct vs_state *state = looking->state;
    return (struct besides){.segments = state->segments.count,
                            .waits = state->waits.count,
                            .pending = looking->ooms.pending.count,
                            .open = looking->ooms.open_count,
                            .segment_bytes = device->segment_bytes,
                            .unseen = device->unseen_reserved,
                            .unknown_pools = device->unknown_pool_bytes,
                            .private_reserved = device->private_reserved,
                            .before_recording = device->before_recording,
                            .mismatches = device->mismatches,
                            .outside = state->counts.blocks_outside,
                            .unknown = state->counts.framework_frees_unknown,
                            .on_live = state->counts.framework_alloc_on_live,
                            .size_differs = state->counts.free_size_differs,
                            .freed_in_capture = device->freed_in_capture};
}

static bool are_same(const struct besides *a, const struct besides *b)
{
    return a->segments == b->segments && a->waits == b->waits && a->pending == b->pending &&
           a->open == b->open && a->segment_bytes == b->segment_bytes && a->unseen == b->unseen &&
           a->unknown_pools == b->unknown_pools && a->private_reserved == b->private_reserved &&
           a->before_recording == b->before_recording && a->mismatches == b->mismatches &&
           a->outside == b->outside && a->unknown == b->unknown && a->on_live == b->on_live &&
           a->size_differs == b->size_differs && a->freed_in_capture == b->freed_in_capture;
}

/* Whether the event, with others of its thread, means more than its block. */
static bool is_plain(const struct vs_state *state, const struct vs_sequenced_event *sequenced)
{
    const struct vs_event *event = &sequenced->event;
    return event->result == 0 && event->free_bytes == VS_FREE_UNKNOWN && event->address != 0 &&
           event->size <= INT64_MAX && !(event->flags & VS_EVENT_CAPTURING) &&
           state->capture_count + state->captures_missed == 0 &&
           vs_calls_under_way_get(&state->under_way, sequenced->thread) == NULL &&
           vs_sizes_get(&state->recorders, sequenced->thread) == NULL;
}

/* The segments under the block know already whom they serve. */
static bool is_known_place(struct vs_state *state, const struct vs_event *event)
{
    uint64_t end = event->address + event->size;
    const struct vs_range *at = vs_ranges_find(&state->segments, event->address);
    if (at == NULL)
        return false;
    for (; at != NULL && at->start < end;
         at = vs_ranges_from(&state->segments, at->start + at->size))
        if (at->pool == VS_CACHE_POOL_UNSEEN ||
            (!at->stream_known && (event->handle == 1 || event->stream != 0)))
            return false;
    return true;
}

/* The device of the event's block, if it is one that may go; NULL else. */
static const struct vs_device_state *device_of(struct vs_state *state,
                                               const struct vs_sequenced_event *sequenced)
{
    const struct vs_event *event = &sequenced->event;
    const struct vs_block *block = vs_blocks_get(&state->blocks, event->address);
    bool totals = event->extra[0] <= INT64_MAX && event->extra[1] <= INT64_MAX;
    bool makes = event->kind == VS_KIND_FW_ALLOC;
    if (!is_plain(state, sequenced) || makes != (block == NULL))
        return NULL;
    if (makes ? vs_waits_get(&state->waits, event->address) != NULL || !is_known_place(state, event)
              : block->size != event->size)
        return NULL;
    int8_t at = makes ? vs_ranges_find(&state->segments, event->address)->device : block->device;
    const struct vs_device_state *device = vs_state_device(state, at);
    /* A layer that does not name the device: its totals could not be told whose they are. */
    bool named = at == event->device || !totals;
    return device != NULL && device->framework_seen && device->reported == totals && named ? device
                                                                                           : NULL;
}

/* A call on an event, asking about it included, that has not failed. */
static bool is_on_event(const struct vs_event *event)
{
    return (event->result == 0 || event->result == RESULT_NOT_READY) &&
           (event->kind == VS_KIND_EVENT_RECORD || event->kind == VS_KIND_EVENT_QUERY ||
            event->kind == VS_KIND_EVENT_DESTROY);
}

/* Such a call that no block waits for, and that ends nothing of its thread; also after it. */
static bool is_idle(const struct vs_state *state, const struct vs_sequenced_event *sequenced)
{
    const struct vs_event *event = &sequenced->event;
    return event->free_bytes == VS_FREE_UNKNOWN &&
           vs_wait_events_get(&state->wait_events, event->handle) == NULL &&
           vs_calls_under_way_get(&state->under_way, sequenced->thread) == NULL &&
           vs_sizes_get(&state->recorders, sequenced->thread) == NULL;
}

/* ---- what matters ------------------------------------------------------------------------ */

static int add_point(struct vs_cut *cut, uint64_t at)
{
    if (!vs_grow(&cut->points, &cut->point_room, cut->point_count + 1, sizeof(*cut->points)))
        return -ENOMEM;
    cut->points[cut->point_count++] = at;
    return 0;
}

/* The mark itself is of the gap; one that is not ended goes on to the end. */
static int note_old_gap(struct vs_cut *cut, uint64_t now, unsigned kind)
{
    if (kind == VS_KIND_CUT_END && cut->old_count > 0)
        cut->old[cut->old_count - 1].end = now + 1;
    if (kind != VS_KIND_CUT)
        return 0;
    if (!vs_grow(&cut->old, &cut->old_room, cut->old_count + 1, sizeof(*cut->old)))
        return -ENOMEM;
    cut->old[cut->old_count++] = (struct vs_cut_window){now, cut->events};
    return 0;
}

/* While the events pass: in order. */
static int note_point(struct looking *looking)
{
    const struct vs_cut *cut = looking->cut;
    if (cut->point_count > 0 && looking->now - cut->points[cut->point_count - 1] < VS_CUT_NEAR)
        return 0;
    return add_point(looking->cut, looking->now);
}

static void on_peak(void *self, const struct vs_state *state, const struct vs_device_state *device,
                    unsigned which)
{
    struct looking *looking = self;
    size_t slot = (size_t)device->device + VS_DEVICE_OFFSET;
    (void)state;
    for (unsigned i = 0; i < PEAKS; i++)
        if (which & 1U << i) {
            looking->peaks[slot][i] = looking->now;
            looking->has_peak[slot][i] = true;
        }
}

static bool is_failure(const struct vs_event *event)
{
    char layer = vs_kind_layer(event->kind);
    return event->kind == VS_KIND_FW_OOM ||
           ((layer == 'D' || layer == 'H') && event->result != 0 &&
            event->result != RESULT_SHUT_DOWN && event->result != RESULT_NOT_READY);
}

/*
 * The layer reports less reserved than is known: what it gave back is looked for
 * among segments without blocks, and so all blocks must be there.
 */
static bool looks_at_blocks(const struct vs_state *state, const struct vs_event *event)
{
    const struct vs_device_state *device = vs_state_device(state, event->device);
    return (event->kind == VS_KIND_FW_ALLOC || event->kind == VS_KIND_FW_FREE) && device != NULL &&
           device->reported && event->extra[0] <= INT64_MAX && event->extra[1] <= INT64_MAX &&
           (int64_t)event->extra[1] < vs_device_reserved(device);
}

static int by_number(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static int finish_points(struct looking *looking)
{
    struct vs_cut *cut = looking->cut;
    int error = cut->events == 0 ? 0 : add_point(cut, cut->events - 1);
    for (size_t slot = 0; slot < VS_DEVICE_SLOTS; slot++)
        for (size_t i = 0; i < PEAKS && error == 0; i++)
            if (looking->has_peak[slot][i])
                error = add_point(cut, looking->peaks[slot][i]);
    if (cut->point_count > 1)
        qsort(cut->points, cut->point_count, sizeof(*cut->points), by_number);
    return error;
}

/* ---- reading ------------------------------------------------------------------------------- */

static int look_at(struct looking *looking, const struct vs_sequenced_event *sequenced)
{
    const struct vs_event *event = &sequenced->event;
    struct vs_state *state = looking->state;
    bool of_block = event->kind == VS_KIND_FW_ALLOC || event->kind == VS_KIND_FW_FREE;
    const struct vs_device_state *device = of_block ? device_of(state, sequenced) : NULL;
    bool matters = is_failure(event) || (of_block && looks_at_blocks(state, event));
    struct besides before = {0}, after;
    if (device != NULL)
        before = besides_of(looking, device);
    bool goes = is_on_event(event) && is_idle(state, sequenced);
    int error = vs_state_event(state, sequenced);
    if (goes)
        goes = is_idle(state, sequenced);
    if (device != NULL) {
        after = besides_of(looking, device);
        goes = are_same(&before, &after);
    }
    cut_set(looking->cut->stays, looking->now, !goes);
    if (error == 0)
        error = looking->ooms.error;
    if (error == 0 && matters)
        error = note_point(looking);
    if (error == 0)
        error = note_old_gap(looking->cut, looking->now, event->kind);
    looking->now++;
    return error;
}

static int read_all(struct looking *looking)
{
    const struct vs_sequenced_event *events;
    size_t count;
    int got, error = 0;
    while (error == 0 && (got = vs_reader_next_block(looking->cut->reader, &events, &count)) != 0) {
        if (got < 0)
            return got;
        for (size_t i = 0; i < count && error == 0 && looking->now < looking->cut->events; i++)
            error = look_at(looking, &events[i]);
    }
    /* Chunks that turned out not to decode. */
    looking->cut->events = looking->now;
    return error;
}

static int prepare(struct looking *looking)
{
    const struct vs_reader *reader = looking->cut->reader;
    struct vs_names names = vs_reader_names(reader);
    int error = vs_state_create(&names, &looking->state);
    struct vs_subscriber subscriber = {.self = looking, .peak = on_peak};
    if (error == 0)
        error = vs_reader_prepare(reader, looking->state);
    if (error == 0)
        error = vs_state_subscribe(looking->state, &subscriber);
    return error != 0 ? error : vs_ooms_start(&looking->ooms, looking->state);
}

int cut_look(struct vs_cut *cut)
{
    struct looking *looking = calloc(1, sizeof(*looking));
    if (looking == NULL)
        return -ENOMEM;
    looking->cut = cut;
    int error = prepare(looking);
    if (error == 0)
        error = read_all(looking);
    if (error == 0)
        error = finish_points(looking);
    vs_ooms_release(&looking->ooms);
    vs_state_destroy(looking->state);
    free(looking);
    return error;
}

/* ---- what was asked for -------------------------------------------------------------------- */

int vs_cut_keep(struct vs_cut *cut, uint64_t from_ns, uint64_t to_ns)
{
    const struct vs_sequenced_event *events;
    struct vs_cut_window kept = {.first = UINT64_MAX};
    uint64_t now = 0;
    size_t count;
    int got;
    vs_reader_rewind(cut->reader);
    while ((got = vs_reader_next_block(cut->reader, &events, &count)) > 0)
        for (size_t i = 0; i < count && now < cut->events; i++, now++) {
            uint64_t time_ns = events[i].event.time_ns;
            if (time_ns >= from_ns && kept.first == UINT64_MAX)
                kept.first = now;
            if (time_ns <= to_ns)
                kept.end = now + 1;
        }
    cut->kept = kept;
    return got;
}
