/* SPDX-License-Identifier: Apache-2.0 */
/* What the unpackers share: the bytes that go in, and the bounded file that comes out. */
#ifndef VS_FORMATS_PACKED_STREAM_H
#define VS_FORMATS_PACKED_STREAM_H

#include "trace_source.h"

/* Of a source, from `offset` on. */
struct vs_packed_input {
    struct vs_source *source;
    uint64_t offset;
};

/* The next bytes, at most `most` of them, valid until the next call; 0 at the end, or an error. */
long vs_packed_next(struct vs_packed_input *input, size_t most, const uint8_t **bytes);

struct vs_packed_output {
    int fd;
    uint64_t bytes;
    uint64_t unpacked, unpacked_most; /* all that came out, what was thrown away again included */
};

/* Appends. 0, -EFBIG beyond the bound, or the write's error. */
int vs_packed_write(struct vs_packed_output *output, const void *data, size_t bytes);
/* Throws away what is in it. 0 or the system's error. */
int vs_packed_restart(struct vs_packed_output *output);

/*
 * Inflates one stream; `window_bits` as zlib has them (negative: without a
 * header). `*ended`: it was whole; false where it is damaged or cut, with all
 * that could be had in the output. The input stands behind the stream then.
 */
int vs_packed_inflate(struct vs_packed_input *input, int window_bits,
                      struct vs_packed_output *output, bool *ended);

/* The first member of a zip archive that is a trace: as vs_packed_open. */
int vs_packed_unzip(struct vs_packed_input *input, struct vs_packed_output *output, bool *ended);

#endif
