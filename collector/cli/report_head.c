/* SPDX-License-Identifier: Apache-2.0 */
/* The top of the page: the program, the answer, what was lost. */
#include "report_sections.h"

enum { CUTS_SHOWN = 3 };

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
    static const char *const implicit[VS_IMPLICITS] = {[VS_IMPLICIT_CONTEXT] = "the CUDA context",
                                                       [VS_IMPLICIT_MODULES] = "loaded modules",
                                                       [VS_IMPLICIT_GRAPHS] = "executable graphs",
                                                       [VS_IMPLICIT_LOCAL_MEMORY] =
                                                           "local memory of threads (a limit)",
                                                       [VS_IMPLICIT_OTHER] = "CUDA itself"};
    struct share largest = {"", 0};
    struct report_foreign foreign = report_foreign_of(summary, device, bands);
    for (size_t i = 0; i < bands->owners; i++)
        keep_larger(&largest, report_owner_title(summary, bands->by_owner[i].owner),
                    bands->by_owner[i].bytes);
    for (int i = 0; i < VS_IMPLICITS; i++) /* but for what may as well be others' */
        if (i == VS_IMPLICIT_CONTEXT || foreign.uncertain <= bands->implicit[i] / 2)
            keep_larger(&largest, implicit[i], bands->implicit[i]);
    keep_larger(&largest, "other processes", foreign.theirs);
    keep_larger(&largest, "nobody that the trace shows", foreign.unexplained);
    keep_larger(&largest, "CUDA itself or other processes (which, is not known)",
                foreign.uncertain);
    keep_larger(&largest, report_framework_name(summary, device), bands->backed);
    return largest;
}

static int64_t fullest(const struct vs_device_state *device)
{
    return device->measured ? device->used_peak : device->layers[VS_LAYER_DRIVER].peak_bytes;
}

/* The same without what was not this process's. */
static int64_t own_fullest(const struct vs_summary *summary, const struct vs_device_state *device)
{
    const struct vs_bands *bands = device->measured ? vs_peaks_used(&summary->peaks, device) : NULL;
    if (bands == NULL)
        return fullest(device);
    struct report_foreign foreign = report_foreign_of(summary, device, bands);
    int64_t others = foreign.theirs > 0 ? foreign.theirs : 0;
    return fullest(device) - others - (foreign.unexplained > 0 ? foreign.unexplained : 0);
}

/* The device to speak of: the one that a request failed on, else that with most of its own. */
static const struct vs_device_state *device_in_question(const struct report *report)
{
    const struct vs_oom *oom = vs_summary_fatal_oom(report->summary);
    const struct vs_device_state *most = NULL;
    if (oom != NULL && oom->device >= 0 && !report_hides_device(report, oom->device))
        most = vs_state_device(report->summary->state, oom->device);
    if (most != NULL && fullest(most) != 0)
        return most;
    for (size_t i = DEVICE_OFFSET; i < VS_DEVICE_SLOTS; i++) {
        const struct vs_device_state *device = report->summary->state->devices[i];
        if (device != NULL && !report_hides_device(report, device->device) &&
            (most == NULL ||
             own_fullest(report->summary, device) > own_fullest(report->summary, most)))
            most = device;
    }
    return most;
}

/* ---- how it ended ----------------------------------------------------------------------- */

/* "Out of memory: a request for 3.00 GiB at train.py:42 in step failed at 12.0 ms …" */
static void describe_oom(const struct report *report, const struct vs_oom *oom, char *out,
                         size_t room)
{
    const struct vs_summary *summary = report->summary;
    struct page_text by = report_by(report, oom->site);
    char came[64] = "; the program did not survive it";
    if (strcmp(summary->ended, "exit") == 0 && summary->exit_code_known)
        snprintf(came, sizeof(came), "; the program did not survive it (exit %d)",
                 summary->exit_code);
    else if (strcmp(summary->ended, "killed") == 0 && summary->signal_known)
        snprintf(came, sizeof(came), "; the program was killed by signal %d", summary->signal);
    snprintf(out, room, "Out of memory: a request for %s%s%s failed at %s%s. Why (%s): %s.",
             size_text((int64_t)oom->requested).text, by.text[0] != 0 ? " at " : "", by.text,
             when(summary, oom->time_ns).text, came, vs_oom_class_name(oom->class), oom->why);
}

