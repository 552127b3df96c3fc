/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report for people. The first screen answers: how much at the peak, whose,
 * when, how it ended, what was lost. 100 columns.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "page.h"
#include "replay/format_size.h"
#include "report.h"

enum { DEVICE_OFFSET = 128, TOP_SITES = 10, TOP_FAILURES = 8, TOP_CALLS = 5, LAST_OOMS = 5 };

static struct vs_size_text size(int64_t bytes)
{
    return vs_format_size(bytes);
}

static struct vs_size_text when(const struct vs_summary *summary, uint64_t time_ns)
{
    return vs_format_time(vs_summary_at(summary, time_ns));
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* A call by its name; the framework's own report is no call that people know. */
static const char *call_title(const struct vs_summary *summary, uint16_t label)
{
    const char *name = vs_state_string(summary->state, label);
    return strncmp(name, "_ZN3c10", 7) == 0 ? "an allocation" : name;
}

static void heading(const struct page *page, const char *text)
{
    fprintf(page->out, "\n%s%s%s\n", page_bold(page), text, page_plain(page));
}

/* "1 call", "2 calls". */
static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* ---- process and end --------------------------------------------------------------------- */

static void print_process(const struct page *page, const struct vs_summary *summary)
{
    const char *exe = json_string_value(json_object_get(summary->process, "exe"));
    const char *host = json_string_value(json_object_get(summary->process, "host"));
    const json_t *pid = json_object_get(summary->process, "pid");
    const json_t *rank = json_object_get(summary->process, "rank");
    const json_t *world = json_object_get(summary->process, "world_size");
    fprintf(page->out, "%s", exe != NULL ? page_fit(base_name(exe), 40).text : "program unknown");
    if (json_is_integer(pid))
        fprintf(page->out, ", pid %" JSON_INTEGER_FORMAT, json_integer_value(pid));
    if (json_is_integer(rank))
        fprintf(page->out, ", rank %" JSON_INTEGER_FORMAT, json_integer_value(rank));
    if (json_is_integer(rank) && json_is_integer(world))
        fprintf(page->out, " of %" JSON_INTEGER_FORMAT, json_integer_value(world));
    if (host != NULL)
        fprintf(page->out, ", on %s", page_fit(host, 30).text);
    fprintf(page->out, ", %s\n", vs_format_time(summary->duration_ns).text);
}

static void print_cause(const struct page *page, const struct vs_summary *summary)
{
    const struct vs_oom *oom = vs_summary_fatal_oom(summary);
    if (oom != NULL) {
        fprintf(page->out, "         out of memory at %s: %s of %s on ",
                when(summary, oom->time_ns).text, call_title(summary, oom->label),
                size((int64_t)oom->requested).text);
        if (oom->device >= 0)
            fprintf(page->out, "GPU %d\n", oom->device);
        else
            fputs("an unknown device\n", page->out);
        char verdict[400];
        snprintf(verdict, sizeof(verdict), "%s: %s", vs_oom_class_name(oom->class), oom->why);
        page_wrap(page, 9, verdict);
    } else if (summary->failures.count > 0) {
        const struct vs_failure *last = &summary->failures.items[summary->failures.last];
        char buffer[32];
        fprintf(page->out, "         last failure at %s: %s: %s\n",
                when(summary, last->last_ns).text, vs_state_string(summary->state, last->label),
                report_error_name(summary, last->label, last->result, buffer, sizeof(buffer)));
    }
}

static void print_end(const struct page *page, const struct vs_summary *summary)
{
    bool badly = vs_summary_ended_badly(summary);
    const char *tone = badly ? page_alarm(page) : page_bold(page);
    fprintf(page->out, "%sEnded:%s   ", tone, page_plain(page));
    if (strcmp(summary->ended, "killed") == 0 && summary->signal_known)
        fprintf(page->out, "killed by signal %d (%s)", summary->signal, strsignal(summary->signal));
    else if (strcmp(summary->ended, "killed") == 0)
        fputs("killed", page->out);
    else if (strcmp(summary->ended, "exit") == 0 && summary->exit_code_known)
        fprintf(page->out, "exit %d", summary->exit_code);
    else if (strcmp(summary->ended, "exit") == 0)
        fputs("exit", page->out);
    else if (strcmp(summary->ended, "exec") == 0)
        fputs("it became another program (exec)", page->out);
    else
        fputs("not known: the trace has no end", page->out);
    fprintf(page->out, "%s\n", summary->complete ? "" : "; what is live below is live at the cut");
    if (badly || vs_summary_fatal_oom(summary) != NULL)
        print_cause(page, summary);
}

static void describe_end(const struct vs_summary *summary, char *out, size_t room)
{
    const struct vs_oom *oom = vs_summary_fatal_oom(summary);
    bool has_code = strcmp(summary->ended, "exit") == 0 && summary->exit_code_known;
    char code[32] = "";
    if (has_code)
        snprintf(code, sizeof(code), " (exit %d)", summary->exit_code);
    if (oom != NULL)
        snprintf(out, room, "It did not survive a request for %s that failed at %s%s.",
                 size((int64_t)oom->requested).text, when(summary, oom->time_ns).text, code);
    else if (strcmp(summary->ended, "killed") == 0)
        snprintf(out, room, "It was killed; no request for memory had failed unhandled.");
    else if (has_code && summary->exit_code != 0)
        snprintf(out, room, "It failed (exit %d), and not for want of GPU memory.",
                 summary->exit_code);
    else if (strcmp(summary->ended, "exit") == 0)
        snprintf(out, room, "It ended normally.");
    else if (strcmp(summary->ended, "exec") == 0)
        snprintf(out, room, "It became another program.");
    else
        snprintf(out, room, "The trace ends before the program did.");
}

static void print_losses(const struct page *page, const struct vs_summary *summary)
{
    const struct vs_trace_status *status = &summary->status;
    bool nothing = summary->lost == 0 && summary->torn == 0 && status->damaged_chunks == 0 &&
                   !status->truncated && status->sequence_gaps == 0;
    fprintf(page->out, "%sLost:%s    ", nothing ? page_bold(page) : page_alarm(page),
            page_plain(page));
    if (nothing) {
        fputs("nothing\n", page->out);
        return;
    }
    fprintf(page->out, "%s event%s", page_count(summary->lost).text, plural(summary->lost));
    if (summary->torn != 0)
        fprintf(page->out, ", %s torn record%s", page_count(summary->torn).text,
                plural(summary->torn));
    if (status->damaged_chunks != 0 || status->truncated)
        fprintf(page->out, "; the file is %s", status->truncated ? "cut off" : "damaged");
    if (status->sequence_gaps != 0)
        fprintf(page->out, "; %s hole%s in the file", page_count(status->sequence_gaps).text,
                plural(status->sequence_gaps));
    fputs("\n         whose memory the lost events moved is not known; a framework's totals are "
          "right\n",
          page->out);
}

/* ---- a device -------------------------------------------------------------------------------- */

static void print_peak(const struct page *page, const struct vs_summary *summary,
                       const struct vs_device_state *device)
{
    const struct vs_layer_total *top = &device->layers[vs_device_top_layer(device)];
    bool framework = device->framework_seen;
    fprintf(page->out, "  peak   %s%s%s %s%s at %s", page_bold(page), size(top->peak_bytes).text,
            page_plain(page), framework ? "allocated by " : "asked for by driver calls",
            framework ? report_framework_name(summary, device) : "",
            when(summary, top->peak_time_ns).text);
    if (device->framework_seen)
        fprintf(page->out, "; %s reserved", size(device->reserved_peak).text);
    if (device->measured)
        fprintf(page->out, "; %s of the device used%s", size(device->used_peak).text,
                device->used_peak_is_measured ? "" : " (estimate)");
    fputc('\n', page->out);
    fprintf(page->out, "  %s  %s", summary->complete ? "end  " : "cut  ",
            size(top->live_bytes).text);
    fprintf(page->out, " %s", device->framework_seen ? "allocated" : "asked for");
    if (device->framework_seen)
        fprintf(page->out, "; %s reserved", size(vs_device_reserved(device)).text);
    if (device->measured)
        fprintf(page->out, "; %s of the device used", size(device->used_bytes).text);
    fputc('\n', page->out);
}

static void print_band(const struct page *page, const char *name, int64_t bytes, int64_t whole)
{
    if (bytes <= 0)
        return; /* print_shortfalls has what is below zero */
    fprintf(page->out, "    %-44s %10s  %5.1f %%  %s\n", name, size(bytes).text,
            whole > 0 ? 100.0 * (double)bytes / (double)whole : 0.0,
            page_bar(page, bytes, whole).text);
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
                 vs_state_owner_name(summary->state, sorted[i].owner));
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
                size(-bands->rounding).text);
    if (bands->lost < 0)
        fprintf(page->out, "    of it %s were freed by lost events\n", size(-bands->lost).text);
    if (bands->unexplained < 0)
        fprintf(page->out, "    the bands above count %s more than the device has in use\n",
                size(-bands->unexplained).text);
}

