/* SPDX-License-Identifier: Apache-2.0 */
/* vramscope export: a trace in the form another tool reads. */
#include "export/export.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "commands.h"
#include "output_file.h"
#include "time_size.h"
#include "trace_argument.h"

static const char help[] =
    "usage: vramscope export -f FORMAT -o OUT [OPTION …] TRACE\n"
    "\n"
    "Writes a trace in the form another tool reads.\n"
    "\n"
    "  -f FORMAT          csv, folded, html, json, perfetto, pprof, pytorch, sqlite\n"
    "                     csv: one row per event; json: one object per event, a line each, with\n"
    "                     the stacks; folded: stacks for flame graphs; html: one page with the\n"
    "                     curves, live sets and segments, for any browser; perfetto: counters,\n"
    "                     slow calls, phases, failures and heap profiles for ui.perfetto.dev;\n"
    "                     pprof: a profile for pprof, Pyroscope, Parca; pytorch: the snapshot "
    "that\n"
    "                     memory_viz and torch.cuda._memory_viz read; sqlite: tables event,\n"
    "                     stack, frame, site and sample\n"
    "  -o OUT             the file; - for stdout. A file that exists is kept\n"
    "  --force            replaces OUT if it exists\n"
    "  --from T, --to T   only what happened then. Seconds since the beginning, before the end\n"
    "                     with \"-\"; or with ns, us, ms\n"
    "  --device N         this device only\n"
    "  --min-bytes SIZE   leaves out smaller allocations and places (K, M, G)\n"
    "  --last N           only the last N events\n"
    "  --at WHEN          the moment whose live memory folded, perfetto, pprof and pytorch\n"
    "                     write, and html has besides: peak (most allocated, of each device; the\n"
    "                     default), end, oom (the last one), or a time as for --from\n"
    "  --metric METRIC    what folded counts and pprof shows first: inuse_space (bytes in use at\n"
    "                     that moment; the default), inuse_objects, alloc_space or alloc_objects\n"
    "                     (all that was allocated until then)\n"
    "\n"
    "What was left out is said in the output. OUT appears when it is whole, or not at all.\n"
    "\n"
    "Exit status: 0 done, 1 the trace could not be read, or not all of it, 2 usage.\n";

struct texts {
    const char *format, *out, *from, *to, *device, *min_bytes, *last, *at, *metric;
};

/* ---- options ------------------------------------------------------------------------------------
 */

static bool wrong(const char *option, const char *takes, const char *text)
{
    fprintf(stderr, "vramscope export: %s takes %s, not '%s'\n", option, takes, text);
    return false;
}

/* The forms of the options whose values are tables: "-f csv|folded|…". */
struct forms {
    char format[128], metric[128];
};

static void add_word(char *form, size_t room, const char *word, bool first)
{
    size_t at = strlen(form);
    snprintf(form + at, room - at, "%s%s", first ? " " : "|", word);
}

static void make_forms(struct forms *forms)
{
    *forms = (struct forms){"-f", "--metric"};
    for (const struct vs_export_format *format = vs_export_formats; format->name != NULL; format++)
        add_word(forms->format, sizeof(forms->format), format->name, format == vs_export_formats);
    for (enum vs_export_metric metric = 0; metric < VS_METRICS; metric++)
        add_word(forms->metric, sizeof(forms->metric), vs_export_metric_name(metric), metric == 0);
}

static bool take_count(const char *option, const char *text, uint64_t least, uint64_t most,
                       const char *takes, uint64_t *value)
{
    if (text == NULL)
        return true;
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return (text[0] >= '0' && text[0] <= '9' && *end == 0 && errno == 0 && *value >= least &&
            *value <= most) ||
           wrong(option, takes, text);
}

static bool take_at(const char *text, struct vs_export *export)
{
    static const char *const names[] = {
        [VS_AT_PEAK] = "peak", [VS_AT_END] = "end", [VS_AT_OOM] = "oom"};
    if (text == NULL)
        return true;
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(text, names[i]) == 0) {
            export->at = i;
            return true;
        }
    export->at = VS_AT_TIME;
    return time_of_text(text, &export->at_ns) ||
           wrong("--at", "peak, end, oom or a time such as 12.5 or 300ms", text);
}

static void take_metric(const char *text, struct vs_export *export)
{
    for (enum vs_export_metric metric = 0; text != NULL && metric < VS_METRICS; metric++)
        if (strcmp(text, vs_export_metric_name(metric)) == 0)
            export->metric = metric;
}

static bool take(const struct texts *texts, struct vs_export *export)
{
    struct vs_window *window = &export->window;
    int64_t least = 0;
    uint64_t device = 0;
    bool fine =
        take_bound("export", "--from", texts->from, &window->has_from, &window->from_ns) &&
        take_bound("export", "--to", texts->to, &window->has_to, &window->to_ns) &&
        take_count("--device", texts->device, 0, INT8_MAX, "a number from 0 to 127", &device) &&
        take_count("--last", texts->last, 1, UINT64_MAX, "a number from 1", &export->last) &&
        take_at(texts->at, export);
    take_metric(texts->metric, export);
    if (fine && texts->min_bytes != NULL && !size_of_text(texts->min_bytes, &least))
        fine = wrong("--min-bytes", "a size such as 64K, 20M or 1.5G", texts->min_bytes);
    export->device = texts->device == NULL ? -1 : (int)device;
    export->min_bytes = (uint64_t)least;
    return fine;
}

