/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One frame of a stack as a 64-bit word: what the shim records, the trace keeps
 * and the readers resolve (docs/format.md §7). A stack is its native words,
 * innermost first, then at most one native note, then its interpreter words,
 * innermost first, then at most one interpreter note. The two are merged by who
 * reads them: where the recorder could not tell which native frames run the
 * interpreter, names have to.
 */
#ifndef VS_FORMATS_FRAME_WORD_H
#define VS_FORMATS_FRAME_WORD_H

#include <stdbool.h>
#include <stdint.h>

#define VS_FRAME_INTERPRETER (1ULL << 63)
/* Native: the very instruction that was running (interrupted by a signal), not a return address. */
#define VS_FRAME_EXACT (1ULL << 62)
/* Native: a call of the C interpreter loop that runs interpreter frames of this stack. */
#define VS_FRAME_LOOP (1ULL << 61)
/* Interpreter: the outermost of the frames that one call of the C interpreter loop runs. */
#define VS_FRAME_ENTRY (1ULL << 62)
#define VS_FRAME_CODE_BITS 30U
#define VS_FRAME_CODE_MAX ((1U << VS_FRAME_CODE_BITS) - 1)

/* `code` is a code id (1 …), `line` 1-based, 0 not known. */
static inline uint64_t vs_frame_interpreter(uint32_t code, uint32_t line, bool entry)
{
    return VS_FRAME_INTERPRETER | (entry ? VS_FRAME_ENTRY : 0) | ((uint64_t)code << 32) | line;
}

static inline uint32_t vs_frame_code(uint64_t word)
{
    return (uint32_t)(word >> 32) & VS_FRAME_CODE_MAX;
}

static inline uint32_t vs_frame_line(uint64_t word)
{
    return (uint32_t)word;
}

/* A word with code id 0 is no frame but a remark about the frames before it: its line says which.
 */
enum vs_stack_note {
    VS_STACK_NOTE_NONE = 0,
    VS_STACK_NOTE_NATIVE_CUT = 1,         /* more frames than VRAMSCOPE_DEPTH */
    VS_STACK_NOTE_NATIVE_STOPPED = 2,     /* the frame before could not be unwound */
    VS_STACK_NOTE_PYTHON_CUT = 3,         /* more frames than VRAMSCOPE_DEPTH */
    VS_STACK_NOTE_PYTHON_NO_FRAME = 4,    /* a thread that Python knows, running no Python code */
    VS_STACK_NOTE_PYTHON_FINALIZING = 5,  /* the interpreter is shutting down: not looked at */
    VS_STACK_NOTE_PYTHON_UNSUPPORTED = 6, /* a version of Python that is not known */
    VS_STACK_NOTE_PYTHON_NO_ROOM = 7      /* a code object could not be named: the table is full */
};

static inline uint64_t vs_frame_note(enum vs_stack_note note)
{
    return VS_FRAME_INTERPRETER | (uint64_t)note;
}

static inline bool vs_frame_is_interpreter(uint64_t word)
{
    return (word & VS_FRAME_INTERPRETER) != 0;
}

/* VS_STACK_NOTE_NONE for a frame. */
static inline enum vs_stack_note vs_frame_note_of(uint64_t word)
{
    return vs_frame_is_interpreter(word) && vs_frame_code(word) == 0
               ? (enum vs_stack_note)vs_frame_line(word)
               : VS_STACK_NOTE_NONE;
}

/* False for interpreter words, whose bit 61 is part of a code id. */
static inline bool vs_frame_is_loop(uint64_t word)
{
    return !vs_frame_is_interpreter(word) && (word & VS_FRAME_LOOP) != 0;
}

static inline uint64_t vs_frame_address(uint64_t native)
{
    return native & ~(VS_FRAME_INTERPRETER | VS_FRAME_EXACT | VS_FRAME_LOOP);
}

/* Where to look for the name: inside the call instruction, unless the word is exact. */
static inline uint64_t vs_frame_lookup_address(uint64_t native)
{
    return vs_frame_address(native) - ((native & VS_FRAME_EXACT) != 0 ? 0 : 1);
}

#endif
