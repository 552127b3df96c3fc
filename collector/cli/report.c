/* SPDX-License-Identifier: Apache-2.0 */
/* vramscope report: the command; which trace of a folder; what both forms share. */
#include "report.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "commands.h"
#include "trace_argument.h"

static const char help[] =
    "usage: vramscope report [--json] TRACE|DIR\n"
    "\n"
    "How much at the peak, whose, when, how it ended and what was lost, on one page.\n"
    "A folder: the trace that ended in a failure, else the one with the highest peak; the\n"
    "others are listed. docs/numbers.md says what each figure means and how exact it is.\n"
    "\n"
    "  --json   everything, for a program: schema vramscope-report/1\n"
    "\n"
    "Exit status: 0 done, 1 the trace could not be read, or not all of it.\n";

/* ---- shared by both forms ----------------------------------------------------------- */

const char *report_owner_title(const struct vs_summary *summary, uint16_t owner)
{
    const char *name = vs_state_owner_name(summary->state, owner);
    return strncmp(name, "libc10_", 7) == 0 ? "PyTorch" : name;
}

const char *report_framework_name(const struct vs_summary *summary,
                                  const struct vs_device_state *device)
{
    const struct vs_owner *owner = &summary->state->owners[device->framework_owner];
    return device->framework_owner < summary->state->owner_count && owner->framework
               ? report_owner_title(summary, device->framework_owner)
               : "the framework";
}

const char *report_layer_name(unsigned layer)
{
    return layer == VS_LAYER_FRAMEWORK ? "framework" : layer == VS_LAYER_DRIVER ? "driver" : "host";
}

const char *report_implicit_name(unsigned which)
{
    static const char *const names[VS_IMPLICITS] = {
        [VS_IMPLICIT_CONTEXT] = "context", [VS_IMPLICIT_MODULES] = "modules",
        [VS_IMPLICIT_GRAPHS] = "graphs",   [VS_IMPLICIT_LOCAL_MEMORY] = "local_memory",
        [VS_IMPLICIT_OTHER] = "other",
    };
    return names[which];
}

uint64_t report_mismatches(const struct vs_summary *summary, const struct vs_device_state *device)
{
    return vs_state_lossy(summary->state) ? 0 : device->mismatches;
}

const char *report_error_name(const struct vs_summary *summary, uint16_t label, int32_t result,
                              char *buffer, size_t bytes)
{
    return vs_cuda_error_name(vs_state_string(summary->state, label), result, buffer, bytes);
}

static bool get_count(const json_t *object, const char *field, uint64_t *value)
{
    const json_t *number = json_object_get(object, field);
    if (!json_is_integer(number) || json_integer_value(number) < 0)
        return false;
    *value = (uint64_t)json_integer_value(number);
    return true;
}

bool report_overhead(const struct vs_summary *summary, uint64_t *spent_ns, uint64_t *waited_ns,
                     double *percent)
{
    uint64_t samples;
    if (!get_count(summary->hooks, "spent_ns", spent_ns) ||
        !get_count(summary->hooks, "waited_ns", waited_ns) ||
        (get_count(summary->hooks, "spent_samples", &samples) && samples == 0))
        return false;
    *percent = summary->duration_ns == 0
                   ? 0
                   : 100.0 * (double)(*spent_ns + *waited_ns) / (double)summary->duration_ns;
    return true;
}

/* ---- a folder --------------------------------------------------------------------------- */

struct paths {
    char **items;
    size_t count, room;
};

static void free_paths(struct paths *paths)
{
    for (size_t i = 0; i < paths->count; i++)
        free(paths->items[i]);
    free(paths->items);
}