/* An option that changes nothing would be taken for one that did. */
static bool applies(const struct vs_export_format *format, const struct texts *texts)
{
    bool at = texts->at != NULL && !format->has_moment;
    if (!at && (texts->metric == NULL || format->has_metric))
        return true;
    fprintf(stderr, "vramscope export: %s is not for -f %s; `vramscope export --help` says how\n",
            at ? "--at" : "--metric", format->name);
    return false;
}

/* ---- progress -----------------------------------------------------------------------------------
 */

/* Nothing in the first half second: most exports are over by then. */
enum { PROGRESS_FIRST_MS = 500, PROGRESS_EVERY_MS = 200 };

struct progress {
    int64_t next_ms;
    bool shown;
};

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void show_progress(void *self, uint64_t done, uint64_t all)
{
    struct progress *progress = self;
    if (now_ms() < progress->next_ms)
        return;
    progress->next_ms = now_ms() + PROGRESS_EVERY_MS;
    progress->shown = true;
    fprintf(stderr, "\r\033[K%3.0f %% of %" PRIu64 " events",
            all == 0 ? 0 : 100 * (double)done / (double)all, all);
    fflush(stderr);
}

static void clear_progress(const struct progress *progress)
{
    if (progress->shown)
        fputs("\r\033[K", stderr);
}

/* ---- the export
 * ----------------------------------------------------------------------------------- */

static int run_format(const struct vs_export_format *format, struct vs_export *export,
                      const struct output_file *output)
{
    struct vs_sink *sink = malloc(sizeof(*sink));
    if (sink == NULL)
        return -ENOMEM;
    vs_sink_init_fd(sink, output->fd);
    export->sink = sink;
    export->file = format->own_file ? output->temporary : NULL;
    int result = format->run(export);
    if (result == 0)
        result = vs_sink_flush(sink);
    export->sink = NULL;
    free(sink);
    return result;
}

static void tell_failure(const struct vs_export *export, const struct output_file *output,
                         int result)
{
    bool narrowed = export->device >= 0 || export->window.has_from || export->window.has_to;
    if (export->error->text[0] != 0)
        fprintf(stderr, "vramscope: %s\n", export->error->text);
    else if (result == -ENODATA)
        fprintf(
            stderr,
            "vramscope: %s: nothing failed for want of memory in it%s: --at peak, end or a time\n",
            export->path, narrowed ? ", as far as --device, --from and --to go" : "");
    else if (result == -ENOMEM)
        fprintf(stderr, "vramscope: %s: %s\n", export->path, strerror(ENOMEM));
    else if (result != -EPIPE)
        output_complain(output->path, -result);
}

static int export_trace(const struct vs_export_format *format, struct vs_export *export,
                        struct output_file *output)
{
    struct progress progress = {.next_ms = now_ms() + PROGRESS_FIRST_MS};
    struct vs_error error = {{0}};
    if (isatty(STDERR_FILENO)) {
        export->progress = show_progress;
        export->progress_self = &progress;
    }
    if (vs_export_open(export, &error) != 0) {
        fprintf(stderr, "vramscope: %s\n", error.text);
        return CMD_FAILED;
    }
    int result = run_format(format, export, output);
    clear_progress(&progress);
    if (result != 0) {
        tell_failure(export, output, result);
        return CMD_FAILED;
    }
    if (!output_keep(output))
        return CMD_FAILED;
    return tell_damage(export->path, vs_reader_status(export->reader), export->read_error)
               ? CMD_FAILED
               : CMD_DONE;
}

int cmd_export(int argc, char **argv)
{
    struct texts texts = {0};
    struct vs_export export = {0};
    struct output_file output;
    bool force = false;
    struct forms forms;
    make_forms(&forms);
    const struct option_rule rules[] = {
        {forms.format, NULL, &texts.format},
        {"-o OUT", NULL, &texts.out},
        {"--force", &force, NULL},
        {"--from TIME", NULL, &texts.from},
        {"--to TIME", NULL, &texts.to},
        {"--device N", NULL, &texts.device},
        {"--last N", NULL, &texts.last},
        {"--min-bytes SIZE", NULL, &texts.min_bytes},
        {"--at peak|end|oom|TIME", NULL, &texts.at},
        {forms.metric, NULL, &texts.metric},
    };
    int status =
        parse_arguments(argc, argv, help, rules, sizeof(rules) / sizeof(rules[0]), &export.path);
    if (status >= 0)
        return status;
    if (texts.format == NULL || texts.out == NULL) {
        fprintf(stderr, "vramscope export: %s is missing; `vramscope export --help` says how\n",
                texts.format == NULL ? "-f FORMAT" : "-o OUT (- is stdout)");
        return CMD_USAGE;
    }
    const struct vs_export_format *format = vs_export_format(texts.format);
    if (format == NULL || !applies(format, &texts) || !take(&texts, &export))
        return CMD_USAGE;
    if (!output_spares(texts.out, export.path) ||
        !output_open(&output, texts.out, force, format->own_file))
        return CMD_FAILED;
    status = export_trace(format, &export, &output);
    output_discard(&output);
    vs_export_close(&export);
    return status;
}
