/* SPDX-License-Identifier: Apache-2.0 */
/* What the graph files share beyond graph.h: user objects, executable graphs, look-up. */
#ifndef SIMGPU_DRIVER_GRAPH_OBJECTS_H
#define SIMGPU_DRIVER_GRAPH_OBJECTS_H

#include "graph.h"

struct sim_exec {
    struct sim_object object;
    struct sim_context *context;
    struct sim_graph *graph;    /* its own sorted copy */
    struct sim_graph *template; /* what it was made from; NULL once that is gone */
    unsigned long long flags;
    size_t charged_nodes;
    uint64_t memory_bytes; /* chunks of its allocation nodes */
    bool is_mapped;        /* memory_bytes are taken from the device's graph pool */
    bool has_host_nodes;
    bool doomed; /* destroyed while launches are pending */
    unsigned pending;
    struct sim_exec *next;
};

struct sim_graph *sim_graph_of(CUgraph handle);
struct sim_graph_node *sim_node_of(CUgraphNode handle);
struct sim_exec *sim_exec_of(CUgraphExec handle);

/* The copy of NODE in an executable graph, NULL if it has none. */
struct sim_graph_node *sim_exec_node(struct sim_exec *exec, CUgraphNode node);

/* Puts nodes (also of child graphs) into an order that respects dependencies; false: a cycle. */
bool sim_graph_sort(struct sim_graph *graph);

/* A graph goes: executable graphs forget that they came from it. */
void sim_graph_forgotten(const struct sim_graph *graph);

/* User objects. Destructors run without the lock, after the call that dropped the last reference.
 */
void sim_user_object_release(struct sim_user_object *object, unsigned count);
bool sim_user_objects_share(const struct sim_graph *from, struct sim_graph *to);
void sim_user_objects_run_destructors(void);

/* Gives back what the device's graph pool holds and no running graph needs. */
void sim_graph_pool_trim(unsigned ordinal);

#endif
