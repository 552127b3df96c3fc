/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Damaged traces: cut at every byte and flipped at every byte. A reader loses the
 * chunk that was hit and nothing else, never shows an event that was not there,
 * and says that something is missing.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shapes.h"

enum { CHUNKS_MAX = 32 };

/* Where the chunks of an intact file are. */
struct layout {
    size_t count;
    uint64_t start[CHUNKS_MAX], payload_end[CHUNKS_MAX], next[CHUNKS_MAX];
    struct vs_chunk_header header[CHUNKS_MAX];
};

static void map_chunks(const struct vs_bytes *file, struct layout *out)
{
    out->count = 0;
    for (uint64_t at = VS_FILE_HEADER_BYTES; at < file->bytes;) {
        struct vs_chunk_header *header = &out->header[out->count];
        cr_assert_lt(out->count, CHUNKS_MAX);
        cr_assert(vs_chunk_header_decode(file->data + at, header));
        out->start[out->count] = at;
        out->payload_end[out->count] = at + VS_CHUNK_HEADER_BYTES + header->stored_bytes;
        at += vs_chunk_span(header);
        out->next[out->count++] = at;
    }
}

static uint64_t events_of(const struct vs_chunk_header *header)
{
    return header->type == VS_CHUNK_EVENTS ? header->count : 0;
}

/* How many events come; each must be one of the stream, later ones later. */
static uint64_t count_true_events(struct vs_reader *reader)
{
    struct vs_sequenced_event event, expected;
    uint64_t index = 0, count = 0;
    int got;
    while ((got = vs_reader_next(reader, &event)) == 1) {
        do
            shape_event(index++, &expected);
        while (expected.sequence < event.sequence);
        cr_assert_arr_eq(&event, &expected, sizeof event);
        count++;
    }
    cr_assert_eq(got, 0);
    return count;
}

static bool said_whole(const struct vs_trace_status *status)
{
    return status->closed && !status->truncated && status->damaged_chunks == 0 &&
           status->damaged_bytes == 0 && status->sequence_gaps == 0;
}

/* An exact copy, so that a read beyond its end is one that AddressSanitizer sees. */
static uint8_t *copy_of(const struct vs_bytes *file, size_t bytes)
{
    uint8_t *copy = malloc(bytes ? bytes : 1);
    cr_assert_not_null(copy);
    memcpy(copy, file->data, bytes);
    return copy;
}

static void check_cut(const struct vs_bytes *file, const struct layout *layout, size_t bytes)
{
    struct vs_reader *reader;
    struct vs_error error;
    uint8_t *copy = copy_of(file, bytes);
    uint64_t expected = 0;
    for (size_t i = 0; i < layout->count && layout->payload_end[i] <= bytes; i++)
        expected += events_of(&layout->header[i]);
    int result = vs_reader_open_memory(copy, bytes, "cut", &reader, &error);
    if (bytes < VS_FILE_HEADER_BYTES) {
        cr_assert_eq(result, -EINVAL, "cut at %zu: %d", bytes, result);
    } else {
        cr_assert_eq(result, 0, "cut at %zu: %d", bytes, result);
        const struct vs_trace_status *status = vs_reader_status(reader);
        cr_assert_eq(count_true_events(reader), expected, "cut at %zu", bytes);
        cr_assert_eq(status->events, expected, "cut at %zu", bytes);
        cr_assert_not(said_whole(status), "cut at %zu", bytes);
        bool at_chunk = bytes == VS_FILE_HEADER_BYTES;
        for (size_t i = 0; i < layout->count; i++)
            at_chunk |= bytes == layout->next[i];
        cr_assert_eq(status->truncated, !at_chunk, "cut at %zu", bytes);
    }
    vs_reader_close(reader);
    free(copy);
}

static void check_every_cut(const char *name)
{
    struct vs_bytes file = {0};
    struct layout layout;
    shape_find(name)->make(&file);
    map_chunks(&file, &layout);
    for (size_t bytes = 0; bytes < file.bytes; bytes++)
        check_cut(&file, &layout, bytes);
    vs_bytes_free(&file);
}

Test(damage, cut_at_every_byte, .timeout = 300)
{
    check_every_cut("tiny");
}

/* The chunk that the byte at `at` belongs to; CHUNKS_MAX: file header or padding, nothing is lost.
 */
static size_t chunk_hit(const struct layout *layout, uint64_t at)
{
    for (size_t i = 0; i < layout->count; i++)
        if (at >= layout->start[i] && at < layout->payload_end[i])
            return i;
    return CHUNKS_MAX;
}

