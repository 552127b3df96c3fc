/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names become small numbers. An id counts as sent to this process's trace only
 * when the record that defines it was committed; a fork starts over, because
 * the child's trace is another one.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>

#include "../formats/ring.h"
#include "shim.h"
#include "sys.h"
#include "thread_state.h"

#define CALLS_MAX 4095U     /* ids 1 … 4095: entry points, row + 1 */
#define FIRST_TEXT_ID 4096U /* ids from here: texts the program gave */
#define TEXT_SLOTS 1024U
#define TEXT_BYTES_MAX 1024U /* a longer mark is cut */
#define THREAD_NAME_BYTES 16U
#define TEXT_EMPTY 0U
#define TEXT_WRITING 1U

/* Which text has which id; a text that lost its slot gets a new id, which is only wasteful. */
struct text_slot {
    _Atomic uint64_t hash; /* TEXT_EMPTY, TEXT_WRITING, or a text's */
    _Atomic uint32_t id;
};

static struct {
    _Atomic uint32_t sent_to[CALLS_MAX + 1]; /* shim_generation() of the trace that has it */
    struct text_slot texts[TEXT_SLOTS];
    _Atomic uint32_t next_text;
} intern = {.next_text = FIRST_TEXT_ID};

uint16_t intern_call(unsigned index, const char *name)
{
    uint32_t id = index + 1;
    if (id > CALLS_MAX) {
        return 0;
    }
    uint32_t generation = shim_generation();
    if (generation != 0 &&
        atomic_load_explicit(&intern.sent_to[id], memory_order_relaxed) != generation &&
        shim_emit_definition(VS_RECORD_STRING, id, 0, name, (uint32_t)strlen(name), NULL, 0)) {
        atomic_store_explicit(&intern.sent_to[id], generation, memory_order_relaxed);
    }
    return (uint16_t)id;
}

/* FNV-1a, begun with the generation so that a forked child finds nothing of its parent's. */
static uint64_t hash_text(const char *text, size_t bytes, uint32_t generation)
{
    uint64_t hash = 0xcbf29ce484222325ULL ^ generation;
    for (size_t i = 0; i < bytes; i++) {
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3ULL;
    }
    return hash > TEXT_WRITING ? hash : TEXT_WRITING + 1;
}

static uint32_t known_text(struct text_slot *slot, uint64_t hash)
{
    if (atomic_load_explicit(&slot->hash, memory_order_acquire) != hash) {
        return 0;
    }
    uint32_t id = atomic_load_explicit(&slot->id, memory_order_acquire);
    /* A writer takes the hash away first: found again, the id belongs to it. */
    return atomic_load_explicit(&slot->hash, memory_order_relaxed) == hash ? id : 0;
}

uint32_t intern_text(const char *text)
{
    if (text == NULL || !shim_recording()) {
        return 0;
    }
    size_t bytes = strnlen(text, TEXT_BYTES_MAX);
    uint64_t hash = hash_text(text, bytes, shim_generation());
    struct text_slot *slot = &intern.texts[hash % TEXT_SLOTS];
    uint32_t id = known_text(slot, hash);
    if (id != 0) {
        return id;
    }
    id = atomic_fetch_add_explicit(&intern.next_text, 1, memory_order_relaxed);
    if (!shim_emit_definition(VS_RECORD_STRING, id, 0, text, (uint32_t)bytes, NULL, 0)) {
        return 0;
    }
    uint64_t before = atomic_load_explicit(&slot->hash, memory_order_relaxed);
    /* One writer at a time; who comes second leaves the slot alone. */
    if (before != TEXT_WRITING &&
        atomic_compare_exchange_strong(&slot->hash, &before, TEXT_WRITING)) {
        atomic_store(&slot->id, id);
        atomic_store(&slot->hash, hash);
    }
    return id;
}

void intern_thread(void)
{
    char name[THREAD_NAME_BYTES] = {0};
    struct shim_thread *thread = &shim_thread;
    if (!shim_recording()) {
        return;
    }
    if (thread->tid == 0 || thread->generation != shim_generation()) {
        thread_first_use();
    }
    if (thread->named || sys_call2(SYS_prctl, PR_GET_NAME, name) != 0) {
        return;
    }
    thread->named = shim_emit_definition(VS_RECORD_THREAD, thread->tid, 0, name,
                                         (uint32_t)strnlen(name, sizeof(name)), NULL, 0);
}
