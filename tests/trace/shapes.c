/* SPDX-License-Identifier: Apache-2.0 */
/* See shapes.h. Failures of the machine (no memory) end the program: this is a test. */
#include "shapes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace_events.h"
#include "trace_table.h"

#define UNKNOWN_OPTIONAL 0x0123U
#define UNKNOWN_CRITICAL 0x8123U
#define UNKNOWN_COLUMN 500U

static void check(int error)
{
    if (error != 0)
        abort();
}

/* ---- the stream ------------------------------------------------------------------ */

/* Every third event of a few kinds, so that columns of all codings appear. */
void shape_event(uint64_t index, struct vs_sequenced_event *out)
{
    static const uint8_t kinds[] = {VS_KIND_FW_ALLOC, VS_KIND_FW_ALLOC, VS_KIND_FW_FREE,
                                    VS_KIND_ALLOC,    VS_KIND_SAMPLE,   VS_KIND_FREE};
    uint64_t noise = vs_payload_hash(&index, sizeof index);
    memset(out, 0, sizeof *out);
    out->sequence = SHAPES_FIRST_SEQUENCE + 2 * index + 7 * (index / 50); /* definitions between */
    out->cells = 2;
    out->thread = 4000 + (uint32_t)(index / 100 % 3);
    out->event = (struct vs_event){
        .time_ns = 1000000000 + index * 1500 + noise % 700,
        .address = 0x7f1200000000 + noise % 4096 * 512,
        .size = noise % 64 * 512,
        .stream = index % 7 == 0 ? 0x5500aa00 : 0,
        .context = 0x55d0c0de0000,
        .pool = index % 400 == 399 ? UINT64_MAX : 0,
        .handle = index % 31 == 0 ? noise : 0,
        .extra = {index * 512, 2097152 * (1 + index / 64)},
        .free_bytes = index % 6 == 4 ? 80000000000 - index : VS_FREE_UNKNOWN,
        .duration_ns = (uint32_t)(noise % 3000),
        .result = index % 97 == 0   ? 2
                  : index % 89 == 0 ? -1
                                    : 0,
        .module = 1 + (uint32_t)(index % 2),
        .stack = (uint32_t)(index % 5),
        .call = (uint16_t)(1 + index % 3),
        .label = (uint16_t)(1 + index % 2),
        .kind = kinds[index % sizeof kinds],
        .device = index % 11 == 10 ? VS_DEVICE_UNKNOWN : (int8_t)(index % 2),
        .flags = (uint16_t)(index % 6 == 4 ? VS_EVENT_FREE_SAMPLED : 0),
    };
}

/* ---- chunks ----------------------------------------------------------------------- */

struct image {
    struct vs_bytes *file;
    struct vs_packer *packer;
    struct vs_bytes payload;
    uint32_t tag;
    uint64_t number;
    bool uncompressed;
};

static void put_at(struct image *image, uint64_t offset, const void *data, size_t bytes)
{
    struct vs_bytes *file = image->file;
    if (offset + bytes > file->bytes) {
        check(vs_bytes_reserve(file, offset + bytes - file->bytes));
        memset(file->data + file->bytes, 0, offset + bytes - file->bytes);
        file->bytes = offset + bytes;
    }
    if (bytes > 0)
        memcpy(file->data + offset, data, bytes);
}

static void begin(struct image *image, struct vs_bytes *file, uint32_t flags, uint32_t version)
{
    struct vs_file_header header = {.version = version,
                                    .flags = flags,
                                    .file_id = "0123456789abcde",
                                    .superblock_offset =
                                        flags & VS_FILE_CIRCULAR ? VS_FILE_HEADER_BYTES : 0};
    uint8_t encoded[VS_FILE_HEADER_BYTES];
    *image = (struct image){
        .file = file, .packer = vs_packer_new(3), .tag = vs_file_tag(header.file_id)};
    if (image->packer == NULL)
        abort();
    vs_file_header_encode(&header, encoded);
    put_at(image, 0, encoded, sizeof encoded);
}

static void finish(struct image *image)
{
    vs_packer_free(image->packer);
    vs_bytes_free(&image->payload);
}

