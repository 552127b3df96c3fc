/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: nodes, dependencies, clones, life. Node kinds and execution are in their own files. */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

#include "graph_objects.h"

/* ---- building ---- */

struct sim_graph *sim_graph_new(struct sim_context *context)
{
    struct sim_graph *graph = sim_object_new(SIM_GRAPH, sizeof *graph);
    if (graph)
        graph->context = context;
    return graph;
}

static bool add_need(struct sim_graph_node *node, struct sim_graph_node *need)
{
    for (size_t i = 0; i < node->need_count; i++)
        if (node->needs[i] == need)
            return true;
    struct sim_graph_node **grown = realloc(node->needs, (node->need_count + 1) * sizeof *grown);
    if (!grown)
        return false;
    grown[node->need_count++] = need;
    node->needs = grown;
    return true;
}

static void remove_need(struct sim_graph_node *node, const struct sim_graph_node *need)
{
    for (size_t i = 0; i < node->need_count; i++) {
        if (node->needs[i] == need) {
            node->needs[i] = node->needs[--node->need_count];
            return;
        }
    }
}

static bool has_room(struct sim_graph *graph)
{
    if (graph->node_count < graph->node_room)
        return true;
    size_t room = graph->node_room ? graph->node_room * 2 : 16;
    struct sim_graph_node **grown = realloc(graph->nodes, room * sizeof *grown);
    if (!grown)
        return false;
    graph->nodes = grown;
    graph->node_room = room;
    return true;
}

struct sim_graph_node *sim_graph_add(struct sim_graph *graph, CUgraphNodeType type,
                                     struct sim_graph_node *const *needs, size_t need_count,
                                     const union sim_node_params *params)
{
    struct sim_graph_node *node = has_room(graph) ? sim_object_new(SIM_NODE, sizeof *node) : NULL;
    if (!node)
        return NULL;
    node->graph = graph;
    node->type = type;
    node->params = *params;
    for (size_t i = 0; i < need_count; i++) {
        if (!add_need(node, needs[i])) {
            free(node->needs);
            sim_object_delete(node);
            return NULL;
        }
    }
    node->index = graph->node_count;
    graph->nodes[graph->node_count++] = node;
    return node;
}

static void delete_node(struct sim_graph_node *node)
{
    if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        sim_graph_memory_drop(node->params.memory);
    if (node->type == CU_GRAPH_NODE_TYPE_GRAPH)
        sim_graph_delete(node->params.child);
    free(node->kernel_attributes);
    free(node->needs);
    sim_object_delete(node);
}

void sim_graph_delete(struct sim_graph *graph)
{
    sim_graph_forgotten(graph);
    for (size_t i = 0; i < graph->node_count; i++)
        delete_node(graph->nodes[i]);
    for (size_t i = 0; i < graph->retained_count; i++)
        sim_user_object_release(graph->retained[i].object, graph->retained[i].count);
    free(graph->retained);
    free(graph->nodes);
    sim_object_delete(graph);
}

size_t sim_graph_total_nodes(const struct sim_graph *graph)
{
    size_t count = graph->node_count;
    for (size_t i = 0; i < graph->node_count; i++)
        if (graph->nodes[i]->type == CU_GRAPH_NODE_TYPE_GRAPH)
            count += sim_graph_total_nodes(graph->nodes[i]->params.child);
    return count;
}

/* ---- order ---- */

static bool reaches(const struct sim_graph_node *from, struct sim_graph_node *to)
{
    if (from == to)
        return true;
    to->marked = true;
    for (size_t i = 0; i < to->need_count; i++)
        if (!to->needs[i]->marked && reaches(from, to->needs[i]))
            return true;
    return false;
}

static void unmark(struct sim_graph *graph)
{
    for (size_t i = 0; i < graph->node_count; i++)
        graph->nodes[i]->marked = false;
}

bool sim_graph_reaches(struct sim_graph_node *from, struct sim_graph_node *to)
{
    bool found = reaches(from, to);
    unmark(to->graph);
    return found;
}

static bool is_next(const struct sim_graph_node *node)
{
    for (size_t i = 0; i < node->need_count; i++)
        if (!node->needs[i]->marked)
            return false;
    return !node->marked;
}

