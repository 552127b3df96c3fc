/* SPDX-License-Identifier: Apache-2.0 */
/* Remembered walks: see unwind_memo.h. */
#include "unwind_memo.h"

#if defined(__x86_64__)

#include <stdatomic.h>

#include "shim.h"
#include "unwind_choice.h"
#include "unwind_memory.h"
#include "unwind_rules.h"

#ifndef UNWIND_MEMO_BITS     /* fewer in a test, where all crowd into a few */
#define UNWIND_MEMO_BITS 10U /* 1.5 MiB of them, touched where used */
#endif
#define SLOTS_MAX 120U
#define SLOTS_AT_ONCE 4U
_Static_assert(SLOTS_MAX % SLOTS_AT_ONCE == 0, "the last ones are filled up");
#define WORD_BYTES 8U
#define PLACES (1ULL << 16)
#define USES_BP (1U << 31)
#define NOTE_SHIFT 16U

struct memo {
    _Atomic uint64_t turn;
    _Atomic uint64_t ip, sp, bp;
    _Atomic uint64_t sum[2];
    _Atomic uint32_t age;   /* of the rules */
    _Atomic uint32_t shape; /* words told, their note, USES_BP */
    _Atomic uint32_t slots;
    _Atomic uint32_t reach;  /* no place lies so far */
    _Atomic uint32_t missed; /* by other walks since it was of use */
    _Atomic uint64_t word[SLOTS_MAX];
    _Atomic uint32_t place[SLOTS_MAX]; /* of it, in words above sp */
} __attribute__((aligned(64)));

static struct memo memos[1U << UNWIND_MEMO_BITS];

static struct memo *memo_of(const struct unwind_start *start, uint64_t hint)
{
    uint64_t bits = ((start->sp >> 3) ^ hint) * 0x9e3779b97f4a7c15ULL ^ start->ip;
    return &memos[bits * 0xd6e8feb86659fd93ULL >> (64 - UNWIND_MEMO_BITS)];
}

static uint64_t load(const _Atomic uint64_t *place)
{
    return atomic_load_explicit(place, memory_order_relaxed);
}

static uint32_t load_half(const _Atomic uint32_t *place)
{
    return atomic_load_explicit(place, memory_order_relaxed);
}

/* ---- recalling ---------------------------------------------------------------------- */

static bool begins_alike(const struct memo *memo, const struct unwind_start *start)
{
    return load(&memo->sp) == start->sp && load(&memo->ip) == start->ip &&
           load_half(&memo->age) == unwind_rules_open() &&
           ((load_half(&memo->shape) & USES_BP) == 0 || load(&memo->bp) == start->bp);
}

/* Acquire: what was read before was written before this turn. */
static bool is_turn(const struct memo *memo, uint64_t turn)
{
    atomic_thread_fence(memory_order_acquire);
    return load(&memo->turn) == turn;
}

/*
 * In the walk's own order, and no place of another turn's: each word is one that
 * the walk would read as well, now that those before it are what they were. Some
 * at a time, after one look at the turn.
 */
static bool stack_is_alike(const struct memo *memo, uint64_t turn, uint64_t sp)
{
    struct unwind_stack stack;
    unwind_stack_open(&stack, sp);
    uint32_t slots = load_half(&memo->slots);
    if (load_half(&memo->reach) > (stack.end - sp) / WORD_BYTES) {
        return false;
    }
    for (uint32_t i = 0; i < slots && i < SLOTS_MAX; i += SLOTS_AT_ONCE) {
        uint64_t word[SLOTS_AT_ONCE];
        uint64_t place[SLOTS_AT_ONCE];
#pragma GCC unroll 4
        for (uint32_t j = 0; j < SLOTS_AT_ONCE; j++) {
            word[j] = load(&memo->word[i + j]);
            place[j] = load_half(&memo->place[i + j]);
        }
        if (!is_turn(memo, turn)) {
            return false;
        }
#pragma GCC unroll 4
        for (uint32_t j = 0; j < SLOTS_AT_ONCE; j++) {
            if (unwind_word_above(sp, place[j]) != word[j]) {
                return false;
            }
        }
    }
    return true;
}

