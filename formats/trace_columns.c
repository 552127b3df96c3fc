/* SPDX-License-Identifier: Apache-2.0 */
/* Column codings of trace payloads: see trace_columns.h. */
#include "trace_columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define VARINT_MAX_BYTES 10U
#define HEAD_MAX_BYTES (2 * VARINT_MAX_BYTES + 1)

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

static size_t varint_bytes(uint64_t value)
{
    return (70U - (unsigned)__builtin_clzll(value | 1)) / 7U;
}

static uint8_t *put_varint(uint8_t *out, uint64_t value)
{
    while (value >= 0x80) {
        *out++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *out++ = (uint8_t)value;
    return out;
}

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
        size_t value_bytes = varint_bytes(values[i]), delta_bytes = varint_bytes(delta);
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
            out = put_varint(out, value);
            continue;
        }
        if (run > 0 && value != pending) {
            out = put_varint(put_varint(out, run), pending);
            run = 0;
        }
        pending = value;
        run++;
    }
    return run > 0 ? put_varint(put_varint(out, run), pending) : out;
}

static int put_head(struct vs_bytes *out, uint32_t id, enum vs_coding coding, size_t bytes)
{
    int error = vs_bytes_reserve(out, HEAD_MAX_BYTES);
    if (error != 0)
        return error;
    uint8_t *at = put_varint(out->data + out->bytes, id);
    *at++ = (uint8_t)coding;
    at = put_varint(at, bytes);
    out->bytes = (size_t)(at - out->data);
    return 0;
}

static bool all_zero(const uint64_t *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (values[i] != 0)
            return false;
    return true;
}

int vs_column_put(struct vs_bytes *out, uint32_t id, const uint64_t *values, size_t count)
{
    if (all_zero(values, count))
        return 0;
    struct coding_costs costs = measure(values, count);
    enum vs_coding coding = cheapest(&costs);
    /* Written behind room for the longest head, then moved up against the real one. */
    size_t start = out->bytes;
    int error = vs_bytes_reserve(out, HEAD_MAX_BYTES + count * 2 * VARINT_MAX_BYTES);
    if (error != 0)
        return error;
    uint8_t *body = out->data + start + HEAD_MAX_BYTES;
    size_t bytes = (size_t)(put_values(body, coding, values, count) - body);
    error = put_head(out, id, coding, bytes);
    if (error != 0)
        return error;
    memmove(out->data + out->bytes, body, bytes);
    out->bytes += bytes;
    return 0;
}

int vs_column_put_bytes(struct vs_bytes *out, uint32_t id, const void *data, size_t bytes)
{
    if (bytes == 0)
        return 0;
    int error = put_head(out, id, VS_CODING_BYTES, bytes);
    return error != 0 ? error : vs_bytes_append(out, data, bytes);
}

/* ---- reading ---------------------------------------------------------------- */

/* A varint that may end anywhere; false when it is cut or longer than 64 bits. */
static bool get_varint_checked(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && *at < end; shift += 7) {
        uint8_t byte = *(*at)++;
        if (shift == 63 && byte > 1)
            return false;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = value;
            return true;
        }
    }
    return false;
}

static inline bool get_varint(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
    const uint8_t *p = *at;
    if (end - p >= 2) {
        if (p[0] < 0x80) {
            *out = p[0];
            *at = p + 1;
            return true;
        }
        if (p[1] < 0x80) {
            *out = (uint64_t)(p[0] & 0x7f) | (uint64_t)p[1] << 7;
            *at = p + 2;
            return true;
        }
    }
    return get_varint_checked(at, end, out);
}

int vs_column_next(const uint8_t **at, const uint8_t *end, struct vs_column *out)
{
    if (*at == end)
        return 0;
    uint64_t bytes;
    if (!get_varint_checked(at, end, &out->id) || *at == end)
        return -EBADMSG;
    out->coding = *(*at)++;
    if (!get_varint_checked(at, end, &bytes) || bytes > (size_t)(end - *at))
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
        if (!get_varint(&at, end, &values[i]))
            return -EBADMSG;
    return at == end ? 0 : -EBADMSG;
}

static int get_runs(const struct vs_column *column, uint64_t *values, size_t count)
{
    const uint8_t *at = column->data, *end = at + column->bytes;
    size_t done = 0;
    while (done < count) {
        uint64_t run, value;
        if (!get_varint(&at, end, &run) || !get_varint(&at, end, &value) || run == 0 ||
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

int vs_column_values(const struct vs_column *column, uint64_t *values, size_t count)
{
    if (column->coding == VS_CODING_BYTES || column->coding > VS_CODING_DELTA_RUNS)
        return -ENOTSUP;
    int error = column->coding >= VS_CODING_RUNS ? get_runs(column, values, count)
                                                 : get_plain(column, values, count);
    if (error == 0 && is_delta((enum vs_coding)column->coding))
        sum_up(values, count);
    return error;
}
