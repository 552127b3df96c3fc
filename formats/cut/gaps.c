/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the gaps are, which blocks came and went within one, and which other events
 * mean nothing there. A device's last
 * report in a gap stays with its block: the totals that the layer told there are
 * what the window behind it begins with.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cut_internal.h"
#include "replay/grow.h"
#include "replay/state.h"

enum { LEAST_GAP = 64, DEVICES = 256 };

/* ---- where they are ------------------------------------------------------------------- */

static int add_piece(struct vs_cut *cut, uint64_t first, uint64_t end)
{
    if (end <= first || end - first < LEAST_GAP)
        return 0;
    if (!vs_grow(&cut->gaps, &cut->gap_room, cut->gap_count + 1, sizeof(*cut->gaps)))
        return -ENOMEM;
    cut->gaps[cut->gap_count++] = (struct vs_cut_gap){.first = first, .end = end};
    return 0;
}

/* Without the gaps that the trace came with. */
static int add_gap(struct vs_cut *cut, uint64_t first, uint64_t end)
{
    int error = 0;
    for (size_t i = 0; i < cut->old_count && error == 0 && first < end; i++) {
        const struct vs_cut_window *old = &cut->old[i];
        if (old->end <= first || old->first >= end)
            continue;
        error = add_piece(cut, first, old->first);
        first = old->end;
    }
    return error == 0 ? add_piece(cut, first, end) : error;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static struct vs_cut_window window_of(const struct vs_cut *cut, size_t point, uint64_t radius)
{
    uint64_t at = cut->points[point];
    uint64_t behind = radius / 2 + VS_CUT_NEAR + 1, left = cut->events - at;
    return (struct vs_cut_window){at - least(at, radius), at + least(left, behind)};
}

/* Windows by their beginnings: those around the points, and the one that was asked for. */
struct windows {
    const struct vs_cut *cut;
    uint64_t radius;
    size_t point;
    bool kept_passed;
};

static bool next_window(struct windows *windows, struct vs_cut_window *window)
{
    const struct vs_cut *cut = windows->cut;
    const struct vs_cut_window *kept = &cut->kept;
    bool has_point = windows->point < cut->point_count;
    if (has_point)
        *window = window_of(cut, windows->point, windows->radius);
    if (!windows->kept_passed && kept->end > kept->first &&
        (!has_point || kept->first < window->first)) {
        windows->kept_passed = true;
        *window = *kept;
        return true;
    }
    windows->point++;
    return has_point;
}

uint64_t cut_covered(const struct vs_cut *cut, uint64_t radius)
{
    struct windows windows = {.cut = cut, .radius = radius};
    struct vs_cut_window window;
    uint64_t end = 0, events = 0;
    while (next_window(&windows, &window)) {
        uint64_t first = window.first > end ? window.first : end;
        events += window.end > first ? window.end - first : 0;
        end = window.end > end ? window.end : end;
    }
    return events;
}

/* What no window holds. */
static int lay(struct vs_cut *cut, uint64_t radius)
{
    struct windows windows = {.cut = cut, .radius = radius};
    struct vs_cut_window window;
    uint64_t end = 0;
    int error = 0;
    cut->gap_count = 0;
    while (error == 0 && next_window(&windows, &window)) {
        error = add_gap(cut, end, window.first);
        end = window.end > end ? window.end : end;
    }
    return error;
}

/* ---- what is taken out --------------------------------------------------------------------- */

/* The events of a block that came and went. */
struct pair {
    uint64_t made, freed;
    bool is;
};

struct taking {
    struct vs_cut *cut;
    struct vs_sizes made; /* in this gap, by address: the event's number */
    struct pair last[DEVICES];
    uint64_t now, latest_ns;
    size_t gap; /* the one at hand, or the next */
    int error;
};

static void take_pair(struct taking *taking, struct vs_cut_gap *gap, const struct pair *pair,
                      bool out)
{
    cut_set(taking->cut->out, pair->made, out);
    cut_set(taking->cut->out, pair->freed, out);
    gap->events = out ? gap->events + 2 : gap->events - 2;
}

static void take_block(struct taking *taking, struct vs_cut_gap *gap, const struct vs_event *event)
{
    struct pair *last = &taking->last[(uint8_t)event->device];
    bool stays = cut_bit(taking->cut->stays, taking->now);
    uint64_t *made = vs_sizes_get(&taking->made, event->address);
    struct pair pair = {.freed = taking->now};
    last->is = false;
    if (event->kind == VS_KIND_FW_FREE && made != NULL) {
        pair.made = *made;
        pair.is = !stays;
        vs_sizes_remove(&taking->made, event->address);
    } else if (event->kind == VS_KIND_FW_ALLOC && stays) {
        vs_sizes_remove(&taking->made, event->address);
    } else if (event->kind == VS_KIND_FW_ALLOC) {
        made = vs_sizes_put(&taking->made, event->address);
        if (made == NULL)
            taking->error = -ENOMEM;
        else
            *made = taking->now;
    }
    if (pair.is) {
        take_pair(taking, gap, &pair, true);
        *last = pair;
    }
}

static void end_gap(struct taking *taking, struct vs_cut_gap *gap)
{
    for (size_t i = 0; i < DEVICES; i++)
        if (taking->last[i].is)
            take_pair(taking, gap, &taking->last[i], false);
    memset(taking->last, 0, sizeof(taking->last));
    vs_sizes_release(&taking->made);
    gap->to_ns = taking->latest_ns;
    taking->cut->taken_out += gap->events;
    taking->gap++;
}

static void take(struct taking *taking, const struct vs_event *event)
{
    struct vs_cut *cut = taking->cut;
    struct vs_cut_gap *gap = taking->gap < cut->gap_count ? &cut->gaps[taking->gap] : NULL;
    if (gap != NULL && taking->now == gap->end) {
        end_gap(taking, gap);
        gap = taking->gap < cut->gap_count ? &cut->gaps[taking->gap] : NULL;
    }
    bool inside = gap != NULL && taking->now >= gap->first;
    if (inside && taking->now == gap->first)
        gap->from_ns = taking->now == 0 ? event->time_ns : taking->latest_ns;
    if (event->time_ns > taking->latest_ns)
        taking->latest_ns = event->time_ns;
    if (inside && (event->kind == VS_KIND_FW_ALLOC || event->kind == VS_KIND_FW_FREE)) {
        take_block(taking, gap, event);
    } else if (inside && !cut_bit(cut->stays, taking->now)) {
        cut_set(cut->out, taking->now, true);
        gap->events++;
    }
    taking->now++;
}

static int take_all(struct vs_cut *cut, struct taking *taking)
{
    const struct vs_sequenced_event *events;
    size_t count;
    int got;
    vs_reader_rewind(cut->reader);
    while (taking->error == 0 && (got = vs_reader_next_block(cut->reader, &events, &count)) != 0) {
        if (got < 0)
            return got;
        for (size_t i = 0; i < count && taking->error == 0 && taking->now < cut->events; i++)
            take(taking, &events[i].event);
    }
    return taking->error;
}

/* Gaps that nothing was taken out of are none. */
static void drop_empty(struct vs_cut *cut)
{
    size_t kept = 0;
    for (size_t i = 0; i < cut->gap_count; i++)
        if (cut->gaps[i].events != 0)
            cut->gaps[kept++] = cut->gaps[i];
    cut->gap_count = kept;
}

int cut_lay_gaps(struct vs_cut *cut, uint64_t radius)
{
    struct taking *taking = calloc(1, sizeof(*taking));
    if (taking == NULL)
        return -ENOMEM;
    taking->cut = cut;
    cut->taken_out = 0;
    memset(cut->out, 0, cut->events / 8 + 1);
    int error = lay(cut, radius);
    if (error == 0)
        error = take_all(cut, taking);
    if (error == 0)
        drop_empty(cut);
    vs_sizes_release(&taking->made);
    free(taking);
    return error;
}
