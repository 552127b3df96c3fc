/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a trace: opens and indexes it (trace_recovery.c), loads definitions, then hands out events
 * chunk by chunk in order. Memory: the index, the definitions, one unpacked chunk of events, and of
 * the stacks an index and the chunks asked for last.
 */
#include "trace.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "packed.h"
#include "ring_file.h"
#include "trace_chunk.h"
#include "trace_definitions.h"
#include "trace_events.h"
#include "trace_recovery.h"
#include "trace_stacks.h"
#include "trace_why.h"

#define NO_CHUNK SIZE_MAX

struct event_list {
    struct vs_sequenced_event *events;
    size_t count;
};

struct vs_reader {
    char *path;
    struct vs_source source;
    struct vs_index index;
    struct vs_plan plan;
    struct vs_trace_status status;
    struct vs_definitions *definitions;
    struct vs_stacks *stacks;
    struct vs_unpacker *unpacker;

    /* the unpacked chunk */
    size_t loaded; /* index.refs[loaded], NO_CHUNK: none */
    struct vs_sequenced_event *events;
    uint64_t *scratch;
    size_t capacity;

    struct event_list live; /* key frame that stands for a lost beginning */
    struct event_list ring; /* from a left-over ring */
    uint64_t start_index;   /* events before it are not shown: the key frame stands for them */
    uint64_t end_index;     /* nor those from here on: they came after the trace was opened */

    /* the place of vs_reader_next */
    enum { AT_LIVE, AT_CHUNKS, AT_RING, AT_END } stage;
    size_t segment;             /* next one of the plan */
    uint64_t next_index, block; /* of the next event from a chunk; events given as a block last */
    const struct vs_sequenced_event *at, *end;
};

/* ---- chunks ------------------------------------------------------------------------- */

static int read_payload(struct vs_reader *reader, const struct vs_chunk_ref *ref,
                        const uint8_t **raw)
{
    return vs_chunk_payload(&reader->source, reader->unpacker, ref, raw);
}

static int make_room(struct vs_reader *reader, size_t count)
{
    if (count <= reader->capacity && reader->capacity > 0)
        return 0;
    count = count > 0 ? count : 1;
    struct vs_sequenced_event *events = realloc(reader->events, count * sizeof *events);
    if (events != NULL)
        reader->events = events;
    uint64_t *scratch = realloc(reader->scratch, count * sizeof *scratch);
    if (scratch != NULL)
        reader->scratch = scratch;
    if (events == NULL || scratch == NULL)
        return -ENOMEM;
    reader->capacity = count;
    return 0;
}

/* Errors that are a chunk's own fault; any other one ends the reading. */
static bool is_damage(int error)
{
    return error == -EBADMSG || error == -ENOTSUP;
}

static void mark_bad(struct vs_reader *reader, size_t at)
{
    reader->index.refs[at].bad = true;
    reader->status.damaged_chunks++;
    reader->status.chunks--;
}

/* Unpacks a chunk of events unless it is the one at hand. One that does not unpack is bad. */
static int load(struct vs_reader *reader, size_t at)
{
    if (reader->loaded == at)
        return 0;
    const struct vs_chunk_ref *ref = &reader->index.refs[at];
    const uint8_t *raw = NULL;
    reader->loaded = NO_CHUNK;
    int error = read_payload(reader, ref, &raw);
    if (error == 0)
        error = make_room(reader, ref->header.count);
    if (error == 0)
        error = vs_events_decode(raw, ref->header.raw_bytes, reader->events, ref->header.count,
                                 reader->scratch);
    if (error == 0)
        reader->loaded = at;
    else if (is_damage(error))
        mark_bad(reader, at);
    return error;
}

/* ---- definitions ---------------------------------------------------------------------- */

/* Stacks are only looked through; everything else is kept, and bounded by `total`. */
static int load_table(struct vs_reader *reader, const struct vs_chunk_ref *ref,
                      const struct vs_table_shape *shape, uint64_t *total)
{
    const uint8_t *raw = NULL;
    bool stacks = shape->type == VS_CHUNK_STACKS;
    *total += (uint64_t)ref->header.count * VS_DEFINITION_ROW_BYTES;
    *total += stacks ? 0 : ref->header.raw_bytes;
    int error = *total > VS_DEFINITIONS_MAX_RAW ? -EBADMSG : read_payload(reader, ref, &raw);
    if (error != 0)
        return error;
    return stacks ? vs_stacks_take_chunk(reader->stacks, ref, raw)
                  : vs_definitions_take_chunk(reader->definitions, shape, raw,
                                              ref->header.raw_bytes, ref->header.count);
}

