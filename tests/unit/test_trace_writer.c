/* SPDX-License-Identifier: Apache-2.0 */
/* Writing: what goes in comes out, order is enforced, a failing disk leaves a readable file. */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shapes.h"

static char path[64];
static int file = -1;

static void make_file(void)
{
    snprintf(path, sizeof path, "/tmp/vs-writer-XXXXXX");
    file = mkstemp(path);
    cr_assert_geq(file, 0);
}

static void drop_file(void)
{
    close(file);
    unlink(path);
}

TestSuite(writer, .init = make_file, .fini = drop_file);

static struct vs_reader *reopen(void)
{
    struct vs_reader *reader = NULL;
    struct vs_error error = {""};
    cr_assert_eq(vs_reader_open(path, &reader, &error), 0, "%s", error.text);
    return reader;
}

/* Events 0..count-1 of the stream, nothing else. */
static void expect_stream(struct vs_reader *reader, uint64_t count)
{
    struct vs_sequenced_event event, expected;
    for (uint64_t i = 0; i < count; i++) {
        shape_event(i, &expected);
        cr_assert_eq(vs_reader_next(reader, &event), 1, "event %lu", i);
        cr_assert_arr_eq(&event, &expected, sizeof event, "event %lu", i);
    }
    cr_assert_eq(vs_reader_next(reader, &event), 0);
}

static int write_stream(struct vs_writer *writer, uint64_t first, uint64_t end)
{
    int error = 0;
    for (uint64_t i = first; i < end && error == 0; i++) {
        struct vs_sequenced_event event;
        shape_event(i, &event);
        error = vs_writer_event(writer, &event);
    }
    return error;
}

Test(writer, everything_comes_back)
{
    const uint64_t frames[] = {1, UINT64_MAX, 3};
    struct vs_writer *writer;
    cr_assert_eq(vs_writer_create(file, 128, 3, &writer), 0);
    cr_assert_eq(vs_writer_string(writer, 9, "cuMemFree_v2 and more", 12), 0);
    cr_assert_eq(vs_writer_thread(writer, &(struct vs_thread_def){77, "worker"}), 0);
    struct vs_module_def module = {
        .id = 5, .end = 4096, .build_id = {1, 2}, .build_id_bytes = 2, .path = "/opt/libx.so"};
    cr_assert_eq(vs_writer_module(writer, &module), 0);
    struct vs_device_def device = {.device = 3,
                                   .uuid = {9},
                                   .pci_id = "0000:3b:00.0",
                                   .name = "Some GPU",
                                   .total_bytes = 42,
                                   .integrated = true};
    cr_assert_eq(vs_writer_device(writer, &device), 0);
    cr_assert_eq(vs_writer_stack(writer, &(struct vs_stack_def){8, 7, 3, frames}), 0);
    cr_assert_eq(vs_writer_meta(writer, "end", "{\"a\":1,\"b\":2}", 13), 0);
    cr_assert_eq(write_stream(writer, 0, 1000), 0);
    cr_assert_eq(vs_writer_meta(writer, "end", "{\"b\":3}", 7), 0);
    cr_assert_eq(vs_writer_string(writer, 9, "later", 5), 0);
    cr_assert_eq(vs_writer_close(writer, true), 0);

    struct vs_reader *reader = reopen();
    expect_stream(reader, 1000);
    cr_assert_str_eq(vs_reader_string(reader, 9), "later");
    cr_assert_str_eq(vs_reader_thread(reader, 77)->name, "worker");
    cr_assert_str_eq(vs_reader_module(reader, 5)->path, "/opt/libx.so");
    cr_assert_eq(vs_reader_module(reader, 5)->build_id[1], 2);
    cr_assert_arr_eq(vs_reader_device(reader, 0), &device, sizeof device);
    cr_assert_arr_eq(vs_reader_stack(reader, 8)->frames, frames, sizeof frames);
    cr_assert_str_eq(vs_reader_meta(reader, "end"), "{\"a\":1,\"b\":3}");
    cr_assert(vs_reader_status(reader)->closed);
    cr_assert_eq(vs_reader_status(reader)->sequence_gaps, 0);
    vs_reader_close(reader);
}

