/* SPDX-License-Identifier: Apache-2.0 */
/* Frames below events: see dump_stacks.h. */
#include "dump_stacks.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INDENT "             "
#define PAGE_IDS 65536U

/* The ids shown so far, one bit each, in pages made when they are needed. */
struct dump_stacks {
    struct vs_frames *frames;
    uint64_t *shown[UINT32_MAX / PAGE_IDS + 1];
};

int dump_stacks_new(const struct vs_reader *reader, struct dump_stacks **out)
{
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return -ENOMEM;
    int error = vs_frames_new(reader, &(*out)->frames);
    if (error != 0) {
        dump_stacks_free(*out);
        *out = NULL;
    }
    return error;
}

void dump_stacks_free(struct dump_stacks *stacks)
{
    if (stacks == NULL)
        return;
    vs_frames_free(stacks->frames);
    for (size_t i = 0; i < sizeof stacks->shown / sizeof stacks->shown[0]; i++)
        free(stacks->shown[i]);
    free(stacks);
}

/* ---- text ------------------------------------------------------------------------------ */

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static const char *or_unknown(const char *text)
{
    return text == NULL ? "?" : text;
}

static void print_native(const struct vs_frame *frame)
{
    const char *module = frame->module == NULL ? NULL : file_name(frame->module);
    if (frame->function == NULL && module == NULL) {
        printf("0x%" PRIx64, frame->address);
        return;
    }
    if (frame->function == NULL)
        printf("%s+0x%" PRIx64, module, frame->address);
    else
        printf("%s (%s)", frame->function, or_unknown(module));
    if (frame->file != NULL && frame->line != 0)
        printf(" %s:%" PRIu32, frame->file, frame->line);
    else if (frame->file != NULL)
        printf(" %s", frame->file);
    if (frame->inlined)
        fputs(" inlined", stdout);
}

static void print_frame(const struct vs_frame *frame)
{
    fputs(INDENT, stdout);
    switch (frame->kind) {
    case VS_FRAME_PYTHON:
        printf("py: %s (%s", or_unknown(frame->function), or_unknown(frame->file));
        if (frame->line != 0)
            printf(":%" PRIu32, frame->line);
        putchar(')');
        break;
    case VS_FRAME_NATIVE:
        print_native(frame);
        break;
    case VS_FRAME_NOTE:
        printf("-- %s", frame->function);
        break;
    }
    putchar('\n');
}

int dump_stacks_text(struct dump_stacks *stacks, uint32_t stack)
{
    const struct vs_frame *list;
    long count = stack == 0 ? 0 : vs_frames_of(stacks->frames, stack, &list);
    if (stack != 0 && count == 0)
        printf(INDENT "-- the trace does not say what stack %" PRIu32 " is\n", stack);
    for (long i = 0; i < count; i++)
        print_frame(&list[i]);
    return count < 0 ? (int)count : 0;
}

/* ---- JSON ------------------------------------------------------------------------------- */

static void set_text(json_t *object, const char *name, const char *text)
{
    if (text != NULL)
        json_object_set_new(object, name, json_string(text));
}

static json_t *frame_json(const struct vs_frame *frame)
{
    static const char *const kinds[] = {
        [VS_FRAME_NATIVE] = "native", [VS_FRAME_PYTHON] = "python", [VS_FRAME_NOTE] = "note"};
    json_t *object = json_object();
    set_text(object, "kind", kinds[frame->kind]);
    set_text(object, frame->kind == VS_FRAME_NOTE ? "text" : "function", frame->function);
    set_text(object, "file", frame->file);
    if (frame->line != 0)
        json_object_set_new(object, "line", json_integer(frame->line));
    set_text(object, "module", frame->module);
    if (frame->kind == VS_FRAME_NATIVE)
        json_object_set_new(object, "address", json_integer((json_int_t)frame->address));
    if (frame->inlined)
        json_object_set_new(object, "inlined", json_true());
    return object;
}

/* 1 when the id had not been shown, 0 when it had, -ENOMEM. */
static int is_new(struct dump_stacks *stacks, uint32_t stack)
{
    uint64_t **page = &stacks->shown[stack / PAGE_IDS], bit = 1ULL << stack % 64;
    if (*page == NULL)
        *page = calloc(PAGE_IDS / 64, sizeof **page);
    if (*page == NULL)
        return -ENOMEM;
    uint64_t *word = &(*page)[stack % PAGE_IDS / 64];
    bool shown = (*word & bit) != 0;
    *word |= bit;
    return !shown;
}

int dump_stacks_json(struct dump_stacks *stacks, uint32_t stack)
{
    int fresh = stack == 0 ? 0 : is_new(stacks, stack);
    if (fresh <= 0)
        return fresh;
    const struct vs_frame *list;
    long count = vs_frames_of(stacks->frames, stack, &list);
    if (count < 0)
        return (int)count;
    json_t *frames = json_array();
    for (long i = 0; i < count; i++)
        json_array_append_new(frames, frame_json(&list[i]));
    json_t *object = json_pack("{s:I, s:o}", "stack", (json_int_t)stack, "frames", frames);
    if (object == NULL)
        return -ENOMEM;
    json_dumpf(object, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(object);
    return 0;
}
