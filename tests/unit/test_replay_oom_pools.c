/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that fail while private pools, or what a capture cannot use, hold enough. */
#include "replay/oom_pools.h"

#include "replay_lab.h"

#define BASE 0x100000000ULL
#define OTHER 0x900000000ULL

enum { MAIN = 0x50, CAPTURED = 0x60, GRAPH = 0x70, EXECUTABLE = 0x71 };

static void order(struct lab *lab, uint8_t kind, uint64_t stream, uint64_t handle, uint64_t extra)
{
    lab_put(lab, (struct vs_event){.kind = kind,
                                   .module = TORCH,
                                   .stream = stream,
                                   .handle = handle,
                                   .extra = {extra, 0}});
}

/* A device of 16 GiB with a segment of 8 GiB in a capture's pool, of which `kept` are live. */
static struct lab captured_device(struct vs_ooms *ooms, uint64_t kept)
{
    struct lab lab = lab_open();
    lab_device(&lab)->others_known = true;
    vs_ooms_start(ooms, lab.state);
    lab_sample(&lab, 15 * GIB);
    order(&lab, VS_KIND_CAPTURE_BEGIN, CAPTURED, 0, 0);
    lab_segment(&lab, BASE, 8 * GIB);
    lab_block_on(&lab, BASE, kept, CAPTURED, 0);
    order(&lab, VS_KIND_CAPTURE_END, CAPTURED, GRAPH, 0);
    order(&lab, VS_KIND_GRAPH_INSTANTIATE, 0, EXECUTABLE, GRAPH);
    order(&lab, VS_KIND_GRAPH_DESTROY, 0, GRAPH, 0);
    return lab;
}

static const struct vs_oom *give_up_on(struct lab *lab, struct vs_ooms *ooms, uint64_t size,
                                       uint64_t stream)
{
    lab_put(lab, (struct vs_event){.kind = VS_KIND_ALLOC,
                                   .module = TORCH,
                                   .size = size,
                                   .result = 2,
                                   .free_bytes = 7 * GIB,
                                   .flags = VS_EVENT_FREE_SAMPLED});
    lab_put(lab, (struct vs_event){.kind = VS_KIND_FW_OOM,
                                   .module = TORCH,
                                   .size = size,
                                   .stream = stream,
                                   .handle = 1,
                                   .extra = {lab->allocated, lab->reserved}});
    cr_assert_eq(ooms->count, 1U);
    return &ooms->items[0];
}

Test(oom_pools, what_is_free_in_a_graphs_pool_is_in_use)
{
    struct vs_ooms ooms = {0};
    struct lab lab = captured_device(&ooms, GIB);
    const struct vs_oom *oom = give_up_on(&lab, &ooms, 8 * GIB, CAPTURED);
    cr_assert_eq(oom->class, VS_OOM_FULL, "%s", oom->why);
    cr_assert(oom->by_pools);
    cr_assert_eq(oom->pool, (uint32_t)VS_CACHE_POOL_DEFAULT);
    cr_assert_not_null(strstr(oom->why, "7.00 GiB lay free in a private pool"), "%s", oom->why);
    cr_assert(oom->retry_known && !oom->retry_fits);
    vs_ooms_release(&ooms);
    lab_close(&lab);
}

/* Its only executable is gone: the small block alone keeps the segment. */
Test(oom_pools, the_pool_of_a_graph_that_is_gone)
{
    struct vs_ooms ooms = {0};
    struct lab lab = captured_device(&ooms, GIB);
    cr_assert(vs_state_pool_in_use(lab.state, VS_CACHE_POOL_PRIVATE));
    order(&lab, VS_KIND_GRAPH_EXEC_DESTROY, 0, EXECUTABLE, 0);
    cr_assert_not(vs_state_pool_in_use(lab.state, VS_CACHE_POOL_PRIVATE));
    const struct vs_oom *oom = give_up_on(&lab, &ooms, 8 * GIB, MAIN);
    cr_assert_eq(oom->class, VS_OOM_PINNED_SEGMENT, "%s", oom->why);
    cr_assert_not_null(strstr(oom->why, "of a graph that is gone"), "%s", oom->why);
    vs_ooms_release(&ooms);
    lab_close(&lab);
}

Test(oom_pools, a_capture_gives_nothing_back)
{
    struct vs_ooms ooms = {0};
    struct lab lab = captured_device(&ooms, 8 * GIB);
    lab_segment(&lab, OTHER, 2 * GIB);
    lab_block_on(&lab, OTHER, GIB, MAIN, 0);
    lab_block_free(&lab, OTHER, GIB);
    order(&lab, VS_KIND_CAPTURE_BEGIN, CAPTURED, 0, 0);
    const struct vs_oom *oom = give_up_on(&lab, &ooms, 8 * GIB, CAPTURED);
    cr_assert_eq(oom->class, VS_OOM_HELD_BY_CACHE, "%s", oom->why);
    cr_assert_not_null(strstr(oom->why, "2.00 GiB that no block touches"), "%s", oom->why);
    vs_ooms_release(&ooms);
    lab_close(&lab);
}

/* The largest block is of the pool and stream that asked, and was not given out. */
Test(oom_pools, blocks_that_a_capture_puts_off)
{
    struct vs_ooms ooms = {0};
    struct lab lab = captured_device(&ooms, GIB);
    order(&lab, VS_KIND_CAPTURE_BEGIN, CAPTURED, 0, 0);
    lab_segment(&lab, OTHER, 8 * GIB);
    lab_block_on(&lab, OTHER, 8 * GIB, CAPTURED, 0);
    lab_block_free(&lab, OTHER, 8 * GIB);
    const struct vs_oom *oom = give_up_on(&lab, &ooms, 8 * GIB, CAPTURED);
    cr_assert_eq(oom->class, VS_OOM_WAITING_STREAMS, "%s", oom->why);
    cr_assert_not(oom->retry_fits);
    vs_ooms_release(&ooms);
    lab_close(&lab);
}
