/* SPDX-License-Identifier: Apache-2.0 */
/* Events to columns and back, driven by one table of the fields: see trace_events.h. */
#include "trace_events.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* How a field becomes a number that is small, and 0 in the usual case. */
enum field_form {
    FORM_PLAIN,
    FORM_PLUS_ONE, /* value + 1: "unknown" (all ones, -1) becomes 0 */
    FORM_ZIGZAG,   /* signed */
};

struct field {
    uint8_t id; /* column id: part of the format, never renumbered */
    uint8_t form;
    uint8_t bytes;
    uint8_t offset; /* in struct vs_sequenced_event */
    uint8_t nature; /* enum vs_column_nature */
};

#define SEQUENCED(name) offsetof(struct vs_sequenced_event, name)
#define EVENT(name) offsetof(struct vs_sequenced_event, event.name)

static const struct field fields[] = {
    {1, FORM_PLAIN, 8, SEQUENCED(sequence), VS_NATURE_ANY},
    {2, FORM_PLAIN, 4, SEQUENCED(cells), VS_NATURE_ANY},
    {3, FORM_PLAIN, 4, SEQUENCED(thread), VS_NATURE_RECURRING},
    {4, FORM_PLAIN, 8, EVENT(time_ns), VS_NATURE_CLOCK},
    {5, FORM_PLAIN, 1, EVENT(kind), VS_NATURE_ANY},
    {6, FORM_PLAIN, 8, EVENT(address), VS_NATURE_RECURRING},
    {7, FORM_PLAIN, 8, EVENT(size), VS_NATURE_RECURRING},
    {8, FORM_PLAIN, 8, EVENT(stream), VS_NATURE_RECURRING},
    {9, FORM_PLAIN, 8, EVENT(context), VS_NATURE_RECURRING},
    {10, FORM_PLAIN, 8, EVENT(pool), VS_NATURE_RECURRING},
    {11, FORM_PLAIN, 8, EVENT(handle), VS_NATURE_RECURRING},
    {12, FORM_PLAIN, 8, EVENT(extra[0]), VS_NATURE_RECURRING},
    {13, FORM_PLAIN, 8, EVENT(extra[1]), VS_NATURE_RECURRING},
    {14, FORM_PLUS_ONE, 8, EVENT(free_bytes), VS_NATURE_ANY},
    {15, FORM_PLAIN, 4, EVENT(duration_ns), VS_NATURE_NOISE},
    {16, FORM_ZIGZAG, 4, EVENT(result), VS_NATURE_ANY},
    {17, FORM_PLAIN, 4, EVENT(module), VS_NATURE_ANY},
    {18, FORM_PLAIN, 4, EVENT(stack), VS_NATURE_RECURRING},
    {19, FORM_PLAIN, 2, EVENT(call), VS_NATURE_ANY},
    {20, FORM_PLAIN, 2, EVENT(label), VS_NATURE_ANY},
    {21, FORM_PLUS_ONE, 1, EVENT(device), VS_NATURE_ANY},
    {22, FORM_PLAIN, 2, EVENT(flags), VS_NATURE_ANY},
};
#define FIELD_COUNT (sizeof fields / sizeof fields[0])

enum columns {
    COLUMN_EXTRA0 = 12,
    COLUMN_EXTRA1 = 13,
    COLUMN_ORDINAL = 64, /* key frames only */
    COLUMN_TOTAL = 65,
};

static uint64_t mask_of(unsigned bytes)
{
    return bytes == 8 ? UINT64_MAX : (1ULL << (8 * bytes)) - 1;
}

/* One loop per width: this is where most of a writer's time would go otherwise. */
#define GATHER(type)                                                                 \
    for (size_t i = 0; i < count; i++) {                                             \
        type narrow;                                                                 \
        memcpy(&narrow, (const uint8_t *)&events[i] + field->offset, sizeof narrow); \
        seen |= values[i] = narrow;                                                  \
    }

/* Field values as column values; 0 when all of them are 0. */
static uint64_t gather(const struct field *field, const struct vs_sequenced_event *events,
                       size_t count, uint64_t *values)
{
    uint64_t seen = 0;
    switch (field->bytes) {
    case 1:
        GATHER(uint8_t)
        break;
    case 2:
        GATHER(uint16_t)
        break;
    case 4:
        GATHER(uint32_t)
        break;
    default:
        GATHER(uint64_t)
        break;
    }
    return seen;
}

static uint64_t sign_extend(uint64_t value, unsigned bytes)
{
    unsigned shift = 64 - 8 * bytes;
    return (uint64_t)((int64_t)(value << shift) >> shift);
}