/* Packs the payload into a chunk at `offset`; the offset behind it. */
static uint64_t put_chunk(struct image *image, uint64_t offset, struct vs_chunk_header header)
{
    static const uint8_t zeros[VS_TRACE_ALIGN];
    uint8_t encoded[VS_CHUNK_HEADER_BYTES];
    const uint8_t *stored = image->payload.data;
    check(
        vs_packer_pack(image->packer, image->payload.data, image->payload.bytes, &header, &stored));
    if (image->uncompressed) {
        stored = image->payload.data;
        header.flags = 0;
        header.stored_bytes = header.raw_bytes;
        header.payload_hash = vs_payload_hash(stored, header.stored_bytes);
    }
    header.file_tag = image->tag;
    header.number = image->number++;
    vs_chunk_header_encode(&header, encoded);
    uint64_t body = offset + sizeof encoded, next = offset + vs_chunk_span(&header);
    put_at(image, offset, encoded, sizeof encoded);
    put_at(image, body, stored, header.stored_bytes);
    put_at(image, body + header.stored_bytes, zeros, next - body - header.stored_bytes);
    image->payload.bytes = 0;
    return next;
}

/* Events [first, first + count) as one chunk. */
static uint64_t put_events(struct image *image, uint64_t offset, uint64_t first, uint32_t count)
{
    struct vs_sequenced_event *events = calloc(count, sizeof *events);
    if (events == NULL)
        abort();
    for (uint32_t i = 0; i < count; i++)
        shape_event(first + i, &events[i]);
    check(vs_events_encode(events, count, &image->payload));
    struct vs_chunk_header header = {
        .type = VS_CHUNK_EVENTS, .first = first, .mark = events[0].sequence, .count = count};
    free(events);
    return put_chunk(image, offset, header);
}

/* Room of `bytes` bytes (header included) that means nothing. */
static void put_room(struct image *image, uint64_t offset, uint64_t bytes)
{
    uint8_t encoded[VS_CHUNK_HEADER_BYTES];
    struct vs_chunk_header header = {.type = VS_CHUNK_ROOM,
                                     .stored_bytes = (uint32_t)(bytes - sizeof encoded),
                                     .number = image->number++,
                                     .file_tag = image->tag};
    vs_chunk_header_encode(&header, encoded);
    put_at(image, offset, encoded, sizeof encoded);
}

static uint64_t put_end(struct image *image, uint64_t offset, uint64_t events)
{
    struct vs_sequenced_event last;
    shape_event(events - 1, &last);
    struct vs_chunk_header header = {
        .type = VS_CHUNK_END, .first = events, .mark = last.sequence + last.cells};
    return put_chunk(image, offset, header);
}

static uint64_t put_table(struct image *image, uint64_t offset, struct vs_table *table)
{
    struct vs_chunk_header header = {.type = table->shape->type,
                                     .first = table->lowest_id,
                                     .mark = table->highest_id,
                                     .count = (uint32_t)table->rows};
    check(vs_table_encode(table, &image->payload));
    vs_table_free(table);
    return put_chunk(image, offset, header);
}

/* One text with an id: a string or a thread. */
static void add_text(struct vs_table *table, uint64_t id, const char *text)
{
    struct vs_table_row row = {.numbers = {id}, .texts = {{text, strlen(text)}}};
    check(vs_table_add(table, &row));
}

static uint64_t put_names(struct image *image, uint64_t offset)
{
    struct vs_table table;
    vs_table_init(&table, VS_CHUNK_STRINGS);
    add_text(&table, 1, "cudaMalloc");
    add_text(&table, 2, "cuMemAlloc_v2");
    add_text(&table, 3, "");
    add_text(&table, 700, "épsilon");
    offset = put_table(image, offset, &table);
    vs_table_init(&table, VS_CHUNK_THREADS);
    add_text(&table, 4000, "python");
    add_text(&table, 4001, "pt_autograd_0");
    return put_table(image, offset, &table);
}

static uint64_t put_places(struct image *image, uint64_t offset)
{
    static const uint64_t frames[] = {0x7f00aabb, 0x7f00ccdd, 0, 1ULL << 63};
    struct vs_table table;
    vs_table_init(&table, VS_CHUNK_MODULES);
    struct vs_table_row module = {
        .numbers = {1, 3, 0x7f0000000000, 0x7f0000100000, 0x7f0000000000},
        .texts = {{"\x01\x02\x03\x04", 4}, {"/usr/lib/libc10_cuda.so", 23}}};
    check(vs_table_add(&table, &module));
    offset = put_table(image, offset, &table);
    vs_table_init(&table, VS_CHUNK_STACKS);
    for (uint64_t id = 1; id < 5; id++) {
        struct vs_table_row stack = {.numbers = {id, id / 2}, .words = frames, .word_count = id};
        check(vs_table_add(&table, &stack));
    }
    return put_table(image, offset, &table);
}

