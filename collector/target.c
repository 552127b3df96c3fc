/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about the traced process from /proc and its pidfd. */
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "memory_groups.h"

/* Fields of /proc/PID/stat, counted from 1 as proc(5) does. */
enum stat_field { STAT_STATE = 3, STAT_THREADS = 20, STAT_STACK_START = 28, STAT_EXIT_CODE = 52 };

/* The first version of the kernel's struct pidfd_info (linux/pidfd.h). */
struct pidfd_info_v0 {
    uint64_t mask;
    uint64_t cgroup_id;
    uint32_t ids[11];
    int32_t exit_code;
};
_Static_assert(sizeof(struct pidfd_info_v0) == 64, "as the kernel has it");
#define PIDFD_GET_INFO_V0 _IOWR(0xFF, 11, struct pidfd_info_v0)
#define PIDFD_INFO_EXIT_BIT (1ULL << 3)

static ssize_t read_all(int fd, char *out, size_t out_bytes)
{
    size_t filled = 0;
    while (filled + 1 < out_bytes) {
        ssize_t got = read(fd, out + filled, out_bytes - 1 - filled);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        filled += (size_t)got;
    }
    out[filled] = 0;
    return (ssize_t)filled;
}

ssize_t target_read(const struct target *target, const char *name, char *out, size_t out_bytes)
{
    out[0] = 0;
    if (target->proc_fd < 0)
        return -ESRCH;
    int fd = openat(target->proc_fd, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t bytes = read_all(fd, out, out_bytes);
    close(fd);
    return bytes;
}

/* Finds a "Name:\tvalue" line; NULL when there is none. */
static const char *line_value(const char *text, const char *name)
{
    size_t bytes = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, bytes) == 0 && line[bytes] == ':')
            return line + bytes + 1;
    }
    return NULL;
}

/* The process's id in the namespace of our /proc, which need not be its own. */
static long proc_pid(uint32_t pid, int pidfd)
{
    char path[64], text[1024] = "";
    if (pidfd < 0)
        return (long)pid;
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return (long)pid;
    ssize_t bytes = read_all(fd, text, sizeof text);
    close(fd);
    const char *value = bytes > 0 ? line_value(text, "Pid") : NULL;
    return value ? strtol(value, NULL, 10) : (long)pid;
}

/* A field of /proc/PID/stat from the third on (the second may hold anything). False when missing.
 */
static bool stat_field(const struct target *target, enum stat_field field, char *out,
                       size_t out_bytes)
{
    char text[1024];
    if (target_read(target, "stat", text, sizeof text) <= 0)
        return false;
    char *at = strrchr(text, ')');
    if (!at)
        return false;
    char *rest = NULL;
    at = strtok_r(at + 1, " \n", &rest);
    for (int number = STAT_STATE; at && number < (int)field; number++)
        at = strtok_r(NULL, " \n", &rest);
    if (!at)
        return false;
    snprintf(out, out_bytes, "%s", at);
    return true;
}

static uint64_t stack_start(const struct target *target)
{
    char value[32];
    return stat_field(target, STAT_STACK_START, value, sizeof value) ? strtoull(value, NULL, 10)
                                                                     : 0;
}

static bool is_ring_line(const struct target *target, const char *line)
{
    unsigned device_major, device_minor;
    uint64_t inode;
    return sscanf(line, "%*x-%*x %*s %*x %x:%x %" SCNu64, &device_major, &device_minor, &inode) ==
               3 &&
           inode == target->ring_inode &&
           makedev(device_major, device_minor) == target->ring_device;
}

