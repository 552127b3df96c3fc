/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacking gzip, zstd and zip into a file without a name: see packed.h. */
#include "packed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "packed_stream.h"
#include "trace_why.h"

#define PIECE_BYTES (1U << 18)
#define GZIP_WINDOW_BITS (15 + 16) /* as zlib has it: 32 KiB, a gzip header */
/* The chunks of a trace are compressed already: packing it again gains little. */
#define UNPACKED_FREE_BYTES (256ULL << 20)
#define UNPACKED_PER_BYTE 64U

static const uint8_t magics[][4] = {
    [VS_PACKING_GZIP] = {0x1f, 0x8b, 0x08, 0},
    [VS_PACKING_ZSTD] = {0x28, 0xb5, 0x2f, 0xfd},
    [VS_PACKING_ZIP] = {'P', 'K', 3, 4},
};

enum vs_packing vs_packing_of(struct vs_source *source)
{
    int error;
    const uint8_t *start = vs_source_at(source, 0, sizeof magics[0], &error);
    for (enum vs_packing kind = VS_PACKING_GZIP; start != NULL && kind <= VS_PACKING_ZIP; kind++)
        if (memcmp(start, magics[kind], kind == VS_PACKING_GZIP ? 3 : sizeof magics[kind]) == 0)
            return kind;
    return VS_PACKING_NONE;
}

/* ---- in and out ---------------------------------------------------------------------- */

long vs_packed_next(struct vs_packed_input *input, size_t most, const uint8_t **bytes)
{
    uint64_t left = input->source->bytes - input->offset;
    size_t count = most < PIECE_BYTES ? most : PIECE_BYTES;
    int error = 0;
    if (count > left)
        count = (size_t)left;
    if (count == 0)
        return 0;
    *bytes = vs_source_at(input->source, input->offset, count, &error);
    if (*bytes == NULL)
        return error;
    input->offset += count;
    return (long)count;
}

int vs_packed_write(struct vs_packed_output *output, const void *data, size_t bytes)
{
    const uint8_t *at = data;
    output->unpacked += bytes;
    if (output->unpacked > output->unpacked_most)
        return -EFBIG;
    while (bytes > 0) {
        ssize_t done = write(output->fd, at, bytes);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? -errno : -EIO;
        at += done;
        bytes -= (size_t)done;
        output->bytes += (uint64_t)done;
    }
    return 0;
}

int vs_packed_restart(struct vs_packed_output *output)
{
    output->bytes = 0;
    return lseek(output->fd, 0, SEEK_SET) < 0 || ftruncate(output->fd, 0) != 0 ? -errno : 0;
}

/* A file that goes away with its descriptor. The descriptor, or the system's error. */
static int nameless_file(void)
{
    const char *folder = getenv("TMPDIR");
    char *path = NULL;
    if (asprintf(&path, "%s/vramscope-XXXXXX",
                 folder != NULL && folder[0] != 0 ? folder : P_tmpdir) < 0)
        return -ENOMEM;
    int fd = mkostemp(path, O_CLOEXEC);
    int result = fd < 0 ? -errno : fd;
    if (fd >= 0)
        unlink(path);
    free(path);
    return result;
}

/* ---- gzip and deflate ------------------------------------------------------------------ */

static int inflate_piece(z_stream *stream, struct vs_packed_output *output, uint8_t *room,
                         int *result)
{
    int error = 0;
    do {
        stream->next_out = room;
        stream->avail_out = PIECE_BYTES;
        *result = inflate(stream, Z_NO_FLUSH);
        error = vs_packed_write(output, room, PIECE_BYTES - stream->avail_out);
    } while (error == 0 && *result == Z_OK && (stream->avail_in > 0 || stream->avail_out == 0));
    return error;
}

int vs_packed_inflate(struct vs_packed_input *input, int window_bits,
                      struct vs_packed_output *output, bool *ended)
{
    z_stream stream = {0};
    const uint8_t *bytes = NULL;
    uint8_t *room = malloc(PIECE_BYTES);
    int result = Z_OK, error = 0;
    *ended = false;
    if (room == NULL || inflateInit2(&stream, window_bits) != Z_OK) {
        free(room);
        return -ENOMEM;
    }
    while (error == 0 && (result == Z_OK || result == Z_BUF_ERROR)) {
        long count = vs_packed_next(input, PIECE_BYTES, &bytes);
        if (count <= 0) {
            error = (int)count;
            break;
        }
        stream.next_in = (z_const Bytef *)(uintptr_t)bytes;
        stream.avail_in = (uInt)count;
        error = inflate_piece(&stream, output, room, &result);
    }
    input->offset -= stream.avail_in;
    *ended = result == Z_STREAM_END;
    inflateEnd(&stream);
    free(room);
    return result == Z_MEM_ERROR ? -ENOMEM : error;
}

