/* SPDX-License-Identifier: Apache-2.0 */
/* Folds the events up to the moments asked for: see dump_segments.h. */
#include "dump_segments.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "replay/reader_facts.h"
#include "replay/segments.h"

enum { DEVICE_OFFSET = 128 };

struct moments {
    struct vs_reader *reader;
    struct vs_state *state;
    const char *when;
    bool json, at_marks;
    uint64_t peaks[VS_DEVICE_SLOTS]; /* sequence of a device's peak, 0 none */
    long printed;
};

static const char *const kinds[] = {[VS_SEGMENT_DIRECT] = "allocated",
                                    [VS_SEGMENT_PIECE] = "mapped",
                                    [VS_SEGMENT_RESERVED] = "reserved"};

/* ---- blocks and the holes between them --------------------------------------------------- */

enum part { PART_FREE, PART_ALLOCATED, PART_PENDING };
static const char *const parts[] = {
    [PART_FREE] = "free", [PART_ALLOCATED] = "allocated", [PART_PENDING] = "pending"};

typedef void take_part(void *self, uint64_t address, uint64_t bytes, enum part part,
                       uint32_t stack);

static void each_part(const struct vs_state *state, const struct vs_layout *layout,
                      const struct vs_segment *segment, take_part *take, void *self)
{
    uint64_t from = segment->address, end = segment->address + segment->size;
    if (segment->reserved_bytes < segment->size)
        end = from + segment->reserved_bytes;
    for (size_t i = 0; i < segment->block_count; i++) {
        const struct vs_segment_block *block = &layout->blocks[segment->first_block + i];
        const struct vs_site *site = vs_state_site(state, block->site);
        if (block->address > from)
            take(self, from, block->address - from, PART_FREE, 0);
        take(self, block->address, block->size, block->waits ? PART_PENDING : PART_ALLOCATED,
             site == NULL ? 0 : site->stack);
        from = block->address + block->size;
    }
    if (end > from)
        take(self, from, end - from, PART_FREE, 0);
}

/* ---- text ---------------------------------------------------------------------------------- */

static void print_part(void *self, uint64_t address, uint64_t bytes, enum part part, uint32_t stack)
{
    (void)self;
    printf("    0x%012" PRIx64 " %12" PRIu64 " %s", address, bytes, parts[part]);
    if (stack != 0)
        printf(" stack=%" PRIu32, stack);
    putchar('\n');
}

static void print_use(const struct vs_segment *segment)
{
    if (segment->waiting_bytes != 0)
        printf(", %" PRIu64 " pending", segment->waiting_bytes);
    if (segment->stream_known && segment->stream != 0)
        printf(", stream 0x%" PRIx64, segment->stream);
    if (segment->pool >= VS_CACHE_POOL_PRIVATE)
        printf(", %s %" PRIu32, vs_pool_is_graphs(segment->pool) ? "pool of capture" : "MemPool",
               vs_pool_number(segment->pool));
    else if (segment->pool == VS_CACHE_POOL_UNKNOWN)
        printf(", pool unknown");
    putchar('\n');
}

