/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints what a program can notice about itself: descriptors, threads, children,
 * signal masks and actions, limits, locale, umask, timers, errno over calls. Run
 * with and without the shim, the two outputs must be the same. Usage:
 * unchanged idle | cuda
 */
#include <dirent.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "driver.h"

enum { STRANGE_ERRNO = 1234 };

/* Number of entries of a folder of /proc; the one that reads it is counted out. */
static int entries(const char *path)
{
    int count = 0;
    DIR *folder = opendir(path);
    if (folder == NULL)
        return -1;
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

static void show_descriptors(const char *when)
{
    printf("%s descriptors", when);
    for (int fd = 0; fd < 256; fd++) {
        char name[64];
        char target[512];
        snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
        ssize_t bytes = readlink(name, target, sizeof(target) - 1);
        if (bytes < 0)
            continue;
        printf(" %d(%s)", fd, strncmp(target, "/memfd:", (size_t)7) == 0 ? "memfd" : "file");
    }
    printf("\n");
}

static void show_signals(const char *when)
{
    sigset_t mask;
    printf("%s signals", when);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    for (int number = 1; number < 65; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) != 0)
            continue;
        printf(" %d%s%s", sigismember(&mask, number), action.sa_handler == SIG_DFL ? "d" : "",
               action.sa_handler == SIG_IGN ? "i" : "");
    }
    sigset_t pending;
    int count = 0;
    sigemptyset(&pending);
    sigpending(&pending);
    for (int number = 1; number < 65; number++)
        count += sigismember(&pending, number) == 1;
    printf(" pending %d\n", count);
}

static void show_limits(const char *when)
{
    printf("%s limits", when);
    for (int resource = 0; resource < (int)RLIM_NLIMITS; resource++) {
        struct rlimit limit;
        if (getrlimit((__rlimit_resource_t)resource, &limit) == 0)
            printf(" %llu/%llu", (unsigned long long)limit.rlim_cur,
                   (unsigned long long)limit.rlim_max);
    }
    mode_t mask = umask(0);
    umask(mask);
    printf(" umask %o priority %d\n", mask, getpriority(PRIO_PROCESS, 0));
}

static void show_rest(const char *when)
{
    int subreaper = 0;
    int death_signal = 0;
    prctl(PR_GET_CHILD_SUBREAPER, &subreaper);
    prctl(PR_GET_PDEATHSIG, &death_signal);
    int status = 0;
    errno = 0;
    pid_t child = waitpid(-1, &status, WNOHANG);
    printf("%s threads %d wait %d errno %d locale %s subreaper %d death signal %d dumpable %d\n",
           when, entries("/proc/self/task"), child > 0 ? 1 : (int)child, errno,
           setlocale(LC_ALL, NULL), subreaper, death_signal, prctl(PR_GET_DUMPABLE));
}

static void show(const char *when)
{
    show_descriptors(when);
    show_signals(when);
    show_limits(when);
    show_rest(when);
    fflush(stdout);
}

static void cuda_calls(void)
{
    struct driver driver = driver_open();
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    uint64_t address = 0;
    driver_start(&driver);
    show("started");
    errno = STRANGE_ERRNO;
    int result = driver.alloc(&address, 1 << 20);
    printf("alloc %d errno %d\n", result, errno);
    result = driver.mem_info(&free_bytes, &total_bytes);
    printf("mem_info %d errno %d\n", result, errno);
    result = driver.release(address);
    printf("free %d errno %d\n", result, errno);
    result = driver.release(address);
    printf("free again %d errno %d\n", result, errno);
    result = driver.alloc(&address, (size_t)1 << 60);
    printf("too much %d errno %d\n", result, errno);
    void *missing = dlsym(driver.library, "cuNoSuchCall");
    printf("missing symbol %d errno %d dlerror %d\n", missing != NULL, errno, dlerror() != NULL);
}

int main(int argc, char **argv)
{
    setlocale(LC_ALL, "");
    signal(SIGUSR1, SIG_IGN);
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    show("start");
    if (argc > 1 && strcmp(argv[1], "cuda") == 0)
        cuda_calls();
    usleep(300000); /* a collector that is slow to start shows by now */
    show("end");
    return 0;
}
