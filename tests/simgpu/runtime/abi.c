/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points whose signature CUDA 13 changed under the same name: what 12
 * calls name_v2 or _v3 is plain `name` in 13. This file includes no runtime
 * prototypes, so that either library builds with either header.
 */
#include "runtime.h"

#if SIMRT_MAJOR >= 13
#define FULL(name, version) name
#else
#define FULL(name, version) name##version
#endif

cudaError_t simrt_graph_add_node(cudaGraphNode_t *node, cudaGraph_t graph,
                                 const cudaGraphNode_t *dependencies,
                                 const cudaGraphEdgeData *edges, size_t count,
                                 struct cudaGraphNodeParams *params);

/* RT_STREAM_ENTRY for a name that is itself the result of a macro. */
#define FULL_STREAM_ENTRY(name, ...) RT_STREAM_ENTRY(name, __VA_ARGS__)

static cudaError_t capture_info(enum simrt_lane lane, cudaStream_t stream,
                                enum cudaStreamCaptureStatus *status, unsigned long long *id,
                                cudaGraph_t *graph, const cudaGraphNode_t **dependencies,
                                const cudaGraphEdgeData **edges, size_t *count)
{
    return DRV_ON(lane, StreamGetCaptureInfo, stream, (CUstreamCaptureStatus *)status,
                  (cuuint64_t *)id, graph, dependencies, (const CUgraphEdgeData **)edges, count);
}

FULL_STREAM_ENTRY(FULL(cudaStreamGetCaptureInfo, _v3), _ptsz,
                  (cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                   unsigned long long *id, cudaGraph_t *graph, const cudaGraphNode_t **dependencies,
                   const cudaGraphEdgeData **edges, size_t *count),
                  (stream, status, id, graph, dependencies, edges, count),
                  RT_CALL(capture_info(lane, stream, status, id, graph, dependencies, edges,
                                       count)))

static cudaError_t update_dependencies(enum simrt_lane lane, cudaStream_t stream,
                                       cudaGraphNode_t *dependencies,
                                       const cudaGraphEdgeData *edges, size_t count, unsigned flags)
{
    return DRV_ON(lane, StreamUpdateCaptureDependencies, stream, dependencies,
                  (const CUgraphEdgeData *)edges, count, flags);
}

FULL_STREAM_ENTRY(FULL(cudaStreamUpdateCaptureDependencies, _v2), _ptsz,
                  (cudaStream_t stream, cudaGraphNode_t *dependencies,
                   const cudaGraphEdgeData *edges, size_t count, unsigned flags),
                  (stream, dependencies, edges, count, flags),
                  RT_CALL(update_dependencies(lane, stream, dependencies, edges, count, flags)))

static cudaError_t prefetch(enum simrt_lane lane, const void *pointer, size_t size,
                            struct cudaMemLocation location, unsigned flags, cudaStream_t stream)
{
    CUmemLocation where = {.type = (CUmemLocationType)location.type, .id = location.id};
    return DRV_ON(lane, MemPrefetchAsync, (CUdeviceptr)pointer, size, where, flags, stream);
}

FULL_STREAM_ENTRY(FULL(cudaMemPrefetchAsync, _v2), _ptsz,
                  (const void *pointer, size_t size, struct cudaMemLocation location,
                   unsigned flags, cudaStream_t stream),
                  (pointer, size, location, flags, stream),
                  RT_CALL(prefetch(lane, pointer, size, location, flags, stream)))

static cudaError_t advise(const void *pointer, size_t size, enum cudaMemoryAdvise advice,
                          struct cudaMemLocation location)
{
    CUmemLocation where = {.type = (CUmemLocationType)location.type, .id = location.id};
    return DRV(MemAdvise, (CUdeviceptr)pointer, size, (CUmem_advise)advice, where);
}

cudaError_t FULL(cudaMemAdvise, _v2)(const void *pointer, size_t size, enum cudaMemoryAdvise advice,
                                     struct cudaMemLocation location)
{
    return RT_CALL(advise(pointer, size, advice, location));
}

cudaError_t FULL(cudaGraphAddNode, _v2)(cudaGraphNode_t *node, cudaGraph_t graph,
                                        const cudaGraphNode_t *dependencies,
                                        const cudaGraphEdgeData *edges, size_t count,
                                        struct cudaGraphNodeParams *params)
{
    return RT_CALL(simrt_graph_add_node(node, graph, dependencies, edges, count, params));
}

cudaError_t FULL(cudaGraphAddDependencies, _v2)(cudaGraph_t graph, const cudaGraphNode_t *from,
                                                const cudaGraphNode_t *to,
                                                const cudaGraphEdgeData *edges, size_t count)
{
    return RT_CALL(
        DRV(GraphAddDependencies, graph, from, to, (const CUgraphEdgeData *)edges, count));
}

cudaError_t FULL(cudaGraphRemoveDependencies, _v2)(cudaGraph_t graph, const cudaGraphNode_t *from,
                                                   const cudaGraphNode_t *to,
                                                   const cudaGraphEdgeData *edges, size_t count)
{
    return RT_CALL(
        DRV(GraphRemoveDependencies, graph, from, to, (const CUgraphEdgeData *)edges, count));
}

