/* SPDX-License-Identifier: Apache-2.0 */
/* Adding nodes by kind and reading or changing their parameters, in graphs and executable graphs.
 */
#include <stdlib.h>
#include <string.h>

#include "graph_objects.h"
#include "module.h"

/* ---- adding ---- */

static bool are_needs(const struct sim_graph *graph, const CUgraphNode *needs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct sim_graph_node *node = sim_node_of(needs[i]);
        if (!node || node->graph != graph)
            return false;
    }
    return true;
}

/* Where a new node goes, as every cuGraphAdd…Node call says it. */
struct place {
    CUgraphNode *out;
    CUgraph graph;
    const CUgraphNode *needs;
    size_t count;
};

static CUresult check_place(const struct place *place)
{
    const struct sim_graph *graph = sim_graph_of(place->graph);
    bool fits = place->out && graph && (!place->count || place->needs) &&
                are_needs(graph, place->needs, place->count);
    return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult add(const struct place *place, CUgraphNodeType type,
                    const union sim_node_params *params, struct sim_graph_node **node)
{
    struct sim_graph *graph = sim_graph_of(place->graph);
    *node = sim_graph_add(graph, type, (struct sim_graph_node *const *)place->needs, place->count,
                          params);
    if (!*node)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *place->out = (CUgraphNode)*node;
    return CUDA_SUCCESS;
}

static CUresult add_checked(const struct place *place, CUgraphNodeType type,
                            const union sim_node_params *params)
{
    struct sim_graph_node *node;
    sim_lock();
    CUresult result = check_place(place);
    if (result == CUDA_SUCCESS && type == CU_GRAPH_NODE_TYPE_KERNEL &&
        !sim_function_of(params->kernel.func ? (const void *)params->kernel.func
                                             : (const void *)params->kernel.kern))
        result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS && type == CU_GRAPH_NODE_TYPE_MEMCPY)
        result = sim_copy_check(NULL, &params->copy);
    if (result == CUDA_SUCCESS && type == CU_GRAPH_NODE_TYPE_MEMSET)
        result = sim_fill_check(NULL, &params->fill);
    if (result == CUDA_SUCCESS)
        result = add(place, type, params, &node);
    return sim_leave(result);
}

#define PLACE ((struct place){phGraphNode, hGraph, dependencies, numDependencies})

static CUresult add_fill(const struct place *place, const CUDA_MEMSET_NODE_PARAMS *fill)
{
    if (fill->elementSize != 1 && fill->elementSize != 2 && fill->elementSize != 4)
        return CUDA_ERROR_INVALID_VALUE;
    union sim_node_params params = {.fill = *fill};
    return add_checked(place, CU_GRAPH_NODE_TYPE_MEMSET, &params);
}

static CUresult add_host(const struct place *place, CUhostFn function, void *user_data)
{
    if (!function)
        return CUDA_ERROR_INVALID_VALUE;
    union sim_node_params params = {.host = {.fn = function, .userData = user_data}};
    return add_checked(place, CU_GRAPH_NODE_TYPE_HOST, &params);
}

CUresult CUDAAPI cuGraphAddKernelNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
                                         const CUgraphNode *dependencies, size_t numDependencies,
                                         const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    SIM_ENTER(cuGraphAddKernelNode, 0);
    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    union sim_node_params params = {.kernel = *nodeParams};
    return add_checked(&PLACE, CU_GRAPH_NODE_TYPE_KERNEL, &params);
}

static CUDA_KERNEL_NODE_PARAMS_v2 widen(const CUDA_KERNEL_NODE_PARAMS_v1 *old)
{
    return (CUDA_KERNEL_NODE_PARAMS_v2){
        old->func,         old->gridDimX,  old->gridDimY,  old->gridDimZ,
        old->blockDimX,    old->blockDimY, old->blockDimZ, old->sharedMemBytes,
        old->kernelParams, old->extra,     NULL,           NULL};
}

CUresult CUDAAPI cuGraphAddKernelNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                      const CUgraphNode *dependencies, size_t numDependencies,
                                      const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    SIM_ENTER(cuGraphAddKernelNode, 0);
    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    union sim_node_params params = {.kernel = widen(nodeParams)};
    return add_checked(&PLACE, CU_GRAPH_NODE_TYPE_KERNEL, &params);
}

