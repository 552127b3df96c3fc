/* SPDX-License-Identifier: Apache-2.0 */
/* The ring's producers against a strict consumer: order, bounds, loss, and what jumps leave. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ring_lab.h"

#define MS 1000000ULL
#define SMALL 65536U

/* ---- what a record looks like ------------------------------------------------- */

struct seen {
    uint64_t count;
    uint64_t wrong;
    uint64_t last_position;
    uint64_t last_number[8]; /* per producer, in the event's stream field */
};

static void check_event(struct consumer *consumer, uint64_t position, uint32_t thread,
                        uint32_t cells, const unsigned char *body, size_t bytes)
{
    struct seen *seen = consumer->context;
    struct vs_event event;
    (void)bytes;
    if (cells != 2) {
        return;
    }
    memcpy(&event, body, sizeof(event));
    seen->wrong += event.handle != ~event.address || event.size != 1000 + event.address;
    seen->wrong += position <= seen->last_position || thread == 0;
    uint64_t *last = &seen->last_number[event.stream & 7U];
    seen->wrong += event.address <= *last;
    *last = event.address;
    seen->last_position = position;
    seen->count++;
}

Test(ring, first_record_is_not_at_position_zero)
{
    struct consumer consumer = lab_open(SMALL);
    struct vs_event event = lab_event(1);
    cr_assert_eq(shim_emit(&event), consumer.ring->cell_count);
    cr_assert_eq(shim_emit(&event), consumer.ring->cell_count + 2);
    cr_assert_neq(event.time_ns, 0);
}

Test(ring, what_goes_in_comes_out_over_many_laps)
{
    struct consumer consumer = lab_open(SMALL);
    struct seen seen = {0};
    consumer.on_record = check_event;
    consumer.context = &seen;
    for (uint64_t i = 1; i <= 20000; i++) {
        struct vs_event event = lab_event(i);
        cr_assert_neq(shim_emit(&event), 0);
        if (i % 300 == 0) {
            consumer_drain(&consumer);
        }
    }
    consumer_drain(&consumer);
    cr_assert_eq(seen.count, 20000);
    cr_assert_eq(seen.wrong, 0);
    cr_assert_eq(consumer.faults, 0);
}

static void check_definition(struct consumer *consumer, uint64_t position, uint32_t thread,
                             uint32_t cells, const unsigned char *body, size_t bytes)
{
    struct vs_record_head head;
    uint64_t *wrong = consumer->context;
    (void)position;
    (void)thread;
    memcpy(&head, body, sizeof(head));
    *wrong += cells < 3 || head.type != VS_RECORD_STRING || head.bytes > bytes - sizeof(head);
    for (uint32_t i = 0; i < head.bytes && i < bytes - sizeof(head); i++) {
        *wrong += body[sizeof(head) + i] != (unsigned char)(head.id + i);
    }
}

Test(ring, definitions_of_every_length_run_over_the_end_whole)
{
    struct consumer consumer = lab_open(SMALL);
    uint64_t wrong = 0;
    uint32_t sent = 0;
    consumer.on_record = check_definition;
    consumer.context = &wrong;
    for (uint32_t bytes = 0; bytes < 5300; bytes += 13) {
        unsigned char text[5300];
        for (uint32_t i = 0; i < bytes; i++) {
            text[i] = (unsigned char)(bytes + i);
        }
        uint32_t split = bytes / 3;
        cr_assert(shim_emit_definition(VS_RECORD_STRING, bytes, 0, text, split, text + split,
                                       bytes - split));
        sent++;
        consumer_drain(&consumer);
    }
    cr_assert_eq(wrong, 0);
    cr_assert_eq(consumer.records, sent);
    cr_assert_eq(consumer.events, 0, "two cells mean an event");
    cr_assert_eq(consumer.faults, 0);
}

Test(ring, a_record_that_is_too_long_is_refused_and_counted)
{
    static char text[VS_RECORD_MAX_CELLS * VS_CELL_BYTES];
    struct consumer consumer = lab_open(SMALL);
    cr_assert_not(shim_emit_definition(VS_RECORD_STRING, 1, 0, text, sizeof(text), NULL, 0));
    struct vs_loss_counter *lost = &consumer.ring->loss[VS_LOSS_TOO_LARGE][VS_RING_DEVICES - 1][0];
    cr_assert_eq(lost->events, 1);
    cr_assert_eq(consumer_drain(&consumer), 0);
}