static int load_definitions(struct vs_reader *reader)
{
    uint64_t total = 0;
    for (size_t i = 0; i < reader->index.count; i++) {
        const struct vs_chunk_ref *ref = &reader->index.refs[i];
        const struct vs_table_shape *shape = vs_table_shape(ref->header.type);
        int error = shape == NULL ? 0 : load_table(reader, ref, shape, &total);
        if (is_damage(error))
            mark_bad(reader, i);
        else if (error != 0)
            return error;
    }
    vs_stacks_ready(reader->stacks);
    return 0;
}

/* ---- the order of events ----------------------------------------------------------------- */

/* One chunk did not decode: look at all of them now, so that the plan is made anew only once. */
static int weed_out(struct vs_reader *reader)
{
    for (size_t i = 0; i < reader->index.count; i++) {
        const struct vs_chunk_ref *ref = &reader->index.refs[i];
        if (ref->header.type != VS_CHUNK_EVENTS || ref->bad)
            continue;
        int error = load(reader, i);
        if (error != 0 && !is_damage(error))
            return error;
    }
    return 0;
}

/* Position behind the last event of a segment. */
static int end_sequence(struct vs_reader *reader, const struct vs_segment *segment, uint64_t *out)
{
    int error = load(reader, segment->ref);
    if (error != 0)
        return error;
    uint64_t first = reader->index.refs[segment->ref].header.first;
    const struct vs_sequenced_event *last = &reader->events[segment->end - 1 - first];
    *out = last->sequence + last->cells;
    return 0;
}

struct gaps {
    uint64_t count, events, cells;
};

/* A hole of `events` events before the event at `sequence`, which follows `before` (or nothing). */
static int add_gap(struct vs_reader *reader, struct gaps *gaps, uint64_t events,
                   const struct vs_segment *before, uint64_t sequence)
{
    uint64_t behind = sequence; /* where the ring began is not known: no cells */
    int error = before == NULL ? 0 : end_sequence(reader, before, &behind);
    gaps->count++;
    gaps->events += events;
    gaps->cells += sequence > behind ? sequence - behind : 0;
    return error;
}

static int find_gaps(struct vs_reader *reader, struct gaps *gaps)
{
    const struct vs_segment *before = NULL;
    uint64_t expected = reader->start_index;
    for (size_t i = 0; i < reader->plan.count; i++) {
        const struct vs_segment *segment = &reader->plan.segments[i];
        if (segment->end <= reader->start_index)
            continue;
        uint64_t sequence = reader->index.refs[segment->ref].header.mark;
        int error = segment->first > expected
                        ? add_gap(reader, gaps, segment->first - expected, before, sequence)
                        : 0;
        if (error != 0)
            return error;
        expected = segment->end;
        before = segment;
    }
    if (!reader->index.has_end || reader->index.end_index <= expected)
        return 0;
    return add_gap(reader, gaps, reader->index.end_index - expected, before,
                   reader->index.end_sequence);
}

/* Plan, event count and gaps, as of the chunks not known to be bad. */
static int make_plan(struct vs_reader *reader)
{
    for (;;) {
        struct gaps gaps = {0};
        int error = vs_plan_build(&reader->index, &reader->plan);
        vs_plan_end(&reader->plan, reader->end_index);
        if (error == 0)
            error = find_gaps(reader, &gaps);
        if (is_damage(error)) {
            error = weed_out(reader);
            if (error == 0)
                continue;
        }
        if (error != 0)
            return error;
        reader->status.sequence_gaps = gaps.count;
        reader->status.missing_events = gaps.events;
        reader->status.missing_cells = gaps.cells;
        break;
    }
    reader->status.events = reader->live.count + reader->ring.count;
    for (size_t i = 0; i < reader->plan.count; i++) {
        const struct vs_segment *segment = &reader->plan.segments[i];
        uint64_t first =
            segment->first > reader->start_index ? segment->first : reader->start_index;
        if (segment->end > first)
            reader->status.events += segment->end - first;
    }
    return 0;
}

/* ---- a lost beginning --------------------------------------------------------------------- */

/*
 * Appends the part at refs[at] to the live set. The parts of one key frame are
 * consecutive chunks. 1 when the key frame is complete with it, 0 when more is
 * to come, -EBADMSG when it does not continue what is there.
 */