static bool add_path(struct paths *paths, const char *folder, const char *name)
{
    if (paths->count == paths->room) {
        size_t room = paths->room == 0 ? 16 : paths->room * 2;
        char **items = realloc(paths->items, room * sizeof(*items));
        if (items == NULL)
            return false;
        paths->items = items;
        paths->room = room;
    }
    size_t length = strlen(folder);
    const char *slash = length > 0 && folder[length - 1] == '/' ? "" : "/";
    if (asprintf(&paths->items[paths->count], "%s%s%s", folder, slash, name) < 0)
        return false;
    paths->count++;
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_trace_name(const char *name)
{
    size_t length = strlen(name), suffix = strlen(VS_TRACE_SUFFIX);
    return length > suffix && strcmp(name + length - suffix, VS_TRACE_SUFFIX) == 0;
}

static int list_traces(const char *folder, struct paths *paths)
{
    DIR *directory = opendir(folder);
    if (directory == NULL)
        return -errno;
    int result = 0;
    const struct dirent *entry;
    while (result == 0 && (entry = readdir(directory)) != NULL)
        if (is_trace_name(entry->d_name) && !add_path(paths, folder, entry->d_name))
            result = -ENOMEM;
    closedir(directory);
    if (paths->count > 1)
        qsort(paths->items, paths->count, sizeof(*paths->items), by_name);
    return result;
}

static struct report_other describe(const char *path, const struct vs_summary *summary)
{
    struct report_other other = {.path = path, .ended = summary->ended, .rank = -1};
    const json_t *rank = json_object_get(summary->process, "rank");
    if (json_is_integer(rank))
        other.rank = json_integer_value(rank);
    other.ended_badly = vs_summary_ended_badly(summary) || vs_summary_fatal_oom(summary) != NULL;
    for (size_t i = 0; i < VS_DEVICE_SLOTS; i++) {
        const struct vs_device_state *device = summary->state->devices[i];
        if (device == NULL)
            continue;
        int64_t peak = device->layers[vs_device_top_layer(device)].peak_bytes;
        if (peak > other.peak_bytes)
            other.peak_bytes = peak;
    }
    return other;
}

/* The one to report: a failed one before the others, then the highest peak. */
static bool matters_more(const struct report_other *a, const struct report_other *b)
{
    if (a->ended_badly != b->ended_badly)
        return a->ended_badly;
    return a->peak_bytes > b->peak_bytes;
}

static bool describe_all(const struct paths *paths, struct report_others *others, bool *all_read)
{
    others->items = calloc(paths->count + 1, sizeof(*others->items));
    if (others->items == NULL)
        return false;
    for (size_t i = 0; i < paths->count; i++) {
        struct vs_summary *summary = load_trace(paths->items[i], NULL, NULL);
        if (summary == NULL) {
            *all_read = false;
            continue;
        }
        others->items[others->count++] = describe(paths->items[i], summary);
        vs_summary_free(summary);
    }
    for (size_t i = 1; i < others->count; i++) {
        if (!matters_more(&others->items[i], &others->items[0]))
            continue;
        struct report_other first = others->items[i];
        memmove(&others->items[1], &others->items[0], i * sizeof(first));
        others->items[0] = first;
    }
    return others->count > 0;
}

/* ---- the command --------------------------------------------------------------------------- */

static int show(const char *path, bool json, const struct report_others *others)
{
    struct vs_summary *summary = load_trace(path, NULL, NULL);
    if (summary == NULL)
        return CMD_FAILED;
    if (json) {
        json_t *root = report_json(summary, others);
        json_dumpf(root, stdout, JSON_INDENT(1));
        putchar('\n');
        json_decref(root);
    } else {
        report_print(stdout, summary, others);
    }
    int status = finish_output(CMD_DONE);
    if (tell_damage(path, &summary->status, summary->read_error))
        status = CMD_FAILED;
    vs_summary_free(summary);
    return status;
}

static int show_folder(const char *folder, bool json)
{
    struct paths paths = {0};
    struct report_others others = {0};
    bool all_read = true;
    int status = CMD_FAILED;
    int result = list_traces(folder, &paths);
    if (result != 0) {
        fprintf(stderr, "vramscope: %s: %s\n", folder, strerror(-result));
    } else if (paths.count == 0) {
        fprintf(stderr, "vramscope: %s: no " VS_TRACE_SUFFIX " file in this folder\n", folder);
    } else if (describe_all(&paths, &others, &all_read)) {
        struct report_others rest = {others.items + 1, others.count - 1};
        status = show(others.items[0].path, json, &rest);
        if (!all_read)
            status = CMD_FAILED;
    }
    free(others.items);
    free_paths(&paths);
    return status;
}

int cmd_report(int argc, char **argv)
{
    bool json = false;
    const char *path;
    const struct option_rule rules[] = {{"--json", &json, NULL}};
    int status = parse_arguments(argc, argv, help, rules, 1, &path);
    if (status >= 0)
        return status;
    struct stat found;
    if (stat(path, &found) == 0 && S_ISDIR(found.st_mode))
        return show_folder(path, json);
    return show(path, json, NULL);
}