bool unwind_recall(const struct unwind_start *start, uint64_t hint, struct unwind_known *known)
{
    struct memo *memo = memo_of(start, hint);
    /* Acquire: pairs with the release at the end of write_memo. */
    uint64_t turn = atomic_load_explicit(&memo->turn, memory_order_acquire);
    if (turn % 2 != 0 || !begins_alike(memo, start) || unwind_chosen() != UNWIND_BY_TABLES ||
        !stack_is_alike(memo, turn, start->sp)) {
        return false;
    }
    uint32_t shape = load_half(&memo->shape) & ~USES_BP;
    known->sum[0] = load(&memo->sum[0]);
    known->sum[1] = load(&memo->sum[1]);
    known->count = shape & ((1U << NOTE_SHIFT) - 1);
    known->note = (enum vs_stack_note)(shape >> NOTE_SHIFT);
    known->tag = turn << UNWIND_MEMO_BITS | (uint64_t)(memo - memos);
    if (load_half(&memo->missed) != 0) {
        atomic_store_explicit(&memo->missed, 0, memory_order_relaxed);
    }
    return is_turn(memo, turn);
}

/* ---- remembering -------------------------------------------------------------------- */

/* A walk on its way, and the words that it depends on. */
struct draft {
    uint64_t ip, sp, bp;
    uint64_t begin, end; /* of the readable stack from the first sp on */
    uint64_t bp_at;      /* where rbp came from, if nothing depended on it yet; 0: not from there */
    bool bp_is_first;    /* rbp is still that of the beginning */
    bool uses_bp;
    uint32_t slots, reach;
    uint64_t word[SLOTS_MAX];
    uint32_t place[SLOTS_MAX];
};

/* The walk depends on the word at `address`. False: it cannot be kept. */
static bool depend_on(struct draft *draft, uint64_t address, uint64_t *word)
{
    uint64_t bytes = address - draft->begin;
    if (bytes % WORD_BYTES != 0 || bytes / WORD_BYTES >= PLACES ||
        draft->end - draft->begin < bytes + WORD_BYTES || draft->slots == SLOTS_MAX) {
        return false;
    }
    uint32_t place = (uint32_t)(bytes / WORD_BYTES);
    *word = unwind_word(address);
    draft->reach = draft->reach > place ? draft->reach : place + 1;
    draft->place[draft->slots] = place;
    draft->word[draft->slots++] = *word;
    return true;
}

static bool depend_on_bp(struct draft *draft)
{
    draft->uses_bp |= draft->bp_is_first;
    if (draft->bp_at == 0) {
        return true;
    }
    uint64_t at = draft->bp_at;
    draft->bp_at = 0;
    return depend_on(draft, at, &draft->bp);
}

static bool leave_commonly(struct draft *draft, uint64_t rule)
{
    bool from_bp = (rule & UNWIND_RULE_FROM_RBP) != 0;
    /* An rbp below sp: what it names is no part of this walk, and may not be readable. */
    if (from_bp && (!depend_on_bp(draft) || draft->bp < draft->sp)) {
        return false;
    }
    uint64_t address = (from_bp ? draft->bp : draft->sp) + unwind_rule_distance(rule);
    uint64_t slot = unwind_rule_slot(rule);
    if (address <= draft->sp || address > draft->end ||
        !depend_on(draft, address - WORD_BYTES, &draft->ip)) {
        return false;
    }
    if (slot != UNWIND_RULE_SLOT_SAME) {
        draft->bp_at = address - slot;
        draft->bp = unwind_word(draft->bp_at);
        draft->bp_is_first = false;
    }
    draft->sp = address;
    return true;
}

/* Its address is in a word below rbp; the caller's rbp where rbp points to. */
static bool leave_aligned(struct draft *draft, uint64_t rule)
{
    uint64_t address;
    if (!depend_on_bp(draft) || draft->bp < draft->sp ||
        !depend_on(draft, draft->bp - unwind_rule_distance(rule), &address) ||
        address <= draft->bp || !depend_on(draft, draft->bp, &draft->bp) ||
        !depend_on(draft, address - WORD_BYTES, &draft->ip)) {
        return false;
    }
    draft->bp_is_first = false;
    draft->sp = address;
    return true;
}

static bool leave(struct draft *draft, uint64_t rule)
{
    if ((rule & UNWIND_RULE_UNCOMMON) == 0) {
        return leave_commonly(draft, rule);
    }
    return unwind_rule_kind(rule) == UNWIND_RULE_ALIGNED && leave_aligned(draft, rule);
}

