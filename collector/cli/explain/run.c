/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text without blanks, in which sentences are looked for: one run for each rank or
 * program whose lines are marked, so that lines of several may stand between each other.
 * A line without a mark goes on where the last one was.
 */
#include <string.h>

#include "paste.h"

static const struct sentence *const sentence_tables[] = {
    torch_sentences, xla_sentences,    tensorflow_sentences, cupy_sentences, rmm_sentences,
    ggml_sentences,  others_sentences, serving_sentences,    cuda_sentences, host_sentences,
};

enum {
    SENTENCE_TABLES = sizeof(sentence_tables) / sizeof(sentence_tables[0]),
    TRIGGER_MAX = 64 /* longer than any trigger */
};

/* Where the next sentence begins, from `from` on; the end of the run if there is none. */
static size_t next_sentence(const struct run *run, size_t from)
{
    size_t end = run->length, best = end;
    for (size_t table = 0; table < SENTENCE_TABLES; table++)
        for (const struct sentence *s = sentence_tables[table]; s->trigger != NULL; s++) {
            const char *hit = memmem(run->text + from, end - from, s->trigger, strlen(s->trigger));
            if (hit == NULL)
                continue;
            best = (size_t)(hit - run->text) < best ? (size_t)(hit - run->text) : best;
            end = best + TRIGGER_MAX < end ? best + TRIGGER_MAX : end;
        }
    return best;
}

/* Several families begin with the same words: each looks whether it is its own. */
static void read_at(struct paste *paste, const struct run *run, size_t at)
{
    size_t length = run->length - at;
    struct cursor text =
        cursor_of(run->text + at, length < PASTE_SENTENCE ? length : PASTE_SENTENCE);
    paste->reading = run->lines[at];
    for (size_t table = 0; table < SENTENCE_TABLES; table++)
        for (const struct sentence *s = sentence_tables[table]; s->trigger != NULL; s++) {
            struct cursor ahead = text;
            if (!cursor_take(&ahead, s->trigger))
                continue;
            if (s->told != NULL)
                told_sentence(paste, s->told, run->text, text);
            else
                s->read(paste, run->text, text);
        }
}

static void drop_front(struct run *run, size_t drop)
{
    memmove(run->text, run->text + drop, run->length - drop);
    memmove(run->lines, run->lines + drop, (run->length - drop) * sizeof(run->lines[0]));
    run->length -= drop;
}

/* Reads the sentences that are there as a whole, or all at the end; drops what is behind. */
static void read_sentences(struct paste *paste, struct run *run, bool all)
{
    size_t at = run->looked, found;
    while ((found = next_sentence(run, at)) < run->length) {
        if (!all && run->length - found < PASTE_SENTENCE)
            break;
        read_at(paste, run, found);
        at = found + 1;
    }
    /* A trigger may be half there at the end. */
    size_t done = found;
    if (found == run->length)
        done = found < at + TRIGGER_MAX ? at : found - TRIGGER_MAX;
    size_t drop = done > PASTE_BEFORE ? done - PASTE_BEFORE : 0;
    drop_front(run, drop);
    run->looked = done - drop;
}

/* The run of `whose`; where there are more than runs, the one that rested longest is read out. */
static struct run *run_of(struct paste *paste, uint64_t whose)
{
    struct run *oldest = &paste->runs[0];
    if (whose == 0)
        return &paste->runs[paste->run];
    for (struct run *run = paste->runs; run < paste->runs + PASTE_RUNS; run++) {
        /* The first text without a mark is its run's until a mark comes. */
        if (run->whose == whose || (run->whose == 0 && run->length == 0))
            return run;
        oldest = run->used < oldest->used ? run : oldest;
    }
    read_sentences(paste, oldest, true);
    oldest->length = oldest->looked = 0;
    return oldest;
}

void run_append(struct paste *paste, uint64_t whose, struct cursor line)
{
    struct run *run = run_of(paste, whose);
    paste->run = (size_t)(run - paste->runs);
    run->whose = whose != 0 ? whose : run->whose;
    run->used = paste->lines;
    /* A bar is what is left of "time | level | name | message". */
    while (cursor_take(&line, "|") || cursor_take(&line, " "))
        ;
    if (run->length + (size_t)(line.end - line.at) > PASTE_RUN)
        read_sentences(paste, run, false);
    for (; line.at < line.end && run->length < PASTE_RUN; line.at++)
        if (*line.at != ' ' && *line.at != '\t') {
            run->lines[run->length] = paste->lines;
            run->text[run->length++] = *line.at;
        }
}

void run_end(struct paste *paste)
{
    for (struct run *run = paste->runs; run < paste->runs + PASTE_RUNS; run++)
        read_sentences(paste, run, true);
}
