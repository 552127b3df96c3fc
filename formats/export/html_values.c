/* SPDX-License-Identifier: Apache-2.0 */
/* Values of a page's data: see html_values.h. */
#include "html_values.h"

#include <errno.h>
#include <stdlib.h>

#include "texts.h"

/* ---- values -------------------------------------------------------------------------------------
 */

void vs_html_integer(struct vs_sink *sink, int64_t value)
{
    if (value < 0)
        vs_sink_put(sink, "-", 1);
    vs_sink_number(sink, value < 0 ? (uint64_t)-value : (uint64_t)value);
}

void vs_html_text(struct vs_html_data *data, const char *text)
{
    char *quoted = malloc(strlen(text) * 6 + 2);
    if (quoted == NULL) {
        data->error = -ENOMEM;
        return;
    }
    const char *end = vs_quote_json(quoted, text);
    for (const char *at = quoted; at < end;) {
        size_t plain = 0;
        while (at + plain < end && strchr("<>&", at[plain]) == NULL)
            plain++;
        vs_sink_put(data->sink, at, plain);
        at += plain;
        if (at < end)
            vs_sink_printf(data->sink, "\\u%04x", (unsigned)*at++);
    }
    free(quoted);
}

void vs_html_text_member(struct vs_html_data *data, const char *name, const char *text)
{
    vs_sink_printf(data->sink, "\"%s\":", name);
    if (text == NULL || text[0] == 0)
        vs_sink_text(data->sink, "null");
    else
        vs_html_text(data, text);
}

void vs_html_integer_member(struct vs_sink *sink, const char *name, int64_t value)
{
    vs_sink_printf(sink, "\"%s\":", name);
    vs_html_integer(sink, value);
}

void vs_html_integer_member_if(struct vs_sink *sink, const char *name, bool known, int64_t value)
{
    if (known)
        vs_html_integer_member(sink, name, value);
    else
        vs_sink_printf(sink, "\"%s\":null", name);
}

/* ---- places
 * --------------------------------------------------------------------------------------- */

/* Both readings fold the same events, but the first makes sites of its own between. */
static int compare_sites(const struct vs_site *a, const struct vs_site *b)
{
    if (a->stack != b->stack)
        return a->stack < b->stack ? -1 : 1;
    const int left[] = {a->owner, a->label, a->device, a->layer, a->kind, a->segment};
    const int right[] = {b->owner, b->label, b->device, b->layer, b->kind, b->segment};
    return memcmp(left, right, sizeof(left));
}

static int by_site(const void *a, const void *b)
{
    return compare_sites(*(const struct vs_site *const *)a, *(const struct vs_site *const *)b);
}

/* Owners are numbered as they come, which is not in one order for both readings. */
static uint16_t owner_in_first(const struct vs_html_data *data, uint16_t owner)
{
    const struct vs_state *first = data->html->summary->state;
    const char *name = vs_state_owner_name(data->html->sets.state, owner);
    size_t at = 0;
    while (at < first->owner_count && strcmp(first->owners[at].name, name) != 0)
        at++;
    return (uint16_t)at;
}

/* The place of a site of the second reading. */
static uint32_t find_place(const struct vs_html_data *data, const struct vs_site *site)
{
    const struct vs_state *first = data->html->summary->state;
    struct vs_site wanted = *site;
    size_t low = 0, high = first->site_count;
    if (site->kind == VS_SITE_CALL)
        wanted.owner = owner_in_first(data, site->owner);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare_sites(data->order[middle], &wanted);
        if (order == 0)
            return data->html->places.of_site[data->order[middle] - first->sites];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return UINT32_MAX;
}

uint32_t vs_html_place(struct vs_html_data *data, uint32_t site)
{
    if (site == 0 || site > data->place_of_count)
        return UINT32_MAX;
    uint32_t *place = &data->place_of[site - 1];
    if (*place == 0)
        *place = find_place(data, vs_state_site(data->html->sets.state, site)) + 1;
    return *place - 1;
}

long vs_html_number(struct vs_html_data *data, uint32_t place)
{
    if (place >= data->html->places.count)
        return -1;
    if (data->number[place] == 0) {
        if (data->place_count == VS_HTML_PLACES)
            return -1;
        data->places[data->place_count++] = place;
        data->number[place] = (uint32_t)data->place_count;
    }
    return (long)data->number[place] - 1;
}

void vs_html_place_member(struct vs_html_data *data, const char *name, uint32_t site)
{
    const struct vs_places *places = &data->html->places;
    const struct vs_place *place = vs_places_of(places, site);
    long number = place == NULL ? -1 : vs_html_number(data, (uint32_t)(place - places->items));
    vs_html_integer_member_if(data->sink, name, number >= 0, number);
}

/* ---- life */

int vs_html_open(struct vs_html_data *data, const struct vs_html *html)
{
    const struct vs_state *first = html->summary->state;
    *data = (struct vs_html_data){.html = html, .sink = html->export->sink};
    data->place_of_count = data->html->sets.state->site_count;
    data->order = malloc((first->site_count + 1) * sizeof(*data->order));
    data->place_of = calloc(data->place_of_count + 1, sizeof(*data->place_of));
    data->number = calloc(data->html->places.count + 1, sizeof(*data->number));
    data->places = malloc(VS_HTML_PLACES * sizeof(*data->places));
    if (data->order == NULL || data->place_of == NULL || data->number == NULL ||
        data->places == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < first->site_count; i++)
        data->order[i] = &first->sites[i];
    if (first->site_count != 0)
        qsort(data->order, first->site_count, sizeof(*data->order), by_site);
    return 0;
}

void vs_html_release(struct vs_html_data *data)
{
    vs_html_names_release(&data->strings);
    vs_html_names_release(&data->frames);
    free(data->order);
    free(data->place_of);
    free(data->number);
    free(data->places);
}
