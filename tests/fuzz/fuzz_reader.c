/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target of the trace reader. With libFuzzer (clang -fsanitize=fuzzer) or
 * with run_corpus.c under any compiler. Checksums keep nearly every mutation out,
 * so each input is read twice: as it is, and with its checksums made right.
 */
#include <stdlib.h>
#include <string.h>

#include "frames.h"
#include "packed.h"
#include "trace.h"
#include "trace_chunk.h"

/* What is packed goes through a decompressor first. */
static void unpack(const uint8_t *data, size_t bytes)
{
    struct vs_source source;
    struct vs_error error;
    if (vs_source_memory(data, bytes, &source) == 0)
        (void)vs_packed_open(&source, "fuzzed", &error);
    vs_source_close(&source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define HASH_OFFSET 56U

static void seal(uint8_t *header)
{
    vs_put_u64(header + HASH_OFFSET, vs_payload_hash(header, HASH_OFFSET));
}

/* Makes every checksum right that a reader will look at: outermost layer only. */
static void repair(uint8_t *data, size_t bytes)
{
    if (bytes < VS_FILE_HEADER_BYTES)
        return;
    uint32_t tag = vs_get_u32(data + 16);
    seal(data);
    for (size_t at = VS_FILE_HEADER_BYTES; at + VS_CHUNK_HEADER_BYTES <= bytes;
         at += VS_TRACE_ALIGN) {
        uint8_t *header = data + at;
        size_t behind = bytes - at - VS_CHUNK_HEADER_BYTES;
        if (memcmp(header, "VSSB", 4) == 0)
            vs_put_u32(header + 4, tag);
        else if (vs_chunk_magic(header) && vs_get_u32(header + 8) <= behind) {
            vs_put_u32(header + 44, tag);
            vs_put_u64(header + 48,
                       vs_payload_hash(header + VS_CHUNK_HEADER_BYTES, vs_get_u32(header + 8)));
        } else {
            continue;
        }
        seal(header);
    }
}

/* Looks at everything an event points to; the sum keeps the compiler from leaving it out. */
static uint64_t look_up(const struct vs_reader *reader, struct vs_frames *frames,
                        const struct vs_event *event)
{
    const char *call = vs_reader_string(reader, event->call);
    const struct vs_module_def *module = vs_reader_module(reader, event->module);
    const struct vs_frame *list;
    long frame_count = vs_frames_of(frames, event->stack, &list);
    uint64_t sum = call == NULL ? 0 : strlen(call);
    sum += module == NULL ? 0 : strlen(module->path) + module->build_id_bytes;
    for (long i = 0; i < frame_count; i++) {
        sum += list[i].line + (list[i].function == NULL ? 0 : strlen(list[i].function));
        sum += list[i].file == NULL ? 0 : strlen(list[i].file);
        sum += list[i].module == NULL ? 0 : strlen(list[i].module);
    }
    return sum + (uint64_t)vs_frames_own(list, frame_count > 0 ? (size_t)frame_count : 0);
}

static void read_all(const uint8_t *data, size_t bytes)
{
    static const char *const facts[] = {"process", "clock", "hooks", "end"};
    struct vs_reader *reader;
    struct vs_frames *frames;
    struct vs_error error;
    struct vs_sequenced_event event;
    uint64_t count = 0;
    volatile uint64_t sum = 0;
    if (vs_reader_open_memory(data, bytes, "fuzzed", &reader, &error) != 0)
        return;
    if (vs_frames_new(reader, &frames) != 0)
        abort(); /* no memory for a few hundred KiB */
    while (vs_reader_next(reader, &event) == 1) {
        sum += look_up(reader, frames, &event.event) + vs_reader_status(reader)->chunks;
        count++;
    }
    if (count != vs_reader_status(reader)->events)
        abort(); /* the status must tell what was shown */
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        sum += vs_reader_meta(reader, facts[i]) != NULL;
    for (size_t i = 0; i < vs_reader_device_count(reader); i++)
        sum += strlen(vs_reader_device(reader, i)->name);
    vs_frames_free(frames);
    vs_reader_close(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    uint8_t *copy = malloc(bytes ? bytes : 1);
    read_all(data, bytes);
    unpack(data, bytes);
    if (copy == NULL)
        return 0;
    if (bytes > 0)
        memcpy(copy, data, bytes);
    repair(copy, bytes);
    read_all(copy, bytes);
    free(copy);
    return 0;
}
