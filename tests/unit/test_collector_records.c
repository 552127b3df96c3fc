/* SPDX-License-Identifier: Apache-2.0 */
/* From the ring's records to the trace: stacks, code objects, what is hidden; facts of capture. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../collector/process.h"
#include "../../collector/records.h"
#include "../../formats/frame_word.h"
#include "../../formats/ring.h"

static char folder[] = "/tmp/vs-records-XXXXXX";
static struct output output;
static struct records records;
static struct drain_record record;

static void set_up(void)
{
    char path[64];
    struct vs_error error = {""};
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/t.vscope", folder);
    cr_assert_eq(output_open(&output, path, &error), 0, "%s", error.text);
    records = (struct records){.output = &output, .resolution_ns = 1};
}

static void tear_down(void)
{
    unlink(output.path);
    rmdir(folder);
}

TestSuite(collector_records, .init = set_up, .fini = tear_down);

/* A record of `bytes` of payload in as many cells as it takes. */
static void take(struct vs_record_head head, const void *payload, uint32_t bytes)
{
    memset(&record, 0, sizeof record);
    head.bytes = head.bytes ? head.bytes : bytes;
    record.cells = 3;
    while (VS_CELL_FIRST_BODY + (record.cells - 1) * VS_CELL_NEXT_BODY < sizeof head + bytes)
        record.cells++;
    record.body_bytes = VS_CELL_FIRST_BODY + (record.cells - 1) * VS_CELL_NEXT_BODY;
    memcpy(record.body, &head, sizeof head);
    memcpy(record.body + sizeof head, payload, bytes);
    records_take(&records, &record);
}

static void take_stack(uint32_t id, uint32_t generation, uint32_t count, const uint64_t *words)
{
    uint8_t payload[sizeof(struct vs_record_stack) + 64 * sizeof *words];
    struct vs_record_stack stack = {.generation = generation};
    memcpy(payload, &stack, sizeof stack);
    memcpy(payload + sizeof stack, words, count * sizeof *words);
    take((struct vs_record_head){.type = VS_RECORD_STACK, .id = id, .aux = count}, payload,
         (uint32_t)(sizeof stack + count * sizeof *words));
}

static void take_code(uint32_t id, uint32_t line, const char *name, const char *file)
{
    uint8_t payload[512];
    struct vs_record_code code = {.first_line = line, .name_bytes = (uint32_t)strlen(name)};
    memcpy(payload, &code, sizeof code);
    memcpy(payload + sizeof code, name, strlen(name));
    memcpy(payload + sizeof code + strlen(name), file, strlen(file));
    take((struct vs_record_head){.type = VS_RECORD_CODE, .id = id}, payload,
         (uint32_t)(sizeof code + strlen(name) + strlen(file)));
}

static struct vs_reader *written(void)
{
    struct vs_reader *reader = NULL;
    struct vs_error error = {""};
    output_close(&output, true);
    cr_assert_eq(vs_reader_open(output.path, &reader, &error), 0, "%s", error.text);
    return reader;
}

Test(collector_records, stacks_and_code_objects)
{
    const uint64_t words[] = {0x7f0000001234, 0x7f0000005678, vs_frame_interpreter(5, 12, true)};
    take_stack(3, 9, 3, words);
    take_stack(4, 0, 0, words);
    take_code(5, 10, "Model.forward", "/home/ann/train.py");
    take_code(6, 0, "", "");
    struct vs_reader *reader = written();
    cr_assert_eq(records.bad, 0);
    cr_assert_eq(vs_reader_stack(reader, 3)->generation, 9);
    cr_assert_eq(vs_reader_stack(reader, 3)->frame_count, 3);
    cr_assert_arr_eq(vs_reader_stack(reader, 3)->frames, words, sizeof words);
    cr_assert_eq(vs_reader_stack(reader, 4)->frame_count, 0);
    cr_assert_eq(vs_reader_code(reader, 5)->first_line, 10);
    cr_assert_str_eq(vs_reader_code(reader, 5)->name, "Model.forward");
    cr_assert_str_eq(vs_reader_code(reader, 5)->file, "/home/ann/train.py");
    cr_assert_str_eq(vs_reader_code(reader, 6)->file, "");
    vs_reader_close(reader);
}

Test(collector_records, senseless_ones_are_counted_and_left_out)
{
    struct vs_record_code code = {.first_line = 1, .name_bytes = 1};
    uint64_t word = 1;
    take((struct vs_record_head){.type = VS_RECORD_STACK, .id = 1}, &word, 4);
    take((struct vs_record_head){.type = VS_RECORD_STACK, .id = 1, .aux = 1}, &word, 8);
    take((struct vs_record_head){.type = VS_RECORD_STACK, .id = 1, .aux = UINT32_MAX}, &word, 8);
    take((struct vs_record_head){.type = VS_RECORD_CODE, .id = 1}, &code, 4);
    take((struct vs_record_head){.type = VS_RECORD_CODE, .id = 1}, &code, sizeof code);
    take((struct vs_record_head){.type = VS_RECORD_CODE, .id = 1, .bytes = 500}, &code,
         sizeof code);
    cr_assert_eq(records.taken, 6);
    cr_assert_eq(records.bad, 6);
    struct vs_reader *reader = written();
    cr_assert_null(vs_reader_stack(reader, 1));
    cr_assert_null(vs_reader_code(reader, 1));
    vs_reader_close(reader);
}