static void print_bands(const struct page *page, const struct vs_summary *summary,
                        const struct vs_device_state *device)
{
    const struct vs_bands *bands = vs_peaks_allocated(&summary->peaks, device);
    if (bands == NULL)
        return;
    int64_t whole = bands->device_known ? bands->device : bands->backed + bands->direct;
    char name[64];
    fprintf(page->out, "  at the peak%s\n",
            bands->device_known ? ", of what was used on the device" : "");
    snprintf(name, sizeof(name), "%s: allocated", report_framework_name(summary, device));
    print_band(page, name, bands->allocated, whole);
    snprintf(name, sizeof(name), "%s: cached, not in use", report_framework_name(summary, device));
    print_band(page, name, bands->cached - bands->unbacked, whole);
    print_owners(page, summary, bands, whole);
    print_implicit(page, bands, whole);
    print_band(page, "other processes", bands->other_process, whole);
    print_band(page, "unexplained", bands->unexplained, whole);
    print_shortfalls(page, bands);
    if (bands->unbacked != 0)
        fprintf(page->out, "    reserved without memory behind it: %s\n",
                size(bands->unbacked).text);
    if (bands->implicit_uncertainty != 0)
        fprintf(page->out, "    by difference is uncertain by up to %s (other processes)\n",
                size(bands->implicit_uncertainty).text);
    if (bands->managed != 0)
        fprintf(page->out, "    managed memory, where its pages are is not known: %s\n",
                size(bands->managed).text);
}

