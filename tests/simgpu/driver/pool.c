/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream-ordered allocation. A pool reserves whole chunks of its device and hands out pieces. A
 * free takes effect when its stream comes to it; until then only the same stream may have the piece
 * again. What is reserved beyond the release threshold goes back at synchronisation points.
 */
#include "pool.h"

#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "graph_objects.h"

/* A piece whose free has been submitted but not come to pass. */
struct sim_pending_free {
    struct sim_pool *pool; /* NULL: the piece was handed out again, in the same stream */
    struct sim_stream *stream;
    uint64_t address;
    uint64_t block_bytes;
    uint64_t requested_bytes;
    struct sim_pending_free *next;
};

static struct sim_pool *pools;

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

static void raise_high(uint64_t *high, uint64_t current)
{
    if (*high < current)
        *high = current;
}

/* ---- life ---- */

struct sim_pool *sim_pool_of(CUmemoryPool handle)
{
    struct sim_pool *pool = sim_object_find(handle, SIM_POOL);
    return pool && !pool->doomed ? pool : NULL;
}

struct sim_pool *sim_pool_new(unsigned ordinal)
{
    struct sim_pool *pool = sim_object_new(SIM_POOL, sizeof *pool);
    if (!pool)
        return NULL;
    pool->ordinal = ordinal;
    pool->access = 1U << ordinal;
    for (size_t i = 0; i < sizeof pool->reuse / sizeof *pool->reuse; i++)
        pool->reuse[i] = 1;
    pool->next = pools;
    pools = pool;
    return pool;
}

struct sim_pool *sim_default_pool(unsigned ordinal)
{
    struct sim_device *device = &sim.devices[ordinal];
    if (!device->default_pool) {
        struct sim_pool *pool = sim_pool_new(ordinal);
        if (!pool)
            return NULL;
        pool->is_default = true;
        device->default_pool = (CUmemoryPool)pool;
        device->current_pool = device->default_pool;
    }
    return (struct sim_pool *)device->default_pool;
}

static struct sim_pool *current_pool(unsigned ordinal)
{
    return sim_default_pool(ordinal) ? (struct sim_pool *)sim.devices[ordinal].current_pool : NULL;
}

/* Gives whole free chunks back until at most KEEP bytes are reserved. */
static void trim(struct sim_pool *pool, uint64_t keep)
{
    uint64_t from = 0;
    while (pool->reserved > keep) {
        struct sim_node *node = sim_tree_ceiling(&pool->free.tree, from);
        if (!node)
            return;
        uint64_t first = round_up(node->key, SIMGPU_CHUNK);
        uint64_t end = (node->key + node->size) / SIMGPU_CHUNK * SIMGPU_CHUNK;
        from = node->key + node->size;
        if (end <= first)
            continue;
        uint64_t excess = round_up(pool->reserved - keep, SIMGPU_CHUNK);
        uint64_t bytes = end - first < excess ? end - first : excess;
        sim_extents_take_at(&pool->free, first, bytes);
        pool->reserved -= bytes;
        sim_span_give(pool->ordinal, first, bytes);
        sim_discharge(pool->ordinal, SIMGPU_POOL, bytes);
    }
}

static void delete_if_done(struct sim_pool *pool)
{
    if (!pool->doomed || pool->blocks)
        return;
    trim(pool, 0);
    struct sim_pool **link = &pools;
    while (*link != pool)
        link = &(*link)->next;
    *link = pool->next;
    sim_extents_clear(&pool->free);
    sim_object_delete(pool);
}

void sim_pools_at_synchronization(unsigned ordinal)
{
    for (struct sim_pool *pool = pools; pool; pool = pool->next)
        if (pool->ordinal == ordinal && pool->reserved > pool->threshold)
            trim(pool, pool->threshold);
}

/* ---- pieces ---- */