CUresult CUDAAPI cuGraphAddMemcpyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                      const CUgraphNode *dependencies, size_t numDependencies,
                                      const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
    SIM_ENTER(cuGraphAddMemcpyNode, 0);
    (void)ctx;
    if (!copyParams)
        return CUDA_ERROR_INVALID_VALUE;
    union sim_node_params params = {.copy = *copyParams};
    return add_checked(&PLACE, CU_GRAPH_NODE_TYPE_MEMCPY, &params);
}

CUresult CUDAAPI cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                      const CUgraphNode *dependencies, size_t numDependencies,
                                      const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
    SIM_ENTER(cuGraphAddMemsetNode, 0);
    (void)ctx;
    return memsetParams ? add_fill(&PLACE, memsetParams) : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                    const CUgraphNode *dependencies, size_t numDependencies,
                                    const CUDA_HOST_NODE_PARAMS *nodeParams)
{
    SIM_ENTER(cuGraphAddHostNode, 0);
    return nodeParams ? add_host(&PLACE, nodeParams->fn, nodeParams->userData)
                      : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                     const CUgraphNode *dependencies, size_t numDependencies)
{
    SIM_ENTER(cuGraphAddEmptyNode, 0);
    union sim_node_params params = {.freed = 0};
    return add_checked(&PLACE, CU_GRAPH_NODE_TYPE_EMPTY, &params);
}

static CUresult add_event(const struct place *place, CUgraphNodeType type, CUevent event)
{
    struct sim_graph_node *node;
    union sim_node_params params = {.event = event};
    sim_lock();
    CUresult result = check_place(place);
    if (result == CUDA_SUCCESS && !sim_object_find(event, SIM_EVENT))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = add(place, type, &params, &node);
    return sim_leave(result);
}

