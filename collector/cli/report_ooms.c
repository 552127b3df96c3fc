/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that failed for want of memory: what was asked for, why there was none, by whom. */
#include "report_fragmentation.h"
#include "report_sections.h"

enum { LAST_OOMS = 5 };

static struct page_text outcome(const struct vs_oom *oom)
{
    struct page_text out = {{0}};
    if (oom->repaired)
        snprintf(out.text, sizeof(out.text), "met %s later by a retry",
                 vs_format_time(oom->lost_ns).text);
    else
        snprintf(out.text, sizeof(out.text), "%s",
                 oom->handled ? "the program went on" : "not survived");
    return out;
}

/* Without its stack: it did no harm. */
static void print_by_shortly(const struct page *page, const struct report *report, uint32_t site)
{
    struct page_text by = report_by(report, site);
    if (by.text[0] != 0)
        fprintf(page->out, "            by %s\n", by.text);
}

static void print_oom(const struct page *page, const struct report *report,
                      const struct vs_oom *oom)
{
    const struct vs_summary *summary = report->summary;
    char where[32] = "";
    if (oom->device >= 0)
        snprintf(where, sizeof(where), " on GPU %d", oom->device);
    fprintf(page->out, "  %-9s %s of %s%s, %s: %s\n", when(summary, oom->time_ns).text,
            report_call_title(summary, oom->label), size_text((int64_t)oom->requested).text, where,
            outcome(oom).text, vs_oom_class_name(oom->class));
    if (!report_answers_oom(report, oom))
        page_wrap(page, 12, oom->why);
    if (oom->retry_known && oom->retry_fits && !oom->repaired)
        fprintf(page->out, "            an immediate retry would have succeeded\n");
    if (oom->repaired)
        print_by_shortly(page, report, oom->site);
    else
        report_print_by(page, report, 12, oom->site);
    report_print_pinned(page, report, oom);
    report_print_pools(page, report, oom);
    report_print_siblings(page, report, (size_t)(oom - report->summary->ooms.items));
}

void report_print_ooms(const struct page *page, const struct report *report)
{
    const struct vs_ooms *ooms = &report->summary->ooms;
    size_t count = 0, passed = 0, survived = 0;
    for (size_t i = 0; i < ooms->count; i++) {
        bool listed = report_lists_oom(report, &ooms->items[i]);
        count += listed;
        survived += listed && ooms->items[i].handled;
    }
    if (count == 0)
        return;
    report_heading(page, survived == count ? "Out of memory, and survived" : "Out of memory");
    size_t omitted = count > LAST_OOMS ? count - LAST_OOMS : 0;
    if (omitted != 0)
        fprintf(page->out, "  %zu earlier ones (--json has them)\n", omitted);
    for (size_t i = 0; i < ooms->count; i++)
        if (report_lists_oom(report, &ooms->items[i]) && passed++ >= omitted)
            print_oom(page, report, &ooms->items[i]);
    report_print_looked(page, report);
}