bool sim_graph_sort(struct sim_graph *graph)
{
    struct sim_graph_node **sorted = malloc((graph->node_count + 1) * sizeof *sorted);
    size_t done = 0;
    bool found = sorted != NULL;
    while (found && done < graph->node_count) {
        found = false;
        for (size_t i = 0; i < graph->node_count; i++) {
            if (is_next(graph->nodes[i])) {
                graph->nodes[i]->marked = true;
                sorted[done++] = graph->nodes[i];
                found = true;
            }
        }
    }
    unmark(graph);
    bool is_sorted = sorted && done == graph->node_count;
    if (is_sorted && done) {
        memcpy(graph->nodes, sorted, done * sizeof *sorted);
        for (size_t i = 0; i < done && is_sorted; i++)
            if (graph->nodes[i]->type == CU_GRAPH_NODE_TYPE_GRAPH)
                is_sorted = sim_graph_sort(graph->nodes[i]->params.child);
    }
    free(sorted);
    return is_sorted;
}

/* ---- clones ---- */

static bool copy_node(struct sim_graph *copy, struct sim_graph_node *node)
{
    union sim_node_params params = node->params;
    if (node->type == CU_GRAPH_NODE_TYPE_GRAPH) {
        params.child = sim_graph_clone(node->params.child);
        if (!params.child)
            return false;
        params.child->is_part = true;
    }
    struct sim_graph_node *made = sim_graph_add(copy, node->type, NULL, 0, &params);
    if (!made) {
        if (node->type == CU_GRAPH_NODE_TYPE_GRAPH)
            sim_graph_delete(params.child);
        return false;
    }
    if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        node->params.memory->references++;
    made->original = node;
    made->alloc_params = node->alloc_params;
    return true;
}

static size_t position(const struct sim_graph *graph, const struct sim_graph_node *node)
{
    size_t i = node->index;
    if (i < graph->node_count && graph->nodes[i] == node)
        return i;
    for (i = 0; graph->nodes[i] != node;)
        i++;
    return i;
}

struct sim_graph *sim_graph_clone(struct sim_graph *graph)
{
    struct sim_graph *copy = sim_graph_new(graph->context);
    for (size_t i = 0; copy && i < graph->node_count; i++) {
        if (!copy_node(copy, graph->nodes[i])) {
            sim_graph_delete(copy);
            return NULL;
        }
    }
    for (size_t i = 0; copy && i < graph->node_count; i++) {
        const struct sim_graph_node *node = graph->nodes[i];
        for (size_t j = 0; j < node->need_count; j++) {
            if (!add_need(copy->nodes[i], copy->nodes[position(graph, node->needs[j])])) {
                sim_graph_delete(copy);
                return NULL;
            }
        }
    }
    if (copy && !sim_user_objects_share(graph, copy)) {
        sim_graph_delete(copy);
        return NULL;
    }
    return copy;
}

/* ---- calls about graphs ---- */

struct sim_graph *sim_graph_of(CUgraph handle)
{
    return sim_object_find(handle, SIM_GRAPH);
}

struct sim_graph_node *sim_node_of(CUgraphNode handle)
{
    return sim_object_find(handle, SIM_NODE);
}

