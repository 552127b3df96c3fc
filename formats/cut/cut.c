/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a cut trace, and finding how wide its windows can be. */
#include "cut.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cut_internal.h"

#define CHUNK_EVENTS 65536U
enum { ZSTD_LEVEL = 6, TRIES = 5 };

/* ---- opening ------------------------------------------------------------------------------ */

static int look(struct vs_cut *cut)
{
    const struct vs_trace_status *status = vs_reader_status(cut->reader);
    cut->events = status->events - status->ring_events;
    cut->stays = calloc(1, cut->events / 8 + 1);
    cut->out = calloc(1, cut->events / 8 + 1);
    return cut->stays == NULL || cut->out == NULL ? -ENOMEM : cut_look(cut);
}

int vs_cut_open(const char *path, struct vs_cut **out, struct vs_error *error)
{
    struct vs_cut *cut = calloc(1, sizeof(*cut));
    *out = NULL;
    error->text[0] = 0;
    int result = cut == NULL ? -ENOMEM : vs_reader_open(path, &cut->reader, error);
    if (result == 0) {
        cut->path = path;
        result = look(cut);
    }
    if (result == 0) {
        *out = cut;
        return 0;
    }
    if (error->text[0] == 0)
        snprintf(error->text, sizeof(error->text), "%s: %s while reading", path, strerror(-result));
    vs_cut_close(cut);
    return result;
}

void vs_cut_close(struct vs_cut *cut)
{
    if (cut == NULL)
        return;
    if (cut->reader != NULL)
        vs_reader_close(cut->reader);
    free(cut->stays);
    free(cut->out);
    free(cut->points);
    free(cut->old);
    free(cut->gaps);
    free(cut);
}

/* ---- writing -------------------------------------------------------------------------------- */

struct writing {
    struct vs_cut *cut;
    struct vs_writer *writer;
    struct vs_cut_used *used;
    uint64_t limit_bytes;
    uint64_t now;      /* number of the event at hand */
    uint64_t expected; /* index, as of the original, of the next one */
    uint64_t holes;    /* events missing so far */
    size_t gap;
};

static int write_mark(struct writing *writing, const struct vs_sequenced_event *before,
                      const struct vs_event *mark)
{
    /* Of no thread: what a thread's next event means for its calls is not said by a mark. */
    struct vs_sequenced_event event = {.sequence = before->sequence, .event = *mark};
    event.event.free_bytes = VS_FREE_UNKNOWN;
    event.event.device = VS_DEVICE_UNKNOWN;
    return vs_writer_event(writing->writer, &event);
}

/* The marks that stand before `event`. */
static int write_marks(struct writing *writing, const struct vs_sequenced_event *event)
{
    const struct vs_cut *cut = writing->cut;
    const struct vs_cut_gap *gap = writing->gap < cut->gap_count ? &cut->gaps[writing->gap] : NULL;
    int error = 0;
    if (gap != NULL && writing->now == gap->end) {
        const struct vs_event end = {.kind = VS_KIND_CUT_END, .time_ns = gap->to_ns};
        error = write_mark(writing, event, &end);
        writing->gap++;
        gap = writing->gap < cut->gap_count ? &cut->gaps[writing->gap] : NULL;
    }
    if (error == 0 && gap != NULL && writing->now == gap->first) {
        const struct vs_event begin = {.kind = VS_KIND_CUT,
                                       .time_ns = gap->from_ns,
                                       .size = gap->events,
                                       .extra = {gap->to_ns}};
        error = write_mark(writing, event, &begin);
    }
    return error;
}

/* Definitions first: what is written of the events is never without them. */
static int use_block(struct writing *writing, const struct vs_sequenced_event *events, size_t count)
{
    int error = 0;
    for (size_t i = 0; i < count && error == 0; i++)
        if (!cut_bit(writing->cut->out, writing->now + i))
            error = cut_used_event(writing->used, &events[i]);
    return error != 0 ? error : cut_used_stacks(writing->used);
}

static int write_block(struct writing *writing, const struct vs_sequenced_event *events,
                       size_t count)
{
    int error = use_block(writing, events, count);
    for (size_t i = 0; i < count && error == 0; i++, writing->now++) {
        error = write_marks(writing, &events[i]);
        if (error == 0 && !cut_bit(writing->cut->out, writing->now))
            error = vs_writer_event(writing->writer, &events[i]);
    }
    if (error == 0 && vs_writer_bytes(writing->writer) > writing->limit_bytes)
        error = -EFBIG;
    return error;
}

static int write_hole(struct writing *writing, uint64_t events)
{
    writing->holes += events;
    return vs_writer_hole(writing->writer, events);
}

static int write_events(struct writing *writing)
{
    struct vs_cut *cut = writing->cut;
    const struct vs_trace_status *status = vs_reader_status(cut->reader);
    const struct vs_sequenced_event *events;
    size_t count;
    int got, error = 0;
    bool begun = status->keyframe_events == 0;
    vs_reader_rewind(cut->reader);
    while (error == 0 && (got = vs_reader_next_block(cut->reader, &events, &count)) != 0) {
        if (got < 0)
            return got;
        uint64_t index = vs_reader_block_index(cut->reader);
        if (begun && index > writing->expected)
            error = write_hole(writing, index - writing->expected);
        begun = true;
        writing->expected = index + count;
        count = count < cut->events - writing->now ? count : (size_t)(cut->events - writing->now);
        if (error == 0)
            error = write_block(writing, events, count);
    }
    uint64_t missing = status->missing_events;
    return error == 0 && missing > writing->holes ? write_hole(writing, missing - writing->holes)
                                                  : error;
}

