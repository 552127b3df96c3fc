/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One id for one stack, whatever happens between the claim of its entry and the
 * commit of its record: another thread, a signal, a jump, a thread's end, a fork.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../shim/stack_table.h"
#include "stack_lab.h"

#define RING (1U << 20)
#define IDS_MAX 4096U
#define WORDS_MAX 600U

/* ---- what was sent ---------------------------------------------------------------- */

struct sent {
    unsigned stacks;
    uint32_t generation[IDS_MAX];
    unsigned count[IDS_MAX]; /* 0: never sent */
    unsigned repeated;
    uint64_t last[WORDS_MAX];
    unsigned wrong;
};

static void note_record(struct consumer *consumer, uint64_t position, uint32_t thread,
                        uint32_t cells, const unsigned char *body, size_t bytes)
{
    struct sent *sent = consumer->context;
    struct vs_record_head head;
    struct vs_record_stack stack;
    (void)position, (void)thread;
    memcpy(&head, body, sizeof(head));
    if (cells == 2 || head.type != VS_RECORD_STACK) {
        return;
    }
    memcpy(&stack, body + sizeof(head), sizeof(stack));
    sent->wrong += head.id == 0 || head.id >= IDS_MAX || head.aux > WORDS_MAX ||
                   head.bytes != sizeof(stack) + 8 * head.aux || sizeof(head) + head.bytes > bytes;
    if (sent->wrong == 0) {
        sent->stacks++;
        sent->repeated += sent->count[head.id] != 0;
        sent->count[head.id] = head.aux;
        sent->generation[head.id] = stack.generation;
        memcpy(sent->last, body + sizeof(head) + sizeof(stack), 8 * head.aux);
    }
}

static struct sent *drain(struct consumer *consumer)
{
    static struct sent sent;
    memset(&sent, 0, sizeof(sent));
    consumer->on_record = note_record;
    consumer->context = &sent;
    consumer_drain(consumer);
    cr_assert_eq(sent.wrong, 0);
    cr_assert_eq(sent.repeated, 0, "an id stands for one record");
    return &sent;
}

/* ---- one thread -------------------------------------------------------------------- */

Test(interning, a_stack_is_sent_once)
{
    struct consumer consumer = lab_begin(RING);
    lab_stack(0x1000, 20, 3);
    uint32_t id = stacks_capture();
    cr_assert_neq(id, 0);
    for (int i = 0; i < 100; i++) {
        cr_assert_eq(stacks_capture(), id);
    }
    struct sent *sent = drain(&consumer);
    cr_assert_eq(sent->stacks, 1);
    cr_assert_eq(sent->count[id], 23);
    cr_assert_eq(sent->generation[id], 1);
    cr_assert_eq(sent->last[19], 0x1000 + 16 * 19);
    cr_assert_eq(sent->last[20], vs_frame_interpreter(1, 0x1000, false));
    cr_assert_eq(sent->last[22], vs_frame_interpreter(3, 0x1000, true));
    cr_assert_eq(lab_modules_asked, 20, "each address's object is looked for, so that it is sent");
    cr_assert_eq(consumer.ring->stacks_sent, 1);
    cr_assert_eq(consumer.ring->stacks_inline, 0);
}

/* The marks are part of the record, not of what tells stacks apart. */
Test(interning, calls_of_the_interpreter_loop_are_marked)
{
    struct consumer consumer = lab_begin(RING);
    lab_stack(0x1000, 20, 3);
    lab_loops[0] = 0x1000 + 16 * 7;
    lab_loop_count = 1;
    uint32_t id = stacks_capture();
    cr_assert_eq(stacks_capture(), id);
    lab_loop_count = 0;
    cr_assert_eq(stacks_capture(), id);
    struct sent *sent = drain(&consumer);
    cr_assert_eq(sent->stacks, 1);
    cr_assert_eq(sent->last[6], 0x1000 + 16 * 6);
    cr_assert_eq(sent->last[7], (0x1000 + 16 * 7) | VS_FRAME_LOOP);
    cr_assert_eq(sent->last[8], 0x1000 + 16 * 8);
}

