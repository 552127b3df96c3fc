/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loader's lock against a lock of the program. Each round is a fresh child:
 * one thread sits inside dlopen, in a library's constructor that waits for a
 * lock; the main thread holds that lock and makes the first call it ever makes
 * of every entry point in the list. A hook that asks the loader for anything
 * never comes back. Usage: ctor-deadlock ROUNDS PLUGIN NAME…
 *
 * Names are called with six zero arguments: each call fails or does nothing, what
 * counts is that it returns. The untraced run shows that the CUDA libraries
 * themselves do not need the loader here (they are started before the lock).
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>

#include "driver.h"

enum { MAX_NAMES = 1024, ROUND_TIMEOUT_S = 30 };

typedef int entry_point(long, long, long, long, long, long);

struct plugin_lock {
    pthread_mutex_t mutex;
    _Atomic int waiting; /* raised by the constructor before it asks for the mutex */
};

struct plugin_lock ctor_plugin_lock = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static entry_point *entry_points[MAX_NAMES];

static void *load_plugin(void *path)
{
    if (dlopen(path, RTLD_NOW | RTLD_LOCAL) == NULL) {
        fprintf(stderr, "ctor-deadlock: %s\n", dlerror());
        _exit(3);
    }
    return NULL;
}

/* Finds the names in the driver and in the runtime, where there is one. */
static int look_up(int argc, char **names)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *runtime = dlopen("libcudart.so.12", RTLD_NOW | RTLD_LOCAL);
    int found = 0;
    if (driver == NULL) {
        fprintf(stderr, "ctor-deadlock: %s\n", dlerror());
        _exit(3);
    }
    for (int i = 0; i < argc && found < MAX_NAMES; i++) {
        bool of_driver = names[i][2] >= 'A' && names[i][2] <= 'Z';
        void *library = of_driver ? driver : runtime;
        void *entry = library == NULL ? NULL : dlsym(library, names[i]);
        if (entry != NULL)
            *(void **)&entry_points[found++] = entry;
    }
    /* The runtime opens the driver in its first call, which needs the loader. */
    if (runtime != NULL) {
        int (*count)(int *) = NULL;
        int devices = 0;
        *(void **)&count = driver_need(runtime, "cudaGetDeviceCount");
        driver_check(count(&devices), "cudaGetDeviceCount");
    }
    return found;
}

static int round_in_child(const char *plugin, int argc, char **names, bool say)
{
    pthread_t loader;
    int found = look_up(argc, names);
    pthread_mutex_lock(&ctor_plugin_lock.mutex);
    if (pthread_create(&loader, NULL, load_plugin, (void *)(uintptr_t)plugin) != 0)
        return 3;
    while (!ctor_plugin_lock.waiting)
        usleep(100);
    for (int i = 0; i < found; i++)
        entry_points[i](0, 0, 0, 0, 0, 0);
    pthread_mutex_unlock(&ctor_plugin_lock.mutex);
    pthread_join(loader, NULL);
    if (say) {
        printf("entry points called %d\n", found);
        fflush(stdout);
    }
    return 0;
}

/* The child's exit status, or -1 when it did not come back in time. */
static int wait_for(pid_t child)
{
    int status = 0;
    for (int i = 0; i < ROUND_TIMEOUT_S * 1000; i++) {
        pid_t got = waitpid(child, &status, WNOHANG);
        if (got == child)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        usleep(1000);
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return -1;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    long rounds = strtol(argv[1], NULL, 10);
    for (long i = 0; i < rounds; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(round_in_child(argv[2], argc - 3, argv + 3, i == 0));
        int status = wait_for(child);
        if (status != 0) {
            printf("round %ld: %s %d\n", i, status < 0 ? "deadlock" : "status", status);
            return 1;
        }
    }
    printf("%ld rounds\n", rounds);
    return 0;
}
