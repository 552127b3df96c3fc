/* SPDX-License-Identifier: Apache-2.0 */
/* A ring left over beside its trace: what was committed and not yet written is read with it. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ring.h"
#include "trace.h"

enum {
    SHIFT = 8,
    CELLS = 1 << SHIFT,
    IN_TRACE = 10,
    PID = 41,
    START_NS = 777,
    DRAINED = 2 * CELLS
};

/* A ring in memory, filled as the shim fills it, and the trace beside it. */
struct lab {
    struct vs_ring_header *header;
    union vs_cell *cells;
    char trace[64], ring[80];
};

static struct lab lab;

static size_t ring_bytes(void)
{
    return VS_RING_HEADER_BYTES + sizeof(union vs_cell) * CELLS;
}

static struct vs_event event_of(uint64_t number)
{
    return (struct vs_event){.time_ns = 1000 + number,
                             .address = number * 4096,
                             .free_bytes = VS_FREE_UNKNOWN,
                             .kind = VS_KIND_ALLOC,
                             .device = 0};
}

/* A trace of IN_TRACE events whose last ends at position DRAINED. */
static void write_trace(uint64_t start_ns)
{
    char clock[64];
    struct vs_writer *writer;
    int fd = open(lab.trace, O_RDWR | O_CREAT | O_TRUNC, 0600);
    cr_assert_eq(vs_writer_create(fd, 64, 3, &writer), 0);
    snprintf(clock, sizeof clock, "{\"start\":{\"monotonic_ns\":%lu}}", start_ns);
    vs_writer_meta(writer, "clock", clock, strlen(clock));
    vs_writer_meta(writer, "process", "{\"pid\":41}", 10);
    for (uint64_t i = 0; i < IN_TRACE; i++) {
        struct vs_sequenced_event event = {.sequence = DRAINED - 2 * (IN_TRACE - i),
                                           .thread = 5,
                                           .cells = 2,
                                           .event = event_of(i)};
        cr_assert_eq(vs_writer_event(writer, &event), 0);
    }
    cr_assert_eq(vs_writer_close(writer, false), 0);
    close(fd);
}

static void set_up(void)
{
    snprintf(lab.trace, sizeof lab.trace, "/tmp/vs-ring-XXXXXX");
    close(mkstemp(lab.trace));
    snprintf(lab.ring, sizeof lab.ring, "%s.ring", lab.trace);
    lab.header = aligned_alloc(128, ring_bytes());
    memset(lab.header, 0, ring_bytes());
    lab.cells = (union vs_cell *)(void *)((char *)lab.header + VS_RING_HEADER_BYTES);
    lab.header->magic = VS_RING_MAGIC;
    lab.header->version = VS_RING_VERSION;
    lab.header->header_bytes = VS_RING_HEADER_BYTES;
    lab.header->cell_count = CELLS;
    lab.header->cell_shift = SHIFT;
    lab.header->pid = PID;
    lab.header->start_monotonic_ns = START_NS;
    atomic_store(&lab.header->head, DRAINED);
    atomic_store(&lab.header->tail, DRAINED);
    atomic_store(&lab.header->drained, DRAINED);
    write_trace(START_NS);
}

static void tear_down(void)
{
    unlink(lab.trace);
    unlink(lab.ring);
    free(lab.header);
}

TestSuite(ring_file, .init = set_up, .fini = tear_down);

static union vs_cell *cell(uint64_t position)
{
    return &lab.cells[position & (CELLS - 1)];
}

static uint64_t reserve(uint32_t cells)
{
    return atomic_fetch_add(&lab.header->head, cells);
}

static void claim(uint64_t position, uint32_t cells, uint32_t thread)
{
    atomic_store(&cell(position)->first.claim, VS_CLAIM(position, cells, thread, SHIFT));
    atomic_store(&cell(position)->first.stamp, VS_STAMP_CLAIMED | (position + 1));
}

static void put_body(uint64_t position, const void *data, size_t bytes)
{
    const uint8_t *from = data;
    for (uint64_t i = 0; bytes > 0; i++) {
        size_t room = i == 0 ? VS_CELL_FIRST_BODY : VS_CELL_NEXT_BODY;
        size_t some = bytes < room ? bytes : room;
        memcpy(i == 0 ? cell(position)->first.body : cell(position + i)->next.body, from, some);
        from += some;
        bytes -= some;
    }
}

static void commit(uint64_t position, uint32_t cells)
{
    for (uint32_t i = cells; i-- > 0;)
        atomic_store(&cell(position + i)->next.stamp, position + i + 1);
}

static uint64_t put_event(uint64_t number)
{
    uint64_t position = reserve(2);
    struct vs_event event = event_of(number);
    claim(position, 2, 9);
    put_body(position, &event, sizeof event);
    commit(position, 2);
    return position;
}

