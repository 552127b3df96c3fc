/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A writer that dies at any of its writes: a trace with small chunks, merges,
 * room used again and facts replaced is written with every write recorded; then
 * the file is made anew as it was after each write, and in the middle of each,
 * and read. Every event that had been flushed must be there once, every
 * definition and fact at least as new as the last flush, and nothing damaged.
 * kills [FOLDER]: with a folder, a short trace, whose states are put there as files.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shapes.h"
#include "trace.h"

#define SECTOR 512U /* what a disk writes whole or not at all */
#define HEADER 64U
#define HEADER_STEP 8U
#define RECURRING_ID 9U
#define FILE_STATES_MOST 80U

/* One pwrite, or (data NULL) one ftruncate to `offset`. */
struct step {
    uint8_t *data;
    size_t bytes;
    uint64_t offset;
};

/* What a reader must find after `steps` of them. */
struct promise {
    size_t steps;
    uint64_t events, rounds;
};

static struct {
    struct step *steps;
    size_t count, capacity;
    struct promise *promises;
    size_t promise_count, promise_capacity;
    uint64_t given_events, given_rounds;
} record;

static void *grown(void *list, size_t count, size_t *capacity, size_t item)
{
    if (count < *capacity)
        return list;
    *capacity = *capacity ? *capacity * 2 : 256;
    list = realloc(list, *capacity * item);
    if (list == NULL)
        abort();
    return list;
}

static void add_step(const void *data, size_t bytes, uint64_t offset)
{
    record.steps = grown(record.steps, record.count, &record.capacity, sizeof *record.steps);
    struct step step = {data == NULL ? NULL : malloc(bytes + 1), bytes, offset};
    if (data != NULL)
        memcpy(step.data, data, bytes);
    record.steps[record.count++] = step;
}

ssize_t __real_pwrite(int fd, const void *data, size_t bytes, off_t offset);
int __real_ftruncate(int fd, off_t bytes);
ssize_t __wrap_pwrite(int fd, const void *data, size_t bytes, off_t offset);
int __wrap_ftruncate(int fd, off_t bytes);

ssize_t __wrap_pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
    add_step(data, bytes, (uint64_t)offset);
    return __real_pwrite(fd, data, bytes, offset);
}

int __wrap_ftruncate(int fd, off_t bytes)
{
    add_step(NULL, 0, (uint64_t)bytes);
    return __real_ftruncate(fd, bytes);
}

static void promise(void)
{
    record.promises = grown(record.promises, record.promise_count, &record.promise_capacity,
                            sizeof *record.promises);
    record.promises[record.promise_count++] =
        (struct promise){record.count, record.given_events, record.given_rounds};
}

/* ---- writing ------------------------------------------------------------------------- */

static void check(int result)
{
    if (result == 0)
        return;
    fprintf(stderr, "kills: writing: %s\n", strerror(-result));
    exit(2);
}

static void write_round(struct vs_writer *writer, uint64_t round, uint64_t events)
{
    char text[64];
    int bytes = snprintf(text, sizeof text, "round %" PRIu64, round);
    check(vs_writer_string(writer, RECURRING_ID, text, (size_t)bytes));
    check(vs_writer_string(writer, 1000 + (uint32_t)round, text, (size_t)bytes));
    if (round % 3 == 0)
        check(vs_writer_stack(writer, &(struct vs_stack_def){.id = 1 + (uint32_t)round,
                                                             .frame_count = 3,
                                                             .frames = (uint64_t[]){1, round, 3}}));
    bytes = snprintf(text, sizeof text, "{\"round\":%" PRIu64 "}", round);
    if (round % 2 == 0)
        check(vs_writer_meta(writer, "clock", text, (size_t)bytes));
    record.given_rounds = round + 1;
    for (uint64_t i = 0; i < events; i++) {
        struct vs_sequenced_event event;
        shape_event(record.given_events, &event);
        record.given_events++;
        check(vs_writer_event(writer, &event));
    }
    check(vs_writer_flush(writer));
    promise();
}

static void write_trace(uint64_t rounds, size_t chunk_events)
{
    struct vs_writer *writer;
    char path[] = "/tmp/vs-kills-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0)
        exit(2);
    unlink(path);
    promise();
    check(vs_writer_create(fd, chunk_events, 3, &writer));
    check(vs_writer_meta(writer, "process", "{\"pid\":77}", 10));
    for (uint64_t round = 0; round < rounds; round++)
        write_round(writer, round, round * round * 7 % 23);
    check(vs_writer_close(writer, true));
    promise();
    close(fd);
}

/* ---- states of the file ---------------------------------------------------------------- */

struct image {
    uint8_t *data;
    size_t bytes, capacity;
};

static void apply(struct image *image, const struct step *step, size_t bytes)
{
    size_t end = (size_t)step->offset + bytes;
    if (step->data == NULL) {
        image->bytes = (size_t)step->offset;
        return;
    }
    if (end > image->capacity) {
        image->data = realloc(image->data, end * 2);
        image->capacity = end * 2;
    }
    if (end > image->bytes) {
        memset(image->data + image->bytes, 0, end - image->bytes);
        image->bytes = end;
    }
    memcpy(image->data + step->offset, step->data, bytes);
}

struct tally {
    uint64_t states, torn, wrong;
};

