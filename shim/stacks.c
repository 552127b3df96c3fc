/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an event came from: both walks, one hash over what they found, one look
 * into the table. Only a stack that is not there yet is described and sent. Walks
 * that went before are recalled (python_memo.h, unwind_memo.h); where both are,
 * their pair has the id.
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
#include "unwind_memo.h"

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
    uint32_t process;    /* shim_generation() */
};

static _Atomic uint32_t last_id;

static bool wanted(void)
{
    return shim_config.want_native || shim_config.want_python;
}

/* ---- hash ------------------------------------------------------------------- */

/*
 * NH (UMAC, RFC 4418) over words of 64 bits: the sum of (a + k)(b + l) over pairs
 * of words, with keys by place, all 128 bits of it kept. No product waits for
 * another one. The keys are the same in every process: nobody chooses stacks
 * against them. What their form sees to: neither factor of a pair with an address
 * can be 0 (which would hide the other), nor can the two differ by as little as
 * addresses do (which would hide that they changed in opposite directions).
 */
#define KEYS (2 * STACKS_DEPTH_MAX + 2) /* the last pair is for what is neither kind's */

__extension__ typedef unsigned __int128 wide;

static uint64_t keys[KEYS];

/* splitmix64 */
static uint64_t scramble(uint64_t bits)
{
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ULL;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebULL;
    return bits ^ (bits >> 31);
}

static void make_keys(void)
{
    uint64_t state = 0;
    for (unsigned i = 0; i < KEYS; i++) {
        uint64_t high = i % 2 == 0 ? 1ULL << 62 : 1ULL << 61;
        keys[i] = (scramble(state += 0x9e3779b97f4a7c15ULL) >> 4) | high;
    }
}

static inline wide pair(const uint64_t *key, uint64_t a, uint64_t b)
{
    return (wide)(a + key[0]) * (b + key[1]);
}

static inline wide sum_native(const uint64_t *words, unsigned count)
{
    wide sum = 0;
    unsigned i = 0;
    for (; i + 2 <= count; i += 2) {
        sum += pair(&keys[i], words[i], words[i + 1]);
    }
    return i < count ? sum + pair(&keys[i], words[i], 0) : sum;
}

static inline wide sum_python(const struct python_frame *frames, unsigned count)
{
    wide sum = 0;
    for (unsigned i = 0; i < count; i++) {
        uint64_t place; /* version and offset side by side, in one load */
        memcpy(&place, &frames[i].version, sizeof(place));
        sum +=
            pair(&keys[(size_t)2 * i], frames[i].code + ((uint64_t)frames[i].entry << 63), place);
    }
    return sum;
}

/* Sums of the two kinds. */
struct sums {
    wide native, python;
};

/* What a stack's id depends on beside the stack: shim_generation(), and that of the module map. */
static inline uint64_t where(uint32_t process, uint32_t generation)
{
    return (uint64_t)process << 32 | generation;
}

/* How many words of each kind is part of it, so that no two stacks read alike. */
static inline struct stack_key key_of(const struct capture *capture, const struct sums *sums)
{
    uint64_t shape = (uint64_t)capture->native_count | (uint64_t)capture->python_count << 16 |
                     (uint64_t)capture->native_note << 32 | (uint64_t)capture->python_note << 48;
    /* An odd factor keeps all bits, and apart what has the same keys. */
    wide odd = (wide)0x9e3779b97f4a7c15ULL << 64 | 0xf39cc0605cedc835ULL;
    wide sum = sums->native + sums->python * odd +
               pair(&keys[KEYS - 2], shape, where(capture->process, capture->generation));
    uint64_t key = scramble((uint64_t)sum);
    uint64_t check = (uint64_t)(sum >> 64);
    return (struct stack_key){key != 0 ? key : 1, check != 0 ? check : 1};
}

static struct stack_key key_of_words(const struct capture *capture)
{
    struct sums sums = {sum_native(capture->native, capture->native_count),
                        sum_python(capture->python, capture->python_count)};
    return key_of(capture, &sums);
}

/* ---- walking ------------------------------------------------------------------ */

static inline void walk_python(struct capture *capture)
{
    capture->python_count = 0;
    capture->python_note = VS_STACK_NOTE_NONE;
    if (shim_config.want_python) {
        capture->python_count =
            python_walk(capture->python, shim_config.depth, &capture->python_note);
    }
}

static inline void walk_native(struct capture *capture)
{
    capture->native_count = 0;
    capture->native_note = VS_STACK_NOTE_NONE;
    if (shim_config.want_native) {
        capture->native_count =
            unwind_here(capture->native, shim_config.depth, &capture->native_note);
    }
}

static void walk(struct capture *capture)
{
    capture->generation = modules_generation();
    walk_python(capture);
    walk_native(capture);
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
    if (python_words > 0) {
        memcpy(words + used, python, python_words * sizeof(words[0]));
    }
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
    struct stack_key key = key_of_words(capture);
    uint32_t known = stack_table_find(&key);
    return known != 0 ? known : enter(capture, &key, NULL, 0);
}

