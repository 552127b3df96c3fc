/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the chunks of a whole or damaged file: see trace_recovery.h. */
#include "trace_recovery.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* How far into a file without our magic we look for a chunk before we call it foreign. */
#define FOREIGN_SEARCH_BYTES (1U << 20)

struct walk {
    struct vs_source *source;
    struct vs_index *index;
    struct vs_trace_status *status;
    uint32_t file_tag;
    bool tag_known; /* false while only damaged things have been seen */
    /* Where the last whole chunk ends, and what had been found damaged until there. */
    uint64_t whole_end;
    uint64_t damaged_chunks, damaged_bytes;
};

enum found {
    FOUND_GOOD,
    FOUND_DAMAGED, /* the header holds, the payload does not */
    FOUND_CUT,     /* the header holds, the payload ends beyond the region */
    FOUND_NOTHING, /* no header of this file here */
    FOUND_ZEROS,   /* nothing, and never written */
};

static bool is_zero(const uint8_t *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (data[i] != 0)
            return false;
    return true;
}

/* A header of this file at `offset`; does not look at the payload. */
static bool header_at(struct walk *walk, uint64_t offset, struct vs_chunk_header *out, int *error)
{
    const uint8_t *bytes = vs_source_at(walk->source, offset, VS_CHUNK_HEADER_BYTES, error);
    return bytes != NULL && vs_chunk_header_decode(bytes, out) &&
           (!walk->tag_known || out->file_tag == walk->file_tag);
}

static int examine(struct walk *walk, uint64_t offset, uint64_t end, struct vs_chunk_header *header,
                   enum found *found)
{
    int error;
    if (!header_at(walk, offset, header, &error)) {
        const uint8_t *bytes =
            error != 0 ? NULL : vs_source_at(walk->source, offset, VS_CHUNK_HEADER_BYTES, &error);
        *found =
            bytes != NULL && is_zero(bytes, VS_CHUNK_HEADER_BYTES) ? FOUND_ZEROS : FOUND_NOTHING;
        return error == -ENODATA ? 0 : error;
    }
    *found = FOUND_CUT;
    if (header->stored_bytes > end - offset - VS_CHUNK_HEADER_BYTES)
        return 0;
    *found = FOUND_GOOD;
    if (header->type == VS_CHUNK_ROOM)
        return 0;
    const uint8_t *whole = vs_source_at(
        walk->source, offset, VS_CHUNK_HEADER_BYTES + (size_t)header->stored_bytes, &error);
    if (whole == NULL)
        *found = FOUND_CUT;
    else if (vs_payload_hash(whole + VS_CHUNK_HEADER_BYTES, header->stored_bytes) !=
             header->payload_hash)
        *found = FOUND_DAMAGED;
    return error == -ENODATA ? 0 : error;
}

static int remember(struct vs_index *index, uint64_t offset, const struct vs_chunk_header *header)
{
    if (index->count == index->capacity) {
        size_t capacity = index->capacity ? index->capacity * 2 : 256;
        struct vs_chunk_ref *grown = realloc(index->refs, capacity * sizeof *grown);
        if (grown == NULL)
            return -ENOMEM;
        index->refs = grown;
        index->capacity = capacity;
    }
    index->refs[index->count++] = (struct vs_chunk_ref){.offset = offset, .header = *header};
    return 0;
}

static bool known_type(uint16_t type)
{
    switch (type) {
    case VS_CHUNK_EVENTS:
    case VS_CHUNK_STRINGS:
    case VS_CHUNK_THREADS:
    case VS_CHUNK_MODULES:
    case VS_CHUNK_DEVICES:
    case VS_CHUNK_STACKS:
    case VS_CHUNK_CODES:
    case VS_CHUNK_SYMBOLS:
    case VS_CHUNK_META:
    case VS_CHUNK_KEYFRAME:
    case VS_CHUNK_CUT:
    case VS_CHUNK_ROOM:
    case VS_CHUNK_END:
        return true;
    default:
        return false;
    }
}

static int keep(struct walk *walk, uint64_t offset, const struct vs_chunk_header *header)
{
    if (!walk->tag_known) {
        walk->file_tag = header->file_tag;
        walk->tag_known = true;
    }
    if (!known_type(header->type) || (header->flags & ~VS_CHUNK_KNOWN_FLAGS) != 0) {
        walk->status->unknown_chunks++;
        if (header->type & VS_CHUNK_CRITICAL)
            walk->index->unsupported_type = header->type;
        return 0;
    }
    walk->status->chunks++;
    if (header->type == VS_CHUNK_ROOM)
        return 0;
    if (header->type == VS_CHUNK_END) {
        walk->index->has_end = true;
        walk->index->end_index = header->first;
        walk->index->end_sequence = header->mark;
        return 0;
    }
    if (header->type == VS_CHUNK_CUT) {
        walk->status->cut_events = header->first;
        walk->status->cut_gaps = header->mark;
    }
    return remember(walk->index, offset, header);
}

