/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of allocators that tell a request and their own pool, rarely the device:
 * TensorFlow, XLA, CuPy, RMM, ggml, OneFlow, plain CUDA errors.
 */
#include <stdio.h>

#include "verdict.h"

static struct amount get(const struct verdict *verdict, enum number number)
{
    return verdict->subject.numbers[number];
}

static bool above(struct amount a, struct amount b)
{
    return a.known && b.known && a.bytes > b.bytes;
}

/* More than any device has. */
#define BEYOND_DEVICES ((int64_t)4 << 40)

static bool above_device(struct verdict *verdict)
{
    enum number need = NUMBER_REQUESTED;
    if (number_of(&verdict->subject, need) > BEYOND_DEVICES) {
        verdict_decide(verdict, "request_exceeds_device",
                       "%s were asked for in one piece, more than any device has: a size that went "
                       "wrong, not a lack of memory",
                       size_of(verdict, need).text);
        return true;
    }
    if (!above(get(verdict, need), get(verdict, NUMBER_TOTAL)))
        need = NUMBER_PROGRAM;
    if (!above(get(verdict, need), get(verdict, NUMBER_TOTAL)))
        return false;
    verdict_decide(verdict, "request_exceeds_device", "%s %s on a device of %s",
                   size_of(verdict, need).text,
                   need == NUMBER_PROGRAM ? "are what the compiled program needs at once"
                                          : "were asked for in one piece",
                   size_of(verdict, NUMBER_TOTAL).text);
    return true;
}

/* A pool with a limit of its own: BFC, CuPy with set_limit. */
static bool by_limit(struct verdict *verdict)
{
    struct amount limit = get(verdict, NUMBER_LIMIT), held = get(verdict, NUMBER_ALLOCATED);
    struct amount sum = amount_sum(held, get(verdict, NUMBER_REQUESTED));
    bool cupy = verdict->subject.family == FAMILY_CUPY;
    /* More than it in use: it limits nothing. */
    if (!sum.known || !limit.known || sum.bytes <= limit.bytes || above(held, limit))
        return false;
    verdict_decide(verdict, cupy ? "limit" : "full",
                   "%s were in use in a pool limited to %s, and %s more were asked for: that does "
                   "not fit",
                   size_of(verdict, NUMBER_ALLOCATED).text, size_of(verdict, NUMBER_LIMIT).text,
                   size_of(verdict, NUMBER_REQUESTED).text);
    return true;
}

static bool in_pieces(struct verdict *verdict)
{
    struct amount request = get(verdict, NUMBER_REQUESTED);
    struct amount free_sum = get(verdict, NUMBER_UNALLOCATED);
    struct amount largest = get(verdict, NUMBER_LARGEST_FREE);
    if (!request.known || !largest.known || largest.bytes >= request.bytes ||
        !at_least(free_sum, request))
        return false;
    verdict_decide(verdict, "fragmented",
                   "the pool had %s free, but in pieces: the largest is %s, and %s were asked for",
                   size_of(verdict, NUMBER_UNALLOCATED).text,
                   size_of(verdict, NUMBER_LARGEST_FREE).text,
                   size_of(verdict, NUMBER_REQUESTED).text);
    return true;
}

/* The pool's limit left room, the device did not give it. */
static bool could_not_grow(struct verdict *verdict, bool refused)
{
    struct amount room = amount_rest(get(verdict, NUMBER_LIMIT), get(verdict, NUMBER_RESERVED));
    if (!refused || !at_least(room, get(verdict, NUMBER_REQUESTED)))
        return false;
    verdict_decide(verdict, "outside",
                   "the pool held %s and could have grown to %s, but the device refused: the rest "
                   "of it was held by somebody else",
                   size_of(verdict, NUMBER_RESERVED).text, size_of(verdict, NUMBER_LIMIT).text);
    return true;
}

/* Memory that the pool could not give back to the device before it gave up. */
static bool idle_in_pool(struct verdict *verdict)
{
    struct amount idle = get(verdict, NUMBER_UNALLOCATED), lack = get(verdict, NUMBER_SHORT);
    if (verdict->subject.family != FAMILY_JULIA || !at_least(idle, lack))
        return false;
    verdict_decide(verdict, "fragmented",
                   "%s were asked for and %s were free, while %s lay unused in the pool's own "
                   "chunks, in pieces beside live arrays",
                   size_of(verdict, NUMBER_REQUESTED).text, size_of(verdict, NUMBER_FREE).text,
                   size_of(verdict, NUMBER_UNALLOCATED).text);
    return true;
}

