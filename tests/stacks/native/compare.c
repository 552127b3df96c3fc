/* SPDX-License-Identifier: Apache-2.0 */
/* The comparison, and the rule by which new stacks of frame pointers are proved (shim/stacks.c). */
#define UNW_LOCAL_ONLY
#include "compare.h"

#include <dlfcn.h>
#include <libunwind.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEEN 65536U
#define SHOWN_MAX 5U
#define OWN_MAX 16U /* frames of the comparison itself */

struct compare_totals compare_totals;
static uint64_t seen[SEEN];
static int (*c_backtrace)(void **, int); /* libunwind defines the name too */

struct stack {
    uint64_t words[COMPARE_DEPTH];
    unsigned count;
    enum vs_stack_note note;
};

void compare_begin(void)
{
    void *libc = dlopen("libc.so.6", RTLD_LAZY);
    *(void **)&c_backtrace = dlsym(libc, "backtrace");
    if (c_backtrace == NULL) {
        fprintf(stderr, "no backtrace() in the C library\n");
        exit(2);
    }
    unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_NONE);
    void *first[4];
    c_backtrace(first, 4); /* loads libgcc */
    lab_refresh();
}

/* True when it was there already. */
static bool see(const struct stack *stack)
{
    uint64_t hash = 0x9e3779b97f4a7c15ULL ^ stack->count;
    for (unsigned i = 0; i < stack->count; i++) {
        hash = (hash ^ stack->words[i]) * 0xff51afd7ed558ccdULL;
        hash ^= hash >> 32;
    }
    for (unsigned i = 0; i < SEEN; i++) {
        uint64_t *place = &seen[(hash + i) % SEEN];
        if (*place == hash) {
            return true;
        }
        if (*place == 0) {
            *place = hash;
            return false;
        }
    }
    return false;
}

static bool same(const struct stack *a, const struct stack *b)
{
    return a->count == b->count && memcmp(a->words, b->words, a->count * sizeof(a->words[0])) == 0;
}

static __attribute__((noinline)) void take(struct stack *ours, struct stack *by_tables)
{
    ours->count = lab_unwind(ours->words, COMPARE_DEPTH, &ours->note);
    by_tables->count = lab_unwind_by_tables(by_tables->words, COMPARE_DEPTH, &by_tables->note);
    by_tables->words[0] = ours->words[0]; /* two calls of one function */
}

static void take_proved(struct stack *ours)
{
    static __thread struct stack by_tables;
    bool by_chain = lab_method() == VS_NATIVE_FRAME_POINTERS;
    take(ours, &by_tables);
    if (by_chain && !see(ours)) {
        compare_totals.proved++;
        compare_totals.disproved += !same(ours, &by_tables);
        *ours = by_tables;
    } else if (!by_chain && !same(ours, &by_tables)) {
        compare_fail("the two walks by tables differ");
    }
}

static void take_libunwind(struct stack *stack)
{
    unw_context_t context;
    unw_cursor_t cursor;
    unw_getcontext(&context);
    unw_init_local(&cursor, &context);
    stack->count = 0;
    do {
        /* On x86-64 this tells of the frame that a signal interrupted. */
        bool exact = unw_is_signal_frame(&cursor) > 0;
        unw_word_t ip = 0;
        unw_get_reg(&cursor, UNW_REG_IP, &ip);
        if (ip == 0) {
            break;
        }
        stack->words[stack->count++] = ip | (exact ? VS_FRAME_EXACT : 0);
    } while (stack->count < COMPARE_DEPTH && unw_step(&cursor) > 0);
}

static void take_backtrace(struct stack *stack)
{
    void *found[COMPARE_DEPTH];
    int count = c_backtrace(found, COMPARE_DEPTH);
    stack->count = 0;
    for (int i = 0; i < count && found[i] != NULL; i++) {
        stack->words[stack->count++] = (uint64_t)(uintptr_t)found[i];
    }
}