static void write_code(struct vs_writer *writer, uint32_t id, uint32_t line, const char *name)
{
    struct vs_code_def code = {.id = id, .first_line = line, .name = name, .file = "/home/u/a.py"};
    cr_assert_eq(vs_writer_code(writer, &code), 0);
}

Test(writer, code_objects_come_back)
{
    struct vs_writer *writer;
    char *long_name = calloc(1, (1U << 20) + 2);
    memset(long_name, 'x', (1U << 20) + 1);
    cr_assert_eq(vs_writer_create(file, 16, 3, &writer), 0);
    write_code(writer, 1, 10, "Model.forward");
    write_code(writer, 900, UINT32_MAX, "");
    cr_assert_eq(vs_writer_flush(writer), 0);
    write_code(writer, 1, 11, "Model.backward");
    cr_assert_eq(vs_writer_code(writer, &(struct vs_code_def){.id = 2}), 0, "no texts");
    struct vs_code_def too_long = {.id = 3, .name = long_name, .file = ""};
    cr_assert_eq(vs_writer_code(writer, &too_long), -EINVAL);
    cr_assert_eq(vs_writer_close(writer, true), 0);
    struct vs_reader *reader = reopen();
    cr_assert_str_eq(vs_reader_code(reader, 1)->name, "Model.backward");
    cr_assert_str_eq(vs_reader_code(reader, 1)->file, "/home/u/a.py");
    cr_assert_eq(vs_reader_code(reader, 1)->first_line, 11);
    cr_assert_str_eq(vs_reader_code(reader, 2)->name, "");
    cr_assert_eq(vs_reader_code(reader, 900)->first_line, UINT32_MAX);
    cr_assert_null(vs_reader_code(reader, 3));
    vs_reader_close(reader);
    free(long_name);
}

static void expect_symbol(const struct vs_reader *reader, uint64_t address,
                          const struct vs_symbol_frame *frames, uint32_t count)
{
    const struct vs_symbol_def *symbol = vs_reader_symbol(reader, 4, address);
    cr_assert_not_null(symbol, "0x%lx", address);
    cr_assert_eq(symbol->module, 4);
    cr_assert_eq(symbol->address, address);
    cr_assert_eq(symbol->count, count);
    for (uint32_t i = 0; i < count; i++) {
        cr_assert_str_eq(symbol->frames[i].function, frames[i].function);
        cr_assert_str_eq(symbol->frames[i].file, frames[i].file);
        cr_assert_eq(symbol->frames[i].line, frames[i].line);
    }
}

Test(writer, symbols_come_back)
{
    static const struct vs_symbol_frame inlined[] = {
        {"std::min<int>(int const&, int const&)", "/usr/include/c++/12/bits/stl_algobase.h", 230},
        {"clamp", "k.cpp", 12},
        {"kernel", "", 0}};
    static const struct vs_symbol_frame later[] = {{"kernel_v2", "k.cpp", 99}};
    struct vs_writer *writer;
    cr_assert_eq(vs_writer_create(file, 16, 3, &writer), 0);
    struct vs_symbol_def symbol = {.module = 4, .address = 0x1000, .count = 3, .frames = inlined};
    cr_assert_eq(vs_writer_symbol(writer, &symbol), 0);
    symbol.address = 0x2000;
    cr_assert_eq(vs_writer_symbol(writer, &symbol), 0);
    cr_assert_eq(vs_writer_symbol(writer, &(struct vs_symbol_def){4, 0x3000, 0, NULL}), 0);
    symbol.count = 1025;
    cr_assert_eq(vs_writer_symbol(writer, &symbol), -EINVAL);
    for (uint64_t i = 0; i < 20000; i++) { /* more than one chunk holds */
        struct vs_symbol_def one = {4, 0x100000 + i, 1 + (uint32_t)(i % 3), inlined};
        cr_assert_eq(vs_writer_symbol(writer, &one), 0);
    }
    cr_assert_eq(vs_writer_symbol(writer, &(struct vs_symbol_def){4, 0x2000, 1, later}), 0);
    cr_assert_eq(vs_writer_close(writer, true), 0);

    struct vs_reader *reader = reopen();
    cr_assert_geq(vs_reader_status(reader)->chunks, 3);
    cr_assert_eq(vs_reader_status(reader)->damaged_chunks, 0);
    expect_symbol(reader, 0x1000, inlined, 3);
    expect_symbol(reader, 0x2000, later, 1);
    expect_symbol(reader, 0x3000, NULL, 0);
    for (uint64_t i = 0; i < 20000; i++)
        expect_symbol(reader, 0x100000 + i, inlined, 1 + (uint32_t)(i % 3));
    cr_assert_null(vs_reader_symbol(reader, 4, 0x1001));
    cr_assert_null(vs_reader_symbol(reader, 5, 0x1000));
    vs_reader_close(reader);
}

