/* SPDX-License-Identifier: Apache-2.0 */
/* Takes live sets and segments at the chosen instants: see html_sets.h. */
#include "html_sets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay/grow.h"

enum { BLOCKS_IN_ALL = 120000, BLOCKS_LEAST = 2000, FIRST_JOINED = 4096 };

int vs_html_sets_want(struct vs_html_sets *sets, int8_t device, uint64_t sequence, uint64_t time_ns,
                      unsigned reason)
{
    for (size_t i = 0; i < sets->count; i++) {
        struct vs_html_set *set = &sets->items[i];
        if (set->device == device && set->sequence == sequence) {
            set->reasons = (uint8_t)(set->reasons | reason);
            return 0;
        }
    }
    if (!vs_grow(&sets->items, &sets->room, sets->count + 1, sizeof(*sets->items)))
        return -ENOMEM;
    sets->items[sets->count++] = (struct vs_html_set){
        .sequence = sequence, .time_ns = time_ns, .device = device, .reasons = (uint8_t)reason};
    return 0;
}

static int by_sequence(const void *a, const void *b)
{
    const struct vs_html_set *left = a, *right = b;
    if (left->sequence != right->sequence)
        return left->sequence < right->sequence ? -1 : 1;
    return (left->device > right->device) - (left->device < right->device);
}

/* ---- what is live ------------------------------------------------------------------------- */

static int by_bytes(const void *a, const void *b)
{
    const struct vs_html_live *left = a, *right = b;
    if (left->bytes != right->bytes)
        return left->bytes > right->bytes ? -1 : 1;
    return (left->site > right->site) - (left->site < right->site);
}

/* Segments are made of what the framework hands out, which is counted by itself. */
static bool is_shown(const struct vs_state *state, const struct vs_site *site, int8_t device)
{
    const struct vs_device_state *of = vs_state_device(state, device);
    return site->device == device && site->layer != VS_LAYER_HOST &&
           !(site->segment && vs_device_top_layer(of) == VS_LAYER_FRAMEWORK);
}

static int take_live(const struct vs_html_sets *sets, struct vs_html_set *set)
{
    const struct vs_state *state = sets->state;
    size_t count = 0, room = 0;
    struct vs_html_live *live = NULL;
    for (size_t i = 0; i < sets->sites.count; i++) {
        const struct vs_site_stats *stats = &sets->sites.stats[i];
        if (stats->live_bytes == 0 || !is_shown(state, &state->sites[i], set->device))
            continue;
        if (!vs_grow(&live, &room, count + 1, sizeof(*live))) {
            free(live);
            return -ENOMEM;
        }
        live[count++] =
            (struct vs_html_live){(uint32_t)(i + 1), stats->live_bytes, stats->live_count};
        set->total_bytes += stats->live_bytes;
        set->total_count += stats->live_count;
    }
    set->total_sites = count;
    if (count != 0)
        qsort(live, count, sizeof(*live), by_bytes);
    size_t most = (set->reasons & VS_HTML_KEY) != 0 ? VS_HTML_KEY_SITES : VS_HTML_SET_SITES;
    if (count > most)
        count = most;
    while (count > 0 && live[count - 1].bytes < (int64_t)sets->export->min_bytes)
        count--;
    set->live = live;
    set->live_count = count;
    return 0;
}

/* ---- segments ------------------------------------------------------------------------------ */

/* Blocks of a segment, small ones side by side as one. Counts only while `out` is NULL. */
static size_t join_blocks(const struct vs_layout *layout, const struct vs_segment *segment,
                          uint64_t joined_below, struct vs_html_block *out)
{
    struct vs_html_block run = {0};
    size_t count = 0;
    uint64_t largest = 0;
    for (size_t i = 0; i < segment->block_count; i++) {
        const struct vs_segment_block *block = &layout->blocks[segment->first_block + i];
        bool small = block->size < joined_below;
        bool goes_on = small && largest != 0 && largest < joined_below &&
                       block->address - (run.address + run.span) < joined_below;
        if (!goes_on) {
            run = (struct vs_html_block){.address = block->address};
            largest = 0;
            count++;
        }
        run.span = block->address + block->size - run.address;
        run.bytes += block->size;
        run.count++;
        if (block->size > largest) {
            largest = block->size;
            run.site = block->site;
        }
        if (out != NULL)
            out[count - 1] = run;
    }
    return count;
}

