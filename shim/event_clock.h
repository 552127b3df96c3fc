/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time of events: CLOCK_MONOTONIC in nanoseconds, for less than the kernel's
 * own reading takes. Where that is made from the processor's time-stamp counter, it
 * is read now and then, and what the counter went since is added, for 20 us at most.
 * So a time is never ahead of the clock, and behind it by less than ANCHOR_LAG says
 * and 14 ns; elsewhere it is the clock's.
 *
 * Async-signal-safe, no lock, no system call: who finds the anchor being moved reads
 * the clock. Two times of one thread may be out of order by as much as they lag.
 */
#ifndef VS_SHIM_EVENT_CLOCK_H
#define VS_SHIM_EVENT_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Asks the kernel which clock it uses. Before the first event that is recorded, once. */
void event_clock_start(void);

/* The clock itself, and a new anchor if it is time for one. */
uint64_t event_clock_read(void);

/* The later time less the earlier one; 0 when they are out of order. */
static inline uint64_t event_ns_between(uint64_t earlier, uint64_t later)
{
    return later > earlier ? later - earlier : 0;
}

#if defined(__x86_64__)

struct event_clock {
    _Atomic uint32_t turn;   /* odd: the anchor is being moved */
    _Atomic uint32_t owner;  /* who moves it: its process's generation + 1; 0 nobody */
    _Atomic uint64_t ticks;  /* the anchor: the counter, */
    _Atomic uint64_t ns;     /* and the time it stands for */
    _Atomic uint64_t factor; /* ns per tick, << 32 */
    _Atomic uint64_t reach;  /* ticks from the anchor on for which it serves; 0: it does not */
};
extern struct event_clock event_clock;

static inline uint64_t event_clock_ticks(void)
{
    return __builtin_ia32_rdtsc();
}

static inline uint64_t event_now_ns(void)
{
    /* Acquire, and the fence: what lies between the two looks at `turn` belongs together. */
    uint32_t turn = atomic_load_explicit(&event_clock.turn, memory_order_acquire);
    uint64_t ticks = atomic_load_explicit(&event_clock.ticks, memory_order_relaxed);
    uint64_t ns = atomic_load_explicit(&event_clock.ns, memory_order_relaxed);
    uint64_t factor = atomic_load_explicit(&event_clock.factor, memory_order_relaxed);
    uint64_t reach = atomic_load_explicit(&event_clock.reach, memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    uint64_t since = event_clock_ticks() - ticks;
    if (__builtin_expect(since >= reach || (turn & 1U) != 0 ||
                             atomic_load_explicit(&event_clock.turn, memory_order_relaxed) != turn,
                         0)) {
        return event_clock_read();
    }
    return ns + (since * factor >> 32);
}

#else

static inline uint64_t event_now_ns(void)
{
    return event_clock_read();
}

#endif

#endif
