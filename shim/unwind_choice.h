/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether this process is unwound by frame pointers, and where not.
 *
 * An object whose functions do not keep frame pointers is *plain*: frames in it
 * are always left by the tables (the C library is such an object on most
 * systems). A few of them can be remembered; a process with more is unwound by
 * tables altogether.
 *
 * Why a stack by frame pointers may be believed. How a frame is left depends,
 * by the tables, on its address alone. A stack is *proved* when each of its
 * addresses lies in a plain object (or in ours, or was interrupted by a signal:
 * these frames are left by the tables anyway), or has the rule that a frame
 * pointer stands for: frame at rbp + 16, caller's rbp at rbp, return address
 * behind it. If the frame pointer walk finds the addresses of a proved stack,
 * then by induction from our own frame, whose registers are exact, each step
 * was the one that the tables would have made: it cannot be a different stack
 * whose frames the chain skipped, because a skipped frame's callee is among the
 * addresses, and its rule would be another. So a stack needs the proof once,
 * when it is new: unwind_here_by_tables gives it, and the first address that
 * fails makes its object plain, or ends the use of frame pointers. The trial at
 * the start only tells whether they are faster here.
 */
#ifndef VS_SHIM_UNWIND_CHOICE_H
#define VS_SHIM_UNWIND_CHOICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define UNWIND_PLAIN_MAX 4U

/* Taken in order and never given back; its bytes are 0 until its beginning is
 * there. */
struct unwind_object {
    _Atomic uint64_t first;
    _Atomic uint64_t bytes;
};

struct unwind_span {
    uint64_t first;
    uint64_t bytes;
};

enum unwind_choice { UNWIND_TRIAL, UNWIND_BY_TABLES, UNWIND_BY_CHAIN };

struct unwind_choices {
    _Atomic uint32_t choice;
    struct unwind_object plain[UNWIND_PLAIN_MAX];
};
extern struct unwind_choices unwind_choices;

/* What one walk by tables found. */
struct unwind_verdict {
    unsigned by_chain;  /* frames that a frame pointer would have left alike */
    unsigned by_tables; /* frames in plain objects */
};

static inline enum unwind_choice unwind_chosen(void)
{
    return (enum unwind_choice)atomic_load_explicit(&unwind_choices.choice, memory_order_relaxed);
}

/* The plain objects, copied for a walk. */
struct unwind_plain {
    unsigned count;
    struct unwind_span object[UNWIND_PLAIN_MAX];
};

static inline void unwind_copy_plain(struct unwind_plain *plain)
{
    plain->count = 0;
    for (unsigned i = 0; i < UNWIND_PLAIN_MAX; i++) {
        const struct unwind_object *object = &unwind_choices.plain[i];
        /* Acquire: with its bytes its beginning shows. */
        uint64_t bytes = atomic_load_explicit(&object->bytes, memory_order_acquire);
        if (bytes == 0) {
            break;
        }
        plain->object[plain->count++] =
            (struct unwind_span){atomic_load_explicit(&object->first, memory_order_relaxed), bytes};
    }
}

static inline bool unwind_is_plain(const struct unwind_plain *plain, uint64_t address)
{
    for (unsigned i = 0; i < plain->count; i++) {
        if (address - plain->object[i].first < plain->object[i].bytes) {
            return true;
        }
    }
    return false;
}

/* A frame at `address` is not left as a frame pointer says. */
void unwind_note_plain(uint64_t address);
/* A walk of the trial has ended. True for the one after which the choice has to
 * be made. */
bool unwind_weigh(const struct unwind_verdict *verdict);

void unwind_choose(bool chain);

#endif
