/* SPDX-License-Identifier: Apache-2.0 */
/* LEB128 numbers and zigzag, the atoms of a trace's columns (docs/format.md §5). */
#ifndef VS_FORMATS_TRACE_VARINT_H
#define VS_FORMATS_TRACE_VARINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VS_VARINT_MAX_BYTES 10U

/* Small differences of either sign as small numbers, and back. */
static inline uint64_t vs_zigzag(uint64_t difference)
{
    return difference << 1 ^ (0 - (difference >> 63));
}

static inline uint64_t vs_unzigzag(uint64_t value)
{
    return value >> 1 ^ (0 - (value & 1));
}

static inline size_t vs_varint_bytes(uint64_t value)
{
    return (70U - (unsigned)__builtin_clzll(value | 1)) / 7U;
}

static inline uint8_t *vs_put_varint(uint8_t *out, uint64_t value)
{
    while (value >= 0x80) {
        *out++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *out++ = (uint8_t)value;
    return out;
}

/* A varint that may end anywhere; false when it is cut or longer than 64 bits. */
static inline bool vs_get_varint_checked(const uint8_t **at, const uint8_t *end, uint64_t *out)
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

/* The same, quick for the usual one or two bytes. */
static inline bool vs_get_varint(const uint8_t **at, const uint8_t *end, uint64_t *out)
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
    return vs_get_varint_checked(at, end, out);
}

#endif
