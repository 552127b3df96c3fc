/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each phase held, marked or found: a row for each name and device, and what
 * the captures of graphs keep, one by one where they are few.
 */
#include <stdlib.h>

#include "report_page.h"

enum { TOP_PHASES = 8, CAPTURES_SHOWN = 4, NAME_COLUMNS = 36 };

/* Phases of one name on one device. */
struct row {
    const struct vs_phase *first;
    size_t count;
    int64_t entry, peak, exit, transient, resident; /* the highest; `resident` the sum */
    int64_t reserved, graphs;                       /* kept by captures, summed up */
};

struct rows {
    struct row *items;
    size_t count;
};

static int64_t kept(const struct vs_phase *phase, enum vs_phase_band band)
{
    return phase->exit.bytes[band] - phase->entry.bytes[band];
}

static void raise_to(int64_t *most, int64_t value)
{
    if (value > *most)
        *most = value;
}

static void add_to_row(struct row *row, const struct vs_phase *phase)
{
    enum vs_phase_band band = vs_phase_main_band(phase);
    int64_t entry = phase->entry.bytes[band], at_exit = phase->exit.bytes[band];
    row->count++;
    raise_to(&row->entry, entry);
    raise_to(&row->peak, phase->peak.bytes[band]);
    raise_to(&row->exit, at_exit);
    raise_to(&row->transient, phase->peak.bytes[band] - (entry > at_exit ? entry : at_exit));
    row->resident += kept(phase, band);
    row->reserved += kept(phase, VS_PHASE_RESERVED);
    row->graphs += kept(phase, VS_PHASE_GRAPHS);
}

/* All captures of a device are one row. */
static struct row *row_of(struct rows *rows, const struct vs_phase *phase)
{
    for (size_t i = 0; i < rows->count; i++) {
        const struct vs_phase *first = rows->items[i].first;
        if (first->kind == phase->kind && first->device == phase->device &&
            (first->name == phase->name || phase->kind != VS_PHASE_MARKED))
            return &rows->items[i];
    }
    rows->items[rows->count].first = phase;
    return &rows->items[rows->count++];
}

/* Release its items. */
static struct rows collect(const struct report *report)
{
    const struct vs_phases *phases = &report->summary->phases;
    struct rows rows = {.items = calloc(phases->count + 1, sizeof(*rows.items))};
    for (size_t i = 0; rows.items != NULL && i < phases->count; i++)
        if (!report_hides_device(report, phases->items[i].device))
            add_to_row(row_of(&rows, &phases->items[i]), &phases->items[i]);
    return rows;
}

static void print_row(const struct page *page, const struct report *report, const struct row *row)
{
    char name[PAGE_WIDTH], title[PAGE_WIDTH + 64];
    if (row->first->kind == VS_PHASE_CAPTURE)
        snprintf(name, sizeof(name), "captures of graphs");
    else
        vs_phase_name(report->summary->state, row->first, name, sizeof(name));
    if (row->count > 1)
        snprintf(title, sizeof(title), "%.60s, %zu times", name, row->count);
    else
        snprintf(title, sizeof(title), "%s", name);
    fprintf(page->out, "  %-*s %3d %10s %10s %10s %10s %10s\n", NAME_COLUMNS,
            page_fit(title, NAME_COLUMNS).text, row->first->device, size_text(row->entry).text,
            size_text(row->peak).text, size_text(row->exit).text, size_text(row->transient).text,
            size_text(row->resident).text);
}

static void print_captures(const struct page *page, const struct report *report,
                           const struct row *row)
{
    const struct vs_phases *phases = &report->summary->phases;
    char graphs[64] = "";
    if (row->first->measured)
        snprintf(graphs, sizeof(graphs), ", %s by the executable graphs themselves",
                 size_text(row->graphs).text);
    fprintf(page->out, "    kept: %s in segments%s\n", size_text(row->reserved).text, graphs);
    for (size_t i = 0; row->count > 1 && row->count <= CAPTURES_SHOWN && i < phases->count; i++) {
        const struct vs_phase *phase = &phases->items[i];
        if (phase->kind != VS_PHASE_CAPTURE || phase->device != row->first->device)
            continue;
        fprintf(page->out, "    capture %-4u %s allocated, %s in segments", phase->name,
                size_text(kept(phase, VS_PHASE_ALLOCATED)).text,
                size_text(kept(phase, VS_PHASE_RESERVED)).text);
        if (phase->measured)
            fprintf(page->out, ", %s by its graph", size_text(kept(phase, VS_PHASE_GRAPHS)).text);
        fputc('\n', page->out);
    }
}

void report_print_phases(const struct page *page, const struct report *report)
{
    struct rows rows = collect(report);
    if (rows.count != 0) {
        report_heading(page, "Phases, by what was allocated");
        fprintf(page->out, "  %-*s %3s %10s %10s %10s %10s %10s\n", NAME_COLUMNS, "", "GPU",
                "at entry", "peak", "at exit", "transient", "stays");
    }
    for (size_t i = 0; i < rows.count && i < TOP_PHASES; i++) {
        print_row(page, report, &rows.items[i]);
        if (rows.items[i].first->kind == VS_PHASE_CAPTURE)
            print_captures(page, report, &rows.items[i]);
    }
    if (rows.count > TOP_PHASES)
        fprintf(page->out, "  … and %zu more (--json has all)\n", rows.count - TOP_PHASES);
    free(rows.items);
}
