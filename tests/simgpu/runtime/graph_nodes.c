/* SPDX-License-Identifier: Apache-2.0 */
/* Graph nodes of each kind: made, read and changed, in a graph and in an instance. */
#include "runtime.h"

#include <cuda_runtime_api.h>
#include <string.h>

static cudaError_t kernel_params(const struct cudaKernelNodeParams *from,
                                 CUDA_KERNEL_NODE_PARAMS_v2 *to)
{
    if (!from)
        return cudaErrorInvalidValue;
    *to = (CUDA_KERNEL_NODE_PARAMS_v2){
        .gridDimX = from->gridDim.x,
        .gridDimY = from->gridDim.y,
        .gridDimZ = from->gridDim.z,
        .blockDimX = from->blockDim.x,
        .blockDimY = from->blockDim.y,
        .blockDimZ = from->blockDim.z,
        .sharedMemBytes = from->sharedMemBytes,
        .kernelParams = from->kernelParams,
        .extra = from->extra,
    };
    return simrt_function_of(from->func, &to->func);
}

static cudaError_t add_kernel(cudaGraphNode_t *node, cudaGraph_t graph,
                              const cudaGraphNode_t *dependencies, size_t count,
                              const struct cudaKernelNodeParams *params)
{
    CUDA_KERNEL_NODE_PARAMS_v2 wanted;
    cudaError_t error = kernel_params(params, &wanted);
    return error == cudaSuccess ? DRV(GraphAddKernelNode, node, graph, dependencies, count, &wanted)
                                : error;
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                   const cudaGraphNode_t *pDependencies, size_t numDependencies,
                                   const struct cudaKernelNodeParams *pNodeParams)
{
    return RT_CALL(add_kernel(pGraphNode, graph, pDependencies, numDependencies, pNodeParams));
}

static cudaError_t get_kernel_params(cudaGraphNode_t node, struct cudaKernelNodeParams *params)
{
    CUDA_KERNEL_NODE_PARAMS_v2 found = {0};
    cudaError_t error =
        params ? DRV(GraphKernelNodeGetParams, node, &found) : cudaErrorInvalidValue;
    if (error != cudaSuccess)
        return error;
    *params = (struct cudaKernelNodeParams){
        .func = found.kern ? (void *)found.kern : (void *)found.func,
        .gridDim = {found.gridDimX, found.gridDimY, found.gridDimZ},
        .blockDim = {found.blockDimX, found.blockDimY, found.blockDimZ},
        .sharedMemBytes = found.sharedMemBytes,
        .kernelParams = found.kernelParams,
        .extra = found.extra,
    };
    return cudaSuccess;
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node,
                                         struct cudaKernelNodeParams *pNodeParams)
{
    return RT_CALL(get_kernel_params(node, pNodeParams));
}

static cudaError_t set_kernel(cudaGraphNode_t node, const struct cudaKernelNodeParams *params)
{
    CUDA_KERNEL_NODE_PARAMS_v2 wanted;
    cudaError_t error = kernel_params(params, &wanted);
    return error == cudaSuccess ? DRV(GraphKernelNodeSetParams, node, &wanted) : error;
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node,
                                         const struct cudaKernelNodeParams *pNodeParams)
{
    return RT_CALL(set_kernel(node, pNodeParams));
}

static cudaError_t set_exec_kernel(cudaGraphExec_t exec, cudaGraphNode_t node,
                                   const struct cudaKernelNodeParams *params)
{
    CUDA_KERNEL_NODE_PARAMS_v2 wanted;
    cudaError_t error = kernel_params(params, &wanted);
    return error == cudaSuccess ? DRV(GraphExecKernelNodeSetParams, exec, node, &wanted) : error;
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                             const struct cudaKernelNodeParams *pNodeParams)
{
    return RT_CALL(set_exec_kernel(hGraphExec, node, pNodeParams));
}

/* The header of CUDA 12 names the two arguments the other way round; the order
 * of the driver's (destination first) is what both libraries do. */
cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t hDst, cudaGraphNode_t hSrc)
{
    return RT_CALL(DRV(GraphKernelNodeCopyAttributes, hDst, hSrc));
}

cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t hNode, cudaKernelNodeAttrID attr,
                                            cudaKernelNodeAttrValue *value_out)
{
    return RT_CALL(DRV(GraphKernelNodeGetAttribute, hNode, (CUkernelNodeAttrID)attr,
                       (CUkernelNodeAttrValue *)value_out));
}

cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t hNode, cudaKernelNodeAttrID attr,
                                            const cudaKernelNodeAttrValue *value)
{
    return RT_CALL(DRV(GraphKernelNodeSetAttribute, hNode, (CUkernelNodeAttrID)attr,
                       (const CUkernelNodeAttrValue *)value));
}

