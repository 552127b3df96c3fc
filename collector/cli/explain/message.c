/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a message: names, titles, setting, comparing. */
#include "message.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *title;
} numbers[NUMBERS] = {
    [NUMBER_REQUESTED] = {"requested_bytes", "asked for"},
    [NUMBER_TOTAL] = {"total_bytes", "the device has"},
    [NUMBER_FREE] = {"free_bytes", "free on the device"},
    [NUMBER_ALLOWED] = {"allowed_bytes", "limit of this process"},
    [NUMBER_ALLOCATED] = {"allocated_bytes", "allocated by the program"},
    [NUMBER_PRIVATE] = {"private_pool_bytes", "free in private pools (CUDA graphs)"},
    [NUMBER_UNALLOCATED] = {"cached_bytes", "reserved, not allocated"},
    [NUMBER_RESERVED] = {"reserved_bytes", "reserved by the framework"},
    [NUMBER_PROCESS] = {"process_bytes", "this process, all of it"},
    [NUMBER_OTHER_LISTED] = {"listed_process_bytes", "processes the message names"},
    [NUMBER_OUTSIDE] = {"outside_bytes", "this process, outside the framework"},
    [NUMBER_OTHER] = {"other_process_bytes", "other processes"},
    [NUMBER_OUTSIDE_ANY] = {"outside_or_other_bytes", "outside the framework, anybody's"},
    [NUMBER_SHORT] = {"short_bytes", "missing (asked for - free)"},
    [NUMBER_LIMIT] = {"limit_bytes", "limit of the pool"},
    [NUMBER_LARGEST_FREE] = {"largest_free_block_bytes", "largest free block"},
    [NUMBER_ACTIVE] = {"active_bytes", "allocated or waiting for a stream"},
    [NUMBER_PENDING] = {"pending_bytes", "freed, waiting for a stream"},
    [NUMBER_NON_RELEASABLE] = {"non_releasable_bytes", "free beside live blocks"},
    [NUMBER_PEAK_ALLOCATED] = {"peak_allocated_bytes", "peak allocated"},
    [NUMBER_PEAK_RESERVED] = {"peak_reserved_bytes", "peak reserved"},
    [NUMBER_PROGRAM] = {"program_bytes", "the compiled program needs"},
    [NUMBER_USED] = {"used_bytes", "used on the device"},
    [NUMBER_LISTED] = {"table_process_bytes", "processes in the table"},
};

const char *number_name(enum number number)
{
    return numbers[number].name;
}

const char *number_title(enum number number)
{
    return numbers[number].title;
}

const char *family_name(enum family family)
{
    static const char *const names[] = {
        [FAMILY_NONE] = "nothing",
        [FAMILY_TORCH] = "PyTorch",
        [FAMILY_TORCH_ASYNC] = "PyTorch with cudaMallocAsync",
        [FAMILY_SUMMARY] = "PyTorch memory summary",
        [FAMILY_SMI] = "nvidia-smi",
        [FAMILY_XLA] = "JAX/XLA",
        [FAMILY_TENSORFLOW] = "TensorFlow",
        [FAMILY_CUPY] = "CuPy",
        [FAMILY_RMM] = "RMM",
        [FAMILY_GGML] = "llama.cpp/ggml",
        [FAMILY_ONEFLOW] = "OneFlow",
        [FAMILY_PADDLE] = "PaddlePaddle",
        [FAMILY_XGBOOST] = "XGBoost",
        [FAMILY_JULIA] = "CUDA.jl",
        [FAMILY_ONNX] = "ONNX Runtime",
        [FAMILY_TENSORRT] = "TensorRT",
        [FAMILY_TRITON] = "Triton Inference Server",
        [FAMILY_FAISS] = "Faiss",
        [FAMILY_VLLM] = "vLLM",
        [FAMILY_SGLANG] = "SGLang",
        [FAMILY_TRANSFORMERS] = "Hugging Face Transformers",
        [FAMILY_DEEPSPEED] = "DeepSpeed",
        [FAMILY_HOST] = "the host",
        [FAMILY_CUDA] = "CUDA",
    };
    return names[family];
}

struct message message_start(enum family family)
{
    return (struct message){.family = family, .device = -1};
}

void message_fill(struct message *message, enum number number, struct amount amount)
{
    if (amount.known && !message->numbers[number].known)
        message->numbers[number] = amount;
    if (number == NUMBER_REQUESTED && amount.bytes >= AMOUNT_ABSURD)
        message->hint = HINT_BEYOND_ANY;
}

void message_what(struct message *message, const char *text, size_t length)
{
    size_t kept = 0;
    for (size_t i = 0; i < length && kept + 1 < sizeof(message->what); i++)
        if (text[i] > ' ' && text[i] < 127)
            message->what[kept++] = text[i];
    message->what[kept] = 0;
}

/* ---- arithmetic on printed figures: the roundings add up --------------------------------- */

static int64_t capped(int64_t bytes)
{
    return bytes < AMOUNT_ABSURD ? bytes : AMOUNT_ABSURD;
}

bool at_least(struct amount a, struct amount b)
{
    return a.known && b.known && a.bytes + a.rounding + b.rounding >= b.bytes;
}

struct amount amount_sum(struct amount a, struct amount b)
{
    if (!a.known || !b.known)
        return (struct amount){0};
    return (struct amount){capped(a.bytes + b.bytes), capped(a.rounding + b.rounding), true};
}

struct amount amount_rest(struct amount a, struct amount b)
{
    struct amount rest = {a.bytes - b.bytes, capped(a.rounding + b.rounding), true};
    if (!a.known || !b.known || rest.bytes + rest.rounding < 0)
        return (struct amount){0};
    rest.bytes = rest.bytes < 0 ? 0 : rest.bytes;
    return rest;
}

bool is_share(struct amount a, struct amount whole, int percent)
{
    return a.known && whole.known && a.bytes / percent >= whole.bytes / 100;
}

/* ---- two messages ------------------------------------------------------------------------ */

static bool agree(struct amount a, struct amount b)
{
    return !a.known || !b.known || llabs(a.bytes - b.bytes) <= a.rounding + b.rounding;
}

bool message_same(const struct message *a, const struct message *b)
{
    if (a->family != b->family || (a->device >= 0 && b->device >= 0 && a->device != b->device))
        return false;
    for (int i = 0; i < NUMBERS; i++)
        if (!agree(a->numbers[i], b->numbers[i]))
            return false;
    return a->numbers[NUMBER_REQUESTED].known == b->numbers[NUMBER_REQUESTED].known;
}
