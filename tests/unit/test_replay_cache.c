/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and pools of segments, and blocks that wait for other streams. */
#include <inttypes.h>

#include "replay/segments.h"

#include "replay_lab.h"

#define BASE 0x7000000000ULL

enum { STREAM = 0x50, SIDE = 0x60, EVENT = 0xe0 };

static void order(struct lab *lab, uint8_t kind, uint64_t handle, uint64_t stream, int32_t result)
{
    lab_put(
        lab,
        (struct vs_event){
            .kind = kind, .module = TORCH, .handle = handle, .stream = stream, .result = result});
}

static struct vs_segment segment_at(const struct lab *lab, uint64_t address)
{
    struct vs_layout layout;
    struct vs_segment found = {0};
    cr_assert_eq(vs_layout_take(lab->state, lab_device(lab), &layout), 0);
    cr_assert(layout.known);
    for (size_t i = 0; i < layout.count; i++)
        if (layout.segments[i].address == address)
            found = layout.segments[i];
    cr_assert_eq(found.address, address);
    vs_layout_release(&layout);
    return found;
}

static void expect_pending(const struct lab *lab, int64_t bytes)
{
    struct vs_bands bands = lab_bands(lab);
    cr_assert(bands.pending_known);
    cr_assert_eq(bands.pending, bytes, "%" PRId64 ", not %" PRId64, bands.pending, bytes);
}

static void expect_private(const struct lab *lab, int64_t bytes)
{
    struct vs_bands bands = lab_bands(lab);
    cr_assert(bands.private_pool_known);
    cr_assert_eq(bands.private_pool, bytes, "%" PRId64 ", not %" PRId64, bands.private_pool, bytes);
}

/* ---- pending ------------------------------------------------------------------------ */

Test(cache, a_block_waits_for_all_its_events)
{
    struct lab lab = lab_open();
    lab_segment(&lab, BASE, 20 * MIB);
    lab_block_on(&lab, BASE, 4 * MIB, STREAM, 0);
    lab_block_on(&lab, BASE + 4 * MIB, 2 * MIB, STREAM, 0);
    order(&lab, VS_KIND_EVENT_RECORD, EVENT, SIDE, 0);
    order(&lab, VS_KIND_EVENT_RECORD, EVENT + 1, STREAM, 0);
    lab_block_free(&lab, BASE, 4 * MIB);
    expect_pending(&lab, 4 * MIB);
    struct vs_segment segment = segment_at(&lab, BASE);
    cr_assert_eq(segment.waiting_bytes, 4 * MIB);
    cr_assert_eq(segment.free_bytes, 14 * MIB);
    cr_assert_eq(segment.live_count, 1U);
    cr_assert_eq(segment.block_count, 2U);
    order(&lab, VS_KIND_EVENT_QUERY, EVENT, 0, 600); /* not yet */
    order(&lab, VS_KIND_EVENT_QUERY, EVENT, 0, 0);
    expect_pending(&lab, 4 * MIB);
    order(&lab, VS_KIND_EVENT_QUERY, EVENT + 1, 0, 0);
    expect_pending(&lab, 0);
    cr_assert_eq(segment_at(&lab, BASE).largest_free_bytes, 14 * MIB);
    lab_close(&lab);
}

/* Nothing can be given back of a segment in which a block waits. */
Test(cache, a_waiting_block_holds_its_segment)
{
    struct lab lab = lab_open();
    lab_segment(&lab, BASE, 20 * MIB);
    lab_block_on(&lab, BASE, 4 * MIB, STREAM, 0);
    order(&lab, VS_KIND_EVENT_RECORD, EVENT, SIDE, 0);
    lab_block_free(&lab, BASE, 4 * MIB);
    cr_assert_eq(segment_at(&lab, BASE).releasable_bytes, 0U);
    order(&lab, VS_KIND_EVENT_DESTROY, EVENT, 0, 0);
    cr_assert_eq(segment_at(&lab, BASE).releasable_bytes, 20 * MIB);
    lab_close(&lab);
}

