/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that failed, objects that cost memory without a size, and time in calls. */
#include "report_sections.h"

enum { TOP_FAILURES = 8, TOP_CALLS = 5, LEAST_CALL_SHARE = 200 /* of the run's time */ };

void report_print_failures(const struct page *page, const struct report *report)
{
    const struct vs_summary *summary = report->summary;
    const struct vs_failures *failures = &summary->failures;
    if (failures->count == 0)
        return;
    report_heading(page, "Failed calls");
    for (size_t i = 0; i < failures->count && i < TOP_FAILURES; i++) {
        const struct vs_failure *failure = &failures->items[i];
        char buffer[32];
        fprintf(page->out, "  %s x %s: %s, last at %s\n", page_count(failure->count).text,
                vs_state_string(summary->state, failure->label),
                report_error_name(summary, failure->label, failure->result, buffer, sizeof(buffer)),
                when(summary, failure->last_ns).text);
        page_wrap(page, 6, vs_failure_hint(failure));
        struct page_text by = report_by(report, failure->site);
        if (by.text[0] != 0)
            fprintf(page->out, "      by %s\n", by.text);
    }
    if (failures->count > TOP_FAILURES)
        fprintf(page->out, "  ... and %zu more (--json has all)\n", failures->count - TOP_FAILURES);
}

void report_print_objects(const struct page *page, const struct report *report)
{
    const struct vs_summary *summary = report->summary;
    bool any = false;
    for (unsigned kind = 0; kind < VS_OBJECT_KINDS; kind++) {
        uint64_t created = summary->objects.kinds[kind].created;
        if (created == 0)
            continue;
        if (!any)
            report_heading(page, "What costs memory without a size of its own");
        any = true;
        fprintf(page->out, "  %-12s %6s live of %s made", vs_object_name((enum vs_object_kind)kind),
                page_count(summary->objects.kinds[kind].live.count).text, page_count(created).text);
        struct page_text by = report_by(report, summary->objects.kinds[kind].site);
        if (by.text[0] != 0)
            fprintf(page->out, "%s by %s", created == 1 ? "," : ", the last", by.text);
        fputc('\n', page->out);
    }
}

void report_print_calls(const struct page *page, const struct report *report)
{
    const struct vs_summary *summary = report->summary;
    const struct vs_slow_calls *calls = &summary->slow_calls;
    uint64_t least_ns = summary->duration_ns / LEAST_CALL_SHARE;
    for (size_t i = 0; i < calls->count && i < TOP_CALLS && calls->items[i].total_ns > least_ns;
         i++) {
        if (i == 0)
            report_heading(page, "Time in memory calls");
        fprintf(page->out, "  %-28s %10s call%-1s  %10s in all  %10s at most\n",
                vs_state_string(summary->state, calls->items[i].call),
                page_count(calls->items[i].count).text, plural(calls->items[i].count),
                vs_format_time(calls->items[i].total_ns).text,
                vs_format_time(calls->items[i].max_ns).text);
    }
}
