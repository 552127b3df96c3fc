/* SPDX-License-Identifier: Apache-2.0 */
/* Column codings of trace payloads: see trace_columns.h. */
#include "trace_columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace_codings.h"

#define HEAD_MAX_BYTES (2 * VS_VARINT_MAX_BYTES + 1)
/* A part of a payload this small is not worth statistics of its own. */
#define PART_LEAST_BYTES 512U
/* Fewer values than this say nothing about their nature. */
#define NATURE_LEAST_COUNT 16U
/* Values in a run, on average, from which on runs are best whatever the nature. */
#define LONG_RUN 24U

int vs_bytes_reserve(struct vs_bytes *buffer, size_t more)
{
    size_t need;
    if (__builtin_add_overflow(buffer->bytes, more, &need))
        return -ENOMEM;
    if (need <= buffer->capacity)
        return 0;
    size_t capacity = buffer->capacity < 4096 ? 4096 : buffer->capacity;
    while (capacity < need)
        capacity += capacity / 2;
    uint8_t *grown = realloc(buffer->data, capacity);
    if (grown == NULL)
        return -ENOMEM;
    buffer->data = grown;
    buffer->capacity = capacity;
    return 0;
}

int vs_bytes_append(struct vs_bytes *buffer, const void *data, size_t bytes)
{
    if (bytes == 0)
        return 0;
    int error = vs_bytes_reserve(buffer, bytes);
    if (error != 0)
        return error;
    memcpy(buffer->data + buffer->bytes, data, bytes);
    buffer->bytes += bytes;
    return 0;
}

void vs_bytes_free(struct vs_bytes *buffer)
{
    free(buffer->data);
    *buffer = (struct vs_bytes){0};
}

/* ---- writing ---------------------------------------------------------------- */

/* How long a column would get in each coding; the run lengths themselves count two bytes. */
struct coding_costs {
    size_t varint, delta, runs, delta_runs;
};

static struct coding_costs measure(const uint64_t *values, size_t count)
{
    struct coding_costs costs = {0};
    uint64_t before = 0, delta_before = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t delta = vs_zigzag(values[i] - before);
        size_t value_bytes = vs_varint_bytes(values[i]), delta_bytes = vs_varint_bytes(delta);
        costs.varint += value_bytes;
        costs.delta += delta_bytes;
        if (i == 0 || values[i] != before)
            costs.runs += value_bytes + 2;
        if (i == 0 || delta != delta_before)
            costs.delta_runs += delta_bytes + 2;
        before = values[i];
        delta_before = delta;
    }
    return costs;
}

static enum vs_coding cheapest(const struct coding_costs *costs)
{
    enum vs_coding best = VS_CODING_VARINT;
    size_t bytes = costs->varint;
    if (costs->delta < bytes) {
        best = VS_CODING_DELTA;
        bytes = costs->delta;
    }
    if (costs->runs < bytes) {
        best = VS_CODING_RUNS;
        bytes = costs->runs;
    }
    return costs->delta_runs < bytes ? VS_CODING_DELTA_RUNS : best;
}

static enum vs_coding choose(const uint64_t *values, size_t count)
{
    struct coding_costs costs = measure(values, count);
    return cheapest(&costs);
}

size_t vs_column_changes(const uint64_t *values, size_t count)
{
    size_t changes = 0;
    for (size_t i = 1; i < count; i++)
        changes += values[i] != values[i - 1];
    return changes;
}

static size_t step_changes(const uint64_t *values, size_t count)
{
    size_t changes = 0;
    for (size_t i = 2; i < count; i++)
        changes += values[i] - values[i - 1] != values[i - 1] - values[i - 2];
    return changes;
}

static bool is_delta(enum vs_coding coding)
{
    return coding == VS_CODING_DELTA || coding == VS_CODING_DELTA_RUNS;
}

static uint8_t *put_values(uint8_t *out, enum vs_coding coding, const uint64_t *values,
                           size_t count)
{
    bool delta = is_delta(coding), runs = coding >= VS_CODING_RUNS;
    uint64_t before = 0, pending = 0;
    size_t run = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t value = delta ? vs_zigzag(values[i] - before) : values[i];
        before = values[i];
        if (!runs) {
            out = vs_put_varint(out, value);
            continue;
        }
        if (run > 0 && value != pending) {
            out = vs_put_varint(vs_put_varint(out, run), pending);
            run = 0;
        }
        pending = value;
        run++;
    }
    return run > 0 ? vs_put_varint(vs_put_varint(out, run), pending) : out;
}

