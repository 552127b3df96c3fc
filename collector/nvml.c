/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other processes' use of the devices. Names and structures follow NVIDIA's
 * "NVML API Reference Manual" (device queries, nvmlProcessInfo_t); they are
 * repeated here because the library is looked up at run time, if at all.
 */
#include "nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NVML_SONAME "libnvidia-ml.so.1"
#define NVML_OK 0
#define NVML_UNKNOWN_BYTES ULLONG_MAX
#define DEVICES_MAX 64U
#define PROCESSES_MAX 128U
#define REPORTS_MAX 512U
#define SECONDS_BETWEEN_QUESTIONS 5
#define STACK_BYTES (256U * 1024U)
#define INITIAL_PID_NAMESPACE 0xEFFFFFFCU /* inode of /proc/PID/ns/pid there (linux/proc_ns.h) */

typedef void *nvml_device;

/* nvmlProcessInfo_t as of _v2 and _v3 of the queries. */
struct process_info {
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance;
    unsigned compute_instance;
};
/* … and as the first version had it. */
struct process_info_v1 {
    unsigned pid;
    unsigned long long used_bytes;
};

typedef int query(nvml_device device, unsigned *count, void *infos);

struct library {
    int (*init)(void);
    int (*by_uuid)(const char *uuid, nvml_device *device);
    query *compute, *graphics;
    bool first_version; /* the queries fill process_info_v1 */
};

struct watched_device {
    int ordinal;
    char uuid[48];
    nvml_device handle;
    struct nvml_use known[PROCESSES_MAX]; /* what was reported last */
    unsigned known_count;
    bool answered;
};

struct nvml {
    pthread_mutex_t lock; /* guards everything down to the blank line */
    pthread_cond_t changed;
    struct watched_device devices[DEVICES_MAX];
    unsigned device_count;
    struct nvml_use reports[REPORTS_MAX];
    unsigned report_count;
    bool asked, busy, stopping, running;
    char status[64];

    struct library library; /* the thread's own from here on */
    const struct target *target;
    struct target_ids own;        /* read while the target lives */
    char driver_folder[PATH_MAX]; /* of its libcuda, if it has one yet */
};

struct nvml *nvml_create(const struct target *target)
{
    pthread_condattr_t attributes;
    struct nvml *nvml = calloc(1, sizeof *nvml);
    if (!nvml)
        return NULL;
    nvml->target = target;
    target_ids(target, &nvml->own);
    pthread_mutex_init(&nvml->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&nvml->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    snprintf(nvml->status, sizeof nvml->status, "not asked");
    return nvml;
}

void nvml_look(struct nvml *nvml)
{
    if (target_mapped_folder(nvml->target, "libcuda.so.", nvml->driver_folder,
                             sizeof nvml->driver_folder) != 0)
        nvml->driver_folder[0] = 0;
}

/* `format` may use one int. */
static void set_status(struct nvml *nvml, const char *format, int number)
{
    pthread_mutex_lock(&nvml->lock);
    snprintf(nvml->status, sizeof nvml->status, format, number);
    pthread_mutex_unlock(&nvml->lock);
}

/* ---- the library ------------------------------------------------------------ */

static void *open_in(const char *folder)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", folder, NVML_SONAME) >= (int)sizeof path)
        return NULL;
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void *open_in_list(const char *folders)
{
    char copy[PATH_MAX], *rest = NULL;
    if (!folders || snprintf(copy, sizeof copy, "%s", folders) >= (int)sizeof copy)
        return NULL;
    for (char *folder = strtok_r(copy, ":", &rest); folder; folder = strtok_r(NULL, ":", &rest)) {
        void *handle = *folder == '/' ? open_in(folder) : NULL;
        if (handle)
            return handle;
    }
    return NULL;
}

/* The one that belongs to the driver which the target uses: beside its libcuda, then where it
 * searches. */
static void *open_library(const struct nvml *nvml)
{
    char folder[PATH_MAX];
    void *handle = nvml->driver_folder[0] ? open_in(nvml->driver_folder) : NULL;
    if (!handle && target_mapped_folder(nvml->target, "libcuda.so.", folder, sizeof folder) == 0)
        handle = open_in(folder);
    if (!handle)
        handle = open_in_list(getenv("VRAMSCOPE_TARGET_LIBRARY_PATH"));
    return handle ? handle : dlopen(NVML_SONAME, RTLD_NOW | RTLD_LOCAL);
}

/* ISO C has no cast from an object to a function pointer; POSIX says that the bytes are the same.
 */
static bool find(void *handle, const char *name, void *function)
{
    void *address = dlsym(handle, name);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}

static bool find_queries(void *handle, struct library *library)
{
    static const char *const versions[] = {"_v3", "_v2", ""};
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        char compute[64], graphics[64];
        snprintf(compute, sizeof compute, "nvmlDeviceGetComputeRunningProcesses%s", versions[i]);
        snprintf(graphics, sizeof graphics, "nvmlDeviceGetGraphicsRunningProcesses%s", versions[i]);
        if (find(handle, compute, &library->compute)) {
            find(handle, graphics, &library->graphics);
            library->first_version = versions[i][0] == 0;
            return true;
        }
    }
    return false;
}

