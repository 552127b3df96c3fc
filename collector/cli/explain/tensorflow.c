/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TensorFlow's sentences and the dump of its BFC allocator (XLA's is the same one). The
 * pool's limit is what the allocator may take, not the device; "next N" ends a region.
 */
#include "paste.h"

#include <string.h>

static void name_allocator(struct message *message, const char *start, const char *at)
{
    const char *open = NULL;
    for (const char *c = at; c > start && at - c < 80 && open == NULL; c--)
        if (c[-1] == '(')
            open = c;
    const char *close = open == NULL ? NULL : memchr(open, ')', (size_t)(at - open));
    if (close != NULL)
        message_what(message, open, (size_t)(close - open));
}

static void judge_allocator(struct message *message)
{
    uint64_t device;
    struct cursor name = cursor_of(message->what, strlen(message->what));
    if (cursor_has(name, "host", sizeof(message->what)))
        message->hint = HINT_HOST;
    if (cursor_take(&name, "GPU_") && cursor_count(&name, &device) && device < 1024)
        message->device = (int)device;
}

/* "Allocator (GPU_0_bfc) ran out of memory trying to allocate 3.72GiB (rounded to …)" */
static void read_allocator(struct paste *paste, const char *start, struct cursor text)
{
    struct message message = message_start(FAMILY_TENSORFLOW);
    struct cursor rounded = text;
    name_allocator(&message, start, text.at);
    judge_allocator(&message);
    message.fatal = !cursor_has(text, "thisisnotafailure", 200);
    if (cursor_find(&rounded, "(roundedto", 80))
        message_fill(&message, NUMBER_REQUESTED, cursor_amount(&rounded));
    message_fill(&message, NUMBER_REQUESTED, amount_after(text, "tryingtoallocate", 40));
    if (number_known(&message, NUMBER_REQUESTED))
        paste_failure(paste, &message);
}

static unsigned type_bytes(struct cursor text)
{
    static const struct {
        const char *name;
        unsigned bytes;
    } types[] = {{"double", 8}, {"int64", 8},  {"uint64", 8}, {"complex64", 8}, {"complex128", 16},
                 {"float", 4},  {"int32", 4},  {"uint32", 4}, {"half", 2},      {"bfloat16", 2},
                 {"int16", 2},  {"uint16", 2}, {"int8", 1},   {"uint8", 1},     {"bool", 1}};
    if (!cursor_find(&text, "andtype", 400))
        return 0;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (cursor_take(&text, types[i].name))
            return types[i].bytes;
    return 0;
}

/* "shape[32,128,56,56] and type float": the bytes of it; unknown if it is too large to be. */
static struct amount tensor_bytes(struct cursor text)
{
    uint64_t bytes = type_bytes(text), extent;
    if (bytes == 0 || !cursor_find(&text, "shape[", 40))
        return (struct amount){0};
    while (text.at < text.end && *text.at != ']') {
        /* Commas part the extents here, they do not group digits. */
        const char *stop = text.at;
        while (stop < text.end && *stop != ',' && *stop != ']')
            stop++;
        struct cursor one = {text.at, stop};
        if (!cursor_count(&one, &extent) || extent > (uint64_t)AMOUNT_ABSURD ||
            (extent != 0 && bytes > (uint64_t)AMOUNT_ABSURD / extent))
            return (struct amount){0};
        bytes *= extent;
        text.at = stop < text.end && *stop == ',' ? stop + 1 : stop;
    }
    return (struct amount){(int64_t)bytes, 0, true};
}

/* "OOM when allocating tensor with shape[…] and type float on …GPU:0 by allocator GPU_0_bfc" */
static void read_tensor(struct paste *paste, const char *start, struct cursor text)
{
    (void)start;
    struct message message = message_start(FAMILY_TENSORFLOW);
    struct cursor name = text;
    message.fatal = true;
    if (cursor_find(&name, "byallocator", 600)) {
        size_t length = 0;
        while (name.at + length < name.end && length < 32 && name.at[length] != '[' &&
               name.at[length] != '\'' && name.at[length] != '"')
            length++;
        message_what(&message, name.at, length);
        judge_allocator(&message);
    }
    message_fill(&message, NUMBER_REQUESTED, tensor_bytes(text));
    paste_failure(paste, &message);
}

static void refused(struct paste *paste, const char *start, const char *at, struct amount asked)
{
    struct bfc *bfc = &paste->bfc;
    bfc->refused = true;
    bfc->xla |= text_before(start, at, "external/org_tensorflow/", 160);
    if (!bfc->asked.known)
        bfc->asked = asked;
}

#define DEVICE_MEMORY "Failedtoallocatedevicememoryof"

/*
 * "failed to allocate 1.00G (1073741824 bytes) from device": the pool wanted to grow; "Failed to
 * allocate device memory of 4.00GiB (4294967296 bytes): RESOURCE_EXHAUSTED" where there is none.
 */
static void read_refused(struct paste *paste, const char *start, struct cursor text)
{
    bool xla = cursor_has(text, "fromdevice:RESOURCE_EXHAUSTED", 120) ||
               cursor_has(text, DEVICE_MEMORY, strlen(DEVICE_MEMORY));
    paste->bfc.xla |= xla;
    if (xla || cursor_has(text, "fromdevice:CUDA_ERROR", 120))
        refused(paste, start, text.at, amount_after(text, "(", 60));
}

