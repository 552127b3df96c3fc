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

#include "trace_varint.h"

enum vs_coding {
    VS_CODING_BYTES = 0,  /* as they are: text */
    VS_CODING_VARINT = 1, /* LEB128 */
    VS_CODING_DELTA = 2,  /* zigzag of the difference to the value before (0 before the first) */
    VS_CODING_RUNS = 3,   /* pairs: length of the run, value */
    VS_CODING_DELTA_RUNS = 4,  /* pairs: length of the run, zigzag of the difference */
    VS_CODING_BACK = 5,        /* how many places ago the same value was, or the value */
    VS_CODING_SPLIT = 6,       /* leading bits as bytes, then the bits below them */
    VS_CODING_SPLIT_DELTA = 7, /* the same of the differences */
    VS_CODING_TOTALS = 8,      /* what is left after a prediction by other columns (§6) */
};

/* What a writer knows about a column's values; any coding may still be chosen. */
enum vs_column_nature {
    VS_NATURE_ANY,
    VS_NATURE_RECURRING, /* few different values, again and again */
    VS_NATURE_CLOCK,     /* steps of no pattern */
    VS_NATURE_NOISE,     /* values of no pattern */
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
/* The same for values of a known nature: in the coding that is shortest once it is compressed. */
int vs_column_put_natured(struct vs_bytes *out, uint32_t id, const uint64_t *values, size_t count,
                          enum vs_column_nature nature);
/* What is left of the values after a prediction (VS_CODING_TOTALS), as zigzag numbers. */
int vs_column_put_totals(struct vs_bytes *out, uint32_t id, const uint64_t *rest, size_t count);
/* How many values differ from the one before. */
size_t vs_column_changes(const uint64_t *values, size_t count);
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
 * Where a payload falls into parts of bytes of one kind: offsets of their ends,
 * increasing, the last one `bytes`. Compressing each with statistics of its own
 * pays. Returns how many, at most `most`; 1 for a payload that is no row of columns.
 */
size_t vs_columns_parts(const uint8_t *payload, size_t bytes, size_t *ends, size_t most);

/*
 * Exactly `count` values that use up exactly the column's bytes, else -EBADMSG;
 * -ENOTSUP for a coding this build does not know. Of TOTALS: the rest, unzigzagged.
 */
int vs_column_values(const struct vs_column *column, uint64_t *values, size_t count);

#endif
