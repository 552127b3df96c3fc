/* SPDX-License-Identifier: Apache-2.0 */
/* The generic description of a graph node: kernels, copies and fills are laid
 * out differently by runtime and driver, the rest is the same under two names. */
#include "runtime.h"

#include <cuda_runtime_api.h>
#include <string.h>

_Static_assert(sizeof(struct cudaGraphNodeParams) == sizeof(CUgraphNodeParams),
               "one layout, two names");

static cudaError_t kernel_params(const struct cudaKernelNodeParamsV2 *from,
                                 CUDA_KERNEL_NODE_PARAMS_v3 *to)
{
    *to = (CUDA_KERNEL_NODE_PARAMS_v3){
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

static cudaError_t copy_params(const struct cudaMemcpyNodeParams *from, CUDA_MEMCPY_NODE_PARAMS *to)
{
    memset(to, 0, sizeof(*to));
    to->flags = from->flags;
    cudaError_t error = DRV(CtxGetCurrent, &to->copyCtx);
    return error == cudaSuccess ? simrt_copy_3d_params(&from->copyParams, &to->copyParams) : error;
}

static cudaError_t fill_params(const struct cudaMemsetParamsV2 *from,
                               CUDA_MEMSET_NODE_PARAMS_v2 *to)
{
    *to = (CUDA_MEMSET_NODE_PARAMS_v2){
        .dst = (CUdeviceptr)from->dst,
        .pitch = from->pitch,
        .value = from->value,
        .elementSize = from->elementSize,
        .width = from->width,
        .height = from->height,
    };
    return DRV(CtxGetCurrent, &to->ctx);
}

static cudaError_t driver_params(const struct cudaGraphNodeParams *from, CUgraphNodeParams *to)
{
    if (!from)
        return cudaErrorInvalidValue;
    memcpy(to, from, sizeof(*to));
    switch (from->type) {
    case cudaGraphNodeTypeKernel:
        return kernel_params(&from->kernel, &to->kernel);
    case cudaGraphNodeTypeMemcpy:
        return copy_params(&from->memcpy, &to->memcpy);
    case cudaGraphNodeTypeMemset:
        return fill_params(&from->memset, &to->memset);
    case cudaGraphNodeTypeConditional:
        return DRV(CtxGetCurrent, &to->conditional.ctx);
    default:
        return cudaSuccess;
    }
}

cudaError_t simrt_graph_add_node(cudaGraphNode_t *node, cudaGraph_t graph,
                                 const cudaGraphNode_t *dependencies,
                                 const cudaGraphEdgeData *edges, size_t count,
                                 struct cudaGraphNodeParams *params)
{
    CUgraphNodeParams wanted;
    cudaError_t error = driver_params(params, &wanted);
    if (error == cudaSuccess)
        error = DRV(GraphAddNode, node, graph, dependencies, (const CUgraphEdgeData *)edges, count,
                    &wanted);
    if (error != cudaSuccess)
        return error;
    /* What the driver writes back: the address of an allocation, the body graphs. */
    if (params->type == cudaGraphNodeTypeMemAlloc)
        params->alloc.dptr = (void *)wanted.alloc.dptr;
    if (params->type == cudaGraphNodeTypeConditional)
        params->conditional.phGraph_out = wanted.conditional.phGraph_out;
    return cudaSuccess;
}

static cudaError_t set_params(cudaGraphNode_t node, const struct cudaGraphNodeParams *params)
{
    CUgraphNodeParams wanted;
    cudaError_t error = driver_params(params, &wanted);
    return error == cudaSuccess ? DRV(GraphNodeSetParams, node, &wanted) : error;
}

cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, struct cudaGraphNodeParams *nodeParams)
{
    return RT_CALL(set_params(node, nodeParams));
}

static cudaError_t set_exec_params(cudaGraphExec_t exec, cudaGraphNode_t node,
                                   const struct cudaGraphNodeParams *params)
{
    CUgraphNodeParams wanted;
    cudaError_t error = driver_params(params, &wanted);
    return error == cudaSuccess ? DRV(GraphExecNodeSetParams, exec, node, &wanted) : error;
}

cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t graphExec, cudaGraphNode_t node,
                                       struct cudaGraphNodeParams *nodeParams)
{
    return RT_CALL(set_exec_params(graphExec, node, nodeParams));
}
