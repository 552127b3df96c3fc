/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace's events and stacks for test scripts, one JSON object a line, read by
 * the C reader: {"event":…} for each event with its stack id, {"stack":…} for
 * each stack with its words as they are and its frames as people read them.
 *
 *   print_stacks TRACE [--events | --stacks]      only the one or the other
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../formats/frame_word.h"
#include "../../../formats/frames.h"
#include "../../../formats/trace.h"

static void print(json_t *object)
{
    json_dumpf(object, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(object);
}

static json_t *text_or_null(const char *text)
{
    json_t *value = text == NULL ? NULL : json_string(text);
    return value == NULL ? json_null() : value;
}

static json_t *native_word(const struct vs_reader *reader, uint64_t word, uint32_t generation)
{
    uint64_t address = vs_frame_lookup_address(word);
    const struct vs_module_def *module = vs_reader_module_at(reader, address, generation);
    return json_pack("{s:o, s:I, s:I, s:I}", "module",
                     text_or_null(module == NULL ? NULL : module->path), "module_id",
                     (json_int_t)(module == NULL ? 0 : module->id), "offset",
                     (json_int_t)(module == NULL ? address : address - module->load_bias),
                     "address", (json_int_t)address);
}

static json_t *python_word(const struct vs_reader *reader, uint64_t word)
{
    const struct vs_code_def *code = vs_reader_code(reader, vs_frame_code(word));
    return json_pack("{s:o, s:o, s:I, s:b}", "function",
                     text_or_null(code == NULL ? NULL : code->name), "file",
                     text_or_null(code == NULL ? NULL : code->file), "line",
                     (json_int_t)vs_frame_line(word), "entry", (word & VS_FRAME_ENTRY) != 0);
}

static void print_stack(const struct vs_reader *reader, struct vs_frames *frames,
                        const struct vs_stack_def *stack)
{
    json_t *native = json_array();
    json_t *python = json_array();
    json_t *notes = json_array();
    json_t *merged = json_array();
    for (uint32_t i = 0; i < stack->frame_count; i++) {
        uint64_t word = stack->frames[i];
        if (vs_frame_note_of(word) != VS_STACK_NOTE_NONE) {
            json_array_append_new(notes, json_integer(vs_frame_note_of(word)));
        } else if (vs_frame_is_interpreter(word)) {
            json_array_append_new(python, python_word(reader, word));
        } else {
            json_array_append_new(native, native_word(reader, word, stack->generation));
        }
    }
    const struct vs_frame *list = NULL;
    long count = vs_frames_of(frames, stack->id, &list);
    for (long i = 0; i < count; i++) {
        json_array_append_new(
            merged, json_pack("{s:i, s:b, s:o, s:o, s:I, s:o}", "kind", list[i].kind, "inlined",
                              list[i].inlined, "function", text_or_null(list[i].function), "file",
                              text_or_null(list[i].file), "line", (json_int_t)list[i].line,
                              "module", text_or_null(list[i].module)));
    }
    print(json_pack("{s:I, s:I, s:o, s:o, s:o, s:o}", "stack", (json_int_t)stack->id, "generation",
                    (json_int_t)stack->generation, "native", native, "python", python, "notes",
                    notes, "merged", merged));
}

static int print_events(struct vs_reader *reader)
{
    struct vs_sequenced_event e;
    int status;
    while ((status = vs_reader_next(reader, &e)) > 0) {
        const char *call = vs_reader_string(reader, e.event.call);
        print(json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "event",
                        vs_kind_name(e.event.kind), "sequence", (json_int_t)e.sequence, "thread",
                        (json_int_t)e.thread, "address", (json_int_t)e.event.address, "size",
                        (json_int_t)e.event.size, "result", (json_int_t)e.event.result, "id",
                        (json_int_t)e.event.stack, "call", text_or_null(call)));
    }
    return status;
}

int main(int argc, char **argv)
{
    struct vs_reader *reader;
    struct vs_frames *frames;
    struct vs_error error;
    int status = 0;
    const char *only = argc > 2 ? argv[2] : "";
    if (argc < 2 || vs_reader_open(argv[1], &reader, &error) != 0 ||
        vs_frames_new(reader, &frames) != 0) {
        fprintf(stderr, "print_stacks: %s\n", argc < 2 ? "no trace given" : error.text);
        return 2;
    }
    if (strcmp(only, "--stacks") != 0) {
        status = print_events(reader);
    }
    size_t stacks = strcmp(only, "--events") != 0 ? vs_reader_stack_count(reader) : 0;
    for (size_t i = 0; i < stacks; i++) {
        print_stack(reader, frames, vs_reader_stack(reader, vs_reader_stack_id(reader, i)));
    }
    vs_frames_free(frames);
    vs_reader_close(reader);
    return status < 0 ? 1 : 0;
}