static int put_head(struct vs_bytes *out, uint32_t id, enum vs_coding coding, size_t bytes)
{
    int error = vs_bytes_reserve(out, HEAD_MAX_BYTES);
    if (error != 0)
        return error;
    uint8_t *at = vs_put_varint(out->data + out->bytes, id);
    *at++ = (uint8_t)coding;
    at = vs_put_varint(at, bytes);
    out->bytes = (size_t)(at - out->data);
    return 0;
}

/* Where a column's bytes are made: behind room for the longest head. NULL: no memory. */
static uint8_t *body_of(struct vs_bytes *out, size_t most)
{
    return vs_bytes_reserve(out, HEAD_MAX_BYTES + most) != 0
               ? NULL
               : out->data + out->bytes + HEAD_MAX_BYTES;
}

/* Puts the head before a body that was made there, and the body up against it. */
static int seal(struct vs_bytes *out, uint32_t id, enum vs_coding coding, const uint8_t *body,
                const uint8_t *body_end)
{
    size_t bytes = (size_t)(body_end - body);
    int error = put_head(out, id, coding, bytes);
    if (error != 0)
        return error;
    memmove(out->data + out->bytes, body, bytes);
    out->bytes += bytes;
    return 0;
}

static int put_simple(struct vs_bytes *out, uint32_t id, enum vs_coding coding,
                      const uint64_t *values, size_t count)
{
    uint8_t *body = body_of(out, count * 2 * VS_VARINT_MAX_BYTES);
    if (body == NULL)
        return -ENOMEM;
    return seal(out, id, coding, body, put_values(body, coding, values, count));
}

static int put_split(struct vs_bytes *out, uint32_t id, enum vs_coding coding,
                     const uint64_t *values, size_t count)
{
    uint8_t *body = body_of(out, vs_split_bound(count));
    if (body == NULL)
        return -ENOMEM;
    bool delta = coding == VS_CODING_SPLIT_DELTA;
    return seal(out, id, coding, body, vs_split_put(body, values, count, delta));
}

/* As BACK when at least every second value was there before. */
static int put_recurring(struct vs_bytes *out, uint32_t id, const uint64_t *values, size_t count)
{
    struct vs_backs backs;
    int error = vs_backs_find(values, count, &backs);
    if (error != 0)
        return error;
    if (backs.literal_count > count / 2) {
        error = put_simple(out, id, choose(values, count), values, count);
    } else {
        uint8_t *body = body_of(out, vs_back_bound(count, backs.literal_count));
        error = body == NULL
                    ? -ENOMEM
                    : seal(out, id, VS_CODING_BACK, body, vs_back_put(body, &backs, count));
    }
    vs_backs_free(&backs);
    return error;
}

int vs_column_put_natured(struct vs_bytes *out, uint32_t id, const uint64_t *values, size_t count,
                          enum vs_column_nature nature)
{
    size_t changes = vs_column_changes(values, count);
    if (count == 0 || (changes == 0 && values[0] == 0))
        return 0;
    if (count < NATURE_LEAST_COUNT)
        return put_simple(out, id, choose(values, count), values, count);
    if (changes == 0)
        return put_simple(out, id, VS_CODING_RUNS, values, count);
    /* Long runs are shorter than anything else. */
    bool runs = changes < count / LONG_RUN ||
                (nature == VS_NATURE_CLOCK && step_changes(values, count) < count / LONG_RUN);
    if (nature == VS_NATURE_ANY || runs)
        return put_simple(out, id, choose(values, count), values, count);
    if (nature == VS_NATURE_RECURRING)
        return put_recurring(out, id, values, count);
    return put_split(out, id, nature == VS_NATURE_CLOCK ? VS_CODING_SPLIT_DELTA : VS_CODING_SPLIT,
                     values, count);
}

int vs_column_put(struct vs_bytes *out, uint32_t id, const uint64_t *values, size_t count)
{
    return vs_column_put_natured(out, id, values, count, VS_NATURE_ANY);
}

/* The coding of the rest is the body's first byte. */
int vs_column_put_totals(struct vs_bytes *out, uint32_t id, const uint64_t *rest, size_t count)
{
    enum vs_coding inner = choose(rest, count);
    uint8_t *body = body_of(out, 1 + count * 2 * VS_VARINT_MAX_BYTES);
    if (body == NULL)
        return -ENOMEM;
    *body = (uint8_t)inner;
    return seal(out, id, VS_CODING_TOTALS, body, put_values(body + 1, inner, rest, count));
}

int vs_column_put_bytes(struct vs_bytes *out, uint32_t id, const void *data, size_t bytes)
{
    if (bytes == 0)
        return 0;
    int error = put_head(out, id, VS_CODING_BYTES, bytes);
    return error != 0 ? error : vs_bytes_append(out, data, bytes);
}

/* ---- reading ---------------------------------------------------------------- */

