/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice between frame pointers and tables. Objects only ever become plain,
 * and tables are for good: what was proved stays proved.
 */
#include "unwind_choice.h"

#include "stacks.h"

#define TRIAL_WALKS 256U

struct unwind_choices unwind_choices;

static struct {
    _Atomic uint32_t walks;
    _Atomic uint32_t by_chain;
    _Atomic uint32_t by_tables;
} trial;

void unwind_proved_wrong(void)
{
    atomic_store_explicit(&unwind_choices.choice, UNWIND_BY_TABLES, memory_order_relaxed);
}

/* False when there is no room. */
static bool add_plain(const struct modules_tables *found)
{
    for (unsigned i = 0; i < UNWIND_PLAIN_MAX; i++) {
        struct unwind_object *object = &unwind_choices.plain[i];
        uint64_t first = 0;
        if (atomic_compare_exchange_strong(&object->first, &first, found->first)) {
            /* Release: see unwind_is_plain. */
            atomic_store_explicit(&object->bytes, found->last - found->first, memory_order_release);
            return true;
        }
        if (first == found->first) {
            return true; /* another thread's doing */
        }
    }
    return false;
}

void unwind_note_plain(uint64_t address)
{
    struct modules_tables object;
    if (!modules_tables((const void *)(uintptr_t)address, &object) || !add_plain(&object)) {
        unwind_proved_wrong();
    }
}

bool unwind_weigh(const struct unwind_verdict *verdict)
{
    uint32_t chain = atomic_fetch_add(&trial.by_chain, verdict->by_chain) + verdict->by_chain;
    uint32_t tables = atomic_fetch_add(&trial.by_tables, verdict->by_tables) + verdict->by_tables;
    if (atomic_fetch_add(&trial.walks, 1) + 1 != TRIAL_WALKS) {
        return false;
    }
    if (chain <= tables) {
        unwind_choose(false);
    }
    return chain > tables;
}

void unwind_choose(bool chain)
{
    /* Tables are for good: another thread may have had the proof in the meantime.
     */
    uint32_t undecided = UNWIND_TRIAL;
    atomic_compare_exchange_strong(&unwind_choices.choice, &undecided,
                                   chain ? UNWIND_BY_CHAIN : UNWIND_BY_TABLES);
}
