/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Definitions as tables: every kind of definition (strings, threads, modules,
 * devices, stacks, code objects, symbols, facts) is a number of rows with a few numbers, a few
 * texts and at most one list of words. One shape serves all of them, written and read
 * (docs/format.md §7).
 */
#ifndef VS_FORMATS_TRACE_TABLE_H
#define VS_FORMATS_TRACE_TABLE_H

#include <string.h>

#include "trace.h"
#include "trace_chunk.h"
#include "trace_columns.h"

#define VS_TABLE_NUMBERS 5U
#define VS_TABLE_TEXTS 4U
#define VS_TABLE_TEXT_MAX_BYTES (1U << 20)

struct vs_table_shape {
    uint16_t type; /* of the chunk */
    uint8_t numbers, texts;
    bool words;
};

/* NULL when chunks of this type are not definitions. */
const struct vs_table_shape *vs_table_shape(uint16_t chunk_type);

struct vs_text {
    const char *data;
    size_t bytes;
};

/* NULL is an empty text. */
static inline struct vs_text vs_text_of(const char *text)
{
    return (struct vs_text){text == NULL ? "" : text, text == NULL ? 0 : strlen(text)};
}

/* One row. The first number is its id. */
struct vs_table_row {
    uint64_t numbers[VS_TABLE_NUMBERS];
    struct vs_text texts[VS_TABLE_TEXTS];
    const uint64_t *words;
    size_t word_count;
};

/* ---- writing ---- */

struct vs_table {
    const struct vs_table_shape *shape;
    size_t rows;
    uint64_t lowest_id, highest_id;            /* of all rows */
    struct vs_bytes numbers[VS_TABLE_NUMBERS]; /* of uint64_t */
    struct vs_bytes lengths[VS_TABLE_TEXTS];   /* of uint64_t */
    struct vs_bytes texts[VS_TABLE_TEXTS];
    struct vs_bytes word_counts, words; /* of uint64_t */
};

void vs_table_init(struct vs_table *table, uint16_t chunk_type);
void vs_table_free(struct vs_table *table);
void vs_table_clear(struct vs_table *table);
size_t vs_table_bytes(const struct vs_table *table); /* held, roughly as they will be unpacked */
int vs_table_add(struct vs_table *table, const struct vs_table_row *row); /* 0 or -ENOMEM */
/*
 * All rows of one address, numbered from `*next_row` on. They stay in one chunk: half a list of
 * inlined calls would be a false one. 0, -ENOMEM, or -EINVAL: too many or too long, none added.
 */
int vs_table_add_symbol(struct vs_table *table, const struct vs_symbol_def *symbol,
                        uint64_t *next_row);
int vs_table_encode(const struct vs_table *table, struct vs_bytes *out);
/* Rows [first, first + count) alone, and the least and greatest of their ids. 0 or -ENOMEM. */
int vs_table_encode_rows(const struct vs_table *table, size_t first, size_t count,
                         struct vs_bytes *out);
void vs_table_id_range(const struct vs_table *table, size_t first, size_t count, uint64_t *lowest,
                       uint64_t *highest);

/* ---- reading ---- */

/*
 * Calls `row` for every row of a payload. Returns 0, -EBADMSG, -ENOTSUP (an
 * unknown coding), -ENOMEM, or the first non-zero value of `row`.
 */
int vs_table_decode(const struct vs_table_shape *shape, const uint8_t *payload, size_t bytes,
                    size_t rows, int (*row)(void *context, const struct vs_table_row *row),
                    void *context);

#endif