static void print_device(const struct page *page, const struct vs_summary *summary,
                         const struct vs_device_state *device)
{
    const struct vs_device_def *known = vs_summary_device_def(summary, device->device);
    fprintf(page->out, "\n%sGPU %d%s", page_bold(page), device->device, page_plain(page));
    if (known != NULL && known->name[0] != 0)
        fprintf(page->out, "  %.*s", (int)sizeof(known->name), known->name);
    if (device->total_bytes != 0)
        fprintf(page->out, ", %s", size((int64_t)device->total_bytes).text);
    fputc('\n', page->out);
    print_peak(page, summary, device);
    uint64_t mismatches = report_mismatches(summary, device);
    if (mismatches != 0)
        fprintf(page->out, "  %s%s event%s at which %s's own totals and ours differ%s\n",
                page_alarm(page), page_count(mismatches).text, plural(mismatches),
                report_framework_name(summary, device), page_plain(page));
    print_bands(page, summary, device);
}

/* ---- the answer ------------------------------------------------------------------------------ */

struct share {
    const char *name;
    int64_t bytes;
};

static void keep_larger(struct share *largest, const char *name, int64_t bytes)
{
    if (bytes > largest->bytes)
        *largest = (struct share){name, bytes};
}

static struct share largest_share(const struct vs_summary *summary,
                                  const struct vs_device_state *device,
                                  const struct vs_bands *bands)
{
    struct share largest = {"", 0};
    for (size_t i = 0; i < bands->owners; i++)
        keep_larger(&largest, vs_state_owner_name(summary->state, bands->by_owner[i].owner),
                    bands->by_owner[i].bytes);
    for (int i = 0; i < VS_IMPLICITS; i++)
        keep_larger(&largest, i == VS_IMPLICIT_CONTEXT ? "the CUDA context" : "CUDA itself",
                    bands->implicit[i]);
    keep_larger(&largest, "other processes", bands->other_process);
    keep_larger(&largest, "nobody that the trace shows", bands->unexplained);
    keep_larger(&largest, report_framework_name(summary, device), bands->reserved);
    return largest;
}