static int add_keyframe_part(struct vs_reader *reader, size_t at)
{
    const struct vs_chunk_ref *ref = &reader->index.refs[at];
    struct vs_keyframe_part part;
    const uint8_t *raw = NULL;
    size_t count = ref->header.count;
    reader->loaded = NO_CHUNK;
    int error = read_payload(reader, ref, &raw);
    if (error == 0)
        error = make_room(reader, count);
    if (error == 0)
        error = vs_keyframe_decode(raw, ref->header.raw_bytes, reader->events, count,
                                   reader->scratch, &part);
    if (error != 0)
        return error;
    struct event_list *live = &reader->live;
    if (part.ordinal != live->count || part.total < live->count + count)
        return -EBADMSG;
    struct vs_sequenced_event *grown =
        realloc(live->events, (live->count + count + 1) * sizeof *grown);
    if (grown == NULL)
        return -ENOMEM;
    if (count > 0)
        memcpy(grown + live->count, reader->events, count * sizeof *grown);
    live->events = grown;
    live->count += count;
    return live->count == part.total;
}

/* Reads the key frame that begins at refs[first]: 1 when it is whole, 0 when not, or an error. */
static int read_keyframe(struct vs_reader *reader, size_t first)
{
    const struct vs_chunk_header *head = &reader->index.refs[first].header;
    reader->live.count = 0;
    for (size_t i = first; i < reader->index.count; i++) {
        const struct vs_chunk_header *header = &reader->index.refs[i].header;
        if (header->type != VS_CHUNK_KEYFRAME || header->first != head->first)
            break;
        int got = add_keyframe_part(reader, i);
        if (got != 0)
            return is_damage(got) ? 0 : got;
    }
    return 0;
}

/*
 * A circular file whose first events are gone starts at the oldest whole key
 * frame behind which nothing has been overwritten.
 */
static int start_at_keyframe(struct vs_reader *reader)
{
    const struct vs_plan *plan = &reader->plan;
    uint64_t available = plan->count > 0 ? plan->segments[0].first : 0;
    if (!reader->index.circular || (plan->count > 0 && available == 0))
        return 0;
    for (size_t i = 0; i < reader->index.count; i++) {
        const struct vs_chunk_header *header = &reader->index.refs[i].header;
        if (header->type != VS_CHUNK_KEYFRAME || header->first < available)
            continue;
        int got = read_keyframe(reader, i);
        if (got < 0)
            return got;
        if (got == 1) {
            reader->start_index = header->first;
            reader->status.keyframe_sequence = header->mark;
            reader->status.keyframe_events = reader->live.count;
            return 0;
        }
    }
    reader->live.count = 0;
    return 0;
}

/* ---- the ring beside the trace --------------------------------------------------------------- */

/* A number of the trace's own facts, to compare with the ring's; false when it says nothing. */
static bool fact_number(const struct vs_reader *reader, const char *facts, const char *group,
                        const char *field, uint64_t *out)
{
    const char *text = vs_reader_meta(reader, facts);
    json_t *object = text == NULL ? NULL : json_loads(text, 0, NULL);
    json_t *holder = group == NULL ? object : json_object_get(object, group);
    json_t *value = json_object_get(holder, field);
    bool known = json_is_integer(value);
    if (known)
        *out = (uint64_t)json_integer_value(value);
    json_decref(object);
    return known;
}

static bool ring_is_ours(const struct vs_reader *reader, const struct vs_ring_file *ring)
{
    uint64_t value;
    if (fact_number(reader, "clock", "start", "monotonic_ns", &value) &&
        value != ring->start_monotonic_ns)
        return false;
    return !fact_number(reader, "process", NULL, "pid", &value) || value == ring->pid;
}

static int last_position(struct vs_reader *reader, uint64_t *out)
{
    *out = reader->live.count > 0 ? reader->status.keyframe_sequence : 0;
    if (reader->plan.count == 0)
        return 0;
    const struct vs_segment *last = &reader->plan.segments[reader->plan.count - 1];
    int error = end_sequence(reader, last, out);
    if (!is_damage(error))
        return error;
    error = weed_out(reader);
    if (error == 0)
        error = make_plan(reader);
    return error != 0 ? error : last_position(reader, out);
}

/* Counters of the ring that the trace's own events have told are not told again. */
static int take_counters(struct vs_reader *reader, struct vs_ring_file *ring)
{
    const struct vs_sequenced_event *events;
    size_t count;
    int got;
    if (!vs_ring_file_has_counters(ring))
        return 0;
    vs_reader_rewind(reader);
    while ((got = vs_reader_next_block(reader, &events, &count)) == 1)
        for (size_t i = 0; i < count; i++)
            vs_ring_file_told(ring, &events[i].event);
    return got < 0 ? got : vs_ring_file_rest(ring);
}