/* Gives gathered values the field's form; 0 when all of them are 0 then. */
static uint64_t reform(const struct field *field, uint64_t *values, size_t count)
{
    uint64_t mask = mask_of(field->bytes), seen = 0;
    for (size_t i = 0; i < count; i++) {
        values[i] = field->form == FORM_PLUS_ONE ? (values[i] + 1) & mask
                                                 : vs_zigzag(sign_extend(values[i], field->bytes));
        seen |= values[i];
    }
    return seen;
}

/* ---- a framework's own totals ------------------------------------------------- */

/*
 * What a framework says it holds in all (extra[0] allocated, extra[1] reserved)
 * follows from what it said before on that device and from the event itself.
 */
struct totals {
    uint64_t last[UINT8_MAX + 1]; /* by device */
};

/* True when the event carries a total; then *out is what to expect. */
static bool predict(const struct totals *totals, const struct vs_event *event, unsigned which,
                    uint64_t *out)
{
    uint64_t change = 0;
    switch (event->kind) {
    case VS_KIND_FW_ALLOC:
        change = event->size;
        break;
    case VS_KIND_FW_FREE:
        change = 0 - event->size;
        break;
    case VS_KIND_FW_OOM:
        break;
    default:
        return false;
    }
    *out = totals->last[(uint8_t)event->device] + (which == 0 ? change : 0);
    return true;
}

static void subtract_totals(const struct vs_sequenced_event *events, size_t count, unsigned which,
                            uint64_t *rest)
{
    struct totals totals = {{0}};
    for (size_t i = 0; i < count; i++) {
        const struct vs_event *event = &events[i].event;
        uint64_t expected = 0;
        if (predict(&totals, event, which, &expected))
            totals.last[(uint8_t)event->device] = event->extra[which];
        rest[i] = vs_zigzag(event->extra[which] - expected);
    }
}

/* The other way round, when all other columns are there. */
static void add_totals(struct vs_sequenced_event *events, size_t count, unsigned which)
{
    struct totals totals = {{0}};
    for (size_t i = 0; i < count; i++) {
        struct vs_event *event = &events[i].event;
        uint64_t expected = 0;
        if (predict(&totals, event, which, &expected))
            totals.last[(uint8_t)event->device] = event->extra[which] + expected;
        event->extra[which] += expected;
    }
}

static int put_extra(const struct vs_sequenced_event *events, size_t count,
                     const struct field *field, uint64_t *values, struct vs_bytes *out)
{
    size_t plain = vs_column_changes(values, count);
    subtract_totals(events, count, field->id - COLUMN_EXTRA0, values);
    if (vs_column_changes(values, count) < plain)
        return vs_column_put_totals(out, field->id, values, count);
    gather(field, events, count, values);
    return vs_column_put_natured(out, field->id, values, count, field->nature);
}

int vs_events_encode(const struct vs_sequenced_event *events, size_t count, struct vs_bytes *out)
{
    uint64_t *values = malloc((count ? count : 1) * sizeof *values);
    if (values == NULL)
        return -ENOMEM;
    int error = 0;
    for (size_t i = 0; i < FIELD_COUNT && error == 0; i++) {
        uint64_t seen = gather(&fields[i], events, count, values);
        if (fields[i].form != FORM_PLAIN)
            seen = reform(&fields[i], values, count);
        if (seen == 0)
            continue;
        if (fields[i].id == COLUMN_EXTRA0 || fields[i].id == COLUMN_EXTRA1)
            error = put_extra(events, count, &fields[i], values, out);
        else
            error = vs_column_put_natured(out, fields[i].id, values, count, fields[i].nature);
    }
    free(values);
    return error;
}