static CUresult grow(struct sim_pool *pool, uint64_t bytes)
{
    bytes = round_up(bytes, SIMGPU_CHUNK);
    if (pool->max_bytes && pool->reserved + bytes > round_up(pool->max_bytes, SIMGPU_CHUNK))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (sim_charge(pool->ordinal, SIMGPU_POOL, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    uint64_t address = sim_span_take(pool->ordinal, bytes);
    if (!address || !sim_extents_give(&pool->free, address, bytes, NULL, NULL)) {
        sim_discharge(pool->ordinal, SIMGPU_POOL, bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    pool->reserved += bytes;
    raise_high(&pool->reserved_high, pool->reserved);
    return CUDA_SUCCESS;
}

static void unlink_pending(struct sim_pending_free *pending)
{
    struct sim_pending_free **link = &pending->pool->pending;
    while (*link != pending)
        link = &(*link)->next;
    *link = pending->next;
    pending->pool = NULL;
}

/* The smallest piece that STREAM itself freed and that is large enough. */
static bool reuse_in_stream(struct sim_pool *pool, const struct sim_stream *stream,
                            uint64_t *address, uint64_t *block_bytes)
{
    struct sim_pending_free *best = NULL;
    for (struct sim_pending_free *pending = pool->pending; pending; pending = pending->next)
        if (pending->stream == stream && pending->block_bytes >= *block_bytes &&
            (!best || pending->block_bytes < best->block_bytes))
            best = pending;
    if (!best)
        return false;
    *address = best->address;
    *block_bytes = best->block_bytes;
    pool->used -= best->requested_bytes;
    pool->blocks--;
    unlink_pending(best);
    return true;
}

static CUresult take(struct sim_pool *pool, const struct sim_stream *stream, uint64_t bytes,
                     uint64_t *address, uint64_t *block_bytes)
{
    *block_bytes = round_up(bytes, SIM_ALIGNMENT);
    if (sim_extents_take(&pool->free, *block_bytes, SIM_ALIGNMENT, address) ||
        reuse_in_stream(pool, stream, address, block_bytes))
        return CUDA_SUCCESS;
    CUresult result = grow(pool, *block_bytes);
    if (result == CUDA_SUCCESS &&
        !sim_extents_take(&pool->free, *block_bytes, SIM_ALIGNMENT, address))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    return result;
}

static void put(struct sim_pool *pool, uint64_t address, uint64_t block_bytes,
                uint64_t requested_bytes)
{
    sim_extents_give(&pool->free, address, block_bytes, NULL, NULL);
    pool->used -= requested_bytes;
    pool->blocks--;
    delete_if_done(pool);
}

static CUresult allocate(struct sim_pool *pool, struct sim_stream *stream, uint64_t bytes,
                         CUdeviceptr *dptr)
{
    uint64_t address = 0;
    uint64_t block_bytes = 0;
    if (bytes > simgpu_config()->memory_bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = take(pool, stream, bytes, &address, &block_bytes);
    if (result != CUDA_SUCCESS)
        return result;
    struct sim_alloc *alloc = sim_alloc_new(SIMGPU_POOL_BLOCK, (int)pool->ordinal, address, bytes);
    if (!alloc) {
        sim_extents_give(&pool->free, address, block_bytes, NULL, NULL);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    alloc->context = stream->context;
    alloc->pool = pool;
    alloc->span_bytes = block_bytes;
    pool->blocks++;
    pool->used += bytes;
    raise_high(&pool->used_high, pool->used);
    *dptr = address;
    return CUDA_SUCCESS;
}

CUresult sim_pool_free_now(struct sim_alloc *alloc)
{
    if (alloc->kind == SIMGPU_GRAPH_BLOCK) {
        sim_graph_block_free(alloc);
    } else if (alloc->kind == SIMGPU_IMPORT) {
        alloc->pool->blocks--;
        delete_if_done(alloc->pool);
        sim_alloc_free(alloc);
    } else {
        struct sim_pool *pool = alloc->pool;
        uint64_t address = alloc->node.key;
        uint64_t block_bytes = alloc->span_bytes;
        uint64_t requested_bytes = alloc->node.size;
        sim_alloc_delete(alloc);
        put(pool, address, block_bytes, requested_bytes);
    }
    return CUDA_SUCCESS;
}

static void complete_free(void *argument)
{
    struct sim_pending_free *pending = argument;
    if (pending->pool) {
        struct sim_pool *pool = pending->pool;
        unlink_pending(pending);
        put(pool, pending->address, pending->block_bytes, pending->requested_bytes);
    }
    free(pending);
}

static CUresult free_in_order(struct sim_alloc *alloc, struct sim_stream *stream)
{
    if (alloc->kind != SIMGPU_POOL_BLOCK || sim_stream_idle(stream))
        return sim_pool_free_now(alloc);
    struct sim_pending_free *pending = malloc(sizeof *pending);
    if (!pending)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pending = (struct sim_pending_free){.pool = alloc->pool,
                                         .stream = stream,
                                         .address = alloc->node.key,
                                         .block_bytes = alloc->span_bytes,
                                         .requested_bytes = alloc->node.size,
                                         .next = alloc->pool->pending};
    alloc->pool->pending = pending;
    CUresult result = sim_submit(stream, SIM_OP_DEVICE, complete_free, pending);
    if (result == CUDA_SUCCESS) {
        sim_alloc_delete(alloc);
        return CUDA_SUCCESS;
    }
    unlink_pending(pending);
    free(pending);
    return result;
}

void sim_pools_of_device_end(unsigned ordinal)
{
    struct sim_node *node = sim_tree_ceiling(&sim.allocations, 0);
    while (node) {
        uint64_t key = node->key;
        struct sim_alloc *alloc = (struct sim_alloc *)node;
        if (alloc->pool && alloc->device == (int)ordinal)
            sim_pool_free_now(alloc);
        node = sim_tree_ceiling(&sim.allocations, key + 1);
    }
    struct sim_pool *pool = pools;
    while (pool) {
        struct sim_pool *next = pool->next;
        if (pool->ordinal == ordinal) {
            trim(pool, 0);
            pool->doomed = !pool->is_default;
            delete_if_done(pool);
        }
        pool = next;
    }
    sim.devices[ordinal].current_pool = sim.devices[ordinal].default_pool;
    sim_graph_pool_trim(ordinal);
}

/* ---- the calls ---- */

/* Memory for a capture is a node's, with an address of its own. */
static bool captured_alloc(struct sim_stream *stream, uint64_t bytes, CUdeviceptr *dptr,
                           CUresult *result)
{
    struct sim_graph_memory *memory = NULL;
    if (!stream->capture)
        return sim_capture_add(stream, CU_GRAPH_NODE_TYPE_MEM_ALLOC, NULL, result);
    *result = sim_graph_memory_new(stream->context->device, bytes, &memory);
    if (*result != CUDA_SUCCESS)
        return true;
    sim_capture_add(stream, CU_GRAPH_NODE_TYPE_MEM_ALLOC, &memory, result);
    if (*result == CUDA_SUCCESS)
        *dptr = memory->node.key;
    else
        sim_graph_memory_drop(memory);
    return true;
}

static CUresult alloc_async(CUdeviceptr *dptr, size_t bytes, CUmemoryPool pool_handle,
                            bool has_pool, CUstream stream_handle)
{
    if (!dptr || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    struct sim_stream *stream = sim_stream_of(stream_handle, &result);
    if (!stream)
        return sim_leave(result);
    struct sim_pool *pool =
        has_pool ? sim_pool_of(pool_handle) : current_pool(stream->context->device);
    if (!pool || pool->is_imported)
        return sim_leave(has_pool ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY);
    if (captured_alloc(stream, bytes, dptr, &result))
        return sim_leave(result);
    if (sim_stream_tail(stream))
        sim_progress();
    return sim_leave(allocate(pool, stream, bytes, dptr));
}

SIM_STREAMED(cuMemAllocAsync, (CUdeviceptr * dptr, size_t bytesize, CUstream hStream),
             (dptr, bytesize, hStream))
{
    SIM_ENTER(cuMemAllocAsync, bytesize);
    return alloc_async(dptr, bytesize, NULL, false, hStream);
}

SIM_STREAMED(cuMemAllocFromPoolAsync,
             (CUdeviceptr * dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream),
             (dptr, bytesize, pool, hStream))
{
    SIM_ENTER(cuMemAllocFromPoolAsync, bytesize);
    return alloc_async(dptr, bytesize, pool, true, hStream);
}

SIM_STREAMED(cuMemFreeAsync, (CUdeviceptr dptr, CUstream hStream), (dptr, hStream))
{
    SIM_ENTER(cuMemFreeAsync, 0);
    sim_lock();
    CUresult result;
    struct sim_stream *stream = sim_stream_of(hStream, &result);
    if (!stream)
        return sim_leave(result);
    if (!dptr)
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    if (sim_capture_add(stream, CU_GRAPH_NODE_TYPE_MEM_FREE, &dptr, &result))
        return sim_leave(result);
    struct sim_alloc *alloc = (struct sim_alloc *)sim_tree_find(&sim.allocations, dptr);
    if (!alloc || !alloc->pool)
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    return sim_leave(free_in_order(alloc, stream));
}

/* ---- pools as objects ---- */

CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
    SIM_ENTER(cuMemPoolCreate, 0);
    if (!pool || !poolProps || poolProps->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (poolProps->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!sim_is_device(poolProps->location.id))
        return CUDA_ERROR_INVALID_DEVICE;
    if (poolProps->handleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    sim_lock();
    struct sim_pool *made = sim_pool_new((unsigned)poolProps->location.id);
    if (!made)
        return sim_leave(CUDA_ERROR_OUT_OF_MEMORY);
    made->handle_types = poolProps->handleTypes;
    made->max_bytes = poolProps->maxSize;
    *pool = (CUmemoryPool)made;
    return sim_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuMemPoolDestroy(CUmemoryPool pool)
{
    SIM_ENTER(cuMemPoolDestroy, 0);
    sim_lock();
    struct sim_pool *found = sim_pool_of(pool);
    if (!found || found->is_default)
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    struct sim_device *device = &sim.devices[found->ordinal];
    if (device->current_pool == pool)
        device->current_pool = device->default_pool;
    found->doomed = true;
    found->threshold = 0;
    delete_if_done(found);
    return sim_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
    SIM_ENTER(cuMemPoolTrimTo, 0);
    sim_lock();
    struct sim_pool *found = sim_pool_of(pool);
    if (found)
        trim(found, minBytesToKeep);
    return sim_leave(found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

static uint64_t *high_mark(struct sim_pool *pool, CUmemPool_attribute attribute, uint64_t *current)
{
    bool reserved = attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH;
    *current = reserved ? pool->reserved : pool->used;
    return reserved ? &pool->reserved_high : &pool->used_high;
}

CUresult CUDAAPI cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    SIM_ENTER(cuMemPoolSetAttribute, 0);
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct sim_pool *found = sim_pool_of(pool);
    CUresult result = found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    uint64_t current = 0;
    uint64_t *high;
    switch (found ? attr : 0) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        found->reuse[attr - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] = *(int *)value;
        break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        found->threshold = *(cuuint64_t *)value;
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: /* can only be reset */
        high = high_mark(found, attr, &current);
        if (*(cuuint64_t *)value)
            result = CUDA_ERROR_INVALID_VALUE;
        else
            *high = current;
        break;
    default:
        result = CUDA_ERROR_INVALID_VALUE;
    }
    return sim_leave(result);
}

CUresult CUDAAPI cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    SIM_ENTER(cuMemPoolGetAttribute, 0);
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    if (sim_pool_of(pool))
        sim_progress(); /* frees that are due count */
    const struct sim_pool *found = sim_pool_of(pool);
    CUresult result = found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    switch (found ? attr : 0) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        *(int *)value = found->reuse[attr - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
        break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        *(cuuint64_t *)value = found->threshold;
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        *(cuuint64_t *)value = found->reserved;
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        *(cuuint64_t *)value = found->reserved_high;
        break;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        *(cuuint64_t *)value = found->used;
        break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        *(cuuint64_t *)value = found->used_high;
        break;
    default:
        result = CUDA_ERROR_INVALID_VALUE;
    }
    return sim_leave(result);
}

CUresult CUDAAPI cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
    SIM_ENTER(cuMemPoolSetAccess, 0);
    if (!map || !count)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct sim_pool *found = sim_pool_of(pool);
    uint32_t access = found ? found->access : 0;
    CUresult result = found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; result == CUDA_SUCCESS && i < count; i++) {
        bool grants = map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
            (!grants && map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE))
            result = CUDA_ERROR_INVALID_VALUE;
        else if (!sim_is_device(map[i].location.id))
            result = CUDA_ERROR_INVALID_DEVICE;
        else if (!grants && map[i].location.id == (int)found->ordinal)
            result = CUDA_ERROR_INVALID_DEVICE; /* its own device keeps access */
        else if (grants)
            access |= 1U << map[i].location.id;
        else
            access &= ~(1U << map[i].location.id);
    }
    if (result == CUDA_SUCCESS)
        found->access = access;
    return sim_leave(result);
}

CUresult CUDAAPI cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool memPool,
                                    CUmemLocation *location)
{
    SIM_ENTER(cuMemPoolGetAccess, 0);
    if (!flags || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_is_device(location->id))
        return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    const struct sim_pool *found = sim_pool_of(memPool);
    if (found)
        *flags = found->access >> location->id & 1 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                                   : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return sim_leave(found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

/* ---- which pool a device uses ---- */

static CUresult give_pool(CUmemoryPool *pool, int ordinal, bool wants_default)
{
    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_is_device(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    struct sim_pool *found =
        wants_default ? sim_default_pool((unsigned)ordinal) : current_pool((unsigned)ordinal);
    if (found)
        *pool = (CUmemoryPool)found;
    return sim_leave(found ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

static CUresult set_pool(int ordinal, CUmemoryPool pool)
{
    if (!sim_is_device(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    const struct sim_pool *found = sim_pool_of(pool);
    bool fits = found && found->ordinal == (unsigned)ordinal && !found->is_imported &&
                sim_default_pool((unsigned)ordinal);
    if (fits)
        sim.devices[ordinal].current_pool = pool;
    return sim_leave(fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev)
{
    SIM_ENTER(cuDeviceGetDefaultMemPool, 0);
    return give_pool(pool_out, dev, true);
}

CUresult CUDAAPI cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
    SIM_ENTER(cuDeviceGetMemPool, 0);
    return give_pool(pool, dev, false);
}

CUresult CUDAAPI cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
    SIM_ENTER(cuDeviceSetMemPool, 0);
    return set_pool(dev, pool);
}

#if CUDA_VERSION >= 13000
static CUresult check_location(const CUmemLocation *location, CUmemAllocationType type)
{
    if (!location)
        return CUDA_ERROR_INVALID_VALUE;
    bool simulated =
        location->type == CU_MEM_LOCATION_TYPE_DEVICE && type == CU_MEM_ALLOCATION_TYPE_PINNED;
    return simulated ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult CUDAAPI cuMemGetDefaultMemPool(CUmemoryPool *pool_out, CUmemLocation *location,
                                        CUmemAllocationType type)
{
    SIM_ENTER(cuMemGetDefaultMemPool, 0);
    CUresult result = check_location(location, type);
    return result == CUDA_SUCCESS ? give_pool(pool_out, location->id, true) : result;
}

CUresult CUDAAPI cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location,
                                 CUmemAllocationType type)
{
    SIM_ENTER(cuMemGetMemPool, 0);
    CUresult result = check_location(location, type);
    return result == CUDA_SUCCESS ? give_pool(pool, location->id, false) : result;
}

CUresult CUDAAPI cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type,
                                 CUmemoryPool pool)
{
    SIM_ENTER(cuMemSetMemPool, 0);
    CUresult result = check_location(location, type);
    return result == CUDA_SUCCESS ? set_pool(location->id, pool) : result;
}
#endif
