/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OneFlow: one figure, the request. The sentence begins like PyTorch's; OneFlow writes
 * units in two letters, no device, and its own names around it.
 */
#include "paste.h"

static bool names_oneflow(const char *start, struct cursor text)
{
    return text_before(start, text.at, "oneflow", 256) || cursor_has(text, "oneflow", 1200);
}

bool oneflow_sentence(struct paste *paste, const char *start, struct cursor text)
{
    if (cursor_has(text, "GPU", 80) || !names_oneflow(start, text))
        return false;
    struct message message = message_start(FAMILY_ONEFLOW);
    message.fatal = true;
    message_fill(&message, NUMBER_REQUESTED, amount_after(text, "Triedtoallocate", 64));
    if (cursor_has(text, "bin_allocator", 3000))
        message_what(&message, "BinAllocator", 12);
    paste_failure(paste, &message);
    return true;
}
