/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inner layer of a trace: a payload is a row of self-describing columns
 * {id, coding, byte length, bytes} (docs/format.md §5). Columns whose values are
 * all zero are absent; columns a reader does not know are skipped.
 */
#ifndef VS_FORMATS_TRACE_COLUMNS_H
#define VS_FORMATS_TRACE_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum vs_coding {
    VS_CODING_BYTES = 0,  /* as they are: text */
    VS_CODING_VARINT = 1, /* LEB128 */
    VS_CODING_DELTA = 2,  /* zigzag of the difference to the value before (0 before the first) */
    VS_CODING_RUNS = 3,   /* pairs: length of the run, value */
    VS_CODING_DELTA_RUNS = 4, /* pairs: length of the run, zigzag of the difference */
};

/* Bytes that grow. Zero is the empty one. */
struct vs_bytes {
    uint8_t *data;
    size_t bytes;
    size_t capacity;
};

int vs_bytes_reserve(struct vs_bytes *buffer, size_t more); /* 0 or -ENOMEM */
int vs_bytes_append(struct vs_bytes *buffer, const void *data, size_t bytes);
void vs_bytes_free(struct vs_bytes *buffer);

/* A column of numbers, in the coding that is shortest; nothing when all are 0. 0 or -ENOMEM. */
int vs_column_put(struct vs_bytes *out, uint32_t id, const uint64_t *values, size_t count);
/* A column of bytes; nothing when there are none. */
int vs_column_put_bytes(struct vs_bytes *out, uint32_t id, const void *data, size_t bytes);

struct vs_column {
    uint64_t id;
    uint8_t coding;
    const uint8_t *data; /* inside the payload */
    size_t bytes;
};

/* The next column of a payload: 1, 0 at the end, -EBADMSG when it does not fit. */
int vs_column_next(const uint8_t **at, const uint8_t *end, struct vs_column *out);

/*
 * Exactly `count` values that use up exactly the column's bytes, else -EBADMSG;
 * -ENOTSUP for a coding this build does not know.
 */
int vs_column_values(const struct vs_column *column, uint64_t *values, size_t count);

/* Small differences of either sign as small numbers, and back. */
static inline uint64_t vs_zigzag(uint64_t difference)
{
    return difference << 1 ^ (0 - (difference >> 63));
}

static inline uint64_t vs_unzigzag(uint64_t value)
{
    return value >> 1 ^ (0 - (value & 1));
}

#endif
