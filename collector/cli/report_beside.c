/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device that is not this process's alone, and a process that is not on one device
 * alone: what other traced processes held when it was fullest, and where this one has
 * a context besides.
 */
#include <inttypes.h>

#include "report_sections.h"

enum { LINE_ROOM = 160, LISTED = 8 };

static int64_t implicit_of(const struct vs_bands *bands)
{
    int64_t implicit = 0;
    for (int i = 0; i < VS_IMPLICITS; i++)
        implicit += bands->implicit[i];
    return implicit;
}

struct report_foreign report_foreign_of(const struct vs_summary *summary,
                                        const struct vs_device_state *device,
                                        const struct vs_bands *bands)
{
    const struct vs_siblings *siblings = &summary->siblings;
    struct report_foreign foreign = {.theirs = bands->other_process,
                                     .unexplained = bands->unexplained};
    int64_t implicit = implicit_of(bands);
    bool asked = siblings->count != 0 && vs_siblings_peak(summary).device == device->device;
    for (size_t i = 0; asked && i < siblings->count; i++) {
        const struct vs_sibling *sibling = &siblings->items[i];
        if (!sibling->peak->there)
            continue;
        foreign.traced += sibling->peak->device_bytes;
        foreign.processes++;
        if (foreign.most == NULL || sibling->peak->device_bytes > foreign.most->peak->device_bytes)
            foreign.most = sibling;
    }
    foreign.uncertain =
        implicit < bands->implicit_uncertainty ? implicit : bands->implicit_uncertainty;
    foreign.uncertain -= bands->implicit[VS_IMPLICIT_CONTEXT];
    /* NVML's answer may be older than what they hold: it was unexplained then, or uncertain. */
    int64_t left = bands->device - bands->backed - bands->direct;
    foreign.traced = foreign.traced < left ? foreign.traced : left;
    int64_t late = foreign.traced - foreign.theirs;
    if (late > 0) {
        int64_t unexplained = foreign.unexplained > 0 ? foreign.unexplained : 0;
        foreign.theirs = foreign.traced;
        foreign.unexplained -= late < unexplained ? late : unexplained;
        foreign.uncertain -= late > unexplained ? late - unexplained : 0;
    }
    if (foreign.uncertain < 0)
        foreign.uncertain = 0;
    return foreign;
}

/* "a41.py:11 in load"; "" where it is not known. */
static void line_title(const struct report *report, const struct vs_sibling_line *line, char *out,
                       size_t room)
{
    out[0] = 0;
    if (line->function != NULL)
        report_frame_title(
            report,
            &(struct vs_frame){.kind = line->python ? VS_FRAME_PYTHON : VS_FRAME_NATIVE,
                               .function = line->function,
                               .file = line->file,
                               .line = line->line,
                               .module = line->module},
            VS_BY_LINE, out, room);
}

/* "pid 77 (rank 1)". */
static void name_sibling(const struct vs_sibling *sibling, char *out, size_t room)
{
    int used = snprintf(out, room, "pid %" PRIu64, sibling->pid);
    if (sibling->rank >= 0)
        snprintf(out + used, room - (size_t)used, " (rank %" PRId64 ")", sibling->rank);
}

/* Whether this process started all that held something. */
static bool all_are_children(const struct vs_summary *summary)
{
    int64_t pid = json_integer_value(json_object_get(summary->process, "pid"));
    for (size_t i = 0; i < summary->siblings.count; i++)
        if (summary->siblings.items[i].peak->there &&
            summary->siblings.items[i].parent_pid != (uint64_t)pid)
            return false;
    return pid > 0;
}