Test(interning, whatever_differs_makes_another_stack)
{
    struct consumer consumer = lab_begin(RING);
    uint32_t ids[16];
    unsigned count = 0;
    lab_stack(0x1000, 20, 3);
    ids[count++] = stacks_capture();
    lab_stack(0x1000, 19, 3);
    ids[count++] = stacks_capture();
    lab_stack(0x1000, 20, 2);
    ids[count++] = stacks_capture();
    lab_stack(0x1000, 20, 3);
    lab_tables.native[4] ^= VS_FRAME_EXACT;
    ids[count++] = stacks_capture();
    lab_stack(0x1000, 20, 3);
    lab_walk.python[0].version++;
    ids[count++] = stacks_capture();
    lab_stack(0x1000, 20, 3);
    lab_walk.python[0].entry = true;
    ids[count++] = stacks_capture();
    lab_stack(0x1000, 20, 3);
    uint64_t word = lab_tables.native[2];
    lab_tables.native[2] = lab_tables.native[3];
    lab_tables.native[3] = word;
    ids[count++] = stacks_capture();
    lab_stack(0x1000, 20, 3);
    lab_tables.native_note = VS_STACK_NOTE_NATIVE_STOPPED;
    ids[count++] = stacks_capture();
    lab_stack(0x1000, 20, 0);
    ids[count++] = stacks_capture();
    lab_walk.python_note = VS_STACK_NOTE_PYTHON_NO_FRAME;
    ids[count++] = stacks_capture();
    lab_stack(0x1000, 20, 3);
    lab_modules_generation++;
    ids[count++] = stacks_capture();
    for (unsigned i = 0; i < count; i++) {
        for (unsigned j = 0; j < i; j++) {
            cr_assert_neq(ids[i], ids[j], "%u and %u", i, j);
        }
    }
    cr_assert_eq(drain(&consumer)->stacks, count);
    cr_assert_eq(consumer.ring->native_stopped, 1);
}

/* Neighbours in every sense: near addresses, one word changed, words in another order. */
Test(interning, many_alike_stacks_stay_apart)
{
    struct consumer consumer = lab_begin(RING);
    unsigned stacks = 0;
    consumer.on_record = NULL;
    for (unsigned depth = 1; depth <= 40; depth++) {
        lab_stack(0x400000, depth, depth % 3);
        for (unsigned at = 0; at < depth; at++) {
            for (unsigned change = 1; change <= 100; change++) {
                lab_tables.native[at] += 1;
                stacks++;
                cr_assert_eq(stacks_capture(), stacks, "a new stack has the next id");
            }
            lab_tables.native[at] -= 100;
            consumer_drain(&consumer);
        }
    }
    cr_assert_eq(consumer.ring->stacks_inline, 0);
}

Test(interning, only_what_is_wanted_is_walked)
{
    struct consumer consumer = lab_begin(RING);
    lab_stack(0x1000, 20, 3);
    shim_config.want_python = false;
    uint32_t native = stacks_capture();
    cr_assert_eq(drain(&consumer)->count[native], 20);
    shim_config.want_python = true;
    shim_config.want_native = false;
    uint32_t python = stacks_capture();
    cr_assert_eq(drain(&consumer)->count[python], 3);
    lab_stack(0x1000, 20, 0);
    cr_assert_eq(stacks_capture(), 0, "nothing was found, and nothing is missing");
    shim_config.want_python = false;
    cr_assert_eq(stacks_capture(), 0);
    cr_assert_eq(drain(&consumer)->stacks, 0);
}

Test(interning, the_depth_cuts_each_kind_and_says_so)
{
    struct consumer consumer = lab_begin(RING);
    lab_stack(0x1000, 20, 9);
    shim_config.depth = 5;
    struct sent *sent;
    uint32_t id = stacks_capture();
    sent = drain(&consumer);
    cr_assert_eq(sent->count[id], 12);
    cr_assert_eq(sent->last[5], vs_frame_note(VS_STACK_NOTE_NATIVE_CUT));
    cr_assert_eq(sent->last[11], vs_frame_note(VS_STACK_NOTE_PYTHON_CUT));
    lab_stack(0x1000, LAB_WORDS, LAB_WORDS);
    shim_config.depth = STACKS_DEPTH_MAX;
    id = stacks_capture();
    cr_assert_eq(drain(&consumer)->count[id], 2 * STACKS_DEPTH_MAX);
}

