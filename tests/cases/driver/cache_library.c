/* SPDX-License-Identifier: Apache-2.0 */
#include "cache_library.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

struct device {
    int8_t type, index;
};
enum { CUDA = 1 };

/* c10's, which the real allocator tells of every block and every refusal. */
EXPORT void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *, int64_t, uint64_t,
                                                                  uint64_t, struct device);
EXPORT void _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE(int64_t, uint64_t, uint64_t,
                                                                struct device);
/* The stream a thread asks on; the handle is in the second word here. */
struct stream {
    int64_t device;
    cudaStream_t handle;
};
EXPORT struct stream _ZN3c104cuda20getCurrentCUDAStreamEa(int8_t device);
EXPORT void *_ZNK3c104cuda10CUDAStream6streamEv(const struct stream *stream);

void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *block, int64_t bytes,
                                                           uint64_t allocated, uint64_t reserved,
                                                           struct device device)
{
    (void)block, (void)bytes, (void)allocated, (void)reserved, (void)device;
}

void _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE(int64_t bytes, uint64_t allocated,
                                                         uint64_t reserved, struct device device)
{
    (void)bytes, (void)allocated, (void)reserved, (void)device;
}

enum { BLOCKS = 256 };
enum state { NONE, LIVE, WAITING, FREE };
static struct {
    struct {
        enum state state;
        void *address;
        size_t bytes;
        cudaStream_t stream;
        cudaEvent_t event;
    } blocks[BLOCKS];
    size_t limit, allocated, reserved;
    cudaStream_t current;
} cache;

struct stream _ZN3c104cuda20getCurrentCUDAStreamEa(int8_t device)
{
    return (struct stream){device, cache.current};
}

void *_ZNK3c104cuda10CUDAStream6streamEv(const struct stream *stream)
{
    return stream->handle;
}

static void require(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) {
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorName(error));
        _Exit(3);
    }
}

EXPORT void cache_limit(size_t bytes)
{
    cache.limit = bytes;
}

static void look_at_waiting(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        if (cache.blocks[i].state == WAITING &&
            cudaEventQuery(cache.blocks[i].event) == cudaSuccess) {
            require(cudaEventDestroy(cache.blocks[i].event), "cudaEventDestroy");
            cache.blocks[i].state = FREE;
        }
    }
}

static int smallest(enum state state, size_t bytes, cudaStream_t stream)
{
    int best = -1;
    for (int i = 0; i < BLOCKS; i++) {
        if (cache.blocks[i].state == state && cache.blocks[i].stream == stream &&
            cache.blocks[i].bytes >= bytes &&
            (best < 0 || cache.blocks[i].bytes < cache.blocks[best].bytes))
            best = i;
    }
    return best;
}

/* A new segment's place, -1 when the limit or the device refuses it. */
static int extend(size_t bytes, cudaStream_t stream)
{
    int at = 0;
    while (at < BLOCKS && cache.blocks[at].state != NONE)
        at++;
    if (at == BLOCKS || (cache.limit != 0 && cache.reserved + bytes > cache.limit) ||
        cudaMalloc(&cache.blocks[at].address, bytes) != cudaSuccess)
        return -1;
    cache.blocks[at].bytes = bytes;
    cache.blocks[at].stream = stream;
    cache.reserved += bytes;
    return at;
}

EXPORT void *cache_malloc(size_t bytes, cudaStream_t stream)
{
    struct device device = {CUDA, 0};
    cache.current = stream;
    look_at_waiting();
    int at = smallest(FREE, bytes, stream);
    if (at < 0)
        at = extend(bytes, stream);
    if (at < 0) {
        _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE((int64_t)bytes, cache.allocated,
                                                            cache.reserved, device);
        return NULL;
    }
    cache.blocks[at].state = LIVE;
    cache.allocated += cache.blocks[at].bytes;
    _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(cache.blocks[at].address,
                                                          (int64_t)cache.blocks[at].bytes,
                                                          cache.allocated, cache.reserved, device);
    return cache.blocks[at].address;
}

EXPORT void cache_free(void *block, cudaStream_t waits_for)
{
    struct device device = {CUDA, 0};
    int at = 0;
    while (at < BLOCKS && (cache.blocks[at].state != LIVE || cache.blocks[at].address != block))
        at++;
    if (at == BLOCKS)
        _Exit(3);
    cache.allocated -= cache.blocks[at].bytes;
    if (waits_for == NULL) {
        cache.blocks[at].state = FREE;
    } else {
        cache.blocks[at].state = WAITING;
        require(cudaEventCreateWithFlags(&cache.blocks[at].event, cudaEventDisableTiming),
                "cudaEventCreateWithFlags");
        require(cudaEventRecord(cache.blocks[at].event, waits_for), "cudaEventRecord");
    }
    _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(block, -(int64_t)cache.blocks[at].bytes,
                                                          cache.allocated, cache.reserved, device);
}
