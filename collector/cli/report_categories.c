/* SPDX-License-Identifier: Apache-2.0 */
/* What the memory of a device was for, at the peak and at the end. */
#include <stdlib.h>

#include "report_sections.h"

/* One in so many bytes makes a category worth a word of the answer. */
enum { LEAST_SHARE = 10, NAME_COLUMNS = 44 };

static const char *title_of(enum vs_category category)
{
    static const char *const titles[VS_CATEGORIES] = {
        [VS_CATEGORY_UNKNOWN] = "not known",
        [VS_CATEGORY_PARAMETERS] = "parameters",
        [VS_CATEGORY_GRADIENTS] = "gradients",
        [VS_CATEGORY_OPTIMIZER_STATE] = "optimizer state",
        [VS_CATEGORY_ACTIVATIONS] = "activations",
        [VS_CATEGORY_TEMPORARIES] = "temporaries",
        [VS_CATEGORY_COMMUNICATION] = "communication",
        [VS_CATEGORY_WORKSPACE] = "workspace",
    };
    return titles[category];
}

struct share {
    enum vs_category category;
    int64_t at_peak, at_end;
};

static int by_peak(const void *a, const void *b)
{
    const struct share *left = a, *right = b;
    if (left->at_peak != right->at_peak)
        return left->at_peak < right->at_peak ? 1 : -1;
    if (left->at_end != right->at_end)
        return left->at_end < right->at_end ? 1 : -1;
    return (int)left->category - (int)right->category;
}

/* The largest at the peak first. False when no rule decided anything. */
static bool rank(const struct report *report, const struct vs_device_state *device,
                 struct share shares[VS_CATEGORIES])
{
    struct vs_category_sums sums = vs_categories_sum(report->categories, report->places,
                                                     device->device, vs_device_top_layer(device));
    bool known = false;
    for (int i = 0; i < VS_CATEGORIES; i++) {
        shares[i] = (struct share){(enum vs_category)i, sums.at_peak[i], sums.at_end[i]};
        if (i != VS_CATEGORY_UNKNOWN)
            known = known || sums.at_peak[i] != 0 || sums.at_end[i] != 0;
    }
    qsort(shares, VS_CATEGORIES, sizeof(shares[0]), by_peak);
    return known;
}

/* Those of libraries that a framework gives memory, live at the end. */
static int64_t count_workspaces(const struct report *report, const struct vs_device_state *device)
{
    const struct vs_places *places = report->places;
    int64_t count = 0;
    for (size_t i = 0; i < places->count; i++) {
        const struct vs_place *place = &places->items[i];
        const struct vs_site *site = vs_places_site(places, place);
        if (site->device == device->device && site->layer == VS_LAYER_FRAMEWORK &&
            vs_categories_rule(report->categories, places, place) == VS_RULE_WORKSPACE)
            count += place->stats.live_count;
    }
    return count;
}

void report_print_categories(const struct page *page, const struct report *report,
                             const struct vs_device_state *device)
{
    struct share shares[VS_CATEGORIES];
    int64_t whole = device->layers[vs_device_top_layer(device)].peak_bytes;
    if (!rank(report, device, shares))
        return;
    char last[16];
    snprintf(last, sizeof(last), "at %s", last_moment(report->summary));
    fprintf(page->out, "  %-46s %10s  %7s %10s\n", "what it was for", "at peak", "share", last);
    for (int i = 0; i < VS_CATEGORIES; i++) {
        if (shares[i].at_peak == 0 && shares[i].at_end == 0)
            continue;
        struct page_text bar = page_bar(page, shares[i].at_peak, whole);
        fprintf(page->out, "    %-*s %10s  %5.1f %% %10s%s%s\n", NAME_COLUMNS,
                title_of(shares[i].category), size_text(shares[i].at_peak).text,
                whole > 0 ? 100.0 * (double)shares[i].at_peak / (double)whole : 0.0,
                size_text(shares[i].at_end).text, bar.text[0] != 0 ? "  " : "", bar.text);
    }
    int64_t workspaces = count_workspaces(report, device);
    if (workspaces == 0)
        return;
    char text[256];
    snprintf(text, sizeof(text),
             "workspace: %s block%s live at the %s: one for each handle of a library and each "
             "stream that it is used on, until the program ends; no leak",
             page_count((uint64_t)workspaces).text, plural((uint64_t)workspaces),
             last_moment(report->summary));
    page_wrap(page, 4, text);
}

struct page_text report_main_category(const struct report *report,
                                      const struct vs_device_state *device)
{
    struct share shares[VS_CATEGORIES];
    struct page_text out = {{0}};
    int64_t whole = device->layers[vs_device_top_layer(device)].peak_bytes;
    if (!rank(report, device, shares))
        return out;
    for (int i = 0; i < VS_CATEGORIES; i++) {
        if (shares[i].category == VS_CATEGORY_UNKNOWN)
            continue;
        if (shares[i].at_peak >= whole / LEAST_SHARE && shares[i].at_peak > 0)
            snprintf(out.text, sizeof(out.text), "%s %s", size_text(shares[i].at_peak).text,
                     title_of(shares[i].category));
        return out;
    }
    return out;
}
