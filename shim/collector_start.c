/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts the collector without the program being able to tell: no fork (a
 * clone that shares memory takes a quarter of a millisecond whatever the
 * program's size), no atfork handlers, no SIGCHLD, nothing for wait(-1), no
 * descriptor. collector_child.c has what happens in the clones.
 */
#include "collector_start.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "collector_child.h"
#include "config.h"
#include "ring_producer.h"
#include "shim.h"
#include "sys.h"

#define START_SECONDS 10 /* an exec that takes longer is given up */
#define KERNEL_SIGSET_BYTES 8U
#define TARGET_LIBRARY_PATH "VRAMSCOPE_TARGET_LIBRARY_PATH="

extern char **environ;

/* A prefix each, of "NAME=value". What would change how the collector loads, allocates or is
 * checked. */
static const char *const withheld[] = {
    "LD_",
    "GLIBC_TUNABLES=",
    "GCONV_PATH=",
    "MALLOC_",
    "ASAN_",
    "TSAN_",
    "LSAN_",
    "MSAN_",
    "UBSAN_",
    "HWASAN_",
    "TCMALLOC_",
    "JE_MALLOC_CONF=",
    "_RJEM_MALLOC_",
    "MIMALLOC_",
    "HEAPPROFILE=",
    "HEAPCHECK=",
    "CPUPROFILE=",
    "PERFTOOLS_",
    "GMON_OUT_PREFIX=",
    "VRAMSCOPE_OUTPUT=",
    TARGET_LIBRARY_PATH,
};

/* The one mapping: launch | environment pointers | texts | stack of each clone. */
struct launch_area {
    char *base;
    size_t bytes;
    size_t used;
};

static void *area_take(struct launch_area *area, size_t bytes)
{
    void *start = area->base + area->used;
    area->used += (bytes + 15U) & ~(size_t)15U;
    return start;
}

static bool is_withheld(const char *assignment)
{
    for (size_t i = 0; i < sizeof(withheld) / sizeof(withheld[0]); i++) {
        if (strncmp(assignment, withheld[i], strlen(withheld[i])) == 0) {
            return true;
        }
    }
    return config_refused(assignment);
}

/* ---- what is handed over --------------------------------------------------- */

static size_t environment_count(void)
{
    size_t count = 0;
    while (environ != NULL && environ[count] != NULL) {
        count++;
    }
    return count;
}

/* The strings stay the program's: the clone shares its memory until the exec copies them. */
static void fill_environment(struct collector_launch *launch, char **list, size_t capacity,
                             char *library_path)
{
    size_t used = 0;
    for (size_t i = 0; environ != NULL && environ[i] != NULL && used + 2 < capacity; i++) {
        if (!is_withheld(environ[i])) {
            list[used++] = environ[i];
        }
    }
    if (library_path != NULL) {
        list[used++] = library_path;
    }
    list[used] = NULL;
    launch->environment = list;
}

static char *number_argument(struct launch_area *area, int number)
{
    char *text = area_take(area, 16);
    snprintf(text, 16, "%d", number);
    return text;
}

/* A constant in the argument list; execve only reads it. */
static char *constant(const char *text)
{
    return (char *)(uintptr_t)text;
}

static void fill_arguments(struct collector_launch *launch, struct launch_area *area)
{
    int n = 0;
    launch->pidfd_argument = number_argument(area, COLLECTOR_PIDFD);
    launch->arguments[n++] = constant("vramscope-collector");
    launch->arguments[n++] = constant("--ring-fd");
    launch->arguments[n++] = number_argument(area, COLLECTOR_RING_FD);
    launch->arguments[n++] = constant("--pidfd");
    launch->arguments[n++] = launch->pidfd_argument;
    launch->arguments[n++] = constant("--pid");
    launch->arguments[n++] = number_argument(area, launch->target);
    launch->arguments[n++] = constant("--output");
    launch->arguments[n++] = shim_config.output;
    if (launch->ring_path[0] != '\0') {
        launch->arguments[n++] = constant("--ring-path");
        launch->arguments[n++] = launch->ring_path;
    }
    launch->arguments[n] = NULL;
}

/* Beside the trace to come: the folder of the pattern, up to its first placeholder. */
static int fill_ring_path(struct collector_launch *launch)
{
    const char *pattern = shim_config.output;
    size_t folder = 0;
    for (size_t i = 0; pattern[i] != '\0' && pattern[i] != '%'; i++) {
        if (pattern[i] == '/') {
            folder = i + 1;
        }
    }
    int length =
        snprintf(launch->ring_path, sizeof(launch->ring_path), "%.*s.vramscope.%d.%llx.vscope.ring",
                 (int)folder, pattern, launch->target, (unsigned long long)shim_now_ns());
    return length > 0 && (size_t)length < sizeof(launch->ring_path) ? 0 : -ENAMETOOLONG;
}

/* ---- the start ------------------------------------------------------------- */

/* As pid 1 or child subreaper orphans come back to us: then the middle clone stays. */
static bool orphans_come_back(int pid)
{
    int subreaper = 0;
    return pid == 1 || (prctl(PR_GET_CHILD_SUBREAPER, &subreaper) == 0 && subreaper != 0);
}

static struct collector_launch *prepare(struct launch_area *area, uint32_t forked_from)
{
    size_t variables = environment_count() + 3;
    const char *library_path = getenv("LD_LIBRARY_PATH");
    size_t path_bytes =
        library_path != NULL ? strlen(library_path) + sizeof(TARGET_LIBRARY_PATH) : 0;
    size_t page = 4096;

    area->bytes = sizeof(struct collector_launch) + variables * sizeof(char *) + path_bytes +
                  2 * COLLECTOR_STACK_BYTES + page;
    area->base =
        mmap(NULL, area->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area->base == MAP_FAILED) {
        return NULL;
    }
    struct collector_launch *launch = area_take(area, sizeof(*launch));
    launch->target = sys_getpid();
    launch->parent = (uint32_t)sys_call0(SYS_getppid);
    launch->forked_from = forked_from;
    launch->stay = orphans_come_back(launch->target);
    launch->ring_bytes = shim_config.ring_bytes;
    launch->collector = shim_config.collector;

    char **list = area_take(area, variables * sizeof(char *));
    char *path_copy = NULL;
    if (library_path != NULL) {
        path_copy = area_take(area, path_bytes);
        memcpy(path_copy, TARGET_LIBRARY_PATH, sizeof(TARGET_LIBRARY_PATH) - 1);
        memcpy(path_copy + sizeof(TARGET_LIBRARY_PATH) - 1, library_path,
               path_bytes - sizeof(TARGET_LIBRARY_PATH) + 1);
    }
    fill_environment(launch, list, variables, path_copy);
    return launch;
}

/* A middle clone that stays does not hold us up by itself. */
static void wait_for_exec(struct collector_launch *launch)
{
    struct timespec longest = {START_SECONDS, 0};
    while (atomic_load(&launch->done) == 0) {
        if (sys_call4(SYS_futex, &launch->done, FUTEX_WAIT, 0, &longest) == -ETIMEDOUT) {
            break;
        }
    }
}

static int launch_clones(struct collector_launch *launch, char *stack_top)
{
    uint64_t all = ~0ULL;
    uint64_t before;
    int flags = CLONE_VM | (launch->stay ? 0 : CLONE_VFORK);

    /* The clones inherit it: no handler of the program's runs in them. */
    sys_call4(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, KERNEL_SIGSET_BYTES);
    int pid = clone(collector_middle_main, stack_top, flags, launch);
    int status = pid < 0 ? -errno : 0;
    if (pid >= 0 && launch->stay) {
        wait_for_exec(launch);
        status = atomic_load(&launch->done) != 0 ? launch->error : -ETIMEDOUT;
    } else if (pid >= 0) {
        status = launch->error;
    }
    if (pid >= 0 && (!launch->stay || (status < 0 && status != -ETIMEDOUT))) {
        sys_call4(SYS_wait4, pid, 0, __WCLONE, 0);
    }
    sys_call4(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, KERNEL_SIGSET_BYTES);
    return status;
}

int collector_start(struct collector_started *started, uint32_t forked_from)
{
    struct launch_area area = {NULL, 0, 0};
    if (shim_config.collector[0] == '\0') {
        return -ENOENT;
    }
    struct collector_launch *launch = prepare(&area, forked_from);
    if (launch == NULL) {
        return -ENOMEM;
    }
    int status = 0;
    if (shim_config.ring_at == SHIM_RING_IN_FILE) {
        status = fill_ring_path(launch);
    }
    if (status == 0) {
        fill_arguments(launch, &area);
        launch->collector_stack_top = area.base + ((area.bytes - COLLECTOR_STACK_BYTES) & ~63UL);
        madvise(area.base, area.bytes, MADV_DONTFORK);
        status = launch_clones(launch, area.base + (area.bytes & ~63UL));
    }
    if (status == 0) {
        *started = (struct collector_started){.ring = launch->ring,
                                              .bytes = launch->mapped_bytes,
                                              .clock_is_counter = launch->clock_is_counter,
                                              .pid = launch->collector_pid};
    }
    /* A clone that stays, or one we gave up waiting for, still stands on its stack. */
    if (status != -ETIMEDOUT && !(launch->stay && status == 0)) {
        munmap(area.base, area.bytes);
    }
    return status;
}
