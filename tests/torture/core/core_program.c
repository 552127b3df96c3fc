/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that behaves as its first argument says. With the core preloaded it
 * "uses CUDA" through the names of core_entry.c; without it, it does the same
 * and nothing is recorded. What it prints must not differ.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void (*cuda_seen)(void);
static uint64_t (*emit)(uint64_t, uint64_t);
static void (*stop_thread_at)(int, void (*)(void));
static char *self;

static void use_cuda(unsigned events)
{
    if (cuda_seen != NULL) {
        cuda_seen();
        for (unsigned i = 1; i <= events; i++) {
            emit(i, 512);
        }
    }
}

static volatile sig_atomic_t children_signalled;

static void count_signal(int number)
{
    (void)number;
    children_signalled++;
}

static void print_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    struct dirent *entry;
    unsigned count = 0;
    while ((entry = readdir(folder)) != NULL) {
        count += entry->d_name[0] != '.';
    }
    closedir(folder);
    printf("descriptors %u\n", count);
}

/* ---- what can be noticed --------------------------------------------------------- */

static int mode_notice(void)
{
    sigset_t mask;
    signal(SIGCHLD, count_signal);
    print_descriptors();
    errno = 77;
    use_cuda(10);
    printf("errno %d\n", errno);
    print_descriptors();
    usleep(50000);
    sigprocmask(SIG_SETMASK, NULL, &mask);
    pid_t waited = wait(NULL);
    printf("wait %d %s\nsigchld %d\nblocked %d\n", waited, strerror(errno), children_signalled,
           sigismember(&mask, SIGTERM));
    return 3;
}

/* Waits for everything, as an init does, while it uses CUDA itself. */
static int mode_reaper(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    signal(SIGCHLD, count_signal);
    use_cuda(10);
    for (int i = 0; i < 3; i++) {
        if (fork() == 0) {
            _exit(i);
        }
    }
    int reaped = 0;
    int status;
    while (true) {
        pid_t pid = wait(&status);
        if (pid > 0) {
            reaped++;
        } else if (errno != EINTR) {
            break;
        }
    }
    printf("reaped %d %s\n", reaped, strerror(errno));
    return 0;
}

static int mode_signals(void)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    use_cuda(1);
    for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++) {
        struct sigaction old;
        sigaction(fatal[i], NULL, &old);
        printf("%d: flags %x default %d;", fatal[i], (unsigned)old.sa_flags,
               old.sa_handler == SIG_DFL);
        printf(" signal says default %d,", signal(fatal[i], count_signal) == SIG_DFL);
        printf(" then ours %d\n", signal(fatal[i], SIG_IGN) == count_signal);
    }
    return 0;
}

/* ---- ends ------------------------------------------------------------------------- */

static int mode_return(void)
{
    use_cuda(10);
    return 7;
}

static int mode_exit(void)
{
    use_cuda(10);
    exit(7);
}

static int mode_underscore_exit(void)
{
    use_cuda(10);
    _exit(7);
}

static int mode_quick_exit(void)
{
    use_cuda(10);
    quick_exit(7);
}

static int mode_abort(void)
{
    use_cuda(10);
    abort();
}

static int mode_segv(void)
{
    use_cuda(10);
    volatile uintptr_t nowhere = 16; /* the compiler knows better than to write to a constant */
    *(volatile int *)nowhere = 1;
    return 0;
}

static int mode_trap(void)
{
    use_cuda(10);
    __builtin_trap();
    return 0;
}

static int mode_send_segv(void)
{
    use_cuda(10);
    kill(getpid(), SIGSEGV);
    return 0;
}

static int mode_kill(void)
{
    use_cuda(10);
    raise(SIGKILL);
    return 0;
}

static int mode_exec(void)
{
    use_cuda(10);
    execl(self, self, "return", (char *)NULL);
    return 1;
}

static int mode_exec_failed(void)
{
    use_cuda(10);
    int result = execlp("no-such-program-here", "x", (char *)NULL);
    printf("exec %d %s\n", result, strerror(errno));
    return 7;
}

static sigjmp_buf back;

static void jump_back(int number)
{
    (void)number;
    siglongjmp(back, 1);
}

static int mode_abort_survived(void)
{
    use_cuda(10);
    signal(SIGABRT, jump_back);
    if (sigsetjmp(back, 1) == 0) {
        abort();
    }
    use_cuda(10);
    return 7;
}

static _Atomic int asleep;

static void *sleep_for_ever(void *unused)
{
    use_cuda(5);
    asleep++;
    pause();
    return unused;
}