static int64_t fullest(const struct vs_device_state *device)
{
    return device->measured ? device->used_peak : device->layers[VS_LAYER_DRIVER].peak_bytes;
}

/* The first thing read: how much, whose, and what came of it. */
static const struct vs_device_state *fullest_device(const struct vs_summary *summary)
{
    const struct vs_device_state *most = NULL;
    for (size_t i = DEVICE_OFFSET; i < VS_DEVICE_SLOTS; i++) {
        const struct vs_device_state *device = summary->state->devices[i];
        if (device != NULL && (most == NULL || fullest(device) > fullest(most)))
            most = device;
    }
    return most;
}

static void print_answer(const struct page *page, const struct vs_summary *summary)
{
    const struct vs_device_state *most = fullest_device(summary);
    char text[512], end[160];
    if (most == NULL || fullest(most) == 0)
        return;
    const struct vs_bands *bands = most->measured ? vs_peaks_used(&summary->peaks, most)
                                                  : vs_peaks_allocated(&summary->peaks, most);
    struct share largest =
        bands != NULL ? largest_share(summary, most, bands) : (struct share){"", 0};
    int length = snprintf(text, sizeof(text), "At most %s", size(fullest(most)).text);
    if (most->total_bytes != 0)
        length += snprintf(text + length, sizeof(text) - (size_t)length, " of %s",
                           size((int64_t)most->total_bytes).text);
    length += snprintf(text + length, sizeof(text) - (size_t)length, " of GPU %d were %s",
                       most->device, most->measured ? "in use" : "asked for");
    if (largest.bytes > 0)
        length += snprintf(text + length, sizeof(text) - (size_t)length, ", %s of it by %s",
                           size(largest.bytes).text, largest.name);
    describe_end(summary, end, sizeof(end));
    snprintf(text + length, sizeof(text) - (size_t)length, ". %s", end);
    page_wrap(page, 0, text);
}

static bool is_used(const struct vs_device_state *device)
{
    return device != NULL && (device->measured || device->context_seen || device->framework_seen ||
                              device->layers[VS_LAYER_DRIVER].peak_bytes != 0);
}

/* ---- whose -------------------------------------------------------------------------------------
 */

struct ranked_site {
    const struct vs_site *site;
    const struct vs_site_stats *stats;
};

static int by_peak(const void *a, const void *b)
{
    const struct ranked_site *left = a, *right = b;
    if (left->site->layer != right->site->layer)
        return left->site->layer < right->site->layer ? -1 : 1;
    if (left->stats->peak_bytes != right->stats->peak_bytes)
        return left->stats->peak_bytes < right->stats->peak_bytes ? 1 : -1;
    return (left->site > right->site) - (left->site < right->site);
}

static void describe_site(const struct vs_summary *summary, const struct vs_site *site, char *out,
                          size_t room)
{
    const char *call = vs_state_string(summary->state, site->label);
    if (site->kind == VS_SITE_BEFORE_RECORDING)
        snprintf(out, room, "live before recording began");
    else if (site->kind == VS_SITE_UNCERTAIN)
        snprintf(out, room, "not accounted for by calls (lost, or not yet freed by the driver)");
    else if (site->layer == VS_LAYER_FRAMEWORK)
        snprintf(out, room, "blocks of %s", report_owner_title(summary, site->owner));
    else
        snprintf(out, room, "%s by %s%s", call[0] != 0 ? call : "unknown call",
                 vs_state_owner_name(summary->state, site->owner),
                 site->segment ? ", segments of its cache" : "");
}

static void print_site(const struct page *page, const struct vs_summary *summary,
                       const struct ranked_site *ranked)
{
    char what[96], place[16] = "   -";
    describe_site(summary, ranked->site, what, sizeof(what));
    if (ranked->site->device >= 0)
        snprintf(place, sizeof(place), "%4d", ranked->site->device);
    fprintf(
        page->out, "  %-9s %s %10s %9s %10s  %.48s\n", report_layer_name(ranked->site->layer),
        place, size(ranked->stats->peak_bytes).text,
        page_count((uint64_t)(ranked->stats->peak_count > 0 ? ranked->stats->peak_count : 0)).text,
        size(ranked->stats->live_bytes).text, what);
}

