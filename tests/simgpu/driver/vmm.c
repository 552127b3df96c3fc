/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory management: physical memory with reference counts, address reservations, and
 * mappings of the one into the other. A device's use changes when memory is created and when its
 * last handle and mapping are gone.
 */
#define FALLOC_FLAGS (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)

#include "vmm.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct reservation {
    struct sim_node node;
    uint32_t record;
};

struct mapping {
    struct sim_node node;
    struct sim_physical *physical;
    uint32_t readable; /* bit per ordinal */
    uint32_t writable;
    bool host_access;
    uint32_t record;
};

static struct {
    struct sim_tree reservations;
    struct sim_tree mappings;
    uint64_t reserved_bytes;
} vmm;

static bool is_granular(uint64_t bytes)
{
    return bytes && bytes % SIMGPU_CHUNK == 0;
}

/* ---- physical memory ---- */

struct sim_physical *sim_physical_of(CUmemGenericAllocationHandle handle)
{
    struct sim_physical *physical = sim_object_find((const void *)(uintptr_t)handle, SIM_PHYSICAL);
    return physical && physical->handles ? physical : NULL;
}

uint64_t sim_physical_offset(uint64_t bytes)
{
    uint64_t offset = 0;
    if (sim_arena() < 0 || !sim_extents_take(&sim.physical_offsets, bytes, SIMGPU_CHUNK, &offset))
        return 0;
    return offset;
}

void sim_physical_settle(struct sim_physical *physical)
{
    if (physical->handles || physical->mappings)
        return;
    if (physical->export_id)
        simgpu_state_leave(physical->export_id);
    else if (physical->ordinal >= 0)
        sim_discharge((unsigned)physical->ordinal, SIMGPU_PHYSICAL, physical->bytes);
    if (!physical->export_id) { /* once exported, others may still map the place */
        fallocate(physical->fd, FALLOC_FLAGS, (off_t)physical->offset, (off_t)physical->bytes);
        sim_extents_give(&sim.physical_offsets, physical->offset, physical->bytes, NULL, NULL);
    }
    simgpu_state_forget(physical->record);
    sim_object_delete(physical);
}

