/* SPDX-License-Identifier: Apache-2.0 */
/* The consumer against a scripted ring: order, wrap-around, stalled and dead producers, stray
 * stores. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../collector/drain.h"
#include "../../collector/loss.h"

#define CELLS 16U
#define SHIFT 4U
#define THREAD 77U

static struct vs_ring_header *header;
static struct drain drain;
static struct drain_record record;
static bool thread_is_gone;

static bool gone(void *context, uint32_t thread)
{
    (void)context;
    cr_assert_eq(thread, THREAD);
    return thread_is_gone;
}

static union vs_cell *cell(uint64_t position)
{
    union vs_cell *cells = (union vs_cell *)((char *)header + VS_RING_HEADER_BYTES);
    return &cells[position & (CELLS - 1)];
}

static void setup(void)
{
    size_t bytes = VS_RING_HEADER_BYTES + CELLS * VS_CELL_BYTES;
    header = aligned_alloc(VS_CELL_BYTES * 2, bytes);
    memset(header, 0, bytes);
    header->magic = VS_RING_MAGIC;
    header->version = VS_RING_VERSION;
    header->header_bytes = VS_RING_HEADER_BYTES;
    header->cell_count = CELLS;
    header->cell_shift = SHIFT;
    header->head = header->tail = header->drained = CELLS;
    cr_assert_eq(drain_open(&drain, header, bytes), 0);
    drain.thread_gone = gone;
    thread_is_gone = false;
}

static void teardown(void)
{
    free(header);
}

TestSuite(collector_drain, .init = setup, .fini = teardown);

static uint64_t reserve(uint32_t cells)
{
    uint64_t position = header->head;
    cr_assert_leq(position + cells - header->tail, CELLS, "the script overfills the ring");
    header->head += cells;
    return position;
}

static void claim(uint64_t position, uint32_t cells)
{
    cell(position)->first.claim = VS_CLAIM(position, cells, THREAD, SHIFT);
    cell(position)->first.stamp = VS_STAMP_CLAIMED | (position + 1);
}

/* Fills every body byte with `fill`, then commits. */
static void commit(uint64_t position, uint32_t cells, uint8_t fill)
{
    memset(cell(position)->first.body, fill, VS_CELL_FIRST_BODY);
    for (uint32_t i = 1; i < cells; i++) {
        memset(cell(position + i)->next.body, fill, VS_CELL_NEXT_BODY);
        cell(position + i)->next.stamp = position + i + 1;
    }
    cell(position)->first.stamp = position + 1;
}

static uint64_t put(uint32_t cells, uint8_t fill)
{
    uint64_t position = reserve(cells);
    claim(position, cells);
    commit(position, cells, fill);
    return position;
}

static void expect_record(uint64_t position, uint32_t cells, uint8_t fill)
{
    cr_assert_eq(drain_next(&drain, &record), DRAIN_RECORD);
    cr_assert_eq(record.sequence, position);
    cr_assert_eq(record.cells, cells);
    cr_assert_eq(record.thread, THREAD);
    cr_assert_eq(record.body_bytes, VS_CELL_FIRST_BODY + (cells - 1) * VS_CELL_NEXT_BODY);
    for (uint32_t i = 0; i < record.body_bytes; i++)
        cr_assert_eq(record.body[i], fill, "byte %u", i);
}

static void expect_torn(uint64_t position, uint32_t cells, uint32_t thread)
{
    cr_assert_eq(drain_next(&drain, &record), DRAIN_TORN);
    cr_assert_eq(record.sequence, position);
    cr_assert_eq(record.cells, cells);
    cr_assert_eq(record.thread, thread);
}

Test(collector_drain, empty)
{
    cr_assert_eq(drain_next(&drain, &record), DRAIN_EMPTY);
    cr_assert_eq(drain_backlog(&drain), 0);
}

Test(collector_drain, records_in_order)
{
    uint64_t first = put(2, 0xa1), second = put(5, 0xb2);
    cr_assert_eq(drain_backlog(&drain), 7);
    expect_record(first, 2, 0xa1);
    expect_record(second, 5, 0xb2);
    cr_assert_eq(drain_next(&drain, &record), DRAIN_EMPTY);
}

Test(collector_drain, room_is_given_back_only_on_release)
{
    uint64_t position = put(2, 1);
    expect_record(position, 2, 1);
    cr_assert_eq(header->tail, position);
    drain_release(&drain, 12345);
    cr_assert_eq(header->tail, position + 2);
    cr_assert_eq(header->consumer_progress_ns, 12345);
}

Test(collector_drain, waiting_producers_are_told)
{
    expect_record(put(2, 1), 2, 1);
    header->producers_waiting = 1;
    drain_release(&drain, 1);
    cr_assert_eq(header->space_futex, 1);
}

