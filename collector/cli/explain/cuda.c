/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors that say "out of memory" and no figure: the runtime's and the driver's names,
 * and libraries that allocate beside a framework. Told only where nobody else told more.
 */
#include "paste.h"

#include <string.h>

static void report(struct paste *paste, const char *what)
{
    /* A framework's own message is about the same failure. */
    if (paste_knows(paste))
        return;
    struct message message = message_start(FAMILY_CUDA);
    message.weak = true;
    message_what(&message, what, strlen(what));
    if (cursor_has(cursor_of(what, strlen(what)), "Host", 24))
        message.hint = HINT_HOST; /* cudaHostAlloc, cudaMallocHost, cuMemHostRegister */
    paste_failure(paste, &message);
}

static void read_runtime(struct paste *paste, const char *start, struct cursor text)
{
    (void)start;
    if (!cursor_has(text, "urrentdevice:", 300))
        report(paste, "cudaErrorMemoryAllocation");
}

static void read_driver(struct paste *paste, const char *start, struct cursor text)
{
    if (!text_before(start, text.at, "fromdevice:", 36) &&
        !text_before(start, text.at, "allocatedevicememoryof", 100) &&
        !text_before(start, text.at, "unifiedmemory;result:", 24) &&
        !text_before(start, text.at, "onhost:", 16))
        report(paste, "CUDA_ERROR_OUT_OF_MEMORY");
}

static void read_name(struct paste *paste, const char *start, struct cursor text)
{
    if (!text_before(start, text.at, "CUDAerrorat:", 300))
        report(paste, "cudaErrorMemoryAllocation");
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
    report(paste, call);
}

/* ---- libraries beside a framework ------------------------------------------------------- */

static const struct explanation metal = {
    .why = "a command buffer of the GPU failed for want of memory, which this device shares with "
           "the host",
};

static const struct explanation perhaps = {
    .why = "cuBLAS could not be initialised; most often no memory was left for its handle, but the "
           "message does not say so",
    .cannot_tell =
        "Whether memory was short at all: a wrong device, a driver that does not fit or an "
        "earlier error of the GPU give the same message.",
    .next =
        "Run it once with CUDA_LAUNCH_BLOCKING=1, and with a smaller batch: if that helps, it was "
        "memory.",
};

static const struct explanation pinned = {
    .why =
        "memory of the host was to be pinned (pin_memory), and CUDA refused: the GPU's own memory "
        "is not what was asked for",
    .cannot_tell =
        "Whether it was the context that pinning needs on the GPU: look at nvidia-smi too.",
    .next = "Look at free -m, ulimit -l and the container's memory limit; try pin_memory=False. "
            "PyTorch rounds pinned sizes up to a power of two.",
};

static const struct explanation nccl = {
    .why =
        "NCCL's own buffers were refused by the device: it allocates beside the framework, whose "
        "cache may hold what was missing",
    .cannot_tell = "How much of the device the framework had cached just then.",
    .next = "torch.cuda.empty_cache() before the first collective, or a first collective before "
            "memory is full; fewer channels (NCCL_MAX_NCHANNELS) need less.",
};

static const struct explanation beside = {
    .cannot_tell = "Whether the framework's cache held what the library needed: libraries allocate "
                   "their handles and workspaces beside it.",
};

/* A name that a library says; a call or program by other words; NCCL. */
#define LIBRARY(name)                                                          \
    {                                                                          \
        name, NULL, &(const struct told)                                       \
        {                                                                      \
            .family = FAMILY_CUDA, .what = name, .says = &beside, .last = true \
        }                                                                      \
    }
#define CALLED(trigger, name)                                 \
    {                                                         \
        trigger, NULL, &(const struct told)                   \
        {                                                     \
            .family = FAMILY_CUDA, .what = name, .last = true \
        }                                                     \
    }
#define NCCL(trigger, behind)                                                                     \
    {                                                                                             \
        trigger, NULL, &(const struct told)                                                       \
        {                                                                                         \
            .family = FAMILY_CUDA, .what = "NCCL", .says = &nccl, .request = behind, .last = true \
        }                                                                                         \
    }

const struct sentence cuda_sentences[] = {
    {"CUDAerror:outofmemory", NULL,
     &(const struct told){.family = FAMILY_CUDA,
                          .hint = HINT_HOST,
                          .says = &pinned,
                          .before = "pin_memory",
                          .last = true}},
    {"CUDAerror:outofmemory", read_runtime, NULL},
    {"CUDAdrivererror:outofmemory", read_driver, NULL},
    {"cudaruntimeerror(2):outofmemory", read_runtime, NULL},
    {"CUDA_ERROR_OUT_OF_MEMORY", read_driver, NULL},
    {"cudaErrorMemoryAllocation", read_name, NULL},
    {"failed:outofmemory", read_call, NULL},
    {"retryfailed:outofmemory", read_call, NULL},
    LIBRARY("CUBLAS_STATUS_ALLOC_FAILED"),
    LIBRARY("CUDNN_STATUS_ALLOC_FAILED"),
    LIBRARY("CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"),
    LIBRARY("CUFFT_ALLOC_FAILED"),
    LIBRARY("CUSOLVER_STATUS_ALLOC_FAILED"),
    LIBRARY("CUSPARSE_STATUS_ALLOC_FAILED"),
    LIBRARY("CUSPARSE_STATUS_INSUFFICIENT_RESOURCES"),
    LIBRARY("CURAND_STATUS_ALLOCATION_FAILED"),
    LIBRARY("hipErrorOutOfMemory"),
    CALLED("HIPerror:outofmemory", "hipErrorOutOfMemory"),
    CALLED("CUDAerror2:outofmemory", "a call of CUDA"),
    CALLED("CUDAError:outofmemory", "a call of CUDA"),
    CALLED("CUDAfailedwitherroroutofmemory", "a call of CUDA"),
    CALLED("CUDAfailure2:outofmemory", "a call of CUDA"),
    CALLED("CUDAruntimeerror:outofmemory", "a call of CUDA"),
    CALLED("CudaRuntime(outofmemory)", "a call of CUDA"),
    CALLED("cudaSuccess(2vs.0)outofmemory", "a call of CUDA"),
    CALLED("unabletocreatestream:outofmemory", "a stream"),
    CALLED("OutofmemoryinCUDAqueue", "a call of CUDA"),
    CALLED("OutofmemoryincuMem", "cuMemAlloc"),
    CALLED("SystemisoutofGPUmemory", "Blender"),
    NCCL("FailedtoCUDAcalloc", "calloc"),
    NCCL("FailedtoCUDAcallocasync", "async"),
    NCCL("FailedtoCUDAmalloc", "malloc"),
    NCCL("FailedtoCUDAmallocasync", "async"),
    NCCL("Cudafailure'outofmemory'", NULL),
    NCCL("Cudafailure2'outofmemory'", NULL),
    {"CUBLAS_STATUS_NOT_INITIALIZED", NULL,
     &(const struct told){.family = FAMILY_CUDA, .says = &perhaps, .last = true}},
    {"kIOGPUCommandBufferCallbackErrorOutOfMemory", NULL,
     &(const struct told){.family = FAMILY_CUDA, .says = &metal, .last = true, .no_cuda = true}},
    {NULL, NULL, NULL},
};
