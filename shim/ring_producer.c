/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reserve, claim, write, commit: how an event gets into the ring, what happens
 * when there is no room, and how what is lost is counted. Every function here
 * is async-signal-safe and leaves errno alone.
 */
#include "ring_producer.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "event_clock.h"
#include "lifecycle.h"
#include "stacks.h"
#include "sys.h"
#include "thread_state.h"

#define NS_PER_S 1000000000ULL
#define NS_PER_MS 1000000ULL
#define WAIT_PER_EVENT_NS (10 * NS_PER_MS)
#define WAIT_SHARE 100U           /* of wall time: one part in this many, per thread */
#define STALL_NS (50 * NS_PER_MS) /* a full ring on which nothing moves for so long */
#define WAIT_SLICE_NS NS_PER_MS   /* a wake-up that got lost costs no more than this */
#define WAKE_PARTS 8U             /* the consumer is woken that often per lap */
#define TIMED_ONE_IN 64U          /* events whose cost is measured */
#define RARE_NS 50000U            /* of a measured event: more is not scaled */
#define TIMED_FIRST 64U           /* of each thread, all of them */
#define RING_MIN_CELLS 1024U
#define EVENT_CELLS 2U
#define PENDING_CELL_BITS 7U
#define INLINE inline __attribute__((always_inline)) /* an event's own copy, without the calls */
/* Of the ring's room, so that a record seldom ends one: 8 KiB. The smallest ring has one per part.
 */
#define STEP_CELLS (RING_MIN_CELLS / WAKE_PARTS)
#define CELLS_AHEAD 16U /* far enough for the line to arrive, near enough for it to stay */

#ifdef VS_TEST_POINTS
void (*ring_test_point)(enum ring_test_point where, uint64_t position);
#define TEST_POINT(where, position)               \
    do {                                          \
        if (ring_test_point != NULL) {            \
            ring_test_point((where), (position)); \
        }                                         \
    } while (0)
#else
#define TEST_POINT(where, position) ((void)0)
#endif

/*
 * Seen by producers that found the ring full: the tail they found, and since
 * when. Two words that may disagree for a moment; the cost is one wait more or
 * less.
 */
static struct {
    _Atomic uint64_t tail;
    _Atomic uint64_t since_ns;
} full_ring;

uint64_t shim_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* ---- layout ---------------------------------------------------------------- */

uint64_t ring_cells_for(uint64_t bytes)
{
    uint64_t cells = RING_MIN_CELLS;
    while (cells * 2 * VS_CELL_BYTES <= bytes) {
        cells *= 2;
    }
    return cells;
}

