/* SPDX-License-Identifier: Apache-2.0 */
/*
 * External memory, as opaque file descriptors that can be mapped (memfd, shared memory, files). The
 * bytes belong to whoever made them: importing costs the device nothing. As documented, a
 * successful import takes the descriptor over.
 */
#include "driver.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE ((uint64_t)4096)

struct external {
    struct sim_object object;
    struct sim_context *context;
    int fd;
    uint64_t bytes;
};

CUresult CUDAAPI cuImportExternalMemory(CUexternalMemory *extMem_out,
                                        const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *memHandleDesc)
{
    SIM_ENTER(cuImportExternalMemory, memHandleDesc ? memHandleDesc->size : 0);
    if (!extMem_out || !memHandleDesc || !memHandleDesc->size ||
        (memHandleDesc->flags & ~(unsigned)CUDA_EXTERNAL_MEMORY_DEDICATED))
        return CUDA_ERROR_INVALID_VALUE;
    if (memHandleDesc->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD)
        return CUDA_ERROR_NOT_SUPPORTED;
    struct stat status;
    if (fstat(memHandleDesc->handle.fd, &status) || status.st_size < 0 ||
        (uint64_t)status.st_size < memHandleDesc->size)
        return CUDA_ERROR_INVALID_HANDLE;
    sim_lock();
    CUresult result;
    struct sim_context *context = sim_current(&result);
    struct external *made = context ? sim_object_new(SIM_EXTERNAL, sizeof *made) : NULL;
    if (context && !made)
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (made) {
        made->context = context;
        made->fd = memHandleDesc->handle.fd;
        made->bytes = memHandleDesc->size;
        *extMem_out = (CUexternalMemory)made;
    }
    return sim_leave(result);
}

CUresult CUDAAPI cuExternalMemoryGetMappedBuffer(CUdeviceptr *devPtr, CUexternalMemory extMem,
                                                 const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *bufferDesc)
{
    SIM_ENTER(cuExternalMemoryGetMappedBuffer, bufferDesc ? bufferDesc->size : 0);
    if (!devPtr || !bufferDesc || !bufferDesc->size || bufferDesc->flags)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    const struct external *external = sim_object_find(extMem, SIM_EXTERNAL);
    if (!external)
        return sim_leave(CUDA_ERROR_INVALID_HANDLE);
    if (bufferDesc->offset > external->bytes ||
        bufferDesc->size > external->bytes - bufferDesc->offset)
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    uint64_t skip = bufferDesc->offset % PAGE;
    uint64_t span = (skip + bufferDesc->size + PAGE - 1) / PAGE * PAGE;
    void *map = mmap(NULL, span, PROT_READ | PROT_WRITE, MAP_SHARED, external->fd,
                     (off_t)(bufferDesc->offset - skip));
    if (map == MAP_FAILED)
        return sim_leave(CUDA_ERROR_OPERATING_SYSTEM);
    uint64_t base = (uint64_t)(uintptr_t)map;
    struct sim_alloc *alloc = sim_alloc_new(SIMGPU_EXTERNAL, (int)external->context->device,
                                            base + skip, bufferDesc->size);
    if (!alloc) {
        munmap(map, span);
        return sim_leave(CUDA_ERROR_OUT_OF_MEMORY);
    }
    alloc->context = external->context;
    alloc->map_base = base;
    alloc->span_bytes = span;
    *devPtr = base + skip;
    return sim_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuDestroyExternalMemory(CUexternalMemory extMem)
{
    SIM_ENTER(cuDestroyExternalMemory, 0);
    sim_lock();
    struct external *external = sim_object_find(extMem, SIM_EXTERNAL);
    if (external) {
        close(external->fd);
        sim_object_delete(external);
    }
    return sim_leave(external ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}
