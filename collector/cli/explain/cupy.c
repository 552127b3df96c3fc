/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CuPy's memory pool. It gave its free blocks back before it failed; the figure beside the
 * request is what the pool holds, until version 6 with the failed request in it.
 */
#include "paste.h"

static bool raised(const char *start, const char *at)
{
    return text_before(start, at, "Error:", 16) || text_before(start, at, "Exception", 40);
}

/* "Out of memory allocating 25,600,000 bytes (allocated so far: … bytes, limit set to: …)" */
static void read_new(struct paste *paste, const char *start, struct cursor text)
{
    struct message message = message_start(FAMILY_CUPY);
    message.fatal = raised(start, text.at);
    message_fill(&message, NUMBER_ALLOCATED, amount_after(text, "allocatedsofar:", 80));
    if (!number_known(&message, NUMBER_ALLOCATED))
        return;
    message_fill(&message, NUMBER_REQUESTED, amount_after(text, "allocating", 40));
    message_fill(&message, NUMBER_LIMIT, amount_after(text, "limitsetto:", 160));
    paste_failure(paste, &message);
}

/* "out of memory to allocate 1073741824 bytes (total 12373894656 bytes, limit set to …)" */
static void read_old(struct paste *paste, const char *start, struct cursor text)
{
    struct message message = message_start(FAMILY_CUPY);
    struct amount requested = amount_after(text, "toallocate", 40);
    struct amount total = amount_after(text, "(total", 80);
    if (!requested.known || !total.known)
        return;
    message.fatal = raised(start, text.at);
    message_fill(&message, NUMBER_REQUESTED, requested);
    if (total.bytes >= requested.bytes)
        message_fill(&message, NUMBER_ALLOCATED,
                     (struct amount){total.bytes - requested.bytes, 0, true});
    message_fill(&message, NUMBER_LIMIT, amount_after(text, "limitsetto", 160));
    paste_failure(paste, &message);
}

const struct sentence cupy_sentences[] = {
    {"Outofmemoryallocating", read_new, NULL},
    {"outofmemorytoallocate", read_old, NULL},
    {NULL, NULL, NULL},
};
