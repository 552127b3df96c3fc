/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, events and stream capture. */
#include "runtime.h"

#include <cuda_runtime_api.h>
#undef cudaStreamCreateWithFlags

_Static_assert(sizeof(cudaStreamAttrValue) == sizeof(CUstreamAttrValue), "one layout, two names");

cudaError_t cudaStreamCreate(cudaStream_t *pStream)
{
    return RT_CALL(DRV(StreamCreate, pStream, CU_STREAM_DEFAULT));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *pStream, unsigned flags)
{
    return RT_CALL(DRV(StreamCreate, pStream, flags));
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *pStream, unsigned flags, int priority)
{
    return RT_CALL(DRV(StreamCreateWithPriority, pStream, flags, priority));
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    return RT_CALL(DRV(StreamDestroy, stream));
}

RT_STREAM_ENTRY(cudaStreamGetPriority, _ptsz, (cudaStream_t hStream, int *priority),
                (hStream, priority), RT_CALL(DRV_ON(lane, StreamGetPriority, hStream, priority)))

RT_STREAM_ENTRY(cudaStreamGetFlags, _ptsz, (cudaStream_t hStream, unsigned *flags),
                (hStream, flags), RT_CALL(DRV_ON(lane, StreamGetFlags, hStream, flags)))

RT_STREAM_ENTRY(cudaStreamGetId, _ptsz, (cudaStream_t hStream, unsigned long long *streamId),
                (hStream, streamId), RT_CALL(DRV_ON(lane, StreamGetId, hStream, streamId)))

/* The device of a stream is that of its context. */
static cudaError_t stream_device(enum simrt_lane lane, cudaStream_t stream, int *device)
{
    CUcontext context = NULL;
    cudaError_t error = DRV_ON(lane, StreamGetCtx, stream, &context);
    for (int i = 0; error == cudaSuccess && i < simrt.device_count; i++)
        if (simrt.devices[i].primary == context) {
            *device = i;
            return cudaSuccess;
        }
    return error == cudaSuccess ? simrt_current_device(device) : error;
}

RT_STREAM_ENTRY(cudaStreamGetDevice, _ptsz, (cudaStream_t hStream, int *device), (hStream, device),
                RT_CALL(stream_device(lane, hStream, device)))

RT_STREAM_ENTRY(cudaStreamCopyAttributes, _ptsz, (cudaStream_t dst, cudaStream_t src), (dst, src),
                RT_CALL(DRV_ON(lane, StreamCopyAttributes, dst, src)))

RT_STREAM_ENTRY(cudaStreamGetAttribute, _ptsz,
                (cudaStream_t hStream, cudaStreamAttrID attr, cudaStreamAttrValue *value_out),
                (hStream, attr, value_out),
                RT_CALL(DRV_ON(lane, StreamGetAttribute, hStream, (CUstreamAttrID)attr,
                               (CUstreamAttrValue *)value_out)))

RT_STREAM_ENTRY(cudaStreamSetAttribute, _ptsz,
                (cudaStream_t hStream, cudaStreamAttrID attr, const cudaStreamAttrValue *value),
                (hStream, attr, value),
                RT_CALL(DRV_ON(lane, StreamSetAttribute, hStream, (CUstreamAttrID)attr,
                               (const CUstreamAttrValue *)value)))

RT_STREAM_ENTRY(cudaStreamWaitEvent, _ptsz,
                (cudaStream_t stream, cudaEvent_t event, unsigned flags), (stream, event, flags),
                RT_CALL(DRV_ON(lane, StreamWaitEvent, stream, event, flags)))

RT_STREAM_ENTRY(cudaStreamAddCallback, _ptsz,
                (cudaStream_t stream, cudaStreamCallback_t callback, void *userData,
                 unsigned flags),
                (stream, callback, userData, flags),
                RT_CALL(DRV_ON(lane, StreamAddCallback, stream, (CUstreamCallback)(void *)callback,
                               userData, flags)))

RT_STREAM_ENTRY(cudaStreamSynchronize, _ptsz, (cudaStream_t stream), (stream),
                RT_CALL(DRV_ON(lane, StreamSynchronize, stream)))

RT_STREAM_ENTRY(cudaStreamQuery, _ptsz, (cudaStream_t stream), (stream),
                RT_CALL(DRV_ON(lane, StreamQuery, stream)))

RT_STREAM_ENTRY(cudaStreamAttachMemAsync, _ptsz,
                (cudaStream_t stream, void *devPtr, size_t length, unsigned flags),
                (stream, devPtr, length, flags),
                RT_CALL(DRV_ON(lane, StreamAttachMemAsync, stream, (CUdeviceptr)devPtr, length,
                               flags)))

RT_STREAM_ENTRY(cudaStreamBeginCapture, _ptsz,
                (cudaStream_t stream, enum cudaStreamCaptureMode mode), (stream, mode),
                RT_CALL(DRV_ON(lane, StreamBeginCapture, stream, (CUstreamCaptureMode)mode)))

RT_STREAM_ENTRY(cudaStreamBeginCaptureToGraph, _ptsz,
                (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                 const cudaGraphEdgeData *dependencyData, size_t numDependencies,
                 enum cudaStreamCaptureMode mode),
                (stream, graph, dependencies, dependencyData, numDependencies, mode),
                RT_CALL(DRV_ON(lane, StreamBeginCaptureToGraph, stream, graph, dependencies,
                               (const CUgraphEdgeData *)dependencyData, numDependencies,
                               (CUstreamCaptureMode)mode)))

RT_STREAM_ENTRY(cudaStreamEndCapture, _ptsz, (cudaStream_t stream, cudaGraph_t *pGraph),
                (stream, pGraph), RT_CALL(DRV_ON(lane, StreamEndCapture, stream, pGraph)))

RT_STREAM_ENTRY(cudaStreamIsCapturing, _ptsz,
                (cudaStream_t stream, enum cudaStreamCaptureStatus *pCaptureStatus),
                (stream, pCaptureStatus),
                RT_CALL(DRV_ON(lane, StreamIsCapturing, stream,
                               (CUstreamCaptureStatus *)pCaptureStatus)))

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    return RT_CALL(DRV(ThreadExchangeStreamCaptureMode, (CUstreamCaptureMode *)mode));
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return RT_CALL(DRV(EventCreate, event, CU_EVENT_DEFAULT));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    return RT_CALL(DRV(EventCreate, event, flags));
}

RT_STREAM_ENTRY(cudaEventRecord, _ptsz, (cudaEvent_t event, cudaStream_t stream), (event, stream),
                RT_CALL(DRV_ON(lane, EventRecord, event, stream)))

RT_STREAM_ENTRY(cudaEventRecordWithFlags, _ptsz,
                (cudaEvent_t event, cudaStream_t stream, unsigned flags), (event, stream, flags),
                RT_CALL(DRV_ON(lane, EventRecordWithFlags, event, stream, flags)))

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    return RT_CALL(DRV(EventQuery, event));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    return RT_CALL(DRV(EventSynchronize, event));
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    return RT_CALL(DRV(EventDestroy, event));
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    return RT_CALL(DRV(EventElapsedTime, ms, start, end));
}

#if SIMRT_MAJOR < 13
cudaError_t cudaEventElapsedTime_v2(float *ms, cudaEvent_t start, cudaEvent_t end);
cudaError_t cudaEventElapsedTime_v2(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    return RT_CALL(DRV(EventElapsedTime, ms, start, end));
}
#endif
