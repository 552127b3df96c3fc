/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a paste: cleans it, cuts it into lines, asks the parsers. */
#include "paste.h"

enum escape { ESCAPE_NONE, ESCAPE_BEGUN, ESCAPE_CSI, ESCAPE_OSC, ESCAPE_OSC_END };

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