static int take_ring(struct vs_reader *reader, struct vs_ring_file *ring)
{
    uint64_t position;
    if (!ring_is_ours(reader, ring))
        return 0;
    int error = last_position(reader, &position);
    if (error == 0)
        error = vs_ring_file_read(ring, position, reader->definitions);
    if (error == 0)
        error = take_counters(reader, ring);
    if (error != 0)
        return error;
    if (ring->skipped_cells > 0) {
        reader->status.sequence_gaps++;
        reader->status.missing_cells += ring->skipped_cells;
    }
    reader->ring = (struct event_list){ring->events, ring->count};
    reader->status.ring_events = ring->count;
    reader->status.events += ring->count;
    ring->events = NULL;
    return 0;
}

/* No ring, or one that is none: nothing to take. */
static int look_for_ring(struct vs_reader *reader)
{
    if (reader->status.closed)
        return 0;
    char *path = NULL;
    struct vs_ring_file *ring = malloc(sizeof *ring);
    int error = 0;
    if (ring == NULL || asprintf(&path, "%s%s", reader->path, VS_RING_FILE_SUFFIX) < 0) {
        free(ring);
        return -ENOMEM;
    }
    if (vs_ring_file_open(path, ring) == 0) {
        error = take_ring(reader, ring);
        vs_ring_file_close(ring);
    }
    free(ring);
    free(path);
    return error;
}

/* ---- a trace that is being written ----------------------------------------------------------- */

#define LOOKS_MOST 8U
#define BETWEEN_LOOKS_NS 20000000L

/* A recorder moves chunks; what one look at the file found holds if nothing moved meanwhile. */
static bool must_look_again(struct vs_reader *reader, unsigned looks)
{
    const struct timespec pause = {.tv_nsec = BETWEEN_LOOKS_NS};
    if (reader->status.closed || looks >= LOOKS_MOST || !vs_source_changed(&reader->source))
        return false;
    nanosleep(&pause, NULL);
    return vs_source_refresh(&reader->source) == 0;
}

static int take_stacks_again(struct vs_reader *reader)
{
    vs_stacks_free(reader->stacks);
    reader->stacks = vs_stacks_new(&reader->source, reader->unpacker);
    const struct vs_table_shape *shape = vs_table_shape(VS_CHUNK_STACKS);
    uint64_t total = 0;
    int error = reader->stacks == NULL ? -ENOMEM : 0;
    for (size_t i = 0; error == 0 && i < reader->index.count; i++)
        if (reader->index.refs[i].header.type == VS_CHUNK_STACKS) {
            error = load_table(reader, &reader->index.refs[i], shape, &total);
            error = is_damage(error) ? 0 : error;
        }
    if (error == 0)
        vs_stacks_ready(reader->stacks);
    return error;
}

/* Where the events and stacks that were there when the trace was opened are now. */
static int look_again(struct vs_reader *reader)
{
    unsigned looks = 0;
    int error = vs_source_refresh(&reader->source);
    reader->end_index =
        reader->plan.count > 0 ? reader->plan.segments[reader->plan.count - 1].end : 0;
    do {
        struct vs_trace_status status = {0};
        struct vs_index index;
        error = error == 0 ? vs_index_build(&reader->source, &index, &status) : error;
        if (error != 0)
            return error;
        index.has_end = reader->index.has_end;
        index.end_index = reader->index.end_index;
        vs_index_free(&reader->index);
        reader->index = index;
        reader->loaded = NO_CHUNK;
        error = take_stacks_again(reader);
        if (error == 0)
            error = make_plan(reader);
    } while (error == 0 && must_look_again(reader, looks++));
    return error;
}

/* ---- opening ---------------------------------------------------------------------------- */

static int prepare(struct vs_reader *reader)
{
    reader->loaded = NO_CHUNK;
    reader->end_index = UINT64_MAX;
    reader->definitions = vs_definitions_new();
    reader->unpacker = vs_unpacker_new();
    if (reader->definitions == NULL || reader->unpacker == NULL)
        return -ENOMEM;
    reader->stacks = vs_stacks_new(&reader->source, reader->unpacker);
    if (reader->stacks == NULL)
        return -ENOMEM;
    int error = vs_index_build(&reader->source, &reader->index, &reader->status);
    if (error == 0)
        error = load_definitions(reader);
    if (error == 0)
        error = vs_plan_build(&reader->index, &reader->plan);
    if (error == 0)
        error = start_at_keyframe(reader);
    if (error == 0)
        error = make_plan(reader);
    if (error == 0 && reader->source.fd >= 0)
        error = look_for_ring(reader);
    vs_reader_rewind(reader);
    return error;
}

