/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the fields of CPython's structures lie, by version. Offsets in bytes,
 * 64-bit machines. 3.8 to 3.12 publish nothing, so these rows are all there is;
 * from 3.13 on the interpreter carries a table of its own offsets, with which a
 * row has to agree before it is used.
 */
#ifndef VS_SHIM_PYTHON_LAYOUT_H
#define VS_SHIM_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

/* How the frames of a thread hang together. */
enum python_chain {
    PYTHON_CHAIN_OBJECTS, /* 3.8–3.10: frame objects, each its own call of the interpreter loop */
    PYTHON_CHAIN_LINKED,  /* 3.11: frames say whether they are the outermost of a call */
    PYTHON_CHAIN_SHIMMED  /* 3.12 on: a frame that is none marks where a call begins */
};

enum python_lines {
    PYTHON_LINES_PAIRS,    /* 3.8, 3.9: co_lnotab */
    PYTHON_LINES_RANGES,   /* 3.10: co_linetable */
    PYTHON_LINES_LOCATIONS /* 3.11 on */
};

#define PYTHON_OWNER_GENERATOR 1U
#define PYTHON_OWNER_NO_FRAME 3U /* this and above: belongs to the interpreter, runs no code */

struct python_layout {
    uint8_t minor;
    bool free_threaded;
    uint8_t chain;         /* enum python_chain */
    uint8_t lines;         /* enum python_lines */
    uint8_t unit_shift;    /* of f_lasti: 3.10 counts code units of two bytes */
    uint8_t kind_shift;    /* of `kind` in a string's state; compact and ascii follow it */
    uint8_t reference_tag; /* low bits of a frame's reference to its code that are none of it */

    uint16_t thread_interpreter;
    uint16_t thread_top;     /* frame, or what holds it */
    bool top_is_indirect;    /* through a `cframe` */
    uint16_t cframe_current; /* in the cframe */
    uint16_t cframe_previous;

    uint16_t frame_previous;
    uint16_t frame_code;
    uint16_t frame_ip; /* f_lasti (int), prev_instr or instr_ptr (pointers) */
    uint16_t frame_owner;
    uint16_t frame_entry;     /* 3.11: is_entry */
    uint16_t frame_generator; /* 3.8–3.10: f_gen */
    uint16_t frame_tlbc;      /* index of the thread's own copy of the bytecode; 0: has none */

    uint16_t object_type;
    uint16_t type_dealloc;

    uint16_t code_file, code_name, code_qualname; /* qualname 0: does not exist, the name serves */
    uint16_t code_first_line;
    uint16_t code_version; /* 0: does not exist */
    uint16_t code_lines;   /* bytes object */
    uint16_t code_bytes;   /* the bytecode: in the object, or (frame objects) a bytes object */
    uint16_t code_tlbc;

    uint16_t bytes_size, bytes_data;
    uint16_t text_length, text_state, text_ascii, text_compact;
};

/*
 * The layout of a version (as PY_VERSION_HEX), or -ENOTSUP. `runtime` is
 * _PyRuntime, looked at from 3.13 on, NULL when there is none.
 */
int python_layout_choose(uint32_t version, const void *runtime, struct python_layout *layout);

#endif