/* One function of an address: place 0 begins a list. */
static void add_symbol(struct vs_table *table, uint64_t address, uint64_t place, uint64_t line,
                       const char *function)
{
    static const char file[] = "c10/cuda/CUDACachingAllocator.cpp";
    struct vs_table_row row = {
        .numbers = {table->rows, 1, address, place, line},
        .texts = {{function, strlen(function)}, {file, line == 0 ? 0 : strlen(file)}}};
    check(vs_table_add(table, &row));
}

static uint64_t put_functions(struct image *image, uint64_t offset)
{
    struct vs_table table;
    vs_table_init(&table, VS_CHUNK_CODES);
    for (uint64_t id = 1; id < 4; id++) {
        struct vs_table_row code = {.numbers = {id % 3, 10 * id},
                                    .texts = {{"Mödel.forward", 5 + id}, {"/home/u/a.py", 12}}};
        check(vs_table_add(&table, &code));
    }
    offset = put_table(image, offset, &table);
    vs_table_init(&table, VS_CHUNK_SYMBOLS);
    add_symbol(&table, 0x1000, 0, 5, "replaced");
    add_symbol(&table, 0x1000, 1, 6, "replaced");
    add_symbol(&table, 0x2000, 0, 0, "");
    add_symbol(&table, 0x1000, 0, 77, "std::min<int>(int, int)");
    add_symbol(&table, 0x1000, 1, 0, "allocate");
    add_symbol(&table, 0x1000, 2, 99, "");
    return put_table(image, offset, &table);
}

