/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the pinned segments of a layout: see fragmentation.h. */
#include "fragmentation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "segments.h"

/* Looking at every failure of a long run must stay affordable. */
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

int vs_fragmentation_of(const struct vs_state *state, const struct vs_device_state *device,
                        struct vs_fragmentation *out)
{
    struct vs_layout layout;
    int result = vs_layout_take(state, device, &layout);
    *out = (struct vs_fragmentation){.known = result == 0 && layout.known,
                                     .free_bytes = layout.free_bytes,
                                     .largest_free_bytes = layout.largest_free_bytes,
                                     .releasable_bytes = layout.releasable_bytes};
    if (out->known)
        result = describe(&layout, out);
    vs_layout_release(&layout);
    return result;
}

/* ---- at failures -------------------------------------------------------------------------- */

static void on_event(void *self, const struct vs_state *state,
                     const struct vs_sequenced_event *sequenced)
{
    struct vs_fragmentations *kept = self;
    const struct vs_device_state *device = vs_state_device(state, sequenced->event.device);
    if (sequenced->event.kind != VS_KIND_FW_OOM || device == NULL ||
        kept->walked_blocks + state->blocks.count > WALK_LIMIT)
        return;
    kept->walked_blocks += state->blocks.count;
    size_t at = kept->next++ % VS_FRAGMENTATIONS_KEPT;
    kept->items[at].sequence = sequenced->sequence;
    int result = vs_fragmentation_of(state, device, &kept->items[at].then);
    if (result != 0)
        kept->error = result;
}

int vs_fragmentations_start(struct vs_fragmentations *kept, struct vs_state *state)
{
    struct vs_subscriber subscriber = {
        .self = kept, .interest = VS_INTEREST_OUTCOME, .event = on_event};
    return vs_state_subscribe(state, &subscriber);
}

const struct vs_fragmentation *vs_fragmentations_at(const struct vs_fragmentations *kept,
                                                    uint64_t sequence)
{
    for (size_t i = 0; i < VS_FRAGMENTATIONS_KEPT; i++)
        if (kept->items[i].sequence == sequence && kept->items[i].then.known)
            return &kept->items[i].then;
    return NULL;
}