/* Members one behind the other are one file; what follows them and is none is not looked at. */
static int unpack_gzip(struct vs_packed_input *input, struct vs_packed_output *output, bool *ended)
{
    int error, unused;
    do {
        error = vs_packed_inflate(input, GZIP_WINDOW_BITS, output, ended);
        const uint8_t *next = vs_source_at(input->source, input->offset, 2, &unused);
        if (next == NULL || memcmp(next, magics[VS_PACKING_GZIP], 2) != 0)
            break;
    } while (error == 0 && *ended);
    return error;
}

/* ---- zstd ------------------------------------------------------------------------------- */

static int unpack_zstd_piece(ZSTD_DStream *stream, ZSTD_inBuffer *in,
                             struct vs_packed_output *output, uint8_t *room, size_t *left)
{
    ZSTD_outBuffer out;
    int error;
    do {
        out = (ZSTD_outBuffer){room, PIECE_BYTES, 0};
        *left = ZSTD_decompressStream(stream, &out, in);
        error = ZSTD_isError(*left) ? -EBADMSG : 0;
        if (error == 0)
            error = vs_packed_write(output, room, out.pos);
    } while (error == 0 && (in->pos < in->size || out.pos == out.size));
    return error;
}

static int unpack_zstd(struct vs_packed_input *input, struct vs_packed_output *output, bool *ended)
{
    ZSTD_DStream *stream = ZSTD_createDStream();
    uint8_t *room = malloc(PIECE_BYTES);
    const uint8_t *bytes = NULL;
    size_t left = 1; /* of the frame; 0 at the end of one */
    long count = 0;
    int error = stream == NULL || room == NULL ? -ENOMEM : 0;
    while (error == 0 && (count = vs_packed_next(input, PIECE_BYTES, &bytes)) > 0) {
        ZSTD_inBuffer in = {bytes, (size_t)count, 0};
        error = unpack_zstd_piece(stream, &in, output, room, &left);
    }
    *ended = error == 0 && count == 0 && left == 0;
    ZSTD_freeDStream(stream);
    free(room);
    if (error == 0 && count < 0)
        error = (int)count;
    return error == -EBADMSG ? 0 : error;
}

/* ---- opening ------------------------------------------------------------------------------ */

static int say_packed(struct vs_error *error, const char *path, int why, bool ended,
                      const struct vs_packed_output *output)
{
    if (why == -EFBIG)
        vs_say(error,
               "%s unpacks to more than %llu MiB, far more than a trace of its size: not read",
               path, (unsigned long long)(output->unpacked_most >> 20));
    else if (why == -EINVAL && !ended)
        vs_say(error, "%s is damaged: nothing of a trace could be unpacked", path);
    else if (why == -EINVAL)
        vs_say(error, "%s holds no vramscope trace: give a .vscope file", path);
    else
        vs_say(error, "%s cannot be unpacked: %s (TMPDIR names the folder it takes room in)", path,
               strerror(-why));
    return why;
}

/* The unpacked file in the source's place. It is nobody else's: it never changes. */
static int replace(struct vs_source *source, int fd, bool cut)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return -errno;
    vs_source_close(source);
    *source = (struct vs_source){.fd = fd, .cut = cut};
    int error = vs_source_refresh(source);
    source->just_written = false;
    return error;
}

int vs_packed_open(struct vs_source *source, const char *path, struct vs_error *error)
{
    static int (*const unpack[])(struct vs_packed_input *, struct vs_packed_output *, bool *) = {
        [VS_PACKING_GZIP] = unpack_gzip,
        [VS_PACKING_ZSTD] = unpack_zstd,
        [VS_PACKING_ZIP] = vs_packed_unzip,
    };
    enum vs_packing kind = vs_packing_of(source);
    bool ended = true;
    if (kind == VS_PACKING_NONE)
        return 0;
    struct vs_packed_input input = {source, 0};
    struct vs_packed_output output = {.fd = nameless_file(),
                                      .unpacked_most =
                                          UNPACKED_FREE_BYTES + UNPACKED_PER_BYTE * source->bytes};
    int why = output.fd < 0 ? output.fd : unpack[kind](&input, &output, &ended);
    if (why == 0 && output.bytes == 0)
        why = -EINVAL;
    if (why == 0)
        why = replace(source, output.fd, !ended);
    if (why == 0)
        return 0;
    if (output.fd >= 0)
        close(output.fd);
    return say_packed(error, path, why, ended, &output);
}
