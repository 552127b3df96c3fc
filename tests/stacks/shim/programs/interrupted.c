/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocations through stacks of many shapes while signals arrive at any moment
 * of a capture, and what the handler does:
 *
 *   interrupted nested SECONDS    allocates through a stack of its own
 *   interrupted jump SECONDS      jumps out, of a hook as often as not
 *   interrupted end SECONDS       ends the thread it interrupted
 *   interrupted fork SECONDS      forks by a raw system call; the child leaves at once
 *
 * Prints how many signals came and how many rounds were done.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "../../../lifecycle/driver.h"

enum { LEVELS = 12 };

static struct driver driver;
static void *context;
static _Atomic uint64_t signals, rounds, children;
static _Thread_local sigjmp_buf out;
static _Thread_local volatile int may_jump;

static __attribute__((noinline)) uint64_t climb(uint64_t number, unsigned level)
{
    uint64_t below;
    if (level == LEVELS) {
        uint64_t address = 0;
        if (driver.alloc(&address, 4096) == 0) {
            driver.release(address);
        }
        return address;
    }
    if ((number >> level & 1U) != 0) {
        below = climb(number, level + 1) + 1;
        __asm__ volatile("" : "+r"(below));
    } else {
        below = climb(number, level + 1) + 2;
        __asm__ volatile("" : "+r"(below));
    }
    return below;
}

static void (*mark_step)(uint64_t number);

/* The simulated driver has locks of its own: what a handler does must not need them. */
static __attribute__((noinline)) void from_handler(uint64_t number)
{
    mark_step(number);
    __asm__ volatile("" : : : "memory");
}

static void on_signal(int number)
{
    (void)number;
    from_handler(atomic_fetch_add(&signals, 1));
    __asm__ volatile("" : : : "memory"); /* no tail call */
}

static void on_signal_jump(int number)
{
    atomic_fetch_add(&signals, 1);
    (void)number;
    if (may_jump) {
        siglongjmp(out, 1);
    }
}

static void on_signal_end(int number)
{
    (void)number;
    if (may_jump) {
        atomic_fetch_add(&signals, 1);
        syscall(SYS_exit, 0);
    }
}

static void on_signal_fork(int number)
{
    (void)number;
    atomic_fetch_add(&signals, 1);
    long child = syscall(SYS_fork);
    if (child == 0) {
        syscall(SYS_exit_group, 0);
    }
    children += child > 0;
}

static void every(unsigned us)
{
    struct itimerval timer = {.it_interval = {.tv_usec = us}, .it_value = {.tv_usec = us}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void handle(void (*handler)(int))
{
    struct sigaction action = {.sa_flags = SA_RESTART};
    action.sa_handler = handler;
    sigaction(SIGALRM, &action, NULL);
}

static void loop(uint64_t until_ns)
{
    for (uint64_t number = 0; monotonic_ns() < until_ns; number++) {
        climb(number * 0x9e3779b97f4a7c15ULL >> 40, 0);
        atomic_fetch_add(&rounds, 1);
    }
}

/* Marks only: a jump out of the simulated driver would leave its locks taken. */
static __attribute__((noinline)) uint64_t climb_to_mark(uint64_t number, unsigned level)
{
    uint64_t below;
    if (level == LEVELS) {
        may_jump = 1;
        mark_step(number);
        may_jump = 0;
        return number;
    }
    if ((number >> level & 1U) != 0) {
        below = climb_to_mark(number, level + 1) + 1;
        __asm__ volatile("" : "+r"(below));
    } else {
        below = climb_to_mark(number, level + 1) + 2;
        __asm__ volatile("" : "+r"(below));
    }
    return below;
}

static void loop_with_marks(uint64_t until_ns)
{
    volatile uint64_t number = 0;
    while (monotonic_ns() < until_ns) {
        if (sigsetjmp(out, 1) == 0) {
            climb_to_mark(number * 0x9e3779b97f4a7c15ULL >> 40, 0);
        }
        may_jump = 0;
        number++;
        atomic_fetch_add(&rounds, 1);
    }
}

static _Atomic uint64_t threads_until_ns;

static void *thread_with_marks(void *unused)
{
    sigset_t set;
    (void)unused;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    loop_with_marks(threads_until_ns);
    return NULL;
}

/* The main thread keeps out of the signals' way and replaces the threads that ended. */
static void loop_of_threads(uint64_t until_ns)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    threads_until_ns = until_ns;
    while (monotonic_ns() < until_ns) {
        pthread_t threads[2];
        for (int i = 0; i < 2; i++) {
            pthread_create(&threads[i], NULL, thread_with_marks, NULL);
        }
        for (int i = 0; i < 2; i++) {
            pthread_join(threads[i], NULL);
        }
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "nested";
    uint64_t seconds = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    driver = driver_open();
    context = driver_start(&driver);
    *(void **)&mark_step = driver_need(RTLD_DEFAULT, "vramscope_step");
    uint64_t until_ns = monotonic_ns() + seconds * 1000000000U;
    if (strcmp(what, "nested") == 0) {
        handle(on_signal);
        every(50);
        loop(until_ns);
    } else if (strcmp(what, "jump") == 0) {
        handle(on_signal_jump);
        every(50);
        loop_with_marks(until_ns);
    } else if (strcmp(what, "end") == 0) {
        handle(on_signal_end);
        every(500);
        loop_of_threads(until_ns);
    } else {
        handle(on_signal_fork);
        every(2000);
        loop(until_ns);
    }
    every(0);
    while (children > 0 && wait(NULL) > 0) {
    }
    signal(SIGALRM, SIG_IGN);
    for (uint64_t i = 0; i < 10; i++) {
        climb(i, 0);
    }
    printf("signals %lu\nrounds %lu\n", (unsigned long)signals, (unsigned long)rounds);
    return 0;
}
