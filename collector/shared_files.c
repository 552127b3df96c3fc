/* SPDX-License-Identifier: Apache-2.0 */
/* Files in /dev/shm, as /proc shows them: see shared_files.h. */
#include "shared_files.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define FOLDER "/dev/shm/"
#define TORCH_PREFIX FOLDER "torch_"

enum {
    STAT_BLOCK_BYTES = 512, /* what st_blocks counts */
    PROCESSES_MOST = 1024,  /* looked at; a larger tree is no training job */
    FILES_MOST = 1 << 16
};

struct file {
    dev_t device;
    ino_t inode;
    uint64_t bytes;
    bool occupied; /* `bytes` is what it occupies, not what is mapped of it */
    bool torch;
};

struct sight {
    struct file *files;
    size_t count, room;
    int error;
};

/* ---- what was seen ---------------------------------------------------------------- */

static void see(struct sight *sight, const struct file *file)
{
    if (sight->count == sight->room && sight->count < FILES_MOST) {
        size_t room = sight->room == 0 ? 64 : sight->room * 2;
        struct file *files = realloc(sight->files, room * sizeof *files);
        if (!files) {
            sight->error = -ENOMEM;
            return;
        }
        sight->files = files;
        sight->room = room;
    }
    if (sight->count < sight->room)
        sight->files[sight->count++] = *file;
}

static bool is_shared(const char *path)
{
    return strncmp(path, FOLDER, sizeof FOLDER - 1) == 0;
}

static bool is_torch(const char *path)
{
    return strncmp(path, TORCH_PREFIX, sizeof TORCH_PREFIX - 1) == 0;
}

/* By a link of /proc that leads to the file itself, removed or not. */
static bool see_file(struct sight *sight, const char *link, const char *path)
{
    struct stat stat_of;
    if (stat(link, &stat_of) != 0)
        return false;
    struct file file = {.device = stat_of.st_dev,
                        .inode = stat_of.st_ino,
                        .bytes = (uint64_t)stat_of.st_blocks * STAT_BLOCK_BYTES,
                        .occupied = true,
                        .torch = is_torch(path)};
    see(sight, &file);
    return true;
}

/* ---- one process -------------------------------------------------------------------- */

static void look_at_descriptors(struct sight *sight, pid_t pid)
{
    char folder[64], link[64 + NAME_MAX + 1], path[sizeof TORCH_PREFIX];
    snprintf(folder, sizeof folder, "/proc/%d/fd", (int)pid);
    DIR *descriptors = opendir(folder);
    if (!descriptors)
        return;
    const struct dirent *entry;
    while ((entry = readdir(descriptors)) != NULL) {
        snprintf(link, sizeof link, "%s/%s", folder, entry->d_name);
        ssize_t bytes = readlink(link, path, sizeof path - 1);
        path[bytes > 0 ? bytes : 0] = 0;
        if (is_shared(path))
            see_file(sight, link, path);
    }
    closedir(descriptors);
}

/* A line of maps: "from-to rights offset major:minor inode   path". */
static void look_at_mapping(struct sight *sight, pid_t pid, const char *line)
{
    uint64_t from, to, inode;
    unsigned device_major, device_minor;
    char link[96];
    const char *path = strchr(line, '/');
    if (!path || !is_shared(path) ||
        sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*s %x:%x %" SCNu64, &from, &to, &device_major,
               &device_minor, &inode) != 5 ||
        to <= from)
        return;
    /* Only a privileged process may follow this one. */
    snprintf(link, sizeof link, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid, from, to);
    if (see_file(sight, link, path))
        return;
    struct file file = {.device = makedev(device_major, device_minor),
                        .inode = (ino_t)inode,
                        .bytes = to - from,
                        .torch = is_torch(path)};
    see(sight, &file);
}

static bool look_at_maps(struct sight *sight, pid_t pid)
{
    char name[64], *line = NULL;
    size_t room = 0;
    snprintf(name, sizeof name, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(name, "re");
    if (!maps)
        return false;
    while (getline(&line, &room, maps) > 0)
        look_at_mapping(sight, pid, line);
    free(line);
    fclose(maps);
    return true;
}

/* ---- its descendants ------------------------------------------------------------------ */

struct tree {
    pid_t pids[PROCESSES_MOST];
    size_t count;
};

static void add_children_of_thread(struct tree *tree, const char *folder, const char *thread)
{
    char name[64 + NAME_MAX + 16];
    int child;
    snprintf(name, sizeof name, "%s/%s/children", folder, thread);
    FILE *children = fopen(name, "re");
    if (!children)
        return;
    while (tree->count < PROCESSES_MOST && fscanf(children, "%d", &child) == 1)
        tree->pids[tree->count++] = child;
    fclose(children);
}

static void add_children(struct tree *tree, pid_t pid)
{
    char folder[64];
    snprintf(folder, sizeof folder, "/proc/%d/task", (int)pid);
    DIR *threads = opendir(folder);
    if (!threads)
        return;
    const struct dirent *entry;
    while ((entry = readdir(threads)) != NULL)
        if (isdigit((unsigned char)entry->d_name[0]))
            add_children_of_thread(tree, folder, entry->d_name);
    closedir(threads);
}

/* ---- the sum ---------------------------------------------------------------------------- */

/* Sightings of one file side by side, the best first. */
static int by_file(const void *left, const void *right)
{
    const struct file *a = left, *b = right;
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    if (a->inode != b->inode)
        return a->inode < b->inode ? -1 : 1;
    if (a->occupied != b->occupied)
        return a->occupied ? -1 : 1;
    return (a->bytes < b->bytes) - (a->bytes > b->bytes);
}

static void sum_up(struct sight *sight, struct shared_files *out)
{
    if (sight->count > 1)
        qsort(sight->files, sight->count, sizeof *sight->files, by_file);
    for (size_t i = 0; i < sight->count; i++) {
        const struct file *file = &sight->files[i], *last = i > 0 ? &sight->files[i - 1] : NULL;
        if (last && file->device == last->device && file->inode == last->inode)
            continue;
        out->count++;
        out->bytes += file->bytes;
        out->torch_bytes += file->torch ? file->bytes : 0;
    }
}

int shared_files_measure(pid_t pid, struct shared_files *out)
{
    struct sight sight = {0};
    struct tree *tree = calloc(1, sizeof *tree);
    *out = (struct shared_files){0};
    if (!tree)
        return -ENOMEM;
    tree->pids[tree->count++] = pid;
    for (size_t i = 0; i < tree->count; i++) {
        /* A zombie's maps can be opened, and are empty. */
        if (!look_at_maps(&sight, tree->pids[i]) && i == 0)
            sight.error = -ESRCH;
        look_at_descriptors(&sight, tree->pids[i]);
        add_children(tree, tree->pids[i]);
    }
    sum_up(&sight, out);
    free(sight.files);
    free(tree);
    return sight.error;
}
