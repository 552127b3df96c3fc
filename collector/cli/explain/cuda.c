/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors that say "out of memory" and no figure: the runtime's and the driver's names,
 * and libraries that allocate beside a framework. Told only where nobody else told more.
 */
#include "paste.h"

#include <string.h>

static void report(struct paste *paste, struct cursor text, const char *what)
{
    /* A framework's own message is about the same failure. */
    if (paste->first_fatal.family != FAMILY_NONE || paste->last.family != FAMILY_NONE)
        return;
    struct message message = message_start(FAMILY_CUDA);
    message.refused = true;
    message_what(&message, what, strlen(what));
    message_fill(&message, NUMBER_REQUESTED, amount_after(text, "calloc", 24));
    paste_failure(paste, &message);
}

static void read_runtime(struct paste *paste, const char *start, struct cursor text)
{
    (void)start;
    if (!cursor_has(text, "urrentdevice:", 300))
        report(paste, text, "cudaErrorMemoryAllocation");
}

static void read_driver(struct paste *paste, const char *start, struct cursor text)
{
    if (!text_before(start, text.at, "fromdevice:", 16) &&
        !text_before(start, text.at, "onhost:", 16))
        report(paste, text, "CUDA_ERROR_OUT_OF_MEMORY");
}

static void read_name(struct paste *paste, const char *start, struct cursor text)
{
    if (!text_before(start, text.at, "CUDAerrorat:", 300))
        report(paste, text, "cudaErrorMemoryAllocation");
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Whether a name of a call of the driver or the runtime begins here: "cuMem…", "cudaM…". */
static bool begins_call(const char *at, const char *end)
{
    size_t prefix = end - at > 4 && strncmp(at, "cuda", 4) == 0 ? 4 : 2;
    return end - at > 2 && at[0] == 'c' && at[1] == 'u' && at[prefix] >= 'A' && at[prefix] <= 'Z';
}

/* "cuMemAlloc failed: out of memory": PyCUDA's words, and many a program's own. */
static void read_call(struct paste *paste, const char *start, struct cursor text)
{
    char call[48];
    const char *name = text.at;
    while (name > start && is_letter(name[-1]) && !begins_call(name, text.at))
        name--;
    size_t length = (size_t)(text.at - name);
    if (!begins_call(name, text.at) || length >= sizeof(call))
        return;
    memcpy(call, name, length);
    call[length] = '\0';
    report(paste, text, call);
}

static void read_cublas(struct paste *paste, const char *start, struct cursor text)
{
    (void)start;
    report(paste, text, "CUBLAS_STATUS_ALLOC_FAILED");
}

static void read_cudnn(struct paste *paste, const char *start, struct cursor text)
{
    (void)start;
    report(paste, text, "CUDNN_STATUS_ALLOC_FAILED");
}

static void read_nccl(struct paste *paste, const char *start, struct cursor text)
{
    (void)start;
    report(paste, text, "NCCL");
}

const struct sentence cuda_sentences[] = {
    {"CUDAerror:outofmemory", read_runtime},
    {"CUDAdrivererror:outofmemory", read_driver},
    {"cudaruntimeerror(2):outofmemory", read_runtime},
    {"CUDA_ERROR_OUT_OF_MEMORY", read_driver},
    {"cudaErrorMemoryAllocation", read_name},
    {"failed:outofmemory", read_call},
    {"CUBLAS_STATUS_ALLOC_FAILED", read_cublas},
    {"CUDNN_STATUS_ALLOC_FAILED", read_cudnn},
    {"FailedtoCUDAcalloc", read_nccl},
    {NULL, NULL},
};
