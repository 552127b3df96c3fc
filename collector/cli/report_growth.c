/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What grows with every step, by line (or --by) of the program: as a section of
 * the page, and as one sentence of its answer.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "report_sections.h"

enum { TOP_LINES = 8, NAME_COLUMNS = 44, TITLE_ROOM = 256 };

/* What grows of one group: its places summed up. */
struct line {
    const struct vs_place *place; /* of those that grow, the first in rank */
    uint32_t group;
    uint8_t object; /* as in vs_grown */
    bool falls, behind;
    enum vs_growth_confidence confidence; /* the highest */
    double bytes_per_step, count_per_step;
    int64_t first_step;
    int64_t grown_bytes, grown_count, given_back_bytes, given_back_count;
    size_t places;
};

struct lines {
    struct line *items;
    size_t count;
};

/* ---- lines --------------------------------------------------------------------------- */

static void add_to_line(struct line *line, const struct vs_grown *grown)
{
    if (line->places == 0 || grown->first_step < line->first_step)
        line->first_step = grown->first_step;
    if (grown->confidence > line->confidence)
        line->confidence = grown->confidence;
    line->places++;
    line->falls = line->falls || grown->falls;
    line->bytes_per_step += grown->bytes_per_step;
    line->count_per_step += grown->count_per_step;
    line->grown_bytes += grown->grown_bytes;
    line->grown_count += grown->grown_count;
    line->given_back_bytes += grown->given_back_bytes;
    line->given_back_count += grown->given_back_count;
}

static struct line *line_of(struct lines *lines, const struct vs_place *place,
                            const struct vs_grown *grown)
{
    for (size_t i = 0; i < lines->count; i++)
        if (lines->items[i].group == place->group && lines->items[i].object == grown->object &&
            lines->items[i].behind == grown->behind)
            return &lines->items[i];
    struct line *line = &lines->items[lines->count++];
    *line = (struct line){
        .place = place, .group = place->group, .object = grown->object, .behind = grown->behind};
    return line;
}

static int by_harm(const void *a, const void *b)
{
    const struct line *left = a, *right = b;
    if (left->grown_bytes != right->grown_bytes)
        return left->grown_bytes < right->grown_bytes ? 1 : -1;
    if (left->grown_count != right->grown_count)
        return left->grown_count < right->grown_count ? 1 : -1;
    return (left->place > right->place) - (left->place < right->place);
}

/* Release its items. */
static struct lines collect(const struct report *report)
{
    const struct vs_grown_list *grown = report->grown;
    struct lines lines = {.items = calloc(grown->count + 1, sizeof(*lines.items))};
    for (size_t i = 0; lines.items != NULL && i < grown->count; i++) {
        const struct vs_place *place = &report->places->items[grown->items[i].place];
        if (!report_hides_device(report, vs_places_site(report->places, place)->device))
            add_to_line(line_of(&lines, place, &grown->items[i]), &grown->items[i]);
    }
    if (lines.count > 1)
        qsort(lines.items, lines.count, sizeof(*lines.items), by_harm);
    return lines;
}

/* ---- words ------------------------------------------------------------------------------ */

static const char *object_title(uint8_t object)
{
    static const char *const titles[] = {
        [VS_OBJECT_MODULE] = "module",
        [VS_OBJECT_GRAPH_EXEC] = "executable graph",
        [VS_OBJECT_STREAM] = "stream",
        [VS_OBJECT_CONTEXT] = "context",
        [VS_OBJECT_IPC_HANDLE] = "IPC handle",
        [VS_OBJECT_IPC_MAPPING] = "IPC mapping",
        [VS_OBJECT_POOL] = "pool",
        [VS_OBJECT_COMMUNICATOR] = "communicator",
    };
    size_t kind = (size_t)object - 1;
    bool known = kind < sizeof(titles) / sizeof(titles[0]) && titles[kind] != NULL;
    return known ? titles[kind] : vs_object_name((enum vs_object_kind)kind);
}