Test(cache, events_that_are_not_for_a_block)
{
    struct lab lab = lab_open();
    lab_segment(&lab, BASE, 20 * MIB);
    lab_block_on(&lab, BASE, MIB, STREAM, 0);
    lab_block_on(&lab, BASE + MIB, MIB, STREAM, 0);
    lab_block_on(&lab, BASE + 2 * MIB, MIB, STREAM, 0);
    order(&lab, VS_KIND_EVENT_RECORD, EVENT, SIDE, 0);
    order(&lab, VS_KIND_STREAM_CREATE, 0, SIDE + 1, 0); /* the thread went on to other things */
    lab_block_free(&lab, BASE, MIB);
    expect_pending(&lab, 0);
    lab_put(&lab,
            (struct vs_event){.kind = VS_KIND_EVENT_RECORD, .module = PROGRAM, .handle = EVENT});
    lab_block_free(&lab, BASE + MIB, MIB); /* the program's own event */
    expect_pending(&lab, 0);
    order(&lab, VS_KIND_EVENT_RECORD, EVENT, SIDE, 0);
    lab.thread++;
    lab_block_free(&lab, BASE + 2 * MIB, MIB); /* another thread's */
    expect_pending(&lab, 0);
    lab_close(&lab);
}

/* What is freed inside a capture may wait until the next block after it is given out. */
Test(cache, what_waits_is_not_known_after_a_capture)
{
    struct lab lab = lab_open();
    lab_segment(&lab, BASE, 20 * MIB);
    lab_block_on(&lab, BASE, MIB, STREAM, 0);
    order(&lab, VS_KIND_CAPTURE_BEGIN, 0, STREAM, 0);
    expect_pending(&lab, 0);
    lab_block_free(&lab, BASE, MIB);
    order(&lab, VS_KIND_CAPTURE_END, 1, STREAM, 0);
    cr_assert(!lab_bands(&lab).pending_known);
    order(&lab, VS_KIND_EVENT_RECORD, EVENT, SIDE, 0); /* only now, for a block we do not know */
    lab_block_on(&lab, BASE + 4 * MIB, MIB, STREAM, 0);
    cr_assert(!lab_bands(&lab).pending_known);
    order(&lab, VS_KIND_EVENT_QUERY, EVENT, 0, 0);
    expect_pending(&lab, 0);
    lab_close(&lab);
}

Test(cache, nothing_is_known_after_a_loss)
{
    struct lab lab = lab_open();
    lab_segment(&lab, BASE, 20 * MIB);
    lab_block_on(&lab, BASE, MIB, STREAM, 0);
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_LOSS, .extra = {1, 0}});
    cr_assert(!lab_bands(&lab).pending_known);
    cr_assert(!lab_bands(&lab).private_pool_known);
    lab_close(&lab);
}

/* ---- pools and streams ------------------------------------------------------------------ */