/* Behind the key, which knows addresses only: the same stack has the same marks. */
static void mark_loops(const struct capture *capture)
{
    uint64_t places[capture->native_count + 1];
    unsigned count = python_loops(places, capture->native_count);
    if (count > 0) {
        unwind_mark_holders(capture->native, capture->native_count, places, count);
    }
}

static uint32_t describe_and_enter(struct capture *capture, const struct stack_key *key)
{
    uint64_t words[capture->python_count + 1];
    int described = 0;
    if (capture->python_count > 0) {
        described = python_describe(capture->python, capture->python_count, words);
    }
    if (described > 0 && capture->native_count > 0) {
        mark_loops(capture);
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
    *key = key_of_words(capture);
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

/* ---- walks that went before -------------------------------------------------------------- */

/* What was recalled: of a kind that is not wanted, nothing. */
struct recalled {
    struct unwind_known native;
    struct python_known python;
    bool is_native, is_python;
};

static inline bool recall_python(struct recalled *recalled)
{
    if (!shim_config.want_python) {
        recalled->python = (struct python_known){0};
        return true;
    }
    return python_recall(&recalled->python);
}

/* The sum of the Python frames tells apart what looks alike from here. */
static inline bool recall_native(const struct unwind_start *start, uint64_t python_sum,
                                 struct recalled *recalled)
{
    if (!shim_config.want_native) {
        recalled->native = (struct unwind_known){0};
        return true;
    }
    return unwind_recall(start, python_sum, &recalled->native);
}

static inline wide sum_of(const uint64_t *halves)
{
    return (wide)halves[1] << 64 | halves[0];
}

static void halve(uint64_t *halves, wide sum)
{
    halves[0] = (uint64_t)sum;
    halves[1] = (uint64_t)(sum >> 64);
}

/* The walks that were not recalled; what is known of both. */
static void complete(struct capture *capture, struct recalled *recalled, struct sums *sums)
{
    if (recalled->is_native) {
        capture->native_count = recalled->native.count;
        capture->native_note = recalled->native.note;
        sums->native = sum_of(recalled->native.sum);
    } else {
        walk_native(capture);
        sums->native = sum_native(capture->native, capture->native_count);
    }
    if (recalled->is_python) {
        capture->python_count = recalled->python.count;
        capture->python_note = recalled->python.note;
        sums->python = sum_of(recalled->python.sum);
    }
}

/* Only a stack that comes again is worth it. */
static void remember(const struct capture *capture, const struct unwind_start *start,
                     struct recalled *recalled, const struct sums *sums, uint32_t id)
{
    if (recalled->is_native && recalled->is_python) {
        struct stack_pair pair = {recalled->native.tag, recalled->python.tag,
                                  where(capture->process, capture->generation)};
        stack_pair_keep(&pair, id);
        return;
    }
    if (!recalled->is_python) {
        recalled->python.count = capture->python_count;
        recalled->python.note = capture->python_note;
        halve(recalled->python.sum, sums->python);
        python_remember(&recalled->python);
    }
    if (!recalled->is_native) {
        recalled->native.count = capture->native_count;
        recalled->native.note = capture->native_note;
        halve(recalled->native.sum, sums->native);
        unwind_remember(start, (uint64_t)sums->python, capture->native, &recalled->native);
    }
}

/* Never inlined: what a remembered stack costs should not grow by this. */
__attribute__((noinline)) static uint32_t
capture_by_walking(const struct unwind_start *start, uint32_t generation, struct recalled *recalled)
{
    uint64_t native[shim_config.depth];
    struct python_frame python[shim_config.depth];
    struct capture capture = {
        .native = native, .python = python, .generation = generation, .process = shim_generation()};
    struct sums sums = {0};
    if (!recalled->is_python) {
        walk_python(&capture);
        sums.python = sum_python(python, capture.python_count);
        recalled->is_native = recall_native(start, (uint64_t)sums.python, recalled);
    }
    complete(&capture, recalled, &sums);
    if (is_empty(&capture)) {
        return 0;
    }
    struct stack_key key = key_of(&capture, &sums);
    uint32_t known = stack_table_find(&key);
    if (known != 0) {
        remember(&capture, start, recalled, &sums, known);
        return known;
    }
    if (recalled->is_python) {
        walk_python(&capture);
    }
    if (recalled->is_native) {
        walk_native(&capture);
    }
    return capture_new(&capture, &key);
}

uint32_t stacks_capture(void)
{
    if (!wanted()) {
        return 0;
    }
    const struct unwind_start start = UNWIND_START();
    const uint32_t generation = modules_generation();
    struct recalled recalled;
    recalled.is_python = recall_python(&recalled);
    recalled.is_native =
        recalled.is_python && recall_native(&start, recalled.python.sum[0], &recalled);
    if (recalled.is_native) {
        const struct stack_pair pair = {recalled.native.tag, recalled.python.tag,
                                        where(shim_generation(), generation)};
        uint32_t known = stack_pair_find(&pair);
        if (__builtin_expect(known != 0, 1)) {
            return known;
        }
    }
    return capture_by_walking(&start, generation, &recalled);
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
        make_keys();
        stack_table_begin();
        atomic_store(&last_id, 0);
        publish_method(lifecycle_ring);
    }
}
