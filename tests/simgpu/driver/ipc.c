/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory between processes, the legacy way and by pool pointers: the handle names the exporter, its
 * arena's descriptor and the place in it. Opening maps that place, so both see the same bytes; the
 * exporter goes on paying.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pool.h"

#define HANDLE_MAGIC 0x73696d6769706331ULL
#define PAGE ((uint64_t)4096)

struct handle {
    uint64_t magic;
    int32_t pid;
    int32_t fd;
    uint64_t offset;
    uint64_t bytes;
    uint64_t id; /* of the allocation in its process */
    int32_t machine_index;
};

_Static_assert(sizeof(struct handle) <= CU_IPC_HANDLE_SIZE, "the handle is 64 bytes by ABI");
_Static_assert(sizeof(struct handle) <= sizeof(CUmemPoolPtrExportData), "so is a pool pointer");

static struct handle describe(const struct sim_alloc *alloc)
{
    const struct sim_device *device = &sim.devices[alloc->device];
    return (struct handle){.magic = HANDLE_MAGIC,
                           .pid = (int32_t)getpid(),
                           .fd = sim.arena_fd,
                           .offset =
                               device->region_offset + (alloc->node.key - device->region_base),
                           .bytes = alloc->node.size,
                           .id = alloc->id,
                           .machine_index = (int32_t)sim_machine_index((unsigned)alloc->device)};
}

static int ordinal_of(int machine_index)
{
    for (unsigned i = 0; i < sim.visible_count; i++)
        if ((int)sim.visible[i] == machine_index)
            return (int)i;
    return -1;
}

static CUresult map_handle(struct sim_context *context, const struct handle *handle,
                           struct sim_alloc **alloc)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", handle->pid, handle->fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return CUDA_ERROR_MAP_FAILED;
    uint64_t skip = handle->offset % PAGE;
    uint64_t bytes = (skip + handle->bytes + PAGE - 1) / PAGE * PAGE;
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
                     (off_t)(handle->offset - skip));
    close(fd);
    if (map == MAP_FAILED)
        return CUDA_ERROR_MAP_FAILED;
    uint64_t base = (uint64_t)(uintptr_t)map;
    *alloc =
        sim_alloc_new(SIMGPU_IMPORT, ordinal_of(handle->machine_index), base + skip, handle->bytes);
    if (!*alloc) {
        munmap(map, bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    (*alloc)->context = context;
    (*alloc)->map_base = base;
    (*alloc)->span_bytes = bytes;
    (*alloc)->owner_pid = handle->pid;
    (*alloc)->owner_id = handle->id;
    (*alloc)->opens = 1;
    return CUDA_SUCCESS;
}

/* ---- cuIpc ---- */

CUresult CUDAAPI cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
    SIM_ENTER(cuIpcGetMemHandle, 0);
    if (!pHandle)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    if (!sim_current(&result))
        return sim_leave(result);
    const struct sim_alloc *alloc = sim_alloc_at(dptr);
    if (!alloc || alloc->kind != SIMGPU_LINEAR)
        return sim_leave(CUDA_ERROR_INVALID_VALUE); /* mapped, pooled and host memory have none */
    struct handle handle = describe(alloc);
    memset(pHandle, 0, sizeof *pHandle);
    memcpy(pHandle, &handle, sizeof handle);
    return sim_leave(CUDA_SUCCESS);
}

static struct sim_alloc *find_open(const struct handle *handle)
{
    struct sim_node *node = sim_tree_ceiling(&sim.allocations, 0);
    while (node) {
        struct sim_alloc *alloc = (struct sim_alloc *)node;
        if (alloc->kind == SIMGPU_IMPORT && alloc->owner_pid == handle->pid &&
            alloc->owner_id == handle->id && !alloc->pool)
            return alloc;
        node = sim_tree_ceiling(&sim.allocations, node->key + 1);
    }
    return NULL;
}

static CUresult open_handle(struct sim_context *context, const struct handle *handle,
                            CUdeviceptr *dptr)
{
    if (handle->magic != HANDLE_MAGIC)
        return CUDA_ERROR_INVALID_VALUE;
    if (handle->pid == (int32_t)getpid())
        return CUDA_ERROR_INVALID_CONTEXT; /* not for the process that made it */
    struct sim_alloc *alloc = find_open(handle);
    if (alloc) {
        alloc->opens++;
        *dptr = alloc->node.key;
        return CUDA_SUCCESS;
    }
    if (ordinal_of(handle->machine_index) < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    CUresult result = map_handle(context, handle, &alloc);
    if (result == CUDA_SUCCESS)
        *dptr = alloc->node.key;
    return result;
}

CUresult CUDAAPI cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle,
                                       unsigned int Flags)
{
    SIM_ENTER(cuIpcOpenMemHandle, 0);
    if (!pdptr || Flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
        return CUDA_ERROR_INVALID_VALUE;
    struct handle copy;
    memcpy(&copy, &handle, sizeof copy);
    sim_lock();
    CUresult result;
    struct sim_context *context = sim_current(&result);
    if (context)
        result = open_handle(context, &copy, pdptr);
    return sim_leave(result);
}

CUresult CUDAAPI cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
    return cuIpcOpenMemHandle_v2(pdptr, handle, Flags);
}

