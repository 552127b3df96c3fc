/* SPDX-License-Identifier: Apache-2.0 */
/* Expansion of the output pattern, and the names after it. */
#include "name.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct text {
    char *at;
    size_t left; /* room that remains, the terminating zero included */
};

static bool append_char(struct text *text, char c)
{
    if (text->left < 2)
        return false;
    *text->at++ = c;
    *text->at = 0;
    text->left--;
    return true;
}

static bool append(struct text *text, const char *words)
{
    for (; *words; words++)
        if (!append_char(text, *words))
            return false;
    return true;
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

static bool append_reduced(struct text *text, const char *words)
{
    if (!words || !*words)
        return append(text, "none");
    for (; *words; words++)
        if (!append_char(text, is_plain(*words) ? *words : '_'))
            return false;
    return true;
}

static const char *last_part(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path;
}

static bool append_start_time(struct text *text, int64_t seconds)
{
    char words[32];
    struct tm utc;
    time_t when = (time_t)seconds;
    if (!gmtime_r(&when, &utc) || !strftime(words, sizeof words, "%Y%m%dT%H%M%SZ", &utc))
        return append(text, "none");
    return append(text, words);
}

static bool append_letter(struct text *text, char letter, const struct name_facts *facts)
{
    char number[16];
    switch (letter) {
    case 'e':
        return append_reduced(text, last_part(facts->executable));
    case 'p':
        snprintf(number, sizeof number, "%u", facts->pid);
        return append(text, number);
    case 'h':
        return append_reduced(text, facts->host);
    case 'r':
        return append_reduced(text, facts->rank);
    case 't':
        return append_start_time(text, facts->start_seconds);
    case '%':
        return append_char(text, '%');
    default:
        return append_char(text, '%') && append_char(text, letter);
    }
}

static bool append_pattern(struct text *text, const char *pattern, const struct name_facts *facts)
{
    for (const char *c = pattern; *c; c++) {
        bool fits = (*c == '%' && c[1]) ? append_letter(text, *++c, facts) : append_char(text, *c);
        if (!fits)
            return false;
    }
    return true;
}

int name_expand(const char *pattern, const struct name_facts *facts, char *out, size_t out_bytes)
{
    struct text text = {out, out_bytes};
    size_t length = strlen(pattern);
    if (out_bytes == 0)
        return -ENAMETOOLONG;
    *out = 0;
    if (!append_pattern(&text, pattern, facts))
        return -ENAMETOOLONG;
    if (length > 0 && pattern[length - 1] != '/')
        return 0;
    const char *name = facts->rank ? NAME_DEFAULT_WITH_RANK : NAME_DEFAULT;
    return append_pattern(&text, name, facts) ? 0 : -ENAMETOOLONG;
}

/* Where ".n" goes: before ".vscope" or else before the last dot of the file's name. */
static size_t suffix_offset(const char *path)
{
    const char *name = last_part(path);
    const char *dot = strrchr(name, '.');
    return dot && dot != name ? (size_t)(dot - path) : strlen(path);
}

int name_alternative(const char *path, unsigned n, char *out, size_t out_bytes)
{
    size_t stem = suffix_offset(path);
    int length = snprintf(out, out_bytes, "%.*s.%u%s", (int)stem, path, n, path + stem);
    return length < 0 || (size_t)length >= out_bytes ? -ENAMETOOLONG : 0;
}
