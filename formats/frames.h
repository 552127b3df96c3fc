/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks as people read them: the words of a stack id resolved by the trace's
 * own definitions, native and interpreter frames merged. The native frames that
 * run the interpreter loop are replaced by the interpreter's frames they run.
 */
#ifndef VS_FORMATS_FRAMES_H
#define VS_FORMATS_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace.h"

enum vs_frame_kind {
    VS_FRAME_NATIVE,
    VS_FRAME_PYTHON,
    VS_FRAME_NOTE /* `function` says what is missing here, `address` which enum vs_stack_note */
};

struct vs_frame {
    enum vs_frame_kind kind;
    bool inlined;         /* the compiler put this call into the next frame's function */
    const char *function; /* NULL: no name known */
    const char *file;     /* NULL: not known */
    uint32_t line;        /* 0: not known */
    const char *module;   /* path of the object; NULL for Python and for code of no module */
    uint64_t address;     /* native: inside the call, in the module's own terms, else absolute */
    bool own;             /* the program's own code: see vs_frames_own */
    bool sought;          /* native: its name was looked for already, with or without success */
};

struct vs_frames;

/* Keeps `reader`. -ENOMEM. */
int vs_frames_new(const struct vs_reader *reader, struct vs_frames **out);
void vs_frames_free(struct vs_frames *frames);

/*
 * Frames of a stack id, innermost first. Returns their number (0 for id 0 and
 * for an id the trace does not define) or -ENOMEM. A trace may have ten million
 * stacks, so `*out` stays valid until VS_FRAMES_KEPT others were asked for; the
 * texts in it until the reader is closed. Of very many, ask in order of the ids.
 */
#define VS_FRAMES_KEPT 16384U
long vs_frames_of(struct vs_frames *frames, uint32_t stack, const struct vs_frame **out);

/*
 * Index of the frame a person would call the place: the innermost frame of the
 * program's own Python code, else the innermost of its own native code, else
 * the innermost of all. Code of installed libraries (site-packages, the standard
 * library, shared objects other than the executable and those beside it) is not
 * the program's own. -1 when there is no frame (a note is none).
 */
long vs_frames_own(const struct vs_frame *frames, size_t count);
/*
 * Whether Python code is the program's own in that sense. `file` may be NULL (then
 * it is not), and so may `function`.
 */
bool vs_python_is_own(const char *file, const char *function);
/* True for a frame of the program's own code in that sense. */
bool vs_frame_is_own(const struct vs_frame *frame);

#endif