CUresult CUDAAPI cuGraphCreate(CUgraph *phGraph, unsigned int flags)
{
    SIM_ENTER(cuGraphCreate, 0);
    if (!phGraph || flags)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult ignored;
    struct sim_graph *graph = sim_graph_new(sim_current(&ignored));
    if (graph)
        *phGraph = (CUgraph)graph;
    return sim_leave(graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult CUDAAPI cuGraphDestroy(CUgraph hGraph)
{
    SIM_ENTER(cuGraphDestroy, 0);
    sim_lock();
    struct sim_graph *graph = sim_graph_of(hGraph);
    bool is_own = graph && !graph->is_part;
    if (is_own)
        sim_graph_delete(graph);
    sim_unlock();
    sim_user_objects_run_destructors();
    return is_own ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static bool has_memory_nodes(const struct sim_graph *graph)
{
    for (size_t i = 0; i < graph->node_count; i++)
        if (graph->nodes[i]->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
            graph->nodes[i]->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
            return true;
    return false;
}

CUresult CUDAAPI cuGraphClone(CUgraph *phGraphClone, CUgraph originalGraph)
{
    SIM_ENTER(cuGraphClone, 0);
    if (!phGraphClone)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct sim_graph *graph = sim_graph_of(originalGraph);
    if (!graph)
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    if (has_memory_nodes(graph))
        return sim_leave(CUDA_ERROR_NOT_SUPPORTED);
    struct sim_graph *copy = sim_graph_clone(graph);
    if (copy)
        *phGraphClone = (CUgraph)copy;
    return sim_leave(copy ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult CUDAAPI cuGraphNodeFindInClone(CUgraphNode *phNode, CUgraphNode hOriginalNode,
                                        CUgraph hClonedGraph)
{
    SIM_ENTER(cuGraphNodeFindInClone, 0);
    if (!phNode)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    const struct sim_graph *graph = sim_graph_of(hClonedGraph);
    for (size_t i = 0; graph && i < graph->node_count; i++) {
        if ((CUgraphNode)graph->nodes[i]->original == hOriginalNode) {
            *phNode = (CUgraphNode)graph->nodes[i];
            return sim_leave(CUDA_SUCCESS);
        }
    }
    return sim_leave(CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type)
{
    SIM_ENTER(cuGraphNodeGetType, 0);
    if (!type)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    const struct sim_graph_node *node = sim_node_of(hNode);
    if (node)
        *type = node->type;
    return sim_leave(node ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

/* Fills a caller's list of ROOM entries; the rest reads as NULL, *count is what was there. */
struct lister {
    CUgraphNode *list;
    size_t room;
    size_t found;
};

static void list(struct lister *lister, struct sim_graph_node *node)
{
    if (lister->list && lister->found < lister->room)
        lister->list[lister->found] = (CUgraphNode)node;
    lister->found++;
}

static CUresult finish_list(struct lister *lister, size_t *count)
{
    for (size_t i = lister->found; lister->list && i < lister->room; i++)
        lister->list[i] = NULL;
    *count = lister->list && lister->found > lister->room ? lister->room : lister->found;
    return CUDA_SUCCESS;
}

static CUresult list_nodes(CUgraph handle, CUgraphNode *nodes, size_t *count, bool roots_only)
{
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    const struct sim_graph *graph = sim_graph_of(handle);
    struct lister lister = {nodes, *count, 0};
    if (!graph)
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0; i < graph->node_count; i++)
        if (!roots_only || !graph->nodes[i]->need_count)
            list(&lister, graph->nodes[i]);
    return sim_leave(finish_list(&lister, count));
}

CUresult CUDAAPI cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes)
{
    SIM_ENTER(cuGraphGetNodes, 0);
    return list_nodes(hGraph, nodes, numNodes, false);
}

CUresult CUDAAPI cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode *rootNodes, size_t *numRootNodes)
{
    SIM_ENTER(cuGraphGetRootNodes, 0);
    return list_nodes(hGraph, rootNodes, numRootNodes, true);
}

static void clear_edges(CUgraphEdgeData *edges, size_t count)
{
    if (edges)
        memset(edges, 0, count * sizeof *edges);
}

static CUresult list_edges(CUgraph handle, CUgraphNode *from, CUgraphNode *to,
                           CUgraphEdgeData *edges, size_t *count)
{
    if (!count || (!from != !to))
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    const struct sim_graph *graph = sim_graph_of(handle);
    if (!graph)
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    struct lister sources = {from, *count, 0};
    struct lister targets = {to, *count, 0};
    clear_edges(edges, from ? *count : 0);
    for (size_t i = 0; i < graph->node_count; i++) {
        for (size_t j = 0; j < graph->nodes[i]->need_count; j++) {
            list(&sources, graph->nodes[i]->needs[j]);
            list(&targets, graph->nodes[i]);
        }
    }
    finish_list(&targets, count);
    return sim_leave(finish_list(&sources, count));
}

CUresult CUDAAPI cuGraphGetEdges(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to,
                                 size_t *numEdges)
{
    SIM_ENTER(cuGraphGetEdges, 0);
    return list_edges(hGraph, from, to, NULL, numEdges);
}

CUresult CUDAAPI cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to,
                                    CUgraphEdgeData *edgeData, size_t *numEdges)
{
    SIM_ENTER(cuGraphGetEdges, 0);
    return list_edges(hGraph, from, to, edgeData, numEdges);
}

static CUresult list_needs(CUgraphNode handle, CUgraphNode *nodes, CUgraphEdgeData *edges,
                           size_t *count)
{
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    const struct sim_graph_node *node = sim_node_of(handle);
    if (!node)
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    struct lister lister = {nodes, *count, 0};
    clear_edges(edges, nodes ? *count : 0);
    for (size_t i = 0; i < node->need_count; i++)
        list(&lister, node->needs[i]);
    return sim_leave(finish_list(&lister, count));
}

CUresult CUDAAPI cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode *dependencies,
                                            size_t *numDependencies)
{
    SIM_ENTER(cuGraphNodeGetDependencies, 0);
    return list_needs(hNode, dependencies, NULL, numDependencies);
}

CUresult CUDAAPI cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode *dependencies,
                                               CUgraphEdgeData *edgeData, size_t *numDependencies)
{
    SIM_ENTER(cuGraphNodeGetDependencies, 0);
    return list_needs(hNode, dependencies, edgeData, numDependencies);
}

static CUresult list_dependents(CUgraphNode handle, CUgraphNode *nodes, CUgraphEdgeData *edges,
                                size_t *count)
{
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    const struct sim_graph_node *node = sim_node_of(handle);
    if (!node)
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    struct lister lister = {nodes, *count, 0};
    clear_edges(edges, nodes ? *count : 0);
    for (size_t i = 0; i < node->graph->node_count; i++)
        for (size_t j = 0; j < node->graph->nodes[i]->need_count; j++)
            if (node->graph->nodes[i]->needs[j] == node)
                list(&lister, node->graph->nodes[i]);
    return sim_leave(finish_list(&lister, count));
}

CUresult CUDAAPI cuGraphNodeGetDependentNodes(CUgraphNode hNode, CUgraphNode *dependentNodes,
                                              size_t *numDependentNodes)
{
    SIM_ENTER(cuGraphNodeGetDependentNodes, 0);
    return list_dependents(hNode, dependentNodes, NULL, numDependentNodes);
}

CUresult CUDAAPI cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode *dependentNodes,
                                                 CUgraphEdgeData *edgeData,
                                                 size_t *numDependentNodes)
{
    SIM_ENTER(cuGraphNodeGetDependentNodes, 0);
    return list_dependents(hNode, dependentNodes, edgeData, numDependentNodes);
}

static CUresult change_edges(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to,
                             size_t count, bool adds)
{
    if (count && (!from || !to))
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct sim_graph *graph = sim_graph_of(handle);
    CUresult result = graph ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; result == CUDA_SUCCESS && i < count; i++) {
        struct sim_graph_node *source = sim_node_of(from[i]);
        struct sim_graph_node *target = sim_node_of(to[i]);
        if (!source || !target || source->graph != graph || target->graph != graph ||
            source == target)
            result = CUDA_ERROR_INVALID_VALUE;
        else if (!adds)
            remove_need(target, source);
        else if (!add_need(target, source))
            result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    return sim_leave(result);
}

CUresult CUDAAPI cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode *from,
                                        const CUgraphNode *to, size_t numDependencies)
{
    SIM_ENTER(cuGraphAddDependencies, 0);
    return change_edges(hGraph, from, to, numDependencies, true);
}

CUresult CUDAAPI cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode *from,
                                           const CUgraphNode *to, const CUgraphEdgeData *edgeData,
                                           size_t numDependencies)
{
    SIM_ENTER(cuGraphAddDependencies, 0);
    (void)edgeData;
    return change_edges(hGraph, from, to, numDependencies, true);
}

