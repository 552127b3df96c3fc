/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nanoseconds for one native stack, warm: the best of many short runs.
 *
 *   bench_unwind [RUNS]
 *
 * Ours by unwind tables and by frame pointers (bench_unwind_fp: in the plain one the
 * program has none, and a walk by them goes by tables all the way), libunwind's
 * cached unw_backtrace(), and the C library's backtrace(). The depth is the number
 * of frames reported.
 */
#define UNW_LOCAL_ONLY
#include <dlfcn.h>
#include <libunwind.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lab.h"

#define DEPTH_MAX 256
#define CALLS 200
#define WARM_UP 1000
#define NOINLINE __attribute__((noinline))

static int (*c_backtrace)(void **, int);
static void *addresses[DEPTH_MAX];
static uint64_t words[DEPTH_MAX];
static int runs = 300;
static int frames;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

static NOINLINE int ours(void)
{
    enum vs_stack_note note;
    return (int)lab_unwind(words, DEPTH_MAX, &note);
}

static NOINLINE int libunwind(void)
{
    return unw_backtrace(addresses, DEPTH_MAX);
}

static NOINLINE int libgcc(void)
{
    return c_backtrace(addresses, DEPTH_MAX);
}

static double time_of(int (*take)(void))
{
    double best = 1e9;
    for (int i = 0; i < WARM_UP; i++) {
        frames = take();
    }
    for (int run = 0; run < runs; run++) {
        uint64_t before = now_ns();
        for (int i = 0; i < CALLS; i++) {
            (void)take();
        }
        double taken = (double)(now_ns() - before) / CALLS;
        best = taken < best ? taken : best;
    }
    return best;
}

static NOINLINE int measure(void)
{
    static const char *const methods[] = {"off", "tables", "frame pointers"};
    enum vs_stack_note note;
    (void)lab_unwind_by_tables(words, DEPTH_MAX, &note); /* proves it for frame pointers */
    double chosen = time_of(ours);
    int depth = frames;
    printf("%6d  ours (%s) %.1f", depth, methods[lab_method()], chosen);
    double cached = time_of(libunwind);
    printf("  unw_backtrace %.1f", cached);
    runs /= 10;
    printf("  backtrace %.1f\n", time_of(libgcc));
    runs *= 10;
    return depth;
}

/* Functions with frames of various sizes, each called from one place and all of them different. */
#define LINK(n, next)                                    \
    static NOINLINE int link_##n(int depth)              \
    {                                                    \
        volatile char local[8 * ((n) % 13) + 8];         \
        local[0] = (char)depth;                          \
        if (depth == 0) {                                \
            return measure();                            \
        }                                                \
        return link_##next(depth - 1) + (local[0] == 1); \
    }

static int link_0(int depth);
LINK(28, 0)
LINK(27, 28)
LINK(26, 27)
LINK(25, 26)
LINK(24, 25)
LINK(23, 24)
LINK(22, 23)
LINK(21, 22)
LINK(20, 21)
LINK(19, 20)
LINK(18, 19)
LINK(17, 18)
LINK(16, 17)
LINK(15, 16)
LINK(14, 15)
LINK(13, 14)
LINK(12, 13)
LINK(11, 12)
LINK(10, 11)
LINK(9, 10)
LINK(8, 9)
LINK(7, 8)
LINK(6, 7)
LINK(5, 6)
LINK(4, 5)
LINK(3, 4)
LINK(2, 3)
LINK(1, 2)
LINK(0, 1)

#define OTHER_FRAMES                                                             \
    7 /* beside the links: take, time_of, measure, main, the C library's, _start \
       */

int main(int count, char **arguments)
{
    static const int depths[] = {12, 20, 32};
    *(void **)&c_backtrace = dlsym(dlopen("libc.so.6", RTLD_LAZY), "backtrace");
    runs = count > 1 ? atoi(arguments[1]) : runs;
    runs = runs < 10 ? 10 : runs;
    lab_refresh();
    for (int way = 0; way < 2; way++) {
        if (way == 0) {
            lab_use_tables();
        } else {
            lab_use_frame_pointers();
        }
        for (unsigned i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
            link_0(depths[i] - OTHER_FRAMES);
        }
    }
    return 0;
}
