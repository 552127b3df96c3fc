/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the pinned segments of a layout: see fragmentation.h. */
#include "fragmentation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Looking at every failure and at every new peak of a long run must stay affordable. */
#define WALK_LIMIT 20000000ULL
/* ---- whose blocks --------------------------------------------------------------------- */

struct share {
    uint32_t site;
    uint64_t bytes;
};

static int by_site(const void *a, const void *b)
{
    const struct share *left = a, *right = b;
    return (left->site > right->site) - (left->site < right->site);
}

static int by_bytes(const void *a, const void *b)
{
    const struct share *left = a, *right = b;
    if (left->bytes != right->bytes)
        return left->bytes < right->bytes ? 1 : -1;
    return by_site(a, b);
}

/* One share a site; returns how many. */
static size_t sum_up(struct share *shares, size_t count)
{
    size_t sites = 0;
    qsort(shares, count, sizeof(*shares), by_site);
    for (size_t i = 0; i < count; i++) {
        if (sites > 0 && shares[sites - 1].site == shares[i].site)
            shares[sites - 1].bytes += shares[i].bytes;
        else
            shares[sites++] = shares[i];
    }
    qsort(shares, sites, sizeof(*shares), by_bytes);
    return sites;
}

static int find_sites(const struct vs_layout *layout, const struct vs_segment *segment,
                      struct vs_pinned *pinned)
{
    struct share *shares = malloc(segment->block_count * sizeof(*shares));
    if (shares == NULL)
        return -ENOMEM;
    size_t count = 0;
    for (size_t i = 0; i < segment->block_count; i++) {
        const struct vs_segment_block *block = &layout->blocks[segment->first_block + i];
        if (!block->waits)
            shares[count++] = (struct share){block->site, block->size};
    }
    pinned->site_count = sum_up(shares, count);
    for (size_t i = 0; i < pinned->site_count && i < VS_PINNED_SITES; i++)
        pinned->sites[i] = shares[i].site;
    free(shares);
    return 0;
}

/* ---- pinned segments -------------------------------------------------------------------- */

static bool is_pinned(const struct vs_segment *segment)
{
    return segment->live_count != 0 && segment->live_bytes < vs_segment_held(segment);
}

/* Indices of the segments that hold most, in their order; returns how many. */
static size_t rank(const struct vs_layout *layout, struct vs_fragmentation *out,
                   size_t best[VS_PINNED_KEPT])
{
    size_t kept = 0;
    for (size_t i = 0; i < layout->count; i++) {
        uint64_t held = vs_segment_held(&layout->segments[i]);
        if (!is_pinned(&layout->segments[i]))
            continue;
        out->pinned_count++;
        out->pinned_held_bytes += held;
        size_t at = kept;
        while (at > 0 && vs_segment_held(&layout->segments[best[at - 1]]) < held)
            at--;
        if (at == VS_PINNED_KEPT)
            continue;
        kept += kept < VS_PINNED_KEPT;
        memmove(best + at + 1, best + at, (kept - at - 1) * sizeof(*best));
        best[at] = i;
    }
    return kept;
}

static int describe(const struct vs_layout *layout, struct vs_fragmentation *out)
{
    size_t best[VS_PINNED_KEPT];
    int result = 0;
    out->kept = rank(layout, out, best);
    for (size_t i = 0; i < out->kept && result == 0; i++) {
        const struct vs_segment *segment = &layout->segments[best[i]];
        out->pinned[i] = (struct vs_pinned){.address = segment->address,
                                            .bytes = segment->size,
                                            .live_bytes = segment->live_bytes,
                                            .live_count = segment->live_count,
                                            .held_bytes = vs_segment_held(segment)};
        result = find_sites(layout, segment, &out->pinned[i]);
    }
    return result;
}

/* ---- by pool and stream ----------------------------------------------------------------- */

static bool is_of(const struct vs_cache_part *part, const struct vs_segment *segment)
{
    return part->pool == segment->pool && part->stream_known == segment->stream_known &&
           part->stream == segment->stream;
}

static struct vs_cache_part *part_of(struct vs_fragmentation *out, const struct vs_segment *segment)
{
    for (size_t i = 0; i < out->part_count; i++)
        if (is_of(&out->parts[i], segment))
            return &out->parts[i];
    if (out->part_count == VS_CACHE_PARTS_KEPT) {
        out->parts_left_out++;
        return NULL;
    }
    struct vs_cache_part *part = &out->parts[out->part_count++];
    *part = (struct vs_cache_part){.pool = segment->pool,
                                   .made_by = segment->pool_site,
                                   .stream = segment->stream,
                                   .stream_known = segment->stream_known};
    return part;
}

static int by_reserved(const void *a, const void *b)
{
    const struct vs_cache_part *left = a, *right = b;
    if (left->reserved_bytes != right->reserved_bytes)
        return left->reserved_bytes < right->reserved_bytes ? 1 : -1;
    if (left->pool != right->pool)
        return left->pool < right->pool ? -1 : 1;
    return (left->stream > right->stream) - (left->stream < right->stream);
}

static void divide(const struct vs_layout *layout, struct vs_fragmentation *out)
{
    for (size_t i = 0; i < layout->count; i++) {
        const struct vs_segment *segment = &layout->segments[i];
        struct vs_cache_part *part = part_of(out, segment);
        if (segment->block_count == 0)
            out->unsplit_free_bytes += segment->free_bytes;
        if (part == NULL)
            continue;
        part->segments++;
        part->reserved_bytes += segment->reserved_bytes;
        part->live_bytes += segment->live_bytes;
        part->waiting_bytes += segment->waiting_bytes;
        part->free_bytes += segment->free_bytes;
        part->releasable_bytes += segment->releasable_bytes;
        if (segment->largest_free_bytes > part->largest_free_bytes)
            part->largest_free_bytes = segment->largest_free_bytes;
    }
    qsort(out->parts, out->part_count, sizeof(*out->parts), by_reserved);
}

