/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules that were worked out before: how a frame whose code is at an address
 * is left. A table of single words, read and written without locks; a word holds
 * the whole address, so what is found is never another address's rule, and the
 * generation of the module map, so it is never another object's.
 *
 *   bits 0 … 2   enum unwind_rule_kind
 *        3 … 15  distance of the frame's address from the register, in words
 *       16 … 19  where the caller's rbp is, in words below the frame's address
 *       20 … 30  the module map's generation, low bits
 *       31 … 63  the address without its low 14 bits, which the place in the table gives back
 */
#ifndef VS_SHIM_UNWIND_RULES_H
#define VS_SHIM_UNWIND_RULES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "unwind_cfi.h"

enum unwind_rule_kind {
    UNWIND_RULE_NONE,    /* not worked out yet */
    UNWIND_RULE_RSP,     /* frame's address: rsp + distance; the return address below it */
    UNWIND_RULE_RBP,     /* the same from rbp */
    UNWIND_RULE_ALIGNED, /* frame's address: the word `distance` below rbp; caller's rbp: at rbp */
    UNWIND_RULE_LAST,    /* the thread's first frame: nobody called it */
    UNWIND_RULE_OTHER,   /* ask the tables each time */
    UNWIND_RULE_ABSENT   /* an object whose tables do not speak of the address */
};

#define UNWIND_RULE_KIND 7U
#define UNWIND_RULE_DISTANCE_SHIFT 3U
#define UNWIND_RULE_DISTANCE_MAX 0x1fffU
#define UNWIND_RULE_SLOT_SHIFT 16U
#define UNWIND_RULE_SLOT_MAX 15U
#define UNWIND_RULE_SLOT_SAME 1U /* no rbp is there, the return address is: unchanged */
#define UNWIND_RULE_BITS 20U
#define UNWIND_GENERATION_BITS 11U
#define UNWIND_PLACE_BITS 14U
#define UNWIND_ADDRESS_BITS 47U /* addresses beyond are not kept */

/* What every function compiled with frame pointers has at a call: push rbp; mov rbp, rsp. */
#define UNWIND_RULE_FRAME_POINTER \
    (UNWIND_RULE_RBP | 2U << UNWIND_RULE_DISTANCE_SHIFT | 2U << UNWIND_RULE_SLOT_SHIFT)

struct unwind_rules {
    _Atomic uint64_t word[1U << UNWIND_PLACE_BITS][2];
    _Atomic uint32_t age; /* high bits of the generation that all words are of */
};
extern struct unwind_rules unwind_rules;

/* What the words of this generation have in common. Makes room when its low bits begin anew. */
uint64_t unwind_rules_open(void);
/* A rule for an address; UNWIND_RULE_OTHER when it cannot be said in these few bits. */
uint32_t unwind_rule_make(const struct unwind_entry *entry, const struct unwind_row *row);
void unwind_rule_keep(uint64_t opened, uint64_t address, uint32_t rule);

static inline uint32_t unwind_rule_place(uint64_t address)
{
    return (uint32_t)(address ^ address >> UNWIND_PLACE_BITS ^ address >> 2 * UNWIND_PLACE_BITS) &
           ((1U << UNWIND_PLACE_BITS) - 1);
}

static inline uint64_t unwind_rule_key(uint64_t opened, uint64_t address)
{
    return opened | address >> UNWIND_PLACE_BITS << (UNWIND_RULE_BITS + UNWIND_GENERATION_BITS);
}

/* UNWIND_RULE_NONE when it is not known. */
static inline uint32_t unwind_rule_find(uint64_t opened, uint64_t address)
{
    const uint64_t rule_end = 1ULL << UNWIND_RULE_BITS;
    const _Atomic uint64_t *words = unwind_rules.word[unwind_rule_place(address)];
    uint64_t key = unwind_rule_key(opened, address);
    if (__builtin_expect(address >> UNWIND_ADDRESS_BITS != 0, 0)) {
        return UNWIND_RULE_NONE;
    }
    /* Relaxed: a rule is in its word and speaks of nothing else. */
    uint64_t rule = atomic_load_explicit(&words[0], memory_order_relaxed) ^ key;
    if (__builtin_expect(rule >= rule_end, 0)) {
        rule = atomic_load_explicit(&words[1], memory_order_relaxed) ^ key;
    }
    return rule < rule_end ? (uint32_t)rule : UNWIND_RULE_NONE;
}

#endif