static void put_definition(struct vs_record_head head, const void *payload)
{
    uint8_t body[256] = {0};
    uint32_t cells = 3;
    memcpy(body, &head, sizeof head);
    memcpy(body + sizeof head, payload, head.bytes);
    while (VS_CELL_FIRST_BODY + (cells - 1) * VS_CELL_NEXT_BODY < sizeof head + head.bytes)
        cells++;
    uint64_t position = reserve(cells);
    claim(position, cells, 9);
    put_body(position, body, sizeof head + head.bytes);
    commit(position, cells);
}

static void put_string(uint32_t id, const char *text)
{
    put_definition((struct vs_record_head){.type = VS_RECORD_STRING,
                                           .id = id,
                                           .bytes = (uint32_t)strlen(text)},
                   text);
}

static struct vs_reader *open_both(void)
{
    struct vs_reader *reader = NULL;
    struct vs_error error;
    FILE *out = fopen(lab.ring, "wb");
    cr_assert_eq(fwrite(lab.header, 1, ring_bytes(), out), ring_bytes());
    fclose(out);
    cr_assert_eq(vs_reader_open(lab.trace, &reader, &error), 0, "%s", error.text);
    return reader;
}

static struct vs_sequenced_event next(struct vs_reader *reader)
{
    struct vs_sequenced_event event;
    cr_assert_eq(vs_reader_next(reader, &event), 1);
    return event;
}

static void expect_trace(struct vs_reader *reader)
{
    for (uint64_t i = 0; i < IN_TRACE; i++)
        cr_assert_eq(next(reader).event.address, i * 4096);
}

static void expect_end(struct vs_reader *reader)
{
    struct vs_sequenced_event event;
    cr_assert_eq(vs_reader_next(reader, &event), 0);
}

Test(ring_file, committed_records_follow_the_trace)
{
    uint64_t position = put_event(100);
    put_string(3, "a name that takes more than one cell, so that the record is a long one, really");
    put_event(101);
    struct vs_reader *reader = open_both();
    cr_assert_eq(vs_reader_status(reader)->ring_events, 2);
    cr_assert_eq(vs_reader_status(reader)->events, IN_TRACE + 2);
    cr_assert_eq(vs_reader_status(reader)->sequence_gaps, 0);
    expect_trace(reader);
    struct vs_sequenced_event event = next(reader);
    cr_assert_eq(event.sequence, position);
    cr_assert_eq(event.thread, 9);
    cr_assert_eq(event.event.address, 100 * 4096);
    cr_assert_eq(next(reader).event.address, 101 * 4096);
    expect_end(reader);
    cr_assert_not_null(strstr(vs_reader_string(reader, 3), "a long one, really"));
    vs_reader_close(reader);
}

Test(ring_file, stacks_and_code_objects)
{
    const struct {
        struct vs_record_stack stack;
        uint64_t words[3];
    } stack = {{.generation = 6}, {0x7f00aabb, 0x7f00ccdd, 1ULL << 63}};
    const struct {
        struct vs_record_code code;
        char texts[16];
    } code = {{.first_line = 44, .name_bytes = 5}, "train/home/a.py"};
    put_definition(
        (struct vs_record_head){.type = VS_RECORD_STACK, .id = 12, .bytes = sizeof stack, .aux = 3},
        &stack);
    put_definition(
        (struct vs_record_head){.type = VS_RECORD_STACK, .id = 13, .bytes = sizeof stack, .aux = 4},
        &stack);
    put_definition((struct vs_record_head){.type = VS_RECORD_CODE, .id = 2, .bytes = 8 + 15},
                   &code);
    put_definition((struct vs_record_head){.type = VS_RECORD_CODE, .id = 3, .bytes = 8 + 4}, &code);
    put_event(100);
    struct vs_reader *reader = open_both();
    cr_assert_eq(vs_reader_status(reader)->ring_events, 1);
    cr_assert_eq(vs_reader_stack(reader, 12)->generation, 6);
    cr_assert_eq(vs_reader_stack(reader, 12)->frame_count, 3);
    cr_assert_arr_eq(vs_reader_stack(reader, 12)->frames, stack.words, sizeof stack.words);
    cr_assert_null(vs_reader_stack(reader, 13), "more words than there are");
    cr_assert_eq(vs_reader_code(reader, 2)->first_line, 44);
    cr_assert_str_eq(vs_reader_code(reader, 2)->name, "train");
    cr_assert_str_eq(vs_reader_code(reader, 2)->file, "/home/a.py");
    cr_assert_null(vs_reader_code(reader, 3), "a name longer than the record");
    vs_reader_close(reader);
}

Test(ring_file, records_run_over_the_end_of_the_ring)
{
    for (uint64_t i = 0; i < 124; i++)
        put_event(100 + i);
    put_string(4,
               "this record begins before the end of the ring and goes on at its beginning, which "
               "takes more than eight of its cells to be so, and so this text has to be long "
               "enough for that: it is now, or nearly so");
    put_event(1000);
    struct vs_reader *reader = open_both();
    cr_assert_eq(vs_reader_status(reader)->ring_events, 125);
    for (uint64_t i = 0; i < IN_TRACE + 124; i++)
        next(reader);
    cr_assert_eq(next(reader).event.address, 1000 * 4096);
    expect_end(reader);
    cr_assert_not_null(vs_reader_string(reader, 4));
    vs_reader_close(reader);
}