/* "cuMemAllocAsync failed to allocate N bytes: … Free memory/Total memory: F/T" */
static void read_async(struct paste *paste, const char *start, struct cursor text)
{
    (void)start;
    struct message message = message_start(FAMILY_XLA);
    message_fill(&message, NUMBER_REQUESTED, amount_after(text, "toallocate", 60));
    if (cursor_find(&text, "Freememory/Totalmemory:", 300)) {
        message_fill(&message, NUMBER_FREE, cursor_amount(&text));
        if (cursor_take(&text, "/"))
            message_fill(&message, NUMBER_TOTAL, cursor_amount(&text));
    }
    if (number_known(&message, NUMBER_REQUESTED))
        paste_failure(paste, &message);
}

static const struct explanation dnn = {
    .why =
        "cuDNN could not be initialised, most often because no memory was left for it beside the "
        "framework's own pool, which takes most of the device at its start",
    .cannot_tell =
        "Whether memory was short at all: a cuDNN or driver that does not fit gives the same "
        "message.",
    .next = "Leave room: TF_FORCE_GPU_ALLOW_GROWTH=true for TensorFlow, "
            "XLA_PYTHON_CLIENT_MEM_FRACTION=.7 for JAX. If it still fails, it is not memory.",
};

/* "Could not create cudnn handle: …", behind it "Memory usage: 5832704 bytes free, N bytes total."
 */
static void read_handle(struct paste *paste, const char *start, struct cursor text)
{
    (void)start;
    struct message message = message_start(FAMILY_TENSORFLOW);
    message.says = &dnn;
    if (cursor_find(&text, "Memoryusage:", 300)) {
        message_fill(&message, NUMBER_FREE, cursor_amount(&text));
        message_fill(&message, NUMBER_TOTAL, amount_after(text, "free,", 8));
    }
    paste_failure(paste, &message);
}

/* "ResourceExhaustedError: … failed to allocate memory [Op:AddV2]": no figure at all. */
static void read_bare(struct paste *paste, const char *start, struct cursor text)
{
    struct message message = message_start(FAMILY_TENSORFLOW);
    if (!text_before(start, text.at, "ResourceExhausted", 400))
        return;
    message.fatal = true;
    paste_failure(paste, &message);
}

/* "failed to alloc N bytes on host", "failed to alloc N bytes unified memory" */
static void read_host(struct paste *paste, const char *start, struct cursor text)
{
    if (cursor_has(text, "bytesunifiedmemory", 60))
        refused(paste, start, text.at, amount_after(text, "toalloc", 40));
    struct message message = message_start(FAMILY_TENSORFLOW);
    if (!cursor_has(text, "bytesonhost", 60))
        return;
    message.hint = HINT_HOST;
    message_fill(&message, NUMBER_REQUESTED, amount_after(text, "toalloc", 40));
    paste_failure(paste, &message);
}

const struct sentence tensorflow_sentences[] = {
    {"ranoutofmemorytryingtoallocate", read_allocator, NULL},
    {"OOMwhenallocatingtensorwithshape", read_tensor, NULL},
    {"failedtoallocatememory", read_bare, NULL},
    {"cuMemAllocAsyncfailedtoallocate", read_async, NULL},
    {"ouldnotcreatecudnnhandle", read_handle, NULL},
    {"DNNlibraryinitializationfailed", NULL,
     &(const struct told){.family = FAMILY_XLA, .says = &dnn, .last = true}},
    {"CUDNN_STATUS_NOT_INITIALIZED", NULL,
     &(const struct told){.family = FAMILY_CUDA, .says = &dnn, .last = true}},
    {"failedtoallocate", read_refused, NULL},
    {DEVICE_MEMORY, read_refused, NULL},
    {"failedtoalloc", read_host, NULL},
    {NULL, NULL, NULL},
};

/* ---- the dump --------------------------------------------------------------------------- */

static void keep_figure(struct amount *figure, struct cursor line, const char *word)
{
    struct amount value = amount_after(line, word, PASTE_LINE);
    if (value.known)
        *figure = value;
}

/* A limit of 0 is none: the driver's own pool. */
static void keep_limit(struct amount *figure, struct cursor line, const char *word)
{
    struct amount value = amount_after(line, word, PASTE_LINE);
    if (value.known && value.bytes > 0)
        *figure = value;
}

static void free_chunk(struct bfc *bfc, struct cursor line)
{
    if (!cursor_find(&line, "Free", PASTE_LINE) || !cursor_has(line, " at ", 8))
        return;
    struct amount size = amount_after(line, "of size", 80);
    if (!size.known)
        return;
    if (bfc->stopped)
        *bfc = (struct bfc){.refused = bfc->refused, .asked = bfc->asked};
    bfc->seen = true;
    if (!bfc->largest_free.known || size.bytes > bfc->largest_free.bytes)
        bfc->largest_free = size;
    if (bfc->free_sum.bytes < AMOUNT_ABSURD)
        bfc->free_sum = (struct amount){bfc->free_sum.bytes + size.bytes, 0, true};
}

void bfc_line(struct paste *paste, struct cursor line)
{
    struct bfc *bfc = &paste->bfc;
    free_chunk(bfc, line);
    keep_figure(&bfc->region, line, "total_region_allocated_bytes_:");
    keep_limit(&bfc->limit, line, "memory_limit_:");
    /* The statistics stand on lines of their own. */
    cursor_blank(&line);
    if (cursor_has(line, "MaxInUse:", 64))
        keep_figure(&bfc->peak, line, "MaxInUse:");
    else if (cursor_has(line, "InUse:", 64))
        keep_figure(&bfc->in_use, line, "InUse:");
    else if (cursor_has(line, "Limit:", 64))
        keep_limit(&bfc->limit, line, "Limit:");
    bfc->seen |= bfc->limit.known || bfc->in_use.known;
    bfc->stopped |= cursor_has(line, "MaxAllocSize:", 64);
}
