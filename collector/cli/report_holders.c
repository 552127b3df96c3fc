/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks of one line, function or module, the heaviest first. Stacks that
 * look the same once folded are one here: what tells them apart is not shown.
 */
#include <stdlib.h>

#include "report_sections.h"

enum {
    STACKS = 3,       /* shown of a group at most */
    STACK_SHARE = 10, /* a tenth of the whole list's bytes makes another stack worth showing */
    COMPARED = 64     /* of the heaviest it is found out whether they look the same */
};

/* Stacks that look the same. */
struct look {
    char *text;
    int64_t bytes;
    size_t stacks;
};

struct looks {
    struct look items[COMPARED];
    size_t count;
    struct look rest; /* without a text */
};

static int64_t held_by(const struct vs_place *place, bool at_end)
{
    return at_end ? place->stats.live_bytes : place->stats.peak_bytes;
}

static int by_peak(const void *a, const void *b)
{
    const struct vs_place *left = *(const struct vs_place *const *)a,
                          *right = *(const struct vs_place *const *)b;
    if (left->stats.peak_bytes != right->stats.peak_bytes)
        return left->stats.peak_bytes < right->stats.peak_bytes ? 1 : -1;
    return (left->site > right->site) - (left->site < right->site);
}

static int by_end(const void *a, const void *b)
{
    const struct vs_place *left = *(const struct vs_place *const *)a,
                          *right = *(const struct vs_place *const *)b;
    if (left->stats.live_bytes != right->stats.live_bytes)
        return left->stats.live_bytes < right->stats.live_bytes ? 1 : -1;
    return by_peak(a, b);
}

/* The places of a group that hold anything, the heaviest first. */
static size_t find_holders(const struct report *report, const struct vs_group *group, bool at_end,
                           const struct vs_place **holders)
{
    const struct vs_places *places = report->places;
    size_t count = 0;
    for (size_t i = 0; i < places->count; i++)
        if (&places->groups[places->items[i].group] == group &&
            held_by(&places->items[i], at_end) != 0)
            holders[count++] = &places->items[i];
    if (count > 1)
        qsort(holders, count, sizeof(*holders), at_end ? by_end : by_peak);
    return count;
}

/* The stack as it would be printed; NULL without memory. */
static char *draw(const struct page *page, const struct report *report,
                  const struct vs_place *place)
{
    bool titled = report->options->by == VS_BY_LINE || report->options->by == VS_BY_STACK;
    char *text = NULL;
    size_t bytes;
    struct page drawn = *page;
    drawn.out = open_memstream(&text, &bytes);
    if (drawn.out == NULL)
        return NULL;
    report_print_stack(&drawn, report, 8, place, titled);
    fclose(drawn.out);
    return text;
}

/* Takes over `text`; NULL: it was not looked at. */
static void add_look(struct looks *looks, char *text, int64_t bytes)
{
    size_t at = 0;
    struct look *look = &looks->rest;
    if (text != NULL) {
        while (at < looks->count && strcmp(looks->items[at].text, text) != 0)
            at++;
        look = &looks->items[at];
        if (at < looks->count)
            free(text);
        else
            looks->items[looks->count++] = (struct look){.text = text};
    }
    look->bytes += bytes;
    look->stacks++;
}

static int by_bytes(const void *a, const void *b)
{
    const struct look *left = a, *right = b;
    return left->bytes < right->bytes ? 1 : left->bytes > right->bytes ? -1 : 0;
}

static void print_looks(const struct page *page, struct looks *looks, int64_t whole)
{
    bool single = looks->count == 1 && looks->rest.stacks == 0;
    for (size_t i = 0; i < looks->count; i++) {
        const struct look *look = &looks->items[i];
        bool worth = i == 0 || (i < STACKS && look->bytes >= whole / STACK_SHARE);
        if (!worth) {
            looks->rest.bytes += look->bytes;
            looks->rest.stacks += look->stacks;
            continue;
        }
        if (!single)
            fprintf(page->out, "      %s:%s\n", size_text(look->bytes).text,
                    look->text[0] == 0 ? " by no other line" : "");
        fputs(look->text, page->out);
    }
    if (looks->rest.stacks != 0)
        fprintf(page->out, "      %s: %zu other stack%s\n", size_text(looks->rest.bytes).text,
                looks->rest.stacks, plural(looks->rest.stacks));
}

void report_print_holders(const struct page *page, const struct report *report,
                          const struct vs_group *group, bool at_end, int64_t whole)
{
    struct looks looks = {.count = 0};
    const struct vs_place **holders = NULL;
    if (report->places->items[group->place].has_stack)
        holders = calloc(group->places + 1U, sizeof(*holders));
    size_t count = holders == NULL ? 0 : find_holders(report, group, at_end, holders);
    for (size_t i = 0; i < count; i++)
        add_look(&looks, i < COMPARED ? draw(page, report, holders[i]) : NULL,
                 held_by(holders[i], at_end));
    if (looks.count > 1)
        qsort(looks.items, looks.count, sizeof(looks.items[0]), by_bytes);
    print_looks(page, &looks, whole);
    for (size_t i = 0; i < looks.count; i++)
        free(looks.items[i].text);
    free(holders);
}
