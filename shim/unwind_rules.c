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

struct unwind_rules unwind_rules = {.age = 1}; /* what was never written is of age 0 */

/* ---- the table --------------------------------------------------------------------- */

static void begin_age(uint64_t from, uint32_t generation)
{
    uint32_t age = (uint32_t)from + 1;
    atomic_compare_exchange_strong(&unwind_rules.age, &from,
                                   (uint64_t)generation << 32 | (age != 0 ? age : 1));
}

uint32_t unwind_rules_open(void)
{
    for (;;) {
        uint64_t age = atomic_load_explicit(&unwind_rules.age, memory_order_acquire);
        uint32_t generation = modules_generation();
        if (age >> 32 == generation) {
            return (uint32_t)age;
        }
        begin_age(age, generation);
    }
}

/* False when the place is taken, or another thread was faster. */
static bool write_entry(struct unwind_kept *kept, uint32_t age, uint64_t address, uint32_t rule)
{
    const uint64_t age_in_tag = (uint64_t)age << UNWIND_TAG_BITS;
    uint64_t tag = atomic_load_explicit(&kept->tag, memory_order_relaxed);
    if (atomic_load_explicit(&kept->rule, memory_order_relaxed) >> UNWIND_RULE_BITS == age ||
        (tag >> UNWIND_TAG_BITS == age_in_tag >> UNWIND_TAG_BITS && tag != 0)) {
        return false;
    }
    if (!atomic_compare_exchange_strong(&kept->tag, &tag, address + age_in_tag)) {
        return false;
    }
    /* Release: unwind_rule_at. */
    atomic_store_explicit(&kept->rule, (uint64_t)age << UNWIND_RULE_BITS | rule,
                          memory_order_release);
    return true;
}

void unwind_rule_keep(uint32_t age, uint64_t address, uint32_t rule)
{
    uint32_t place = unwind_rule_place(address);
    uint64_t now = atomic_load_explicit(&unwind_rules.age, memory_order_relaxed);
    for (unsigned i = 0; i < UNWIND_PROBES; i++) {
        if ((uint32_t)now != age || write_entry(&unwind_rules.kept[place], age, address, rule)) {
            return;
        }
        place = (place + 1) % UNWIND_PLACES;
    }
    begin_age(now, (uint32_t)(now >> 32));
}

/* ---- making one -------------------------------------------------------------------- */

/* Bytes in whole words, 0 … `most`; -1 otherwise. */
static int32_t in_words(int32_t bytes, uint32_t most)
{
    return bytes >= 0 && bytes % WORD_BYTES == 0 && bytes <= (int32_t)most ? bytes : -1;
}

uint32_t unwind_rule_uncommon(enum unwind_rule_kind kind)
{
    return UNWIND_RULE_UNCOMMON | (uint32_t)kind << UNWIND_RULE_SLOT_SHIFT;
}

/* How far below the frame's address rbp is, at most `most`; 0 when it cannot be said. */
static uint32_t slot_of(const struct unwind_row *row, uint32_t most)
{
    int32_t slot;
    switch ((enum unwind_where)row->where[UNWIND_RBP]) {
    case UNWIND_UNSPECIFIED:
    case UNWIND_SAME:
        return UNWIND_RULE_SLOT_SAME;
    case UNWIND_AT_OFFSET:
        slot = row->operand[UNWIND_RBP] < 0 ? in_words(-row->operand[UNWIND_RBP], most) : -1;
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
        frame % WORD_BYTES != 0 || -frame > (int64_t)UNWIND_RULE_DISTANCE) {
        return unwind_rule_uncommon(UNWIND_RULE_OTHER);
    }
    return unwind_rule_uncommon(UNWIND_RULE_ALIGNED) | (uint32_t)-frame;
}

uint32_t unwind_rule_make(const struct unwind_entry *entry, const struct unwind_row *row)
{
    enum unwind_where back = (enum unwind_where)row->where[UNWIND_RIP];
    enum unwind_where sp = (enum unwind_where)row->where[UNWIND_RSP];
    uint32_t other = unwind_rule_uncommon(UNWIND_RULE_OTHER);
    if (entry->return_register != UNWIND_RIP || entry->signal) {
        return other;
    }
    if (back == UNWIND_UNDEFINED) {
        return unwind_rule_uncommon(UNWIND_RULE_LAST);
    }
    if (back != UNWIND_AT_OFFSET || row->operand[UNWIND_RIP] != -WORD_BYTES ||
        (sp != UNWIND_UNSPECIFIED && !(sp == UNWIND_OFFSET && row->operand[UNWIND_RSP] == 0))) {
        return other;
    }
    if (row->frame_is_result) {
        return make_aligned(entry, row);
    }
    int32_t distance = in_words(row->frame_operand, UNWIND_RULE_DISTANCE);
    if (distance < WORD_BYTES ||
        (row->frame_register != UNWIND_RSP && row->frame_register != UNWIND_RBP)) {
        return other;
    }
    /* What a frame holds lies above the register that it is reckoned from. */
    uint32_t most = (uint32_t)distance;
    uint32_t slot = slot_of(row, most < UNWIND_RULE_SLOT_MAX ? most : UNWIND_RULE_SLOT_MAX);
    uint32_t from = row->frame_register == UNWIND_RBP ? UNWIND_RULE_FROM_RBP : 0;
    return slot == 0 ? other : from | (uint32_t)distance | slot << UNWIND_RULE_SLOT_SHIFT;
}
