/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding a function's entry: a binary search in .eh_frame_hdr, or through all of
 * .eh_frame for the rare object whose linker made no sorted table.
 */
#include "unwind_tables.h"

#include <errno.h>

#define HEADER_VERSION 1U
#define TABLE_ENCODING 0x3bU /* four signed bytes each, relative to the header */
#define LINEAR_ENTRIES_MAX 100000U
#define LENGTH_64_BITS 0xffffffffU

#define ENCODING_OMITTED 0xffU
#define ENCODING_FORMAT 0x0fU
#define ENCODING_APPLY 0x70U
#define ENCODING_INDIRECT 0x80U

enum { FORMAT_ADDRESS, FORMAT_ULEB, FORMAT_U2, FORMAT_U4, FORMAT_U8 };
enum { FORMAT_SLEB = 9, FORMAT_S2, FORMAT_S4, FORMAT_S8 };
enum { APPLY_NONE = 0, APPLY_HERE = 0x10, APPLY_DATA = 0x30 };

struct table_row {
    int32_t function; /* both relative to the header */
    int32_t entry;
};

/* What an entry's header says of the bytes behind it. */
struct record {
    struct unwind_bytes body; /* behind the identifier */
    const uint8_t *identified;
    uint64_t identifier;
    const uint8_t *next;
};

static uint64_t take_format(struct unwind_bytes *bytes, uint8_t encoding)
{
    switch (encoding & ENCODING_FORMAT) {
    case FORMAT_ADDRESS:
    case FORMAT_U8:
    case FORMAT_S8:
        return unwind_take(bytes, 8);
    case FORMAT_ULEB:
        return unwind_take_uleb(bytes);
    case FORMAT_U2:
        return unwind_take(bytes, 2);
    case FORMAT_U4:
        return unwind_take(bytes, 4);
    case FORMAT_SLEB:
        return (uint64_t)unwind_take_sleb(bytes);
    case FORMAT_S2:
        return (uint64_t)unwind_take_signed(bytes, 2);
    case FORMAT_S4:
        return (uint64_t)unwind_take_signed(bytes, 4);
    default:
        bytes->bad = true;
        return 0;
    }
}

uint64_t unwind_take_encoded(struct unwind_bytes *bytes, uint8_t encoding, uint64_t data)
{
    uint64_t here = (uint64_t)(uintptr_t)bytes->at;
    uint64_t value = take_format(bytes, encoding);
    switch (encoding & (ENCODING_APPLY | ENCODING_INDIRECT)) {
    case APPLY_NONE:
        return value;
    case APPLY_HERE:
        return value + here;
    case APPLY_DATA:
        return value + data;
    default:
        bytes->bad = true;
        return 0;
    }
}

/* ---- entries ----------------------------------------------------------------------- */

static const uint8_t *pointer(uint64_t address)
{
    return (const uint8_t *)(uintptr_t)address;
}

/* Splits the entry at `at`. False at the table's end, or where it makes no sense. */
static bool split(const struct modules_tables *tables, uint64_t at, struct record *record)
{
    if (at < tables->frames_start || at >= tables->frames_end) {
        return false;
    }
    struct unwind_bytes bytes = {.at = pointer(at), .end = pointer(tables->frames_end)};
    uint64_t length = unwind_take(&bytes, 4);
    unsigned width = 4;
    if (length == LENGTH_64_BITS) {
        length = unwind_take(&bytes, 8);
        width = 8;
    }
    if (bytes.bad || length < width || length > unwind_left(&bytes)) {
        return false;
    }
    bytes.end = bytes.at + length;
    record->next = bytes.end;
    record->identified = bytes.at;
    record->identifier = unwind_take(&bytes, width);
    record->body = bytes;
    return true;
}

/* The augmentation's data, a letter at a time; false when a letter is not known. */
static bool read_augmentation(struct unwind_entry *entry, const char *letters,
                              struct unwind_bytes *data)
{
    for (; *letters != '\0'; letters++) {
        switch (*letters) {
        case 'R':
            entry->encoding = (uint8_t)unwind_take(data, 1);
            break;
        case 'L':
            unwind_skip(data, 1);
            break;
        case 'P': {
            uint8_t encoding = (uint8_t)unwind_take(data, 1);
            if (encoding != ENCODING_OMITTED) {
                (void)take_format(data, encoding);
            }
            break;
        }
        case 'S':
            entry->signal = true;
            break;
        case 'B': /* return addresses are signed, on another architecture */
            break;
        default:
            return false;
        }
    }
    return !data->bad;
}

static const char *take_text(struct unwind_bytes *bytes)
{
    const char *text = (const char *)bytes->at;
    const void *zero = memchr(bytes->at, '\0', unwind_left(bytes));
    if (zero == NULL) {
        bytes->bad = true;
        return "";
    }
    bytes->at = (const uint8_t *)zero + 1;
    return text;
}

