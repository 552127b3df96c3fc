/* SPDX-License-Identifier: Apache-2.0 */
#include "oom_kills.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int oom_kills_parse(const char *text, uint64_t *out)
{
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (sscanf(line, "oom_kill %" SCNu64, out) == 1)
            return 0;
    }
    return -ENODATA;
}

static int read_counter(const char *path, uint64_t *out)
{
    char text[1024];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t bytes = read(fd, text, sizeof text - 1);
    close(fd);
    if (bytes < 0)
        return -EIO;
    text[bytes] = 0;
    return oom_kills_parse(text, out);
}

/* The group's file, or that of the nearest one above it that can be seen from here. */
static bool find(void *self, const char *folder, bool unified)
{
    struct oom_kills *kills = self;
    snprintf(kills->path, sizeof kills->path, "%s/%s", folder,
             unified ? "memory.events" : "memory.oom_control");
    if (read_counter(kills->path, &kills->before) == 0)
        return false;
    kills->path[0] = 0;
    return true;
}

void oom_kills_start(struct oom_kills *kills, const struct target *target)
{
    char groups[8192];
    *kills = (struct oom_kills){0};
    if (target_read(target, "cgroup", groups, sizeof groups) > 0)
        memory_groups_each(groups, find, kills);
    kills->last = kills->before;
}

bool oom_kills_more(struct oom_kills *kills, uint64_t *since)
{
    uint64_t now;
    if (kills->path[0] == 0 || read_counter(kills->path, &now) != 0 || now <= kills->last)
        return false;
    kills->last = now;
    *since = now - kills->before;
    return true;
}
