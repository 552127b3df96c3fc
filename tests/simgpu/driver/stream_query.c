/* SPDX-License-Identifier: Apache-2.0 */
/* What programs ask of and do with streams: synchronising, querying, properties, host functions. */
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "stream.h"

SIM_STREAMED(cuStreamSynchronize, (CUstream hStream), (hStream))
{
    SIM_ENTER(cuStreamSynchronize, 0);
    sim_lock();
    CUresult result;
    struct sim_stream *stream = sim_stream_of(hStream, &result);
    if (stream)
        result = sim_capture_forbids(stream);
    if (result == CUDA_SUCCESS) {
        unsigned device = stream->context->device;
        sim_stream_wait(stream);
        if (stream->is_legacy)
            sim_context_wait(stream->context);
        sim_pools_at_synchronization(device);
    }
    return sim_leave(result);
}

SIM_STREAMED(cuStreamQuery, (CUstream hStream), (hStream))
{
    SIM_ENTER(cuStreamQuery, 0);
    sim_lock();
    CUresult result;
    struct sim_stream *stream = sim_stream_of(hStream, &result);
    if (stream)
        result = sim_capture_forbids(stream);
    if (result == CUDA_SUCCESS && !sim_stream_idle(stream))
        result = CUDA_ERROR_NOT_READY;
    return sim_leave(result);
}

SIM_STREAMED(cuStreamGetPriority, (CUstream hStream, int *priority), (hStream, priority))
{
    SIM_ENTER(cuStreamGetPriority, 0);
    if (!priority)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    const struct sim_stream *stream = sim_stream_of(hStream, &result);
    if (stream)
        *priority = stream->priority;
    return sim_leave(result);
}

SIM_STREAMED(cuStreamGetFlags, (CUstream hStream, unsigned int *flags), (hStream, flags))
{
    SIM_ENTER(cuStreamGetFlags, 0);
    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    const struct sim_stream *stream = sim_stream_of(hStream, &result);
    if (stream)
        *flags = stream->flags;
    return sim_leave(result);
}

SIM_STREAMED(cuStreamGetId, (CUstream hStream, unsigned long long *streamId), (hStream, streamId))
{
    SIM_ENTER(cuStreamGetId, 0);
    if (!streamId)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    const struct sim_stream *stream = sim_stream_of(hStream, &result);
    if (stream)
        *streamId = stream->id;
    return sim_leave(result);
}

static CUresult context_of_stream(CUstream handle, CUcontext *context)
{
    if (!context)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    struct sim_stream *stream = sim_stream_of(handle, &result);
    if (stream)
        *context = (CUcontext)stream->context;
    return sim_leave(result);
}

SIM_STREAMED(cuStreamGetCtx, (CUstream hStream, CUcontext *pctx), (hStream, pctx))
{
    SIM_ENTER(cuStreamGetCtx, 0);
    return context_of_stream(hStream, pctx);
}

#if CUDA_VERSION >= 12050
SIM_STREAMED(cuStreamGetCtx_v2, (CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx),
             (hStream, pCtx, pGreenCtx))
{
    SIM_ENTER(cuStreamGetCtx, 0);
    if (pGreenCtx)
        *pGreenCtx = NULL;
    return context_of_stream(hStream, pCtx);
}
#endif

#if CUDA_VERSION >= 12040
CUresult CUDAAPI cuStreamGetGreenCtx(CUstream hStream, CUgreenCtx *phCtx)
{
    SIM_ENTER(cuStreamGetGreenCtx, 0);
    if (!phCtx)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    if (sim_stream_of(hStream, &result))
        *phCtx = NULL; /* no stream belongs to one: there are none */
    return sim_leave(result);
}
#endif

#if CUDA_VERSION >= 12080
SIM_STREAMED(cuStreamGetDevice, (CUstream hStream, CUdevice *device), (hStream, device))
{
    SIM_ENTER(cuStreamGetDevice, 0);
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    const struct sim_stream *stream = sim_stream_of(hStream, &result);
    if (stream)
        *device = (CUdevice)stream->context->device;
    return sim_leave(result);
}
#endif

/* ---- attributes: remembered, without effect ---- */