/* The next place in [from, end) with a header of this file; `end` when there is none. */
static int resynchronise(struct walk *walk, uint64_t from, uint64_t end, uint64_t *out)
{
    for (uint64_t at = from; at < end && end - at >= VS_CHUNK_HEADER_BYTES; at += VS_TRACE_ALIGN) {
        struct vs_chunk_header header;
        int error;
        if (header_at(walk, at, &header, &error)) {
            *out = at;
            return 0;
        }
        if (error != 0 && error != -ENODATA)
            return error;
    }
    *out = end;
    return 0;
}

static void note_cut(struct walk *walk)
{
    walk->status->truncated = true;
    walk->index->cut_at = walk->whole_end;
}

/*
 * Room that says where the file had been cut before more was added: what is left
 * of the chunk there is not damage.
 */
static void note_old_cut(struct walk *walk, const struct vs_chunk_header *header)
{
    if (header->type != VS_CHUNK_ROOM || header->first == 0 || header->first != walk->whole_end)
        return;
    walk->status->truncated = true;
    walk->status->damaged_chunks = walk->damaged_chunks;
    walk->status->damaged_bytes = walk->damaged_bytes;
}

static void note_whole(struct walk *walk, uint64_t end)
{
    walk->whole_end = end;
    walk->damaged_chunks = walk->status->damaged_chunks;
    walk->damaged_bytes = walk->status->damaged_bytes;
}

/* No chunk at `offset`: what is lost until the next one, or until the end. */
static int skip(struct walk *walk, uint64_t offset, uint64_t end, enum found found, uint64_t *out)
{
    int error = resynchronise(walk, offset + VS_TRACE_ALIGN, end, out);
    if (error != 0)
        return error;
    if (*out < end)
        walk->status->damaged_bytes += *out - offset;
    else if (found == FOUND_NOTHING)
        walk->status->damaged_bytes += end - offset;
    else
        note_cut(walk);
    if (*out < end && found == FOUND_CUT)
        walk->status->damaged_chunks++;
    return 0;
}

/* One run of chunks: a whole linear file. */
static int walk_region(struct walk *walk, uint64_t offset, uint64_t end)
{
    note_whole(walk, offset);
    while (offset < end && end - offset >= VS_CHUNK_HEADER_BYTES) {
        struct vs_chunk_header header;
        enum found found;
        int error = examine(walk, offset, end, &header, &found);
        uint64_t next = offset + VS_TRACE_ALIGN;
        if (error == 0 && found == FOUND_GOOD) {
            note_old_cut(walk, &header);
            error = keep(walk, offset, &header);
            next = offset + vs_chunk_span(&header);
            note_whole(walk, next);
        } else if (error == 0 && found == FOUND_DAMAGED) {
            walk->status->damaged_chunks++;
            error = resynchronise(walk, next, end, &next);
        } else if (error == 0) {
            error = skip(walk, offset, end, found, &next);
        }
        if (error != 0)
            return error;
        offset = next;
    }
    if (offset != end)
        note_cut(walk);
    return 0;
}

/*
 * One slot of a circular file: chunks with increasing numbers from its start.
 * What follows a smaller number is left over from the lap before.
 */
static int walk_slot(struct walk *walk, uint64_t offset, uint64_t end)
{
    uint64_t last_number = 0;
    bool any = false;
    while (offset < end && end - offset >= VS_CHUNK_HEADER_BYTES) {
        struct vs_chunk_header header;
        enum found found;
        int error = examine(walk, offset, end, &header, &found);
        uint64_t next = end;
        if (error == 0 && found == FOUND_GOOD) {
            if (any && header.number < last_number)
                return 0;
            any = true;
            last_number = header.number;
            error = keep(walk, offset, &header);
            next = offset + vs_chunk_span(&header);
        } else if (error == 0 && found == FOUND_DAMAGED) {
            walk->status->damaged_chunks++;
            error = resynchronise(walk, offset + VS_TRACE_ALIGN, end, &next);
        } else if (error == 0 && found != FOUND_ZEROS && !any) {
            error = skip(walk, offset, end, found, &next);
        }
        if (error != 0)
            return error;
        offset = next;
    }
    return 0;
}

