/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a paste: cleans it, cuts it into lines, joins it into sentences, asks the parsers. */
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

/* A failure told several times (a warning, the exception, the traceback again) is one. */
void paste_failure(struct paste *paste, const struct message *message)
{
    struct message *first = &paste->first_fatal, *last = &paste->last;
    struct message told = *message;
    bool is_last = message_same(last, message), is_first = message_same(first, message);
    if (is_last)
        fill_all(&told, last);
    if (is_first)
        fill_all(first, message);
    /* A bare "out of memory" of CUDA's, then a framework's account of it. */
    bool bare = last->family == FAMILY_CUDA && !number_known(last, NUMBER_REQUESTED);
    paste->failures += !is_last && !is_first && !bare;
    if (message->fatal && first->family == FAMILY_NONE)
        *first = told;
    *last = told;
}

bool text_before(const char *start, const char *at, const char *word, size_t reach)
{
    size_t room = (size_t)(at - start);
    size_t length = room < reach ? room : reach;
    return length > 0 && memmem(at - length, length, word, strlen(word)) != NULL;
}

/* ---- sentences -------------------------------------------------------------------------- */

static const struct sentence *const sentence_tables[] = {
    torch_sentences, xla_sentences,    tensorflow_sentences, cupy_sentences, rmm_sentences,
    ggml_sentences,  others_sentences, serving_sentences,    cuda_sentences, host_sentences,
};

enum {
    SENTENCE_TABLES = sizeof(sentence_tables) / sizeof(sentence_tables[0]),
    TRIGGER_MAX = 64 /* longer than any trigger */
};

/* Where the next sentence begins, from `from` on; the end of the run if there is none. */
static size_t next_sentence(const struct paste *paste, size_t from)
{
    size_t end = paste->run_length, best = end;
    for (size_t table = 0; table < SENTENCE_TABLES; table++)
        for (const struct sentence *s = sentence_tables[table]; s->trigger != NULL; s++) {
            const char *hit = memmem(paste->run + from, end - from, s->trigger, strlen(s->trigger));
            if (hit == NULL)
                continue;
            best = (size_t)(hit - paste->run) < best ? (size_t)(hit - paste->run) : best;
            end = best + TRIGGER_MAX < end ? best + TRIGGER_MAX : end;
        }
    return best;
}

/* Several families begin with the same words: each looks whether it is its own. */
static void read_at(struct paste *paste, size_t at)
{
    size_t length = paste->run_length - at;
    struct cursor text =
        cursor_of(paste->run + at, length < PASTE_SENTENCE ? length : PASTE_SENTENCE);
    for (size_t table = 0; table < SENTENCE_TABLES; table++)
        for (const struct sentence *s = sentence_tables[table]; s->trigger != NULL; s++) {
            struct cursor ahead = text;
            if (!cursor_take(&ahead, s->trigger))
                continue;
            if (s->told != NULL)
                told_sentence(paste, s->told, paste->run, text);
            else
                s->read(paste, paste->run, text);
        }
}

/* Reads the sentences that are there as a whole, or all at the end; drops what is behind. */
static void read_sentences(struct paste *paste, bool all)
{
    size_t at = paste->run_looked, found;
    while ((found = next_sentence(paste, at)) < paste->run_length) {
        if (!all && paste->run_length - found < PASTE_SENTENCE)
            break;
        read_at(paste, found);
        at = found + 1;
    }
    /* A trigger may be half there at the end. */
    size_t done = found;
    if (found == paste->run_length)
        done = found < at + TRIGGER_MAX ? at : found - TRIGGER_MAX;
    size_t drop = done > PASTE_BEFORE ? done - PASTE_BEFORE : 0;
    memmove(paste->run, paste->run + drop, paste->run_length - drop);
    paste->run_length -= drop;
    paste->run_looked = done - drop;
}

/* ---- lines ------------------------------------------------------------------------------ */

static void append_run(struct paste *paste, struct cursor line)
{
    /* A bar is what is left of "time | level | name | message". */
    while (cursor_take(&line, "|") || cursor_take(&line, " "))
        ;
    if (paste->run_length + (size_t)(line.end - line.at) > PASTE_RUN)
        read_sentences(paste, false);
    for (; line.at < line.end && paste->run_length < PASTE_RUN; line.at++)
        if (*line.at != ' ' && *line.at != '\t')
            paste->run[paste->run_length++] = *line.at;
}

static void end_line(struct paste *paste)
{
    struct cursor line = cursor_of(paste->line, markup_away(paste->line, paste->line_length));
    list_line(paste, line);
    prefix_skip(&line);
    summary_line(paste, line);
    smi_line(paste, line);
    host_line(paste, line);
    xla_line(paste, line);
    bfc_line(paste, line);
    ggml_line(paste, line);
    append_run(paste, line);
    paste->line_length = 0;
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
    read_sentences(paste, true);
}
