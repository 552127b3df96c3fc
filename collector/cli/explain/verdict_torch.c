/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's sentence, judged by its arithmetic. The rules are tried in order; the first
 * that its figures prove decides:
 *
 *   the request is larger than the device           request_exceeds_device
 *   reserved + request is above the allowed figure  limit
 *   free would have been enough                     unknown: memory was not what was short
 *   allocated + request is above the device         full
 *   cached, though no live block can hold it back   waiting_streams
 *   the largest of: cached, other processes, outside the framework, if it alone would have
 *   made room and is no small change                fragmented, other_process, outside
 *   else                                            full, or unknown if it takes two of them
 *
 * The message is made after PyTorch gave back every segment without a live block: what is
 * still cached then is not an idle reserve.
 */
#include <stdio.h>

#include "verdict.h"

enum {
    /* Below this share of the device a cause is small change: without it the next request
     * would have failed. */
    SMALL_PERCENT = 5
};
/* What one process usually needs beside its allocator: context, kernels, library workspaces. */
#define USUAL_OUTSIDE ((int64_t)1 << 30)
/* Blocks of the large pool are at least this large; a smaller sum has none of them. */
#define LARGE_BLOCK ((int64_t)1 << 20)
#define SMALL_BLOCK 512
#define SMALL_SEGMENT ((int64_t)2 << 20)

static struct amount get(const struct verdict *verdict, enum number number)
{
    return verdict->subject.numbers[number];
}

static bool above_device(struct verdict *verdict)
{
    struct amount request = get(verdict, NUMBER_REQUESTED), total = get(verdict, NUMBER_TOTAL);
    if (!request.known || !total.known || request.bytes <= total.bytes)
        return false;
    verdict_decide(verdict, "request_exceeds_device",
                   "%s were asked for in one piece on a device of %s: nothing that could be freed "
                   "makes that fit",
                   size_of(verdict, NUMBER_REQUESTED).text, size_of(verdict, NUMBER_TOTAL).text);
    return true;
}

/* Somebody subtracts use from a limit without a sign: use is above that limit. */
static bool above_other_limit(struct verdict *verdict)
{
    if (!verdict->subject.free_wrapped)
        return false;
    verdict_decide(
        verdict, "limit",
        "the figure for free memory has wrapped around zero: more than a limit of %s is in "
        "use, which another tool keeps (vGPU, HAMi), and %s more were asked for",
        size_of(verdict, NUMBER_TOTAL).text, size_of(verdict, NUMBER_REQUESTED).text);
    return true;
}

static bool above_limit(struct verdict *verdict)
{
    struct amount held = get(verdict, NUMBER_RESERVED);
    if (!held.known)
        held = get(verdict, NUMBER_ALLOCATED);
    struct amount sum = amount_sum(held, get(verdict, NUMBER_REQUESTED));
    struct amount allowed = get(verdict, NUMBER_ALLOWED);
    if (!sum.known || !allowed.known || !at_least(sum, allowed))
        return false;
    char idle[96] = "";
    struct amount cached = get(verdict, NUMBER_UNALLOCATED);
    if (at_least(cached, get(verdict, NUMBER_REQUESTED)))
        snprintf(idle, sizeof(idle), "; %s of that are cached and in pieces",
                 size_words_of(cached.bytes).text);
    verdict_decide(
        verdict, "limit",
        "this process is limited to %s: it held %s%s and asked for %s more, while %s were "
        "free on the device",
        size_of(verdict, NUMBER_ALLOWED).text, size_words_of(held.bytes).text, idle,
        size_of(verdict, NUMBER_REQUESTED).text, size_of(verdict, NUMBER_FREE).text);
    return true;
}

static bool enough_free(struct verdict *verdict)
{
    struct amount request = get(verdict, NUMBER_REQUESTED), free_bytes = get(verdict, NUMBER_FREE);
    if (!request.known || !free_bytes.known ||
        free_bytes.bytes - free_bytes.rounding < request.bytes + request.rounding)
        return false;
    verdict_decide(verdict, "unknown",
                   "%s were asked for and %s were free when the message was made: memory of the "
                   "device is not what was short",
                   size_of(verdict, NUMBER_REQUESTED).text, size_of(verdict, NUMBER_FREE).text);
    return true;
}

