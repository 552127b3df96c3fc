/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native frames of the calling thread. The walk begins at its own frame, whose
 * registers it reads, and leaves each frame as the unwind tables say, or as the
 * frame pointer says where that was proved to be the same (unwind_choice.h).
 * Frames in this library are left like any other and not told.
 *
 * Common rules come from a cache (unwind_rules.h) and need rip, rsp and rbp
 * only. What is left takes the slow way, one frame at a time; should it need a
 * register that the fast way lost, the walk begins again with all of them.
 *
 * Tables are read only where an object of the module map lies. An object with a
 * frame on a thread's stack stays loaded as long as the program is right; for
 * one that is wrong, or that went away without a call we see, the tables are
 * asked about before they are read for the first time, and rules that are kept
 * need no tables.
 *
 * Other architectures than x86-64: no native frames.
 */
#include "stacks.h"

#if defined(__x86_64__)

#include <errno.h>
#include <stddef.h>

#include "shim.h"
#include "unwind_choice.h"
#include "unwind_rules.h"

#define WORD_BYTES 8U
#define OWN_FRAMES_MAX 64U /* ours and those of a confused stack, beyond those asked for */
#define CODE_FIRST 4096U   /* no code lies below */
#define PROGRAM_END ((1ULL << UNWIND_ADDRESS_BITS) - CODE_FIRST)
#define CHAIN_HOPS_MAX 16U
#define FRAME_BYTES_MAX (1ULL << 40)
#define TIMED_WALKS 8U

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

enum outcome { GOES_ON, ENDED, STOPPED, CUT, BEGIN_AGAIN };

struct frame {
    uint64_t ip, sp, bp;
};

struct walk {
    uint64_t *words;
    unsigned max, count;
    unsigned steps; /* left: bounds a walk around in circles */
    bool exact;     /* the frame's instruction was interrupted: it is no return address */
    bool full;      /* keep all registers */
    bool judged;    /* each frame is compared with what a frame pointer says */
    uint32_t age;   /* of unwind_rules */
    struct unwind_stack stack;
    struct unwind_verdict verdict;
    struct unwind_registers start;
    struct unwind_registers registers; /* of the latest frame that took the slow way */
};

/* Where a frame's code lies and what the tables say about it. */
struct layout {
    struct unwind_entry entry;
    struct unwind_row row;
};

/* ---- what every step needs --------------------------------------------------------- */

static inline bool is_ours(uint64_t ip)
{
    return ip - (uint64_t)(uintptr_t)__ehdr_start <
           (uint64_t)(uintptr_t)_end - (uint64_t)(uintptr_t)__ehdr_start;
}

/* False when there is no room for it. */
static inline bool tell(struct walk *walk, uint64_t ip)
{
    if (!is_ours(ip)) {
        if (walk->count == walk->max) {
            return false;
        }
        walk->words[walk->count++] = ip | (walk->exact ? VS_FRAME_EXACT : 0);
    }
    return true;
}

static __attribute__((noinline)) bool reach(struct walk *walk, uint64_t address)
{
    return unwind_stack_reach(&walk->stack, address - 1, 1);
}

/*
 * Leaves a frame by a common rule. False: it leads nowhere, nothing was done.
 * All that is read lies between sp, which is on the stack, and the frame's
 * address.
 */
static inline bool step(struct walk *walk, uint64_t rule, uint64_t *ip, uint64_t *sp, uint64_t *bp,
                        uint64_t *room)
{
    uint64_t above = ((rule & UNWIND_RULE_FROM_RBP) != 0 ? *bp : *sp) - *sp;
    uint64_t size = above + unwind_rule_distance(rule);
    if (__builtin_expect(above > *room || size > *room, 0)) {
        if (size < above || above > FRAME_BYTES_MAX || !reach(walk, *sp + size)) {
            return false;
        }
        *room = walk->stack.end - *sp;
    }
    uint64_t address = *sp + size;
    uint64_t slot = unwind_word(address - unwind_rule_slot(rule));
    *ip = unwind_word(address - WORD_BYTES);
    *bp = unwind_rule_slot(rule) == UNWIND_RULE_SLOT_SAME ? *bp : slot;
    *sp = address;
    *room -= size;
    return true;
}

