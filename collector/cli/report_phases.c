/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each phase held, marked or found: a row for each name and device (for names
 * that differ in their numbers one, where they are many), and what the captures of
 * graphs keep, one by one where they are few.
 */
#include <stdlib.h>
#include <string.h>

#include "report_sections.h"

enum { TOP_PHASES = 8, CAPTURES_SHOWN = 4, NAME_COLUMNS = 36, NUMBERED_SHOWN = 4 };

/* Phases of one name on one device. */
struct row {
    const struct vs_phase *first;
    uint64_t pattern; /* of the name of a marked one */
    size_t count;
    bool numbered;                                  /* names that differ in their numbers */
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
static struct row *row_of(struct rows *rows, const struct vs_state *state,
                          const struct vs_phase *phase)
{
    const char *name = phase->kind == VS_PHASE_MARKED ? vs_state_string(state, phase->name) : NULL;
    uint64_t pattern = name != NULL ? vs_name_pattern(name) : 0;
    for (size_t i = 0; i < rows->count; i++) {
        const struct vs_phase *first = rows->items[i].first;
        if (first->kind == phase->kind && first->device == phase->device &&
            rows->items[i].pattern == pattern &&
            (name == NULL || strcmp(name, vs_state_string(state, first->name)) == 0))
            return &rows->items[i];
    }
    rows->items[rows->count] = (struct row){.first = phase, .pattern = pattern};
    return &rows->items[rows->count++];
}

static void add_row(struct row *to, const struct row *row)
{
    to->count += row->count;
    to->numbered = true;
    raise_to(&to->entry, row->entry);
    raise_to(&to->peak, row->peak);
    raise_to(&to->exit, row->exit);
    raise_to(&to->transient, row->transient);
    to->resident += row->resident;
}

static bool are_alike(const struct row *a, const struct row *b)
{
    return a->first->kind == VS_PHASE_MARKED && b->first->kind == VS_PHASE_MARKED &&
           a->first->device == b->first->device && a->pattern == b->pattern;
}

/* Makes one of those from `at` on whose names differ in numbers only, where they are many. */
static void merge_numbered(struct rows *rows, size_t at)
{
    size_t alike = 0, kept = at + 1;
    for (size_t i = at + 1; i < rows->count; i++)
        alike += are_alike(&rows->items[at], &rows->items[i]);
    if (alike < NUMBERED_SHOWN)
        return;
    for (size_t i = at + 1; i < rows->count; i++) {
        if (are_alike(&rows->items[at], &rows->items[i]))
            add_row(&rows->items[at], &rows->items[i]);
        else
            rows->items[kept++] = rows->items[i];
    }
    rows->count = kept;
}

static int by_transient(const void *a, const void *b)
{
    const struct row *left = a, *right = b;
    if (left->transient != right->transient)
        return left->transient < right->transient ? 1 : -1;
    if (left->peak != right->peak)
        return left->peak < right->peak ? 1 : -1;
    return left->first < right->first ? -1 : 1;
}

/* Phases that began late: to the row of their name, or of names that differ in numbers only. */
static void add_sum(struct rows *rows, const struct vs_state *state, const struct vs_phase_sum *sum)
{
    struct row late = {.first = &sum->first,
                       .pattern = sum->pattern,
                       .count = sum->count,
                       .numbered = sum->numbered,
                       .entry = sum->entry,
                       .peak = sum->peak,
                       .exit = sum->exit,
                       .transient = sum->transient,
                       .resident = sum->resident};
    const char *name = vs_state_string(state, sum->first.name);
    for (size_t i = 0; i < rows->count; i++) {
        struct row *row = &rows->items[i];
        if (!are_alike(row, &late))
            continue;
        bool numbered = row->numbered || late.numbered ||
                        strcmp(vs_state_string(state, row->first->name), name) != 0;
        add_row(row, &late);
        row->numbered = numbered;
        return;
    }
    rows->items[rows->count++] = late;
}

/* In order of time. Release its items. */
static struct rows collect(const struct report *report)
{
    const struct vs_phases *phases = &report->summary->phases;
    struct rows rows = {.items =
                            calloc(phases->count + phases->sum_count + 1, sizeof(*rows.items))};
    for (size_t i = 0; rows.items != NULL && i < phases->count; i++)
        if (!report_hides_device(report, phases->items[i].device))
            add_to_row(row_of(&rows, report->summary->state, &phases->items[i]), &phases->items[i]);
    for (size_t i = 0; i < rows.count; i++)
        merge_numbered(&rows, i);
    for (size_t i = 0; rows.items != NULL && i < phases->sum_count; i++)
        if (!report_hides_device(report, phases->sums[i].first.device))
            add_sum(&rows, report->summary->state, &phases->sums[i]);
    return rows;
}

static void print_row(const struct page *page, const struct report *report, const struct row *row)
{
    char name[PAGE_WIDTH], title[PAGE_WIDTH + 64];
    if (row->first->kind == VS_PHASE_CAPTURE)
        snprintf(name, sizeof(name), "captures of graphs");
    else if (row->numbered)
        vs_name_pattern_text(vs_state_string(report->summary->state, row->first->name), name,
                             sizeof(name));
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

/* Nothing came, went or stayed: a library's ranges mostly. */
static bool is_idle(const struct row *row)
{
    return row->first->kind == VS_PHASE_MARKED && row->transient == 0 && row->resident == 0 &&
           row->entry == row->peak && row->exit == row->peak;
}

/* The others, in their order; how many are gone. */
static size_t leave_out_idle(struct rows *rows)
{
    size_t count = rows->count;
    rows->count = 0;
    for (size_t i = 0; i < count; i++)
        if (!is_idle(&rows->items[i]))
            rows->items[rows->count++] = rows->items[i];
    return count - rows->count;
}

/* What is not kept one by one, or not at all. */
static void print_limits(const struct page *page, const struct vs_phases *phases)
{
    if (phases->sum_count != 0)
        fprintf(page->out, "  --json has the first %s one by one, later ones by name\n",
                page_count(VS_PHASES_MARKED_KEPT).text);
    if (phases->omitted != 0)
        fprintf(page->out, "  without %s more: too many at once, or of too many names\n",
                page_count(phases->omitted).text);
}

void report_print_phases(const struct page *page, const struct report *report)
{
    struct rows rows = collect(report);
    size_t all = rows.count, idle = leave_out_idle(&rows);
    if (rows.count > TOP_PHASES)
        qsort(rows.items, rows.count, sizeof(*rows.items), by_transient);
    if (all != 0)
        report_heading(page, "Phases, by what was allocated");
    if (rows.count != 0)
        fprintf(page->out, "  %-*s %3s %10s %10s %10s %10s %10s\n", NAME_COLUMNS, "", "GPU",
                "at entry", "peak", "at exit", "transient", "stays");
    for (size_t i = 0; i < rows.count && i < TOP_PHASES; i++) {
        print_row(page, report, &rows.items[i]);
        if (rows.items[i].first->kind == VS_PHASE_CAPTURE)
            print_captures(page, report, &rows.items[i]);
    }
    if (rows.count > TOP_PHASES)
        fprintf(page->out, "  … and %zu more (--json has all)\n", rows.count - TOP_PHASES);
    if (idle != 0)
        fprintf(page->out, "  %zu%s%s in which nothing came or went (--json has all)\n", idle,
                rows.count != 0 ? " other" : "", rows.count != 0 ? plural(idle) : "");
    if (all != 0)
        print_limits(page, &report->summary->phases);
    free(rows.items);
}
