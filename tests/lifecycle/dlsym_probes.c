/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks the loader for names in every way a program can, and prints what it got
 * in words that do not depend on addresses: with and without the shim the output
 * must be the same, but for the names the shim hooks, which must still work.
 * Usage: dlsym-probes FOREIGN-LIBRARY [OUR-SHIM]
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "driver.h"

enum { THREADS = 8, ROUNDS = 2000 };

/* Ours, in front of the real ones further down the search order. */
int foreign_shadowed(void);
int foreign_shadowed(void)
{
    return 1;
}

static const char *owner(const void *address)
{
    Dl_info info;
    if (address == NULL)
        return "nothing";
    if (dladdr(address, &info) == 0 || info.dli_fname == NULL)
        return "unknown";
    const char *name = strrchr(info.dli_fname, '/');
    return name == NULL ? info.dli_fname : name + 1;
}

static void say(const char *how, const char *name, void *found)
{
    const char *error = dlerror();
    printf("%s %s: %s, dlerror %s\n", how, name, owner(found), error == NULL ? "none" : "set");
}

static void probe_libc(void)
{
    static const char *const names[] = {"malloc", "dlopen", "no_such_name_at_all", "getpid", "cu"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        say("default", names[i], dlsym(RTLD_DEFAULT, names[i]));
        say("next", names[i], dlsym(RTLD_NEXT, names[i]));
    }
    say("version", "realpath GLIBC_2.3", dlvsym(RTLD_DEFAULT, "realpath", "GLIBC_2.3"));
    say("version", "realpath GLIBC_9.9", dlvsym(RTLD_DEFAULT, "realpath", "GLIBC_9.9"));
    say("next version", "memcpy GLIBC_2.14", dlvsym(RTLD_NEXT, "memcpy", "GLIBC_2.14"));
    void *own = dlopen(NULL, RTLD_NOW);
    say("program", "foreign_shadowed", dlsym(own, "foreign_shadowed"));
    say("default", "foreign_shadowed", dlsym(RTLD_DEFAULT, "foreign_shadowed"));
    dlclose(own);
}

/* Names of other libraries that begin like CUDA's own. */
static void probe_foreign(const char *path, int flags, const char *how)
{
    static const char *const names[] = {"cudnnCreate",      "cublasCreate_v2", "cufftPlan1d",
                                        "cuteness",         "cuddle",          "cudaNotReally",
                                        "foreign_shadowed", "cuMemAlloc_v99"};
    void *library = dlopen(path, flags);
    if (library == NULL) {
        printf("%s: not loaded: %s\n", how, dlerror());
        return;
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        int (*function)(void) = NULL;
        *(void **)&function = dlsym(library, names[i]);
        say(how, names[i], *(void **)&function);
        if (function != NULL)
            printf("  returns %d\n", function());
    }
    int (*through)(void) = NULL;
    *(void **)&through = dlsym(library, "foreign_asks_next");
    printf("%s: its own RTLD_NEXT: %d\n", how, through == NULL ? -1 : through());
    dlclose(library);
}

static void *same_every_time(void *wrong)
{
    void *first[3] = {dlsym(RTLD_NEXT, "getpid"), dlsym(RTLD_NEXT, "no_such_name_at_all"),
                      dlsym(RTLD_DEFAULT, "realpath")};
    for (int i = 0; i < ROUNDS; i++) {
        if (dlsym(RTLD_NEXT, "getpid") != first[0] ||
            dlsym(RTLD_NEXT, "no_such_name_at_all") != first[1] ||
            dlsym(RTLD_DEFAULT, "realpath") != first[2])
            atomic_fetch_add((_Atomic int *)wrong, 1);
    }
    return NULL;
}

static void probe_threads(void)
{
    pthread_t threads[THREADS];
    _Atomic int wrong = 0;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, same_every_time, &wrong) != 0)
            _exit(3);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%d threads, %d look-ups each: %d differ\n", THREADS, ROUNDS * 3, wrong);
}

/* The names that are hooked: found by every way, all of them usable. */
static void probe_cuda(void)
{
    struct driver driver = driver_open();
    int (*by_handle)(int *) = NULL;
    int (*get)(const char *, void **, int, uint64_t, int *) = NULL;
    int version = 0;
    *(void **)&by_handle = driver_need(driver.library, "cuDriverGetVersion");
    *(void **)&get = driver_need(driver.library, "cuGetProcAddress_v2");
    driver_start(&driver);
    printf("version %d\n", by_handle(&version));
    int (*alloc)(uint64_t *, size_t) = NULL;
    int status = -1;
    int result = get("cuMemAlloc", (void **)&alloc, 12000, 0, &status);
    uint64_t address = 0;
    printf("cuGetProcAddress cuMemAlloc: %d status %d call %d\n", result, status,
           alloc == NULL ? -1 : alloc(&address, 4096));
    printf("free %d\n", driver.release(address));
    void *unknown = (void *)&status;
    result = get("cuNoSuchCallEver", &unknown, 12000, 0, &status);
    printf("cuGetProcAddress of nothing: %d status %d null %d\n", result, status, unknown == NULL);
    void *in_order = dlsym(driver.library, "cuCtxGetApiVersion");
    printf("same twice: %d\n", in_order == dlsym(driver.library, "cuCtxGetApiVersion"));
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    probe_libc();
    probe_foreign(argv[1], RTLD_NOW | RTLD_LOCAL, "local");
    probe_foreign(argv[1], RTLD_NOW | RTLD_GLOBAL, "global");
    probe_foreign(argv[1], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND, "deepbind");
    probe_threads();
    probe_cuda();
    if (argc > 2) { /* a second time, by its path */
        void *again = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
        fprintf(stderr, "second load: %s\n", again == NULL ? dlerror() : "loaded");
        probe_threads();
        probe_cuda();
    }
    return 0;
}
