/* SPDX-License-Identifier: Apache-2.0 */
/* File header, superblock, chunk header, checksums, compression: see trace_chunk.h. */
#include "trace_chunk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include <zstd.h>

#include "trace_columns.h"

#define HASH_OFFSET 56U              /* of every 64-byte header: XXH64 of the bytes before it */
#define CHUNK_MAGIC 0x4b435356U      /* "VSCK" */
#define SUPERBLOCK_MAGIC 0x42535356U /* "VSSB" */

/* A first byte above 127 and a line feed, so that text-mode copies show at once. */
static const uint8_t file_magic[8] = {0x89, 'V', 'S', 'C', 'O', 'P', 'E', '\n'};

uint32_t vs_get_u32(const uint8_t *in)
{
    return (uint32_t)in[0] | (uint32_t)in[1] << 8 | (uint32_t)in[2] << 16 | (uint32_t)in[3] << 24;
}

uint64_t vs_get_u64(const uint8_t *in)
{
    return (uint64_t)vs_get_u32(in) | (uint64_t)vs_get_u32(in + 4) << 32;
}

void vs_put_u32(uint8_t *out, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++)
        out[i] = (uint8_t)(value >> (8 * i));
}

void vs_put_u64(uint8_t *out, uint64_t value)
{
    vs_put_u32(out, (uint32_t)value);
    vs_put_u32(out + 4, (uint32_t)(value >> 32));
}

static void put_u16(uint8_t *out, uint16_t value)
{
    out[0] = (uint8_t)value;
    out[1] = (uint8_t)(value >> 8);
}

static uint16_t get_u16(const uint8_t *in)
{
    return (uint16_t)(in[0] | in[1] << 8);
}

uint64_t vs_payload_hash(const void *data, size_t bytes)
{
    return XXH64(data, bytes, 0);
}

static void seal(uint8_t header[64])
{
    vs_put_u64(header + HASH_OFFSET, XXH64(header, HASH_OFFSET, 0));
}

static bool seal_holds(const uint8_t header[64])
{
    return vs_get_u64(header + HASH_OFFSET) == XXH64(header, HASH_OFFSET, 0);
}

void vs_file_header_encode(const struct vs_file_header *header, uint8_t out[VS_FILE_HEADER_BYTES])
{
    memset(out, 0, VS_FILE_HEADER_BYTES);
    memcpy(out, file_magic, sizeof file_magic);
    vs_put_u32(out + 8, header->version);
    vs_put_u32(out + 12, header->flags);
    memcpy(out + 16, header->file_id, sizeof header->file_id);
    vs_put_u64(out + 32, header->superblock_offset);
    seal(out);
}

enum vs_header_state vs_file_header_decode(const uint8_t in[VS_FILE_HEADER_BYTES],
                                           struct vs_file_header *out)
{
    memset(out, 0, sizeof *out);
    if (memcmp(in, file_magic, sizeof file_magic) != 0)
        return VS_HEADER_FOREIGN;
    if (!seal_holds(in))
        return VS_HEADER_DAMAGED;
    out->version = vs_get_u32(in + 8);
    out->flags = vs_get_u32(in + 12);
    memcpy(out->file_id, in + 16, sizeof out->file_id);
    out->superblock_offset = vs_get_u64(in + 32);
    return VS_HEADER_GOOD;
}

uint32_t vs_file_tag(const uint8_t file_id[16])
{
    return vs_get_u32(file_id);
}

void vs_superblock_encode(const struct vs_superblock *block, uint32_t file_tag,
                          uint8_t out[VS_SUPERBLOCK_BYTES])
{
    memset(out, 0, VS_SUPERBLOCK_BYTES);
    vs_put_u32(out, SUPERBLOCK_MAGIC);
    vs_put_u32(out + 4, file_tag);
    vs_put_u64(out + 8, block->slots_offset);
    vs_put_u64(out + 16, block->slot_bytes);
    vs_put_u64(out + 24, block->slot_count);
    seal(out);
}

