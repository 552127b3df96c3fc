/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work in streams. An operation runs at once, on the caller's thread, when its stream has nothing
 * pending; otherwise it is queued, and whoever makes progress (a query, a wait, the worker thread)
 * runs it once everything it waits for is done. All functions expect sim_lock held.
 */
#ifndef SIMGPU_DRIVER_STREAM_H
#define SIMGPU_DRIVER_STREAM_H

#include "driver.h"

/* Becomes true once, when a queued operation has run. Shared by reference count. */
struct sim_ticket {
    unsigned references;
    bool done;
};

struct sim_ticket *sim_ticket_new(void);
struct sim_ticket *sim_ticket_hold(struct sim_ticket *ticket); /* NULL stays NULL */
void sim_ticket_drop(struct sim_ticket *ticket);

/* NULL means "nothing pending". */
static inline bool sim_ticket_done(const struct sim_ticket *ticket)
{
    return !ticket || ticket->done;
}

struct sim_op {
    struct sim_op *next;
    enum sim_op_kind kind;
    bool running;
    uint64_t ready_ns;
    void (*run)(void *);
    void *argument;
    bool (*ready)(void *); /* further condition, polled; NULL: none */
    struct sim_ticket *ticket;
    struct sim_ticket **waits; /* tickets that must be done first */
    size_t wait_count;
};

/* The ticket of the last operation of a stream, NULL when idle. */
struct sim_ticket *sim_stream_tail(struct sim_stream *stream);

/* Makes later work of the stream wait for TICKET (reference taken). */
CUresult sim_stream_wait_for(struct sim_stream *stream, struct sim_ticket *ticket);

/* Queues an operation that runs when READY(ARGUMENT) is true. */
CUresult sim_submit_when(struct sim_stream *stream, bool (*ready)(void *), void *argument);

/* Runs what can run. */
void sim_progress(void);

/* Waits until TICKET is done, progressing; the lock is released while waiting. */
void sim_ticket_wait(struct sim_ticket *ticket);

/* ---- events (event.c) ---- */

/* The recording under which an event was last recorded, for waits; NULL: complete or never. */
struct sim_event;
void sim_events_of_context_end(const struct sim_context *context);

/* Records EVENT as what was last submitted to STREAM, as a graph's node does. */
CUresult sim_event_record(struct sim_event *event, struct sim_stream *stream);
struct sim_ticket *sim_event_ticket(struct sim_event *event);

#endif