static bool spilled(struct verdict *verdict)
{
    struct amount allocated = get(verdict, NUMBER_ALLOCATED), total = get(verdict, NUMBER_TOTAL);
    if (!allocated.known || !total.known || allocated.bytes <= total.bytes)
        return false;
    verdict_decide(verdict, "full",
                   "the program has %s allocated on a device of %s: the driver already keeps the "
                   "rest in host memory (Windows, WSL), and %s more did not fit there either",
                   size_of(verdict, NUMBER_ALLOCATED).text, size_of(verdict, NUMBER_TOTAL).text,
                   size_of(verdict, NUMBER_REQUESTED).text);
    return true;
}

static bool simply_full(struct verdict *verdict)
{
    struct amount sum = amount_sum(get(verdict, NUMBER_ALLOCATED), get(verdict, NUMBER_REQUESTED));
    struct amount total = get(verdict, NUMBER_TOTAL);
    if (!sum.known || !total.known || sum.bytes <= total.bytes)
        return false;
    verdict_decide(verdict, "full",
                   "the program had %s of %s allocated and asked for %s more: that does not fit, "
                   "however the memory is laid out",
                   size_of(verdict, NUMBER_ALLOCATED).text, size_of(verdict, NUMBER_TOTAL).text,
                   size_of(verdict, NUMBER_REQUESTED).text);
    return true;
}

/*
 * Cached bytes that cannot lie beside live blocks. Less than 1 MiB is allocated: then the
 * large pool has no live block at all, and each small one holds back one 2 MiB segment.
 */
static bool cached_without_blocks(struct verdict *verdict)
{
    struct amount allocated = get(verdict, NUMBER_ALLOCATED);
    struct amount cached = get(verdict, NUMBER_UNALLOCATED);
    if (!allocated.known || !cached.known || allocated.bytes + allocated.rounding >= LARGE_BLOCK)
        return false;
    int64_t blocks = (allocated.bytes + allocated.rounding) / SMALL_BLOCK + 1;
    return cached.bytes - cached.rounding > blocks * SMALL_SEGMENT &&
           is_share(cached, get(verdict, NUMBER_TOTAL), SMALL_PERCENT);
}

static bool waiting(struct verdict *verdict)
{
    struct amount pending = get(verdict, NUMBER_PENDING), lack = get(verdict, NUMBER_SHORT);
    if (at_least(pending, lack) && is_share(pending, get(verdict, NUMBER_TOTAL), SMALL_PERCENT)) {
        verdict_decide(verdict, "waiting_streams",
                       "%s were freed by the program but still waited for another stream when %s "
                       "were asked for",
                       size_of(verdict, NUMBER_PENDING).text,
                       size_of(verdict, NUMBER_REQUESTED).text);
        return true;
    }
    if (!at_least(get(verdict, NUMBER_UNALLOCATED), lack) || !cached_without_blocks(verdict))
        return false;
    verdict_decide(verdict, "waiting_streams",
                   "%s were cached with only %s allocated: live blocks cannot hold back that much, "
                   "so it was freed memory that waited for another stream (record_stream, NCCL)",
                   size_of(verdict, NUMBER_UNALLOCATED).text,
                   size_of(verdict, NUMBER_ALLOCATED).text);
    return true;
}

/* ---- the largest cause ------------------------------------------------------------------ */

struct cause {
    const char *class;
    enum number number;
    const char *sentence; /* with the size before it */
    int64_t usual;        /* up to this it is what any process needs */
};

static const struct cause causes[] = {
    {"fragmented", NUMBER_UNALLOCATED,
     "lay unused in PyTorch's own segments, in pieces beside live blocks", 0},
    {"full", NUMBER_PRIVATE,
     "lay in private pools of CUDA graphs (or a MemPool), which only their owner can use", 0},
    {"other_process", NUMBER_OTHER, "were held by other processes", 0},
    {"outside", NUMBER_OUTSIDE,
     "were held by this process outside of PyTorch's allocator (context, NCCL, cuDNN, other "
     "libraries)",
     USUAL_OUTSIDE},
    {"outside", NUMBER_OUTSIDE_ANY,
     "were held outside of PyTorch's allocator, by other processes or by other libraries of this "
     "one",
     USUAL_OUTSIDE},
};

/* With cudaMallocAsync the cache is the driver's and in no figure. */
static const char async_sentence[] =
    "were neither allocated nor free: idle in the driver's pool, other processes, or libraries";

enum { CAUSES = sizeof(causes) / sizeof(causes[0]) };