bool vs_superblock_decode(const uint8_t in[VS_SUPERBLOCK_BYTES], uint32_t file_tag,
                          struct vs_superblock *out)
{
    if (vs_get_u32(in) != SUPERBLOCK_MAGIC || vs_get_u32(in + 4) != file_tag || !seal_holds(in))
        return false;
    out->slots_offset = vs_get_u64(in + 8);
    out->slot_bytes = vs_get_u64(in + 16);
    out->slot_count = vs_get_u64(in + 24);
    uint64_t end;
    return out->slots_offset % VS_TRACE_ALIGN == 0 && out->slot_bytes % VS_TRACE_ALIGN == 0 &&
           out->slot_bytes >= VS_CHUNK_HEADER_BYTES && out->slot_count > 0 &&
           !__builtin_mul_overflow(out->slot_bytes, out->slot_count, &end) &&
           !__builtin_add_overflow(end, out->slots_offset, &end);
}

void vs_chunk_header_encode(const struct vs_chunk_header *header,
                            uint8_t out[VS_CHUNK_HEADER_BYTES])
{
    vs_put_u32(out, CHUNK_MAGIC);
    put_u16(out + 4, header->type);
    put_u16(out + 6, header->flags);
    vs_put_u32(out + 8, header->stored_bytes);
    vs_put_u32(out + 12, header->raw_bytes);
    vs_put_u64(out + 16, header->number);
    vs_put_u64(out + 24, header->first);
    vs_put_u64(out + 32, header->mark);
    vs_put_u32(out + 40, header->count);
    vs_put_u32(out + 44, header->file_tag);
    vs_put_u64(out + 48, header->payload_hash);
    seal(out);
}

bool vs_chunk_magic(const uint8_t *in)
{
    return vs_get_u32(in) == CHUNK_MAGIC;
}

bool vs_chunk_header_decode(const uint8_t in[VS_CHUNK_HEADER_BYTES], struct vs_chunk_header *out)
{
    if (!vs_chunk_magic(in) || !seal_holds(in))
        return false;
    out->type = get_u16(in + 4);
    out->flags = get_u16(in + 6);
    out->stored_bytes = vs_get_u32(in + 8);
    out->raw_bytes = vs_get_u32(in + 12);
    out->number = vs_get_u64(in + 16);
    out->first = vs_get_u64(in + 24);
    out->mark = vs_get_u64(in + 32);
    out->count = vs_get_u32(in + 40);
    out->file_tag = vs_get_u32(in + 44);
    out->payload_hash = vs_get_u64(in + 48);
    if (out->type == VS_CHUNK_ROOM)
        return true;
    uint64_t last;
    return out->raw_bytes <= VS_CHUNK_MAX_RAW && out->stored_bytes <= VS_CHUNK_MAX_RAW &&
           out->count <= VS_CHUNK_MAX_COUNT &&
           !__builtin_add_overflow(out->first, (uint64_t)out->count, &last);
}

uint64_t vs_chunk_span(const struct vs_chunk_header *header)
{
    uint64_t bytes = VS_CHUNK_HEADER_BYTES + (uint64_t)header->stored_bytes;
    return (bytes + VS_TRACE_ALIGN - 1) / VS_TRACE_ALIGN * VS_TRACE_ALIGN;
}

/* ---- compression ------------------------------------------------------------ */

struct vs_packer {
    ZSTD_CCtx *context;
    uint8_t *buffer;
    size_t capacity;
};

struct vs_packer *vs_packer_new(int zstd_level)
{
    struct vs_packer *packer = calloc(1, sizeof *packer);
    if (packer == NULL)
        return NULL;
    packer->context = ZSTD_createCCtx();
    if (packer->context == NULL) {
        free(packer);
        return NULL;
    }
    ZSTD_CCtx_setParameter(packer->context, ZSTD_c_compressionLevel, zstd_level);
    return packer;
}

void vs_packer_free(struct vs_packer *packer)
{
    if (packer == NULL)
        return;
    ZSTD_freeCCtx(packer->context);
    free(packer->buffer);
    free(packer);
}

#define PARTS_MOST 128U
#define BLOCK_HEAD_BYTES 16U

