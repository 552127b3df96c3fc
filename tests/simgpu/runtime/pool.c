/* SPDX-License-Identifier: Apache-2.0 */
/* Stream-ordered allocation and memory pools. */
#include "runtime.h"

#include <cuda_runtime_api.h>

_Static_assert(sizeof(struct cudaMemPoolProps) == sizeof(CUmemPoolProps), "one layout, two names");
_Static_assert(sizeof(struct cudaMemAccessDesc) == sizeof(CUmemAccessDesc),
               "one layout, two names");
_Static_assert(sizeof(struct cudaMemPoolPtrExportData) == sizeof(CUmemPoolPtrExportData),
               "one layout, two names");

static cudaError_t allocate_async(enum simrt_lane lane, void **pointer, size_t size,
                                  cudaStream_t stream)
{
    if (!pointer)
        return cudaErrorInvalidValue;
    *pointer = NULL;
    return size ? DRV_ON(lane, MemAllocAsync, (CUdeviceptr *)pointer, size, stream) : cudaSuccess;
}

RT_STREAM_ENTRY(cudaMallocAsync, _ptsz, (void **devPtr, size_t size, cudaStream_t hStream),
                (devPtr, size, hStream),
                RT_CALL_OF(size, allocate_async(lane, devPtr, size, hStream)))

static cudaError_t allocate_from_pool(enum simrt_lane lane, void **pointer, size_t size,
                                      cudaMemPool_t pool, cudaStream_t stream)
{
    if (!pointer)
        return cudaErrorInvalidValue;
    *pointer = NULL;
    return size ? DRV_ON(lane, MemAllocFromPoolAsync, (CUdeviceptr *)pointer, size, pool, stream)
                : cudaSuccess;
}

RT_STREAM_ENTRY(cudaMallocFromPoolAsync, _ptsz,
                (void **ptr, size_t size, cudaMemPool_t memPool, cudaStream_t stream),
                (ptr, size, memPool, stream),
                RT_CALL_OF(size, allocate_from_pool(lane, ptr, size, memPool, stream)))

RT_STREAM_ENTRY(cudaFreeAsync, _ptsz, (void *devPtr, cudaStream_t hStream), (devPtr, hStream),
                RT_CALL(devPtr ? DRV_ON(lane, MemFreeAsync, (CUdeviceptr)devPtr, hStream)
                               : cudaSuccess))

cudaError_t cudaMemPoolCreate(cudaMemPool_t *memPool, const struct cudaMemPoolProps *poolProps)
{
    return RT_CALL(DRV(MemPoolCreate, memPool, (const CUmemPoolProps *)poolProps));
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t memPool)
{
    return RT_CALL(DRV(MemPoolDestroy, memPool));
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t memPool, size_t minBytesToKeep)
{
    return RT_CALL(DRV(MemPoolTrimTo, memPool, minBytesToKeep));
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void *value)
{
    return RT_CALL(DRV(MemPoolSetAttribute, memPool, (CUmemPool_attribute)attr, value));
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void *value)
{
    return RT_CALL(DRV(MemPoolGetAttribute, memPool, (CUmemPool_attribute)attr, value));
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t memPool, const struct cudaMemAccessDesc *descList,
                                 size_t count)
{
    return RT_CALL(DRV(MemPoolSetAccess, memPool, (const CUmemAccessDesc *)descList, count));
}

cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t memPool,
                                 struct cudaMemLocation *location)
{
    return RT_CALL(
        DRV(MemPoolGetAccess, (CUmemAccess_flags *)flags, memPool, (CUmemLocation *)location));
}

cudaError_t cudaMemPoolExportToShareableHandle(void *shareableHandle, cudaMemPool_t memPool,
                                               enum cudaMemAllocationHandleType handleType,
                                               unsigned flags)
{
    return RT_CALL(DRV(MemPoolExportToShareableHandle, shareableHandle, memPool,
                       (CUmemAllocationHandleType)handleType, flags));
}

cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t *memPool, void *shareableHandle,
                                                 enum cudaMemAllocationHandleType handleType,
                                                 unsigned flags)
{
    return RT_CALL(DRV(MemPoolImportFromShareableHandle, memPool, shareableHandle,
                       (CUmemAllocationHandleType)handleType, flags));
}

cudaError_t cudaMemPoolExportPointer(struct cudaMemPoolPtrExportData *exportData, void *ptr)
{
    return RT_CALL(
        DRV(MemPoolExportPointer, (CUmemPoolPtrExportData *)exportData, (CUdeviceptr)ptr));
}

cudaError_t cudaMemPoolImportPointer(void **ptr, cudaMemPool_t memPool,
                                     struct cudaMemPoolPtrExportData *exportData)
{
    return RT_CALL(DRV(MemPoolImportPointer, (CUdeviceptr *)ptr, memPool,
                       (CUmemPoolPtrExportData *)exportData));
}

/* Calls that name a device by its ordinal. */
#define ON_DEVICE(device, ...)                                                                 \
    RT_CALL_WITHOUT_CONTEXT(simrt_check_device(device) != cudaSuccess ? cudaErrorInvalidDevice \
                                                                      : (__VA_ARGS__))

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *memPool, int device)
{
    return ON_DEVICE(device, DRV(DeviceGetDefaultMemPool, memPool, simrt.devices[device].handle));
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *memPool, int device)
{
    return ON_DEVICE(device, DRV(DeviceGetMemPool, memPool, simrt.devices[device].handle));
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t memPool)
{
    return ON_DEVICE(device, DRV(DeviceSetMemPool, simrt.devices[device].handle, memPool));
}

cudaError_t cudaDeviceGraphMemTrim(int device)
{
    return ON_DEVICE(device, DRV(DeviceGraphMemTrim, simrt.devices[device].handle));
}

cudaError_t cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attr,
                                           void *value)
{
    return ON_DEVICE(device, DRV(DeviceGetGraphMemAttribute, simrt.devices[device].handle,
                                 (CUgraphMem_attribute)attr, value));
}

cudaError_t cudaDeviceSetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attr,
                                           void *value)
{
    return ON_DEVICE(device, DRV(DeviceSetGraphMemAttribute, simrt.devices[device].handle,
                                 (CUgraphMem_attribute)attr, value));
}

#if SIMRT_MAJOR >= 13 && CUDA_VERSION >= 13000
cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t *memPool, struct cudaMemLocation *location,
                                     enum cudaMemAllocationType type)
{
    return RT_CALL(
        DRV(MemGetDefaultMemPool, memPool, (CUmemLocation *)location, (CUmemAllocationType)type));
}

cudaError_t cudaMemGetMemPool(cudaMemPool_t *memPool, struct cudaMemLocation *location,
                              enum cudaMemAllocationType type)
{
    return RT_CALL(
        DRV(MemGetMemPool, memPool, (CUmemLocation *)location, (CUmemAllocationType)type));
}

cudaError_t cudaMemSetMemPool(struct cudaMemLocation *location, enum cudaMemAllocationType type,
                              cudaMemPool_t memPool)
{
    return RT_CALL(
        DRV(MemSetMemPool, (CUmemLocation *)location, (CUmemAllocationType)type, memPool));
}
#endif