cudaError_t FULL(cudaGraphGetEdges, _v2)(cudaGraph_t graph, cudaGraphNode_t *from,
                                         cudaGraphNode_t *to, cudaGraphEdgeData *edges,
                                         size_t *count)
{
    return RT_CALL(DRV(GraphGetEdges, graph, from, to, (CUgraphEdgeData *)edges, count));
}

cudaError_t FULL(cudaGraphNodeGetDependencies, _v2)(cudaGraphNode_t node,
                                                    cudaGraphNode_t *dependencies,
                                                    cudaGraphEdgeData *edges, size_t *count)
{
    return RT_CALL(
        DRV(GraphNodeGetDependencies, node, dependencies, (CUgraphEdgeData *)edges, count));
}

cudaError_t FULL(cudaGraphNodeGetDependentNodes, _v2)(cudaGraphNode_t node,
                                                      cudaGraphNode_t *dependents,
                                                      cudaGraphEdgeData *edges, size_t *count)
{
    return RT_CALL(
        DRV(GraphNodeGetDependentNodes, node, dependents, (CUgraphEdgeData *)edges, count));
}

#if SIMRT_MAJOR < 13

RT_STREAM_ENTRY(cudaStreamGetCaptureInfo, _ptsz,
                (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id),
                (stream, status, id),
                RT_CALL(capture_info(lane, stream, status, id, NULL, NULL, NULL, NULL)))

RT_STREAM_ENTRY(cudaStreamGetCaptureInfo_v2, _ptsz,
                (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
                 cudaGraph_t *graph, const cudaGraphNode_t **dependencies, size_t *count),
                (stream, status, id, graph, dependencies, count),
                RT_CALL(capture_info(lane, stream, status, id, graph, dependencies, NULL, count)))

RT_STREAM_ENTRY(cudaStreamUpdateCaptureDependencies, _ptsz,
                (cudaStream_t stream, cudaGraphNode_t *dependencies, size_t count, unsigned flags),
                (stream, dependencies, count, flags),
                RT_CALL(update_dependencies(lane, stream, dependencies, NULL, count, flags)))

/* A device number as a place; cudaCpuDeviceId (-1) is the host. */
static struct cudaMemLocation place_of(int device)
{
    struct cudaMemLocation place = {.type = cudaMemLocationTypeDevice, .id = device};
    if (device < 0) {
        place.type = cudaMemLocationTypeHost;
        place.id = 0;
    }
    return place;
}

RT_STREAM_ENTRY(cudaMemPrefetchAsync, _ptsz,
                (const void *pointer, size_t size, int device, cudaStream_t stream),
                (pointer, size, device, stream),
                RT_CALL(prefetch(lane, pointer, size, place_of(device), 0, stream)))

cudaError_t cudaMemAdvise(const void *pointer, size_t size, enum cudaMemoryAdvise advice,
                          int device)
{
    return RT_CALL(advise(pointer, size, advice, place_of(device)));
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph,
                             const cudaGraphNode_t *dependencies, size_t count,
                             struct cudaGraphNodeParams *params)
{
    return RT_CALL(simrt_graph_add_node(node, graph, dependencies, NULL, count, params));
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                     const cudaGraphNode_t *to, size_t count)
{
    return RT_CALL(DRV(GraphAddDependencies, graph, from, to, NULL, count));
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                        const cudaGraphNode_t *to, size_t count)
{
    return RT_CALL(DRV(GraphRemoveDependencies, graph, from, to, NULL, count));
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                              size_t *count)
{
    return RT_CALL(DRV(GraphGetEdges, graph, from, to, NULL, count));
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *dependencies,
                                         size_t *count)
{
    return RT_CALL(DRV(GraphNodeGetDependencies, node, dependencies, NULL, count));
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *dependents,
                                           size_t *count)
{
    return RT_CALL(DRV(GraphNodeGetDependentNodes, node, dependents, NULL, count));
}

cudaError_t cudaThreadSynchronize(void)
{
    return RT_CALL(DRV(CtxSynchronize));
}

cudaError_t cudaThreadSetLimit(enum cudaLimit limit, size_t value)
{
    return RT_CALL(DRV(CtxSetLimit, (CUlimit)limit, value));
}

cudaError_t cudaThreadGetLimit(size_t *value, enum cudaLimit limit)
{
    return RT_CALL(DRV(CtxGetLimit, value, (CUlimit)limit));
}

cudaError_t cudaThreadGetCacheConfig(enum cudaFuncCache *config)
{
    return RT_CALL(DRV(CtxGetCacheConfig, (CUfunc_cache *)config));
}

cudaError_t cudaThreadSetCacheConfig(enum cudaFuncCache config)
{
    return RT_CALL(DRV(CtxSetCacheConfig, (CUfunc_cache)config));
}

cudaError_t cudaThreadExit(void)
{
    return RT_CALL_WITHOUT_CONTEXT(simrt_reset_device());
}

#endif
