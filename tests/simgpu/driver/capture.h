/* SPDX-License-Identifier: Apache-2.0 */
/* Stream capture. All functions expect sim_lock held. */
#ifndef SIMGPU_DRIVER_CAPTURE_H
#define SIMGPU_DRIVER_CAPTURE_H

#include "graph.h"

struct sim_capture {
    uint64_t id;
    CUstreamCaptureMode mode;
    CUstreamCaptureStatus status;
    struct sim_graph *graph;
    bool graph_is_callers; /* BeginCaptureToGraph */
    struct sim_stream *origin;
    struct sim_stream *streams; /* joined ones, origin included */
    pthread_t thread;
    struct sim_capture *next; /* of all under way */
};

/* If STREAM captures, adds a node for the work and returns true; *result tells how that went. Also
 * true, with an error, for work in the legacy stream that a capture forbids. PARAMS points to the
 * member of sim_node_params for TYPE (NULL: none). */
bool sim_capture_add(struct sim_stream *stream, CUgraphNodeType type, const void *params,
                     CUresult *result);

/* The node added last to a capturing stream. */
struct sim_graph_node *sim_capture_last(const struct sim_stream *stream);

void sim_capture_invalidate(struct sim_capture *capture);
void sim_capture_stream_ends(struct sim_stream *stream);

/* A live capture by number, NULL if it ended. */
struct sim_capture *sim_capture_by_id(uint64_t id);

/* What an event recorded in a capturing stream stands for. */
struct sim_captured_event {
    uint64_t capture_id; /* 0: not captured */
    struct sim_graph_node **nodes;
    size_t node_count;
};

CUresult sim_capture_event_record(struct sim_stream *stream, struct sim_captured_event *event);

/* STREAM waits for EVENT: joins its capture, or widens the frontier. */
CUresult sim_capture_event_wait(struct sim_stream *stream, const struct sim_captured_event *event);

#endif
