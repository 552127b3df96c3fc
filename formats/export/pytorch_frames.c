/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of a PyTorch snapshot: each stack, frame and text is written once. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "profile.h"
#include "pytorch_frames.h"

static const char *file_of(const struct vs_frame *frame)
{
    return frame->file != NULL ? frame->file : frame->module != NULL ? frame->module : "";
}

static void put_frame(struct vs_pickle *pickle, const struct vs_frame *frame)
{
    char unnamed[32];
    vs_pickle_members(pickle);
    vs_pickle_name(pickle, "filename");
    vs_pickle_name(pickle, file_of(frame));
    vs_pickle_name(pickle, "line");
    vs_pickle_number(pickle, frame->line);
    vs_pickle_name(pickle, "name");
    if (frame->function != NULL) {
        vs_pickle_name(pickle, frame->function);
    } else {
        snprintf(unnamed, sizeof(unnamed), "0x%" PRIx64, frame->address);
        vs_pickle_text(pickle, unnamed);
    }
    vs_pickle_dict_end(pickle);
}

static uint64_t hash_of(const struct vs_written_frame *frame)
{
    uint64_t parts[] = {frame->function == NULL ? 0 : vs_pickle_hash(frame->function),
                        vs_pickle_hash(frame->file), frame->address, frame->line},
             hash = 0;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        hash = (hash ^ parts[i]) * 0x9e3779b97f4a7c15ULL;
        hash ^= hash >> 31;
    }
    return hash;
}

static bool is_same(const struct vs_written_frame *a, const struct vs_written_frame *b)
{
    bool same_function = a->function == NULL || b->function == NULL
                             ? a->function == b->function
                             : strcmp(a->function, b->function) == 0;
    return same_function && strcmp(a->file, b->file) == 0 && a->address == b->address &&
           a->line == b->line;
}

static void put_frame_once(struct vs_snapshot *snapshot, const struct vs_frame *frame)
{
    struct vs_pickle *pickle = &snapshot->pickle;
    struct vs_written_frame key = {.function = frame->function,
                                   .file = file_of(frame),
                                   .address = frame->function == NULL ? frame->address : 0,
                                   .line = frame->line};
    struct vs_written_frame *known = vs_written_frames_put(&snapshot->written, hash_of(&key));
    if (known == NULL) {
        vs_sink_fail(pickle->sink, -ENOMEM);
    } else if (known->memo != 0 && is_same(known, &key)) {
        vs_pickle_again(pickle, known->memo - 1);
    } else {
        vs_pickle_dict(pickle);
        key.memo = vs_pickle_keep(pickle) + 1;
        *known = key;
        put_frame(pickle, frame);
    }
}

static uint32_t put_stack(struct vs_snapshot *snapshot, uint32_t stack)
{
    struct vs_pickle *pickle = &snapshot->pickle;
    struct vs_pickle_list list;
    const struct vs_frame *frames;
    long count = stack == 0 ? 0 : vs_frames_of(snapshot->frames, stack, &frames);
    if (count < 0)
        vs_sink_fail(pickle->sink, (int)count);
    vs_pickle_list(pickle);
    uint32_t memo = vs_pickle_keep(pickle);
    vs_pickle_items(pickle, &list);
    for (long i = 0; i < count; i++) {
        if (!vs_profile_shows(&frames[i]))
            continue;
        vs_pickle_item(pickle, &list);
        put_frame_once(snapshot, &frames[i]);
    }
    vs_pickle_list_end(pickle);
    return memo;
}

void vs_snapshot_frames(struct vs_snapshot *snapshot, uint32_t stack)
{
    vs_pickle_name(&snapshot->pickle, "frames");
    uint32_t *memo = vs_pickle_memos_put(&snapshot->stacks, stack);
    if (memo == NULL)
        vs_sink_fail(snapshot->pickle.sink, -ENOMEM);
    else if (*memo != 0)
        vs_pickle_again(&snapshot->pickle, *memo - 1);
    else
        *memo = put_stack(snapshot, stack) + 1;
}
