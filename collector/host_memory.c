/* SPDX-License-Identifier: Apache-2.0 */
/* The host's memory, as /proc/meminfo shows it: see host_memory.h. */
#include "host_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { KIB = 1024, TEXT_BYTES = 4096 /* the lines that are read are among the first */ };

/* A line "NAME:   1234 kB". */
static bool find(const char *text, const char *name, uint64_t *bytes)
{
    size_t length = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        uint64_t kib;
        if (strncmp(line, name, length) == 0 && line[length] == ':' &&
            sscanf(line + length + 1, "%" SCNu64, &kib) == 1 && kib <= UINT64_MAX / KIB) {
            *bytes = kib * KIB;
            return true;
        }
    }
    return false;
}

int host_memory_parse(const char *text, struct host_memory *out)
{
    *out = (struct host_memory){0};
    if (!find(text, "MemAvailable", &out->available_bytes) ||
        !find(text, "MemFree", &out->free_bytes))
        return -ENODATA;
    /* The kernel keeps a reserve, which counts as free but not as available. */
    if (out->available_bytes > out->free_bytes)
        out->reclaimable_bytes = out->available_bytes - out->free_bytes;
    return 0;
}

int host_memory_measure(struct host_memory *out)
{
    char text[TEXT_BYTES];
    int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t bytes = read(fd, text, sizeof text - 1);
    close(fd);
    if (bytes < 0)
        return -EIO;
    text[bytes] = 0;
    return host_memory_parse(text, out);
}
