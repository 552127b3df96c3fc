/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stacks refer to: stacks that stay packed until they are asked for, modules
 * by address and time, rows that make no sense.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shapes.h"
#include "trace_table.h"

static char path[64];
static int file = -1;
static struct vs_writer *writer;
static struct vs_reader *reader;

static void set_up(void)
{
    snprintf(path, sizeof path, "/tmp/vs-stacks-XXXXXX");
    file = mkstemp(path);
    cr_assert_eq(vs_writer_create(file, 16, 1, &writer), 0);
}

static void tear_down(void)
{
    vs_reader_close(reader);
    close(file);
    unlink(path);
}

TestSuite(stacks, .init = set_up, .fini = tear_down, .timeout = 120);

static void open_trace(void)
{
    struct vs_error error = {""};
    cr_assert_eq(vs_writer_close(writer, true), 0);
    cr_assert_eq(vs_reader_open(path, &reader, &error), 0, "%s", error.text);
}

/* A stack whose words tell which one it is. */
static void add_stack(uint32_t id, uint32_t version, uint32_t words)
{
    uint64_t frames[256];
    for (uint32_t i = 0; i < words; i++)
        frames[i] = (uint64_t)id << 20 | version << 10 | i;
    struct vs_stack_def stack = {id, version, words, frames};
    cr_assert_eq(vs_writer_stack(writer, &stack), 0);
}

static void expect_stack(uint32_t id, uint32_t version, uint32_t words)
{
    const struct vs_stack_def *stack = vs_reader_stack(reader, id);
    cr_assert_not_null(stack, "stack %u", id);
    cr_assert_eq(stack->id, id);
    cr_assert_eq(stack->generation, version);
    cr_assert_eq(stack->frame_count, words, "stack %u: %u", id, stack->frame_count);
    for (uint32_t i = 0; i < words; i++)
        cr_assert_eq(stack->frames[i], (uint64_t)id << 20 | version << 10 | i);
}

/* More chunks than are kept unpacked, asked for in order, against it, and at random. */
Test(stacks, many_are_unpacked_when_asked_for)
{
    enum { MANY = 150000, WORDS = 200 };
    for (uint32_t id = 1; id <= MANY; id++)
        add_stack(id, id % 7, id % WORDS);
    open_trace();
    cr_assert_eq(vs_reader_stack_count(reader), MANY);
    for (uint32_t id = 1; id <= MANY; id++)
        expect_stack(id, id % 7, id % WORDS);
    for (uint32_t id = MANY; id > 3; id -= 1 + id % 3)
        expect_stack(id, id % 7, id % WORDS);
    for (uint64_t i = 0; i < 300; i++) {
        uint32_t id = 1 + (uint32_t)(vs_payload_hash(&i, sizeof i) % MANY);
        expect_stack(id, id % 7, id % WORDS);
    }
    cr_assert_null(vs_reader_stack(reader, 0));
    cr_assert_null(vs_reader_stack(reader, MANY + 1));
}

/* Ids out of order, with holes, and defined again: in the same chunk and in a later one. */
Test(stacks, the_last_definition_counts)
{
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t id = 3000; id > 0; id -= 3)
            if (id % (round + 1) == 0)
                add_stack(id, round, 5 + round);
        add_stack(UINT32_MAX, 100 + round, 1);
        add_stack(UINT32_MAX, 200 + round, 2);
        cr_assert_eq(vs_writer_flush(writer), 0);
    }
    open_trace();
    cr_assert_eq(vs_reader_stack_count(reader), 1001);
    cr_assert_eq(vs_reader_stack_id(reader, 0), 3);
    cr_assert_eq(vs_reader_stack_id(reader, 1000), UINT32_MAX);
    for (uint32_t id = 3; id <= 3000; id += 3) {
        uint32_t round = id % 3 == 0 ? 2 : 0;
        expect_stack(id, round, 5 + round);
    }
    expect_stack(UINT32_MAX, 202, 2);
    cr_assert_null(vs_reader_stack(reader, 4));
}

Test(stacks, events_may_be_read_in_between)
{
    for (uint32_t id = 1; id < 200; id++) {
        struct vs_sequenced_event event;
        add_stack(id, 0, 3);
        shape_event(id, &event);
        cr_assert_eq(vs_writer_event(writer, &event), 0);
    }
    open_trace();
    for (uint32_t id = 1; id < 200; id++) {
        struct vs_sequenced_event event, expected;
        shape_event(id, &expected);
        cr_assert_eq(vs_reader_next(reader, &event), 1);
        cr_assert_arr_eq(&event, &expected, sizeof event);
        expect_stack(1 + id * 7 % 199, 0, 3);
    }
}