static FILE *open_maps(const struct target *target)
{
    int fd = target->proc_fd < 0 ? -1 : openat(target->proc_fd, "maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    FILE *maps = fdopen(fd, "r");
    if (!maps)
        close(fd);
    return maps;
}

/* 1 when the target has the ring mapped, 0 when not, negative when its maps cannot be read. */
static int ring_is_mapped(const struct target *target)
{
    char *line = NULL;
    size_t room = 0, lines = 0;
    int found = 0;
    errno = ESRCH;
    FILE *maps = open_maps(target);
    if (!maps)
        return -errno;
    while (!found && getline(&line, &room, maps) > 0) {
        found = is_ring_line(target, line);
        lines++;
    }
    free(line);
    fclose(maps);
    return found ? 1 : lines ? 0 : -ESRCH;
}

/* Folder of the file of a maps line when its name begins with `name`. */
static bool folder_of_line(char *line, const char *name, char *out, size_t out_bytes)
{
    char *path = strchr(line, '/');
    char *slash = path ? strrchr(path, '/') : NULL;
    if (!slash || strncmp(slash + 1, name, strlen(name)) != 0)
        return false;
    *slash = 0;
    return snprintf(out, out_bytes, "%s", path) < (int)out_bytes;
}

int target_mapped_folder(const struct target *target, const char *name, char *out, size_t out_bytes)
{
    char *line = NULL;
    size_t room = 0;
    bool found = false;
    FILE *maps = open_maps(target);
    if (!maps)
        return -ENOENT;
    while (!found && getline(&line, &room, maps) > 0)
        found = folder_of_line(line, name, out, out_bytes);
    free(line);
    fclose(maps);
    return found ? 0 : -ENOENT;
}

void target_open(struct target *target, uint32_t pid, int pidfd, int ring_fd)
{
    char path[64];
    struct stat ring;
    memset(target, 0, sizeof *target);
    target->pid = pid;
    target->pidfd = pidfd;
    long visible_pid = proc_pid(pid, pidfd);
    snprintf(path, sizeof path, "/proc/%ld", visible_pid);
    target->visible_pid = visible_pid > 0 ? (pid_t)visible_pid : 0;
    target->proc_fd = visible_pid > 0 ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (ring_fd >= 0 && fstat(ring_fd, &ring) == 0) {
        target->ring_device = ring.st_dev;
        target->ring_inode = ring.st_ino;
    }
    target->stack_start = stack_start(target);
    target->ring_visible = ring_is_mapped(target) == 1;
}

void target_close(struct target *target)
{
    if (target->proc_fd >= 0)
        close(target->proc_fd);
    target->proc_fd = -1;
}

int target_executable(const struct target *target, char *out, size_t out_bytes)
{
    static const char deleted[] = " (deleted)";
    if (target->proc_fd < 0)
        return -ESRCH;
    ssize_t bytes = readlinkat(target->proc_fd, "exe", out, out_bytes - 1);
    if (bytes < 0)
        return -errno;
    size_t mark = sizeof deleted - 1;
    if ((size_t)bytes > mark && memcmp(out + (size_t)bytes - mark, deleted, mark) == 0)
        bytes -= (ssize_t)mark;
    out[bytes] = 0;
    return 0;
}

int target_title(const struct target *target, char *out, size_t out_bytes)
{
    ssize_t bytes = target_read(target, "comm", out, out_bytes);
    if (bytes < 0)
        return (int)bytes;
    out[strcspn(out, "\n")] = 0;
    return 0;
}

void target_ids(const struct target *target, struct target_ids *out)
{
    char text[4096] = "";
    memset(out, 0, sizeof *out);
    if (target_read(target, "status", text, sizeof text) <= 0)
        return;
    const char *chain = line_value(text, "NSpid");
    while (chain && out->pid_count < TARGET_PID_CHAIN_MAX) {
        char *end;
        unsigned long pid = strtoul(chain, &end, 10);
        if (end == chain || memchr(chain, '\n', (size_t)(end - chain)))
            break;
        out->pid_chain[out->pid_count++] = (uint32_t)pid;
        chain = end;
    }
}

/* A control file's number; TARGET_LIMIT_NONE for "max", a v1 "no limit" or no file. */
static uint64_t cgroup_number(const char *folder, const char *name)
{
    char path[MEMORY_GROUP_BYTES + 32], text[64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return TARGET_LIMIT_NONE;
    ssize_t bytes = read_all(fd, text, sizeof text);
    close(fd);
    char *end;
    uint64_t value = strtoull(text, &end, 10);
    return bytes <= 0 || end == text || value >= INT64_MAX / 4096 * 4096 ? TARGET_LIMIT_NONE
                                                                         : value;
}

/* The tightest limit of the groups it is in, and the use that counts against it. */
static bool take_tightest(void *self, const char *folder, bool unified)
{
    struct target_memory *out = self;
    uint64_t limit = cgroup_number(folder, unified ? "memory.max" : "memory.limit_in_bytes");
    if (limit < out->cgroup_limit_bytes) {
        uint64_t use = cgroup_number(folder, unified ? "memory.current" : "memory.usage_in_bytes");
        out->cgroup_limit_bytes = limit;
        out->cgroup_bytes = use == TARGET_LIMIT_NONE ? 0 : use;
    }
    return true;
}

int target_memory(const struct target *target, struct target_memory *out)
{
    char text[256], groups[8192];
    uint64_t resident_pages;
    memset(out, 0, sizeof *out);
    if (target_read(target, "statm", text, sizeof text) <= 0 ||
        sscanf(text, "%*u %" SCNu64, &resident_pages) != 1 || resident_pages == 0)
        return -ESRCH; /* no pages: its memory went with its end, and says nothing of its use */
    out->resident_bytes = resident_pages * (uint64_t)sysconf(_SC_PAGESIZE);
    out->cgroup_limit_bytes = TARGET_LIMIT_NONE;
    if (target_read(target, "cgroup", groups, sizeof groups) > 0)
        memory_groups_each(groups, take_tightest, out);
    return 0;
}

bool target_alive(const struct target *target)
{
    char state[8], threads[16];
    if (target->proc_fd < 0)
        return kill((pid_t)target->pid, 0) == 0 || errno == EPERM;
    if (!stat_field(target, STAT_STATE, state, sizeof state) ||
        !stat_field(target, STAT_THREADS, threads, sizeof threads))
        return false;
    /* A main thread that ended before the others is a zombie of a living process. */
    return (state[0] != 'Z' && state[0] != 'X') || strtoul(threads, NULL, 10) > 1;
}

bool target_replaced(const struct target *target, bool thorough)
{
    uint64_t stack = stack_start(target); /* 0: not shown to us, or a zombie has none */
    if (!target->ring_visible)
        return stack != 0 && stack != target->stack_start;
    if (!thorough)
        return stack != target->stack_start;
    int mapped = ring_is_mapped(target);
    /* Maps that could be read before and cannot now: the new program runs with other rights. */
    return mapped < 0 ? mapped != -ESRCH : mapped == 0;
}

int target_wait_status(const struct target *target, int *status)
{
    char value[32];
    char state[8];
    if (stat_field(target, STAT_STATE, state, sizeof state) && state[0] == 'Z' &&
        stat_field(target, STAT_EXIT_CODE, value, sizeof value)) {
        *status = (int)strtol(value, NULL, 10);
        return 0;
    }
    struct pidfd_info_v0 info = {.mask = PIDFD_INFO_EXIT_BIT};
    if (target->pidfd >= 0 && ioctl(target->pidfd, PIDFD_GET_INFO_V0, &info) == 0 &&
        (info.mask & PIDFD_INFO_EXIT_BIT)) {
        *status = info.exit_code;
        return 0;
    }
    return -ENODATA;
}

bool target_thread_exists(uint32_t thread)
{
    /* tkill, not tgkill: a process that shares the target's memory (vfork) is no thread of its
     * group. */
    return syscall(SYS_tkill, (long)thread, 0) == 0 || errno != ESRCH;
}