int vs_fragmentation_of(const struct vs_state *state, const struct vs_device_state *device,
                        struct vs_fragmentation *out)
{
    struct vs_layout layout;
    int result = vs_layout_take(state, device, &layout);
    *out = (struct vs_fragmentation){.known = result == 0 && layout.known,
                                     .free_bytes = layout.free_bytes,
                                     .largest_free_bytes = layout.largest_free_bytes,
                                     .releasable_bytes = layout.releasable_bytes,
                                     .waiting_bytes = layout.waiting_bytes};
    if (out->known) {
        memcpy(out->holes, layout.holes, sizeof(out->holes));
        divide(&layout, out);
        result = describe(&layout, out);
    }
    vs_layout_release(&layout);
    return result;
}

/* ---- at failures -------------------------------------------------------------------------- */

static void look_at_failure(struct vs_fragmentations *kept, const struct vs_state *state,
                            const struct vs_device_state *device, uint64_t sequence)
{
    if (kept->walked_blocks + state->blocks.count > WALK_LIMIT)
        return;
    kept->walked_blocks += state->blocks.count;
    size_t at = kept->next++ % VS_FRAGMENTATIONS_KEPT;
    kept->items[at].sequence = sequence;
    int result = vs_fragmentation_of(state, device, &kept->items[at].then);
    if (result != 0)
        kept->error = result;
}

/* ---- at the highest reserve ------------------------------------------------------------------ */

static void look_at_peak(struct vs_fragmentations *kept, const struct vs_state *state,
                         const struct vs_device_state *device)
{
    struct vs_fragmentation **slot = &kept->at_reserved_peak[device->device + VS_DEVICE_OFFSET];
    kept->due[device->device + VS_DEVICE_OFFSET] = false;
    if (*slot == NULL)
        *slot = calloc(1, sizeof(**slot));
    if (*slot == NULL) {
        kept->error = -ENOMEM;
        return;
    }
    kept->walked_at_peaks += state->blocks.count;
    (*slot)->known = false;
    if (kept->walked_at_peaks > WALK_LIMIT || vs_device_reserved(device) != device->reserved_peak)
        return;
    int result = vs_fragmentation_of(state, device, *slot);
    if (result != 0)
        kept->error = result;
}

/* A segment is seen with the block that it was taken for. */
static void on_peak(void *self, const struct vs_state *state, const struct vs_device_state *device,
                    unsigned which)
{
    struct vs_fragmentations *kept = self;
    (void)state;
    if (which & VS_PEAK_RESERVED && device->framework_seen)
        kept->due[device->device + VS_DEVICE_OFFSET] = true;
}

void vs_fragmentations_finish(struct vs_fragmentations *kept, const struct vs_state *state)
{
    for (size_t i = 0; i < VS_DEVICE_SLOTS; i++)
        if (kept->due[i])
            look_at_peak(kept, state, state->devices[i]);
}

/* ---- public ---------------------------------------------------------------------------------- */

static void on_event(void *self, const struct vs_state *state,
                     const struct vs_sequenced_event *sequenced)
{
    struct vs_fragmentations *kept = self;
    uint8_t kind = sequenced->event.kind;
    if (kind != VS_KIND_FW_OOM && kind != VS_KIND_FW_ALLOC)
        return;
    const struct vs_device_state *device = vs_state_device(state, sequenced->event.device);
    if (device == NULL)
        return;
    if (kind == VS_KIND_FW_OOM)
        look_at_failure(kept, state, device, sequenced->sequence);
    else if (kept->due[device->device + VS_DEVICE_OFFSET])
        look_at_peak(kept, state, device);
}

const struct vs_fragmentation *vs_fragmentation_at_peak(const struct vs_fragmentations *kept,
                                                        const struct vs_device_state *device)
{
    const struct vs_fragmentation *then = kept->at_reserved_peak[device->device + VS_DEVICE_OFFSET];
    return then != NULL && then->known ? then : NULL;
}

int vs_fragmentations_start(struct vs_fragmentations *kept, struct vs_state *state)
{
    struct vs_subscriber subscriber = {.self = kept,
                                       .interest = VS_INTEREST_OUTCOME | VS_INTEREST_BLOCKS,
                                       .event = on_event,
                                       .peak = on_peak};
    for (size_t i = 0; i < VS_DEVICE_SLOTS; i++) /* a window begins: peaks are told already */
        if (state->devices[i] != NULL && state->devices[i]->framework_seen)
            kept->due[i] = true;
    return vs_state_subscribe(state, &subscriber);
}

void vs_fragmentations_release(struct vs_fragmentations *kept)
{
    for (size_t i = 0; i < VS_DEVICE_SLOTS; i++)
        free(kept->at_reserved_peak[i]);
}

const struct vs_fragmentation *vs_fragmentations_at(const struct vs_fragmentations *kept,
                                                    uint64_t sequence)
{
    for (size_t i = 0; i < VS_FRAGMENTATIONS_KEPT; i++)
        if (kept->items[i].sequence == sequence && kept->items[i].then.known)
            return &kept->items[i].then;
    return NULL;
}
