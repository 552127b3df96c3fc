/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers and trainers about their own plans: vLLM, SGLang and others divide the device
 * before anything is refused, and stop where their sums do not come out. No allocation has
 * failed then.
 */
#include <string.h>

#include "paste.h"

/*
 * "Free memory on device cuda:0 (19.77/22.05 GiB) on startup is less than desired GPU memory
 * utilization (0.9, 19.84 GiB)". With "Desired" behind it, it is a report of a start that went
 * well.
 */
static void read_startup(struct paste *paste, const char *start, struct cursor text)
{
    (void)start;
    struct message message = message_start(FAMILY_VLLM);
    struct cursor desired = text;
    if (!cursor_find(&desired, "onstartupislessthandesired", 120) || !cursor_find(&text, "(", 60) ||
        !cursor_find(&desired, ",", 60))
        return;
    message_device(&message, cursor_of(text.at - 8, 8), "cuda:", 8);
    message_fill(&message, NUMBER_FREE, cursor_amount_in(&text, "GiB"));
    if (cursor_take(&text, "/"))
        message_fill(&message, NUMBER_TOTAL, cursor_amount(&text));
    message_fill(&message, NUMBER_REQUESTED, cursor_amount(&desired));
    message.fatal = true;
    if (number_known(&message, NUMBER_FREE) && number_known(&message, NUMBER_TOTAL))
        paste_failure(paste, &message);
}

/* "Available KV cache memory: -2.77 GiB": below zero it is what is missing. */
static void read_short(struct paste *paste, const char *start, struct cursor text)
{
    (void)start;
    paste->cache_short = amount_after(text, "-", TOLD_REACH);
}

static void take_count(struct cursor text, const char *word, uint64_t *count)
{
    if (cursor_find(&text, word, TOLD_REACH))
        cursor_count(&text, count);
}

/* "… max seq len (262144), (24.0 GiB KV cache is needed, which is larger than …" */
static void read_cache(struct paste *paste, const char *start, struct cursor text)
{
    (void)start;
    struct message message = message_start(FAMILY_VLLM);
    message.fatal = true;
    take_count(text, "maxseqlen(", &message.tokens);
    take_count(text, "estimatedmaximummodellengthis", &message.fitting_tokens);
    message_fill(&message, NUMBER_REQUESTED, amount_before(text, "KVcacheisneeded", TOLD_REACH));
    message_fill(&message, NUMBER_LIMIT, amount_after(text, "availableKVcachememory(", TOLD_REACH));
    if (number_known(&message, NUMBER_REQUESTED))
        paste_failure(paste, &message);
}

/* "The model's max seq len (32768) is larger than the maximum number of tokens that can …" */
static void read_tokens(struct paste *paste, const char *start, struct cursor text)
{
    (void)start;
    struct message message = message_start(FAMILY_VLLM);
    message.fatal = true;
    take_count(text, "seqlen(", &message.tokens);
    take_count(text, "storedinKVcache(", &message.fitting_tokens);
    if (message.tokens != 0 && message.fitting_tokens != 0)
        paste_failure(paste, &message);
}

static const struct explanation no_blocks = {
    .why = "nothing is left for vLLM's KV cache: weights, activations and what others hold use up "
           "gpu_memory_utilization x the device",
    .cannot_tell = "Which of them is the large one: the lines about model loading and memory "
                   "profiling above the error say it.",
    .next =
        "If the device is free otherwise, raise --gpu-memory-utilization; else a smaller or "
        "quantized model, --tensor-parallel-size, or fewer --max-num-seqs and images per prompt.",
};

static const struct explanation warm_up = {
    .why = "the largest batch that vLLM tries at its start did not fit beside weights and KV cache",
    .next = "Lower --max-num-seqs, or lower --gpu-memory-utilization so that more stays free.",
};