/* A short run has a cost, too: the first events are all measured, then one in 64. */
Test(ring, the_first_events_are_timed)
{
    struct consumer consumer = lab_open(SMALL);
    shim_thread.events = 0;
    for (uint64_t i = 1; i <= 3; i++) {
        struct vs_event event = lab_event(i);
        shim_emit(&event);
    }
    cr_assert_eq(consumer.ring->spent_samples, 3);
    cr_assert_gt(consumer.ring->spent_ns, 0);
    cr_assert_lt(consumer.ring->spent_ns, 10 * MS);
    for (uint64_t i = 4; i <= 256; i++) {
        struct vs_event event = lab_event(i);
        shim_emit(&event);
    }
    cr_assert_eq(consumer.ring->spent_samples, 64 + 3);
}

/* ---- a full ring ---------------------------------------------------------------- */

static uint64_t lost_events(struct vs_ring_header *ring, enum vs_loss_cause cause)
{
    return ring->loss[cause][3][VS_KIND_ALLOC].events;
}

Test(ring, dropping_counts_every_event_and_byte)
{
    struct consumer consumer = lab_open(SMALL);
    uint64_t recorded = 0;
    uint64_t lost_bytes = 0;
    shim_config.when_full = SHIM_WHEN_FULL_DROP;
    for (uint64_t i = 1; i <= 5000; i++) {
        struct vs_event event = lab_event(i);
        if (shim_emit(&event) != 0) {
            recorded++;
        } else {
            lost_bytes += event.size;
        }
    }
    cr_assert_eq(recorded, consumer.ring->cell_count / 2);
    cr_assert_eq(recorded + lost_events(consumer.ring, VS_LOSS_FULL_DROP), 5000);
    cr_assert_eq(consumer.ring->loss[VS_LOSS_FULL_DROP][3][VS_KIND_ALLOC].bytes, lost_bytes);
    cr_assert_eq(consumer.ring->waited_ns, 0);
    cr_assert_eq(consumer_drain(&consumer), recorded);
}

static void fill(void)
{
    struct vs_event event = lab_event(1);
    enum shim_when_full before = shim_config.when_full;
    shim_config.when_full = SHIM_WHEN_FULL_DROP;
    while (shim_emit(&event) != 0) {
    }
    shim_config.when_full = before;
}

static unsigned sizes_asked;

static uint64_t size_of(const struct vs_event *event)
{
    sizes_asked++;
    return event->address;
}

static uint64_t emit_free(uint64_t bytes)
{
    struct vs_event event = lab_event(1);
    event.kind = VS_KIND_FREE;
    event.address = bytes;
    event.size = 0;
    return shim_emit_free(&event, size_of);
}

/* What is lost counts with its size, and so does every free from then on. */
Test(ring, frees_have_sizes_once_something_was_lost)
{
    struct consumer consumer = lab_open(SMALL);
    sizes_asked = 0;
    shim_config.when_full = SHIM_WHEN_FULL_DROP;
    cr_assert_neq(emit_free(100), 0);
    cr_assert_eq(sizes_asked, 0);
    fill();
    cr_assert_eq(emit_free(200), 0);
    const struct vs_loss_counter *lost = &consumer.ring->loss[VS_LOSS_FULL_DROP][3][VS_KIND_FREE];
    cr_assert_eq(lost->events, 1);
    cr_assert_eq(lost->bytes, 200);
    consumer_drain(&consumer);
    cr_assert_neq(emit_free(300), 0);
    cr_assert_eq(sizes_asked, 2);
}

Test(ring, a_lost_call_that_failed_moved_nothing)
{
    struct consumer consumer = lab_open(SMALL);
    struct vs_event event = lab_event(1);
    shim_config.when_full = SHIM_WHEN_FULL_DROP;
    fill();
    const struct vs_loss_counter *lost = &consumer.ring->loss[VS_LOSS_FULL_DROP][3][VS_KIND_ALLOC];
    uint64_t bytes = lost->bytes;
    event.result = 2;
    cr_assert_eq(shim_emit(&event), 0);
    cr_assert_eq(lost->bytes, bytes);
}

