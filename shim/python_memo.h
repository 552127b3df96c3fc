/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python walks that went before, as unwind_memo.h has them of native ones: a chain
 * of frames that is the same as remembered costs a comparison a frame, nothing is
 * hashed or written.
 *
 * Why it is the same walk. A walk is determined by the layout, by the words of the
 * frames that it reads in their order (code object, instruction, what the frame is,
 * the one before), from 3.12 on by the version in each code object, in 3.11 by the
 * bytecode where a generator rests, and by what is not the thread's: deaths of code
 * objects, the interpreter and its end. A memo holds these words and the age. Where all are what
 * they were, each step leads, by induction, where it led then. Nothing is asked of what happened in
 * between, so:
 *
 *   - Generators, exceptions, tracing, frames made anew where others lay: the words
 *     are compared each time, where they lie now.
 *   - Another code object at the address of one that died: up to 3.11 a death that
 *     counts begins another age; only stacks are remembered whose code objects have
 *     ids, and the death of such a one counts. From 3.12 on the versions are compared.
 *   - The interpreter's end, another interpreter: begin another age. A walk that asks
 *     for the content of code objects (a sub-interpreter, after the end, a version
 *     that is 0) is not remembered, nor recalled in another interpreter.
 *   - Free-threaded builds from 3.14 on, whose threads run copies of the bytecode:
 *     nothing is remembered.
 *   - fork: the child's memory is the same, memos and frames.
 *
 * What is read: each frame and code object only after the words that led there were
 * found to be what they were, so they are those that the walk would read, whoever
 * writes the memo meanwhile; between python_end_enter and leave, as a walk.
 *
 * Shared by all threads without waiting, as unwind_memo.h says of `turn`.
 */
#ifndef VS_SHIM_PYTHON_MEMO_H
#define VS_SHIM_PYTHON_MEMO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "python_layout.h"
#include "stacks.h"

#define PYTHON_MEMO_NO_AGE UINT64_MAX

/* What walks depend on that is not the thread's own: moves before it changes. */
extern _Atomic uint64_t python_memo_age;

static inline void python_memo_begin_age(void)
{
    /* Release: a walk that reads this age reads nothing that was there before what began it. */
    atomic_fetch_add_explicit(&python_memo_age, 1, memory_order_release);
}

/*
 * True when the walk of `thread` (its state's address) would be one that is
 * remembered. Either way known->age is that of now. Between python_end_enter and
 * leave; any thread, in signal handlers too.
 */
bool python_memo_recall(const struct python_layout *layout, uint64_t thread, uint64_t first,
                        struct python_known *known);
/*
 * That walk was made since recall said no, gave known->count frames, and its code
 * objects have ids. Remembered, if it can be and has its turn. As recall.
 */
void python_memo_keep(const struct python_layout *layout, uint64_t thread, uint64_t first,
                      const struct python_known *known);

#endif