uint64_t ring_bytes_for(uint64_t cell_count)
{
    return VS_RING_HEADER_BYTES + cell_count * VS_CELL_BYTES;
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

void ring_initialize(struct vs_ring_header *ring, uint64_t cell_count, uint32_t pid)
{
    ring->magic = VS_RING_MAGIC;
    ring->version = VS_RING_VERSION;
    ring->header_bytes = VS_RING_HEADER_BYTES;
    ring->cell_count = cell_count;
    ring->cell_shift = (uint32_t)__builtin_ctzll(cell_count);
    ring->pid = pid;
    ring->page_bytes = 4096;
    ring->start_monotonic_ns = clock_ns(CLOCK_MONOTONIC);
    ring->start_boot_ns = clock_ns(CLOCK_BOOTTIME);
    ring->start_real_ns = clock_ns(CLOCK_REALTIME);
    atomic_init(&ring->head, cell_count);
    atomic_init(&ring->tail, cell_count);
    atomic_init(&ring->tail_seen, cell_count);
    atomic_init(&ring->drained, cell_count);
}

static INLINE union vs_cell *cell_at(struct vs_ring_header *ring, uint64_t position)
{
    union vs_cell *cells = (union vs_cell *)((char *)ring + VS_RING_HEADER_BYTES);
    return &cells[position & (ring->cell_count - 1)];
}

/* ---- waking and waiting ---------------------------------------------------- */

void ring_futex_wait(_Atomic uint32_t *word, uint32_t seen, uint64_t longest_ns)
{
    struct timespec longest = {(time_t)(longest_ns / NS_PER_S), (long)(longest_ns % NS_PER_S)};
    sys_call4(SYS_futex, word, FUTEX_WAIT, seen, &longest);
}

void ring_futex_wake(_Atomic uint32_t *word)
{
    sys_call3(SYS_futex, word, FUTEX_WAKE, INT32_MAX);
}

void ring_wake_consumer(struct vs_ring_header *ring)
{
    /* seq_cst: pairs with the consumer's store of consumer_sleeping before its last look at head.
     */
    atomic_fetch_add(&ring->wake_futex, 1);
    if (atomic_load(&ring->consumer_sleeping) != 0) {
        ring_futex_wake(&ring->wake_futex);
    }
}

void ring_request_flush(struct vs_ring_header *ring)
{
    atomic_fetch_add(&ring->flush_request, 1);
    ring_wake_consumer(ring);
}

static bool consumer_has_ended(struct vs_ring_header *ring)
{
    uint32_t state = atomic_load(&ring->collector_state);
    return state == VS_COLLECTOR_FAILED || state == VS_COLLECTOR_DONE;
}

bool ring_wait_drained(struct vs_ring_header *ring, uint64_t longest_ns)
{
    uint64_t target = atomic_load(&ring->head);
    uint64_t now = shim_now_ns();
    uint64_t deadline = now + longest_ns;

    ring_request_flush(ring);
    for (;;) {
        /* Before drained: a write between the two loads then ends the wait at once. */
        uint32_t seen = atomic_load(&ring->drain_futex);
        if (atomic_load(&ring->drained) >= target) {
            return true;
        }
        if (now >= deadline || consumer_has_ended(ring) || !lifecycle_collector_lives()) {
            return false;
        }
        uint64_t left = deadline - now;
        ring_futex_wait(&ring->drain_futex, seen, left < 20 * NS_PER_MS ? left : 20 * NS_PER_MS);
        now = shim_now_ns();
    }
}

/* ---- loss ------------------------------------------------------------------ */

void ring_count_loss(struct vs_ring_header *ring, enum vs_loss_cause cause, int device,
                     unsigned kind, uint64_t events, uint64_t bytes)
{
    unsigned slot =
        device >= 0 && device < (int)VS_RING_DEVICES - 1 ? (unsigned)device : VS_RING_DEVICES - 1;
    struct vs_loss_counter *counter = &ring->loss[cause][slot][kind & (VS_RING_LOSS_KINDS - 1)];
    /* Relaxed: counters, read again after the process is dead. */
    atomic_fetch_add_explicit(&counter->bytes, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&counter->events, events, memory_order_relaxed);
    atomic_store_explicit(&ring->last_loss_position,
                          atomic_load_explicit(&ring->head, memory_order_relaxed),
                          memory_order_relaxed);
}

/* ---- room ------------------------------------------------------------------ */

/* A tail beyond `head` means that head is an old value: the exchange will fail and bring the new
 * one. */
static INLINE bool fits(const struct vs_ring_header *ring, uint64_t head, uint64_t tail,
                        uint32_t cells)
{
    int64_t used = (int64_t)(head - tail);
    return used < 0 || (uint64_t)used + cells <= ring->cell_count;
}

static INLINE bool has_room(struct vs_ring_header *ring, uint64_t head, uint32_t cells)
{
    /* Acquire, as for tail itself: what the consumer read is read before we overwrite it. */
    uint64_t tail = atomic_load_explicit(&ring->tail_seen, memory_order_acquire);
    if (fits(ring, head, tail, cells)) {
        return true;
    }
    tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
    if (!fits(ring, head, tail, cells)) {
        return false;
    }
    /* Release: hands our acquire on. It may move back a little, which only costs a look at tail. */
    atomic_store_explicit(&ring->tail_seen, tail, memory_order_release);
    return true;
}

/*
 * Another core's copy of the line is taken for writing at once: read first and
 * then exchanged it would travel twice.
 */
static inline void prefetch_for_writing(const void *line)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
    __builtin_prefetch(line, 1);
#endif
}

/* True with *position when `cells` cells are ours. */
static INLINE bool try_reserve(struct vs_ring_header *ring, uint32_t cells, uint64_t *position)
{
    prefetch_for_writing((const void *)&ring->head);
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    while (has_room(ring, head, cells)) {
        /* Relaxed: the order of positions needs none, the stamps publish the contents. */
        if (atomic_compare_exchange_weak_explicit(&ring->head, &head, head + cells,
                                                  memory_order_relaxed, memory_order_relaxed)) {
            *position = head;
            return true;
        }
    }
    return false;
}