static cudaError_t add_copy(cudaGraphNode_t *node, cudaGraph_t graph,
                            const cudaGraphNode_t *dependencies, size_t count,
                            const CUDA_MEMCPY3D *copy)
{
    CUcontext context = NULL;
    cudaError_t error = DRV(CtxGetCurrent, &context);
    return error == cudaSuccess
               ? DRV(GraphAddMemcpyNode, node, graph, dependencies, count, copy, context)
               : error;
}

static cudaError_t set_exec_copy(cudaGraphExec_t exec, cudaGraphNode_t node,
                                 const CUDA_MEMCPY3D *copy)
{
    CUcontext context = NULL;
    cudaError_t error = DRV(CtxGetCurrent, &context);
    return error == cudaSuccess ? DRV(GraphExecMemcpyNodeSetParams, exec, node, copy, context)
                                : error;
}

static cudaError_t add_copy_3d(cudaGraphNode_t *node, cudaGraph_t graph,
                               const cudaGraphNode_t *dependencies, size_t count,
                               const struct cudaMemcpy3DParms *params)
{
    CUDA_MEMCPY3D copy;
    cudaError_t error = simrt_copy_3d_params(params, &copy);
    return error == cudaSuccess ? add_copy(node, graph, dependencies, count, &copy) : error;
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                   const cudaGraphNode_t *pDependencies, size_t numDependencies,
                                   const struct cudaMemcpy3DParms *pCopyParams)
{
    return RT_CALL(add_copy_3d(pGraphNode, graph, pDependencies, numDependencies, pCopyParams));
}

static cudaError_t set_copy_3d(cudaGraphNode_t node, const struct cudaMemcpy3DParms *params)
{
    CUDA_MEMCPY3D copy;
    cudaError_t error = simrt_copy_3d_params(params, &copy);
    return error == cudaSuccess ? DRV(GraphMemcpyNodeSetParams, node, &copy) : error;
}

cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node,
                                         const struct cudaMemcpy3DParms *pNodeParams)
{
    return RT_CALL(set_copy_3d(node, pNodeParams));
}

static cudaError_t set_exec_copy_3d(cudaGraphExec_t exec, cudaGraphNode_t node,
                                    const struct cudaMemcpy3DParms *params)
{
    CUDA_MEMCPY3D copy;
    cudaError_t error = simrt_copy_3d_params(params, &copy);
    return error == cudaSuccess ? set_exec_copy(exec, node, &copy) : error;
}

cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                             const struct cudaMemcpy3DParms *pNodeParams)
{
    return RT_CALL(set_exec_copy_3d(hGraphExec, node, pNodeParams));
}

static cudaError_t add_copy_1d(cudaGraphNode_t *node, cudaGraph_t graph,
                               const cudaGraphNode_t *dependencies, size_t count, void *to,
                               const void *from, size_t size, enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D copy = simrt_linear_copy(to, from, size, kind);
    return add_copy(node, graph, dependencies, count, &copy);
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                     const cudaGraphNode_t *pDependencies, size_t numDependencies,
                                     void *dst, const void *src, size_t count,
                                     enum cudaMemcpyKind kind)
{
    return RT_CALL(
        add_copy_1d(pGraphNode, graph, pDependencies, numDependencies, dst, src, count, kind));
}

static cudaError_t set_copy_1d(cudaGraphNode_t node, void *to, const void *from, size_t size,
                               enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D copy = simrt_linear_copy(to, from, size, kind);
    return DRV(GraphMemcpyNodeSetParams, node, &copy);
}

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *dst, const void *src,
                                           size_t count, enum cudaMemcpyKind kind)
{
    return RT_CALL(set_copy_1d(node, dst, src, count, kind));
}

static cudaError_t set_exec_copy_1d(cudaGraphExec_t exec, cudaGraphNode_t node, void *to,
                                    const void *from, size_t size, enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D copy = simrt_linear_copy(to, from, size, kind);
    return set_exec_copy(exec, node, &copy);
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                               void *dst, const void *src, size_t count,
                                               enum cudaMemcpyKind kind)
{
    return RT_CALL(set_exec_copy_1d(hGraphExec, node, dst, src, count, kind));
}

static cudaError_t symbol_at(const void *symbol, size_t offset, void **place)
{
    CUdeviceptr address = 0;
    size_t size = 0;
    cudaError_t error = simrt_symbol(symbol, &address, &size);
    *place = (void *)(address + offset);
    return error;
}

