/* SPDX-License-Identifier: Apache-2.0 */
/* Remembered walks of Python frames: see python_memo.h. */
#include "python_memo.h"

#include "python_parts.h"

#ifndef PYTHON_MEMO_BITS /* fewer in a test, where all crowd into a few */
#define PYTHON_MEMO_BITS 6U
#endif
#define WAYS 4U       /* memos that one walk may be in */
#define SLOTS_MAX 96U /* frames, and those that only mark where a call begins */
#define LOOKED_AT 4U  /* frames that choose where a memo is */
#define NOTE_SHIFT 16U
#define INDEX_BITS 16U /* of the tag, below the turn; tags below are those of no walk */
#define KIND_MASK 0xffffU
#define HAS_MORE (1U << 31)                          /* in a slot's kind: `more` is part of it */
#define OWNER_SHIFT 8U                               /* 3.11: `is_entry`, the owner behind it */
#define INLINE inline __attribute__((always_inline)) /* one loop a chain */

/* One frame. `kind`: what it is; `more`: version, or bytecode; `previous`: where the next one lies.
 */
struct slot {
    _Atomic uint64_t code, ip, previous;
    _Atomic uint32_t kind, more;
};

struct memo {
    _Atomic uint64_t turn;
    _Atomic uint64_t age;
    _Atomic uint64_t interpreter;
    _Atomic uint64_t sum[2];
    _Atomic uint32_t shape;  /* frames told, their note */
    _Atomic uint32_t slots;  /* 0: none */
    _Atomic uint32_t missed; /* by other walks since it was of use */
    struct slot slot[SLOTS_MAX];
} __attribute__((aligned(64)));

static struct memo memos[1U << PYTHON_MEMO_BITS][WAYS];
_Atomic uint64_t python_memo_age;

static inline uint64_t load(const _Atomic uint64_t *place)
{
    return atomic_load_explicit(place, memory_order_relaxed);
}

static inline uint32_t load_half(const _Atomic uint32_t *place)
{
    return atomic_load_explicit(place, memory_order_relaxed);
}

static void store(_Atomic uint64_t *place, uint64_t value)
{
    atomic_store_explicit(place, value, memory_order_relaxed);
}

static void store_half(_Atomic uint32_t *place, uint32_t value)
{
    atomic_store_explicit(place, value, memory_order_relaxed);
}

/* By the innermost frames: deeper ones differ seldom, and have the ways. */
static inline struct memo *memos_of(const struct python_layout *layout, uint64_t frame)
{
    uint64_t bits = frame;
#pragma GCC unroll 4
    for (unsigned i = 0; i < LOOKED_AT && frame != 0; i++) {
        bits = bits * 0x9e3779b97f4a7c15ULL + python_word(frame, layout->frame_ip);
        frame = python_word(frame, layout->frame_previous);
    }
    return memos[bits * 0xd6e8feb86659fd93ULL >> (64 - PYTHON_MEMO_BITS)];
}

/* ---- one frame, as each chain's walk reads it ------------------------------------------- */

/* Where it is read, from the layout: each in a register of its own. */
struct places {
    uint64_t code, ip, kind, previous; /* in a frame */
    uint64_t version, bytecode;        /* in a code object */
    uint64_t tag;
};

static inline struct places places_of(const struct python_layout *layout)
{
    unsigned kind = layout->chain == PYTHON_CHAIN_OBJECTS  ? layout->frame_generator
                    : layout->chain == PYTHON_CHAIN_LINKED ? layout->frame_entry
                                                           : layout->frame_owner;
    return (struct places){.code = layout->frame_code,
                           .ip = layout->frame_ip,
                           .kind = kind,
                           .previous = layout->frame_previous,
                           .version = layout->code_version,
                           .bytecode = layout->code_bytes,
                           .tag = layout->reference_tag};
}

static inline uint64_t word_at(uint64_t object, uint64_t place)
{
    return *(const uint64_t *)(uintptr_t)(object + place);
}

static inline uint32_t half_at(uint64_t object, uint64_t place)
{
    return *(const uint32_t *)(uintptr_t)(object + place);
}

static INLINE uint64_t ip_of(const struct places *at, uint64_t frame, unsigned chain)
{
    return chain == PYTHON_CHAIN_OBJECTS ? half_at(frame, at->ip) : word_at(frame, at->ip);
}

/* Of a generator or not; 3.11: `is_entry` and the owner behind it (see can_keep); the owner. */
static INLINE uint32_t kind_of(const struct places *at, uint64_t frame, unsigned chain)
{
    switch (chain) {
    case PYTHON_CHAIN_OBJECTS:
        return word_at(frame, at->kind) != 0;
    case PYTHON_CHAIN_LINKED:
        return *(const uint16_t *)(uintptr_t)(frame + at->kind);
    default:
        return *(const uint8_t *)(uintptr_t)(frame + at->kind);
    }
}

