/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vLLM's own sums at its start. What was held before it, by whomever, is "outside"; where
 * hardly anything was, the share that it is told to take is more than a device ever has.
 */
#include <stdio.h>

#include "verdict.h"

enum {
    SMALL_PERCENT = 5 /* below that, and below 1 GiB, it is a context and the driver */
};
#define USUAL_OUTSIDE ((int64_t)1 << 30)

static struct amount get(const struct verdict *verdict, enum number number)
{
    return verdict->subject.numbers[number];
}

static void at_start(struct verdict *verdict)
{
    struct amount held = amount_rest(get(verdict, NUMBER_TOTAL), get(verdict, NUMBER_FREE));
    bool others = held.known && held.bytes > USUAL_OUTSIDE &&
                  is_share(held, get(verdict, NUMBER_TOTAL), SMALL_PERCENT);
    if (others)
        verdict_decide(verdict, "outside",
                       "vLLM was to take %s of %s, and %s were free when it started: %s were held "
                       "before it, by other processes or earlier in this one",
                       size_of(verdict, NUMBER_REQUESTED).text, size_of(verdict, NUMBER_TOTAL).text,
                       size_of(verdict, NUMBER_FREE).text, size_words_of(held.bytes).text);
    else
        verdict_decide(
            verdict, "limit",
            "vLLM was to take %s of %s, and %s were free when it started: the %s held are "
            "no more than a context, the driver and a display need, so the share is too "
            "large for this device",
            size_of(verdict, NUMBER_REQUESTED).text, size_of(verdict, NUMBER_TOTAL).text,
            size_of(verdict, NUMBER_FREE).text, size_words_of(held.bytes).text);
    int64_t percent = number_of(&verdict->subject, NUMBER_FREE) /
                      (number_of(&verdict->subject, NUMBER_TOTAL) / 100 + 1);
    verdict_add(&verdict->next,
                "--gpu-memory-utilization %.2f or less fits into what was free, if the model does.",
                (double)percent / 100);
}

static void cache_too_small(struct verdict *verdict)
{
    const struct message *subject = &verdict->subject;
    if (number_known(subject, NUMBER_REQUESTED))
        verdict_decide(verdict, "limit",
                       "one request of %llu tokens needs %s of KV cache, and %s are left of the "
                       "share of the device that vLLM may take: a sum, no memory was refused",
                       (unsigned long long)subject->tokens, size_of(verdict, NUMBER_REQUESTED).text,
                       size_of(verdict, NUMBER_LIMIT).text);
    else
        verdict_decide(verdict, "limit",
                       "one request of %llu tokens does not fit: the share of the device that vLLM "
                       "may take leaves a KV cache for %llu",
                       (unsigned long long)subject->tokens,
                       (unsigned long long)subject->fitting_tokens);
    if (subject->fitting_tokens > 0)
        verdict_add(&verdict->next, "--max-model-len %llu fits, by vLLM's own account.",
                    (unsigned long long)subject->fitting_tokens);
    verdict_add(&verdict->next,
                "More room: a larger --gpu-memory-utilization if the device is free "
                "otherwise, --kv-cache-dtype fp8, or more GPUs.");
}

void verdict_serving(struct verdict *verdict)
{
    if (verdict->subject.tokens > 0 || !number_known(&verdict->subject, NUMBER_FREE))
        cache_too_small(verdict);
    else
        at_start(verdict);
}
