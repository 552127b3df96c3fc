/* SPDX-License-Identifier: Apache-2.0 */
/* The pickle writer: see pickle.h. Opcodes as in Python's pickletools. */
#include "pickle.h"

#include <errno.h>
#include <string.h>

#include "texts.h"

enum { BATCH_ITEMS = 1000 };

static void put_little_endian(struct vs_pickle *pickle, uint64_t value, size_t bytes)
{
    char data[sizeof(value) + 1] = {0};
    for (size_t i = 0; i < sizeof(value); i++)
        data[i] = (char)(value >> 8 * i);
    vs_sink_put(pickle->sink, data, bytes);
}

static void put_opcode(struct vs_pickle *pickle, char opcode)
{
    vs_sink_put(pickle->sink, &opcode, 1);
}

void vs_pickle_begin(struct vs_pickle *pickle, struct vs_sink *sink)
{
    *pickle = (struct vs_pickle){.sink = sink};
    vs_sink_put(sink, "\x80\x02", 2);
}

void vs_pickle_release(struct vs_pickle *pickle)
{
    vs_pickle_memos_release(&pickle->texts);
    vs_pickle_contents_release(&pickle->contents);
}

void vs_pickle_end(struct vs_pickle *pickle)
{
    put_opcode(pickle, '.');
    vs_pickle_release(pickle);
}

/* ---- numbers and texts ------------------------------------------------------------------------
 */

/* A signed number needs a byte more where the highest bit is set. */
static size_t signed_bytes(uint64_t value)
{
    size_t bytes = 1;
    while (bytes < 9 && value >> (8 * bytes - 1) != 0)
        bytes++;
    return bytes;
}

void vs_pickle_number(struct vs_pickle *pickle, uint64_t value)
{
    if (value <= UINT8_MAX) {
        put_opcode(pickle, 'K');
        put_little_endian(pickle, value, 1);
    } else if (value <= UINT16_MAX) {
        put_opcode(pickle, 'M');
        put_little_endian(pickle, value, 2);
    } else if (value <= INT32_MAX) {
        put_opcode(pickle, 'J');
        put_little_endian(pickle, value, 4);
    } else {
        size_t bytes = value >> 63 != 0 ? 9 : signed_bytes(value);
        put_opcode(pickle, '\x8a');
        put_little_endian(pickle, bytes, 1);
        put_little_endian(pickle, value, bytes);
    }
}

void vs_pickle_bool(struct vs_pickle *pickle, bool value)
{
    put_opcode(pickle, value ? '\x88' : '\x89');
}

void vs_pickle_pair(struct vs_pickle *pickle, uint64_t first, uint64_t second)
{
    vs_pickle_number(pickle, first);
    vs_pickle_number(pickle, second);
    put_opcode(pickle, '\x86');
}

static const char replacement[] = "\xef\xbf\xbd";

void vs_pickle_text(struct vs_pickle *pickle, const char *text)
{
    size_t bytes = 0, part;
    for (const char *at = text; *at != 0; at += part == 0 ? 1 : part) {
        part = vs_utf8_sequence(at);
        bytes += part == 0 ? sizeof(replacement) - 1 : part;
    }
    put_opcode(pickle, 'X');
    put_little_endian(pickle, bytes, 4);
    for (const char *at = text; *at != 0; at += part == 0 ? 1 : part) {
        part = vs_utf8_sequence(at);
        vs_sink_put(pickle->sink, part == 0 ? replacement : at,
                    part == 0 ? sizeof(replacement) - 1 : part);
    }
}

/* FNV-1a. */
uint64_t vs_pickle_hash(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325ULL;
    for (; *text != 0; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3ULL;
    return hash;
}

/* Writes a text, or the number of an equal one. Returns its number + 1, 0 without memory. */
static uint32_t put_content(struct vs_pickle *pickle, const char *text)
{
    struct vs_pickle_content *known =
        vs_pickle_contents_put(&pickle->contents, vs_pickle_hash(text));
    if (known == NULL)
        return 0;
    if (known->memo != 0 && strcmp(known->text, text) == 0) {
        vs_pickle_again(pickle, known->memo - 1);
        return known->memo;
    }
    vs_pickle_text(pickle, text);
    *known = (struct vs_pickle_content){text, vs_pickle_keep(pickle) + 1};
    return known->memo;
}

void vs_pickle_name(struct vs_pickle *pickle, const char *text)
{
    uint32_t *memo = vs_pickle_memos_put(&pickle->texts, (uint64_t)(uintptr_t)text);
    if (memo != NULL && *memo != 0)
        vs_pickle_again(pickle, *memo - 1);
    else if (memo == NULL || (*memo = put_content(pickle, text)) == 0)
        vs_sink_fail(pickle->sink, -ENOMEM);
}

/* ---- what was written before ------------------------------------------------------------------
 */

static void put_memo(struct vs_pickle *pickle, char near, char far, uint32_t memo)
{
    put_opcode(pickle, memo <= UINT8_MAX ? near : far);
    put_little_endian(pickle, memo, memo <= UINT8_MAX ? 1 : 4);
}

uint32_t vs_pickle_keep(struct vs_pickle *pickle)
{
    put_memo(pickle, 'q', 'r', pickle->kept);
    return pickle->kept++;
}

void vs_pickle_again(struct vs_pickle *pickle, uint32_t kept)
{
    put_memo(pickle, 'h', 'j', kept);
}

/* ---- lists and dictionaries -------------------------------------------------------------------
 */

void vs_pickle_dict(struct vs_pickle *pickle)
{
    put_opcode(pickle, '}');
}

void vs_pickle_members(struct vs_pickle *pickle)
{
    put_opcode(pickle, '(');
}

void vs_pickle_dict_end(struct vs_pickle *pickle)
{
    put_opcode(pickle, 'u');
}

void vs_pickle_list(struct vs_pickle *pickle)
{
    put_opcode(pickle, ']');
}

void vs_pickle_items(struct vs_pickle *pickle, struct vs_pickle_list *list)
{
    list->items = 0;
    put_opcode(pickle, '(');
}

void vs_pickle_item(struct vs_pickle *pickle, struct vs_pickle_list *list)
{
    if (list->items++ == BATCH_ITEMS) {
        list->items = 1;
        vs_sink_put(pickle->sink, "e(", 2);
    }
}

void vs_pickle_list_end(struct vs_pickle *pickle)
{
    put_opcode(pickle, 'e');
}