/* Goes the way of the walk that gave `words`. False: it depends on more than can be kept. */
static bool follow_words(struct draft *draft, uint32_t age, const uint64_t *words,
                         const struct unwind_known *known)
{
    uint32_t told = 0;
    for (;;) {
        uint32_t place;
        uint64_t rule = unwind_rule_find(age, draft->ip, &place);
        if ((rule & UNWIND_RULE_OURS) == 0) {
            if (told == known->count) {
                return known->note == VS_STACK_NOTE_NATIVE_CUT;
            }
            if (words[told++] != draft->ip) {
                return false;
            }
        }
        if ((rule & UNWIND_RULE_UNCOMMON) != 0 && unwind_rule_kind(rule) == UNWIND_RULE_LAST) {
            return told == known->count && known->note == VS_STACK_NOTE_NONE;
        }
        if (!leave(draft, rule)) {
            return false;
        }
    }
}

static void store(_Atomic uint64_t *place, uint64_t value)
{
    atomic_store_explicit(place, value, memory_order_relaxed);
}

static void store_half(_Atomic uint32_t *place, uint32_t value)
{
    atomic_store_explicit(place, value, memory_order_relaxed);
}

static void write_memo(struct memo *memo, uint32_t age, const struct unwind_start *start,
                       const struct draft *draft, const struct unwind_known *known)
{
    uint64_t turn = load(&memo->turn);
    if (turn % 2 != 0 ||
        !atomic_compare_exchange_strong_explicit(&memo->turn, &turn, turn + 1, memory_order_acq_rel,
                                                 memory_order_relaxed)) {
        return;
    }
    /* Release: who sees something written sees the turn that came before it. */
    atomic_thread_fence(memory_order_release);
    store(&memo->ip, start->ip);
    store(&memo->sp, start->sp);
    store(&memo->bp, start->bp);
    store(&memo->sum[0], known->sum[0]);
    store(&memo->sum[1], known->sum[1]);
    store_half(&memo->age, age);
    store_half(&memo->shape,
               known->count | (uint32_t)known->note << NOTE_SHIFT | (draft->uses_bp ? USES_BP : 0));
    store_half(&memo->slots, draft->slots);
    store_half(&memo->reach, draft->reach);
    store_half(&memo->missed, 0);
    for (uint32_t i = 0; i < draft->slots || i % SLOTS_AT_ONCE != 0; i++) {
        /* Filled up with the last one, which is there once more. */
        uint32_t from = i < draft->slots ? i : draft->slots - 1;
        store(&memo->word[i], draft->word[from]);
        store_half(&memo->place[i], draft->place[from]);
    }
    atomic_store_explicit(&memo->turn, turn + 2, memory_order_release); /* unwind_recall */
}

void unwind_remember(const struct unwind_start *start, uint64_t hint, const uint64_t *words,
                     const struct unwind_known *known)
{
    struct memo *memo = memo_of(start, hint);
    uint32_t age = unwind_rules_open();
    if (unwind_chosen() != UNWIND_BY_TABLES || known->note == VS_STACK_NOTE_NATIVE_STOPPED) {
        return;
    }
    /* Stacks that take turns at one memo would write it each time: one may stay for a while. */
    if (load_half(&memo->age) == age &&
        atomic_fetch_add_explicit(&memo->missed, 1, memory_order_relaxed) == 0) {
        return;
    }
    struct unwind_stack stack;
    unwind_stack_open(&stack, start->sp);
    struct draft draft = {.ip = start->ip,
                          .sp = start->sp,
                          .bp = start->bp,
                          .begin = start->sp,
                          .end = stack.end,
                          .bp_is_first = true};
    if (follow_words(&draft, age, words, known)) {
        write_memo(memo, age, start, &draft, known);
    }
}

#else

bool unwind_recall(const struct unwind_start *start, uint64_t hint, struct unwind_known *known)
{
    (void)start;
    (void)hint;
    (void)known;
    return false;
}

void unwind_remember(const struct unwind_start *start, uint64_t hint, const uint64_t *words,
                     const struct unwind_known *known)
{
    (void)start;
    (void)hint;
    (void)words;
    (void)known;
}

#endif
