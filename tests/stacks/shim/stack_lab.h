/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shim/stacks.c and its table over a ring in memory, with walks that a test
 * writes down: what is found here depends on nothing but the joint itself.
 * Static on purpose: one test program, one ring.
 */
#ifndef VS_TESTS_STACK_LAB_H
#define VS_TESTS_STACK_LAB_H

#include <string.h>

#define LAB_HAS_STACKS
#include "../../../shim/unwind_memo.h"
#include "../../unit/ring_lab.h"

#define LAB_WORDS 256

/* What the walks of the calling thread find. */
struct lab_walk {
    uint64_t native[LAB_WORDS];
    struct python_frame python[LAB_WORDS];
    unsigned native_count, python_count;
    enum vs_stack_note native_note, python_note;
};

static _Thread_local struct lab_walk lab_walk;
static _Thread_local struct lab_walk lab_tables;    /* by the unwind tables */
static _Thread_local uint64_t lab_loops[LAB_WORDS]; /* places of python_loops */
static _Thread_local unsigned lab_loop_count;
static enum vs_native_method lab_method = VS_NATIVE_TABLES;
static _Atomic uint32_t lab_modules_generation = 1;
static _Atomic uint64_t lab_modules_asked;
static _Atomic int lab_unknown_code; /* python_describe finds no room */

static unsigned lab_copy(const struct lab_walk *walk, uint64_t *words, unsigned max,
                         enum vs_stack_note *note)
{
    unsigned count = walk->native_count < max ? walk->native_count : max;
    memcpy(words, walk->native, count * sizeof(*words));
    *note = count < walk->native_count ? VS_STACK_NOTE_NATIVE_CUT : walk->native_note;
    return count;
}

unsigned unwind_here(uint64_t *words, unsigned max, enum vs_stack_note *note)
{
    return lab_copy(lab_method == VS_NATIVE_TABLES ? &lab_tables : &lab_walk, words, max, note);
}

unsigned unwind_here_by_tables(uint64_t *words, unsigned max, enum vs_stack_note *note)
{
    return lab_copy(&lab_tables, words, max, note);
}

/* ---- walks that went before ------------------------------------------------------------ */

#define LAB_KEPT 64

/* Where a test says so, a walk that was remembered is recalled when it is the same. */
static bool lab_recalls;
static unsigned lab_recalled; /* of both kinds */
static struct {
    struct lab_walk walk;
    struct unwind_known known;
} lab_natives[LAB_KEPT];
static struct {
    struct lab_walk walk;
    struct python_known known;
} lab_pythons[LAB_KEPT];
static unsigned lab_native_kept, lab_python_kept;

/* Nothing that a hash spreads evenly. */
static uint64_t lab_tag(unsigned place)
{
    return (place + 1) * 0xbf58476d1ce4e5b9ULL >> 20;
}

bool unwind_recall(const struct unwind_start *start, uint64_t hint, struct unwind_known *known)
{
    (void)start;
    (void)hint;
    for (unsigned i = 0; lab_recalls && i < lab_native_kept; i++) {
        const struct lab_walk *walk = &lab_natives[i].walk;
        if (walk->native_count == lab_walk.native_count &&
            memcmp(walk->native, lab_walk.native, sizeof(walk->native)) == 0) {
            *known = lab_natives[i].known;
            known->tag = lab_tag(i);
            lab_recalled++;
            return true;
        }
    }
    return false;
}

void unwind_remember(const struct unwind_start *start, uint64_t hint, const uint64_t *words,
                     const struct unwind_known *known)
{
    (void)start;
    (void)hint;
    (void)words;
    if (lab_recalls && lab_native_kept < LAB_KEPT) {
        lab_natives[lab_native_kept].walk = lab_walk;
        lab_natives[lab_native_kept++].known = *known;
    }
}

bool python_recall(struct python_known *known)
{
    for (unsigned i = 0; lab_recalls && i < lab_python_kept; i++) {
        const struct lab_walk *walk = &lab_pythons[i].walk;
        if (walk->python_count == lab_walk.python_count &&
            memcmp(walk->python, lab_walk.python, sizeof(walk->python)) == 0) {
            *known = lab_pythons[i].known;
            known->tag = lab_tag(i);
            lab_recalled++;
            return true;
        }
    }
    return false;
}

void python_remember(const struct python_known *known)
{
    if (lab_recalls && lab_python_kept < LAB_KEPT) {
        lab_pythons[lab_python_kept].walk = lab_walk;
        lab_pythons[lab_python_kept++].known = *known;
    }
}

/* A place is the word of its frame. */
void unwind_mark_holders(uint64_t *words, unsigned count, const uint64_t *places,
                         unsigned place_count)
{
    for (unsigned i = 0; i < count; i++) {
        for (unsigned j = 0; j < place_count; j++) {
            words[i] |= words[i] == places[j] ? VS_FRAME_LOOP : 0;
        }
    }
}

unsigned python_loops(uint64_t *places, unsigned max)
{
    unsigned count = lab_loop_count < max ? lab_loop_count : max;
    memcpy(places, lab_loops, count * sizeof(*places));
    return count;
}

enum vs_native_method unwind_method(void)
{
    return lab_method;
}

void unwind_prepare(void)
{
}

void unwind_proved_wrong(void)
{
    lab_method = VS_NATIVE_TABLES;
}

unsigned python_walk(struct python_frame *frames, unsigned max, enum vs_stack_note *note)
{
    unsigned count = lab_walk.python_count < max ? lab_walk.python_count : max;
    memcpy(frames, lab_walk.python, count * sizeof(*frames));
    *note = count < lab_walk.python_count ? VS_STACK_NOTE_PYTHON_CUT : lab_walk.python_note;
    return count;
}

/* Its code object's id is its address, its line the offset. */
int python_describe(const struct python_frame *frames, unsigned count, uint64_t *words)
{
    for (unsigned i = 0; i < count; i++) {
        words[i] = vs_frame_interpreter((uint32_t)frames[i].code, (uint32_t)frames[i].offset,
                                        frames[i].entry);
    }
    return lab_unknown_code ? -1 : (int)count;
}

void python_prepare(void)
{
}

bool python_is_missing(void)
{
    return false;
}

enum vs_python_state python_state(void)
{
    return VS_PYTHON_READY;
}

uint32_t modules_generation(void)
{
    return lab_modules_generation;
}

uint32_t modules_find(const void *address)
{
    lab_modules_asked++;
    return address != NULL;
}

bool modules_refresh_if_stale(bool missing)
{
    return missing;
}

/* The calling thread's stack: `native` words from `first` on, `python` frames. */
__attribute__((unused)) static void lab_stack(uint64_t first, unsigned native, unsigned python)
{
    memset(&lab_walk, 0, sizeof(lab_walk));
    for (unsigned i = 0; i < native; i++) {
        lab_walk.native[i] = first + 16 * i;
    }
    for (unsigned i = 0; i < python; i++) {
        lab_walk.python[i] = (struct python_frame){
            .code = 1 + i, .version = 7, .offset = (int32_t)first, .entry = i + 1 == python};
    }
    lab_walk.native_count = native;
    lab_walk.python_count = python;
    lab_tables = lab_walk;
}

/* Wanted kinds and depth as by default, a table without stacks, a fresh ring. */
__attribute__((unused)) static struct consumer lab_begin(uint64_t ring_bytes)
{
    shim_config.want_native = true;
    shim_config.want_python = true;
    shim_config.depth = 64;
    struct consumer consumer = lab_open(ring_bytes);
    stacks_begin();
    return consumer;
}

#endif
