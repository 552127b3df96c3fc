/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executable graphs: instantiation and its cost, launches, updates, and the device's graph memory
 * pool. A graph's allocation nodes take physical memory at the first upload or launch and keep it
 * until the graph is destroyed and the pool trimmed.
 */
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "graph_objects.h"
#include "pool.h"

static struct sim_exec *execs;
static struct sim_tree graph_memories;

struct sim_exec *sim_exec_of(CUgraphExec handle)
{
    return sim_object_find(handle, SIM_EXEC);
}

struct sim_graph_node *sim_exec_node(struct sim_exec *exec, CUgraphNode node)
{
    for (size_t i = 0; i < exec->graph->node_count; i++)
        if ((CUgraphNode)exec->graph->nodes[i]->original == node)
            return exec->graph->nodes[i];
    return NULL;
}

void sim_graph_forgotten(const struct sim_graph *graph)
{
    for (struct sim_exec *exec = execs; exec; exec = exec->next)
        if (exec->template == graph)
            exec->template = NULL;
}

/* ---- the graph pool of a device ---- */

CUresult sim_graph_memory_new(unsigned ordinal, uint64_t bytes, struct sim_graph_memory **memory)
{
    uint64_t span = (bytes + SIMGPU_CHUNK - 1) / SIMGPU_CHUNK * SIMGPU_CHUNK;
    if (!bytes || bytes > simgpu_config()->memory_bytes)
        return bytes ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
    struct sim_graph_memory *made = calloc(1, sizeof *made);
    uint64_t address = made ? sim_span_take(ordinal, span) : 0;
    if (!address) {
        free(made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made->node.key = address;
    made->node.size = bytes;
    made->span_bytes = span;
    made->ordinal = ordinal;
    made->references = 1;
    sim_tree_insert(&graph_memories, &made->node);
    *memory = made;
    return CUDA_SUCCESS;
}

void sim_graph_memory_drop(struct sim_graph_memory *memory)
{
    if (--memory->references)
        return;
    sim_span_give(memory->ordinal, memory->node.key, memory->span_bytes);
    sim_tree_remove(&graph_memories, &memory->node);
    free(memory);
}

bool sim_graph_memory_holds(uint64_t address, uint64_t bytes)
{
    const struct sim_node *node = sim_tree_floor(&graph_memories, address);
    return node && address - node->key < node->size && bytes <= node->key + node->size - address;
}

static void raise_high(uint64_t *high, uint64_t current)
{
    if (*high < current)
        *high = current;
}

/* Takes an executable graph's memory from the pool, growing it as needed. */
static CUresult map_memory(struct sim_exec *exec)
{
    struct sim_device *device = &sim.devices[exec->context->device];
    if (exec->is_mapped || !exec->memory_bytes)
        return CUDA_SUCCESS;
    uint64_t idle = device->graph_reserved - device->graph_used;
    uint64_t grown = exec->memory_bytes > idle ? exec->memory_bytes - idle : 0;
    if (grown && sim_charge(exec->context->device, SIMGPU_GRAPH_POOL, grown))
        return CUDA_ERROR_OUT_OF_MEMORY;
    device->graph_reserved += grown;
    device->graph_used += exec->memory_bytes;
    raise_high(&device->graph_reserved_high, device->graph_reserved);
    raise_high(&device->graph_used_high, device->graph_used);
    exec->is_mapped = true;
    return CUDA_SUCCESS;
}

/* Chunks of allocations that the graph made and nobody freed. */
static uint64_t live_bytes(const struct sim_exec *exec)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < exec->graph->node_count; i++) {
        const struct sim_graph_node *node = exec->graph->nodes[i];
        if (node->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC)
            continue;
        const struct sim_alloc *alloc = sim_alloc_at(node->params.memory->node.key);
        if (alloc && alloc->graph_owner == exec)
            bytes += alloc->span_bytes;
    }
    return bytes;
}

static void unmap_memory(struct sim_exec *exec)
{
    if (exec->is_mapped)
        sim.devices[exec->context->device].graph_used -= exec->memory_bytes;
    exec->is_mapped = false;
}

void sim_graph_pool_trim(unsigned ordinal)
{
    struct sim_device *device = &sim.devices[ordinal];
    for (struct sim_exec *exec = execs; exec; exec = exec->next)
        if (exec->context->device == ordinal && !exec->pending && !live_bytes(exec))
            unmap_memory(exec);
    uint64_t idle = device->graph_reserved - device->graph_used;
    if (idle)
        sim_discharge(ordinal, SIMGPU_GRAPH_POOL, idle);
    device->graph_reserved -= idle;
}

