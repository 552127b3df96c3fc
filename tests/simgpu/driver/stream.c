/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and the engine that runs their work in order; see stream.h. */
#include "stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "capture.h"

#define POLL_NS 200000U /* how often the worker looks at conditions it cannot be woken for */

struct sim_stream *sim_streams;

static struct {
    struct sim_stream *active; /* streams with queued work */
    pthread_cond_t changed;    /* an operation ended, or was queued */
    bool ready;                /* changed is initialised */
    bool has_worker;
    bool has_conditions; /* an operation waits for memory to change */
} engine;

/* Each thread's own default stream per device, made on first use. */
static _Thread_local struct sim_stream *thread_streams[SIMGPU_MAX_DEVICES];

uint64_t sim_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

/* ---- tickets ---- */

struct sim_ticket *sim_ticket_new(void)
{
    struct sim_ticket *ticket = calloc(1, sizeof *ticket);
    if (ticket)
        ticket->references = 1;
    return ticket;
}

struct sim_ticket *sim_ticket_hold(struct sim_ticket *ticket)
{
    if (ticket)
        ticket->references++;
    return ticket;
}

void sim_ticket_drop(struct sim_ticket *ticket)
{
    if (ticket && --ticket->references == 0)
        free(ticket);
}

/* ---- the engine ---- */

static void prepare_engine(void)
{
    if (engine.ready)
        return;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&engine.changed, &attributes);
    pthread_condattr_destroy(&attributes);
    engine.ready = true;
}

static bool may_run(struct sim_op *op, uint64_t now)
{
    if (op->running || now < op->ready_ns)
        return false;
    while (op->wait_count) {
        struct sim_ticket *ticket = op->waits[op->wait_count - 1];
        if (!ticket->done)
            return false;
        sim_ticket_drop(ticket);
        op->wait_count--;
    }
    return !op->ready || op->ready(op->argument);
}

static void retire(struct sim_stream *stream)
{
    struct sim_op *op = stream->head;
    stream->head = op->next;
    if (!stream->head)
        stream->tail = NULL;
    op->ticket->done = true;
    sim_ticket_drop(op->ticket);
    free(op->waits);
    free(op);
    pthread_cond_broadcast(&engine.changed);
}

static void run_head(struct sim_stream *stream)
{
    struct sim_op *op = stream->head;
    op->running = true;
    if (op->kind == SIM_OP_HOST)
        sim_unlock();
    if (op->run)
        op->run(op->argument);
    if (op->kind == SIM_OP_HOST)
        sim_lock();
    retire(stream);
}

static void leave_active_list(void)
{
    struct sim_stream **link = &engine.active;
    while (*link) {
        struct sim_stream *stream = *link;
        if (stream->head) {
            link = &stream->next_active;
        } else {
            stream->is_active = false;
            *link = stream->next_active;
        }
    }
}

/* One pass: true if something ran. Host functions only on the worker, and one at a time, since the
 * lists may change while it runs. */
static bool progress_once(bool on_worker)
{
    uint64_t now = sim_now_ns();
    bool ran = false;
    for (struct sim_stream *stream = engine.active; stream; stream = stream->next_active) {
        while (stream->head && (on_worker || stream->head->kind == SIM_OP_DEVICE) &&
               may_run(stream->head, now)) {
            bool is_host = stream->head->kind == SIM_OP_HOST;
            run_head(stream);
            ran = true;
            if (is_host)
                return true;
        }
    }
    leave_active_list();
    return ran;
}

void sim_progress(void)
{
    while (engine.active && progress_once(false))
        continue;
}

/* When the next timed operation may run; far away if nothing is timed. */
static uint64_t next_deadline(void)
{
    uint64_t now = sim_now_ns();
    uint64_t deadline = now + 1000000000U;
    for (const struct sim_stream *stream = engine.active; stream; stream = stream->next_active) {
        const struct sim_op *op = stream->head;
        if (op && op->ready_ns > now && op->ready_ns < deadline)
            deadline = op->ready_ns;
    }
    if (engine.has_conditions && now + POLL_NS < deadline)
        deadline = now + POLL_NS;
    return deadline;
}

static void wait_for_change(void)
{
    prepare_engine();
    uint64_t deadline = next_deadline();
    struct timespec until = {.tv_sec = (time_t)(deadline / 1000000000U),
                             .tv_nsec = (long)(deadline % 1000000000U)};
    pthread_cond_timedwait(&engine.changed, sim_mutex(), &until);
}

static void *work(void *unused)
{
    (void)unused;
    sim_lock();
    for (;;) {
        if (!engine.active)
            pthread_cond_wait(&engine.changed, sim_mutex());
        else if (!progress_once(true))
            wait_for_change();
    }
    return NULL;
}

static void wake_worker(void)
{
    prepare_engine();
    if (!engine.has_worker) {
        pthread_attr_t attributes;
        pthread_t thread;
        pthread_attr_init(&attributes);
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        engine.has_worker = pthread_create(&thread, &attributes, work, NULL) == 0;
        pthread_attr_destroy(&attributes);
    }
    pthread_cond_broadcast(&engine.changed);
}

