/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the numbers of an unwind table. A read past the end yields 0 and
 * marks the reader, once and for all: who reads a sequence asks at its end.
 */
#ifndef VS_SHIM_UNWIND_BYTES_H
#define VS_SHIM_UNWIND_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct unwind_bytes {
    const uint8_t *at;
    const uint8_t *end;
    bool bad;
};

static inline uint64_t unwind_left(const struct unwind_bytes *bytes)
{
    return (uint64_t)(bytes->end - bytes->at);
}

/* The `count` (≤ 8) bytes in front, least significant first. */
static inline uint64_t unwind_take(struct unwind_bytes *bytes, unsigned count)
{
    uint64_t value = 0;
    if (unwind_left(bytes) < count) {
        bytes->bad = true;
        bytes->at = bytes->end;
        return 0;
    }
    memcpy(&value, bytes->at, count);
    bytes->at += count;
    return value;
}

static inline int64_t unwind_take_signed(struct unwind_bytes *bytes, unsigned count)
{
    unsigned shift = 64 - 8 * count;
    return (int64_t)(unwind_take(bytes, count) << shift) >> shift;
}

static inline void unwind_skip(struct unwind_bytes *bytes, uint64_t count)
{
    if (unwind_left(bytes) < count) {
        bytes->bad = true;
        bytes->at = bytes->end;
    } else {
        bytes->at += count;
    }
}

static inline uint64_t unwind_take_uleb(struct unwind_bytes *bytes)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint64_t byte = unwind_take(bytes, 1);
        value |= (byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            return value;
        }
    }
    bytes->bad = true;
    return 0;
}

static inline int64_t unwind_take_sleb(struct unwind_bytes *bytes)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64;) {
        uint64_t byte = unwind_take(bytes, 1);
        value |= (byte & 0x7f) << shift;
        shift += 7;
        if ((byte & 0x80) == 0) {
            return (byte & 0x40) != 0 && shift < 64 ? (int64_t)(value | ~0ULL << shift)
                                                    : (int64_t)value;
        }
    }
    bytes->bad = true;
    return 0;
}

#endif
