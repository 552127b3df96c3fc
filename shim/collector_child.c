/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs in the clones between the program and the collector. They share the
 * program's memory, and its thread's TLS, but have their own descriptors,
 * signal dispositions and working directory: system calls without errno only,
 * no allocation, no lock, nothing of libc that keeps state.
 *
 * The ring is made here, so that the program never has a descriptor of ours.
 */
#include "collector_child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "event_clock.h"
#include "ring_producer.h"
#include "sys.h"

#define SIGNALS 64
#define KERNEL_SIGSET_BYTES 8U
#define FALLBACK_CLOSE_UP_TO 65536

#ifndef F_ADD_SEALS
#define F_ADD_SEALS 1033
#endif
#ifndef F_SEAL_SEAL
#define F_SEAL_SEAL 1
#define F_SEAL_SHRINK 2
#define F_SEAL_GROW 4
#endif
#ifndef MFD_ALLOW_SEALING
#define MFD_ALLOW_SEALING 2U
#endif

/* ---- descriptors ----------------------------------------------------------- */

static bool close_listed(int listing)
{
    char entries[2048];
    bool any = false;
    long bytes;
    while ((bytes = sys_call3(SYS_getdents64, listing, entries, sizeof(entries))) > 0) {
        for (long at = 0; at < bytes;) {
            /* struct linux_dirent64: ino 8, off 8, reclen 2, type 1, name */
            uint16_t length;
            memcpy(&length, entries + at + 16, sizeof(length));
            const char *name = entries + at + 19;
            int number = 0;
            for (; *name >= '0' && *name <= '9'; name++) {
                number = number * 10 + (*name - '0');
            }
            if (*name == '\0' && number != listing) {
                sys_call1(SYS_close, number);
                any = true;
            }
            at += length;
        }
    }
    return any;
}

/* Kernels before 5.9 have no close_range. */
static void close_everything_slowly(void)
{
    long listing = sys_call4(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY, 0);
    if (listing >= 0) {
        /* Closing moves the listing's entries: until nothing is left. */
        while (close_listed((int)listing)) {
            sys_call3(SYS_lseek, listing, 0, 0);
        }
        sys_call1(SYS_close, listing);
        return;
    }
    for (int number = 0; number < FALLBACK_CLOSE_UP_TO; number++) {
        sys_call1(SYS_close, number);
    }
}

/* Our own table of descriptors is a copy: the program's stay open. */
static void close_everything(void)
{
    if (sys_call3(SYS_close_range, 0, ~0U, 0) != 0) {
        close_everything_slowly();
    }
}

/* After close_everything(): 0, 1 and 2 become /dev/null, or an empty file where there is none. */
static int open_standard(void)
{
    long null = sys_call4(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR, 0);
    if (null < 0) {
        null = sys_call2(SYS_memfd_create, "vramscope-null", 0);
    }
    if (null != 0) {
        return null < 0 ? (int)null : -EMFILE;
    }
    if (sys_call1(SYS_dup, 0) != 1 || sys_call1(SYS_dup, 0) != 2) {
        return -EMFILE;
    }
    return 0;
}

/* ---- the ring -------------------------------------------------------------- */

