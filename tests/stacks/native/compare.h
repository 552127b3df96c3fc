/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our stack against others' of the same moment: libunwind's cursor, without its
 * cache, and the C library's backtrace(), which is libgcc's unwinder.
 */
#ifndef VS_TESTS_NATIVE_COMPARE_H
#define VS_TESTS_NATIVE_COMPARE_H

#include "lab.h"

#ifdef __cplusplus
extern "C" {
#endif

#define COMPARE_DEPTH 256U

struct compare_totals {
    unsigned long stacks;
    unsigned long frames;
    unsigned long proved;    /* by tables, after frame pointers found a stack not seen before */
    unsigned long disproved; /* of these, those that tables found to be another */
    unsigned long split;     /* the two others do not agree; we agree with one of them */
    unsigned long recalled;  /* remembered walks, each the same as the one made then */
    unsigned long different; /* from both, or a remembered walk from the one made */
};
extern struct compare_totals compare_totals;

void compare_begin(void);
/* Compares from the caller on. Returns the number of frames. */
unsigned compare_here(void);
/* A failure that a scene found by itself. */
void compare_fail(const char *what);
/* Prints the totals; the exit status. */
int compare_end(const char *name);

#ifdef __cplusplus
}
#endif

#endif
