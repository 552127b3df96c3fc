/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces of every shape a reader must take, made chunk by chunk in memory: what
 * today's writer does not write (merged, overlapping, out of order, circular,
 * of a later version) is written here. Used by the comparison with reader.py, by
 * the unit tests and as seeds of the fuzzer.
 */
#ifndef VS_TESTS_SHAPES_H
#define VS_TESTS_SHAPES_H

#include "trace.h"
#include "trace_chunk.h"
#include "trace_columns.h"

#define SHAPES_FIRST_SEQUENCE 1024U
#define SHAPES_TINY_CHUNK 20U /* events per chunk of "tiny" */

struct shape {
    const char *name;
    void (*make)(struct vs_bytes *file);
    uint64_t events; /* a reader must find these many … */
    uint64_t first;  /* … beginning with the event of this index (key frames aside) */
    int opens;       /* result of vs_reader_open */
};

extern const struct shape shapes[];
extern const size_t shape_count;
const struct shape *shape_find(const char *name); /* NULL: none of that name */

/* The event of an index: every shape holds the same stream. */
void shape_event(uint64_t index, struct vs_sequenced_event *out);

#endif