static bool load_library(struct nvml *nvml)
{
    struct library *library = &nvml->library;
    void *handle = open_library(nvml);
    if (!handle) {
        set_status(nvml, "no library", 0);
        return false;
    }
    if (!find(handle, "nvmlInit_v2", &library->init) ||
        !find(handle, "nvmlDeviceGetHandleByUUID", &library->by_uuid) ||
        !find_queries(handle, library)) {
        set_status(nvml, "library without the needed names", 0);
        return false;
    }
    int error = library->init();
    if (error != NVML_OK)
        set_status(nvml, "error %d", error);
    return error == NVML_OK;
}

/* ---- one round of questions --------------------------------------------------- */

struct round {
    struct nvml_use uses[PROCESSES_MAX];
    unsigned count;
    bool own_seen;
};

static bool is_own(const struct target_ids *ids, uint32_t pid)
{
    for (unsigned i = 0; i < ids->pid_count; i++)
        if (ids->pid_chain[i] == pid)
            return true;
    return false;
}

static void add_use(struct round *round, int ordinal, unsigned pid, unsigned long long bytes,
                    const struct target_ids *own)
{
    if (is_own(own, pid)) {
        round->own_seen = true;
        return;
    }
    if (bytes == NVML_UNKNOWN_BYTES || round->count == PROCESSES_MAX)
        return;
    for (unsigned i = 0; i < round->count; i++)
        if (round->uses[i].pid == pid) { /* compute and graphics of one process are one figure */
            if (round->uses[i].bytes < bytes)
                round->uses[i].bytes = bytes;
            return;
        }
    round->uses[round->count++] = (struct nvml_use){ordinal, pid, bytes};
}

static int ask_one(const struct nvml *nvml, query *ask, const struct watched_device *device,
                   const struct target_ids *own, struct round *round)
{
    union {
        struct process_info newer[PROCESSES_MAX];
        struct process_info_v1 first[PROCESSES_MAX];
    } infos;
    unsigned count = PROCESSES_MAX;
    memset(&infos, 0, sizeof infos);
    int error = ask ? ask(device->handle, &count, &infos) : NVML_OK;
    if (!ask || error != NVML_OK)
        return error;
    for (unsigned i = 0; i < count && i < PROCESSES_MAX; i++) {
        if (nvml->library.first_version)
            add_use(round, device->ordinal, infos.first[i].pid, infos.first[i].used_bytes, own);
        else
            add_use(round, device->ordinal, infos.newer[i].pid, infos.newer[i].used_bytes, own);
    }
    return NVML_OK;
}

static bool sees_all_pids(void)
{
    struct stat space;
    return stat("/proc/self/ns/pid", &space) == 0 && space.st_ino == INITIAL_PID_NAMESPACE;
}

static void report(struct nvml *nvml, const struct nvml_use *use)
{
    if (nvml->report_count < REPORTS_MAX)
        nvml->reports[nvml->report_count++] = *use;
}

static const struct nvml_use *find_use(const struct nvml_use *uses, unsigned count, uint32_t pid)
{
    for (unsigned i = 0; i < count; i++)
        if (uses[i].pid == pid)
            return &uses[i];
    return NULL;
}

/* Reports what differs from the last round, or all of it; processes that went are reported with 0.
 */
static void report_round(struct nvml *nvml, struct watched_device *device,
                         const struct round *round, bool all)
{
    if (!device->answered) {
        /* So that readers know that it was asked, and which uses were there before. */
        struct nvml_use first = {device->ordinal, 0, round->count};
        report(nvml, &first);
        device->answered = true;
        all = true;
    }
    for (unsigned i = 0; i < round->count; i++) {
        const struct nvml_use *before =
            find_use(device->known, device->known_count, round->uses[i].pid);
        if (all || !before || before->bytes != round->uses[i].bytes)
            report(nvml, &round->uses[i]);
    }
    for (unsigned i = 0; i < device->known_count; i++)
        if (!find_use(round->uses, round->count, device->known[i].pid)) {
            struct nvml_use gone = {device->ordinal, device->known[i].pid, 0};
            report(nvml, &gone);
        }
    memcpy(device->known, round->uses, sizeof round->uses);
    device->known_count = round->count;
}

static void ask_device(struct nvml *nvml, struct watched_device *device, bool all)
{
    const struct target_ids *own = &nvml->own;
    struct round round = {.count = 0};
    if (!device->handle && nvml->library.by_uuid(device->uuid, &device->handle) != NVML_OK) {
        device->handle = NULL;
        set_status(nvml, "a device is not known to NVML", 0);
        return;
    }
    int error = ask_one(nvml, nvml->library.compute, device, own, &round);
    if (error != NVML_OK) {
        set_status(nvml, "error %d", error);
        return;
    }
    ask_one(nvml, nvml->library.graphics, device, own, &round);
    if (round.count && !round.own_seen && !sees_all_pids()) {
        /* One of these is us under another number: none can be called another process. */
        set_status(nvml, "own process not identifiable", 0);
        return;
    }
    if (!round.count && !round.own_seen && !device->answered) {
        /* Not even our own process: it is over, or NVML tells of none here. That others are not
           listed says nothing then. */
        set_status(nvml, "no process is listed", 0);
        return;
    }
    set_status(nvml, "ok", 0);
    pthread_mutex_lock(&nvml->lock);
    report_round(nvml, device, &round, all);
    pthread_mutex_unlock(&nvml->lock);
}