Test(writer, flushed_events_are_in_the_file_at_once)
{
    struct vs_writer *writer;
    cr_assert_eq(vs_writer_create(file, 4096, 3, &writer), 0);
    for (uint64_t i = 0; i < 20; i++) {
        cr_assert_eq(write_stream(writer, i * 10, i * 10 + 10), 0);
        cr_assert_eq(vs_writer_flush(writer), 0);
        struct stat status;
        cr_assert_eq(fstat(file, &status), 0);
        cr_assert_eq((uint64_t)status.st_size, vs_writer_bytes(writer));
        struct vs_reader *reader = reopen();
        expect_stream(reader, i * 10 + 10);
        cr_assert_not(vs_reader_status(reader)->closed);
        cr_assert_not(vs_reader_status(reader)->truncated);
        vs_reader_close(reader);
    }
    cr_assert_eq(vs_writer_close(writer, false), 0);
    struct vs_reader *reader = reopen();
    cr_assert_not(vs_reader_status(reader)->closed);
    vs_reader_close(reader);
}

/* Flushes after every ten events, so that chunks are merged again and again. */
static void write_in_tens(struct vs_writer *writer, uint64_t first, uint64_t end)
{
    for (uint64_t i = first; i < end; i += 10) {
        cr_assert_eq(write_stream(writer, i, i + 10), 0);
        cr_assert_eq(vs_writer_flush(writer), 0);
    }
}

/* Everything that a reader found at the file's end when it opened it is moved before it comes
 * there. */
Test(writer, a_reader_follows_what_is_merged)
{
    const uint64_t before = 300000, opened = before + 500; /* more than a reader's window holds */
    struct vs_sequenced_event event, expected;
    struct vs_writer *writer;
    cr_assert_eq(vs_writer_create(file, 1000, 3, &writer), 0);
    cr_assert_eq(write_stream(writer, 0, before), 0);
    write_in_tens(writer, before, opened);
    struct vs_reader *reader = reopen();
    cr_assert_eq(vs_reader_next(reader, &event), 1);
    cr_assert_geq(vs_reader_status(reader)->file_bytes, 5U << 18);
    write_in_tens(writer, opened, opened + 3000);
    for (uint64_t i = 1; i < opened; i++) {
        shape_event(i, &expected);
        cr_assert_eq(vs_reader_next(reader, &event), 1, "event %lu", i);
        cr_assert_arr_eq(&event, &expected, sizeof event, "event %lu", i);
    }
    cr_assert_eq(vs_reader_next(reader, &event), 0, "what came later is not shown");
    cr_assert_eq(vs_reader_status(reader)->events, opened);
    cr_assert_eq(vs_reader_status(reader)->missing_events, 0);
    vs_reader_close(reader);
    cr_assert_eq(vs_writer_close(writer, true), 0);
}

Test(writer, order_is_enforced)
{
    struct vs_sequenced_event event;
    struct vs_writer *writer;
    cr_assert_eq(vs_writer_create(file, 16, 1, &writer), 0);
    shape_event(5, &event);
    cr_assert_eq(vs_writer_event(writer, &event), 0);
    cr_assert_eq(vs_writer_event(writer, &event), -EINVAL, "the same cells again");
    event.sequence += event.cells;
    event.cells = 0;
    cr_assert_eq(vs_writer_event(writer, &event), 0, "made by the collector");
    cr_assert_eq(vs_writer_event(writer, &event), 0);
    shape_event(6, &event);
    cr_assert_eq(vs_writer_event(writer, &event), 0);
    event.sequence = UINT64_MAX;
    cr_assert_eq(vs_writer_event(writer, &event), -EINVAL, "positions do not wrap");
    cr_assert_eq(vs_writer_close(writer, true), 0);
    struct vs_reader *reader = reopen();
    cr_assert_eq(vs_reader_status(reader)->events, 4);
    vs_reader_close(reader);
}

