/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's out-of-memory sentences, without blanks. What the figures are:
 *
 *   1.0 to 1.3   "cached" is reserved - allocated
 *   1.4 to 2.0   "reserved in total by PyTorch" includes what is allocated
 *   2.1 on       "reserved by PyTorch but unallocated" is what is left of reserved without
 *                allocated; with private pools, their free blocks are counted as allocated and
 *                told beside it
 *   all          "free" is the driver's answer after the cache was given back: what is then
 *                still cached lies beside live blocks, waits for a stream, or is in a private pool
 *
 * Figures of the process are missing where NVML could not find it; in a container the
 * process may be listed under its outer pid as if it were another one.
 */
#include "paste.h"

#include <string.h>

enum { REACH = 1600 };

/* "RuntimeError: CUDA out of memory": raised; "OOM with exception: CUDA …": told and survived. */
static bool raised(const char *start, const char *at)
{
    return text_before(start, at, "Error:", 48);
}

/* "(GPU 0; ", "(NPU 3; ": the old wording's list of figures begins. */
static bool old_list(struct cursor text)
{
    uint64_t device;
    return cursor_take(&text, "(") && cursor_find(&text, "PU", 4) && cursor_count(&text, &device) &&
           cursor_take(&text, ";");
}

/* "(GPU 0; 6.00 GiB total capacity; 3.49 GiB already allocated; 1.04 GiB free; …" */
static void read_old(struct message *message, struct cursor text)
{
    struct amount allocated = amount_before(text, "alreadyallocated", 300);
    struct amount reserved = amount_before(text, "reservedintotal", 400);
    struct amount cached = amount_before(text, "cached", 400);
    message->old_wording = true;
    message_device(message, text, "PU", 8);
    message_fill(message, NUMBER_TOTAL, amount_before(text, "totalcapacity", 200));
    message_fill(message, NUMBER_ALLOCATED, allocated);
    message->numbers[NUMBER_FREE] = amount_before(text, "free;", 300);
    message_fill(message, NUMBER_ALLOWED, amount_before(text, "allowed;", 400));
    if (reserved.known) {
        message_fill(message, NUMBER_RESERVED, reserved);
        message_fill(message, NUMBER_UNALLOCATED, amount_rest(reserved, allocated));
    } else {
        message_fill(message, NUMBER_UNALLOCATED, cached);
        message_fill(message, NUMBER_RESERVED, amount_sum(allocated, cached));
    }
}

/* "Process 20398 has 14.52 GiB memory in use." as often as there are processes. */
static void read_processes(struct message *message, struct cursor text)
{
    struct amount sum = {0}, largest = {0};
    uint64_t pid;
    while (cursor_find(&text, "Process", REACH)) {
        struct cursor ahead = text;
        if (!cursor_count(&ahead, &pid) || !cursor_take(&ahead, "has"))
            continue;
        struct amount used = cursor_amount(&ahead);
        if (!used.known)
            continue;
        sum = sum.known ? amount_sum(sum, used) : used;
        largest = !largest.known || used.bytes > largest.bytes ? used : largest;
        text = ahead;
    }
    message_fill(message, NUMBER_OTHER_LISTED, sum);
    struct amount used = amount_rest(message->numbers[NUMBER_TOTAL], message->numbers[NUMBER_FREE]);
    struct amount reserved = message->numbers[NUMBER_RESERVED];
    struct amount both = amount_sum(sum, reserved);
    if (!number_known(message, NUMBER_PROCESS) && both.known && used.known &&
        both.bytes > used.bytes + both.rounding + used.rounding &&
        largest.bytes + largest.rounding + reserved.rounding >= reserved.bytes) {
        /* All of them and PyTorch's own do not fit: one of them is this process. */
        message->process_assumed = true;
        message_fill(message, NUMBER_PROCESS, largest);
        message->numbers[NUMBER_OTHER_LISTED] =
            sum.bytes > largest.bytes ? amount_rest(sum, largest) : (struct amount){0};
    }
}

static void read_new(struct message *message, struct cursor text)
{
    message_device(message, text, "GPU", 200);
    struct cursor capacity = text;
    if (cursor_find(&capacity, "hasatotalcapac", 200) &&
        (cursor_take(&capacity, "ityof") || cursor_take(&capacity, "tyof")))
        message_fill(message, NUMBER_TOTAL, cursor_amount(&capacity));
    message->numbers[NUMBER_FREE] = amount_after(capacity, "ofwhich", 60);
    message_fill(message, NUMBER_PROCESS, amount_after(text, "thisprocesshas", REACH));
    struct cursor allocated = text;
    if (!cursor_find(&allocated, "Oftheallocatedmemory", REACH)) {
        read_processes(message, text);
        return;
    }
    /* "… in use. 1.72 GiB allowed; Of the allocated memory": the last sentence before it. */
    struct cursor before = {text.at, allocated.at};
    while (cursor_find(&before, "inuse.", REACH) || cursor_find(&before, "isfree.", REACH))
        ;
    message_fill(message, NUMBER_ALLOWED, amount_before(before, "allowed;", 60));
    struct amount held = cursor_amount(&allocated);
    struct amount inside = amount_after(allocated, "PyTorch,with", 60);
    struct amount rest = amount_after(allocated, inside.known ? "Graphs),and" : "PyTorch,and", 160);
    message_fill(message, NUMBER_PRIVATE, inside);
    message_fill(message, NUMBER_ALLOCATED, inside.known ? amount_rest(held, inside) : held);
    message_fill(message, NUMBER_UNALLOCATED, rest);
    message_fill(message, NUMBER_RESERVED, amount_sum(held, rest));
    read_processes(message, text);
}

