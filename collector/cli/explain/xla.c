/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JAX and XLA: the request that failed, the compiler's account of the program ("total
 * allocation" of its buffer assignment), and the compiler's own refusal on devices whose
 * size it knows.
 */
#include "paste.h"

#include <string.h>

enum { REACH = 300 };

static void read_request(struct paste *paste, const char *start, struct cursor text)
{
    struct message message = message_start(FAMILY_XLA);
    message.fatal = text_before(start, text.at, "RESOURCE_EXHAUSTED", 64) ||
                    text_before(start, text.at, "Resourceexhausted", 64);
    if (!cursor_find(&text, "allocate", 64))
        return;
    message_fill(&message, NUMBER_REQUESTED, cursor_amount(&text));
    if (number_known(&message, NUMBER_REQUESTED))
        paste_failure(paste, &message);
}

/* "Out of memory allocating N bytes": CuPy's too, which goes on with what it holds. */
static void read_allocating(struct paste *paste, const char *start, struct cursor text)
{
    struct message message = message_start(FAMILY_XLA);
    if (cursor_has(text, "allocatedsofar", 80) || !cursor_find(&text, "allocating", 32))
        return;
    message.fatal = text_before(start, text.at, "RESOURCE_EXHAUSTED", 64);
    message_fill(&message, NUMBER_REQUESTED, cursor_amount(&text));
    if (number_known(&message, NUMBER_REQUESTED))
        paste_failure(paste, &message);
}

/* "Failed to allocate request for 2.00GiB (2147483648B) on device ordinal 0" */
static void read_ordinal(struct paste *paste, const char *start, struct cursor text)
{
    struct message message = message_start(FAMILY_XLA);
    uint64_t device;
    message.fatal = text_before(start, text.at, "RESOURCE_EXHAUSTED", 64);
    cursor_find(&text, "requestfor", 32);
    struct cursor exact = text;
    struct amount rounded = cursor_amount(&text);
    if (cursor_find(&exact, "(", 32))
        message_fill(&message, NUMBER_REQUESTED, cursor_amount(&exact));
    message_fill(&message, NUMBER_REQUESTED, rounded);
    if (cursor_find(&text, "ordinal", 80) && cursor_count(&text, &device) && device < 1024)
        message.device = (int)device;
    if (number_known(&message, NUMBER_REQUESTED))
        paste_failure(paste, &message);
}

/* "Attempting to allocate 6.79G. That was not possible. There are 5.62G free" */
static void read_attempt(struct paste *paste, const char *start, struct cursor text)
{
    struct message message = message_start(FAMILY_XLA);
    if (!cursor_has(text, "Thatwasnotpossible", 80))
        return;
    message.fatal = text_before(start, text.at, "RESOURCE_EXHAUSTED", 128);
    message_fill(&message, NUMBER_REQUESTED, amount_after(text, "toallocate", 40));
    message_fill(&message, NUMBER_FREE, amount_after(text, "Thereare", 120));
    paste_failure(paste, &message);
}

/* "Ran out of memory in memory space hbm. Used 17.90G of 15.48G hbm." */
static void read_space(struct paste *paste, const char *start, struct cursor text)
{
    struct message message = message_start(FAMILY_XLA);
    message.fatal = text_before(start, text.at, "RESOURCE_EXHAUSTED", 128) ||
                    text_before(start, text.at, "ResourceExhausted", 128);
    if (!cursor_find(&text, "Used", REACH))
        return;
    message_fill(&message, NUMBER_PROGRAM, cursor_amount(&text));
    if (cursor_take(&text, "of"))
        message_fill(&message, NUMBER_TOTAL, cursor_amount(&text));
    if (number_known(&message, NUMBER_PROGRAM))
        paste_failure(paste, &message);
}

const struct sentence xla_sentences[] = {
    {"Outofmemorywhiletryingtoallocate", read_request, NULL},
    {"Outofmemoryallocating", read_allocating, NULL},
    {"Failedtoallocaterequestfor", read_ordinal, NULL},
    {"Attemptingtoallocate", read_attempt, NULL},
    {"Ranoutofmemoryinmemoryspace", read_space, NULL},
    {NULL, NULL, NULL},
};

void xla_line(struct paste *paste, struct cursor line)
{
    /* The first account belongs to the first failure. */
    if (paste->xla_program.known)
        return;
    paste->xla_program = amount_after(line, "total allocation:", PASTE_LINE);
}