Test(ring_file, unfinished_records_are_torn_not_lost_behind)
{
    uint64_t claimed = reserve(4);
    claim(claimed, 4, 33);
    put_event(200);
    uint64_t unclaimed = reserve(7);
    put_event(201);
    struct vs_reader *reader = open_both();
    expect_trace(reader);
    struct vs_sequenced_event event = next(reader);
    cr_assert_eq(event.event.kind, VS_KIND_TORN);
    cr_assert_eq(event.sequence, claimed);
    cr_assert_eq(event.thread, 33);
    cr_assert_eq(event.event.extra[0], 4);
    cr_assert_eq(next(reader).event.address, 200 * 4096);
    event = next(reader);
    cr_assert_eq(event.event.kind, VS_KIND_TORN);
    cr_assert_eq(event.sequence, unclaimed);
    cr_assert_eq(event.event.extra[0], 7);
    cr_assert_eq(next(reader).event.address, 201 * 4096);
    expect_end(reader);
    vs_reader_close(reader);
}

Test(ring_file, counters_and_the_end_become_events)
{
    struct vs_loss_counter *lost = &lab.header->loss[VS_LOSS_STALLED][2][VS_KIND_FREE];
    atomic_store(&lost->events, 12);
    atomic_store(&lost->bytes, 3400);
    lab.header->end_kind = VS_END_EXIT;
    lab.header->end_value = 3;
    lab.header->end_ns = 99999;
    uint64_t position = reserve(2);
    struct vs_event told = {.kind = VS_KIND_LOSS,
                            .handle = VS_LOSS_STALLED,
                            .size = 400,
                            .extra = {2},
                            .label = VS_KIND_FREE,
                            .device = 2};
    claim(position, 2, 0);
    put_body(position, &told, sizeof told);
    commit(position, 2);
    struct vs_reader *reader = open_both();
    expect_trace(reader);
    cr_assert_eq(next(reader).event.extra[0], 2);
    struct vs_sequenced_event event = next(reader);
    cr_assert_eq(event.event.kind, VS_KIND_LOSS);
    cr_assert_eq(event.event.extra[0], 10);
    cr_assert_eq(event.event.size, 3000);
    cr_assert_eq(event.event.label, VS_KIND_FREE);
    cr_assert_eq(event.event.device, 2);
    event = next(reader);
    cr_assert_eq(event.event.kind, VS_KIND_PROCESS_END);
    cr_assert_eq(event.event.handle, VS_END_EXIT);
    cr_assert_eq(event.event.size, 3);
    cr_assert_eq(event.event.time_ns, 99999);
    expect_end(reader);
    vs_reader_close(reader);
}

Test(ring_file, what_the_ring_has_overwritten_is_a_hole)
{
    for (uint64_t i = 0; i < CELLS; i++)
        put_event(300 + i);
    atomic_store(&lab.header->tail, DRAINED + CELLS);
    atomic_store(&lab.header->drained, DRAINED + CELLS);
    struct vs_reader *reader = open_both();
    cr_assert_eq(vs_reader_status(reader)->sequence_gaps, 1);
    cr_assert_eq(vs_reader_status(reader)->missing_cells, CELLS);
    expect_trace(reader);
    cr_assert_eq(next(reader).event.address, (300 + CELLS / 2) * 4096);
    vs_reader_close(reader);
}

Test(ring_file, the_ring_of_another_run_is_not_taken)
{
    put_event(100);
    lab.header->start_monotonic_ns = START_NS + 1;
    struct vs_reader *reader = open_both();
    cr_assert_eq(vs_reader_status(reader)->events, IN_TRACE);
    vs_reader_close(reader);
    lab.header->start_monotonic_ns = START_NS;
    lab.header->pid = PID + 1;
    reader = open_both();
    cr_assert_eq(vs_reader_status(reader)->events, IN_TRACE);
    vs_reader_close(reader);
}

/* Every word of the header and of the first cells replaced by values that lie. */
Test(ring_file, a_lying_ring_does_no_harm, .timeout = 120)
{
    static const uint64_t lies[] = {0, 1, CELLS, UINT64_MAX, UINT64_MAX / 2, 1ULL << 40, 0x6060};
    put_event(100);
    put_string(5, "some text");
    put_event(101);
    size_t cells_at = VS_RING_HEADER_BYTES / 8;
    uint64_t *raw = (uint64_t *)(void *)lab.header;
    for (size_t i = 0; i < 160; i++) {
        size_t word = i < 96 ? i : cells_at + (i - 96);
        uint64_t kept = raw[word];
        for (size_t lie = 0; lie < sizeof lies / sizeof lies[0]; lie++) {
            raw[word] = lies[lie];
            struct vs_reader *reader = open_both();
            struct vs_sequenced_event event;
            expect_trace(reader);
            while (vs_reader_next(reader, &event) == 1)
                cr_assert_geq(event.sequence, DRAINED);
            vs_reader_close(reader);
        }
        raw[word] = kept;
    }
}