/* ---- the slow way ------------------------------------------------------------------ */

/*
 * -ENOENT: the address lies in no object; -ESRCH: in one whose tables do not
 * speak of it, or not sensibly. `doubt`: the object may be gone.
 */
static int look_up(uint64_t address, bool doubt, struct layout *layout)
{
    struct modules_tables tables;
    const void *place = (const void *)(uintptr_t)address;
    if (!modules_tables(place, &tables) &&
        (!modules_refresh_if_stale(true) || !modules_tables(place, &tables))) {
        return -ENOENT;
    }
    if (doubt && tables.header != 0 &&
        !(unwind_is_readable(tables.header, WORD_BYTES) &&
          unwind_is_readable(tables.frames_start, WORD_BYTES))) {
        return -ENOENT;
    }
    return tables.header != 0 && unwind_tables_find(&tables, address, &layout->entry) == 0 &&
                   unwind_row_at(&layout->entry, address, &layout->row) == 0
               ? 0
               : -ESRCH;
}

/* The rule for a return address in an object; NONE when it lies in none. */
static uint64_t work_out(const struct walk *walk, uint64_t address)
{
    struct layout layout;
    int error = look_up(address - 1, true, &layout);
    if (error == -ENOENT) {
        return unwind_rule_uncommon(UNWIND_RULE_NONE);
    }
    uint32_t rule = error == 0 ? unwind_rule_make(&layout.entry, &layout.row)
                               : unwind_rule_uncommon(UNWIND_RULE_ABSENT);
    rule |= is_ours(address - 1) ? UNWIND_RULE_OURS : 0;
    unwind_rule_keep(walk->age, address, rule);
    return rule;
}

static uint64_t rule_for(const struct walk *walk, uint64_t address)
{
    uint32_t place;
    uint64_t rule = unwind_rule_find(walk->age, address, &place);
    return (rule & UNWIND_RULE_UNCOMMON) == 0 || unwind_rule_kind(rule) != UNWIND_RULE_NONE
               ? rule
               : work_out(walk, address);
}

/* The slow way's registers are the frame's, or only the three that the fast way
 * keeps. */
static void take_registers(struct walk *walk, const struct frame *frame)
{
    struct unwind_registers *registers = &walk->registers;
    if (registers->value[UNWIND_RIP] == frame->ip && registers->value[UNWIND_RSP] == frame->sp &&
        registers->known != 0) {
        return;
    }
    registers->known = 1U << UNWIND_RIP | 1U << UNWIND_RSP | 1U << UNWIND_RBP;
    registers->value[UNWIND_RIP] = frame->ip;
    registers->value[UNWIND_RSP] = frame->sp;
    registers->value[UNWIND_RBP] = frame->bp;
}

/*
 * A step that goes up the same stack, or to another one: where a signal came in
 * on a stack of its own, or code changes stacks and says so in an expression.
 */
static bool arrive(struct walk *walk, const struct layout *layout, struct frame *frame)
{
    const struct unwind_registers *registers = &walk->registers;
    uint64_t sp = registers->value[UNWIND_RSP];
    bool may_switch = layout->entry.signal || layout->row.frame_is_result;
    if (sp <= frame->sp && !may_switch) {
        return false;
    }
    if ((sp < walk->stack.start || sp > walk->stack.end) && may_switch &&
        !unwind_stack_switch(&walk->stack, sp)) {
        return false;
    }
    walk->exact = layout->entry.signal;
    frame->ip = registers->value[UNWIND_RIP];
    frame->sp = sp;
    /* Not known is as good as wrong: it is read only after a look at where it
     * points. */
    frame->bp = (registers->known & 1U << UNWIND_RBP) != 0 ? registers->value[UNWIND_RBP] : 0;
    return true;
}

