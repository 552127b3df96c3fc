/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A walk as shim/stacks.c makes it: recalled where it is remembered, else made and
 * remembered. Here each recalled one is made as well, and has to be the same.
 */
#include "lab_memo.h"

#include <stdatomic.h>
#include <string.h>

#include "shim.h"

static unsigned depth = STACKS_DEPTH_MAX;
static _Atomic uint64_t recalled;
static _Atomic uint64_t different;

static uint64_t mix(uint64_t sum, uint64_t word, uint64_t factor)
{
    sum = (sum ^ word) * factor;
    return sum ^ sum >> 32;
}

/* All that is told of a walk; its sum is one of 128 bits, over every word. */
static struct unwind_known known_of(const uint64_t *words, unsigned count, enum vs_stack_note note)
{
    struct unwind_known known = {.sum = {count, note}, .count = count, .note = note};
    for (unsigned i = 0; i < count; i++) {
        known.sum[0] = mix(known.sum[0], words[i], 0xff51afd7ed558ccdULL);
        known.sum[1] = mix(known.sum[1], words[i], 0xc4ceb9fe1a85ec53ULL);
    }
    return known;
}

static bool same(const struct unwind_known *a, const struct unwind_known *b)
{
    return memcmp(a->sum, b->sum, sizeof(a->sum)) == 0 && a->count == b->count &&
           a->note == b->note;
}

unsigned lab_memo_walk(const struct unwind_start *start, uint64_t *words, unsigned max,
                       enum vs_stack_note *note)
{
    struct unwind_known known;
    bool once_more = max == depth && unwind_recall(start, 0, &known);
    /* One call for both cases: no rule of it is new in a warm walk. */
    __asm__ volatile("" : "+r"(once_more));
    unsigned count = unwind_here(words, max, note);
    const struct unwind_known made = known_of(words, count, *note);
    if (once_more) {
        recalled++;
        different += !same(&known, &made);
    } else if (max == depth) {
        unwind_remember(start, 0, words, &made);
    }
    return count;
}

SHIM_EXPORT void lab_memo_depth(unsigned frames)
{
    depth = frames;
}

SHIM_EXPORT struct lab_memo_totals lab_memo_take(void)
{
    return (struct lab_memo_totals){.recalled = atomic_exchange(&recalled, 0),
                                    .different = atomic_exchange(&different, 0)};
}
