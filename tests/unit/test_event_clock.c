/* SPDX-License-Identifier: Apache-2.0 */
/* Times of events against the clock that they stand for, read before and after each. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../shim/event_clock.h"

#define MS 1000000ULL
#define HOUR (3600000 * MS)

/* ---- the clock beneath: the real one, or one that a test runs otherwise ---------- */

static _Thread_local uint64_t clock_reads;
static struct {
    uint64_t since_ns; /* of the real clock: from here on it runs at another rate */
    int64_t change;    /* parts in a thousand */
    int64_t set_by_ns;
} changed;

static uint64_t real_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static uint64_t clock_ns(void)
{
    uint64_t ns = real_ns();
    int64_t since = (int64_t)(ns - changed.since_ns);
    return (uint64_t)((int64_t)ns + changed.set_by_ns +
                      (changed.change == 0 ? 0 : since * changed.change / 1000));
}

uint64_t shim_now_ns(void)
{
    clock_reads++;
    return clock_ns();
}

/* ---- how far a time is from it ------------------------------------------------------ */

struct seen {
    uint64_t reads;
    uint64_t worst_ns; /* outside of the two reads of the clock around it */
    uint64_t back_ns;  /* the most that a time lies before the one before */
    uint64_t latest_ns;
};

static void read_once(struct seen *seen)
{
    uint64_t before = clock_ns();
    uint64_t ns = event_now_ns();
    uint64_t after = clock_ns();
    uint64_t off = event_ns_between(ns, before) + event_ns_between(after, ns);
    uint64_t back = event_ns_between(ns, seen->latest_ns);
    seen->worst_ns = off > seen->worst_ns ? off : seen->worst_ns;
    seen->back_ns = back > seen->back_ns ? back : seen->back_ns;
    seen->latest_ns = ns;
    seen->reads++;
}

static struct seen read_for(uint64_t ns)
{
    struct seen seen = {0};
    uint64_t until = real_ns() + ns;
    while (real_ns() < until) {
        read_once(&seen);
    }
    return seen;
}

/* True when this machine's clock is made from the counter: then the rate is known after it. */
static bool start(void)
{
    bool counter = event_clock_is_counter();
    event_clock_start(counter);
    read_for(40 * MS);
    return counter;
}

/* Reads of the clock beneath in 100,000 of events. */
static uint64_t clock_reads_needed(void)
{
    uint64_t before = clock_reads;
    for (int i = 0; i < 100000; i++) {
        event_now_ns();
    }
    return clock_reads - before;
}

/* ---- the bound -------------------------------------------------------------------------- */

static void *read_millions(void *context)
{
    struct seen *seen = context;
    while (seen->reads < 3000000) {
        read_once(seen);
    }
    return NULL;
}

Test(event_clock, times_of_two_threads_are_the_clocks, .timeout = 60)
{
    pthread_t threads[2];
    struct seen seen[2] = {{0}};
    start();
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, read_millions, &seen[i]);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        cr_assert_leq(seen[i].worst_ns, EVENT_CLOCK_ERROR_NS, "%lu ns off",
                      (unsigned long)seen[i].worst_ns);
        cr_assert_eq(seen[i].back_ns, 0, "back by %lu ns", (unsigned long)seen[i].back_ns);
    }
}

Test(event_clock, seldom_reads_the_clock_where_the_counter_serves, .timeout = 60)
{
    if (!start()) {
        return;
    }
    uint64_t fewest = UINT64_MAX;
    for (int i = 0; i < 20; i++) {
        uint64_t reads = clock_reads_needed();
        fewest = reads < fewest ? reads : fewest;
    }
    cr_assert_lt(fewest, 1000, "%lu of 100,000", (unsigned long)fewest);
}

Test(event_clock, elsewhere_every_time_is_a_read_of_the_clock)
{
    cr_assert_gt(clock_reads_needed(), 99999);
    event_clock_start(false);
    cr_assert_eq(clock_reads_needed(), 100000);
    start();
    event_clock_start(false);
    cr_assert_eq(clock_reads_needed(), 100000);
}