static enum outcome step_by_row(struct walk *walk, struct frame *frame)
{
    struct layout layout;
    if (look_up(frame->ip - !walk->exact, false, &layout) != 0) {
        return STOPPED;
    }
    if (layout.row.where[UNWIND_RIP] == UNWIND_UNDEFINED) {
        return ENDED;
    }
    take_registers(walk, frame);
    int error = unwind_row_apply(&layout.entry, &layout.row, &walk->registers, &walk->stack);
    if (error == -ENODATA && !walk->full) {
        return BEGIN_AGAIN;
    }
    return error == 0 && arrive(walk, &layout, frame) ? GOES_ON : STOPPED;
}

static enum outcome step_aligned(struct walk *walk, uint64_t rule, struct frame *frame)
{
    uint64_t address;
    if (frame->bp < frame->sp ||
        !unwind_read(&walk->stack, frame->bp - unwind_rule_distance(rule), &address) ||
        address <= frame->bp || !unwind_stack_reach(&walk->stack, frame->bp, WORD_BYTES) ||
        !unwind_stack_reach(&walk->stack, address - WORD_BYTES, WORD_BYTES)) {
        return STOPPED;
    }
    frame->bp = unwind_word(frame->bp);
    frame->ip = unwind_word(address - WORD_BYTES);
    frame->sp = address;
    walk->exact = false;
    return GOES_ON;
}

static bool in_an_object(uint64_t address)
{
    struct modules_tables tables;
    return modules_tables((const void *)(uintptr_t)address, &tables);
}

/*
 * Code without tables, made while the program runs for example: its frame
 * pointer is believed when the chain goes up this stack and leads into an
 * object.
 */
static enum outcome step_by_chain(struct walk *walk, struct frame *frame)
{
    uint64_t at = frame->bp;
    uint64_t above = frame->sp;
    for (unsigned hop = 0; hop < CHAIN_HOPS_MAX; hop++) {
        if (at < above || at % WORD_BYTES != 0 ||
            !unwind_stack_reach(&walk->stack, at, 2 * WORD_BYTES)) {
            return STOPPED;
        }
        uint64_t ip = unwind_word(at + WORD_BYTES);
        if (ip < CODE_FIRST || ip >> UNWIND_ADDRESS_BITS != 0) {
            return STOPPED;
        }
        if (in_an_object(ip - 1)) {
            frame->ip = unwind_word(frame->bp + WORD_BYTES);
            frame->sp = frame->bp + 2 * WORD_BYTES;
            frame->bp = unwind_word(frame->bp);
            walk->exact = false;
            return GOES_ON;
        }
        above = at + 2 * WORD_BYTES;
        at = unwind_word(at);
    }
    return STOPPED;
}

static enum outcome step_commonly(struct walk *walk, uint64_t rule, struct frame *frame)
{
    uint64_t room = walk->stack.end - frame->sp;
    walk->exact = false;
    return step(walk, rule, &frame->ip, &frame->sp, &frame->bp, &room) ? GOES_ON : STOPPED;
}

static enum outcome step_uncommonly(struct walk *walk, uint64_t rule, struct frame *frame)
{
    switch (unwind_rule_kind(rule)) {
    case UNWIND_RULE_LAST:
        return ENDED;
    case UNWIND_RULE_ALIGNED:
        return walk->full ? step_by_row(walk, frame) : step_aligned(walk, rule, frame);
    case UNWIND_RULE_OTHER:
        return step_by_row(walk, frame);
    default:
        return step_by_chain(walk, frame);
    }
}

