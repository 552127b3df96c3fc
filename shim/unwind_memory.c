/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which memory of a thread's stacks may be read. The question is put to the
 * kernel as a futex requeue that moves nobody: it reads one word of the page,
 * reports EFAULT instead of a signal, never waits, and every program with
 * threads may call it, in whatever sandbox. Any other refusal counts as no.
 */
#include "unwind_memory.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>

#include "shim.h"
#include "sys.h"

#define PAGE_BYTES 4096ULL /* the smallest there is: a larger page is asked about more often */
#define RANGES 4U
#define COUNT_BITS 20U /* of pages in a range: 4 GiB; above them the number of its first page */
#define COUNT_MAX ((1ULL << COUNT_BITS) - 1)
#define GAP_PAGES 16384U /* a frame of more than 64 MiB is none */

/*
 * Each range is one word, so that a signal handler's walk in the middle of ours
 * finds and leaves it whole. Losing what the other one learned costs a question.
 */
static SHIM_TLS uint64_t known[RANGES];

static uint64_t page_of(uint64_t address)
{
    return address / PAGE_BYTES;
}

static uint64_t first_of(uint64_t range)
{
    return range >> COUNT_BITS;
}

static uint64_t behind(uint64_t range)
{
    return first_of(range) + (range & COUNT_MAX);
}

static uint64_t make_range(uint64_t first, uint64_t last)
{
    uint64_t count = last - first;
    return first << COUNT_BITS | (count < COUNT_MAX ? count : COUNT_MAX);
}

static uint64_t load(unsigned i)
{
    return *(volatile uint64_t *)&known[i];
}

static void store(unsigned i, uint64_t range)
{
    *(volatile uint64_t *)&known[i] = range;
}

/* The known range that holds `page`; 0 none. */
static uint64_t find(uint64_t page)
{
    for (unsigned i = 0; i < RANGES; i++) {
        uint64_t range = load(i);
        if (page - first_of(range) < (range & COUNT_MAX)) {
            return range;
        }
    }
    return 0;
}

/* In place of those it swallows, else of the smallest: that one is soonest asked about again. */
static void remember(uint64_t range)
{
    unsigned place = 0;
    for (unsigned i = 0; i < RANGES; i++) {
        uint64_t other = load(i);
        if (first_of(range) <= first_of(other) && behind(other) <= behind(range)) {
            store(i, 0);
        }
        if ((load(i) & COUNT_MAX) < (load(place) & COUNT_MAX)) {
            place = i;
        }
    }
    store(place, range);
}

static bool page_is_readable(uint64_t page)
{
    uint64_t address = page * PAGE_BYTES;
    long result =
        sys_call6(SYS_futex, (long)address, FUTEX_CMP_REQUEUE_PRIVATE, 0, 0, (long)address, 0);
    return result == 0 || result == -EAGAIN;
}

static void show(struct unwind_stack *stack, uint64_t range)
{
    stack->start = first_of(range) * PAGE_BYTES;
    stack->end = behind(range) * PAGE_BYTES;
}

void unwind_stack_open(struct unwind_stack *stack, uint64_t pointer)
{
    uint64_t page = page_of(pointer);
    uint64_t range = find(page);
    if (range == 0) {
        range = make_range(page, page + 1);
        remember(range);
    }
    show(stack, range);
}

bool unwind_stack_switch(struct unwind_stack *stack, uint64_t pointer)
{
    if (find(page_of(pointer)) == 0 && !page_is_readable(page_of(pointer))) {
        return false;
    }
    unwind_stack_open(stack, pointer);
    return true;
}

bool unwind_stack_reach(struct unwind_stack *stack, uint64_t address, uint64_t bytes)
{
    uint64_t last = address + bytes;
    if (address < stack->start || last < address ||
        page_of(last - 1) > page_of(stack->end) + GAP_PAGES) {
        return false;
    }
    if (last <= stack->end) {
        return true;
    }
    uint64_t first = page_of(stack->start);
    uint64_t next = page_of(stack->end);
    while (next <= page_of(last - 1)) {
        uint64_t range = find(next);
        if (range == 0 && !page_is_readable(next)) {
            break;
        }
        next = range != 0 ? behind(range) : next + 1;
    }
    if (next > page_of(stack->end)) {
        uint64_t range = make_range(first, next);
        remember(range);
        show(stack, range);
    }
    return last <= stack->end;
}

bool unwind_is_readable(uint64_t address, uint64_t bytes)
{
    return address + bytes > address && page_is_readable(page_of(address)) &&
           (page_of(address + bytes - 1) == page_of(address) ||
            page_is_readable(page_of(address + bytes - 1)));
}

bool unwind_read(struct unwind_stack *stack, uint64_t address, uint64_t *value)
{
    if (!unwind_stack_reach(stack, address, sizeof(*value)) &&
        !unwind_is_readable(address, sizeof(*value))) {
        return false;
    }
    *value = unwind_word(address);
    return true;
}