/* True when the tail has not moved for STALL_NS of a full ring. */
static bool consumer_stalls(struct vs_ring_header *ring, uint64_t now_ns)
{
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    if (atomic_load_explicit(&full_ring.tail, memory_order_relaxed) != tail) {
        atomic_store_explicit(&full_ring.since_ns, now_ns, memory_order_relaxed);
        atomic_store_explicit(&full_ring.tail, tail, memory_order_relaxed);
        return false;
    }
    uint64_t since_ns = atomic_load_explicit(&full_ring.since_ns, memory_order_relaxed);
    return now_ns > since_ns && now_ns - since_ns >= STALL_NS;
}

/* What this thread may still wait: its share of the time since recording began. */
static uint64_t wait_allowance(const struct vs_ring_header *ring, const struct shim_thread *thread,
                               uint64_t now_ns)
{
    uint64_t share = (now_ns - ring->start_monotonic_ns) / WAIT_SHARE;
    uint64_t left = share > thread->waited_ns ? share - thread->waited_ns : 0;
    return left < WAIT_PER_EVENT_NS ? left : WAIT_PER_EVENT_NS;
}

static void sleep_for_room(struct vs_ring_header *ring, uint32_t cells, uint64_t longest_ns)
{
    atomic_fetch_add(&ring->producers_waiting, 1);
    uint32_t seen = atomic_load(&ring->space_futex);
    uint64_t head = atomic_load(&ring->head);
    if (!fits(ring, head, atomic_load(&ring->tail), cells)) {
        ring_futex_wait(&ring->space_futex, seen, longest_ns);
    }
    atomic_fetch_sub(&ring->producers_waiting, 1);
}

/*
 * The ring is full. Sleeps within the bounds of docs/architecture.md until the
 * reservation succeeds; otherwise says in *cause why not.
 */
static bool reserve_waiting(struct vs_ring_header *ring, struct shim_thread *thread, uint32_t cells,
                            uint64_t *position, enum vs_loss_cause *cause)
{
    uint64_t start = shim_now_ns();
    uint64_t now = start;
    uint64_t deadline = start + wait_allowance(ring, thread, start);
    bool reserved = false;

    *cause = VS_LOSS_FULL_WAITED;
    ring_wake_consumer(ring);
    while (!reserved) {
        if (consumer_stalls(ring, now)) {
            *cause = VS_LOSS_STALLED;
            break;
        }
        if (now >= deadline) {
            break;
        }
        uint64_t left = deadline - now;
        sleep_for_room(ring, cells, left < WAIT_SLICE_NS ? left : WAIT_SLICE_NS);
        now = shim_now_ns();
        reserved = try_reserve(ring, cells, position);
    }
    thread->waited_ns += now - start;
    atomic_fetch_add_explicit(&ring->waited_ns, now - start, memory_order_relaxed);
    return reserved;
}

static bool reserve(struct vs_ring_header *ring, struct shim_thread *thread, uint32_t cells,
                    uint64_t *position, enum vs_loss_cause *cause)
{
    if (try_reserve(ring, cells, position)) {
        return true;
    }
    if (thread->busy > 1) {
        *cause = VS_LOSS_NESTED;
    } else if (shim_config.when_full == SHIM_WHEN_FULL_DROP) {
        *cause = VS_LOSS_FULL_DROP;
    } else {
        return reserve_waiting(ring, thread, cells, position, cause);
    }
    ring_wake_consumer(ring);
    return false;
}

/* ---- one record ------------------------------------------------------------ */

static INLINE void claim(struct vs_ring_header *ring, uint64_t position, uint32_t cells,
                         uint32_t tid)
{
    struct vs_cell_first *first = &cell_at(ring, position)->first;
    TEST_POINT(RING_RESERVED, position);
    atomic_store_explicit(&first->claim, VS_CLAIM(position, cells, tid, ring->cell_shift),
                          memory_order_relaxed);
    /* Release: whoever sees the stamp sees whose it is. */
    atomic_store_explicit(&first->stamp, VS_STAMP_CLAIMED | (position + 1), memory_order_release);
    TEST_POINT(RING_CLAIMED, position);
}

/*
 * Of the first lap: a page that is read first is mapped together with those around it (64 KiB) that
 * the collector has populated; one that is written first is mapped by itself. Where nothing is
 * populated the read maps the one page that the next step would have begun with.
 */