/* ", after 2 requests for memory that failed and that it survived", or nothing. */
static struct page_text survived(const struct report *report)
{
    const struct vs_ooms *ooms = &report->summary->ooms;
    struct page_text out = {{0}};
    uint64_t count = 0;
    for (size_t i = 0; i < ooms->count; i++)
        count += ooms->items[i].handled && !ooms->items[i].repaired;
    if (count != 0)
        snprintf(out.text, sizeof(out.text),
                 ", after %.24s request%s for memory that failed and that it survived",
                 page_count(count).text, plural(count));
    return out;
}

/* NULL: none, or none that matters. */
static const struct vs_failure *last_failure(const struct vs_failures *failures)
{
    const struct vs_failure *last = NULL;
    for (size_t i = 0; i < failures->count; i++)
        if (!vs_failure_is_harmless(&failures->items[i]) &&
            (last == NULL || failures->items[i].last_ns >= last->last_ns))
            last = &failures->items[i];
    return last;
}

/* " 3 requests of PyTorch failed and it helped itself: …", or nothing. */
static void describe_repairs(const struct report *report, char *out, size_t room)
{
    const struct vs_ooms *ooms = &report->summary->ooms;
    const struct vs_device_state *device =
        vs_state_device(report->summary->state, ooms->repairs.device);
    char from_cache[64] = "";
    out[0] = 0;
    if (ooms->repairs.count == 0 || device == NULL)
        return;
    if (ooms->repairs.given_back > 0)
        snprintf(from_cache, sizeof(from_cache), "gave back %s of its cache and ",
                 size_text(ooms->repairs.given_back).text);
    snprintf(out, room,
             " %s request%s of %s for memory failed at first; it %sasked again, with success, "
             "which cost %s.",
             page_count(ooms->repairs.count).text, plural(ooms->repairs.count),
             report_framework_name(report->summary, device), from_cache,
             vs_format_time(ooms->repairs.lost_ns).text);
}

/* "; the last call that failed: cuMemMap at 3.00 s: CUDA_ERROR_INVALID_VALUE (what that usually
   means)", or nothing. */
static void describe_last_failure(const struct vs_summary *summary, char *out, size_t room)
{
    out[0] = 0;
    const struct vs_failure *last = last_failure(&summary->failures);
    if (last == NULL)
        return;
    char buffer[32];
    snprintf(out, room, "; the last call that failed: %s at %s: %s (%s)",
             vs_state_string(summary->state, last->label), when(summary, last->last_ns).text,
             report_error_name(summary, last->label, last->result, buffer, sizeof(buffer)),
             vs_failure_hint(last));
}

/* " The kernel killed a process …", or nothing. */
static void describe_kills(const struct vs_state *state, char *out, size_t room)
{
    uint64_t kills = state->host_oom_kills;
    char limit[64] = "";
    if (state->cgroup_limit >= 0)
        snprintf(limit, sizeof(limit), ", whose limit is %s", size_text(state->cgroup_limit).text);
    out[0] = 0;
    if (kills != 0)
        snprintf(out, room,
                 " The kernel killed %s process%s of its control group for want of host memory%s.",
                 page_count(kills).text, kills == 1 ? "" : "es", limit);
}

