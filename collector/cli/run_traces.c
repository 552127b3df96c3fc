/* SPDX-License-Identifier: Apache-2.0 */
/* The folder in which collectors report, and what is read off it. */
#include "run_traces.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../rundir.h"
#include "replay/format_size.h"

#define LOOK_EVERY_NS 5000000L
#define NS_PER_SECOND 1000000000L
#define SAY_AFTER_LOOKS (NS_PER_SECOND / LOOK_EVERY_NS)
#define GIVE_UP_AFTER_LOOKS (10 * NS_PER_SECOND / LOOK_EVERY_NS) /* without any progress */
#define COLLECTOR_COMM "vramscope-colle" /* as the kernel cuts vramscope-collector */

/* ---- the folder ----------------------------------------------------------------- */

static bool is_report(const char *name)
{
    size_t bytes = strlen(name), suffix = strlen(RUNDIR_SUFFIX);
    return bytes > suffix && strcmp(name + bytes - suffix, RUNDIR_SUFFIX) == 0;
}

typedef void visitor(const struct run_traces *traces, const char *name, void *context);

/*
 * Calls `visit` for each report below `within` (a path in the folder, ending in
 * a slash, or nothing), then `leave`, if any, for each folder of a nested run.
 */
static void for_each_within(const struct run_traces *traces, const char *within, visitor *visit,
                            visitor *leave, void *context)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", traces->folder, within) >= (int)sizeof path)
        return;
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        bool nested = strncmp(entry->d_name, RUNDIR_NESTED, strlen(RUNDIR_NESTED)) == 0;
        if (snprintf(path, sizeof path, "%s%s%s", within, entry->d_name, nested ? "/" : "") >=
            (int)sizeof path)
            continue;
        if (nested)
            for_each_within(traces, path, visit, leave, context);
        if (nested && leave)
            leave(traces, path, context);
        if (!nested && is_report(entry->d_name))
            visit(traces, path, context);
    }
    if (folder)
        closedir(folder);
}

static void for_each_report(const struct run_traces *traces, visitor *visit, void *context)
{
    for_each_within(traces, "", visit, NULL, context);
}

int run_traces_open(struct run_traces *traces)
{
    const char *around = getenv(RUNDIR_VARIABLE);
    const char *parent = getenv("TMPDIR");
    memset(traces, 0, sizeof *traces);
    if (around && around[0] == '/' && access(around, W_OK | X_OK) == 0) {
        snprintf(traces->around, sizeof traces->around, "%s", around);
        snprintf(traces->folder, sizeof traces->folder, "%.4000s/" RUNDIR_NESTED "XXXXXX", around);
    } else {
        snprintf(traces->folder, sizeof traces->folder, "%.4000s/vramscope-run.XXXXXX",
                 parent && parent[0] == '/' ? parent : "/tmp");
    }
    if (!mkdtemp(traces->folder))
        return -errno;
    traces->lock = open(traces->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (traces->lock >= 0)
        flock(traces->lock, LOCK_EX | LOCK_NB);
    return setenv(RUNDIR_VARIABLE, traces->folder, 1) < 0 ? -errno : 0;
}

static void remove_report(const struct run_traces *traces, const char *name, void *context)
{
    char path[PATH_MAX];
    (void)context;
    if (!rundir_is_alive(traces->folder, name) &&
        snprintf(path, sizeof path, "%s/%s", traces->folder, name) < (int)sizeof path)
        unlink(path);
}

static void remove_nested(const struct run_traces *traces, const char *name, void *context)
{
    char path[PATH_MAX];
    (void)context;
    if (!rundir_is_alive(traces->folder, name) &&
        snprintf(path, sizeof path, "%s/%.*s", traces->folder, (int)strlen(name) - 1, name) <
            (int)sizeof path)
        rundir_abandon(path);
}

void run_traces_close(struct run_traces *traces)
{
    if (!traces->around[0] || rundir_is_abandoned(traces->around)) {
        for_each_within(traces, "", remove_report, remove_nested, NULL);
        rundir_abandon(traces->folder);
    }
    if (traces->lock >= 0)
        close(traces->lock);
    traces->lock = -1;
}

/* ---- waiting ---------------------------------------------------------------------- */

struct awaited {
    pid_t pid;         /* the command */
    unsigned reports;  /* about it */
    unsigned alive;    /* collectors whose process is dead: they are finishing */
    uint64_t progress; /* changes whenever a collector gets on */
};

/* What a living process's collector does takes as long as the process: only the dead ones' are
 * awaited. */
static bool is_dead(pid_t pid, pid_t command)
{
    return pid == command || (kill(pid, 0) < 0 && errno == ESRCH);
}

static void look_at_report(const struct run_traces *traces, const char *name, void *context)
{
    struct awaited *awaited = context;
    struct rundir_outcome outcome;
    struct stat trace;
    const char *slash = strrchr(name, '/');
    pid_t pid = (pid_t)strtol(slash ? slash + 1 : name, NULL, 10);
    awaited->reports += pid == awaited->pid;
    if (!rundir_is_alive(traces->folder, name) || !is_dead(pid, awaited->pid) ||
        rundir_read(traces->folder, name, &outcome) < 0)
        return;
    awaited->alive++;
    awaited->progress += outcome.events + outcome.bytes + outcome.finished;
    if (outcome.path[0] && stat(outcome.path, &trace) == 0)
        awaited->progress += (uint64_t)trace.st_size;
}

static bool read_line(const char *process, const char *name, char *out, size_t out_bytes)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%.20s/%s", process, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd < 0 ? -1 : read(fd, out, out_bytes - 1);
    if (fd >= 0)
        close(fd);
    if (bytes <= 0)
        return false;
    for (ssize_t i = 0; i < bytes; i++)
        if (out[i] == 0)
            out[i] = ' ';
    out[bytes] = 0;
    return true;
}