static void check_flip(const struct vs_bytes *file, const struct layout *layout, size_t at,
                       uint64_t all)
{
    struct vs_reader *reader;
    struct vs_error error;
    uint8_t *copy = copy_of(file, file->bytes);
    size_t hit = chunk_hit(layout, at);
    copy[at] ^= (uint8_t)(1U << at % 8);
    int result = vs_reader_open_memory(copy, file->bytes, "flipped", &reader, &error);
    cr_assert_eq(result, 0, "flip at %zu: %s", at, error.text);
    uint64_t lost = hit == CHUNKS_MAX ? 0 : events_of(&layout->header[hit]);
    cr_assert_eq(count_true_events(reader), all - lost, "flip at %zu", at);
    cr_assert_eq(vs_reader_status(reader)->events, all - lost, "flip at %zu", at);
    cr_assert_eq(vs_reader_status(reader)->missing_events, hit == layout->count - 1 ? 0 : lost,
                 "flip at %zu", at);
    bool padding = at >= VS_FILE_HEADER_BYTES && hit == CHUNKS_MAX;
    cr_assert_eq(said_whole(vs_reader_status(reader)), padding, "flip at %zu", at);
    vs_reader_close(reader);
    free(copy);
}

Test(damage, a_bit_flipped_at_every_byte, .timeout = 300)
{
    struct vs_bytes file = {0};
    struct layout layout;
    const struct shape *shape = shape_find("tiny");
    shape->make(&file);
    map_chunks(&file, &layout);
    for (size_t at = 0; at < file.bytes; at++)
        check_flip(&file, &layout, at, shape->events);
    vs_bytes_free(&file);
}

/* Whatever is overwritten: no crash, and never an event that was not in the file. */
static void scribble(const struct shape *shape, uint64_t seed)
{
    struct vs_bytes file = {0};
    struct vs_reader *reader;
    struct vs_error error;
    shape->make(&file);
    for (uint64_t i = 0; i < 1 + seed % 5; i++) {
        uint64_t word[2] = {seed, i}, noise = vs_payload_hash(word, sizeof word);
        size_t at = noise % file.bytes, room = file.bytes - at;
        size_t bytes = noise >> 40 & 255;
        memset(file.data + at, (int)(noise >> 32 & 255), bytes < room ? bytes : room);
    }
    if (vs_reader_open_memory(file.data, file.bytes, "scribbled", &reader, &error) == 0) {
        uint64_t live = vs_reader_status(reader)->keyframe_events;
        struct vs_sequenced_event skipped;
        for (uint64_t i = 0; i < live; i++)
            cr_assert_eq(vs_reader_next(reader, &skipped), 1);
        cr_assert_eq(count_true_events(reader) + live, vs_reader_status(reader)->events);
        vs_reader_close(reader);
    }
    vs_bytes_free(&file);
}

Test(damage, scribbled_over, .timeout = 300)
{
    for (size_t i = 0; i < shape_count; i++)
        for (uint64_t seed = 0; seed < 40; seed++)
            scribble(&shapes[i], seed);
}

/* A file that lost its damaged middle keeps what is behind it, wherever the damage is. */
Test(damage, a_zeroed_page_costs_what_it_held)
{
    enum { PAGE_START = 8192, PAGE_END = 12288 };
    struct vs_bytes file = {0};
    struct layout layout;
    struct vs_reader *reader;
    struct vs_error error;
    uint64_t lost = 0;
    shape_find("plain")->make(&file);
    map_chunks(&file, &layout);
    for (size_t i = 0; i < layout.count; i++)
        if (layout.start[i] < PAGE_END && layout.payload_end[i] > PAGE_START)
            lost += events_of(&layout.header[i]);
    cr_assert_gt(lost, 0);
    memset(file.data + PAGE_START, 0, PAGE_END - PAGE_START);
    cr_assert_eq(vs_reader_open_memory(file.data, file.bytes, "page", &reader, &error), 0);
    const struct vs_trace_status *status = vs_reader_status(reader);
    cr_assert_eq(count_true_events(reader), status->events);
    cr_assert_eq(status->missing_events, lost);
    cr_assert_eq(status->events, 1000 - lost);
    cr_assert(status->closed);
    vs_reader_close(reader);
    vs_bytes_free(&file);
}

/* Checksums right, contents senseless: found when read, and what overlaps takes over. */
Test(damage, a_chunk_that_does_not_decode)
{
    struct vs_bytes file = {0};
    struct layout layout;
    struct vs_reader *reader;
    struct vs_error error;
    shape_find("plain")->make(&file);
    map_chunks(&file, &layout);
    size_t chunk = 0;
    while (layout.header[chunk].type != VS_CHUNK_EVENTS || layout.header[chunk].first != 500)
        chunk++;
    struct vs_chunk_header header = layout.header[chunk];
    uint8_t *payload = file.data + layout.start[chunk] + VS_CHUNK_HEADER_BYTES;
    memset(payload, 0xee, header.stored_bytes);
    header.payload_hash = vs_payload_hash(payload, header.stored_bytes);
    vs_chunk_header_encode(&header, file.data + layout.start[chunk]);
    cr_assert_eq(vs_reader_open_memory(file.data, file.bytes, "senseless", &reader, &error), 0);
    cr_assert_eq(count_true_events(reader), 900);
    const struct vs_trace_status *status = vs_reader_status(reader);
    cr_assert_eq(status->events, 900);
    cr_assert_eq(status->damaged_chunks, 1);
    cr_assert_eq(status->missing_events, 100);
    vs_reader_close(reader);
    vs_bytes_free(&file);
}