Test(ring, a_nested_writer_never_waits)
{
    struct consumer consumer = lab_open(SMALL);
    struct thread_frame outer;
    struct vs_event event = lab_event(1);
    fill();
    lifecycle_ring->start_monotonic_ns -= 1000000 * MS;
    thread_frame_open(&outer);
    shim_thread.busy_mark = &outer;
    shim_thread.busy = 1;
    uint64_t began = shim_now_ns();
    cr_assert_eq(shim_emit(&event), 0);
    cr_assert_lt(shim_now_ns() - began, 5 * MS);
    cr_assert_eq(lost_events(consumer.ring, VS_LOSS_NESTED), 1);
    cr_assert_eq(consumer.ring->waited_ns, 0);
}

Test(ring, waiting_is_bounded_per_event_then_stops_until_the_consumer_moves)
{
    struct consumer consumer = lab_open(SMALL);
    struct vs_event event = lab_event(1);
    fill();
    lifecycle_ring->start_monotonic_ns -= 100000 * MS;
    for (int i = 0; i < 10; i++) {
        uint64_t began = shim_now_ns();
        cr_assert_eq(shim_emit(&event), 0);
        cr_assert_lt(shim_now_ns() - began, 30 * MS, "10 ms, and what the machine adds");
    }
    cr_assert_geq(lost_events(consumer.ring, VS_LOSS_STALLED), 1);
    cr_assert_leq(lost_events(consumer.ring, VS_LOSS_FULL_WAITED), 6);

    uint64_t began = shim_now_ns();
    for (int i = 0; i < 1000; i++) {
        cr_assert_eq(shim_emit(&event), 0);
    }
    cr_assert_lt(shim_now_ns() - began, 20 * MS, "no waiting while nothing moves");
    consumer_drain(&consumer);
    cr_assert_neq(shim_emit(&event), 0);
}

/* Lets the tail creep: never a stall, never enough room. */
static void *creep(void *context)
{
    _Atomic bool *stop = context;
    while (!*stop) {
        struct timespec pause = {0, 20 * (long)MS};
        nanosleep(&pause, NULL);
        atomic_fetch_add(&lifecycle_ring->tail, 2);
    }
    return NULL;
}

Test(ring, waiting_takes_at_most_one_percent_of_wall_time)
{
    struct consumer consumer = lab_open(SMALL);
    _Atomic bool stop = false;
    pthread_t creeper;
    struct vs_event event = lab_event(1);
    fill();
    pthread_create(&creeper, NULL, creep, &stop);
    for (int i = 0; i < 200; i++) {
        struct timespec pause = {0, 2 * (long)MS};
        shim_emit(&event);
        nanosleep(&pause, NULL);
    }
    uint64_t wall = shim_now_ns() - consumer.ring->start_monotonic_ns;
    stop = true;
    pthread_join(creeper, NULL);
    cr_assert_gt(consumer.ring->waited_ns, 0);
    /* The last wait may overrun by what a busy machine takes to wake us; unbounded it were seconds.
     */
    cr_assert_leq(consumer.ring->waited_ns, wall / 100 + 25 * MS);
}

/* ---- the first lap -------------------------------------------------------------------- */

#ifndef __SANITIZE_THREAD__ /* whose shadow has faults of its own */

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#define LAP_BYTES (8U << 20)
#define PAGE 4096U

static long page_faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt;
}

/* Page faults of one lap through a ring whose pages exist, `populated` by another mapping of it. */
static long faults_of_a_lap(bool populated)
{
    uint64_t cells = ring_cells_for(LAP_BYTES);
    uint64_t bytes = ring_bytes_for(cells);
    int fd = memfd_create("lap", 0);
    cr_assert_eq(posix_fallocate(fd, 0, (off_t)bytes), 0);
    lifecycle_ring = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    void *other = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (populated && madvise(other, bytes, MADV_POPULATE_WRITE) != 0) {
        return -1;
    }
    ring_initialize(lifecycle_ring, cells, (uint32_t)getpid());
    long before = page_faults();
    for (uint64_t i = 1; i < cells / 2; i++) {
        struct vs_event event = lab_event(i);
        cr_assert_neq(shim_emit(&event), 0);
    }
    long faults = page_faults() - before;
    munmap(other, bytes);
    munmap(lifecycle_ring, bytes);
    return faults;
}

Test(ring, a_populated_ring_is_mapped_by_few_faults)
{
    long pages = LAP_BYTES / PAGE;
    long populated = faults_of_a_lap(true);
    if (populated < 0) {
        return; /* this kernel cannot populate (Linux 5.14 can) */
    }
    cr_assert_lt(populated, pages / 4, "%ld faults for %ld pages", populated, pages);
}

