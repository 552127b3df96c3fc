/* SPDX-License-Identifier: Apache-2.0 */
/* LD_PRELOAD: making it, and noticing where it cannot work or got lost. */
#include "run_preload.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define PROGRAM_HEADERS_MAX 128U
#define DESCENDANTS_MAX 1024U

/* ---- the shim ----------------------------------------------------------------- */

static bool shim_in(const char *folder, const char *below, char *out, size_t out_bytes)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/../%s/" RUN_SHIM_NAME, folder, below) >= (int)sizeof path)
        return false;
    char *real = realpath(path, NULL);
    bool fits = real && strlen(real) < out_bytes;
    if (fits)
        memcpy(out, real, strlen(real) + 1);
    free(real);
    return fits;
}

int run_find_shim(char *out, size_t out_bytes)
{
    static const char *const below[] = {"lib", "lib64", "lib/x86_64-linux-gnu",
                                        "lib/aarch64-linux-gnu"};
    char folder[PATH_MAX];
    ssize_t bytes = readlink("/proc/self/exe", folder, sizeof folder - 1);
    if (bytes < 0)
        return -errno;
    folder[bytes] = 0;
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = 0;
    for (size_t i = 0; i < sizeof below / sizeof below[0]; i++)
        if (shim_in(folder, below[i], out, out_bytes))
            return 0;
    return -ENOENT;
}

static bool is_shim(const char *entry, size_t bytes)
{
    size_t name_bytes = strlen(RUN_SHIM_NAME);
    return bytes >= name_bytes &&
           memcmp(entry + bytes - name_bytes, RUN_SHIM_NAME, name_bytes) == 0 &&
           (bytes == name_bytes || entry[bytes - name_bytes - 1] == '/');
}

int run_preload_value(const char *shim, const char *existing, char *out, size_t out_bytes)
{
    static const char separators[] = " :"; /* ld.so(8) */
    if (strpbrk(shim, separators))
        return -EINVAL;
    int used = snprintf(out, out_bytes, "%s", shim);
    for (const char *at = existing; at && *at;) {
        size_t bytes = strcspn(at, separators);
        if (used < 0 || (size_t)used >= out_bytes)
            return -ENAMETOOLONG;
        if (bytes && !is_shim(at, bytes))
            used += snprintf(out + used, out_bytes - (size_t)used, ":%.*s", (int)bytes, at);
        at += bytes + (at[bytes] != 0);
    }
    return used < 0 || (size_t)used >= out_bytes ? -ENAMETOOLONG : 0;
}

/* ---- programs that cannot be preloaded into --------------------------------------- */

static bool is_file(const char *path)
{
    struct stat file;
    return stat(path, &file) == 0 && S_ISREG(file.st_mode) && access(path, X_OK) == 0;
}

/* As execvp looks: a name without '/' is searched in PATH. */
static bool find_command(const char *command, char *out, size_t out_bytes)
{
    const char *path = getenv("PATH");
    if (strchr(command, '/'))
        return snprintf(out, out_bytes, "%s", command) < (int)out_bytes;
    for (const char *at = path; at && *at;) {
        size_t bytes = strcspn(at, ":");
        if (snprintf(out, out_bytes, "%.*s/%s", bytes ? (int)bytes : 1, bytes ? at : ".", command) <
                (int)out_bytes &&
            is_file(out))
            return true;
        at += bytes + (at[bytes] != 0);
    }
    return false;
}

static bool has_interpreter(int fd, const Elf64_Ehdr *header)
{
    Elf64_Phdr program;
    for (unsigned i = 0; i < header->e_phnum && i < PROGRAM_HEADERS_MAX; i++) {
        off_t at = (off_t)(header->e_phoff + (uint64_t)i * header->e_phentsize);
        if (pread(fd, &program, sizeof program, at) != (ssize_t)sizeof program)
            return true;
        if (program.p_type == PT_INTERP)
            return true;
    }
    return false;
}

static const char *elf_obstacle(int fd)
{
    Elf64_Ehdr header;
    if (pread(fd, &header, sizeof header, 0) != (ssize_t)sizeof header ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return NULL;
    if (header.e_ident[EI_CLASS] != ELFCLASS64)
        return "is a 32-bit program: the shim is for 64-bit ones";
    return has_interpreter(fd, &header)
               ? NULL
               : "is linked statically: there is no dynamic loader that could preload the shim";
}

static const char *rights_obstacle(int fd)
{
    struct stat file;
    char capabilities[64];
    if (fstat(fd, &file) < 0)
        return NULL;
    if ((file.st_mode & S_ISUID) && file.st_uid != geteuid())
        return "is set-user-ID: the dynamic loader ignores LD_PRELOAD there; "
               "run vramscope inside it instead";
    if ((file.st_mode & S_ISGID) && file.st_gid != getegid())
        return "is set-group-ID: the dynamic loader ignores LD_PRELOAD there";
    if (geteuid() != 0 &&
        fgetxattr(fd, "security.capability", capabilities, sizeof capabilities) > 0)
        return "has file capabilities: the dynamic loader ignores LD_PRELOAD there";
    return NULL;
}

bool run_cannot_preload(const char *command, char *why, size_t why_bytes)
{
    char path[PATH_MAX];
    if (!find_command(command, path, sizeof path))
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    const char *obstacle = rights_obstacle(fd);
    if (!obstacle)
        obstacle = elf_obstacle(fd);
    close(fd);
    if (obstacle)
        snprintf(why, why_bytes, "%s %s", path, obstacle);
    return obstacle != NULL;
}

/* ---- processes that lost the preload ------------------------------------------------ */

enum { MAPS_SHIM = 1, MAPS_CUDA = 2 };

/* What of us and of CUDA a process has mapped. */
static unsigned look_at_maps(pid_t pid)
{
    char path[64], *line = NULL;
    size_t room = 0;
    unsigned found = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "re");
    if (!maps)
        return 0;
    while (getline(&line, &room, maps) > 0 && !(found & MAPS_SHIM)) {
        const char *name = strrchr(line, '/');
        if (name && strncmp(name + 1, RUN_SHIM_NAME, strlen(RUN_SHIM_NAME)) == 0)
            found |= MAPS_SHIM;
        else if (name && strncmp(name + 1, "libcuda.so", strlen("libcuda.so")) == 0)
            found |= MAPS_CUDA;
    }
    free(line);
    fclose(maps);
    return found;
}

/* Children of a process's main thread, which is the one that forks in all but odd programs. */
static unsigned children_of(pid_t pid, pid_t *out, unsigned room)
{
    char path[64];
    unsigned count = 0;
    int child;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *list = fopen(path, "re");
    if (!list)
        return 0;
    while (count < room && fscanf(list, "%d", &child) == 1)
        out[count++] = child;
    fclose(list);
    return count;
}

static void read_name(pid_t pid, char *out, size_t out_bytes)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    FILE *comm = fopen(path, "re");
    if (!comm || !fgets(out, (int)out_bytes, comm))
        snprintf(out, out_bytes, "a process");
    out[strcspn(out, "\n")] = 0;
    if (comm)
        fclose(comm);
}

bool run_find_dropped(pid_t root, struct run_dropped *out)
{
    pid_t family[DESCENDANTS_MAX];
    unsigned count = 1;
    family[0] = root;
    for (unsigned i = 0; i < count; i++) {
        if (look_at_maps(family[i]) == MAPS_CUDA) {
            out->pid = family[i];
            read_name(out->pid, out->name, sizeof out->name);
            return true;
        }
        count += children_of(family[i], family + count, DESCENDANTS_MAX - count);
    }
    return false;
}