static void describe_other_end(const struct report *report, char *out, size_t room)
{
    const struct vs_summary *summary = report->summary;
    bool exited = strcmp(summary->ended, "exit") == 0;
    char failure[480], kills[240];
    describe_last_failure(summary, failure, sizeof(failure));
    describe_kills(summary->state, kills, sizeof(kills));
    const char *cut = summary->complete ? "" : " What is live below is live at the cut.";
    if (strcmp(summary->ended, "killed") == 0) {
        char by[80] = "";
        if (summary->signal_known)
            snprintf(by, sizeof(by), " by signal %d (%s)", summary->signal,
                     strsignal(summary->signal));
        snprintf(out, room, "It was killed%s; no request for memory had failed unhandled%s.%s%s",
                 by, failure, kills, cut);
    } else if (exited && summary->exit_code_known && summary->exit_code != 0)
        snprintf(out, room, "It failed (exit %d), and not for want of GPU memory%s.%s%s",
                 summary->exit_code, failure, kills, cut);
    else if (exited)
        snprintf(out, room, "It ended normally%s%s.%s", summary->exit_code_known ? " (exit 0)" : "",
                 survived(report).text, cut);
    else if (strcmp(summary->ended, "exec") == 0)
        snprintf(out, room, "It became another program (exec)%s.%s", survived(report).text, cut);
    else
        snprintf(out, room, "The trace ends before the program did%s.%s", survived(report).text,
                 cut);
}

bool report_answers_oom(const struct report *report, const struct vs_oom *oom)
{
    return !report->summary->windowed && oom == vs_summary_fatal_oom(report->summary);
}

/* Emphasised when the program ended badly. */
static void print_end(const struct page *page, const struct report *report)
{
    const struct vs_oom *oom = vs_summary_fatal_oom(report->summary);
    char text[1024];
    if (report->summary->windowed)
        return;
    if (oom != NULL)
        describe_oom(report, oom, text, sizeof(text));
    else {
        describe_other_end(report, text, sizeof(text));
        describe_repairs(report, text + strlen(text), sizeof(text) - strlen(text));
    }
    bool badly = oom != NULL || vs_summary_ended_badly(report->summary);
    fputs(badly ? page_alarm(page) : "", page->out);
    page_wrap(page, 0, text);
    fputs(page_plain(page), page->out);
}

/* ---- whose it was ----------------------------------------------------------------------- */

/* "20 GiB of the 24 GiB of GPU 0 were in use, 18 GiB of it by PyTorch." */
static void describe_use(const struct vs_summary *summary, const struct vs_device_state *device,
                         char *out, size_t room)
{
    const struct vs_bands *bands = device->measured ? vs_peaks_used(&summary->peaks, device)
                                                    : vs_peaks_allocated(&summary->peaks, device);
    struct share largest =
        bands != NULL ? largest_share(summary, device, bands) : (struct share){"", 0};
    char of[48] = "", by[128] = "";
    if (device->total_bytes != 0)
        snprintf(of, sizeof(of), " of the %s", size_text((int64_t)device->total_bytes).text);
    if (largest.bytes > 0)
        snprintf(by, sizeof(by), ", %s of it by %s", size_text(largest.bytes).text, largest.name);
    snprintf(out, room, "At most %s%s of GPU %d were %s%s.", size_text(fullest(device)).text, of,
             device->device, device->measured ? "in use" : "asked for", by);
}

/* " At its peak PyTorch held 16 GiB of the 18 GiB it had reserved, 9 GiB of that from …" */
static void describe_place(const struct report *report, const struct vs_device_state *device,
                           char *out, size_t room)
{
    enum vs_layer top = vs_device_top_layer(device);
    const struct vs_group *group = report_heaviest(report, device->device, top);
    const struct vs_bands *bands = vs_peaks_allocated(&report->summary->peaks, device);
    int64_t held = device->layers[top].peak_bytes;
    out[0] = 0;
    if (group == NULL)
        return;
    char title[PAGE_WIDTH], holder[128] = "At the peak driver calls had asked for", of[64] = "",
                            asleep[128] = "";
    report_place_title(report, &report->places->items[group->place], report->options->by, title,
                       sizeof(title));
    if (top == VS_LAYER_FRAMEWORK)
        snprintf(holder, sizeof(holder), "At its peak %s held",
                 report_framework_name(report->summary, device));
    if (top == VS_LAYER_FRAMEWORK && bands != NULL && bands->unbacked > 0)
        snprintf(asleep, sizeof(asleep), "; %s of the %s it had reserved had no memory behind it",
                 size_text(bands->unbacked).text, size_text(bands->reserved).text);
    else if (top == VS_LAYER_FRAMEWORK && bands != NULL && bands->cached > 0)
        snprintf(of, sizeof(of), " of the %s it had reserved", size_text(bands->reserved).text);
    struct page_text main_use = report_main_category(report, device);
    char category[sizeof(main_use.text) + 4] = "";
    if (main_use.text[0] != 0)
        snprintf(category, sizeof(category), " (%s)", main_use.text);
    bool all = group->stats.peak_bytes == held;
    snprintf(out, room, " %s %s%s%s, %s of %s from %s%s.", holder, size_text(held).text, of,
             category, all ? "all" : size_text(group->stats.peak_bytes).text, all ? "it" : "that",
             title, asleep);
}