/* With the file bounded at `bytes`: the error is told, stays, and the file holds whole chunks. */
static void check_full_disk(rlim_t bytes)
{
    struct rlimit limit = {bytes, RLIM_INFINITY};
    struct vs_writer *writer = NULL;
    cr_assert_eq(ftruncate(file, 0), 0);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    int error = vs_writer_create(file, 50, 3, &writer);
    if (bytes < VS_FILE_HEADER_BYTES) {
        cr_assert_eq(error, -EFBIG);
    } else {
        cr_assert_eq(error, 0);
        error = write_stream(writer, 0, 2000);
        cr_assert_eq(error, -EFBIG, "at %lu: %d", bytes, error);
        cr_assert_eq(vs_writer_flush(writer), -EFBIG);
        cr_assert_eq(vs_writer_string(writer, 1, "a", 1), -EFBIG);
        cr_assert_eq(vs_writer_close(writer, true), -EFBIG);
        struct vs_reader *reader = reopen();
        const struct vs_trace_status *status = vs_reader_status(reader);
        cr_assert_eq(status->damaged_bytes, 0);
        cr_assert_not(status->truncated);
        cr_assert_not(status->closed);
        expect_stream(reader, status->events);
        vs_reader_close(reader);
    }
    limit.rlim_cur = RLIM_INFINITY;
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

Test(writer, a_full_disk_at_many_sizes, .timeout = 120)
{
    signal(SIGXFSZ, SIG_IGN);
    for (rlim_t bytes = 0; bytes < 6000; bytes += 61)
        check_full_disk(bytes);
}

Test(writer, a_descriptor_that_cannot_be_written)
{
    struct vs_writer *writer;
    int reading = dup(file);
    close(reading);
    cr_assert_eq(vs_writer_create(reading, 16, 3, &writer), -EBADF);
    cr_assert_null(writer);
}

Test(writer, killed_at_any_moment, .timeout = 120)
{
    uint64_t events = 0;
    for (unsigned round = 0; round < 40; round++) {
        cr_assert_eq(ftruncate(file, 0), 0);
        pid_t child = fork();
        if (child == 0) {
            struct vs_writer *writer;
            if (vs_writer_create(file, 20, 1, &writer) == 0)
                write_stream(writer, 0, 1U << 20);
            _exit(0);
        }
        usleep(300 + round * 137);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        struct vs_reader *reader = NULL;
        struct vs_error error;
        struct stat status;
        cr_assert_eq(fstat(file, &status), 0);
        int result = vs_reader_open(path, &reader, &error);
        cr_assert(result == 0 || (result == -EINVAL && status.st_size < 64), "%s", error.text);
        if (result != 0)
            continue;
        cr_assert_eq(vs_reader_status(reader)->damaged_chunks, 0);
        cr_assert_eq(vs_reader_status(reader)->sequence_gaps, 0);
        expect_stream(reader, vs_reader_status(reader)->events);
        events += vs_reader_status(reader)->events;
        vs_reader_close(reader);
    }
    cr_assert_gt(events, 0);
}

Test(writer, a_large_key_frame_is_cut_into_chunks)
{
    enum { LIVE = 70000 };
    struct vs_sequenced_event *live = calloc(LIVE, sizeof *live);
    struct vs_writer *writer;
    for (uint64_t i = 0; i < LIVE; i++)
        shape_event(i, &live[i]);
    cr_assert_eq(vs_writer_create(file, 16, 3, &writer), 0);
    cr_assert_eq(vs_writer_keyframe(writer, live[LIVE - 1].sequence + 2, live, LIVE), 0);
    cr_assert_eq(vs_writer_keyframe(writer, 5, live, 0), 0, "nothing is live");
    struct vs_sequenced_event kept = live[0];
    live[0] = live[1];
    live[1] = kept;
    cr_assert_eq(vs_writer_keyframe(writer, 5, live, 2), -EINVAL);
    cr_assert_eq(vs_writer_close(writer, true), 0);
    struct vs_reader *reader = reopen();
    cr_assert_eq(vs_reader_status(reader)->chunks, 4, "two parts, an empty one, END");
    cr_assert_eq(vs_reader_status(reader)->events, 0, "a whole file needs no key frame");
    vs_reader_close(reader);
    free(live);
}
