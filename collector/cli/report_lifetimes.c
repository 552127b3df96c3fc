/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long memory lives, in the program's steps; and which of what was live at a
 * device's peak were temporaries, by line (or --by) of the program.
 */
#include <stdlib.h>

#include "report_sections.h"

enum {
    TOP_LINES = 4,
    NAME_COLUMNS = 46,
    TITLE_ROOM = 256,
    LEAST_SHARE = 20 /* of the peak */,
    LEAST_SHARE_TOLD = 2000 /* less is 0.0 % */
};

/* Temporaries of one group at a peak. */
struct line {
    uint32_t group;
    int64_t bytes;
    uint64_t count;
};

static int by_bytes(const void *a, const void *b)
{
    const struct line *left = a, *right = b;
    if (left->bytes != right->bytes)
        return left->bytes < right->bytes ? 1 : -1;
    return (left->group > right->group) - (left->group < right->group);
}

/* One line per group, those without anything last; NULL without memory. */
static struct line *collect(const struct report *report, const struct vs_peak_life *peak)
{
    const struct vs_lifetimes_found *found = report->lifetimes;
    size_t count = report->places->group_count;
    struct line *lines = calloc(count + 1, sizeof(*lines));
    if (lines == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++)
        lines[i].group = (uint32_t)i;
    for (uint32_t site = 1; site <= found->site_count; site++) {
        const struct vs_site *of = vs_state_site(report->summary->state, site);
        const struct vs_place *place = vs_places_of(report->places, site);
        if (place == NULL || of->device != peak->device || of->layer != peak->layer)
            continue;
        lines[place->group].bytes += found->sites[site - 1].temporary_bytes;
        lines[place->group].count += found->sites[site - 1].temporary_count;
    }
    qsort(lines, count, sizeof(*lines), by_bytes);
    return lines;
}

static const char *why_temporary(enum vs_temporary_rule rule)
{
    static const char *const texts[] = {
        [VS_TEMPORARY_UNKNOWN] = "",
        [VS_TEMPORARY_IN_STEP] = "made in that step and freed before it was over",
        [VS_TEMPORARY_BY_LENGTH] = "freed after less than a step takes",
        [VS_TEMPORARY_BY_PLACE] = "of places that free what they make within the step",
        [VS_TEMPORARY_SHORT] = "freed after less than a hundredth of the run",
    };
    return texts[rule];
}

static void print_peak(const struct page *page, const struct report *report,
                       const struct vs_peak_life *peak)
{
    const struct vs_device_state *device = vs_state_device(report->summary->state, peak->device);
    int64_t whole = device == NULL ? 0 : device->layers[peak->layer].peak_bytes;
    struct line *lines = collect(report, peak);
    char text[320];
    snprintf(text, sizeof(text), "at the peak of GPU %d, %s of %s were short-lived: %s",
             peak->device, size_text(peak->temporary_bytes).text, size_text(whole).text,
             why_temporary(peak->rule));
    page_wrap(page, 2, text);
    size_t rows = report->options->top != 0 ? report->options->top : TOP_LINES;
    for (size_t i = 0; lines != NULL && i < report->places->group_count && i < rows; i++) {
        char title[TITLE_ROOM];
        if (lines[i].bytes * LEAST_SHARE < whole)
            break;
        const struct vs_group *group = &report->places->groups[lines[i].group];
        report_place_title(report, &report->places->items[group->place], report->options->by, title,
                           sizeof(title));
        fprintf(page->out, "    %-*s %10s  %5.1f %%  %s block%s\n", NAME_COLUMNS,
                page_fit(title, NAME_COLUMNS).text, size_text(lines[i].bytes).text,
                100.0 * (double)lines[i].bytes / (double)whole, page_count(lines[i].count).text,
                plural(lines[i].count));
    }
    free(lines);
}

static void print_steps(const struct page *page, const struct vs_lifetimes_found *found)
{
    static const char *const words[VS_LIVES] = {"freed within it", "at its end", "in the next one",
                                                "later", "not at all"};
    int64_t bytes = 0;
    uint64_t count = 0;
    char text[512];
    for (size_t i = 0; i < VS_LIVES; i++) {
        bytes += found->total.bytes[i];
        count += found->total.count[i];
    }
    if (bytes == 0)
        return;
    int used = snprintf(
        text, sizeof(text),
        "in the %s step%s looked at, one makes %s block%s of %s:", page_count(found->steps).text,
        plural(found->steps), page_count(count / found->steps).text, plural(count / found->steps),
        size_text(bytes / (int64_t)found->steps).text);
    const char *between = " ";
    int64_t least = bytes / LEAST_SHARE_TOLD;
    for (size_t i = 0; i < VS_LIVES && used > 0 && (size_t)used < sizeof(text); i++) {
        if (found->total.bytes[i] == 0 || found->total.bytes[i] < least)
            continue;
        used += snprintf(text + used, sizeof(text) - (size_t)used, "%s%.1f %% %s", between,
                         100.0 * (double)found->total.bytes[i] / (double)bytes, words[i]);
        between = ", ";
    }
    page_wrap(page, 2, text);
}

static bool is_worth_telling(const struct report *report, const struct vs_peak_life *peak)
{
    const struct vs_device_state *device = vs_state_device(report->summary->state, peak->device);
    return !report_hides_device(report, peak->device) && device != NULL &&
           peak->temporary_bytes > 0 &&
           peak->temporary_bytes * LEAST_SHARE >= device->layers[peak->layer].peak_bytes;
}

void report_print_lifetimes(const struct page *page, const struct report *report)
{
    const struct vs_lifetimes_found *found = report->lifetimes;
    bool steps = found->rule != VS_LIFE_UNKNOWN, any = steps;
    for (size_t i = 0; i < found->peak_count; i++)
        any = any || is_worth_telling(report, &found->peaks[i]);
    if (!any)
        return;
    report_heading(page, "How long memory lives");
    if (steps)
        print_steps(page, found);
    for (size_t i = 0; i < found->peak_count; i++)
        if (is_worth_telling(report, &found->peaks[i]))
            print_peak(page, report, &found->peaks[i]);
}