static cudaError_t add_copy_to_symbol(cudaGraphNode_t *node, cudaGraph_t graph,
                                      const cudaGraphNode_t *dependencies, size_t count,
                                      const void *symbol, const void *from, size_t size,
                                      size_t offset, enum cudaMemcpyKind kind)
{
    void *place = NULL;
    cudaError_t error = symbol_at(symbol, offset, &place);
    return error == cudaSuccess
               ? add_copy_1d(node, graph, dependencies, count, place, from, size, kind)
               : error;
}

cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                           const cudaGraphNode_t *pDependencies,
                                           size_t numDependencies, const void *symbol,
                                           const void *src, size_t count, size_t offset,
                                           enum cudaMemcpyKind kind)
{
    return RT_CALL(add_copy_to_symbol(pGraphNode, graph, pDependencies, numDependencies, symbol,
                                      src, count, offset, kind));
}

static cudaError_t add_copy_from_symbol(cudaGraphNode_t *node, cudaGraph_t graph,
                                        const cudaGraphNode_t *dependencies, size_t count, void *to,
                                        const void *symbol, size_t size, size_t offset,
                                        enum cudaMemcpyKind kind)
{
    void *place = NULL;
    cudaError_t error = symbol_at(symbol, offset, &place);
    return error == cudaSuccess
               ? add_copy_1d(node, graph, dependencies, count, to, place, size, kind)
               : error;
}

cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                             const cudaGraphNode_t *pDependencies,
                                             size_t numDependencies, void *dst, const void *symbol,
                                             size_t count, size_t offset, enum cudaMemcpyKind kind)
{
    return RT_CALL(add_copy_from_symbol(pGraphNode, graph, pDependencies, numDependencies, dst,
                                        symbol, count, offset, kind));
}

static CUDA_MEMSET_NODE_PARAMS fill_params(const struct cudaMemsetParams *from)
{
    return (CUDA_MEMSET_NODE_PARAMS){
        .dst = (CUdeviceptr)from->dst,
        .pitch = from->pitch,
        .value = from->value,
        .elementSize = from->elementSize,
        .width = from->width,
        .height = from->height,
    };
}

static cudaError_t add_fill(cudaGraphNode_t *node, cudaGraph_t graph,
                            const cudaGraphNode_t *dependencies, size_t count,
                            const struct cudaMemsetParams *params)
{
    CUcontext context = NULL;
    cudaError_t error = params ? DRV(CtxGetCurrent, &context) : cudaErrorInvalidValue;
    if (error != cudaSuccess)
        return error;
    CUDA_MEMSET_NODE_PARAMS wanted = fill_params(params);
    return DRV(GraphAddMemsetNode, node, graph, dependencies, count, &wanted, context);
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                   const cudaGraphNode_t *pDependencies, size_t numDependencies,
                                   const struct cudaMemsetParams *pMemsetParams)
{
    return RT_CALL(add_fill(pGraphNode, graph, pDependencies, numDependencies, pMemsetParams));
}

static cudaError_t get_fill(cudaGraphNode_t node, struct cudaMemsetParams *params)
{
    CUDA_MEMSET_NODE_PARAMS found = {0};
    cudaError_t error =
        params ? DRV(GraphMemsetNodeGetParams, node, &found) : cudaErrorInvalidValue;
    if (error == cudaSuccess)
        *params = (struct cudaMemsetParams){
            .dst = (void *)found.dst,
            .pitch = found.pitch,
            .value = found.value,
            .elementSize = found.elementSize,
            .width = found.width,
            .height = found.height,
        };
    return error;
}

cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, struct cudaMemsetParams *pNodeParams)
{
    return RT_CALL(get_fill(node, pNodeParams));
}

static cudaError_t set_fill(cudaGraphNode_t node, const struct cudaMemsetParams *params)
{
    if (!params)
        return cudaErrorInvalidValue;
    CUDA_MEMSET_NODE_PARAMS wanted = fill_params(params);
    return DRV(GraphMemsetNodeSetParams, node, &wanted);
}

cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node,
                                         const struct cudaMemsetParams *pNodeParams)
{
    return RT_CALL(set_fill(node, pNodeParams));
}

static cudaError_t set_exec_fill(cudaGraphExec_t exec, cudaGraphNode_t node,
                                 const struct cudaMemsetParams *params)
{
    CUcontext context = NULL;
    cudaError_t error = params ? DRV(CtxGetCurrent, &context) : cudaErrorInvalidValue;
    if (error != cudaSuccess)
        return error;
    CUDA_MEMSET_NODE_PARAMS wanted = fill_params(params);
    return DRV(GraphExecMemsetNodeSetParams, exec, node, &wanted, context);
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                             const struct cudaMemsetParams *pNodeParams)
{
    return RT_CALL(set_exec_fill(hGraphExec, node, pNodeParams));
}