static int walk_slots(struct walk *walk, const struct vs_superblock *block)
{
    uint64_t size = walk->source->bytes;
    for (uint64_t i = 0; i < block->slot_count; i++) {
        uint64_t start = block->slots_offset + i * block->slot_bytes;
        if (start >= size)
            break; /* the first lap did not come this far */
        uint64_t end = size - start < block->slot_bytes ? size : start + block->slot_bytes;
        int error = walk_slot(walk, start, end);
        if (error != 0)
            return error;
    }
    return 0;
}

/* A circular file whose own header is damaged is known by the superblock behind it. */
static bool find_superblock(struct walk *walk, const struct vs_file_header *header, bool damaged,
                            struct vs_superblock *out, uint64_t *offset)
{
    int error;
    *offset = damaged ? VS_FILE_HEADER_BYTES : header->superblock_offset;
    if (!damaged && !(header->flags & VS_FILE_CIRCULAR))
        return false;
    const uint8_t *bytes = vs_source_at(walk->source, *offset, VS_SUPERBLOCK_BYTES, &error);
    if (bytes == NULL || *offset % VS_TRACE_ALIGN != 0)
        return false;
    uint32_t tag = damaged ? vs_get_u32(bytes + 4) : walk->file_tag;
    return vs_superblock_decode(bytes, tag, out) &&
           out->slots_offset >= *offset + VS_SUPERBLOCK_BYTES;
}

/* The file header: good, damaged but ours (FOREIGN only when nothing of ours follows), or newer. */
static int read_file_header(struct walk *walk, struct vs_file_header *header, bool *damaged)
{
    int error;
    const uint8_t *bytes = vs_source_at(walk->source, 0, VS_FILE_HEADER_BYTES, &error);
    if (bytes == NULL)
        return error == -ENODATA ? -EINVAL : error;
    enum vs_header_state state = vs_file_header_decode(bytes, header);
    *damaged = state != VS_HEADER_GOOD;
    walk->index->version = *damaged ? VS_TRACE_FORMAT_VERSION : header->version;
    if (state == VS_HEADER_GOOD) {
        walk->file_tag = vs_file_tag(header->file_id);
        walk->tag_known = true;
        return header->version > VS_TRACE_FORMAT_VERSION || header->version == 0 ? -ENOTSUP : 0;
    }
    walk->status->damaged_bytes += VS_FILE_HEADER_BYTES;
    if (state == VS_HEADER_DAMAGED)
        return 0;
    uint64_t end =
        walk->source->bytes < FOREIGN_SEARCH_BYTES ? walk->source->bytes : FOREIGN_SEARCH_BYTES;
    uint64_t first = end;
    error = resynchronise(walk, VS_FILE_HEADER_BYTES, end, &first);
    return error != 0 ? error : first < end ? 0 : -EINVAL;
}

static int by_number(const void *left, const void *right)
{
    uint64_t a = ((const struct vs_chunk_ref *)left)->header.number;
    uint64_t b = ((const struct vs_chunk_ref *)right)->header.number;
    return (a > b) - (a < b);
}

static void sort_by_number(struct vs_index *index)
{
    for (size_t i = 1; i < index->count; i++)
        if (index->refs[i].header.number < index->refs[i - 1].header.number) {
            qsort(index->refs, index->count, sizeof *index->refs, by_number);
            return;
        }
}

int vs_index_build(struct vs_source *source, struct vs_index *index, struct vs_trace_status *status)
{
    *index = (struct vs_index){0};
    struct walk walk = {.source = source, .index = index, .status = status};
    struct vs_file_header header;
    struct vs_superblock block;
    uint64_t block_offset;
    bool damaged = true;
    status->file_bytes = source->bytes;
    int error = read_file_header(&walk, &header, &damaged);
    status->format_version = index->version;
    if (error != 0)
        return error;
    if (find_superblock(&walk, &header, damaged, &block, &block_offset)) {
        index->circular = true;
        uint64_t end = block.slots_offset < source->bytes ? block.slots_offset : source->bytes;
        error = walk_slot(&walk, block_offset + VS_SUPERBLOCK_BYTES, end);
        if (error == 0)
            error = walk_slots(&walk, &block);
    } else {
        error = walk_region(&walk, VS_FILE_HEADER_BYTES, source->bytes);
    }
    status->truncated = status->truncated || source->cut;
    status->closed = index->has_end && !status->truncated;
    sort_by_number(index);
    return error == 0 && index->unsupported_type != 0 ? -ENOTSUP : error;
}

void vs_index_free(struct vs_index *index)
{
    free(index->refs);
    *index = (struct vs_index){0};
}
