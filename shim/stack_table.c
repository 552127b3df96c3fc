/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three levels, each larger than the one before, so that a program with few
 * stacks touches few pages. A level is an array of cache lines of three entries;
 * a stack lies in the first free entry on its path, and as entries are never
 * given up, a search ends at the first free one.
 *
 * Life of an entry: key from 0 by exchange, check from 0 by exchange (that makes
 * it this stack's; the key alone might be another's with the same 64 bits), id
 * from 0 by exchange. Each step is taken by whoever comes first.
 */
#include "stack_table.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

#define LINE_BYTES 64U
#define LINE_ENTRIES 3U
#define LEVELS 3U

struct line {
    _Atomic uint64_t key[LINE_ENTRIES];
    _Atomic uint64_t check[LINE_ENTRIES];
    _Atomic uint32_t id[LINE_ENTRIES];
    uint32_t unused;
};

_Static_assert(sizeof(struct line) == LINE_BYTES, "one look, one cache line");

struct level {
    uint32_t first; /* line */
    uint32_t lines; /* a power of two */
    uint32_t tried; /* lines that one stack may lie in */
    uint32_t shift; /* which bits of the key choose the first of them */
};

/* 64 KiB, 1 MiB, 32 MiB: 1.6 million stacks, of which the first million always finds its place. */
static const struct level levels[LEVELS] = {
    {0, 1U << 10, 1, 0},
    {1U << 10, 1U << 14, 2, 10},
    {(1U << 10) + (1U << 14), 1U << 19, 16, 24},
};
#define TABLE_LINES ((1U << 10) + (1U << 14) + (1U << 19))

static _Atomic(struct line *) table;

int stack_table_begin(void)
{
    size_t bytes = (size_t)TABLE_LINES * LINE_BYTES;
    struct line *none = NULL;
    if (atomic_load(&table) != NULL) {
        return 0;
    }
    void *fresh = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (fresh == MAP_FAILED) {
        return -ENOMEM;
    }
    /* Zeroing a huge page is too long for a hook. */
    madvise(fresh, bytes, MADV_NOHUGEPAGE);
    if (madvise(fresh, bytes, MADV_WIPEONFORK) != 0 ||
        !atomic_compare_exchange_strong(&table, &none, fresh)) {
        munmap(fresh, bytes);
    }
    return atomic_load(&table) != NULL ? 0 : -ENOMEM;
}

static struct line *line_at(struct line *lines, const struct level *level,
                            const struct stack_key *key, uint32_t step)
{
    /* An odd stride of the stack's own: runs of full lines do not grow together. */
    uint64_t at = (key->key >> level->shift) + step * (key->check | 1);
    return &lines[level->first + (at & (level->lines - 1))];
}

uint32_t stack_table_find(const struct stack_key *key)
{
    struct line *lines = atomic_load_explicit(&table, memory_order_acquire);
    for (uint32_t l = 0; lines != NULL && l < LEVELS; l++) {
        for (uint32_t step = 0; step < levels[l].tried; step++) {
            struct line *line = line_at(lines, &levels[l], key, step);
            for (uint32_t i = 0; i < LINE_ENTRIES; i++) {
                uint64_t found = atomic_load_explicit(&line->key[i], memory_order_relaxed);
                if (found == key->key &&
                    atomic_load_explicit(&line->check[i], memory_order_relaxed) == key->check) {
                    /* Acquire: pairs with settle, the record was committed before. */
                    return atomic_load_explicit(&line->id[i], memory_order_acquire);
                }
                if (found == 0) {
                    return 0;
                }
            }
        }
    }
    return 0;
}

/* True when *word is `wanted`, or was nothing and is now. Relaxed: the words never change again. */
static bool is_or_becomes(_Atomic uint64_t *word, uint64_t wanted)
{
    uint64_t found = atomic_load_explicit(word, memory_order_relaxed);
    return found == wanted ||
           (found == 0 && (atomic_compare_exchange_strong_explicit(
                               word, &found, wanted, memory_order_relaxed, memory_order_relaxed) ||
                           found == wanted));
}

_Atomic uint32_t *stack_table_claim(const struct stack_key *key)
{
    struct line *lines = atomic_load_explicit(&table, memory_order_acquire);
    for (uint32_t l = 0; lines != NULL && l < LEVELS; l++) {
        for (uint32_t step = 0; step < levels[l].tried; step++) {
            struct line *line = line_at(lines, &levels[l], key, step);
            for (uint32_t i = 0; i < LINE_ENTRIES; i++) {
                if (is_or_becomes(&line->key[i], key->key) &&
                    is_or_becomes(&line->check[i], key->check)) {
                    return &line->id[i];
                }
            }
        }
    }
    return NULL;
}

bool stack_table_settle(_Atomic uint32_t *place, uint32_t id)
{
    uint32_t none = 0;
    /* Release: who finds the id finds its record committed. */
    return atomic_compare_exchange_strong_explicit(place, &none, id, memory_order_release,
                                                   memory_order_relaxed);
}

/* ---- short cuts ----------------------------------------------------------------------- */

#define PAIR_BITS 9U /* 32 KiB: more would not stay near */

/* `turn` is odd while somebody writes; who read meanwhile has found nothing. */
struct kept_pair {
    _Atomic uint64_t turn;
    _Atomic uint64_t native, python, where;
    _Atomic uint32_t id;
} __attribute__((aligned(LINE_BYTES)));

static struct kept_pair pairs[1U << PAIR_BITS];

static struct kept_pair *place_of(const struct stack_pair *pair)
{
    uint64_t bits = (pair->native ^ pair->python << 16) * 0x9e3779b97f4a7c15ULL;
    return &pairs[bits >> (64 - PAIR_BITS)];
}

static uint64_t load(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

uint32_t stack_pair_find(const struct stack_pair *pair)
{
    const struct kept_pair *kept = place_of(pair);
    /* Acquire: pairs with the release at the end of stack_pair_keep. */
    uint64_t turn = atomic_load_explicit(&kept->turn, memory_order_acquire);
    bool found = turn % 2 == 0 && load(&kept->native) == pair->native &&
                 load(&kept->python) == pair->python && load(&kept->where) == pair->where;
    uint32_t id = atomic_load_explicit(&kept->id, memory_order_relaxed);
    /* Acquire: what was read before was written before this turn. */
    atomic_thread_fence(memory_order_acquire);
    return found && load(&kept->turn) == turn ? id : 0;
}

void stack_pair_keep(const struct stack_pair *pair, uint32_t id)
{
    struct kept_pair *kept = place_of(pair);
    uint64_t turn = load(&kept->turn);
    if (turn % 2 != 0 ||
        !atomic_compare_exchange_strong_explicit(&kept->turn, &turn, turn + 1, memory_order_acq_rel,
                                                 memory_order_relaxed)) {
        return;
    }
    /* Release: who sees something written sees the turn that came before it. */
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&kept->native, pair->native, memory_order_relaxed);
    atomic_store_explicit(&kept->python, pair->python, memory_order_relaxed);
    atomic_store_explicit(&kept->where, pair->where, memory_order_relaxed);
    atomic_store_explicit(&kept->id, id, memory_order_relaxed);
    atomic_store_explicit(&kept->turn, turn + 2, memory_order_release); /* stack_pair_find */
}