/* ---- a clock that is tampered with ------------------------------------------------------- */

static void run_at(int64_t change)
{
    uint64_t now = real_ns();
    changed.set_by_ns += (int64_t)(now - changed.since_ns) * changed.change / 1000;
    changed.since_ns = now;
    changed.change = change;
}

/* `by`: how much that changes the rate, in a thousand of the slower one. */
static void check_follows(int64_t change, uint64_t by)
{
    run_at(change);
    struct seen at_once = read_for(30 * MS);
    cr_assert_leq(at_once.worst_ns, EVENT_CLOCK_REACH_NS * by / 1000 + EVENT_CLOCK_ERROR_NS,
                  "%lu ns off after %ld in 1,000", (unsigned long)at_once.worst_ns, (long)change);
    cr_assert_eq(at_once.back_ns, 0);
    read_for(30 * MS);
    struct seen later = read_for(50 * MS);
    cr_assert_leq(later.worst_ns, EVENT_CLOCK_ERROR_NS, "%lu ns off later",
                  (unsigned long)later.worst_ns);
}

Test(event_clock, a_clock_that_runs_faster_or_slower_is_followed)
{
    bool counter = start();
    check_follows(-100, 112);
    check_follows(50, 167);
    check_follows(-100, 167);
    check_follows(100, 223);
    if (counter) {
        cr_assert_lt(clock_reads_needed(), 50000, "given up");
    }
}

Test(event_clock, a_clock_that_is_set_is_followed)
{
    static const int64_t set_by[] = {(int64_t)HOUR, -(int64_t)HOUR, 20 * (int64_t)MS,
                                     -20 * (int64_t)MS};
    start();
    for (unsigned i = 0; i < sizeof(set_by) / sizeof(set_by[0]); i++) {
        changed.set_by_ns += set_by[i];
        read_for(1 * MS);
        struct seen seen = read_for(30 * MS);
        cr_assert_leq(seen.worst_ns, EVENT_CLOCK_ERROR_NS, "%lu ns off after %ld ms",
                      (unsigned long)seen.worst_ns, (long)(set_by[i] / (int64_t)MS));
    }
}

/* ---- signals and forks ---------------------------------------------------------------------- */

static struct {
    volatile uint64_t times;
    struct seen seen;
} handled;

static void read_once_more(int number)
{
    (void)number;
    read_once(&handled.seen);
    handled.times++;
}

static _Atomic bool interrupted_enough;

static void *interrupt(void *context)
{
    pthread_t *victim = context;
    struct timespec pause = {0, 20000};
    while (!interrupted_enough) {
        pthread_kill(*victim, SIGUSR1);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

/* test_event_clock_steps.c has every place in which a handler can come. */
Test(event_clock, a_handler_and_what_it_interrupts_have_one_clock, .timeout = 60)
{
    pthread_t self = pthread_self();
    pthread_t other;
    struct sigaction action = {.sa_handler = read_once_more};
    struct seen seen = {0};
    start();
    sigaction(SIGUSR1, &action, NULL);
    pthread_create(&other, NULL, interrupt, &self);
    while (handled.times < 10000) {
        uint64_t handlers = handled.seen.latest_ns;
        read_once(&seen);
        cr_assert_geq(seen.latest_ns, handlers);
    }
    interrupted_enough = true;
    pthread_join(other, NULL);
    cr_assert_leq(seen.worst_ns, EVENT_CLOCK_ERROR_NS, "%lu ns off", (unsigned long)seen.worst_ns);
    cr_assert_leq(handled.seen.worst_ns, EVENT_CLOCK_ERROR_NS, "%lu ns off in the handler",
                  (unsigned long)handled.seen.worst_ns);
    cr_assert_eq(seen.back_ns + handled.seen.back_ns, 0);
}

Test(event_clock, a_fork_has_its_parents_clock)
{
    start();
    pid_t child = fork();
    if (child == 0) {
        struct seen seen = read_for(30 * MS);
        _exit(seen.worst_ns <= EVENT_CLOCK_ERROR_NS && seen.back_ns == 0 ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    cr_assert_eq(status, 0);
}
