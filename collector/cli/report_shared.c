/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that crosses processes by IPC and is there at the end: what was exported
 * is used until the exporter frees it.
 */
#include <inttypes.h>

#include "replay/shared.h"
#include "report_sections.h"

enum { TOP_SHARED = 4 };

/* Of a folder's traces: who has it open, or whose it is. */
static void print_others(const struct page *page, const struct report *report,
                         const struct vs_shared_memory *memory, bool exported)
{
    size_t from = 0;
    const struct report_other *other;
    while ((other = report_shared_with(report, memory, exported, &from)) != NULL)
        fprintf(page->out, "            %s pid %" JSON_INTEGER_FORMAT ", %s\n",
                exported ? "open in" : "exported by", other->pid, page_fit(other->path, 60).text);
}

static void print_memory(const struct page *page, const struct report *report,
                         const struct vs_shared_memory *memory, bool exported)
{
    bool vmm = memory->pieces != 0;
    fprintf(page->out, "  %-9s", exported ? "exported" : vmm ? "imported" : "opened");
    if (memory->bytes != 0)
        fprintf(page->out, " %s", size_text((int64_t)memory->bytes).text);
    if (vmm)
        fprintf(page->out, " in %s piece%s of cuMemCreate", page_count(memory->pieces).text,
                plural(memory->pieces));
    if (memory->device >= 0)
        fprintf(page->out, " on GPU %d", memory->device);
    fprintf(page->out, " at %s", when(report->summary, memory->time_ns).text);
    if (!vmm)
        fprintf(page->out, ", handle %016" PRIx64, memory->handle);
    if (exported && memory->live_known)
        fprintf(page->out, "; %s of it in live blocks",
                size_text((int64_t)memory->live_bytes).text);
    if (!exported && vmm)
        fputs(", not released", page->out);
    else if (!exported)
        fprintf(page->out, ", not closed%s", memory->opens > 1 ? " as often as opened" : "");
    fputc('\n', page->out);
    print_others(page, report, memory, exported);
    report_print_by(page, report, 12, memory->site);
}

/* What the entries of a list mean: of handles, and of memory of cuMemCreate. */
static void print_notes(const struct page *page, const struct vs_shared_memory *items, size_t count,
                        bool exported)
{
    size_t vmm = 0;
    for (size_t i = 0; i < count; i++)
        vmm += items[i].pieces != 0;
    if (vmm != count)
        page_wrap(page, 4,
                  exported ? "exported memory is in use until this process frees it; PyTorch keeps "
                             "it until every process it was sent to has let go of it"
                           : "opened memory counts in the process that exported it, which the "
                             "same handle in its trace tells");
    if (vmm != 0)
        page_wrap(page, 4,
                  exported ? "exported pieces stay on the device until this process and each that "
                             "imported them have released and unmapped them; who imported them no "
                             "call tells"
                           : "imported pieces count in the process that made them, and stay on the "
                             "device while they are here, even when that process has ended");
}

static void print_list(const struct page *page, const struct report *report,
                       const struct vs_shared_memory *items, size_t count, bool exported)
{
    for (size_t i = 0; i < count && i < TOP_SHARED; i++)
        print_memory(page, report, &items[i], exported);
    if (count > TOP_SHARED)
        fprintf(page->out, "  ... and %zu more %s (--json has all)\n", count - TOP_SHARED,
                exported ? "exported" : "opened");
    print_notes(page, items, count, exported);
}

void report_print_shared(const struct page *page, const struct report *report)
{
    struct vs_shared shared;
    int result = vs_shared_take(report->summary->state, &report->summary->objects, &shared);
    if (result == 0 && shared.exported_count + shared.opened_count != 0) {
        report_heading(page, "Memory shared with other processes");
        print_list(page, report, shared.exported, shared.exported_count, true);
        print_list(page, report, shared.opened, shared.opened_count, false);
    }
    vs_shared_release(&shared);
}
