/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which failure of the paste the verdict is about, what the rest of the paste adds to it,
 * and which rules judge it.
 */
#include "verdict.h"

#include <stdio.h>
#include <string.h>

/* ---- what the rest of the paste adds ---------------------------------------------------- */

static void add_summary(const struct summary_table *table, struct message *subject)
{
    bool same = table->device < 0 || subject->device < 0 || table->device == subject->device;
    if (!table->seen || !same)
        return;
    message_fill(subject, NUMBER_ALLOCATED, table->now[ROW_ALLOCATED]);
    message_fill(subject, NUMBER_RESERVED, table->now[ROW_RESERVED]);
    message_fill(subject, NUMBER_NON_RELEASABLE, table->now[ROW_NON_RELEASABLE]);
    message_fill(subject, NUMBER_PEAK_ALLOCATED, table->peak[ROW_ALLOCATED]);
    message_fill(subject, NUMBER_PEAK_RESERVED, table->peak[ROW_RESERVED]);
    /* Against the table's own figure: the message may be of another moment. */
    struct amount pending = amount_rest(table->now[ROW_ACTIVE], table->now[ROW_ALLOCATED]);
    message_fill(subject, NUMBER_ACTIVE, table->now[ROW_ACTIVE]);
    message_fill(subject, NUMBER_PENDING, pending);
}

static void add_bfc(const struct bfc *bfc, struct message *subject)
{
    if (!bfc->seen || subject->hint == HINT_HOST)
        return;
    message_fill(subject, NUMBER_LIMIT, bfc->limit);
    message_fill(subject, NUMBER_ALLOCATED, bfc->in_use);
    message_fill(subject, NUMBER_RESERVED, bfc->region);
    message_fill(subject, NUMBER_PEAK_ALLOCATED, bfc->peak);
    message_fill(subject, NUMBER_LARGEST_FREE, bfc->largest_free);
    message_fill(subject, NUMBER_UNALLOCATED, bfc->free_sum);
}

static void add_buffers(const struct paste *paste, struct message *subject)
{
    if (subject->device < 0 || subject->device >= PASTE_BUFFER_DEVICES)
        return;
    const struct ggml_device *device = &paste->ggml[subject->device];
    struct amount free_bytes = device->buffers.known
                                   ? amount_rest(device->free_at_start, device->buffers)
                                   : device->free_at_start;
    message_fill(subject, NUMBER_ALLOCATED, device->buffers);
    message_fill(subject, NUMBER_TOTAL, device->total);
    message_fill(subject, NUMBER_FREE, free_bytes);
}

static void complete(const struct paste *paste, struct message *subject)
{
    const struct smi_gpu *gpu = smi_device(&paste->smi, subject->device);
    if (subject->family == FAMILY_TORCH || subject->family == FAMILY_SUMMARY)
        add_summary(&paste->summary, subject);
    if (subject->family == FAMILY_TENSORFLOW || subject->family == FAMILY_XLA)
        add_bfc(&paste->bfc, subject);
    if (subject->family == FAMILY_XLA)
        message_fill(subject, NUMBER_PROGRAM, paste->xla_program);
    if (subject->family == FAMILY_GGML)
        add_buffers(paste, subject);
    if (subject->family == FAMILY_VLLM && !number_known(subject, NUMBER_REQUESTED))
        message_fill(subject, NUMBER_SHORT, paste->cache_short);
    if (subject->family != FAMILY_TORCH && gpu != NULL && gpu->instance < 0 &&
        (subject->device >= 0 || paste->smi.gpu_count == 1))
        message_fill(subject, NUMBER_TOTAL, gpu->total);
    verdict_derive(subject);
}

/* ---- which failure ---------------------------------------------------------------------- */

static struct message choose(const struct paste *paste)
{
    if (paste->first_fatal.family != FAMILY_NONE)
        return paste->first_fatal;
    if (paste->last.family != FAMILY_NONE)
        return paste->last;
    struct message none = message_start(FAMILY_NONE);
    const struct amount *now = paste->summary.now;
    if (now[ROW_ALLOCATED].known && now[ROW_RESERVED].known) {
        none.family = FAMILY_SUMMARY;
        none.device = paste->summary.device;
    } else if (paste->bfc.limit.known && paste->bfc.in_use.known) {
        none.family = FAMILY_TENSORFLOW;
    } else if (paste->smi.gpu_count > 0 || paste->smi.process_count > 0) {
        none.family = FAMILY_SMI;
    } else if (paste->bfc.asked.known) {
        none.family = paste->bfc.xla ? FAMILY_XLA : FAMILY_TENSORFLOW;
        message_fill(&none, NUMBER_REQUESTED, paste->bfc.asked);
    } else if (paste->bfc.refused) {
        none.family = FAMILY_CUDA;
        message_what(&none, "CUDA_ERROR_OUT_OF_MEMORY", strlen("CUDA_ERROR_OUT_OF_MEMORY"));
    }
    return none;
}

