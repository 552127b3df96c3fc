/* SPDX-License-Identifier: Apache-2.0 */
/* Hashing of names and paths, and texts of the system as JSON. */
#include "privacy.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "../formats/python_path.h"

static void hash_bytes(const char *text, size_t bytes, char *out, size_t out_bytes)
{
    snprintf(out, out_bytes, "h-%016" PRIx64, (uint64_t)XXH3_64bits(text, bytes));
}

void privacy_hash(const char *text, char *out, size_t out_bytes)
{
    hash_bytes(text, strlen(text), out, out_bytes);
}

static bool is_system_path(const char *path)
{
    static const char *const roots[] = {"/usr/", "/lib/", "/lib64/", "/opt/"};
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++)
        if (strncmp(path, roots[i], strlen(roots[i])) == 0)
            return true;
    return false;
}

void privacy_path(const char *path, char *out, size_t out_bytes)
{
    char hash[PRIVACY_HASH_BYTES];
    const char *packages = vs_python_library_part(path);
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *kept = packages;
    if (!kept && slash && is_system_path(path))
        kept = slash;
    if (kept) {
        hash_bytes(path, (size_t)(kept - path), hash, sizeof hash);
        snprintf(out, out_bytes, "%s%s", hash, kept);
        return;
    }
    privacy_hash(path, hash, sizeof hash);
    snprintf(out, out_bytes, "%s%s", hash, strstr(name, ".so") ? ".so" : "");
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
