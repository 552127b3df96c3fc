/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks that stay packed in the file: see trace_stacks.h. */
#include "trace_stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Chunks kept unpacked; the one just asked for is kept however large it is. */
#define CACHE_BYTES (128U << 20)

/* Where the definition of an id is. */
struct place {
    uint32_t id;
    uint32_t chunk; /* of stacks->chunks */
    uint32_t row;
};

struct stack_row {
    size_t first_word; /* of the chunk's words */
    uint32_t id, generation, count;
};

struct stack_chunk {
    struct vs_chunk_ref ref;
    /* unpacked; NULL when it is not */
    struct stack_row *rows;
    struct vs_bytes words; /* of uint64_t */
    uint64_t used;         /* when it was last asked for */
};

struct vs_stacks {
    struct vs_source *source;
    struct vs_unpacker *unpacker;
    struct place *places;
    size_t count, capacity;
    struct stack_chunk *chunks;
    uint32_t chunk_count, chunk_capacity;
    size_t unpacked_bytes;
    uint64_t clock;
    struct vs_stack_def found;
};

struct vs_stacks *vs_stacks_new(struct vs_source *source, struct vs_unpacker *unpacker)
{
    struct vs_stacks *stacks = calloc(1, sizeof *stacks);
    if (stacks != NULL) {
        stacks->source = source;
        stacks->unpacker = unpacker;
    }
    return stacks;
}

static size_t chunk_bytes(const struct stack_chunk *chunk)
{
    return chunk->rows == NULL
               ? 0
               : chunk->words.capacity + chunk->ref.header.count * sizeof *chunk->rows;
}

static void drop(struct vs_stacks *stacks, struct stack_chunk *chunk)
{
    stacks->unpacked_bytes -= chunk_bytes(chunk);
    free(chunk->rows);
    chunk->rows = NULL;
    vs_bytes_free(&chunk->words);
}

void vs_stacks_free(struct vs_stacks *stacks)
{
    if (stacks == NULL)
        return;
    for (uint32_t i = 0; i < stacks->chunk_count; i++)
        drop(stacks, &stacks->chunks[i]);
    free(stacks->chunks);
    free(stacks->places);
    free(stacks);
}

int vs_chunk_payload(struct vs_source *source, struct vs_unpacker *unpacker,
                     const struct vs_chunk_ref *ref, const uint8_t **raw)
{
    int error;
    size_t bytes = VS_CHUNK_HEADER_BYTES + (size_t)ref->header.stored_bytes;
    const uint8_t *whole = vs_source_at(source, ref->offset, bytes, &error);
    if (whole == NULL)
        return error == -ENODATA ? -EBADMSG : error;
    const uint8_t *stored = whole + VS_CHUNK_HEADER_BYTES;
    if (vs_payload_hash(stored, ref->header.stored_bytes) != ref->header.payload_hash)
        return -EBADMSG;
    return vs_unpacker_unpack(unpacker, &ref->header, stored, raw);
}

/* ---- which chunk has which id --------------------------------------------------------- */

static int add_place(struct vs_stacks *stacks, const struct place *place)
{
    if (stacks->count == stacks->capacity) {
        size_t capacity = stacks->capacity ? stacks->capacity + stacks->capacity / 2 : 1024;
        struct place *grown = realloc(stacks->places, capacity * sizeof *grown);
        if (grown == NULL)
            return -ENOMEM;
        stacks->places = grown;
        stacks->capacity = capacity;
    }
    stacks->places[stacks->count++] = *place;
    return 0;
}

static int add_chunk(struct vs_stacks *stacks, const struct vs_chunk_ref *ref)
{
    if (stacks->chunk_count == stacks->chunk_capacity) {
        uint32_t capacity = stacks->chunk_capacity ? stacks->chunk_capacity * 2 : 16;
        struct stack_chunk *grown = realloc(stacks->chunks, capacity * sizeof *grown);
        if (grown == NULL)
            return -ENOMEM;
        stacks->chunks = grown;
        stacks->chunk_capacity = capacity;
    }
    stacks->chunks[stacks->chunk_count++] = (struct stack_chunk){.ref = *ref};
    return 0;
}

static bool makes_sense(const struct vs_table_row *row)
{
    return row->numbers[0] <= UINT32_MAX && row->numbers[1] <= UINT32_MAX;
}

struct noting {
    struct vs_stacks *stacks;
    uint32_t row;
    bool bad_row;
};

static int note_row(void *context, const struct vs_table_row *row)
{
    struct noting *noting = context;
    struct place place = {.id = (uint32_t)row->numbers[0],
                          .chunk = noting->stacks->chunk_count - 1,
                          .row = noting->row++};
    if (makes_sense(row))
        return add_place(noting->stacks, &place);
    noting->bad_row = true;
    return 0;
}

