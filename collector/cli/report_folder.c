/* SPDX-License-Identifier: Apache-2.0 */
/* Which trace of a folder is reported: a failed one before the others, then the highest peak. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "trace_argument.h"

static bool add_path(struct report_folder *folder, const char *path, const char *name)
{
    if (folder->path_count == folder->path_room) {
        size_t room = folder->path_room == 0 ? 16 : folder->path_room * 2;
        char **paths = realloc(folder->paths, room * sizeof(*paths));
        if (paths == NULL)
            return false;
        folder->paths = paths;
        folder->path_room = room;
    }
    size_t length = strlen(path);
    const char *slash = length > 0 && path[length - 1] == '/' ? "" : "/";
    if (asprintf(&folder->paths[folder->path_count], "%s%s%s", path, slash, name) < 0)
        return false;
    folder->path_count++;
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_trace_name(const char *name)
{
    static const char *const suffixes[] = {VS_TRACE_SUFFIX, VS_TRACE_SUFFIX ".gz",
                                           VS_TRACE_SUFFIX ".zst"};
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        size_t suffix = strlen(suffixes[i]);
        if (length > suffix && strcmp(name + length - suffix, suffixes[i]) == 0)
            return true;
    }
    return false;
}

int report_list_traces(const char *path, struct report_folder *folder)
{
    DIR *directory = opendir(path);
    if (directory == NULL)
        return -errno;
    int result = 0;
    const struct dirent *entry;
    while (result == 0 && (entry = readdir(directory)) != NULL)
        if (is_trace_name(entry->d_name) && !add_path(folder, path, entry->d_name))
            result = -ENOMEM;
    closedir(directory);
    if (folder->path_count > 1)
        qsort(folder->paths, folder->path_count, sizeof(*folder->paths), by_name);
    return result;
}

/* Returns 0 or -ENOMEM; what it shares is to be released in any case. */
static int describe(const char *path, const struct vs_summary *summary, struct report_other *out)
{
    struct report_other other = {.path = path, .ended = summary->ended, .rank = -1};
    int result = vs_shared_take(summary->state, &summary->objects, &other.shared);
    other.pid = json_integer_value(json_object_get(summary->process, "pid"));
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
    *out = other;
    return result;
}

static bool has_handle(const struct vs_shared_memory *items, size_t count, uint64_t handle)
{
    for (size_t i = 0; i < count; i++)
        if (items[i].handle == handle)
            return true;
    return false;
}

const struct report_other *report_shared_with(const struct report *report,
                                              const struct vs_shared_memory *memory, bool exported,
                                              size_t *from)
{
    while (report->others != NULL && *from < report->others->count) {
        const struct report_other *other = &report->others->items[(*from)++];
        const struct vs_shared *shared = &other->shared;
        if (exported ? has_handle(shared->opened, shared->opened_count, memory->handle)
                     : has_handle(shared->exported, shared->exported_count, memory->handle))
            return other;
    }
    return NULL;
}

static bool matters_more(const struct report_other *a, const struct report_other *b)
{
    if (a->ended_badly != b->ended_badly)
        return a->ended_badly;
    return a->peak_bytes > b->peak_bytes;
}

static bool describe_all(struct report_folder *folder)
{
    struct report_others *traces = &folder->traces;
    traces->items = calloc(folder->path_count + 1, sizeof(*traces->items));
    if (traces->items == NULL)
        return false;
    for (size_t i = 0; i < folder->path_count; i++) {
        struct vs_summary *summary = load_trace(folder->paths[i], NULL, NULL);
        if (summary == NULL) {
            folder->all_read = false;
            continue;
        }
        int result = describe(folder->paths[i], summary, &traces->items[traces->count++]);
        vs_summary_free(summary);
        if (result != 0)
            return false;
    }
    for (size_t i = 1; i < traces->count; i++) {
        if (!matters_more(&traces->items[i], &traces->items[0]))
            continue;
        struct report_other first = traces->items[i];
        memmove(&traces->items[1], &traces->items[0], i * sizeof(first));
        traces->items[0] = first;
    }
    return traces->count > 0;
}

bool report_open_folder(const char *path, struct report_folder *folder)
{
    *folder = (struct report_folder){.all_read = true};
    int result = report_list_traces(path, folder);
    if (result != 0)
        fprintf(stderr, "vramscope: %s: %s\n", path, strerror(-result));
    else if (folder->path_count == 0)
        fprintf(stderr,
                "vramscope: %s: no " VS_TRACE_SUFFIX
                " file in this folder: give the one that traces were written to\n",
                path);
    else
        return describe_all(folder);
    return false;
}

void report_release_folder(struct report_folder *folder)
{
    for (size_t i = 0; i < folder->path_count; i++)
        free(folder->paths[i]);
    free(folder->paths);
    for (size_t i = 0; i < folder->traces.count; i++)
        vs_shared_release(&folder->traces.items[i].shared);
    free(folder->traces.items);
}
