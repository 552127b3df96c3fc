/* SPDX-License-Identifier: Apache-2.0 */
/* What programs ask about pointers, and managed memory's residency. */
#include <string.h>

#include "pool.h"
#include "vmm.h"

/* ---- attributes of pointers ---- */

/* What is known of a pointer, whether allocated or mapped. */
struct pointer {
    uint64_t address;
    uint64_t base;
    uint64_t bytes;
    const struct sim_alloc *alloc;       /* NULL: mapped */
    const struct sim_physical *physical; /* NULL: allocated */
    int ordinal;                         /* -1: host */
    struct sim_context *context;
};

static bool find_pointer(uint64_t address, struct pointer *pointer)
{
    memset(pointer, 0, sizeof *pointer);
    pointer->address = address;
    pointer->alloc = sim_alloc_at(address);
    if (pointer->alloc) {
        pointer->base = pointer->alloc->node.key;
        pointer->bytes = pointer->alloc->node.size;
        pointer->ordinal = pointer->alloc->device;
        pointer->context = pointer->alloc->context;
        return true;
    }
    pointer->physical = sim_physical_at(address);
    return pointer->physical &&
           sim_mapping_at(address, &pointer->base, &pointer->bytes, &pointer->ordinal, NULL);
}

static bool is_host_kind(const struct pointer *pointer)
{
    return pointer->ordinal < 0;
}

static bool is_managed(const struct pointer *pointer)
{
    return pointer->alloc && pointer->alloc->kind == SIMGPU_MANAGED;
}

static CUresult answer(const struct pointer *pointer, CUpointer_attribute attribute, void *data)
{
    const struct sim_alloc *alloc = pointer->alloc;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)data = (CUcontext)pointer->context;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)data = is_host_kind(pointer) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)data = pointer->address;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!is_host_kind(pointer) && !is_managed(pointer))
            return CUDA_ERROR_INVALID_VALUE;
        *(void **)data = (void *)(uintptr_t)pointer->address;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        *(int *)data = alloc && alloc->sync_memops;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *(unsigned long long *)data = alloc ? alloc->id : pointer->base;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(int *)data = is_managed(pointer);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = pointer->ordinal >= 0 ? pointer->ordinal
                       : pointer->context    ? (int)pointer->context->device
                                             : CU_DEVICE_CPU;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        *(int *)data = alloc && alloc->kind == SIMGPU_LINEAR;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)data = pointer->base;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)data = pointer->bytes;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(int *)data = 1;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *(unsigned long long *)data = pointer->physical
                                          ? pointer->physical->properties.requestedHandleTypes
                                      : alloc->pool ? alloc->pool->handle_types
                                                    : 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        *(int *)data = 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        *(int *)data = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(CUmemoryPool *)data = alloc ? (CUmemoryPool)alloc->pool : NULL;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        *(size_t *)data = pointer->bytes;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        *(CUdeviceptr *)data = pointer->base;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        *(unsigned long long *)data = alloc ? alloc->id : (uint64_t)(uintptr_t)pointer->physical;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult CUDAAPI cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    SIM_ENTER(cuPointerGetAttribute, 0);
    if (!data)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct pointer pointer;
    if (!find_pointer(ptr, &pointer))
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    return sim_leave(answer(&pointer, attribute, data));
}

static size_t answer_size(CUpointer_attribute attribute)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        return sizeof(int);
    default:
        return sizeof(uint64_t);
    }
}

