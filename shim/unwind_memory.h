/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a stack without ever faulting. A thread remembers, a page at a time,
 * which of its stacks it knows to be readable, in a few words of TLS; a page
 * that is not known yet is asked of the kernel, once. Nothing here relies on how
 * the C library lays out stacks, so threads with stacks of their own making,
 * signal stacks, fibers and coroutines are all alike.
 *
 * What is remembered stays true for the stack a thread runs on. A side stack
 * that was unmapped and replaced by a smaller one at the same place is the one
 * case where it is not: a walk would have to leave the new stack at its far end,
 * which is what an unwind table without an end marker there would make it do.
 */
#ifndef VS_SHIM_UNWIND_MEMORY_H
#define VS_SHIM_UNWIND_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Readable pages around the frames of one walk. */
struct unwind_stack {
    uint64_t start;
    uint64_t end;
};

/* The stack that `pointer` lies on, which is in use right now: its page is readable. */
void unwind_stack_open(struct unwind_stack *stack, uint64_t pointer);
/* The same for a pointer that may be wrong. False: not readable, `stack` is as before. */
bool unwind_stack_switch(struct unwind_stack *stack, uint64_t pointer);
/* True when `bytes` (≤ a page) at `address` are readable; the stack grows by what was learned. */
bool unwind_stack_reach(struct unwind_stack *stack, uint64_t address, uint64_t bytes);
/* Asks the kernel about the pages of `bytes` (≤ a page) at `address`; remembers nothing. */
bool unwind_is_readable(uint64_t address, uint64_t bytes);
/* A word of the stack, or of other memory that an unwind table names. */
bool unwind_read(struct unwind_stack *stack, uint64_t address, uint64_t *value);

/*
 * A word known to be readable. By an instruction of its own: other functions'
 * frames are no objects of this program to a compiler or a sanitizer.
 */
static inline uint64_t unwind_word(uint64_t address)
{
    uint64_t value;
#if defined(__x86_64__)
    __asm__("movq (%1), %0" : "=r"(value) : "r"(address));
#else
    value = *(const volatile uint64_t *)(uintptr_t)address;
#endif
    return value;
}

/* The same, so many words above. */
static inline uint64_t unwind_word_above(uint64_t address, uint64_t words)
{
    uint64_t value;
#if defined(__x86_64__)
    /* Volatile: not before the checks that it comes after. */
    __asm__ volatile("movq (%1,%2,8), %0" : "=r"(value) : "r"(address), "r"(words));
#else
    value = unwind_word(address + words * sizeof(uint64_t));
#endif
    return value;
}

#endif
