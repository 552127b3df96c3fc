/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outermost layer of a trace: file header, superblock and chunks with their
 * checksums (docs/format.md §2–4). Knows bytes and limits, not what a chunk
 * means. Everything decoded here comes from a file and is checked before use.
 */
#ifndef VS_FORMATS_TRACE_CHUNK_H
#define VS_FORMATS_TRACE_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VS_TRACE_ALIGN 64U
#define VS_FILE_HEADER_BYTES 64U
#define VS_SUPERBLOCK_BYTES 64U
#define VS_CHUNK_HEADER_BYTES 64U

/* Limits a reader may rely on and a writer must keep. */
#define VS_CHUNK_MAX_RAW (64U << 20)        /* unpacked payload */
#define VS_CHUNK_MAX_COUNT (1U << 18)       /* entries of one chunk */
#define VS_DEFINITIONS_MAX_RAW (1ULL << 30) /* unpacked definitions of one file, without stacks */
#define VS_DEFINITION_ROW_BYTES 16U         /* and what each row of them counts besides */

#define VS_FILE_CIRCULAR 1U /* file flag: a superblock describes slots */

#define VS_CHUNK_CRITICAL 0x8000U /* a reader that does not know the type must refuse the file */
enum vs_chunk_type {
    VS_CHUNK_EVENTS = 0x8001,
    VS_CHUNK_STRINGS = 0x0002,
    VS_CHUNK_THREADS = 0x0003,
    VS_CHUNK_MODULES = 0x0004,
    VS_CHUNK_DEVICES = 0x0005,
    VS_CHUNK_STACKS = 0x0006,
    VS_CHUNK_META = 0x0007,
    VS_CHUNK_KEYFRAME = 0x0008,
    VS_CHUNK_CODES = 0x0009,
    VS_CHUNK_SYMBOLS = 0x000a,
    VS_CHUNK_CUT = 0x800b,  /* the trace is a part of a longer one: docs/format.md §13 */
    VS_CHUNK_ROOM = 0x000e, /* unused room; its payload means nothing and has no checksum */
    VS_CHUNK_END = 0x000f,
};

enum vs_chunk_flags { VS_CHUNK_ZSTD = 1U << 0 };
#define VS_CHUNK_KNOWN_FLAGS VS_CHUNK_ZSTD

struct vs_file_header {
    uint32_t version;
    uint32_t flags;
    uint8_t file_id[16];
    uint64_t superblock_offset; /* 0: none */
};

struct vs_superblock {
    uint64_t slots_offset;
    uint64_t slot_bytes;
    uint64_t slot_count;
};

struct vs_chunk_header {
    uint16_t type;
    uint16_t flags;
    uint32_t stored_bytes;
    uint32_t raw_bytes;
    uint64_t number; /* chunks ever written to this file before this one */
    uint64_t first;  /* events: index of the first one; definitions: lowest id */
    uint64_t mark;   /* events: sequence of the first one; definitions: highest id */
    uint32_t count;
    uint32_t file_tag; /* first four bytes of the file id */
    uint64_t payload_hash;
};

/* What a file header turned out to be. */
enum vs_header_state { VS_HEADER_GOOD, VS_HEADER_DAMAGED, VS_HEADER_FOREIGN };

void vs_file_header_encode(const struct vs_file_header *header, uint8_t out[VS_FILE_HEADER_BYTES]);
/* DAMAGED: our magic, wrong checksum, fields not filled. FOREIGN: not our magic. */
enum vs_header_state vs_file_header_decode(const uint8_t in[VS_FILE_HEADER_BYTES],
                                           struct vs_file_header *out);
uint32_t vs_file_tag(const uint8_t file_id[16]);

void vs_superblock_encode(const struct vs_superblock *block, uint32_t file_tag,
                          uint8_t out[VS_SUPERBLOCK_BYTES]);
/* True when magic, tag and checksum are right and the slots make sense. */
bool vs_superblock_decode(const uint8_t in[VS_SUPERBLOCK_BYTES], uint32_t file_tag,
                          struct vs_superblock *out);

void vs_chunk_header_encode(const struct vs_chunk_header *header,
                            uint8_t out[VS_CHUNK_HEADER_BYTES]);
/* True when magic and checksum are right; sizes are within the limits above. */
bool vs_chunk_header_decode(const uint8_t in[VS_CHUNK_HEADER_BYTES], struct vs_chunk_header *out);
/* Cheap test for a scan: the first four bytes only. */
bool vs_chunk_magic(const uint8_t *in);

/* Bytes from the start of this chunk to the start of the next. */
uint64_t vs_chunk_span(const struct vs_chunk_header *header);

uint64_t vs_payload_hash(const void *data, size_t bytes);

/* Little-endian fields. */
uint32_t vs_get_u32(const uint8_t *in);
uint64_t vs_get_u64(const uint8_t *in);
void vs_put_u32(uint8_t *out, uint32_t value);
void vs_put_u64(uint8_t *out, uint64_t value);

/* Packs and unpacks payloads; holds the zstd contexts and a buffer that is reused. */
struct vs_packer;
struct vs_packer *vs_packer_new(int zstd_level);
void vs_packer_free(struct vs_packer *packer);
/*
 * Fills flags, stored_bytes, raw_bytes and payload_hash of `header` and points
 * `stored` at the bytes to write (valid until the next call, or `raw` itself
 * when compression does not pay). Returns 0, -E2BIG or -ENOMEM.
 */
int vs_packer_pack(struct vs_packer *packer, const uint8_t *raw, size_t bytes,
                   struct vs_chunk_header *header, const uint8_t **stored);

struct vs_unpacker;
struct vs_unpacker *vs_unpacker_new(void);
void vs_unpacker_free(struct vs_unpacker *unpacker);
/*
 * The raw payload of a chunk whose stored bytes are at hand and whose checksum
 * has been verified. `raw` is valid until the next call. Returns 0, -EBADMSG or
 * -ENOMEM.
 */
int vs_unpacker_unpack(struct vs_unpacker *unpacker, const struct vs_chunk_header *header,
                       const uint8_t *stored, const uint8_t **raw);

#endif
