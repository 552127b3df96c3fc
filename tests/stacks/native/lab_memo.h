/* SPDX-License-Identifier: Apache-2.0 */
/* Remembered walks, each held against one that is made at the same moment. */
#ifndef VS_TESTS_NATIVE_LAB_MEMO_H
#define VS_TESTS_NATIVE_LAB_MEMO_H

#include "lab.h"
#include "stacks.h"
#include "unwind_memo.h"

/* As unwind_here, from the caller of the function that `start` is of. */
unsigned lab_memo_walk(const struct unwind_start *start, uint64_t *words, unsigned max,
                       enum vs_stack_note *note);

#endif
