/* SPDX-License-Identifier: Apache-2.0 */
/* Consumer of the ring; see drain.h for what it promises. */
#include "drain.h"

#include <errno.h>
#include <string.h>

#include "futex.h"

#define EVENT_CELLS 2U

static union vs_cell *cell_at(const struct drain *drain, uint64_t position)
{
    return &drain->cells[position & (drain->cell_count - 1)];
}

int drain_open(struct drain *drain, void *ring, uint64_t mapped_bytes)
{
    struct vs_ring_header *header = ring;
    if (mapped_bytes < VS_RING_HEADER_BYTES || header->magic != VS_RING_MAGIC ||
        header->version != VS_RING_VERSION || header->header_bytes != VS_RING_HEADER_BYTES)
        return -EINVAL;
    uint64_t cell_count = header->cell_count;
    uint32_t shift = header->cell_shift;
    if (shift == 0 || shift > 40 || cell_count != 1ULL << shift ||
        cell_count > (mapped_bytes - VS_RING_HEADER_BYTES) / VS_CELL_BYTES)
        return -EINVAL;
    memset(drain, 0, sizeof *drain);
    drain->header = header;
    drain->cells = (union vs_cell *)((char *)ring + VS_RING_HEADER_BYTES);
    drain->cell_count = cell_count;
    drain->shift = shift;
    drain->position = atomic_load_explicit(&header->tail, memory_order_relaxed);
    drain->released = drain->position;
    return 0;
}

/* End of what is reserved. Acquire: pairs with the producers' compare-and-swap. */
static uint64_t reserved_end(const struct drain *drain)
{
    uint64_t head = atomic_load_explicit(&drain->header->head, memory_order_acquire);
    /* A head that no producer can have made is somebody's stray write: nothing to read there. */
    return head - drain->released > drain->cell_count ? drain->position : head;
}

uint64_t drain_backlog(const struct drain *drain)
{
    return reserved_end(drain) - drain->position;
}

/* Acquire pairs with the producer's release of the stamp: claim and body are visible after it. */
static uint64_t stamp_at(const struct drain *drain, uint64_t position)
{
    return atomic_load_explicit(&cell_at(drain, position)->first.stamp, memory_order_acquire);
}

static bool is_committed(const struct drain *drain, uint64_t position)
{
    return stamp_at(drain, position) == position + 1;
}

static bool is_claimed(const struct drain *drain, uint64_t position)
{
    return stamp_at(drain, position) == (VS_STAMP_CLAIMED | (position + 1));
}

/* The claim word of a claimed or committed record; 0 when it does not fit this lap and what is
 * reserved. */
static uint64_t valid_claim(const struct drain *drain, uint64_t position, uint64_t end)
{
    /* Relaxed: ordered by the acquire of the stamp that the caller has seen. */
    uint64_t claim =
        atomic_load_explicit(&cell_at(drain, position)->first.claim, memory_order_relaxed);
    uint32_t cells = VS_CLAIM_CELLS(claim);
    if (VS_CLAIM_LAP(claim) != (uint32_t)(position >> drain->shift) || cells < EVENT_CELLS ||
        cells > VS_RECORD_MAX_CELLS || cells > end - position)
        return 0;
    return claim;
}

static enum drain_result pass_torn(struct drain *drain, uint64_t cells, uint32_t thread,
                                   struct drain_record *out)
{
    out->sequence = drain->position;
    out->cells = (uint32_t)cells;
    out->thread = thread;
    out->body_bytes = 0;
    drain->position += cells;
    drain->torn_records++;
    drain->torn_cells += cells;
    return DRAIN_TORN;
}

/*
 * How many cells a reservation without a claim took, once its owner is dead: up
 * to the next cell that bears a stamp of this lap. Its own cells bear none.
 */
static uint64_t unclaimed_cells(const struct drain *drain, uint64_t end)
{
    uint64_t at = drain->position + 1;
    while (at < end && !is_committed(drain, at) && !is_claimed(drain, at))
        at++;
    return at - drain->position;
}