/* The first thing read: what came of it, how much, whose and from where, and what grows. */
void report_print_answer(const struct page *page, const struct report *report)
{
    const struct vs_device_state *most = device_in_question(report);
    char use[320], others[320], place[448], also[320], growth[640], text[2200];
    print_end(page, report);
    if (most == NULL || fullest(most) == 0)
        return;
    describe_use(report->summary, most, use, sizeof(use));
    describe_place(report, most, place, sizeof(place));
    report_describe_beside(report, most, others, sizeof(others));
    report_describe_elsewhere(report, most, also, sizeof(also));
    report_describe_growth(report, growth, sizeof(growth));
    snprintf(text, sizeof(text), "%s%s%s%s%s", use, others, place, also, growth);
    page_wrap(page, 0, text);
}

/* ---- what was lost ---------------------------------------------------------------------- */

bool report_lost_something(const struct vs_summary *summary)
{
    const struct vs_trace_status *status = &summary->status;
    return summary->lost != 0 || summary->torn != 0 || status->damaged_chunks != 0 ||
           status->truncated || status->sequence_gaps != 0;
}

/* One a line, below what `title` says. */
static void print_gaps(const struct page *page, const char *title, const struct vs_cuts *cuts,
                       uint64_t start_ns)
{
    char text[160];
    for (size_t i = 0; i < cuts->count && i < CUTS_SHOWN; i++) {
        vs_gap_text(&cuts->items[i], start_ns, text, sizeof(text));
        fprintf(page->out, "%s%-9s%s%s\n", page_bold(page), i == 0 ? title : "", page_plain(page),
                text);
    }
    if (cuts->gaps > CUTS_SHOWN)
        fprintf(page->out, "         in all %s events in %s gaps\n", page_count(cuts->events).text,
                page_count(cuts->gaps).text);
}

/* What is not known of a trace that was made smaller for sending, or is not in the copy sent. */
static void print_cut(const struct page *page, const struct report *report)
{
    const struct vs_summary *summary = report->summary;
    if (summary->cuts.gaps != 0) {
        print_gaps(page, "Cut:", &summary->cuts, summary->start_ns);
        fputs("         short-lived blocks and events of streams; peaks, failures and what is live "
              "are as "
              "they "
              "were;\n         growth and phases are not judged, calls count outside of the gaps\n",
              page->out);
    }
    if (report->beside != NULL && report->beside->gaps != 0) {
        print_gaps(page, "Beside:", report->beside, summary->start_ns);
        fputs("         cut from the trace that goes with this report, which is of all of it\n",
              page->out);
    }
}

void report_print_losses(const struct page *page, const struct report *report)
{
    const struct vs_summary *summary = report->summary;
    const struct vs_trace_status *status = &summary->status;
    print_cut(page, report);
    if (!report_lost_something(summary))
        return;
    fprintf(page->out, "%sLost:%s    ", page_alarm(page), page_plain(page));
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
    report_print_chosen(page, report);
    print_window(page, report->summary);
}

void report_print_head(const struct page *page, const struct report *report)
{
    fprintf(page->out, "%s%s%s\n", page_bold(page),
            page_fit(vs_reader_path(report->summary->reader), PAGE_WIDTH).text, page_plain(page));
    report_print_program(page, report);
    report_print_answer(page, report);
    report_print_losses(page, report);
}
