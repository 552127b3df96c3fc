/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a trace of a training-like stream and reads it back, with the time of
 * each (processor time: the machine may be busy): trace-speed EVENTS FILE. Fails when not every
 * event comes back as it was.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "trace.h"

#define CHUNK_EVENTS 8192U
#define ZSTD_LEVEL 3
#define BLOCKS 512U

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* A caching layer's stream: blocks are taken and given back, totals ride along. */
struct stream {
    uint64_t random, sequence, time_ns, allocated;
    uint64_t sizes[BLOCKS]; /* 0: free */
};

static uint64_t draw(struct stream *stream)
{
    stream->random ^= stream->random << 13;
    stream->random ^= stream->random >> 7;
    stream->random ^= stream->random << 17;
    return stream->random;
}

static void next_event(struct stream *stream, struct vs_sequenced_event *out)
{
    uint64_t block = draw(stream) % BLOCKS;
    bool take = stream->sizes[block] == 0;
    uint64_t size = take ? 512U << draw(stream) % 14 : stream->sizes[block];
    stream->sizes[block] = take ? size : 0;
    stream->allocated += take ? size : 0 - size;
    stream->time_ns += 800 + draw(stream) % 4000;
    *out =
        (struct vs_sequenced_event){.sequence = stream->sequence,
                                    .thread = 4242,
                                    .cells = 2,
                                    .event = {.time_ns = stream->time_ns,
                                              .address = 0x7f4000000000 + block * (8U << 20),
                                              .size = size,
                                              .extra = {stream->allocated, 4ULL << 30},
                                              .free_bytes = VS_FREE_UNKNOWN,
                                              .module = 3,
                                              .stack = 1 + (uint32_t)(block % 97),
                                              .call = 12,
                                              .label = 12,
                                              .kind = take ? VS_KIND_FW_ALLOC : VS_KIND_FW_FREE}};
    stream->sequence += 2;
}

static void start(struct stream *stream)
{
    *stream = (struct stream){.random = 88172645463325252U, .sequence = 65536, .time_ns = 1};
}

static int write_trace(int fd, uint64_t count, uint64_t *bytes)
{
    struct vs_writer *writer;
    struct stream stream;
    start(&stream);
    int error = vs_writer_create(fd, CHUNK_EVENTS, ZSTD_LEVEL, &writer);
    if (error != 0)
        return error;
    for (uint64_t i = 0; i < count && error == 0; i++) {
        struct vs_sequenced_event event;
        next_event(&stream, &event);
        error = vs_writer_event(writer, &event);
    }
    *bytes = vs_writer_bytes(writer);
    int closing = vs_writer_close(writer, true);
    return error != 0 ? error : closing;
}

/* Reads everything; with `check` compares each event with the stream. The events, or an error. */
static int64_t read_trace(struct vs_reader *reader, bool check)
{
    const struct vs_sequenced_event *events;
    struct stream stream;
    int64_t read = 0;
    size_t count;
    int got;
    start(&stream);
    vs_reader_rewind(reader);
    while ((got = vs_reader_next_block(reader, &events, &count)) == 1) {
        for (size_t i = 0; check && i < count; i++) {
            struct vs_sequenced_event event;
            next_event(&stream, &event);
            if (memcmp(&event, &events[i], sizeof event) != 0)
                return -EBADMSG;
        }
        read += (int64_t)count;
    }
    return got < 0 ? got : read;
}

static void tell(const char *what, uint64_t count, double took)
{
    printf("%-8s %6.3f s  %7.1f ns per event  %6.2f M events/s\n", what, took,
           took * 1e9 / (double)count, (double)count / took / 1e6);
}

int main(int count, char **arguments)
{
    uint64_t events = count == 3 ? strtoull(arguments[1], NULL, 10) : 0, bytes = 0;
    struct vs_reader *reader;
    struct vs_error why;
    if (events == 0)
        return 2;
    int fd = open(arguments[2], O_RDWR | O_CREAT | O_TRUNC, 0600);
    double before = seconds();
    if (fd < 0 || write_trace(fd, events, &bytes) != 0)
        return 1;
    tell("write", events, seconds() - before);
    close(fd);
    before = seconds();
    if (vs_reader_open(arguments[2], &reader, &why) != 0)
        return 1;
    tell("open", events, seconds() - before);
    before = seconds();
    bool whole = read_trace(reader, false) == (int64_t)events;
    tell("read", events, seconds() - before);
    whole = whole && read_trace(reader, true) == (int64_t)events;
    printf("%" PRIu64 " bytes, %.2f per event\n", bytes, (double)bytes / (double)events);
    vs_reader_close(reader);
    unlink(arguments[2]);
    return whole ? 0 : 1;
}