/* ---- the thread ----------------------------------------------------------------- */

/* Waits for the next round. False when it is time to stop. `all`: it was asked for. */
static bool wait_for_round(struct nvml *nvml, bool *all, unsigned *devices)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += SECONDS_BETWEEN_QUESTIONS;
    pthread_mutex_lock(&nvml->lock);
    nvml->busy = false;
    pthread_cond_broadcast(&nvml->changed);
    while (!nvml->stopping && !nvml->asked && nvml->device_count == *devices)
        if (pthread_cond_timedwait(&nvml->changed, &nvml->lock, &until) == ETIMEDOUT)
            break;
    bool go_on = !nvml->stopping;
    *all = nvml->asked;
    *devices = nvml->device_count;
    nvml->asked = false;
    nvml->busy = go_on;
    pthread_mutex_unlock(&nvml->lock);
    return go_on;
}

static void *nvml_main(void *argument)
{
    struct nvml *nvml = argument;
    unsigned devices = 0;
    bool all = false;
    bool loaded = load_library(nvml);
    while (loaded && wait_for_round(nvml, &all, &devices))
        for (unsigned i = 0; i < devices; i++)
            ask_device(nvml, &nvml->devices[i], all);
    pthread_mutex_lock(&nvml->lock);
    nvml->running = false;
    pthread_cond_broadcast(&nvml->changed);
    pthread_mutex_unlock(&nvml->lock);
    return NULL;
}

static void start_thread(struct nvml *nvml)
{
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    nvml->running = pthread_create(&thread, &attributes, nvml_main, nvml) == 0;
    if (!nvml->running)
        snprintf(nvml->status, sizeof nvml->status, "no thread");
    pthread_attr_destroy(&attributes);
}

static void write_uuid(const uint8_t uuid[16], char *out, size_t out_bytes)
{
    int used = snprintf(out, out_bytes, "GPU-");
    for (unsigned i = 0; i < 16; i++)
        used += snprintf(out + used, out_bytes - (size_t)used, "%s%02x",
                         i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

void nvml_add_device(struct nvml *nvml, int device, const uint8_t uuid[16])
{
    char text[48];
    write_uuid(uuid, text, sizeof text);
    pthread_mutex_lock(&nvml->lock);
    bool known = nvml->device_count == DEVICES_MAX;
    for (unsigned i = 0; i < nvml->device_count && !known; i++)
        known = strcmp(nvml->devices[i].uuid, text) == 0;
    if (!known) {
        struct watched_device *added = &nvml->devices[nvml->device_count++];
        added->ordinal = device;
        memcpy(added->uuid, text, sizeof text);
        nvml->asked = true; /* a program that ends soon waits for the first answer */
        if (nvml->device_count == 1)
            start_thread(nvml);
        pthread_cond_broadcast(&nvml->changed);
    }
    pthread_mutex_unlock(&nvml->lock);
}

void nvml_ask(struct nvml *nvml)
{
    pthread_mutex_lock(&nvml->lock);
    nvml->asked = true;
    pthread_cond_broadcast(&nvml->changed);
    pthread_mutex_unlock(&nvml->lock);
}

unsigned nvml_take(struct nvml *nvml, struct nvml_use *out, unsigned room)
{
    pthread_mutex_lock(&nvml->lock);
    unsigned count = nvml->report_count < room ? nvml->report_count : room;
    memcpy(out, nvml->reports, count * sizeof *out);
    memmove(nvml->reports, nvml->reports + count,
            (nvml->report_count - count) * sizeof *nvml->reports);
    nvml->report_count -= count;
    pthread_mutex_unlock(&nvml->lock);
    return count;
}

void nvml_settle(struct nvml *nvml, unsigned most_ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(most_ms % 1000) * 1000000L;
    until.tv_sec += (time_t)(most_ms / 1000) + until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&nvml->lock);
    while (nvml->running && (nvml->asked || nvml->busy))
        if (pthread_cond_timedwait(&nvml->changed, &nvml->lock, &until) == ETIMEDOUT)
            break;
    pthread_mutex_unlock(&nvml->lock);
}

void nvml_status(struct nvml *nvml, char *out, size_t out_bytes)
{
    pthread_mutex_lock(&nvml->lock);
    snprintf(out, out_bytes, "%s", nvml->status);
    pthread_mutex_unlock(&nvml->lock);
}

void nvml_stop(struct nvml *nvml)
{
    pthread_mutex_lock(&nvml->lock);
    nvml->stopping = true;
    pthread_cond_broadcast(&nvml->changed);
    pthread_mutex_unlock(&nvml->lock);
}
