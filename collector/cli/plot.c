/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Curves drawn with characters: what is allocated as a filled area, reserved and
 * device use as lines above it; each column shows the highest values in its
 * stretch of time.
 */
#include "plot.h"

#include <string.h>

#include "page.h"
#include "replay/format_size.h"

enum { ROWS = 16, LABEL = 11, COLUMNS_MOST = 200, DEVICE_OFFSET = 128 };

struct column {
    int64_t allocated, reserved, used;
};

static int64_t highest(const int64_t *values, size_t from, size_t to)
{
    int64_t most = 0;
    for (size_t i = from; i < to; i++)
        if (values[i] > most)
            most = values[i];
    return most;
}

/* Spreads the filled buckets over the columns. */
static void fill_columns(const struct vs_curve *curve, struct column *columns, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t from = i * curve->filled / count;
        size_t to = (i + 1) * curve->filled / count;
        if (to == from)
            to = from + 1;
        columns[i] =
            (struct column){highest(curve->allocated, from, to), highest(curve->reserved, from, to),
                            highest(curve->used, from, to)};
    }
}

static int64_t top_of(const struct column *columns, size_t count)
{
    int64_t top = 1;
    for (size_t i = 0; i < count; i++) {
        const int64_t values[] = {columns[i].allocated, columns[i].reserved, columns[i].used};
        int64_t most = highest(values, 0, 3);
        if (most > top)
            top = most;
    }
    return top;
}

/* Row of a value, 0 at the bottom; -1 for nothing. */
static int row_of(int64_t value, int64_t top)
{
    if (value <= 0)
        return -1;
    int row = (int)((double)value / (double)top * ROWS + 0.5) - 1;
    return row < 0 ? 0 : row >= ROWS ? ROWS - 1 : row;
}

static const char *cell(const struct page *page, const struct column *column, int row, int64_t top)
{
    if (row_of(column->allocated, top) >= row)
        return page->rich ? "█" : "#";
    if (row_of(column->reserved, top) == row)
        return page->rich ? "▔" : "=";
    if (row_of(column->used, top) == row)
        return page->rich ? "·" : ".";
    return " ";
}

static void draw_axis(const struct page *page, size_t count, uint64_t duration_ns)
{
    fprintf(page->out, "%*s +", LABEL, "0 B");
    for (size_t i = 0; i < count; i++)
        fputc('-', page->out);
    struct vs_size_text end = vs_format_time(duration_ns);
    fprintf(page->out, "\n%*s  0%*s\n", LABEL, "", (int)count - 1, end.text);
}

static void draw_device(const struct page *page, const struct vs_summary *summary,
                        const struct vs_device_state *device, size_t count)
{
    struct column columns[COLUMNS_MOST];
    const struct vs_curve *curve = summary->timeline.curves[device->device + DEVICE_OFFSET];
    const struct vs_device_def *known = vs_summary_device_def(summary, device->device);
    fill_columns(curve, columns, count);
    int64_t top = top_of(columns, count);
    fprintf(page->out, "%sGPU %d%s%s%s\n", page_bold(page), device->device,
            known != NULL && known->name[0] != 0 ? "  " : "", known != NULL ? known->name : "",
            page_plain(page));
    for (int row = ROWS - 1; row >= 0; row--) {
        bool labelled = row == ROWS - 1 || row == ROWS / 2;
        struct vs_size_text label = vs_format_size((int64_t)((double)top * (row + 1) / ROWS));
        fprintf(page->out, "%*s |", LABEL, labelled ? label.text : "");
        for (size_t i = 0; i < count; i++)
            fputs(cell(page, &columns[i], row, top), page->out);
        fputc('\n', page->out);
    }
    draw_axis(page, count, summary->duration_ns);
    bool framework = vs_device_top_layer(device) == VS_LAYER_FRAMEWORK;
    fprintf(page->out, "%*s  %s %s", LABEL, "", page->rich ? "█" : "#",
            framework ? "allocated by the framework" : "allocated by driver calls");
    if (framework)
        fprintf(page->out, "   %s reserved", page->rich ? "▔" : "=");
    if (device->measured)
        fprintf(page->out, "   %s used on the device", page->rich ? "·" : ".");
    fputc('\n', page->out);
}

void plot_timeline(FILE *out, const struct vs_summary *summary, int width)
{
    struct page page = page_open(out);
    bool any = false;
    for (size_t i = 0; i < VS_DEVICE_SLOTS; i++) {
        const struct vs_device_state *device = summary->state->devices[i];
        const struct vs_curve *curve = summary->timeline.curves[i];
        if (device == NULL || curve == NULL || curve->filled == 0)
            continue;
        if (any)
            fputc('\n', out);
        draw_device(&page, summary, device, (size_t)(width - LABEL - 3));
        any = true;
    }
    if (!any)
        fputs("No device-memory event in this trace.\n", out);
    for (size_t i = 0; i < summary->cuts.count; i++) {
        char text[160];
        vs_gap_text(&summary->cuts.items[i], summary->start_ns, text, sizeof(text));
        fprintf(out, "%scut: %s, where the curves are held\n", i == 0 ? "\n" : "", text);
    }
}