static enum drain_result next_unfinished(struct drain *drain, uint64_t end,
                                         struct drain_record *out)
{
    uint64_t position = drain->position;
    uint64_t claim = is_claimed(drain, position) ? valid_claim(drain, position, end) : 0;
    if (!drain->process_dead) {
        uint32_t owner = VS_CLAIM_THREAD(claim);
        if (!claim || owner == DRAIN_OWN_THREAD || !drain->thread_gone ||
            !drain->thread_gone(drain->thread_gone_context, owner))
            return DRAIN_BLOCKED;
        /* It may have committed between our look at the stamp and its end. */
        if (is_committed(drain, position))
            return drain_next(drain, out);
    }
    if (claim)
        return pass_torn(drain, VS_CLAIM_CELLS(claim), VS_CLAIM_THREAD(claim), out);
    return pass_torn(drain, unclaimed_cells(drain, end), DRAIN_OWN_THREAD, out);
}

static void copy_body(const struct drain *drain, struct drain_record *out)
{
    uint8_t *to = out->body;
    memcpy(to, cell_at(drain, out->sequence)->first.body, VS_CELL_FIRST_BODY);
    to += VS_CELL_FIRST_BODY;
    for (uint32_t i = 1; i < out->cells; i++, to += VS_CELL_NEXT_BODY)
        memcpy(to, cell_at(drain, out->sequence + i)->next.body, VS_CELL_NEXT_BODY);
    out->body_bytes = (uint32_t)(to - out->body);
}

enum drain_result drain_next(struct drain *drain, struct drain_record *out)
{
    uint64_t position = drain->position;
    uint64_t end = reserved_end(drain);
    if (position == end)
        return DRAIN_EMPTY;
    if (!is_committed(drain, position))
        return next_unfinished(drain, end, out);
    uint64_t claim = valid_claim(drain, position, end);
    uint32_t cells = VS_CLAIM_CELLS(claim);
    for (uint32_t i = 1; i < cells; i++)
        if (!is_committed(drain, position + i))
            claim = 0;
    /* Committed, yet senseless: overwritten by a stray store. Nobody writes it any more; one cell
     * on. */
    if (!claim)
        return pass_torn(drain, 1, DRAIN_OWN_THREAD, out);
    out->sequence = position;
    out->cells = cells;
    out->thread = VS_CLAIM_THREAD(claim);
    copy_body(drain, out);
    drain->position = position + cells;
    return DRAIN_RECORD;
}

void drain_release(struct drain *drain, uint64_t now_ns)
{
    if (drain->released == drain->position)
        return;
    drain->released = drain->position;
    atomic_store_explicit(&drain->header->consumer_progress_ns, now_ns, memory_order_relaxed);
    /* Sequentially consistent: pairs with a producer that counts itself waiting and looks at tail
     * again; and our reads are over before anybody reuses the room. */
    atomic_store(&drain->header->tail, drain->position);
    if (atomic_load(&drain->header->producers_waiting)) {
        atomic_fetch_add(&drain->header->space_futex, 1);
        futex_wake_all(&drain->header->space_futex);
    }
}

static bool reserve(struct drain *drain, uint32_t cells, uint64_t *position)
{
    uint64_t head = atomic_load_explicit(&drain->header->head, memory_order_relaxed);
    do {
        if (head + cells - drain->released > drain->cell_count)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&drain->header->head, &head, head + cells,
                                                    memory_order_acq_rel, memory_order_relaxed));
    *position = head;
    return true;
}

int drain_inject(struct drain *drain, const struct vs_event *event)
{
    uint64_t position;
    if (!reserve(drain, EVENT_CELLS, &position))
        return -EAGAIN;
    union vs_cell *first = cell_at(drain, position), *second = cell_at(drain, position + 1);
    atomic_store_explicit(&first->first.claim,
                          VS_CLAIM(position, EVENT_CELLS, DRAIN_OWN_THREAD, drain->shift),
                          memory_order_relaxed);
    /* Release: a reader of a left-over ring sees the claim with the stamp, and both before the
     * body. */
    atomic_store_explicit(&first->first.stamp, VS_STAMP_CLAIMED | (position + 1),
                          memory_order_release);
    memcpy(first->first.body, event, VS_CELL_FIRST_BODY);
    memcpy(second->next.body, (const char *)event + VS_CELL_FIRST_BODY,
           sizeof *event - VS_CELL_FIRST_BODY);
    atomic_store_explicit(&second->next.stamp, position + 2, memory_order_release);
    atomic_store_explicit(&first->first.stamp, position + 1, memory_order_release);
    return 0;
}
