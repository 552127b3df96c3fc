/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the simulated runtime finds the driver: one dlopen, one dlsym, then
 * cuGetProcAddress for everything, itself included. Also where every entry
 * point enters, and where the thread's last error lives.
 */
#include "runtime.h"

#include "../common/inject.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct simrt simrt = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t loaded = PTHREAD_ONCE_INIT;
static __thread cudaError_t last_error;

enum { FLAG_DEFAULT = 0, FLAG_PER_THREAD = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM };

static void resolve(PFN_cuGetProcAddress_v12000 get, const char *name, int version,
                    cuuint64_t flags, void *slot)
{
    void *address = NULL;
    CUdriverProcAddressQueryResult found;
    if (get(name, &address, version, flags, &found) != CUDA_SUCCESS)
        address = NULL;
    memcpy(slot, &address, sizeof(address));
}

/* The driver may hand out another cuGetProcAddress than dlsym found (a
 * profiler's): what it names is the one to ask from then on. */
static PFN_cuGetProcAddress_v12000 resolver_named_by(PFN_cuGetProcAddress_v12000 first)
{
    PFN_cuGetProcAddress_v11030 old = NULL;
    PFN_cuGetProcAddress_v12000 current = NULL;
    void *nothing = NULL;
    resolve(first, "", 0, FLAG_DEFAULT, &nothing); /* the real one begins so */
    resolve(first, "cuGetProcAddress", 11030, FLAG_DEFAULT, &old);
    resolve(first, "cuGetProcAddress", 12000, FLAG_DEFAULT, &current);
    return current ? current : first;
}

static void resolve_all(PFN_cuGetProcAddress_v12000 get)
{
    struct simrt_driver *driver = &simrt.driver;
#define DRIVER_CALL(name, version) resolve(get, "cu" #name, version, FLAG_DEFAULT, &driver->name);
#define DRIVER_STREAM_CALL(name, version)                                         \
    resolve(get, "cu" #name, version, FLAG_DEFAULT, &driver->name[SIMRT_LEGACY]); \
    resolve(get, "cu" #name, version, FLAG_PER_THREAD, &driver->name[SIMRT_PER_THREAD]);
#include "driver_calls.def"
#undef DRIVER_CALL
#undef DRIVER_STREAM_CALL
}

static cudaError_t count_devices(void)
{
    int count = 0;
    cudaError_t error = DRV(DeviceGetCount, &count);
    if (error != cudaSuccess)
        return error;
    simrt.device_count = count < SIMRT_MAX_DEVICES ? count : SIMRT_MAX_DEVICES;
    for (int i = 0; i < simrt.device_count; i++) {
        error = DRV(DeviceGet, &simrt.devices[i].handle, i);
        if (error != cudaSuccess)
            return error;
    }
    return count > 0 ? cudaSuccess : cudaErrorNoDevice;
}

static void load_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, "cuGetProcAddress_v2") : NULL;
    PFN_cuGetProcAddress_v12000 get;
    memcpy(&get, &symbol, sizeof(get));
    if (!get) {
        simrt.load_error = cudaErrorInsufficientDriver;
        return;
    }
    resolve_all(resolver_named_by(get));
    simgpu_inject_init("cuda", simrt_error_number);
    simrt.load_error = DRV(Init, 0);
    if (simrt.load_error == cudaSuccess)
        simrt.load_error = count_devices();
}

cudaError_t simrt_load(void)
{
    pthread_once(&loaded, load_driver);
    return simrt.load_error;
}

/* The entry point that a C function implements: both variants of a call share
 * one function named after it. */
static cudaError_t inject(const char *function, uint64_t bytes)
{
    static const char lane_suffix[] = "_on_lane";
    char name[80];
    size_t length = strnlen(function, sizeof(name) - 1);
    size_t suffix = sizeof(lane_suffix) - 1;
    if (length > suffix && memcmp(function + length - suffix, lane_suffix, suffix) == 0)
        length -= suffix;
    memcpy(name, function, length);
    name[length] = '\0';
    return (cudaError_t)simgpu_inject_call(name, bytes);
}

cudaError_t simrt_begin_without_context(const char *function, uint64_t bytes)
{
    cudaError_t error = simrt_load();
    return error == cudaSuccess && simgpu_inject_active ? inject(function, bytes) : error;
}

cudaError_t simrt_begin(const char *function, uint64_t bytes)
{
    cudaError_t error = simrt_begin_without_context(function, bytes);
    return error == cudaSuccess ? simrt_ensure_context() : error;
}

cudaError_t simrt_leave(cudaError_t error)
{
    if (error != cudaSuccess)
        last_error = error;
    return error;
}

cudaError_t simrt_last_error(bool reset)
{
    cudaError_t error = last_error;
    if (reset)
        last_error = cudaSuccess;
    return error;
}

/* One line per name, written without stdio: this may run in any thread of any
 * program. Names are string literals, so comparing addresses is enough. */
static void say_once(const char *what, const char *name)
{
    enum { REMEMBERED = 256 };
    static const char *said[REMEMBERED];
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < REMEMBERED && said[i] && said[i] != name)
        i++;
    bool fresh = i < REMEMBERED && !said[i];
    if (fresh)
        said[i] = name;
    pthread_mutex_unlock(&lock);
    if (!fresh)
        return;
    char line[160];
    int length = snprintf(line, sizeof(line), "simgpu: %s: %s\n", what, name);
    if (length > 0 && write(STDERR_FILENO, line, (size_t)length) < 0)
        return;
}

cudaError_t simrt_unsupported(const char *name)
{
    say_once("not simulated", name);
    return simrt_leave(cudaErrorNotSupported);
}

cudaError_t simrt_driver_lacks(const char *name)
{
    say_once("the driver has no", name);
    return cudaErrorNotSupported;
}
