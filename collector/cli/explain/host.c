/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the host: what the kernel, the scheduler, the container, the language and the
 * loaders say when it ends. The GPU is innocent, and that is the answer people need.
 */
#include <string.h>

#include "paste.h"

static const struct explanation shared = {
    .why =
        "shared memory (/dev/shm) was full: data loader workers and NCCL hand their buffers over "
        "there; neither the GPU nor, by itself, the host's memory was what was short",
    .next =
        "df -h /dev/shm shows its size; a container has 64 MiB unless started with --shm-size=16g "
        "or --ipc=host. Fewer workers or a smaller prefetch_factor need less.",
};

static const struct explanation killed_worker = {
    .why =
        "a data loader worker was killed from outside (SIGKILL), which is most often the kernel's "
        "out-of-memory killer: then the host's memory was full, not the GPU's",
    .cannot_tell =
        "Who killed it: dmesg, or the job's or container's own log, names the out-of-memory "
        "killer if it was that.",
    .next =
        "Each worker holds its own copies: try fewer num_workers, and watch the resident size of "
        "all of them together.",
};

static const struct explanation killed = {
    .why =
        "the process was killed from outside (SIGKILL; exit code 137 is 128 + 9): a full GPU never "
        "does that, a host whose memory is full does",
    .cannot_tell =
        "Who killed it: dmesg, or the job's or container's own log, names the out-of-memory "
        "killer if it was that; a time limit or a person may have, too.",
    .next = "dmesg -T | grep -i -A1 'killed process'; in a container compare memory.peak with "
            "memory.max "
            "of its cgroup.",
};

static const struct explanation by_kernel = {
    .why = "the kernel's out-of-memory killer ended a process: the memory of the host, or of the "
           "job's "
           "cgroup, was full; the GPU is not what was full",
    .next = "Compare the resident memory of all processes of the job with its limit (--mem, "
            "resources.limits.memory, docker -m). Pinned memory and /dev/shm count in it.",
};

static const struct explanation by_ray = {
    .why =
        "Ray ended a task because the memory of its node was nearly full; the GPU is not what was "
        "full",
    .next = "RAY_memory_usage_threshold is where Ray acts; fewer tasks on one node need less.",
};

static const struct explanation array = {
    .why = "memory of the host was refused; the GPU is not what was full",
};

static const struct explanation language = {
    .why = "the program could not allocate memory of the host; the message gives no figure, and no "
           "call "
           "of the GPU is in it",
    .cannot_tell =
        "How much was asked for: a size that went wrong (negative, overflowed) fails the same "
        "way.",
};

static const struct explanation heap = {
    .why = "Java's heap is full, which has a limit of its own; neither the GPU nor, by itself, the "
           "host's memory was what was short",
    .next = "Raise it: -Xmx, or spark.executor.memory and spark.driver.memory.",
};

static const struct explanation ollama = {
    .why =
        "the model needs more memory of the host than is available, before the GPU is asked at all",
    .next =
        "A smaller model or context, or more layers on the GPU (num_gpu), need less host memory.",
};

#define HOST(text) .family = FAMILY_HOST, .hint = HINT_HOST, .fatal = true, .says = &(text)

