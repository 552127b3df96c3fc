/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events. A recording completes when its stream comes to it, and with an injected delay not before
 * that time has passed since the record.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "stream.h"

/* One recording: outlives the event if it is still pending when the event goes. */
struct recording {
    unsigned references;
    uint64_t completed_ns; /* 0: pending */
    struct sim_ticket *ticket;
};

struct sim_event {
    struct sim_object object;
    struct sim_context *context;
    unsigned flags;
    struct recording *recording; /* NULL: never recorded */
    struct sim_captured_event captured;
    struct sim_event *next;
};

static struct sim_event *events;

static void drop_recording(struct recording *recording)
{
    if (recording && --recording->references == 0) {
        sim_ticket_drop(recording->ticket);
        free(recording);
    }
}

static void complete(void *argument)
{
    struct recording *recording = argument;
    recording->completed_ns = sim_now_ns();
    drop_recording(recording);
}

static struct sim_event *event_of(CUevent handle)
{
    return sim_object_find(handle, SIM_EVENT);
}

struct sim_ticket *sim_event_ticket(struct sim_event *event)
{
    return event->recording ? event->recording->ticket : NULL;
}

CUresult sim_event_record(struct sim_event *event, struct sim_stream *stream)
{
    struct recording *recording = calloc(1, sizeof *recording);
    if (!recording)
        return CUDA_ERROR_OUT_OF_MEMORY;
    recording->references = 2; /* the event, the operation */
    uint64_t delay_ns = simgpu_inject_event_delay_ns();
    CUresult result = sim_submit_at(stream, SIM_OP_DEVICE, delay_ns ? sim_now_ns() + delay_ns : 0,
                                    complete, recording);
    if (result != CUDA_SUCCESS) {
        free(recording);
        return result;
    }
    if (!recording->completed_ns)
        recording->ticket = sim_ticket_hold(sim_stream_tail(stream));
    drop_recording(event->recording);
    event->recording = recording;
    free(event->captured.nodes);
    memset(&event->captured, 0, sizeof event->captured);
    return CUDA_SUCCESS;
}

/* ---- life ---- */

static CUresult create(CUevent *handle, unsigned flags)
{
    unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    if (!handle || (flags & ~known))
        return CUDA_ERROR_INVALID_VALUE;
    if ((flags & CU_EVENT_INTERPROCESS) && !(flags & CU_EVENT_DISABLE_TIMING))
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    struct sim_context *context = sim_current(&result);
    struct sim_event *event = context ? sim_object_new(SIM_EVENT, sizeof *event) : NULL;
    if (context && !event)
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (event) {
        event->context = context;
        event->flags = flags;
        event->next = events;
        events = event;
        *handle = (CUevent)event;
    }
    return sim_leave(result);
}

CUresult CUDAAPI cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
    SIM_ENTER(cuEventCreate, 0);
    return create(phEvent, Flags);
}

static void delete_event(struct sim_event *event)
{
    struct sim_event **link = &events;
    while (*link != event)
        link = &(*link)->next;
    *link = event->next;
    drop_recording(event->recording);
    free(event->captured.nodes);
    sim_object_delete(event);
}

