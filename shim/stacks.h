/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an event came from. stacks.c joins the two walks, turns each distinct
 * stack into an id once, and sends its record:
 *
 *   unwind*.c   native frames of the calling thread
 *   python*.c   Python frames of the calling thread, without the GIL
 *   stacks.c    capture: walk, hash, look up, send on a miss
 *   stack_table.c  the lock-free table behind it
 *
 * All of it runs inside hooks: no allocation, lock, descriptor or system call
 * once a thread is warm, async-signal-safe, errno untouched.
 */
#ifndef VS_SHIM_STACKS_H
#define VS_SHIM_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "../formats/frame_word.h"
#include "../formats/ring.h"

#define STACKS_DEPTH_MAX 256U /* the largest VRAMSCOPE_DEPTH: a record has to fit in the ring */

/* ---- stacks.c ---------------------------------------------------------------- */

/* Id of the calling thread's stack, its record committed; 0: none (not wanted, or lost). */
uint32_t stacks_capture(void);
/* In the constructor and when recording has begun, the module table filled: what the walks need. */
void stacks_prepare(void);
/* After the list of loaded objects was looked through: an interpreter may be among the new ones. */
void stacks_objects_changed(void);
/* Recording is about to begin in this process, its ring at hand: maps the table, counts from new.
 */
void stacks_begin(void);

#ifdef VS_TEST_POINTS
/* Where a test may stop the sender of a new stack. */
enum stacks_test_point { STACKS_CLAIMED, STACKS_SENT };
extern void (*stacks_test_point)(enum stacks_test_point where);
#endif

/* ---- unwind.c ------------------------------------------------------------------ */

/*
 * Native frames of the calling thread, innermost first, without our own: at most
 * `max` words (formats/frame_word.h) to `words`. *note says why there are no
 * more (NATIVE_CUT, NATIVE_STOPPED), NONE when the thread's start was reached.
 */
unsigned unwind_here(uint64_t *words, unsigned max, enum vs_stack_note *note);
/* The same by the unwind tables whatever was chosen: proves a new stack. */
unsigned unwind_here_by_tables(uint64_t *words, unsigned max, enum vs_stack_note *note);
/*
 * Marks (VS_FRAME_LOOP) those of a stack's words whose frame holds one of `places`,
 * addresses on the stack in the order of the frames. Only while the frames of the
 * walk that wrote the words are there.
 */
void unwind_mark_holders(uint64_t *words, unsigned count, const uint64_t *places,
                         unsigned place_count);
enum vs_native_method unwind_method(void);
/* In the constructor and when recording begins; never in a hook. */
void unwind_prepare(void);
/*
 * A stack by frame pointers was not the one by tables: tables from now on, for
 * good. unwind_here_by_tables notices by itself that frame pointers cannot be
 * relied on, and does the same.
 */
void unwind_proved_wrong(void);

/* ---- python.c ------------------------------------------------------------------- */

/* One frame as it lies in the interpreter; valid while the caller's frame is on the stack. */
struct python_frame {
    uint64_t code;    /* address of the code object */
    uint32_t version; /* tells code objects of the same address apart (python_code.c) */
    int32_t offset;   /* bytes into the bytecode; -1 not started or not known */
    bool entry;       /* the outermost frame of one call of the interpreter loop */
};

/*
 * Python frames of the calling thread, innermost first. Returns their number;
 * *note as for unwind_here. NONE and 0 frames: no Python here.
 */
unsigned python_walk(struct python_frame *frames, unsigned max, enum vs_stack_note *note);
/* A walk's result without its frames; the sum is the caller's, made of them. */
struct python_known {
    uint64_t sum[2];
    uint32_t count;
    enum vs_stack_note note;
    uint64_t age; /* what else walks depended on when it was asked for (python_memo.h) */
    uint64_t tag; /* tells it from every other walk that is or was remembered */
};

/*
 * True when python_walk with `max` frames, one and the same in a process, would give
 * what it gave before, or nothing at all: then its sum is 0. If not, known->age is
 * filled in, for python_remember.
 */
bool python_recall(struct python_known *known);
/*
 * python_walk was called right after python_recall, and the code objects of its
 * frames have ids: remembered, if it can be.
 */
void python_remember(const struct python_known *known);
/*
 * A stack's words from its frames, the notes aside: names code objects (sends
 * CODE records) and decodes lines. Only right after python_walk, before anything
 * else runs on the thread. Returns the number of words, or -1 when a definition
 * found no room in the ring.
 */
int python_describe(const struct python_frame *frames, unsigned count, uint64_t *words);
/*
 * A place in the native frame of each call of the interpreter loop that runs one
 * of the thread's Python frames, innermost first; 0 before 3.11, where none can be
 * told. Only right after python_walk, before anything else runs on the thread.
 */
unsigned python_loops(uint64_t *places, unsigned max);
/* Finds the interpreter; where the loader may be asked (start, after an object was loaded). */
void python_prepare(void);
/* True when python_prepare should be called again: an object was loaded since and none was found.
 */
bool python_is_missing(void);
enum vs_python_state python_state(void);

/* ---- modules.c -------------------------------------------------------------------- */

/* The unwind tables of a loaded object, and the parts of it that may be read for them. */
struct modules_tables {
    uint64_t header;                   /* address of .eh_frame_hdr, 0: none */
    uint64_t start, end;               /* the loaded segment around it */
    uint64_t frames_start, frames_end; /* the one around .eh_frame, often the same */
    uint64_t first, last;              /* the object: its first byte, the one behind its last */
};
/* Of the object that holds `address`; false when none does. Sends nothing. Lock-free. */
bool modules_tables(const void *address, struct modules_tables *tables);

/*
 * Generation of the module map: moves when an object went away or another took
 * its place, so that an address means one object within a generation.
 */
uint32_t modules_generation(void);

#endif
