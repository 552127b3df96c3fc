/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a file or of memory through one window: see trace_source.h. */
#include "trace_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define WINDOW_BYTES (1U << 20)

#define NS_PER_SECOND 1000000000LL
/* File systems tell the time of a write by the kernel's tick. */
#define TICK_MOST_NS (NS_PER_SECOND / 50)

static int64_t ns_of(const struct timespec *time)
{
    return (int64_t)time->tv_sec * NS_PER_SECOND + time->tv_nsec;
}

static void note_time(struct vs_source *source, const struct stat *status)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t age_ns = ns_of(&now) - ns_of(&status->st_mtim);
    source->written_ns = ns_of(&status->st_mtim);
    source->just_written = age_ns > -TICK_MOST_NS && age_ns < TICK_MOST_NS;
}

int vs_source_open(const char *path, struct vs_source *source)
{
    *source = (struct vs_source){.fd = -1};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -errno;
    struct stat status;
    int error = fstat(fd, &status) != 0    ? -errno
                : S_ISDIR(status.st_mode)  ? -EISDIR
                : !S_ISREG(status.st_mode) ? -EINVAL
                                           : 0;
    if (error != 0) {
        close(fd);
        return error;
    }
    source->fd = fd;
    source->bytes = (uint64_t)status.st_size;
    note_time(source, &status);
    return 0;
}

int vs_source_refresh(struct vs_source *source)
{
    struct stat status;
    if (source->fd < 0)
        return 0;
    if (fstat(source->fd, &status) != 0)
        return -errno;
    source->bytes = (uint64_t)status.st_size;
    source->window_bytes = 0;
    note_time(source, &status);
    return 0;
}

bool vs_source_changed(const struct vs_source *source)
{
    struct stat status;
    return source->fd >= 0 && (source->just_written || fstat(source->fd, &status) != 0 ||
                               ns_of(&status.st_mtim) != source->written_ns ||
                               (uint64_t)status.st_size != source->bytes);
}

int vs_source_memory(const void *data, size_t bytes, struct vs_source *source)
{
    *source = (struct vs_source){.fd = -1, .memory = data, .bytes = bytes};
    return 0;
}

void vs_source_close(struct vs_source *source)
{
    if (source->fd >= 0)
        close(source->fd);
    free(source->window);
    *source = (struct vs_source){.fd = -1};
}

/* Reads the window anew from `offset`; short only where the file has become shorter. */
static int fill(struct vs_source *source, uint64_t offset, size_t bytes)
{
    size_t want = bytes > WINDOW_BYTES ? bytes : WINDOW_BYTES;
    if (want > source->bytes - offset)
        want = (size_t)(source->bytes - offset);
    if (want > source->window_capacity) {
        uint8_t *grown = realloc(source->window, want);
        if (grown == NULL)
            return -ENOMEM;
        source->window = grown;
        source->window_capacity = want;
    }
    source->window_offset = offset;
    source->window_bytes = 0;
    while (source->window_bytes < want) {
        ssize_t got = pread(source->fd, source->window + source->window_bytes,
                            want - source->window_bytes, (off_t)(offset + source->window_bytes));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        source->window_bytes += (size_t)got;
    }
    return source->window_bytes < bytes ? -ENODATA : 0;
}

const uint8_t *vs_source_at(struct vs_source *source, uint64_t offset, size_t bytes, int *error)
{
    *error = 0;
    if (offset > source->bytes || bytes > source->bytes - offset) {
        *error = -ENODATA;
        return NULL;
    }
    if (source->fd < 0)
        return source->memory + offset;
    uint64_t window_end = source->window_offset + source->window_bytes;
    if (offset < source->window_offset || offset + bytes > window_end) {
        *error = fill(source, offset, bytes);
        if (*error != 0)
            return NULL;
    }
    return source->window + (offset - source->window_offset);
}
