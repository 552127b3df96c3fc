/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks at every instruction: the processor traps after each one, and the
 * handler compares. It goes through prologues and epilogues, frames without and
 * with frame pointers, realigned ones, procedure linkage entries, the dynamic
 * linker's lazy binding and the C library's own code. Then the same by a timer.
 */
#include <alloca.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "compare.h"

#define NOINLINE __attribute__((noinline))
#define STEPS_MAX 12000UL
#define TIMER_SAMPLES 300UL
#define TIMER_SECONDS 20
#define TRAP_FLAG "$0x100"

static volatile int sink;
static volatile unsigned long steps;

void set_trap_flag(void);
void clear_trap_flag(void);
__asm__(".text\n"
        ".type set_trap_flag,@function\n"
        "set_trap_flag:\n"
        ".cfi_startproc\n"
        "pushfq\n"
        ".cfi_adjust_cfa_offset 8\n"
        "orq " TRAP_FLAG ", (%rsp)\n"
        "popfq\n"
        ".cfi_adjust_cfa_offset -8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".type clear_trap_flag,@function\n"
        "clear_trap_flag:\n"
        ".cfi_startproc\n"
        "pushfq\n"
        ".cfi_adjust_cfa_offset 8\n"
        "andq $~0x100, (%rsp)\n"
        "popfq\n"
        ".cfi_adjust_cfa_offset -8\n"
        "ret\n"
        ".cfi_endproc\n");

/* ---- what is stepped through --------------------------------------------------------- */

typedef double wide __attribute__((vector_size(32)));

static NOINLINE __attribute__((target("avx"))) int realigned(int n)
{
    volatile wide local[2];
    local[1] = (wide){n, 2, 3, 4};
    char more[n + 1];
    memset(more, 1, (size_t)n + 1);
    return (int)local[1][0] + more[n];
}

static NOINLINE int leaf(int a, int b)
{
    return a * 3 + b;
}

static NOINLINE int saves_registers(int a, int b, int c, int d)
{
    int e = leaf(a, b);
    int f = leaf(c, d);
    int g = leaf(e, f) + leaf(f, e);
    return a + b + c + d + e + f + g + leaf(g, a);
}

static NOINLINE int leaves_early(int a)
{
    if (a < 0) {
        return 0;
    }
    char *buffer = alloca((size_t)a + 16);
    memset(buffer, a, (size_t)a + 16);
    return saves_registers(a, buffer[a], a + 1, 7);
}

static NOINLINE int calls_on(int a)
{
    return leaves_early(a + 1); /* with optimization: a jump */
}

static int by_value(const void *a, const void *b)
{
    return leaf(*(const int *)a, 0) - leaf(*(const int *)b, 0);
}

static NOINLINE int through_the_c_library(void)
{
    char text[64];
    int values[] = {4, 2, 9, 1};
    qsort(values, 4, sizeof(values[0]), by_value);
    snprintf(text, sizeof(text), "%d %s %5.2f", values[0], "text", 1.5);
    struct timespec now; /* through the kernel's own object, the vDSO */
    clock_gettime(CLOCK_MONOTONIC, &now);
    char *copy = strdup(text);
    int length = (int)strlen(copy);
    free(copy);
    return length + (int)(now.tv_sec & 1) + atoi(text) + (int)strtol("77", NULL, 10) +
           abs(leaf(-9, 1));
}

static NOINLINE int work(int n)
{
    int result = leaves_early(-1) + leaves_early(n & 15) + calls_on(n & 7) + realigned(n & 31);
    return result + through_the_c_library();
}

/* ---- handlers ----------------------------------------------------------------------------- */

static void on_trap(int number)
{
    (void)number;
    if (steps < STEPS_MAX) {
        steps++;
        compare_here();
    }
}

static void on_timer(int number)
{
    (void)number;
    steps++;
    compare_here();
}

static NOINLINE void step_through(void)
{
    struct sigaction action = {.sa_handler = on_trap};
    sigaction(SIGTRAP, &action, NULL);
    for (int n = 0; steps < STEPS_MAX; n++) {
        set_trap_flag();
        sink += work(n);
        clear_trap_flag();
        sink = 0;
    }
}

static NOINLINE void sample(void)
{
    struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
    struct itimerval often = {.it_interval = {.tv_usec = 1000}, .it_value = {.tv_usec = 1000}};
    struct itimerval never = {.it_value = {.tv_usec = 0}};
    time_t until = time(NULL) + TIMER_SECONDS;
    sigaction(SIGPROF, &action, NULL);
    setitimer(ITIMER_PROF, &often, NULL);
    for (int n = 0; steps < STEPS_MAX + TIMER_SAMPLES && time(NULL) < until; n++) {
        sink += work(n);
        sink = 0;
    }
    setitimer(ITIMER_PROF, &never, NULL);
}

int main(int count, char **arguments)
{
    (void)count;
    compare_begin();
    step_through();
    sample();
    if (steps < STEPS_MAX) {
        compare_fail("too few steps");
    }
    int status = compare_end(arguments[0]);
    lab_use_frame_pointers();
    steps = 0;
    step_through();
    return compare_end(arguments[0]) | status;
}
