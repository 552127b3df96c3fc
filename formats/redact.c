/* SPDX-License-Identifier: Apache-2.0 */
/* Copying a trace chunk by chunk, with other words in its definitions: see redact.h. */
#include "redact.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "packed.h"
#include "redact_text.h"
#include "trace_chunk.h"
#include "trace_recovery.h"
#include "trace_source.h"
#include "trace_space.h"
#include "trace_stacks.h"
#include "trace_why.h"

#define ZSTD_LEVEL 9

/* ---- the original ------------------------------------------------------------------- */

struct original {
    struct vs_source source;
    struct vs_index index;
    struct vs_trace_status status;
    struct vs_unpacker *unpacker;
};

static void close_original(struct original *original)
{
    vs_unpacker_free(original->unpacker);
    vs_index_free(&original->index);
    vs_source_close(&original->source);
}

/* Close it in any case. */
static int open_original(const char *path, struct original *original, struct vs_error *error)
{
    *original = (struct original){.source = {.fd = -1}, .unpacker = vs_unpacker_new()};
    int why = original->unpacker == NULL ? -ENOMEM : vs_source_open(path, &original->source);
    if (why == 0) {
        int unpacked = vs_packed_open(&original->source, path, error);
        if (unpacked != 0)
            return unpacked;
        why = vs_index_build(&original->source, &original->index, &original->status);
    }
    if (why != 0)
        vs_say_why(error, path, &original->source, &original->index, why);
    return why;
}

/* Texts stand in all of them but stacks, which are numbers alone. */
static const struct vs_table_shape *shape_with_texts(const struct vs_chunk_ref *ref)
{
    const struct vs_table_shape *shape = vs_table_shape(ref->header.type);
    return shape != NULL && shape->texts > 0 ? shape : NULL;
}

static bool is_damage(int error)
{
    return error == -EBADMSG || error == -ENOTSUP;
}

/* ---- looking -------------------------------------------------------------------------- */

struct looking {
    uint16_t type;
    vs_definition_row *row;
    void *self;
};

static int look_at_row(void *self, const struct vs_table_row *row)
{
    const struct looking *looking = self;
    return looking->row(looking->self, looking->type, row);
}

static int look_at_rows(struct original *original, vs_definition_row *row, void *self)
{
    int error = 0;
    for (size_t i = 0; i < original->index.count && error == 0; i++) {
        const struct vs_chunk_ref *ref = &original->index.refs[i];
        const struct vs_table_shape *shape = shape_with_texts(ref);
        const uint8_t *raw = NULL;
        if (shape == NULL)
            continue;
        struct looking looking = {shape->type, row, self};
        error = vs_chunk_payload(&original->source, original->unpacker, ref, &raw);
        if (error == 0)
            error = vs_table_decode(shape, raw, ref->header.raw_bytes, ref->header.count,
                                    look_at_row, &looking);
        error = is_damage(error) ? 0 : error;
    }
    return error;
}

int vs_definition_rows(const char *path, vs_definition_row *row, void *self, struct vs_error *error)
{
    struct original original;
    int result = open_original(path, &original, error);
    if (result == 0 && (result = look_at_rows(&original, row, self)) < 0)
        vs_say(error, "%s cannot be read: %s", path, strerror(-result));
    close_original(&original);
    return result;
}

static int note_words(void *self, uint16_t chunk_type, const struct vs_table_row *row)
{
    return vs_private_words_note(self, chunk_type, row);
}

/* ---- the copy -------------------------------------------------------------------------- */

struct copy {
    int fd;
    uint64_t offset;
    uint64_t last_number; /* of the chunks written */
    uint32_t file_tag;
    struct vs_packer *packer;
    struct vs_table table;
    struct vs_bytes payload;
    struct vs_redacting redacting;
    struct vs_redacted *redacted;
};

static int write_chunk(struct copy *copy, const struct vs_chunk_header *header,
                       const uint8_t *stored)
{
    static const uint8_t zeros[VS_TRACE_ALIGN];
    uint8_t encoded[VS_CHUNK_HEADER_BYTES];
    uint64_t body = copy->offset + sizeof encoded, end = body + header->stored_bytes;
    uint64_t next = copy->offset + vs_chunk_span(header);
    vs_chunk_header_encode(header, encoded);
    int error = vs_space_write(copy->fd, encoded, sizeof encoded, copy->offset);
    if (error == 0)
        error = vs_space_write(copy->fd, stored, header->stored_bytes, body);
    if (error == 0)
        error = vs_space_write(copy->fd, zeros, (size_t)(next - end), end);
    copy->offset = next;
    copy->last_number = header->number;
    return error;
}

static int copy_as_it_is(struct copy *copy, struct original *original,
                         const struct vs_chunk_ref *ref)
{
    int error = 0;
    const uint8_t *stored = vs_source_at(&original->source, ref->offset + VS_CHUNK_HEADER_BYTES,
                                         ref->header.stored_bytes, &error);
    return stored == NULL ? error : write_chunk(copy, &ref->header, stored);
}

