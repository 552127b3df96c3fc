/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts: primary ones with their retain counts, created ones, each thread's stack of current
 * contexts, limits and what they cost, peer access. A context's first use costs the configured
 * bytes; its end frees everything that belongs to it.
 */
#include "driver.h"

#include <stdlib.h>

#define STACK_DEPTH 64

static _Thread_local struct {
    struct sim_context *contexts[STACK_DEPTH];
    unsigned depth;
} stack;

/* ---- life ---- */

static void set_default_limits(struct sim_context *context)
{
    context->limits[CU_LIMIT_STACK_SIZE] = SIM_DEFAULT_STACK;
    context->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 1U << 20;
    context->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8U << 20;
    context->limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
    context->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
    context->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
    context->limits[CU_LIMIT_PERSISTING_L2_CACHE_SIZE] = 0;
}

static CUresult activate(struct sim_context *context)
{
    if (sim_charge(context->device, SIMGPU_CONTEXT, simgpu_config()->context_bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    context->active = true;
    context->peers = 0;
    context->id = ++sim.next_id;
    set_default_limits(context);
    return CUDA_SUCCESS;
}

static void free_memory_of(const struct sim_context *context)
{
    struct sim_node *node = sim_tree_ceiling(&sim.allocations, 0);
    while (node) {
        uint64_t key = node->key;
        struct sim_alloc *alloc = (struct sim_alloc *)node;
        if (alloc->context == context && !alloc->pool)
            sim_alloc_free(alloc);
        node = sim_tree_ceiling(&sim.allocations, key + 1);
    }
}

static void tear_down(struct sim_context *context)
{
    sim_context_wait(context);
    sim_graphs_of_context_end(context);
    if (context->is_primary)
        sim_pools_of_device_end(context->device);
    sim_streams_of_context_end(context);
    sim_modules_of_context_end(context);
    sim_arrays_of_context_end(context);
    free_memory_of(context);
    if (context->local_bytes)
        sim_discharge(context->device, SIMGPU_LOCAL, context->local_bytes);
    context->local_bytes = 0;
    sim_discharge(context->device, SIMGPU_CONTEXT, simgpu_config()->context_bytes);
    context->active = false;
}

struct sim_context *sim_primary(unsigned ordinal)
{
    struct sim_device *device = &sim.devices[ordinal];
    struct sim_context *context = &device->primary;
    if (!device->primary_known) {
        device->primary_known = true;
        context->device = ordinal;
        context->is_primary = true;
        context->object.type = SIM_CONTEXT;
        context->object.node.key = (uint64_t)(uintptr_t)context;
        sim_tree_insert(&sim.objects, &context->object.node);
        context->next = sim.contexts;
        sim.contexts = context;
    }
    return context;
}

/* ---- which one ---- */

static bool is_usable(const struct sim_context *context, CUresult *error)
{
    *error = context->active ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return context->active;
}

struct sim_context *sim_current(CUresult *error)
{
    struct sim_context *context = stack.depth ? stack.contexts[stack.depth - 1] : NULL;
    if (!context) {
        *error = CUDA_ERROR_INVALID_CONTEXT;
        return NULL;
    }
    return is_usable(context, error) ? context : NULL;
}

struct sim_context *sim_context_of(CUcontext handle, CUresult *error)
{
    if (!handle)
        return sim_current(error);
    struct sim_context *context = sim_object_find(handle, SIM_CONTEXT);
    if (!context || context->torn) {
        *error = CUDA_ERROR_INVALID_CONTEXT;
        return NULL;
    }
    return is_usable(context, error) ? context : NULL;
}

bool sim_peer_enabled(const struct sim_context *context, unsigned ordinal)
{
    return context->device == ordinal || (context->peers >> ordinal & 1);
}

/* ---- primary contexts ---- */

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    SIM_ENTER(cuDevicePrimaryCtxRetain, 0);
    if (!pctx)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_is_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    struct sim_context *context = sim_primary((unsigned)dev);
    CUresult result = context->active ? CUDA_SUCCESS : activate(context);
    if (result == CUDA_SUCCESS) {
        context->retained++;
        *pctx = (CUcontext)context;
    }
    return sim_leave(result);
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
    SIM_ENTER(cuDevicePrimaryCtxRelease, 0);
    if (!sim_is_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    struct sim_context *context = sim_primary((unsigned)dev);
    CUresult result = context->retained ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    if (context->retained && --context->retained == 0)
        tear_down(context);
    return sim_leave(result);
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice dev)
{
    return cuDevicePrimaryCtxRelease_v2(dev);
}

CUresult CUDAAPI cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
    SIM_ENTER(cuDevicePrimaryCtxReset, 0);
    if (!sim_is_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    struct sim_context *context = sim_primary((unsigned)dev);
    if (context->active)
        tear_down(context);
    context->retained = 0;
    context->flags = 0;
    return sim_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice dev)
{
    return cuDevicePrimaryCtxReset_v2(dev);
}

static bool are_context_flags(unsigned flags)
{
    return (flags & ~(unsigned)CU_CTX_FLAGS_MASK) == 0 &&
           (flags & CU_CTX_SCHED_MASK) != (CU_CTX_SCHED_SPIN | CU_CTX_SCHED_YIELD);
}

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
    SIM_ENTER(cuDevicePrimaryCtxSetFlags, 0);
    if (!sim_is_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!are_context_flags(flags))
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    sim_primary((unsigned)dev)->flags = flags;
    return sim_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
    return cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
    SIM_ENTER(cuDevicePrimaryCtxGetState, 0);
    if (!sim_is_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!flags || !active)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    *flags = sim_primary((unsigned)dev)->flags;
    *active = sim_primary((unsigned)dev)->active;
    return sim_leave(CUDA_SUCCESS);
}

/* ---- created contexts ---- */

static CUresult create_context(CUcontext *pctx, unsigned flags, CUdevice dev)
{
    if (!pctx || !are_context_flags(flags))
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_is_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    if (stack.depth == STACK_DEPTH)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sim_lock();
    struct sim_context *context = sim_object_new(SIM_CONTEXT, sizeof *context);
    if (!context)
        return sim_leave(CUDA_ERROR_OUT_OF_MEMORY);
    context->device = (unsigned)dev;
    context->flags = flags;
    CUresult result = activate(context);
    if (result != CUDA_SUCCESS) {
        sim_object_delete(context);
        return sim_leave(result);
    }
    context->next = sim.contexts;
    sim.contexts = context;
    stack.contexts[stack.depth++] = context;
    *pctx = (CUcontext)context;
    return sim_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    SIM_ENTER(cuCtxCreate, 0);
    return create_context(pctx, flags, dev);
}

CUresult CUDAAPI cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    return cuCtxCreate_v2(pctx, flags, dev);
}