static void show(const char *whose, const struct stack *stack)
{
    printf("  %s: %u frames, note %d\n", whose, stack->count, (int)stack->note);
    for (unsigned i = 0; i < stack->count && i < 40; i++) {
        Dl_info info = {0};
        uint64_t address = vs_frame_address(stack->words[i]);
        dladdr((void *)(uintptr_t)vs_frame_lookup_address(stack->words[i]), &info);
        printf("    %2u %s%lx %s %s\n", i, (stack->words[i] & VS_FRAME_EXACT) != 0 ? "=" : " ",
               address, info.dli_sname != NULL ? info.dli_sname : "?",
               info.dli_fname != NULL ? info.dli_fname : "?");
    }
}

/* Without the comparison's own frames, those below `caller`, and the library's. */
static void begin_at(struct stack *stack, uint64_t caller)
{
    unsigned own = 0;
    while (own < stack->count && stack->words[own] != caller) {
        own++;
    }
    unsigned kept = 0;
    for (unsigned i = own; i < stack->count; i++) {
        stack->words[kept] = stack->words[i];
        kept += !lab_holds(vs_frame_lookup_address(stack->words[i]));
    }
    stack->count = kept;
}

/* Addresses only where the other has no more. */
static bool agree(const struct stack *ours, const struct stack *theirs, bool exactness)
{
    for (unsigned i = 0; i < ours->count && i < theirs->count; i++) {
        uint64_t mine = ours->words[i];
        uint64_t other = theirs->words[i];
        if (exactness ? mine != other : vs_frame_address(mine) != vs_frame_address(other)) {
            return false;
        }
    }
    return ours->count == theirs->count && ours->count > 0;
}

/* Those of the walks that a scene made by itself too. */
static void count_recalled(void)
{
    struct lab_memo_totals memo = lab_memo_take();
    compare_totals.recalled += memo.recalled;
    if (memo.different != 0) {
        compare_fail("a remembered walk is not the one that is made");
    }
}

__attribute__((noinline)) unsigned compare_here(void)
{
    static __thread struct stack ours, libunwind, backtrace;
    uint64_t caller = (uint64_t)(uintptr_t)__builtin_return_address(0);
    struct stack *all[] = {&ours, &libunwind, &backtrace};
    take_proved(&ours);
    take_libunwind(&libunwind);
    take_backtrace(&backtrace);
    bool cut = ours.count == COMPARE_DEPTH;
    for (unsigned i = 0; i < 3; i++) {
        begin_at(all[i], caller);
        all[i]->count = cut ? COMPARE_DEPTH - OWN_MAX : all[i]->count;
    }
    bool as_libunwind = agree(&ours, &libunwind, true);
    bool as_backtrace = agree(&ours, &backtrace, false);
    compare_totals.stacks++;
    compare_totals.frames += ours.count;
    compare_totals.split += as_libunwind != as_backtrace;
    if (!as_libunwind && !as_backtrace && compare_totals.different++ < SHOWN_MAX) {
        printf("DIFFERENT\n");
        show("ours", &ours);
        show("libunwind", &libunwind);
        show("backtrace", &backtrace);
    }
    count_recalled();
    __asm__ volatile("");
    return ours.count;
}

void compare_fail(const char *what)
{
    printf("FAILED: %s\n", what);
    compare_totals.different++;
}

int compare_end(const char *name)
{
    count_recalled();
    static const char *const methods[] = {"off", "tables", "frame pointers"};
    printf("%s: %lu stacks, %lu frames by %s; %lu proved, %lu of them another; %lu remembered; the "
           "two others disagree on %lu; different: %lu\n",
           name, compare_totals.stacks, compare_totals.frames, methods[lab_method()],
           compare_totals.proved, compare_totals.disproved, compare_totals.recalled,
           compare_totals.split, compare_totals.different);
    return compare_totals.different != 0 || compare_totals.stacks == 0;
}
