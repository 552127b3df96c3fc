/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver of a few functions with exact, boring behaviour, for the tests of
 * the hooks: results are set by the test, calls are counted, and some functions
 * can be told to work through others, as interposed drivers do.
 */
#include "fake_cuda.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "../../../shim/cuda_abi.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT struct fake_cuda fake_cuda;
static char context_of_device[2];

static void *outer(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}

EXPORT int cuInit(unsigned flags);
int cuInit(unsigned flags)
{
    return (int)flags;
}

EXPORT int cuCtxGetCurrent(void **out);
int cuCtxGetCurrent(void **out)
{
    *out = fake_cuda.has_context ? &context_of_device[fake_cuda.device] : NULL;
    return 0;
}

EXPORT int cuCtxGetDevice(int *out);
int cuCtxGetDevice(int *out)
{
    *out = fake_cuda.device;
    return 0;
}

/* What is pushed is device 1's context. */
EXPORT int cuCtxPushCurrent_v2(void *context);
int cuCtxPushCurrent_v2(void *context)
{
    (void)context;
    fake_cuda.pushed++;
    return 0;
}

EXPORT int cuCtxPopCurrent_v2(void **out);
int cuCtxPopCurrent_v2(void **out)
{
    *out = &context_of_device[1];
    fake_cuda.pushed--;
    return 0;
}

EXPORT int cuDevicePrimaryCtxRetain(void **out, int device);
int cuDevicePrimaryCtxRetain(void **out, int device)
{
    fake_cuda.context_calls++;
    *out = &context_of_device[device];
    return fake_cuda.result;
}

EXPORT int cuMemGetAddressRange_v2(uint64_t *base, size_t *bytes, uint64_t address);
int cuMemGetAddressRange_v2(uint64_t *base, size_t *bytes, uint64_t address)
{
    *base = address & ~0xfffULL;
    *bytes = 0x1234;
    return 0;
}

EXPORT int cuDeviceGetName(char *out, int bytes, int device);
int cuDeviceGetName(char *out, int bytes, int device)
{
    strncpy(out, device == 0 ? "fake 0" : "fake 1", (size_t)bytes);
    return 0;
}

EXPORT int cuDeviceTotalMem_v2(size_t *out, int device);
int cuDeviceTotalMem_v2(size_t *out, int device)
{
    *out = (size_t)(device + 1) << 30;
    return 0;
}

EXPORT int cuMemGetInfo_v2(size_t *free_bytes, size_t *total);
int cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    fake_cuda.free_questions++;
    usleep((useconds_t)fake_cuda.free_question_us);
    *free_bytes = fake_cuda.pushed ? 1700 : 1000;
    *total = 5000;
    return 0;
}

EXPORT int cuMemAlloc_v2(uint64_t *out, size_t bytes);
int cuMemAlloc_v2(uint64_t *out, size_t bytes)
{
    fake_cuda.alloc_calls++;
    if (fake_cuda.alloc_through_create) {
        int (*create)(uint64_t *, size_t, const void *, unsigned long long);
        *(void **)&create = outer("cuMemCreate");
        uint64_t handle = 0;
        create(&handle, bytes, NULL, 0);
    }
    *out = 0x1000 * (uint64_t)fake_cuda.alloc_calls;
    return fake_cuda.result;
}

/* The first driver, of 32-bit addresses. */
EXPORT int cuMemAlloc(unsigned *out, unsigned bytes);
int cuMemAlloc(unsigned *out, unsigned bytes)
{
    *out = bytes;
    return 0;
}

EXPORT int cuMemFree_v2(uint64_t address);
int cuMemFree_v2(uint64_t address)
{
    fake_cuda.free_calls++;
    if (fake_cuda.free_through_free) {
        int (*again)(uint64_t);
        *(void **)&again = outer("cuMemFree_v2");
        fake_cuda.free_through_free = 0;
        return again(address);
    }
    if (fake_cuda.free_through_unmap) {
        int (*unmap)(uint64_t, size_t);
        *(void **)&unmap = outer("cuMemUnmap");
        unmap(address, 64);
    }
    if (fake_cuda.on_free != NULL) {
        fake_cuda.on_free();
    }
    return fake_cuda.result;
}

