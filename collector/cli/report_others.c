/* SPDX-License-Identifier: Apache-2.0 */
/* The other traces of a folder, and why the one that is reported was chosen. */
#include "report_sections.h"

enum { OTHERS_SHOWN = 16 };

/* "(of 8 traces in this folder the first of 2 that ran out of memory)". */
void report_print_chosen(const struct page *page, const struct report *report)
{
    static const char *const ends[] = {[REPORT_ENDED_WELL] = "held most; none failed",
                                       [REPORT_ENDED_BADLY] = "failed",
                                       [REPORT_OUT_OF_MEMORY] = "ran out of memory"};
    const struct report_others *others = report->others;
    if (others == NULL || others->count == 0 || others->chosen == NULL)
        return;
    const struct report_other *chosen = others->chosen;
    fprintf(page->out, "(of %s traces in this folder the ", page_count(others->count + 1).text);
    if (chosen->urgency == REPORT_ENDED_WELL || others->as_urgent == 1)
        fputs("one", page->out);
    else
        fprintf(page->out, "%s of %s", chosen->failed_at != 0 ? "first" : "largest",
                page_count(others->as_urgent).text);
    fprintf(page->out, " that %s)\n", ends[chosen->urgency]);
}

/* A column is left out where no trace has anything in it. */
static bool any_rank(const struct report_others *others)
{
    for (size_t i = 0; i < others->count; i++)
        if (others->items[i].rank >= 0)
            return true;
    return false;
}

static void print_other(const struct page *page, const struct report_other *other, bool ranks)
{
    char rank[24] = "", device[16] = "";
    if (other->rank >= 0)
        snprintf(rank, sizeof(rank), "%" JSON_INTEGER_FORMAT, other->rank);
    if (other->device >= 0)
        snprintf(device, sizeof(device), "%d", other->device);
    fputs("  ", page->out);
    if (ranks)
        fprintf(page->out, "%4s ", rank);
    fprintf(page->out, "%3s %10s %10s  %-26s %s\n", device, size_text(other->peak_bytes).text,
            size_text(other->end_bytes).text, other->ended,
            page_fit(base_name(other->path), ranks ? 39 : 44).text);
}

void report_print_others(const struct page *page, const struct report *report)
{
    const struct report_others *others = report->others;
    if (others == NULL || others->count == 0)
        return;
    bool ranks = any_rank(others);
    report_heading(page, "Other traces in this folder");
    fprintf(page->out, "  %s%3s %10s %10s  %-26s %s\n", ranks ? "rank " : "", "GPU", "peak",
            "at end", "ended", "file");
    for (size_t i = 0; i < others->count && i < OTHERS_SHOWN; i++)
        print_other(page, &others->items[i], ranks);
    if (others->count > OTHERS_SHOWN)
        fprintf(page->out, "  … and %zu more (--json has all)\n", others->count - OTHERS_SHOWN);
}