static void forget(struct vs_reader *reader)
{
    vs_stacks_free(reader->stacks);
    vs_index_free(&reader->index);
    vs_plan_free(&reader->plan);
    vs_definitions_free(reader->definitions);
    vs_unpacker_free(reader->unpacker);
    free(reader->live.events);
    free(reader->ring.events);
    reader->stacks = NULL;
    reader->definitions = NULL;
    reader->unpacker = NULL;
    reader->live = reader->ring = (struct event_list){0};
    reader->status = (struct vs_trace_status){0};
    reader->start_index = 0;
}

static int prepare_steadily(struct vs_reader *reader)
{
    unsigned looks = 0;
    int error = prepare(reader);
    while (error == 0 && must_look_again(reader, looks++)) {
        forget(reader);
        error = prepare(reader);
    }
    return error;
}

static int open_source(const char *path, struct vs_reader **out, struct vs_error *error,
                       const void *data, size_t bytes)
{
    *out = NULL;
    struct vs_reader *reader = calloc(1, sizeof *reader);
    int why = -ENOMEM, said = 0;
    if (reader != NULL)
        reader->source.fd = -1;
    if (reader != NULL && (reader->path = strdup(path)) != NULL) {
        why = data == NULL ? vs_source_open(path, &reader->source)
                           : vs_source_memory(data, bytes, &reader->source);
        if (why == 0 && data == NULL)
            why = said = vs_packed_open(&reader->source, path, error);
        if (why == 0)
            why = prepare_steadily(reader);
    }
    if (why == 0) {
        *out = reader;
        return 0;
    }
    if (said == 0 && reader != NULL && reader->path != NULL)
        vs_say_why(error, path, &reader->source, &reader->index, why);
    else if (said == 0)
        vs_say(error, "%s cannot be read: no memory", path);
    vs_reader_close(reader);
    return why;
}

int vs_reader_open(const char *path, struct vs_reader **out, struct vs_error *error)
{
    return open_source(path, out, error, NULL, 0);
}

int vs_reader_open_memory(const void *data, size_t bytes, const char *name, struct vs_reader **out,
                          struct vs_error *error)
{
    return open_source(name, out, error, data == NULL ? "" : data, bytes);
}

void vs_reader_close(struct vs_reader *reader)
{
    if (reader == NULL)
        return;
    forget(reader);
    vs_source_close(&reader->source);
    free(reader->events);
    free(reader->scratch);
    free(reader->path);
    free(reader);
}

const struct vs_trace_status *vs_reader_status(const struct vs_reader *reader)
{
    return &reader->status;
}

const char *vs_reader_path(const struct vs_reader *reader)
{
    return reader->path;
}

int vs_reader_call(struct vs_reader *reader, const char *name)
{
    free(reader->path);
    reader->path = strdup(name);
    return reader->path == NULL ? -ENOMEM : 0;
}

/* ---- events ------------------------------------------------------------------------------ */

void vs_reader_rewind(struct vs_reader *reader)
{
    reader->stage = AT_LIVE;
    reader->segment = 0;
    reader->next_index = reader->start_index;
    reader->at = reader->end = NULL;
}

/* The segment that holds the next index or the first one behind it. */
static void find_segment(struct vs_reader *reader)
{
    reader->segment = 0;
    while (reader->segment < reader->plan.count &&
           reader->plan.segments[reader->segment].end <= reader->next_index)
        reader->segment++;
}

/* Points at..end at the events of the next segment; false when there is none. */
static int enter_segment(struct vs_reader *reader)
{
    while (reader->segment < reader->plan.count) {
        const struct vs_segment *segment = &reader->plan.segments[reader->segment];
        if (segment->end <= reader->next_index) {
            reader->segment++;
            continue;
        }
        int error = load(reader, segment->ref);
        if (is_damage(error)) {
            /* Others may hold some of its events: a new plan, from where we are. */
            bool moved = !reader->status.closed && !reader->index.circular &&
                         vs_source_changed(&reader->source);
            error = moved ? look_again(reader) : weed_out(reader);
            if (error == 0 && !moved)
                error = make_plan(reader);
            find_segment(reader);
            if (error == 0)
                continue;
        }
        if (error != 0)
            return error;
        uint64_t base = reader->index.refs[segment->ref].header.first;
        uint64_t first = segment->first > reader->next_index ? segment->first : reader->next_index;
        reader->at = reader->events + (first - base);
        reader->end = reader->events + (segment->end - base);
        reader->next_index = segment->end;
        reader->segment++;
        return 1;
    }
    return 0;
}

