/* SPDX-License-Identifier: Apache-2.0 */
/* vramscope report: the command. */
#include "report.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "commands.h"
#include "report_inside.h"
#include "trace_argument.h"

static struct vs_summary *load(const char *path, const struct vs_window *window)
{
    if (!window->has_from && !window->has_to)
        return load_trace(path, NULL, NULL);
    struct vs_summary *summary = NULL;
    struct vs_error error = {{0}};
    if (vs_summary_load_window(path, window, &summary, &error) == 0)
        return summary;
    fprintf(stderr, "vramscope: %s\n", error.text);
    return NULL;
}

static int print(const struct report *report, void *self)
{
    (void)self;
    if (!report->options->json && !report->options->markdown) {
        report_print(stdout, report);
        return finish_output(CMD_DONE);
    }
    bool whole = report->options->json ? report_write_json(stdout, report)
                                       : report_write_markdown(stdout, report);
    if (report->options->json)
        putchar('\n');
    if (!whole)
        fprintf(stderr, "vramscope: %s: %s\n", vs_reader_path(report->summary->reader),
                strerror(ENOMEM));
    return finish_output(whole ? CMD_DONE : CMD_FAILED);
}

static long frames_of(void *self, uint32_t stack, const struct vs_frame **out)
{
    return vs_frames_of(self, stack, out);
}

int report_make(const char *path, struct vs_summary *summary, const struct report_options *options,
                const struct report_others *others, report_use *use, void *self)
{
    struct vs_frames *frames = NULL;
    struct vs_places places = {0};
    struct vs_grown_list grown = {0};
    struct vs_categories categories = {0};
    struct vs_lifetimes_found lifetimes = {0};
    struct vs_recents recents = {0};
    int status = CMD_FAILED;
    int result = vs_frames_new(summary->reader, &frames);
    struct vs_stack_source source = {frames, frames_of};
    if (result == 0)
        result = vs_places_create(summary->state, &summary->sites, &source, options->by, &places);
    if (result == 0)
        result = vs_growth_find(&summary->growth, &places, &grown);
    if (result == 0 && summary->cuts.gaps == 0) /* short lives are what was taken out */
        result = vs_lifetimes_find(&summary->lifetimes, summary->state, &summary->sites,
                                   &grown.steps, &lifetimes);
    if (result == 0 && summary->cuts.gaps == 0)
        result = vs_recents_find(&summary->lifetimes, &lifetimes, &grown.steps, summary->state,
                                 &recents);
    if (result == 0)
        result = vs_categories_find(&places, &summary->lives,
                                    summary->cuts.gaps == 0 ? &summary->lifetimes : NULL,
                                    &grown.steps, &categories);
    if (result == 0) {
        vs_phases_find_step(&summary->phases, summary->state, &places);
        result = summary->phases.error;
    }
    if (result == 0)
        status = use(&(struct report){summary, &places, options, others, &grown, &categories,
                                      &lifetimes, &recents, NULL},
                     self);
    else
        fprintf(stderr, "vramscope: %s: %s\n", path, strerror(-result));
    vs_recents_release(&recents);
    vs_lifetimes_found_release(&lifetimes);
    vs_categories_release(&categories);
    vs_grown_release(&grown);
    vs_places_release(&places);
    vs_frames_free(frames);
    return status;
}

static int show(const char *path, const struct report_options *options,
                const struct report_others *others)
{
    struct vs_summary *summary = load(path, &options->window);
    if (summary == NULL)
        return CMD_FAILED;
    int status = options->alone || report_look_beside(path, summary)
                     ? report_make(path, summary, options, others, print, NULL)
                     : CMD_FAILED;
    if (tell_damage(path, &summary->status, summary->read_error))
        status = CMD_FAILED;
    vs_summary_free(summary);
    return status;
}

static int show_folder(const char *path, const struct report_options *options)
{
    struct report_folder folder;
    int status = CMD_FAILED;
    if (report_open_folder(path, &folder)) {
        struct report_others rest = folder.traces;
        rest.items++;
        rest.count--;
        status = show(rest.chosen->path, options, &rest);
        if (!folder.all_read)
            status = CMD_FAILED;
    }
    report_release_folder(&folder);
    return status;
}

static int show_inside(const char *path, bool full)
{
    bool whole = true;
    bool shown = report_print_inside(stdout, path, path, full, &whole);
    return finish_output(shown && whole ? CMD_DONE : CMD_FAILED);
}

int cmd_report(int argc, char **argv)
{
    struct report_options options = {.by = VS_BY_LINE, .device = -1};
    const char *path;
    int status = report_parse(argc, argv, &options, &path);
    if (status >= 0)
        return status;
    struct stat found;
    if (options.what_is_inside)
        return show_inside(path, options.full);
    if (stat(path, &found) == 0 && S_ISDIR(found.st_mode))
        return show_folder(path, &options);
    return show(path, &options, NULL);
}
