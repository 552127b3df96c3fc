/* SPDX-License-Identifier: Apache-2.0 */
/* zlib behind a sink: see gzip.h. */
#include "gzip.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

/* 16 more than the window's bits asks zlib for a gzip header. */
enum { WINDOW_BITS = 15 + 16, MEMORY_LEVEL = 8, LEVEL = 6, OUT_BYTES = 1 << 15 };

struct vs_gzip {
    z_stream stream;
    struct vs_sink *to;
    struct vs_sink sink;
};

static int deflate_all(struct vs_gzip *gzip, int flush)
{
    unsigned char out[OUT_BYTES];
    int status = Z_OK;
    do {
        gzip->stream.next_out = out;
        gzip->stream.avail_out = sizeof(out);
        status = deflate(&gzip->stream, flush);
        if (status == Z_STREAM_ERROR)
            return -EIO;
        vs_sink_put(gzip->to, out, sizeof(out) - gzip->stream.avail_out);
    } while (gzip->stream.avail_out == 0);
    return gzip->to->error;
}

static int compress_bytes(void *self, const void *data, size_t bytes)
{
    struct vs_gzip *gzip = self;
    const unsigned char *from = data;
    while (bytes > 0) {
        size_t part = bytes < (1U << 30) ? bytes : 1U << 30;
        gzip->stream.next_in = (z_const unsigned char *)from;
        gzip->stream.avail_in = (uInt)part;
        int result = deflate_all(gzip, Z_NO_FLUSH);
        if (result != 0)
            return result;
        from += part;
        bytes -= part;
    }
    return 0;
}

int vs_gzip_new(struct vs_sink *to, struct vs_gzip **out)
{
    struct vs_gzip *gzip = calloc(1, sizeof(*gzip));
    *out = NULL;
    if (gzip == NULL)
        return -ENOMEM;
    if (deflateInit2(&gzip->stream, LEVEL, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        free(gzip);
        return -ENOMEM;
    }
    gzip->to = to;
    vs_sink_init(&gzip->sink, compress_bytes, gzip);
    *out = gzip;
    return 0;
}

struct vs_sink *vs_gzip_sink(struct vs_gzip *gzip)
{
    return &gzip->sink;
}

int vs_gzip_finish(struct vs_gzip *gzip)
{
    int result = vs_sink_flush(&gzip->sink);
    gzip->stream.next_in = NULL;
    gzip->stream.avail_in = 0;
    return result != 0 ? result : deflate_all(gzip, Z_FINISH);
}

void vs_gzip_free(struct vs_gzip *gzip)
{
    if (gzip == NULL)
        return;
    deflateEnd(&gzip->stream);
    free(gzip);
}
