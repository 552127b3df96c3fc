/* SPDX-License-Identifier: Apache-2.0 */
/* What the parsers share: the failures of a paste, told once each. */
#include "paste.h"

#include <string.h>

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