static enum outcome step_slowly(struct walk *walk, uint64_t rule, struct frame *frame)
{
    if ((rule & UNWIND_RULE_UNCOMMON) != 0) {
        return step_uncommonly(walk, rule, frame);
    }
    return walk->full ? step_by_row(walk, frame) : step_commonly(walk, rule, frame);
}

/* Whether a frame pointer leads out of this frame as the rule does, or need not. */

static void judge(struct walk *walk, uint64_t rule, uint64_t ip)
{
    struct unwind_plain plain;
    if (walk->exact || is_ours(ip)) {
        return;
    }
    bool last = (rule & UNWIND_RULE_UNCOMMON) != 0 && unwind_rule_kind(rule) == UNWIND_RULE_LAST;
    unwind_copy_plain(&plain);
    if (unwind_is_plain(&plain, ip)) {
        walk->verdict.by_tables++;
    } else if ((uint32_t)rule == UNWIND_RULE_FRAME_POINTER) {
        walk->verdict.by_chain++;
    } else if (!last) { /* a chain that goes on from the last frame is another
                           stack */
        walk->verdict.by_tables++;
        unwind_note_plain(ip - 1);
    }
}

/* One frame, told and left, whatever it is. */
static __attribute__((noinline)) enum outcome pass_slowly(struct walk *walk, struct frame *frame)
{
    uint64_t ip = frame->ip;
    if (ip == 0) {
        return ENDED;
    }
    if (ip < CODE_FIRST || ip >> UNWIND_ADDRESS_BITS != 0 || walk->steps-- == 0) {
        return STOPPED;
    }
    uint64_t rule = rule_for(walk, ip + walk->exact);
    if (walk->judged) {
        judge(walk, rule, ip);
    }
    return tell(walk, ip) ? step_slowly(walk, rule, frame) : CUT;
}

/* ---- walks
 * --------------------------------------------------------------------------------
 */

/* Frames that were interrupted are left slowly too. */
static __attribute__((noinline)) enum outcome pass(struct walk *walk, struct frame *frame)
{
    enum outcome outcome;
    do {
        outcome = pass_slowly(walk, frame);
    } while (outcome == GOES_ON && walk->exact);
    return outcome;
}

static __attribute__((noinline)) enum outcome walk_slowly(struct walk *walk, struct frame frame)
{
    enum outcome outcome;
    do {
        outcome = pass_slowly(walk, &frame);
    } while (outcome == GOES_ON);
    return outcome;
}

/* The words of a walk, in the processor's registers. */
struct pen {
    uint64_t *next;
    uint64_t *end;
};

static inline struct pen take_up(const struct walk *walk)
{
    return (struct pen){walk->words + walk->count, walk->words + walk->max};
}

static inline enum outcome lay_down(struct walk *walk, struct pen pen, enum outcome outcome)
{
    walk->count = (unsigned)(pen.next - walk->words);
    return outcome;
}

/*
 * Each rule is read where its callee's was last called from. Only when that is
 * not this frame's, its place is worked out from the address.
 */
static enum outcome walk_by_tables(struct walk *walk, uint64_t ip, uint64_t sp, uint64_t bp)
{
    struct pen pen = take_up(walk);
    uint64_t room = walk->stack.end - sp;
    uint32_t age = walk->age;
    _Atomic uint32_t nobody;
    _Atomic uint32_t *callee = &nobody;
    uint32_t place = unwind_rule_place(ip);
    for (;;) {
        uint64_t rule = unwind_rule_at(place);
        if (__builtin_expect(!unwind_rule_is(rule, place, age, ip), 0)) {
            rule = unwind_rule_find(age, ip, &place);
            atomic_store_explicit(callee, place, memory_order_relaxed);
        }
        if (__builtin_expect((rule & UNWIND_RULE_UNCOMMON) == 0, 1)) {
            if ((rule & UNWIND_RULE_OURS) == 0) {
                if (pen.next == pen.end) {
                    return lay_down(walk, pen, CUT);
                }
                *pen.next++ = ip;
            }
            if (!step(walk, rule, &ip, &sp, &bp, &room)) {
                return lay_down(walk, pen, STOPPED);
            }
            callee = &unwind_rules.kept[place].caller;
            place = atomic_load_explicit(callee, memory_order_relaxed);
            continue;
        }
        struct frame frame = {ip, sp, bp};
        lay_down(walk, pen, GOES_ON);
        enum outcome outcome = pass(walk, &frame);
        if (outcome != GOES_ON) {
            return outcome;
        }
        pen = take_up(walk);
        ip = frame.ip;
        sp = frame.sp;
        bp = frame.bp;
        room = walk->stack.end - sp;
        callee = &nobody;
        place = unwind_rule_place(ip);
    }
}

