/* SPDX-License-Identifier: Apache-2.0 */
/* A strict reader of the ring: see consumer.h. */
#include "consumer.h"

#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static union vs_cell *cell_at(struct vs_ring_header *ring, uint64_t position)
{
    union vs_cell *cells = (union vs_cell *)((char *)ring + VS_RING_HEADER_BYTES);
    return &cells[position & (ring->cell_count - 1)];
}

static void futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void deliver(struct consumer *consumer, uint64_t position, uint32_t cells, uint64_t claim)
{
    unsigned char body[VS_RECORD_MAX_CELLS * VS_CELL_BYTES];
    size_t bytes = VS_CELL_FIRST_BODY;
    memcpy(body, cell_at(consumer->ring, position)->first.body, VS_CELL_FIRST_BODY);
    for (uint32_t i = 1; i < cells; i++) {
        union vs_cell *cell = cell_at(consumer->ring, position + i);
        consumer->faults += atomic_load(&cell->next.stamp) != position + i + 1;
        memcpy(body + bytes, cell->next.body, VS_CELL_NEXT_BODY);
        bytes += VS_CELL_NEXT_BODY;
    }
    consumer->records++;
    consumer->events += cells == 2;
    if (consumer->on_record != NULL) {
        consumer->on_record(consumer, position, VS_CLAIM_THREAD(claim), cells, body, bytes);
    }
}

/* Cells of an unfinished record that may be passed over now; 0: not yet. */
static uint32_t passable(struct consumer *consumer, uint64_t tail, uint64_t head, uint64_t stamp)
{
    struct vs_cell_first *first = &cell_at(consumer->ring, tail)->first;
    if (stamp == (VS_STAMP_CLAIMED | (tail + 1))) {
        uint64_t claim = atomic_load(&first->claim);
        bool gone = consumer->process_is_dead || (consumer->thread_is_gone != NULL &&
                                                  consumer->thread_is_gone(VS_CLAIM_THREAD(claim)));
        return gone ? VS_CLAIM_CELLS(claim) : 0;
    }
    if (!consumer->process_is_dead) {
        return 0;
    }
    uint64_t next = tail + 1;
    while (next < head) {
        uint64_t other = atomic_load(&cell_at(consumer->ring, next)->first.stamp);
        if ((other & ~VS_STAMP_CLAIMED) == next + 1) {
            break;
        }
        next++;
    }
    return (uint32_t)(next - tail);
}

/* Cells taken at `tail`; 0 when there is nothing to take. */
static uint32_t take_one(struct consumer *consumer, uint64_t tail, uint64_t head)
{
    struct vs_cell_first *first = &cell_at(consumer->ring, tail)->first;
    uint64_t stamp = atomic_load_explicit(&first->stamp, memory_order_acquire);
    if (stamp != tail + 1) {
        uint32_t cells = passable(consumer, tail, head, stamp);
        consumer->torn += cells != 0;
        return cells;
    }
    uint64_t claim = atomic_load_explicit(&first->claim, memory_order_relaxed);
    uint32_t cells = VS_CLAIM_CELLS(claim);
    if (cells < 2 || cells > VS_RECORD_MAX_CELLS ||
        VS_CLAIM_LAP(claim) != (uint32_t)(tail >> consumer->ring->cell_shift)) {
        consumer->faults++;
        return 0;
    }
    deliver(consumer, tail, cells, claim);
    return cells;
}

uint64_t consumer_drain(struct consumer *consumer)
{
    struct vs_ring_header *ring = consumer->ring;
    uint64_t tail = atomic_load(&ring->tail);
    uint64_t head = atomic_load(&ring->head);
    uint64_t before = consumer->records;
    uint64_t published = tail;
    uint32_t cells;

    while (tail < head && (cells = take_one(consumer, tail, head)) != 0) {
        tail += cells;
        if (tail - published >= ring->cell_count / 16) {
            atomic_store(&ring->tail, tail);
            published = tail;
        }
    }
    atomic_store(&ring->tail, tail);
    if (atomic_load(&ring->producers_waiting) != 0) {
        atomic_fetch_add(&ring->space_futex, 1);
        futex_wake(&ring->space_futex);
    }
    return consumer->records - before;
}

void consumer_sleep(struct consumer *consumer, uint64_t longest_ns)
{
    struct vs_ring_header *ring = consumer->ring;
    struct timespec longest = {(time_t)(longest_ns / 1000000000), (long)(longest_ns % 1000000000)};
    uint32_t seen = atomic_load(&ring->wake_futex);
    atomic_store(&ring->consumer_sleeping, 1);
    syscall(SYS_futex, &ring->wake_futex, FUTEX_WAIT, seen, &longest, NULL, 0);
    atomic_store(&ring->consumer_sleeping, 0);
}

void consumer_written(struct consumer *consumer)
{
    struct vs_ring_header *ring = consumer->ring;
    atomic_store(&ring->drained, atomic_load(&ring->tail));
    atomic_fetch_add(&ring->drain_futex, 1);
    futex_wake(&ring->drain_futex);
}
