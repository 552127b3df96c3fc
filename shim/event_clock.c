/* SPDX-License-Identifier: Apache-2.0 */
/* See event_clock.h. */
#include "event_clock.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>

#include "sys.h"

#define CLOCK_SOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"
#define INVARIANT_LEAF 0x80000007U
#define INVARIANT_BIT (1U << 8)
#ifndef PAIR_TICKS_MOST /* a test that stops within has more */
/* Around a read of the clock: in more than this something came between, and nothing is known. */
#define PAIR_TICKS_MOST 512U
#endif
#define BASE_LEAST_NS 10000000U  /* long enough for the rate to be exact, to 20 in a million */
#define BASE_MOST_NS 1000000000U /* short enough to follow the clock's own rate */
#define SAME_ONE_IN 1000U        /* two measurements in a row that differ by more are not trusted */
#define POSSIBLE_ONE_IN 4U       /* a kernel has its clock faster or slower by a tenth at most */

SHIM_TLS struct event_clock_thread event_clock_thread;
struct event_clock_rate event_clock_rate;

static struct {
    _Atomic bool usable;
    _Atomic uint64_t measured; /* the latest factor, trusted or not */
} event_clock;

bool event_clock_is_counter(void)
{
    char name[8] = "";
    long descriptor = sys_call4(SYS_openat, AT_FDCWD, CLOCK_SOURCE, O_RDONLY | O_CLOEXEC, 0);
    if (descriptor < 0) {
        return false;
    }
    long bytes = sys_call3(SYS_read, descriptor, name, sizeof(name));
    sys_call1(SYS_close, descriptor);
    return bytes == 4 && memcmp(name, "tsc\n", 4) == 0;
}

/* Runs at the same rate always, on all processors. */
static bool counter_is_invariant(void)
{
    unsigned a, b, c, d = 0;
    return __get_cpuid(INVARIANT_LEAF, &a, &b, &c, &d) != 0 && (d & INVARIANT_BIT) != 0;
}

/* A debugger that replays, or the program itself, may have the instruction trap. */
static bool counter_may_be_read(void)
{
    int how = 0;
    return sys_call2(SYS_prctl, PR_GET_TSC, &how) == 0 && how == PR_TSC_ENABLE;
}

void event_clock_start(bool counter)
{
    atomic_store(&event_clock.usable, counter && counter_is_invariant() && counter_may_be_read());
    if (!atomic_load(&event_clock.usable)) {
        atomic_store(&event_clock_rate.reach, 0);
    }
}

static void store(struct event_clock_pair *pair, uint64_t ticks, uint64_t ns)
{
    typedef long long two_words __attribute__((vector_size(16)));
    two_words both = {(long long)ticks, (long long)ns};
    __asm__ volatile("movdqa %1, %0" : "=m"(*pair) : "x"(both));
}

static bool near(uint64_t a, uint64_t b, uint64_t one_in)
{
    return (a > b ? a - b : b - a) <= b / one_in;
}

/* Two in a row that agree: else the clock's rate is being changed, or the counter was set. */
static void take_factor(uint64_t factor)
{
    uint64_t before = atomic_exchange(&event_clock.measured, factor);
    uint64_t trusted = atomic_load(&event_clock_rate.factor);
    if (!near(factor, before, SAME_ONE_IN) ||
        (trusted != 0 && !near(factor, trusted, POSSIBLE_ONE_IN))) {
        atomic_store(&event_clock_rate.reach, 0);
        return;
    }
    atomic_store(&event_clock_rate.factor, factor);
    /* Release: the factor comes before it. */
    atomic_store_explicit(&event_clock_rate.reach, ((uint64_t)EVENT_CLOCK_REACH_NS << 32) / factor,
                          memory_order_release);
}

static void measure_rate(uint64_t ticks, uint64_t ns)
{
    struct event_clock_pair base = event_clock_load(&event_clock_thread.base);
    bool is_base = base.ns != 0 && ticks > base.ticks && ns - base.ns <= BASE_MOST_NS;
    if (is_base && ns - base.ns < BASE_LEAST_NS) {
        return;
    }
    store(&event_clock_thread.base, ticks, ns);
    if (is_base) {
        take_factor(((ns - base.ns) << 32) / (ticks - base.ticks));
    }
}

/* Once what came before is done: the clock's read, here. */
static uint64_t counter_after(void)
{
    __builtin_ia32_lfence();
    return __builtin_ia32_rdtsc();
}

uint64_t event_clock_read(uint64_t before)
{
    uint64_t latest = event_clock_latest();
    if (!atomic_load_explicit(&event_clock.usable, memory_order_relaxed)) {
        return event_clock_give(shim_now_ns(), latest);
    }
    before = before != 0 ? before : __builtin_ia32_rdtsc();
    uint64_t ns = shim_now_ns();
    uint64_t took = counter_after() - before;
    if (took <= PAIR_TICKS_MOST) {
        measure_rate(before + took / 2, ns);
        store(&event_clock_thread.anchor, before + took / 2, ns);
    }
    return event_clock_give(ns, latest);
}

#else

bool event_clock_is_counter(void)
{
    return false;
}

void event_clock_start(bool counter)
{
    (void)counter;
}

#endif