Test(ring, a_ring_that_nobody_populated_takes_a_fault_for_each_page_and_no_more)
{
    long pages = LAP_BYTES / PAGE;
    long faults = faults_of_a_lap(false);
    cr_assert_leq(faults, pages + pages / 4, "%ld faults for %ld pages", faults, pages);
}
#endif

/* ---- many producers --------------------------------------------------------------- */

#define PRODUCERS 4
#define EVENTS_EACH 100000U

struct producer {
    uint64_t number;
    uint64_t lost;
};

static void *produce(void *context)
{
    struct producer *producer = context;
    for (uint64_t i = 1; i <= EVENTS_EACH; i++) {
        struct vs_event event = lab_event(i);
        event.stream = producer->number;
        producer->lost += shim_emit(&event) == 0;
    }
    return NULL;
}

Test(ring, many_producers_lose_nothing_unaccounted, .timeout = 60)
{
    struct consumer consumer = lab_open(1U << 20);
    struct seen seen = {0};
    pthread_t threads[PRODUCERS];
    struct producer producers[PRODUCERS] = {{0}};
    consumer.on_record = check_event;
    consumer.context = &seen;
    for (unsigned i = 0; i < PRODUCERS; i++) {
        producers[i].number = i;
        pthread_create(&threads[i], NULL, produce, &producers[i]);
    }
    uint64_t lost = 0;
    uint64_t counted = 0;
    for (unsigned round = 0; round < PRODUCERS;) {
        consumer_drain(&consumer);
        if (pthread_tryjoin_np(threads[round], NULL) == 0) {
            lost += producers[round++].lost;
        } else {
            consumer_sleep(&consumer, MS);
        }
    }
    consumer_drain(&consumer);
    for (int cause = 0; cause < VS_LOSS_CAUSES; cause++) {
        counted += lost_events(consumer.ring, (enum vs_loss_cause)cause);
    }
    cr_assert_eq(lost, counted);
    cr_assert_eq(seen.count + lost, (uint64_t)PRODUCERS * EVENTS_EACH);
    cr_assert_eq(seen.wrong, 0);
    cr_assert_eq(consumer.faults, 0);
    cr_assert_eq(consumer.torn, 0);
}

/* ---- a producer stopped between reserve and commit ---------------------------------- */

static struct {
    enum ring_test_point at;
    _Atomic uint32_t victim; /* thread id */
    _Atomic bool reached;
    _Atomic bool go_on;
    void (*then)(void);
} stop_here;

static void stop_at_point(enum ring_test_point where, uint64_t position)
{
    (void)position;
    if (where != stop_here.at || shim_thread.tid != stop_here.victim) {
        return;
    }
    stop_here.victim = 0;
    stop_here.reached = true;
    while (!stop_here.go_on) {
        usleep(1000);
    }
    if (stop_here.then != NULL) {
        stop_here.then();
    }
}

static void *emit_one_and_stop(void *context)
{
    struct vs_event event = lab_event(7);
    event.stream = 7;
    (void)context;
    thread_first_use();
    stop_here.victim = shim_thread.tid;
    shim_emit(&event);
    return NULL;
}

static void stall_then(enum ring_test_point at)
{
    struct consumer consumer = lab_open(SMALL);
    struct seen seen = {0};
    pthread_t stalled;
    uint64_t recorded = 0;
    consumer.on_record = check_event;
    consumer.context = &seen;
    stop_here.at = at;
    ring_test_point = stop_at_point;
    shim_config.when_full = SHIM_WHEN_FULL_DROP;
    pthread_create(&stalled, NULL, emit_one_and_stop, NULL);
    while (!stop_here.reached) {
        usleep(100);
    }
    for (uint64_t i = 1; i <= 4 * consumer.ring->cell_count; i++) {
        struct vs_event event = lab_event(i);
        recorded += shim_emit(&event) != 0;
        cr_assert_eq(consumer_drain(&consumer), 0, "passed a record whose writer may wake");
    }
    cr_assert_eq(recorded, consumer.ring->cell_count / 2 - 1);
    stop_here.go_on = true;
    pthread_join(stalled, NULL);
    consumer_drain(&consumer);
    cr_assert_eq(seen.count, recorded + 1);
    cr_assert_eq(seen.wrong, 0);
    cr_assert_eq(consumer.faults + consumer.torn, 0);
}

Test(ring, a_writer_that_wakes_late_after_reserving_corrupts_nothing)
{
    stall_then(RING_RESERVED);
}