CUresult CUDAAPI cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams,
                                unsigned int flags, CUdevice dev)
{
    SIM_ENTER(cuCtxCreate, 0);
    if (numParams < 0 || (numParams > 0 && !paramsArray))
        return CUDA_ERROR_INVALID_VALUE;
    if (numParams > 0) /* cuDeviceGetExecAffinitySupport says so */
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    return create_context(pctx, flags, dev);
}

#if CUDA_VERSION >= 12050
CUresult CUDAAPI cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams,
                                unsigned int flags, CUdevice dev)
{
    SIM_ENTER(cuCtxCreate, 0);
    if (ctxCreateParams && ctxCreateParams->numExecAffinityParams > 0)
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    return create_context(pctx, flags, dev);
}
#endif

CUresult CUDAAPI cuCtxDestroy_v2(CUcontext ctx)
{
    SIM_ENTER(cuCtxDestroy, 0);
    if (!ctx)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    struct sim_context *context = sim_context_of(ctx, &result);
    if (context && context->is_primary) {
        result = CUDA_ERROR_INVALID_CONTEXT;
    } else if (context) {
        tear_down(context);
        context->torn = true;
        if (stack.depth && stack.contexts[stack.depth - 1] == context)
            stack.depth--;
    }
    return sim_leave(result);
}

CUresult CUDAAPI cuCtxDestroy(CUcontext ctx)
{
    return cuCtxDestroy_v2(ctx);
}

/* ---- the thread's stack ---- */

CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext ctx)
{
    SIM_ENTER(cuCtxPushCurrent, 0);
    if (!ctx)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    struct sim_context *context = sim_context_of(ctx, &result);
    if (context && stack.depth == STACK_DEPTH)
        result = CUDA_ERROR_INVALID_VALUE;
    else if (context)
        stack.contexts[stack.depth++] = context;
    return sim_leave(result);
}

CUresult CUDAAPI cuCtxPushCurrent(CUcontext ctx)
{
    return cuCtxPushCurrent_v2(ctx);
}

CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext *pctx)
{
    SIM_ENTER(cuCtxPopCurrent, 0);
    if (!stack.depth || !stack.contexts[stack.depth - 1])
        return CUDA_ERROR_INVALID_CONTEXT;
    struct sim_context *context = stack.contexts[--stack.depth];
    if (pctx)
        *pctx = (CUcontext)context;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxPopCurrent(CUcontext *pctx)
{
    return cuCtxPopCurrent_v2(pctx);
}

CUresult CUDAAPI cuCtxSetCurrent(CUcontext ctx)
{
    SIM_ENTER(cuCtxSetCurrent, 0);
    if (!ctx) { /* as documented: NULL pops the top */
        stack.depth -= stack.depth > 0;
        return CUDA_SUCCESS;
    }
    sim_lock();
    CUresult result;
    struct sim_context *context = sim_object_find(ctx, SIM_CONTEXT);
    if (!context || context->torn) {
        result = CUDA_ERROR_INVALID_CONTEXT;
    } else {
        if (!stack.depth)
            stack.depth = 1;
        stack.contexts[stack.depth - 1] = context;
        result = CUDA_SUCCESS;
    }
    return sim_leave(result);
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext *pctx)
{
    SIM_ENTER(cuCtxGetCurrent, 0);
    if (!pctx)
        return CUDA_ERROR_INVALID_VALUE;
    *pctx = stack.depth ? (CUcontext)stack.contexts[stack.depth - 1] : NULL;
    return CUDA_SUCCESS;
}

static CUresult device_of_context(CUcontext ctx, CUdevice *device)
{
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    const struct sim_context *context = sim_context_of(ctx, &result);
    if (context)
        *device = (CUdevice)context->device;
    return sim_leave(result);
}

CUresult CUDAAPI cuCtxGetDevice(CUdevice *device)
{
    SIM_ENTER(cuCtxGetDevice, 0);
    return device_of_context(NULL, device);
}

#if CUDA_VERSION >= 13000
CUresult CUDAAPI cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx)
{
    SIM_ENTER(cuCtxGetDevice, 0);
    return device_of_context(ctx, device);
}
#endif

CUresult CUDAAPI cuCtxGetFlags(unsigned int *flags)
{
    SIM_ENTER(cuCtxGetFlags, 0);
    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    const struct sim_context *context = sim_current(&result);
    if (context)
        *flags = context->flags;
    return sim_leave(result);
}

CUresult CUDAAPI cuCtxSetFlags(unsigned int flags)
{
    SIM_ENTER(cuCtxSetFlags, 0);
    if (!are_context_flags(flags))
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    struct sim_context *context = sim_current(&result);
    if (context)
        context->flags = flags;
    return sim_leave(result);
}

CUresult CUDAAPI cuCtxGetId(CUcontext ctx, unsigned long long *ctxId)
{
    SIM_ENTER(cuCtxGetId, 0);
    if (!ctxId)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    const struct sim_context *context = sim_context_of(ctx, &result);
    if (context)
        *ctxId = context->id;
    return sim_leave(result);
}

CUresult CUDAAPI cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
    SIM_ENTER(cuCtxGetApiVersion, 0);
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    if (sim_context_of(ctx, &result))
        *version = 3020;
    return sim_leave(result);
}

static CUresult synchronize(CUcontext ctx)
{
    sim_lock();
    CUresult result;
    const struct sim_context *context = sim_context_of(ctx, &result);
    if (!context)
        return sim_leave(result);
    result = sim_capture_unsafe_call();
    if (result == CUDA_SUCCESS) {
        sim_context_wait(context);
        sim_pools_at_synchronization(context->device);
    }
    return sim_leave(result);
}

CUresult CUDAAPI cuCtxSynchronize(void)
{
    SIM_ENTER(cuCtxSynchronize, 0);
    return synchronize(NULL);
}

#if CUDA_VERSION >= 13000
CUresult CUDAAPI cuCtxSynchronize_v2(CUcontext ctx)
{
    SIM_ENTER(cuCtxSynchronize, 0);
    return synchronize(ctx);
}
#endif

CUresult CUDAAPI cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
    SIM_ENTER(cuCtxGetStreamPriorityRange, 0);
    if (leastPriority)
        *leastPriority = 0;
    if (greatestPriority)
        *greatestPriority = -5;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetCacheConfig(CUfunc_cache *pconfig)
{
    SIM_ENTER(cuCtxGetCacheConfig, 0);
    if (!pconfig)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    const struct sim_context *context = sim_current(&result);
    if (context)
        *pconfig = context->cache_config;
    return sim_leave(result);
}

CUresult CUDAAPI cuCtxSetCacheConfig(CUfunc_cache config)
{
    SIM_ENTER(cuCtxSetCacheConfig, 0);
    if (config > CU_FUNC_CACHE_PREFER_EQUAL)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    struct sim_context *context = sim_current(&result);
    if (context)
        context->cache_config = config;
    return sim_leave(result);
}

