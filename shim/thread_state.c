/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The few words every thread has, and the repair of what a jump out of a hook
 * (siglongjmp out of a signal handler, an exception, cancellation) left in them.
 */
#include "thread_state.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "lifecycle.h"
#include "ring_producer.h"
#include "sys.h"

SHIM_TLS struct shim_thread shim_thread;

void thread_first_use(void)
{
    struct shim_thread *thread = &shim_thread;
    uint32_t generation = shim_generation();
    uint32_t tid = (uint32_t)sys_gettid();

    /* In a forked child the depth stays: the fork may have been called beneath a hook. */
    if (thread->tid != 0) {
        thread->pending = 0;
        thread->waited_ns = 0;
        thread->named = 0;
    }
    thread->generation = generation;
    thread->tid = tid;
}

/* A handler on an alternate stack may lie above what it interrupted. */
static bool on_alternate_stack(void)
{
    stack_t stack;
    memset(&stack, 0, sizeof(stack));
    return sys_call2(SYS_sigaltstack, 0, &stack) == 0 && (stack.ss_flags & SS_ONSTACK) != 0;
}

#define NEAR_BYTES 65536U /* hooks nest within this, and a stack is mapped without gaps */
#define NO_SUCH_HOW 99    /* sigprocmask reads its set first, then refuses this */

static bool readable(const void *address)
{
    return sys_call4(SYS_rt_sigprocmask, NO_SUCH_HOW, address, 0, sizeof(uint64_t)) != -EFAULT;
}

/* The frame may lie on a stack that is gone. */
static bool guard_holds(const struct thread_frame *outer, const struct thread_frame *inner)
{
    uintptr_t above = (uintptr_t)outer - (uintptr_t)inner;
    if (above > NEAR_BYTES && !readable(&outer->guard)) {
        return false;
    }
    return *(const volatile uint64_t *)&outer->guard ==
           (THREAD_FRAME_GUARD ^ (uint64_t)(uintptr_t)outer);
}

bool thread_frame_is_live(const struct thread_frame *outer, const struct thread_frame *inner)
{
    if ((uintptr_t)outer > (uintptr_t)inner) {
        return guard_holds(outer, inner);
    }
    return on_alternate_stack() && guard_holds(outer, inner);
}

void thread_repair(void)
{
    struct shim_thread *thread = &shim_thread;
    thread->depth = 0;
    thread->stack_mark = NULL;
    lifecycle_count_abandoned();
}
