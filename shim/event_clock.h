/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time of events: CLOCK_MONOTONIC in nanoseconds, for less than a read of it
 * takes. Where the kernel makes that clock from the processor's time-stamp counter,
 * a thread reads it once in EVENT_CLOCK_REACH_NS and adds what the counter went since;
 * elsewhere every read is the clock's.
 *
 * A time differs from the clock by EVENT_CLOCK_ERROR_NS at most: half of what reading
 * the pair took, and what the clock's rate changed by since it was measured (1 in 1,000
 * is noticed at the next measurement, 10 ms later; NTP's slewing is half of that). Times
 * of one thread, its signal handlers' among them, never go back.
 *
 * No system call, no lock; async-signal-safe. What a thread keeps is read and written by
 * single instructions, so that a handler finds no half of it, and one that jumps away
 * leaves none.
 */
#ifndef VS_SHIM_EVENT_CLOCK_H
#define VS_SHIM_EVENT_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim.h"

#ifndef EVENT_CLOCK_REACH_NS /* a test that stops within has more */
#define EVENT_CLOCK_REACH_NS 100000U
#endif
#define EVENT_CLOCK_ERROR_NS 250U

/*
 * True when the kernel takes its time from the counter. System calls without errno only, and a
 * descriptor for their duration: for the clone that starts the collector, which has its own.
 */
bool event_clock_is_counter(void);
/* Before a process's first recorded event. `counter`: what the function above said. */
void event_clock_start(bool counter);

/* The later time less the earlier one, of two threads or two clocks; 0 when they are out of order.
 */
static inline uint64_t event_ns_between(uint64_t earlier, uint64_t later)
{
    return later > earlier ? later - earlier : 0;
}

#if defined(__x86_64__)

/* A moment by the counter and by the clock. Aligned, so that it is moved as a whole. */
struct event_clock_pair {
    _Alignas(16) uint64_t ticks;
    uint64_t ns;
};

struct event_clock_thread {
    struct event_clock_pair anchor; /* what times are counted from */
    struct event_clock_pair base;   /* what the rate is measured from; ns 0: none yet */
    uint64_t latest_ns;             /* that was given out */
};
extern SHIM_TLS struct event_clock_thread event_clock_thread;

/* Of all threads: single words that each may be a measurement old. */
struct event_clock_rate {
    _Atomic uint64_t reach;  /* ticks for which an anchor serves; 0: none does */
    _Atomic uint64_t factor; /* ns per tick, << 32 */
};
extern struct event_clock_rate event_clock_rate;

/* The clock's own time; makes it the thread's anchor. `before`: the counter, just now. */
uint64_t event_clock_read(uint64_t before);

static inline struct event_clock_pair event_clock_load(const struct event_clock_pair *pair)
{
    struct event_clock_pair found;
    typedef long long two_words __attribute__((vector_size(16)));
    two_words both;
    __asm__ volatile("movdqa %1, %0" : "=x"(both) : "m"(*pair));
    found.ticks = (uint64_t)both[0];
    found.ns = (uint64_t)both[1];
    return found;
}

/* A clock that went back by more was set (a restored checkpoint): time follows it. */
#define EVENT_CLOCK_HELD_NS 1000000U

/* The latest time that this thread was given, its handlers' among them: asked for first. */
static inline uint64_t event_clock_latest(void)
{
    return *(const volatile uint64_t *)&event_clock_thread.latest_ns;
}

/* Gives out `ns`, or the latest time where that is a little later. */
static inline uint64_t event_clock_give(uint64_t ns, uint64_t latest)
{
    if (__builtin_expect(latest - ns < EVENT_CLOCK_HELD_NS, 0)) {
        return latest;
    }
    /* Not if a handler was given a later one since: this one was asked for before it. */
    __asm__ volatile("cmpxchgq %2, %0"
                     : "+m"(event_clock_thread.latest_ns), "+a"(latest)
                     : "r"(ns)
                     : "cc");
    return ns;
}

static inline uint64_t event_now_ns(void)
{
    uint64_t latest = event_clock_latest();
    /* Acquire: with it comes a factor. */
    uint64_t reach = atomic_load_explicit(&event_clock_rate.reach, memory_order_acquire);
    uint64_t factor = atomic_load_explicit(&event_clock_rate.factor, memory_order_relaxed);
    struct event_clock_pair anchor = event_clock_load(&event_clock_thread.anchor);
    uint64_t now = reach != 0 ? __builtin_ia32_rdtsc() : 0;
    if (__builtin_expect(now - anchor.ticks >= reach, 0)) {
        return event_clock_read(now);
    }
    return event_clock_give(anchor.ns + ((now - anchor.ticks) * factor >> 32), latest);
}

#else

static inline uint64_t event_now_ns(void)
{
    return shim_now_ns();
}

#endif

#endif
