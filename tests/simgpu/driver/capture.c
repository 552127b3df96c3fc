/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream capture: work submitted to a capturing stream becomes nodes of a graph. Events pull other
 * streams in; what the CUDA manual forbids meanwhile fails and invalidates the captures it would
 * break.
 */
#include "capture.h"

#include <stdlib.h>
#include <string.h>

static struct sim_capture *captures;

static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

/* ---- frontiers: what the next node of a stream depends on ---- */

static bool set_frontier(struct sim_stream *stream, struct sim_graph_node *const *nodes,
                         size_t count)
{
    struct sim_graph_node **copy = malloc((count ? count : 1) * sizeof *copy);
    if (!copy)
        return false;
    if (count)
        memcpy(copy, nodes, count * sizeof *copy);
    free(stream->frontier);
    stream->frontier = copy;
    stream->frontier_count = count;
    return true;
}

static bool widen_frontier(struct sim_stream *stream, struct sim_graph_node *node)
{
    for (size_t i = 0; i < stream->frontier_count; i++)
        if (stream->frontier[i] == node)
            return true;
    size_t count = stream->frontier_count + 1;
    struct sim_graph_node **grown = realloc(stream->frontier, count * sizeof *grown);
    if (!grown)
        return false;
    grown[count - 1] = node;
    stream->frontier = grown;
    stream->frontier_count = count;
    return true;
}

/* ---- life of a capture ---- */

struct sim_capture *sim_capture_by_id(uint64_t id)
{
    struct sim_capture *capture = captures;
    while (capture && capture->id != id)
        capture = capture->next;
    return capture;
}

void sim_capture_invalidate(struct sim_capture *capture)
{
    capture->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
}

static void add_stream(struct sim_capture *capture, struct sim_stream *stream)
{
    stream->capture = capture;
    stream->next_captured = capture->streams;
    capture->streams = stream;
}

static void release_stream(struct sim_stream *stream)
{
    free(stream->frontier);
    stream->frontier = NULL;
    stream->frontier_count = 0;
    stream->capture = NULL;
}

static void end_capture(struct sim_capture *capture)
{
    struct sim_stream *stream = capture->streams;
    while (stream) {
        struct sim_stream *next = stream->next_captured;
        release_stream(stream);
        stream = next;
    }
    struct sim_capture **link = &captures;
    while (*link != capture)
        link = &(*link)->next;
    *link = capture->next;
    free(capture);
}

void sim_capture_stream_ends(struct sim_stream *stream)
{
    struct sim_capture *capture = stream->capture;
    if (!capture)
        return;
    if (stream == capture->origin) {
        if (!capture->graph_is_callers)
            sim_graph_delete(capture->graph);
        end_capture(capture);
        return;
    }
    sim_capture_invalidate(capture);
    struct sim_stream **link = &capture->streams;
    while (*link != stream)
        link = &(*link)->next_captured;
    *link = stream->next_captured;
    release_stream(stream);
}

/* ---- what is forbidden meanwhile ---- */

