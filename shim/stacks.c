/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an event came from: both walks, one hash over what they found, one look
 * into the table. Only a stack that is not there yet is described and sent.
 *
 * Everything lies on the caller's stack, so a signal handler may capture while it
 * interrupts a capture, and a jump out of one leaves at most an entry that the
 * next thread settles.
 */
#include "stacks.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "lifecycle.h"
#include "shim.h"
#include "stack_table.h"

#ifdef VS_TEST_POINTS
void (*stacks_test_point)(enum stacks_test_point where);
#define TEST_POINT(where)                \
    do {                                 \
        if (stacks_test_point != NULL) { \
            stacks_test_point(where);    \
        }                                \
    } while (0)
#else
#define TEST_POINT(where) ((void)0)
#endif

struct capture {
    uint64_t *native;
    struct python_frame *python;
    unsigned native_count;
    unsigned python_count;
    enum vs_stack_note native_note;
    enum vs_stack_note python_note;
    uint32_t generation; /* of the module map */
};

static _Atomic uint32_t last_id;

static bool wanted(void)
{
    return shim_config.want_native || shim_config.want_python;
}

/* ---- hash ------------------------------------------------------------------- */

/* Two halves that share their input and nothing else. */
struct mixer {
    uint64_t key;
    uint64_t check;
};

/* Random bits, half of them set. */
#define MIX_1 0x9e3779b97f4a7c15ULL
#define MIX_2 0xd6e8feb86659fd93ULL
#define MIX_3 0xa0761d6478bd642fULL
#define MIX_4 0xe7037ed1a0b428dbULL

__extension__ typedef unsigned __int128 wide_product;

