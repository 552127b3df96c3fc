/* SPDX-License-Identifier: Apache-2.0 */
/* BACK and SPLIT: see trace_codings.h. */
#include "trace_codings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace_varint.h"

/* What all of some numbers have in common as a factor; 1 for none. */
static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* ---- BACK --------------------------------------------------------------------------- */

struct seen {
    uint64_t value;
    size_t place; /* of its latest occurrence, counted from 1; 0: free */
};

static size_t hash(uint64_t value, unsigned bits)
{
    return (size_t)(value * 0x9e3779b97f4a7c15U >> (64 - bits));
}

static struct seen *find(struct seen *table, unsigned bits, uint64_t value)
{
    size_t mask = ((size_t)1 << bits) - 1;
    size_t at = hash(value, bits);
    while (table[at].place != 0 && table[at].value != value)
        at = (at + 1) & mask;
    return &table[at];
}

void vs_backs_free(struct vs_backs *backs)
{
    free(backs->distances);
    free(backs->literals);
    *backs = (struct vs_backs){0};
}

int vs_backs_find(const uint64_t *values, size_t count, struct vs_backs *out)
{
    unsigned bits = 4;
    while (((size_t)1 << bits) < 2 * count)
        bits++;
    struct seen *table = calloc((size_t)1 << bits, sizeof *table);
    *out = (struct vs_backs){.distances = malloc((count + 1) * sizeof *out->distances),
                             .literals = malloc((count + 1) * sizeof *out->literals)};
    if (table == NULL || out->distances == NULL || out->literals == NULL) {
        free(table);
        vs_backs_free(out);
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        struct seen *seen = find(table, bits, values[i]);
        out->distances[i] = seen->place == 0 ? 0 : i + 1 - seen->place;
        if (seen->place == 0)
            out->literals[out->literal_count++] = values[i];
        *seen = (struct seen){values[i], i + 1};
    }
    free(table);
    return 0;
}

size_t vs_back_bound(size_t count, size_t literal_count)
{
    return (2 + count + literal_count) * VS_VARINT_MAX_BYTES;
}

uint8_t *vs_back_put(uint8_t *out, const struct vs_backs *backs, size_t count)
{
    uint64_t unit = 0, before = 0;
    for (size_t i = 0; i < backs->literal_count && unit != 1; i++)
        unit = common_divisor(unit, backs->literals[i]);
    unit = unit == 0 ? 1 : unit;
    out = vs_put_varint(vs_put_varint(out, unit), backs->literal_count);
    for (size_t i = 0; i < backs->literal_count; i++) {
        uint64_t value = backs->literals[i] / unit;
        out = vs_put_varint(out, vs_zigzag(value - before));
        before = value;
    }
    for (size_t i = 0; i < count; i++)
        out = vs_put_varint(out, backs->distances[i]);
    return out;
}

/* Literals stand before the distances that use them: one pass, two places. */
int vs_back_get(const uint8_t *at, const uint8_t *end, uint64_t *values, size_t count)
{
    uint64_t unit, literal_count, distance, literal = 0;
    if (!vs_get_varint(&at, end, &unit) || !vs_get_varint(&at, end, &literal_count) ||
        literal_count > count)
        return -EBADMSG;
    const uint8_t *literals = at;
    for (uint64_t i = 0; i < literal_count; i++)
        if (!vs_get_varint(&at, end, &distance))
            return -EBADMSG;
    const uint8_t *distances = at;
    uint64_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (!vs_get_varint(&at, end, &distance) || distance > i)
            return -EBADMSG;
        if (distance != 0) {
            values[i] = values[i - distance];
            continue;
        }
        uint64_t difference;
        if (used++ == literal_count || !vs_get_varint(&literals, distances, &difference))
            return -EBADMSG;
        literal += vs_unzigzag(difference);
        values[i] = literal * unit;
    }
    return at == end && used == literal_count ? 0 : -EBADMSG;
}

/* ---- SPLIT --------------------------------------------------------------------------- */

/*
 * A value's lead: itself when below 4; else its two top bits (2 or 3) plus twice
 * the number of bits below them, which stand elsewhere.
 */
static unsigned low_bits(uint64_t value)
{
    return value < 4 ? 0 : 62U - (unsigned)__builtin_clzll(value);
}

static unsigned lead_of(uint64_t value, unsigned low)
{
    return 2 * low + (unsigned)(value >> low);
}

#define LEAD_MAX 127U /* two top bits of 64, 62 below */

size_t vs_split_bound(size_t count)
{
    return 3 * VS_VARINT_MAX_BYTES + count * 9 + 16;
}

static uint64_t value_at(const uint64_t *values, size_t i, bool delta)
{
    return delta ? values[i] - (i > 0 ? values[i - 1] : 0) : values[i];
}

