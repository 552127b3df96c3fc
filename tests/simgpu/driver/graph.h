/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs as the driver holds them. All functions expect sim_lock held. */
#ifndef SIMGPU_DRIVER_GRAPH_H
#define SIMGPU_DRIVER_GRAPH_H

#include "stream.h"

struct sim_graph;

/* Memory of an allocation node: an address of its own from the node's creation on. */
struct sim_graph_memory {
    struct sim_node node; /* key: the address, size: the bytes requested */
    uint64_t span_bytes;  /* chunks */
    unsigned ordinal;
    unsigned references; /* the node, its clones, executable graphs, a live allocation */
};

union sim_node_params {
    CUDA_KERNEL_NODE_PARAMS_v2 kernel;
    CUDA_MEMCPY3D copy;
    CUDA_MEMSET_NODE_PARAMS fill;
    CUDA_HOST_NODE_PARAMS host;
    CUevent event;
    CUdeviceptr freed;
    struct sim_graph_memory *memory;
    struct sim_graph *child;
};

struct sim_graph_node {
    struct sim_object object;
    struct sim_graph *graph;
    CUgraphNodeType type;
    struct sim_graph_node **needs; /* what must run before */
    size_t need_count;
    union sim_node_params params;
    CUDA_MEM_ALLOC_NODE_PARAMS alloc_params;
    CUkernelNodeAttrValue *kernel_attributes; /* by attribute; NULL: none was set */
    struct sim_graph_node *original;          /* in a clone: the node it was made from */
    size_t index;                             /* in the graph's order of creation */
    bool disabled;
    bool marked; /* scratch of searches */
};

struct sim_user_object;

struct sim_graph_retention {
    struct sim_user_object *object;
    unsigned count;
};

struct sim_graph {
    struct sim_object object;
    struct sim_context *context;
    struct sim_graph_node **nodes;
    size_t node_count;
    size_t node_room;
    struct sim_graph_retention *retained;
    size_t retained_count;
    bool is_part;  /* body of a child node, or owned by an executable graph */
    bool has_exec; /* its allocation nodes are instantiated */
};

struct sim_graph *sim_graph_new(struct sim_context *context);
struct sim_graph *sim_graph_clone(struct sim_graph *graph);
void sim_graph_delete(struct sim_graph *graph);

/* Adds a node that needs NEEDS. PARAMS is the union's member for TYPE. NULL without memory. */
struct sim_graph_node *sim_graph_add(struct sim_graph *graph, CUgraphNodeType type,
                                     struct sim_graph_node *const *needs, size_t need_count,
                                     const union sim_node_params *params);

/* Reserves the address of an allocation node. */
CUresult sim_graph_memory_new(unsigned ordinal, uint64_t bytes, struct sim_graph_memory **memory);
void sim_graph_memory_drop(struct sim_graph_memory *memory);

/* True if FROM must run before (or is) TO. */
bool sim_graph_reaches(struct sim_graph_node *from, struct sim_graph_node *to);

/* Nodes counted through child graphs. */
size_t sim_graph_total_nodes(const struct sim_graph *graph);

/* Frees an allocation made by a graph's node (cuMemFree, cuMemFreeAsync). */
void sim_graph_block_free(struct sim_alloc *alloc);

/* Runs a copy or fill that was checked before (copy.c). */
void sim_copy_run(const CUDA_MEMCPY3D *copy);
void sim_fill_run(const CUDA_MEMSET_NODE_PARAMS *fill);
CUresult sim_copy_check(const struct sim_context *context, const CUDA_MEMCPY3D *copy);
CUresult sim_fill_check(const struct sim_context *context, const CUDA_MEMSET_NODE_PARAMS *fill);

#endif
