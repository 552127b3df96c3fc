/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device, managed, pinned and registered memory, IPC and external memory: each
 * call is the driver call that cudart makes for it.
 */
#include "runtime.h"

#include <cuda_runtime_api.h>
#include <string.h>

static cudaError_t allocate(void **pointer, size_t size)
{
    if (!pointer)
        return cudaErrorInvalidValue;
    *pointer = NULL;
    return size ? DRV(MemAlloc, (CUdeviceptr *)pointer, size) : cudaSuccess;
}

cudaError_t cudaMalloc(void **devPtr, size_t size)
{
    return RT_CALL_OF(size, allocate(devPtr, size));
}

/* A NULL pointer is no operation, but it creates the context: the idiom
 * cudaFree(0). */
cudaError_t cudaFree(void *devPtr)
{
    return RT_CALL(devPtr ? DRV(MemFree, (CUdeviceptr)devPtr) : cudaSuccess);
}

static cudaError_t allocate_managed(void **pointer, size_t size, unsigned flags)
{
    if (!pointer || (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost))
        return cudaErrorInvalidValue;
    return DRV(MemAllocManaged, (CUdeviceptr *)pointer, size, flags);
}

cudaError_t cudaMallocManaged(void **devPtr, size_t size, unsigned flags)
{
    return RT_CALL_OF(size, allocate_managed(devPtr, size, flags));
}

enum { PITCH_ELEMENT_BYTES = 4 };

static cudaError_t allocate_pitched(void **pointer, size_t *pitch, size_t width, size_t height)
{
    if (!pointer || !pitch)
        return cudaErrorInvalidValue;
    *pointer = NULL;
    *pitch = 0;
    if (!width || !height)
        return cudaSuccess;
    return DRV(MemAllocPitch, (CUdeviceptr *)pointer, pitch, width, height, PITCH_ELEMENT_BYTES);
}

cudaError_t cudaMallocPitch(void **devPtr, size_t *pitch, size_t width, size_t height)
{
    return RT_CALL_OF(width * height, allocate_pitched(devPtr, pitch, width, height));
}

static cudaError_t allocate_3d(struct cudaPitchedPtr *pitched, struct cudaExtent extent)
{
    if (!pitched)
        return cudaErrorInvalidValue;
    pitched->xsize = extent.width;
    pitched->ysize = extent.height;
    return allocate_pitched(&pitched->ptr, &pitched->pitch, extent.width,
                            extent.height * extent.depth);
}

cudaError_t cudaMalloc3D(struct cudaPitchedPtr *pitchedDevPtr, struct cudaExtent extent)
{
    return RT_CALL_OF(extent.width * extent.height * extent.depth,
                      allocate_3d(pitchedDevPtr, extent));
}

static cudaError_t allocate_host(void **pointer, size_t size)
{
    if (!pointer)
        return cudaErrorInvalidValue;
    *pointer = NULL;
    return size ? DRV(MemAllocHost, pointer, size) : cudaSuccess;
}

cudaError_t cudaMallocHost(void **ptr, size_t size)
{
    return RT_CALL_OF(size, allocate_host(ptr, size));
}

static cudaError_t allocate_host_with_flags(void **pointer, size_t size, unsigned flags)
{
    if (!pointer)
        return cudaErrorInvalidValue;
    *pointer = NULL;
    return size ? DRV(MemHostAlloc, pointer, size, flags) : cudaSuccess;
}

cudaError_t cudaHostAlloc(void **pHost, size_t size, unsigned flags)
{
    return RT_CALL_OF(size, allocate_host_with_flags(pHost, size, flags));
}

cudaError_t cudaFreeHost(void *ptr)
{
    return RT_CALL(ptr ? DRV(MemFreeHost, ptr) : cudaSuccess);
}

cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned flags)
{
    return RT_CALL_OF(size, DRV(MemHostRegister, ptr, size, flags));
}

cudaError_t cudaHostUnregister(void *ptr)
{
    return RT_CALL(DRV(MemHostUnregister, ptr));
}

cudaError_t cudaHostGetDevicePointer(void **pDevice, void *pHost, unsigned flags)
{
    return RT_CALL(DRV(MemHostGetDevicePointer, (CUdeviceptr *)pDevice, pHost, flags));
}

cudaError_t cudaHostGetFlags(unsigned *pFlags, void *pHost)
{
    return RT_CALL(DRV(MemHostGetFlags, pFlags, pHost));
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    return RT_CALL(DRV(MemGetInfo, free_bytes, total_bytes));
}

cudaError_t cudaMemRangeGetAttribute(void *data, size_t dataSize,
                                     enum cudaMemRangeAttribute attribute, const void *devPtr,
                                     size_t count)
{
    return RT_CALL(DRV(MemRangeGetAttribute, data, dataSize, (CUmem_range_attribute)attribute,
                       (CUdeviceptr)devPtr, count));
}

