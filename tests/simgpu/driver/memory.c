/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory of cuMemAlloc's kind and its address space. Each device owns one address region,
 * mapped as a whole from the process's sparse arena file, so an allocation is only bookkeeping:
 * pages come with the first touch and go when freed ranges are punched out, a batch at a time.
 *
 * Physical memory comes in 2 MiB chunks. Requests below a chunk share chunks; a chunk whose last
 * piece is freed goes back to the device.
 */
#include "driver.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define REGION_FACTOR 4                   /* address space per device, in multiples of its memory */
#define DIRTY_LIMIT ((uint64_t)256 << 20) /* freed bytes that may keep their pages */
#define LOWEST_ARENA_FD 600
#define SPARSE_COPY ((uint64_t)1 << 20) /* copies from here on look for holes */
#define PAGE ((uint64_t)4096)
#define PITCH_ALIGNMENT 512U

static uint64_t chunks_of(uint64_t bytes)
{
    return (bytes + SIMGPU_CHUNK - 1) / SIMGPU_CHUNK * SIMGPU_CHUNK;
}

/* ---- arena and regions ---- */

int sim_arena(void)
{
    if (sim.arena_fd >= 0)
        return sim.arena_fd;
    int fd = memfd_create("simgpu-arena", MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, LOWEST_ARENA_FD);
    if (high >= 0) {
        close(fd);
        fd = high;
    }
    if (ftruncate(fd, (off_t)(2 * SIM_PHYSICAL_OFFSETS))) {
        int error = -errno;
        close(fd);
        return error;
    }
    sim.arena_fd = fd;
    sim_extents_give(&sim.physical_offsets, SIM_PHYSICAL_OFFSETS, SIM_PHYSICAL_OFFSETS, NULL, NULL);
    return fd;
}

static int reserve_region(unsigned ordinal)
{
    struct sim_device *device = &sim.devices[ordinal];
    if (device->reserved)
        return 0;
    int fd = sim_arena();
    if (fd < 0)
        return fd;
    uint64_t bytes = chunks_of(simgpu_config()->memory_bytes) * REGION_FACTOR;
    if (sim.arena_end + bytes + SIMGPU_CHUNK > SIM_PHYSICAL_OFFSETS)
        return -ENOMEM;
    void *map = mmap(NULL, bytes + SIMGPU_CHUNK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                     fd, (off_t)sim.arena_end);
    if (map == MAP_FAILED)
        return -errno;
    madvise(map, bytes + SIMGPU_CHUNK, MADV_DONTDUMP);
    uint64_t start = (uint64_t)(uintptr_t)map;
    uint64_t aligned = chunks_of(start);
    device->region_base = aligned;
    device->region_bytes = bytes;
    device->region_offset = sim.arena_end + (aligned - start);
    sim.arena_end += bytes + SIMGPU_CHUNK;
    device->reserved = sim_extents_give(&device->addresses, aligned, bytes, NULL, NULL);
    return device->reserved ? 0 : -ENOMEM;
}

uint64_t sim_span_take(unsigned ordinal, uint64_t bytes)
{
    struct sim_device *device = &sim.devices[ordinal];
    uint64_t address = 0;
    if (reserve_region(ordinal) ||
        !sim_extents_take(&device->addresses, bytes, SIMGPU_CHUNK, &address))
        return 0;
    if (device->dirty_bytes)
        device->dirty_bytes -= sim_extents_cut(&device->dirty, address, bytes);
    return address;
}

static void punch_dirty(struct sim_device *device)
{
    struct sim_node *node;
    while ((node = device->dirty.tree.root) != NULL) {
        uint64_t start = node->key;
        uint64_t size = node->size;
        sim_punch(start, size);
        sim_extents_cut(&device->dirty, start, size);
    }
    device->dirty_bytes = 0;
}

void sim_span_give(unsigned ordinal, uint64_t address, uint64_t bytes)
{
    struct sim_device *device = &sim.devices[ordinal];
    sim_extents_give(&device->addresses, address, bytes, NULL, NULL);
    if (bytes > DIRTY_LIMIT) {
        sim_punch(address, bytes);
        return;
    }
    if (sim_extents_give(&device->dirty, address, bytes, NULL, NULL))
        device->dirty_bytes += bytes;
    if (device->dirty_bytes > DIRTY_LIMIT)
        punch_dirty(device);
}

void sim_punch(uint64_t address, uint64_t bytes)
{
    madvise((void *)(uintptr_t)address, bytes, MADV_REMOVE);
}

/* ---- allocations by address ---- */