/* Frame pointers as far as they lead: to one of our frames, a plain object, or
 * nowhere. */
static inline bool follow(const struct unwind_plain *plain, struct pen *pen, struct frame *frame,
                          uint64_t *room)
{
    uint64_t ip = frame->ip;
    uint64_t sp = frame->sp;
    uint64_t bp = frame->bp;
    uint64_t end = sp + *room;
    uint64_t last = end - 2 * WORD_BYTES;
    while (!is_ours(ip) && !unwind_is_plain(plain, ip) && ip - CODE_FIRST < PROGRAM_END &&
           bp - sp <= last - sp && bp % WORD_BYTES == 0) {
        if (pen->next == pen->end) {
            return false;
        }
        *pen->next++ = ip;
        ip = unwind_word(bp + WORD_BYTES);
        sp = bp + 2 * WORD_BYTES;
        bp = unwind_word(bp);
    }
    *frame = (struct frame){ip, sp, bp};
    *room = end - sp;
    return true;
}

static enum outcome walk_by_chain(struct walk *walk, uint64_t ip, uint64_t sp, uint64_t bp)
{
    struct unwind_plain plain;
    struct pen pen = take_up(walk);
    struct frame frame = {ip, sp, bp};
    uint64_t room = walk->stack.end - sp;
    unwind_copy_plain(&plain);
    for (;;) {
        if (room >= 2 * WORD_BYTES && !follow(&plain, &pen, &frame, &room)) {
            return lay_down(walk, pen, CUT);
        }
        uint32_t place;
        uint64_t rule = unwind_rule_find(walk->age, frame.ip, &place);
        if ((rule & UNWIND_RULE_UNCOMMON) == 0) {
            if ((rule & UNWIND_RULE_OURS) == 0) {
                if (pen.next == pen.end) {
                    return lay_down(walk, pen, CUT);
                }
                *pen.next++ = frame.ip;
            }
            if (!step(walk, rule, &frame.ip, &frame.sp, &frame.bp, &room)) {
                return lay_down(walk, pen, STOPPED);
            }
            continue;
        }
        lay_down(walk, pen, GOES_ON);
        enum outcome outcome = pass(walk, &frame);
        if (outcome != GOES_ON) {
            return outcome;
        }
        pen = take_up(walk);
        room = walk->stack.end - frame.sp;
    }
}

/* ---- entry points ------------------------------------------------------------------ */

static inline void begin(struct walk *walk, uint64_t *words, unsigned max)
{
    walk->words = words;
    walk->max = max;
    walk->count = 0;
    walk->steps = max + OWN_FRAMES_MAX;
    walk->exact = false;
    walk->full = false;
    walk->judged = false;
    walk->age = unwind_rules_open();
    walk->registers.known = 0;
    unwind_stack_open(&walk->stack, walk->start.value[UNWIND_RSP]);
}

static struct frame first_frame(const struct walk *walk)
{
    const uint64_t *value = walk->start.value;
    return (struct frame){
        .ip = value[UNWIND_RIP], .sp = value[UNWIND_RSP], .bp = value[UNWIND_RBP]};
}

