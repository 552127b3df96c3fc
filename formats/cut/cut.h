/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cutting a trace: a smaller one that says the same of the moments that matter,
 * each device's peaks, each failed request and the end. Around them, in the
 * windows, it has every event. In between, in the gaps, blocks of a caching
 * layer that came and went within the gap are taken out, and calls on events that
 * no block waits for, and nothing else: so what is live in a window, and every figure of it, is
 * what it was (docs/format.md §13). Memory: that of a reader, and two bits for each event.
 */
#ifndef VS_FORMATS_CUT_H
#define VS_FORMATS_CUT_H

#include "trace.h"

/* Events [first, end) in the order of reading, some of which were taken out. */
struct vs_cut_gap {
    uint64_t first, end;
    uint64_t events; /* taken out */
    uint64_t from_ns, to_ns;
};

struct vs_cut_made {
    uint64_t bytes;  /* of the cut trace */
    uint64_t events; /* taken out of it, */
    uint64_t gaps;   /* in these gaps: without those that the trace came with */
};

/* A trace that has been looked through once. */
struct vs_cut;

/*
 * 0; as vs_reader_open, with `error` in one line; -ENOMEM. The path must stay. Close it. Of a
 * trace that is cut already the gaps stay as they are, and what is between them can be cut.
 */
int vs_cut_open(const char *path, struct vs_cut **out, struct vs_error *error);
void vs_cut_close(struct vs_cut *cut);

/*
 * From now on everything from the first event at `from_ns` or later to the last at `to_ns` or
 * earlier (monotonic) is a window, besides those around what matters. 0, or the reader's error.
 */
int vs_cut_keep(struct vs_cut *cut, uint64_t from_ns, uint64_t to_ns);

/*
 * Writes it to `fd` (regular; for reading and writing; what is in it goes away)
 * with windows that begin `radius` events before what matters and end half as
 * many after it. 0; -EFBIG: it is larger than `limit_bytes`; the write's error.
 */
int vs_cut_write(struct vs_cut *cut, int fd, uint64_t radius, uint64_t limit_bytes,
                 struct vs_cut_made *made);

/* Windows around what matters are never narrower where somebody is to read them. */
enum { VS_CUT_LEAST_RADIUS = 256 };

/* The same with the widest windows that fit, as far as a few tries find them. */
int vs_cut_fit(struct vs_cut *cut, int fd, uint64_t limit_bytes, struct vs_cut_made *made);

/* Of the trace written last; valid until the next one, or the end. */
const struct vs_cut_gap *vs_cut_gaps(const struct vs_cut *cut, size_t *count);

#endif
