/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A short CUDA program with every kind of end. Usage: ends MODE [PATH]. It
 * prints each memory call it made ("alloc PID ADDRESS SIZE", "free PID ADDRESS")
 * before it ends, so that the runner can hold the trace against it.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "driver.h"

extern char **environ;

enum { EXIT_STATUS = 7, BLOCKS = 5 };

static struct driver driver;
static const char *self;

static void say_alloc(uint64_t address, size_t size)
{
    printf("alloc %ld %llu %zu\n", (long)getpid(), (unsigned long long)address, size);
    fflush(stdout);
}

static void use_cuda(void)
{
    uint64_t blocks[BLOCKS];
    driver = driver_open();
    driver_start(&driver);
    for (int i = 0; i < BLOCKS; i++) {
        size_t size = ((size_t)i + 1) << 20;
        blocks[i] = driver_alloc(&driver, size);
        say_alloc(blocks[i], size);
    }
    driver_check(driver.release(blocks[1]), "cuMemFree_v2");
    printf("free %ld %llu\n", (long)getpid(), (unsigned long long)blocks[1]);
    fflush(stdout);
}

static int finish(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return 3;
    printf("child %d %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1,
           WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    return WIFEXITED(status) ? 0 : 4;
}

static void *wait_for_ever(void *unused)
{
    (void)unused;
    for (;;)
        pause();
    return NULL;
}

static void *exit_from_thread(void *unused)
{
    (void)unused;
    exit(EXIT_STATUS);
}

static void start_thread(void *(*body)(void *))
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, NULL) != 0)
        _exit(3);
}

static int end_exit(void)
{
    use_cuda();
    exit(EXIT_STATUS);
}

static int end_now(void)
{
    use_cuda();
    _exit(EXIT_STATUS);
}

static int end_quick(void)
{
    use_cuda();
    quick_exit(EXIT_STATUS);
}

static int end_group(void)
{
    use_cuda();
    syscall(SYS_exit_group, EXIT_STATUS);
    return 0;
}

static int end_return_with_threads(void)
{
    use_cuda();
    for (int i = 0; i < 3; i++)
        start_thread(wait_for_ever);
    return EXIT_STATUS;
}

static int end_main_thread_first(void)
{
    use_cuda();
    start_thread(exit_from_thread);
    pthread_exit(NULL);
}

static int end_abort(void)
{
    use_cuda();
    abort();
}

static int end_segv(void)
{
    use_cuda();
    int *volatile nowhere = NULL;
    *(volatile int *)nowhere = 1;
    return 0;
}

static int raise_signal(int number)
{
    use_cuda();
    kill(getpid(), number);
    return 3; /* not reached: the signal comes first */
}

static int end_term(void)
{
    return raise_signal(SIGTERM);
}

static int end_kill(void)
{
    return raise_signal(SIGKILL);
}

static int end_exec(void)
{
    use_cuda();
    execl(self, self, "exit", (char *)NULL);
    return 3;
}

static int end_exec_plain(void)
{
    use_cuda();
    execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
    return 3;
}

/* A failed exec is no end. */
static int end_exec_failed(void)
{
    use_cuda();
    execl("/nonexistent/program", "program", (char *)NULL);
    say_alloc(driver_alloc(&driver, 4096), 4096);
    return EXIT_STATUS;
}

static int fork_then_both(bool raw)
{
    fflush(stdout);
    pid_t child = raw ? (pid_t)syscall(SYS_fork) : fork();
    if (child < 0)
        return 3;
    use_cuda();
    if (child == 0)
        _exit(5);
    return finish(child);
}

static int fork_before(void)
{
    return fork_then_both(false);
}

static int raw_fork_before(void)
{
    return fork_then_both(true);
}

