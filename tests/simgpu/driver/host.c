/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory the device may reach: pinned by allocation, pinned by registration. */
#include "driver.h"

#include <sys/mman.h>

static uint64_t pages_of(uint64_t bytes)
{
    return (bytes + SIM_HOST_PAGE - 1) / SIM_HOST_PAGE * SIM_HOST_PAGE;
}

static CUresult allocate_host(void **pp, size_t bytes, unsigned flags)
{
    unsigned known =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    if (!pp || !bytes || (flags & ~known))
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    struct sim_context *context = sim_current(&result);
    if (context)
        result = sim_capture_unsafe_call();
    if (result != CUDA_SUCCESS)
        return sim_leave(result);
    if (bytes > SIZE_MAX - SIM_HOST_PAGE)
        return sim_leave(CUDA_ERROR_OUT_OF_MEMORY);
    uint64_t span = pages_of(bytes);
    void *memory = mmap(NULL, span, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return sim_leave(CUDA_ERROR_OUT_OF_MEMORY);
    struct sim_alloc *alloc = sim_alloc_new(SIMGPU_HOST, -1, (uint64_t)(uintptr_t)memory, bytes);
    if (!alloc) {
        munmap(memory, span);
        return sim_leave(CUDA_ERROR_OUT_OF_MEMORY);
    }
    alloc->context = context;
    alloc->span_bytes = span;
    alloc->flags = flags | CU_MEMHOSTALLOC_DEVICEMAP; /* with unified addressing always mapped */
    *pp = memory;
    return sim_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuMemAllocHost_v2(void **pp, size_t bytesize)
{
    SIM_ENTER(cuMemAllocHost, bytesize);
    return allocate_host(pp, bytesize, 0);
}

CUresult CUDAAPI cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
    SIM_ENTER(cuMemHostAlloc, bytesize);
    return allocate_host(pp, bytesize, Flags);
}

static struct sim_alloc *exact(const void *pointer, enum simgpu_kind kind)
{
    struct sim_alloc *alloc =
        (struct sim_alloc *)sim_tree_find(&sim.allocations, (uint64_t)(uintptr_t)pointer);
    return alloc && alloc->kind == kind ? alloc : NULL;
}

CUresult CUDAAPI cuMemFreeHost(void *p)
{
    SIM_ENTER(cuMemFreeHost, 0);
    if (!p)
        return CUDA_SUCCESS;
    sim_lock();
    CUresult result;
    if (sim_current(&result))
        result = sim_capture_unsafe_call();
    if (result != CUDA_SUCCESS)
        return sim_leave(result);
    struct sim_alloc *alloc = exact(p, SIMGPU_HOST);
    if (!alloc)
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    sim_context_wait(alloc->context);
    alloc = exact(p, SIMGPU_HOST);
    if (alloc)
        sim_alloc_free(alloc);
    return sim_leave(alloc ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

static bool overlaps_known(uint64_t address, uint64_t bytes)
{
    const struct sim_node *next = sim_tree_ceiling(&sim.allocations, address);
    return sim_alloc_at(address) || (next && next->key < address + bytes);
}

CUresult CUDAAPI cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
    SIM_ENTER(cuMemHostRegister, bytesize);
    unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                     CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
    uint64_t address = (uint64_t)(uintptr_t)p;
    if (!p || !bytesize || (Flags & ~known) || address > UINT64_MAX - bytesize)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    struct sim_context *context = sim_current(&result);
    if (context && overlaps_known(address, bytesize))
        result = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    if (result != CUDA_SUCCESS)
        return sim_leave(result);
    struct sim_alloc *alloc = sim_alloc_new(SIMGPU_REGISTERED, -1, address, bytesize);
    if (!alloc)
        return sim_leave(CUDA_ERROR_OUT_OF_MEMORY);
    alloc->context = context;
    alloc->flags = Flags;
    return sim_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags)
{
    return cuMemHostRegister_v2(p, bytesize, Flags);
}

CUresult CUDAAPI cuMemHostUnregister(void *p)
{
    SIM_ENTER(cuMemHostUnregister, 0);
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    if (!sim_current(&result))
        return sim_leave(result);
    struct sim_alloc *alloc = exact(p, SIMGPU_REGISTERED);
    if (alloc)
        sim_alloc_free(alloc);
    return sim_leave(alloc ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

CUresult CUDAAPI cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
    SIM_ENTER(cuMemHostGetDevicePointer, 0);
    if (!pdptr || Flags)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    if (!sim_current(&result))
        return sim_leave(result);
    const struct sim_alloc *alloc = sim_alloc_at((uint64_t)(uintptr_t)p);
    bool is_host = alloc && (alloc->kind == SIMGPU_HOST || alloc->kind == SIMGPU_REGISTERED);
    if (is_host)
        *pdptr = (uint64_t)(uintptr_t)p;
    return sim_leave(is_host ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuMemHostGetFlags(unsigned int *pFlags, void *p)
{
    SIM_ENTER(cuMemHostGetFlags, 0);
    if (!pFlags || !p)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    if (!sim_current(&result))
        return sim_leave(result);
    const struct sim_alloc *alloc = sim_alloc_at((uint64_t)(uintptr_t)p);
    bool is_pinned = alloc && alloc->kind == SIMGPU_HOST;
    if (is_pinned)
        *pFlags = alloc->flags;
    return sim_leave(is_pinned ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}
