/* SPDX-License-Identifier: Apache-2.0 */
/* See stack_core.h. */
#include "stack_core.h"

#include <stdlib.h>
#include <string.h>

#ifdef VS_WITH_CALLGRIND
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_TOGGLE_COLLECT ((void)0)
#define RUNNING_ON_VALGRIND 0
#endif

#define LAB_HAS_STACKS
#include "../../shim/event_clock.h"
#include "../unit/ring_lab.h"

#define RING_BYTES (16U << 20)
#define ROUNDS_MAX 1000U

static struct consumer consumer;

void shim_log(int level, const char *format, ...)
{
    (void)level, (void)format;
}

SHIM_EXPORT void bench_begin(unsigned depth)
{
    shim_config.want_native = true;
    shim_config.want_python = true;
    shim_config.depth = depth;
    /* Valgrind has no vDSO, and reads of the clock there are too long for an anchor. */
    event_clock_start(RUNNING_ON_VALGRIND == 0 && event_clock_is_counter());
    consumer = lab_open(RING_BYTES);
    memset((char *)consumer.ring + VS_RING_HEADER_BYTES, 1,
           consumer.ring->cell_count * VS_CELL_BYTES);
    modules_refresh();
    stacks_prepare();
    stacks_begin();
    thread_first_use();
}

SHIM_EXPORT void bench_want(int native, int python, int tables)
{
    shim_config.want_native = native != 0;
    shim_config.want_python = python != 0;
    if (tables != 0) {
        unwind_proved_wrong();
    }
}

static void emit(unsigned events)
{
    for (unsigned i = 0; i < events; i++) {
        struct vs_event event = {
            .kind = VS_KIND_ALLOC, .address = i, .size = 512, .free_bytes = VS_FREE_UNKNOWN};
        shim_emit(&event);
    }
    atomic_store(&consumer.ring->tail, atomic_load(&consumer.ring->head));
}

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

SHIM_EXPORT double bench_round_ns(unsigned events, unsigned rounds)
{
    double ns[ROUNDS_MAX];
    rounds = rounds < ROUNDS_MAX ? rounds : ROUNDS_MAX;
    for (unsigned round = 0; round < rounds; round++) {
        uint64_t began_ns = shim_now_ns();
        emit(events);
        ns[round] = (double)(shim_now_ns() - began_ns) / events;
    }
    qsort(ns, rounds, sizeof(ns[0]), by_value);
    return ns[rounds / 10];
}

SHIM_EXPORT void bench_counted(unsigned events)
{
    CALLGRIND_TOGGLE_COLLECT;
    emit(events);
    CALLGRIND_TOGGLE_COLLECT;
}

SHIM_EXPORT unsigned long bench_stacks_sent(void)
{
    return consumer.ring->stacks_sent;
}

SHIM_EXPORT int bench_method(void)
{
    return (int)unwind_method();
}
