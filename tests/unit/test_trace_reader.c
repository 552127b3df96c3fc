/* SPDX-License-Identifier: Apache-2.0 */
/* Reading: traces of every shape, definitions, facts, and paths that are no trace. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shapes.h"

static struct vs_reader *open_shape(const char *name, struct vs_bytes *file)
{
    struct vs_reader *reader = NULL;
    struct vs_error error = {""};
    const struct shape *shape = shape_find(name);
    cr_assert_not_null(shape);
    shape->make(file);
    int result = vs_reader_open_memory(file->data, file->bytes, name, &reader, &error);
    cr_assert_eq(result, shape->opens, "%s: %d %s", name, result, error.text);
    return reader;
}

/* Indices come in order; a jump is allowed only where the shape has a hole. */
static uint64_t read_all(struct vs_reader *reader, const struct shape *shape)
{
    const struct vs_trace_status *status = vs_reader_status(reader);
    struct vs_sequenced_event event, expected;
    uint64_t index = shape->first, count = 0, last_sequence = 0;
    while (vs_reader_next(reader, &event) == 1) {
        cr_assert_geq(event.sequence, last_sequence, "%s", shape->name);
        last_sequence = event.sequence;
        if (count++ < status->keyframe_events)
            continue;
        do
            shape_event(index++, &expected);
        while (expected.sequence < event.sequence && status->sequence_gaps > 0);
        cr_assert_arr_eq(&event, &expected, sizeof event, "%s: event %lu", shape->name, index - 1);
    }
    return count;
}

Test(reader, every_shape_gives_its_events)
{
    for (size_t i = 0; i < shape_count; i++) {
        struct vs_bytes file = {0};
        struct vs_reader *reader = open_shape(shapes[i].name, &file);
        if (reader != NULL) {
            cr_assert_eq(vs_reader_status(reader)->events, shapes[i].events, "%s: %lu",
                         shapes[i].name, vs_reader_status(reader)->events);
            cr_assert_eq(read_all(reader, &shapes[i]), shapes[i].events, "%s", shapes[i].name);
            vs_reader_rewind(reader);
            cr_assert_eq(read_all(reader, &shapes[i]), shapes[i].events, "%s again",
                         shapes[i].name);
            cr_assert_eq(vs_reader_status(reader)->damaged_chunks, 0);
            cr_assert_eq(vs_reader_status(reader)->damaged_bytes, 0, "%s", shapes[i].name);
            cr_assert_not(vs_reader_status(reader)->truncated, "%s", shapes[i].name);
        }
        vs_reader_close(reader);
        vs_bytes_free(&file);
    }
}

Test(reader, holes_are_counted_exactly)
{
    struct vs_bytes file = {0};
    struct vs_sequenced_event before, after;
    struct vs_reader *reader = open_shape("with-hole", &file);
    const struct vs_trace_status *status = vs_reader_status(reader);
    cr_assert_eq(status->sequence_gaps, 2);
    cr_assert_eq(status->missing_events, 200);
    shape_event(299, &before);
    shape_event(400, &after);
    uint64_t cells = after.sequence - before.sequence - before.cells;
    shape_event(899, &before);
    shape_event(999, &after);
    cells += after.sequence + after.cells - before.sequence - before.cells;
    cr_assert_eq(status->missing_cells, cells);
    cr_assert(status->closed);
    vs_reader_close(reader);
    vs_bytes_free(&file);
}

Test(reader, a_wrapped_recorder_starts_with_its_key_frame)
{
    struct vs_bytes file = {0};
    struct vs_reader *reader = open_shape("wrapped", &file);
    const struct vs_trace_status *status = vs_reader_status(reader);
    struct vs_sequenced_event event, expected;
    cr_assert_eq(status->keyframe_events, 24);
    shape_event(400, &expected);
    cr_assert_eq(status->keyframe_sequence, expected.sequence);
    cr_assert_eq(vs_reader_next(reader, &event), 1);
    shape_event(400 - 48, &expected);
    cr_assert_arr_eq(&event, &expected, sizeof event);
    cr_assert_eq(status->sequence_gaps, 0);
    vs_reader_close(reader);
    vs_bytes_free(&file);
}