Test(cache, a_segment_serves_whom_its_first_block_was_for)
{
    struct lab lab = lab_open();
    lab_segment(&lab, BASE, 20 * MIB);
    lab_block_on(&lab, BASE, MIB, STREAM, 0);
    lab_segment(&lab, BASE + GIB, 20 * MIB);
    order(&lab, VS_KIND_CAPTURE_BEGIN, 0, SIDE, 0);
    lab_block_on(&lab, BASE + GIB, MIB, SIDE, 0);
    lab_segment(&lab, BASE + 2 * GIB, 20 * MIB);
    lab_block_on(&lab, BASE + 2 * GIB, MIB, STREAM, VS_EVENT_CAPTURING); /* joined the capture */
    lab_segment(&lab, BASE + 3 * GIB, 20 * MIB);
    lab_block_on(&lab, BASE + 3 * GIB, MIB, STREAM, 0); /* did not */
    order(&lab, VS_KIND_CAPTURE_END, 1, SIDE, 0);
    cr_assert_eq(segment_at(&lab, BASE).stream, (uint64_t)STREAM);
    cr_assert_eq(segment_at(&lab, BASE).pool, (uint32_t)VS_CACHE_POOL_DEFAULT);
    cr_assert_eq(segment_at(&lab, BASE + GIB).stream, (uint64_t)SIDE);
    cr_assert_eq(segment_at(&lab, BASE + GIB).pool, (uint32_t)VS_CACHE_POOL_PRIVATE);
    cr_assert_eq(segment_at(&lab, BASE + 2 * GIB).pool, (uint32_t)VS_CACHE_POOL_PRIVATE);
    cr_assert_eq(segment_at(&lab, BASE + 3 * GIB).pool, (uint32_t)VS_CACHE_POOL_DEFAULT);
    expect_private(&lab, 38 * MIB);
    order(&lab, VS_KIND_EVENT_RECORD, EVENT, STREAM, 0);
    lab_block_free(&lab, BASE + GIB, MIB); /* waits: pending, not free in the pool */
    expect_private(&lab, 38 * MIB);
    expect_pending(&lab, MIB);
    lab_close(&lab);
}

/* A later graph that takes over memory of an earlier one is of its pool, and what it took before.
 */
Test(cache, graphs_that_share_a_pool)
{
    struct lab lab = lab_open();
    lab_segment(&lab, BASE, 20 * MIB);
    order(&lab, VS_KIND_CAPTURE_BEGIN, 0, SIDE, 0);
    lab_block_on(&lab, BASE, MIB, SIDE, 0);
    order(&lab, VS_KIND_CAPTURE_END, 1, SIDE, 0);
    order(&lab, VS_KIND_CAPTURE_BEGIN, 0, SIDE, 0);
    lab_segment(&lab, BASE + GIB, 20 * MIB);
    lab_block_on(&lab, BASE + GIB, 20 * MIB, SIDE, 0);
    cr_assert_eq(segment_at(&lab, BASE + GIB).pool, VS_CACHE_POOL_PRIVATE + 1U);
    lab_block_on(&lab, BASE + 2 * MIB, MIB, SIDE, 0);
    order(&lab, VS_KIND_CAPTURE_END, 2, SIDE, 901); /* invalidated: over all the same */
    cr_assert_eq(segment_at(&lab, BASE + GIB).pool, (uint32_t)VS_CACHE_POOL_PRIVATE);
    lab_segment(&lab, BASE + 2 * GIB, 20 * MIB);
    lab_block_on(&lab, BASE + 2 * GIB, MIB, SIDE, 0);
    cr_assert_eq(segment_at(&lab, BASE + 2 * GIB).pool, (uint32_t)VS_CACHE_POOL_DEFAULT);
    lab_block_free(&lab, BASE + GIB, 20 * MIB);
    expect_private(&lab, 38 * MIB);
    lab.reserved -= 20 * MIB;
    uint64_t freed = lab_free(&lab, BASE + GIB);
    expect_private(&lab, 18 * MIB);
    lab_undo(&lab, freed, 1);
    cr_assert_eq(lab_device(&lab)->private_reserved, (int64_t)(40 * MIB));
    lab_close(&lab);
}

Test(cache, a_pool_under_another_allocator_is_not_known)
{
    struct lab lab = lab_open();
    lab_alloc(&lab, PROGRAM, BASE, 20 * MIB);
    lab.reserved += 20 * MIB;
    lab_block_on(&lab, BASE, MIB, STREAM, 0);
    cr_assert_eq(segment_at(&lab, BASE).pool, (uint32_t)VS_CACHE_POOL_UNKNOWN);
    cr_assert_eq(segment_at(&lab, BASE).stream, (uint64_t)STREAM);
    cr_assert(!lab_bands(&lab).private_pool_known);
    lab_close(&lab);
}

/* ---- pools of the program's own ------------------------------------------------------------ */

