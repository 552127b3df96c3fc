/* SPDX-License-Identifier: Apache-2.0 */
/* A file that appears whole or not at all: see output_file.h. */
#include "output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What the handler of a signal removes; NULL when there is nothing. */
static const char *volatile unfinished;

static void remove_unfinished(int number)
{
    if (unfinished != NULL)
        unlink(unfinished);
    signal(number, SIG_DFL);
    raise(number);
}

static void watch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    struct sigaction action = {.sa_handler = remove_unfinished}, before;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
}

static bool complain(const char *path, const char *what)
{
    fprintf(stderr, "vramscope: %s: %s\n", path, what);
    return false;
}

/* The folder of a file, NULL without memory. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return strdup(".");
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

static bool has_folder(const char *path)
{
    char *folder = folder_of(path);
    struct stat status;
    bool is = folder == NULL || (stat(folder, &status) == 0 && S_ISDIR(status.st_mode));
    free(folder);
    return is;
}

static const char *what_to_do(const char *path, int error)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR:
        return has_folder(path) ? ": give a name elsewhere"
                                : ": its folder is not there: make it, or give another name";
    case EACCES:
    case EPERM:
    case EROFS:
        return ": its folder cannot be written to: give a name elsewhere";
    case ENOSPC:
    case EDQUOT:
        return ": give a name on another disk, or make room";
    case EFBIG:
        return ": the limit on file sizes (ulimit -f) is too low for it";
    case ENAMETOOLONG:
        return ": give a shorter name";
    case EEXIST:
        return ": it came up meanwhile; --force replaces it";
    default:
        return "";
    }
}

void output_complain(const char *path, int error)
{
    fprintf(stderr, "vramscope: %s cannot be written: %s%s\n", path, strerror(error),
            what_to_do(path, error));
}

void output_complain_of_copy(int error)
{
    fprintf(stderr, "vramscope: no room for a copy: %s (TMPDIR names the folder it takes)\n",
            strerror(error));
}

static bool fail(const char *path, int error)
{
    output_complain(path, error);
    return false;
}

bool output_spares(const char *path, const char *source)
{
    struct stat out, in;
    if (strcmp(path, "-") == 0 || stat(path, &out) != 0 || stat(source, &in) != 0)
        return true;
    return out.st_dev != in.st_dev || out.st_ino != in.st_ino ||
           complain(path, "is the trace that is read: give another name");
}

/* Whether the name may be taken. */
static bool is_free(const struct output_file *output)
{
    struct stat status;
    if (lstat(output->path, &status) != 0)
        return errno == ENOENT || fail(output->path, errno);
    if (S_ISDIR(status.st_mode))
        return complain(output->path, "is a folder: give the name of a file");
    if (!S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode))
        return complain(output->path, "is not a regular file: give another name");
    if (!output->force)
        return complain(output->path, "exists already; --force replaces it");
    return true;
}

/* Beside the file it becomes, so that it can be renamed; elsewhere when it is only passed on. */
static char *temporary_name(const struct output_file *output)
{
    const char *folder = getenv("TMPDIR");
    char *name = NULL;
    int length = output->to_stdout
                     ? asprintf(&name, "%s/vramscope.XXXXXX", folder ? folder : "/tmp")
                     : asprintf(&name, "%s.XXXXXX", output->path);
    return length < 0 ? NULL : name;
}

static bool open_temporary(struct output_file *output)
{
    output->temporary = temporary_name(output);
    if (output->temporary == NULL)
        return complain(output->path, "not enough memory");
    output->fd = mkostemp(output->temporary, O_CLOEXEC);
    if (output->fd < 0) {
        if (output->to_stdout)
            output_complain_of_copy(errno);
        else
            fail(output->path, errno);
        free(output->temporary);
        output->temporary = NULL;
        return false;
    }
    unfinished = output->temporary;
    watch_signals();
    mode_t mask = umask(0); /* mkostemp's own mode is for secrets */
    umask(mask);
    if (fchmod(output->fd, 0666 & ~mask) == 0)
        return true;
    fail(output->path, errno);
    output_discard(output);
    return false;
}

bool output_check(const char *path, bool force)
{
    const struct output_file output = {.path = path, .force = force};
    if (!is_free(&output))
        return false;
    char *folder = folder_of(path);
    int error = folder == NULL ? ENOMEM : access(folder, W_OK | X_OK) == 0 ? 0 : errno;
    free(folder);
    return error == 0 || fail(path, error);
}

bool output_open(struct output_file *output, const char *path, bool force, bool own_file)
{
    bool to_stdout = strcmp(path, "-") == 0;
    *output = (struct output_file){.path = to_stdout ? "stdout" : path,
                                   .force = force,
                                   .to_stdout = to_stdout,
                                   .fd = STDOUT_FILENO};
    if (output->to_stdout && !own_file)
        return true;
    return (output->to_stdout || is_free(output)) && open_temporary(output);
}

static int copy_to_stdout(int fd)
{
    char buffer[1 << 16];
    ssize_t got;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return -errno;
    while ((got = read(fd, buffer, sizeof(buffer))) > 0)
        for (ssize_t put = 0, wrote; put < got; put += wrote)
            if ((wrote = write(STDOUT_FILENO, buffer + put, (size_t)(got - put))) < 0)
                return -errno;
    return got < 0 ? -errno : 0;
}

/* A name that appeared meanwhile is not replaced unless that was asked for. */
static int give_name(const struct output_file *output)
{
    if (output->force)
        return rename(output->temporary, output->path) == 0 ? 0 : -errno;
    if (link(output->temporary, output->path) == 0) {
        unlink(output->temporary);
        return 0;
    }
    if (errno == EEXIST)
        return -EEXIST;
    /* No links on this file system. */
    struct stat status;
    if (lstat(output->path, &status) == 0)
        return -EEXIST;
    return rename(output->temporary, output->path) == 0 ? 0 : -errno;
}

static bool close_whole(struct output_file *output, int result)
{
    if (close(output->fd) != 0 && result == 0)
        result = -errno;
    output->fd = -1;
    if (result == 0 && !output->to_stdout)
        result = give_name(output);
    if (result != 0)
        fail(output->path, -result);
    if (result != 0 || output->to_stdout)
        unlink(output->temporary);
    unfinished = NULL;
    free(output->temporary);
    output->temporary = NULL;
    return result == 0;
}

bool output_keep(struct output_file *output)
{
    if (output->temporary == NULL)
        return true;
    return close_whole(output, output->to_stdout ? copy_to_stdout(output->fd) : 0);
}

void output_discard(struct output_file *output)
{
    if (output->temporary == NULL)
        return;
    close(output->fd);
    unlink(output->temporary);
    unfinished = NULL;
    free(output->temporary);
    output->temporary = NULL;
}
