/* SPDX-License-Identifier: Apache-2.0 */
/* META objects about the traced process. */
#include "process.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "privacy.h"
#include "settings.h"

#define NS_PER_SECOND 1000000000LL

static void set_text(json_t *object, const char *name, const char *text)
{
    if (text && *text)
        json_object_set_new(object, name, privacy_json_text(text, strlen(text)));
}

static void set_number_text(json_t *object, const char *name, const char *text)
{
    if (text)
        json_object_set_new(object, name, json_integer(strtoll(text, NULL, 10)));
}

static void set_count(json_t *object, const char *name, uint64_t value)
{
    json_object_set_new(object, name, json_integer((json_int_t)value));
}

void process_host(char *out, size_t out_bytes, bool hide)
{
    char host[HOST_NAME_MAX + 1] = "";
    if (gethostname(host, sizeof host) < 0 || !*host)
        snprintf(host, sizeof host, "unknown");
    host[sizeof host - 1] = 0;
    if (hide)
        privacy_hash(host, out, out_bytes);
    else
        snprintf(out, out_bytes, "%s", host);
}

static bool boot_id(char *out, size_t out_bytes)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t bytes = read(fd, out, out_bytes - 1);
    close(fd);
    if (bytes <= 0)
        return false;
    out[bytes] = 0;
    out[strcspn(out, "\n")] = 0;
    return true;
}

static void add_ids(json_t *process, const struct target *target,
                    const struct vs_ring_header *header)
{
    struct target_ids ids;
    json_t *chain = json_array();
    target_ids(target, &ids);
    set_count(process, "pid", header->pid);
    set_count(process, "parent_pid", header->parent);
    if (header->forked_from)
        set_count(process, "forked_from", header->forked_from);
    for (unsigned i = 0; i < ids.pid_count; i++)
        json_array_append_new(chain, json_integer(ids.pid_chain[i]));
    if (ids.pid_count)
        set_count(process, "host_pid", ids.pid_chain[0]);
    json_object_set_new(process, "pids", chain);
}

static void add_program(json_t *process, const struct target *target, bool hide)
{
    char path[PATH_MAX], shown[PATH_MAX + PRIVACY_HASH_BYTES], title[64];
    if (target_executable(target, path, sizeof path) == 0) {
        if (hide)
            privacy_path(path, shown, sizeof shown);
        set_text(process, "exe", hide ? shown : path);
    }
    if (target_title(target, title, sizeof title) == 0)
        set_text(process, "title", title);
}

static void add_ranks(json_t *process, const char *const *environment)
{
    static const char *const names[] = {
        "RANK",          "LOCAL_RANK",           "SLURM_PROCID",
        "SLURM_LOCALID", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
        "PMI_RANK"};
    json_t *ranks = json_object();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        set_text(ranks, names[i], settings_find(environment, names[i]));
    set_number_text(process, "rank", settings_rank(environment));
    set_number_text(process, "local_rank", settings_local_rank(environment));
    set_number_text(process, "world_size", settings_world_size(environment));
    set_text(process, "job_id", settings_job_id(environment));
    json_object_set_new(process, "ranks", ranks);
}

json_t *process_start_json(const struct target *target, const struct vs_ring_header *header,
                           const char *const *environment, bool hide)
{
    char host[HOST_NAME_MAX + 1], boot[64];
    const char *stacks = settings_find(environment, "VRAMSCOPE_STACKS");
    json_t *process = json_object();
    if (!process)
        return NULL;
    add_ids(process, target, header);
    add_program(process, target, hide);
    process_host(host, sizeof host, hide);
    set_text(process, "host", host);
    if (boot_id(boot, sizeof boot))
        set_text(process, "boot_id", boot);
    add_ranks(process, environment);
    set_text(process, "stacks", stacks ? stacks : "native,python");
    set_text(process, "collector_version", VS_VERSION);
    json_object_set_new(process, "settings", settings_collect(environment, hide));
    return process;
}