/* A collector that has not come to make its report yet: the program died right after starting it.
 */
static bool collector_is_starting(pid_t pid)
{
    char words[4096], wanted[32];
    bool found = false;
    DIR *processes = opendir("/proc");
    snprintf(wanted, sizeof wanted, " --pid %d ", (int)pid);
    for (struct dirent *entry; processes && !found && (entry = readdir(processes));)
        found = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
                read_line(entry->d_name, "comm", words, sizeof words) &&
                strncmp(words, COLLECTOR_COMM, strlen(COLLECTOR_COMM)) == 0 &&
                read_line(entry->d_name, "cmdline", words, sizeof words) && strstr(words, wanted);
    if (processes)
        closedir(processes);
    return found;
}

static bool somebody_works(const struct run_traces *traces, pid_t pid, uint64_t *progress)
{
    struct awaited awaited = {.pid = pid};
    for_each_report(traces, look_at_report, &awaited);
    *progress = awaited.progress;
    return awaited.alive > 0 || (awaited.reports == 0 && collector_is_starting(pid));
}

bool run_traces_wait(const struct run_traces *traces, pid_t pid)
{
    static const struct timespec pause = {0, LOOK_EVERY_NS};
    uint64_t last = 0, progress = 0;
    long idle_looks = 0;
    for (long looks = 0; somebody_works(traces, pid, &progress); looks++) {
        idle_looks = progress == last ? idle_looks + 1 : 0;
        last = progress;
        if (looks == SAY_AFTER_LOOKS && isatty(STDERR_FILENO))
            fprintf(stderr, "vramscope: the trace of process %d is being finished …\n", (int)pid);
        if (idle_looks >= GIVE_UP_AFTER_LOOKS)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

/* ---- the closing line --------------------------------------------------------------- */

struct summary {
    unsigned traces, out_of_memory, unfinished, lossy;
    uint64_t bytes;
    bool many_folders;
    char folder[PATH_MAX]; /* of the first */
    char path[PATH_MAX];   /* of the one to look at first */
    bool path_is_out_of_memory;
    char warning[512]; /* of a collector that could not write */
};

static size_t folder_bytes(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

static void add_trace(struct summary *summary, const struct rundir_outcome *outcome, bool alive)
{
    size_t bytes = folder_bytes(outcome->path);
    struct stat trace;
    if (summary->traces == 0)
        snprintf(summary->folder, sizeof summary->folder, "%.*s", (int)bytes, outcome->path);
    else if (strlen(summary->folder) != bytes ||
             strncmp(summary->folder, outcome->path, bytes) != 0)
        summary->many_folders = true;
    if (summary->traces == 0 || (outcome->out_of_memory && !summary->path_is_out_of_memory))
        snprintf(summary->path, sizeof summary->path, "%s", outcome->path);
    summary->path_is_out_of_memory |= outcome->out_of_memory;
    summary->traces++;
    summary->out_of_memory += outcome->out_of_memory;
    summary->unfinished += !outcome->finished && alive;
    summary->lossy += outcome->lost > 0;
    if (stat(outcome->path, &trace) == 0)
        summary->bytes += (uint64_t)trace.st_size;
}

static void summarize(const struct run_traces *traces, const char *name, void *context)
{
    struct summary *summary = context;
    struct rundir_outcome outcome;
    if (rundir_read(traces->folder, name, &outcome) < 0)
        return;
    if (outcome.warning[0])
        snprintf(summary->warning, sizeof summary->warning, "%s", outcome.warning);
    if (outcome.path[0] && access(outcome.path, F_OK) == 0)
        add_trace(summary, &outcome, rundir_is_alive(traces->folder, name));
}

/* A path that the shell takes as typed, quoted where it must be. */
static void quote(const char *path, char *out, size_t out_bytes)
{
    bool plain = *path && !path[strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                             "0123456789/._-+,:@%=")];
    snprintf(out, out_bytes, plain ? "%s" : "'%s'", path);
}

static void describe_none(const struct summary *summary, const char *command,
                          const struct run_dropped *dropped, char *out, size_t out_bytes)
{
    if (summary->warning[0])
        snprintf(out, out_bytes, "no trace: %s", summary->warning);
    else if (dropped->pid)
        snprintf(out, out_bytes,
                 "no trace: %s (process %d) used CUDA, but LD_PRELOAD had been dropped on the way "
                 "to it; why: vramscope doctor -- %s",
                 dropped->name, (int)dropped->pid, command);
    else
        snprintf(out, out_bytes, "no trace: nothing touched CUDA; why: vramscope doctor -- %s",
                 command);
}

static void describe_some(const struct summary *summary, const struct run_dropped *dropped,
                          char *out, size_t out_bytes)
{
    char target[PATH_MAX + 2], more[256] = "";
    bool one = summary->traces == 1 || summary->out_of_memory == 1 || summary->many_folders;
    quote(one ? summary->path : summary->folder, target, sizeof target);
    if (summary->out_of_memory)
        snprintf(more, sizeof more, ", %u ended in out of memory", summary->out_of_memory);
    if (summary->lossy)
        snprintf(more + strlen(more), sizeof more - strlen(more), ", %u with losses",
                 summary->lossy);
    if (summary->unfinished)
        snprintf(more + strlen(more), sizeof more - strlen(more), ", %u still being written",
                 summary->unfinished);
    if (dropped->pid)
        snprintf(more + strlen(more), sizeof more - strlen(more),
                 ", but none of %s (process %d), which had lost LD_PRELOAD (vramscope doctor)",
                 dropped->name, (int)dropped->pid);
    snprintf(out, out_bytes, "%u %s, %s in %s%s%s; next: vramscope report %s", summary->traces,
             summary->traces == 1 ? "trace" : "traces",
             vs_format_size((int64_t)summary->bytes).text, summary->folder,
             summary->many_folders ? " and others" : "", more, target);
}

void run_traces_describe(const struct run_traces *traces, const char *command,
                         const struct run_dropped *dropped, char *out, size_t out_bytes)
{
    struct summary summary;
    memset(&summary, 0, sizeof summary);
    for_each_report(traces, summarize, &summary);
    if (summary.traces == 0)
        describe_none(&summary, command, dropped, out, out_bytes);
    else
        describe_some(&summary, dropped, out, out_bytes);
}
