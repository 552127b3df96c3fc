/* SPDX-License-Identifier: Apache-2.0 */
/* The options of vramscope report. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "report.h"
#include "time_size.h"
#include "trace_argument.h"

static const char help[] =
    "usage: vramscope report [OPTION …] TRACE|DIR\n"
    "\n"
    "How much at the peak, whose, when, how it ended and what was lost, on one page.\n"
    "A folder: the trace that ended in a failure, else the one with the highest peak; the\n"
    "others are listed. docs/numbers.md says what each figure means and how exact it is.\n"
    "\n"
    "  --by line|function|module|stack\n"
    "                     what memory is summed up by: the innermost line of the program's own\n"
    "                     code (the default), its function, its file or module, or each stack\n"
    "  --full             every frame; without it runs of library frames are one line\n"
    "  --top N            how many places are listed (the page: 8 with 0.5 % and more,\n"
    "                     --json: all)\n"
    "  --min-bytes SIZE   lists no place that held less, at the peak and at the end (K, M, G)\n"
    "  --device N         this device only\n"
    "  --from T, --to T   a window: the peak within it, and what is live at its end. Seconds\n"
    "                     since the beginning, before the end with \"-\"; or with ns, us, ms\n"
    "  --alone            looks into no trace beside it; without it the other traces of its "
    "folder\n"
    "                     say what their processes held of the device when a request failed\n"
    "  --json             everything, for a program: schema vramscope-report/1\n"
    "  --markdown         for an issue tracker: the answer, the page folded below it; at most\n"
    "                     60 lines and 8 KiB\n"
    "  --what-is-inside   everything that the file discloses, instead of the report; with\n"
    "                     --full all values, not a few of each kind\n"
    "\n"
    "What is not listed is summed up in one line, so that the sums stay those of the device.\n"
    "\n"
    "Exit status: 0 done, 1 the trace could not be read, or not all of it, 2 usage.\n";

static bool wrong(const char *option, const char *takes, const char *text)
{
    fprintf(stderr, "vramscope report: %s takes %s, not '%s'\n", option, takes, text);
    return false;
}

/* One of the words of its rule. */
static void parse_by(const char *text, struct report_options *options)
{
    for (enum vs_group_by by = VS_BY_LINE; text != NULL && by <= VS_BY_STACK; by++)
        if (strcmp(text, report_group_name(by)) == 0)
            options->by = by;
    options->by_given = text != NULL;
}

static bool parse_size(const char *text, int64_t *bytes)
{
    return size_of_text(text, bytes) ||
           wrong("--min-bytes", "a size such as 64K, 20M or 1.5G", text);
}

static bool parse_count(const char *option, const char *text, long least, long most,
                        const char *takes, long *value)
{
    char *end;
    errno = 0;
    *value = strtol(text, &end, 10);
    if (end != text && *end == 0 && errno == 0 && *value >= least && *value <= most)
        return true;
    return wrong(option, takes, text);
}

struct texts {
    const char *by, *min_bytes, *device, *from, *to, *top;
};

static bool take(const struct texts *texts, struct report_options *options)
{
    struct vs_window *window = &options->window;
    long device = -1, top = 0;
    bool fine = (texts->min_bytes == NULL || parse_size(texts->min_bytes, &options->min_bytes)) &&
                (texts->device == NULL || parse_count("--device", texts->device, 0, INT8_MAX,
                                                      "a number from 0 to 127", &device)) &&
                (texts->top == NULL ||
                 parse_count("--top", texts->top, 1, INT_MAX, "a number from 1", &top)) &&
                take_bound("report", "--from", texts->from, &window->has_from, &window->from_ns) &&
                take_bound("report", "--to", texts->to, &window->has_to, &window->to_ns);
    parse_by(texts->by, options);
    options->device = (int)device;
    options->top = (size_t)top;
    return fine;
}

int report_parse(int argc, char **argv, struct report_options *options, const char **path)
{
    struct texts texts = {0};
    const struct option_rule rules[] = {
        {"--json", &options->json, NULL},
        {"--alone", &options->alone, NULL},
        {"--full", &options->full, NULL},
        {"--by line|function|module|stack", NULL, &texts.by},
        {"--min-bytes SIZE", NULL, &texts.min_bytes},
        {"--device N", NULL, &texts.device},
        {"--from TIME", NULL, &texts.from},
        {"--to TIME", NULL, &texts.to},
        {"--top N", NULL, &texts.top},
        {"--markdown", &options->markdown, NULL},
        {"--what-is-inside", &options->what_is_inside, NULL},
    };
    int status = parse_arguments(argc, argv, help, rules, sizeof(rules) / sizeof(rules[0]), path);
    if (status >= 0)
        return status;
    if (options->json + options->markdown + options->what_is_inside > 1) {
        fputs("vramscope report: --json, --markdown and --what-is-inside are three forms: give one "
              "of them\n",
              stderr);
        return CMD_USAGE;
    }
    return take(&texts, options) ? -1 : CMD_USAGE;
}