static void enter_list(struct vs_reader *reader, const struct event_list *list)
{
    reader->at = list->events;
    reader->end = list->count > 0 ? list->events + list->count : list->events;
}

/* Makes at < end; 1, 0 at the end of everything, or a read error. */
static int advance(struct vs_reader *reader)
{
    int got;
    while (reader->at == reader->end) {
        switch (reader->stage) {
        case AT_LIVE:
            enter_list(reader, &reader->live);
            reader->stage = AT_CHUNKS;
            break;
        case AT_CHUNKS:
            got = enter_segment(reader);
            if (got < 0)
                return got;
            if (got == 0)
                reader->stage = AT_RING;
            break;
        case AT_RING:
            enter_list(reader, &reader->ring);
            reader->stage = AT_END;
            break;
        case AT_END:
            return 0;
        }
    }
    return 1;
}

int vs_reader_next(struct vs_reader *reader, struct vs_sequenced_event *out)
{
    int got = advance(reader);
    if (got != 1)
        return got;
    *out = *reader->at++;
    return 1;
}

int vs_reader_next_block(struct vs_reader *reader, const struct vs_sequenced_event **events,
                         size_t *count)
{
    int got = advance(reader);
    if (got != 1)
        return got;
    *events = reader->at;
    *count = (size_t)(reader->end - reader->at);
    reader->at = reader->end;
    reader->block = *count;
    return 1;
}

uint64_t vs_reader_block_index(const struct vs_reader *reader)
{
    return reader->next_index - (reader->stage == AT_CHUNKS ? reader->block : 0);
}

/* ---- definitions ---------------------------------------------------------------------------- */

const char *vs_reader_string(const struct vs_reader *reader, uint32_t id)
{
    return vs_definitions_string(reader->definitions, id);
}

const struct vs_thread_def *vs_reader_thread(const struct vs_reader *reader, uint32_t thread)
{
    return vs_definitions_thread(reader->definitions, thread);
}

const struct vs_module_def *vs_reader_module(const struct vs_reader *reader, uint32_t id)
{
    return vs_definitions_module(reader->definitions, id);
}

const struct vs_stack_def *vs_reader_stack(const struct vs_reader *reader, uint32_t id)
{
    const struct vs_stack_def *stack = vs_definitions_stack(reader->definitions, id);
    return stack != NULL ? stack : vs_stacks_find(reader->stacks, id);
}

size_t vs_reader_stack_count(const struct vs_reader *reader)
{
    return vs_stacks_count(reader->stacks);
}

uint32_t vs_reader_stack_id(const struct vs_reader *reader, size_t index)
{
    return vs_stacks_id(reader->stacks, index);
}

const struct vs_code_def *vs_reader_code(const struct vs_reader *reader, uint32_t id)
{
    return vs_definitions_code(reader->definitions, id);
}

const struct vs_module_def *vs_reader_module_at(const struct vs_reader *reader, uint64_t address,
                                                uint32_t generation)
{
    return vs_definitions_module_at(reader->definitions, address, generation);
}

size_t vs_reader_module_count(const struct vs_reader *reader)
{
    return vs_definitions_module_count(reader->definitions);
}

const struct vs_module_def *vs_reader_module_number(const struct vs_reader *reader, size_t index)
{
    return vs_definitions_module_number(reader->definitions, index);
}

const struct vs_symbol_def *vs_reader_symbol(const struct vs_reader *reader, uint32_t module,
                                             uint64_t address)
{
    return vs_definitions_symbol(reader->definitions, module, address);
}

size_t vs_reader_device_count(const struct vs_reader *reader)
{
    return vs_definitions_device_count(reader->definitions);
}

const struct vs_device_def *vs_reader_device(const struct vs_reader *reader, size_t index)
{
    return vs_definitions_device(reader->definitions, index);
}

const char *vs_reader_meta(const struct vs_reader *reader, const char *name)
{
    return vs_definitions_meta(reader->definitions, name);
}