Test(collector_records, private_traces_hide_the_programs_files)
{
    records.hide = true;
    take_code(1, 1, "train", "/home/ann/secret/train.py");
    take_code(2, 1, "forward", "/home/ann/env/lib/python3.11/site-packages/torch/nn/linear.py");
    take_code(3, 1, "run", "/usr/lib/python3.11/threading.py");
    take_code(4, 1, "_find_and_load", "<frozen importlib._bootstrap>");
    take_code(5, 1, "nowhere", "");
    struct vs_reader *reader = written();
    for (uint32_t id = 1; id <= 5; id++)
        cr_assert_null(strstr(vs_reader_code(reader, id)->file, "ann"));
    cr_assert_null(strstr(vs_reader_code(reader, 1)->file, "train"));
    cr_assert_not_null(
        strstr(vs_reader_code(reader, 2)->file, "/site-packages/torch/nn/linear.py"));
    cr_assert_not_null(strstr(vs_reader_code(reader, 3)->file, "/lib/python3.11/threading.py"));
    cr_assert_str_eq(vs_reader_code(reader, 4)->file, "<frozen importlib._bootstrap>");
    cr_assert_str_eq(vs_reader_code(reader, 5)->file, "");
    vs_reader_close(reader);
}

/* ---- facts ------------------------------------------------------------------------------------
 */

static void expect_python(uint32_t state, uint32_t version, const char *state_text,
                          const char *python)
{
    struct vs_ring_header *header = calloc(1, sizeof *header);
    const struct hooks_figures figures = {0};
    atomic_store(&header->python_state, state);
    atomic_store(&header->python_version, version);
    json_t *hooks = process_hooks_json(header, &figures);
    cr_assert_str_eq(json_string_value(json_object_get(hooks, "python_state")), state_text);
    const char *got = json_string_value(json_object_get(hooks, "python"));
    cr_assert_eq(got == NULL, python == NULL);
    if (python != NULL)
        cr_assert_str_eq(got, python);
    json_decref(hooks);
    free(header);
}

Test(collector_records, python_by_its_version)
{
    expect_python(VS_PYTHON_NONE, 0, "none", NULL);
    expect_python(VS_PYTHON_READY, 0x030b07f0, "ready", "3.11.7");
    expect_python(VS_PYTHON_FINALIZED, 0x030e00f0, "finalized", "3.14.0");
    expect_python(VS_PYTHON_READY, 0x030f00a2, "ready", "3.15.0a2");
    expect_python(VS_PYTHON_READY, 0x030e00c1, "ready", "3.14.0rc1");
    expect_python(VS_PYTHON_UNSUPPORTED, 0x03100000, "unsupported", "unsupported 3.16");
    expect_python(99, 0, "none", NULL);
}

Test(collector_records, how_stacks_were_taken)
{
    static const char *const methods[] = {"off", "tables", "frame pointers", "off"};
    struct vs_ring_header *header = calloc(1, sizeof *header);
    const struct hooks_figures figures = {0};
    atomic_store(&header->stacks_sent, 5);
    atomic_store(&header->stacks_inline, 4);
    atomic_store(&header->stacks_lost, 3);
    atomic_store(&header->native_stopped, 2);
    atomic_store(&header->nvtx_left_out, 6);
    atomic_store(&header->nvtx_unnamed, 7);
    for (uint32_t method = 0; method < 4; method++) {
        atomic_store(&header->native_method, method);
        json_t *hooks = process_hooks_json(header, &figures);
        cr_assert_str_eq(json_string_value(json_object_get(hooks, "native_method")),
                         methods[method]);
        cr_assert_eq(json_integer_value(json_object_get(hooks, "stacks_sent")), 5);
        cr_assert_eq(json_integer_value(json_object_get(hooks, "stacks_inline")), 4);
        cr_assert_eq(json_integer_value(json_object_get(hooks, "stacks_lost")), 3);
        cr_assert_eq(json_integer_value(json_object_get(hooks, "native_stopped")), 2);
        cr_assert_eq(json_integer_value(json_object_get(hooks, "nvtx_left_out")), 6);
        cr_assert_eq(json_integer_value(json_object_get(hooks, "nvtx_unnamed")), 7);
        json_decref(hooks);
    }
    free(header);
}

Test(collector_runtimes, by_the_names_of_their_files)
{
    static const char *const paths[] = {"/x/libcudart.so.12",     "/y/libcudart-d0da41ae.so.11.0",
                                        "/z/libcudart.so.12",     "/x/libcublas.so.12",
                                        "/x/libcudart.so.12.tmp", "/x/libcudart.so"};
    struct process_runtimes runtimes = {0};
    cr_assert_null(process_runtimes_json(&runtimes));
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        process_note_runtime(&runtimes, paths[i]);
    json_t *meta = process_runtimes_json(&runtimes);
    json_t *versions = json_object_get(meta, "runtime_versions");
    cr_assert_eq(json_array_size(versions), 2);
    cr_assert_str_eq(json_string_value(json_array_get(versions, 0)), "12");
    cr_assert_str_eq(json_string_value(json_array_get(versions, 1)), "11.0");
    json_decref(meta);
}
