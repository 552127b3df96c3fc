/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs as wholes: structure, instances, launches, objects they own. */
#include "runtime.h"

#include <cuda_runtime_api.h>

_Static_assert(sizeof(cudaGraphInstantiateParams) == sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS),
               "one layout, two names");
_Static_assert(sizeof(cudaGraphExecUpdateResultInfo) == sizeof(CUgraphExecUpdateResultInfo),
               "one layout, two names");

cudaError_t cudaGraphCreate(cudaGraph_t *pGraph, unsigned flags)
{
    return RT_CALL(DRV(GraphCreate, pGraph, flags));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    return RT_CALL(DRV(GraphDestroy, graph));
}

cudaError_t cudaGraphClone(cudaGraph_t *pGraphClone, cudaGraph_t originalGraph)
{
    return RT_CALL(DRV(GraphClone, pGraphClone, originalGraph));
}

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *pNode, cudaGraphNode_t originalNode,
                                     cudaGraph_t clonedGraph)
{
    return RT_CALL(DRV(GraphNodeFindInClone, pNode, originalNode, clonedGraph));
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *pType)
{
    return RT_CALL(DRV(GraphNodeGetType, node, (CUgraphNodeType *)pType));
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *numNodes)
{
    return RT_CALL(DRV(GraphGetNodes, graph, nodes, numNodes));
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *pRootNodes,
                                  size_t *pNumRootNodes)
{
    return RT_CALL(DRV(GraphGetRootNodes, graph, pRootNodes, pNumRootNodes));
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node)
{
    return RT_CALL(DRV(GraphDestroyNode, node));
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
                                 unsigned long long flags)
{
    return RT_CALL(DRV(GraphInstantiateWithFlags, pGraphExec, graph, flags));
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
                                          unsigned long long flags)
{
    return RT_CALL(DRV(GraphInstantiateWithFlags, pGraphExec, graph, flags));
}

RT_STREAM_ENTRY(cudaGraphInstantiateWithParams, _ptsz,
                (cudaGraphExec_t * pGraphExec, cudaGraph_t graph,
                 cudaGraphInstantiateParams *instantiateParams),
                (pGraphExec, graph, instantiateParams),
                RT_CALL(DRV_ON(lane, GraphInstantiateWithParams, pGraphExec, graph,
                               (CUDA_GRAPH_INSTANTIATE_PARAMS *)instantiateParams)))

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t graphExec, unsigned long long *flags)
{
    return RT_CALL(DRV(GraphExecGetFlags, graphExec, (cuuint64_t *)flags));
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t hGraphExec, cudaGraph_t hGraph,
                                cudaGraphExecUpdateResultInfo *resultInfo)
{
    return RT_CALL(
        DRV(GraphExecUpdate, hGraphExec, hGraph, (CUgraphExecUpdateResultInfo *)resultInfo));
}

RT_STREAM_ENTRY(cudaGraphUpload, _ptsz, (cudaGraphExec_t graphExec, cudaStream_t stream),
                (graphExec, stream), RT_CALL(DRV_ON(lane, GraphUpload, graphExec, stream)))

RT_STREAM_ENTRY(cudaGraphLaunch, _ptsz, (cudaGraphExec_t graphExec, cudaStream_t stream),
                (graphExec, stream), RT_CALL(DRV_ON(lane, GraphLaunch, graphExec, stream)))

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec)
{
    return RT_CALL(DRV(GraphExecDestroy, graphExec));
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned flags)
{
    return RT_CALL(DRV(GraphDebugDotPrint, graph, path, flags));
}

cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode,
                                    unsigned isEnabled)
{
    return RT_CALL(DRV(GraphNodeSetEnabled, hGraphExec, hNode, isEnabled));
}

cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode,
                                    unsigned *isEnabled)
{
    return RT_CALL(DRV(GraphNodeGetEnabled, hGraphExec, hNode, isEnabled));
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t *object_out, void *ptr, cudaHostFn_t destroy,
                                 unsigned initialRefcount, unsigned flags)
{
    return RT_CALL(DRV(UserObjectCreate, (CUuserObject *)object_out, ptr, (CUhostFn)destroy,
                       initialRefcount, flags));
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned count)
{
    return RT_CALL(DRV(UserObjectRetain, (CUuserObject)object, count));
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count)
{
    return RT_CALL(DRV(UserObjectRelease, (CUuserObject)object, count));
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count,
                                      unsigned flags)
{
    return RT_CALL(DRV(GraphRetainUserObject, graph, (CUuserObject)object, count, flags));
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count)
{
    return RT_CALL(DRV(GraphReleaseUserObject, graph, (CUuserObject)object, count));
}

static cudaError_t current_context(CUcontext *context)
{
    return DRV(CtxGetCurrent, context);
}

static cudaError_t conditional_handle(cudaGraphConditionalHandle *handle, cudaGraph_t graph,
                                      unsigned initial, unsigned flags)
{
    CUcontext context = NULL;
    cudaError_t error = current_context(&context);
    return error == cudaSuccess
               ? DRV(GraphConditionalHandleCreate, (CUgraphConditionalHandle *)handle, graph,
                     context, initial, flags)
               : error;
}

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *pHandle_out,
                                             cudaGraph_t graph, unsigned defaultLaunchValue,
                                             unsigned flags)
{
    return RT_CALL(conditional_handle(pHandle_out, graph, defaultLaunchValue, flags));
}
