/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The curves of one device, thinned so that a page can carry them and no peak is
 * hidden. Every row kept is the true state after one event; of each stretch of the
 * run the first and the last row stay, and those where a curve was lowest and
 * highest. Stretches are bounded by rows and by time, so that a short busy part
 * and a long quiet one both keep their shape. Memory is fixed.
 */
#ifndef VS_EXPORT_HTML_CURVE_H
#define VS_EXPORT_HTML_CURVE_H

#include "replay/state.h"

/* Bytes; what is by difference may be below zero. */
enum vs_html_column {
    VS_HTML_LIVE, /* of the device's top layer: the headline curve */
    VS_HTML_ALLOCATED,
    VS_HTML_RESERVED,
    VS_HTML_DEVICE,
    VS_HTML_BACKED,
    VS_HTML_DIRECT,
    VS_HTML_IMPLICIT,
    VS_HTML_OTHER,
    VS_HTML_UNEXPLAINED,
    VS_HTML_PINNED,
    VS_HTML_COLUMNS
};

struct vs_html_row {
    uint64_t number;  /* of this device's rows, from 1; 0: none */
    uint64_t time_ns; /* since the trace's beginning */
    uint64_t sequence;
    int64_t value[VS_HTML_COLUMNS];
    bool measured; /* device, implicit, other and unexplained are known */
};

enum vs_html_kept {
    VS_HTML_FIRST,
    VS_HTML_LAST,
    VS_HTML_LOW_LIVE,
    VS_HTML_HIGH_LIVE,
    VS_HTML_LOW_RESERVED,
    VS_HTML_HIGH_RESERVED,
    VS_HTML_LOW_DEVICE,
    VS_HTML_HIGH_DEVICE,
    VS_HTML_KEPT
};

struct vs_html_stretch {
    uint64_t rows;
    struct vs_html_row kept[VS_HTML_KEPT];
};

struct vs_html_curve {
    struct vs_html_stretch *stretches;
    size_t count, room;          /* room is fixed: when it is used up, neighbours are joined */
    uint64_t rows;               /* seen */
    uint64_t most_rows, most_ns; /* that one stretch may hold and last */
};

/* Room for `stretches` ≥ 16 of them. 0 or -ENOMEM. */
int vs_html_curve_init(struct vs_html_curve *curve, size_t stretches);
void vs_html_curve_release(struct vs_html_curve *curve);
/* `row->number` is set here. */
void vs_html_curve_add(struct vs_html_curve *curve, struct vs_html_row *row);

/* The rows of one stretch, each once, in their order. Returns how many. */
size_t vs_html_stretch_rows(const struct vs_html_stretch *stretch,
                            const struct vs_html_row *out[VS_HTML_KEPT]);

/* A row of the state after an event. */
void vs_html_row_of(const struct vs_state *state, const struct vs_device_state *device,
                    const struct vs_bands *bands, struct vs_html_row *out);

#endif
