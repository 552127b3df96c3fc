/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a verdict: see verdict.h. */
#include "verdict.h"

#include <stdarg.h>
#include <stdio.h>

#include "replay/format_size.h"

void verdict_decide(struct verdict *verdict, const char *class, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(verdict->why, sizeof(verdict->why), format, arguments);
    va_end(arguments);
    verdict->class = class;
}

void verdict_add(struct verdict_lines *lines, const char *format, ...)
{
    if (lines->count == VERDICT_LINES)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(lines->text[lines->count++], VERDICT_LINE, format, arguments);
    va_end(arguments);
}

struct size_words size_words_of(int64_t bytes)
{
    struct size_words words;
    snprintf(words.text, sizeof(words.text), "%s", vs_format_size(bytes).text);
    return words;
}

struct size_words size_of(const struct verdict *verdict, enum number number)
{
    return size_words_of(number_of(&verdict->subject, number));
}