static bool counts(const struct verdict *verdict, const struct cause *cause)
{
    struct amount held = get(verdict, cause->number);
    return held.known && held.bytes > cause->usual &&
           is_share(held, get(verdict, NUMBER_TOTAL), SMALL_PERCENT);
}

static const struct cause *largest_cause(const struct verdict *verdict, struct amount *together)
{
    const struct cause *largest = NULL;
    *together = (struct amount){.known = true};
    for (int i = 0; i < CAUSES; i++) {
        if (!counts(verdict, &causes[i]))
            continue;
        *together = amount_sum(*together, get(verdict, causes[i].number));
        if (largest == NULL ||
            get(verdict, causes[i].number).bytes > get(verdict, largest->number).bytes)
            largest = &causes[i];
    }
    return largest;
}

static void no_single_cause(struct verdict *verdict, const struct cause *largest)
{
    verdict_decide(
        verdict, "unknown",
        "%s were asked for and %s were free; the largest share beside the program's own, "
        "%s, is not enough alone: several things came together",
        size_of(verdict, NUMBER_REQUESTED).text, size_of(verdict, NUMBER_FREE).text,
        size_of(verdict, largest->number).text);
}

static void nothing_idle(struct verdict *verdict)
{
    char cached[96] = "", outside[64] = "";
    struct amount others = get(verdict, NUMBER_OUTSIDE_ANY);
    if (is_share(others, get(verdict, NUMBER_TOTAL), SMALL_PERCENT))
        snprintf(outside, sizeof(outside), ", %s outside of PyTorch's allocator",
                 size_words_of(others.bytes).text);
    if (number_known(&verdict->subject, NUMBER_UNALLOCATED))
        snprintf(cached, sizeof(cached), ", only %s cached and in pieces",
                 size_of(verdict, NUMBER_UNALLOCATED).text);
    verdict_decide(
        verdict, "full",
        "the device is full of the program's own memory: %s of %s allocated, %s free%s%s, "
        "and %s asked for",
        size_of(verdict, NUMBER_ALLOCATED).text, size_of(verdict, NUMBER_TOTAL).text,
        size_of(verdict, NUMBER_FREE).text, cached, outside,
        size_of(verdict, NUMBER_REQUESTED).text);
}

static void by_cause(struct verdict *verdict)
{
    struct amount together, lack = get(verdict, NUMBER_SHORT);
    const struct cause *largest = largest_cause(verdict, &together);
    /* The message's own hint always speaks of fragmentation. */
    char hint[96] = "";
    if (largest != NULL && largest->number != NUMBER_UNALLOCATED &&
        number_known(&verdict->subject, NUMBER_UNALLOCATED))
        snprintf(hint, sizeof(hint), "; fragmentation holds only %s",
                 size_of(verdict, NUMBER_UNALLOCATED).text);
    if (largest != NULL && at_least(get(verdict, largest->number), lack))
        verdict_decide(verdict, largest->class, "%s were asked for and %s were free, while %s %s%s",
                       size_of(verdict, NUMBER_REQUESTED).text, size_of(verdict, NUMBER_FREE).text,
                       size_of(verdict, largest->number).text,
                       verdict->subject.family == FAMILY_TORCH_ASYNC ? async_sentence
                                                                     : largest->sentence,
                       hint);
    else if (largest != NULL && at_least(together, lack))
        no_single_cause(verdict, largest);
    else
        nothing_idle(verdict);
}

static void lacks_figures(struct verdict *verdict)
{
    bool asked = number_known(&verdict->subject, NUMBER_REQUESTED);
    bool whole = number_known(&verdict->subject, NUMBER_TOTAL) &&
                 number_known(&verdict->subject, NUMBER_ALLOCATED);
    verdict_decide(
        verdict, "unknown", "%s%s asked for, %s",
        asked ? size_of(verdict, NUMBER_REQUESTED).text : "memory", asked ? " were" : " was",
        whole ? "and the program's own blocks left room for it: the message does not say "
                "what was free, or who held the rest"
              : "but the message lacks the figures that say why there was no room");
}

void verdict_torch(struct verdict *verdict)
{
    if (above_device(verdict) || above_other_limit(verdict) || above_limit(verdict) ||
        enough_free(verdict) || spilled(verdict) || simply_full(verdict) || waiting(verdict))
        return;
    if (!get(verdict, NUMBER_SHORT).known || !get(verdict, NUMBER_TOTAL).known ||
        !get(verdict, NUMBER_ALLOCATED).known) {
        lacks_figures(verdict);
        return;
    }
    by_cause(verdict);
}
