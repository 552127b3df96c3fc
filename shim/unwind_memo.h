/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks that went before. A program asks for memory from the same stacks over and
 * over; one that is the same as remembered costs a comparison a frame: no rule is
 * looked up, no load waits for another one, no word is written or hashed.
 *
 * Why it is the same walk. A walk by rules (unwind_rules.h) is determined by the
 * three registers that it begins with, the rules of its addresses, and the words of
 * the stack that these rules read: return addresses, and rbp where a frame further
 * out is reckoned from it. A memo holds the registers, the age and all these words
 * with their places. Where all are what they were, each step leads, by induction,
 * where it led then. Nothing is asked of what happened to the stack in between, so:
 *
 *   - Coroutines, swapcontext, longjmp, threads that end and others that get their
 *     stack's memory: the words are compared each time, where they lie now. A word
 *     that was overwritten with an equal one is the same to a walk too. Stacks that
 *     differ in one return address only, however deep, differ in a word of the memo.
 *   - The same words elsewhere on a stack: sp is compared. rbp is compared if the
 *     walk needs that of the beginning; one that is saved, and that no rule reckons
 *     from before another one is loaded, leads nowhere and may change.
 *   - dlclose, and another library at the address: the module map's generation moves
 *     and with it the age. Within an age the rule of an address does not change. What
 *     goes away behind the module map's back is the rules' limit too, not another one.
 *   - Signal handlers, side stacks, code without tables, frames left by an expression:
 *     such a frame has no common rule, a walk through one is not remembered. A handler
 *     that ends up asking before such a frame (cut at the depth) is like any function.
 *   - A walk that stopped somewhere is not remembered: what stopped it (memory that
 *     cannot be read, no rule) is no part of a memo. A walk cut at the depth is; the
 *     depth is one in a process.
 *   - fork: the child's memory is the same, memos, rules and stack.
 *   - Frame pointers chosen instead: nothing is recalled or remembered.
 *
 * What is read: only places above sp in the part of the stack that this thread knows
 * to be readable (unwind_memory.h), in the walk's own order. So each word is one that
 * the walk would read as well, and a stack that became shorter ends where it ends.
 *
 * A memo is found by where the walk begins and a hint, which may be anything: it
 * only spreads stacks that begin alike over several memos.
 *
 * Shared by all threads, without waiting: `turn` is odd while somebody writes, and
 * another one afterwards; who read meanwhile has learned nothing, a signal handler
 * that interrupted the writer included. A writer that never ends (a jump out of a
 * signal handler, a fork) leaves a memo that nobody uses any more.
 */
#ifndef VS_SHIM_UNWIND_MEMO_H
#define VS_SHIM_UNWIND_MEMO_H

#include <stdbool.h>
#include <stdint.h>

#include "../formats/frame_word.h"

/* Registers of a function at the call of the one that asks: the frame behind it. */
struct unwind_start {
    uint64_t ip, sp, bp;
};

/* Of the function that says it; makes it keep a frame pointer. */
#define UNWIND_START()                                                                \
    (struct unwind_start)                                                             \
    {                                                                                 \
        .ip = (uint64_t)(uintptr_t)__builtin_return_address(0),                       \
        .sp = (uint64_t)(uintptr_t)__builtin_frame_address(0) + 2 * sizeof(uint64_t), \
        .bp = *(const uint64_t *)__builtin_frame_address(0)                           \
    }

/* A walk's result; the sum is the caller's, made of the words. */
struct unwind_known {
    uint64_t sum[2];
    uint32_t count;
    enum vs_stack_note note;
    uint64_t
        tag; /* of one that is recalled: tells it from every other one that is or was remembered */
};

/* True when the walk from `start` would be one that is remembered. */
bool unwind_recall(const struct unwind_start *start, uint64_t hint, struct unwind_known *known);
/* That walk was made just now, and gave `words`: remembered, if it can be and has its turn. */
void unwind_remember(const struct unwind_start *start, uint64_t hint, const uint64_t *words,
                     const struct unwind_known *known);

#endif
