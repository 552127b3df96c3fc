/* SPDX-License-Identifier: Apache-2.0 */
/* The top of the page: the program, the answer, how it ended, what was lost. */
#include "report_page.h"

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

/* ---- the answer ------------------------------------------------------------------------ */

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

static const struct vs_device_state *fullest_device(const struct report *report)
{
    const struct vs_device_state *most = NULL;
    for (size_t i = DEVICE_OFFSET; i < VS_DEVICE_SLOTS; i++) {
        const struct vs_device_state *device = report->summary->state->devices[i];
        if (device != NULL && !report_hides_device(report, device->device) &&
            (most == NULL || fullest(device) > fullest(most)))
            most = device;
    }
    return most;
}

static void describe_end(const struct report *report, char *out, size_t room)
{
    const struct vs_summary *summary = report->summary;
    const struct vs_oom *oom = vs_summary_fatal_oom(summary);
    bool has_code = strcmp(summary->ended, "exit") == 0 && summary->exit_code_known;
    char code[32] = "";
    if (has_code)
        snprintf(code, sizeof(code), " (exit %d)", summary->exit_code);
    struct page_text by = oom != NULL ? report_by(report, oom->site) : (struct page_text){{0}};
    if (oom != NULL)
        snprintf(out, room, "It did not survive a request for %s%s%s that failed at %s%s.",
                 size_text((int64_t)oom->requested).text, by.text[0] != 0 ? " by " : "", by.text,
                 when(summary, oom->time_ns).text, code);
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

/* "20 GiB of 24 GiB of GPU 0 were in use, 18 GiB of it by PyTorch." */
static void describe_use(const struct vs_summary *summary, const struct vs_device_state *device,
                         char *out, size_t room)
{
    const struct vs_bands *bands = device->measured ? vs_peaks_used(&summary->peaks, device)
                                                    : vs_peaks_allocated(&summary->peaks, device);
    struct share largest =
        bands != NULL ? largest_share(summary, device, bands) : (struct share){"", 0};
    char of[48] = "", by[128] = "";
    if (device->total_bytes != 0)
        snprintf(of, sizeof(of), " of %s", size_text((int64_t)device->total_bytes).text);
    if (largest.bytes > 0)
        snprintf(by, sizeof(by), ", %s of it by %s", size_text(largest.bytes).text, largest.name);
    snprintf(out, room, "At most %s%s of GPU %d were %s%s.", size_text(fullest(device)).text, of,
             device->device, device->measured ? "in use" : "asked for", by);
}

/* "18 GiB of the 20 GiB that PyTorch held at the peak come from train.py:42 in step." */
static void describe_place(const struct report *report, const struct vs_device_state *device,
                           char *out, size_t room)
{
    enum vs_layer top = vs_device_top_layer(device);
    const struct vs_group *group = report_heaviest(report, device->device, top);
    out[0] = 0;
    if (group == NULL)
        return;
    char title[PAGE_WIDTH], holder[80] = "driver calls asked for", part[40] = "All";
    report_place_title(report, &report->places->items[group->place], report->options->by, title,
                       sizeof(title));
    if (top == VS_LAYER_FRAMEWORK)
        snprintf(holder, sizeof(holder), "%s held", report_framework_name(report->summary, device));
    bool all = group->stats.peak_bytes == device->layers[top].peak_bytes;
    if (!all)
        snprintf(part, sizeof(part), "%s", size_text(group->stats.peak_bytes).text);
    snprintf(out, room, " %s of the %s that %s at the peak %s from %s.", part,
             size_text(device->layers[top].peak_bytes).text, holder, all ? "comes" : "come", title);
}

/* The first thing read: how much, whose, from where, and what came of it. */
static void print_answer(const struct page *page, const struct report *report)
{
    const struct vs_device_state *most = fullest_device(report);
    char use[256], place[320], growth[640], end[240] = "", text[1500];
    if (most == NULL || fullest(most) == 0)
        return;
    describe_use(report->summary, most, use, sizeof(use));
    describe_place(report, most, place, sizeof(place));
    report_describe_growth(report, growth, sizeof(growth));
    if (!report->summary->windowed)
        describe_end(report, end, sizeof(end));
    snprintf(text, sizeof(text), "%s%s%s%s%s", use, place, growth, end[0] != 0 ? " " : "", end);
    page_wrap(page, 0, text);
}

/* ---- how it ended, what was lost --------------------------------------------------------- */

static void print_last_failure(const struct page *page, const struct vs_summary *summary)
{
    if (summary->failures.count == 0)
        return;
    const struct vs_failure *last = &summary->failures.items[summary->failures.last];
    char buffer[32];
    fprintf(page->out, "         last failure at %s: %s: %s\n", when(summary, last->last_ns).text,
            vs_state_string(summary->state, last->label),
            report_error_name(summary, last->label, last->result, buffer, sizeof(buffer)));
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
    fprintf(page->out, "%s\n",
            summary->complete || summary->windowed ? ""
                                                   : "; what is live below is live at the cut");
    if (badly && vs_summary_fatal_oom(summary) == NULL)
        print_last_failure(page, summary);
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

static void print_window(const struct page *page, const struct vs_summary *summary)
{
    if (summary->windowed)
        fprintf(page->out,
                "%sWindow:%s  from %s to %s: peaks within it, live at its end, calls that were "
                "made in it\n",
                page_bold(page), page_plain(page), vs_format_time(summary->from_ns).text,
                vs_format_time(summary->to_ns).text);
}

void report_print_program(const struct page *page, const struct report *report)
{
    print_process(page, report->summary);
    print_window(page, report->summary);
}

void report_print_answer(const struct page *page, const struct report *report)
{
    print_answer(page, report);
}

void report_print_outcome(const struct page *page, const struct report *report)
{
    print_end(page, report->summary);
    print_losses(page, report->summary);
}

void report_print_head(const struct page *page, const struct report *report)
{
    fprintf(page->out, "%s%s%s\n", page_bold(page),
            page_fit(vs_reader_path(report->summary->reader), PAGE_WIDTH).text, page_plain(page));
    report_print_program(page, report);
    report_print_answer(page, report);
    report_print_outcome(page, report);
}