static void describe_source(const struct paste *paste, struct verdict *verdict)
{
    const struct message *subject = &verdict->subject;
    char device[32] = "", which[96] = "";
    bool first = paste->first_fatal.family != FAMILY_NONE;
    if (subject->device >= 0)
        snprintf(device, sizeof(device), ", GPU %d", subject->device);
    if (verdict->failures > 1)
        snprintf(which, sizeof(which), "; %s of %llu different failures in the text",
                 first ? "the first fatal one" : "the last one",
                 (unsigned long long)verdict->failures);
    bool table = subject->family == FAMILY_SUMMARY || subject->family == FAMILY_SMI;
    /* No memory was refused, or nobody knows: a sum, a signal. */
    bool told = subject->family == FAMILY_VLLM || subject->family == FAMILY_SGLANG ||
                subject->family == FAMILY_TRANSFORMERS || subject->family == FAMILY_DEEPSPEED ||
                subject->family == FAMILY_HOST;
    snprintf(verdict->source, sizeof(verdict->source), "%s%s%s%s",
             table  ? ""
             : told ? "told by "
                    : "out of memory as told by ",
             family_name(subject->family), device, which);
}

/* Words that mean one thing. */
static bool explained(struct verdict *verdict)
{
    const struct message *subject = &verdict->subject;
    char request[48] = "";
    if (subject->says == NULL || subject->says->why == NULL || subject->hint == HINT_BEYOND_ANY)
        return false;
    if (number_known(subject, NUMBER_REQUESTED))
        snprintf(request, sizeof(request),
                 "%s were asked for: ", size_of(verdict, NUMBER_REQUESTED).text);
    verdict_decide(verdict,
                   subject->hint == HINT_HOST    ? "host_memory"
                   : subject->hint == HINT_LIMIT ? "limit"
                                                 : "unknown",
                   "%s%s", request, subject->says->why);
    return true;
}

/* What the words decide before any figure. */
static bool decided_by_words(struct verdict *verdict)
{
    const struct message *subject = &verdict->subject;
    char request[48] = "a request";
    if (number_known(subject, NUMBER_REQUESTED))
        snprintf(request, sizeof(request), "a request of %s",
                 size_of(verdict, NUMBER_REQUESTED).text);
    switch (subject->hint) {
    case HINT_HOST:
        verdict_decide(verdict, "host_memory",
                       "%s for memory of the host failed; the GPU is not what was full", request);
        return true;
    case HINT_ADDRESS_SPACE:
        verdict_decide(
            verdict, "address_space",
            "%s for addresses failed; no memory was short, only the range it was to lie in",
            request);
        return true;
    case HINT_LIMIT:
        verdict_decide(verdict, "limit", "%s was refused by a limit of %s, not by the device",
                       request,
                       number_known(subject, NUMBER_ALLOWED) ? size_of(verdict, NUMBER_ALLOWED).text
                       : number_known(subject, NUMBER_LIMIT) ? size_of(verdict, NUMBER_LIMIT).text
                       : subject->family == FAMILY_RMM       ? "the pool"
                                                             : "the process");
        return true;
    case HINT_BEYOND_ANY:
        verdict_decide(verdict, "request_exceeds_device",
                       "more than 1 EiB was asked for: a size that went wrong (a negative or "
                       "overflowed shape), not a lack of memory");
        return true;
    case HINT_NO_MESSAGE:
        verdict_decide(verdict, "unknown",
                       "an ordinary out of memory whose message could not be printed: NVML refused "
                       "the question about the other processes, as it does on MIG slices");
        return true;
    default:
        return false;
    }
}

bool verdict_of(const struct paste *paste, struct verdict *verdict)
{
    memset(verdict, 0, sizeof(*verdict));
    verdict->subject = choose(paste);
    verdict->failures = paste->failures;
    if (verdict->subject.family == FAMILY_NONE)
        return false;
    complete(paste, &verdict->subject);
    describe_source(paste, verdict);
    if (verdict->subject.family == FAMILY_SUMMARY)
        verdict_summary(paste, verdict);
    else if (verdict->subject.family == FAMILY_SMI)
        verdict_smi(paste, verdict);
    else if (explained(verdict) || decided_by_words(verdict))
        ;
    else if (verdict->subject.family == FAMILY_CUDA &&
             !number_known(&verdict->subject, NUMBER_REQUESTED) && paste->smi.gpu_count > 0)
        verdict_with_page(paste, verdict);
    else if (verdict->subject.family == FAMILY_VLLM)
        verdict_serving(verdict);
    else if (verdict->subject.family == FAMILY_TORCH ||
             verdict->subject.family == FAMILY_TORCH_ASYNC)
        verdict_torch(verdict);
    else
        verdict_pools(paste, verdict);
    verdict_advise(verdict);
    return true;
}
