/* SPDX-License-Identifier: Apache-2.0 */
/* Failures told by words, from the rows of the tables. */
#include <string.h>

#include "paste.h"

static bool fits(const struct told *told, const char *start, struct cursor text)
{
    return (told->with == NULL || cursor_has(text, told->with, TOLD_REACH)) &&
           (told->without == NULL || !cursor_has(text, told->without, TOLD_REACH)) &&
           (told->before == NULL || text_before(start, text.at, told->before, TOLD_REACH)) &&
           (told->not_before == NULL || !text_before(start, text.at, told->not_before, TOLD_REACH));
}

void message_device(struct message *message, struct cursor text, const char *word, size_t reach)
{
    uint64_t device;
    if (cursor_find(&text, word, reach) && cursor_count(&text, &device) && device < 1024)
        message->device = (int)device;
}

void told_failure(struct paste *paste, const struct told *told, struct cursor text)
{
    struct message message = message_start(told->family);
    message.hint = told->hint;
    message.says = told->says;
    message.fatal = told->fatal;
    message.weak = told->last;
    message.no_cuda = told->no_cuda;
    if (told->what != NULL)
        snprintf(message.what, sizeof(message.what), "%s", told->what);
    if (told->request != NULL)
        message_fill(&message, NUMBER_REQUESTED, amount_after(text, told->request, TOLD_REACH));
    if (told->device != NULL)
        message_device(&message, text, told->device, TOLD_REACH);
    /* A framework's own message is about the same failure. */
    if (!told->last || !paste_knows(paste))
        paste_failure(paste, &message);
    else if (paste->last.family == message.family && strcmp(paste->last.what, message.what) == 0)
        message_fill(&paste->last, NUMBER_REQUESTED, message.numbers[NUMBER_REQUESTED]);
}

void told_sentence(struct paste *paste, const struct told *told, const char *start,
                   struct cursor text)
{
    if (fits(told, start, text))
        told_failure(paste, told, text);
}
