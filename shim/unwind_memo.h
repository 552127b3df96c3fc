/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks as they went before, each found again by the stack pointer that it began
 * with. A walk that is the same costs one run through neighbouring memory and two
 * comparisons a frame: no rule is looked up, no load waits for another one.
 *
 * Why it is the same walk. How a frame is left by a common rule follows from its
 * three registers, the rule of its address, which does not change within an age,
 * and the two words of the stack that the rule reads. A remembered walk is gone
 * along only from a frame whose three registers are those remembered, in the age
 * in which they were, and only as long as both words, read again at each frame
 * from the places that the rule names, are what they were: so each frame follows,
 * by induction, as the rules would have it, whatever happened to the stack, the
 * thread or the coroutine in between. Nothing else is read than the rules read.
 * At the first frame that is another one the rules take over, and what they find
 * is remembered in its place. Frames that are left in any other way than by a
 * common rule (signals, realigned ones, code without tables) end what is remembered.
 *
 * Shared by all threads, without waiting: `turn` is odd while somebody writes, and
 * moves on when he is done. Who read meanwhile walks anew. A writer that never ends
 * (a jump out of a signal handler that interrupted him, a fork) leaves one walk that
 * nobody uses any more.
 */
#ifndef VS_SHIM_UNWIND_MEMO_H
#define VS_SHIM_UNWIND_MEMO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "unwind_memory.h"
#include "unwind_rules.h"

#define UNWIND_MEMOS_BITS 8U
#define UNWIND_MEMO_FRAMES 122U

/*
 *   where, bits 0 … 47   the stack pointer
 *              48 … 55   how far below it the rule that led here found rbp (RULE_SLOT)
 *              56        it is one of our own functions
 */
#define UNWIND_MEMO_SP ((1ULL << 48) - 1)
#define UNWIND_MEMO_SLOT_SHIFT 48U
#define UNWIND_MEMO_OURS (1ULL << 56)

struct unwind_memo_frame {
    _Atomic uint64_t where;
    _Atomic uint64_t ip;
    _Atomic uint64_t bp;
};

struct unwind_memo {
    _Atomic uint64_t turn;
    _Atomic uint32_t age; /* of the rules */
    _Atomic uint32_t count;
    struct unwind_memo_frame frame[UNWIND_MEMO_FRAMES];
} __attribute__((aligned(64)));
extern struct unwind_memo unwind_memos[1U << UNWIND_MEMOS_BITS];

/* Where a walk is, and what it wrote. */
struct unwind_trail {
    uint64_t ip, sp, bp;
    uint64_t room;   /* readable bytes from sp on */
    uint64_t *next;  /* word to write */
    uint64_t *end;   /* behind the last */
    uint64_t slot;   /* of the rule that led here, 0 for the first frame */
    unsigned at;     /* which frame of the memo this is */
    unsigned count;  /* frames in the memo */
    uint64_t turn;   /* when the walk began */
    bool writing;
};

static inline struct unwind_memo *unwind_memo_of(uint64_t sp)
{
    return &unwind_memos[(sp >> 3) * 0x9e3779b97f4a7c15ULL >> (64 - UNWIND_MEMOS_BITS)];
}

/* False: somebody writes it. */
static inline bool unwind_memo_open(const struct unwind_memo *memo, uint32_t age,
                                    struct unwind_trail *trail)
{
    /* Acquire: pairs with unwind_memo_close, what was written before is there. */
    trail->turn = atomic_load_explicit(&memo->turn, memory_order_acquire);
    bool of_age = atomic_load_explicit(&memo->age, memory_order_relaxed) == age;
    trail->count = of_age ? atomic_load_explicit(&memo->count, memory_order_relaxed) : 0;
    trail->at = 0;
    trail->slot = 0;
    trail->writing = false;
    return trail->turn % 2 == 0 && trail->sp >> UNWIND_ADDRESS_BITS == 0;
}