int vs_keyframe_encode(const struct vs_sequenced_event *events, size_t count,
                       const struct vs_keyframe_part *part, struct vs_bytes *out)
{
    uint64_t *values = calloc(count ? count : 1, sizeof *values);
    if (values == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        values[i] = part->ordinal + i;
    int error = vs_column_put(out, COLUMN_ORDINAL, values, count);
    for (size_t i = 0; i < count; i++)
        values[i] = part->total;
    if (error == 0)
        error = vs_column_put(out, COLUMN_TOTAL, values, count);
    free(values);
    return error != 0 ? error : vs_events_encode(events, count, out);
}

/* ---- reading ---------------------------------------------------------------- */

#define SCATTER(type)                                                          \
    for (size_t i = 0; i < count; i++) {                                       \
        type narrow = (type)values[i];                                         \
        memcpy((uint8_t *)&events[i] + field->offset, &narrow, sizeof narrow); \
    }

static void scatter(const struct field *field, const uint64_t *values, size_t count,
                    struct vs_sequenced_event *events)
{
    switch (field->bytes) {
    case 1:
        SCATTER(uint8_t)
        break;
    case 2:
        SCATTER(uint16_t)
        break;
    case 4:
        SCATTER(uint32_t)
        break;
    default:
        SCATTER(uint64_t)
        break;
    }
}

/* Turns column values back into field values; false when one is larger than its field. */
static bool restore(const struct field *field, uint64_t *values, size_t count)
{
    uint64_t seen = 0;
    for (size_t i = 0; i < count; i++)
        seen |= values[i];
    if (seen & ~mask_of(field->bytes))
        return false;
    if (field->form == FORM_PLUS_ONE)
        for (size_t i = 0; i < count; i++)
            values[i]--;
    else if (field->form == FORM_ZIGZAG)
        for (size_t i = 0; i < count; i++)
            values[i] = vs_unzigzag(values[i]);
    return true;
}

static const struct field *find_field(uint64_t id)
{
    /* Column ids are the table's places counted from 1. */
    return id >= 1 && id <= FIELD_COUNT ? &fields[id - 1] : NULL;
}

static void fill_defaults(struct vs_sequenced_event *events, size_t count)
{
    memset(events, 0, count * sizeof *events);
    for (size_t i = 0; i < count; i++) {
        events[i].event.free_bytes = VS_FREE_UNKNOWN;
        events[i].event.device = VS_DEVICE_UNKNOWN;
    }
}

/* A live set may hold several parts of one record; the stream of events may not. */
static bool in_order(const struct vs_sequenced_event *events, size_t count, bool live_set)
{
    for (size_t i = 1; i < count; i++) {
        uint64_t cells = live_set ? 0 : events[i - 1].cells;
        if (events[i].sequence < events[i - 1].sequence ||
            events[i].sequence - events[i - 1].sequence < cells)
            return false;
    }
    return true;
}

/* What is decoded, and what is still to do when all columns are read. */
struct decoding {
    struct vs_sequenced_event *events;
    size_t count;
    uint64_t *scratch;
    struct vs_keyframe_part *part; /* NULL: not of a key frame */
    bool rest[2];                  /* extra[i] holds what is left after the prediction */
};

static int decode_column(const struct vs_column *column, struct decoding *decoding)
{
    struct vs_keyframe_part *part = decoding->part;
    uint64_t *scratch = decoding->scratch;
    size_t count = decoding->count;
    const struct field *field = find_field(column->id);
    bool of_keyframe = column->id == COLUMN_ORDINAL || column->id == COLUMN_TOTAL;
    if (field == NULL && !(of_keyframe && part != NULL))
        return 0;
    bool extra = column->id == COLUMN_EXTRA0 || column->id == COLUMN_EXTRA1;
    if (column->coding == VS_CODING_TOTALS && !extra)
        return -ENOTSUP;
    int error = vs_column_values(column, scratch, count);
    if (error != 0)
        return error;
    if (extra)
        decoding->rest[column->id - COLUMN_EXTRA0] = column->coding == VS_CODING_TOTALS;
    if (field == NULL) {
        *(column->id == COLUMN_ORDINAL ? &part->ordinal : &part->total) = count ? scratch[0] : 0;
        return 0;
    }
    if (!restore(field, scratch, count))
        return -EBADMSG;
    scatter(field, scratch, count, decoding->events);
    return 0;
}

static int decode(const uint8_t *payload, size_t bytes, struct decoding *decoding)
{
    const uint8_t *at = payload, *end = payload + bytes;
    struct vs_column column;
    int got;
    fill_defaults(decoding->events, decoding->count);
    while ((got = vs_column_next(&at, end, &column)) > 0) {
        int error = decode_column(&column, decoding);
        if (error != 0)
            return error;
    }
    if (got < 0)
        return got;
    for (unsigned which = 0; which < 2; which++)
        if (decoding->rest[which])
            add_totals(decoding->events, decoding->count, which);
    return in_order(decoding->events, decoding->count, decoding->part != NULL) ? 0 : -EBADMSG;
}

int vs_events_decode(const uint8_t *payload, size_t bytes, struct vs_sequenced_event *events,
                     size_t count, uint64_t *scratch)
{
    struct decoding decoding = {.events = events, .count = count, .scratch = scratch};
    return decode(payload, bytes, &decoding);
}

int vs_keyframe_decode(const uint8_t *payload, size_t bytes, struct vs_sequenced_event *events,
                       size_t count, uint64_t *scratch, struct vs_keyframe_part *part)
{
    struct decoding decoding = {.events = events, .count = count, .scratch = scratch, .part = part};
    *part = (struct vs_keyframe_part){0};
    return decode(payload, bytes, &decoding);
}
