/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_groups.h"

#include <stdio.h>
#include <string.h>

struct walk {
    bool (*visit)(void *self, const char *folder, bool unified);
    void *self;
};

/* False when a visit was the last. */
static bool walk_up(const struct walk *walk, const char *group, bool unified)
{
    const char *root = unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    char folder[MEMORY_GROUP_BYTES];
    snprintf(folder, sizeof folder, "%s%.*s", root, 4096, group);
    for (;;) {
        if (!walk->visit(walk->self, folder, unified))
            return false;
        char *slash = strrchr(folder, '/');
        if (strlen(folder) <= strlen(root) || !slash)
            return true;
        *slash = 0;
    }
}

void memory_groups_each(char *text, bool (*visit)(void *self, const char *folder, bool unified),
                        void *self)
{
    const struct walk walk = {visit, self};
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = 0;
        bool unified = controllers[1] == 0;
        if ((unified || strcmp(controllers + 1, "memory") == 0) && !walk_up(&walk, group, unified))
            return;
    }
}
