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

enum { COLUMNS = 18 };

static const char *const column_names[COLUMNS] = {
    "allocated_bytes",        "reserved_bytes",           "device_bytes",      "live_bytes",
    "backed_bytes",           "unbacked_bytes",           "cached_bytes",      "direct_bytes",
    "implicit_bytes",         "other_process_bytes",      "unexplained_bytes", "managed_bytes",
    "host_pinned_bytes",      "host_rss_bytes",           "pending_bytes",     "private_pool_bytes",
    "free_in_segments_bytes", "largest_free_block_bytes",
};

/* The largest free block takes a walk over all blocks, which is made once in so many rows that
   a row costs a look at this many blocks. */
enum { BLOCKS_PER_ROW = 16, DEVICE_OFFSET = 128 };

struct row {
    int64_t value[COLUMNS];
    bool known[COLUMNS];
};

struct output {
    bool json;
    bool any;
    uint64_t rows_since[VS_DEVICE_SLOTS]; /* a device's last walk */
    bool walked[VS_DEVICE_SLOTS];
};

static void set(struct row *row, size_t column, int64_t value, bool known)
{
    row->value[column] = value;
    row->known[column] = known;
}

static void fill_row(const struct vs_device_state *device, const struct vs_bands *bands,
                     struct row *row)
{
    int64_t implicit = 0;
    for (int i = 0; i < VS_IMPLICITS; i++)
        implicit += bands->implicit[i];
    bool measured = bands->device_known;
    size_t column = 0;
    set(row, column++, bands->allocated, true);
    set(row, column++, bands->reserved, true);
    set(row, column++, bands->device, measured);
    set(row, column++, device->layers[vs_device_top_layer(device)].live_bytes, true);
    set(row, column++, bands->backed, true);
    set(row, column++, bands->unbacked, true);
    set(row, column++, bands->cached, true);
    set(row, column++, bands->direct, true);
    set(row, column++, implicit, measured);
    set(row, column++, bands->other_process, measured);
    set(row, column++, bands->unexplained, measured);
    set(row, column++, bands->managed, true);
    set(row, column++, bands->host_pinned, true);
    set(row, column++, bands->host_rss, bands->host_rss >= 0);
    set(row, column++, bands->pending, bands->pending_known);
    set(row, column++, bands->private_pool, bands->private_pool_known);
    set(row, column++, bands->cached - bands->pending, bands->pending_known);
    set(row, column++, 0, false);
}

static void fill_largest(struct output *output, const struct vs_state *state,
                         const struct vs_device_state *device, struct row *row)
{
    size_t place = (size_t)(device->device + DEVICE_OFFSET);
    struct vs_free_space space;
    output->rows_since[place]++;
    if (!device->framework_seen ||
        (output->walked[place] && output->rows_since[place] < state->blocks.count / BLOCKS_PER_ROW))
        return;
    output->walked[place] = true;
    output->rows_since[place] = 0;
    if (vs_state_free_space(state, device, &space) == 0)
        set(row, COLUMNS - 1, (int64_t)space.largest_bytes, space.known);
}

static void print_csv_row(uint64_t time_ns, int device, const struct row *row)
{
    printf("%" PRIu64 ",%d", time_ns, device);
    for (size_t i = 0; i < COLUMNS; i++) {
        if (row->known[i])
            printf(",%" PRId64, row->value[i]);
        else
            putchar(',');
    }
    putchar('\n');
}

static void print_json_row(struct output *output, uint64_t time_ns, int device,
                           const struct row *row)
{
    printf("%s{\"time_ns\":%" PRIu64 ",\"device\":%d", output->any ? ",\n" : "\n", time_ns, device);
    for (size_t i = 0; i < COLUMNS; i++) {
        if (row->known[i])
            printf(",\"%s\":%" PRId64, column_names[i], row->value[i]);
        else
            printf(",\"%s\":null", column_names[i]);
    }
    putchar('}');
}

static void print_csv_header(void)
{
    fputs("time_ns,device", stdout);
    for (size_t i = 0; i < COLUMNS; i++)
        printf(",%s", column_names[i]);
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
                   const struct vs_bands *bands)
{
    struct output *output = self;
    struct row row;
    fill_row(device, bands, &row);
    fill_largest(output, state, device, &row);
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