const struct sentence host_sentences[] = {
    {"killedbysignal:Buserror", NULL, &(const struct told){HOST(shared), .before = "DataLoader"}},
    {"Unexpectedbuserrorencounteredinworker", NULL, &(const struct told){HOST(shared)}},
    {"unabletowritetofile</torch_", NULL, &(const struct told){HOST(shared)}},
    {"unabletoopensharedmemoryobject", NULL,
     &(const struct told){HOST(shared), .with = "Nospaceleftondevice"}},
    {"Errorwhilecreatingsharedmemorysegment", NULL, &(const struct told){HOST(shared)}},
    {"failedtoextend/dev/shm/", NULL, &(const struct told){HOST(shared)}},
    {"killedbysignal:Killed", NULL,
     &(const struct told){.family = FAMILY_HOST, .says = &killed_worker, .fatal = true}},
    {"oom-killevent", NULL, &(const struct told){HOST(by_kernel)}},
    {"oom_killevent", NULL, &(const struct told){HOST(by_kernel)}},
    {"utofmemory:Killedprocess", NULL, &(const struct told){HOST(by_kernel)}},
    {"OOMKilled", NULL, &(const struct told){HOST(by_kernel), .without = "OOMKilled\":false"}},
    {"duetothenoderunninglowonmemory", NULL, &(const struct told){HOST(by_ray)}},
    {"Unabletoallocate", NULL,
     &(const struct told){HOST(array), .with = "foranarraywithshape", .request = "toallocate"}},
    {"notenoughmemory:youtriedtoallocate", NULL,
     &(const struct told){HOST(array), .request = "toallocate",
                          .not_before = "DefaultCPUAllocator:"}},
    {"couldnotallocatepinnedhostmemoryofsize:", NULL,
     &(const struct told){.family = FAMILY_TENSORFLOW, .hint = HINT_HOST, .request = "ofsize:"}},
    {"[Errno12]Cannotallocatememory", NULL, &(const struct told){HOST(language), .last = true}},
    {"unabletommap", NULL,
     &(const struct told){HOST(array), .with = "Cannotallocatememory", .request = "unabletommap"}},
    {"OutOfMemoryError:Javaheapspace", NULL,
     &(const struct told){.family = FAMILY_HOST, .hint = HINT_LIMIT, .says = &heap, .fatal = true}},
    {"modelrequiresmoresystemmemory(", NULL,
     &(const struct told){HOST(ollama), .request = "systemmemory("}},
    {NULL, NULL, NULL},
};

/* ---- lines ------------------------------------------------------------------------------ */

static const struct told by_signal = {.family = FAMILY_HOST, .says = &killed, .last = true};
static const struct told by_language = {
    .family = FAMILY_HOST, .hint = HINT_HOST, .says = &language, .last = true};

/* A line of its own, or what ends it: these words inside of a sentence say nothing. */
static const struct {
    const char *text;
    bool whole; /* else the line's end */
    const struct told *told;
} lines[] = {
    {"Killed", true, &by_signal},
    {"Killed: 9", true, &by_signal},
    {"MemoryError", true, &by_language},
    {"what():  std::bad_alloc", true, &by_language},
    {"Error: std::bad_alloc", false, &by_language},
    {"exit code 137", false, &by_signal},
    {"exited with code 137", false, &by_signal},
    {"Exit Code:    137", false, &by_signal},
    {"(exit code: 137)", false, &by_signal},
};

static bool ends_with(struct cursor line, const char *text)
{
    size_t length = strlen(text);
    return (size_t)(line.end - line.at) >= length && memcmp(line.end - length, text, length) == 0;
}

/* "slurm_script: line 28:  8156 Killed                  python3 main.py": a shell's report. */
static bool shell_killed(struct cursor line)
{
    uint64_t number;
    return cursor_find(&line, ": line ", PASTE_LINE) && cursor_count(&line, &number) &&
           cursor_take(&line, ":") && (cursor_blank(&line), cursor_count(&line, &number)) &&
           cursor_take(&line, " Killed ");
}

static struct cursor without_tail(struct cursor line)
{
    while (line.end > line.at && strchr(" \t.0123456789", line.end[-1]) != NULL)
        line.end--;
    return line;
}

void host_line(struct paste *paste, struct cursor line)
{
    while (line.end > line.at && (line.end[-1] == ' ' || line.end[-1] == '.'))
        line.end--;
    if (shell_killed(line) || ends_with(without_tail(line), "Signal 9 (SIGKILL) received by PID"))
        told_failure(paste, &by_signal, line);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        size_t length = strlen(lines[i].text);
        if (ends_with(line, lines[i].text) &&
            (!lines[i].whole || (size_t)(line.end - line.at) == length))
            told_failure(paste, lines[i].told, line);
    }
}