static int write_all(struct writing *writing, int fd)
{
    struct vs_cut *cut = writing->cut;
    const struct vs_trace_status *status = vs_reader_status(cut->reader);
    bool whole = vs_trace_is_sound(status);
    int error = ftruncate(fd, 0) != 0 ? -errno : 0;
    if (error == 0)
        error = vs_writer_create(fd, CHUNK_EVENTS, ZSTD_LEVEL, &writing->writer);
    if (error != 0)
        return error;
    writing->used = cut_used_new(cut->reader, writing->writer);
    error = writing->used == NULL ? -ENOMEM : cut_used_facts(writing->used, cut->path, whole);
    if (error == 0 && cut->gap_count + status->cut_gaps > 0)
        error = vs_writer_cut(writing->writer, cut->taken_out + status->cut_events,
                              cut->gap_count + status->cut_gaps);
    if (error == 0)
        error = write_events(writing);
    int closed = vs_writer_close(writing->writer, error == 0 && status->closed);
    cut_used_free(writing->used);
    return error != 0 ? error : closed;
}

int vs_cut_write(struct vs_cut *cut, int fd, uint64_t radius, uint64_t limit_bytes,
                 struct vs_cut_made *made)
{
    struct writing writing = {.cut = cut, .limit_bytes = limit_bytes};
    *made = (struct vs_cut_made){0};
    int error = cut_lay_gaps(cut, radius);
    if (error == 0)
        error = write_all(&writing, fd);
    off_t end = lseek(fd, 0, SEEK_END);
    if (error == 0 && end < 0)
        error = -errno;
    if (error == 0 && (uint64_t)end > limit_bytes)
        error = -EFBIG;
    /* How far it came, also where it is too large. */
    cut->written = writing.now;
    made->bytes = end < 0 ? 0 : (uint64_t)end;
    made->events = cut->taken_out;
    made->gaps = cut->gap_count;
    return error;
}

const struct vs_cut_gap *vs_cut_gaps(const struct vs_cut *cut, size_t *count)
{
    *count = cut->gap_count;
    return cut->gaps;
}

/* ---- how wide ------------------------------------------------------------------------------- */

/* Widths that were tried: the widest that fits, the narrowest that does not. */
struct search {
    uint64_t fits, too_wide; /* 0: none yet */
    uint64_t limit_bytes;
};

static uint64_t scale(uint64_t radius, double by)
{
    double scaled = (double)radius * by;
    return scaled < VS_CUT_LEAST_RADIUS ? VS_CUT_LEAST_RADIUS
           : scaled > 1e15              ? (uint64_t)1e15
                                        : (uint64_t)scaled;
}

/* As if every event took as many bytes as it does in the original. */
static uint64_t first_guess(const struct vs_cut *cut, uint64_t limit_bytes)
{
    double bytes = (double)vs_reader_status(cut->reader)->file_bytes / (double)(cut->events + 1);
    double room = (double)limit_bytes * 0.9 / bytes;
    uint64_t fits = VS_CUT_LEAST_RADIUS, too_wide = cut->events + VS_CUT_LEAST_RADIUS;
    while (fits + fits / 16 < too_wide) {
        uint64_t middle = fits + (too_wide - fits) / 2;
        if ((double)cut_covered(cut, middle) <= room)
            fits = middle;
        else
            too_wide = middle;
    }
    return fits;
}

/* What to try after `radius` came to `bytes`; the same again: nothing better is to be had. */
static uint64_t next_guess(const struct vs_cut *cut, struct search *search, uint64_t radius,
                           bool fits, uint64_t bytes)
{
    double passed = (double)(cut->written + 1) / (double)(cut->events + 1);
    double size = (double)bytes / passed;
    uint64_t next = scale(radius, 0.92 * (double)search->limit_bytes / (size + 1));
    if (fits)
        search->fits = radius;
    else
        search->too_wide = radius;
    if (search->too_wide != 0 && next >= search->too_wide)
        next = search->fits + (search->too_wide - search->fits) / 2;
    return next < VS_CUT_LEAST_RADIUS ? VS_CUT_LEAST_RADIUS : next;
}

int vs_cut_fit(struct vs_cut *cut, int fd, uint64_t limit_bytes, struct vs_cut_made *made)
{
    struct search search = {.limit_bytes = limit_bytes};
    uint64_t radius = first_guess(cut, limit_bytes), last = 0;
    int error = -EFBIG;
    for (int i = 0; i < TRIES && radius != last; i++) {
        error = vs_cut_write(cut, fd, radius, limit_bytes, made);
        if (error != 0 && error != -EFBIG)
            return error;
        if (error == 0 && (made->events == 0 || made->bytes / 3 >= limit_bytes / 4))
            return 0;
        last = radius;
        radius = next_guess(cut, &search, radius, error == 0, made->bytes);
        if (error == 0 && radius <= last)
            return 0;
    }
    return error == 0 || search.fits == 0 ? error
                                          : vs_cut_write(cut, fd, search.fits, limit_bytes, made);
}
