/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shim's unwinder in a library by itself, as a program sees it: frames of the
 * library are "ours" and must not show.
 */
#ifndef VS_TESTS_NATIVE_LAB_H
#define VS_TESTS_NATIVE_LAB_H

#include <stdbool.h>
#include <stdint.h>

#include "../../../formats/frame_word.h"
#include "../../../formats/ring.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Remembered walks are used as in the shim; each of them is made as well, and compared. */
unsigned lab_unwind(uint64_t *words, unsigned max, enum vs_stack_note *note);
unsigned lab_unwind_by_tables(uint64_t *words, unsigned max, enum vs_stack_note *note);
enum vs_native_method lab_method(void);
/* Objects were loaded or unloaded. */
void lab_refresh(void);
uint32_t lab_generation(void);
/* Ends the trial: frame pointers from now on, without further proof. */
void lab_use_frame_pointers(void);
void lab_use_tables(void);
/* Calls back from a frame of this library. */
int lab_call(int (*function)(void *), void *context);
/* The address lies in this library. */
bool lab_holds(uint64_t address);
/* Only walks of at most this many frames are remembered: one depth, as in a process. */
void lab_memo_depth(unsigned frames);
struct lab_memo_totals {
    unsigned long recalled;
    unsigned long different; /* from the walk that was made */
};
/* Since the last time. */
struct lab_memo_totals lab_memo_take(void);
/* The rule kept for `address` becomes one of a frame larger by `bytes`; false: none is kept. */
bool lab_spoil(uint64_t address, int bytes);

#ifdef __cplusplus
}
#endif

#endif