int vs_column_next(const uint8_t **at, const uint8_t *end, struct vs_column *out)
{
    if (*at == end)
        return 0;
    uint64_t bytes;
    if (!vs_get_varint_checked(at, end, &out->id) || *at == end)
        return -EBADMSG;
    out->coding = *(*at)++;
    if (!vs_get_varint_checked(at, end, &bytes) || bytes > (size_t)(end - *at))
        return -EBADMSG;
    out->data = *at;
    out->bytes = (size_t)bytes;
    *at += bytes;
    return 1;
}

static int get_plain(const struct vs_column *column, uint64_t *values, size_t count)
{
    const uint8_t *at = column->data, *end = at + column->bytes;
    if (count > column->bytes)
        return -EBADMSG;
    for (size_t i = 0; i < count; i++)
        if (!vs_get_varint(&at, end, &values[i]))
            return -EBADMSG;
    return at == end ? 0 : -EBADMSG;
}

static int get_runs(const struct vs_column *column, uint64_t *values, size_t count)
{
    const uint8_t *at = column->data, *end = at + column->bytes;
    size_t done = 0;
    while (done < count) {
        uint64_t run, value;
        if (!vs_get_varint(&at, end, &run) || !vs_get_varint(&at, end, &value) || run == 0 ||
            run > count - done)
            return -EBADMSG;
        for (uint64_t i = 0; i < run; i++)
            values[done++] = value;
    }
    return at == end ? 0 : -EBADMSG;
}

static void sum_up(uint64_t *values, size_t count)
{
    uint64_t before = 0;
    for (size_t i = 0; i < count; i++)
        values[i] = before += vs_unzigzag(values[i]);
}

static int get_simple(const struct vs_column *column, uint64_t *values, size_t count)
{
    bool runs = column->coding == VS_CODING_RUNS || column->coding == VS_CODING_DELTA_RUNS;
    int error = runs ? get_runs(column, values, count) : get_plain(column, values, count);
    if (error == 0 && is_delta((enum vs_coding)column->coding))
        sum_up(values, count);
    return error;
}

static int get_totals(const struct vs_column *column, uint64_t *values, size_t count)
{
    struct vs_column inner = *column;
    if (column->bytes == 0)
        return -EBADMSG;
    inner.coding = *inner.data++;
    inner.bytes--;
    if (inner.coding < VS_CODING_VARINT || inner.coding > VS_CODING_DELTA_RUNS)
        return -ENOTSUP;
    int error = get_simple(&inner, values, count);
    for (size_t i = 0; error == 0 && i < count; i++)
        values[i] = vs_unzigzag(values[i]);
    return error;
}

int vs_column_values(const struct vs_column *column, uint64_t *values, size_t count)
{
    const uint8_t *at = column->data, *end = at + column->bytes;
    switch (column->coding) {
    case VS_CODING_VARINT:
    case VS_CODING_DELTA:
    case VS_CODING_RUNS:
    case VS_CODING_DELTA_RUNS:
        return get_simple(column, values, count);
    case VS_CODING_BACK:
        return vs_back_get(at, end, values, count);
    case VS_CODING_SPLIT:
    case VS_CODING_SPLIT_DELTA:
        return vs_split_get(at, end, values, count, column->coding == VS_CODING_SPLIT_DELTA);
    case VS_CODING_TOTALS:
        return get_totals(column, values, count);
    default:
        return -ENOTSUP;
    }
}

/* ---- parts ------------------------------------------------------------------------- */

struct parts {
    size_t *ends;
    size_t count, most;
};

/* Ends a part at `end`, unless it would be too small, or was ended there already. */
static void end_part(struct parts *parts, size_t end)
{
    size_t start = parts->count > 0 ? parts->ends[parts->count - 1] : 0;
    if (end - start >= PART_LEAST_BYTES && parts->count + 1 < parts->most)
        parts->ends[parts->count++] = end;
}

size_t vs_columns_parts(const uint8_t *payload, size_t bytes, size_t *ends, size_t most)
{
    const uint8_t *at = payload, *end = payload + bytes;
    struct parts parts = {ends, 0, most};
    struct vs_column column;
    while (vs_column_next(&at, end, &column) > 0) {
        uint64_t leads;
        bool split = column.coding == VS_CODING_SPLIT || column.coding == VS_CODING_SPLIT_DELTA;
        size_t start = (size_t)(column.data - payload);
        if (column.bytes >= PART_LEAST_BYTES)
            end_part(&parts, start);
        size_t lead = split ? vs_split_lead(column.data, at, &leads) : 0;
        if (lead != 0)
            end_part(&parts, start + lead + (size_t)leads);
        if (column.bytes >= PART_LEAST_BYTES)
            end_part(&parts, start + column.bytes);
    }
    ends[parts.count++] = bytes;
    return parts.count;
}