Test(interning, without_a_name_for_its_code_the_native_stack_is_kept)
{
    struct consumer consumer = lab_begin(RING);
    lab_stack(0x1000, 20, 3);
    lab_unknown_code = 1;
    uint32_t without = stacks_capture();
    cr_assert_eq(stacks_capture(), without);
    struct sent *sent = drain(&consumer);
    cr_assert_eq(sent->stacks, 1);
    cr_assert_eq(sent->count[without], 21);
    cr_assert_eq(sent->last[20], vs_frame_note(VS_STACK_NOTE_PYTHON_NO_ROOM));
    lab_unknown_code = 0;
    uint32_t id = stacks_capture();
    cr_assert_neq(id, without, "it is tried again each time");
    cr_assert_eq(drain(&consumer)->count[id], 23);
    cr_assert_eq(stacks_capture(), id);
}

Test(interning, a_stack_that_found_no_room_is_sent_the_next_time)
{
    struct consumer consumer = lab_begin(1U << 16);
    shim_config.when_full = SHIM_WHEN_FULL_DROP;
    unsigned found_room = 0;
    uint64_t first = 0x1000;
    do {
        lab_stack(first += 16, 60, 0);
        found_room++;
    } while (stacks_capture() != 0);
    cr_assert_gt(found_room, 10);
    cr_assert_eq(consumer.ring->stacks_lost, 1);
    consumer_drain(&consumer);
    uint32_t id = stacks_capture();
    cr_assert_neq(id, 0);
    cr_assert_eq(stacks_capture(), id);
    cr_assert_eq(consumer.ring->stacks_inline, 0);
    cr_assert_eq(consumer.ring->stacks_sent, found_room);
}

Test(interning, frame_pointers_are_given_up_at_the_first_difference)
{
    struct consumer consumer = lab_begin(RING);
    lab_method = VS_NATIVE_FRAME_POINTERS;
    lab_stack(0x1000, 20, 0);
    uint32_t same = stacks_capture();
    cr_assert_eq(lab_method, VS_NATIVE_FRAME_POINTERS);
    lab_stack(0x2000, 20, 0);
    lab_tables.native_count = 24;
    uint32_t proved = stacks_capture();
    cr_assert_eq(lab_method, VS_NATIVE_TABLES);
    struct sent *sent = drain(&consumer);
    cr_assert_eq(sent->count[same], 20);
    cr_assert_eq(sent->count[proved], 24);
    cr_assert_eq(sent->stacks, 2);
    cr_assert_eq(consumer.ring->native_method, VS_NATIVE_TABLES);
}

/* ---- walks that went before -------------------------------------------------------------- */

#define KINDS 30U /* so many of each: their pairs are more than there are places for */

/* The native walk `native` under the Python one `python`: of other lengths, each. */
static void stack_of(unsigned native, unsigned python)
{
    lab_stack(0x1000 + (uint64_t)native * 0x10000, 5 + native % 3, 0);
    lab_walk.python_count = 2 + python % 2;
    for (unsigned i = 0; i < lab_walk.python_count; i++) {
        lab_walk.python[i] =
            (struct python_frame){.code = 1 + i, .version = 7, .offset = (int32_t)(2 * python)};
    }
    lab_tables = lab_walk;
}

static uint32_t made_without_recalling(void)
{
    lab_recalls = false;
    uint32_t id = stacks_capture();
    lab_recalls = true;
    return id;
}

/* Sent just now: what the walks find, though both were recalled. */
static void expect_words_sent(struct consumer *consumer)
{
    const uint64_t *words = drain(consumer)->last;
    for (unsigned i = 0; i < lab_walk.native_count; i++) {
        cr_assert_eq(*words++, lab_walk.native[i]);
    }
    for (unsigned i = 0; i < lab_walk.python_count; i++) {
        const struct python_frame *frame = &lab_walk.python[i];
        cr_assert_eq(*words++, vs_frame_interpreter((uint32_t)frame->code, (uint32_t)frame->offset,
                                                    frame->entry));
    }
}