Test(ring, a_writer_that_wakes_late_after_claiming_corrupts_nothing)
{
    stall_then(RING_CLAIMED);
}

Test(ring, a_writer_that_wakes_late_before_committing_corrupts_nothing)
{
    stall_then(RING_BODY_WRITTEN);
}

static _Atomic uint32_t gone_thread;

static bool is_gone_thread(uint32_t thread)
{
    return thread == gone_thread;
}

static void leave_the_thread(void)
{
    gone_thread = shim_thread.tid;
    syscall(SYS_exit, 0);
}

static void wait_until_gone(void)
{
    while (gone_thread == 0 || syscall(SYS_tgkill, getpid(), (int)gone_thread, 0) == 0) {
        usleep(100);
    }
}

static void kill_thread_at(enum ring_test_point at, struct consumer *consumer)
{
    pthread_t doomed;
    struct vs_event event = lab_event(1);
    stop_here.at = at;
    stop_here.go_on = true;
    stop_here.then = leave_the_thread;
    ring_test_point = stop_at_point;
    shim_emit(&event);
    pthread_create(&doomed, NULL, emit_one_and_stop, NULL);
    wait_until_gone();
    event = lab_event(2);
    shim_emit(&event);
    consumer->thread_is_gone = is_gone_thread;
}

Test(ring, a_thread_that_died_after_claiming_is_passed_over)
{
    struct consumer consumer = lab_open(SMALL);
    kill_thread_at(RING_BODY_WRITTEN, &consumer);
    cr_assert_eq(consumer_drain(&consumer), 2);
    cr_assert_eq(consumer.torn, 1);
    cr_assert_eq(consumer.faults, 0);
}

Test(ring, a_thread_that_died_before_claiming_is_passed_over_only_with_its_process)
{
    struct consumer consumer = lab_open(SMALL);
    kill_thread_at(RING_RESERVED, &consumer);
    cr_assert_eq(consumer_drain(&consumer), 1);
    cr_assert_eq(consumer_drain(&consumer), 0);
    consumer.process_is_dead = true;
    cr_assert_eq(consumer_drain(&consumer), 1);
    cr_assert_eq(consumer.torn, 1);
}

/* ---- jumps ---------------------------------------------------------------------------- */

static sigjmp_buf out;

static void jump_out(void)
{
    siglongjmp(out, 1);
}

static void jump_out_of_a_write(enum ring_test_point at)
{
    struct vs_event event = lab_event(5);
    thread_first_use();
    stop_here.at = at;
    stop_here.go_on = true;
    stop_here.then = jump_out;
    stop_here.victim = shim_thread.tid;
    ring_test_point = stop_at_point;
    if (sigsetjmp(out, 0) == 0) {
        shim_emit(&event);
    }
}

static void count_kinds(struct consumer *consumer, uint64_t position, uint32_t thread,
                        uint32_t cells, const unsigned char *body, size_t bytes)
{
    struct vs_event event;
    uint64_t *kinds = consumer->context;
    (void)position;
    (void)thread;
    (void)bytes;
    if (cells == 2) {
        memcpy(&event, body, sizeof(event));
        kinds[event.kind]++;
    }
}

static void jump_and_go_on(enum ring_test_point at)
{
    struct consumer consumer = lab_open(SMALL);
    uint64_t kinds[256] = {0};
    struct vs_event event = lab_event(6);
    consumer.on_record = count_kinds;
    consumer.context = kinds;
    jump_out_of_a_write(at);
    cr_assert_eq(consumer_drain(&consumer), 0);
    cr_assert_neq(shim_emit(&event), 0);
    cr_assert_eq(consumer_drain(&consumer), 2);
    cr_assert_eq(kinds[VS_KIND_TORN], 1);
    cr_assert_eq(kinds[VS_KIND_ALLOC], 1);
    cr_assert_eq(shim_thread.busy, 0);
    cr_assert_eq(lab_abandoned, 1);
    cr_assert_eq(consumer.faults, 0);
}

Test(ring, a_jump_out_of_a_write_is_repaired_by_the_next)
{
    jump_and_go_on(RING_BODY_WRITTEN);
}

Test(ring, a_jump_right_after_reserving_is_repaired_by_the_next)
{
    jump_and_go_on(RING_RESERVED);
}

/* Frames of functions of their own, as hooks have. */
__attribute__((noinline)) static void enter_inner_and_jump(void)
{
    struct thread_frame inner;
    thread_enter(&inner);
    cr_assert_eq(shim_thread.depth, 2);
    siglongjmp(out, 1);
}