static void map_ahead(struct vs_ring_header *ring, uint64_t next)
{
    if (next < 2 * ring->cell_count) {
        atomic_load_explicit(&cell_at(ring, next + STEP_CELLS)->first.stamp, memory_order_relaxed);
    }
}

/* A record ended at or beyond the end of its step. */
static __attribute__((noinline)) void finish_step(struct vs_ring_header *ring, uint64_t position,
                                                  uint64_t next)
{
    uint64_t part = ring->cell_count / WAKE_PARTS;
    if (((position ^ next) & ~(part - 1)) != 0) {
        ring_wake_consumer(ring);
    }
    map_ahead(ring, next);
}

static INLINE void commit(struct vs_ring_header *ring, uint64_t position, uint32_t cells)
{
    TEST_POINT(RING_BODY_WRITTEN, position);
    /* Release, the first cell last: its stamp publishes the whole record. */
    for (uint32_t i = cells - 1; i > 0; i--) {
        atomic_store_explicit(&cell_at(ring, position + i)->next.stamp, position + i + 1,
                              memory_order_release);
    }
    atomic_store_explicit(&cell_at(ring, position)->first.stamp, position + 1,
                          memory_order_release);
    uint64_t next = position + cells;
    if (__builtin_expect(((position ^ next) & ~(uint64_t)(STEP_CELLS - 1)) != 0, 0)) {
        finish_step(ring, position, next);
    }
}

static INLINE void write_event(struct vs_ring_header *ring, uint64_t position,
                               const struct vs_event *event)
{
    memcpy(cell_at(ring, position)->first.body, event, VS_CELL_FIRST_BODY);
    memcpy(cell_at(ring, position + 1)->next.body, (const char *)event + VS_CELL_FIRST_BODY,
           sizeof(*event) - VS_CELL_FIRST_BODY);
}

/* Where the next byte of a long record goes. */
struct body_cursor {
    struct vs_ring_header *ring;
    uint64_t position;
    uint32_t offset; /* in the body of the cell at `position` */
    bool first;
};

static void write_bytes(struct body_cursor *cursor, const void *bytes, uint32_t count)
{
    const char *source = bytes;
    while (count > 0) {
        uint32_t room = (cursor->first ? VS_CELL_FIRST_BODY : VS_CELL_NEXT_BODY) - cursor->offset;
        uint32_t step = count < room ? count : room;
        union vs_cell *cell = cell_at(cursor->ring, cursor->position);
        memcpy((cursor->first ? cell->first.body : cell->next.body) + cursor->offset, source, step);
        source += step;
        count -= step;
        cursor->offset += step;
        if (step == room) {
            cursor->position++;
            cursor->offset = 0;
            cursor->first = false;
        }
    }
}

/* Closes a reservation whose writer was jumped out of, so that the ring goes on. */
static void close_pending(struct vs_ring_header *ring, struct shim_thread *thread)
{
    uint64_t position = thread->pending >> PENDING_CELL_BITS;
    uint32_t cells = (uint32_t)(thread->pending & ((1U << PENDING_CELL_BITS) - 1));
    thread->pending = 0;
    if (cells == 0 || atomic_load_explicit(&cell_at(ring, position)->first.stamp,
                                           memory_order_relaxed) == position + 1) {
        return;
    }
    claim(ring, position, cells, thread->tid);
    if (cells == EVENT_CELLS) {
        struct vs_event torn = {.time_ns = shim_now_ns(),
                                .kind = VS_KIND_TORN,
                                .device = VS_DEVICE_UNKNOWN,
                                .free_bytes = VS_FREE_UNKNOWN,
                                .extra = {cells, 0}};
        write_event(ring, position, &torn);
    } else {
        struct vs_record_head head = {.type = VS_RECORD_PAD};
        struct body_cursor cursor = {ring, position, 0, true};
        write_bytes(&cursor, &head, sizeof(head));
    }
    commit(ring, position, cells);
}

/* `busy` counts the writers on this thread's stacks; the mark is the innermost one's frame. */
struct writer {
    struct thread_frame frame;
    struct thread_frame *outer_mark;
    uint64_t outer_pending;
};