/* Each pair, some times: always the id that a walk gives. */
static void capture_pairs(void)
{
    for (unsigned i = 0; i < 3 * KINDS * KINDS; i++) {
        stack_of(i % KINDS, i / KINDS % KINDS);
        uint32_t id = stacks_capture();
        cr_assert_neq(id, 0);
        cr_assert_eq(stacks_capture(), id);
        cr_assert_eq(made_without_recalling(), id);
    }
}

Test(interning, walks_that_are_recalled_have_the_ids_of_walks_that_are_made)
{
    struct consumer consumer = lab_begin(RING);
    lab_recalls = true;
    capture_pairs();
    cr_assert_gt(lab_recalled, 4 * KINDS * KINDS);
    cr_assert_eq(consumer.ring->stacks_sent, KINDS * KINDS);
    cr_assert_eq(consumer.ring->stacks_inline, 0);
    struct sent *sent = drain(&consumer);
    for (unsigned i = 0; i < KINDS * KINDS; i++) {
        stack_of(i % KINDS, i / KINDS);
        cr_assert_eq(sent->count[stacks_capture()], lab_walk.native_count + lab_walk.python_count);
    }
    lab_modules_generation++;
    capture_pairs();
    cr_assert_eq(consumer.ring->stacks_sent, 2 * KINDS * KINDS, "in another generation others");
    lab_page.generation++;
    capture_pairs();
    cr_assert_eq(consumer.ring->stacks_sent, 3 * KINDS * KINDS, "and in another process");
    drain(&consumer);
    lab_modules_generation++;
    for (unsigned i = 0; i < KINDS; i++) {
        stack_of(i, i * 7 % KINDS);
        lab_recalled = 0;
        stacks_capture();
        cr_assert_eq(lab_recalled, 2);
        expect_words_sent(&consumer);
    }
}

/* ---- interrupted between claim and commit --------------------------------------------- */

static pthread_barrier_t stopped, go_on;
static _Atomic pthread_t who_stops;

static void stop_one_thread(enum stacks_test_point where)
{
    if (where == STACKS_CLAIMED && pthread_equal(who_stops, pthread_self())) {
        pthread_barrier_wait(&stopped);
        pthread_barrier_wait(&go_on);
    }
}

static void *capture_the_stack(void *id)
{
    who_stops = pthread_self();
    lab_stack(0x1000, 20, 3);
    *(uint32_t *)id = stacks_capture();
    return NULL;
}

Test(interning, two_threads_race_for_a_new_stack)
{
    struct consumer consumer = lab_begin(RING);
    pthread_t other;
    uint32_t first = 0;
    pthread_barrier_init(&stopped, NULL, 2);
    pthread_barrier_init(&go_on, NULL, 2);
    stacks_test_point = stop_one_thread;
    pthread_create(&other, NULL, capture_the_stack, &first);
    pthread_barrier_wait(&stopped);
    lab_stack(0x1000, 20, 3);
    uint32_t second = stacks_capture();
    cr_assert_neq(second, 0, "the unfinished entry is not waited for");
    cr_assert_eq(stacks_capture(), second, "and is settled by who came second");
    pthread_barrier_wait(&go_on);
    pthread_join(other, NULL);
    cr_assert_neq(first, 0);
    cr_assert_neq(first, second);
    cr_assert_eq(stacks_capture(), second);
    struct sent *sent = drain(&consumer);
    cr_assert_eq(sent->stacks, 2);
    cr_assert_eq(sent->count[first], 23);
    cr_assert_eq(sent->count[second], 23);
    cr_assert_eq(consumer.ring->stacks_inline, 1);
}

#ifndef __SANITIZE_THREAD__ /* which waits for ever for a thread that ends by the bare system call \
                             */
