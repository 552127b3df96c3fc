/* SPDX-License-Identifier: Apache-2.0 */
/* The memory control groups that a process is in, as /proc and /sys/fs/cgroup show them. */
#ifndef VS_COLLECTOR_MEMORY_GROUPS_H
#define VS_COLLECTOR_MEMORY_GROUPS_H

#include <stdbool.h>

enum { MEMORY_GROUP_BYTES = 4224 /* of a folder's name, at most */ };

/*
 * `text` is that of /proc/PID/cgroup, and is cut up. Calls `visit` with the folder of the
 * process's own group, then of each it lies in, the outermost last; `unified`: of cgroup v2, whose
 * files have other names. A visit that returns false is the last. Whether there is such a folder,
 * or a file in it, is not looked at.
 */
void memory_groups_each(char *text, bool (*visit)(void *self, const char *folder, bool unified),
                        void *self);

#endif
