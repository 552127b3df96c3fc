/* SPDX-License-Identifier: Apache-2.0 */
/* Below a failed request: what other processes held of the device at that moment. */
#include <inttypes.h>

#include "report_sections.h"

/* "9.00 GiB: 1.00 GiB allocated, 7.50 GiB cached, 7.00 GiB of it releasable". */
static void describe_use(const struct vs_sibling_use *use, char *out, size_t room)
{
    char given[64] = "", cache[160] = "", more[64] = "";
    if (use->uncertain > 0)
        snprintf(more, sizeof(more), " and up to %s more by difference",
                 size_text(use->uncertain).text);
    if (use->releasable_known && use->reserved > use->allocated)
        snprintf(given, sizeof(given), ", %s of it free to be given back",
                 size_text((int64_t)use->releasable).text);
    if (use->framework)
        snprintf(cache, sizeof(cache), ": %s allocated, %s cached%s",
                 size_text(use->allocated).text, size_text(use->reserved - use->allocated).text,
                 given);
    snprintf(out, room, "%s%s%s", size_text(use->device_bytes).text, more, cache);
}

static void print_sibling(const struct page *page, const struct vs_sibling *sibling,
                          const struct vs_sibling_use *use)
{
    char held[256], text[640];
    char host[48] = "";
    describe_use(use, held, sizeof(held));
    if (sibling->host_pid != 0 && sibling->host_pid != sibling->pid)
        snprintf(host, sizeof(host), "; %" PRIu64 " on the host", sibling->host_pid);
    snprintf(text, sizeof(text), "pid %" PRIu64 " (%.60s; %.100s%s) held %s%s", sibling->pid,
             vs_sibling_name(sibling), sibling->exe[0] != 0 ? sibling->exe : "program unknown",
             host, held, sibling->whole ? "" : "; parts of its trace are missing");
    page_wrap(page, 12, text);
    if (use->releasable == 0)
        return;
    snprintf(text, sizeof(text),
             "%s in pid %" PRIu64 " would have given back %s, its end all of it",
             use->give_back != NULL ? use->give_back : "emptying its framework's cache",
             sibling->pid, size_text((int64_t)use->releasable).text);
    page_wrap(page, 14, text);
}

/* "pid 77 (not traced; python3, /usr/bin/python3.11; child of 2; for 3 h 02 min) held 1.00 GiB". */
static void print_untraced(const struct page *page, const struct report *report,
                           const struct vs_oom *oom, const struct vs_oom_other *other)
{
    struct report_other_process who = report_name_other(report->summary, other->pid, oom->time_ns);
    char parent[48] = "", age[48] = "", text[512];
    if (who.parent_pid != 0)
        snprintf(parent, sizeof(parent), "; child of %" PRIu64, who.parent_pid);
    if (who.age_known)
        snprintf(age, sizeof(age), "; ran for %s", vs_format_time(who.age_ns).text);
    snprintf(text, sizeof(text),
             "pid %" PRIu64 " (not traced here%s%.60s%s%.100s%s%s) held %s, by NVML", other->pid,
             who.title[0] != 0 ? "; " : "", who.title, who.exe[0] != 0 ? "; " : "", who.exe, parent,
             age, size_text((int64_t)other->bytes).text);
    page_wrap(page, 12, text);
}

void report_print_siblings(const struct page *page, const struct report *report, size_t oom)
{
    const struct vs_siblings *siblings = &report->summary->siblings;
    const struct vs_oom *failed = &report->summary->ooms.items[oom];
    for (size_t i = 0; i < siblings->count; i++)
        if (siblings->items[i].use[oom].there)
            print_sibling(page, &siblings->items[i], &siblings->items[i].use[oom]);
    for (size_t i = 0; i < failed->other_count && i < VS_OOM_OTHERS; i++)
        if (vs_siblings_concern(failed) &&
            vs_siblings_by_pid(siblings, failed->others[i].pid) == NULL)
            print_untraced(page, report, failed, &failed->others[i]);
}

void report_print_looked(const struct page *page, const struct report *report)
{
    const struct vs_siblings *siblings = &report->summary->siblings;
    if (!siblings->looked || siblings->traces == 0)
        return;
    size_t looked = siblings->traces - siblings->ignored - siblings->skip_count;
    if (siblings->count == 0)
        fputs("  no other traced process of this folder held memory of that device then",
              page->out);
    else
        fprintf(page->out,
                "  %zu other traced process%s of this folder held memory of that device "
                "then",
                siblings->count, siblings->count == 1 ? "" : "es");
    fprintf(page->out, " (%zu trace%s looked into)\n", looked, plural(looked));
    for (size_t i = 0; i < siblings->skip_count; i++)
        fprintf(page->out, "    %s: %s\n", page_fit(siblings->skips[i].file, 60).text,
                siblings->skips[i].why);
    if (siblings->ignored != 0)
        fprintf(page->out, "    %zu more were not\n", siblings->ignored);
}