CUresult CUDAAPI cuGraphAddEventRecordNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                           const CUgraphNode *dependencies, size_t numDependencies,
                                           CUevent event)
{
    SIM_ENTER(cuGraphAddEventRecordNode, 0);
    return add_event(&PLACE, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

CUresult CUDAAPI cuGraphAddEventWaitNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                         const CUgraphNode *dependencies, size_t numDependencies,
                                         CUevent event)
{
    SIM_ENTER(cuGraphAddEventWaitNode, 0);
    return add_event(&PLACE, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

static CUresult add_child(const struct place *place, CUgraph child_handle)
{
    struct sim_graph_node *node;
    sim_lock();
    CUresult result = check_place(place);
    struct sim_graph *child = sim_graph_of(child_handle);
    if (result == CUDA_SUCCESS && (!child || child_handle == place->graph))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return sim_leave(result);
    union sim_node_params params = {.child = sim_graph_clone(child)};
    if (!params.child)
        return sim_leave(CUDA_ERROR_OUT_OF_MEMORY);
    params.child->is_part = true;
    result = add(place, CU_GRAPH_NODE_TYPE_GRAPH, &params, &node);
    if (result != CUDA_SUCCESS)
        sim_graph_delete(params.child);
    return sim_leave(result);
}

CUresult CUDAAPI cuGraphAddChildGraphNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                          const CUgraphNode *dependencies, size_t numDependencies,
                                          CUgraph childGraph)
{
    SIM_ENTER(cuGraphAddChildGraphNode, 0);
    return add_child(&PLACE, childGraph);
}

static CUresult add_memory(const struct place *place, CUDA_MEM_ALLOC_NODE_PARAMS *alloc)
{
    struct sim_graph_node *node;
    union sim_node_params params;
    if (alloc->poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        alloc->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_is_device(alloc->poolProps.location.id))
        return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    CUresult result = check_place(place);
    if (result == CUDA_SUCCESS)
        result = sim_graph_memory_new((unsigned)alloc->poolProps.location.id, alloc->bytesize,
                                      &params.memory);
    if (result != CUDA_SUCCESS)
        return sim_leave(result);
    result = add(place, CU_GRAPH_NODE_TYPE_MEM_ALLOC, &params, &node);
    if (result != CUDA_SUCCESS) {
        sim_graph_memory_drop(params.memory);
        return sim_leave(result);
    }
    alloc->dptr = params.memory->node.key;
    node->alloc_params = *alloc;
    return sim_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuGraphAddMemAllocNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                        const CUgraphNode *dependencies, size_t numDependencies,
                                        CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams)
{
    SIM_ENTER(cuGraphAddMemAllocNode, nodeParams ? nodeParams->bytesize : 0);
    return nodeParams ? add_memory(&PLACE, nodeParams) : CUDA_ERROR_INVALID_VALUE;
}

static bool frees_already(const struct sim_graph *graph, CUdeviceptr dptr)
{
    for (size_t i = 0; graph && i < graph->node_count; i++)
        if (graph->nodes[i]->type == CU_GRAPH_NODE_TYPE_MEM_FREE &&
            graph->nodes[i]->params.freed == dptr)
            return true;
    return false;
}

static CUresult add_free(const struct place *place, CUdeviceptr dptr)
{
    struct sim_graph_node *node;
    union sim_node_params params = {.freed = dptr};
    sim_lock();
    CUresult result = check_place(place);
    if (result == CUDA_SUCCESS && (!dptr || frees_already(sim_graph_of(place->graph), dptr)))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = add(place, CU_GRAPH_NODE_TYPE_MEM_FREE, &params, &node);
    return sim_leave(result);
}

CUresult CUDAAPI cuGraphAddMemFreeNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                       const CUgraphNode *dependencies, size_t numDependencies,
                                       CUdeviceptr dptr)
{
    SIM_ENTER(cuGraphAddMemFreeNode, 0);
    return add_free(&PLACE, dptr);
}

static CUresult add_memory_of(const struct place *place, CUDA_MEM_ALLOC_NODE_PARAMS_v2 *wanted)
{
    CUDA_MEM_ALLOC_NODE_PARAMS alloc = {.poolProps = wanted->poolProps,
                                        .accessDescs = wanted->accessDescs,
                                        .accessDescCount = wanted->accessDescCount,
                                        .bytesize = wanted->bytesize};
    CUresult result = add_memory(place, &alloc);
    wanted->dptr = alloc.dptr;
    return result;
}

/* The parameters of the kinds that need no more than a copy; false: another kind. */
static bool simple_params(const CUgraphNodeParams *general, union sim_node_params *params)
{
    memset(params, 0, sizeof *params);
    switch (general->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        memcpy(&params->kernel, &general->kernel, sizeof params->kernel);
        return true;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        params->copy = general->memcpy.copyParams;
        return true;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        memcpy(&params->fill, &general->memset, sizeof params->fill);
        return true;
    case CU_GRAPH_NODE_TYPE_HOST:
        params->host.fn = general->host.fn;
        params->host.userData = general->host.userData;
        return true;
    case CU_GRAPH_NODE_TYPE_EMPTY:
        return true;
    default:
        return false;
    }
}

static CUresult add_any(const struct place *place, CUgraphNodeParams *general)
{
    union sim_node_params params;
    if (!general)
        return CUDA_ERROR_INVALID_VALUE;
    bool is_simple = simple_params(general, &params);
    switch (general->type) {
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return add_fill(place, &params.fill);
    case CU_GRAPH_NODE_TYPE_HOST:
        return add_host(place, params.host.fn, params.host.userData);
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return add_child(place, general->graph.graph);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return add_event(place, general->type, general->eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return add_event(place, general->type, general->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return add_memory_of(place, &general->alloc);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return add_free(place, general->free.dptr);
    default:
        return is_simple ? add_checked(place, general->type, &params)
                         : sim_unsupported("cuGraphAddNode of this node type");
    }
}

CUresult CUDAAPI cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                const CUgraphNode *dependencies, size_t numDependencies,
                                CUgraphNodeParams *nodeParams)
{
    SIM_ENTER(cuGraphAddNode, 0);
    return add_any(&PLACE, nodeParams);
}

CUresult CUDAAPI cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
                                   const CUgraphNode *dependencies,
                                   const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                   CUgraphNodeParams *nodeParams)
{
    SIM_ENTER(cuGraphAddNode, 0);
    (void)dependencyData;
    return add_any(&PLACE, nodeParams);
}

/* ---- parameters ---- */

static struct sim_graph_node *typed(CUgraphNode handle, CUgraphNodeType type)
{
    struct sim_graph_node *node = sim_node_of(handle);
    return node && node->type == type ? node : NULL;
}

static struct sim_graph_node *typed_in(CUgraphExec exec_handle, CUgraphNode handle,
                                       CUgraphNodeType type)
{
    struct sim_exec *exec = sim_exec_of(exec_handle);
    struct sim_graph_node *node = exec ? sim_exec_node(exec, handle) : NULL;
    return node && node->type == type ? node : NULL;
}

/* Reads or writes one member of a node's parameters under the lock. */
static CUresult get_params(CUgraphNode handle, CUgraphNodeType type, void *out, size_t size)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    const struct sim_graph_node *node = typed(handle, type);
    if (node)
        memcpy(out, &node->params, size);
    return sim_leave(node ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

static CUresult set_params(struct sim_graph_node *node, const void *params, size_t size)
{
    if (node)
        memcpy(&node->params, params, size);
    return sim_leave(node ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

#define NODE_PARAMS(get, set, type, c_type)                                    \
    CUresult CUDAAPI get(CUgraphNode hNode, c_type *nodeParams)                \
    {                                                                          \
        SIM_ENTER(get, 0);                                                     \
        return get_params(hNode, type, nodeParams, sizeof *nodeParams);        \
    }                                                                          \
    CUresult CUDAAPI set(CUgraphNode hNode, const c_type *nodeParams)          \
    {                                                                          \
        SIM_ENTER(set, 0);                                                     \
        if (!nodeParams)                                                       \
            return CUDA_ERROR_INVALID_VALUE;                                   \
        sim_lock();                                                            \
        return set_params(typed(hNode, type), nodeParams, sizeof *nodeParams); \
    }

NODE_PARAMS(cuGraphMemcpyNodeGetParams, cuGraphMemcpyNodeSetParams, CU_GRAPH_NODE_TYPE_MEMCPY,
            CUDA_MEMCPY3D)
NODE_PARAMS(cuGraphMemsetNodeGetParams, cuGraphMemsetNodeSetParams, CU_GRAPH_NODE_TYPE_MEMSET,
            CUDA_MEMSET_NODE_PARAMS)
NODE_PARAMS(cuGraphHostNodeGetParams, cuGraphHostNodeSetParams, CU_GRAPH_NODE_TYPE_HOST,
            CUDA_HOST_NODE_PARAMS)

CUresult CUDAAPI cuGraphKernelNodeGetParams_v2(CUgraphNode hNode,
                                               CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    SIM_ENTER(cuGraphKernelNodeGetParams, 0);
    return get_params(hNode, CU_GRAPH_NODE_TYPE_KERNEL, nodeParams, sizeof *nodeParams);
}

CUresult CUDAAPI cuGraphKernelNodeGetParams(CUgraphNode hNode,
                                            CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    SIM_ENTER(cuGraphKernelNodeGetParams, 0);
    return get_params(hNode, CU_GRAPH_NODE_TYPE_KERNEL, nodeParams, sizeof *nodeParams);
}

CUresult CUDAAPI cuGraphKernelNodeSetParams_v2(CUgraphNode hNode,
                                               const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    SIM_ENTER(cuGraphKernelNodeSetParams, 0);
    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    return set_params(typed(hNode, CU_GRAPH_NODE_TYPE_KERNEL), nodeParams, sizeof *nodeParams);
}

CUresult CUDAAPI cuGraphKernelNodeSetParams(CUgraphNode hNode,
                                            const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    SIM_ENTER(cuGraphKernelNodeSetParams, 0);
    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_KERNEL_NODE_PARAMS_v2 wide = widen(nodeParams);
    sim_lock();
    return set_params(typed(hNode, CU_GRAPH_NODE_TYPE_KERNEL), &wide, sizeof wide);
}

CUresult CUDAAPI cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                   const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    SIM_ENTER(cuGraphExecKernelNodeSetParams, 0);
    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    return set_params(typed_in(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_KERNEL), nodeParams,
                      sizeof *nodeParams);
}

CUresult CUDAAPI cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    SIM_ENTER(cuGraphExecKernelNodeSetParams, 0);
    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_KERNEL_NODE_PARAMS_v2 wide = widen(nodeParams);
    sim_lock();
    return set_params(typed_in(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_KERNEL), &wide, sizeof wide);
}

CUresult CUDAAPI cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
    SIM_ENTER(cuGraphExecMemcpyNodeSetParams, 0);
    (void)ctx;
    if (!copyParams)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    return set_params(typed_in(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_MEMCPY), copyParams,
                      sizeof *copyParams);
}

CUresult CUDAAPI cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                const CUDA_MEMSET_NODE_PARAMS *memsetParams,
                                                CUcontext ctx)
{
    SIM_ENTER(cuGraphExecMemsetNodeSetParams, 0);
    (void)ctx;
    if (!memsetParams)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    return set_params(typed_in(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_MEMSET), memsetParams,
                      sizeof *memsetParams);
}