static int mode_threads(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        pthread_create(&threads[i], NULL, sleep_for_ever, NULL);
    }
    while (asleep < 4) {
        usleep(1000);
    }
    return 7;
}

/* ---- forks -------------------------------------------------------------------------- */

static int wait_for(pid_t pid)
{
    int status = 0;
    waitpid(pid, &status, 0);
    printf("child %d\n", status);
    return 7;
}

static int fork_then(pid_t pid)
{
    if (pid == 0) {
        if (emit != NULL) {
            emit(99, 1000); /* before its own recording: a counted loss */
        }
        use_cuda(3);
        _exit(5);
    }
    use_cuda(2);
    return wait_for(pid);
}

static int mode_fork(void)
{
    use_cuda(10);
    return fork_then(fork());
}

static int mode_raw_fork(void)
{
    use_cuda(10);
#ifdef SYS_fork
    return fork_then((pid_t)syscall(SYS_fork));
#else
    return fork_then((pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
#endif
}

static int mode_fork_quiet(void)
{
    use_cuda(10);
    pid_t pid = fork();
    if (pid == 0) {
        exit(5);
    }
    return wait_for(pid);
}

static int mode_vfork_exit(void)
{
    use_cuda(10);
    pid_t pid = vfork();
    if (pid == 0) {
        _exit(5);
    }
    return wait_for(pid);
}

static int mode_vfork_exec(void)
{
    use_cuda(10);
    pid_t pid = vfork();
    if (pid == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(9);
    }
    return wait_for(pid);
}

/* ---- a thread that dies between reservation and commit ------------------------------- */

static void leave_thread(void)
{
    syscall(SYS_exit, 0);
}

static void *die_inside(void *unused)
{
    emit(1, 1);
    stop_thread_at(2, leave_thread);
    emit(2, 2);
    return unused;
}

static int mode_die_inside(void)
{
    pthread_t thread;
    use_cuda(10);
    if (emit != NULL) {
        pthread_create(&thread, NULL, die_inside, NULL);
        usleep(50000);
        use_cuda(10);
    }
    return 7;
}

/* ---- limits ----------------------------------------------------------------------------- */

static int mode_small_files(void)
{
    struct rlimit limit = {1U << 20, 1U << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    use_cuda(10);
    return 7;
}

static int mode_few_descriptors(void)
{
    struct rlimit limit = {3, 3};
    setrlimit(RLIMIT_NOFILE, &limit);
    use_cuda(10);
    return 7;
}

static int mode_no_cuda(void)
{
    print_descriptors();
    return 7;
}

static int mode_changed_folder(void)
{
    if (chdir("/") != 0) {
        return 1;
    }
    use_cuda(1);
    return 7;
}

static int mode_time_start(void)
{
    struct timespec began, ended;
    clock_gettime(CLOCK_MONOTONIC, &began);
    use_cuda(0);
    clock_gettime(CLOCK_MONOTONIC, &ended);
    fprintf(stderr, "start %ld us\n",
            (ended.tv_sec - began.tv_sec) * 1000000 + (ended.tv_nsec - began.tv_nsec) / 1000);
    return 7;
}

#define MODE(name)         \
    {                      \
#name, mode_##name \
    }

static const struct {
    const char *name;
    int (*run)(void);
} modes[] = {
    MODE(notice),      MODE(reaper),
    MODE(signals),     MODE(return ),
    MODE(exit),        MODE(underscore_exit),
    MODE(quick_exit),  MODE(abort),
    MODE(segv),        MODE(trap),
    MODE(send_segv),   MODE(kill),
    MODE(exec),        MODE(exec_failed),
    MODE(fork),        MODE(raw_fork),
    MODE(fork_quiet),  MODE(vfork_exit),
    MODE(vfork_exec),  MODE(die_inside),
    MODE(small_files), MODE(few_descriptors),
    MODE(no_cuda),     MODE(changed_folder),
    MODE(threads),     MODE(abort_survived),
    MODE(time_start),
};

int main(int argc, char **argv)
{
    struct rlimit no_core = {0, 0};
    self = argv[0];
    setrlimit(RLIMIT_CORE, &no_core);
    setvbuf(stdout, NULL, _IONBF, 0);
    *(void **)&cuda_seen = dlsym(RTLD_DEFAULT, "core_cuda_seen");
    *(void **)&emit = dlsym(RTLD_DEFAULT, "core_emit");
    *(void **)&stop_thread_at = dlsym(RTLD_DEFAULT, "core_stop_thread_at");
    for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (strcmp(argv[1], modes[i].name) == 0) {
            return modes[i].run();
        }
    }
    return 64;
}
