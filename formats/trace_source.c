/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a file or of memory through one window: see trace_source.h. */
#include "trace_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define WINDOW_BYTES (1U << 20)

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
    return 0;
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