static pid_t raw_clone(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

static int clone_before(void)
{
    fflush(stdout);
    pid_t child = raw_clone();
    use_cuda();
    if (child == 0)
        _exit(5);
    return finish(child);
}

/* The child of a CUDA process cannot use CUDA: its failed try is an event of its own trace. */
static void try_in_child(void)
{
    uint64_t address = 0;
    printf("failed %ld %d\n", (long)getpid(), driver.alloc(&address, 4096) != 0);
    fflush(stdout);
}

static int after(pid_t (*make)(void), bool try)
{
    use_cuda();
    pid_t child = make();
    if (child == 0) {
        if (try)
            try_in_child();
        _exit(5);
    }
    if (child < 0)
        return 3;
    int status = finish(child);
    say_alloc(driver_alloc(&driver, 8192), 8192);
    return status;
}

static pid_t raw_fork(void)
{
    return (pid_t)syscall(SYS_fork);
}

static int fork_after(void)
{
    return after(fork, true);
}

static int fork_idle(void)
{
    return after(fork, false);
}

static int raw_fork_after(void)
{
    return after(raw_fork, true);
}

static int raw_fork_idle(void)
{
    return after(raw_fork, false);
}

static int clone_after(void)
{
    return after(raw_clone, true);
}

static int clone_idle(void)
{
    return after(raw_clone, false);
}

static int vfork_exec(void)
{
    use_cuda();
    pid_t child = vfork();
    if (child == 0) {
        execl(self, self, "exit", (char *)NULL);
        _exit(3);
    }
    return finish(child);
}

static int vfork_nothing(void)
{
    use_cuda();
    pid_t child = vfork();
    if (child == 0)
        _exit(5);
    int status = finish(child);
    say_alloc(driver_alloc(&driver, 8192), 8192);
    return status;
}

static int spawn(char *const arguments[])
{
    pid_t child = 0;
    use_cuda();
    if (posix_spawn(&child, arguments[0], NULL, NULL, arguments, environ) != 0)
        return 3;
    return finish(child);
}

static int spawn_cuda(void)
{
    char *arguments[] = {(char *)(uintptr_t)self, (char[]){"exit"}, NULL};
    return spawn(arguments);
}

static int spawn_plain(void)
{
    char *arguments[] = {(char[]){"/bin/sh"}, (char[]){"-c"}, (char[]){"exit 5"}, NULL};
    return spawn(arguments);
}

/* CUDA's libraries go away and come back. */
static int close_libraries(void)
{
    use_cuda();
    dlclose(driver.library);
    use_cuda();
    dlclose(driver.library);
    return EXIT_STATUS;
}

/* Another process of the group ends the program in the middle of a call. */
static int killed_by_child(void)
{
    use_cuda();
    pid_t parent = getpid();
    if (fork() == 0) {
        usleep(2000);
        kill(parent, SIGKILL);
        _exit(0);
    }
    for (;;)
        driver_check(driver.release(driver_alloc(&driver, 4096)), "cuMemFree_v2");
}

static const struct {
    const char *name;
    int (*run)(void);
} modes[] = {
    {"exit", end_exit},
    {"_exit", end_now},
    {"quick_exit", end_quick},
    {"exit_group", end_group},
    {"threads", end_return_with_threads},
    {"main_first", end_main_thread_first},
    {"abort", end_abort},
    {"segv", end_segv},
    {"term", end_term},
    {"kill", end_kill},
    {"exec", end_exec},
    {"exec_plain", end_exec_plain},
    {"exec_failed", end_exec_failed},
    {"fork_before", fork_before},
    {"raw_fork_before", raw_fork_before},
    {"clone_before", clone_before},
    {"fork_after", fork_after},
    {"fork_idle", fork_idle},
    {"raw_fork_after", raw_fork_after},
    {"raw_fork_idle", raw_fork_idle},
    {"clone_after", clone_after},
    {"clone_idle", clone_idle},
    {"vfork_exec", vfork_exec},
    {"vfork_nothing", vfork_nothing},
    {"spawn_cuda", spawn_cuda},
    {"spawn_plain", spawn_plain},
    {"dlclose", close_libraries},
    {"killed_by_child", killed_by_child},
};

int main(int argc, char **argv)
{
    self = "/proc/self/exe";
    static char path[4096];
    ssize_t bytes = readlink(self, path, sizeof(path) - 1);
    if (bytes > 0)
        self = path;
    for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++)
        if (strcmp(argv[1], modes[i].name) == 0)
            return modes[i].run();
    fprintf(stderr, "ends: which end?\n");
    return 2;
}