void sim_ticket_wait(struct sim_ticket *ticket)
{
    sim_ticket_hold(ticket);
    sim_progress();
    while (!sim_ticket_done(ticket)) {
        wait_for_change();
        sim_progress();
    }
    sim_ticket_drop(ticket);
}

/* ---- submitting ---- */

struct sim_ticket *sim_stream_tail(struct sim_stream *stream)
{
    return stream->tail ? stream->tail->ticket : NULL;
}

bool sim_stream_idle(struct sim_stream *stream)
{
    if (stream->head)
        sim_progress();
    return !stream->head;
}

static bool add_wait(struct sim_op *op, struct sim_ticket *ticket)
{
    if (sim_ticket_done(ticket))
        return true;
    struct sim_ticket **grown = realloc(op->waits, (op->wait_count + 1) * sizeof *grown);
    if (!grown)
        return false;
    op->waits = grown;
    op->waits[op->wait_count++] = sim_ticket_hold(ticket);
    return true;
}

/* Work in the legacy stream waits for all blocking streams of its context, and theirs for it. */
static bool add_legacy_waits(struct sim_op *op, const struct sim_stream *stream)
{
    if (!engine.active || (stream->flags & CU_STREAM_NON_BLOCKING))
        return true;
    for (struct sim_stream *other = engine.active; other; other = other->next_active) {
        if (other == stream || other->context != stream->context ||
            (other->flags & CU_STREAM_NON_BLOCKING))
            continue;
        if ((stream->is_legacy || other->is_legacy) && !add_wait(op, sim_stream_tail(other)))
            return false;
    }
    return true;
}

static void discard(struct sim_op *op)
{
    for (size_t i = 0; i < op->wait_count; i++)
        sim_ticket_drop(op->waits[i]);
    free(op->waits);
    sim_ticket_drop(op->ticket);
    free(op);
}

static struct sim_op *new_op(struct sim_stream *stream, enum sim_op_kind kind)
{
    struct sim_op *op = calloc(1, sizeof *op);
    if (!op)
        return NULL;
    op->kind = kind;
    op->ticket = sim_ticket_new();
    if (!op->ticket || !add_legacy_waits(op, stream)) {
        if (op->ticket)
            discard(op);
        else
            free(op);
        return NULL;
    }
    return op;
}

static void enqueue(struct sim_stream *stream, struct sim_op *op)
{
    if (stream->tail)
        stream->tail->next = op;
    else
        stream->head = op;
    stream->tail = op;
    if (!stream->is_active) {
        stream->is_active = true;
        stream->next_active = engine.active;
        engine.active = stream;
    }
    wake_worker();
}

/* True when a device operation need not be queued. */
static bool runs_at_once(struct sim_stream *stream, uint64_t ready_ns)
{
    if (engine.active)
        sim_progress();
    if (stream->head || ready_ns)
        return false;
    struct sim_op probe = {.kind = SIM_OP_DEVICE};
    bool complete = add_legacy_waits(&probe, stream) && probe.wait_count == 0;
    for (size_t i = 0; i < probe.wait_count; i++)
        sim_ticket_drop(probe.waits[i]);
    free(probe.waits);
    return complete;
}

CUresult sim_submit_at(struct sim_stream *stream, enum sim_op_kind kind, uint64_t ready_ns,
                       void (*run)(void *), void *argument)
{
    if (kind == SIM_OP_DEVICE && runs_at_once(stream, ready_ns)) {
        if (run)
            run(argument);
        return CUDA_SUCCESS;
    }
    struct sim_op *op = new_op(stream, kind);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    op->ready_ns = ready_ns;
    op->run = run;
    op->argument = argument;
    enqueue(stream, op);
    return CUDA_SUCCESS;
}

CUresult sim_submit(struct sim_stream *stream, enum sim_op_kind kind, void (*run)(void *),
                    void *argument)
{
    return sim_submit_at(stream, kind, 0, run, argument);
}

CUresult sim_submit_when(struct sim_stream *stream, bool (*ready)(void *), void *argument)
{
    struct sim_op *op = new_op(stream, SIM_OP_DEVICE);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    op->ready = ready;
    op->run = free;
    op->argument = argument;
    engine.has_conditions = true;
    enqueue(stream, op);
    return CUDA_SUCCESS;
}

