/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entering and leaving a hook: the nesting depth that tells the outermost call
 * from those beneath it, and its repair after a jump (siglongjmp, a C++
 * exception, cancellation) that left a hook without returning.
 *
 *     struct thread_frame frame;
 *     struct shim_thread *thread = thread_enter(&frame);
 *     if (thread->depth == 1) { ... outermost: set label, label_module, driver_events ... }
 *     ... the real call ...
 *     thread_leave(thread, &frame);
 *
 * No system call but once per thread; async-signal-safe.
 */
#ifndef VS_SHIM_THREAD_STATE_H
#define VS_SHIM_THREAD_STATE_H

#include <stdatomic.h>
#include <stddef.h>

#include "shim.h"

#define THREAD_FRAME_GUARD 0x76736672616d6521ULL

/*
 * Lies in the stack frame of who entered. The guard is set only while the frame
 * is live, so a frame that was jumped out of is known either by its place (not
 * above us on this stack) or by what later calls wrote over it.
 */
struct thread_frame {
    uint64_t guard; /* THREAD_FRAME_GUARD ^ address of this structure */
    uint16_t depth_before;
};

/* The thread's first event in this process, or its first after a fork. */
void thread_first_use(void);
/* True when `outer` is a live frame of this thread's stack or of the one a signal interrupted. */
bool thread_frame_is_live(const struct thread_frame *outer, const struct thread_frame *inner);
/* Takes back what hooks that were jumped out of left behind; counts it. */
void thread_repair(void);

static inline void thread_frame_open(struct thread_frame *frame)
{
    frame->guard = THREAD_FRAME_GUARD ^ (uint64_t)(uintptr_t)frame;
}

static inline struct shim_thread *thread_enter(struct thread_frame *frame)
{
    struct shim_thread *thread = &shim_thread;
    if (__builtin_expect(thread->tid == 0 || thread->generation != shim_generation(), 0)) {
        thread_first_use();
    }
    if (__builtin_expect(thread->depth != 0, 0) &&
        !thread_frame_is_live((const struct thread_frame *)thread->stack_mark, frame)) {
        thread_repair();
    }
    thread_frame_open(frame);
    frame->depth_before = thread->depth;
    if (thread->depth == 0) {
        thread->stack_mark = frame;
    }
    /* A signal handler that finds the depth finds a live frame behind it. */
    atomic_signal_fence(memory_order_seq_cst);
    thread->depth++;
    return thread;
}

/* Restores the depth found on entry: inner hooks that were jumped out of are forgotten with it. */
static inline void thread_leave(struct shim_thread *thread, struct thread_frame *frame)
{
    thread->depth = frame->depth_before;
    atomic_signal_fence(memory_order_seq_cst);
    *(volatile uint64_t *)&frame->guard = 0;
}

#endif
