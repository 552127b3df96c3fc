/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A signal handler that reads the clock of events behind every single instruction of a read of it:
 * the processor's trap flag stops there. Stepping makes a pair's two readings lie apart, so a time
 * may be off by what a read takes then; half a pair is off by how old the anchor was.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <time.h>

#define PAIR_TICKS_MOST (1U << 21)
#define EVENT_CLOCK_REACH_NS 3000000U
#include "../../shim/event_clock.c"

#define MS 1000000ULL
#define OLD_NS (6 * MS)       /* how old an anchor is made: no base for another rate */
#define SLACK_NS (3 * MS / 2) /* how long a stepped read takes, and more */
#define STEPS_MOST 2000U

#if defined(__x86_64__)

#define TRAP_FLAG(instruction, value)                                                   \
    __asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushfq\n\t" instruction " $" value ", " \
                     "(%%rsp)\n\tpopfq\n\tlea 128(%%rsp), %%rsp" ::                     \
                         : "cc", "memory")

#define STEP() TRAP_FLAG("orq", "0x100")
#define RUN() TRAP_FLAG("andq", "0xfffffffffffffeff")

static struct {
    volatile bool behind_clock; /* steps begin as the clock has been read */
    volatile unsigned steps;
    unsigned at;      /* the step that reads */
    uint64_t wait_ns; /* before it does */
    volatile uint64_t ns;
    volatile bool far;
    unsigned moved; /* reads after which there was another anchor */
} handler;

uint64_t shim_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t ns = (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
    if (handler.behind_clock) {
        handler.behind_clock = false;
        STEP();
    }
    return ns;
}

static void pass(uint64_t ns)
{
    uint64_t until = shim_now_ns() + ns;
    while (shim_now_ns() < until) {
    }
}

static bool is_far(uint64_t before, uint64_t ns, uint64_t after)
{
    return ns + SLACK_NS < before || ns > after + SLACK_NS;
}

static void on_step(int number)
{
    (void)number;
    if (handler.steps++ != handler.at) {
        return;
    }
    pass(handler.wait_ns);
    uint64_t before = shim_now_ns();
    uint64_t ns = event_now_ns();
    handler.ns = ns;
    handler.far = is_far(before, ns, shim_now_ns());
}

struct scenario {
    uint64_t age_ns;   /* of the anchor as the read begins */
    uint64_t wait_ns;  /* how much older it is for the handler */
    bool behind_clock; /* stepped through from the clock's reading on, so that the pair is a near
                          one */
    unsigned steps;    /* at least */
};

/* Moves the anchor, and puts back the rate, which stepped pairs may have made a strange one. */
static void begin_anew(const struct event_clock_rate *rate)
{
    event_clock_thread.base.ns = 0;
    atomic_store(&event_clock.measured, atomic_load(&rate->factor));
    atomic_store(&event_clock_rate.factor, atomic_load(&rate->factor));
    atomic_store(&event_clock_rate.reach, atomic_load(&rate->reach));
    event_clock_read(0);
}

/* A read whose `at`-th instruction is followed by a handler's; false when it has not so many. */
static bool read_with_handler_at(unsigned at, const struct scenario *scenario,
                                 const struct event_clock_rate *rate)
{
    begin_anew(rate);
    pass(scenario->age_ns);
    uint64_t anchor = event_clock_thread.anchor.ticks;
    handler.steps = 0;
    handler.at = at;
    handler.wait_ns = scenario->wait_ns;
    handler.ns = 0;
    uint64_t before = shim_now_ns();
    handler.behind_clock = scenario->behind_clock;
    if (!scenario->behind_clock) {
        STEP();
    }
    uint64_t ns = event_now_ns();
    RUN();
    handler.behind_clock = false;
    uint64_t latest = event_clock_latest();
    uint64_t after = shim_now_ns();
    handler.moved += event_clock_thread.anchor.ticks != anchor;
    uint64_t next = event_now_ns();
    cr_assert_not(handler.far, "step %u: the handler's time", at);
    cr_assert_not(is_far(before, ns, after), "step %u: the time of the read that was stopped", at);
    cr_assert_not(is_far(after, next, shim_now_ns()), "step %u: what is left behind", at);
    cr_assert_geq(latest, handler.ns, "step %u: the handler's time is not kept", at);
    cr_assert_geq(next, handler.ns, "step %u: before the handler's", at);
    cr_assert_geq(next, ns, "step %u: before the one that was stopped", at);
    return handler.steps > at;
}

static void step_through(struct scenario scenario)
{
    unsigned at = 0;
    struct sigaction action = {.sa_handler = on_step};
    if (!event_clock_is_counter()) {
        return;
    }
    sigaction(SIGTRAP, &action, NULL);
    event_clock_start(true);
    for (int i = 0; i < 5; i++) {
        pass(11 * MS);
        event_now_ns();
    }
    struct event_clock_rate rate = {.reach = event_clock_rate.reach,
                                    .factor = event_clock_rate.factor};
    cr_assert_neq(rate.reach, 0, "the counter is not used");
    while (at < STEPS_MOST && read_with_handler_at(at, &scenario, &rate)) {
        at++;
    }
    cr_assert(at >= scenario.steps && at < STEPS_MOST, "%u steps", at);
    cr_assert(!scenario.behind_clock || handler.moved >= scenario.steps,
              "the anchor was moved %u times", handler.moved);
}

Test(event_clock_steps, a_handler_within_a_move_of_the_anchor, .timeout = 60)
{
    step_through((struct scenario){OLD_NS, 0, true, 30});
}

Test(event_clock_steps, a_handler_that_moves_the_anchor_within_a_move_of_it, .timeout = 60)
{
    step_through((struct scenario){OLD_NS, OLD_NS, true, 30});
}

Test(event_clock_steps, a_handler_that_moves_the_anchor_as_a_read_finds_it_old, .timeout = 60)
{
    step_through((struct scenario){OLD_NS, 0, false, 60});
}

Test(event_clock_steps, a_handler_that_moves_the_anchor_within_a_read, .timeout = 60)
{
    step_through((struct scenario){0, OLD_NS, false, 10});
}

#else /* every read is the clock's */

uint64_t shim_now_ns(void)
{
    return 0;
}

#endif
