/* SPDX-License-Identifier: Apache-2.0 */
/* See event_clock.h. */
#include "event_clock.h"

#include <fcntl.h>
#include <string.h>

#include "shim.h"
#include "sys.h"

#if defined(__x86_64__)

#define CLOCK_SOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"
#define REACH_NS 20000U
/* Between the counter's readings around the clock's: more, and something came between them. */
#define ANCHOR_LAG 1024U
/* A base for the factor: long enough to be exact, short enough to follow the clock's own rate. */
#define BASE_LEAST_NS 10000000U
#define BASE_MOST_NS 1000000000U
/* The kernel slows the clock down by 500 ppm at most: the factor is made smaller by more. */
#define SLOWER_ONE_IN 1500U
#define STRANGE_ONE_IN 500U /* two factors differ by more: the counter was set anew between them */

struct event_clock event_clock;

/* Touched by who moves the anchor only. */
static struct {
    bool usable; /* the kernel takes its time from the counter */
    uint64_t ticks, ns;
} base;

void event_clock_start(void)
{
    char name[8] = "";
    long descriptor = sys_call3(SYS_open, CLOCK_SOURCE, O_RDONLY | O_CLOEXEC, 0);
    if (descriptor < 0) {
        return;
    }
    long bytes = sys_call3(SYS_read, descriptor, name, sizeof(name));
    sys_call1(SYS_close, descriptor);
    base.usable = bytes == 4 && memcmp(name, "tsc\n", 4) == 0;
}

static bool differ(uint64_t a, uint64_t b)
{
    return (a > b ? a - b : b - a) > b / STRANGE_ONE_IN;
}

/* What a tick takes, from the base's time to this one. */
static void measure_rate(uint64_t ticks, uint64_t ns)
{
    uint64_t took = ns - base.ns;
    if (base.ns != 0 && took < BASE_LEAST_NS) {
        return;
    }
    uint64_t known = atomic_load_explicit(&event_clock.factor, memory_order_relaxed);
    if (base.ns != 0 && took < 2 * BASE_MOST_NS && ticks > base.ticks) {
        uint64_t factor = (took << 32) / (ticks - base.ticks);
        factor -= factor / SLOWER_ONE_IN;
        known = known != 0 && differ(factor, known) ? 0 : factor;
    }
    atomic_store_explicit(&event_clock.factor, known, memory_order_relaxed);
    atomic_store_explicit(&event_clock.reach, known == 0 ? 0 : ((uint64_t)REACH_NS << 32) / known,
                          memory_order_relaxed);
    if (known == 0 || took >= BASE_MOST_NS) {
        base.ticks = ticks;
        base.ns = ns;
    }
}

static void move_anchor(uint64_t ticks, uint64_t ns)
{
    uint32_t turn = atomic_load_explicit(&event_clock.turn, memory_order_relaxed) | 1U;
    atomic_store_explicit(&event_clock.turn, turn, memory_order_relaxed);
    /* Release: who sees what comes sees that it is being moved. */
    atomic_thread_fence(memory_order_release);
    measure_rate(ticks, ns);
    atomic_store_explicit(&event_clock.ticks, ticks, memory_order_relaxed);
    atomic_store_explicit(&event_clock.ns, ns, memory_order_relaxed);
    atomic_store_explicit(&event_clock.turn, turn + 1, memory_order_release);
}

uint64_t event_clock_read(void)
{
    uint32_t owner = atomic_load_explicit(&event_clock.owner, memory_order_relaxed);
    uint32_t mine = shim_generation() + 1;
    /* One that moved it as the process was forked does not come back in this one. */
    if (!base.usable || owner == mine ||
        !atomic_compare_exchange_strong_explicit(&event_clock.owner, &owner, mine,
                                                 memory_order_acquire, memory_order_relaxed)) {
        return shim_now_ns();
    }
    unsigned processor;
    uint64_t before = __builtin_ia32_rdtscp(&processor);
    uint64_t ns = shim_now_ns();
    /* Behind the clock's own reading: times are late rather than ahead. */
    uint64_t ticks = __builtin_ia32_rdtscp(&processor);
    if (ticks - before < ANCHOR_LAG) {
        move_anchor(ticks, ns);
    }
    atomic_store_explicit(&event_clock.owner, 0, memory_order_release);
    return ns;
}

#else

void event_clock_start(void) {}

uint64_t event_clock_read(void)
{
    return shim_now_ns();
}

#endif