_Static_assert(sizeof(struct cudaHostNodeParams) == sizeof(CUDA_HOST_NODE_PARAMS),
               "one layout, two names");

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                 const cudaGraphNode_t *pDependencies, size_t numDependencies,
                                 const struct cudaHostNodeParams *pNodeParams)
{
    return RT_CALL(DRV(GraphAddHostNode, pGraphNode, graph, pDependencies, numDependencies,
                       (const CUDA_HOST_NODE_PARAMS *)pNodeParams));
}

cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, struct cudaHostNodeParams *pNodeParams)
{
    return RT_CALL(DRV(GraphHostNodeGetParams, node, (CUDA_HOST_NODE_PARAMS *)pNodeParams));
}

cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node,
                                       const struct cudaHostNodeParams *pNodeParams)
{
    return RT_CALL(DRV(GraphHostNodeSetParams, node, (const CUDA_HOST_NODE_PARAMS *)pNodeParams));
}

cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                           const struct cudaHostNodeParams *pNodeParams)
{
    return RT_CALL(DRV(GraphExecHostNodeSetParams, hGraphExec, node,
                       (const CUDA_HOST_NODE_PARAMS *)pNodeParams));
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                       const cudaGraphNode_t *pDependencies, size_t numDependencies,
                                       cudaGraph_t childGraph)
{
    return RT_CALL(
        DRV(GraphAddChildGraphNode, pGraphNode, graph, pDependencies, numDependencies, childGraph));
}

cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *pGraph)
{
    return RT_CALL(DRV(GraphChildGraphNodeGetGraph, node, pGraph));
}

cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                                 cudaGraph_t childGraph)
{
    return RT_CALL(DRV(GraphExecChildGraphNodeSetParams, hGraphExec, node, childGraph));
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                  const cudaGraphNode_t *pDependencies, size_t numDependencies)
{
    return RT_CALL(DRV(GraphAddEmptyNode, pGraphNode, graph, pDependencies, numDependencies));
}

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                        const cudaGraphNode_t *pDependencies,
                                        size_t numDependencies, cudaEvent_t event)
{
    return RT_CALL(
        DRV(GraphAddEventRecordNode, pGraphNode, graph, pDependencies, numDependencies, event));
}

cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event_out)
{
    return RT_CALL(DRV(GraphEventRecordNodeGetEvent, node, event_out));
}

cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event)
{
    return RT_CALL(DRV(GraphEventRecordNodeSetEvent, node, event));
}

cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode,
                                                 cudaEvent_t event)
{
    return RT_CALL(DRV(GraphExecEventRecordNodeSetEvent, hGraphExec, hNode, event));
}

cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                      const cudaGraphNode_t *pDependencies, size_t numDependencies,
                                      cudaEvent_t event)
{
    return RT_CALL(
        DRV(GraphAddEventWaitNode, pGraphNode, graph, pDependencies, numDependencies, event));
}

cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event_out)
{
    return RT_CALL(DRV(GraphEventWaitNodeGetEvent, node, event_out));
}

cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event)
{
    return RT_CALL(DRV(GraphEventWaitNodeSetEvent, node, event));
}

cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode,
                                               cudaEvent_t event)
{
    return RT_CALL(DRV(GraphExecEventWaitNodeSetEvent, hGraphExec, hNode, event));
}

_Static_assert(sizeof(struct cudaMemAllocNodeParams) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS),
               "one layout, two names");

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                     const cudaGraphNode_t *pDependencies, size_t numDependencies,
                                     struct cudaMemAllocNodeParams *nodeParams)
{
    return RT_CALL(DRV(GraphAddMemAllocNode, pGraphNode, graph, pDependencies, numDependencies,
                       (CUDA_MEM_ALLOC_NODE_PARAMS *)nodeParams));
}

cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node,
                                           struct cudaMemAllocNodeParams *params_out)
{
    return RT_CALL(DRV(GraphMemAllocNodeGetParams, node, (CUDA_MEM_ALLOC_NODE_PARAMS *)params_out));
}

cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                    const cudaGraphNode_t *pDependencies, size_t numDependencies,
                                    void *dptr)
{
    return RT_CALL(DRV(GraphAddMemFreeNode, pGraphNode, graph, pDependencies, numDependencies,
                       (CUdeviceptr)dptr));
}

cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void *dptr_out)
{
    return RT_CALL(DRV(GraphMemFreeNodeGetParams, node, (CUdeviceptr *)dptr_out));
}
