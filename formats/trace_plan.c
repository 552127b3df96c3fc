/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which chunk speaks for which events when ranges overlap: a sweep over the
 * chunks in order of their first event, with the chunks that cover the present
 * index in a heap, longest on top.
 */
#include <errno.h>
#include <stdlib.h>

#include "trace_recovery.h"

struct start {
    uint64_t first;
    size_t ref;
};

struct sweep {
    const struct vs_chunk_ref *refs;
    struct start *order; /* EVENTS chunks by first index */
    size_t order_count;
    size_t *heap;
    size_t heap_count;
};

static uint64_t end_of(const struct vs_chunk_ref *ref)
{
    return ref->header.first + ref->header.count;
}

/* True when `a` is the better source for an event that both hold. */
static bool better(const struct vs_chunk_ref *a, const struct vs_chunk_ref *b)
{
    if (a->header.count != b->header.count)
        return a->header.count > b->header.count;
    return a->header.number > b->header.number;
}

static void swap(size_t *a, size_t *b)
{
    size_t kept = *a;
    *a = *b;
    *b = kept;
}

static void push(struct sweep *sweep, size_t ref)
{
    size_t at = sweep->heap_count++;
    sweep->heap[at] = ref;
    while (at > 0 &&
           better(&sweep->refs[sweep->heap[at]], &sweep->refs[sweep->heap[(at - 1) / 2]])) {
        swap(&sweep->heap[at], &sweep->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
}

static void pop(struct sweep *sweep)
{
    size_t at = 0;
    sweep->heap[0] = sweep->heap[--sweep->heap_count];
    for (;;) {
        size_t best = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < sweep->heap_count; child++)
            if (better(&sweep->refs[sweep->heap[child]], &sweep->refs[sweep->heap[best]]))
                best = child;
        if (best == at)
            return;
        swap(&sweep->heap[at], &sweep->heap[best]);
        at = best;
    }
}

static int emit(struct vs_plan *plan, uint64_t first, uint64_t end, size_t ref)
{
    struct vs_segment *last = plan->count > 0 ? &plan->segments[plan->count - 1] : NULL;
    if (last != NULL && last->ref == ref && last->end == first) {
        last->end = end;
        return 0;
    }
    if (plan->count == plan->capacity) {
        size_t capacity = plan->capacity ? plan->capacity * 2 : 256;
        struct vs_segment *grown = realloc(plan->segments, capacity * sizeof *grown);
        if (grown == NULL)
            return -ENOMEM;
        plan->segments = grown;
        plan->capacity = capacity;
    }
    plan->segments[plan->count++] = (struct vs_segment){first, end, ref};
    return 0;
}

static int run(struct sweep *sweep, struct vs_plan *plan)
{
    size_t next = 0;
    uint64_t at = 0;
    while (next < sweep->order_count || sweep->heap_count > 0) {
        if (sweep->heap_count == 0)
            at = sweep->order[next].first;
        while (next < sweep->order_count && sweep->order[next].first <= at)
            push(sweep, sweep->order[next++].ref);
        if (end_of(&sweep->refs[sweep->heap[0]]) <= at) {
            pop(sweep);
            continue;
        }
        uint64_t end = end_of(&sweep->refs[sweep->heap[0]]);
        if (next < sweep->order_count && sweep->order[next].first < end)
            end = sweep->order[next].first;
        int error = emit(plan, at, end, sweep->heap[0]);
        if (error != 0)
            return error;
        at = end;
    }
    return 0;
}

static int by_first(const void *left, const void *right)
{
    uint64_t a = ((const struct start *)left)->first;
    uint64_t b = ((const struct start *)right)->first;
    return (a > b) - (a < b);
}

int vs_plan_build(const struct vs_index *index, struct vs_plan *plan)
{
    struct sweep sweep = {.refs = index->refs};
    int error = -ENOMEM;
    plan->count = 0;
    sweep.order = malloc((index->count + 1) * sizeof *sweep.order);
    sweep.heap = malloc((index->count + 1) * sizeof *sweep.heap);
    if (sweep.order != NULL && sweep.heap != NULL) {
        for (size_t i = 0; i < index->count; i++) {
            const struct vs_chunk_ref *ref = &index->refs[i];
            if (ref->header.type == VS_CHUNK_EVENTS && ref->header.count > 0 && !ref->bad)
                sweep.order[sweep.order_count++] = (struct start){ref->header.first, i};
        }
        qsort(sweep.order, sweep.order_count, sizeof *sweep.order, by_first);
        error = run(&sweep, plan);
    }
    free(sweep.order);
    free(sweep.heap);
    return error;
}

void vs_plan_end(struct vs_plan *plan, uint64_t end)
{
    while (plan->count > 0 && plan->segments[plan->count - 1].first >= end)
        plan->count--;
    if (plan->count > 0 && plan->segments[plan->count - 1].end > end)
        plan->segments[plan->count - 1].end = end;
}

void vs_plan_free(struct vs_plan *plan)
{
    free(plan->segments);
    *plan = (struct vs_plan){0};
}
