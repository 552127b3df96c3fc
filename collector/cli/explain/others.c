/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frameworks and servers that say one sentence with a figure or two. PaddlePaddle's "has been
 * allocated" is the device's total less what is free: everybody's memory, not its own.
 */
#include <string.h>

#include "paste.h"

/* "Out of memory error on GPU 0. Cannot allocate 56.000000MB memory on GPU 0, …" */
static void read_paddle(struct paste *paste, const char *start, struct cursor text)
{
    (void)start;
    struct message message = message_start(FAMILY_PADDLE);
    message.fatal = true;
    message_device(&message, text, "onGPU", 40);
    message_fill(&message, NUMBER_REQUESTED, amount_after(text, "annotallocate", 120));
    struct amount used = amount_before(text, "memoryhasbeenallocated", TOLD_REACH);
    struct cursor left = text;
    if (cursor_find(&left, "availablememoryis", TOLD_REACH)) {
        cursor_take(&left, "only");
        message_fill(&message, NUMBER_FREE, cursor_amount(&left));
    }
    message_fill(&message, NUMBER_USED, used);
    message_fill(&message, NUMBER_TOTAL, amount_sum(used, message.numbers[NUMBER_FREE]));
    if (number_known(&message, NUMBER_REQUESTED))
        paste_failure(paste, &message);
}

/* "enforce allocating <= available failed, 10513462067 > 1369702144" */
static void read_enforce(struct paste *paste, const char *start, struct cursor text)
{
    (void)start;
    struct message message = message_start(FAMILY_PADDLE);
    message.fatal = true;
    if (!cursor_find(&text, "failed,", 48))
        return;
    message_fill(&message, NUMBER_REQUESTED, cursor_amount(&text));
    if (cursor_take(&text, ">"))
        message_fill(&message, NUMBER_FREE, cursor_amount(&text));
    if (number_known(&message, NUMBER_FREE))
        paste_failure(paste, &message);
}

/* "Memory allocation error on worker 0: … - Free memory: 53.1098GB - Requested memory: 64GB" */
static void read_xgboost(struct paste *paste, const char *start, struct cursor text)
{
    (void)start;
    struct message message = message_start(FAMILY_XGBOOST);
    message.fatal = true;
    message_fill(&message, NUMBER_REQUESTED, amount_after(text, "Requestedmemory:", TOLD_REACH));
    message_fill(&message, NUMBER_FREE, amount_after(text, "Freememory:", TOLD_REACH));
    paste_failure(paste, &message);
}

/*
 * "Out of GPU memory trying to allocate 2.000 GiB
 *  Effective GPU memory usage: 99.71% (5.782 GiB/5.799 GiB)
 *  Memory pool usage: 2.852 GiB (5.656 GiB reserved)"
 */
static void read_julia(struct paste *paste, const char *start, struct cursor text)
{
    (void)start;
    struct message message = message_start(FAMILY_JULIA);
    struct cursor usage = text, pool = text;
    message.fatal = true;
    message_fill(&message, NUMBER_REQUESTED, amount_after(text, "toallocate", 48));
    if (cursor_find(&usage, "memoryusage:", TOLD_REACH) && cursor_find(&usage, "(", 24)) {
        message_fill(&message, NUMBER_USED, cursor_amount(&usage));
        if (cursor_take(&usage, "/"))
            message_fill(&message, NUMBER_TOTAL, cursor_amount(&usage));
        message_fill(&message, NUMBER_FREE,
                     amount_rest(message.numbers[NUMBER_TOTAL], message.numbers[NUMBER_USED]));
    }
    if (cursor_find(&pool, "Memorypoolusage:", TOLD_REACH)) {
        message_fill(&message, NUMBER_ALLOCATED, cursor_amount(&pool));
        message_fill(&message, NUMBER_RESERVED, amount_before(pool, "reserved)", 48));
        message_fill(
            &message, NUMBER_UNALLOCATED,
            amount_rest(message.numbers[NUMBER_RESERVED], message.numbers[NUMBER_ALLOCATED]));
    }
    message_fill(&message, NUMBER_LIMIT, amount_after(text, "cappedat", TOLD_REACH));
    if (number_known(&message, NUMBER_REQUESTED))
        paste_failure(paste, &message);
}

/* ---- rows ------------------------------------------------------------------------------- */

static const struct explanation arena = {
    .why =
        "ONNX Runtime's arena has a limit of its own (gpu_mem_limit), and what was left of it is "
        "less than that",
    .next = "Raise gpu_mem_limit, or set arena_extend_strategy to kSameAsRequested: the arena else "
            "doubles itself.",
};

static const struct explanation tactic = {
    .why = "TensorRT could not try a tactic with that much workspace and skips it: a warning while "
           "the "
           "engine is built, unless no tactic is left",
    .next = "Limit the workspace (IBuilderConfig::setMemoryPoolLimit, trtexec --memPoolSize) below "
            "what "
            "nvidia-smi shows as free.",
};

