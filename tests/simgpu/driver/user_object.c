/* SPDX-License-Identifier: Apache-2.0 */
/* User objects: what a program ties to a graph's life, with a destructor. */
#include <stdlib.h>
#include <string.h>

#include "graph_objects.h"

struct sim_user_object {
    struct sim_object object;
    void *pointer;
    CUhostFn destroy;
    uint64_t references;
    struct sim_user_object *next_dead;
};

static struct sim_user_object *dead;

void sim_user_object_release(struct sim_user_object *object, unsigned count)
{
    object->references = object->references > count ? object->references - count : 0;
    if (object->references)
        return;
    sim_object_hide(object);
    object->next_dead = dead;
    dead = object;
}

void sim_user_objects_run_destructors(void)
{
    sim_lock();
    struct sim_user_object *list = dead;
    dead = NULL;
    sim_unlock();
    while (list) {
        struct sim_user_object *next = list->next_dead;
        list->destroy(list->pointer);
        free(list);
        list = next;
    }
}

static struct sim_graph_retention *retention_of(struct sim_graph *graph,
                                                const struct sim_user_object *object)
{
    for (size_t i = 0; i < graph->retained_count; i++)
        if (graph->retained[i].object == object)
            return &graph->retained[i];
    return NULL;
}

static bool retain(struct sim_graph *graph, struct sim_user_object *object, unsigned count)
{
    struct sim_graph_retention *retention = retention_of(graph, object);
    if (!retention) {
        struct sim_graph_retention *grown =
            realloc(graph->retained, (graph->retained_count + 1) * sizeof *grown);
        if (!grown)
            return false;
        graph->retained = grown;
        retention = &grown[graph->retained_count++];
        *retention = (struct sim_graph_retention){object, 0};
    }
    retention->count += count;
    return true;
}

bool sim_user_objects_share(const struct sim_graph *from, struct sim_graph *to)
{
    for (size_t i = 0; i < from->retained_count; i++) {
        if (!retain(to, from->retained[i].object, from->retained[i].count))
            return false;
        from->retained[i].object->references += from->retained[i].count;
    }
    return true;
}

CUresult CUDAAPI cuUserObjectCreate(CUuserObject *object_out, void *ptr, CUhostFn destroy,
                                    unsigned int initialRefcount, unsigned int flags)
{
    SIM_ENTER(cuUserObjectCreate, 0);
    if (!object_out || !destroy || !initialRefcount || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct sim_user_object *object = sim_object_new(SIM_USER_OBJECT, sizeof *object);
    if (!object)
        return sim_leave(CUDA_ERROR_OUT_OF_MEMORY);
    object->pointer = ptr;
    object->destroy = destroy;
    object->references = initialRefcount;
    *object_out = (CUuserObject)object;
    return sim_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuUserObjectRetain(CUuserObject object, unsigned int count)
{
    SIM_ENTER(cuUserObjectRetain, 0);
    sim_lock();
    struct sim_user_object *found = sim_object_find(object, SIM_USER_OBJECT);
    if (found && count)
        found->references += count;
    return sim_leave(found && count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuUserObjectRelease(CUuserObject object, unsigned int count)
{
    SIM_ENTER(cuUserObjectRelease, 0);
    sim_lock();
    struct sim_user_object *found = sim_object_find(object, SIM_USER_OBJECT);
    if (found && count)
        sim_user_object_release(found, count);
    sim_unlock();
    sim_user_objects_run_destructors();
    return found && count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count,
                                         unsigned int flags)
{
    SIM_ENTER(cuGraphRetainUserObject, 0);
    if (!count || (flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE))
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct sim_graph *found = sim_graph_of(graph);
    struct sim_user_object *target = sim_object_find(object, SIM_USER_OBJECT);
    if (!found || !target)
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    if (!retain(found, target, count))
        return sim_leave(CUDA_ERROR_OUT_OF_MEMORY);
    if (!(flags & CU_GRAPH_USER_OBJECT_MOVE)) /* else the caller's references move */
        target->references += count;
    return sim_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count)
{
    SIM_ENTER(cuGraphReleaseUserObject, 0);
    sim_lock();
    struct sim_graph *found = sim_graph_of(graph);
    struct sim_user_object *target = sim_object_find(object, SIM_USER_OBJECT);
    struct sim_graph_retention *retention = found && target ? retention_of(found, target) : NULL;
    if (!retention || !count || count > retention->count)
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    retention->count -= count;
    if (!retention->count)
        *retention = found->retained[--found->retained_count];
    sim_user_object_release(target, count);
    sim_unlock();
    sim_user_objects_run_destructors();
    return CUDA_SUCCESS;
}