struct sim_alloc *sim_alloc_at(uint64_t address)
{
    struct sim_node *node = sim_tree_floor(&sim.allocations, address);
    return node && address - node->key < node->size ? (struct sim_alloc *)node : NULL;
}

struct sim_alloc *sim_alloc_new(enum simgpu_kind kind, int device, uint64_t address,
                                uint64_t requested_bytes)
{
    struct sim_alloc *alloc = calloc(1, sizeof *alloc);
    if (!alloc)
        return NULL;
    alloc->node.key = address;
    alloc->node.size = requested_bytes;
    alloc->kind = kind;
    alloc->device = device;
    alloc->id = ++sim.next_id;
    alloc->device_address = address;
    int machine_index = device < 0 ? -1 : (int)sim_machine_index((unsigned)device);
    alloc->record = simgpu_state_record(kind, machine_index, address, requested_bytes);
    sim_tree_insert(&sim.allocations, &alloc->node);
    return alloc;
}

void sim_alloc_delete(struct sim_alloc *alloc)
{
    sim_tree_remove(&sim.allocations, &alloc->node);
    simgpu_state_forget(alloc->record);
    free(alloc);
}

/* ---- chunks of their own, and packed ones ---- */

static CUresult take_chunks(unsigned ordinal, enum simgpu_kind kind, uint64_t bytes,
                            uint64_t *address)
{
    if (sim_charge(ordinal, kind, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *address = sim_span_take(ordinal, bytes);
    if (*address)
        return CUDA_SUCCESS;
    sim_discharge(ordinal, kind, bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static void give_chunks(unsigned ordinal, enum simgpu_kind kind, uint64_t address, uint64_t bytes)
{
    sim_span_give(ordinal, address, bytes);
    sim_discharge(ordinal, kind, bytes);
}

static CUresult take_piece(unsigned ordinal, uint64_t bytes, uint64_t *address)
{
    struct sim_extents *small = &sim.devices[ordinal].small;
    if (sim_extents_take(small, bytes, SIM_ALIGNMENT, address))
        return CUDA_SUCCESS;
    CUresult result = take_chunks(ordinal, SIMGPU_PACKED, SIMGPU_CHUNK, address);
    if (result == CUDA_SUCCESS && bytes < SIMGPU_CHUNK)
        sim_extents_give(small, *address + bytes, SIMGPU_CHUNK - bytes, NULL, NULL);
    return result;
}

static void give_piece(unsigned ordinal, uint64_t address, uint64_t bytes)
{
    struct sim_extents *small = &sim.devices[ordinal].small;
    uint64_t start = 0;
    uint64_t size = 0;
    sim_extents_give(small, address, bytes, &start, &size);
    uint64_t first = chunks_of(start);
    uint64_t end = (start + size) / SIMGPU_CHUNK * SIMGPU_CHUNK;
    if (end <= first)
        return;
    sim_extents_take_at(small, first, end - first);
    give_chunks(ordinal, SIMGPU_PACKED, first, end - first);
}

static uint64_t piece_bytes(uint64_t bytes)
{
    return (bytes + SIM_ALIGNMENT - 1) / SIM_ALIGNMENT * SIM_ALIGNMENT;
}

CUresult sim_device_alloc(struct sim_context *context, enum simgpu_kind kind, uint64_t bytes,
                          struct sim_alloc **alloc)
{
    uint64_t address = 0;
    bool packed = kind == SIMGPU_LINEAR && bytes < SIMGPU_CHUNK;
    uint64_t span = packed ? 0 : chunks_of(bytes);
    if (bytes > simgpu_config()->memory_bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = packed ? take_piece(context->device, piece_bytes(bytes), &address)
                             : take_chunks(context->device, kind, span, &address);
    if (result != CUDA_SUCCESS)
        return result;
    *alloc = sim_alloc_new(kind, (int)context->device, address, bytes);
    if (!*alloc) {
        if (packed)
            give_piece(context->device, address, piece_bytes(bytes));
        else
            give_chunks(context->device, kind, address, span);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    (*alloc)->context = context;
    (*alloc)->span_bytes = span;
    return CUDA_SUCCESS;
}

static void release_device_memory(const struct sim_alloc *alloc)
{
    unsigned ordinal = (unsigned)alloc->device;
    if (alloc->span_bytes)
        give_chunks(ordinal, alloc->kind, alloc->node.key, alloc->span_bytes);
    else
        give_piece(ordinal, alloc->node.key, piece_bytes(alloc->node.size));
}

void sim_alloc_free(struct sim_alloc *alloc)
{
    switch (alloc->kind) {
    case SIMGPU_LINEAR:
    case SIMGPU_ARRAY:
    case SIMGPU_MODULE:
        release_device_memory(alloc);
        break;
    case SIMGPU_MANAGED:
        if (alloc->resident_bytes)
            sim_discharge((unsigned)alloc->resident_device, SIMGPU_MANAGED, alloc->resident_bytes);
        sim_span_give((unsigned)alloc->device, alloc->node.key, alloc->span_bytes);
        break;
    case SIMGPU_HOST:
        munmap((void *)(uintptr_t)alloc->node.key, alloc->span_bytes);
        break;
    case SIMGPU_IMPORT:
    case SIMGPU_EXTERNAL:
        munmap((void *)(uintptr_t)alloc->map_base, alloc->span_bytes);
        break;
    default: /* registered host memory is the program's own */
        break;
    }
    sim_alloc_delete(alloc);
}

/* ---- cuMemAlloc and its kin ---- */

static CUresult allocate(CUdeviceptr *dptr, size_t bytes)
{
    if (!dptr || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    struct sim_alloc *alloc = NULL;
    struct sim_context *context = sim_current(&result);
    if (context)
        result = sim_capture_unsafe_call();
    if (result == CUDA_SUCCESS)
        result = sim_device_alloc(context, SIMGPU_LINEAR, bytes, &alloc);
    if (result == CUDA_SUCCESS)
        *dptr = alloc->node.key;
    return sim_leave(result);
}

CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
    SIM_ENTER(cuMemAlloc, bytesize);
    return allocate(dptr, bytesize);
}

CUresult CUDAAPI cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes,
                                    size_t Height, unsigned int ElementSizeBytes)
{
    SIM_ENTER(cuMemAllocPitch, WidthInBytes * Height);
    if (!pPitch || !WidthInBytes || !Height)
        return CUDA_ERROR_INVALID_VALUE;
    if (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16)
        return CUDA_ERROR_INVALID_VALUE;
    size_t pitch = (WidthInBytes + PITCH_ALIGNMENT - 1) / PITCH_ALIGNMENT * PITCH_ALIGNMENT;
    size_t bytes = 0;
    if (__builtin_mul_overflow(pitch, Height, &bytes))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = allocate(dptr, bytes);
    if (result == CUDA_SUCCESS)
        *pPitch = pitch;
    return result;
}

static bool is_freeable(const struct sim_alloc *alloc)
{
    return alloc->kind == SIMGPU_LINEAR || alloc->kind == SIMGPU_MANAGED ||
           alloc->kind == SIMGPU_EXTERNAL || alloc->pool;
}

CUresult CUDAAPI cuMemFree_v2(CUdeviceptr dptr)
{
    SIM_ENTER(cuMemFree, 0);
    if (!dptr)
        return CUDA_SUCCESS;
    sim_lock();
    CUresult result;
    if (sim_current(&result))
        result = sim_capture_unsafe_call();
    if (result != CUDA_SUCCESS)
        return sim_leave(result);
    struct sim_alloc *alloc = (struct sim_alloc *)sim_tree_find(&sim.allocations, dptr);
    if (!alloc || !is_freeable(alloc))
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    sim_context_wait(alloc->context); /* cuMemFree waits for work that may use the memory */
    alloc = (struct sim_alloc *)sim_tree_find(&sim.allocations, dptr);
    if (!alloc)
        return sim_leave(CUDA_ERROR_INVALID_VALUE); /* freed by another thread meanwhile */
    if (alloc->pool)
        result = sim_pool_free_now(alloc);
    else
        sim_alloc_free(alloc);
    return sim_leave(result);
}

void sim_memory_info(unsigned ordinal, uint64_t *free_bytes, uint64_t *total_bytes)
{
    *total_bytes = simgpu_config()->memory_bytes;
    *free_bytes = *total_bytes - simgpu_state_used(sim_machine_index(ordinal));
}

CUresult CUDAAPI cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    SIM_ENTER(cuMemGetInfo, 0);
    sim_lock();
    CUresult result;
    const struct sim_context *context = sim_current(&result);
    uint64_t free_now = 0;
    uint64_t total_now = 0;
    if (context)
        sim_memory_info(context->device, &free_now, &total_now);
    if (context && free_bytes)
        *free_bytes = free_now;
    if (context && total)
        *total = total_now;
    return sim_leave(result);
}

CUresult CUDAAPI cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
    SIM_ENTER(cuMemGetAddressRange, 0);
    sim_lock();
    CUresult result;
    uint64_t base = 0;
    uint64_t size = 0;
    if (!sim_current(&result))
        return sim_leave(result);
    const struct sim_alloc *alloc = sim_alloc_at(dptr);
    if (alloc) {
        base = alloc->node.key;
        size = alloc->node.size;
    } else if (!sim_mapping_at(dptr, &base, &size, NULL, NULL)) {
        result = CUDA_ERROR_NOT_FOUND;
    }
    if (result == CUDA_SUCCESS && pbase)
        *pbase = base;
    if (result == CUDA_SUCCESS && psize)
        *psize = size;
    return sim_leave(result);
}

/* ---- managed memory: costs a device what was prefetched to it ---- */

CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
    SIM_ENTER(cuMemAllocManaged, bytesize);
    if (!dptr || !bytesize)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    struct sim_context *context = sim_current(&result);
    if (context)
        result = sim_capture_unsafe_call();
    if (result != CUDA_SUCCESS)
        return sim_leave(result);
    uint64_t span = chunks_of(bytesize);
    uint64_t address = sim_span_take(context->device, span);
    struct sim_alloc *alloc = NULL;
    if (address)
        alloc = sim_alloc_new(SIMGPU_MANAGED, (int)context->device, address, bytesize);
    if (!alloc)
        return sim_leave(CUDA_ERROR_OUT_OF_MEMORY);
    alloc->context = context;
    alloc->span_bytes = span;
    alloc->flags = flags;
    *dptr = address;
    return sim_leave(CUDA_SUCCESS);
}

/* ---- copying without touching what holds nothing ---- */

/* End of the run of bytes from ADDRESS, all holes or all data; *is_hole tells which. */
static uint64_t run_end(const struct sim_device *device, uint64_t address, uint64_t end,
                        bool *is_hole)
{
    off_t offset = (off_t)(device->region_offset + (address - device->region_base));
    off_t data = lseek(sim.arena_fd, offset, SEEK_DATA);
    if (data < 0 && errno != ENXIO) { /* the program closed our descriptor: copy everything */
        *is_hole = false;
        return end;
    }
    *is_hole = data != offset;
    off_t stop = data == offset ? lseek(sim.arena_fd, offset, SEEK_HOLE) : data;
    uint64_t length = stop > offset ? (uint64_t)(stop - offset) : end - address;
    return length < end - address ? address + length : end;
}

static const struct sim_device *device_of_address(uint64_t address, uint64_t bytes)
{
    for (unsigned i = 0; i < sim.visible_count; i++) {
        const struct sim_device *device = &sim.devices[i];
        if (device->reserved && address >= device->region_base &&
            address + bytes <= device->region_base + device->region_bytes)
            return device;
    }
    return NULL;
}

void sim_fill_zero(uint64_t address, uint64_t bytes)
{
    uint64_t first = (address + PAGE - 1) / PAGE * PAGE;
    uint64_t end = (address + bytes) / PAGE * PAGE;
    if (bytes < SPARSE_COPY || !device_of_address(address, bytes)) {
        memset((void *)(uintptr_t)address, 0, bytes);
        return;
    }
    memset((void *)(uintptr_t)address, 0, first - address);
    memset((void *)(uintptr_t)end, 0, address + bytes - end);
    sim_punch(first, end - first);
}

void sim_copy(uint64_t destination, uint64_t source, uint64_t bytes)
{
    const struct sim_device *device =
        bytes >= SPARSE_COPY ? device_of_address(source, bytes) : NULL;
    bool overlaps = destination < source + bytes && source < destination + bytes;
    if (!device || overlaps) {
        memmove((void *)(uintptr_t)destination, (const void *)(uintptr_t)source, bytes);
        return;
    }
    for (uint64_t at = source; at < source + bytes;) {
        bool is_hole = false;
        uint64_t end = run_end(device, at, source + bytes, &is_hole);
        uint64_t to = destination + (at - source);
        if (is_hole)
            sim_fill_zero(to, end - at);
        else
            memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)at, end - at);
        at = end;
    }
}

bool sim_range_valid(const struct sim_context *context, uint64_t address, uint64_t bytes,
                     bool host_too)
{
    uint64_t base = 0;
    uint64_t size = 0;
    int device = -1;
    bool accessible = false;
    const struct sim_alloc *alloc = sim_alloc_at(address);
    if (alloc)
        return bytes <= alloc->node.key + alloc->node.size - address;
    if (sim_reservation_at(address, &base, &size)) {
        for (uint64_t at = address; at < address + bytes; at = base + size)
            if (!sim_mapping_at(at, &base, &size, &device, &accessible) || !accessible)
                return false;
        return true;
    }
    (void)context;
    if (sim_graph_memory_holds(address, bytes))
        return true;
    return host_too && !device_of_address(address, 1);
}