Test(collector_drain, many_laps_with_records_over_the_end)
{
    for (unsigned i = 0; i < 200; i++) {
        uint32_t cells = 2 + i % 7;
        expect_record(put(cells, (uint8_t)i), cells, (uint8_t)i);
        drain_release(&drain, i);
    }
    cr_assert_gt(header->tail, 3 * CELLS);
}

Test(collector_drain, a_stalled_producer_is_never_passed)
{
    uint64_t stalled = reserve(3);
    claim(stalled, 3);
    uint64_t later = put(2, 9);
    for (unsigned i = 0; i < 1000; i++)
        cr_assert_eq(drain_next(&drain, &record), DRAIN_BLOCKED);
    commit(stalled, 3, 7); /* it wakes */
    expect_record(stalled, 3, 7);
    expect_record(later, 2, 9);
    cr_assert_eq(drain.torn_records, 0);
}

Test(collector_drain, reserved_but_not_claimed_blocks_a_live_process)
{
    reserve(2);
    put(2, 9);
    thread_is_gone = true; /* nobody knows whose it is */
    cr_assert_eq(drain_next(&drain, &record), DRAIN_BLOCKED);
}

Test(collector_drain, the_record_of_a_gone_thread_is_torn)
{
    uint64_t torn = reserve(3);
    claim(torn, 3);
    uint64_t later = put(2, 9);
    thread_is_gone = true;
    expect_torn(torn, 3, THREAD);
    expect_record(later, 2, 9);
    cr_assert_eq(drain.torn_records, 1);
    cr_assert_eq(drain.torn_cells, 3);
}

Test(collector_drain, half_stamped_record_of_a_gone_thread)
{
    uint64_t torn = reserve(3);
    claim(torn, 3);
    cell(torn + 2)->next.stamp = torn + 3;
    cell(torn + 1)->next.stamp = torn + 2;
    uint64_t later = put(2, 9);
    thread_is_gone = true;
    expect_torn(torn, 3, THREAD);
    expect_record(later, 2, 9);
}

static bool gone_after_committing(void *context, uint32_t thread)
{
    (void)thread;
    commit(*(uint64_t *)context, 2, 5);
    return true;
}

Test(collector_drain, a_thread_that_commits_with_its_last_breath_is_heard)
{
    uint64_t position = reserve(2);
    claim(position, 2);
    drain.thread_gone = gone_after_committing;
    drain.thread_gone_context = &position;
    expect_record(position, 2, 5);
}

Test(collector_drain, no_thread_questions_no_passing)
{
    claim(reserve(2), 2);
    drain.thread_gone = NULL;
    cr_assert_eq(drain_next(&drain, &record), DRAIN_BLOCKED);
}

Test(collector_drain, a_dead_process_leaves_nothing_unread)
{
    uint64_t whole = put(2, 1);
    uint64_t claimed = reserve(3);
    claim(claimed, 3);
    uint64_t bare = reserve(4);
    uint64_t last = put(2, 2);
    drain.process_dead = true;
    expect_record(whole, 2, 1);
    expect_torn(claimed, 3, THREAD);
    expect_torn(bare, 4, DRAIN_OWN_THREAD);
    expect_record(last, 2, 2);
    cr_assert_eq(drain_next(&drain, &record), DRAIN_EMPTY);
    cr_assert_eq(drain.torn_cells, 7);
}

Test(collector_drain, stale_cells_of_the_last_lap_are_not_taken_for_records)
{
    for (unsigned i = 0; i < CELLS / 2; i++) {
        expect_record(put(2, (uint8_t)i), 2, (uint8_t)i);
        drain_release(&drain, i);
    }
    uint64_t bare = reserve(6);
    drain.process_dead = true;
    expect_torn(bare, 6, DRAIN_OWN_THREAD);
    cr_assert_eq(drain_next(&drain, &record), DRAIN_EMPTY);
}

Test(collector_drain, an_unclaimed_record_ends_at_the_next_claim)
{
    uint64_t bare = reserve(3);
    uint64_t claimed = reserve(2);
    claim(claimed, 2);
    drain.process_dead = true;
    expect_torn(bare, 3, DRAIN_OWN_THREAD);
    expect_torn(claimed, 2, THREAD);
}

Test(collector_drain, senseless_claims_are_passed_cell_by_cell)
{
    static const uint32_t lengths[] = {0, 1, VS_RECORD_MAX_CELLS + 1, 255, CELLS};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        uint64_t position = put(2, 1);
        cell(position)->first.claim = VS_CLAIM(position, lengths[i], THREAD, SHIFT);
        uint64_t later = put(2, 3);
        expect_torn(position, 1, DRAIN_OWN_THREAD);
        while (drain_next(&drain, &record) == DRAIN_TORN)
            continue;
        cr_assert_eq(record.sequence, later);
        drain_release(&drain, 1);
    }
}