static bool read_common(const struct modules_tables *tables, uint64_t at,
                        struct unwind_entry *entry, bool *augmented)
{
    struct record record;
    if (!split(tables, at, &record) || record.identifier != 0) {
        return false;
    }
    struct unwind_bytes *body = &record.body;
    uint64_t version = unwind_take(body, 1);
    const char *letters = take_text(body);
    if (version == 4) {
        unwind_skip(body, 2); /* sizes of addresses and of segment selectors */
    }
    entry->code_alignment = unwind_take_uleb(body);
    entry->data_alignment = unwind_take_sleb(body);
    entry->return_register = version == 1 ? unwind_take(body, 1) : unwind_take_uleb(body);
    *augmented = letters[0] == 'z';
    if (letters[0] != '\0' && !*augmented) {
        return false;
    }
    if (*augmented) {
        uint64_t bytes = unwind_take_uleb(body);
        struct unwind_bytes data = *body;
        unwind_skip(body, bytes);
        data.end = body->at;
        if (body->bad || !read_augmentation(entry, letters + 1, &data)) {
            return false;
        }
    }
    entry->common = *body;
    return !body->bad && (version == 1 || version == 3 || version == 4);
}

/* The function's entry at `at`. *next is the one behind it, 0 at the end. -ENOENT: no function's.
 */
static int read_entry(const struct modules_tables *tables, uint64_t at, struct unwind_entry *entry,
                      uint64_t *next)
{
    struct record record;
    bool augmented;
    *next = 0;
    if (!split(tables, at, &record)) {
        return -ENOENT;
    }
    *next = (uint64_t)(uintptr_t)record.next;
    memset(entry, 0, sizeof(*entry));
    uint64_t common = (uint64_t)(uintptr_t)record.identified - record.identifier;
    if (record.identifier == 0 || !read_common(tables, common, entry, &augmented)) {
        return -ENOENT;
    }
    entry->first = unwind_take_encoded(&record.body, entry->encoding, 0);
    entry->last = entry->first + take_format(&record.body, entry->encoding);
    if (augmented) {
        unwind_skip(&record.body, unwind_take_uleb(&record.body));
    }
    entry->own = record.body;
    entry->segment = pointer(tables->frames_start);
    entry->segment_end = pointer(tables->frames_end);
    return record.body.bad ? -ENOENT : 0;
}

/* ---- search ------------------------------------------------------------------------ */

static struct table_row row_at(const uint8_t *table, uint64_t i)
{
    struct table_row row;
    memcpy(&row, table + i * sizeof(row), sizeof(row));
    return row;
}

/* Address of the entry of the last function that begins at or before `address`; 0 none. */
static uint64_t search(const uint8_t *table, uint64_t count, uint64_t header, uint64_t address)
{
    uint64_t low = 0;
    uint64_t high = count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (header + (uint64_t)(int64_t)row_at(table, middle).function <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low == 0 ? 0 : header + (uint64_t)(int64_t)row_at(table, low - 1).entry;
}

static int search_all(const struct modules_tables *tables, uint64_t at, uint64_t address,
                      struct unwind_entry *entry)
{
    for (unsigned i = 0; at != 0 && i < LINEAR_ENTRIES_MAX; i++) {
        uint64_t next;
        if (read_entry(tables, at, entry, &next) == 0 && address >= entry->first &&
            address < entry->last) {
            return 0;
        }
        at = next;
    }
    return -ENOENT;
}

int unwind_tables_find(const struct modules_tables *tables, uint64_t address,
                       struct unwind_entry *entry)
{
    if (tables->header < tables->start || tables->header >= tables->end) {
        return -ENOENT;
    }
    struct unwind_bytes bytes = {.at = pointer(tables->header), .end = pointer(tables->end)};
    uint64_t version = unwind_take(&bytes, 1);
    uint8_t frames_encoding = (uint8_t)unwind_take(&bytes, 1);
    uint8_t count_encoding = (uint8_t)unwind_take(&bytes, 1);
    uint8_t table_encoding = (uint8_t)unwind_take(&bytes, 1);
    if (version != HEADER_VERSION || frames_encoding == ENCODING_OMITTED) {
        return -ENOENT;
    }
    uint64_t frames = unwind_take_encoded(&bytes, frames_encoding, tables->header);
    if (count_encoding == ENCODING_OMITTED || table_encoding != TABLE_ENCODING) {
        return bytes.bad ? -ENOENT : search_all(tables, frames, address, entry);
    }
    uint64_t count = unwind_take_encoded(&bytes, count_encoding, tables->header);
    if (bytes.bad || count > unwind_left(&bytes) / sizeof(struct table_row)) {
        return -ENOENT;
    }
    uint64_t next;
    uint64_t at = search(bytes.at, count, tables->header, address);
    if (at == 0 || read_entry(tables, at, entry, &next) != 0 || address < entry->first ||
        address >= entry->last) {
        return -ENOENT;
    }
    return 0;
}