static void print_layout(const struct moments *moments, const struct vs_layout *layout,
                         const char *name, int device)
{
    printf("%s, event %" PRIu64 ", GPU %d: %zu segments, %zu blocks, %" PRIu64
           " bytes free in them, largest %" PRIu64 ", releasable %" PRIu64 "%s\n",
           name, moments->state->last_sequence, device, layout->count, layout->block_count,
           layout->free_bytes, layout->largest_free_bytes, layout->releasable_bytes,
           moments->state->cut ? " (uncertain: in a gap of a cut trace)"
           : layout->known     ? ""
                               : " (uncertain: blocks and segments do not fit together)");
    for (size_t i = 0; i < layout->count; i++) {
        const struct vs_segment *segment = &layout->segments[i];
        printf("  0x%012" PRIx64 " %12" PRIu64 " %s, %" PRIu64 " live, %" PRIu64 " free",
               segment->address, segment->size, kinds[segment->kind], segment->live_bytes,
               segment->free_bytes);
        print_use(segment);
        each_part(moments->state, layout, segment, print_part, NULL);
    }
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void set_bytes(json_t *object, const char *name, uint64_t bytes)
{
    json_object_set_new(object, name, json_integer((json_int_t)bytes));
}

static void add_part(void *self, uint64_t address, uint64_t bytes, enum part part, uint32_t stack)
{
    json_t *object = json_object();
    set_bytes(object, "address", address);
    set_bytes(object, "bytes", bytes);
    json_object_set_new(object, "state", json_string(parts[part]));
    if (stack != 0)
        json_object_set_new(object, "stack", json_integer(stack));
    json_array_append_new(self, object);
}

/* 0 the default one; n: first used by the n-th capture, or the framework's n-th MemPool. */
static json_t *pool_json(uint32_t pool)
{
    if (pool == VS_CACHE_POOL_UNSEEN || pool == VS_CACHE_POOL_UNKNOWN)
        return json_null();
    return json_integer(vs_pool_number(pool));
}

static json_t *segment_json(const struct vs_state *state, const struct vs_layout *layout,
                            const struct vs_segment *segment)
{
    json_t *object = json_object(), *blocks = json_array();
    set_bytes(object, "address", segment->address);
    set_bytes(object, "bytes", segment->size);
    json_object_set_new(object, "kind", json_string(kinds[segment->kind]));
    json_object_set_new(object, "stream",
                        segment->stream_known ? json_integer((json_int_t)segment->stream)
                                              : json_null());
    json_object_set_new(object, "pool", pool_json(segment->pool));
    json_object_set_new(object, "mem_pool", json_boolean(segment->pool >= VS_CACHE_POOL_USER));
    set_bytes(object, "reserved_bytes", segment->reserved_bytes);
    set_bytes(object, "live_bytes", segment->live_bytes);
    set_bytes(object, "pending_bytes", segment->waiting_bytes);
    set_bytes(object, "free_bytes", segment->free_bytes);
    set_bytes(object, "largest_free_block_bytes", segment->largest_free_bytes);
    set_bytes(object, "releasable_bytes", segment->releasable_bytes);
    each_part(state, layout, segment, add_part, blocks);
    json_object_set_new(object, "blocks", blocks);
    return object;
}

static void set_bands(json_t *object, const struct vs_state *state, int device)
{
    struct vs_bands bands;
    vs_state_bands(state, vs_state_device(state, device), &bands);
    json_object_set_new(object, "cached_bytes", json_integer(bands.cached));
    json_object_set_new(object, "pending_bytes",
                        bands.pending_known ? json_integer(bands.pending) : json_null());
    json_object_set_new(object, "private_pool_bytes",
                        bands.private_pool_known ? json_integer(bands.private_pool) : json_null());
}

static void print_json(const struct moments *moments, const struct vs_layout *layout,
                       const char *name, int device)
{
    json_t *object = json_object(), *segments = json_array(), *text = json_string(name);
    json_object_set_new(object, "at", text != NULL ? text : json_null()); /* NULL: not UTF-8 */
    set_bytes(object, "sequence", moments->state->last_sequence);
    json_object_set_new(object, "device", json_integer(device));
    json_object_set_new(object, "known", json_boolean(layout->known && !moments->state->cut));
    set_bands(object, moments->state, device);
    for (size_t i = 0; i < layout->count; i++)
        json_array_append_new(segments, segment_json(moments->state, layout, &layout->segments[i]));
    json_object_set_new(object, "segments", segments);
    json_dumpf(object, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(object);
}

/* ---- moments --------------------------------------------------------------------------------- */

static int print_device(const struct moments *moments, const struct vs_device_state *device,
                        const char *name)
{
    if (device == NULL || !device->framework_seen)
        return 0;
    struct vs_layout layout;
    int result = vs_layout_take(moments->state, device, &layout);
    if (result == 0)
        (moments->json ? print_json : print_layout)(moments, &layout, name, device->device);
    vs_layout_release(&layout);
    return result;
}

static int print_moment(struct moments *moments, const char *name)
{
    int result = 0;
    for (size_t i = 0; i < VS_DEVICE_SLOTS && result == 0; i++)
        result = print_device(moments, moments->state->devices[i], name);
    moments->printed++;
    return result;
}

static int look_for_mark(struct moments *moments, const struct vs_event *event)
{
    if (event->kind != VS_KIND_MARK)
        return 0;
    const char *text = vs_state_string(moments->state, (uint32_t)event->extra[0]);
    return fnmatch(moments->when, text, 0) == 0 ? print_moment(moments, text) : 0;
}

static int look_for_peak(struct moments *moments, uint64_t sequence)
{
    int result = 0;
    for (size_t i = 0; i < VS_DEVICE_SLOTS && result == 0; i++) {
        if (moments->peaks[i] == 0 || moments->peaks[i] != sequence)
            continue;
        result = print_device(moments, moments->state->devices[i], "peak");
        moments->printed++;
    }
    return result;
}

static void on_peak(void *self, const struct vs_state *state, const struct vs_device_state *device,
                    unsigned which)
{
    struct moments *moments = self;
    if (which & VS_PEAK_FRAMEWORK)
        moments->peaks[device->device + DEVICE_OFFSET] = state->last_sequence;
}

/* Folds all events from the beginning; `find_peak`: only to learn where it is. */
static int fold(struct moments *moments, bool find_peak)
{
    struct vs_names names = vs_reader_names(moments->reader);
    struct vs_subscriber watch = {.self = moments, .peak = on_peak};
    struct vs_sequenced_event event;
    int got = 0, result = vs_state_create(&names, &moments->state);
    if (result == 0 && find_peak)
        result = vs_state_subscribe(moments->state, &watch);
    while (result == 0 && (got = vs_reader_next(moments->reader, &event)) > 0) {
        result = vs_state_event(moments->state, &event);
        if (result == 0 && !find_peak)
            result = moments->at_marks ? look_for_mark(moments, &event.event)
                                       : look_for_peak(moments, event.sequence);
    }
    return result != 0 ? result : got;
}

long dump_segments(struct vs_reader *reader, const char *when, bool json)
{
    bool peak = strcmp(when, "peak") == 0, end = strcmp(when, "end") == 0;
    struct moments moments = {
        .reader = reader, .when = when, .json = json, .at_marks = !peak && !end};
    int result = 0;
    if (peak) {
        result = fold(&moments, true);
        vs_state_destroy(moments.state);
        moments.state = NULL;
        vs_reader_rewind(reader);
    }
    if (result == 0)
        result = fold(&moments, false);
    if (result == 0 && end)
        result = print_moment(&moments, "end");
    vs_state_destroy(moments.state);
    return result != 0 ? result : moments.printed;
}
