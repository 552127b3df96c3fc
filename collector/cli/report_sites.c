/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which places of the program hold the memory, at the peak and at the end. With
 * stacks: by line (or --by), each with its heaviest stack. Without: by call and
 * module, in one table.
 */
#include <stdlib.h>

#include "report_sections.h"

enum { TOP_PLACES = 8, TOP_CALLS = 10, NAME_COLUMNS = 50, LEAST_SHARE = 200 };

/* ---- which groups ----------------------------------------------------------------------- */

/* A list of groups: those of one layer of one device, or of one layer of all (-1). */
struct listing {
    const struct vs_group **groups;
    size_t count;
    bool at_end; /* what is held at the end, else at the peak */
};

static int64_t held(const struct vs_group *group, bool at_end)
{
    return at_end ? group->stats.live_bytes : group->stats.peak_bytes;
}

static const struct vs_site *site_of(const struct report *report, const struct vs_group *group)
{
    return vs_places_site(report->places, &report->places->items[group->place]);
}

/* Segments are where a cache keeps its blocks, not what holds memory beside it. */
static bool belongs(const struct report *report, const struct vs_group *group, int device,
                    enum vs_layer layer)
{
    const struct vs_site *site = site_of(report, group);
    const struct vs_device_state *of = vs_state_device(report->summary->state, site->device);
    bool cache = site->segment && of != NULL && of->framework_seen;
    return site->layer == layer && (device < 0 || site->device == device) &&
           !report_hides_device(report, site->device) && !cache;
}

static int by_peak(const void *a, const void *b)
{
    const struct vs_group *left = *(const struct vs_group *const *)a,
                          *right = *(const struct vs_group *const *)b;
    if (left->stats.peak_bytes != right->stats.peak_bytes)
        return left->stats.peak_bytes < right->stats.peak_bytes ? 1 : -1;
    if (left->stats.live_bytes != right->stats.live_bytes)
        return left->stats.live_bytes < right->stats.live_bytes ? 1 : -1;
    return (left->place > right->place) - (left->place < right->place);
}

static int by_end(const void *a, const void *b)
{
    const struct vs_group *left = *(const struct vs_group *const *)a,
                          *right = *(const struct vs_group *const *)b;
    if (left->stats.live_bytes != right->stats.live_bytes)
        return left->stats.live_bytes < right->stats.live_bytes ? 1 : -1;
    return by_peak(a, b);
}

static struct listing collect(const struct report *report, int device, enum vs_layer layer,
                              bool at_end)
{
    const struct vs_places *places = report->places;
    struct listing list = {.groups = calloc(places->group_count + 1, sizeof(*list.groups)),
                           .at_end = at_end};
    for (size_t i = 0; list.groups != NULL && i < places->group_count; i++)
        if (held(&places->groups[i], at_end) != 0 &&
            belongs(report, &places->groups[i], device, layer))
            list.groups[list.count++] = &places->groups[i];
    if (list.count > 1)
        qsort(list.groups, list.count, sizeof(*list.groups), at_end ? by_end : by_peak);
    return list;
}

const struct vs_group *report_heaviest(const struct report *report, int device, enum vs_layer layer)
{
    const struct vs_places *places = report->places;
    const struct vs_group *most = NULL;
    for (size_t i = 0; i < places->group_count; i++) {
        const struct vs_group *group = &places->groups[i];
        if (places->items[group->place].has_stack && group->stats.peak_bytes > 0 &&
            belongs(report, group, device, layer) &&
            (most == NULL || group->stats.peak_bytes > most->stats.peak_bytes))
            most = group;
    }
    return most;
}

/* ---- with stacks --------------------------------------------------------------------------- */

static struct page_text share_text(int64_t part, int64_t whole)
{
    struct page_text out;
    if (whole > 0)
        snprintf(out.text, sizeof(out.text), "%.1f %%", 100.0 * (double)part / (double)whole);
    else
        snprintf(out.text, sizeof(out.text), "-");
    return out;
}

static void print_row(const struct page *page, const char *name, const struct vs_site_stats *stats,
                      bool at_end, int64_t whole)
{
    int64_t count = at_end ? stats->live_count : stats->peak_count;
    int64_t bytes = at_end ? stats->live_bytes : stats->peak_bytes;
    int columns = NAME_COLUMNS;
    for (const char *at = name; *at != 0; at++)
        columns += ((unsigned char)*at & 0xc0U) == 0x80U; /* bytes that show as no column */
    fprintf(page->out, "  %-*s %10s %8s %9s %11s\n", columns, name, size_text(bytes).text,
            share_text(bytes, whole).text, page_count(count > 0 ? (uint64_t)count : 0).text,
            size_text(at_end ? stats->peak_bytes : stats->live_bytes).text);
}