CUresult CUDAAPI cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode *from,
                                           const CUgraphNode *to, size_t numDependencies)
{
    SIM_ENTER(cuGraphRemoveDependencies, 0);
    return change_edges(hGraph, from, to, numDependencies, false);
}

CUresult CUDAAPI cuGraphRemoveDependencies_v2(CUgraph hGraph, const CUgraphNode *from,
                                              const CUgraphNode *to,
                                              const CUgraphEdgeData *edgeData,
                                              size_t numDependencies)
{
    SIM_ENTER(cuGraphRemoveDependencies, 0);
    (void)edgeData;
    return change_edges(hGraph, from, to, numDependencies, false);
}

CUresult CUDAAPI cuGraphDestroyNode(CUgraphNode hNode)
{
    SIM_ENTER(cuGraphDestroyNode, 0);
    sim_lock();
    struct sim_graph_node *node = sim_node_of(hNode);
    if (!node)
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || node->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
        return sim_leave(CUDA_ERROR_NOT_SUPPORTED); /* as documented for memory nodes */
    struct sim_graph *graph = node->graph;
    size_t at = position(graph, node);
    for (size_t i = at + 1; i < graph->node_count; i++) {
        graph->nodes[i - 1] = graph->nodes[i];
        graph->nodes[i - 1]->index = i - 1;
    }
    graph->node_count--;
    for (size_t i = 0; i < graph->node_count; i++)
        remove_need(graph->nodes[i], node);
    delete_node(node);
    sim_unlock();
    sim_user_objects_run_destructors();
    return CUDA_SUCCESS;
}