CUresult CUDAAPI cuIpcCloseMemHandle(CUdeviceptr dptr)
{
    SIM_ENTER(cuIpcCloseMemHandle, 0);
    sim_lock();
    CUresult result;
    if (!sim_current(&result))
        return sim_leave(result);
    struct sim_alloc *alloc = (struct sim_alloc *)sim_tree_find(&sim.allocations, dptr);
    if (!alloc || alloc->kind != SIMGPU_IMPORT || alloc->pool)
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    if (--alloc->opens == 0)
        sim_alloc_free(alloc);
    return sim_leave(CUDA_SUCCESS);
}

/* ---- pools: the descriptor carries who exported, pointers carry where ---- */

CUresult CUDAAPI cuMemPoolExportToShareableHandle(void *handle_out, CUmemoryPool pool,
                                                  CUmemAllocationHandleType handleType,
                                                  unsigned long long flags)
{
    SIM_ENTER(cuMemPoolExportToShareableHandle, 0);
    if (!handle_out || flags)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    const struct sim_pool *found = sim_pool_of(pool);
    if (!found || found->is_imported || !(found->handle_types & handleType))
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    struct handle handle = {.magic = HANDLE_MAGIC,
                            .pid = (int32_t)getpid(),
                            .machine_index = (int32_t)sim_machine_index(found->ordinal)};
    int fd = memfd_create("simgpu-pool", MFD_CLOEXEC);
    if (fd < 0 || write(fd, &handle, sizeof handle) != (ssize_t)sizeof handle) {
        if (fd >= 0)
            close(fd);
        return sim_leave(CUDA_ERROR_OPERATING_SYSTEM);
    }
    *(int *)handle_out = fd;
    return sim_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuMemPoolImportFromShareableHandle(CUmemoryPool *pool_out, void *handle,
                                                    CUmemAllocationHandleType handleType,
                                                    unsigned long long flags)
{
    SIM_ENTER(cuMemPoolImportFromShareableHandle, 0);
    struct handle read_handle;
    if (!pool_out || flags || handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    if (pread((int)(intptr_t)handle, &read_handle, sizeof read_handle, 0) !=
            (ssize_t)sizeof read_handle ||
        read_handle.magic != HANDLE_MAGIC)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    int ordinal = ordinal_of(read_handle.machine_index);
    if (ordinal < 0)
        return sim_leave(CUDA_ERROR_INVALID_DEVICE);
    struct sim_pool *pool = sim_pool_new((unsigned)ordinal);
    if (!pool)
        return sim_leave(CUDA_ERROR_OUT_OF_MEMORY);
    pool->is_imported = true;
    *pool_out = (CUmemoryPool)pool;
    return sim_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuMemPoolExportPointer(CUmemPoolPtrExportData *shareData_out, CUdeviceptr ptr)
{
    SIM_ENTER(cuMemPoolExportPointer, 0);
    if (!shareData_out)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    const struct sim_alloc *alloc = (struct sim_alloc *)sim_tree_find(&sim.allocations, ptr);
    if (!alloc || alloc->kind != SIMGPU_POOL_BLOCK || !alloc->pool->handle_types)
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    struct handle handle = describe(alloc);
    memset(shareData_out, 0, sizeof *shareData_out);
    memcpy(shareData_out, &handle, sizeof handle);
    return sim_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuMemPoolImportPointer(CUdeviceptr *ptr_out, CUmemoryPool pool,
                                        CUmemPoolPtrExportData *shareData)
{
    SIM_ENTER(cuMemPoolImportPointer, 0);
    struct handle handle;
    if (!ptr_out || !shareData)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&handle, shareData, sizeof handle);
    sim_lock();
    struct sim_pool *found = sim_pool_of(pool);
    struct sim_alloc *alloc = NULL;
    if (!found || !found->is_imported || handle.magic != HANDLE_MAGIC)
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    CUresult result = map_handle(sim_primary(found->ordinal), &handle, &alloc);
    if (result == CUDA_SUCCESS) {
        alloc->pool = found;
        found->blocks++;
        *ptr_out = alloc->node.key;
    }
    return sim_leave(result);
}