static void print_columns(const struct page *page, const struct report *report, const char *heading,
                          bool at_end, const char *blocks)
{
    char other[24];
    report_heading(page, heading);
    snprintf(other, sizeof(other), "at %s", at_end ? "peak" : last_moment(report->summary));
    fprintf(page->out, "  %-*s %10s %8s %9s %11s\n", NAME_COLUMNS, "", "bytes", "share", blocks,
            other);
}

static bool was_listed(const struct listing *before, size_t shown, const struct vs_group *group)
{
    for (size_t i = 0; before != NULL && i < before->count && i < shown; i++)
        if (before->groups[i] == group)
            return true;
    return false;
}

static void print_group(const struct page *page, const struct report *report,
                        const struct vs_group *group, const struct listing *list, int64_t whole,
                        bool with_stacks)
{
    const struct vs_place *place = &report->places->items[group->place];
    char title[256];
    report_place_title(report, place, report->options->by, title, sizeof(title));
    fprintf(page->out, "%s", page_bold(page));
    print_row(page, page_fit(title, NAME_COLUMNS).text, &group->stats, list->at_end, whole);
    fprintf(page->out, "%s", page_plain(page));
    if (with_stacks)
        report_print_holders(page, report, group, list->at_end, whole);
}

static size_t rows_of(const struct report *report)
{
    return report->options->top != 0 ? report->options->top : TOP_PLACES;
}

/* Without --top: what is worth a line of the page. */
static bool is_worth(const struct report *report, const struct vs_group *group, bool at_end,
                     int64_t whole)
{
    return report->options->top != 0 || llabs(held(group, at_end)) >= whole / LEAST_SHARE;
}

/* `before`: what was listed above with its stacks. */
static void print_list(const struct page *page, const struct report *report,
                       const struct listing *list, int64_t whole, const struct listing *before)
{
    struct vs_site_stats rest = {0};
    size_t shown = 0, omitted = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct vs_group *group = list->groups[i];
        if (shown < rows_of(report) && !report_is_small(report, &group->stats) &&
            is_worth(report, group, list->at_end, whole)) {
            bool repeated = was_listed(before, rows_of(report), group);
            print_group(page, report, group, list, whole, !repeated);
            shown++;
        } else {
            vs_site_stats_add(&rest, &group->stats);
            omitted++;
        }
    }
    if (omitted == 0)
        return;
    char name[NAME_COLUMNS];
    snprintf(name, sizeof(name), "… %zu more %s%s", omitted,
             report->options->by == VS_BY_STACK ? "stack" : report_group_name(report->options->by),
             plural(omitted));
    print_row(page, name, &rest, list->at_end, whole);
}

static int64_t sum_of(const struct listing *list)
{
    int64_t sum = 0;
    for (size_t i = 0; i < list->count; i++)
        sum += held(list->groups[i], list->at_end);
    return sum;
}

struct titles {
    const char *peak, *end; /* with room for a size */
    const char *blocks;
};

/* Whether the columns of what is listed at the peak say all that a list of the end would. */
static bool says_all(const struct listing *peak, const struct listing *end, size_t rows,
                     bool ranked)
{
    for (size_t i = 0; i < end->count; i++) {
        const struct vs_group *group = end->groups[i];
        if (!was_listed(peak, rows, group) ||
            (ranked && group->stats.live_bytes != group->stats.peak_bytes))
            return false;
    }
    return true;
}

/* What was held at the peak and, where the column "at end" does not say it all, at the end. */
static void print_both(const struct page *page, const struct report *report, int device,
                       enum vs_layer layer, const struct titles *titles)
{
    struct listing peak = collect(report, device, layer, false);
    struct listing end = collect(report, device, layer, true);
    char heading[200], by[40];
    snprintf(by, sizeof(by), "by %s", report_group_name(report->options->by));
    if (peak.count != 0) {
        snprintf(heading, sizeof(heading), "%s: %s, %s", titles->peak,
                 size_text(sum_of(&peak)).text, by);
        print_columns(page, report, heading, false, titles->blocks);
        print_list(page, report, &peak, sum_of(&peak), NULL);
    }
    bool ranked = layer == VS_LAYER_FRAMEWORK;
    if (end.count != 0 && !says_all(&peak, &end, rows_of(report), ranked)) {
        snprintf(heading, sizeof(heading), "%s: %s, %s", titles->end, size_text(sum_of(&end)).text,
                 by);
        print_columns(page, report, heading, true, titles->blocks);
        print_list(page, report, &end, sum_of(&end), &peak);
    }
    free(peak.groups);
    free(end.groups);
}

static const char *moment_phrase(const struct vs_summary *summary)
{
    return summary->windowed   ? "at the window's end"
           : summary->complete ? "at the end"
                               : "at the cut";
}