static __attribute__((noinline)) enum outcome walk_in_full(struct walk *walk)
{
    bool judged = walk->judged;
    begin(walk, walk->words, walk->max);
    walk->judged = judged;
    walk->full = true;
    walk->registers = walk->start;
    return walk_slowly(walk, first_frame(walk));
}

static inline unsigned finish(struct walk *walk, enum outcome outcome, enum vs_stack_note *note)
{
    if (__builtin_expect(outcome == BEGIN_AGAIN, 0)) {
        outcome = walk_in_full(walk);
    }
    *note = outcome == CUT     ? VS_STACK_NOTE_NATIVE_CUT
            : outcome == ENDED ? VS_STACK_NOTE_NONE
                               : VS_STACK_NOTE_NATIVE_STOPPED;
    return walk->count;
}

typedef enum outcome walker(struct walk *, uint64_t ip, uint64_t sp, uint64_t bp);

/* The shortest of a few walks, all of which write the same words. */
static uint64_t time_of(walker *way, struct walk *walk)
{
    const uint64_t *value = walk->start.value;
    uint64_t shortest = UINT64_MAX;
    for (unsigned i = 0; i < TIMED_WALKS; i++) {
        begin(walk, walk->words, walk->max);
        uint64_t before = shim_now_ns();
        (void)way(walk, value[UNWIND_RIP], value[UNWIND_RSP], value[UNWIND_RBP]);
        uint64_t taken = shim_now_ns() - before;
        shortest = taken < shortest ? taken : shortest;
    }
    return shortest;
}

static __attribute__((noinline)) enum outcome walk_judged(struct walk *walk)
{
    walk->judged = true;
    walk->verdict = (struct unwind_verdict){0, 0};
    enum outcome outcome = walk_slowly(walk, first_frame(walk));
    if (unwind_chosen() == UNWIND_TRIAL && outcome != BEGIN_AGAIN && unwind_weigh(&walk->verdict)) {
        uint64_t by_tables = time_of(walk_by_tables, walk);
        unwind_choose(time_of(walk_by_chain, walk) < by_tables);
    }
    return outcome;
}

static __attribute__((noinline)) unsigned walk_stack(struct walk *walk, enum vs_stack_note *note)
{
    const uint64_t *value = walk->start.value;
    switch (unwind_chosen()) {
    case UNWIND_TRIAL:
        return finish(walk, walk_judged(walk), note);
    case UNWIND_BY_CHAIN:
        return finish(walk,
                      walk_by_chain(walk, value[UNWIND_RIP], value[UNWIND_RSP], value[UNWIND_RBP]),
                      note);
    default:
        return finish(walk,
                      walk_by_tables(walk, value[UNWIND_RIP], value[UNWIND_RSP], value[UNWIND_RBP]),
                      note);
    }
}

static __attribute__((noinline)) unsigned walk_and_prove(struct walk *walk,
                                                         enum vs_stack_note *note)
{
    const uint64_t *value = walk->start.value;
    return finish(
        walk,
        unwind_chosen() == UNWIND_BY_TABLES
            ? walk_by_tables(walk, value[UNWIND_RIP], value[UNWIND_RSP], value[UNWIND_RBP])
            : walk_judged(walk),
        note);
}

struct holders {
    uint64_t *words;
    const uint64_t *places;
    unsigned place_count, next;
};

/* The word's frame lies between these, unless a step led to another stack. */
static void mark_holder(struct holders *holders, uint64_t *word, uint64_t inner, uint64_t outer)
{
    for (unsigned i = holders->next; outer > inner && i < holders->place_count; i++) {
        if (holders->places[i] - inner < outer - inner) {
            *word |= VS_FRAME_LOOP;
            holders->next = i + 1;
            return;
        }
    }
}