/* Where a limit is kept by unsigned subtraction, free may wrap to 2^64: too large to be known. */
static void mend_free(struct message *message)
{
    struct amount *free_bytes = &message->numbers[NUMBER_FREE];
    const struct amount *total = &message->numbers[NUMBER_TOTAL];
    bool wrapped = free_bytes->bytes >= AMOUNT_ABSURD ||
                   (free_bytes->known && total->known && free_bytes->bytes > total->bytes);
    if (!wrapped)
        return;
    message->free_wrapped = true;
    *free_bytes = (struct amount){0};
}

/*
 * "MPS backend out of memory (MPS allocated: 9.57 GiB, other allocations: 17.35 GiB, max
 * allowed: 27.20 GiB). Tried to allocate 292.50 MiB on private pool."
 */
static void read_mps(struct paste *paste, const char *start, struct cursor text)
{
    struct message message = message_start(FAMILY_TORCH);
    message.fatal = raised(start, text.at);
    message.hint = HINT_LIMIT;
    message.no_cuda = true;
    message_fill(&message, NUMBER_REQUESTED, amount_after(text, "Triedtoallocate", REACH));
    message_fill(&message, NUMBER_ALLOCATED, amount_after(text, "MPSallocated:", 80));
    message_fill(&message, NUMBER_OUTSIDE, amount_after(text, "otherallocations:", 120));
    message_fill(&message, NUMBER_ALLOWED, amount_after(text, "maxallowed:", 160));
    paste_failure(paste, &message);
}

/* Intel's and Huawei's devices: the same words, nothing here can record them. */
static bool other_device(const char *start, const char *at)
{
    return text_before(start, at, "XPUoutofmemory.", 16) ||
           text_before(start, at, "NPUoutofmemory.", 16);
}

static void read_sentence(struct paste *paste, const char *start, struct cursor text)
{
    bool led = text_before(start, text.at, "outofmemory.", 12);
    if (led && oneflow_sentence(paste, start, text))
        return;
    struct message message = message_start(FAMILY_TORCH);
    message.fatal = raised(start, text.at);
    message.no_cuda = other_device(start, text.at);
    cursor_take(&text, "Triedtoallocate");
    if (led && cursor_take(&text, "morethan1EB")) {
        message.hint = HINT_BEYOND_ANY;
        paste_failure(paste, &message);
        return;
    }
    message_fill(&message, NUMBER_REQUESTED, cursor_amount(&text));
    /* The sentence alone, its beginning not copied, still has its figures. */
    if (!number_known(&message, NUMBER_REQUESTED) ||
        (!led && !old_list(text) && !cursor_has(text, "hasatotalcapac", 24)))
        return;
    /* A next failure's figures are not this one's. */
    struct cursor next = text;
    if (cursor_find(&next, "Triedtoallocate", REACH))
        text.end = next.at;
    if (old_list(text))
        read_old(&message, text);
    else
        read_new(&message, text);
    mend_free(&message);
    paste_failure(paste, &message);
}

/* "RuntimeError: CUDA out of memory." and no more: the title of an issue, a summary of a log. */
static void read_title(struct paste *paste, const char *start, struct cursor text)
{
    struct message message = message_start(FAMILY_TORCH);
    message.weak = true;
    if (paste_knows(paste) || !text_before(start, text.at, "Error:", strlen("Error:")) ||
        cursor_has(text, "Triedtoallocate", 40) || cursor_has(text, "occurredwhenwarmingup", 40))
        return;
    paste_failure(paste, &message);
}

/*
 * "expandable_segments: memory mapping failed with OOM on device 0 while trying to map 20971520
 * bytes (free: 12582912, total: 8589934592).": a warning, PyTorch tries again without its cache.
 */