static void print_device_places(const struct page *page, const struct report *report,
                                const struct vs_device_state *device)
{
    char peak[160], end[160];
    const char *framework = report_framework_name(report->summary, device);
    const char *moment = moment_phrase(report->summary);
    struct titles titles = {peak, end, "count"};
    if (device->framework_seen) {
        snprintf(peak, sizeof(peak), "GPU %d, allocated by %s at the peak", device->device,
                 framework);
        snprintf(end, sizeof(end), "GPU %d, still allocated by %s %s", device->device, framework,
                 moment);
        titles.blocks = "blocks";
        print_both(page, report, device->device, VS_LAYER_FRAMEWORK, &titles);
        titles.blocks = "count";
    }
    char beside[96] = "";
    if (device->framework_seen)
        snprintf(beside, sizeof(beside), " beside %s", framework);
    snprintf(peak, sizeof(peak), "GPU %d, asked of the driver%s at the peak", device->device,
             beside);
    snprintf(end, sizeof(end), "GPU %d, still asked of the driver%s %s", device->device, beside,
             moment);
    print_both(page, report, device->device, VS_LAYER_DRIVER, &titles);
}

static void print_with_stacks(const struct page *page, const struct report *report)
{
    const struct vs_state *state = report->summary->state;
    for (size_t i = DEVICE_OFFSET; i < VS_DEVICE_SLOTS; i++)
        if (is_device_used(state->devices[i]) &&
            !report_hides_device(report, state->devices[i]->device))
            print_device_places(page, report, state->devices[i]);
    char end[120];
    snprintf(end, sizeof(end), "Host memory still pinned %s", moment_phrase(report->summary));
    struct titles titles = {"Host memory pinned at the peak", end, "count"};
    print_both(page, report, -1, VS_LAYER_HOST, &titles);
}

/* ---- without stacks ----------------------------------------------------------------------------
 */

static int by_layer(const void *a, const void *b)
{
    const struct vs_place *left = *(const struct vs_place *const *)a,
                          *right = *(const struct vs_place *const *)b;
    if (left->stats.peak_bytes != right->stats.peak_bytes)
        return left->stats.peak_bytes < right->stats.peak_bytes ? 1 : -1;
    return (left->site > right->site) - (left->site < right->site);
}

static void print_call_row(const struct page *page, const struct report *report,
                           const struct vs_place *place)
{
    const struct vs_site *site = vs_places_site(report->places, place);
    char what[96], device[16] = "   -";
    report_place_title(report, place, VS_BY_LINE, what, sizeof(what));
    if (site->device >= 0)
        snprintf(device, sizeof(device), "%4d", site->device);
    fprintf(page->out, "  %-9s %s %10s %9s %10s  %.48s\n", report_layer_name(site->layer), device,
            size_text(place->stats.peak_bytes).text,
            page_count(place->stats.peak_count > 0 ? (uint64_t)place->stats.peak_count : 0).text,
            size_text(place->stats.live_bytes).text, what);
}

static bool is_in_table(const struct report *report, const struct vs_place *place,
                        enum vs_layer layer)
{
    const struct vs_site *site = vs_places_site(report->places, place);
    return site->layer == layer && !report_hides_device(report, site->device) &&
           !report_is_small(report, &place->stats) &&
           (place->stats.peak_bytes != 0 || place->stats.live_bytes != 0);
}

static void print_table(const struct page *page, const struct report *report,
                        const struct vs_place *const *places, size_t count)
{
    size_t rows = report->options->top != 0 ? report->options->top : TOP_CALLS;
    report_heading(page, "Whose, when each layer held most");
    fprintf(page->out, "  %-9s %4s %10s %9s %7s%s  %s\n", "layer", "GPU", "bytes", "count", "at ",
            last_moment(report->summary), "what");
    for (size_t i = 0; i < count && i < rows; i++)
        print_call_row(page, report, places[i]);
    if (count > rows)
        fprintf(page->out, "  ... and %zu more (--json has all)\n", count - rows);
}

static void print_without_stacks(const struct page *page, const struct report *report)
{
    const struct vs_places *places = report->places;
    const struct vs_place **listed = calloc(places->count + 1, sizeof(*listed));
    size_t count = 0;
    for (unsigned layer = 0; listed != NULL && layer < VS_LAYERS; layer++) {
        size_t first = count;
        for (size_t i = 0; i < places->count; i++)
            if (is_in_table(report, &places->items[i], (enum vs_layer)layer))
                listed[count++] = &places->items[i];
        qsort(listed + first, count - first, sizeof(*listed), by_layer);
    }
    if (count != 0)
        print_table(page, report, listed, count);
    free(listed);
}

void report_print_sites(const struct page *page, const struct report *report)
{
    bool any = false;
    for (size_t i = 0; i < report->places->count && !any; i++)
        any = report->places->items[i].has_stack;
    if (any)
        print_with_stacks(page, report);
    else
        print_without_stacks(page, report);
}