__attribute__((noinline)) static void enter_and_jump(void)
{
    struct thread_frame outer;
    thread_enter(&outer);
    enter_inner_and_jump();
}

Test(ring, a_hook_that_was_jumped_out_of_is_forgotten)
{
    struct thread_frame frame;
    lab_open(SMALL);
    if (sigsetjmp(out, 0) == 0) {
        enter_and_jump();
    }
    struct shim_thread *thread = thread_enter(&frame);
    cr_assert_eq(thread->depth, 1);
    cr_assert_eq(lab_abandoned, 1);
    thread_leave(thread, &frame);
    cr_assert_eq(thread->depth, 0);
}

/* Volatile: raise() is declared not to call back. */
static volatile uint16_t depth_in_handler;

static void enter_in_handler(int number)
{
    struct thread_frame frame;
    (void)number;
    struct shim_thread *thread = thread_enter(&frame);
    depth_in_handler = thread->depth;
    thread_leave(thread, &frame);
}

/* The alternate stack may lie above or below the thread's own: one of each. */
static void enter_on_stack(void *base, size_t bytes)
{
    struct sigaction action = {.sa_handler = enter_in_handler, .sa_flags = SA_ONSTACK};
    stack_t stack = {.ss_sp = base, .ss_size = bytes};
    struct thread_frame frame;
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    struct shim_thread *thread = thread_enter(&frame);
    depth_in_handler = 0;
    raise(SIGUSR1);
    cr_assert_eq(depth_in_handler, 2, "a handler on another stack is nested");
    cr_assert_eq(thread->depth, 1);
    thread_leave(thread, &frame);
}

static void *enter_with_both_stacks(void *context)
{
    char *middle = context;
    (void)context;
    enter_on_stack(middle - 65536, 65536);
    enter_on_stack(middle + (1U << 20), 65536);
    return NULL;
}

Test(ring, a_signal_handler_on_an_alternate_stack_is_nested)
{
    pthread_t thread;
    pthread_attr_t attributes;
    lab_open(SMALL);
    char *area = mmap(NULL, 3U << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *middle = area + (1U << 20);
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, middle, 1U << 20);
    cr_assert_eq(pthread_create(&thread, &attributes, enter_with_both_stacks, middle), 0);
    pthread_join(thread, NULL);
    cr_assert_eq(lab_abandoned, 0);
}

/* ---- not recording, and the end ---------------------------------------------------------- */

Test(ring, without_a_ring_events_are_handed_to_the_life_cycle)
{
    struct vs_event event = lab_event(1);
    lab_open(SMALL);
    lab_page.recording = 0;
    cr_assert_eq(shim_emit(&event), 0);
    cr_assert_eq(lab_unrecorded, 1);
    cr_assert_not(shim_emit_definition(VS_RECORD_STRING, 1, 0, "x", 1, NULL, 0));
}

static void *drain_later(void *context)
{
    struct consumer *consumer = context;
    usleep(30000);
    consumer_drain(consumer);
    consumer_written(consumer);
    return NULL;
}

Test(ring, waiting_for_the_file_ends_when_everything_is_written)
{
    struct consumer consumer = lab_open(SMALL);
    struct vs_event event = lab_event(1);
    pthread_t thread;
    shim_emit(&event);
    uint64_t began = shim_now_ns();
    cr_assert_not(ring_wait_drained(consumer.ring, 40 * MS));
    cr_assert_geq(shim_now_ns() - began, 40 * MS);
    pthread_create(&thread, NULL, drain_later, &consumer);
    began = shim_now_ns();
    cr_assert(ring_wait_drained(consumer.ring, 5000 * MS));
    cr_assert_lt(shim_now_ns() - began, 2000 * MS);
    cr_assert_geq(consumer.ring->flush_request, 2);
    pthread_join(thread, NULL);
}

Test(ring, waiting_for_the_file_ends_at_once_when_the_collector_has_failed)
{
    struct consumer consumer = lab_open(SMALL);
    struct vs_event event = lab_event(1);
    shim_emit(&event);
    consumer.ring->collector_state = VS_COLLECTOR_FAILED;
    uint64_t began = shim_now_ns();
    cr_assert_not(ring_wait_drained(consumer.ring, 5000 * MS));
    cr_assert_lt(shim_now_ns() - began, 1000 * MS);
}