static long open_ring(const char *path)
{
    if (path[0] == '\0') {
        return sys_call2(SYS_memfd_create, "vramscope-ring", MFD_ALLOW_SEALING);
    }
    return sys_call4(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
}

/*
 * Room for every byte up front: a full file system must show here and not as
 * SIGBUS in the program. Half the size is tried where the whole does not fit.
 */
static int size_ring(int descriptor, uint64_t wanted_bytes, uint64_t *cell_count)
{
    uint64_t cells = ring_cells_for(wanted_bytes);
    uint64_t fewest = ring_cells_for(0);
    for (;;) {
        long status = sys_call4(SYS_fallocate, descriptor, 0, 0, ring_bytes_for(cells));
        if (status == 0) {
            *cell_count = cells;
            return 0;
        }
        if ((status != -ENOSPC && status != -ENOMEM && status != -EFBIG) || cells == fewest) {
            return (int)status;
        }
        sys_call2(SYS_ftruncate, descriptor, 0);
        cells /= 2;
    }
}

static int map_ring(struct collector_launch *launch, int descriptor, uint64_t cell_count)
{
    uint64_t bytes = ring_bytes_for(cell_count);
    /* Not populated, which would take 10 ms here: the collector does it beside the program. */
    long address =
        sys_call6(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (address < 0 && address > -4096) {
        return (int)address;
    }
    launch->ring = (struct vs_ring_header *)address;
    launch->mapped_bytes = bytes;
    long status = sys_call3(SYS_madvise, address, bytes, MADV_DONTFORK);
    if (status < 0) {
        return (int)status;
    }
    ring_initialize(launch->ring, cell_count, (uint32_t)launch->target);
    launch->ring->forked_from = launch->forked_from;
    launch->ring->parent = launch->parent;
    return 0;
}

static int make_ring(struct collector_launch *launch)
{
    uint64_t cell_count = 0;
    long descriptor = open_ring(launch->ring_path);
    if (descriptor != COLLECTOR_RING_FD) {
        return descriptor < 0 ? (int)descriptor : -EMFILE;
    }
    int status = size_ring((int)descriptor, launch->ring_bytes, &cell_count);
    if (status < 0) {
        return status;
    }
    if (launch->ring_path[0] == '\0') {
        sys_call3(SYS_fcntl, descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    }
    return map_ring(launch, (int)descriptor, cell_count);
}

/* ---- becoming nobody's business -------------------------------------------- */

/* The kernel's own layout: libc's sigaction would give us its restorer and its opinions. */
struct kernel_sigaction {
    void (*handler)(int);
    unsigned long flags;
#if defined(__x86_64__)
    void (*restorer)(void);
#endif
    uint64_t mask;
};

/* Before anything is unblocked: a handler of the program's must not run on the program's memory. */
static void reset_signals(void)
{
    static const int ignored[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGPIPE, SIGXFSZ,
                                  SIGXCPU, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2};
    for (int signal_number = 1; signal_number <= SIGNALS; signal_number++) {
        struct kernel_sigaction action;
        memset(&action, 0, sizeof(action));
        for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++) {
            if (ignored[i] == signal_number) {
                action.handler = SIG_IGN;
            }
        }
        sys_call4(SYS_rt_sigaction, signal_number, &action, 0, KERNEL_SIGSET_BYTES);
    }
}

static void reset_scheduling(void)
{
    struct sched_param ordinary = {.sched_priority = 0};
    unsigned char all_cpus[1024];
    memset(all_cpus, 0xff, sizeof(all_cpus));
    sys_call3(SYS_sched_setscheduler, 0, SCHED_OTHER, &ordinary);
    sys_call3(SYS_sched_setaffinity, 0, sizeof(all_cpus), all_cpus);
    sys_call3(SYS_set_mempolicy, MPOL_DEFAULT, 0, 0);
}

static void become_nobodys_business(void)
{
    reset_signals();
    sys_call0(SYS_setsid);
    close_everything();
}

/* ---- the collector's clone ------------------------------------------------- */

static int prepare_collector(struct collector_launch *launch)
{
    int status = open_standard();
    if (status == 0) {
        launch->clock_is_counter = event_clock_is_counter();
        status = make_ring(launch);
    }
    if (status < 0) {
        return status;
    }
    if (sys_call2(SYS_pidfd_open, launch->target, 0) != COLLECTOR_PIDFD) {
        memcpy(launch->pidfd_argument, "-1", sizeof("-1"));
    } else {
        sys_call3(SYS_fcntl, COLLECTOR_PIDFD, F_SETFD, 0);
    }
    reset_scheduling();
    sys_call1(SYS_umask, 077);
    sys_call1(SYS_chdir, "/");
    return 0;
}

static int collector_main(void *argument)
{
    struct collector_launch *launch = argument;
    uint64_t no_signals = 0;

    become_nobodys_business();
    int status = prepare_collector(launch);
    if (status == 0) {
        sys_call4(SYS_rt_sigprocmask, SIG_SETMASK, &no_signals, 0, KERNEL_SIGSET_BYTES);
        status =
            (int)sys_call3(SYS_execve, launch->collector, launch->arguments, launch->environment);
    }
    launch->error = status;
    if (launch->ring != NULL) {
        sys_call2(SYS_munmap, launch->ring, launch->mapped_bytes);
        launch->ring = NULL;
    }
    if (launch->ring_path[0] != '\0' && status != -EEXIST) {
        sys_call1(SYS_unlink, launch->ring_path);
    }
    sys_call1(SYS_exit_group, 127);
    return 127;
}

/* ---- the middle clone ------------------------------------------------------ */

/*
 * An exec gives a child back its SIGCHLD and its place in wait(-1). Under pid 1
 * or a child subreaper an orphan would come back to the program as well. So
 * there the middle clone, which never execs and whose exit signal is 0, stays
 * between the two for as long as both live.
 */
static void stand_between(const struct collector_launch *launch)
{
    uint64_t awaited = 1ULL << (SIGCHLD - 1) | 1ULL << (SIGHUP - 1);
    sys_call2(SYS_prctl, PR_SET_NAME, "vramscope-wait");
    /* Comes when the thread that cloned us ends, too: hence the look at getppid. */
    sys_call2(SYS_prctl, PR_SET_PDEATHSIG, SIGHUP);
    while (sys_call0(SYS_getppid) == launch->target &&
           sys_call4(SYS_wait4, launch->collector_pid, 0, __WALL | WNOHANG, 0) == 0) {
        sys_call4(SYS_rt_sigtimedwait, &awaited, 0, 0, KERNEL_SIGSET_BYTES);
    }
}

int collector_middle_main(void *argument)
{
    struct collector_launch *launch = argument;
    bool stay = launch->stay;

    /* Without SIGCHLD as exit signal until its exec; we continue when it has happened. */
    int pid = clone(collector_main, launch->collector_stack_top, CLONE_VM | CLONE_VFORK, launch);
    if (pid < 0) {
        launch->error = -EAGAIN;
    } else if (launch->error != 0) {
        sys_call4(SYS_wait4, pid, 0, __WALL, 0);
    } else {
        launch->collector_pid = pid;
    }
    if (stay && launch->error == 0) {
        /* Before the program goes on, so that nothing of its is held open or stops with us. */
        become_nobodys_business();
        sys_call1(SYS_chdir, "/");
    }
    atomic_store(&launch->done, 1);
    sys_call3(SYS_futex, &launch->done, FUTEX_WAKE, 1);
    if (stay && launch->error == 0) {
        stand_between(launch);
    }
    sys_call1(SYS_exit_group, 0);
    return 0;
}