static inline uint64_t multiply_and_fold(uint64_t a, uint64_t b)
{
    wide_product product = (wide_product)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline void mix(struct mixer *mixer, uint64_t a, uint64_t b)
{
    mixer->key = multiply_and_fold(mixer->key ^ a, b ^ MIX_1);
    mixer->check = multiply_and_fold(mixer->check ^ b, a ^ MIX_2);
}

/* Two streams, so that one multiplication need not wait for the other. */
static inline void mix_native(struct mixer streams[2], const uint64_t *words, unsigned count)
{
    unsigned i = 0;
    for (; i + 4 <= count; i += 4) {
        mix(&streams[0], words[i], words[i + 1]);
        mix(&streams[1], words[i + 2], words[i + 3]);
    }
    for (; i < count; i++) {
        mix(&streams[i & 1U], words[i], MIX_3);
    }
}

static inline void mix_python_frame(struct mixer *mixer, const struct python_frame *frame)
{
    uint64_t place; /* version and offset side by side, in one load */
    memcpy(&place, &frame->version, sizeof(place));
    mix(mixer, frame->code ^ ((uint64_t)frame->entry << 63), place);
}

static inline void mix_python(struct mixer streams[2], const struct python_frame *frames,
                              unsigned count)
{
    unsigned i = 0;
    for (; i + 2 <= count; i += 2) {
        mix_python_frame(&streams[0], &frames[i]);
        mix_python_frame(&streams[1], &frames[i + 1]);
    }
    if (i < count) {
        mix_python_frame(&streams[0], &frames[i]);
    }
}

/* How many words of each kind is part of it, so that no two stacks read alike. */
static inline struct stack_key key_of(const struct capture *capture)
{
    struct mixer streams[2] = {{MIX_1, MIX_2}, {MIX_3, MIX_4}};
    uint64_t shape = (uint64_t)capture->native_count | (uint64_t)capture->python_count << 16 |
                     (uint64_t)capture->native_note << 32 | (uint64_t)capture->python_note << 48;
    mix_native(streams, capture->native, capture->native_count);
    mix_python(streams, capture->python, capture->python_count);
    mix(&streams[0], shape, (uint64_t)shim_generation() << 32 | capture->generation);
    mix(&streams[0], streams[1].key, streams[1].check);
    struct stack_key key = {multiply_and_fold(streams[0].key, MIX_3),
                            multiply_and_fold(streams[0].check, MIX_4)};
    key.key += key.key == 0;
    key.check += key.check == 0;
    return key;
}

/* ---- walking ------------------------------------------------------------------ */

static inline void walk(struct capture *capture)
{
    unsigned depth = shim_config.depth;
    capture->generation = modules_generation();
    capture->native_count = 0;
    capture->native_note = VS_STACK_NOTE_NONE;
    capture->python_count = 0;
    capture->python_note = VS_STACK_NOTE_NONE;
    if (shim_config.want_native) {
        capture->native_count = unwind_here(capture->native, depth, &capture->native_note);
    }
    if (shim_config.want_python) {
        capture->python_count = python_walk(capture->python, depth, &capture->python_note);
    }
}

static bool is_empty(const struct capture *capture)
{
    return capture->native_count == 0 && capture->python_count == 0 &&
           capture->native_note == VS_STACK_NOTE_NONE && capture->python_note == VS_STACK_NOTE_NONE;
}

/* ---- a stack that is not in the table -------------------------------------------- */

static struct vs_ring_header *counters(void)
{
    return shim_recording() ? lifecycle_ring : NULL;
}

static void count(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static void publish_method(struct vs_ring_header *ring)
{
    uint32_t method = shim_config.want_native ? unwind_method() : VS_NATIVE_OFF;
    atomic_store_explicit(&ring->native_method, method, memory_order_relaxed);
}

static void account(uint32_t id, bool kept, enum vs_stack_note native_note)
{
    struct vs_ring_header *ring = counters();
    if (ring == NULL) {
        return;
    }
    count(id != 0 ? &ring->stacks_sent : &ring->stacks_lost);
    if (id != 0 && !kept) {
        count(&ring->stacks_inline);
    }
    if (native_note == VS_STACK_NOTE_NATIVE_STOPPED) {
        count(&ring->native_stopped);
    }
    publish_method(ring);
}

/* Each object's definition is sent on the way. False when an address lies in none that is known. */
static bool send_modules(const struct capture *capture)
{
    bool all_known = true;
    for (unsigned i = 0; i < capture->native_count; i++) {
        uint64_t address = vs_frame_lookup_address(capture->native[i]);
        all_known &= modules_find((const void *)(uintptr_t)address) != 0;
    }
    return all_known && capture->native_note != VS_STACK_NOTE_NATIVE_STOPPED;
}

static unsigned put_note(uint64_t *words, enum vs_stack_note note)
{
    *words = vs_frame_note(note);
    return note != VS_STACK_NOTE_NONE;
}

/* Its id, under which the record is committed; 0 when it found no room. `python`: its words. */
static uint32_t send(const struct capture *capture, const uint64_t *python, unsigned python_words)
{
    uint64_t words[capture->native_count + python_words + 2];
    struct vs_record_stack stack = {.generation = capture->generation};
    unsigned used = capture->native_count;
    memcpy(words, capture->native, used * sizeof(words[0]));
    used += put_note(words + used, capture->native_note);
    memcpy(words + used, python, python_words * sizeof(words[0]));
    used += python_words;
    used += put_note(words + used, capture->python_note);
    uint32_t id = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
    bool sent = shim_emit_definition(VS_RECORD_STACK, id, used, &stack, sizeof(stack), words,
                                     used * (uint32_t)sizeof(words[0]));
    return sent ? id : 0;
}

/* Enters it into the table and sends it, unless another thread does so first. */
static uint32_t enter(const struct capture *capture, const struct stack_key *key,
                      const uint64_t *python, unsigned python_words)
{
    _Atomic uint32_t *place = stack_table_claim(key);
    /* Acquire: as in stack_table_find. */
    uint32_t known = place != NULL ? atomic_load_explicit(place, memory_order_acquire) : 0;
    if (known != 0) {
        return known;
    }
    TEST_POINT(STACKS_CLAIMED);
    uint32_t id = send(capture, python, python_words);
    TEST_POINT(STACKS_SENT);
    bool kept = id != 0 && place != NULL && stack_table_settle(place, id);
    account(id, kept, capture->native_note);
    return id;
}

/* A code object that it needs has no name yet, and none could be sent: the next time, perhaps. */
static uint32_t enter_without_python(struct capture *capture)
{
    capture->python_count = 0;
    capture->python_note = VS_STACK_NOTE_PYTHON_NO_ROOM;
    struct stack_key key = key_of(capture);
    uint32_t known = stack_table_find(&key);
    return known != 0 ? known : enter(capture, &key, NULL, 0);
}

static uint32_t describe_and_enter(struct capture *capture, const struct stack_key *key)
{
    uint64_t words[capture->python_count + 1];
    int described = 0;
    if (capture->python_count > 0) {
        described = python_describe(capture->python, capture->python_count, words);
    }
    return described < 0 ? enter_without_python(capture)
                         : enter(capture, key, words, (unsigned)described);
}

/* False when the frame pointers led elsewhere than the unwind tables do. */
static bool holds_by_tables(const struct capture *capture)
{
    if (!shim_config.want_native || unwind_method() != VS_NATIVE_FRAME_POINTERS) {
        return true;
    }
    uint64_t proof[shim_config.depth];
    enum vs_stack_note note;
    unsigned count = unwind_here_by_tables(proof, shim_config.depth, &note);
    return count == capture->native_count && note == capture->native_note &&
           memcmp(proof, capture->native, count * sizeof(proof[0])) == 0;
}

/* The walk once more, what it depends on having changed. The id if that stack is known. */
static uint32_t walk_again(struct capture *capture, struct stack_key *key)
{
    walk(capture);
    send_modules(capture);
    *key = key_of(capture);
    return stack_table_find(key);
}

/*
 * What the proof found out (an object without frame pointers) may be all that the
 * walk needed to know; if not, frame pointers have had their chance.
 */
static uint32_t prove(struct capture *capture, struct stack_key *key)
{
    uint32_t known = 0;
    if (!holds_by_tables(capture)) {
        known = walk_again(capture, key);
        if (!holds_by_tables(capture)) {
            unwind_proved_wrong();
            known = walk_again(capture, key);
        }
    }
    return known;
}

/* Never inlined: what a known stack costs should not grow by this. */
__attribute__((noinline)) static uint32_t capture_new(struct capture *capture,
                                                      struct stack_key *key)
{
    uint32_t known = 0;
    if (modules_refresh_if_stale(!send_modules(capture))) {
        known = walk_again(capture, key);
    }
    if (known == 0) {
        known = prove(capture, key);
    }
    return known != 0 ? known : describe_and_enter(capture, key);
}

/* ---- for the other rooms ------------------------------------------------------------ */

uint32_t stacks_capture(void)
{
    if (!wanted()) {
        return 0;
    }
    uint64_t native[shim_config.depth];
    struct python_frame python[shim_config.depth];
    struct capture capture = {.native = native, .python = python};
    walk(&capture);
    if (is_empty(&capture)) {
        return 0;
    }
    struct stack_key key = key_of(&capture);
    uint32_t known = stack_table_find(&key);
    return __builtin_expect(known != 0, 1) ? known : capture_new(&capture, &key);
}

void stacks_prepare(void)
{
    if (shim_config.want_native) {
        unwind_prepare();
    }
    if (shim_config.want_python) {
        python_prepare();
    }
}

void stacks_objects_changed(void)
{
    if (!shim_config.disabled && python_is_missing()) {
        python_prepare();
    }
}

void stacks_begin(void)
{
    if (wanted()) {
        stack_table_begin();
        atomic_store(&last_id, 0);
        publish_method(lifecycle_ring);
    }
}