cudaError_t cudaMemRangeGetAttributes(void **data, size_t *dataSizes,
                                      enum cudaMemRangeAttribute *attributes, size_t numAttributes,
                                      const void *devPtr, size_t count)
{
    return RT_CALL(DRV(MemRangeGetAttributes, data, dataSizes, (CUmem_range_attribute *)attributes,
                       numAttributes, (CUdeviceptr)devPtr, count));
}

/* Memory the driver does not know is host memory of the program's own. */
static cudaError_t pointer_attributes(struct cudaPointerAttributes *attributes, const void *pointer)
{
    enum { UNKNOWN_DEVICE = -2 };
    unsigned memory_type = 0, managed = 0;
    int ordinal = UNKNOWN_DEVICE;
    CUdeviceptr device_pointer = 0;
    void *host_pointer = NULL;
    CUpointer_attribute wanted[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,    CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
        CU_POINTER_ATTRIBUTE_HOST_POINTER,
    };
    void *values[] = {&memory_type, &managed, &ordinal, &device_pointer, &host_pointer};
    cudaError_t error = DRV(PointerGetAttributes, sizeof(wanted) / sizeof(*wanted), wanted, values,
                            (CUdeviceptr)pointer);
    if (error != cudaSuccess)
        return error;
    attributes->type = managed                               ? cudaMemoryTypeManaged
                       : memory_type == CU_MEMORYTYPE_HOST   ? cudaMemoryTypeHost
                       : memory_type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice
                                                             : cudaMemoryTypeUnregistered;
    bool known = attributes->type != cudaMemoryTypeUnregistered;
    attributes->device = known ? ordinal : UNKNOWN_DEVICE;
    attributes->devicePointer = known ? (void *)device_pointer : NULL;
    attributes->hostPointer = known ? host_pointer : (void *)(size_t)pointer;
#if SIMRT_MAJOR >= 13 && CUDA_VERSION >= 13000
    memset(attributes->reserved, 0, sizeof(attributes->reserved));
#endif
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *ptr)
{
    if (!attributes)
        return simrt_leave(cudaErrorInvalidValue);
    return RT_CALL(pointer_attributes(attributes, ptr));
}

_Static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle), "one handle, two names");
_Static_assert(sizeof(cudaIpcEventHandle_t) == sizeof(CUipcEventHandle), "one handle, two names");

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *devPtr)
{
    return RT_CALL(DRV(IpcGetMemHandle, (CUipcMemHandle *)handle, (CUdeviceptr)devPtr));
}

cudaError_t cudaIpcOpenMemHandle(void **devPtr, cudaIpcMemHandle_t handle, unsigned flags)
{
    CUipcMemHandle shared;
    memcpy(&shared, &handle, sizeof(shared));
    return RT_CALL(DRV(IpcOpenMemHandle, (CUdeviceptr *)devPtr, shared, flags));
}

cudaError_t cudaIpcCloseMemHandle(void *devPtr)
{
    return RT_CALL(DRV(IpcCloseMemHandle, (CUdeviceptr)devPtr));
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event)
{
    return RT_CALL(DRV(IpcGetEventHandle, (CUipcEventHandle *)handle, event));
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle)
{
    CUipcEventHandle shared;
    memcpy(&shared, &handle, sizeof(shared));
    return RT_CALL(DRV(IpcOpenEventHandle, event, shared));
}

static cudaError_t import_external(cudaExternalMemory_t *memory,
                                   const struct cudaExternalMemoryHandleDesc *description)
{
    if (!memory || !description)
        return cudaErrorInvalidValue;
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC wanted = {
        .type = (CUexternalMemoryHandleType)description->type,
        .size = description->size,
        .flags = description->flags,
    };
    _Static_assert(sizeof(wanted.handle) == sizeof(description->handle), "one union, two names");
    memcpy(&wanted.handle, &description->handle, sizeof(wanted.handle));
    return DRV(ImportExternalMemory, (CUexternalMemory *)memory, &wanted);
}

cudaError_t cudaImportExternalMemory(cudaExternalMemory_t *extMem_out,
                                     const struct cudaExternalMemoryHandleDesc *memHandleDesc)
{
    return RT_CALL(import_external(extMem_out, memHandleDesc));
}

static cudaError_t map_external(void **pointer, cudaExternalMemory_t memory,
                                const struct cudaExternalMemoryBufferDesc *description)
{
    if (!pointer || !description)
        return cudaErrorInvalidValue;
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC wanted = {
        .offset = description->offset,
        .size = description->size,
        .flags = description->flags,
    };
    return DRV(ExternalMemoryGetMappedBuffer, (CUdeviceptr *)pointer, (CUexternalMemory)memory,
               &wanted);
}

cudaError_t cudaExternalMemoryGetMappedBuffer(void **devPtr, cudaExternalMemory_t extMem,
                                              const struct cudaExternalMemoryBufferDesc *bufferDesc)
{
    return RT_CALL(map_external(devPtr, extMem, bufferDesc));
}

cudaError_t cudaDestroyExternalMemory(cudaExternalMemory_t extMem)
{
    return RT_CALL(DRV(DestroyExternalMemory, (CUexternalMemory)extMem));
}