CUresult sim_stream_wait_for(struct sim_stream *stream, struct sim_ticket *ticket)
{
    if (sim_ticket_done(ticket))
        return CUDA_SUCCESS;
    struct sim_op *op = new_op(stream, SIM_OP_DEVICE);
    if (!op || !add_wait(op, ticket)) {
        if (op)
            discard(op);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    enqueue(stream, op);
    return CUDA_SUCCESS;
}

CUresult sim_stream_join(struct sim_stream *stream, struct sim_stream *other)
{
    return sim_stream_wait_for(stream, sim_stream_tail(other));
}

void sim_stream_wait(struct sim_stream *stream)
{
    sim_ticket_wait(sim_stream_tail(stream));
}

void sim_context_wait(const struct sim_context *context)
{
    struct sim_stream *stream = engine.active;
    while (stream) {
        if (stream->context == context && !sim_stream_idle(stream)) {
            sim_stream_wait(stream);
            stream = engine.active; /* the list may have changed while waiting */
        } else {
            stream = stream->next_active;
        }
    }
}

/* ---- handles ---- */

static struct sim_stream *new_stream(struct sim_context *context, unsigned flags, int priority)
{
    struct sim_stream *stream = sim_object_new(SIM_STREAM, sizeof *stream);
    if (!stream)
        return NULL;
    stream->context = context;
    stream->flags = flags;
    stream->priority = priority;
    stream->id = ++sim.next_id;
    stream->next = sim_streams;
    sim_streams = stream;
    return stream;
}

static void unlink_stream(struct sim_stream *stream)
{
    struct sim_stream **link = &sim_streams;
    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
    for (link = &engine.active; *link; link = &(*link)->next_active) {
        if (*link == stream) {
            *link = stream->next_active;
            break;
        }
    }
}

static struct sim_stream *legacy_stream(struct sim_context *context)
{
    if (!context->legacy) {
        context->legacy = new_stream(context, 0, 0);
        if (context->legacy)
            context->legacy->is_legacy = true;
    }
    return context->legacy;
}

static struct sim_stream *thread_stream(struct sim_context *context)
{
    struct sim_stream *stream = thread_streams[context->device];
    if (stream && sim_object_find(stream, SIM_STREAM) && stream->is_thread_default &&
        stream->context == context)
        return stream;
    stream = new_stream(context, 0, 0);
    if (stream)
        stream->is_thread_default = true;
    thread_streams[context->device] = stream;
    return stream;
}

struct sim_stream *sim_stream_of(CUstream handle, CUresult *error)
{
    struct sim_context *context = sim_current(error);
    struct sim_stream *stream = NULL;
    if (!context)
        return NULL;
    if (handle == NULL || handle == CU_STREAM_LEGACY) {
        stream = legacy_stream(context);
    } else if (handle == CU_STREAM_PER_THREAD) {
        stream = thread_stream(context);
    } else {
        stream = sim_object_find(handle, SIM_STREAM);
        *error = stream ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
        return stream;
    }
    *error = stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    return stream;
}

static void delete_stream(struct sim_stream *stream)
{
    sim_capture_stream_ends(stream);
    if (stream->charged)
        sim_discharge(stream->context->device, SIMGPU_STREAM, simgpu_config()->stream_bytes);
    unlink_stream(stream);
    if (stream->context->legacy == stream)
        stream->context->legacy = NULL;
    sim_object_delete(stream);
}

void sim_streams_of_context_end(const struct sim_context *context)
{
    sim_events_of_context_end(context);
    struct sim_stream *stream = sim_streams;
    while (stream) {
        struct sim_stream *next = stream->next;
        if (stream->context == context)
            delete_stream(stream);
        stream = next;
    }
}

static CUresult create_stream(CUstream *phStream, unsigned flags, int priority)
{
    if (!phStream || (flags & ~(unsigned)CU_STREAM_NON_BLOCKING))
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    struct sim_context *context = sim_current(&result);
    if (!context)
        return sim_leave(result);
    if (sim_charge(context->device, SIMGPU_STREAM, simgpu_config()->stream_bytes))
        return sim_leave(CUDA_ERROR_OUT_OF_MEMORY);
    priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
    struct sim_stream *stream = new_stream(context, flags, priority);
    if (!stream) {
        sim_discharge(context->device, SIMGPU_STREAM, simgpu_config()->stream_bytes);
        return sim_leave(CUDA_ERROR_OUT_OF_MEMORY);
    }
    stream->charged = true;
    *phStream = (CUstream)stream;
    return sim_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
    SIM_ENTER(cuStreamCreate, 0);
    return create_stream(phStream, Flags, 0);
}

CUresult CUDAAPI cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
    SIM_ENTER(cuStreamCreateWithPriority, 0);
    return create_stream(phStream, flags, priority);
}

CUresult CUDAAPI cuStreamDestroy_v2(CUstream hStream)
{
    SIM_ENTER(cuStreamDestroy, 0);
    sim_lock();
    CUresult result;
    if (!sim_current(&result))
        return sim_leave(result);
    struct sim_stream *stream = sim_object_find(hStream, SIM_STREAM);
    if (!stream || stream->is_legacy || stream->is_thread_default)
        return sim_leave(CUDA_ERROR_INVALID_HANDLE);
    sim_object_hide(stream); /* invalid at once; gone when its work is done */
    sim_stream_wait(stream);
    sim_tree_insert(&sim.objects, &stream->object.node);
    delete_stream(stream);
    return sim_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuStreamDestroy(CUstream hStream)
{
    return cuStreamDestroy_v2(hStream);
}
