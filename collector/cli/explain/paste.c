/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a paste: cleans it, cuts it into lines, asks the parsers, keeps the failures. */
#include "paste.h"

#include <string.h>

enum escape { ESCAPE_NONE, ESCAPE_BEGUN, ESCAPE_CSI, ESCAPE_OSC, ESCAPE_OSC_END };

void paste_start(struct paste *paste)
{
    memset(paste, 0, sizeof(*paste));
    paste->smi.last_index = -1;
    paste->summary.device = -1;
}

static void fill_all(struct message *message, const struct message *from)
{
    for (int i = 0; i < NUMBERS; i++)
        message_fill(message, (enum number)i, from->numbers[i]);
    message->device = message->device >= 0 ? message->device : from->device;
}

/* XLA's exception after the warning of its allocator, which is TensorFlow's: it was XLA's, too. */
static void take_over(struct message *warning, const struct message *message)
{
    struct message again = *warning;
    again.family = message->family;
    if (message->family == FAMILY_XLA && warning->family == FAMILY_TENSORFLOW &&
        warning->hint == message->hint && message_same(&again, message))
        warning->family = FAMILY_XLA;
}

/* A failure told several times (a warning, the exception, the traceback again) is one. */
void paste_failure(struct paste *paste, const struct message *message)
{
    struct message *first = &paste->first_fatal, *last = &paste->last;
    struct message told = *message;
    told.line = paste->reading;
    take_over(first, message);
    take_over(last, message);
    bool is_last = message_same(last, message), is_first = message_same(first, message);
    if (is_last)
        fill_all(&told, last);
    if (is_first)
        fill_all(first, message);
    /* A bare "out of memory", then a framework's account of it. */
    paste->failures += !is_last && !is_first && !last->weak;
    if (message->fatal && (first->family == FAMILY_NONE || told.line < first->line))
        *first = told;
    if (told.line >= last->line)
        *last = told;
}

bool text_before(const char *start, const char *at, const char *word, size_t reach)
{
    size_t room = (size_t)(at - start);
    size_t length = room < reach ? room : reach;
    return length > 0 && memmem(at - length, length, word, strlen(word)) != NULL;
}

/* ---- lines ------------------------------------------------------------------------------ */

static void end_line(struct paste *paste)
{
    struct cursor line = cursor_of(paste->line, markup_away(paste->line, paste->line_length));
    paste->reading = paste->lines;
    list_line(paste, line);
    uint64_t whose = prefix_skip(&line);
    summary_line(paste, line);
    smi_line(paste, line);
    query_line(paste, line);
    host_line(paste, line);
    xla_line(paste, line);
    bfc_line(paste, line);
    ggml_line(paste, line);
    run_append(paste, whose, line);
    paste->line_length = 0;
    paste->lines++;
}

/* Colours and other control sequences of terminals; true while inside of one. */
static bool in_escape(struct paste *paste, unsigned char c)
{
    switch (paste->escape) {
    case ESCAPE_NONE:
        paste->escape = c == 0x1b ? ESCAPE_BEGUN : ESCAPE_NONE;
        return c == 0x1b;
    case ESCAPE_BEGUN:
        paste->escape = c == '[' ? ESCAPE_CSI : c == ']' ? ESCAPE_OSC : ESCAPE_NONE;
        return c != '\n';
    case ESCAPE_CSI:
        paste->escape = (c >= 0x40 && c <= 0x7e) || c == '\n' ? ESCAPE_NONE : ESCAPE_CSI;
        return c != '\n';
    case ESCAPE_OSC:
        paste->escape = c == 7 || c == '\n' ? ESCAPE_NONE : c == 0x1b ? ESCAPE_OSC_END : ESCAPE_OSC;
        return c != '\n';
    default:
        paste->escape = ESCAPE_NONE;
        return c != '\n';
    }
}

static void feed_byte(struct paste *paste, unsigned char c)
{
    if (in_escape(paste, c))
        return;
    if (c == '\n') {
        end_line(paste);
        return;
    }
    /* A lone carriage return rewrites a line (progress bars): what it overwrote counts as a line.
     */
    if (c == '\r')
        c = ' ';
    paste->odd_bytes += c == 0 || (c < ' ' && c != '\t') || c == 127;
    paste->line[paste->line_length++] = (char)(c == 0 ? ' ' : c);
    if (paste->line_length == PASTE_LINE)
        end_line(paste);
}

void paste_feed(struct paste *paste, const char *data, size_t length)
{
    paste->bytes += length;
    for (size_t i = 0; i < length; i++)
        feed_byte(paste, (unsigned char)data[i]);
}

void paste_end(struct paste *paste)
{
    end_line(paste);
    run_end(paste);
}
