/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one event costs its producer, without stacks: our ring, a queue behind a
 * mutex, and, where LTTng-UST is installed, a tracepoint with the same fields.
 * `clock` is our clock read alone, `monotonic` one of CLOCK_MONOTONIC; `order` is that and a place
 * in one order over all threads, nothing written: what no queue with one order can go below.
 *
 *   ring_bench clock|monotonic|order|ring|mutex|lttng THREADS EVENTS ROUNDS
 *
 * Each round every thread emits its share of EVENTS at once into a ring that has
 * been written to before and has room for all of them; draining it is not timed.
 * Prints the tenth percentile of the rounds, in nanoseconds of wall time per event over all
 * threads: what other programs do to this one is not what is asked. After it, which part of their
 * time the threads had a processor: with less than all of it they did not run side by side.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../shim/event_clock.h"
#include "../unit/ring_lab.h"

#ifdef VS_WITH_LTTNG
#include "lttng_event.h"
#endif

#define ROUNDS_MAX 1000U

struct mutex_queue {
    pthread_mutex_t mutex;
    uint64_t head;
    uint64_t capacity;
    struct vs_sequenced_event *slots;
};

static struct mutex_queue queue = {.mutex = PTHREAD_MUTEX_INITIALIZER};
static struct consumer consumer;
static pthread_barrier_t barrier;
static uint64_t events_each;
static unsigned rounds;
static uint64_t unrecorded[64];
/* Of the round that runs, by the producers' own clocks: the main thread may be late to look. */
static uint64_t began_ns[64];
static uint64_t ended_ns[64];
/* Of all rounds: how long they took each thread, and how much of that it had a processor. */
static uint64_t timed_ns[64];
static uint64_t ran_ns[64];

typedef uint64_t emit_function(struct vs_event *event);

static uint64_t emit_clock(struct vs_event *event)
{
    event->time_ns = event_now_ns();
    return event->time_ns;
}

/* The clock that events stand for, as a program reads it. */
static uint64_t emit_monotonic(struct vs_event *event)
{
    event->time_ns = shim_now_ns();
    return event->time_ns;
}

static _Alignas(128) _Atomic uint64_t next_place;

static uint64_t emit_order(struct vs_event *event)
{
    event->time_ns = event_now_ns();
    return 1 + atomic_fetch_add_explicit(&next_place, 1, memory_order_relaxed);
}

static uint64_t emit_mutex(struct vs_event *event)
{
    event->time_ns = event_now_ns();
    pthread_mutex_lock(&queue.mutex);
    uint64_t sequence = ++queue.head;
    struct vs_sequenced_event *slot = &queue.slots[sequence % queue.capacity];
    slot->sequence = sequence;
    slot->thread = shim_thread.tid;
    slot->event = *event;
    pthread_mutex_unlock(&queue.mutex);
    return sequence;
}

#ifdef VS_WITH_LTTNG
static uint64_t emit_lttng(struct vs_event *event)
{
    lttng_ust_tracepoint(vramscope_bench, event, event);
    return 1;
}
#endif

static emit_function *emit;

static uint64_t thread_cpu_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void *produce(void *context)
{
    uint64_t number = (uint64_t)(uintptr_t)context;
    thread_first_use();
    for (unsigned round = 0; round < rounds; round++) {
        pthread_barrier_wait(&barrier);
        uint64_t ran = thread_cpu_ns();
        began_ns[number] = shim_now_ns();
        for (uint64_t i = 0; i < events_each; i++) {
            struct vs_event event = {.kind = VS_KIND_ALLOC,
                                     .address = i,
                                     .size = 512,
                                     .stream = number,
                                     .free_bytes = VS_FREE_UNKNOWN};
            unrecorded[number] += emit(&event) == 0;
        }
        ended_ns[number] = shim_now_ns();
        timed_ns[number] += ended_ns[number] - began_ns[number];
        ran_ns[number] += thread_cpu_ns() - ran;
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

static void time_rounds(unsigned threads, double *ns_per_event)
{
    for (unsigned round = 0; round < rounds; round++) {
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        uint64_t began = began_ns[0];
        uint64_t ended = ended_ns[0];
        for (unsigned i = 1; i < threads; i++) {
            began = began_ns[i] < began ? began_ns[i] : began;
            ended = ended_ns[i] > ended ? ended_ns[i] : ended;
        }
        ns_per_event[round] = (double)(ended - began) / (double)(events_each * threads);
        if (emit == shim_emit) {
            atomic_store(&consumer.ring->tail, atomic_load(&consumer.ring->head));
        }
    }
}

static int choose(const char *name, uint64_t events)
{
    if (strcmp(name, "clock") == 0) {
        emit = emit_clock;
    } else if (strcmp(name, "monotonic") == 0) {
        emit = emit_monotonic;
    } else if (strcmp(name, "order") == 0) {
        emit = emit_order;
    } else if (strcmp(name, "ring") == 0) {
        emit = shim_emit;
        consumer = lab_open(events * 2 * VS_CELL_BYTES * 2); /* rounded down to a power of two */
        memset((char *)consumer.ring + VS_RING_HEADER_BYTES, 1,
               consumer.ring->cell_count * VS_CELL_BYTES);
    } else if (strcmp(name, "mutex") == 0) {
        emit = emit_mutex;
        queue.capacity = events;
        queue.slots = malloc(events * sizeof(*queue.slots));
        memset(queue.slots, 1, events * sizeof(*queue.slots));
#ifdef VS_WITH_LTTNG
    } else if (strcmp(name, "lttng") == 0) {
        emit = emit_lttng;
#endif
    } else {
        return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    static double ns_per_event[ROUNDS_MAX];
    pthread_t threads[64];
    if (argc != 5) {
        fprintf(stderr,
                "usage: ring_bench clock|monotonic|order|ring|mutex|lttng THREADS EVENTS ROUNDS\n");
        return 2;
    }
    unsigned count = (unsigned)atoi(argv[2]);
    uint64_t events = strtoull(argv[3], NULL, 10);
    rounds = (unsigned)atoi(argv[4]);
    if (count == 0 || count > 64 || rounds == 0 || rounds > ROUNDS_MAX || events < count) {
        fprintf(stderr, "ring_bench: 1 to 64 threads, 1 to %u rounds\n", ROUNDS_MAX);
        return 2;
    }
    if (choose(argv[1], events) != 0) {
        fprintf(stderr, "ring_bench: '%s' is not built in\n", argv[1]);
        return 77;
    }
    events_each = events / count;
    event_clock_start(event_clock_is_counter());
    pthread_barrier_init(&barrier, NULL, count + 1);
    for (unsigned i = 0; i < count; i++) {
        pthread_create(&threads[i], NULL, produce, (void *)(uintptr_t)i);
    }
    time_rounds(count, ns_per_event);
    uint64_t lost = 0, ran = 0, timed = 0;
    for (unsigned i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        lost += unrecorded[i];
        ran += ran_ns[i];
        timed += timed_ns[i];
    }
    qsort(ns_per_event, rounds, sizeof(ns_per_event[0]), by_value);
    printf("%.1f %.3f\n", ns_per_event[rounds / 10], (double)ran / (double)timed);
    if (lost != 0) {
        fprintf(stderr, "ring_bench: %lu events were not recorded\n", (unsigned long)lost);
        return 1;
    }
    return 0;
}
