/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remembered walks against made ones, on stacks that are made up word by word:
 * return addresses into functions that never run, each with a frame of another
 * shape, and whatever else a stack may hold. Between walks from the same place a
 * few words are changed and changed back; lab_memo.c makes each remembered walk
 * as well. Two threads at once, whose memos take each other's places. At the end
 * of each stack lies a page that cannot be read.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lab.h"

#define PAGE 4096U
#define BELOW_BYTES (32U * PAGE) /* for the functions that walk */
#define FRAME_WORDS 2048U        /* the made-up frames: four pages */
#define STARTS 48U               /* places where walks begin, 16 bytes apart */
#define DEPTH 24U
#define FRAMES_MAX 32U
#define GAP_WORDS 6U
#define STACKS 6000U
#define CHANGES 8U
#define THREADS 2U
#define REPLACED_TRIES 20U
#define SHORTER_WORDS 100U /* a frame of replaced.c ends below, the other one above */
#define LONGER_WORDS 150U

/* ---- functions that never run --------------------------------------------------------- */

#define SYMBOL(name, rules, body)                                         \
    __asm__(".text\n.globl " #name "\n.type " #name ",@function\n"        \
            ".hidden " #name "\n.hidden " #name "_back\n" #name ":\n"     \
            ".cfi_startproc\n" rules body ".globl " #name "_back\n" #name \
            "_back:\nud2\n.cfi_endproc\n.size " #name ",.-" #name "\n");  \
    extern const char name##_back[]

#define FRAME(name, rules) SYMBOL(name, rules, "nop\n")

FRAME(small, ".cfi_def_cfa rsp, 8\n");
FRAME(plain, ".cfi_def_cfa rsp, 32\n");
FRAME(plain_too, ".cfi_def_cfa rsp, 32\n");
FRAME(large, ".cfi_def_cfa rsp, 80\n");
FRAME(saves, ".cfi_def_cfa rsp, 48\n.cfi_offset rbp, -16\n");
FRAME(saves_too, ".cfi_def_cfa rsp, 48\n.cfi_offset rbp, -16\n");
FRAME(saves_low, ".cfi_def_cfa rsp, 64\n.cfi_offset rbp, -40\n");
FRAME(pointer, ".cfi_def_cfa rbp, 16\n.cfi_offset rbp, -16\n");
FRAME(pointer_too, ".cfi_def_cfa rbp, 16\n.cfi_offset rbp, -16\n");
FRAME(pointer_low, ".cfi_def_cfa rbp, 48\n.cfi_offset rbp, -32\n");
FRAME(pointer_same, ".cfi_def_cfa rbp, 24\n");
/* Frame's address: the word below rbp; the caller's rbp where rbp points to. */
FRAME(aligned,
      ".cfi_escape 0x0f, 0x03, 0x76, 0x78, 0x06\n.cfi_escape 0x10, 0x06, 0x02, 0x76, 0x00\n");
FRAME(by_rbx, ".cfi_def_cfa rbx, 16\n");
FRAME(signal_frame, ".cfi_signal_frame\n.cfi_def_cfa rsp, 24\n");
FRAME(last, ".cfi_undefined rip\n");

/* Walks from a call on the made-up stack: words, max, note, sp, rbp. */
typedef unsigned walker(uint64_t *words, unsigned max, enum vs_stack_note *note, uint64_t sp,
                        uint64_t bp);
#define WALKER(name, rules)                                                    \
    SYMBOL(name, "",                                                           \
           "pushq %rbx\npushq %rbp\nmovq %rsp, %rbx\nmovq %rcx, %rsp\n"        \
           "movq %r8, %rbp\n" rules "call lab_unwind@PLT\n" #name "_called:\n" \
           "movq %rbx, %rsp\npopq %rbp\npopq %rbx\nret\n");                    \
    walker name

WALKER(walk_plain, ".cfi_def_cfa rsp, 24\n");
WALKER(walk_saves, ".cfi_def_cfa rsp, 48\n.cfi_offset rbp, -24\n");
WALKER(walk_pointer, ".cfi_def_cfa rbp, 16\n.cfi_offset rbp, -16\n");

struct shape {
    const char *back;
    walker *walk;
    unsigned distance; /* in words; of the frame's address from the register */
    unsigned slot;     /* of rbp below it; 0: rbp stays */
    bool from_bp, aligned, end;
};

static const struct shape shapes[] = {
    {.back = small_back, .distance = 1},
    {.back = plain_back, .distance = 4},
    {.back = plain_too_back, .distance = 4},
    {.back = large_back, .distance = 10},
    {.back = saves_back, .distance = 6, .slot = 2},
    {.back = saves_too_back, .distance = 6, .slot = 2},
    {.back = saves_low_back, .distance = 8, .slot = 5},
    {.back = pointer_back, .distance = 2, .slot = 2, .from_bp = true},
    {.back = pointer_too_back, .distance = 2, .slot = 2, .from_bp = true},
    {.back = pointer_low_back, .distance = 6, .slot = 4, .from_bp = true},
    {.back = pointer_same_back, .distance = 3, .from_bp = true},
    {.back = aligned_back, .aligned = true},
    {.back = last_back, .end = true},
    /* Not remembered: left by other registers, or interrupted. Made like plain ones. */
    {.back = by_rbx_back, .distance = 2},
    {.back = signal_frame_back, .distance = 3},
};
#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))
#define COMMON 12U /* the first ones */
#define LAST 12U

static const struct shape entries[] = {
    {.walk = walk_plain, .distance = 3},
    {.walk = walk_saves, .distance = 6, .slot = 3},
    {.walk = walk_pointer, .distance = 2, .slot = 2, .from_bp = true},
};
#define ENTRIES (sizeof(entries) / sizeof(entries[0]))

/* ---- stacks ----------------------------------------------------------------------------- */

struct made {
    char *pages;
    uint64_t *frames; /* FRAME_WORDS */
    uint64_t *begin;  /* where the walk begins */
    uint64_t *top;    /* behind the last word that it may need */
    const struct shape *entry;
    uint64_t bp;
    uint64_t random;
    unsigned long walks;
};

static uint64_t any(struct made *made, uint64_t below)
{
    made->random ^= made->random << 13;
    made->random ^= made->random >> 7;
    made->random ^= made->random << 17;
    return made->random % below;
}

static uint64_t address_of(const void *place)
{
    return (uint64_t)(uintptr_t)place;
}

/* Anything: a number, a place on the stack, a return address. */
static uint64_t any_word(struct made *made)
{
    switch (any(made, 4)) {
    case 0:
        return any(made, 1000);
    case 1:
        return made->random;
    case 2:
        return address_of(made->frames + any(made, FRAME_WORDS)) + any(made, 2) * any(made, 8);
    default:
        return address_of(shapes[any(made, SHAPES)].back);
    }
}

/* Where the building stands; rbp's value may still be chosen while nothing depends on it. */
struct builder {
    uint64_t *sp;
    uint64_t *bp_at;
    uint64_t *bp;
    bool bp_is_free;
};

/* False: rbp is decided on already, and points below. */
static bool choose_bp(struct made *made, struct builder *build, unsigned least)
{
    if (build->bp_is_free) {
        build->bp = build->sp + least + any(made, GAP_WORDS);
        *build->bp_at = address_of(build->bp);
        build->bp_is_free = false;
    }
    return build->bp >= build->sp + least;
}

static void free_bp(struct builder *build, uint64_t *at)
{
    build->bp_at = at;
    build->bp_is_free = true;
}

/* The frame's address; NULL: it cannot be left like this. */
static uint64_t *leave(struct made *made, struct builder *build, const struct shape *shape)
{
    if (shape->aligned) {
        if (!choose_bp(made, build, 1)) {
            return NULL;
        }
        uint64_t *address = build->bp + 2 + any(made, GAP_WORDS);
        build->bp[-1] = address_of(address);
        free_bp(build, build->bp);
        return address;
    }
    if (shape->from_bp && !choose_bp(made, build, 0)) {
        return NULL;
    }
    uint64_t *address = (shape->from_bp ? build->bp : build->sp) + shape->distance;
    if (shape->slot != 0) {
        free_bp(build, address - shape->slot);
    }
    return address;
}

/* One frame in sixty is of those that are not remembered. */
static const struct shape *any_shape(struct made *made)
{
    return &shapes[any(made, 60) == 0 ? LAST + any(made, SHAPES - LAST) : any(made, COMMON)];
}

static void make_stack(struct made *made)
{
    for (unsigned i = 0; i < FRAME_WORDS; i++) {
        made->frames[i] = any_word(made);
    }
    made->begin = made->frames + 2 * any(made, STARTS);
    made->entry = &entries[any(made, ENTRIES)];
    made->bp = any_word(made);
    struct builder build = {.sp = made->begin, .bp_at = &made->bp, .bp_is_free = true};
    const struct shape *shape = made->entry;
    unsigned frames = (unsigned)any(made, FRAMES_MAX);
    for (unsigned i = 0; !shape->end; i++) {
        uint64_t *address = leave(made, &build, shape);
        if (address == NULL) { /* another one there: what was below goes on to it */
            shape = &shapes[LAST];
            build.sp[-1] = address_of(shape->back);
            continue;
        }
        build.sp = address;
        shape = i < frames ? any_shape(made) : &shapes[LAST];
        address[-1] = address_of(shape->back);
    }
    made->top = build.sp;
}

static void walk(struct made *made)
{
    uint64_t words[DEPTH];
    enum vs_stack_note note;
    made->entry->walk(words, DEPTH, &note, address_of(made->begin), made->bp);
    made->walks++;
}

static void walk_often(struct made *made)
{
    for (int i = 0; i < 3; i++) { /* the first may give way to another memo */
        walk(made);
    }
}

static void change(struct made *made)
{
    uint64_t *word = made->begin + any(made, (uint64_t)(made->top - made->begin) + 2);
    uint64_t *place = any(made, 8) == 0 ? &made->bp : word;
    const struct shape *entry = made->entry;
    uint64_t was = *place;
    *place = any(made, 3) == 0 ? was + 8 * any(made, 3) : any_word(made);
    if (any(made, 8) == 0) {
        made->entry = &entries[any(made, ENTRIES)];
    }
    walk(made);
    if (any(made, 2) == 0) {
        walk_often(made);
    }
    if (any(made, 4) != 0) {
        *place = was;
        made->entry = entry;
    }
    walk(made);
}

static bool open_stack(struct made *made, uint64_t seed)
{
    size_t bytes = BELOW_BYTES + FRAME_WORDS * sizeof(uint64_t);
    made->pages =
        mmap(NULL, bytes + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    made->random = seed * 0x9e3779b97f4a7c15ULL + 1;
    made->walks = 0;
    if (made->pages == MAP_FAILED || mprotect(made->pages + bytes, PAGE, PROT_NONE) != 0) {
        return false;
    }
    made->frames = (uint64_t *)(void *)(made->pages + BELOW_BYTES);
    return true;
}

static void *change_stacks(void *argument)
{
    struct made *made = argument;
    for (unsigned i = 0; i < STACKS; i++) {
        make_stack(made);
        walk_often(made);
        for (unsigned j = 0; j < CHANGES; j++) {
            change(made);
        }
    }
    return NULL;
}

/* ---- a stack that became shorter --------------------------------------------------------- */

/*
 * The outer half of a remembered stack is unmapped, what lies before it ends there
 * now. Nothing behind its new end may be read, though it was readable once.
 */
static void shorten(struct made *made)
{
    uint64_t *half = made->frames + FRAME_WORDS / 2;
    const struct shape *plain_one = &shapes[1];
    made->begin = made->frames;
    made->entry = &entries[0];
    uint64_t *sp = made->begin + made->entry->distance;
    uint64_t *last_before = sp - 1;
    for (unsigned i = 0; i + 3 < DEPTH; i++) {
        sp[-1] = address_of(plain_one->back);
        if (i == DEPTH / 2) {
            last_before = sp - 1;
            sp[-1] = address_of(shapes[7].back); /* by a frame pointer over to the other half */
            made->bp = address_of(half + 8);
            half[8] = 0;
            sp = half + 10;
            continue;
        }
        sp += plain_one->distance;
    }
    sp[-1] = address_of(shapes[LAST].back);
    walk_often(made);
    (void)munmap(half, FRAME_WORDS / 2 * sizeof(*half));
    *last_before = address_of(shapes[LAST].back);
    walk_often(made);
}

/* ---- the same words at another place ------------------------------------------------------- */

#define MOVED_WORDS 40U

/*
 * To the walk that begins higher all words are where they were from its beginning,
 * and rbp is the same; but rbp leads to a place, not to a distance.
 */
static void move(struct made *made)
{
    made->entry = &entries[0];
    for (unsigned i = 0; i < STARTS; i++) {
        uint64_t *begin = made->frames + (size_t)MOVED_WORDS * i;
        uint64_t *moved = begin + 2 * (1 + any(made, 4));
        for (unsigned j = 0; j < 2 * MOVED_WORDS; j++) {
            begin[j] = address_of(shapes[LAST].back);
        }
        uint64_t *by_bp = begin + MOVED_WORDS / 2;
        begin[made->entry->distance - 1] = address_of(shapes[7].back);
        by_bp[1] = address_of(shapes[1].back);
        by_bp[1 + shapes[1].distance] = address_of(shapes[LAST].back);
        made->bp = address_of(by_bp);
        made->begin = begin;
        walk_often(made);
        uint64_t words[MOVED_WORDS];
        memcpy(words, begin, sizeof(words));
        memcpy(moved, words, sizeof(words));
        by_bp[1] = address_of(shapes[LAST].back);
        made->begin = moved;
        walk_often(made);
    }
}

/* ---- a library in another's place ----------------------------------------------------------- */

typedef int callback(void *context);
typedef int through(callback *function, void *context);

static int note_caller(void *context)
{
    *(uint64_t *)context = address_of(__builtin_return_address(0));
    return 0;
}

/* Where `through` of the library calls back from; the library stays loaded. */
static uint64_t load(const char *path, void **library)
{
    uint64_t place = 0;
    through *function;
    *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (*library == NULL) {
        return 0;
    }
    lab_refresh();
    *(void **)&function = dlsym(*library, "through");
    (void)function(note_caller, &place);
    return place;
}

/*
 * The same stack to the bit, but how a frame in it is left has changed: the two
 * libraries differ in the size of a frame. True when one took the other's place.
 */
static bool replace(struct made *made, const char *const *paths)
{
    uint64_t before = 0;
    bool replaced = false;
    made->begin = made->frames;
    made->entry = &entries[0];
    for (unsigned i = 0; i < REPLACED_TRIES; i++) {
        void *library;
        uint64_t place = load(paths[i % 2], &library);
        if (place == 0) {
            return false;
        }
        /* The shorter frame leads to the end, the longer one to more frames first. */
        for (unsigned j = 0; j < FRAME_WORDS / 2; j++) {
            bool further = j >= SHORTER_WORDS && j < LONGER_WORDS;
            made->frames[j] = address_of(shapes[further ? 1 : LAST].back);
        }
        made->frames[made->entry->distance - 1] = place;
        walk_often(made);
        replaced |= place == before;
        before = place;
        dlclose(library);
        lab_refresh();
    }
    return replaced;
}

static int fail(const char *what)
{
    printf("FAILED: %s\n", what);
    return 1;
}

static int run(unsigned long least, const char *const *libraries)
{
    struct made made[THREADS];
    pthread_t thread[THREADS];
    unsigned long walks = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        if (!open_stack(&made[i], i + 1) ||
            pthread_create(&thread[i], NULL, change_stacks, &made[i]) != 0) {
            return fail("no stack, or no thread");
        }
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        walks += made[i].walks;
    }
    struct lab_memo_totals all = lab_memo_take();
    if (!replace(&made[0], libraries)) {
        return fail("no library came to lie in another's place");
    }
    move(&made[0]);
    shorten(&made[0]);
    struct lab_memo_totals last_ones = lab_memo_take();
    unsigned long different = all.different + last_ones.different;
    printf("%lu walks on made-up stacks, %lu remembered ones, different: %lu\n", walks,
           all.recalled, different);
    if (all.recalled < least || last_ones.recalled < REPLACED_TRIES) {
        return fail("too few walks were remembered ones");
    }
    return different == 0 ? 0 : fail("a remembered walk is not the one made");
}

int main(int count, char **arguments)
{
    if (count != 4) {
        fprintf(stderr, "usage: %s LEAST LIBRARY LIBRARY\n", arguments[0]);
        return 2;
    }
    lab_refresh();
    lab_use_tables();
    lab_memo_depth(DEPTH);
    return run(strtoul(arguments[1], NULL, 10), (const char *const *)arguments + 2);
}