static uint64_t put_facts(struct image *image, uint64_t offset)
{
    static const char *const facts[][2] = {
        {"process", "{\"pid\":41,\"exe\":\"/usr/bin/python3\",\"title\":\"a\"}"},
        {"clock", "{\"start\":{\"monotonic_ns\":5}}"},
        {"process", "{\"title\":\"b\",\"rank\":3}"}};
    struct vs_table table;
    vs_table_init(&table, VS_CHUNK_META);
    for (size_t i = 0; i < 3; i++) {
        struct vs_table_row row = {
            .texts = {{facts[i][0], strlen(facts[i][0])}, {facts[i][1], strlen(facts[i][1])}}};
        check(vs_table_add(&table, &row));
    }
    offset = put_table(image, offset, &table);
    vs_table_init(&table, VS_CHUNK_DEVICES);
    struct vs_table_row device = {.numbers = {0, 80ULL << 30, 0},
                                  .texts = {{"GPU-uuid-16bytes", 16},
                                            {"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16},
                                            {"0000:01:00.0", 12},
                                            {"Simulated", 9}}};
    check(vs_table_add(&table, &device));
    return put_table(image, offset, &table);
}

static uint64_t put_definitions(struct image *image, uint64_t offset)
{
    offset = put_functions(image, put_places(image, put_names(image, offset)));
    return put_facts(image, offset);
}

/* ---- shapes ------------------------------------------------------------------------- */

enum { SMALL = 100, TOTAL = 1000 };

static void make_plain(struct vs_bytes *file)
{
    struct image image;
    begin(&image, file, 0, VS_TRACE_FORMAT_VERSION);
    uint64_t at = put_definitions(&image, VS_FILE_HEADER_BYTES);
    for (uint64_t first = 0; first < TOTAL; first += SMALL)
        at = put_events(&image, at, first, SMALL);
    put_end(&image, at, TOTAL);
    finish(&image);
}

/* Taken from a longer one. */
static void make_cut(struct vs_bytes *file)
{
    struct image image;
    struct vs_chunk_header cut = {.type = VS_CHUNK_CUT, .first = 12345, .mark = 2};
    begin(&image, file, 0, VS_TRACE_FORMAT_VERSION);
    uint64_t at = put_definitions(&image, VS_FILE_HEADER_BYTES);
    at = put_chunk(&image, at, cut);
    at = put_events(&image, at, 0, SMALL);
    put_end(&image, at, SMALL);
    finish(&image);
}

/* Small enough to be damaged at every byte. */
static void make_tiny(struct vs_bytes *file)
{
    struct image image;
    begin(&image, file, 0, VS_TRACE_FORMAT_VERSION);
    uint64_t at = put_definitions(&image, VS_FILE_HEADER_BYTES);
    for (uint64_t first = 0; first < 3 * SHAPES_TINY_CHUNK; first += SHAPES_TINY_CHUNK)
        at = put_events(&image, at, first, SHAPES_TINY_CHUNK);
    put_end(&image, at, 3 * SHAPES_TINY_CHUNK);
    finish(&image);
}

static void make_uncompressed(struct vs_bytes *file)
{
    struct image image;
    begin(&image, file, 0, VS_TRACE_FORMAT_VERSION);
    image.uncompressed = true;
    uint64_t at = put_definitions(&image, VS_FILE_HEADER_BYTES);
    at = put_events(&image, at, 0, SMALL);
    put_end(&image, at, SMALL);
    finish(&image);
}

static void make_out_of_order(struct vs_bytes *file)
{
    struct image image;
    begin(&image, file, 0, VS_TRACE_FORMAT_VERSION);
    uint64_t at = VS_FILE_HEADER_BYTES;
    for (uint64_t i = 0; i < TOTAL / SMALL; i++)
        at = put_events(&image, at, i * 7 % (TOTAL / SMALL) * SMALL, SMALL);
    at = put_end(&image, at, TOTAL);
    put_definitions(&image, at);
    finish(&image);
}

/* Small chunks flushed early, and later long ones over parts of them: all stay in the file. */
static void make_overlapping(struct vs_bytes *file)
{
    struct image image;
    begin(&image, file, 0, VS_TRACE_FORMAT_VERSION);
    uint64_t at = put_definitions(&image, VS_FILE_HEADER_BYTES);
    for (uint64_t first = 0; first < TOTAL; first += SMALL)
        at = put_events(&image, at, first, SMALL);
    at = put_events(&image, at, 150, 300);
    at = put_events(&image, at, 400, 301);
    at = put_events(&image, at, 420, 10);
    at = put_events(&image, at, 150, 300);
    put_end(&image, at, TOTAL);
    finish(&image);
}

/* The first five chunks merged into one; their room holds the next ones, and a rest. */
static void make_merged(struct vs_bytes *file)
{
    struct image image;
    begin(&image, file, 0, VS_TRACE_FORMAT_VERSION);
    uint64_t room = put_definitions(&image, VS_FILE_HEADER_BYTES), at = room;
    for (uint64_t first = 0; first < TOTAL / 2; first += SMALL)
        at = put_events(&image, at, first, SMALL);
    uint64_t room_end = at;
    at = put_events(&image, at, 0, TOTAL / 2);
    room = put_events(&image, room, TOTAL / 2, SMALL);
    room = put_events(&image, room, TOTAL / 2 + SMALL, SMALL);
    put_room(&image, room, room_end - room);
    for (uint64_t first = TOTAL / 2 + 2 * SMALL; first < TOTAL; first += SMALL)
        at = put_events(&image, at, first, SMALL);
    put_end(&image, at, TOTAL);
    finish(&image);
}

static void make_with_hole(struct vs_bytes *file)
{
    struct image image;
    begin(&image, file, 0, VS_TRACE_FORMAT_VERSION);
    uint64_t at = put_definitions(&image, VS_FILE_HEADER_BYTES);
    for (uint64_t first = 0; first < TOTAL; first += SMALL)
        if (first != 3 * SMALL && first != 9 * SMALL)
            at = put_events(&image, at, first, SMALL);
    put_end(&image, at, TOTAL);
    finish(&image);
}

/* Two lists of allocations live at an index: what a key frame of this stream holds. */
static void put_keyframe(struct image *image, uint64_t *offset, uint64_t index)
{
    enum { LIVE = 24, PART = 16 };
    struct vs_sequenced_event live[LIVE], next;
    for (uint64_t i = 0; i < LIVE; i++)
        shape_event(index - LIVE * 2 + i * 2, &live[i]);
    shape_event(index, &next);
    for (uint32_t done = 0; done < LIVE; done += PART) {
        uint32_t count = LIVE - done < PART ? LIVE - done : PART;
        struct vs_keyframe_part part = {.ordinal = done, .total = LIVE};
        struct vs_chunk_header header = {
            .type = VS_CHUNK_KEYFRAME, .first = index, .mark = next.sequence, .count = count};
        check(vs_keyframe_encode(live + done, count, &part, &image->payload));
        *offset = put_chunk(image, *offset, header);
    }
}

enum { SLOT_BYTES = 16384, SLOTS = 3, SLOT_EVENTS = 300, KEYFRAME_AT = 100 };

/* One slot of a flight recorder: definitions again, events with a key frame among them. */
static void put_slot(struct image *image, uint64_t slots_offset, uint64_t slot)
{
    uint64_t at = slots_offset + slot % SLOTS * SLOT_BYTES, first = slot * SLOT_EVENTS;
    at = put_functions(image, put_places(image, put_names(image, at)));
    at = put_events(image, at, first, KEYFRAME_AT);
    put_keyframe(image, &at, first + KEYFRAME_AT);
    at = put_events(image, at, first + KEYFRAME_AT, (slot == 3 ? 50 : SMALL));
    if (slot != 3)
        at = put_events(image, at, first + KEYFRAME_AT + SMALL, SMALL);
    if (at > slots_offset + (slot % SLOTS + 1) * SLOT_BYTES)
        abort(); /* the slots are too small for this */
}

static void make_circular(struct vs_bytes *file, uint64_t slots_written)
{
    struct image image;
    struct vs_superblock block = {.slot_bytes = SLOT_BYTES, .slot_count = SLOTS};
    uint8_t encoded[VS_SUPERBLOCK_BYTES];
    begin(&image, file, VS_FILE_CIRCULAR, VS_TRACE_FORMAT_VERSION);
    block.slots_offset = put_facts(&image, VS_FILE_HEADER_BYTES + VS_SUPERBLOCK_BYTES);
    vs_superblock_encode(&block, image.tag, encoded);
    put_at(&image, VS_FILE_HEADER_BYTES, encoded, sizeof encoded);
    for (uint64_t slot = 0; slot < slots_written; slot++)
        put_slot(&image, block.slots_offset, slot);
    finish(&image);
}

static void make_first_lap(struct vs_bytes *file)
{
    make_circular(file, 2);
}

/* Slot 3 is shorter than slot 0 was: the last chunk of slot 0 is still there behind it. */
static void make_wrapped(struct vs_bytes *file)
{
    make_circular(file, 4);
}

static void make_unknown_parts(struct vs_bytes *file)
{
    static const uint64_t values[] = {1, 2, 3};
    struct image image;
    begin(&image, file, 0, VS_TRACE_FORMAT_VERSION);
    uint64_t at = put_definitions(&image, VS_FILE_HEADER_BYTES);
    check(vs_column_put(&image.payload, UNKNOWN_COLUMN, values, 3));
    at = put_events(&image, at, 0, SMALL);
    check(vs_bytes_append(&image.payload, "whatever", 8));
    at = put_chunk(&image, at, (struct vs_chunk_header){.type = UNKNOWN_OPTIONAL, .count = 1});
    put_end(&image, at, SMALL);
    finish(&image);
}

static void make_critical(struct vs_bytes *file)
{
    struct image image;
    begin(&image, file, 0, VS_TRACE_FORMAT_VERSION);
    uint64_t at = put_events(&image, VS_FILE_HEADER_BYTES, 0, SMALL);
    check(vs_bytes_append(&image.payload, "whatever", 8));
    put_chunk(&image, at, (struct vs_chunk_header){.type = UNKNOWN_CRITICAL, .count = 1});
    finish(&image);
}

static void make_newer(struct vs_bytes *file)
{
    struct image image;
    begin(&image, file, 0, VS_TRACE_FORMAT_VERSION + 1);
    put_events(&image, VS_FILE_HEADER_BYTES, 0, SMALL);
    finish(&image);
}

static void make_no_chunks(struct vs_bytes *file)
{
    struct image image;
    begin(&image, file, 0, VS_TRACE_FORMAT_VERSION);
    finish(&image);
}

const struct shape shapes[] = {
    {"plain", make_plain, TOTAL, 0, 0},
    {"cut", make_cut, SMALL, 0, 0},
    {"tiny", make_tiny, 3 * SHAPES_TINY_CHUNK, 0, 0},
    {"uncompressed", make_uncompressed, SMALL, 0, 0},
    {"out-of-order", make_out_of_order, TOTAL, 0, 0},
    {"overlapping", make_overlapping, TOTAL, 0, 0},
    {"merged", make_merged, TOTAL, 0, 0},
    {"with-hole", make_with_hole, TOTAL - 2 * SMALL, 0, 0},
    {"first-lap", make_first_lap, 2 * SLOT_EVENTS, 0, 0},
    {"wrapped", make_wrapped, 24 + 2 * SLOT_EVENTS - KEYFRAME_AT + KEYFRAME_AT + 50,
     SLOT_EVENTS + KEYFRAME_AT, 0},
    {"unknown-parts", make_unknown_parts, SMALL, 0, 0},
    {"critical", make_critical, 0, 0, -ENOTSUP},
    {"newer", make_newer, 0, 0, -ENOTSUP},
    {"no-chunks", make_no_chunks, 0, 0, 0},
};
const size_t shape_count = sizeof shapes / sizeof shapes[0];

const struct shape *shape_find(const char *name)
{
    for (size_t i = 0; i < shape_count; i++)
        if (strcmp(shapes[i].name, name) == 0)
            return &shapes[i];
    return NULL;
}
