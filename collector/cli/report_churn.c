/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is given back to the driver and asked for again, over and over: by a
 * cache that is emptied in a loop, and by calls of the program that go past every cache.
 */
#include "report_churn.h"

#include "report_sections.h"

enum { TOP_ROWS = 4, TEXT_ROOM = 640 };

bool report_release_empties(const struct report *report, const struct vs_release *release)
{
    const struct vs_place *place = vs_places_of(report->places, release->site);
    const struct vs_frame *frames;
    long count = place == NULL ? 0 : vs_places_frames(report->places, place, &frames);
    for (long i = 0; i < count; i++)
        if (vs_frame_empties_cache(&frames[i]))
            return true;
    return false;
}

bool report_tells_release(const struct report *report, const struct vs_release *release)
{
    const struct vs_site *site = vs_state_site(report->summary->state, release->site);
    return !report_hides_device(report, site->device) &&
           vs_release_is_loop(release, &report->grown->steps);
}

bool report_tells_cost(const struct report *report, size_t position)
{
    const struct vs_site *site = &report->summary->state->sites[position];
    return !report_hides_device(report, site->device) &&
           vs_cost_is_churn(&report->summary->churn.costs[position], &report->grown->steps);
}

static void print_release(const struct page *page, const struct report *report,
                          const struct vs_release *release)
{
    char text[TEXT_ROOM];
    struct page_text by = report_by(report, release->site);
    snprintf(text, sizeof(text),
             "%s %s times%s%s: %s in %s segments given back, %s of it asked for again right after; "
             "%s in calls",
             report_release_empties(report, release) ? "empty_cache emptied the cache"
                                                     : "the cache gave segments back",
             page_count(release->rounds).text, by.text[0] != 0 ? ", by " : "", by.text,
             size_text(release->bytes).text, page_count(release->segments).text,
             size_text(release->again_bytes).text, vs_format_time(release->time_ns).text);
    page_wrap(page, 2, text);
}

static void print_cost(const struct page *page, const struct report *report, size_t position)
{
    const struct vs_call_cost *cost = &report->summary->churn.costs[position];
    const struct vs_site *site = &report->summary->state->sites[position];
    struct page_text by = report_by(report, (uint32_t)position + 1);
    char text[TEXT_ROOM];
    snprintf(text, sizeof(text), "%s %s times, and freed again%s%s: %s in calls",
             report_call_title(report->summary, site->label), page_count(cost->allocs).text,
             by.text[0] != 0 ? ", by " : "", by.text, vs_format_time(cost->time_ns).text);
    page_wrap(page, 2, text);
}

void report_print_churn(const struct page *page, const struct report *report)
{
    const struct vs_churn *churn = &report->summary->churn;
    size_t rows = 0;
    for (size_t i = 0; i < churn->release_count; i++)
        if (report_tells_release(report, &churn->releases[i])) {
            if (rows++ == 0)
                report_heading(page, "Given back to the driver and asked for again");
            if (rows <= TOP_ROWS)
                print_release(page, report, &churn->releases[i]);
        }
    for (size_t i = 0; i < churn->cost_count; i++)
        if (report_tells_cost(report, i)) {
            if (rows++ == 0)
                report_heading(page, "Given back to the driver and asked for again");
            if (rows <= TOP_ROWS)
                print_cost(page, report, i);
        }
    if (rows > TOP_ROWS)
        fprintf(page->out, "  ... and %zu more (--json has all)\n", rows - TOP_ROWS);
}