static INLINE void writer_open(struct vs_ring_header *ring, struct shim_thread *thread,
                               struct writer *writer)
{
    if (__builtin_expect(thread->tid == 0 || thread->generation != shim_generation(), 0)) {
        thread_first_use();
    }
    if (__builtin_expect(thread->busy != 0, 0) &&
        !thread_frame_is_live((const struct thread_frame *)thread->busy_mark, &writer->frame)) {
        close_pending(ring, thread);
        thread->busy = 0;
        lifecycle_count_abandoned();
    }
    writer->outer_mark = thread->busy_mark;
    writer->outer_pending = thread->pending;
    thread_frame_open(&writer->frame);
    thread->busy_mark = &writer->frame;
    /* Only now may a signal handler take us for a live writer. */
    atomic_signal_fence(memory_order_seq_cst);
    thread->busy++;
}

static INLINE void writer_close(struct shim_thread *thread, struct writer *writer)
{
    thread->busy--;
    atomic_signal_fence(memory_order_seq_cst);
    thread->busy_mark = writer->outer_mark;
    thread->pending = writer->outer_pending;
    *(volatile uint64_t *)&writer->frame.guard = 0;
}

/*
 * A lap later the cells are in no cache of ours. While this thread writes alone
 * it fetches ahead; several would only take the lines from each other.
 */
static INLINE void fetch_ahead(struct vs_ring_header *ring, struct shim_thread *thread,
                               uint64_t position, uint32_t cells)
{
    if (thread->after_mine == (uint8_t)position) {
        prefetch_for_writing(cell_at(ring, position + CELLS_AHEAD));
        prefetch_for_writing(cell_at(ring, position + CELLS_AHEAD + 1));
    }
    thread->after_mine = (uint8_t)(position + cells);
}

/* Reserves and claims; `pending` lets a jump out of here be repaired. */
static INLINE bool writer_begin(struct vs_ring_header *ring, struct shim_thread *thread,
                                uint32_t cells, uint64_t *position, enum vs_loss_cause *cause)
{
    if (!reserve(ring, thread, cells, position, cause)) {
        return false;
    }
    thread->pending = *position << PENDING_CELL_BITS | cells;
    atomic_signal_fence(memory_order_seq_cst);
    claim(ring, *position, cells, thread->tid);
    fetch_ahead(ring, thread, *position, cells);
    return true;
}

/* How many events the thread's next one stands for when its cost is measured; 0: it is not. */
static uint32_t events_timed(struct shim_thread *thread)
{
    uint32_t number = ++thread->events;
    if (__builtin_expect(number <= TIMED_FIRST, 0)) {
        return 1;
    }
    return number % TIMED_ONE_IN == 0 ? TIMED_ONE_IN : 0;
}

/*
 * Waiting is accounted for by itself. What one event takes beyond RARE_NS is the moment's (another
 * thread had the processor, a page came from disk), and says nothing of the events it stands for.
 */
static void account_spent(struct vs_ring_header *ring, uint64_t since_ns, uint64_t waited_ns,
                          uint32_t events)
{
    uint64_t spent = event_ns_between(since_ns + waited_ns, event_now_ns());
    uint64_t usual = spent < RARE_NS ? spent : RARE_NS;
    atomic_fetch_add_explicit(&ring->spent_ns, usual * events + (spent - usual),
                              memory_order_relaxed);
    atomic_fetch_add_explicit(&ring->spent_samples, 1, memory_order_relaxed);
}

/* A call that failed moved nothing. */
static void count_lost_event(struct vs_ring_header *ring, const struct vs_event *event,
                             enum vs_loss_cause cause)
{
    ring_count_loss(ring, cause, event->device, event->kind, 1,
                    event->result == 0 ? event->size : 0);
}

/* What the program did, as against what is measured, taken back or told of the process. */
static bool has_cause(unsigned kind)
{
    return (kind < VS_KIND_SAMPLE && kind != VS_KIND_UNDO) ||
           (kind >= VS_KIND_MARK && kind <= VS_KIND_PHASE_END);
}

/* Its stack and, if it has none yet, its time; *timing says what that costs, if it is measured. */
struct timing {
    uint32_t events; /* that this one stands for; 0: not measured */
    uint64_t began_ns;
    uint64_t waited_before_ns;
};