static void print_sites(const struct page *page, const struct vs_summary *summary)
{
    struct ranked_site *sites = calloc(summary->sites.count + 1, sizeof(*sites));
    size_t count = 0;
    for (size_t i = 0; sites != NULL && i < summary->sites.count; i++)
        if (summary->sites.stats[i].peak_bytes != 0 || summary->sites.stats[i].live_bytes != 0)
            sites[count++] =
                (struct ranked_site){&summary->state->sites[i], &summary->sites.stats[i]};
    if (count != 0) {
        qsort(sites, count, sizeof(*sites), by_peak);
        heading(page, "Whose, when each layer held most");
        fprintf(page->out, "  %-9s %4s %10s %9s %10s  %s\n", "layer", "GPU", "bytes", "count",
                summary->complete ? "at end" : "at cut", "what");
        for (size_t i = 0; i < count && i < TOP_SITES; i++)
            print_site(page, summary, &sites[i]);
        if (count > TOP_SITES)
            fprintf(page->out, "  ... and %zu more (--json has all)\n", count - TOP_SITES);
    }
    free(sites);
}

/* ---- what failed, what costs
 * --------------------------------------------------------------------- */

static void print_ooms(const struct page *page, const struct vs_summary *summary)
{
    const struct vs_ooms *ooms = &summary->ooms;
    if (ooms->count == 0)
        return;
    heading(page, "Out of memory");
    size_t first = ooms->count > LAST_OOMS ? ooms->count - LAST_OOMS : 0;
    if (first != 0)
        fprintf(page->out, "  %zu earlier ones (--json has them)\n", first);
    for (size_t i = first; i < ooms->count; i++) {
        const struct vs_oom *oom = &ooms->items[i];
        fprintf(page->out, "  %-9s %s of %s, %s: %s\n", when(summary, oom->time_ns).text,
                call_title(summary, oom->label), size((int64_t)oom->requested).text,
                oom->repaired  ? "repaired by a retry"
                : oom->handled ? "the program went on"
                               : "not survived",
                vs_oom_class_name(oom->class));
        page_wrap(page, 12, oom->why);
    }
}

static void print_failures(const struct page *page, const struct vs_summary *summary)
{
    const struct vs_failures *failures = &summary->failures;
    if (failures->count == 0)
        return;
    heading(page, "Failed calls");
    for (size_t i = 0; i < failures->count && i < TOP_FAILURES; i++) {
        const struct vs_failure *failure = &failures->items[i];
        char buffer[32];
        fprintf(page->out, "  %s x %s: %s, last at %s\n", page_count(failure->count).text,
                vs_state_string(summary->state, failure->label),
                report_error_name(summary, failure->label, failure->result, buffer, sizeof(buffer)),
                when(summary, failure->last_ns).text);
        page_wrap(page, 6, vs_failure_hint(failure));
    }
    if (failures->count > TOP_FAILURES)
        fprintf(page->out, "  ... and %zu more (--json has all)\n", failures->count - TOP_FAILURES);
}

static void print_objects(const struct page *page, const struct vs_summary *summary)
{
    bool any = false;
    for (unsigned kind = 0; kind < VS_OBJECT_KINDS; kind++) {
        uint64_t created = summary->objects.kinds[kind].created;
        if (created == 0)
            continue;
        if (!any)
            heading(page, "What costs memory without a size of its own");
        any = true;
        fprintf(page->out, "  %-12s %6s live of %s made\n",
                vs_object_name((enum vs_object_kind)kind),
                page_count(summary->objects.kinds[kind].live.count).text, page_count(created).text);
    }
}

static void print_calls(const struct page *page, const struct vs_summary *summary)
{
    const struct vs_slow_calls *calls = &summary->slow_calls;
    if (calls->count == 0)
        return;
    heading(page, "Time in memory calls");
    for (size_t i = 0; i < calls->count && i < TOP_CALLS; i++)
        fprintf(page->out, "  %-28s %10s call%-1s  %10s in all  %10s at most\n",
                vs_state_string(summary->state, calls->items[i].call),
                page_count(calls->items[i].count).text, plural(calls->items[i].count),
                vs_format_time(calls->items[i].total_ns).text,
                vs_format_time(calls->items[i].max_ns).text);
}

