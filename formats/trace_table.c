/* SPDX-License-Identifier: Apache-2.0 */
/* Definition tables to columns and back: see trace_table.h. */
#include "trace_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SYMBOL_FRAMES_MAX 1024U

/* Column ids: numbers from 1, then pairs of lengths and bytes, then the list of words. */
#define COLUMN_NUMBER(i) (1U + (i))
#define COLUMN_LENGTHS(i) (16U + 2U * (i))
#define COLUMN_TEXT(i) (17U + 2U * (i))
#define COLUMN_WORD_COUNTS 32U
#define COLUMN_WORDS 33U

static const struct vs_table_shape shapes[] = {
    {VS_CHUNK_STRINGS, 1, 1, false}, /* id; text */
    {VS_CHUNK_THREADS, 1, 1, false}, /* thread id; name */
    {VS_CHUNK_MODULES, 5, 2, false}, /* id generation start end load_bias; build id, path */
    {VS_CHUNK_DEVICES, 3, 4, false}, /* ordinal total integrated; uuid, MIG uuid, PCI id, name */
    {VS_CHUNK_STACKS, 2, 0, true},   /* id generation; frames */
    {VS_CHUNK_CODES, 2, 2, false},   /* id first_line; name, file */
    {VS_CHUNK_SYMBOLS, 5, 2, false}, /* running_id module address place line; function, file */
    {VS_CHUNK_META, 0, 2, false},    /* name, JSON */
};

const struct vs_table_shape *vs_table_shape(uint16_t chunk_type)
{
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        if (shapes[i].type == chunk_type)
            return &shapes[i];
    return NULL;
}

/* ---- writing ---------------------------------------------------------------- */

void vs_table_init(struct vs_table *table, uint16_t chunk_type)
{
    *table = (struct vs_table){.shape = vs_table_shape(chunk_type)};
}

void vs_table_free(struct vs_table *table)
{
    for (size_t i = 0; i < VS_TABLE_NUMBERS; i++)
        vs_bytes_free(&table->numbers[i]);
    for (size_t i = 0; i < VS_TABLE_TEXTS; i++) {
        vs_bytes_free(&table->lengths[i]);
        vs_bytes_free(&table->texts[i]);
    }
    vs_bytes_free(&table->word_counts);
    vs_bytes_free(&table->words);
}

void vs_table_clear(struct vs_table *table)
{
    table->rows = 0;
    for (size_t i = 0; i < VS_TABLE_NUMBERS; i++)
        table->numbers[i].bytes = 0;
    for (size_t i = 0; i < VS_TABLE_TEXTS; i++)
        table->lengths[i].bytes = table->texts[i].bytes = 0;
    table->word_counts.bytes = table->words.bytes = 0;
}

size_t vs_table_bytes(const struct vs_table *table)
{
    size_t bytes = table->word_counts.bytes + table->words.bytes;
    for (size_t i = 0; i < VS_TABLE_NUMBERS; i++)
        bytes += table->numbers[i].bytes;
    for (size_t i = 0; i < VS_TABLE_TEXTS; i++)
        bytes += table->lengths[i].bytes + table->texts[i].bytes;
    return bytes;
}

static int append_number(struct vs_bytes *column, uint64_t value)
{
    return vs_bytes_append(column, &value, sizeof value);
}

int vs_table_add(struct vs_table *table, const struct vs_table_row *row)
{
    const struct vs_table_shape *shape = table->shape;
    int error = 0;
    for (size_t i = 0; i < shape->numbers && error == 0; i++)
        error = append_number(&table->numbers[i], row->numbers[i]);
    for (size_t i = 0; i < shape->texts && error == 0; i++) {
        error = append_number(&table->lengths[i], row->texts[i].bytes);
        if (error == 0)
            error = vs_bytes_append(&table->texts[i], row->texts[i].data, row->texts[i].bytes);
    }
    if (shape->words && error == 0)
        error = append_number(&table->word_counts, row->word_count);
    if (shape->words && error == 0)
        error = vs_bytes_append(&table->words, row->words, row->word_count * sizeof *row->words);
    if (error != 0)
        return error;
    uint64_t id = row->numbers[0];
    if (table->rows == 0 || id < table->lowest_id)
        table->lowest_id = id;
    if (table->rows == 0 || id > table->highest_id)
        table->highest_id = id;
    table->rows++;
    return 0;
}

static const uint64_t *numbers_of(const struct vs_bytes *column)
{
    return (const uint64_t *)(const void *)column->data;
}

static uint64_t sum(const struct vs_bytes *column, size_t first, size_t count)
{
    uint64_t total = 0;
    for (size_t i = first; i < first + count; i++)
        total += numbers_of(column)[i];
    return total;
}

