/* SPDX-License-Identifier: Apache-2.0 */
/* vramscope timeline: the curves of a trace, for a program or for the eye. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "commands.h"
#include "plot.h"
#include "replay/curve_row.h"
#include "trace_argument.h"

static const char help[] =
    "usage: vramscope timeline [--plot | --csv | --json] TRACE\n"
    "\n"
    "  --plot   draw allocated, reserved and device use over time (the default)\n"
    "  --csv    one row for every event that moved a band; the first line names the columns\n"
    "  --json   the same as an array of objects\n"
    "\n"
    "Times are nanoseconds since the start of the trace, sizes bytes. A figure that was not\n"
    "measured is empty (CSV) or null (JSON). docs/numbers.md says what each column means.\n"
    "\n"
    "Exit status: 0 done, 1 the trace could not be read, or not all of it.\n";

struct output {
    bool json;
    bool any;
};

static void print_csv_row(uint64_t time_ns, int device, const struct vs_curve_row *row)
{
    printf("%" PRIu64 ",%d", time_ns, device);
    for (size_t i = 0; i < VS_CURVE_COLUMNS; i++) {
        if (row->known[i])
            printf(",%" PRId64, row->value[i]);
        else
            putchar(',');
    }
    putchar('\n');
}

static void print_json_row(struct output *output, uint64_t time_ns, int device,
                           const struct vs_curve_row *row)
{
    printf("%s{\"time_ns\":%" PRIu64 ",\"device\":%d", output->any ? ",\n" : "\n", time_ns, device);
    for (size_t i = 0; i < VS_CURVE_COLUMNS; i++) {
        if (row->known[i])
            printf(",\"%s\":%" PRId64, vs_curve_columns[i], row->value[i]);
        else
            printf(",\"%s\":null", vs_curve_columns[i]);
    }
    putchar('}');
}

static void print_csv_header(void)
{
    fputs("time_ns,device", stdout);
    for (size_t i = 0; i < VS_CURVE_COLUMNS; i++)
        printf(",%s", vs_curve_columns[i]);
    putchar('\n');
}

static void print_head(const struct output *output)
{
    if (output->json)
        fputs("{\"schema\":\"vramscope-timeline/1\",\"rows\":[", stdout);
    else
        print_csv_header();
}

static void on_row(void *self, const struct vs_state *state, const struct vs_device_state *device,
                   const struct vs_bands *bands, struct vs_free_blocks *free_blocks)
{
    struct output *output = self;
    struct vs_curve_row row;
    vs_curve_row(free_blocks, state, device, bands, &row);
    uint64_t time_ns = state->now_ns - state->start_ns;
    if (!output->any)
        print_head(output);
    if (output->json)
        print_json_row(output, time_ns, device->device, &row);
    else
        print_csv_row(time_ns, device->device, &row);
    output->any = true;
}

static int plot(const char *path)
{
    struct vs_summary *summary = load_trace(path, NULL, NULL);
    if (summary == NULL)
        return CMD_FAILED;
    struct winsize window;
    int width =
        ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col >= 40 ? window.ws_col : 100;
    plot_timeline(stdout, summary, width > 200 ? 200 : width);
    int status = tell_damage(path, &summary->status, summary->read_error) ? CMD_FAILED : CMD_DONE;
    vs_summary_free(summary);
    return finish_output(status);
}

static int print_rows(const char *path, bool json)
{
    struct output output = {.json = json};
    struct vs_summary *summary = load_trace(path, on_row, &output);
    if (summary == NULL)
        return CMD_FAILED;
    if (!output.any)
        print_head(&output);
    if (json)
        fputs("\n]}\n", stdout);
    int status = tell_damage(path, &summary->status, summary->read_error) ? CMD_FAILED : CMD_DONE;
    vs_summary_free(summary);
    return finish_output(status);
}

int cmd_timeline(int argc, char **argv)
{
    bool csv = false, json = false, draw = false;
    const char *path;
    const struct option_rule rules[] = {
        {"--csv", &csv, NULL}, {"--json", &json, NULL}, {"--plot", &draw, NULL}};
    int status = parse_arguments(argc, argv, help, rules, 3, &path);
    if (status >= 0)
        return status;
    if (csv + json + draw > 1) {
        fputs("vramscope timeline: one of --plot, --csv and --json at a time\n", stderr);
        return CMD_USAGE;
    }
    return csv || json ? print_rows(path, json) : plot(path);
}
