/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a zip archive from its beginning, member by member (PKWARE's
 * APPNOTE.TXT §4.3), and not by the directory at its end, which a cut archive
 * has lost. Members are stored or deflated, with their sizes before or behind.
 */
#include <errno.h>
#include <string.h>

#include "packed_stream.h"
#include "trace_chunk.h"

enum {
    LOCAL_HEADER_BYTES = 30,
    AT_FLAGS = 6,
    AT_METHOD = 8,
    AT_SIZE = 18,
    AT_NAME_BYTES = 26,
    AT_EXTRA_BYTES = 28,
    FLAG_ENCRYPTED = 1U << 0,
    FLAG_SIZES_BEHIND = 1U << 3,
    METHOD_STORED = 0,
    METHOD_DEFLATED = 8,
    EXTRA_ZIP64 = 1,
    RAW_WINDOW_BITS = -15, /* as zlib has it: a stream without a header */
};

#define LOCAL_MAGIC 0x04034b50U
#define DIRECTORY_MAGIC 0x02014b50U
#define SIZE_IN_EXTRA UINT32_MAX

struct member {
    uint32_t flags, method;
    uint64_t stored_bytes; /* when not FLAG_SIZES_BEHIND */
};

static uint32_t get_u16(const uint8_t *in)
{
    return (uint32_t)in[0] | (uint32_t)in[1] << 8;
}

/* The stored size that did not fit its field. */
static uint64_t zip64_size(const uint8_t *extra, size_t bytes)
{
    while (bytes >= 4) {
        size_t length = get_u16(extra + 2);
        if (length > bytes - 4)
            break;
        if (get_u16(extra) == EXTRA_ZIP64 && length >= 16)
            return vs_get_u64(extra + 12);
        extra += 4 + length;
        bytes -= 4 + length;
    }
    return SIZE_IN_EXTRA;
}

/* Reads the header of the next member: 1, 0 when there is none, or a read error. */
static int next_member(struct vs_packed_input *input, struct member *member)
{
    int error;
    const uint8_t *head = vs_source_at(input->source, input->offset, LOCAL_HEADER_BYTES, &error);
    if (head == NULL || vs_get_u32(head) != LOCAL_MAGIC)
        return error == -ENODATA ? 0 : error;
    size_t name = get_u16(head + AT_NAME_BYTES), extra = get_u16(head + AT_EXTRA_BYTES);
    *member = (struct member){.flags = get_u16(head + AT_FLAGS),
                              .method = get_u16(head + AT_METHOD),
                              .stored_bytes = vs_get_u32(head + AT_SIZE)};
    const uint8_t *whole =
        vs_source_at(input->source, input->offset, LOCAL_HEADER_BYTES + name + extra, &error);
    if (whole == NULL)
        return error == -ENODATA ? 0 : error;
    if (member->stored_bytes == SIZE_IN_EXTRA)
        member->stored_bytes = zip64_size(whole + LOCAL_HEADER_BYTES + name, extra);
    input->offset += LOCAL_HEADER_BYTES + name + extra;
    return 1;
}

static int copy_stored(struct vs_packed_input *input, uint64_t bytes,
                       struct vs_packed_output *output, bool *ended)
{
    const uint8_t *data = NULL;
    int error = 0;
    while (error == 0 && bytes > 0) {
        long count = vs_packed_next(input, bytes > SIZE_MAX ? SIZE_MAX : (size_t)bytes, &data);
        if (count <= 0) {
            error = (int)count;
            break;
        }
        error = vs_packed_write(output, data, (size_t)count);
        bytes -= (uint64_t)count;
    }
    *ended = bytes == 0;
    return error;
}

/* The sizes behind a member come with or without a signature, in four or in eight bytes each. */
static bool skip_sizes(struct vs_packed_input *input)
{
    static const uint64_t lengths[] = {16, 12, 24, 20};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        int error;
        const uint8_t *next = vs_source_at(input->source, input->offset + lengths[i], 4, &error);
        uint32_t magic = next == NULL ? 0 : vs_get_u32(next);
        if (magic != LOCAL_MAGIC && magic != DIRECTORY_MAGIC)
            continue;
        input->offset += lengths[i];
        return true;
    }
    return false;
}

static bool is_trace(const struct vs_packed_output *output)
{
    uint8_t start[VS_FILE_HEADER_BYTES];
    struct vs_source source = {.fd = output->fd, .bytes = output->bytes};
    struct vs_file_header header;
    int error;
    const uint8_t *bytes = vs_source_at(&source, 0, sizeof start, &error);
    bool found = bytes != NULL && vs_file_header_decode(bytes, &header) != VS_HEADER_FOREIGN;
    source.fd = -1; /* stays the output's */
    vs_source_close(&source);
    return found;
}

/* 0 with the member unpacked, 1 when its end cannot be found, or an error. */
static int unpack_member(struct vs_packed_input *input, const struct member *member,
                         struct vs_packed_output *output, bool *ended)
{
    bool sizes_behind = (member->flags & FLAG_SIZES_BEHIND) != 0;
    bool readable = (member->flags & FLAG_ENCRYPTED) == 0;
    int error = 0;
    *ended = true;
    if (readable && member->method == METHOD_DEFLATED)
        error = vs_packed_inflate(input, RAW_WINDOW_BITS, output, ended);
    else if (sizes_behind)
        return 1;
    else if (readable && member->method == METHOD_STORED)
        error = copy_stored(input, member->stored_bytes, output, ended);
    else
        input->offset += member->stored_bytes;
    return error;
}

int vs_packed_unzip(struct vs_packed_input *input, struct vs_packed_output *output, bool *ended)
{
    struct member member = {0};
    int got;
    *ended = true;
    while ((got = next_member(input, &member)) == 1) {
        int error = vs_packed_restart(output);
        if (error == 0)
            error = unpack_member(input, &member, output, ended);
        if (error < 0 || is_trace(output))
            return error < 0 ? error : 0;
        if (error == 1 || !*ended ||
            ((member.flags & FLAG_SIZES_BEHIND) != 0 && !skip_sizes(input)))
            break;
    }
    int error;
    const uint8_t *behind = vs_source_at(input->source, input->offset, 4, &error);
    *ended = *ended && behind != NULL && vs_get_u32(behind) == DIRECTORY_MAGIC;
    error = vs_packed_restart(output);
    return got < 0 ? got : error;
}
