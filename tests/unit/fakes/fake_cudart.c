/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A CUDA runtime that reaches the driver as a real one does: one dlopen, one
 * dlsym of cuGetProcAddress_v2. FAKE_TAG tells two of them apart.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

static int (*driver_alloc)(uint64_t *, size_t);
static int (*driver_free)(uint64_t);

EXPORT int fake_cudart_connect(const char *driver_path);
int fake_cudart_connect(const char *driver_path)
{
    int (*look_up)(const char *, void **, int, uint64_t, int *);
    void *driver = dlopen(driver_path, RTLD_NOW | RTLD_LOCAL);
    *(void **)&look_up = dlsym(driver, "cuGetProcAddress_v2");
    int status = 0;
    return look_up("cuGetProcAddress", (void **)&look_up, 12000, 0, &status) |
           look_up("cuMemAlloc", (void **)&driver_alloc, 3020, 0, &status) |
           look_up("cuMemFree", (void **)&driver_free, 3020, 0, &status);
}

EXPORT int fake_cudart_tag(void);
int fake_cudart_tag(void)
{
    return FAKE_TAG;
}

/* Without a driver, memory of its own: as opaque as a runtime linked in some unknown way. */
EXPORT int cudaMalloc(void **out, size_t bytes);
int cudaMalloc(void **out, size_t bytes)
{
    if (driver_alloc != NULL) {
        return driver_alloc((uint64_t *)out, bytes);
    }
    *out = (void *)(uintptr_t)(FAKE_TAG * 0x100000 + bytes);
    return 0;
}

EXPORT int cudaFree(void *address);
int cudaFree(void *address)
{
    return driver_free != NULL ? driver_free((uint64_t)(uintptr_t)address) : 0;
}

EXPORT int cudaEventQuery(void *event);
int cudaEventQuery(void *event)
{
    (void)event;
    return FAKE_TAG;
}