json_t *process_driver_json(int driver_version)
{
    char text[32];
    snprintf(text, sizeof text, "%d.%d", driver_version / 1000, driver_version % 1000 / 10);
    return driver_version > 0 ? json_pack("{s:s}", "driver_version", text) : NULL;
}

/* "libcudart.so.12", "libcudart-d0da41ae.so.11.0": what stands after ".so.". */
void process_note_runtime(struct process_runtimes *runtimes, const char *path)
{
    static const char library[] = "libcudart", suffix[] = ".so.";
    const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    const char *version = strstr(base, suffix);
    if (strncmp(base, library, sizeof library - 1) != 0 || !version)
        return;
    version += sizeof suffix - 1;
    size_t bytes = strspn(version, "0123456789.");
    if (bytes == 0 || version[bytes] || bytes >= PROCESS_RUNTIME_BYTES)
        return;
    for (unsigned i = 0; i < runtimes->count; i++)
        if (strcmp(runtimes->versions[i], version) == 0)
            return;
    if (runtimes->count < PROCESS_RUNTIMES_MAX)
        memcpy(runtimes->versions[runtimes->count++], version, bytes + 1);
}

json_t *process_runtimes_json(const struct process_runtimes *runtimes)
{
    json_t *versions = runtimes->count ? json_array() : NULL;
    for (unsigned i = 0; i < runtimes->count; i++)
        json_array_append_new(versions, json_string(runtimes->versions[i]));
    return versions ? json_pack("{s:o}", "runtime_versions", versions) : NULL;
}

json_t *process_title_end_json(const char *title)
{
    return *title ? json_pack("{s:o}", "title_end", privacy_json_text(title, strlen(title))) : NULL;
}

static json_t *anchors_json(uint64_t monotonic_ns, uint64_t boot_ns, uint64_t real_ns)
{
    return json_pack("{s:I, s:I, s:I}", "monotonic_ns", (json_int_t)monotonic_ns, "boot_ns",
                     (json_int_t)boot_ns, "real_ns", (json_int_t)real_ns);
}

json_t *process_clock_start_json(const struct vs_ring_header *header, uint64_t resolution_ns)
{
    char boot[64];
    json_t *start =
        anchors_json(header->start_monotonic_ns, header->start_boot_ns, header->start_real_ns);
    json_t *clock =
        json_pack("{s:o, s:I}", "start", start, "resolution_ns", (json_int_t)resolution_ns);
    if (clock && boot_id(boot, sizeof boot))
        set_text(clock, "boot_id", boot);
    return clock;
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)(now.tv_sec * NS_PER_SECOND + now.tv_nsec);
}

json_t *process_clock_now_json(void)
{
    return json_pack("{s:o}", "end",
                     anchors_json(clock_ns(CLOCK_MONOTONIC), clock_ns(CLOCK_BOOTTIME),
                                  clock_ns(CLOCK_REALTIME)));
}

/* One line for each bit of the ring's hook_warnings; the bits are those of shim/hook.h. */
static json_t *warning_texts(uint32_t bits)
{
    static const char *const texts[] = {
        "more versions of one real function than there is room for: some calls are not seen",
        "a wrapper found no real function to call and answered with an error",
        "a memory call that this version does not know was asked for: its memory is not seen",
        "a newer variant of a known call was handed out as it is: its memory is not seen",
        "an object was loaded with RTLD_DEEPBIND: its calls may bypass the hooks",
    };
    json_t *list = json_array();
    for (unsigned bit = 0; bit < 32; bit++) {
        char unknown[64];
        if (!(bits & (1U << bit)))
            continue;
        snprintf(unknown, sizeof unknown, "a warning that this version cannot name (bit %u)", bit);
        bool known = bit < sizeof texts / sizeof texts[0];
        json_array_append_new(list, json_string(known ? texts[bit] : unknown));
    }
    return list;
}

static const char *native_method_name(uint32_t method)
{
    switch (method) {
    case VS_NATIVE_TABLES:
        return "tables";
    case VS_NATIVE_FRAME_POINTERS:
        return "frame pointers";
    case VS_NATIVE_OFF:
    default:
        return "off";
    }
}

