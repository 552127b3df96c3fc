/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Multicast objects: handles that several devices' memory is bound to. They own no device memory. A
 * mapping of one shows memory of its own here, not what is bound: kernels, which would store to all
 * bound memory through it, do nothing anyway.
 */
#include "vmm.h"

#include <string.h>

static bool is_size(uint64_t bytes)
{
    return bytes && bytes % SIMGPU_CHUNK == 0;
}

CUresult CUDAAPI cuMulticastGetGranularity(size_t *granularity, const CUmulticastObjectProp *prop,
                                           CUmulticastGranularity_flags option)
{
    SIM_ENTER(cuMulticastGetGranularity, 0);
    if (!granularity || !prop ||
        (option != CU_MULTICAST_GRANULARITY_MINIMUM &&
         option != CU_MULTICAST_GRANULARITY_RECOMMENDED))
        return CUDA_ERROR_INVALID_VALUE;
    *granularity = SIMGPU_CHUNK;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMulticastCreate(CUmemGenericAllocationHandle *mcHandle,
                                   const CUmulticastObjectProp *prop)
{
    SIM_ENTER(cuMulticastCreate, prop ? prop->size : 0);
    if (!mcHandle || !prop || prop->flags || !prop->numDevices || !is_size(prop->size))
        return CUDA_ERROR_INVALID_VALUE;
    if (prop->numDevices > sim.visible_count)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    uint64_t offset = sim_physical_offset(prop->size);
    struct sim_physical *made = offset ? sim_object_new(SIM_PHYSICAL, sizeof *made) : NULL;
    if (!made)
        return sim_leave(CUDA_ERROR_OUT_OF_MEMORY);
    made->properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    made->ordinal = -1;
    made->bytes = prop->size;
    made->fd = sim.arena_fd;
    made->offset = offset;
    made->handles = 1;
    made->is_multicast = true;
    made->multicast_devices = prop->numDevices;
    made->record = simgpu_state_record(SIMGPU_MULTICAST, -1, (uint64_t)(uintptr_t)made, prop->size);
    *mcHandle = (CUmemGenericAllocationHandle)(uintptr_t)made;
    return sim_leave(CUDA_SUCCESS);
}

static struct sim_physical *multicast_of(CUmemGenericAllocationHandle handle)
{
    struct sim_physical *physical = sim_physical_of(handle);
    return physical && physical->is_multicast ? physical : NULL;
}

CUresult CUDAAPI cuMulticastAddDevice(CUmemGenericAllocationHandle mcHandle, CUdevice dev)
{
    SIM_ENTER(cuMulticastAddDevice, 0);
    if (!sim_is_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    struct sim_physical *multicast = multicast_of(mcHandle);
    if (!multicast || (multicast->multicast_added >> dev & 1) ||
        (unsigned)__builtin_popcount(multicast->multicast_added) == multicast->multicast_devices)
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    multicast->multicast_added |= 1U << dev;
    return sim_leave(CUDA_SUCCESS);
}

/* Binding is only allowed once all devices were added, and only to memory of one of them. */
static CUresult bind(struct sim_physical *multicast, size_t offset, int ordinal, size_t size)
{
    if (!multicast || !is_size(size) || offset % SIMGPU_CHUNK || offset > multicast->bytes ||
        size > multicast->bytes - offset)
        return CUDA_ERROR_INVALID_VALUE;
    if ((unsigned)__builtin_popcount(multicast->multicast_added) != multicast->multicast_devices)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (ordinal < 0 || !(multicast->multicast_added >> ordinal & 1))
        return CUDA_ERROR_INVALID_DEVICE;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMulticastBindMem(CUmemGenericAllocationHandle mcHandle, size_t mcOffset,
                                    CUmemGenericAllocationHandle memHandle, size_t memOffset,
                                    size_t size, unsigned long long flags)
{
    SIM_ENTER(cuMulticastBindMem, size);
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    const struct sim_physical *memory = sim_physical_of(memHandle);
    if (!memory || memory->is_multicast || memOffset % SIMGPU_CHUNK || memOffset > memory->bytes ||
        size > memory->bytes - memOffset)
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    return sim_leave(bind(multicast_of(mcHandle), mcOffset, memory->ordinal, size));
}

CUresult CUDAAPI cuMulticastBindAddr(CUmemGenericAllocationHandle mcHandle, size_t mcOffset,
                                     CUdeviceptr memptr, size_t size, unsigned long long flags)
{
    SIM_ENTER(cuMulticastBindAddr, size);
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    const struct sim_physical *memory = sim_physical_at(memptr);
    if (!memory)
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    return sim_leave(bind(multicast_of(mcHandle), mcOffset, memory->ordinal, size));
}

CUresult CUDAAPI cuMulticastUnbind(CUmemGenericAllocationHandle mcHandle, CUdevice dev,
                                   size_t mcOffset, size_t size)
{
    SIM_ENTER(cuMulticastUnbind, size);
    if (!sim_is_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    return sim_leave(bind(multicast_of(mcHandle), mcOffset, dev, size));
}