/* ---- modules ----------------------------------------------------------------------------- */

static void add_module(uint32_t id, uint32_t generation, uint64_t start, uint64_t bytes)
{
    struct vs_module_def module = {
        .id = id, .generation = generation, .start = start, .end = start + bytes, .path = "m"};
    cr_assert_eq(vs_writer_module(writer, &module), 0);
}

static uint32_t at(uint64_t address, uint32_t generation)
{
    const struct vs_module_def *module = vs_reader_module_at(reader, address, generation);
    return module == NULL ? 0 : module->id;
}

Test(stacks, modules_by_address_and_generation)
{
    add_module(1, 1, 0x1000, 0x1000);
    add_module(2, 1, 0x3000, 0x1000);
    add_module(3, 5, 0x1800, 0x1000); /* over the end of 1, after it went away */
    add_module(4, 7, 0x1000, 0x400);
    add_module(5, 2, 0, 0x10000000); /* a large one around all of them */
    add_module(6, 0, UINT64_MAX - 0xfff, 0xfff);
    open_trace();
    cr_assert_eq(vs_reader_module_count(reader), 6);
    cr_assert_eq(vs_reader_module_number(reader, 0)->id, 5);
    cr_assert_null(vs_reader_module_number(reader, 6));
    cr_assert_eq(at(0x0fff, 1), 0);
    cr_assert_eq(at(0x1000, 0), 0, "before its time");
    cr_assert_eq(at(0x1000, 1), 1);
    cr_assert_eq(at(0x1fff, 1), 1);
    cr_assert_eq(at(0x2000, 1), 0, "the end is not in it");
    cr_assert_eq(at(0x1fff, 4), 5);
    cr_assert_eq(at(0x1fff, 5), 3);
    cr_assert_eq(at(0x1000, 7), 4);
    cr_assert_eq(at(0x1400, 7), 5);
    cr_assert_eq(at(0x27ff, 100), 3);
    cr_assert_eq(at(0x3000, 1), 2);
    cr_assert_eq(at(0xfffffff, 2), 5);
    cr_assert_eq(at(0x10000000, 2), 0);
    cr_assert_eq(at(UINT64_MAX - 1, 0), 6);
    cr_assert_eq(at(UINT64_MAX, 0), 0);
}

/* Against a search through all of them. */
Test(stacks, modules_by_address_among_many)
{
    enum { MODULES = 500, ASKED = 20000 };
    uint64_t starts[MODULES], ends[MODULES];
    for (uint64_t i = 0; i < MODULES; i++) {
        uint64_t noise = vs_payload_hash(&i, sizeof i);
        starts[i] = noise % 1000000;
        ends[i] = starts[i] + (noise >> 32) % 20000;
        add_module((uint32_t)i + 1, (uint32_t)i % 50, starts[i], ends[i] - starts[i]);
    }
    open_trace();
    for (uint64_t i = 0; i < ASKED; i++) {
        uint64_t noise = vs_payload_hash(&i, sizeof i), address = noise % 1020000;
        uint32_t generation = (uint32_t)(noise >> 40) % 52, best = 0;
        for (uint32_t m = 0; m < MODULES; m++)
            if (starts[m] <= address && address < ends[m] && m % 50 <= generation &&
                (best == 0 || m % 50 >= (best - 1) % 50))
                best = m + 1;
        cr_assert_eq(at(address, generation), best, "0x%lx", address);
    }
}

/* ---- rows that make no sense --------------------------------------------------------------------
 */

struct table_file {
    struct vs_table table;
    struct vs_bytes bytes;
};

static void add_row(struct table_file *made, const uint64_t numbers[5], const char *text)
{
    static const uint64_t words[] = {7, 8};
    struct vs_table_row row = {.texts = {{text, strlen(text)}, {text, strlen(text)}}};
    memcpy(row.numbers, numbers, sizeof row.numbers);
    row.words = words;
    row.word_count = 2;
    cr_assert_eq(vs_table_add(&made->table, &row), 0);
}