/* Whether the memo has this very frame where the walk is. */
static inline bool unwind_memo_holds(const struct unwind_memo *memo,
                                     const struct unwind_trail *trail)
{
    const struct unwind_memo_frame *frame = &memo->frame[trail->at];
    return trail->at < trail->count &&
           atomic_load_explicit(&frame->ip, memory_order_relaxed) == trail->ip &&
           atomic_load_explicit(&frame->bp, memory_order_relaxed) == trail->bp &&
           (atomic_load_explicit(&frame->where, memory_order_relaxed) & UNWIND_MEMO_SP) ==
               trail->sp;
}

/*
 * Goes along from a frame that the memo holds, to its last one or to the one whose
 * caller is another now. Bounds are looked at each time: a torn memo leads nowhere.
 */
static inline void unwind_memo_follow(const struct unwind_memo *memo, struct unwind_trail *trail)
{
    const struct unwind_memo_frame *frame = &memo->frame[trail->at];
    const struct unwind_memo_frame *last = &memo->frame[trail->count - 1];
    uint64_t where = atomic_load_explicit(&frame->where, memory_order_relaxed);
    uint64_t ip = trail->ip;
    uint64_t sp = trail->sp;
    uint64_t bp = trail->bp;
    uint64_t end = sp + trail->room;
    uint64_t *next = trail->next;
    while (frame < last && next < trail->end) {
        uint64_t caller = atomic_load_explicit(&frame[1].where, memory_order_relaxed);
        uint64_t caller_ip = atomic_load_explicit(&frame[1].ip, memory_order_relaxed);
        uint64_t caller_bp = atomic_load_explicit(&frame[1].bp, memory_order_relaxed);
        uint64_t address = caller & UNWIND_MEMO_SP;
        uint64_t slot = caller >> UNWIND_MEMO_SLOT_SHIFT & 0xff;
        bool same = slot == UNWIND_RULE_SLOT_SAME;
        if (address > end || address - sp > end - sp || slot > address - sp ||
            slot < UNWIND_RULE_SLOT_SAME || unwind_word(address - 8) != caller_ip ||
            unwind_word(address - slot) != (same ? caller_ip : caller_bp) ||
            (same && caller_bp != bp)) {
            break;
        }
        *next = ip;
        next += (where & UNWIND_MEMO_OURS) == 0;
        where = caller;
        ip = caller_ip;
        sp = address;
        bp = caller_bp;
        frame++;
    }
    trail->at = (unsigned)(frame - memo->frame);
    trail->ip = ip;
    trail->sp = sp;
    trail->bp = bp;
    trail->room = end - sp;
    trail->next = next;
    trail->slot = where >> UNWIND_MEMO_SLOT_SHIFT & 0xff;
}

/* False: what was gone along may have been written meanwhile. */
static inline bool unwind_memo_is_sound(const struct unwind_memo *memo,
                                        const struct unwind_trail *trail)
{
    /* What was read before cannot be newer than this turn. */
    atomic_thread_fence(memory_order_acquire);
    return trail->writing || atomic_load_explicit(&memo->turn, memory_order_relaxed) == trail->turn;
}

/* ---- unwind_memo.c ----------------------------------------------------------------- */

/* Begins to write, unless that was done. False: somebody else wrote or writes. */
bool unwind_memo_claim(struct unwind_memo *memo, uint32_t age, struct unwind_trail *trail);
/* The frame where the walk is. */
void unwind_memo_write(struct unwind_memo *memo, const struct unwind_trail *trail, bool ours);
/* The walk came by a rule to a frame that the memo holds, perhaps by another one than then. */
void unwind_memo_rejoin(struct unwind_memo *memo, const struct unwind_trail *trail);
/* The walk is at the last frame to be remembered. */
void unwind_memo_end(struct unwind_memo *memo, struct unwind_trail *trail);
/* Ends writing, if it was begun. */
void unwind_memo_close(struct unwind_memo *memo, struct unwind_trail *trail);

#endif