void report_describe_beside(const struct report *report, const struct vs_device_state *device,
                            char *out, size_t room)
{
    const struct vs_summary *summary = report->summary;
    const struct vs_bands *bands = vs_peaks_used(&summary->peaks, device);
    out[0] = 0;
    if (bands == NULL || !device->measured)
        return;
    struct report_foreign foreign = report_foreign_of(summary, device, bands);
    if (foreign.processes == 0)
        return;
    char line[LINE_ROOM], by[LINE_ROOM + 64] = "", name[64], who[192];
    const struct vs_sibling_use *use = foreign.most->peak;
    const char *children = all_are_children(summary) ? " that this one started" : "";
    name_sibling(foreign.most, name, sizeof(name));
    if (foreign.processes == 1)
        snprintf(who, sizeof(who), "a traced process%s, %s", children, name);
    else
        snprintf(who, sizeof(who), "%zu traced processes%s, most by %s: %s", foreign.processes,
                 children, name, size_text(use->device_bytes).text);
    line_title(report, &foreign.most->context, line, sizeof(line));
    if (use->implicit > 0)
        snprintf(by, sizeof(by), ", %s of it for its CUDA context%s%s",
                 size_text(use->implicit).text, line[0] != 0 ? ", made by " : "", line);
    snprintf(out, room, " Of that %s was held by %s%s.", size_text(foreign.traced).text, who, by);
}

void report_print_beside(const struct page *page, const struct report *report,
                         const struct vs_device_state *device)
{
    const struct vs_siblings *siblings = &report->summary->siblings;
    size_t shown = 0, more = 0;
    if (siblings->count == 0 || vs_siblings_peak(report->summary).device != device->device)
        return;
    for (size_t i = 0; i < siblings->count; i++) {
        const struct vs_sibling *sibling = &siblings->items[i];
        const struct vs_sibling_use *use = sibling->peak;
        char line[LINE_ROOM], by[LINE_ROOM + 16] = "", cache[64] = "", name[64], text[480];
        if (!use->there || shown == LISTED) {
            more += use->there;
            continue;
        }
        if (shown++ == 0)
            fprintf(page->out, "  of other traced processes at %s, when it was fullest\n",
                    when(report->summary, vs_siblings_peak(report->summary).time_ns).text);
        line_title(report, &sibling->context, line, sizeof(line));
        if (line[0] != 0)
            snprintf(by, sizeof(by), " made by %s", line);
        if (use->framework)
            snprintf(cache, sizeof(cache), "%s reserved, ", size_text(use->reserved).text);
        name_sibling(sibling, name, sizeof(name));
        snprintf(text, sizeof(text), "%s, %.60s: %s: %scontext and the like %s%s", name,
                 vs_sibling_name(sibling), size_text(use->device_bytes).text, cache,
                 size_text(use->implicit).text, by);
        page_wrap(page, 4, text);
    }
    if (more != 0)
        fprintf(page->out, "    … and %zu more (--json has all)\n", more);
}

void report_describe_elsewhere(const struct report *report, const struct vs_device_state *device,
                               char *out, size_t room)
{
    const struct vs_summary *summary = report->summary;
    int64_t most = device->layers[vs_device_top_layer(device)].peak_bytes;
    out[0] = 0;
    for (size_t i = 0; i < VS_DEVICE_SLOTS; i++) {
        const struct vs_device_state *other = summary->state->devices[i];
        if (other == NULL || other == device || !other->context_seen || !device->context_seen ||
            !other->measured || report_hides_device(report, other->device) ||
            other->layers[vs_device_top_layer(other)].peak_bytes > most / 2)
            continue;
        const struct vs_bands *bands = vs_peaks_used(&summary->peaks, other);
        int64_t context = bands == NULL ? 0 : implicit_of(bands);
        if (context <= 0)
            continue;
        int64_t held = bands->backed + bands->direct;
        struct page_text by = report_by(report, other->context_site);
        char asked[48] = "";
        if (held > 0)
            snprintf(asked, sizeof(asked), "%s and ", size_text(held).text);
        snprintf(out, room,
                 " It held %sa context of %s (by difference) on GPU %d, too, made by %s.", asked,
                 size_text(context).text, other->device,
                 by.text[0] != 0 ? by.text : report_call_title(summary, other->context_label));
        return;
    }
}
