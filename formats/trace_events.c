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
};

#define SEQUENCED(name) offsetof(struct vs_sequenced_event, name)
#define EVENT(name) offsetof(struct vs_sequenced_event, event.name)

static const struct field fields[] = {
    {1, FORM_PLAIN, 8, SEQUENCED(sequence)}, {2, FORM_PLAIN, 4, SEQUENCED(cells)},
    {3, FORM_PLAIN, 4, SEQUENCED(thread)},   {4, FORM_PLAIN, 8, EVENT(time_ns)},
    {5, FORM_PLAIN, 1, EVENT(kind)},         {6, FORM_PLAIN, 8, EVENT(address)},
    {7, FORM_PLAIN, 8, EVENT(size)},         {8, FORM_PLAIN, 8, EVENT(stream)},
    {9, FORM_PLAIN, 8, EVENT(context)},      {10, FORM_PLAIN, 8, EVENT(pool)},
    {11, FORM_PLAIN, 8, EVENT(handle)},      {12, FORM_PLAIN, 8, EVENT(extra[0])},
    {13, FORM_PLAIN, 8, EVENT(extra[1])},    {14, FORM_PLUS_ONE, 8, EVENT(free_bytes)},
    {15, FORM_PLAIN, 4, EVENT(duration_ns)}, {16, FORM_ZIGZAG, 4, EVENT(result)},
    {17, FORM_PLAIN, 4, EVENT(module)},      {18, FORM_PLAIN, 4, EVENT(stack)},
    {19, FORM_PLAIN, 2, EVENT(call)},        {20, FORM_PLAIN, 2, EVENT(label)},
    {21, FORM_PLUS_ONE, 1, EVENT(device)},   {22, FORM_PLAIN, 2, EVENT(flags)},
};
#define FIELD_COUNT (sizeof fields / sizeof fields[0])

enum keyframe_columns { COLUMN_ORDINAL = 64, COLUMN_TOTAL = 65 };

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
        if (seen != 0)
            error = vs_column_put(out, fields[i].id, values, count);
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

static int decode_column(const struct vs_column *column, struct vs_sequenced_event *events,
                         size_t count, uint64_t *scratch, struct vs_keyframe_part *part)
{
    const struct field *field = find_field(column->id);
    bool of_keyframe = column->id == COLUMN_ORDINAL || column->id == COLUMN_TOTAL;
    if (field == NULL && !(of_keyframe && part != NULL))
        return 0;
    int error = vs_column_values(column, scratch, count);
    if (error != 0)
        return error;
    if (field == NULL) {
        *(column->id == COLUMN_ORDINAL ? &part->ordinal : &part->total) = count ? scratch[0] : 0;
        return 0;
    }
    if (!restore(field, scratch, count))
        return -EBADMSG;
    scatter(field, scratch, count, events);
    return 0;
}

static int decode(const uint8_t *payload, size_t bytes, struct vs_sequenced_event *events,
                  size_t count, uint64_t *scratch, struct vs_keyframe_part *part)
{
    const uint8_t *at = payload, *end = payload + bytes;
    struct vs_column column;
    int got;
    fill_defaults(events, count);
    while ((got = vs_column_next(&at, end, &column)) > 0) {
        int error = decode_column(&column, events, count, scratch, part);
        if (error != 0)
            return error;
    }
    if (got < 0)
        return got;
    return in_order(events, count, part != NULL) ? 0 : -EBADMSG;
}

int vs_events_decode(const uint8_t *payload, size_t bytes, struct vs_sequenced_event *events,
                     size_t count, uint64_t *scratch)
{
    return decode(payload, bytes, events, count, scratch, NULL);
}

int vs_keyframe_decode(const uint8_t *payload, size_t bytes, struct vs_sequenced_event *events,
                       size_t count, uint64_t *scratch, struct vs_keyframe_part *part)
{
    *part = (struct vs_keyframe_part){0};
    return decode(payload, bytes, events, count, scratch, part);
}