static bool by_free(struct verdict *verdict)
{
    struct amount request = get(verdict, NUMBER_REQUESTED), free_bytes = get(verdict, NUMBER_FREE);
    if (!request.known || !free_bytes.known)
        return false;
    struct amount outside = get(verdict, NUMBER_OUTSIDE_ANY);
    if (free_bytes.bytes >= request.bytes)
        verdict_decide(verdict, verdict->subject.family == FAMILY_XLA ? "fragmented" : "unknown",
                       "%s were asked for and %s were free, %s",
                       size_of(verdict, NUMBER_REQUESTED).text, size_of(verdict, NUMBER_FREE).text,
                       verdict->subject.family == FAMILY_XLA
                           ? "so not in one piece"
                           : "by the figures told before: somebody took it since, or it is not "
                             "memory of the device that was short");
    else if (at_least(outside, get(verdict, NUMBER_SHORT)) &&
             is_share(outside, get(verdict, NUMBER_TOTAL), 10))
        verdict_decide(verdict, "outside",
                       "%s were asked for and about %s were left, while %s of the device's %s were "
                       "taken before this program's buffers",
                       size_of(verdict, NUMBER_REQUESTED).text, size_of(verdict, NUMBER_FREE).text,
                       size_of(verdict, NUMBER_OUTSIDE_ANY).text,
                       size_of(verdict, NUMBER_TOTAL).text);
    else
        verdict_decide(
            verdict, "full", "%s were asked for and about %s were left%s%s%s%s",
            size_of(verdict, NUMBER_REQUESTED).text, size_of(verdict, NUMBER_FREE).text,
            get(verdict, NUMBER_TOTAL).known ? " of the device's " : "",
            get(verdict, NUMBER_TOTAL).known ? size_of(verdict, NUMBER_TOTAL).text : "",
            get(verdict, NUMBER_ALLOCATED).known ? " beside its own buffers of " : "",
            get(verdict, NUMBER_ALLOCATED).known ? size_of(verdict, NUMBER_ALLOCATED).text : "");
    return true;
}

static bool by_total(struct verdict *verdict)
{
    struct amount sum = amount_sum(get(verdict, NUMBER_ALLOCATED), get(verdict, NUMBER_REQUESTED));
    if (!above(sum, get(verdict, NUMBER_TOTAL)))
        return false;
    verdict_decide(verdict, "full", "%s were held and %s more asked for on a device of %s",
                   size_of(verdict, NUMBER_ALLOCATED).text, size_of(verdict, NUMBER_REQUESTED).text,
                   size_of(verdict, NUMBER_TOTAL).text);
    return true;
}

static void undecided(struct verdict *verdict)
{
    const struct message *subject = &verdict->subject;
    char asked[80] = "memory was asked for", held[80] = "";
    if (number_known(subject, NUMBER_PROGRAM))
        snprintf(held, sizeof(held), "; the compiled program needs %s by its own account",
                 size_of(verdict, NUMBER_PROGRAM).text);
    if (number_known(subject, NUMBER_REQUESTED))
        snprintf(asked, sizeof(asked), "%s were asked for",
                 size_of(verdict, NUMBER_REQUESTED).text);
    if (number_known(subject, NUMBER_ALLOCATED))
        snprintf(held, sizeof(held), "; the pool held %s", size_of(verdict, NUMBER_ALLOCATED).text);
    if (subject->family == FAMILY_CUDA && number_known(subject, NUMBER_REQUESTED))
        verdict_decide(verdict, "unknown",
                       "%s was refused %s by the device; nothing here tells who held the rest",
                       subject->what, size_of(verdict, NUMBER_REQUESTED).text);
    else if (subject->family == FAMILY_CUDA)
        verdict_decide(verdict, "unknown",
                       "%s failed for want of memory and says no figure: nothing here tells whose "
                       "memory it was",
                       subject->what);
    else
        verdict_decide(verdict, "unknown",
                       "%s and refused%s; the message does not say what was free or who held the "
                       "rest",
                       asked, held);
}

void verdict_pools(const struct paste *paste, struct verdict *verdict)
{
    if (above_device(verdict) || by_limit(verdict) || in_pieces(verdict) ||
        could_not_grow(verdict, paste->bfc.refused) || by_total(verdict) || idle_in_pool(verdict) ||
        by_free(verdict))
        return;
    undecided(verdict);
}
