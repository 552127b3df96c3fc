/* SPDX-License-Identifier: Apache-2.0 */
/* Demangling without a heap and with an end: see demangle.h. */
#include "demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <string.h>

/* libiberty refuses names above 1 KiB unless it is told not to look at the depth. */
#define NAME_WITH_DEPTH_LIMIT 1024U
#define NAME_MAX_BYTES 8192U

static const char ellipsis[] = "\xe2\x80\xa6";

/* Length of the UTF-8 character at `text`, 0 when it is none (RFC 3629). */
static size_t character_bytes(const unsigned char *text, size_t left)
{
    size_t bytes = text[0] < 0x80   ? 1
                   : text[0] < 0xc2 ? 0
                   : text[0] < 0xe0 ? 2
                   : text[0] < 0xf0 ? 3
                                    : 4;
    if (bytes == 0 || bytes > left || text[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < bytes; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xf0 && text[1] < 0x90);
    bool outside = (text[0] == 0xed && text[1] > 0x9f) || (text[0] == 0xf4 && text[1] > 0x8f);
    return overlong || outside ? 0 : bytes;
}

void clean_text(const char *text, size_t bytes, char *out, size_t out_bytes)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + bytes;
    size_t used = 0, room = out_bytes - sizeof ellipsis, cut = 0;
    while (at < end) {
        size_t length = *at < 0x20 || *at == 0x7f ? 0 : character_bytes(at, (size_t)(end - at));
        size_t step = length ? length : 1;
        if (used + step >= out_bytes) {
            memcpy(out + cut, ellipsis, sizeof ellipsis);
            return;
        }
        if (length)
            memcpy(out + used, at, length);
        else
            out[used] = '?';
        at += step;
        used += step;
        if (used <= room)
            cut = used;
    }
    out[used] = 0;
}

/* What the demangler has said so far. Leaving it in the middle is safe: it allocates on its stack
 * only. */
struct printed {
    char text[NAME_MAX_BYTES];
    size_t bytes, room;
    jmp_buf full;
};

static void take_piece(const char *piece, size_t bytes, void *context)
{
    struct printed *printed = context;
    size_t left = printed->room - printed->bytes;
    memcpy(printed->text + printed->bytes, piece, bytes < left ? bytes : left);
    printed->bytes += bytes < left ? bytes : left;
    if (bytes > left)
        longjmp(printed->full, 1);
}

static bool print_name(const char *symbol, int options, struct printed *printed)
{
    if (setjmp(printed->full) != 0)
        return true;
    printed->bytes = 0;
    if (rust_demangle_callback(symbol, options, take_piece, printed) != 0)
        return true;
    printed->bytes = 0;
    return cplus_demangle_v3_callback(symbol, options, take_piece, printed) != 0;
}

static bool is_mangled(const char *symbol)
{
    return strncmp(symbol, "_Z", 2) == 0 || strncmp(symbol, "_R", 2) == 0 ||
           strncmp(symbol, "_GLOBAL_", 8) == 0;
}

void demangle(const char *symbol, char *out, size_t out_bytes)
{
    struct printed printed = {.room = out_bytes < NAME_MAX_BYTES ? out_bytes : NAME_MAX_BYTES};
    size_t bytes = strlen(symbol);
    int options = DMGL_PARAMS | DMGL_ANSI;
    if (bytes > NAME_WITH_DEPTH_LIMIT)
        options |= DMGL_NO_RECURSE_LIMIT;
    if (is_mangled(symbol) && bytes <= NAME_MAX_BYTES && print_name(symbol, options, &printed) &&
        printed.bytes > 0)
        clean_text(printed.text, printed.bytes, out, out_bytes);
    else
        clean_text(symbol, bytes, out, out_bytes);
}