/* Unlike the single form, unknown pointers and missing answers read as zero. */
CUresult CUDAAPI cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes,
                                        void **data, CUdeviceptr ptr)
{
    SIM_ENTER(cuPointerGetAttributes, 0);
    if (!attributes || !data)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct pointer pointer;
    bool known = find_pointer(ptr, &pointer);
    for (unsigned i = 0; i < numAttributes; i++) {
        if (known && answer(&pointer, attributes[i], data[i]) == CUDA_SUCCESS)
            continue;
        memset(data[i], 0, answer_size(attributes[i]));
        if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
            *(int *)data[i] = CU_DEVICE_INVALID;
    }
    return sim_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
                                       CUdeviceptr ptr)
{
    SIM_ENTER(cuPointerSetAttribute, 0);
    if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct sim_alloc *alloc = sim_alloc_at(ptr);
    bool is_device = alloc && alloc->device >= 0 && alloc->kind != SIMGPU_MANAGED;
    if (is_device)
        alloc->sync_memops = *(const int *)value != 0;
    return sim_leave(is_device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

/* ---- managed memory: resident on a device as far as it was prefetched there ---- */

static uint64_t whole_chunks(uint64_t bytes)
{
    return (bytes + SIMGPU_CHUNK - 1) / SIMGPU_CHUNK * SIMGPU_CHUNK;
}

static void set_resident(struct sim_alloc *alloc, int ordinal, uint64_t bytes)
{
    if (alloc->resident_bytes)
        sim_discharge((unsigned)alloc->resident_device, SIMGPU_MANAGED, alloc->resident_bytes);
    alloc->resident_bytes = 0;
    /* What does not fit stays on the host: managed memory may exceed the device. */
    if (ordinal >= 0 && bytes && sim_charge((unsigned)ordinal, SIMGPU_MANAGED, bytes) == 0) {
        alloc->resident_bytes = bytes;
        alloc->resident_device = ordinal;
    }
}

static CUresult prefetch(uint64_t address, size_t bytes, int ordinal, CUstream handle)
{
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    const struct sim_stream *stream = sim_stream_of(handle, &result);
    if (!stream)
        return sim_leave(result);
    struct sim_alloc *alloc = sim_alloc_at(address);
    if (!alloc || alloc->kind != SIMGPU_MANAGED ||
        bytes > alloc->node.key + alloc->node.size - address)
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    uint64_t moved = whole_chunks(bytes);
    if (ordinal < 0)
        moved = alloc->resident_bytes > moved ? alloc->resident_bytes - moved : 0;
    else if (alloc->resident_bytes > moved && alloc->resident_device == ordinal)
        moved = alloc->resident_bytes;
    set_resident(alloc, ordinal < 0 ? alloc->resident_device : ordinal, moved);
    return sim_leave(CUDA_SUCCESS);
}

static CUresult location_ordinal(CUmemLocation location, int *ordinal)
{
    *ordinal = location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : -1;
    if (location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        return sim_is_device(location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    bool is_host = location.type == CU_MEM_LOCATION_TYPE_HOST ||
                   location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
                   location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
    return is_host ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_STREAMED(cuMemPrefetchAsync_v2,
             (CUdeviceptr devPtr, size_t count, CUmemLocation location, unsigned int flags,
              CUstream hStream),
             (devPtr, count, location, flags, hStream))
{
    SIM_ENTER(cuMemPrefetchAsync, count);
    int ordinal = -1;
    CUresult result = flags ? CUDA_ERROR_INVALID_VALUE : location_ordinal(location, &ordinal);
    return result == CUDA_SUCCESS ? prefetch(devPtr, count, ordinal, hStream) : result;
}

SIM_STREAMED(cuMemPrefetchAsync,
             (CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream),
             (devPtr, count, dstDevice, hStream))
{
    SIM_ENTER(cuMemPrefetchAsync, count);
    if (dstDevice != CU_DEVICE_CPU && !sim_is_device(dstDevice))
        return CUDA_ERROR_INVALID_DEVICE;
    return prefetch(devPtr, count, dstDevice == CU_DEVICE_CPU ? -1 : dstDevice, hStream);
}

static CUresult advise(uint64_t address, size_t bytes, CUmem_advise advice)
{
    if (!bytes || advice < CU_MEM_ADVISE_SET_READ_MOSTLY ||
        advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    const struct sim_alloc *alloc = sim_alloc_at(address);
    bool fits = alloc && alloc->kind == SIMGPU_MANAGED &&
                bytes <= alloc->node.key + alloc->node.size - address;
    return sim_leave(fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice,
                                CUmemLocation location)
{
    SIM_ENTER(cuMemAdvise, count);
    int ordinal = -1;
    bool needs_location = advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION ||
                          advice == CU_MEM_ADVISE_SET_ACCESSED_BY ||
                          advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY;
    CUresult result = needs_location ? location_ordinal(location, &ordinal) : CUDA_SUCCESS;
    return result == CUDA_SUCCESS ? advise(devPtr, count, advice) : result;
}

CUresult CUDAAPI cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device)
{
    SIM_ENTER(cuMemAdvise, count);
    if (device != CU_DEVICE_CPU && !sim_is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    return advise(devPtr, count, advice);
}

static CUresult range_attribute(void *data, size_t size, CUmem_range_attribute attribute,
                                const struct sim_alloc *alloc)
{
    bool is_list = attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY;
    if (!data || size < sizeof(int) || (!is_list && size != sizeof(int)))
        return CUDA_ERROR_INVALID_VALUE;
    int *values = data;
    for (size_t i = 0; i < size / sizeof(int); i++)
        values[i] = CU_DEVICE_INVALID;
    if (attribute == CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY)
        values[0] = 0;
    else if (attribute == CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION && alloc->resident_bytes)
        values[0] = alloc->resident_device;
    else if (attribute > CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION || attribute <= 0)
        return CUDA_ERROR_NOT_SUPPORTED;
    return CUDA_SUCCESS;
}

static CUresult range_attributes(void **data, const size_t *sizes,
                                 const CUmem_range_attribute *attributes, size_t count,
                                 uint64_t address, size_t bytes)
{
    sim_lock();
    const struct sim_alloc *alloc = sim_alloc_at(address);
    CUresult result = CUDA_SUCCESS;
    if (!alloc || alloc->kind != SIMGPU_MANAGED || !bytes ||
        bytes > alloc->node.key + alloc->node.size - address)
        result = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; result == CUDA_SUCCESS && i < count; i++)
        result = range_attribute(data[i], sizes[i], attributes[i], alloc);
    return sim_leave(result);
}

CUresult CUDAAPI cuMemRangeGetAttribute(void *data, size_t dataSize,
                                        CUmem_range_attribute attribute, CUdeviceptr devPtr,
                                        size_t count)
{
    SIM_ENTER(cuMemRangeGetAttribute, count);
    return range_attributes(&data, &dataSize, &attribute, 1, devPtr, count);
}

CUresult CUDAAPI cuMemRangeGetAttributes(void **data, size_t *dataSizes,
                                         CUmem_range_attribute *attributes, size_t numAttributes,
                                         CUdeviceptr devPtr, size_t count)
{
    SIM_ENTER(cuMemRangeGetAttributes, count);
    if (!data || !dataSizes || !attributes || !numAttributes)
        return CUDA_ERROR_INVALID_VALUE;
    return range_attributes(data, dataSizes, attributes, numAttributes, devPtr, count);
}
