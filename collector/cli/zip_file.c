/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a zip archive: PKWARE's APPNOTE.TXT §4.3; see zip_file.h. */
#include "zip_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum {
    LOCAL_BYTES = 30,
    DIRECTORY_BYTES = 46,
    END_BYTES = 22,
    VERSION_NEEDED = 20, /* 2.0: deflate */
    METHOD_STORED = 0,
    METHOD_DEFLATED = 8,
    FLAG_UTF8 = 1 << 11,
    FIRST_DAY = (1 << 5) | 1, /* 1980-01-01: an archive of the same files is the same */
    RAW_WINDOW_BITS = -15,    /* as zlib has it: a stream without a header */
    MEMORY_LEVEL = 8,
    PIECE_BYTES = 1 << 16,
};

#define LOCAL_MAGIC 0x04034b50U
#define DIRECTORY_MAGIC 0x02014b50U
#define END_MAGIC 0x06054b50U

/* ---- members ------------------------------------------------------------------------ */

int zip_deflate(const char *name, const void *data, size_t bytes, struct zip_member *member)
{
    z_stream stream = {.next_in = (z_const Bytef *)(uintptr_t)data, .avail_in = (uInt)bytes};
    *member = (struct zip_member){.name = name, .bytes = bytes, .fd = -1};
    if (bytes > UINT32_MAX || deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, RAW_WINDOW_BITS,
                                           MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
        return -ENOMEM;
    uLong room = deflateBound(&stream, (uLong)bytes);
    member->deflated = malloc(room);
    stream.next_out = member->deflated;
    stream.avail_out = (uInt)room;
    int result = member->deflated == NULL ? Z_MEM_ERROR : deflate(&stream, Z_FINISH);
    member->stored_bytes = stream.total_out;
    member->checksum = (uint32_t)crc32(0, data, (uInt)bytes);
    deflateEnd(&stream);
    return result == Z_STREAM_END ? 0 : -ENOMEM;
}

/* Calls `take` with the file's bytes in order. */
static int each_piece(int fd, uint64_t bytes, int (*take)(void *, const uint8_t *, size_t),
                      void *self)
{
    uint8_t *piece = malloc(PIECE_BYTES);
    int error = piece == NULL ? -ENOMEM : 0;
    for (uint64_t at = 0; at < bytes && error == 0;) {
        size_t want = bytes - at < PIECE_BYTES ? (size_t)(bytes - at) : PIECE_BYTES;
        ssize_t got = pread(fd, piece, want, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        error = got < 0 ? -errno : got == 0 ? -ENODATA : take(self, piece, (size_t)got);
        at += got > 0 ? (uint64_t)got : 0;
    }
    free(piece);
    return error;
}

static int add_to_checksum(void *self, const uint8_t *data, size_t bytes)
{
    uint32_t *checksum = self;
    *checksum = (uint32_t)crc32(*checksum, data, (uInt)bytes);
    return 0;
}

int zip_store(const char *name, int fd, uint64_t bytes, struct zip_member *member)
{
    *member = (struct zip_member){.name = name, .bytes = bytes, .stored_bytes = bytes, .fd = fd};
    return each_piece(fd, bytes, add_to_checksum, &member->checksum);
}

void zip_free(struct zip_member *members, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(members[i].deflated);
}

uint64_t zip_bytes(const struct zip_member *members, size_t count)
{
    uint64_t bytes = END_BYTES;
    for (size_t i = 0; i < count; i++)
        bytes +=
            LOCAL_BYTES + DIRECTORY_BYTES + 2 * strlen(members[i].name) + members[i].stored_bytes;
    return bytes;
}

/* ---- the archive -------------------------------------------------------------------------- */

static uint8_t *put_u16(uint8_t *out, uint32_t value)
{
    out[0] = (uint8_t)value;
    out[1] = (uint8_t)(value >> 8);
    return out + 2;
}

static uint8_t *put_u32(uint8_t *out, uint64_t value)
{
    return put_u16(put_u16(out, (uint32_t)value & 0xffffU), (uint32_t)(value >> 16));
}

static int write_all(void *self, const uint8_t *data, size_t bytes)
{
    const int *fd = self;
    while (bytes > 0) {
        ssize_t done = write(*fd, data, bytes);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? -errno : -EIO;
        data += done;
        bytes -= (size_t)done;
    }
    return 0;
}

/* What the header before a member and its entry in the directory have in common. */
static uint8_t *put_facts(uint8_t *out, const struct zip_member *member)
{
    out = put_u16(put_u16(out, VERSION_NEEDED), FLAG_UTF8);
    out = put_u16(out, member->deflated != NULL ? METHOD_DEFLATED : METHOD_STORED);
    out = put_u32(put_u16(put_u16(out, 0), FIRST_DAY), member->checksum);
    out = put_u32(put_u32(out, member->stored_bytes), member->bytes);
    return put_u16(put_u16(out, (uint32_t)strlen(member->name)), 0);
}

static int write_name(int fd, const uint8_t *head, size_t bytes, const char *name)
{
    int error = write_all(&fd, head, bytes);
    return error != 0 ? error : write_all(&fd, (const uint8_t *)name, strlen(name));
}

static int write_member(int fd, const struct zip_member *member)
{
    uint8_t head[LOCAL_BYTES];
    put_facts(put_u32(head, LOCAL_MAGIC), member);
    int error = write_name(fd, head, sizeof(head), member->name);
    if (error != 0)
        return error;
    return member->deflated != NULL ? write_all(&fd, member->deflated, member->stored_bytes)
                                    : each_piece(member->fd, member->bytes, write_all, &fd);
}

static int write_entry(int fd, const struct zip_member *member, uint64_t offset)
{
    uint8_t head[DIRECTORY_BYTES] = {0}, *at = put_u32(head, DIRECTORY_MAGIC);
    at = put_facts(put_u16(at, VERSION_NEEDED), member);
    /* no comment, first disk, no attributes */
    put_u32(at + DIRECTORY_BYTES - 4 - (at - head), offset);
    return write_name(fd, head, sizeof(head), member->name);
}

int zip_write(int fd, const struct zip_member *members, size_t count)
{
    uint64_t offset = 0, at = 0;
    uint8_t end[END_BYTES] = {0};
    int error = 0;
    if (zip_bytes(members, count) > UINT32_MAX)
        return -EFBIG;
    for (size_t i = 0; i < count && error == 0; i++) {
        error = write_member(fd, &members[i]);
        offset += LOCAL_BYTES + strlen(members[i].name) + members[i].stored_bytes;
    }
    for (size_t i = 0; i < count && error == 0; i++) {
        error = write_entry(fd, &members[i], at);
        at += LOCAL_BYTES + strlen(members[i].name) + members[i].stored_bytes;
    }
    uint8_t *place = put_u32(put_u32(end, END_MAGIC), 0); /* one disk */
    place = put_u16(put_u16(place, (uint32_t)count), (uint32_t)count);
    put_u32(put_u32(place, zip_bytes(members, count) - END_BYTES - offset), offset);
    return error != 0 ? error : write_all(&fd, end, sizeof(end));
}
