/* SPDX-License-Identifier: Apache-2.0 */
/* Writing remembered walks: what a walk does that is not as it was. */
#include "unwind_memo.h"

struct unwind_memo unwind_memos[1U << UNWIND_MEMOS_BITS];

bool unwind_memo_claim(struct unwind_memo *memo, uint32_t age, struct unwind_trail *trail)
{
    uint64_t turn = trail->turn;
    if (trail->writing) {
        return true;
    }
    /* Succeeds only when nobody wrote since unwind_memo_open: what was gone along is sound. */
    if (!atomic_compare_exchange_strong_explicit(&memo->turn, &turn, turn + 1, memory_order_acq_rel,
                                                 memory_order_relaxed)) {
        return false;
    }
    /* Release: who sees something written sees the turn that came before it. */
    atomic_thread_fence(memory_order_release);
    trail->writing = true;
    atomic_store_explicit(&memo->age, age, memory_order_relaxed);
    atomic_store_explicit(&memo->count, trail->count, memory_order_relaxed);
    return true;
}

void unwind_memo_write(struct unwind_memo *memo, const struct unwind_trail *trail, bool ours)
{
    struct unwind_memo_frame *frame = &memo->frame[trail->at];
    uint64_t where =
        trail->sp | trail->slot << UNWIND_MEMO_SLOT_SHIFT | (ours ? UNWIND_MEMO_OURS : 0);
    atomic_store_explicit(&frame->where, where, memory_order_relaxed);
    atomic_store_explicit(&frame->ip, trail->ip, memory_order_relaxed);
    atomic_store_explicit(&frame->bp, trail->bp, memory_order_relaxed);
}

void unwind_memo_rejoin(struct unwind_memo *memo, const struct unwind_trail *trail)
{
    uint64_t where = atomic_load_explicit(&memo->frame[trail->at].where, memory_order_relaxed);
    unwind_memo_write(memo, trail, (where & UNWIND_MEMO_OURS) != 0);
}

void unwind_memo_end(struct unwind_memo *memo, struct unwind_trail *trail)
{
    unwind_memo_write(memo, trail, false); /* the last one is told by the rules */
    trail->count = trail->at + 1;
    atomic_store_explicit(&memo->count, trail->count, memory_order_relaxed);
}

void unwind_memo_close(struct unwind_memo *memo, struct unwind_trail *trail)
{
    if (trail->writing) {
        trail->writing = false;
        /* Release: unwind_memo_open. */
        atomic_store_explicit(&memo->turn, trail->turn + 2, memory_order_release);
    }
}
