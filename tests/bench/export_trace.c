/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a trace of a training-like stream of a framework's blocks, for measuring
 * how fast readers are: export_trace EVENTS OUT.vscope. Steps of 1000 blocks from 200
 * stacks of 12 frames, a tenth of them kept to the next step.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frame_word.h"
#include "trace.h"

enum { STACKS = 200, FRAMES = 12, CODES = 60, BLOCKS = 1000, KEPT = 100, LABEL = 1 };
#define SEGMENT (64ULL << 30)
#define BASE 0x700000000000ULL
#define CHUNK_EVENTS 16384U

struct stream {
    struct vs_writer *writer;
    uint64_t sequence, time_ns, live, random;
    uint64_t sizes[BLOCKS];
};

static void check(int result)
{
    if (result < 0) {
        fprintf(stderr, "export_trace: %s\n", strerror(-result));
        exit(1);
    }
}

static uint64_t next_random(struct stream *stream)
{
    stream->random = stream->random * 6364136223846793005ULL + 1442695040888963407ULL;
    return stream->random >> 33;
}

static void define(struct stream *stream)
{
    static const char process[] = "{\"pid\":7,\"exe\":\"/usr/bin/python3.11\"}";
    static const char clock[] = "{\"start\":{\"monotonic_ns\":1000000000}}";
    struct vs_device_def device = {.total_bytes = SEGMENT + (SEGMENT >> 2), .name = "Simulated"};
    check(vs_writer_meta(stream->writer, "process", process, strlen(process)));
    check(vs_writer_meta(stream->writer, "clock", clock, strlen(clock)));
    check(vs_writer_device(stream->writer, &device));
    check(vs_writer_string(stream->writer, LABEL, "cudaMalloc", strlen("cudaMalloc")));
    for (uint32_t i = 1; i <= CODES; i++) {
        char name[32];
        snprintf(name, sizeof(name), "Layer%u.forward", i);
        struct vs_code_def code = {.id = i, .first_line = 1, .name = name, .file = "/home/u/m.py"};
        check(vs_writer_code(stream->writer, &code));
    }
    for (uint32_t i = 1; i <= STACKS; i++) {
        uint64_t frames[FRAMES];
        for (uint32_t at = 0; at < FRAMES; at++)
            frames[at] =
                vs_frame_interpreter((i * 7 + at * at) % CODES + 1, 10 + (i + at) % 50, true);
        struct vs_stack_def stack = {.id = i, .frame_count = FRAMES, .frames = frames};
        check(vs_writer_stack(stream->writer, &stack));
    }
}

static void put(struct stream *stream, const struct vs_event *fields)
{
    struct vs_sequenced_event event = {
        .sequence = stream->sequence, .thread = 7, .cells = 2, .event = *fields};
    stream->time_ns += 800 + next_random(stream) % 400;
    event.event.time_ns = stream->time_ns;
    event.event.free_bytes = VS_FREE_UNKNOWN;
    check(vs_writer_event(stream->writer, &event));
    stream->sequence += 2;
}

static void put_block(struct stream *stream, uint8_t kind, size_t block)
{
    stream->live += kind == VS_KIND_FW_ALLOC ? stream->sizes[block] : -stream->sizes[block];
    struct vs_event event = {.kind = kind,
                             .address = BASE + block * (SEGMENT / BLOCKS),
                             .size = stream->sizes[block],
                             .stack = (uint32_t)(block % STACKS) + 1,
                             .extra = {stream->live, SEGMENT}};
    put(stream, &event);
}

static void run(struct stream *stream, uint64_t events)
{
    struct vs_event segment = {
        .kind = VS_KIND_ALLOC, .address = BASE, .size = SEGMENT, .call = LABEL, .label = LABEL};
    put(stream, &segment);
    for (uint64_t written = 1; written < events; written += 2 * (BLOCKS - KEPT)) {
        for (size_t block = written == 1 ? 0 : KEPT; block < BLOCKS; block++) {
            stream->sizes[block] = (next_random(stream) % 4096 + 1) * 4096;
            put_block(stream, VS_KIND_FW_ALLOC, block);
        }
        for (size_t block = BLOCKS; block-- > KEPT;)
            put_block(stream, VS_KIND_FW_FREE, block);
    }
}

int main(int argc, char **argv)
{
    struct stream stream = {.sequence = 64, .time_ns = 1000000000};
    int fd = argc == 3 ? open(argv[2], O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0666) : -1;
    if (fd < 0) {
        fputs("usage: export_trace EVENTS OUT.vscope\n", stderr);
        return 2;
    }
    check(vs_writer_create(fd, CHUNK_EVENTS, 3, &stream.writer));
    define(&stream);
    run(&stream, strtoull(argv[1], NULL, 10));
    check(vs_writer_close(stream.writer, true));
    return close(fd) == 0 ? 0 : 1;
}
