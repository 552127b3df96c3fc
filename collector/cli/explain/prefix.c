/* SPDX-License-Identifier: Apache-2.0 */
/* What logs and terminals put before a line: times, levels, ranks, names of programs. */
#include <string.h>

#include "paste.h"

static bool skip_group(struct cursor *cursor, char open, char close, const char *must)
{
    if (cursor->at == cursor->end || *cursor->at != open)
        return false;
    size_t room = (size_t)(cursor->end - cursor->at);
    const char *end = memchr(cursor->at, close, room < 80 ? room : 80);
    if (end == NULL || (must != NULL &&
                        memmem(cursor->at, (size_t)(end - cursor->at), must, strlen(must)) == NULL))
        return false;
    cursor->at = end + 1;
    if (cursor->at < cursor->end && *cursor->at == ':')
        cursor->at++;
    return true;
}

/* "09-28 15:47:24": a day without its year is one only before a time of the day. */
static bool before_clock(const char *at, const char *end)
{
    return end - at > 6 && at[3] == ':' && at[6] == ':';
}

/* "E1201 10:00:00.123456   417 allocator.cc:12] ": glog's and absl's way. */
static bool skip_glog(struct cursor *cursor)
{
    const char *at = cursor->at;
    size_t room = (size_t)(cursor->end - at);
    if (room < 20 || strchr("IWEF", at[0]) == NULL || !before_clock(at + 5, cursor->end))
        return false;
    const char *end = memmem(at, room < 120 ? room : 120, "] ", 2);
    if (end == NULL)
        return false;
    cursor->at = end + 2;
    return true;
}

/* 2026-12-02, 10:26:25.123, 2026-12-02T10:26:25Z: a time, never a size. */
static bool skip_time(struct cursor *cursor)
{
    const char *at = cursor->at;
    size_t digits = 0, separators = 0;
    for (; at < cursor->end && strchr("0123456789-:/.,TZ+", *at) != NULL && *at != 0; at++) {
        digits += *at >= '0' && *at <= '9';
        separators += *at == ':' || *at == '-' || *at == '/';
    }
    bool ended = at == cursor->end || *at == ' ' || *at == '\t';
    if (digits < 4 || !ended || (separators < 2 && !before_clock(at, cursor->end)))
        return false;
    cursor->at = at;
    return true;
}

static bool skip_level(struct cursor *cursor)
{
    static const char *const levels[] = {"ERROR ", "WARNING ", "INFO ",     "E ",     "W ",
                                         "I ",     "- ",       "CRITICAL ", "DEBUG ", "<stderr>:"};
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
        if (cursor_take(cursor, levels[i]))
            return true;
    return false;
}

static bool in_name(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.';
}

/* "llama-cpp  | …": a name and a bar, as several programs' lines are printed together. */
static bool skip_name(struct cursor *cursor)
{
    struct cursor ahead = *cursor;
    while (ahead.at < ahead.end && ahead.at - cursor->at < 32 && in_name(*ahead.at))
        ahead.at++;
    bool any = ahead.at > cursor->at;
    cursor_blank(&ahead);
    if (!any || !cursor_take(&ahead, "| "))
        return false;
    *cursor = ahead;
    return true;
}

/* "[rank3]", "[default0]", "[1,3]<stderr>": who of several writes; "[core.py:718]" is not. */
static bool names_rank(struct cursor group, struct cursor rest)
{
    return cursor_take(&group, "[rank") || cursor_take(&group, "[default") ||
           cursor_take(&rest, "<std");
}

/* FNV-1a; never 0. */
static uint64_t mark_of(struct cursor group)
{
    uint64_t hash = 14695981039346656037U;
    for (; group.at < group.end; group.at++)
        hash = (hash ^ (unsigned char)*group.at) * 1099511628211U;
    return hash | 1;
}

/* Steps over a mark of whose line it is; 0, and nothing stepped over, where there is none. */
static uint64_t skip_mark(struct cursor *line)
{
    const char *start = line->at;
    bool name = skip_group(line, '(', ')', "pid=") || skip_name(line);
    bool group = !name && skip_group(line, '[', ']', NULL);
    struct cursor mark = {start, line->at};
    if (name || (group && names_rank(mark, *line)))
        return mark_of(mark);
    line->at = start;
    return 0;
}

uint64_t prefix_skip(struct cursor *line)
{
    uint64_t whose = 0;
    bool more = true;
    while (more) {
        cursor_blank(line);
        more = cursor_take(line, ">") || skip_glog(line) || skip_time(line) || skip_level(line);
        uint64_t mark = more ? 0 : skip_mark(line);
        whose = whose != 0 ? whose : mark;
        more = more || mark != 0 || skip_group(line, '[', ']', NULL);
    }
    return whose;
}