EXPORT int cuMemCreate(uint64_t *out, size_t bytes, const void *props, unsigned long long flags);
int cuMemCreate(uint64_t *out, size_t bytes, const void *props, unsigned long long flags)
{
    (void)bytes, (void)props, (void)flags;
    *out = 77;
    return fake_cuda.result;
}

EXPORT int cuMemUnmap(uint64_t address, size_t bytes);
int cuMemUnmap(uint64_t address, size_t bytes)
{
    (void)address, (void)bytes;
    return fake_cuda.result;
}

EXPORT int cuEventQuery(void *event);
int cuEventQuery(void *event)
{
    (void)event;
    return fake_cuda.result;
}

EXPORT int cuDeviceGetMemPool(void **out, int device);
int cuDeviceGetMemPool(void **out, int device)
{
    *out = (void *)(uintptr_t)(0x9000 + device);
    return 0;
}

EXPORT int cuMemPoolGetAttribute(void *pool, int attribute, void *value);
int cuMemPoolGetAttribute(void *pool, int attribute, void *value)
{
    (void)pool;
    *(uint64_t *)value = (uint64_t)attribute * 100;
    return 0;
}

EXPORT int cuMemAllocAsync(uint64_t *out, size_t bytes, void *stream);
int cuMemAllocAsync(uint64_t *out, size_t bytes, void *stream)
{
    (void)bytes, (void)stream;
    *out = 0xa000;
    return fake_cuda.result;
}

EXPORT int cuMemAllocAsync_ptsz(uint64_t *out, size_t bytes, void *stream);
int cuMemAllocAsync_ptsz(uint64_t *out, size_t bytes, void *stream)
{
    (void)bytes, (void)stream;
    *out = 0xb000;
    return fake_cuda.result;
}

EXPORT int cuStreamBeginCapture_v2(void *stream, int mode);
int cuStreamBeginCapture_v2(void *stream, int mode)
{
    (void)mode;
    fake_cuda.capturing = stream;
    return 0;
}

EXPORT int cuStreamEndCapture(void *stream, void **graph);
int cuStreamEndCapture(void *stream, void **graph)
{
    (void)stream;
    fake_cuda.capturing = NULL;
    *graph = (void *)0x6000;
    return 0;
}

EXPORT int cuStreamIsCapturing(void *stream, int *status);
int cuStreamIsCapturing(void *stream, int *status)
{
    *status = stream == fake_cuda.capturing;
    return 0;
}

/* A name that no table knows. */
EXPORT int cuMemNewThing(int value);
int cuMemNewThing(int value)
{
    return value + 1;
}

EXPORT int cuMemAlloc_v9(uint64_t *out, size_t bytes, int more);
int cuMemAlloc_v9(uint64_t *out, size_t bytes, int more)
{
    (void)out, (void)bytes;
    return more;
}

EXPORT int cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags,
                               int *status);
int cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status)
{
    static const struct {
        const char *name;
        int since;
        unsigned flags;
        const char *symbol;
    } variants[] = {
        {"cuMemAlloc", 99000, 0, "cuMemAlloc_v9"},
        {"cuMemAlloc", 3020, 0, "cuMemAlloc_v2"},
        {"cuMemAlloc", 2000, 0, "cuMemAlloc"},
        {"cuMemFree", 3020, 0, "cuMemFree_v2"},
        {"cuMemGetInfo", 3020, 0, "cuMemGetInfo_v2"},
        {"cuMemAllocAsync", 11020, 2, "cuMemAllocAsync_ptsz"},
        {"cuMemAllocAsync", 11020, 0, "cuMemAllocAsync"},
        {"cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2"},
        {"cuMemNewThing", 2000, 0, "cuMemNewThing"},
        {"cuInit", 2000, 0, "cuInit"},
    };
    void *self = dlopen(FAKE_CUDA_NAME, RTLD_NOW | RTLD_NOLOAD);
    *out = NULL;
    for (size_t i = 0; *out == NULL && i < sizeof(variants) / sizeof(variants[0]); i++) {
        if (strcmp(variants[i].name, name) == 0 && version >= variants[i].since &&
            (variants[i].flags & ~flags) == 0) {
            *out = fake_cuda.raw_symbol(self, variants[i].symbol);
        }
    }
    if (status != NULL) {
        *status = *out == NULL;
    }
    dlclose(self);
    return *out != NULL ? 0 : 500;
}