/* A trace that is this table alone. */
static void open_table(struct table_file *made)
{
    uint8_t encoded[VS_CHUNK_HEADER_BYTES];
    struct vs_file_header file_header = {.version = 1, .file_id = "0123456789abcde"};
    struct vs_bytes payload = {0};
    struct vs_error error = {""};
    cr_assert_eq(vs_table_encode(&made->table, &payload), 0);
    struct vs_chunk_header header = {.type = made->table.shape->type,
                                     .stored_bytes = (uint32_t)payload.bytes,
                                     .raw_bytes = (uint32_t)payload.bytes,
                                     .count = (uint32_t)made->table.rows,
                                     .file_tag = vs_file_tag(file_header.file_id)};
    header.payload_hash = vs_payload_hash(payload.data, payload.bytes);
    vs_file_header_encode(&file_header, encoded);
    vs_bytes_append(&made->bytes, encoded, sizeof encoded);
    vs_chunk_header_encode(&header, encoded);
    vs_bytes_append(&made->bytes, encoded, sizeof encoded);
    vs_bytes_append(&made->bytes, payload.data, payload.bytes);
    cr_assert_eq(
        vs_reader_open_memory(made->bytes.data, made->bytes.bytes, "table", &reader, &error), 0);
    vs_bytes_free(&payload);
    vs_table_free(&made->table);
}

Test(stacks, symbols_that_do_not_go_on)
{
    struct table_file made = {0};
    vs_table_init(&made.table, VS_CHUNK_SYMBOLS);
    add_row(&made, (const uint64_t[5]){0, 1, 0x10, 1, 5}, "begins with place 1");
    add_row(&made, (const uint64_t[5]){1, 1, 0x10, 0, 5}, "good");
    add_row(&made, (const uint64_t[5]){2, 1, 0x10, 2, 5}, "leaves one out");
    add_row(&made, (const uint64_t[5]){3, 1, 0x20, 1, 5}, "of another address");
    add_row(&made, (const uint64_t[5]){4, 1, 0x10, 1, 5}, "good too");
    add_row(&made, (const uint64_t[5]){5, 1ULL << 32, 0x10, 0, 5}, "no such module");
    add_row(&made, (const uint64_t[5]){6, 1, 0x30, 0, 1ULL << 32}, "no such line");
    open_table(&made);
    cr_assert_eq(vs_reader_status(reader)->damaged_chunks, 1);
    const struct vs_symbol_def *symbol = vs_reader_symbol(reader, 1, 0x10);
    cr_assert_eq(symbol->count, 2);
    cr_assert_str_eq(symbol->frames[0].function, "good");
    cr_assert_str_eq(symbol->frames[1].file, "good too");
    cr_assert_null(vs_reader_symbol(reader, 1, 0x20));
    cr_assert_null(vs_reader_symbol(reader, 1, 0x30));
    vs_bytes_free(&made.bytes);
}

Test(stacks, numbers_that_do_not_fit)
{
    struct table_file made = {0};
    vs_table_init(&made.table, VS_CHUNK_STACKS);
    add_row(&made, (const uint64_t[5]){1ULL << 32, 0}, "");
    add_row(&made, (const uint64_t[5]){6, 1ULL << 32}, "");
    add_row(&made, (const uint64_t[5]){7, UINT32_MAX}, "");
    open_table(&made);
    cr_assert_eq(vs_reader_status(reader)->damaged_chunks, 1);
    cr_assert_eq(vs_reader_stack_count(reader), 1);
    cr_assert_eq(vs_reader_stack(reader, 7)->generation, UINT32_MAX);
    cr_assert_eq(vs_reader_stack(reader, 7)->frames[1], 8);
    cr_assert_null(vs_reader_stack(reader, 6));
    vs_bytes_free(&made.bytes);
}

Test(stacks, code_objects_that_make_no_sense)
{
    struct table_file made = {0};
    vs_table_init(&made.table, VS_CHUNK_CODES);
    add_row(&made, (const uint64_t[5]){3, 1ULL << 32}, "no such line");
    add_row(&made, (const uint64_t[5]){4, 12}, "good");
    open_table(&made);
    cr_assert_eq(vs_reader_status(reader)->damaged_chunks, 1);
    cr_assert_null(vs_reader_code(reader, 3));
    cr_assert_str_eq(vs_reader_code(reader, 4)->file, "good");
    vs_bytes_free(&made.bytes);
}