static inline void complete(struct vs_event *event, struct shim_thread *thread,
                            struct timing *timing)
{
    if (__builtin_expect(!thread->named || thread->generation != shim_generation(), 0)) {
        intern_thread();
    }
    timing->events = events_timed(thread);
    timing->waited_before_ns = thread->waited_ns;
    timing->began_ns = timing->events != 0 || event->time_ns == 0 ? event_now_ns() : 0;
    if (event->time_ns == 0) {
        event->time_ns = timing->began_ns;
    }
    if (event->stack == 0 && has_cause(event->kind)) {
        event->stack = stacks_capture();
    }
}

/* Returns the sequence; 0 when it was lost: not counted yet if *cause is below VS_LOSS_CAUSES. */
static inline uint64_t put_event(struct vs_event *event, enum vs_loss_cause *cause)
{
    struct shim_thread *thread = &shim_thread;
    struct timing timing = {0};
    *cause = VS_LOSS_CAUSES;
    if (shim_recording() ||
        (thread->busy == 0 && lifecycle_wait_until_recording(WAIT_PER_EVENT_NS))) {
        complete(event, thread, &timing);
    }
    /* Once more: a signal handler may have forked meanwhile. */
    if (!shim_recording()) {
        lifecycle_lose_unrecorded(event);
        return 0;
    }
    struct vs_ring_header *ring = lifecycle_ring;
    struct writer writer;
    uint64_t position = 0;

    writer_open(ring, thread, &writer);
    if (writer_begin(ring, thread, EVENT_CELLS, &position, cause)) {
        write_event(ring, position, event);
        commit(ring, position, EVENT_CELLS);
        *cause = VS_LOSS_CAUSES;
    } else {
        position = 0;
    }
    if (timing.events != 0) {
        account_spent(ring, timing.began_ns, thread->waited_ns - timing.waited_before_ns,
                      timing.events);
    }
    writer_close(thread, &writer);
    return position;
}

uint64_t shim_emit(struct vs_event *event)
{
    enum vs_loss_cause cause;
    uint64_t position = put_event(event, &cause);
    if (__builtin_expect(cause < VS_LOSS_CAUSES, 0)) {
        count_lost_event(lifecycle_ring, event, cause);
    }
    return position;
}

uint64_t shim_emit_free(struct vs_event *event, uint64_t (*size_of)(const struct vs_event *event))
{
    enum vs_loss_cause cause;
    if (shim_recording() &&
        atomic_load_explicit(&lifecycle_ring->last_loss_position, memory_order_relaxed) != 0) {
        event->size = size_of(event);
    }
    uint64_t position = put_event(event, &cause);
    if (__builtin_expect(cause < VS_LOSS_CAUSES, 0)) {
        event->size = event->size != 0 ? event->size : size_of(event);
        count_lost_event(lifecycle_ring, event, cause);
    }
    return position;
}

static uint32_t cells_for(uint64_t bytes)
{
    uint64_t cells = 1;
    if (bytes > VS_CELL_FIRST_BODY) {
        cells += (bytes - VS_CELL_FIRST_BODY + VS_CELL_NEXT_BODY - 1) / VS_CELL_NEXT_BODY;
    }
    return cells > UINT32_MAX ? UINT32_MAX
                              : (uint32_t)(cells > EVENT_CELLS ? cells : EVENT_CELLS + 1);
}

bool shim_emit_definition(uint8_t type, uint32_t id, uint32_t aux, const void *payload,
                          uint32_t bytes, const void *more, uint32_t more_bytes)
{
    if (!shim_recording()) {
        return false;
    }
    struct vs_ring_header *ring = lifecycle_ring;
    struct shim_thread *thread = &shim_thread;
    struct vs_record_head head = {.type = type, .id = id, .bytes = bytes + more_bytes, .aux = aux};
    uint32_t cells = cells_for(sizeof(head) + (uint64_t)bytes + more_bytes);
    struct writer writer;
    enum vs_loss_cause cause;
    uint64_t position;

    if (cells > VS_RECORD_MAX_CELLS) {
        ring_count_loss(ring, VS_LOSS_TOO_LARGE, VS_DEVICE_UNKNOWN, 0, 1, head.bytes);
        return false;
    }
    writer_open(ring, thread, &writer);
    bool recorded = writer_begin(ring, thread, cells, &position, &cause);
    if (recorded) {
        struct body_cursor cursor = {ring, position, 0, true};
        write_bytes(&cursor, &head, sizeof(head));
        write_bytes(&cursor, payload, bytes);
        write_bytes(&cursor, more, more_bytes);
        commit(ring, position, cells);
    }
    writer_close(thread, &writer);
    return recorded;
}