static struct page_text number_text(double number)
{
    struct page_text out;
    snprintf(out.text, sizeof(out.text), number < 10 ? "%.3g" : "%.0f", number);
    return out;
}

static struct page_text amount_text(const struct line *line)
{
    struct page_text out;
    if (line->object == 0)
        snprintf(out.text, sizeof(out.text), "%s",
                 size_text((int64_t)(line->bytes_per_step + 0.5)).text);
    else
        snprintf(out.text, sizeof(out.text), "%s", number_text(line->count_per_step).text);
    return out;
}

static const char *moment(const struct report *report, bool given_back)
{
    return given_back                  ? "after the last step"
           : report->summary->windowed ? "at the window's end"
           : report->summary->complete ? "at the end"
                                       : "at the cut";
}

/* ---- the answer ---------------------------------------------------------------------------- */

static bool is_sure(const struct line *line)
{
    return line->confidence == VS_GROWTH_HIGH || line->falls;
}

static bool is_host(const struct report *report, const struct line *line)
{
    return vs_places_site(report->places, line->place)->layer == VS_LAYER_HOST;
}

/* One for each handle of a library and each stream: it grows with these, and is no leak. */
static bool is_workspace(const struct report *report, const struct line *line)
{
    return line->object == 0 &&
           vs_categories_rule(report->categories, report->places, line->place) == VS_RULE_WORKSPACE;
}

/* Of the device's memory, or of the host's that is pinned. */
static void describe_bytes(const struct report *report, const struct lines *lines, bool host,
                           char *out, size_t room)
{
    const struct line *worst = NULL;
    double per_step = 0;
    int64_t grown = 0;
    size_t sure = 0;
    char title[PAGE_WIDTH], at[PAGE_WIDTH + 160];
    for (size_t i = 0; i < lines->count; i++) {
        if (lines->items[i].object != 0 || !is_sure(&lines->items[i]) ||
            is_host(report, &lines->items[i]) != host || is_workspace(report, &lines->items[i]))
            continue;
        worst = worst == NULL ? &lines->items[i] : worst;
        per_step += lines->items[i].bytes_per_step;
        grown += lines->items[i].grown_bytes;
        sure++;
    }
    if (worst == NULL)
        return;
    report_place_title(report, worst->place, report->options->by, title, sizeof(title));
    if (sure == 1)
        snprintf(at, sizeof(at), "at %s", title);
    else
        snprintf(at, sizeof(at), "at %zu places, %s of it at %s", sure, amount_text(worst).text,
                 title);
    snprintf(out, room, " %s grows by %s per step %s, since step %" PRId64 ": %s of it %s%s.",
             host ? "Pinned host memory" : "Memory", size_text((int64_t)(per_step + 0.5)).text, at,
             worst->first_step, size_text(grown).text, moment(report, worst->given_back_bytes != 0),
             worst->falls ? ", after it had been given back before" : "");
}

static void describe_objects(const struct report *report, const struct lines *lines, char *out,
                             size_t room)
{
    for (size_t i = 0; i < lines->count; i++) {
        const struct line *line = &lines->items[i];
        if (line->object == 0 || !is_sure(line))
            continue;
        char title[PAGE_WIDTH];
        report_place_title(report, line->place, report->options->by, title, sizeof(title));
        snprintf(out, room, " %s %s%s more with every step at %s, since step %" PRId64 ": %s %s.",
                 amount_text(line).text, object_title(line->object),
                 line->count_per_step == 1 ? "" : "s", title, line->first_step,
                 page_count((uint64_t)line->grown_count).text,
                 moment(report, line->given_back_count != 0));
        return;
    }
}

void report_describe_growth(const struct report *report, char *out, size_t room)
{
    struct lines lines = collect(report);
    out[0] = 0;
    if (lines.items != NULL)
        describe_bytes(report, &lines, false, out, room);
    if (lines.items != NULL && out[0] == 0)
        describe_bytes(report, &lines, true, out, room);
    if (lines.items != NULL && out[0] == 0)
        describe_objects(report, &lines, out, room);
    free(lines.items);
}