CUresult CUDAAPI cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                              const CUDA_HOST_NODE_PARAMS *nodeParams)
{
    SIM_ENTER(cuGraphExecHostNodeSetParams, 0);
    if (!nodeParams || !nodeParams->fn)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    return set_params(typed_in(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_HOST), nodeParams,
                      sizeof *nodeParams);
}

/* Changes the parameters of a node of any simple kind. */
static CUresult set_any(struct sim_graph_node *node, const CUgraphNodeParams *general)
{
    union sim_node_params params;
    if (!node || node->type != general->type)
        return CUDA_ERROR_INVALID_VALUE;
    if (simple_params(general, &params))
        node->params = params;
    else if (node->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
        node->params.event = general->eventRecord.event;
    else if (node->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT)
        node->params.event = general->eventWait.event;
    else
        return CUDA_ERROR_INVALID_VALUE; /* memory and child graphs cannot be changed */
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
    SIM_ENTER(cuGraphNodeSetParams, 0);
    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    return sim_leave(set_any(sim_node_of(hNode), nodeParams));
}

CUresult CUDAAPI cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                          CUgraphNodeParams *nodeParams)
{
    SIM_ENTER(cuGraphExecNodeSetParams, 0);
    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct sim_exec *exec = sim_exec_of(hGraphExec);
    return sim_leave(set_any(exec ? sim_exec_node(exec, hNode) : NULL, nodeParams));
}