static void end_this_thread(enum stacks_test_point where)
{
    if (where == STACKS_CLAIMED && pthread_equal(who_stops, pthread_self())) {
        syscall(SYS_exit, 0);
    }
}

Test(interning, a_thread_that_ends_in_between_leaves_nothing_behind)
{
    struct consumer consumer = lab_begin(RING);
    pthread_t other;
    uint32_t none = 0;
    stacks_test_point = end_this_thread;
    pthread_create(&other, NULL, capture_the_stack, &none);
    pthread_join(other, NULL);
    cr_assert_eq(none, 0);
    lab_stack(0x1000, 20, 3);
    uint32_t id = stacks_capture();
    cr_assert_neq(id, 0);
    cr_assert_eq(stacks_capture(), id);
    cr_assert_eq(drain(&consumer)->stacks, 1);
    cr_assert_eq(consumer.ring->stacks_inline, 0);
}
#endif

static sigjmp_buf out;
static int jumps;

static void jump_out(enum stacks_test_point where)
{
    if (jumps > 0 && (int)where == jumps - 1) {
        siglongjmp(out, 1);
    }
}

Test(interning, a_jump_out_in_between_leaves_nothing_behind)
{
    struct consumer consumer = lab_begin(RING);
    stacks_test_point = jump_out;
    lab_stack(0x1000, 20, 3);
    for (jumps = 1; jumps <= 2; jumps++) {
        if (sigsetjmp(out, 1) == 0) {
            stacks_capture();
            cr_assert_fail("did not jump");
        }
    }
    jumps = 0;
    uint32_t id = stacks_capture();
    cr_assert_neq(id, 0);
    cr_assert_eq(stacks_capture(), id);
    struct sent *sent = drain(&consumer);
    cr_assert_eq(sent->count[id], 23);
    cr_assert_eq(sent->stacks, 2, "the one whose sender jumped out behind the commit, and ours");
}

static uint32_t in_handler[2];

static void on_signal(int number)
{
    struct lab_walk interrupted = lab_walk;
    (void)number;
    in_handler[0] = stacks_capture();
    lab_stack(0x9000, 7, 1);
    in_handler[1] = stacks_capture();
    lab_walk = lab_tables = interrupted;
}

static void raise_once(enum stacks_test_point where)
{
    if (where == STACKS_CLAIMED) {
        stacks_test_point = NULL;
        raise(SIGUSR1);
    }
}

Test(interning, a_signal_handler_captures_inside_a_capture)
{
    struct consumer consumer = lab_begin(RING);
    struct sent *sent;
    signal(SIGUSR1, on_signal);
    stacks_test_point = raise_once;
    lab_stack(0x1000, 20, 3);
    uint32_t id = stacks_capture();
    cr_assert_neq(id, 0);
    cr_assert_neq(in_handler[0], 0);
    cr_assert_neq(in_handler[1], in_handler[0]);
    cr_assert_eq(stacks_capture(), in_handler[0]);
    sent = drain(&consumer);
    cr_assert_eq(sent->stacks, 3);
    cr_assert_eq(sent->count[id], 23);
    cr_assert_eq(sent->count[in_handler[0]], 23);
    cr_assert_eq(sent->count[in_handler[1]], 8);
}

/* ---- forked in between ------------------------------------------------------------------- */

static pid_t child = -1;

static void fork_once(enum stacks_test_point where)
{
    if (where == STACKS_CLAIMED && child < 0) {
        child = (pid_t)syscall(SYS_fork);
        if (child == 0) {
            lab_page.recording = 0; /* the state page is wiped */
            munmap(lifecycle_ring, ring_bytes_for(lifecycle_ring->cell_count));
        }
    }
}

/* In the child: nothing of the parent's table is there, ids begin anew. */
static int child_sees(uint32_t captured)
{
    if (captured != 0) {
        return 1;
    }
    lab_page.generation = 2;
    struct consumer consumer = lab_begin(RING);
    lab_page.recording = 1;
    struct stack_key key = {0x1234, 0x5678};
    if (stack_table_find(&key) != 0) {
        return 2;
    }
    uint32_t id = stacks_capture();
    return id != 1 ? 3 : drain(&consumer)->stacks != 1 ? 4 : stacks_capture() != id ? 5 : 0;
}

