/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often the kernel killed a process of the target's memory control group for want of memory:
 * `oom_kill` of memory.events (cgroup v2) or memory.oom_control (v1). One thread.
 */
#ifndef VS_COLLECTOR_OOM_KILLS_H
#define VS_COLLECTOR_OOM_KILLS_H

#include <stdbool.h>
#include <stdint.h>

#include "memory_groups.h"
#include "target.h"

struct oom_kills {
    char path[MEMORY_GROUP_BYTES + 32]; /* of the file; empty: there is none */
    uint64_t before, last;
};

/* The counter in such a file's text. 0, or -ENODATA where it has none. */
int oom_kills_parse(const char *text, uint64_t *out);
/* Remembers whose counter it is: a group outlives the process, whose own files do not. */
void oom_kills_start(struct oom_kills *kills, const struct target *target);
/* True when there were more since the last call; `*since` is how many since the start. */
bool oom_kills_more(struct oom_kills *kills, uint64_t *since);

#endif