static const char *python_state_name(uint32_t state)
{
    switch (state) {
    case VS_PYTHON_READY:
        return "ready";
    case VS_PYTHON_UNSUPPORTED:
        return "unsupported";
    case VS_PYTHON_FINALIZED:
        return "finalized";
    case VS_PYTHON_NONE:
    default:
        return "none";
    }
}

/* A version as Python writes it, from PY_VERSION_HEX: "3.11.7", "3.15.0a2". */
static void python_version_text(uint32_t version, char *out, size_t out_bytes)
{
    static const char levels[16] = {[0xa] = 'a', [0xb] = 'b', [0xc] = 'c'};
    char level = levels[version >> 4 & 15];
    int used = snprintf(out, out_bytes, "%u.%u.%u", version >> 24, version >> 16 & 255,
                        version >> 8 & 255);
    if (level == 'c')
        snprintf(out + used, out_bytes - (size_t)used, "rc%u", version & 15);
    else if (level != 0)
        snprintf(out + used, out_bytes - (size_t)used, "%c%u", level, version & 15);
}

/* How stacks were taken, and what went wrong with it and with names of NVTX. */
static void add_stacks(json_t *hooks, struct vs_ring_header *header)
{
    uint32_t state = atomic_load(&header->python_state);
    uint32_t version = atomic_load(&header->python_version);
    char text[32], unsupported[64];
    set_text(hooks, "native_method", native_method_name(atomic_load(&header->native_method)));
    set_text(hooks, "python_state", python_state_name(state));
    if (version != 0 && state == VS_PYTHON_UNSUPPORTED) {
        snprintf(unsupported, sizeof unsupported, "unsupported %u.%u", version >> 24,
                 version >> 16 & 255);
        set_text(hooks, "python", unsupported);
    } else if (version != 0) {
        python_version_text(version, text, sizeof text);
        set_text(hooks, "python", text);
    }
    set_count(hooks, "stacks_sent", atomic_load(&header->stacks_sent));
    set_count(hooks, "stacks_inline", atomic_load(&header->stacks_inline));
    set_count(hooks, "stacks_lost", atomic_load(&header->stacks_lost));
    set_count(hooks, "native_stopped", atomic_load(&header->native_stopped));
    set_count(hooks, "nvtx_left_out", atomic_load(&header->nvtx_left_out));
    set_count(hooks, "nvtx_unnamed", atomic_load(&header->nvtx_unnamed));
}

json_t *process_hooks_json(struct vs_ring_header *header, const struct hooks_figures *figures)
{
    json_t *hooks = json_object();
    if (!hooks)
        return NULL;
    set_count(hooks, "driver_events", atomic_load(&header->driver_calls));
    set_count(hooks, "runtime_events", atomic_load(&header->runtime_calls));
    set_count(hooks, "framework_events", atomic_load(&header->framework_calls));
    set_count(hooks, "missing_real", atomic_load(&header->missing_real));
    set_count(hooks, "abandoned_hooks", atomic_load(&header->abandoned_hooks));
    set_count(hooks, "spent_ns", atomic_load(&header->spent_ns));
    set_count(hooks, "spent_samples", atomic_load(&header->spent_samples));
    set_count(hooks, "waited_ns", atomic_load(&header->waited_ns));
    set_count(hooks, "sample_spent_ns", atomic_load(&header->sample_spent_ns));
    json_object_set_new(hooks, "static_runtime",
                        json_boolean(atomic_load(&header->static_runtimes) != 0));
    json_object_set_new(hooks, "warnings", warning_texts(atomic_load(&header->hook_warnings)));
    add_stacks(hooks, header);
    set_count(hooks, "recorded", figures->recorded);
    set_count(hooks, "bad_records", figures->bad_records);
    set_count(hooks, "lost", figures->lost);
    set_count(hooks, "torn", figures->torn);
    set_count(hooks, "ring_bytes", figures->ring_bytes);
    set_count(hooks, "collector_cpu_ns", clock_ns(CLOCK_PROCESS_CPUTIME_ID));
    return hooks;
}
