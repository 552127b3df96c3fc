/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An allocator for a pool of PyTorch's whose memory can sleep: it is given back to the device
 * beneath the cache, which keeps the addresses, and made again when it wakes.
 */
#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
#define GRANULARITY ((size_t)2 << 20)

enum { SEGMENTS = 64 };
static struct segment {
    CUdeviceptr address;
    CUmemGenericAllocationHandle memory;
    size_t bytes;
    int device;
    bool awake;
} segments[SEGMENTS];

EXPORT void *sleep_malloc(size_t bytes, int device, void *stream);
EXPORT void sleep_free(void *address, size_t bytes, int device, void *stream);
EXPORT void sleep_all(void);
EXPORT int wake_all(void);
EXPORT int wake_and_forget(void);

static CUresult give_memory(struct segment *segment)
{
    CUmemAllocationProp wanted = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = segment->device}};
    CUmemAccessDesc access = {.location = wanted.location,
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUresult result = cuMemCreate(&segment->memory, segment->bytes, &wanted, 0);
    if (result != CUDA_SUCCESS)
        return result;
    segment->awake = true;
    result = cuMemMap(segment->address, segment->bytes, 0, segment->memory, 0);
    return result != CUDA_SUCCESS ? result
                                  : cuMemSetAccess(segment->address, segment->bytes, &access, 1);
}

static void take_memory(struct segment *segment)
{
    if (!segment->awake)
        return;
    (void)cuMemUnmap(segment->address, segment->bytes);
    (void)cuMemRelease(segment->memory);
    segment->awake = false;
}

void *sleep_malloc(size_t bytes, int device, void *stream)
{
    struct segment *segment = segments;
    (void)stream;
    while (segment < segments + SEGMENTS && segment->address != 0)
        segment++;
    if (segment == segments + SEGMENTS)
        return NULL;
    segment->bytes = (bytes + GRANULARITY - 1) / GRANULARITY * GRANULARITY;
    segment->device = device;
    if (cuMemAddressReserve(&segment->address, segment->bytes, 0, 0, 0) != CUDA_SUCCESS)
        return NULL;
    if (give_memory(segment) == CUDA_SUCCESS)
        return (void *)(uintptr_t)segment->address;
    (void)cuMemAddressFree(segment->address, segment->bytes);
    segment->address = 0;
    return NULL;
}

void sleep_free(void *address, size_t bytes, int device, void *stream)
{
    (void)bytes, (void)device, (void)stream;
    for (struct segment *segment = segments; segment < segments + SEGMENTS; segment++) {
        if (segment->address != (CUdeviceptr)(uintptr_t)address)
            continue;
        take_memory(segment);
        (void)cuMemAddressFree(segment->address, segment->bytes);
        segment->address = 0;
    }
}

void sleep_all(void)
{
    for (struct segment *segment = segments; segment < segments + SEGMENTS; segment++)
        take_memory(segment);
}

int wake_all(void)
{
    CUresult result = CUDA_SUCCESS;
    for (struct segment *segment = segments; segment < segments + SEGMENTS; segment++)
        if (segment->address != 0 && !segment->awake && result == CUDA_SUCCESS)
            result = give_memory(segment);
    return (int)result;
}

/* As wake_all(), but a handle more is taken of each segment's memory, which nobody releases. */
int wake_and_forget(void)
{
    int result = wake_all();
    CUmemGenericAllocationHandle forgotten;
    for (struct segment *segment = segments; segment < segments + SEGMENTS; segment++)
        if (segment->address != 0 && result == 0)
            result =
                (int)cuMemRetainAllocationHandle(&forgotten, (void *)(uintptr_t)segment->address);
    return result;
}