static void ask(struct lab *lab, uint64_t pool, uint64_t number, uint32_t stack)
{
    lab_put(lab, (struct vs_event){.kind = VS_KIND_MEM_POOL_ID,
                                   .module = TORCH,
                                   .handle = pool,
                                   .stack = stack,
                                   .extra = {0, number}});
}

/* Takes a segment and a block of it; the pool that it is found to be of. */
static uint32_t pool_of_next(struct lab *lab, uint64_t address)
{
    lab_segment(lab, address, 20 * MIB);
    lab_block_on(lab, address, MIB, STREAM, 0);
    return segment_at(lab, address).pool;
}

Test(cache, a_pool_is_the_threads_that_uses_it)
{
    struct lab lab = lab_open();
    ask(&lab, 0x9000, 7, LAB_USE_BEGINS);
    cr_assert_eq(pool_of_next(&lab, BASE), VS_CACHE_POOL_USER + 7U);
    lab.thread++;
    cr_assert_eq(pool_of_next(&lab, BASE + GIB), (uint32_t)VS_CACHE_POOL_DEFAULT);
    lab.thread--;
    ask(&lab, 0x9000, 7, LAB_USE_ENDS);
    ask(&lab, 0x9000, 7, LAB_USE_ENDS); /* to release it */
    cr_assert_eq(pool_of_next(&lab, BASE + 2 * GIB), (uint32_t)VS_CACHE_POOL_DEFAULT);
    expect_private(&lab, 19 * MIB);
    cr_assert(vs_state_pool_in_use(lab.state, VS_CACHE_POOL_USER + 7U));
    order(&lab, VS_KIND_MEM_POOL_DESTROY, 0x9000, 0, 0);
    cr_assert_not(vs_state_pool_in_use(lab.state, VS_CACHE_POOL_USER + 7U));
    lab_close(&lab);
}

Test(cache, a_pool_that_may_be_another_is_not_known)
{
    struct lab lab = lab_open();
    ask(&lab, 0x9000, 7, LAB_USE_BEGINS);
    ask(&lab, 0xa000, 8, LAB_USE_BEGINS);
    cr_assert_eq(pool_of_next(&lab, BASE), (uint32_t)VS_CACHE_POOL_UNKNOWN);
    ask(&lab, 0xa000, 8, LAB_USE_ENDS);
    ask(&lab, 0xa000, 8, LAB_USE_ENDS);
    cr_assert_eq(pool_of_next(&lab, BASE + GIB), VS_CACHE_POOL_USER + 7U);
    order(&lab, VS_KIND_CAPTURE_BEGIN, 0, STREAM, 0);
    cr_assert_eq(pool_of_next(&lab, BASE + 2 * GIB), (uint32_t)VS_CACHE_POOL_UNKNOWN);
    order(&lab, VS_KIND_CAPTURE_END, 1, STREAM, 0);
    ask(&lab, 0x9000, 7, LAB_USE_ENDS);
    ask(&lab, 0x9000, 7, LAB_USE_ENDS);
    cr_assert_eq(pool_of_next(&lab, BASE + 3 * GIB), (uint32_t)VS_CACHE_POOL_DEFAULT);
    ask(&lab, 0x9000, 7, LAB_POOL_READ);
    cr_assert_eq(pool_of_next(&lab, BASE + 4 * GIB), (uint32_t)VS_CACHE_POOL_UNKNOWN);
    cr_assert(!lab_bands(&lab).private_pool_known);
    lab_close(&lab);
}

/* Of an older framework, whose pools every thread used while one did. */
Test(cache, a_pool_that_all_threads_use)
{
    struct lab lab = lab_open();
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_MEM_POOL_ID,
                                    .module = TORCH,
                                    .handle = 0x9000,
                                    .pool = 1,
                                    .stack = LAB_USE_BEGINS,
                                    .extra = {0, 1}});
    lab.thread++;
    cr_assert_eq(pool_of_next(&lab, BASE), (uint32_t)VS_CACHE_POOL_UNKNOWN);
    lab_close(&lab);
}
