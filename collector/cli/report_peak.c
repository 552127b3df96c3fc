/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Below a device's peak: what of it was made last, and by which places; and whether
 * who prints at the end of each step can have seen it.
 */
#include <stdlib.h>

#include "report_sections.h"

enum { TOP_PLACES = 3, LEAST_SHARE = 20 /* of the peak */, TITLE_COLUMNS = 70, TEXT_ROOM = 512 };

struct made {
    uint32_t group;
    int64_t bytes;
    uint64_t count;
};

static int by_bytes(const void *a, const void *b)
{
    const struct made *left = a, *right = b;
    if (left->bytes != right->bytes)
        return left->bytes < right->bytes ? 1 : -1;
    return (left->group > right->group) - (left->group < right->group);
}

/* What each group made last, the most first; NULL without memory. */
static struct made *collect(const struct report *report, const struct vs_recent *recent)
{
    const struct vs_recents *recents = report->recents;
    size_t count = report->places->group_count;
    struct made *made = calloc(count + 1, sizeof(*made));
    if (made == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++)
        made[i].group = (uint32_t)i;
    for (uint32_t site = 1; site <= recents->site_count; site++) {
        const struct vs_site *of = vs_state_site(report->summary->state, site);
        const struct vs_place *place = vs_places_of(report->places, site);
        if (place == NULL || of->device != recent->device || of->layer != recent->layer)
            continue;
        made[place->group].bytes += recents->sites[site - 1].last_bytes;
        made[place->group].count += recents->sites[site - 1].last_count;
    }
    qsort(made, count, sizeof(*made), by_bytes);
    return made;
}

static void print_places(const struct page *page, const struct report *report,
                         const struct vs_recent *recent, int64_t peak)
{
    struct made *made = collect(report, recent);
    char text[TEXT_ROOM];
    int used = 0;
    for (size_t i = 0; made != NULL && i < report->places->group_count && i < TOP_PLACES; i++) {
        const struct vs_group *group = &report->places->groups[made[i].group];
        char title[PAGE_WIDTH];
        if (made[i].bytes <= 0 || made[i].bytes * LEAST_SHARE < peak)
            break;
        report_place_title(report, &report->places->items[group->place], report->options->by, title,
                           sizeof(title));
        used += snprintf(text + used, sizeof(text) - (size_t)used, "%s%s %s (%s block%s)",
                         i == 0 ? "of that most by " : ", ", page_fit(title, TITLE_COLUMNS).text,
                         size_text(made[i].bytes).text, page_count(made[i].count).text,
                         plural(made[i].count));
    }
    free(made);
    if (used > 0)
        page_wrap(page, 9, text);
}

static void describe_last(const struct vs_recent *recent, char *out, size_t room)
{
    if (recent->rule == VS_RECENT_BY_STEP)
        snprintf(out, room, "since step %ld began", (long)recent->step);
    else
        snprintf(out, room, "within %s before it",
                 recent->rule == VS_RECENT_BY_LENGTH
                     ? "as many allocations and frees as a step has"
                     : "the last hundredth of the run's allocations and frees");
}

static void print_recent(const struct page *page, const struct report *report,
                         const struct vs_recent *recent, int64_t peak)
{
    const struct vs_recent_sums *sums = &recent->total;
    char last[96], before[192] = "", text[TEXT_ROOM];
    describe_last(recent, last, sizeof(last));
    if (recent->rule == VS_RECENT_BY_STEP && recent->steps_before != 0)
        snprintf(before, sizeof(before), "%s in the %s%sstep%s before, ",
                 size_text(sums->before_bytes).text,
                 recent->steps_before > 1 ? page_count(recent->steps_before).text : "",
                 recent->steps_before > 1 ? " " : "", plural(recent->steps_before));
    else if (recent->rule != VS_RECENT_BY_STEP)
        snprintf(before, sizeof(before), "%s within %s times as many before those, ",
                 size_text(sums->before_bytes).text, page_count(recent->steps_before).text);
    snprintf(text, sizeof(text), "of it  %s made %s, %s%s earlier",
             size_text(sums->last_bytes).text, last, before,
             size_text(peak - sums->last_bytes - sums->before_bytes).text);
    page_wrap(page, 2, text);
    print_places(page, report, recent, peak);
}

/* Memory that the ends of steps show nine tenths of hides nothing. */
static void print_unseen(const struct page *page, const struct report *report,
                         const struct vs_device_state *device, int64_t peak)
{
    struct vs_step_ends ends;
    struct vs_near_peak near;
    char text[TEXT_ROOM];
    if (!vs_steps_highest_end(&report->summary->growth, &report->grown->steps, device, &ends) ||
        ends.highest_bytes >= peak - peak / 10 ||
        !vs_dwells_near_peak(&report->summary->dwells, device, &near))
        return;
    snprintf(
        text, sizeof(text),
        "prints at the ends of steps miss it: at most %s %s then; it was at or above %s for %s "
        "in all, %s time%s",
        size_text(ends.highest_bytes).text, device->framework_seen ? "was allocated" : "was held",
        size_text(near.least_bytes).text, vs_format_time(near.time_ns).text,
        page_count(near.times).text, plural(near.times));
    page_wrap(page, 2, text);
}

void report_print_before_peak(const struct page *page, const struct report *report,
                              const struct vs_device_state *device)
{
    const struct vs_recent *recent = vs_recent_of(report->recents, device->device);
    int64_t peak = device->layers[vs_device_top_layer(device)].peak_bytes;
    bool tells = recent != NULL && peak > 0 && recent->rule != VS_RECENT_UNKNOWN;
    if (tells &&
        (recent->rule != VS_RECENT_BY_SHARE || recent->total.last_bytes * LEAST_SHARE >= peak))
        print_recent(page, report, recent, peak);
    if (report->summary->cuts.gaps == 0) /* what came and went was taken out */
        print_unseen(page, report, device, peak);
}