static void print_host(const struct page *page, const struct vs_summary *summary)
{
    const struct vs_state *state = summary->state;
    if (state->host_pinned == 0 && state->host_rss < 0)
        return;
    heading(page, "Host");
    fprintf(page->out, "  %s pinned at the end",
            state->host_pinned == 0 ? "nothing" : size(state->host_pinned).text);
    if (state->host_rss >= 0)
        fprintf(page->out, "; resident %s", size(state->host_rss).text);
    if (state->cgroup_limit >= 0)
        fprintf(page->out, "; the container's limit %s", size(state->cgroup_limit).text);
    fputc('\n', page->out);
}

static void print_others(const struct page *page, const struct report_others *others)
{
    if (others == NULL || others->count == 0)
        return;
    heading(page, "Other traces in this folder");
    for (size_t i = 0; i < others->count; i++) {
        char rank[32] = "";
        if (others->items[i].rank >= 0)
            snprintf(rank, sizeof(rank), "rank %" JSON_INTEGER_FORMAT, others->items[i].rank);
        fprintf(page->out, "  %-10s peak %10s  ended: %-8s %s\n", rank,
                size(others->items[i].peak_bytes).text, others->items[i].ended,
                page_fit(others->items[i].path, 50).text);
    }
}

static void print_cost(const struct page *page, const struct vs_summary *summary)
{
    const struct vs_counts *counts = &summary->state->counts;
    uint64_t spent, waited;
    double percent;
    heading(page, "This trace");
    const json_t *warnings = json_object_get(summary->hooks, "warnings");
    for (size_t i = 0; i < json_array_size(warnings); i++) {
        const char *warning = json_string_value(json_array_get(warnings, i));
        if (warning != NULL)
            fprintf(page->out, "  hooks: %s\n", warning);
    }
    fprintf(page->out, "  %s event%s (%s driver, %s runtime, %s framework) in %s",
            page_count(counts->events).text, plural(counts->events),
            page_count(counts->driver_events).text, page_count(counts->runtime_events).text,
            page_count(counts->framework_events).text,
            size((int64_t)summary->status.file_bytes).text);
    if (counts->events != 0)
        fprintf(page->out, ", %.1f bytes each",
                (double)summary->status.file_bytes / (double)counts->events);
    fputc('\n', page->out);
    if (!report_overhead(summary, &spent, &waited, &percent)) {
        fputs("  what tracing cost this run was not measured\n", page->out);
        return;
    }
    char waiting[48] = "no waiting";
    if (waited != 0)
        snprintf(waiting, sizeof(waiting), "%s waiting", vs_format_time(waited).text);
    fprintf(page->out, "  tracing cost this run %s%.2f %% of its time: %s in events, %s\n",
            percent < 0.01 ? "less than " : "", percent < 0.01 ? 0.01 : percent,
            vs_format_time(spent).text, waiting);
}

void report_print(FILE *out, const struct vs_summary *summary, const struct report_others *others)
{
    struct page page = page_open(out);
    bool any = false;
    fprintf(out, "%s%s%s\n", page_bold(&page),
            page_fit(vs_reader_path(summary->reader), PAGE_WIDTH).text, page_plain(&page));
    print_process(&page, summary);
    print_answer(&page, summary);
    print_end(&page, summary);
    print_losses(&page, summary);
    for (size_t i = DEVICE_OFFSET; i < VS_DEVICE_SLOTS; i++) {
        if (!is_used(summary->state->devices[i]))
            continue;
        print_device(&page, summary, summary->state->devices[i]);
        any = true;
    }
    if (!any)
        fputs("\nNo device memory was used.\n", out);
    print_sites(&page, summary);
    print_ooms(&page, summary);
    print_failures(&page, summary);
    print_objects(&page, summary);
    print_calls(&page, summary);
    print_host(&page, summary);
    print_others(&page, others);
    print_cost(&page, summary);
}
