/* SPDX-License-Identifier: Apache-2.0 */
/* Hashing of names and paths, and texts of the system as JSON. */
#include "privacy.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../formats/private_path.h"

void privacy_hash(const char *text, char *out, size_t out_bytes)
{
    char token[VS_PRIVATE_TOKEN_BYTES];
    vs_private_token(text, strlen(text), token);
    snprintf(out, out_bytes, "%s", token);
}

void privacy_path(const char *path, char *out, size_t out_bytes)
{
    vs_private_path(path, out, out_bytes);
}

/* Length of the UTF-8 character at `text`, 0 when it is none (RFC 3629). */
static size_t utf8_length(const unsigned char *text, size_t left)
{
    size_t length = text[0] < 0x80   ? 1
                    : text[0] < 0xc2 ? 0
                    : text[0] < 0xe0 ? 2
                    : text[0] < 0xf0 ? 3
                                     : 4;
    if (length == 0 || length > left || text[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xf0 && text[1] < 0x90);
    bool outside = (text[0] == 0xed && text[1] > 0x9f) || (text[0] == 0xf4 && text[1] > 0x8f);
    return overlong || outside ? 0 : length;
}

json_t *privacy_json_text(const char *text, size_t bytes)
{
    unsigned char *copy = malloc(bytes + 1);
    if (!copy)
        return NULL;
    if (bytes)
        memcpy(copy, text, bytes);
    for (size_t at = 0; at < bytes;) {
        size_t length = copy[at] ? utf8_length(copy + at, bytes - at) : 0;
        if (length == 0)
            copy[at] = '?';
        at += length ? length : 1;
    }
    json_t *value = json_stringn((const char *)copy, bytes);
    free(copy);
    return value;
}
