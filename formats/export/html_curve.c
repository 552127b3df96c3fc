/* SPDX-License-Identifier: Apache-2.0 */
/* Thins the curves: see html_curve.h. */
#include "html_curve.h"

#include <errno.h>
#include <stdlib.h>

/* The curves whose lowest and highest rows stay, in the order of enum vs_html_kept. */
static const enum vs_html_column followed[] = {VS_HTML_LIVE, VS_HTML_RESERVED, VS_HTML_DEVICE};
enum { FOLLOWED = sizeof(followed) / sizeof(followed[0]) };

int vs_html_curve_init(struct vs_html_curve *curve, size_t stretches)
{
    *curve = (struct vs_html_curve){.room = stretches, .most_rows = 1, .most_ns = 1};
    curve->stretches = calloc(stretches, sizeof(*curve->stretches));
    return curve->stretches == NULL ? -ENOMEM : 0;
}

void vs_html_curve_release(struct vs_html_curve *curve)
{
    free(curve->stretches);
    *curve = (struct vs_html_curve){0};
}

/* Takes the rows of `later`, which follows, into `stretch`. */
static void join(struct vs_html_stretch *stretch, const struct vs_html_stretch *later)
{
    stretch->rows += later->rows;
    stretch->kept[VS_HTML_LAST] = later->kept[VS_HTML_LAST];
    for (int i = 0; i < FOLLOWED; i++) {
        struct vs_html_row *low = &stretch->kept[VS_HTML_LOW_LIVE + 2 * i], *high = low + 1;
        const struct vs_html_row *new_low = &later->kept[VS_HTML_LOW_LIVE + 2 * i];
        const struct vs_html_row *new_high = new_low + 1;
        if (new_low->value[followed[i]] < low->value[followed[i]])
            *low = *new_low;
        if (new_high->value[followed[i]] > high->value[followed[i]])
            *high = *new_high;
    }
}

static bool may_join(const struct vs_html_curve *curve, const struct vs_html_stretch *stretch,
                     uint64_t rows, uint64_t until_ns)
{
    return stretch->rows + rows <= curve->most_rows &&
           until_ns - stretch->kept[VS_HTML_FIRST].time_ns <= curve->most_ns;
}

/*
 * Two stretches side by side that may not be joined hold more than `most_rows` or last
 * longer than `most_ns`. Time alone may so take a quarter of the room; the bound on rows
 * doubles until half of it is free.
 */
static void make_room(struct vs_html_curve *curve)
{
    uint64_t first_ns = curve->stretches[0].kept[VS_HTML_FIRST].time_ns;
    uint64_t last_ns = curve->stretches[curve->count - 1].kept[VS_HTML_LAST].time_ns;
    uint64_t share_ns = (last_ns - first_ns) * 8 / curve->room;
    if (share_ns > curve->most_ns)
        curve->most_ns = share_ns;
    while (curve->count > curve->room / 2) {
        curve->most_rows *= 2;
        size_t last = 0;
        for (size_t i = 1; i < curve->count; i++) {
            const struct vs_html_stretch *next = &curve->stretches[i];
            if (may_join(curve, &curve->stretches[last], next->rows,
                         next->kept[VS_HTML_LAST].time_ns))
                join(&curve->stretches[last], next);
            else
                curve->stretches[++last] = *next;
        }
        curve->count = last + 1;
    }
}

void vs_html_curve_add(struct vs_html_curve *curve, struct vs_html_row *row)
{
    if (curve->stretches == NULL || curve->room == 0)
        return;
    row->number = ++curve->rows;
    struct vs_html_stretch *last = curve->count == 0 ? NULL : &curve->stretches[curve->count - 1];
    if (last != NULL && may_join(curve, last, 1, row->time_ns)) {
        last->rows++;
        last->kept[VS_HTML_LAST] = *row;
        for (int i = 0; i < FOLLOWED; i++) {
            struct vs_html_row *low = &last->kept[VS_HTML_LOW_LIVE + 2 * i], *high = low + 1;
            if (row->value[followed[i]] < low->value[followed[i]])
                *low = *row;
            if (row->value[followed[i]] > high->value[followed[i]])
                *high = *row;
        }
        return;
    }
    if (curve->count == curve->room)
        make_room(curve);
    struct vs_html_stretch *stretch = &curve->stretches[curve->count++];
    stretch->rows = 1;
    for (int i = 0; i < VS_HTML_KEPT; i++)
        stretch->kept[i] = *row;
}

size_t vs_html_stretch_rows(const struct vs_html_stretch *stretch,
                            const struct vs_html_row *out[VS_HTML_KEPT])
{
    size_t count = 0;
    for (int i = 0; i < VS_HTML_KEPT; i++) {
        const struct vs_html_row *row = &stretch->kept[i];
        size_t at = count;
        while (at > 0 && out[at - 1]->number > row->number)
            at--;
        if (at > 0 && out[at - 1]->number == row->number)
            continue;
        for (size_t behind = count++; behind > at; behind--)
            out[behind] = out[behind - 1];
        out[at] = row;
    }
    return count;
}

void vs_html_row_of(const struct vs_state *state, const struct vs_device_state *device,
                    const struct vs_bands *bands, struct vs_html_row *out)
{
    int64_t implicit = 0;
    for (int i = 0; i < VS_IMPLICITS; i++)
        implicit += bands->implicit[i];
    *out = (struct vs_html_row){
        .time_ns = state->now_ns - state->start_ns,
        .sequence = state->last_sequence,
        .measured = bands->device_known,
        .value = {[VS_HTML_LIVE] = device->layers[vs_device_top_layer(device)].live_bytes,
                  [VS_HTML_ALLOCATED] = bands->allocated,
                  [VS_HTML_RESERVED] = bands->reserved,
                  [VS_HTML_DEVICE] = bands->device,
                  [VS_HTML_BACKED] = bands->backed,
                  [VS_HTML_DIRECT] = bands->direct,
                  [VS_HTML_IMPLICIT] = implicit,
                  [VS_HTML_OTHER] = bands->other_process,
                  [VS_HTML_UNEXPLAINED] = bands->unexplained,
                  [VS_HTML_PINNED] = bands->host_pinned}};
}