static bool is_live_exec(const void *owner)
{
    for (const struct sim_exec *exec = execs; exec; exec = exec->next)
        if (exec == owner)
            return true;
    return false;
}

void sim_graph_block_free(struct sim_alloc *alloc)
{
    struct sim_graph_memory *memory = alloc->graph_memory;
    if (!is_live_exec(alloc->graph_owner))
        sim.devices[alloc->device].graph_used -= alloc->span_bytes;
    sim_alloc_delete(alloc);
    sim_graph_memory_drop(memory);
}

CUresult CUDAAPI cuDeviceGraphMemTrim(CUdevice device)
{
    SIM_ENTER(cuDeviceGraphMemTrim, 0);
    if (!sim_is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    sim_progress();
    sim_graph_pool_trim((unsigned)device);
    return sim_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr,
                                              void *value)
{
    SIM_ENTER(cuDeviceGetGraphMemAttribute, 0);
    if (!sim_is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!value || attr > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    const struct sim_device *found = &sim.devices[device];
    const uint64_t values[] = {found->graph_used, found->graph_used_high, found->graph_reserved,
                               found->graph_reserved_high};
    *(cuuint64_t *)value = values[attr];
    return sim_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr,
                                              void *value)
{
    SIM_ENTER(cuDeviceSetGraphMemAttribute, 0);
    if (!sim_is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!value || *(cuuint64_t *)value)
        return CUDA_ERROR_INVALID_VALUE; /* high marks can only be reset */
    sim_lock();
    struct sim_device *found = &sim.devices[device];
    CUresult result = CUDA_SUCCESS;
    if (attr == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
        found->graph_used_high = found->graph_used;
    else if (attr == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
        found->graph_reserved_high = found->graph_reserved;
    else
        result = CUDA_ERROR_INVALID_VALUE;
    return sim_leave(result);
}

/* ---- instantiation ---- */

static void survey(struct sim_exec *exec, const struct sim_graph *graph)
{
    for (size_t i = 0; i < graph->node_count; i++) {
        const struct sim_graph_node *node = graph->nodes[i];
        exec->has_host_nodes |= node->type == CU_GRAPH_NODE_TYPE_HOST;
        if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
            exec->memory_bytes += node->params.memory->span_bytes;
        if (node->type == CU_GRAPH_NODE_TYPE_GRAPH)
            survey(exec, node->params.child);
    }
}

static CUresult fill_exec(struct sim_exec *exec, struct sim_graph *graph)
{
    exec->graph = sim_graph_clone(graph);
    if (!exec->graph)
        return CUDA_ERROR_OUT_OF_MEMORY;
    exec->graph->is_part = true;
    if (!sim_graph_sort(exec->graph))
        return CUDA_ERROR_INVALID_VALUE;
    survey(exec, exec->graph);
    for (const struct sim_exec *other = execs; exec->memory_bytes && other; other = other->next)
        if (other->template == graph)
            return CUDA_ERROR_NOT_SUPPORTED; /* memory nodes allow one executable at a time */
    size_t nodes = sim_graph_total_nodes(graph);
    if (sim_charge(exec->context->device, SIMGPU_GRAPH_NODE,
                   nodes * simgpu_config()->graph_node_bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    exec->charged_nodes = nodes;
    return CUDA_SUCCESS;
}

static CUresult instantiate(CUgraphExec *handle, CUgraph graph_handle, unsigned long long flags)
{
    unsigned long long known =
        CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
        CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
    if (!handle || (flags & ~known))
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    struct sim_context *context = sim_current(&result);
    struct sim_graph *graph = context ? sim_graph_of(graph_handle) : NULL;
    if (!graph)
        return sim_leave(context ? CUDA_ERROR_INVALID_VALUE : result);
    struct sim_exec *exec = sim_object_new(SIM_EXEC, sizeof *exec);
    if (!exec)
        return sim_leave(CUDA_ERROR_OUT_OF_MEMORY);
    exec->context = graph->context ? graph->context : context;
    exec->flags = flags;
    result = fill_exec(exec, graph);
    if (result != CUDA_SUCCESS) {
        if (exec->graph)
            sim_graph_delete(exec->graph);
        sim_object_delete(exec);
        return sim_leave(result);
    }
    exec->template = graph;
    exec->next = execs;
    execs = exec;
    *handle = (CUgraphExec)exec;
    return sim_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph,
                                             unsigned long long flags)
{
    SIM_ENTER(cuGraphInstantiateWithFlags, 0);
    return instantiate(phGraphExec, hGraph, flags);
}

CUresult CUDAAPI cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph,
                                       CUgraphNode *phErrorNode, char *logBuffer, size_t bufferSize)
{
    SIM_ENTER(cuGraphInstantiate, 0);
    if (phErrorNode)
        *phErrorNode = NULL;
    if (logBuffer && bufferSize)
        *logBuffer = '\0';
    return instantiate(phGraphExec, hGraph, 0);
}

CUresult CUDAAPI cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph,
                                    CUgraphNode *phErrorNode, char *logBuffer, size_t bufferSize)
{
    return cuGraphInstantiate_v2(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}

static CUresult upload(CUgraphExec handle, CUstream stream_handle)
{
    sim_lock();
    CUresult result;
    const struct sim_stream *stream = sim_stream_of(stream_handle, &result);
    struct sim_exec *exec = sim_exec_of(handle);
    if (!stream)
        return sim_leave(result);
    return sim_leave(exec ? map_memory(exec) : CUDA_ERROR_INVALID_VALUE);
}

static CUresult instantiate_with(CUgraphExec *handle, CUgraph graph,
                                 CUDA_GRAPH_INSTANTIATE_PARAMS *params, CUstream stream)
{
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = instantiate(handle, graph, params->flags);
    if (result == CUDA_SUCCESS && (params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD))
        result = upload(*handle, stream);
    params->hErrNode_out = NULL;
    params->result_out =
        result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
    return result;
}

CUresult CUDAAPI cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
                                              CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
    SIM_ENTER(cuGraphInstantiateWithParams, 0);
    return instantiate_with(phGraphExec, hGraph, instantiateParams,
                            instantiateParams ? instantiateParams->hUploadStream : NULL);
}

CUresult CUDAAPI cuGraphInstantiateWithParams_ptsz(CUgraphExec *phGraphExec, CUgraph hGraph,
                                                   CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
    SIM_ENTER(cuGraphInstantiateWithParams, 0);
    CUstream stream = instantiateParams ? instantiateParams->hUploadStream : NULL;
    return instantiate_with(phGraphExec, hGraph, instantiateParams, sim_per_thread(stream));
}

static void delete_exec(struct sim_exec *exec)
{
    struct sim_exec **link = &execs;
    while (*link != exec)
        link = &(*link)->next;
    *link = exec->next;
    uint64_t live = live_bytes(exec);
    unmap_memory(exec);
    sim.devices[exec->context->device].graph_used += live; /* until they are freed */
    sim_discharge(exec->context->device, SIMGPU_GRAPH_NODE,
                  exec->charged_nodes * simgpu_config()->graph_node_bytes);
    sim_graph_delete(exec->graph);
    sim_object_delete(exec);
}

CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec hGraphExec)
{
    SIM_ENTER(cuGraphExecDestroy, 0);
    sim_lock();
    struct sim_exec *exec = sim_exec_of(hGraphExec);
    if (!exec || exec->doomed)
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    exec->doomed = true;
    if (!exec->pending)
        delete_exec(exec);
    sim_unlock();
    sim_user_objects_run_destructors();
    return CUDA_SUCCESS;
}

void sim_graphs_of_context_end(const struct sim_context *context)
{
    struct sim_exec *exec = execs;
    while (exec) {
        struct sim_exec *next = exec->next;
        if (exec->context == context)
            delete_exec(exec);
        exec = next;
    }
}

CUresult CUDAAPI cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t *flags)
{
    SIM_ENTER(cuGraphExecGetFlags, 0);
    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    const struct sim_exec *exec = sim_exec_of(hGraphExec);
    if (exec)
        *flags = exec->flags;
    return sim_leave(exec ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

/* ---- launching ---- */

struct launch {
    struct sim_exec *exec;
    struct sim_stream *stream;
};

static void make_block(struct sim_exec *exec, struct sim_graph_memory *memory)
{
    struct sim_alloc *alloc = sim_alloc_at(memory->node.key);
    if (alloc)
        sim_pool_free_now(alloc);
    alloc = sim_alloc_new(SIMGPU_GRAPH_BLOCK, (int)memory->ordinal, memory->node.key,
                          memory->node.size);
    if (!alloc)
        return;
    alloc->context = exec->context;
    alloc->pool = sim_default_pool(memory->ordinal);
    alloc->span_bytes = memory->span_bytes;
    alloc->graph_owner = exec;
    alloc->graph_memory = memory;
    memory->references++;
}

static void run_host(const CUDA_HOST_NODE_PARAMS *host)
{
    sim_unlock();
    host->fn(host->userData);
    sim_lock();
}

static void run_graph(const struct launch *launch, const struct sim_graph *graph);

static void run_node(const struct launch *launch, const struct sim_graph_node *node)
{
    struct sim_alloc *alloc;
    struct sim_event *event;
    switch (node->type) {
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        sim_copy_run(&node->params.copy);
        break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        sim_fill_run(&node->params.fill);
        break;
    case CU_GRAPH_NODE_TYPE_HOST:
        run_host(&node->params.host);
        break;
    case CU_GRAPH_NODE_TYPE_GRAPH:
        run_graph(launch, node->params.child);
        break;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        event = sim_object_find(node->params.event, SIM_EVENT);
        if (event)
            sim_event_record(event, launch->stream);
        break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        make_block(launch->exec, node->params.memory);
        break;
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        alloc = (struct sim_alloc *)sim_tree_find(&sim.allocations, node->params.freed);
        if (alloc && alloc->pool)
            sim_pool_free_now(alloc);
        break;
    default: /* kernels do nothing; waits were made when launched */
        break;
    }
}

static void run_graph(const struct launch *launch, const struct sim_graph *graph)
{
    for (size_t i = 0; i < graph->node_count; i++)
        if (!graph->nodes[i]->disabled)
            run_node(launch, graph->nodes[i]);
}

static void finish_launch(struct launch *launch)
{
    struct sim_exec *exec = launch->exec;
    exec->pending--;
    if (exec->doomed && !exec->pending)
        delete_exec(exec);
    free(launch);
}

static void run_locked(void *argument)
{
    struct launch *launch = argument;
    run_graph(launch, launch->exec->graph);
    finish_launch(launch);
}

static void run_on_worker(void *argument)
{
    sim_lock();
    run_locked(argument);
    sim_unlock();
    sim_user_objects_run_destructors();
}

static CUresult free_live_blocks(struct sim_exec *exec)
{
    bool may_free = exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    for (size_t i = 0; i < exec->graph->node_count; i++) {
        const struct sim_graph_node *node = exec->graph->nodes[i];
        if (node->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC)
            continue;
        struct sim_alloc *alloc = sim_alloc_at(node->params.memory->node.key);
        if (!alloc)
            continue;
        if (!may_free)
            return CUDA_ERROR_INVALID_VALUE; /* an allocation of the last launch is still live */
        sim_pool_free_now(alloc);
    }
    return CUDA_SUCCESS;
}

static CUresult wait_for_events(struct sim_stream *stream, const struct sim_graph *graph)
{
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; result == CUDA_SUCCESS && i < graph->node_count; i++) {
        const struct sim_graph_node *node = graph->nodes[i];
        if (node->type != CU_GRAPH_NODE_TYPE_WAIT_EVENT)
            continue;
        struct sim_event *event = sim_object_find(node->params.event, SIM_EVENT);
        if (event)
            result = sim_stream_wait_for(stream, sim_event_ticket(event));
    }
    return result;
}

static CUresult submit(struct sim_exec *exec, struct sim_stream *stream)
{
    CUresult result = exec->pending ? CUDA_SUCCESS : free_live_blocks(exec);
    if (result == CUDA_SUCCESS)
        result = map_memory(exec);
    if (result == CUDA_SUCCESS)
        result = wait_for_events(stream, exec->graph);
    if (result != CUDA_SUCCESS)
        return result;
    struct launch *launch = malloc(sizeof *launch);
    if (!launch)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *launch = (struct launch){exec, stream};
    exec->pending++;
    result = exec->has_host_nodes ? sim_submit(stream, SIM_OP_HOST, run_on_worker, launch)
                                  : sim_submit(stream, SIM_OP_DEVICE, run_locked, launch);
    if (result != CUDA_SUCCESS) {
        exec->pending--;
        free(launch);
    }
    return result;
}

SIM_STREAMED(cuGraphLaunch, (CUgraphExec hGraphExec, CUstream hStream), (hGraphExec, hStream))
{
    SIM_ENTER(cuGraphLaunch, 0);
    sim_lock();
    CUresult result;
    struct sim_stream *stream = sim_stream_of(hStream, &result);
    if (!stream)
        return sim_leave(result);
    struct sim_exec *exec = sim_exec_of(hGraphExec);
    if (!exec || exec->doomed)
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    if (stream->capture) { /* becomes a child graph of the capture */
        struct sim_graph *child = sim_graph_clone(exec->graph);
        if (!child)
            return sim_leave(CUDA_ERROR_OUT_OF_MEMORY);
        child->is_part = true;
        sim_capture_add(stream, CU_GRAPH_NODE_TYPE_GRAPH, &child, &result);
        if (result != CUDA_SUCCESS)
            sim_graph_delete(child);
        return sim_leave(result);
    }
    if (sim_capture_add(stream, CU_GRAPH_NODE_TYPE_EMPTY, NULL, &result))
        return sim_leave(result); /* the legacy stream beside a capture */
    return sim_leave(submit(exec, stream));
}

SIM_STREAMED(cuGraphUpload, (CUgraphExec hGraphExec, CUstream hStream), (hGraphExec, hStream))
{
    SIM_ENTER(cuGraphUpload, 0);
    return upload(hGraphExec, hStream);
}

/* ---- updates ---- */

static bool is_same_shape(const struct sim_exec *exec, const struct sim_graph *graph)
{
    if (exec->graph->node_count != graph->node_count)
        return false;
    for (size_t i = 0; i < graph->node_count; i++) {
        const struct sim_graph_node *node = exec->graph->nodes[i];
        if (node->type != graph->nodes[node->index]->type ||
            node->need_count != graph->nodes[node->index]->need_count)
            return false;
    }
    return true;
}

static CUresult update(CUgraphExec handle, CUgraph graph_handle)
{
    struct sim_exec *exec = sim_exec_of(handle);
    const struct sim_graph *graph = sim_graph_of(graph_handle);
    if (!exec || !graph)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_same_shape(exec, graph))
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    for (size_t i = 0; i < graph->node_count; i++) {
        struct sim_graph_node *node = exec->graph->nodes[i];
        const struct sim_graph_node *source = graph->nodes[node->index];
        if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || node->type == CU_GRAPH_NODE_TYPE_GRAPH)
            continue; /* memory keeps its address, children their copy */
        node->params = source->params;
    }
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph,
                                      CUgraphExecUpdateResultInfo *resultInfo)
{
    SIM_ENTER(cuGraphExecUpdate, 0);
    if (!resultInfo)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result = update(hGraphExec, hGraph);
    memset(resultInfo, 0, sizeof *resultInfo);
    resultInfo->result = result == CUDA_SUCCESS ? CU_GRAPH_EXEC_UPDATE_SUCCESS
                         : result == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE
                             ? CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED
                             : CU_GRAPH_EXEC_UPDATE_ERROR;
    return sim_leave(result);
}

CUresult CUDAAPI cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph,
                                   CUgraphNode *hErrorNode_out,
                                   CUgraphExecUpdateResult *updateResult_out)
{
    CUgraphExecUpdateResultInfo info;
    if (!updateResult_out)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = cuGraphExecUpdate_v2(hGraphExec, hGraph, &info);
    if (hErrorNode_out)
        *hErrorNode_out = NULL;
    *updateResult_out = info.result;
    return result;
}

/* ---- switching nodes off ---- */

CUresult CUDAAPI cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode,
                                       unsigned int isEnabled)
{
    SIM_ENTER(cuGraphNodeSetEnabled, 0);
    sim_lock();
    struct sim_exec *exec = sim_exec_of(hGraphExec);
    struct sim_graph_node *node = exec ? sim_exec_node(exec, hNode) : NULL;
    bool may = node &&
               (node->type == CU_GRAPH_NODE_TYPE_KERNEL ||
                node->type == CU_GRAPH_NODE_TYPE_MEMCPY || node->type == CU_GRAPH_NODE_TYPE_MEMSET);
    if (may)
        node->disabled = !isEnabled;
    return sim_leave(may ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuGraphNodeGetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode,
                                       unsigned int *isEnabled)
{
    SIM_ENTER(cuGraphNodeGetEnabled, 0);
    if (!isEnabled)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct sim_exec *exec = sim_exec_of(hGraphExec);
    const struct sim_graph_node *node = exec ? sim_exec_node(exec, hNode) : NULL;
    if (node)
        *isEnabled = !node->disabled;
    return sim_leave(node ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}