CUresult CUDAAPI cuEventDestroy_v2(CUevent hEvent)
{
    SIM_ENTER(cuEventDestroy, 0);
    sim_lock();
    struct sim_event *event = event_of(hEvent);
    if (event)
        delete_event(event);
    return sim_leave(event ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

CUresult CUDAAPI cuEventDestroy(CUevent hEvent)
{
    return cuEventDestroy_v2(hEvent);
}

void sim_events_of_context_end(const struct sim_context *context)
{
    struct sim_event *event = events;
    while (event) {
        struct sim_event *next = event->next;
        if (event->context == context)
            delete_event(event);
        event = next;
    }
}

/* ---- record and wait ---- */

static CUresult record(CUevent handle, CUstream stream_handle, unsigned flags)
{
    if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    struct sim_stream *stream = sim_stream_of(stream_handle, &result);
    struct sim_event *event = event_of(handle);
    if (!stream)
        return sim_leave(result);
    if (!event || event->context->device != stream->context->device)
        return sim_leave(CUDA_ERROR_INVALID_HANDLE);
    if (stream->capture && !(flags & CU_EVENT_RECORD_EXTERNAL))
        return sim_leave(sim_capture_event_record(stream, &event->captured));
    if (sim_capture_add(stream, CU_GRAPH_NODE_TYPE_EVENT_RECORD, &handle, &result))
        return sim_leave(result);
    return sim_leave(sim_event_record(event, stream));
}

SIM_STREAMED(cuEventRecord, (CUevent hEvent, CUstream hStream), (hEvent, hStream))
{
    SIM_ENTER(cuEventRecord, 0);
    return record(hEvent, hStream, 0);
}

SIM_STREAMED(cuEventRecordWithFlags, (CUevent hEvent, CUstream hStream, unsigned int flags),
             (hEvent, hStream, flags))
{
    SIM_ENTER(cuEventRecordWithFlags, 0);
    return record(hEvent, hStream, flags);
}

SIM_STREAMED(cuStreamWaitEvent, (CUstream hStream, CUevent hEvent, unsigned int Flags),
             (hStream, hEvent, Flags))
{
    SIM_ENTER(cuStreamWaitEvent, 0);
    if (Flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    struct sim_stream *stream = sim_stream_of(hStream, &result);
    struct sim_event *event = event_of(hEvent);
    if (!stream)
        return sim_leave(result);
    if (!event)
        return sim_leave(CUDA_ERROR_INVALID_HANDLE);
    if (Flags & CU_EVENT_WAIT_EXTERNAL) {
        if (sim_capture_add(stream, CU_GRAPH_NODE_TYPE_WAIT_EVENT, &hEvent, &result))
            return sim_leave(result);
    } else if (event->captured.capture_id) {
        return sim_leave(sim_capture_event_wait(stream, &event->captured));
    } else if (stream->capture) {
        bool invalid = stream->capture->status == CU_STREAM_CAPTURE_STATUS_INVALIDATED;
        sim_capture_invalidate(stream->capture);
        return sim_leave(invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                                 : CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    }
    return sim_leave(sim_stream_wait_for(stream, sim_event_ticket(event)));
}

/* ---- asking ---- */

/* Queries and waits are forbidden for captured events and while captures forbid unsafe calls. */
static CUresult check_query(const struct sim_event *event)
{
    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    struct sim_capture *capture = sim_capture_by_id(event->captured.capture_id);
    if (capture) {
        sim_capture_invalidate(capture);
        return CUDA_ERROR_CAPTURED_EVENT;
    }
    if (event->captured.capture_id)
        return CUDA_ERROR_CAPTURED_EVENT;
    return sim_capture_unsafe_call();
}

CUresult CUDAAPI cuEventQuery(CUevent hEvent)
{
    SIM_ENTER(cuEventQuery, 0);
    sim_lock();
    struct sim_event *event = event_of(hEvent);
    CUresult result = check_query(event);
    if (result == CUDA_SUCCESS && !sim_ticket_done(sim_event_ticket(event))) {
        sim_progress();
        if (!sim_ticket_done(sim_event_ticket(event)))
            result = CUDA_ERROR_NOT_READY;
    }
    return sim_leave(result);
}

CUresult CUDAAPI cuEventSynchronize(CUevent hEvent)
{
    SIM_ENTER(cuEventSynchronize, 0);
    sim_lock();
    struct sim_event *event = event_of(hEvent);
    CUresult result = check_query(event);
    if (result == CUDA_SUCCESS) {
        unsigned device = event->context->device;
        sim_ticket_wait(sim_event_ticket(event));
        sim_pools_at_synchronization(device);
    }
    return sim_leave(result);
}

CUresult CUDAAPI cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
    SIM_ENTER(cuEventElapsedTime, 0);
    if (!pMilliseconds)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    const struct sim_event *start = event_of(hStart);
    const struct sim_event *end = event_of(hEnd);
    if (!start || !end || !start->recording || !end->recording ||
        ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING))
        return sim_leave(CUDA_ERROR_INVALID_HANDLE);
    sim_progress();
    uint64_t from = start->recording->completed_ns;
    uint64_t to = end->recording->completed_ns;
    if (!from || !to)
        return sim_leave(CUDA_ERROR_NOT_READY);
    *pMilliseconds = (float)((double)((int64_t)(to - from)) / 1e6);
    return sim_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
    return cuEventElapsedTime_v2(pMilliseconds, hStart, hEnd);
}

/* ---- between processes: an opened event is complete, since no work of ours is asynchronous beyond
 * its own process's knowledge ---- */

CUresult CUDAAPI cuIpcGetEventHandle(CUipcEventHandle *pHandle, CUevent event)
{
    SIM_ENTER(cuIpcGetEventHandle, 0);
    if (!pHandle)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct sim_event *found = event_of(event);
    if (!found || !(found->flags & CU_EVENT_INTERPROCESS))
        return sim_leave(CUDA_ERROR_INVALID_HANDLE);
    memset(pHandle, 0, sizeof *pHandle);
    memcpy(pHandle->reserved, "simgpuEV", 8);
    return sim_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuIpcOpenEventHandle(CUevent *phEvent, CUipcEventHandle handle)
{
    SIM_ENTER(cuIpcOpenEventHandle, 0);
    if (!phEvent || memcmp(handle.reserved, "simgpuEV", 8) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    return create(phEvent, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
}