/*
 * One frame whose blocks end where the payload's parts end: each part then has
 * literal statistics of its own, which zstd keeps per block. 0: it did not work.
 */
static size_t compress_parts(struct vs_packer *packer, const uint8_t *raw, size_t bytes)
{
    size_t ends[PARTS_MOST];
    size_t count = vs_columns_parts(raw, bytes, ends, PARTS_MOST);
    ZSTD_outBuffer out = {packer->buffer, packer->capacity, 0};
    ZSTD_CCtx_reset(packer->context, ZSTD_reset_session_only);
    ZSTD_CCtx_setPledgedSrcSize(packer->context, bytes);
    for (size_t i = 0, start = 0; i < count; start = ends[i++]) {
        ZSTD_inBuffer in = {raw + start, ends[i] - start, 0};
        ZSTD_EndDirective end = i + 1 == count ? ZSTD_e_end : ZSTD_e_flush;
        size_t left = ZSTD_compressStream2(packer->context, &out, &in, end);
        if (left != 0) /* an error, or it found no room */
            return 0;
    }
    return out.pos;
}

int vs_packer_pack(struct vs_packer *packer, const uint8_t *raw, size_t bytes,
                   struct vs_chunk_header *header, const uint8_t **stored)
{
    if (bytes > VS_CHUNK_MAX_RAW)
        return -E2BIG;
    size_t bound = ZSTD_compressBound(bytes) + PARTS_MOST * BLOCK_HEAD_BYTES;
    if (bound > packer->capacity) {
        uint8_t *grown = realloc(packer->buffer, bound);
        if (grown == NULL)
            return -ENOMEM;
        packer->buffer = grown;
        packer->capacity = bound;
    }
    size_t packed = compress_parts(packer, raw, bytes);
    bool pays = packed != 0 && packed < bytes;
    *stored = pays ? packer->buffer : raw;
    header->flags = pays ? VS_CHUNK_ZSTD : 0;
    header->raw_bytes = (uint32_t)bytes;
    header->stored_bytes = (uint32_t)(pays ? packed : bytes);
    header->payload_hash = vs_payload_hash(*stored, header->stored_bytes);
    return 0;
}

struct vs_unpacker {
    ZSTD_DCtx *context;
    uint8_t *buffer;
    size_t capacity;
};

struct vs_unpacker *vs_unpacker_new(void)
{
    struct vs_unpacker *unpacker = calloc(1, sizeof *unpacker);
    if (unpacker == NULL)
        return NULL;
    unpacker->context = ZSTD_createDCtx();
    if (unpacker->context == NULL) {
        free(unpacker);
        return NULL;
    }
    return unpacker;
}

void vs_unpacker_free(struct vs_unpacker *unpacker)
{
    if (unpacker == NULL)
        return;
    ZSTD_freeDCtx(unpacker->context);
    free(unpacker->buffer);
    free(unpacker);
}

int vs_unpacker_unpack(struct vs_unpacker *unpacker, const struct vs_chunk_header *header,
                       const uint8_t *stored, const uint8_t **raw)
{
    if (!(header->flags & VS_CHUNK_ZSTD)) {
        *raw = stored;
        return header->raw_bytes == header->stored_bytes ? 0 : -EBADMSG;
    }
    /* The frame says its own size: a lie about raw_bytes costs no memory. */
    unsigned long long frame_bytes = ZSTD_getFrameContentSize(stored, header->stored_bytes);
    if (frame_bytes != header->raw_bytes)
        return -EBADMSG;
    if (header->raw_bytes > unpacker->capacity) {
        uint8_t *grown = realloc(unpacker->buffer, header->raw_bytes);
        if (grown == NULL)
            return -ENOMEM;
        unpacker->buffer = grown;
        unpacker->capacity = header->raw_bytes;
    }
    size_t got = ZSTD_decompressDCtx(unpacker->context, unpacker->buffer, header->raw_bytes, stored,
                                     header->stored_bytes);
    *raw = unpacker->buffer;
    return got == header->raw_bytes ? 0 : -EBADMSG;
}