/* The least value, as a signed number: of the later ones only, the first being a start and no step.
 */
static uint64_t least(const uint64_t *values, size_t count, bool delta)
{
    size_t from = delta && count > 1 ? 1 : 0;
    int64_t base = count > 0 ? (int64_t)value_at(values, from, delta) : 0;
    for (size_t i = from; i < count; i++)
        if ((int64_t)value_at(values, i, delta) < base)
            base = (int64_t)value_at(values, i, delta);
    return (uint64_t)base;
}

static uint64_t find_unit(const uint64_t *values, size_t count, uint64_t base, bool delta)
{
    uint64_t unit = 0;
    for (size_t i = 0; i < count && unit != 1; i++)
        unit = common_divisor(unit, value_at(values, i, delta) - base);
    return unit == 0 ? 1 : unit;
}

/* Bits as they come, low ones first, gathered to whole bytes. */
struct bit_writer {
    uint8_t *out;
    uint64_t held;
    unsigned bits; /* held, fewer than 8 between two values */
};

static void put_bits(struct bit_writer *writer, uint64_t value, unsigned bits)
{
    for (unsigned done = 0; done < bits; done += 32) {
        unsigned some = bits - done < 32 ? bits - done : 32;
        writer->held |= (value >> done & ((1ULL << some) - 1)) << writer->bits;
        writer->bits += some;
        while (writer->bits >= 8) {
            *writer->out++ = (uint8_t)writer->held;
            writer->held >>= 8;
            writer->bits -= 8;
        }
    }
}

uint8_t *vs_split_put(uint8_t *out, const uint64_t *values, size_t count, bool delta)
{
    uint64_t base = least(values, count, delta);
    uint64_t unit = find_unit(values, count, base, delta);
    out = vs_put_varint(out, count);
    out = vs_put_varint(vs_put_varint(out, unit), vs_zigzag(base));
    uint8_t *leads = out;
    struct bit_writer low = {.out = out + count};
    for (size_t i = 0; i < count; i++) {
        uint64_t value = value_at(values, i, delta) - base;
        if (unit != 1)
            value /= unit;
        unsigned bits = low_bits(value);
        leads[i] = (uint8_t)lead_of(value, bits);
        put_bits(&low, value, bits);
    }
    if (low.bits > 0)
        *low.out++ = (uint8_t)low.held;
    return low.out;
}

size_t vs_split_lead(const uint8_t *at, const uint8_t *end, uint64_t *count)
{
    const uint8_t *start = at;
    uint64_t unit, base;
    if (!vs_get_varint(&at, end, count) || !vs_get_varint(&at, end, &unit) ||
        !vs_get_varint(&at, end, &base) || *count > (size_t)(end - at))
        return 0;
    return (size_t)(at - start);
}

/* Up to 62 bits at a bit's place; the caller knows that they are there. */
static uint64_t get_bits(const uint8_t *bytes, size_t size, uint64_t place, unsigned bits)
{
    uint64_t word = 0, above = 0;
    size_t at = (size_t)(place / 8), left = size - at;
    unsigned shift = (unsigned)(place % 8);
    if (left >= 16) {
        memcpy(&word, bytes + at, sizeof word);
        above = bytes[at + 8];
    } else {
        for (size_t i = 0; i < left && i < 8; i++)
            word |= (uint64_t)bytes[at + i] << (8 * i);
        above = left > 8 ? bytes[at + 8] : 0;
    }
    word >>= shift;
    if (shift + bits > 64)
        word |= above << (64 - shift);
    return word & ((1ULL << bits) - 1);
}

int vs_split_get(const uint8_t *at, const uint8_t *end, uint64_t *values, size_t count, bool delta)
{
    uint64_t told, unit, base, place = 0, before = 0;
    if (!vs_get_varint(&at, end, &told) || !vs_get_varint(&at, end, &unit) ||
        !vs_get_varint(&at, end, &base) || told != count || count > (size_t)(end - at))
        return -EBADMSG;
    const uint8_t *leads = at, *low = at + count;
    size_t low_bytes = (size_t)(end - low);
    base = vs_unzigzag(base);
    for (size_t i = 0; i < count; i++) {
        uint64_t value = leads[i];
        if (value >= 4) {
            unsigned bits = (unsigned)value / 2 - 1;
            if (value > LEAD_MAX || place + bits > 8 * (uint64_t)low_bytes)
                return -EBADMSG;
            value = (2 | (value & 1)) << bits | get_bits(low, low_bytes, place, bits);
            place += bits;
        }
        value = value * unit + base;
        before = delta ? before + value : value;
        values[i] = before;
    }
    return (place + 7) / 8 == low_bytes ? 0 : -EBADMSG;
}