static enum outcome walk_and_mark(struct walk *walk, struct holders *holders)
{
    struct frame frame = first_frame(walk);
    enum outcome outcome;
    do {
        unsigned told = walk->count;
        uint64_t inner = frame.sp;
        outcome = pass_slowly(walk, &frame);
        if (outcome == GOES_ON && walk->count > told &&
            walk->words[told] == (holders->words[told] & ~VS_FRAME_LOOP)) {
            mark_holder(holders, &holders->words[told], inner, frame.sp);
        }
    } while (outcome == GOES_ON && holders->next < holders->place_count);
    return outcome;
}

static __attribute__((noinline)) void walk_to_mark(struct walk *walk, struct holders *holders)
{
    if (walk_and_mark(walk, holders) == BEGIN_AGAIN) {
        begin(walk, walk->words, walk->max);
        walk->full = true;
        walk->registers = walk->start;
        holders->next = 0;
        (void)walk_and_mark(walk, holders);
    }
}

/*
 * The registers of the function it is inlined into, all at one instruction,
 * given as if that were a call. What the function saved on its stack stays
 * there until it returns.
 */
static inline __attribute__((always_inline)) void read_registers(struct unwind_registers *registers)
{
    __asm__ volatile("movq %%rbx, 24(%1)\n\t"
                     "movq %%rbp, 48(%1)\n\t"
                     "movq %%rsp, 56(%1)\n\t"
                     "movq %%r12, 96(%1)\n\t"
                     "movq %%r13, 104(%1)\n\t"
                     "movq %%r14, 112(%1)\n\t"
                     "movq %%r15, 120(%1)\n\t"
                     "leaq 1(%%rip), %%rax\n\t"
                     "movq %%rax, 128(%1)"
                     : "=m"(*registers)
                     : "r"(registers->value)
                     : "rax", "memory");
    registers->known = 1U << UNWIND_RBX | 1U << UNWIND_RBP | 1U << UNWIND_RSP | 1U << 12 |
                       1U << 13 | 1U << 14 | 1U << 15 | 1U << UNWIND_RIP;
}

unsigned unwind_here(uint64_t *words, unsigned max, enum vs_stack_note *note)
{
    struct walk walk;
    read_registers(&walk.start);
    begin(&walk, words, max);
    return walk_stack(&walk, note);
}

unsigned unwind_here_by_tables(uint64_t *words, unsigned max, enum vs_stack_note *note)
{
    struct walk walk;
    read_registers(&walk.start);
    begin(&walk, words, max);
    return walk_and_prove(&walk, note);
}

void unwind_mark_holders(uint64_t *words, unsigned count, const uint64_t *places,
                         unsigned place_count)
{
    uint64_t again[count + 1];
    struct holders holders = {words, places, place_count, 0};
    struct walk walk;
    read_registers(&walk.start);
    begin(&walk, again, count);
    walk_to_mark(&walk, &holders);
}

static _Atomic bool prepared;

enum vs_native_method unwind_method(void)
{
    return !atomic_load_explicit(&prepared, memory_order_relaxed) ? VS_NATIVE_OFF
           : unwind_chosen() == UNWIND_BY_CHAIN                   ? VS_NATIVE_FRAME_POINTERS
                                                                  : VS_NATIVE_TABLES;
}

void unwind_prepare(void)
{
    atomic_store_explicit(&prepared, true, memory_order_relaxed);
}

#else

unsigned unwind_here(uint64_t *words, unsigned max, enum vs_stack_note *note)
{
    (void)words;
    (void)max;
    *note = VS_STACK_NOTE_NONE;
    return 0;
}

unsigned unwind_here_by_tables(uint64_t *words, unsigned max, enum vs_stack_note *note)
{
    return unwind_here(words, max, note);
}

void unwind_mark_holders(uint64_t *words, unsigned count, const uint64_t *places,
                         unsigned place_count)
{
    (void)words;
    (void)count;
    (void)places;
    (void)place_count;
}

enum vs_native_method unwind_method(void)
{
    return VS_NATIVE_OFF;
}

void unwind_prepare(void)
{
}

#endif
