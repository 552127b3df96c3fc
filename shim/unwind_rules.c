/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of rules, and which rows of the unwind tables fit into it: the frames
 * of almost all compiled code, with and without frame pointers, and those that a
 * compiler aligned for vector registers.
 */
#include "unwind_rules.h"

#include <stddef.h>

#define WORD_BYTES 8
#define OP_BREG_RBP 0x76U /* DWARF: the register's value plus a number */
#define OP_DEREF 0x06U

struct unwind_rules unwind_rules;

/* ---- the table --------------------------------------------------------------------------- */

/*
 * Words of the generation whose low bits were the same are gone before one of
 * the new age is found. Several threads may do this at a time: what one of them
 * kept meanwhile is only lost.
 */
static void turn(uint32_t from, uint32_t age)
{
    for (uint32_t place = 0; place < 1U << UNWIND_PLACE_BITS; place++) {
        atomic_store_explicit(&unwind_rules.word[place][0], 0, memory_order_relaxed);
        atomic_store_explicit(&unwind_rules.word[place][1], 0, memory_order_relaxed);
    }
    /* Release: who sees the age sees the empty table. */
    atomic_compare_exchange_strong_explicit(&unwind_rules.age, &from, age, memory_order_release,
                                            memory_order_relaxed);
}

uint64_t unwind_rules_open(void)
{
    for (;;) {
        uint32_t age = atomic_load_explicit(&unwind_rules.age, memory_order_acquire);
        uint32_t generation = modules_generation();
        if (generation >> UNWIND_GENERATION_BITS == age) {
            return (uint64_t)(generation & ((1U << UNWIND_GENERATION_BITS) - 1))
                   << UNWIND_RULE_BITS;
        }
        turn(age, generation >> UNWIND_GENERATION_BITS);
    }
}

void unwind_rule_keep(uint64_t opened, uint64_t address, uint32_t rule)
{
    if (address >> UNWIND_ADDRESS_BITS != 0) {
        return;
    }
    _Atomic uint64_t *words = unwind_rules.word[unwind_rule_place(address)];
    uint64_t latest = atomic_load_explicit(&words[0], memory_order_relaxed);
    atomic_store_explicit(&words[1], latest, memory_order_relaxed);
    atomic_store_explicit(&words[0], unwind_rule_key(opened, address) | rule, memory_order_relaxed);
}

/* ---- making one ------------------------------------------------------------------------------ */

static uint32_t pack(enum unwind_rule_kind kind, uint32_t distance, uint32_t slot)
{
    return kind | distance << UNWIND_RULE_DISTANCE_SHIFT | slot << UNWIND_RULE_SLOT_SHIFT;
}

/* Whole words in 0 … `most`; -1 otherwise. */
static int32_t words_of(int32_t bytes, int32_t most)
{
    return bytes >= 0 && bytes % WORD_BYTES == 0 && bytes / WORD_BYTES <= most ? bytes / WORD_BYTES
                                                                               : -1;
}

/* How far below the frame's address rbp is; 0 when it cannot be said. */
static uint32_t slot_of(const struct unwind_row *row)
{
    int32_t slot;
    switch ((enum unwind_where)row->where[UNWIND_RBP]) {
    case UNWIND_UNSPECIFIED:
    case UNWIND_SAME:
        return UNWIND_RULE_SLOT_SAME;
    case UNWIND_AT_OFFSET:
        slot = row->operand[UNWIND_RBP] < 0
                   ? words_of(-row->operand[UNWIND_RBP], UNWIND_RULE_SLOT_MAX)
                   : -1;
        return slot > (int32_t)UNWIND_RULE_SLOT_SAME ? (uint32_t)slot : 0;
    default:
        return 0;
    }
}

/* The expression at `place` is rbp + *offset, and with `deref` the word there. */
static bool is_rbp(const struct unwind_entry *entry, int32_t place, bool deref, int64_t *offset)
{
    struct unwind_bytes code = {.at = entry->segment + place, .end = entry->segment_end};
    uint64_t length = unwind_take_uleb(&code);
    if (code.bad || length > unwind_left(&code)) {
        return false;
    }
    code.end = code.at + length;
    bool rbp = unwind_take(&code, 1) == OP_BREG_RBP;
    *offset = unwind_take_sleb(&code);
    bool read = !deref || unwind_take(&code, 1) == OP_DEREF;
    return rbp && read && !code.bad && unwind_left(&code) == 0;
}

/* A frame realigned at its beginning: its address was put into it, rbp points to the old rbp. */
static uint32_t make_aligned(const struct unwind_entry *entry, const struct unwind_row *row)
{
    int64_t frame;
    int64_t rbp;
    if (row->where[UNWIND_RBP] != UNWIND_AT_RESULT ||
        !is_rbp(entry, row->frame_operand, true, &frame) ||
        !is_rbp(entry, row->operand[UNWIND_RBP], false, &rbp) || rbp != 0 || frame >= 0 ||
        frame % WORD_BYTES != 0 || frame < -WORD_BYTES * (int64_t)UNWIND_RULE_DISTANCE_MAX) {
        return UNWIND_RULE_OTHER;
    }
    return pack(UNWIND_RULE_ALIGNED, (uint32_t)(-frame / WORD_BYTES), 0);
}

uint32_t unwind_rule_make(const struct unwind_entry *entry, const struct unwind_row *row)
{
    enum unwind_where back = (enum unwind_where)row->where[UNWIND_RIP];
    enum unwind_where sp = (enum unwind_where)row->where[UNWIND_RSP];
    if (entry->return_register != UNWIND_RIP || entry->signal) {
        return UNWIND_RULE_OTHER;
    }
    if (back == UNWIND_UNDEFINED) {
        return UNWIND_RULE_LAST;
    }
    if (back != UNWIND_AT_OFFSET || row->operand[UNWIND_RIP] != -WORD_BYTES ||
        (sp != UNWIND_UNSPECIFIED && !(sp == UNWIND_OFFSET && row->operand[UNWIND_RSP] == 0))) {
        return UNWIND_RULE_OTHER;
    }
    if (row->frame_is_result) {
        return make_aligned(entry, row);
    }
    int32_t distance = words_of(row->frame_operand, UNWIND_RULE_DISTANCE_MAX);
    uint32_t slot = slot_of(row);
    if (distance < 1 || slot == 0 ||
        (row->frame_register != UNWIND_RSP && row->frame_register != UNWIND_RBP)) {
        return UNWIND_RULE_OTHER;
    }
    return pack(row->frame_register == UNWIND_RSP ? UNWIND_RULE_RSP : UNWIND_RULE_RBP,
                (uint32_t)distance, slot);
}
