/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The few driver calls that most life-cycle programs need, found the way real
 * programs find them (dlopen, dlsym), so that the programs build without CUDA
 * headers and link to nothing. A failed call ends the program with status 3 and
 * a line that names it: the runner compares traced and untraced runs.
 */
#ifndef LIFECYCLE_DRIVER_H
#define LIFECYCLE_DRIVER_H

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct driver {
    void *library;
    int (*init)(unsigned);
    int (*device_get)(int *, int);
    int (*context_retain)(void **, int);
    int (*context_set)(void *);
    int (*alloc)(uint64_t *, size_t);
    int (*release)(uint64_t);
    int (*mem_info)(size_t *, size_t *);
};

static inline void *driver_need(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (found == NULL) {
        fprintf(stderr, "no %s in the CUDA driver\n", name);
        fflush(stdout);
        _exit(3);
    }
    return found;
}

static inline void driver_check(int result, const char *what)
{
    if (result != 0) {
        fprintf(stderr, "%s returned %d\n", what, result);
        fflush(stdout);
        _exit(3);
    }
}

/*
 * Opens the driver and looks the calls up; makes none. With LIFECYCLE_GLOBAL set
 * the calls are those a program that links to the driver would get.
 */
static inline struct driver driver_open(void)
{
    int global = getenv("LIFECYCLE_GLOBAL") != NULL;
    struct driver driver = {
        .library = dlopen("libcuda.so.1", RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL))};
    if (driver.library == NULL) {
        fprintf(stderr, "no CUDA driver: %s\n", dlerror());
        fflush(stdout);
        _exit(3);
    }
    void *scope = global ? RTLD_DEFAULT : driver.library;
    *(void **)&driver.init = driver_need(scope, "cuInit");
    *(void **)&driver.device_get = driver_need(scope, "cuDeviceGet");
    *(void **)&driver.context_retain = driver_need(scope, "cuDevicePrimaryCtxRetain");
    *(void **)&driver.context_set = driver_need(scope, "cuCtxSetCurrent");
    *(void **)&driver.alloc = driver_need(scope, "cuMemAlloc_v2");
    *(void **)&driver.release = driver_need(scope, "cuMemFree_v2");
    *(void **)&driver.mem_info = driver_need(scope, "cuMemGetInfo_v2");
    return driver;
}

/* cuInit and the primary context of device 0 made current; returns the context. */
static inline void *driver_start(const struct driver *driver)
{
    int device = 0;
    void *context = NULL;
    driver_check(driver->init(0), "cuInit");
    driver_check(driver->device_get(&device, 0), "cuDeviceGet");
    driver_check(driver->context_retain(&context, device), "cuDevicePrimaryCtxRetain");
    driver_check(driver->context_set(context), "cuCtxSetCurrent");
    return context;
}

static inline uint64_t driver_alloc(const struct driver *driver, size_t bytes)
{
    uint64_t address = 0;
    driver_check(driver->alloc(&address, bytes), "cuMemAlloc_v2");
    return address;
}

static inline uint64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

#endif
