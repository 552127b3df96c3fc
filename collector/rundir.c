/* SPDX-License-Identifier: Apache-2.0 */
/* The files by which collectors report to `vramscope run`: lines of "name value". */
#include "rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define FILES_PER_PID_MAX 10000U
#define ABANDONED "abandoned"
#define TEXT_BYTES (PATH_MAX + 1536U)

int rundir_announce(struct rundir_report *report, const char *folder, uint32_t pid)
{
    report->fd = -1;
    for (unsigned n = 0; n < FILES_PER_PID_MAX; n++) {
        char number[16] = "";
        if (n)
            snprintf(number, sizeof number, ".%u", n);
        int length = snprintf(report->path, sizeof report->path, "%s/%u%s" RUNDIR_SUFFIX, folder,
                              pid, number);
        if (length < 0 || (size_t)length >= sizeof report->path)
            return -ENAMETOOLONG;
        report->fd = open(report->path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (report->fd >= 0)
            return flock(report->fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
        if (errno != EEXIST)
            return -errno;
    }
    return -EEXIST;
}

int rundir_tell(const struct rundir_report *report, const struct rundir_outcome *outcome)
{
    char text[TEXT_BYTES];
    int length = snprintf(
        text, sizeof text,
        "pid %" PRIu32 "\nbytes %" PRIu64 "\nevents %" PRIu64 "\nlost %" PRIu64 "\ntorn %" PRIu64
        "\nfinished %d\ncomplete %d\nout_of_memory %d\nended %s\nexit_code %d\nsignal %d\n"
        "warning %s\npath %s\n",
        outcome->pid, outcome->bytes, outcome->events, outcome->lost, outcome->torn,
        outcome->finished, outcome->complete, outcome->out_of_memory, outcome->ended,
        outcome->exit_code, outcome->signal, outcome->warning, outcome->path);
    if (report->fd < 0)
        return 0;
    if (length < 0 || (size_t)length >= sizeof text)
        return -ENAMETOOLONG;
    if (pwrite(report->fd, text, (size_t)length, 0) != length || ftruncate(report->fd, length) < 0)
        return -EIO;
    return 0;
}

static bool abandoned_path(const char *folder, char *out, size_t out_bytes)
{
    return snprintf(out, out_bytes, "%s/" ABANDONED, folder) < (int)out_bytes;
}

bool rundir_is_abandoned(const char *folder)
{
    char mark[PATH_MAX];
    return abandoned_path(folder, mark, sizeof mark) && access(mark, F_OK) == 0;
}

static bool remove_folder(const char *folder)
{
    char mark[PATH_MAX];
    if (!abandoned_path(folder, mark, sizeof mark))
        return false;
    unlink(mark);
    if (rmdir(folder) == 0)
        return true;
    int fd = open(mark, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600); /* not the last */
    if (fd >= 0)
        close(fd);
    return false;
}

void rundir_abandon(const char *folder)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", folder);
    while (remove_folder(path)) {
        char *slash = strrchr(path, '/');
        if (!slash || slash == path)
            return;
        *slash = 0;
        if (!rundir_is_abandoned(path))
            return;
    }
}

void rundir_leave(struct rundir_report *report)
{
    char *slash = report->fd < 0 ? NULL : strrchr(report->path, '/');
    if (slash) {
        *slash = 0;
        bool abandoned = rundir_is_abandoned(report->path);
        *slash = '/';
        if (abandoned) {
            unlink(report->path);
            *slash = 0;
            rundir_abandon(report->path);
        }
    }
    if (report->fd >= 0)
        close(report->fd);
    report->fd = -1;
}

static void take_line(char *line, struct rundir_outcome *out)
{
    char *value = strchr(line, ' ');
    if (!value)
        return;
    *value++ = 0;
    uint64_t number = strtoull(value, NULL, 10);
    if (strcmp(line, "pid") == 0)
        out->pid = (uint32_t)number;
    else if (strcmp(line, "bytes") == 0)
        out->bytes = number;
    else if (strcmp(line, "events") == 0)
        out->events = number;
    else if (strcmp(line, "lost") == 0)
        out->lost = number;
    else if (strcmp(line, "torn") == 0)
        out->torn = number;
    else if (strcmp(line, "finished") == 0)
        out->finished = number != 0;
    else if (strcmp(line, "complete") == 0)
        out->complete = number != 0;
    else if (strcmp(line, "out_of_memory") == 0)
        out->out_of_memory = number != 0;
    else if (strcmp(line, "exit_code") == 0)
        out->exit_code = atoi(value);
    else if (strcmp(line, "signal") == 0)
        out->signal = atoi(value);
    else if (strcmp(line, "ended") == 0)
        snprintf(out->ended, sizeof out->ended, "%s", value);
    else if (strcmp(line, "warning") == 0)
        snprintf(out->warning, sizeof out->warning, "%s", value);
    else if (strcmp(line, "path") == 0)
        snprintf(out->path, sizeof out->path, "%s", value);
}

static int open_named(const char *folder, const char *name)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (length < 0 || (size_t)length >= sizeof path)
        return -ENAMETOOLONG;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int rundir_read(const char *folder, const char *name, struct rundir_outcome *out)
{
    char text[TEXT_BYTES], *rest = NULL;
    memset(out, 0, sizeof *out);
    out->exit_code = out->signal = -1;
    int fd = open_named(folder, name);
    if (fd < 0)
        return fd;
    ssize_t bytes = pread(fd, text, sizeof text - 1, 0);
    close(fd);
    if (bytes < 0)
        return -EIO;
    text[bytes] = 0;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        take_line(line, out);
    return 0;
}

bool rundir_is_alive(const char *folder, const char *name)
{
    int fd = open_named(folder, name);
    if (fd < 0)
        return false;
    bool locked = flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    close(fd);
    return locked;
}
