/* SPDX-License-Identifier: Apache-2.0 */
/* The bottom of the page: the host and the recording itself. */
#include "report_sections.h"

#define LEAST_ROUNDING (INT64_C(1) << 20) /* bytes that are worth a line */

/* Pinned memory in a framework's cache: in use or kept, and what of it may be rounding. */
static void print_host_cache(const struct page *page, const struct vs_state *state)
{
    bool rounds = state->host_rounding >= LEAST_ROUNDING;
    if (state->host_framework <= 0)
        return;
    fprintf(page->out, "  %s pinned by the framework's host cache, in use or kept%s\n",
            size_text(state->host_framework).text,
            rounds                     ? ";"
            : state->host_rounding > 0 ? ""
                                       : ", none of it rounding");
    if (!rounds)
        return;
    char text[256];
    snprintf(text, sizeof(text), "of it up to %s rounding to powers of two%s",
             size_text(state->host_rounding).text,
             state->host_round_limit != UINT64_MAX
                 ? ""
                 : ", which newer PyTorch leaves out for requests above N MiB with "
                   "PYTORCH_ALLOC_CONF=pinned_max_round_threshold_mb:N");
    page_wrap(page, 4, text);
}

static void print_shared(const struct page *page, const struct vs_state *state)
{
    if (state->host_shared <= 0)
        return;
    fprintf(page->out, "  %s in %s file%s in /dev/shm", size_text(state->host_shared).text,
            page_count((uint64_t)state->host_shared_files).text,
            plural((uint64_t)state->host_shared_files));
    if (state->host_shared_torch > 0)
        fprintf(page->out, ", %s of it PyTorch's", size_text(state->host_shared_torch).text);
    fputc('\n', page->out);
}

void report_print_host(const struct page *page, const struct report *report)
{
    const struct vs_state *state = report->summary->state;
    if (state->host_pinned == 0 && state->host_rss < 0)
        return;
    report_heading(page, "Host");
    fprintf(page->out, "  %s pinned at the end",
            state->host_pinned == 0 ? "nothing" : size_text(state->host_pinned).text);
    if (state->host_registered != 0)
        fprintf(page->out, ", %s of it registered", size_text(state->host_registered).text);
    if (state->host_rss >= 0)
        fprintf(page->out, "; resident %s", size_text(state->host_rss).text);
    if (state->cgroup_limit >= 0)
        fprintf(page->out, "; the container's limit %s", size_text(state->cgroup_limit).text);
    if (state->cgroup_used >= 0)
        fprintf(page->out, ", %s of it in use", size_text(state->cgroup_used).text);
    fputc('\n', page->out);
    print_host_cache(page, state);
    print_shared(page, state);
    if (state->host_oom_kills != 0)
        fprintf(page->out,
                "  the kernel killed %s process%s of its control group for want of memory\n",
                page_count(state->host_oom_kills).text, state->host_oom_kills == 1 ? "" : "es");
}

/* ---- the recording ----------------------------------------------------------------------- */

static uint64_t count_of(const json_t *object, const char *field)
{
    json_int_t value = json_integer_value(json_object_get(object, field));
    return value > 0 ? (uint64_t)value : 0;
}

static void print_warnings(const struct page *page, const struct vs_summary *summary)
{
    const json_t *warnings = json_object_get(summary->hooks, "warnings");
    for (size_t i = 0; i < json_array_size(warnings); i++) {
        const char *warning = json_string_value(json_array_get(warnings, i));
        if (warning != NULL)
            fprintf(page->out, "  hooks: %s\n", warning);
    }
}

/* What is missing from the stacks; nothing when nothing is. */
static void print_stack_health(const struct page *page, const struct report *report)
{
    const json_t *hooks = report->summary->hooks;
    const char *python = json_string_value(json_object_get(hooks, "python"));
    const char *state = json_string_value(json_object_get(hooks, "python_state"));
    const char *method = json_string_value(json_object_get(hooks, "native_method"));
    uint64_t lost = count_of(hooks, "stacks_lost"), stopped = count_of(hooks, "native_stopped");
    if (state != NULL && strcmp(state, "unsupported") == 0)
        fprintf(page->out, "  stacks: no Python frames: this version is not known%s%s\n",
                python != NULL ? ": " : "", python != NULL ? python : "");
    if (lost != 0)
        fprintf(page->out, "  stacks: %s event%s without: no room in the ring\n",
                page_count(lost).text, plural(lost));
    if (stopped != 0)
        fprintf(page->out,
                "  stacks: %s could not be followed to the thread's start (found by %s)\n",
                page_count(stopped).text, method != NULL ? method : "an unknown method");
}

static void print_nvtx_health(const struct page *page, const json_t *hooks)
{
    uint64_t left_out = count_of(hooks, "nvtx_left_out"), unnamed = count_of(hooks, "nvtx_unnamed");
    if (left_out != 0)
        fprintf(
            page->out,
            "  NVTX: %s of its ranges and marks not recorded: no room for their domain's name\n",
            page_count(left_out).text);
    if (unnamed != 0)
        fprintf(page->out,
                "  NVTX: %s of its ranges and marks without their name: no room for more names\n",
                page_count(unnamed).text);
}

static void print_unnamed(const struct page *page, const struct report *report)
{
    uint64_t unnamed = report->places->unnamed;
    if (unnamed != 0)
        fprintf(page->out, "  %s address%s without names: vramscope symbolize %s\n",
                page_count(unnamed).text, unnamed == 1 ? "" : "es",
                vs_reader_path(report->summary->reader));
}

static void print_size(const struct page *page, const struct vs_summary *summary)
{
    const struct vs_counts *counts = &summary->state->counts;
    fprintf(page->out, "  %s event%s (%s driver, %s runtime, %s framework)",
            page_count(counts->events).text, plural(counts->events),
            page_count(counts->driver_events).text, page_count(counts->runtime_events).text,
            page_count(counts->framework_events).text);
    if (summary->windowed) {
        fprintf(page->out, " up to the window's end, of %s\n",
                page_count(summary->status.events).text);
        return;
    }
    fprintf(page->out, " in %s", size_text((int64_t)summary->status.file_bytes).text);
    if (counts->events != 0)
        fprintf(page->out, ", %.1f bytes each",
                (double)summary->status.file_bytes / (double)counts->events);
    fputc('\n', page->out);
}

static void print_cost(const struct page *page, const struct vs_summary *summary)
{
    uint64_t spent, waited;
    double percent;
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

void report_print_recording(const struct page *page, const struct report *report)
{
    report_heading(page, "This trace");
    print_warnings(page, report->summary);
    print_stack_health(page, report);
    print_nvtx_health(page, report->summary->hooks);
    if (!report_lost_something(report->summary))
        fputs("  nothing was lost\n", page->out);
    print_size(page, report->summary);
    print_cost(page, report->summary);
    print_unnamed(page, report);
}
