/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python's strings as UTF-8. They hold one, two or four bytes a character, right
 * behind the object's head or (old kinds, up to 3.11) elsewhere. The C API would
 * allocate.
 */
#include "python_parts.h"

#include <string.h>

#define REPLACEMENT 0xfffdU
#define ELLIPSIS 0x2026U
#define ELLIPSIS_BYTES 3U

struct text {
    const void *data;
    uint64_t length;
    unsigned kind; /* bytes a character */
    bool ascii;
};

static bool open_text(const struct python_layout *layout, uint64_t object, struct text *text)
{
    if (object == 0) {
        return false;
    }
    uint32_t state = python_half(object, layout->text_state) >> layout->kind_shift;
    bool compact = (state & 8U) != 0;
    text->kind = state & 7U;
    text->ascii = (state & 16U) != 0;
    text->length = python_word(object, layout->text_length);
    if (compact) {
        object += text->ascii ? layout->text_ascii : layout->text_compact;
    } else {
        object = python_word(object, layout->text_compact);
    }
    text->data = (const void *)(uintptr_t)object;
    return object != 0 && text->length <= INT64_MAX / 4 &&
           (text->kind == 1 || text->kind == 2 || text->kind == 4);
}

static uint32_t character(const struct text *text, uint64_t index)
{
    uint32_t c;
    if (text->kind == 1) {
        c = ((const uint8_t *)text->data)[index];
    } else if (text->kind == 2) {
        c = ((const uint16_t *)text->data)[index];
    } else {
        c = ((const uint32_t *)text->data)[index];
    }
    bool is_surrogate = c >= 0xd800 && c < 0xe000;
    return is_surrogate || c > 0x10ffff ? REPLACEMENT : c;
}

static size_t bytes_of(uint32_t c)
{
    if (c < 0x80) {
        return 1;
    }
    if (c < 0x800) {
        return 2;
    }
    return c < 0x10000 ? 3 : 4;
}

static size_t put(char *out, uint32_t c)
{
    static const uint8_t heads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t bytes = bytes_of(c);
    for (size_t i = bytes; i-- > 1;) {
        out[i] = (char)(0x80 | (c & 0x3f));
        c >>= 6;
    }
    out[0] = (char)(heads[bytes] | c);
    return bytes;
}

/* Bytes of the characters from `start` on that fit; *end: the first that does not. */
static size_t put_from(const struct text *text, uint64_t start, char *out, size_t capacity,
                       uint64_t *end)
{
    size_t used = 0;
    uint64_t i = start;
    while (i < text->length) {
        uint32_t c = character(text, i);
        if (used + bytes_of(c) > capacity) {
            break;
        }
        used += put(out + used, c);
        i++;
    }
    *end = i;
    return used;
}

/* The first of the last characters that fit into `capacity` bytes. */
static uint64_t start_of_tail(const struct text *text, size_t capacity)
{
    size_t used = 0;
    uint64_t start = text->length;
    while (start > 0 && used + bytes_of(character(text, start - 1)) <= capacity) {
        used += bytes_of(character(text, --start));
    }
    return start;
}

size_t python_text(const struct python_layout *layout, uint64_t object, char *out, size_t capacity,
                   enum python_cut cut)
{
    struct text text;
    uint64_t end;
    if (!open_text(layout, object, &text)) {
        return 0;
    }
    if (text.ascii && text.length <= capacity) {
        memcpy(out, text.data, text.length);
        return text.length;
    }
    size_t used = put_from(&text, 0, out, capacity, &end);
    if (end == text.length) {
        return used;
    }
    if (cut == PYTHON_CUT_END) {
        used = put_from(&text, 0, out, capacity - ELLIPSIS_BYTES, &end);
        return used + put(out + used, ELLIPSIS);
    }
    used = put(out, ELLIPSIS);
    return used + put_from(&text, start_of_tail(&text, capacity - used), out + used,
                           capacity - used, &end);
}