static bool wrong(const char *what, size_t step, size_t bytes)
{
    printf("after %zu writes and %zu bytes: %s\n", step, bytes, what);
    return false;
}

static bool text_is_new(const char *text, const char *format, uint64_t rounds)
{
    uint64_t round;
    return rounds == 0 ||
           (text != NULL && sscanf(text, format, &round) == 1 && round + 1 >= rounds);
}

static bool has_definitions(struct vs_reader *reader, uint64_t rounds)
{
    char expected[64];
    for (uint64_t round = 0; round < rounds; round++) {
        const char *text = vs_reader_string(reader, 1000 + (uint32_t)round);
        snprintf(expected, sizeof expected, "round %" PRIu64, round);
        if (text == NULL || strcmp(text, expected) != 0)
            return false;
        if (round % 3 == 0 && vs_reader_stack(reader, 1 + (uint32_t)round) == NULL)
            return false;
    }
    return text_is_new(vs_reader_string(reader, RECURRING_ID), "round %" SCNu64, rounds) &&
           text_is_new(vs_reader_meta(reader, "clock"), "{\"round\":%" SCNu64,
                       rounds == 0 ? 0 : (rounds - 1) / 2 * 2 + 1) &&
           (rounds == 0 || vs_reader_meta(reader, "process") != NULL);
}

/* Events 0, 1, … once each; how many, UINT64_MAX when one is wrong. */
static uint64_t count_events(struct vs_reader *reader)
{
    struct vs_sequenced_event event, expected;
    uint64_t count = 0;
    while (vs_reader_next(reader, &event) == 1) {
        shape_event(count++, &expected);
        if (memcmp(&event, &expected, sizeof event) != 0)
            return UINT64_MAX;
    }
    return count;
}

/* `whole`: headers are whole, so nothing may look damaged. */
static bool holds(const struct image *image, const struct promise *promised, size_t step,
                  size_t bytes, bool whole)
{
    struct vs_reader *reader;
    struct vs_error why;
    if (image->bytes < HEADER)
        return true; /* no file yet */
    if (vs_reader_open_memory(image->data, image->bytes, "state", &reader, &why) != 0)
        return promised->rounds == 0 || wrong(why.text, step, bytes);
    const struct vs_trace_status *status = vs_reader_status(reader);
    bool good = true;
    uint64_t events = count_events(reader);
    if (events == UINT64_MAX || events < promised->events || events > record.given_events)
        good = wrong("events are not as they were flushed", step, bytes);
    else if (status->missing_events != 0 || status->events != events)
        good = wrong("the figures say otherwise", step, bytes);
    else if (!has_definitions(reader, promised->rounds))
        good = wrong("definitions or facts are missing or old", step, bytes);
    else if (whole && (status->damaged_chunks != 0 || status->damaged_bytes != 0))
        good = wrong("something looks damaged", step, bytes);
    vs_reader_close(reader);
    return good;
}

static void put_file(const struct image *image, const char *folder, uint64_t number)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%04" PRIu64 ".vscope", folder, number);
    FILE *out = fopen(path, "wb");
    if (out == NULL || fwrite(image->data, 1, image->bytes, out) != image->bytes ||
        fclose(out) != 0)
        exit(2);
}

/* The write at `step` cut at `bytes`, on top of everything before it. */
static void try_torn(const struct image *before, size_t step, size_t bytes, bool whole,
                     const struct promise *promised, struct tally *tally)
{
    struct image torn = {malloc(before->bytes + 1), before->bytes, before->bytes};
    if (before->bytes > 0)
        memcpy(torn.data, before->data, before->bytes);
    apply(&torn, &record.steps[step], bytes);
    tally->torn++;
    tally->wrong += !holds(&torn, promised, step, bytes, whole);
    free(torn.data);
}

static void try_all(const char *folder, struct tally *tally)
{
    struct image image = {0};
    size_t at = 0;
    size_t every = folder == NULL ? 1 : record.count / FILE_STATES_MOST + 1;
    for (size_t step = 0; step <= record.count; step++) {
        while (at + 1 < record.promise_count && record.promises[at + 1].steps <= step)
            at++;
        tally->states++;
        tally->wrong += !holds(&image, &record.promises[at], step, 0, true);
        if (folder != NULL && step > 0 && (step % every == 0 || step == record.count))
            put_file(&image, folder, step);
        if (step == record.count)
            break;
        const struct step *next = &record.steps[step];
        for (size_t bytes = 1; bytes < next->bytes; bytes++) {
            /* Readers may look at any time: at headers half written as well. */
            bool sector = (next->offset + bytes) % SECTOR == 0;
            if (sector || (next->bytes <= HEADER && bytes % HEADER_STEP == 0))
                try_torn(&image, step, bytes, sector, &record.promises[at], tally);
        }
        apply(&image, next, next->bytes);
    }
    free(image.data);
}

int main(int count, char **arguments)
{
    const char *folder = count > 1 ? arguments[1] : NULL;
    struct tally tally = {0};
    if (folder != NULL)
        write_trace(30, 64);
    else
        write_trace(100, 256);
    try_all(folder, &tally);
    printf("%" PRIu64 " events in %zu writes: %" PRIu64 " states between them and %" PRIu64
           " within them, %" PRIu64 " wrong\n",
           record.given_events, record.count, tally.states, tally.torn, tally.wrong);
    return tally.wrong != 0 || tally.torn < 100;
}