static int hide_row(void *self, const struct vs_table_row *row)
{
    struct copy *copy = self;
    struct vs_table_row shown = *row;
    int result = vs_redact_row(&copy->redacting, copy->table.shape->type, &shown);
    return result == 1 ? vs_table_add(&copy->table, &shown) : result;
}

static int write_table(struct copy *copy, struct vs_chunk_header header)
{
    const uint8_t *stored = NULL;
    if (copy->table.rows == 0)
        return 0;
    header.count = (uint32_t)copy->table.rows;
    header.flags = 0;
    copy->payload.bytes = 0;
    int error = vs_table_encode(&copy->table, &copy->payload);
    if (error == 0)
        error =
            vs_packer_pack(copy->packer, copy->payload.data, copy->payload.bytes, &header, &stored);
    return error != 0 ? error : write_chunk(copy, &header, stored);
}

static int copy_definitions(struct copy *copy, struct original *original,
                            const struct vs_chunk_ref *ref)
{
    const uint8_t *raw = NULL;
    vs_table_free(&copy->table);
    vs_table_init(&copy->table, ref->header.type);
    int error = vs_chunk_payload(&original->source, original->unpacker, ref, &raw);
    if (error == 0)
        error = vs_table_decode(copy->table.shape, raw, ref->header.raw_bytes, ref->header.count,
                                hide_row, copy);
    if (is_damage(error)) {
        copy->redacted->unread_chunks++;
        return 0;
    }
    return error != 0 ? error : write_table(copy, ref->header);
}

static int write_end(struct copy *copy, const struct vs_index *index)
{
    struct vs_chunk_header header = {.type = VS_CHUNK_END,
                                     .number = copy->last_number + 1,
                                     .first = index->end_index,
                                     .mark = index->end_sequence,
                                     .file_tag = copy->file_tag,
                                     .payload_hash = vs_payload_hash(NULL, 0)};
    return write_chunk(copy, &header, NULL);
}

/* All that a circular file still holds, in one slot. */
static int write_superblock(struct copy *copy)
{
    uint8_t encoded[VS_SUPERBLOCK_BYTES];
    uint64_t start = VS_FILE_HEADER_BYTES + VS_SUPERBLOCK_BYTES;
    struct vs_superblock block = {start, copy->offset - start, 1};
    vs_superblock_encode(&block, copy->file_tag, encoded);
    return vs_space_write(copy->fd, encoded, sizeof encoded, VS_FILE_HEADER_BYTES);
}

static int write_file_header(struct copy *copy, bool circular)
{
    uint8_t encoded[VS_FILE_HEADER_BYTES];
    struct vs_file_header header = {.version = VS_TRACE_FORMAT_VERSION,
                                    .flags = circular ? VS_FILE_CIRCULAR : 0,
                                    .superblock_offset = circular ? VS_FILE_HEADER_BYTES : 0};
    vs_put_u32(header.file_id, copy->file_tag); /* by which a file knows its chunks */
    vs_file_header_encode(&header, encoded);
    copy->offset = VS_FILE_HEADER_BYTES + (circular ? VS_SUPERBLOCK_BYTES : 0);
    return vs_space_write(copy->fd, encoded, sizeof encoded, 0);
}

static int copy_all(struct copy *copy, struct original *original)
{
    const struct vs_index *index = &original->index;
    copy->file_tag = index->count > 0 ? index->refs[0].header.file_tag : 0;
    int error = write_file_header(copy, index->circular);
    for (size_t i = 0; i < index->count && error == 0; i++)
        error = shape_with_texts(&index->refs[i]) != NULL
                    ? copy_definitions(copy, original, &index->refs[i])
                    : copy_as_it_is(copy, original, &index->refs[i]);
    if (error == 0 && index->has_end)
        error = write_end(copy, index);
    if (error == 0 && index->circular)
        error = write_superblock(copy);
    copy->redacted->bytes = copy->offset;
    return error;
}

int vs_redact(const char *path, int fd, struct vs_redacted *redacted,
              struct vs_trace_status *status, struct vs_error *error)
{
    struct original original;
    struct vs_private_words words = {0};
    *redacted = (struct vs_redacted){0};
    struct copy copy = {.fd = fd, .redacting = {.words = &words, .counts = redacted}};
    copy.redacted = redacted;
    int result = open_original(path, &original, error);
    if (result != 0)
        goto out;
    *status = original.status;
    copy.packer = vs_packer_new(ZSTD_LEVEL);
    result = copy.packer == NULL ? -ENOMEM : look_at_rows(&original, note_words, &words);
    if (result == 0)
        result = copy_all(&copy, &original);
    if (result != 0)
        vs_say(error, "%s cannot be copied: %s", path, strerror(-result));
out:
    vs_packer_free(copy.packer);
    vs_table_free(&copy.table);
    vs_bytes_free(&copy.payload);
    vs_redacting_free(&copy.redacting);
    vs_private_words_free(&words);
    close_original(&original);
    return result;
}