static void read_mapping(struct paste *paste, const char *start, struct cursor text)
{
    (void)start;
    struct message message = message_start(FAMILY_TORCH);
    message.weak = true;
    message_device(&message, text, "ondevice", 60);
    message_fill(&message, NUMBER_REQUESTED, amount_after(text, "tomap", 100));
    message_fill(&message, NUMBER_FREE, amount_after(text, "(free:", 140));
    message_fill(&message, NUMBER_TOTAL, amount_after(text, "total:", 160));
    if (!paste_knows(paste) && number_known(&message, NUMBER_REQUESTED))
        paste_failure(paste, &message);
}

static void read_async(struct paste *paste, const char *start, struct cursor text)
{
    struct message message = message_start(FAMILY_TORCH_ASYNC);
    /* ComfyUI shows no more than the first words. */
    if (!cursor_has(text, "wouldexceedallowedmemory", 80) &&
        !text_before(start, text.at, "OutOfMemoryError:", 20) &&
        !text_before(start, text.at, "ExceptionMessage:", 20) &&
        !text_before(start, text.at, "Exceptionduringprocessing!!!", 28))
        return;
    message.fatal = raised(start, text.at);
    message_device(&message, text, "ondevice", 200);
    message_fill(&message, NUMBER_ALLOCATED, amount_after(text, "Currentlyallocated:", 300));
    message_fill(&message, NUMBER_REQUESTED, amount_after(text, "Requested:", 300));
    message_fill(&message, NUMBER_TOTAL, amount_after(text, "Devicelimit:", 300));
    message.numbers[NUMBER_FREE] = amount_after(text, "(accordingtoCUDA):", 400);
    message_fill(&message, NUMBER_ALLOWED, amount_after(text, "memoryfraction):", 500));
    mend_free(&message);
    paste_failure(paste, &message);
}

static void read_rejected(struct paste *paste, const char *start, struct cursor text)
{
    struct message message = message_start(FAMILY_TORCH);
    message.fatal = raised(start, text.at);
    message.hint = HINT_LIMIT;
    message_fill(&message, NUMBER_REQUESTED, amount_after(text, "Requestedsize:", 300));
    paste_failure(paste, &message);
}

/* The warning before that exception has the figures. */
static void read_rejecting(struct paste *paste, const char *start, struct cursor text)
{
    (void)start;
    struct message message = message_start(FAMILY_TORCH);
    message.hint = HINT_LIMIT;
    message_fill(&message, NUMBER_REQUESTED, amount_after(text, "requested", 60));
    message_fill(&message, NUMBER_RESERVED, amount_after(text, "total_allocated_memory(", 160));
    message_fill(&message, NUMBER_ALLOWED, amount_after(text, "exceedmemorylimit(", 240));
    paste_failure(paste, &message);
}

/* "Failed to reserve N (X GiB) of virtual address space for an expandable CUDA segment" */
static void read_addresses(struct paste *paste, const char *start, struct cursor text)
{
    (void)start;
    struct message message = message_start(FAMILY_TORCH);
    if (!cursor_has(text, "ofvirtualaddressspace", 120))
        return;
    message.fatal = true;
    message.hint = HINT_ADDRESS_SPACE;
    message_device(&message, text, "segmentondevice", 200);
    message_fill(&message, NUMBER_REQUESTED, amount_after(text, "Failedtoreserve", 32));
    paste_failure(paste, &message);
}

static void read_no_message(struct paste *paste, const char *start, struct cursor text)
{
    (void)start;
    struct message message = message_start(FAMILY_TORCH);
    if (!cursor_has(text, "CachingAllocator", 300))
        return;
    message.fatal = true;
    message.hint = HINT_NO_MESSAGE;
    paste_failure(paste, &message);
}

static void read_host(struct paste *paste, const char *start, struct cursor text)
{
    (void)start;
    struct message message = message_start(FAMILY_TORCH);
    message.fatal = true;
    message.hint = HINT_HOST;
    message_fill(&message, NUMBER_REQUESTED, amount_after(text, "triedtoallocate", 120));
    if (number_known(&message, NUMBER_REQUESTED))
        paste_failure(paste, &message);
}

const struct sentence torch_sentences[] = {
    {"Triedtoallocate", read_sentence, NULL},
    {"MPSbackendoutofmemory", read_mps, NULL},
    {"CUDAoutofmemory", read_title, NULL},
    {"HIPoutofmemory", read_title, NULL},
    {"memorymappingfailedwithOOM", read_mapping, NULL},
    {"Allocationondevice", read_async, NULL},
    {"Allocationwaspreemptivelyrejected", read_rejected, NULL},
    {"Preemptivelyrejectingallocation", read_rejecting, NULL},
    {"Storagesizecalculationoverflowed", NULL,
     &(const struct told){.family = FAMILY_TORCH, .hint = HINT_BEYOND_ANY, .fatal = true}},
    {"Failedtoreserve", read_addresses, NULL},
    {"NVML_SUCCESS==rINTERNALASSERTFAILED", read_no_message, NULL},
    {"DefaultCPUAllocator:", read_host, NULL},
    {NULL, NULL, NULL},
};
