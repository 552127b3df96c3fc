/* SPDX-License-Identifier: Apache-2.0 */
/* Each device: its peak, its end, and whose the memory was at the peak. */
#include <stdlib.h>

#include "report_fragmentation.h"
#include "report_sections.h"

static void print_peak(const struct page *page, const struct vs_summary *summary,
                       const struct vs_device_state *device)
{
    const struct vs_layer_total *top = &device->layers[vs_device_top_layer(device)];
    bool framework = device->framework_seen;
    fprintf(page->out, "  peak   %s%s%s %s%s at %s", page_bold(page),
            size_text(top->peak_bytes).text, page_plain(page),
            framework ? "allocated by " : "asked for by driver calls",
            framework ? report_framework_name(summary, device) : "",
            when(summary, top->peak_time_ns).text);
    if (device->framework_seen)
        fprintf(page->out, "; %s reserved", size_text(device->reserved_peak).text);
    if (device->measured)
        fprintf(page->out, "; %s in use%s", size_text(device->used_peak).text,
                device->used_peak_is_measured ? "" : " (estimate)");
    fputc('\n', page->out);
    fprintf(page->out, "  %-6s %s", last_moment(summary), size_text(top->live_bytes).text);
    fprintf(page->out, " %s", device->framework_seen ? "allocated" : "asked for");
    if (device->framework_seen)
        fprintf(page->out, "; %s reserved", size_text(vs_device_reserved(device)).text);
    if (device->measured)
        fprintf(page->out, "; %s in use", size_text(device->used_bytes).text);
    fputc('\n', page->out);
}

static void print_band(const struct page *page, const char *name, int64_t bytes, int64_t whole)
{
    if (bytes <= 0)
        return; /* print_shortfalls has what is below zero */
    struct page_text bar = page_bar(page, bytes, whole);
    fprintf(page->out, "    %-44s %10s  %5.1f %%%s%s\n", name, size_text(bytes).text,
            whole > 0 ? 100.0 * (double)bytes / (double)whole : 0.0, bar.text[0] != 0 ? "  " : "",
            bar.text);
}

static int by_owner_bytes(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return left < right ? 1 : left > right ? -1 : 0;
}

static void print_owners(const struct page *page, const struct vs_summary *summary,
                         const struct vs_bands *bands, int64_t whole)
{
    struct {
        int64_t bytes;
        uint16_t owner;
    } sorted[VS_BANDS_OWNERS];
    for (size_t i = 0; i < bands->owners; i++) {
        sorted[i].bytes = bands->by_owner[i].bytes;
        sorted[i].owner = bands->by_owner[i].owner;
    }
    qsort(sorted, bands->owners, sizeof(sorted[0]), by_owner_bytes);
    for (size_t i = 0; i < bands->owners; i++) {
        char name[96];
        snprintf(name, sizeof(name), "%s%s", bands->reserved == 0 ? "" : "outside of it: ",
                 report_owner_title(summary, sorted[i].owner));
        print_band(page, name, sorted[i].bytes, whole);
    }
    print_band(page, "others", bands->more_owners, whole);
    print_band(page, "allocated by lost events", bands->lost, whole);
    print_band(page, "rounded up by the device (model)", bands->rounding, whole);
}

static void print_implicit(const struct page *page, const struct vs_bands *bands, int64_t whole)
{
    static const char *const names[VS_IMPLICITS] = {
        "context (by difference)", "modules (by difference)", "graphs (by difference)",
        "local memory (by difference)", "streams and other (by difference)"};
    for (int i = 0; i < VS_IMPLICITS; i++)
        print_band(page, names[i], bands->implicit[i], whole);
}

/* Bands by difference that are below zero are no memory: what they mean is said in words. */
static void print_shortfalls(const struct page *page, const struct vs_bands *bands)
{
    if (bands->rounding < 0)
        fprintf(page->out, "    the device packs what was asked for into %s less\n",
                size_text(-bands->rounding).text);
    if (bands->lost < 0)
        fprintf(page->out, "    of it %s were freed by lost events\n",
                size_text(-bands->lost).text);
    if (bands->unexplained < 0)
        fprintf(page->out, "    the bands above count %s more than the device has in use\n",
                size_text(-bands->unexplained).text);
}

/* What of the framework's segments has memory behind it: of the rest it is not known which is in
 * use. */
static void print_framework(const struct page *page, const char *framework,
                            const struct vs_bands *bands, int64_t whole)
{
    char name[64];
    if (bands->unbacked != 0) {
        snprintf(name, sizeof(name), "%s: reserved, with memory behind it", framework);
        print_band(page, name, bands->backed, whole);
        return;
    }
    snprintf(name, sizeof(name), "%s: allocated", framework);
    print_band(page, name, bands->allocated, whole);
    snprintf(name, sizeof(name), "%s: cached, not in use", framework);
    print_band(page, name, bands->cached, whole);
}

/* A sleep mode or pause: the cache knows nothing of it. */
static void print_unbacked(const struct page *page, const char *framework,
                           const struct vs_bands *bands)
{
    char text[320];
    snprintf(text, sizeof(text),
             "%s counted %s allocated and %s reserved, but %s of it had no memory behind it: given "
             "back beneath its allocator, which keeps the addresses (a sleep mode, a pause)",
             framework, size_text(bands->allocated).text, size_text(bands->reserved).text,
             size_text(bands->unbacked).text);
    page_wrap(page, 4, text);
}

