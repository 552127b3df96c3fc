/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RMM's exceptions. "Maximum pool size exceeded" is the pool's own limit, or, where a CUDA
 * error is quoted behind it, the device's refusal to let it grow.
 */
#include "paste.h"

#include <string.h>

static void report(struct paste *paste, const char *start, struct cursor text, bool pool)
{
    struct message message = message_start(FAMILY_RMM);
    message.fatal = text_before(start, text.at, "Error:", 160) ||
                    text_before(start, text.at, "std::bad_alloc", 160);
    bool device = cursor_has(text, "cudaErrorMemoryAllocation", 600);
    message.hint = pool && !device ? HINT_LIMIT : HINT_NONE;
    message_fill(&message, NUMBER_REQUESTED, amount_after(text, "(failedtoallocate", 600));
    message_fill(&message, NUMBER_LIMIT, amount_after(text, "maximumpoolsizeof", 600));
    if (cursor_has(text, "pinned", 200) || cursor_has(text, "host_memory_resource", 200))
        message.hint = HINT_HOST;
    message_what(&message, pool ? "pool" : "upstream", pool ? strlen("pool") : strlen("upstream"));
    paste_failure(paste, &message);
}

static void read_failure(struct paste *paste, const char *start, struct cursor text)
{
    struct cursor near = text;
    near.end = near.end - near.at > 400 ? near.at + 400 : near.end;
    bool pool = cursor_has(near, "Maximumpoolsizeexceeded", 400) ||
                cursor_has(near, "Exceededmemorylimit", 400);
    if (pool || cursor_has(near, "out_of_memory", 400) || cursor_has(near, "emoryAllocation", 400))
        report(paste, start, text, pool);
}

/* "CUDA error at: …/rmm/mr/device/cuda_memory_resource.hpp:68: cudaErrorMemoryAllocation" */
static void read_device(struct paste *paste, const char *start, struct cursor text)
{
    if (text_before(start, text.at, "Maximumpoolsizeexceeded", 400) ||
        !cursor_has(text, "rmm/", 300) || !cursor_has(text, "cudaErrorMemoryAllocation", 400))
        return;
    report(paste, start, text, false);
}

/* Before version 0.12: a name, of the pool or of the device. */
static void read_name(struct paste *paste, const char *start, struct cursor text)
{
    struct message message = message_start(FAMILY_RMM);
    message.fatal = text_before(start, text.at, "Error:", 16);
    paste_failure(paste, &message);
}

const struct sentence rmm_sentences[] = {
    {"RMM_ERROR_OUT_OF_MEMORY", read_name, NULL},
    {"RMMfailureat:", read_failure, NULL},
    {"CUDAerrorat:", read_device, NULL},
    {"CUDAerror(failedtoallocate", read_device, NULL},
    {NULL, NULL, NULL},
};