CUresult CUDAAPI cuCtxResetPersistingL2Cache(void)
{
    SIM_ENTER(cuCtxResetPersistingL2Cache, 0);
    sim_lock();
    CUresult result;
    sim_current(&result);
    return sim_leave(result);
}

CUresult CUDAAPI cuCtxGetExecAffinity(CUexecAffinityParam *pExecAffinity, CUexecAffinityType type)
{
    SIM_ENTER(cuCtxGetExecAffinity, 0);
    if (!pExecAffinity || type >= CU_EXEC_AFFINITY_TYPE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
}

/* ---- limits ---- */

CUresult CUDAAPI cuCtxGetLimit(size_t *pvalue, CUlimit limit)
{
    SIM_ENTER(cuCtxGetLimit, 0);
    if (!pvalue || (int)limit < 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (limit >= CU_LIMIT_SHMEM_SIZE)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    sim_lock();
    CUresult result;
    const struct sim_context *context = sim_current(&result);
    if (context)
        *pvalue = context->limits[limit];
    return sim_leave(result);
}

/* The driver keeps local memory for every thread that could be resident: stack × SMs × threads per
 * SM. What the default stack needs is part of the context's own cost. */
static uint64_t local_bytes(const struct sim_context *context)
{
    uint64_t stack_bytes = context->limits[CU_LIMIT_STACK_SIZE];
    uint64_t extra = stack_bytes > SIM_DEFAULT_STACK ? stack_bytes - SIM_DEFAULT_STACK : 0;
    uint64_t bytes = extra * SIM_SM_COUNT * SIM_THREADS_PER_SM;
    return (bytes + SIMGPU_CHUNK - 1) / SIMGPU_CHUNK * SIMGPU_CHUNK;
}

CUresult sim_grow_local(struct sim_context *context)
{
    uint64_t bytes = local_bytes(context);
    if (bytes <= context->local_bytes)
        return CUDA_SUCCESS;
    if (sim_charge(context->device, SIMGPU_LOCAL, bytes - context->local_bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    context->local_bytes = bytes;
    return CUDA_SUCCESS;
}

/* A smaller stack gives back at once; a larger one is there with the next launch. */
static CUresult set_stack_size(struct sim_context *context, size_t stack_bytes)
{
    context->limits[CU_LIMIT_STACK_SIZE] = stack_bytes;
    uint64_t bytes = local_bytes(context);
    if (bytes < context->local_bytes) {
        sim_discharge(context->device, SIMGPU_LOCAL, context->local_bytes - bytes);
        context->local_bytes = bytes;
    }
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSetLimit(CUlimit limit, size_t value)
{
    SIM_ENTER(cuCtxSetLimit, value);
    if ((int)limit < 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (limit >= CU_LIMIT_SHMEM_SIZE)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    sim_lock();
    CUresult result;
    struct sim_context *context = sim_current(&result);
    if (context && limit == CU_LIMIT_STACK_SIZE)
        result = value > (512U << 10) ? CUDA_ERROR_INVALID_VALUE : set_stack_size(context, value);
    else if (context)
        context->limits[limit] = value;
    return sim_leave(result);
}

/* ---- peer access ---- */

CUresult CUDAAPI cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)
{
    SIM_ENTER(cuCtxEnablePeerAccess, 0);
    if (Flags)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    struct sim_context *context = sim_current(&result);
    const struct sim_context *peer = context ? sim_object_find(peerContext, SIM_CONTEXT) : NULL;
    if (context && (!peer || !peer->active || peer == context))
        result = CUDA_ERROR_INVALID_CONTEXT;
    else if (context && peer->device == context->device)
        result = CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    else if (context && sim_peer_enabled(context, peer->device))
        result = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    else if (context)
        context->peers |= 1U << peer->device;
    return sim_leave(result);
}

CUresult CUDAAPI cuCtxDisablePeerAccess(CUcontext peerContext)
{
    SIM_ENTER(cuCtxDisablePeerAccess, 0);
    sim_lock();
    CUresult result;
    struct sim_context *context = sim_current(&result);
    const struct sim_context *peer = context ? sim_object_find(peerContext, SIM_CONTEXT) : NULL;
    if (context && !peer)
        result = CUDA_ERROR_INVALID_CONTEXT;
    else if (context && (peer == context || !sim_peer_enabled(context, peer->device)))
        result = CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    else if (context)
        context->peers &= ~(1U << peer->device);
    return sim_leave(result);
}
