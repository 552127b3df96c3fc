/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules that were worked out before: how a frame whose code is at an address
 * is left. Read and written without locks, never cleared: each entry belongs to
 * an age, and when an object went away, or there is no room left, a new age begins.
 *
 *   rule, bit 0    the frame's address is reckoned from rbp, not rsp
 *             1    it is one of our own functions
 *             2    it is no common rule: bits 16 … 23 say which
 *        3 … 15    distance of the frame's address from the register, in words
 *       16 … 23    where the caller's rbp is, in bytes below the frame's address
 *       32 … 63    the age
 *   tag            the address, and the age's low 16 bits above its 48
 *
 * Within an age an entry is written once, its tag before its rule, so a rule of
 * the age has its own tag beside it; a tag that is a later age's does not fit.
 *
 * An address is a return address; an interrupted instruction's is one more.
 *
 * Beside each rule stands where the caller's was the last time. It is a guess,
 * checked like any entry; it lets the processor read the next rule before it
 * knows the address.
 */
#ifndef VS_SHIM_UNWIND_RULES_H
#define VS_SHIM_UNWIND_RULES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "unwind_cfi.h"

/* Rules that are not common. */
enum unwind_rule_kind {
    UNWIND_RULE_NONE,    /* not worked out yet */
    UNWIND_RULE_ALIGNED, /* frame's address: the word `distance` below rbp; caller's rbp: at rbp */
    UNWIND_RULE_LAST,    /* the thread's first frame: nobody called it */
    UNWIND_RULE_OTHER,   /* ask the tables each time */
    UNWIND_RULE_ABSENT   /* an object whose tables do not speak of the address */
};

#define UNWIND_RULE_FROM_RBP 1U
#define UNWIND_RULE_OURS 2U
#define UNWIND_RULE_UNCOMMON 4U
#define UNWIND_RULE_DISTANCE 0xfff8U /* of whole words: these bits are the bytes */
#define UNWIND_RULE_SLOT_SHIFT 16U
#define UNWIND_RULE_SLOT_MAX 0xf8U
#define UNWIND_RULE_SLOT_SAME 8U /* the return address is there: rbp is as it was */
#define UNWIND_RULE_BITS 32U
#define UNWIND_TAG_BITS 48U
#define UNWIND_ADDRESS_BITS 47U /* of a program */

/* What every function compiled with frame pointers has at a call: push rbp; mov rbp, rsp. */
#define UNWIND_RULE_FRAME_POINTER (UNWIND_RULE_FROM_RBP | 16U | 16U << UNWIND_RULE_SLOT_SHIFT)

#define UNWIND_PLACES 32768U
#define UNWIND_PROBES 8U

struct unwind_kept {
    _Atomic uint64_t rule;
    _Atomic uint64_t tag;
    _Atomic uint32_t caller; /* place of the caller's rule, perhaps */
    uint32_t unused[3];
};

struct unwind_rules {
    struct unwind_kept kept[UNWIND_PLACES];
    _Atomic uint64_t age; /* and above it, in 32 bits, the module map's generation */
};
extern struct unwind_rules unwind_rules;

/* The age of a walk: begun when the module map's generation has moved. */
uint32_t unwind_rules_open(void);
/* A rule; uncommon (OTHER) when it cannot be said in these few bits. */
uint32_t unwind_rule_make(const struct unwind_entry *entry, const struct unwind_row *row);
uint32_t unwind_rule_uncommon(enum unwind_rule_kind kind);
void unwind_rule_keep(uint32_t age, uint64_t address, uint32_t rule);

static inline enum unwind_rule_kind unwind_rule_kind(uint64_t rule)
{
    return (enum unwind_rule_kind)(rule >> UNWIND_RULE_SLOT_SHIFT & 0xff);
}

/* A common rule's parts, in bytes. */
static inline uint64_t unwind_rule_distance(uint64_t rule)
{
    return rule & UNWIND_RULE_DISTANCE;
}

static inline uint64_t unwind_rule_slot(uint64_t rule)
{
    return rule >> UNWIND_RULE_SLOT_SHIFT & 0xff;
}

static inline uint32_t unwind_rule_place(uint64_t address)
{
    return (uint32_t)address & (UNWIND_PLACES - 1);
}

/* Acquire: the tag that is read next is that of the rule, or of a later age. */
static inline uint64_t unwind_rule_at(uint32_t place)
{
    return atomic_load_explicit(&unwind_rules.kept[place].rule, memory_order_acquire);
}

/* Whether the entry, whose rule was read before, is the address's in this age. */
static inline bool unwind_rule_is(uint64_t rule, uint32_t place, uint32_t age, uint64_t address)
{
    uint64_t tag = atomic_load_explicit(&unwind_rules.kept[place].tag, memory_order_relaxed);
    return rule >> UNWIND_RULE_BITS == age && tag == address + ((uint64_t)age << UNWIND_TAG_BITS);
}

/* The address's rule; uncommon and NONE when there is none. *place is where it is. */
static inline uint64_t unwind_rule_find(uint32_t age, uint64_t address, uint32_t *place)
{
    *place = unwind_rule_place(address);
    for (unsigned i = 0; i < UNWIND_PROBES; i++) {
        uint64_t rule = unwind_rule_at(*place);
        if (unwind_rule_is(rule, *place, age, address)) {
            return rule;
        }
        if (rule >> UNWIND_RULE_BITS != age) {
            break; /* nothing was ever kept behind it */
        }
        *place = (*place + 1) % UNWIND_PLACES;
    }
    return UNWIND_RULE_UNCOMMON | UNWIND_RULE_NONE << UNWIND_RULE_SLOT_SHIFT;
}

#endif