/* ---- the section --------------------------------------------------------------------- */

static void print_steps(const struct page *page, const struct vs_steps *steps)
{
    char text[320];
    if (steps->source == VS_STEPS_FOUND && steps->few)
        snprintf(text, sizeof(text),
                 "%s steps, found from what is allocated again and again; nothing is freed "
                 "meanwhile, they may be no steps",
                 page_count(steps->count).text);
    else if (steps->source == VS_STEPS_FOUND)
        snprintf(text, sizeof(text),
                 "%s steps, found from what is allocated again and again: %.0f %% of the places "
                 "that come and go keep to them%s",
                 page_count(steps->count).text, 100 * steps->confidence,
                 steps->churning ? "" : "; nothing comes and goes with them, they may be no steps");
    else
        snprintf(text, sizeof(text), "%s steps, as the program %s them",
                 page_count(steps->count).text,
                 steps->source == VS_STEPS_MARKED ? "marks" : "names");
    page_wrap(page, 2, text);
}

/* All that had stayed was still in the program's reach when its steps were over. */
static bool was_held(const struct line *line)
{
    return line->object == 0 ? line->given_back_bytes >= line->grown_bytes
                             : line->given_back_count >= line->grown_count;
}

static void print_line(const struct page *page, const struct report *report,
                       const struct line *line)
{
    char title[TITLE_ROOM], what[TITLE_ROOM + 32];
    report_place_title(report, line->place, report->options->by, title, sizeof(title));
    if (line->object == 0)
        snprintf(what, sizeof(what), "%s", title);
    else
        snprintf(what, sizeof(what), "%ss: %s", object_title(line->object), title);
    struct page_text name = page_fit(what, NAME_COLUMNS);
    int columns = NAME_COLUMNS;
    for (const char *at = name.text; *at != 0; at++)
        columns += ((unsigned char)*at & 0xc0U) == 0x80U;
    fprintf(page->out, "  %-*s %10s %6s %7" PRId64 " %11s  %s%s\n", columns, name.text,
            line->object == 0 ? amount_text(line).text : "-",
            number_text(line->count_per_step).text, line->first_step,
            line->object == 0 ? size_text(line->grown_bytes).text
                              : page_count((uint64_t)line->grown_count).text,
            line->behind                 ? "likely *"
            : is_workspace(report, line) ? "expected"
                                         : vs_growth_word(line->confidence, line->falls),
            was_held(line) ? " +" : "");
}

void report_print_growth(const struct page *page, const struct report *report)
{
    struct lines lines = collect(report);
    size_t rows = report->options->top != 0 ? report->options->top : TOP_LINES;
    if (lines.count != 0) {
        report_heading(page, "Grows");
        print_steps(page, &report->grown->steps);
        fprintf(page->out, "  %-*s %10s %6s %7s %11s\n", NAME_COLUMNS, "", "per step", "blocks",
                "since", "by now");
    }
    bool behind = false, held = false, expected = false;
    for (size_t i = 0; i < lines.count && i < rows; i++) {
        print_line(page, report, &lines.items[i]);
        behind = behind || lines.items[i].behind;
        held = held || was_held(&lines.items[i]);
        expected = expected || is_workspace(report, &lines.items[i]);
        if (i == 0)
            report_print_stack(page, report, 6, lines.items[i].place, true);
    }
    if (behind)
        fprintf(page->out, "  * with each round of a loop that went on behind the last step\n");
    if (held)
        fprintf(page->out, "  + held until after the last step, then given back: results that a "
                           "program gathers look like this\n");
    if (expected)
        page_wrap(page, 2,
                  "expected: workspaces, one for each handle of a library and each stream that it "
                  "is used on; their number ends with that of the streams");
    if (lines.count > rows)
        fprintf(page->out, "  … and %zu more (--json has all)\n", lines.count - rows);
    free(lines.items);
}
