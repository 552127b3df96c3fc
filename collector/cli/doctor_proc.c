/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process as /proc shows it: is the shim in it, was it asked for, which of
 * CUDA's libraries are there; and if the shim is missing, the reason.
 */
#include "doctor_proc.h"

#include <ctype.h>
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor_elf.h"

#define SHIM_NAME "libvramscope"

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

bool proc_is_cuda_library(const char *path)
{
    static const char *const names[] = {
        "libcuda.so",  "libcudart.so", "libcudart.",   "libcudart-", "libnvidia-ml",
        "libnccl",     "libcublas",    "libcudnn",     "libcufft",   "libcusolver",
        "libcusparse", "libc10_cuda",  "libtorch_cuda"};
    const char *base = base_name(path);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strncmp(base, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* What a started driver maps: NVIDIA's device nodes, WSL's, the simulated device. */
static bool is_device(const char *path)
{
    static const char *const starts[] = {"/dev/nv", "/dev/dxg", "/memfd:simgpu-arena"};
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
        if (strncmp(path, starts[i], strlen(starts[i])) == 0)
            return true;
    return false;
}

/* A file of /proc, whole, with a zero behind it; NULL when it cannot be read.
 */
static char *read_all(pid_t pid, const char *name, size_t *bytes)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%ld/%s", (long)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    size_t room = 65536;
    size_t used = 0;
    char *text = malloc(room);
    ssize_t got = 0;
    while (text != NULL && (got = read(fd, text + used, room - used - 1)) > 0) {
        used += (size_t)got;
        if (room - used > 1)
            continue;
        char *larger = realloc(text, room *= 2);
        if (larger == NULL)
            free(text);
        text = larger;
    }
    int error = got < 0 ? errno : 0;
    close(fd);
    if (text == NULL || error != 0) {
        free(text);
        return NULL;
    }
    text[used] = '\0';
    *bytes = used;
    return text;
}

static void add_library(struct proc_image *image, const char *path)
{
    for (size_t i = 0; i < image->library_count; i++)
        if (strcmp(image->libraries[i], path) == 0)
            return;
    if (image->library_count < PROC_MAX_LIBRARIES)
        snprintf(image->libraries[image->library_count++], PROC_PATH_BYTES, "%s", path);
}

static bool is_libc(const char *name)
{
    return strncmp(name, "libc.so.", 8) == 0 || strncmp(name, "libc-2.", 7) == 0 ||
           strncmp(name, "ld-musl", 7) == 0;
}

static void read_maps(struct proc_image *image)
{
    size_t bytes;
    char *text = read_all(image->pid, "maps", &bytes);
    if (text == NULL)
        return;
    image->maps_seen = true;
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        char *path = strchr(line, '/');
        if (path == NULL)
            continue;
        if (strncmp(base_name(path), SHIM_NAME, strlen(SHIM_NAME)) == 0)
            image->shim_mapped = true;
        else if (is_libc(base_name(path)))
            image->libc_mapped = true;
        else if (is_device(path))
            image->device_open = true;
        else if (proc_is_cuda_library(path))
            add_library(image, path);
    }
    free(text);
}

static void read_environment(struct proc_image *image)
{
    size_t bytes;
    char *text = read_all(image->pid, "environ", &bytes);
    if (text == NULL)
        return;
    image->environ_seen = true;
    for (size_t at = 0; at < bytes; at += strlen(text + at) + 1) {
        const char *entry = text + at;
        if (strncmp(entry, "LD_PRELOAD=", 11) == 0 && strstr(entry, SHIM_NAME) != NULL)
            image->preload_set = true;
        if (strncmp(entry, "VRAMSCOPE_DISABLE=", 18) == 0 && entry[18] != '\0' && entry[18] != '0')
            image->disabled = true;
    }
    free(text);
}

/* AT_SECURE of the auxiliary vector: the kernel's own word for setuid and the
 * like. */
static void read_secure(struct proc_image *image)
{
    size_t bytes;
    char *text = read_all(image->pid, "auxv", &bytes);
    if (text == NULL)
        return;
    for (size_t at = 0; at + sizeof(Elf64_auxv_t) <= bytes; at += sizeof(Elf64_auxv_t)) {
        Elf64_auxv_t entry;
        memcpy(&entry, text + at, sizeof(entry));
        if (entry.a_type == AT_SECURE)
            image->secure = entry.a_un.a_val != 0;
    }
    free(text);
}

