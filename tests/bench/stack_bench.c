/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events at the end of a chain of calls, 20 frames deep in all.
 *
 *   stack_bench time EVENTS ROUNDS     ns per event without and with its native stack, in turns
 *   stack_bench heap EVENTS ROUNDS     the same chain, malloc and free: ns per call of either
 *   stack_bench count none|native EVENTS     for callgrind: only bench_counted is looked at
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "stack_core.h"

#define LEVELS 15U /* main and three of the C library below, the caller of the event above */
#define TURNS 15U
#define WARM 2000U

static unsigned events, rounds;
static const char *what;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static void time_events(void)
{
    double none = 1e9;
    double native = 1e9;
    for (unsigned turn = 0; turn < TURNS; turn++) {
        bench_want(0, 0, 0);
        double ns = bench_round_ns(events, rounds);
        none = ns < none ? ns : none;
        bench_want(1, 0, 0);
        ns = bench_round_ns(events, rounds);
        native = ns < native ? ns : native;
    }
    printf("none %.1f\nnative %.1f\nstacks %lu\nmethod %d\n", none, native, bench_stacks_sent(),
           bench_method());
}

static void time_heap(void)
{
    double best = 1e9;
    for (unsigned round = 0; round < rounds; round++) {
        uint64_t began_ns = now_ns();
        for (unsigned i = 0; i < events / 2; i++) {
            void *volatile block = malloc(512);
            free(block);
        }
        double ns = (double)(now_ns() - began_ns) / (events & ~1U);
        best = ns < best ? ns : best;
    }
    printf("heap %.1f\n", best);
}

static void count_events(void)
{
    bench_want(strcmp(what, "native") == 0, 0, 1);
    bench_round_ns(WARM, 1);
    bench_counted(events);
}

static __attribute__((noinline)) unsigned climb(unsigned level, void (*at_the_end)(void))
{
    unsigned result = 0;
    if (level == 0) {
        at_the_end();
    } else {
        result = climb(level - 1, at_the_end) + 1;
    }
    __asm__ volatile("" : "+r"(result)); /* no tail call */
    return result;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: stack_bench time|heap EVENTS ROUNDS | count none|native EVENTS\n");
        return 2;
    }
    what = argv[2];
    int counts = strcmp(argv[1], "count") == 0;
    events = (unsigned)atoi(argv[counts ? 3 : 2]);
    rounds = counts ? 1 : (unsigned)atoi(argv[3]);
    if (strcmp(argv[1], "heap") == 0) {
        climb(LEVELS, time_heap);
        return 0;
    }
    bench_begin(64);
    climb(LEVELS, counts ? count_events : time_events);
    return 0;
}
