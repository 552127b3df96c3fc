/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line tables of CPython: which source line an offset into the bytecode
 * belongs to. Formats: Objects/lnotab_notes.txt of 3.8 and 3.10,
 * InternalDocs/code_objects.md (locations table) from 3.11 on.
 */
#include "python_parts.h"

#define TABLE_BYTES_MAX (1U << 28)
#define UNIT_BYTES 2

struct table {
    const uint8_t *next;
    const uint8_t *end;
};

static bool has(const struct table *table, unsigned bytes)
{
    return (size_t)(table->end - table->next) >= bytes;
}

/* Pairs of address and line deltas: a line begins where its address does. */
static int64_t line_in_pairs(struct table table, int64_t line, int32_t offset)
{
    int32_t address = 0;
    for (; has(&table, 2); table.next += 2) {
        address += table.next[0];
        if (address > offset) {
            break;
        }
        line += (int8_t)table.next[1];
    }
    return line;
}

/* Pairs of a range's length and its line's delta, the lowest one meaning no line. */
static int64_t line_in_ranges(struct table table, int64_t line, int32_t offset)
{
    int32_t end = 0;
    for (; has(&table, 2); table.next += 2) {
        int8_t delta = (int8_t)table.next[1];
        end += table.next[0];
        line += delta != INT8_MIN ? delta : 0;
        if (offset < end) {
            return delta != INT8_MIN ? line : 0;
        }
    }
    return 0;
}

/* Six bits a byte, the lowest first; bit 6: more follow. */
static uint32_t read_number(struct table *table)
{
    uint32_t value = 0;
    for (unsigned shift = 0; has(table, 1) && shift < 32; shift += 6) {
        uint8_t byte = *table->next++;
        value |= (uint32_t)(byte & 0x3fU) << shift;
        if ((byte & 0x40U) == 0) {
            break;
        }
    }
    return value;
}

static int32_t read_signed(struct table *table)
{
    uint32_t value = read_number(table);
    int32_t magnitude = (int32_t)(value >> 1);
    return (value & 1U) != 0 ? -magnitude : magnitude;
}

enum location {
    LOCATION_SHORT_MAX = 9, /* the same line; one byte of columns */
    LOCATION_ONE_LINE = 10, /* to 12: the line after so many; two bytes of columns */
    LOCATION_NO_COLUMNS = 13,
    LOCATION_LONG = 14,
    LOCATION_NONE = 15
};

static void skip(struct table *table, unsigned bytes)
{
    table->next = has(table, bytes) ? table->next + bytes : table->end;
}

/* Moves to the next location; returns how far its line is from the one before. */
static int32_t read_location(struct table *table, unsigned kind)
{
    int32_t delta = 0;
    if (kind <= LOCATION_SHORT_MAX) {
        skip(table, 1);
    } else if (kind < LOCATION_NO_COLUMNS) {
        delta = (int32_t)kind - LOCATION_ONE_LINE;
        skip(table, 2);
    } else if (kind == LOCATION_NO_COLUMNS) {
        delta = read_signed(table);
    } else if (kind == LOCATION_LONG) {
        delta = read_signed(table);
        for (int i = 0; i < 3; i++) { /* end line, column, end column */
            read_number(table);
        }
    }
    return delta;
}

static int64_t line_in_locations(struct table table, int64_t line, int32_t offset)
{
    int32_t end = 0;
    while (has(&table, 1)) {
        uint8_t head = *table.next++;
        unsigned kind = head >> 3 & 0xfU;
        end += ((head & 7) + 1) * UNIT_BYTES;
        line += read_location(&table, kind);
        if (offset < end) {
            return kind != LOCATION_NONE ? line : 0;
        }
    }
    return 0;
}

uint32_t python_line(const struct python_layout *layout, uint64_t code, int32_t offset)
{
    uint64_t bytes = python_word(code, layout->code_lines);
    int64_t line = (int32_t)python_half(code, layout->code_first_line);
    uint64_t size = python_word(bytes, layout->bytes_size);
    const uint8_t *start = (const uint8_t *)(uintptr_t)(bytes + layout->bytes_data);
    struct table table = {start, start + (size <= TABLE_BYTES_MAX ? size : 0)};

    if (offset >= 0) {
        switch (layout->lines) {
        case PYTHON_LINES_PAIRS:
            line = line_in_pairs(table, line, offset);
            break;
        case PYTHON_LINES_RANGES:
            line = line_in_ranges(table, line, offset);
            break;
        default:
            line = line_in_locations(table, line, offset);
            break;
        }
    }
    return line > 0 && line <= UINT32_MAX ? (uint32_t)line : 0;
}
