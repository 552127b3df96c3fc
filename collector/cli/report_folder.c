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

/* "out of memory, exit 1", "killed by signal 15", "normally". */
static void describe_end(const struct vs_summary *summary, struct report_other *other)
{
    const char *lead = other->urgency == REPORT_OUT_OF_MEMORY ? "out of memory, " : "";
    if (strcmp(summary->ended, "killed") == 0 && summary->signal_known)
        snprintf(other->ended, sizeof(other->ended), "%skilled by signal %d", lead,
                 summary->signal);
    else if (strcmp(summary->ended, "killed") == 0)
        snprintf(other->ended, sizeof(other->ended), "%skilled", lead);
    else if (other->urgency != REPORT_ENDED_WELL && summary->exit_code_known)
        snprintf(other->ended, sizeof(other->ended), "%sexit %d", lead, summary->exit_code);
    else if (other->urgency == REPORT_OUT_OF_MEMORY)
        snprintf(other->ended, sizeof(other->ended), "out of memory");
    else if (strcmp(summary->ended, "exit") == 0)
        snprintf(other->ended, sizeof(other->ended), "normally");
    else if (strcmp(summary->ended, "exec") == 0)
        snprintf(other->ended, sizeof(other->ended), "became another program");
    else
        snprintf(other->ended, sizeof(other->ended), "not yet, or not known");
}

/* On the clock that processes and machines share. */
static uint64_t real_time(const struct vs_summary *summary, uint64_t time_ns)
{
    json_int_t start =
        json_integer_value(json_object_get(json_object_get(summary->clock, "start"), "real_ns"));
    return start <= 0 ? 0 : (uint64_t)start + vs_summary_at(summary, time_ns);
}

static void find_device(const struct vs_summary *summary, struct report_other *other)
{
    for (size_t i = 0; i < VS_DEVICE_SLOTS; i++) {
        const struct vs_device_state *device = summary->state->devices[i];
        if (device == NULL)
            continue;
        const struct vs_layer_total *total = &device->layers[vs_device_top_layer(device)];
        if (total->peak_bytes <= other->peak_bytes)
            continue;
        other->peak_bytes = total->peak_bytes;
        other->end_bytes = total->live_bytes;
        other->device = device->device;
    }
}

/* Returns 0 or -ENOMEM; what it shares is to be released in any case. */
static int describe(const char *path, const struct vs_summary *summary, struct report_other *out)
{
    struct report_other other = {.path = path, .end = summary->ended, .rank = -1, .device = -1};
    int result = vs_shared_take(summary->state, &summary->objects, &other.shared);
    const struct vs_oom *fatal = vs_summary_fatal_oom(summary);
    const json_t *rank = json_object_get(summary->process, "rank");
    other.pid = json_integer_value(json_object_get(summary->process, "pid"));
    if (json_is_integer(rank))
        other.rank = json_integer_value(rank);
    if (fatal != NULL) {
        other.urgency = REPORT_OUT_OF_MEMORY;
        other.failed_at = real_time(summary, fatal->time_ns);
    } else if (vs_summary_ended_badly(summary))
        other.urgency = REPORT_ENDED_BADLY;
    describe_end(summary, &other);
    find_device(summary, &other);
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
    while (report->others != NULL && memory->pieces == 0 && *from < report->others->count) {
        const struct report_other *other = &report->others->items[(*from)++];
        const struct vs_shared *shared = &other->shared;
        if (exported ? has_handle(shared->opened, shared->opened_count, memory->handle)
                     : has_handle(shared->exported, shared->exported_count, memory->handle))
            return other;
    }
    return NULL;
}

/* The first to run out of memory: the end of the others may follow from its own. */
static bool matters_more(const struct report_other *a, const struct report_other *b)
{
    if (a->urgency != b->urgency)
        return a->urgency > b->urgency;
    if (a->failed_at != 0 && b->failed_at != 0 && a->failed_at != b->failed_at)
        return a->failed_at < b->failed_at;
    return a->peak_bytes > b->peak_bytes;
}

static int by_urgency(const void *a, const void *b)
{
    const struct report_other *left = a, *right = b;
    if (left->urgency != right->urgency)
        return left->urgency < right->urgency ? 1 : -1;
    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    return strcmp(left->path, right->path);
}

/* The one that matters most comes first, the others in the order in which they are listed. */
static void choose(struct report_others *traces)
{
    struct report_other *items = traces->items;
    size_t best = 0;
    for (size_t i = 1; i < traces->count; i++)
        if (matters_more(&items[i], &items[best]))
            best = i;
    struct report_other chosen = items[best];
    items[best] = items[0];
    items[0] = chosen;
    qsort(items + 1, traces->count - 1, sizeof(*items), by_urgency);
    traces->chosen = &items[0];
    for (size_t i = 0; i < traces->count; i++)
        traces->as_urgent += items[i].urgency == chosen.urgency;
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
    if (traces->count == 0)
        return false;
    choose(traces);
    return true;
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