SIM_STREAMED(cuStreamCopyAttributes, (CUstream dst, CUstream hStream), (dst, hStream))
{
    SIM_ENTER(cuStreamCopyAttributes, 0);
    sim_lock();
    CUresult result;
    struct sim_stream *to = sim_stream_of(dst, &result);
    const struct sim_stream *from = to ? sim_stream_of(hStream, &result) : NULL;
    if (from)
        memcpy(to->attributes, from->attributes, sizeof to->attributes);
    return sim_leave(result);
}

static CUresult check_attribute(CUstreamAttrID attribute, const void *value)
{
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    bool known = attribute == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW ||
                 attribute == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY ||
                 attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY ||
                 attribute == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP ||
                 attribute == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_STREAMED(cuStreamGetAttribute,
             (CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue *value_out),
             (hStream, attr, value_out))
{
    SIM_ENTER(cuStreamGetAttribute, 0);
    CUresult result = check_attribute(attr, value_out);
    if (result != CUDA_SUCCESS)
        return result;
    sim_lock();
    const struct sim_stream *stream = sim_stream_of(hStream, &result);
    if (stream) {
        memcpy(value_out, &stream->attributes[attr], sizeof *value_out);
        if (attr == CU_LAUNCH_ATTRIBUTE_PRIORITY)
            value_out->priority = stream->priority;
    }
    return sim_leave(result);
}

SIM_STREAMED(cuStreamSetAttribute,
             (CUstream hStream, CUstreamAttrID attr, const CUstreamAttrValue *value),
             (hStream, attr, value))
{
    SIM_ENTER(cuStreamSetAttribute, 0);
    CUresult result = check_attribute(attr, value);
    if (result != CUDA_SUCCESS)
        return result;
    sim_lock();
    struct sim_stream *stream = sim_stream_of(hStream, &result);
    if (stream)
        stream->attributes[attr] = *value;
    return sim_leave(result);
}

SIM_STREAMED(cuStreamAttachMemAsync,
             (CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags),
             (hStream, dptr, length, flags))
{
    SIM_ENTER(cuStreamAttachMemAsync, length);
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST &&
        flags != CU_MEM_ATTACH_SINGLE)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    const struct sim_stream *stream = sim_stream_of(hStream, &result);
    const struct sim_alloc *alloc = stream ? sim_alloc_at(dptr) : NULL;
    if (stream && (!alloc || alloc->kind != SIMGPU_MANAGED || alloc->node.key != dptr))
        result = CUDA_ERROR_INVALID_VALUE;
    return sim_leave(result);
}

/* ---- host functions ---- */

struct host_call {
    CUhostFn function;
    CUstreamCallback callback;
    CUstream stream;
    void *user_data;
};

static void call_host(void *argument)
{
    struct host_call *call = argument;
    if (call->function)
        call->function(call->user_data);
    else
        call->callback(call->stream, CUDA_SUCCESS, call->user_data);
    free(call);
}

static CUresult submit_host(struct sim_stream *stream, struct host_call call)
{
    struct host_call *copy = malloc(sizeof *copy);
    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *copy = call;
    CUresult result = sim_submit(stream, SIM_OP_HOST, call_host, copy);
    if (result != CUDA_SUCCESS)
        free(copy);
    return result;
}

SIM_STREAMED(cuLaunchHostFunc, (CUstream hStream, CUhostFn fn, void *userData),
             (hStream, fn, userData))
{
    SIM_ENTER(cuLaunchHostFunc, 0);
    if (!fn)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    struct sim_stream *stream = sim_stream_of(hStream, &result);
    if (!stream)
        return sim_leave(result);
    CUDA_HOST_NODE_PARAMS host = {.fn = fn, .userData = userData};
    if (sim_capture_add(stream, CU_GRAPH_NODE_TYPE_HOST, &host, &result))
        return sim_leave(result);
    return sim_leave(
        submit_host(stream, (struct host_call){.function = fn, .user_data = userData}));
}

SIM_STREAMED(cuStreamAddCallback,
             (CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags),
             (hStream, callback, userData, flags))
{
    SIM_ENTER(cuStreamAddCallback, 0);
    if (!callback || flags)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    struct sim_stream *stream = sim_stream_of(hStream, &result);
    if (stream)
        result = sim_capture_forbids(stream);
    if (result != CUDA_SUCCESS)
        return sim_leave(result);
    struct host_call call = {.callback = callback, .stream = hStream, .user_data = userData};
    return sim_leave(submit_host(stream, call));
}