Test(reader, definitions_and_facts)
{
    struct vs_bytes file = {0};
    struct vs_reader *reader = open_shape("plain", &file);
    cr_assert_str_eq(vs_reader_string(reader, 2), "cuMemAlloc_v2");
    cr_assert_str_eq(vs_reader_string(reader, 3), "");
    cr_assert_null(vs_reader_string(reader, 4));
    cr_assert_str_eq(vs_reader_thread(reader, 4001)->name, "pt_autograd_0");
    cr_assert_str_eq(vs_reader_module(reader, 1)->path, "/usr/lib/libc10_cuda.so");
    cr_assert_eq(vs_reader_module(reader, 1)->build_id_bytes, 4);
    cr_assert_eq(vs_reader_stack(reader, 4)->frame_count, 4);
    cr_assert_eq(vs_reader_stack(reader, 4)->frames[3], 1ULL << 63);
    cr_assert_eq(vs_reader_stack(reader, 4)->generation, 2);
    cr_assert_null(vs_reader_stack(reader, 5));
    cr_assert_eq(vs_reader_stack_count(reader), 4);
    for (uint32_t i = 0; i < 4; i++)
        cr_assert_eq(vs_reader_stack_id(reader, i), i + 1);
    cr_assert_str_eq(vs_reader_code(reader, 1)->name, "Mödel");
    cr_assert_eq(vs_reader_code(reader, 2)->first_line, 20);
    cr_assert_null(vs_reader_code(reader, 3));
    cr_assert_eq(vs_reader_symbol(reader, 1, 0x1000)->count, 3);
    cr_assert_str_eq(vs_reader_symbol(reader, 1, 0x1000)->frames[1].function, "allocate");
    cr_assert_eq(vs_reader_symbol(reader, 1, 0x2000)->count, 0);
    cr_assert_null(vs_reader_symbol(reader, 1, 0x3000));
    cr_assert_eq(vs_reader_device_count(reader), 1);
    cr_assert_eq(vs_reader_device(reader, 0)->total_bytes, 80ULL << 30);
    cr_assert_str_eq(vs_reader_device(reader, 0)->pci_id, "0000:01:00.0");
    cr_assert_null(vs_reader_device(reader, 1));
    cr_assert_str_eq(vs_reader_meta(reader, "process"),
                     "{\"pid\":41,\"exe\":\"/usr/bin/python3\",\"title\":\"b\",\"rank\":3}");
    cr_assert_null(vs_reader_meta(reader, "end"));
    vs_reader_close(reader);
    vs_bytes_free(&file);
}

Test(reader, what_cannot_be_read_is_named)
{
    struct vs_bytes file = {0};
    struct vs_reader *reader;
    struct vs_error error;
    shape_find("newer")->make(&file);
    cr_assert_eq(vs_reader_open_memory(file.data, file.bytes, "x.vscope", &reader, &error),
                 -ENOTSUP);
    cr_assert_not_null(strstr(error.text, "format 2"), "%s", error.text);
    file.bytes = 0;
    shape_find("critical")->make(&file);
    cr_assert_eq(vs_reader_open_memory(file.data, file.bytes, "x.vscope", &reader, &error),
                 -ENOTSUP);
    cr_assert_not_null(strstr(error.text, "0x8123"), "%s", error.text);
    vs_bytes_free(&file);
}

static int open_path(const char *path, struct vs_error *error)
{
    struct vs_reader *reader;
    int result = vs_reader_open(path, &reader, error);
    cr_assert_neq(strlen(error->text), 0);
    cr_assert_null(strchr(error->text, '\n'), "one line: %s", error->text);
    cr_assert_not_null(strstr(error->text, path), "names the file: %s", error->text);
    cr_assert_null(reader);
    return result;
}

Test(reader, paths_that_are_no_trace)
{
    char folder[] = "/tmp/vs-reader-XXXXXX", path[64];
    struct vs_error error;
    cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(open_path(folder, &error), -EISDIR);
    snprintf(path, sizeof path, "%s/missing", folder);
    cr_assert_eq(open_path(path, &error), -ENOENT);
    snprintf(path, sizeof path, "%s/fifo", folder);
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_assert_eq(open_path(path, &error), -EINVAL);
    unlink(path);
    snprintf(path, sizeof path, "%s/file", folder);
    FILE *file = fopen(path, "w");
    fclose(file);
    cr_assert_eq(open_path(path, &error), -EINVAL);
    cr_assert_not_null(strstr(error.text, "empty"), "%s", error.text);
    file = fopen(path, "w");
    for (int i = 0; i < 500; i++)
        fputs("this is no trace at all\n", file);
    fclose(file);
    cr_assert_eq(open_path(path, &error), -EINVAL);
    cr_assert_not_null(strstr(error.text, "not a vramscope trace"), "%s", error.text);
    unlink(path);
    rmdir(folder);
}
