/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shim's way of an event with its stack, as a library that a program or a
 * Python interpreter may load: its own sources over a ring in memory that
 * nobody reads. What is in here is left out of stacks, as the shim is.
 */
#ifndef VS_TESTS_BENCH_STACK_CORE_H
#define VS_TESTS_BENCH_STACK_CORE_H

/* Once, before the rest. Which interpreter there is must be known by then. */
void bench_begin(unsigned depth);
/* Which walks the next events take. `tables` 1: never by frame pointers, for good. */
void bench_want(int native, int python, int tables);
/* Nanoseconds per event: tenth percentile of `rounds` of `events`. */
double bench_round_ns(unsigned events, unsigned rounds);
/* Only this is looked at when instructions are counted. */
void bench_counted(unsigned events);
/* Stacks sent so far; 1 for one that is known, whatever walks were taken. */
unsigned long bench_stacks_sent(void);
/* enum vs_native_method */
int bench_method(void);

#endif