static int put_numbers(struct vs_bytes *out, uint32_t id, const struct vs_bytes *column,
                       size_t first, size_t count)
{
    return count == 0 ? 0 : vs_column_put(out, id, numbers_of(column) + first, count);
}

static int put_text(const struct vs_table *table, uint32_t text, size_t first, size_t count,
                    struct vs_bytes *out)
{
    const struct vs_bytes *lengths = &table->lengths[text];
    int error = put_numbers(out, COLUMN_LENGTHS(text), lengths, first, count);
    size_t before = (size_t)sum(lengths, 0, first), bytes = (size_t)sum(lengths, first, count);
    if (error != 0 || bytes == 0)
        return error;
    return vs_column_put_bytes(out, COLUMN_TEXT(text), table->texts[text].data + before, bytes);
}

/* Words come again: stacks share their outer frames. */
static int put_words(const struct vs_table *table, size_t first, size_t count, struct vs_bytes *out)
{
    int error = put_numbers(out, COLUMN_WORD_COUNTS, &table->word_counts, first, count);
    size_t before = (size_t)sum(&table->word_counts, 0, first);
    size_t words = (size_t)sum(&table->word_counts, first, count);
    if (error != 0 || words == 0)
        return error;
    return vs_column_put_natured(out, COLUMN_WORDS, numbers_of(&table->words) + before, words,
                                 VS_NATURE_RECURRING);
}

int vs_table_encode_rows(const struct vs_table *table, size_t first, size_t count,
                         struct vs_bytes *out)
{
    int error = 0;
    for (uint32_t i = 0; i < table->shape->numbers && error == 0; i++)
        error = put_numbers(out, COLUMN_NUMBER(i), &table->numbers[i], first, count);
    for (uint32_t i = 0; i < table->shape->texts && error == 0; i++)
        error = put_text(table, i, first, count, out);
    return error != 0 || !table->shape->words ? error : put_words(table, first, count, out);
}

int vs_table_add_symbol(struct vs_table *table, const struct vs_symbol_def *symbol,
                        uint64_t *next_row)
{
    static const struct vs_symbol_frame nothing = {0};
    const struct vs_symbol_frame *frames = symbol->count == 0 ? &nothing : symbol->frames;
    uint32_t count = symbol->count == 0 ? 1 : symbol->count;
    if (count > SYMBOL_FRAMES_MAX)
        return -EINVAL;
    for (uint32_t i = 0; i < count; i++)
        if (vs_text_of(frames[i].function).bytes > VS_TABLE_TEXT_MAX_BYTES ||
            vs_text_of(frames[i].file).bytes > VS_TABLE_TEXT_MAX_BYTES)
            return -EINVAL;
    int error = 0;
    for (uint32_t place = 0; error == 0 && place < count; place++) {
        struct vs_table_row row = {
            .numbers = {(*next_row)++, symbol->module, symbol->address, place, frames[place].line},
            .texts = {vs_text_of(frames[place].function), vs_text_of(frames[place].file)}};
        error = vs_table_add(table, &row);
    }
    return error;
}

int vs_table_encode(const struct vs_table *table, struct vs_bytes *out)
{
    return vs_table_encode_rows(table, 0, table->rows, out);
}

void vs_table_id_range(const struct vs_table *table, size_t first, size_t count, uint64_t *lowest,
                       uint64_t *highest)
{
    const uint64_t *ids = numbers_of(&table->numbers[0]) + first;
    *lowest = *highest = table->shape->numbers > 0 && count > 0 ? ids[0] : 0;
    for (size_t i = 1; i < count && table->shape->numbers > 0; i++) {
        *lowest = ids[i] < *lowest ? ids[i] : *lowest;
        *highest = ids[i] > *highest ? ids[i] : *highest;
    }
}

/* ---- reading ---------------------------------------------------------------- */

/* The columns of one payload, numbers already unpacked. Absent columns stay NULL: all zero. */
struct columns {
    uint64_t *numbers[VS_TABLE_NUMBERS];
    uint64_t *lengths[VS_TABLE_TEXTS];
    struct vs_text texts[VS_TABLE_TEXTS];
    uint64_t *word_counts, *words;
    size_t word_total;
};

static void free_columns(struct columns *columns)
{
    for (size_t i = 0; i < VS_TABLE_NUMBERS; i++)
        free(columns->numbers[i]);
    for (size_t i = 0; i < VS_TABLE_TEXTS; i++)
        free(columns->lengths[i]);
    free(columns->word_counts);
    free(columns->words);
}