static CUresult check_properties(const CUmemAllocationProp *prop)
{
    if (prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (prop->requestedHandleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    switch (prop->location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return sim_is_device(prop->location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult create(uint64_t bytes, const CUmemAllocationProp *prop,
                       struct sim_physical **physical)
{
    int ordinal = prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? prop->location.id : -1;
    if (ordinal >= 0 && sim_charge((unsigned)ordinal, SIMGPU_PHYSICAL, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    uint64_t offset = sim_physical_offset(bytes);
    struct sim_physical *made = offset ? sim_object_new(SIM_PHYSICAL, sizeof *made) : NULL;
    if (!made) {
        if (ordinal >= 0)
            sim_discharge((unsigned)ordinal, SIMGPU_PHYSICAL, bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made->properties = *prop;
    made->ordinal = ordinal;
    made->bytes = bytes;
    made->fd = sim.arena_fd;
    made->offset = offset;
    made->handles = 1;
    made->record = simgpu_state_record(SIMGPU_PHYSICAL,
                                       ordinal < 0 ? -1 : (int)sim_machine_index((unsigned)ordinal),
                                       (uint64_t)(uintptr_t)made, bytes);
    *physical = made;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                             const CUmemAllocationProp *prop, unsigned long long flags)
{
    SIM_ENTER(cuMemCreate, size);
    if (!handle || !prop || flags || !is_granular(size))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = check_properties(prop);
    if (result != CUDA_SUCCESS)
        return result;
    sim_lock();
    struct sim_physical *physical = NULL;
    result = create(size, prop, &physical);
    if (result == CUDA_SUCCESS)
        *handle = (CUmemGenericAllocationHandle)(uintptr_t)physical;
    return sim_leave(result);
}

CUresult CUDAAPI cuMemRelease(CUmemGenericAllocationHandle handle)
{
    SIM_ENTER(cuMemRelease, 0);
    sim_lock();
    struct sim_physical *physical = sim_physical_of(handle);
    if (physical) {
        physical->handles--;
        sim_physical_settle(physical);
    }
    return sim_leave(physical ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                               CUmemAllocationGranularity_flags option)
{
    SIM_ENTER(cuMemGetAllocationGranularity, 0);
    if (!granularity || !prop ||
        (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
         option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = check_properties(prop);
    if (result == CUDA_SUCCESS)
        *granularity = SIMGPU_CHUNK;
    return result;
}

CUresult CUDAAPI cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                        CUmemGenericAllocationHandle handle)
{
    SIM_ENTER(cuMemGetAllocationPropertiesFromHandle, 0);
    if (!prop)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    const struct sim_physical *physical = sim_physical_of(handle);
    if (physical)
        *prop = physical->properties;
    return sim_leave(physical ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

/* ---- reservations ---- */

static void *reserve_pages(uint64_t bytes, uint64_t alignment, uint64_t wish)
{
    void *map = mmap((void *)(uintptr_t)wish, bytes + alignment, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    uint64_t start = (uint64_t)(uintptr_t)map;
    uint64_t aligned = (start + alignment - 1) & ~(alignment - 1);
    if (aligned > start)
        munmap(map, aligned - start);
    munmap((void *)(uintptr_t)(aligned + bytes), start + alignment - aligned);
    return (void *)(uintptr_t)aligned;
}

CUresult CUDAAPI cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment,
                                     CUdeviceptr addr, unsigned long long flags)
{
    SIM_ENTER(cuMemAddressReserve, size);
    if (!ptr || flags || !is_granular(size) || (alignment & (alignment - 1)))
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    uint64_t limit = simgpu_config()->address_space_bytes;
    if (limit && (size > limit || vmm.reserved_bytes > limit - size))
        return sim_leave(CUDA_ERROR_OUT_OF_MEMORY);
    void *pages = reserve_pages(size, alignment > SIMGPU_CHUNK ? alignment : SIMGPU_CHUNK, addr);
    struct reservation *made = pages ? calloc(1, sizeof *made) : NULL;
    if (!made) {
        if (pages)
            munmap(pages, size);
        return sim_leave(CUDA_ERROR_OUT_OF_MEMORY);
    }
    made->node.key = (uint64_t)(uintptr_t)pages;
    made->node.size = size;
    made->record = simgpu_state_record(SIMGPU_RESERVATION, -1, made->node.key, size);
    sim_tree_insert(&vmm.reservations, &made->node);
    vmm.reserved_bytes += size;
    *ptr = made->node.key;
    return sim_leave(CUDA_SUCCESS);
}

static bool has_mapping_in(uint64_t start, uint64_t bytes)
{
    const struct sim_node *before = sim_tree_floor(&vmm.mappings, start);
    const struct sim_node *after = sim_tree_ceiling(&vmm.mappings, start);
    return (before && before->key + before->size > start) || (after && after->key < start + bytes);
}

CUresult CUDAAPI cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
    SIM_ENTER(cuMemAddressFree, size);
    sim_lock();
    struct reservation *found = (struct reservation *)sim_tree_find(&vmm.reservations, ptr);
    if (!found || found->node.size != size || has_mapping_in(ptr, size))
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    munmap((void *)(uintptr_t)ptr, size);
    simgpu_state_forget(found->record);
    sim_tree_remove(&vmm.reservations, &found->node);
    vmm.reserved_bytes -= size;
    free(found);
    return sim_leave(CUDA_SUCCESS);
}

bool sim_reservation_at(uint64_t address, uint64_t *base, uint64_t *bytes)
{
    const struct sim_node *node = sim_tree_floor(&vmm.reservations, address);
    if (!node || address - node->key >= node->size)
        return false;
    *base = node->key;
    *bytes = node->size;
    return true;
}

/* ---- mappings ---- */

static struct mapping *mapping_at(uint64_t address)
{
    struct sim_node *node = sim_tree_floor(&vmm.mappings, address);
    return node && address - node->key < node->size ? (struct mapping *)node : NULL;
}

bool sim_mapping_at(uint64_t address, uint64_t *base, uint64_t *bytes, int *device,
                    bool *accessible)
{
    const struct mapping *found = mapping_at(address);
    if (!found)
        return false;
    *base = found->node.key;
    *bytes = found->node.size;
    if (device)
        *device = found->physical->ordinal;
    if (accessible)
        *accessible = found->readable || found->host_access;
    return true;
}

struct sim_physical *sim_physical_at(uint64_t address)
{
    const struct mapping *found = mapping_at(address);
    return found ? found->physical : NULL;
}

CUresult CUDAAPI cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
                          CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    SIM_ENTER(cuMemMap, size);
    uint64_t base = 0;
    uint64_t bytes = 0;
    if (flags || !is_granular(size) || ptr % SIMGPU_CHUNK || offset % SIMGPU_CHUNK)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct sim_physical *physical = sim_physical_of(handle);
    if (!physical || offset > physical->bytes || size > physical->bytes - offset ||
        !sim_reservation_at(ptr, &base, &bytes) || size > base + bytes - ptr ||
        has_mapping_in(ptr, size))
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    struct mapping *made = calloc(1, sizeof *made);
    if (!made ||
        mmap((void *)(uintptr_t)ptr, size, PROT_NONE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
             physical->fd, (off_t)(physical->offset + offset)) == MAP_FAILED) {
        free(made);
        return sim_leave(CUDA_ERROR_OUT_OF_MEMORY);
    }
    made->node.key = ptr;
    made->node.size = size;
    made->physical = physical;
    made->record = simgpu_state_record(
        SIMGPU_MAPPING,
        physical->ordinal < 0 ? -1 : (int)sim_machine_index((unsigned)physical->ordinal), ptr,
        size);
    physical->mappings++;
    sim_tree_insert(&vmm.mappings, &made->node);
    return sim_leave(CUDA_SUCCESS);
}

/* True if [start, start + bytes) is made of whole mappings without a gap. */
static bool covers_whole_mappings(uint64_t start, uint64_t bytes)
{
    uint64_t at = start;
    while (at < start + bytes) {
        const struct sim_node *node = sim_tree_find(&vmm.mappings, at);
        if (!node)
            return false;
        at += node->size;
    }
    return bytes && at == start + bytes;
}

CUresult CUDAAPI cuMemUnmap(CUdeviceptr ptr, size_t size)
{
    SIM_ENTER(cuMemUnmap, size);
    sim_lock();
    if (!covers_whole_mappings(ptr, size))
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    if (mmap((void *)(uintptr_t)ptr, size, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
        return sim_leave(CUDA_ERROR_UNMAP_FAILED);
    for (uint64_t at = ptr; at < ptr + size;) {
        struct mapping *found = (struct mapping *)sim_tree_find(&vmm.mappings, at);
        at += found->node.size;
        sim_tree_remove(&vmm.mappings, &found->node);
        simgpu_state_forget(found->record);
        found->physical->mappings--;
        sim_physical_settle(found->physical);
        free(found);
    }
    return sim_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
    SIM_ENTER(cuMemRetainAllocationHandle, 0);
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct sim_physical *physical = sim_physical_at((uint64_t)(uintptr_t)addr);
    if (physical) {
        physical->handles++;
        *handle = (CUmemGenericAllocationHandle)(uintptr_t)physical;
    }
    return sim_leave(physical ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

/* ---- access ---- */

static CUresult check_access(const CUmemAccessDesc *desc)
{
    bool known = desc->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ||
                 desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
                 desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (!known || desc->location.type == CU_MEM_LOCATION_TYPE_INVALID)
        return CUDA_ERROR_INVALID_VALUE;
    if (desc->location.type == CU_MEM_LOCATION_TYPE_DEVICE && !sim_is_device(desc->location.id))
        return CUDA_ERROR_INVALID_DEVICE;
    return CUDA_SUCCESS;
}

static void grant(struct mapping *mapping, const CUmemAccessDesc *desc)
{
    bool reads = desc->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
    bool writes = desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (desc->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        mapping->host_access = reads;
        return;
    }
    uint32_t bit = 1U << desc->location.id;
    mapping->readable = reads ? mapping->readable | bit : mapping->readable & ~bit;
    mapping->writable = writes ? mapping->writable | bit : mapping->writable & ~bit;
}

CUresult CUDAAPI cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc,
                                size_t count)
{
    SIM_ENTER(cuMemSetAccess, size);
    CUresult result = desc && count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; result == CUDA_SUCCESS && i < count; i++)
        result = check_access(&desc[i]);
    if (result != CUDA_SUCCESS)
        return result;
    sim_lock();
    if (!covers_whole_mappings(ptr, size))
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    for (uint64_t at = ptr; at < ptr + size;) {
        struct mapping *found = (struct mapping *)sim_tree_find(&vmm.mappings, at);
        for (size_t i = 0; i < count; i++)
            grant(found, &desc[i]);
        bool any = found->readable || found->host_access;
        mprotect((void *)(uintptr_t)at, found->node.size, any ? PROT_READ | PROT_WRITE : PROT_NONE);
        at += found->node.size;
    }
    return sim_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
                                CUdeviceptr ptr)
{
    SIM_ENTER(cuMemGetAccess, 0);
    if (!flags || !location)
        return CUDA_ERROR_INVALID_VALUE;
    if (location->type == CU_MEM_LOCATION_TYPE_DEVICE && !sim_is_device(location->id))
        return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    const struct mapping *found = mapping_at(ptr);
    if (!found)
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    if (location->type != CU_MEM_LOCATION_TYPE_DEVICE)
        *flags = found->host_access ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : 0;
    else if (found->writable >> location->id & 1)
        *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    else
        *flags = found->readable >> location->id & 1 ? CU_MEM_ACCESS_FLAGS_PROT_READ : 0;
    return sim_leave(CUDA_SUCCESS);
}
