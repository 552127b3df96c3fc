/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merging of small chunks: a buffer's entries are flushed in small chunks as
 * they come; eight of one size become one of the next, and all of a full
 * buffer one. An entry is so written once per size, never more; the number of
 * chunks that hold a buffer stays small whatever the rate.
 */
#ifndef VS_FORMATS_TRACE_SHELF_H
#define VS_FORMATS_TRACE_SHELF_H

#include "trace_space.h"

#define VS_SHELF_MOST 64U

struct vs_shelf_item {
    size_t first; /* entry of the buffer; up to the next item's */
    unsigned size;
    struct vs_extent place;
};

struct vs_shelf {
    struct vs_shelf_item items[VS_SHELF_MOST];
    size_t count;
    size_t kept; /* entries that are in chunks */
};

/* Writes entries [first, first + count) of the buffer as one chunk. 0 or an error. */
typedef int vs_shelf_write(void *context, size_t first, size_t count, struct vs_extent *out);

/* Everything that the buffer holds, `total` entries, is in the file then. 0 or an error. */
int vs_shelf_flush(struct vs_shelf *shelf, struct vs_space *space, size_t total,
                   vs_shelf_write *write, void *context);
/* The same, in one chunk; the buffer may be emptied then. */
int vs_shelf_seal(struct vs_shelf *shelf, struct vs_space *space, size_t total,
                  vs_shelf_write *write, void *context);

#endif