static size_t count_blocks(const struct vs_layout *layout, uint64_t joined_below)
{
    size_t count = 0;
    for (size_t i = 0; i < layout->count; i++)
        count += join_blocks(layout, &layout->segments[i], joined_below, NULL);
    return count;
}

static int keep_layout(const struct vs_html_sets *sets, struct vs_html_set *set,
                       struct vs_layout *layout)
{
    size_t count = count_blocks(layout, 0);
    while (count > sets->blocks_each && set->joined_below < 1ULL << 40) {
        set->joined_below = set->joined_below == 0 ? FIRST_JOINED : set->joined_below * 2;
        count = count_blocks(layout, set->joined_below);
    }
    set->blocks = malloc((count + 1) * sizeof(*set->blocks));
    if (set->blocks == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < layout->count; i++) {
        struct vs_segment *segment = &layout->segments[i];
        size_t made =
            join_blocks(layout, segment, set->joined_below, set->blocks + set->block_count);
        segment->first_block = set->block_count;
        segment->block_count = made;
        set->block_count += made;
    }
    set->segments = layout->segments;
    set->segment_count = layout->count;
    layout->segments = NULL;
    return 0;
}

static int take_layout(const struct vs_html_sets *sets, struct vs_html_set *set,
                       const struct vs_device_state *device)
{
    struct vs_layout layout;
    int result = vs_layout_take(sets->state, device, &layout);
    set->layout_known = result == 0 && layout.known;
    if (set->layout_known)
        result = keep_layout(sets, set, &layout);
    vs_layout_release(&layout);
    if (result == 0)
        result = vs_fragmentation_of(sets->state, device, &set->fragmentation);
    return result;
}

/* ---- the second reading -----------------------------------------------------------------------
 */

static int take_set(const struct vs_html_sets *sets, struct vs_html_set *set)
{
    const struct vs_device_state *device = vs_state_device(sets->state, set->device);
    if (device == NULL)
        return 0;
    set->taken = true;
    int result = take_live(sets, set);
    if (result == 0 && (set->reasons & VS_HTML_KEY) != 0)
        result = take_layout(sets, set, device);
    return result;
}

/* Takes what is wanted of the moment before the event of this sequence. */
static int take_before(struct vs_html_sets *sets, uint64_t sequence)
{
    int result = 0;
    while (result == 0 && sets->next < sets->count && sets->items[sets->next].sequence < sequence)
        result = take_set(sets, &sets->items[sets->next++]);
    return result;
}

static int fold(void *self, const struct vs_sequenced_event *event)
{
    struct vs_html_sets *sets = self;
    if (event->event.time_ns > sets->export->to_ns)
        return 1;
    int result = take_before(sets, event->sequence);
    return result != 0 ? result : vs_state_event(sets->state, event);
}

int vs_html_sets_take(struct vs_html_sets *sets, struct vs_export *export)
{
    size_t keys = 0;
    for (size_t i = 0; i < sets->count; i++)
        keys += (sets->items[i].reasons & VS_HTML_KEY) != 0;
    sets->blocks_each = BLOCKS_IN_ALL / (keys + 1);
    if (sets->blocks_each < BLOCKS_LEAST)
        sets->blocks_each = BLOCKS_LEAST;
    sets->export = export;
    if (sets->count != 0)
        qsort(sets->items, sets->count, sizeof(*sets->items), by_sequence);
    int result = vs_export_state(export, &sets->state);
    if (result == 0)
        result = vs_sites_start(&sets->sites, sets->state);
    if (result == 0)
        result = vs_export_each(export, fold, sets);
    while (result == 0 && sets->next < sets->count)
        result = take_set(sets, &sets->items[sets->next++]);
    return result != 0 ? result : sets->sites.error;
}

void vs_html_sets_release(struct vs_html_sets *sets)
{
    for (size_t i = 0; i < sets->count; i++) {
        free(sets->items[i].live);
        free(sets->items[i].segments);
        free(sets->items[i].blocks);
    }
    free(sets->items);
    vs_sites_release(&sets->sites);
    if (sets->state != NULL)
        vs_state_destroy(sets->state);
    *sets = (struct vs_html_sets){0};
}