static const struct explanation triton_pinned = {
    .why =
        "Triton's pool of pinned host memory is used up; it goes on with ordinary memory, slower",
    .next = "Raise --pinned-memory-pool-byte-size (256 MiB unless set).",
};

static const struct explanation triton_pool = {
    .why = "Triton's own pool of GPU memory is used up, not the device; it falls back to pinned "
           "memory",
    .next = "Raise --cuda-memory-pool-byte-size=GPU:BYTES (64 MiB for each GPU unless set).",
};

static const struct explanation vulkan_block = {
    .why =
        "the buffer is larger than the device takes in one piece (Vulkan's maxMemoryAllocationSize "
        "or maxBufferSize), however much is free",
    .next = "A smaller context (-c) or batch (-ub) makes the buffer smaller.",
};

static const struct explanation one_block = {
    .why = "the device takes no block of more than 4 GiB, however much is free",
    .next = "UR_L0_USE_RELAXED_ALLOCATION_LIMITS=1 lifts that where the driver can.",
};

#define TENSORRT .family = FAMILY_TENSORRT, .what = "TensorRT's allocator"

const struct sentence others_sentences[] = {
    {"OutofmemoryerroronGPU", read_paddle, NULL},
    {"enforceallocating<=available", read_enforce, NULL},
    {"Memoryallocationerroronworker", read_xgboost, NULL},
    {"OutofGPUmemorytryingtoallocate", read_julia, NULL},
    {"Failedtoallocatememoryforrequestedbufferofsize", NULL,
     &(const struct told){.family = FAMILY_ONNX, .request = "ofsize", .fatal = true}},
    {"Availablememoryof", NULL,
     &(const struct told){.family = FAMILY_ONNX,
                          .hint = HINT_LIMIT,
                          .says = &arena,
                          .with = "issmallerthanrequestedbytes",
                          .request = "bytesof",
                          .fatal = true}},
    {"RequestedamountofGPUmemory(", NULL,
     &(const struct told){TENSORRT, .says = &tactic, .request = "memory("}},
    {"Requestedamountofmemory(", NULL,
     &(const struct told){TENSORRT, .says = &tactic, .with = "couldnotbeallocated",
                          .request = "memory("}},
    {"OutOfMemory(Requestedsizewas", NULL, &(const struct told){TENSORRT, .request = "sizewas"}},
    {"outofMemory(Requestedsizewas", NULL, &(const struct told){TENSORRT, .request = "sizewas"}},
    {"OutOfMemory(nofurtherinformation)", NULL, &(const struct told){TENSORRT, .last = true}},
    {"CudaErrorin", NULL,
     &(const struct told){TENSORRT, .with = "allocate:2(outofmemory)", .last = true}},
    {"CUDAruntimeerrorin", NULL,
     &(const struct told){TENSORRT, .with = "outofmemory", .last = true}},
    {"pinnedmemorypoolexceeded", NULL,
     &(const struct told){.family = FAMILY_TRITON, .hint = HINT_LIMIT, .says = &triton_pinned}},
    {"CNMEM_STATUS_OUT_OF_MEMORY", NULL,
     &(const struct told){.family = FAMILY_TRITON, .hint = HINT_LIMIT, .says = &triton_pool}},
    {"StandardGpuResources:", NULL,
     &(const struct told){.family = FAMILY_FAISS,
                          .with = "outofmemory",
                          .request = "size",
                          .device = "dev",
                          .fatal = true}},
    {"failedtocudaMalloc", NULL,
     &(const struct told){.family = FAMILY_FAISS, .with = "outofmemory", .request = "cudaMalloc"}},
    {"FailedtocudaMalloc", NULL,
     &(const struct told){.family = FAMILY_FAISS,
                          .with = "outofmemory",
                          .request = "cudaMalloc",
                          .device = "ondevice"}},
    {"Devicememoryallocationofsize", NULL,
     &(const struct told){.family = FAMILY_GGML,
                          .with = "failed",
                          .request = "ofsize",
                          .fatal = true,
                          .no_cuda = true}},
    {"Requestedbuffersizeexceedsdevicebuffersizelimit", NULL,
     &(const struct told){.family = FAMILY_GGML,
                          .hint = HINT_LIMIT,
                          .says = &vulkan_block,
                          .request = "bufferofsize",
                          .fatal = true,
                          .no_cuda = true}},
    {"CurrentplatformcanNOTallocatememoryblock", NULL,
     &(const struct told){.family = FAMILY_TORCH,
                          .hint = HINT_LIMIT,
                          .says = &one_block,
                          .request = "Triedtoallocate",
                          .fatal = true,
                          .no_cuda = true}},
    {NULL, NULL, NULL},
};