/* Asked once code and instruction are known: a version, or the bytecode that the walk looks at. */
static INLINE uint32_t more_of(const struct places *at, uint64_t code, uint64_t ip, unsigned chain)
{
    if (chain == PYTHON_CHAIN_SHIMMED) {
        return half_at(code & ~at->tag, at->version);
    }
    return ip - code - at->bytecode < PYTHON_OFFSET_MAX ? half_at(ip, 0) : 0;
}

/* ---- recalling ---------------------------------------------------------------------------- */

static INLINE bool frame_is_alike(const struct places *at, uint64_t frame, const struct slot *slot,
                                  unsigned chain)
{
    uint32_t kind = load_half(&slot->kind);
    if (kind_of(at, frame, chain) != (kind & KIND_MASK)) {
        return false;
    }
    if (chain == PYTHON_CHAIN_SHIMMED && (kind & HAS_MORE) == 0) {
        return true;
    }
    uint64_t code = load(&slot->code);
    uint64_t ip = load(&slot->ip);
    return word_at(frame, at->code) == code && ip_of(at, frame, chain) == ip &&
           ((kind & HAS_MORE) == 0 || more_of(at, code, ip, chain) == load_half(&slot->more));
}

/*
 * The next frame is where the memo says, once that was found true: the processor
 * need not wait for one frame to read the next.
 */
static INLINE bool chain_is_alike(const struct python_layout *layout, uint64_t frame,
                                  const struct memo *memo, unsigned chain)
{
    const struct places at = places_of(layout);
    const struct slot *slot = memo->slot;
    const struct slot *const end = slot + load_half(&memo->slots);
    if (slot == end) {
        return false;
    }
#pragma GCC unroll 4
    do {
        uint64_t next = load(&slot->previous);
        if (!frame_is_alike(&at, frame, slot, chain) || word_at(frame, at.previous) != next) {
            return false;
        }
        frame = next;
        slot++;
    } while (slot != end);
    return true;
}

/* Each a function of its own, which has registers enough. */
#define ALIKE(name, chain)                                                                         \
    __attribute__((noinline)) static bool name(const struct python_layout *layout, uint64_t frame, \
                                               const struct memo *memo)                            \
    {                                                                                              \
        return chain_is_alike(layout, frame, memo, chain);                                         \
    }
ALIKE(objects_are_alike, PYTHON_CHAIN_OBJECTS)
ALIKE(linked_are_alike, PYTHON_CHAIN_LINKED)
ALIKE(shimmed_are_alike, PYTHON_CHAIN_SHIMMED)

static bool is_alike(const struct python_layout *layout, uint64_t frame, const struct memo *memo)
{
    switch (layout->chain) {
    case PYTHON_CHAIN_OBJECTS:
        return objects_are_alike(layout, frame, memo);
    case PYTHON_CHAIN_LINKED:
        return linked_are_alike(layout, frame, memo);
    default:
        return shimmed_are_alike(layout, frame, memo);
    }
}

static bool recall_from(struct memo *memo, const struct python_layout *layout, uint64_t interpreter,
                        uint64_t first, struct python_known *known)
{
    /* Acquire: pairs with the release at the end of python_memo_keep. */
    uint64_t turn = atomic_load_explicit(&memo->turn, memory_order_acquire);
    if (turn % 2 != 0 || load(&memo->age) != known->age ||
        load(&memo->interpreter) != interpreter || !is_alike(layout, first, memo)) {
        return false;
    }
    uint32_t shape = load_half(&memo->shape);
    known->sum[0] = load(&memo->sum[0]);
    known->sum[1] = load(&memo->sum[1]);
    known->count = shape & ((1U << NOTE_SHIFT) - 1);
    known->note = (enum vs_stack_note)(shape >> NOTE_SHIFT);
    known->tag = turn << INDEX_BITS | (uint64_t)(memo - &memos[0][0]);
    if (load_half(&memo->missed) != 0) {
        store_half(&memo->missed, 0);
    }
    /* What was read before was written before this turn. */
    atomic_thread_fence(memory_order_acquire);
    return load(&memo->turn) == turn;
}

bool python_memo_recall(const struct python_layout *layout, uint64_t thread, uint64_t first,
                        struct python_known *known)
{
    known->age = atomic_load_explicit(&python_memo_age, memory_order_acquire); /* begin_age */
    if (first == 0) {
        return false;
    }
    struct memo *memo = memos_of(layout, first);
    uint64_t interpreter = python_word(thread, layout->thread_interpreter);
    for (unsigned way = 0; way < WAYS; way++) {
        if (recall_from(&memo[way], layout, interpreter, first, known)) {
            return true;
        }
    }
    return false;
}