static const struct explanation no_fraction = {
    .why =
        "nothing is left for SGLang's KV cache: the weights alone use up the share of the device "
        "that --mem-fraction-static gives to both",
    .next =
        "Raise --mem-fraction-static, or use more GPUs (--tp) or a quantized model; activations "
        "and CUDA graphs live in the rest.",
};

static const struct explanation workspace = {
    .why =
        "FlashInfer's workspace, a buffer of fixed size made at the start, is too small for this "
        "batch: no memory of the device was asked for",
    .next =
        "Give it more (SGLang: SGLANG_FLASHINFER_WORKSPACE_SIZE), or lower the running requests.",
};

static const struct explanation prefill = {
    .why = "the largest prefill that the server tries at its start did not fit beside the weights",
    .next = "Lower --max-batch-prefill-tokens, or leave it out so that the server finds it itself.",
};

static const struct explanation no_sequence = {
    .why = "TensorRT-LLM's KV cache holds less than one sequence of the length that the engine "
           "allows: "
           "a sum, no memory was refused",
    .next =
        "Raise kv_cache_free_gpu_mem_fraction or max_tokens_in_paged_kv_cache, or build the engine "
        "for shorter sequences.",
};

static const struct explanation device_map = {
    .why =
        "Hugging Face's device map found no room on the GPU for all of the quantized model and put "
        "part of it on the CPU, which it then refuses: an estimate, no memory was refused",
    .cannot_tell =
        "What was free: it counts with most of what was free when the model was loaded, so "
        "what another process or an earlier load holds is missing.",
    .next = "Free the GPU first (nvidia-smi), or pass device_map={\"\": 0} to try it anyway.",
};

static const struct explanation flushes = {
    .why = "no request had failed, but PyTorch had to give its cache back to the device within a "
           "step, "
           "which stops all streams: memory is nearly full, or in pieces",
    .cannot_tell = "Which request did it, and whether the cache was in pieces: a trace has both.",
    .next =
        "Smaller micro batches or buckets; get_accelerator().empty_cache() at the same step of all "
        "ranks costs less than flushes at different ones.",
};

const struct sentence serving_sentences[] = {
    {"Freememoryondevice", read_startup, NULL},
    {"AvailableKVcachememory:-", read_short, NULL},
    {"Toserveatleastonerequest", read_cache, NULL},
    {"maxseqlen(", read_tokens, NULL},
    {"Noavailablememoryforthecacheblocks", NULL,
     &(const struct told){
         .family = FAMILY_VLLM, .hint = HINT_LIMIT, .says = &no_blocks, .fatal = true}},
    {"outofmemoryoccurredwhenwarmingup", NULL,
     &(const struct told){.family = FAMILY_VLLM, .says = &warm_up, .fatal = true}},
    {"Notenoughmemory.Pleasetrytoincrease--mem-fraction-static", NULL,
     &(const struct told){
         .family = FAMILY_SGLANG, .hint = HINT_LIMIT, .says = &no_fraction, .fatal = true}},
    {"Failedtoallocatememoryfor", NULL,
     &(const struct told){.family = FAMILY_SGLANG,
                          .hint = HINT_LIMIT,
                          .says = &workspace,
                          .with = "inAlignedAllocator",
                          .request = "withsize",
                          .fatal = true}},
    {"maxTokensInPagedKvCachemustbelargeenough", NULL,
     &(const struct told){
         .family = FAMILY_TENSORRT, .hint = HINT_LIMIT, .says = &no_sequence, .fatal = true}},
    {"SomemodulesaredispatchedontheCPUorthedisk", NULL,
     &(const struct told){.family = FAMILY_TRANSFORMERS, .says = &device_map, .fatal = true}},
    {"pytorchallocatorcacheflushessincelaststep", NULL,
     &(const struct told){.family = FAMILY_DEEPSPEED, .says = &flushes, .last = true}},
    {"Notenoughmemorytohandle", NULL,
     &(const struct told){.family = FAMILY_CUDA, .says = &prefill, .with = "prefilltokens"}},
    {NULL, NULL, NULL},
};