Test(interning, a_fork_between_claim_and_commit)
{
    struct consumer consumer = lab_begin(RING);
    struct stack_key key = {0x1234, 0x5678};
    int status = -1;
    cr_assert(stack_table_settle(stack_table_claim(&key), 77));
    lab_stack(0x5000, 3, 0);
    cr_assert_eq(stacks_capture(), 1);
    lab_stack(0x1000, 20, 3);
    stacks_test_point = fork_once;
    uint32_t id = stacks_capture();
    if (child == 0) {
        _exit(child_sees(id));
    }
    cr_assert_eq(id, 2);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
    cr_assert_eq(stack_table_find(&key), 77);
    cr_assert_eq(stacks_capture(), id);
    cr_assert_eq(drain(&consumer)->stacks, 2);
}

/* ---- the table ------------------------------------------------------------------------------ */

static uint64_t scramble(uint64_t n)
{
    n = (n ^ (n >> 30)) * 0xbf58476d1ce4e5b9ULL;
    n = (n ^ (n >> 27)) * 0x94d049bb133111ebULL;
    return (n ^ (n >> 31)) | 1;
}

/* Fills the table until nothing more finds a place. Returns how many did. */
static uint32_t fill_table(void)
{
    uint32_t kept = 0;
    unsigned refused = 0;
    for (uint64_t n = 1; refused < 4000000; n++) {
        struct stack_key key = {scramble(n), n};
        _Atomic uint32_t *place = stack_table_claim(&key);
        if (place == NULL) {
            refused++;
            continue;
        }
        kept += stack_table_settle(place, (uint32_t)n);
    }
    return kept;
}

Test(table, takes_a_million_and_finds_each)
{
    stack_table_begin();
    for (uint64_t n = 1; n <= 1000000; n++) {
        struct stack_key key = {scramble(n), n};
        _Atomic uint32_t *place = stack_table_claim(&key);
        cr_assert_not_null(place, "%lu", (unsigned long)n);
        cr_assert_eq(stack_table_find(&key), 0, "not before it is settled");
        cr_assert(stack_table_settle(place, (uint32_t)n));
    }
    for (uint64_t n = 1; n <= 1000000; n++) {
        struct stack_key key = {scramble(n), n};
        struct stack_key other = {scramble(n), n + 1};
        cr_assert_eq(stack_table_find(&key), n);
        cr_assert_eq(stack_table_find(&other), 0, "half of the key is not enough");
    }
}

Test(table, two_stacks_that_share_half_their_key_keep_apart)
{
    stack_table_begin();
    struct stack_key one = {5, 1};
    struct stack_key two = {5, 2};
    _Atomic uint32_t *first = stack_table_claim(&one);
    _Atomic uint32_t *second = stack_table_claim(&two);
    cr_assert_neq(first, second);
    cr_assert_eq(stack_table_claim(&one), first);
    cr_assert(stack_table_settle(first, 11));
    cr_assert(stack_table_settle(second, 22));
    cr_assert_not(stack_table_settle(second, 33));
    cr_assert_eq(stack_table_find(&one), 11);
    cr_assert_eq(stack_table_find(&two), 22);
}

Test(interning, stacks_go_in_line_when_the_table_is_full)
{
    struct consumer consumer = lab_begin(RING);
    cr_assert_gt(fill_table(), 1500000);
    unsigned refused = 0;
    for (unsigned i = 0; i < 1000; i++) {
        lab_stack(0x1000 + i * 16, 3, 0);
        uint32_t id = stacks_capture();
        uint32_t again = stacks_capture();
        cr_assert(id != 0 && again != 0);
        refused += id != again;
    }
    cr_assert_gt(refused, 500);
    struct sent *sent = drain(&consumer);
    cr_assert_eq(sent->stacks, 1000 + refused);
    cr_assert_eq(consumer.ring->stacks_inline, 2 * refused);
    cr_assert_eq(consumer.ring->stacks_lost, 0);
}