CUresult CUDAAPI cuGraphEventRecordNodeGetEvent(CUgraphNode hNode, CUevent *event_out)
{
    SIM_ENTER(cuGraphEventRecordNodeGetEvent, 0);
    return get_params(hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event_out, sizeof *event_out);
}

CUresult CUDAAPI cuGraphEventWaitNodeGetEvent(CUgraphNode hNode, CUevent *event_out)
{
    SIM_ENTER(cuGraphEventWaitNodeGetEvent, 0);
    return get_params(hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event_out, sizeof *event_out);
}

CUresult CUDAAPI cuGraphEventRecordNodeSetEvent(CUgraphNode hNode, CUevent event)
{
    SIM_ENTER(cuGraphEventRecordNodeSetEvent, 0);
    sim_lock();
    return set_params(typed(hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD), &event, sizeof event);
}

CUresult CUDAAPI cuGraphEventWaitNodeSetEvent(CUgraphNode hNode, CUevent event)
{
    SIM_ENTER(cuGraphEventWaitNodeSetEvent, 0);
    sim_lock();
    return set_params(typed(hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT), &event, sizeof event);
}

CUresult CUDAAPI cuGraphExecEventRecordNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                    CUevent event)
{
    SIM_ENTER(cuGraphExecEventRecordNodeSetEvent, 0);
    sim_lock();
    return set_params(typed_in(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD), &event,
                      sizeof event);
}

CUresult CUDAAPI cuGraphExecEventWaitNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                  CUevent event)
{
    SIM_ENTER(cuGraphExecEventWaitNodeSetEvent, 0);
    sim_lock();
    return set_params(typed_in(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT), &event,
                      sizeof event);
}

CUresult CUDAAPI cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph *phGraph)
{
    SIM_ENTER(cuGraphChildGraphNodeGetGraph, 0);
    return get_params(hNode, CU_GRAPH_NODE_TYPE_GRAPH, phGraph, sizeof *phGraph);
}

CUresult CUDAAPI cuGraphMemFreeNodeGetParams(CUgraphNode hNode, CUdeviceptr *dptr_out)
{
    SIM_ENTER(cuGraphMemFreeNodeGetParams, 0);
    return get_params(hNode, CU_GRAPH_NODE_TYPE_MEM_FREE, dptr_out, sizeof *dptr_out);
}

CUresult CUDAAPI cuGraphMemAllocNodeGetParams(CUgraphNode hNode,
                                              CUDA_MEM_ALLOC_NODE_PARAMS *params_out)
{
    SIM_ENTER(cuGraphMemAllocNodeGetParams, 0);
    if (!params_out)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    const struct sim_graph_node *node = typed(hNode, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    if (!node)
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    const struct sim_graph_memory *memory = node->params.memory;
    *params_out = node->alloc_params;
    params_out->poolProps.allocType =
        CU_MEM_ALLOCATION_TYPE_PINNED; /* captured ones have no more */
    params_out->poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    params_out->poolProps.location.id = (int)memory->ordinal;
    params_out->bytesize = memory->node.size;
    params_out->dptr = memory->node.key;
    return sim_leave(CUDA_SUCCESS);
}
