/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocates device memory through a function of its own and one of a library
 * beside it: allocates ROUNDS [PAUSE_MS]. Looks the driver up as a runtime does.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int allocate_function(unsigned long long *address, size_t bytes);
typedef int free_function(unsigned long long address);

int step_in_library(allocate_function *allocate, free_function *release, size_t bytes);

static void *look_up(void *driver, const char *name)
{
    void *found = dlsym(driver, name);
    if (!found) {
        fprintf(stderr, "no %s\n", name);
        exit(2);
    }
    return found;
}

__attribute__((noinline)) static int step_in_program(allocate_function *allocate,
                                                     free_function *release, size_t bytes)
{
    unsigned long long address = 0;
    int result = allocate(&address, bytes);
    return result ? result : release(address);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 10;
    struct timespec pause = {0, argc > 2 ? atol(argv[2]) * 1000000L : 0};
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *context = NULL;
    int (*init)(unsigned), (*retain)(void **, int), (*set)(void *);
    allocate_function *allocate;
    free_function *release;
    if (!driver)
        return 2;
    *(void **)&init = look_up(driver, "cuInit");
    *(void **)&retain = look_up(driver, "cuDevicePrimaryCtxRetain");
    *(void **)&set = look_up(driver, "cuCtxSetCurrent");
    *(void **)&allocate = look_up(driver, "cuMemAlloc_v2");
    *(void **)&release = look_up(driver, "cuMemFree_v2");
    int error = init(0) || retain(&context, 0) || set(context);
    puts("ready");
    fflush(stdout);
    for (int i = 0; i < rounds && !error; i++) {
        error = step_in_program(allocate, release, 1 << 20) ||
                step_in_library(allocate, release, 2 << 20);
        nanosleep(&pause, NULL);
    }
    return error;
}