/* Fields of /proc/PID/stat behind the name, counted from 0: the state. */
enum { STAT_PARENT = 1, STAT_START = 19, STAT_EXIT_SIGNAL = 35, STAT_FIELDS = 36 };

static int read_stat(struct proc_image *image)
{
    size_t bytes;
    unsigned field = 0;
    char *text = read_all(image->pid, "stat", &bytes);
    char *rest = text == NULL ? NULL : strrchr(text, ')');
    char *words = rest == NULL ? NULL : rest + 2;
    for (char *word; (word = strsep(&words, " ")) != NULL && field < STAT_FIELDS; field++) {
        if (field == STAT_PARENT)
            image->parent = (pid_t)strtol(word, NULL, 10);
        else if (field == STAT_START)
            image->start_ticks = strtoull(word, NULL, 10);
        else if (field == STAT_EXIT_SIGNAL)
            image->silent = strtol(word, NULL, 10) == 0;
    }
    free(text);
    return field == STAT_FIELDS ? 0 : -ESRCH;
}

int proc_read(pid_t pid, struct proc_image *image)
{
    char link[64];
    *image = (struct proc_image){.pid = pid};
    int error = read_stat(image);
    if (error != 0)
        return error;
    snprintf(link, sizeof(link), "/proc/%ld/exe", (long)pid);
    ssize_t bytes = readlink(link, image->executable, sizeof(image->executable) - 1);
    if (bytes < 0)
        return errno == ENOENT ? -ESRCH : -errno;
    read_maps(image);
    read_environment(image);
    read_secure(image);
    return 0;
}

const char *proc_why_not(const struct proc_image *image)
{
    char path[64];
    struct elf_file file;
    if (image->shim_mapped || !image->maps_seen)
        return NULL;
    /* Through /proc: right also in another mount namespace, or when the file is
     * deleted. */
    snprintf(path, sizeof(path), "/proc/%ld/exe", (long)image->pid);
    if (elf_open(path, &file) == 0) {
        bool foreign = file.kind != ELF_NONE && !file.is_64_bit;
        bool fixed = file.kind == ELF_STATIC;
        elf_close(&file);
        if (foreign)
            return "is a 32-bit program: the 64-bit shim cannot be loaded";
        if (fixed)
            return "is statically linked: it has no loader that could preload "
                   "anything";
    }
    if (image->secure)
        return "runs with raised rights (setuid, setgid or file capabilities): the "
               "loader drops "
               "preloads";
    if (!image->libc_mapped)
        return NULL; /* seen while it was starting */
    if (image->environ_seen && !image->preload_set)
        return "was started without the shim in LD_PRELOAD: something above it "
               "cleans the "
               "environment";
    if (image->preload_set)
        return "has the shim in LD_PRELOAD but did not load it: is the path right "
               "inside its "
               "container or root?";
    return NULL;
}

struct pid_list {
    pid_t *pids;
    pid_t *parents;
    size_t count, room;
};

static void list_processes(struct pid_list *list)
{
    DIR *folder = opendir("/proc");
    if (folder == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        struct proc_image image = {.pid = (pid_t)strtol(entry->d_name, NULL, 10)};
        if (!isdigit((unsigned char)entry->d_name[0]) || read_stat(&image) != 0 ||
            list->count == list->room)
            continue;
        list->pids[list->count] = image.pid;
        list->parents[list->count++] = image.parent;
    }
    closedir(folder);
}

/* Whether the chain of parents of one process leads to the root. */
static bool is_below(const struct pid_list *list, size_t index, pid_t root)
{
    pid_t at = list->pids[index];
    for (size_t steps = 0; steps < list->count && at > 1; steps++) {
        if (at == root)
            return true;
        size_t i = 0;
        while (i < list->count && list->pids[i] != at)
            i++;
        at = i == list->count ? 0 : list->parents[i];
    }
    return false;
}

void proc_each_below(pid_t root, void (*visit)(pid_t pid, void *context), void *context)
{
    enum { MAX_PROCESSES = 32768 };
    struct pid_list list = {.pids = malloc(MAX_PROCESSES * sizeof(pid_t)),
                            .parents = malloc(MAX_PROCESSES * sizeof(pid_t)),
                            .room = MAX_PROCESSES};
    if (list.pids != NULL && list.parents != NULL)
        list_processes(&list);
    for (size_t i = 0; i < list.count; i++)
        if (is_below(&list, i, root))
            visit(list.pids[i], context);
    free(list.pids);
    free(list.parents);
}