int vs_stacks_take_chunk(struct vs_stacks *stacks, const struct vs_chunk_ref *ref,
                         const uint8_t *payload)
{
    struct noting noting = {.stacks = stacks};
    int error = add_chunk(stacks, ref);
    size_t before = stacks->count;
    if (error == 0)
        error = vs_table_decode(vs_table_shape(VS_CHUNK_STACKS), payload, ref->header.raw_bytes,
                                ref->header.count, note_row, &noting);
    if (error != 0)
        stacks->count = before; /* a chunk that does not decode as a whole is not asked again */
    return error == 0 && noting.bad_row ? -EBADMSG : error;
}

static int by_id(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    if (a->chunk != b->chunk)
        return a->chunk < b->chunk ? -1 : 1;
    return (a->row > b->row) - (a->row < b->row);
}

void vs_stacks_ready(struct vs_stacks *stacks)
{
    size_t kept = 0;
    for (size_t i = 1; i < stacks->count; i++)
        if (stacks->places[i].id < stacks->places[i - 1].id) {
            qsort(stacks->places, stacks->count, sizeof *stacks->places, by_id);
            break;
        }
    for (size_t i = 0; i < stacks->count; i++) /* of one id's definitions, the last */
        if (i + 1 == stacks->count || stacks->places[i + 1].id != stacks->places[i].id)
            stacks->places[kept++] = stacks->places[i];
    stacks->count = kept;
}

/* ---- one stack --------------------------------------------------------------------------- */

struct unpacking {
    struct stack_chunk *chunk;
    uint32_t row;
};

static int keep_row(void *context, const struct vs_table_row *row)
{
    struct unpacking *unpacking = context;
    struct stack_chunk *chunk = unpacking->chunk;
    chunk->rows[unpacking->row++] =
        (struct stack_row){.first_word = chunk->words.bytes / sizeof *row->words,
                           .id = (uint32_t)row->numbers[0],
                           .generation = (uint32_t)row->numbers[1],
                           .count = (uint32_t)row->word_count};
    return row->word_count == 0
               ? 0
               : vs_bytes_append(&chunk->words, row->words, row->word_count * sizeof *row->words);
}

static int unpack(struct vs_stacks *stacks, struct stack_chunk *chunk)
{
    const uint8_t *raw;
    struct unpacking unpacking = {chunk, 0};
    const struct vs_chunk_header *header = &chunk->ref.header;
    int error = vs_chunk_payload(stacks->source, stacks->unpacker, &chunk->ref, &raw);
    if (error != 0)
        return error;
    chunk->rows = calloc(header->count ? header->count : 1, sizeof *chunk->rows);
    if (chunk->rows == NULL)
        return -ENOMEM;
    error = vs_table_decode(vs_table_shape(VS_CHUNK_STACKS), raw, header->raw_bytes, header->count,
                            keep_row, &unpacking);
    stacks->unpacked_bytes += chunk_bytes(chunk);
    if (error != 0)
        drop(stacks, chunk);
    return error;
}

/* Gives up the chunks not asked for the longest, until the others but `wanted` fit. */
static void make_room(struct vs_stacks *stacks, const struct stack_chunk *wanted)
{
    while (stacks->unpacked_bytes > CACHE_BYTES) {
        struct stack_chunk *oldest = NULL;
        for (uint32_t i = 0; i < stacks->chunk_count; i++) {
            struct stack_chunk *chunk = &stacks->chunks[i];
            if (chunk->rows != NULL && chunk != wanted &&
                (oldest == NULL || chunk->used < oldest->used))
                oldest = chunk;
        }
        if (oldest == NULL)
            return;
        drop(stacks, oldest);
    }
}

static const struct place *find_place(const struct vs_stacks *stacks, uint32_t id)
{
    size_t low = 0, high = stacks->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (stacks->places[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < stacks->count && stacks->places[low].id == id ? &stacks->places[low] : NULL;
}

const struct vs_stack_def *vs_stacks_find(struct vs_stacks *stacks, uint32_t id)
{
    const struct place *place = find_place(stacks, id);
    if (place == NULL)
        return NULL;
    struct stack_chunk *chunk = &stacks->chunks[place->chunk];
    chunk->used = ++stacks->clock;
    if (chunk->rows == NULL) {
        if (unpack(stacks, chunk) != 0)
            return NULL;
        make_room(stacks, chunk);
    }
    const struct stack_row *row = &chunk->rows[place->row];
    stacks->found = (struct vs_stack_def){
        .id = row->id,
        .generation = row->generation,
        .frame_count = row->count,
        .frames = row->count == 0
                      ? NULL
                      : (const uint64_t *)(const void *)chunk->words.data + row->first_word};
    return &stacks->found;
}

size_t vs_stacks_count(const struct vs_stacks *stacks)
{
    return stacks->count;
}

uint32_t vs_stacks_id(const struct vs_stacks *stacks, size_t index)
{
    return stacks->places[index].id;
}