Test(collector_drain, a_claim_of_another_lap_is_senseless)
{
    uint64_t position = put(2, 1);
    cell(position)->first.claim = VS_CLAIM(position + CELLS, 2, THREAD, SHIFT);
    expect_torn(position, 1, DRAIN_OWN_THREAD);
}

Test(collector_drain, an_impossible_head_is_not_followed)
{
    header->head += CELLS + 1;
    cr_assert_eq(drain_next(&drain, &record), DRAIN_EMPTY);
    header->head = 3;
    cr_assert_eq(drain_next(&drain, &record), DRAIN_EMPTY);
}

Test(collector_drain, own_events_take_their_place)
{
    struct vs_event event = {.kind = VS_KIND_HOST_SAMPLE, .size = 42, .time_ns = 7};
    uint64_t before = put(2, 1);
    cr_assert_eq(drain_inject(&drain, &event), 0);
    uint64_t after = put(2, 2);
    expect_record(before, 2, 1);
    cr_assert_eq(drain_next(&drain, &record), DRAIN_RECORD);
    cr_assert_eq(record.sequence, before + 2);
    cr_assert_eq(record.thread, DRAIN_OWN_THREAD);
    cr_assert_eq(memcmp(record.body, &event, sizeof event), 0);
    expect_record(after, 2, 2);
}

Test(collector_drain, own_events_never_overfill)
{
    struct vs_event event = {.kind = VS_KIND_HOST_SAMPLE};
    for (unsigned i = 0; i < CELLS / 2; i++)
        put(2, 1);
    cr_assert_eq(drain_inject(&drain, &event), -EAGAIN);
    cr_assert_eq(header->head, 2 * CELLS);
}

Test(collector_drain, bad_headers_are_refused)
{
    size_t bytes = VS_RING_HEADER_BYTES + CELLS * VS_CELL_BYTES;
    struct drain other;
    cr_assert_eq(drain_open(&other, header, VS_RING_HEADER_BYTES - 1), -EINVAL);
    cr_assert_eq(drain_open(&other, header, bytes - 1), -EINVAL);
    header->cell_count = CELLS - 1;
    cr_assert_eq(drain_open(&other, header, bytes), -EINVAL);
    header->cell_count = CELLS;
    header->cell_shift = 63;
    cr_assert_eq(drain_open(&other, header, bytes), -EINVAL);
    header->cell_shift = SHIFT;
    header->magic++;
    cr_assert_eq(drain_open(&other, header, bytes), -EINVAL);
}

static struct vs_event next_event(void)
{
    struct vs_event event;
    cr_assert_eq(drain_next(&drain, &record), DRAIN_RECORD);
    memcpy(&event, record.body, sizeof event);
    drain_release(&drain, 1);
    return event;
}

Test(collector_drain, losses_are_told_as_what_was_added)
{
    struct loss *loss = calloc(1, sizeof *loss);
    struct vs_loss_counter *counter = &header->loss[VS_LOSS_STALLED][2][VS_KIND_ALLOC];
    counter->events = 3;
    counter->bytes = 300;
    header->loss[VS_LOSS_NESTED][VS_RING_DEVICES - 1][VS_KIND_FREE].events = 1;
    cr_assert_eq(loss_emit(loss, &drain, 99), 2);
    struct vs_event event = next_event();
    cr_assert_eq(event.kind, VS_KIND_LOSS);
    cr_assert_eq(event.handle, VS_LOSS_STALLED);
    cr_assert_eq(event.device, 2);
    cr_assert_eq(event.label, VS_KIND_ALLOC);
    cr_assert_eq(event.extra[0], 3);
    cr_assert_eq(event.size, 300);
    cr_assert_eq(next_event().device, VS_DEVICE_UNKNOWN);
    cr_assert_eq(loss_emit(loss, &drain, 99), 0);
    counter->events = 5;
    counter->bytes = 350;
    cr_assert_eq(loss_emit(loss, &drain, 99), 1);
    event = next_event();
    cr_assert_eq(event.extra[0], 2);
    cr_assert_eq(event.size, 50);
    cr_assert_eq(loss->all.events, 6);
    cr_assert_eq(loss->all.bytes, 350);
    free(loss);
}

Test(collector_drain, losses_without_room_are_told_later)
{
    struct loss *loss = calloc(1, sizeof *loss);
    header->loss[VS_LOSS_FULL_WAITED][0][VS_KIND_ALLOC].events = 4;
    for (unsigned i = 0; i < CELLS / 2; i++)
        put(2, 1);
    cr_assert_eq(loss_emit(loss, &drain, 1), 0);
    for (unsigned i = 0; i < CELLS / 2; i++)
        next_event();
    cr_assert_eq(loss_emit(loss, &drain, 1), 1);
    cr_assert_eq(next_event().extra[0], 4);
    free(loss);
}