static int unpack(const struct vs_column *column, size_t count, uint64_t **out)
{
    free(*out); /* a column that comes twice: the later one counts */
    *out = malloc((count ? count : 1) * sizeof **out);
    return *out == NULL ? -ENOMEM : vs_column_values(column, *out, count);
}

/* Words follow their counts; the sum is bounded as any payload is. */
static int count_words(struct columns *columns, size_t rows)
{
    uint64_t total = 0;
    for (size_t i = 0; i < rows && columns->word_counts != NULL; i++)
        if (__builtin_add_overflow(total, columns->word_counts[i], &total) ||
            total > VS_CHUNK_MAX_RAW / sizeof(uint64_t))
            return -EBADMSG;
    columns->word_total = (size_t)total;
    return 0;
}

static int unpack_words(const struct vs_column *column, size_t rows, struct columns *columns)
{
    int error = count_words(columns, rows);
    return error != 0 ? error : unpack(column, columns->word_total, &columns->words);
}

/* Counts without words: the words are all zero. */
static int zero_words(struct columns *columns, size_t rows)
{
    if (columns->word_counts == NULL || columns->words != NULL)
        return 0;
    int error = count_words(columns, rows);
    if (error != 0)
        return error;
    columns->words = calloc(columns->word_total ? columns->word_total : 1, sizeof(uint64_t));
    return columns->words == NULL ? -ENOMEM : 0;
}

static int take_column(const struct vs_table_shape *shape, const struct vs_column *column,
                       size_t rows, struct columns *columns)
{
    uint64_t id = column->id;
    for (uint32_t i = 0; i < shape->numbers; i++)
        if (id == COLUMN_NUMBER(i))
            return unpack(column, rows, &columns->numbers[i]);
    for (uint32_t i = 0; i < shape->texts; i++) {
        if (id == COLUMN_LENGTHS(i))
            return unpack(column, rows, &columns->lengths[i]);
        if (id == COLUMN_TEXT(i)) {
            if (column->coding != VS_CODING_BYTES)
                return -ENOTSUP;
            columns->texts[i] = (struct vs_text){(const char *)column->data, column->bytes};
            return 0;
        }
    }
    if (shape->words && id == COLUMN_WORD_COUNTS && columns->words == NULL)
        return unpack(column, rows, &columns->word_counts);
    if (shape->words && id == COLUMN_WORDS)
        return unpack_words(column, rows, columns);
    return 0;
}

/* The next `bytes` of a text column; false when it does not hold as many. */
static bool cut(struct vs_text *rest, uint64_t bytes, struct vs_text *out)
{
    if (bytes > rest->bytes)
        return false;
    *out = (struct vs_text){rest->data, (size_t)bytes};
    rest->bytes -= (size_t)bytes;
    if (bytes > 0)
        rest->data += bytes;
    return true;
}

static int deliver(const struct vs_table_shape *shape, struct columns *columns, size_t rows,
                   int (*row)(void *, const struct vs_table_row *), void *context)
{
    size_t words_done = 0;
    for (size_t r = 0; r < rows; r++) {
        struct vs_table_row one = {0};
        for (size_t i = 0; i < shape->numbers; i++)
            one.numbers[i] = columns->numbers[i] == NULL ? 0 : columns->numbers[i][r];
        for (size_t i = 0; i < shape->texts; i++) {
            uint64_t bytes = columns->lengths[i] == NULL ? 0 : columns->lengths[i][r];
            if (!cut(&columns->texts[i], bytes, &one.texts[i]))
                return -EBADMSG;
        }
        if (columns->word_counts != NULL) {
            uint64_t count = columns->word_counts[r];
            if (count > columns->word_total - words_done)
                return -EBADMSG;
            one.words = columns->words + words_done;
            one.word_count = (size_t)count;
            words_done += one.word_count;
        }
        int result = row(context, &one);
        if (result != 0)
            return result;
    }
    return 0;
}

int vs_table_decode(const struct vs_table_shape *shape, const uint8_t *payload, size_t bytes,
                    size_t rows, int (*row)(void *context, const struct vs_table_row *row),
                    void *context)
{
    struct columns columns = {0};
    const uint8_t *at = payload, *end = payload + bytes;
    struct vs_column column;
    int got, error = 0;
    while (error == 0 && (got = vs_column_next(&at, end, &column)) != 0)
        error = got < 0 ? got : take_column(shape, &column, rows, &columns);
    if (error == 0)
        error = zero_words(&columns, rows);
    if (error == 0)
        error = deliver(shape, &columns, rows, row, context);
    free_columns(&columns);
    return error;
}
