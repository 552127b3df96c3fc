/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of kernel nodes, which are only remembered, and graphs as DOT text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph_objects.h"

/* ---- attributes of kernel nodes ---- */

static struct sim_graph_node *kernel_node(CUgraphNode handle)
{
    struct sim_graph_node *node = sim_node_of(handle);
    return node && node->type == CU_GRAPH_NODE_TYPE_KERNEL ? node : NULL;
}

static bool is_attribute(CUkernelNodeAttrID attribute)
{
    return attribute > CU_LAUNCH_ATTRIBUTE_IGNORE && attribute < CU_LAUNCH_ATTRIBUTE_MAX;
}

static bool has_attributes(struct sim_graph_node *node)
{
    if (!node->kernel_attributes)
        node->kernel_attributes = calloc(CU_LAUNCH_ATTRIBUTE_MAX, sizeof *node->kernel_attributes);
    return node->kernel_attributes != NULL;
}

CUresult CUDAAPI cuGraphKernelNodeGetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
                                               CUkernelNodeAttrValue *value_out)
{
    SIM_ENTER(cuGraphKernelNodeGetAttribute, 0);
    if (!value_out || !is_attribute(attr))
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    const struct sim_graph_node *node = kernel_node(hNode);
    if (!node)
        return sim_leave(CUDA_ERROR_INVALID_HANDLE);
    memset(value_out, 0, sizeof *value_out);
    if (node->kernel_attributes)
        *value_out = node->kernel_attributes[attr];
    return sim_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
                                               const CUkernelNodeAttrValue *value)
{
    SIM_ENTER(cuGraphKernelNodeSetAttribute, 0);
    if (!value || !is_attribute(attr))
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct sim_graph_node *node = kernel_node(hNode);
    if (!node)
        return sim_leave(CUDA_ERROR_INVALID_HANDLE);
    if (!has_attributes(node))
        return sim_leave(CUDA_ERROR_OUT_OF_MEMORY);
    node->kernel_attributes[attr] = *value;
    return sim_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src)
{
    SIM_ENTER(cuGraphKernelNodeCopyAttributes, 0);
    sim_lock();
    struct sim_graph_node *to = kernel_node(dst);
    const struct sim_graph_node *from = kernel_node(src);
    if (!to || !from)
        return sim_leave(CUDA_ERROR_INVALID_HANDLE);
    if (from->kernel_attributes && !has_attributes(to))
        return sim_leave(CUDA_ERROR_OUT_OF_MEMORY);
    if (from->kernel_attributes)
        memcpy(to->kernel_attributes, from->kernel_attributes,
               CU_LAUNCH_ATTRIBUTE_MAX * sizeof *to->kernel_attributes);
    return sim_leave(CUDA_SUCCESS);
}

/* ---- DOT ---- */

static const char *type_name(CUgraphNodeType type)
{
    static const char *const names[] = {
        "kernel",       "memcpy", "memset", "host",       "graph", "empty",        "wait event",
        "record event", "signal", "wait",   "allocation", "free",  "batch mem op", "conditional"};
    return (size_t)type < sizeof names / sizeof *names ? names[type] : "unknown";
}

static void print_graph(FILE *out, const struct sim_graph *graph)
{
    fprintf(out, "digraph dot {\n");
    for (size_t i = 0; i < graph->node_count; i++) {
        const struct sim_graph_node *node = graph->nodes[i];
        fprintf(out, "  node_%zu [label=\"%zu %s\"];\n", node->index, node->index,
                type_name(node->type));
        for (size_t j = 0; j < node->need_count; j++)
            fprintf(out, "  node_%zu -> node_%zu;\n", node->needs[j]->index, node->index);
    }
    fprintf(out, "}\n");
}

CUresult CUDAAPI cuGraphDebugDotPrint(CUgraph hGraph, const char *path, unsigned int flags)
{
    SIM_ENTER(cuGraphDebugDotPrint, 0);
    (void)flags; /* how much to tell of each node */
    if (!path)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    const struct sim_graph *graph = sim_graph_of(hGraph);
    FILE *out = graph ? fopen(path, "we") : NULL;
    if (!out)
        return sim_leave(graph ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_ERROR_INVALID_VALUE);
    print_graph(out, graph);
    return sim_leave(fclose(out) ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS);
}