static void print_bands(const struct page *page, const struct vs_summary *summary,
                        const struct vs_device_state *device)
{
    const struct vs_bands *bands = vs_peaks_allocated(&summary->peaks, device);
    if (bands == NULL)
        return;
    int64_t whole = bands->device_known ? bands->device : bands->backed + bands->direct;
    const char *framework = report_framework_name(summary, device);
    fprintf(page->out, "  at the peak%s\n",
            bands->device_known ? ", of what was used on the device" : "");
    print_framework(page, framework, bands, whole);
    print_owners(page, summary, bands, whole);
    print_implicit(page, bands, whole);
    print_band(page, "other processes", bands->other_process, whole);
    print_band(page, "unexplained", bands->unexplained, whole);
    print_shortfalls(page, bands);
    if (bands->unbacked > 0)
        print_unbacked(page, framework, bands);
    if (bands->implicit_uncertainty != 0)
        fprintf(page->out, "    by difference is uncertain by up to %s (other processes)\n",
                size_text(bands->implicit_uncertainty).text);
    const struct vs_device_def *known = vs_summary_device_def(summary, device->device);
    if (known != NULL && known->integrated && bands->host_reclaimable > 0)
        fprintf(
            page->out,
            "    it shares the host's memory, of which %s was page cache and the like: given back "
            "when needed\n",
            size_text(bands->host_reclaimable).text);
    if (bands->managed != 0)
        fprintf(page->out, "    managed memory, where its pages are is not known: %s\n",
                size_text(bands->managed).text);
}

/* Who asked for the local memory that no call allocates. */
static void print_stack_limit(const struct page *page, const struct report *report,
                              const struct vs_device_state *device)
{
    const struct vs_limit *limit = &device->limits[VS_LIMIT_STACK_SIZE];
    const struct vs_summary *summary = report->summary;
    char text[320];
    if (!limit->set || device->implicit_bytes[VS_IMPLICIT_LOCAL_MEMORY] <= 0)
        return;
    snprintf(text, sizeof(text),
             "local memory: %s set the stack of a thread to %s at %s; the driver keeps that for "
             "every thread the device can run at once (stack x multiprocessors x threads of each)",
             report_call_title(summary, limit->label), size_text((int64_t)limit->bytes).text,
             when(summary, limit->time_ns).text);
    page_wrap(page, 2, text);
    report_print_by(page, report, 9, limit->site);
}

/* With contexts on several devices: which call made this one. */
static void print_context(const struct page *page, const struct report *report,
                          const struct vs_device_state *device)
{
    const struct vs_summary *summary = report->summary;
    size_t contexts = 0;
    for (size_t i = DEVICE_OFFSET; i < VS_DEVICE_SLOTS; i++)
        contexts += summary->state->devices[i] != NULL && summary->state->devices[i]->context_seen;
    if (contexts < 2 || !device->context_seen)
        return;
    fprintf(page->out, "  context made by %s at %s\n",
            report_call_title(summary, device->context_label),
            when(summary, device->context_time_ns).text);
    report_print_by(page, report, 9, device->context_site);
}

static void print_device(const struct page *page, const struct report *report,
                         const struct vs_device_state *device)
{
    const struct vs_summary *summary = report->summary;
    const struct vs_device_def *known = vs_summary_device_def(summary, device->device);
    fprintf(page->out, "\n%sGPU %d%s", page_bold(page), device->device, page_plain(page));
    if (known != NULL && known->name[0] != 0)
        fprintf(page->out, "  %.*s", (int)sizeof(known->name), known->name);
    if (device->total_bytes != 0)
        fprintf(page->out, ", %s", size_text((int64_t)device->total_bytes).text);
    fputc('\n', page->out);
    print_context(page, report, device);
    print_peak(page, summary, device);
    report_print_before_peak(page, report, device);
    report_print_cache(page, summary, device);
    uint64_t mismatches = report_mismatches(summary, device);
    if (mismatches != 0)
        fprintf(page->out, "  %s%s event%s at which %s's own totals and ours differ%s\n",
                page_alarm(page), page_count(mismatches).text, plural(mismatches),
                report_framework_name(summary, device), page_plain(page));
    print_bands(page, summary, device);
    report_print_beside(page, report, device);
    print_stack_limit(page, report, device);
    report_print_categories(page, report, device);
}

/* Also which were: a number is easily one of the machine, not of CUDA_VISIBLE_DEVICES. */
static void print_unused(const struct page *page, const struct report *report)
{
    struct vs_device_state *const *devices = report->summary->state->devices;
    const char *before = "; used:";
    if (report->options->device < 0) {
        fputs("\nNo device memory was used.\n", page->out);
        return;
    }
    fprintf(page->out, "\nGPU %d was not used", report->options->device);
    for (size_t i = DEVICE_OFFSET; i < VS_DEVICE_SLOTS; i++)
        if (is_device_used(devices[i])) {
            fprintf(page->out, "%s GPU %d", before, devices[i]->device);
            before = ",";
        }
    fputs(".\n", page->out);
}

void report_print_devices(const struct page *page, const struct report *report)
{
    const struct vs_state *state = report->summary->state;
    bool any = false;
    for (size_t i = DEVICE_OFFSET; i < VS_DEVICE_SLOTS; i++) {
        if (!is_device_used(state->devices[i]) ||
            report_hides_device(report, state->devices[i]->device))
            continue;
        print_device(page, report, state->devices[i]);
        any = true;
    }
    if (!any)
        print_unused(page, report);
}