CUresult sim_capture_unsafe_call(void)
{
    CUresult result = CUDA_SUCCESS;
    if (!captures || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_SUCCESS;
    for (struct sim_capture *capture = captures; capture; capture = capture->next) {
        bool is_own = pthread_equal(capture->thread, pthread_self());
        bool forbids = is_own ? capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED
                              : capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                                    thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        if (!forbids)
            continue;
        sim_capture_invalidate(capture);
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return result;
}

/* Work in the legacy stream would depend on every blocking stream that captures. */
static CUresult legacy_conflict(const struct sim_stream *stream)
{
    CUresult result = CUDA_SUCCESS;
    for (struct sim_capture *capture = captures; stream->is_legacy && capture;
         capture = capture->next) {
        for (const struct sim_stream *other = capture->streams; other; other = other->next_captured)
            if (other->context == stream->context && !(other->flags & CU_STREAM_NON_BLOCKING)) {
                sim_capture_invalidate(capture);
                result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
            }
    }
    return result;
}

CUresult sim_capture_forbids(struct sim_stream *stream)
{
    if (stream->capture) {
        bool invalid = stream->capture->status == CU_STREAM_CAPTURE_STATUS_INVALIDATED;
        sim_capture_invalidate(stream->capture);
        return invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                       : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    CUresult result = legacy_conflict(stream);
    return result == CUDA_SUCCESS ? sim_capture_unsafe_call() : result;
}

/* ---- recording work ---- */

static size_t params_size(CUgraphNodeType type)
{
    switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return sizeof(CUDA_KERNEL_NODE_PARAMS_v2);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return sizeof(CUDA_MEMCPY3D);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return sizeof(CUDA_MEMSET_NODE_PARAMS);
    case CU_GRAPH_NODE_TYPE_HOST:
        return sizeof(CUDA_HOST_NODE_PARAMS);
    case CU_GRAPH_NODE_TYPE_EMPTY:
        return 0;
    default: /* an event, an address, graph memory or a child graph */
        return sizeof(void *);
    }
}

bool sim_capture_add(struct sim_stream *stream, CUgraphNodeType type, const void *params,
                     CUresult *result)
{
    struct sim_capture *capture = stream->capture;
    if (!captures)
        return false;
    if (!capture) {
        *result = legacy_conflict(stream);
        return *result != CUDA_SUCCESS;
    }
    if (capture->status == CU_STREAM_CAPTURE_STATUS_INVALIDATED) {
        *result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        return true;
    }
    union sim_node_params copy = {0};
    if (params)
        memcpy(&copy, params, params_size(type));
    struct sim_graph_node *node =
        sim_graph_add(capture->graph, type, stream->frontier, stream->frontier_count, &copy);
    bool added = node && set_frontier(stream, &node, 1);
    *result = added ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    return true;
}

struct sim_graph_node *sim_capture_last(const struct sim_stream *stream)
{
    return stream->frontier_count ? stream->frontier[stream->frontier_count - 1] : NULL;
}

CUresult sim_capture_event_record(struct sim_stream *stream, struct sim_captured_event *event)
{
    if (stream->capture->status == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    size_t count = stream->frontier_count;
    struct sim_graph_node **nodes = malloc((count ? count : 1) * sizeof *nodes);
    if (!nodes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (count)
        memcpy(nodes, stream->frontier, count * sizeof *nodes);
    free(event->nodes);
    event->nodes = nodes;
    event->node_count = count;
    event->capture_id = stream->capture->id;
    return CUDA_SUCCESS;
}

static CUresult join_capture(struct sim_stream *stream, struct sim_capture *capture,
                             const struct sim_captured_event *event)
{
    if (stream->is_legacy) {
        sim_capture_invalidate(capture);
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    if (!set_frontier(stream, event->nodes, event->node_count))
        return CUDA_ERROR_OUT_OF_MEMORY;
    add_stream(capture, stream);
    return CUDA_SUCCESS;
}

CUresult sim_capture_event_wait(struct sim_stream *stream, const struct sim_captured_event *event)
{
    struct sim_capture *capture = sim_capture_by_id(event->capture_id);
    if (stream->capture && stream->capture->status == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!capture) {
        if (!stream->capture)
            return CUDA_ERROR_CAPTURED_EVENT;
        sim_capture_invalidate(stream->capture);
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (capture->status == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!stream->capture)
        return join_capture(stream, capture, event);
    if (stream->capture != capture) {
        sim_capture_invalidate(stream->capture);
        sim_capture_invalidate(capture);
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    for (size_t i = 0; i < event->node_count; i++)
        if (!widen_frontier(stream, event->nodes[i]))
            return CUDA_ERROR_OUT_OF_MEMORY;
    return CUDA_SUCCESS;
}

/* ---- begin and end ---- */

static CUresult begin(CUstream handle, struct sim_graph *graph, CUgraphNode *const *needs,
                      size_t need_count, CUstreamCaptureMode mode)
{
    CUresult result;
    struct sim_stream *stream = sim_stream_of(handle, &result);
    if (!stream)
        return result;
    if (stream->is_legacy)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    struct sim_capture *capture = calloc(1, sizeof *capture);
    if (!capture || !set_frontier(stream, (struct sim_graph_node *const *)needs, need_count)) {
        free(capture);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    capture->graph_is_callers = graph != NULL;
    capture->graph = graph ? graph : sim_graph_new(stream->context);
    if (!capture->graph) {
        free(capture);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    capture->id = ++sim.next_id;
    capture->mode = mode;
    capture->status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    capture->origin = stream;
    capture->thread = pthread_self();
    capture->next = captures;
    captures = capture;
    add_stream(capture, stream);
    return CUDA_SUCCESS;
}

static bool is_mode(CUstreamCaptureMode mode)
{
    return mode == CU_STREAM_CAPTURE_MODE_GLOBAL || mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL ||
           mode == CU_STREAM_CAPTURE_MODE_RELAXED;
}

SIM_STREAMED(cuStreamBeginCapture_v2, (CUstream hStream, CUstreamCaptureMode mode), (hStream, mode))
{
    SIM_ENTER(cuStreamBeginCapture, 0);
    if (!is_mode(mode))
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    return sim_leave(begin(hStream, NULL, NULL, 0, mode));
}

SIM_STREAMED(cuStreamBeginCapture, (CUstream hStream), (hStream))
{
    SIM_ENTER(cuStreamBeginCapture, 0);
    sim_lock();
    return sim_leave(begin(hStream, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

SIM_STREAMED(cuStreamBeginCaptureToGraph,
             (CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies,
              const CUgraphEdgeData *dependencyData, size_t numDependencies,
              CUstreamCaptureMode mode),
             (hStream, hGraph, dependencies, dependencyData, numDependencies, mode))
{
    SIM_ENTER(cuStreamBeginCaptureToGraph, 0);
    (void)dependencyData;
    if (!is_mode(mode) || (numDependencies && !dependencies))
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct sim_graph *graph = sim_object_find(hGraph, SIM_GRAPH);
    if (!graph)
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0; i < numDependencies; i++) {
        const struct sim_graph_node *node = sim_object_find(dependencies[i], SIM_NODE);
        if (!node || node->graph != graph)
            return sim_leave(CUDA_ERROR_INVALID_VALUE);
    }
    return sim_leave(
        begin(hStream, graph, (CUgraphNode *const *)dependencies, numDependencies, mode));
}

/* Every stream that was pulled in must have been waited for by the origin. */
static bool is_joined(const struct sim_capture *capture)
{
    const struct sim_stream *origin = capture->origin;
    for (const struct sim_stream *stream = capture->streams; stream;
         stream = stream->next_captured) {
        for (size_t i = 0; stream != origin && i < stream->frontier_count; i++) {
            bool reached = false;
            for (size_t j = 0; j < origin->frontier_count && !reached; j++)
                reached = sim_graph_reaches(stream->frontier[i], origin->frontier[j]);
            if (!reached)
                return false;
        }
    }
    return true;
}

SIM_STREAMED(cuStreamEndCapture, (CUstream hStream, CUgraph *phGraph), (hStream, phGraph))
{
    SIM_ENTER(cuStreamEndCapture, 0);
    if (!phGraph)
        return CUDA_ERROR_INVALID_VALUE;
    *phGraph = NULL;
    sim_lock();
    CUresult result;
    struct sim_stream *stream = sim_stream_of(hStream, &result);
    struct sim_capture *capture = stream ? stream->capture : NULL;
    if (!stream)
        return sim_leave(result);
    if (!capture)
        return sim_leave(CUDA_ERROR_ILLEGAL_STATE);
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
        !pthread_equal(capture->thread, pthread_self()))
        return sim_leave(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    if (stream != capture->origin) {
        sim_capture_invalidate(capture);
        return sim_leave(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    }
    if (capture->status == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
        result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    else if (!is_joined(capture))
        result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    struct sim_graph *graph = capture->graph;
    bool is_callers = capture->graph_is_callers;
    end_capture(capture);
    if (result == CUDA_SUCCESS)
        *phGraph = (CUgraph)graph;
    else if (!is_callers)
        sim_graph_delete(graph);
    return sim_leave(result);
}

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    SIM_ENTER(cuThreadExchangeStreamCaptureMode, 0);
    if (!mode || !is_mode(*mode))
        return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode previous = thread_mode;
    thread_mode = *mode;
    *mode = previous;
    return CUDA_SUCCESS;
}

/* ---- asking ---- */

SIM_STREAMED(cuStreamIsCapturing, (CUstream hStream, CUstreamCaptureStatus *captureStatus),
             (hStream, captureStatus))
{
    SIM_ENTER(cuStreamIsCapturing, 0);
    if (!captureStatus)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    struct sim_stream *stream = sim_stream_of(hStream, &result);
    if (!stream)
        return sim_leave(result);
    result = legacy_conflict(stream);
    *captureStatus = stream->capture ? stream->capture->status : CU_STREAM_CAPTURE_STATUS_NONE;
    return sim_leave(result);
}

struct capture_answer {
    CUstreamCaptureStatus *status;
    cuuint64_t *id;
    CUgraph *graph;
    const CUgraphNode **dependencies;
    const CUgraphEdgeData **edges;
    size_t *count;
};

static CUresult capture_info(CUstream handle, const struct capture_answer *answer)
{
    if (!answer->status)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    struct sim_stream *stream = sim_stream_of(handle, &result);
    if (!stream)
        return sim_leave(result);
    result = legacy_conflict(stream);
    struct sim_capture *capture = stream->capture;
    *answer->status = capture ? capture->status : CU_STREAM_CAPTURE_STATUS_NONE;
    bool active = capture && capture->status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (answer->id && active)
        *answer->id = capture->id;
    if (answer->graph)
        *answer->graph = active ? (CUgraph)capture->graph : NULL;
    if (answer->dependencies)
        *answer->dependencies = active ? (const CUgraphNode *)stream->frontier : NULL;
    if (answer->edges)
        *answer->edges = NULL;
    if (answer->count)
        *answer->count = active ? stream->frontier_count : 0;
    return sim_leave(result);
}

SIM_STREAMED(cuStreamGetCaptureInfo,
             (CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out),
             (hStream, captureStatus_out, id_out))
{
    SIM_ENTER(cuStreamGetCaptureInfo, 0);
    return capture_info(
        hStream, &(struct capture_answer){captureStatus_out, id_out, NULL, NULL, NULL, NULL});
}

SIM_STREAMED(cuStreamGetCaptureInfo_v2,
             (CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out,
              CUgraph *graph_out, const CUgraphNode **dependencies_out,
              size_t *numDependencies_out),
             (hStream, captureStatus_out, id_out, graph_out, dependencies_out, numDependencies_out))
{
    SIM_ENTER(cuStreamGetCaptureInfo, 0);
    return capture_info(hStream,
                        &(struct capture_answer){captureStatus_out, id_out, graph_out,
                                                 dependencies_out, NULL, numDependencies_out});
}

SIM_STREAMED(cuStreamGetCaptureInfo_v3,
             (CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out,
              CUgraph *graph_out, const CUgraphNode **dependencies_out,
              const CUgraphEdgeData **edgeData_out, size_t *numDependencies_out),
             (hStream, captureStatus_out, id_out, graph_out, dependencies_out, edgeData_out,
              numDependencies_out))
{
    SIM_ENTER(cuStreamGetCaptureInfo, 0);
    return capture_info(hStream, &(struct capture_answer){captureStatus_out, id_out, graph_out,
                                                          dependencies_out, edgeData_out,
                                                          numDependencies_out});
}

static CUresult update_dependencies(CUstream handle, CUgraphNode *dependencies, size_t count,
                                    unsigned flags)
{
    if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (count && !dependencies))
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    struct sim_stream *stream = sim_stream_of(handle, &result);
    if (stream && !stream->capture)
        result = CUDA_ERROR_ILLEGAL_STATE;
    for (size_t i = 0; result == CUDA_SUCCESS && i < count; i++) {
        const struct sim_graph_node *node = sim_object_find(dependencies[i], SIM_NODE);
        if (!node || node->graph != stream->capture->graph)
            result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result != CUDA_SUCCESS)
        return sim_leave(result);
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) {
        bool set = set_frontier(stream, (struct sim_graph_node **)dependencies, count);
        return sim_leave(set ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
    }
    for (size_t i = 0; i < count; i++)
        if (!widen_frontier(stream, (struct sim_graph_node *)dependencies[i]))
            return sim_leave(CUDA_ERROR_OUT_OF_MEMORY);
    return sim_leave(CUDA_SUCCESS);
}

SIM_STREAMED(cuStreamUpdateCaptureDependencies,
             (CUstream hStream, CUgraphNode *dependencies, size_t numDependencies,
              unsigned int flags),
             (hStream, dependencies, numDependencies, flags))
{
    SIM_ENTER(cuStreamUpdateCaptureDependencies, 0);
    return update_dependencies(hStream, dependencies, numDependencies, flags);
}

SIM_STREAMED(cuStreamUpdateCaptureDependencies_v2,
             (CUstream hStream, CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData,
              size_t numDependencies, unsigned int flags),
             (hStream, dependencies, dependencyData, numDependencies, flags))
{
    SIM_ENTER(cuStreamUpdateCaptureDependencies, 0);
    (void)dependencyData;
    return update_dependencies(hStream, dependencies, numDependencies, flags);
}