/* ---- remembering -------------------------------------------------------------------------- */

/* Whether a walk looks at more than code and instruction of a frame that it tells. */
static bool has_more(uint32_t kind, unsigned chain)
{
    return chain == PYTHON_CHAIN_SHIMMED ||
           (chain == PYTHON_CHAIN_LINKED && kind >> OWNER_SHIFT == PYTHON_OWNER_GENERATOR &&
            kind != PYTHON_OWNER_GENERATOR << OWNER_SHIFT);
}

/* False: the walk asks for more of this frame than a slot holds. */
static bool write_slot(const struct python_layout *layout, uint64_t frame, struct slot *slot,
                       bool *told)
{
    const unsigned chain = layout->chain;
    const struct places at = places_of(layout);
    uint64_t code = word_at(frame, at.code);
    uint64_t ip = ip_of(&at, frame, chain);
    uint32_t kind = kind_of(&at, frame, chain);
    uint32_t more = 0;
    *told = chain != PYTHON_CHAIN_SHIMMED || kind < PYTHON_OWNER_NO_FRAME;
    if (*told && has_more(kind, chain)) {
        kind |= HAS_MORE;
        more = more_of(&at, code, ip, chain);
    }
    store(&slot->code, code);
    store(&slot->ip, ip);
    store(&slot->previous, word_at(frame, at.previous));
    store_half(&slot->kind, kind);
    store_half(&slot->more, more);
    return chain != PYTHON_CHAIN_SHIMMED || !*told || more != 0;
}

/* Slots written, 0: it depends on more than they hold. A walk that was cut has looked one further.
 */
static uint32_t write_slots(const struct python_layout *layout, uint64_t frame, struct memo *memo,
                            const struct python_known *known)
{
    const uint32_t wanted = known->count + (known->note == VS_STACK_NOTE_PYTHON_CUT);
    uint32_t told = 0;
    uint32_t slots = 0;
    while (frame != 0 && (told < wanted || known->note == VS_STACK_NOTE_NONE)) {
        bool is_told;
        if (slots == SLOTS_MAX || !write_slot(layout, frame, &memo->slot[slots++], &is_told)) {
            return 0;
        }
        told += is_told;
        frame = python_word(frame, layout->frame_previous);
    }
    return told == wanted ? slots : 0;
}

/* One that is of no use, else always the same for a stack, lest it drive out all. */
static struct memo *way_for(struct memo *memo, const struct python_known *known)
{
    for (unsigned way = 0; way < WAYS; way++) {
        if (load(&memo[way].age) != known->age || load_half(&memo[way].slots) == 0) {
            return &memo[way];
        }
    }
    return &memo[known->sum[0] % WAYS];
}

static bool can_keep(const struct python_layout *layout, const struct python_known *known)
{
    return layout->frame_tlbc == 0 &&
           (layout->chain != PYTHON_CHAIN_LINKED ||
            layout->frame_owner == layout->frame_entry + 1) &&
           (known->note == VS_STACK_NOTE_NONE || known->note == VS_STACK_NOTE_PYTHON_CUT);
}

void python_memo_keep(const struct python_layout *layout, uint64_t thread, uint64_t first,
                      const struct python_known *known)
{
    struct memo *memo = way_for(memos_of(layout, first), known);
    uint64_t turn = load(&memo->turn);
    /* Stacks that take turns at one memo would write it each time: one may stay for a while. */
    if (!can_keep(layout, known) ||
        (load(&memo->age) == known->age && load_half(&memo->slots) != 0 &&
         atomic_fetch_add_explicit(&memo->missed, 1, memory_order_relaxed) == 0) ||
        turn % 2 != 0 ||
        !atomic_compare_exchange_strong_explicit(&memo->turn, &turn, turn + 1, memory_order_acq_rel,
                                                 memory_order_relaxed)) {
        return;
    }
    /* Release: who sees something written sees the turn that came before it. */
    atomic_thread_fence(memory_order_release);
    store(&memo->age, known->age);
    store(&memo->interpreter, python_word(thread, layout->thread_interpreter));
    store(&memo->sum[0], known->sum[0]);
    store(&memo->sum[1], known->sum[1]);
    store_half(&memo->shape, known->count | (uint32_t)known->note << NOTE_SHIFT);
    store_half(&memo->missed, 0);
    store_half(&memo->slots, write_slots(layout, first, memo, known));
    atomic_store_explicit(&memo->turn, turn + 2, memory_order_release); /* recall_from */
}
