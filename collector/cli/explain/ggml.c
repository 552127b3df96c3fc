/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llama.cpp and what else is built on ggml (ollama, whisper.cpp): the buffer that failed,
 * the buffers made before it and the free memory told at the start.
 */
#include "paste.h"

#include <string.h>

static void fail(struct paste *paste, struct message *message)
{
    message->fatal = true;
    paste_failure(paste, message);
}

/* "allocating 144817.04 MiB on device 0: cudaMalloc failed: out of memory" */
static void read_malloc(struct paste *paste, const char *start, struct cursor text)
{
    struct message message = message_start(FAMILY_GGML);
    (void)start;
    if (!cursor_has(text, "ondevice", 40) || !cursor_has(text, "failed:outofmemory", 80))
        return;
    message_device(&message, text, "ondevice", 40);
    message_fill(&message, NUMBER_REQUESTED, amount_after(text, "allocating", 16));
    fail(paste, &message);
}

/* "failed to allocate CUDA0 buffer of size 151851674624" */
static void read_buffer(struct paste *paste, const char *start, struct cursor text)
{
    struct message message = message_start(FAMILY_GGML);
    (void)start;
    if (!cursor_has(text, "bufferofsize", 48))
        return;
    message_device(&message, text, "CUDA", 24);
    message_device(&message, text, "ROCm", 24);
    message_fill(&message, NUMBER_REQUESTED, amount_after(text, "bufferofsize", 48));
    fail(paste, &message);
}

/* "failed to allocate 123.00 MiB of pinned memory": a warning, it goes on without. */
static void read_pinned(struct paste *paste, const char *start, struct cursor text)
{
    struct message message = message_start(FAMILY_GGML);
    (void)start;
    if (!cursor_has(text, "ofpinnedmemory", 40))
        return;
    message.hint = HINT_HOST;
    message_fill(&message, NUMBER_REQUESTED, amount_after(text, "toallocate", 24));
    paste_failure(paste, &message);
}

/* "failed to allocate …": which of them. */
static void read_failed(struct paste *paste, const char *start, struct cursor text)
{
    read_pinned(paste, start, text);
    read_buffer(paste, start, text);
}

/* "CUDA error: out of memory / current device: 0, in function … / cuMemAddressReserve(…)" */
static void read_check(struct paste *paste, const char *start, struct cursor text)
{
    struct message message = message_start(FAMILY_GGML);
    (void)start;
    if (!cursor_has(text, "outofmemory", 200) || !cursor_has(text, "urrentdevice:", 300))
        return;
    message_device(&message, text, "urrentdevice:", 300);
    if (cursor_has(text, "cuMemAddressReserve", 500)) {
        message.hint = HINT_ADDRESS_SPACE;
        message_what(&message, "cuMemAddressReserve", strlen("cuMemAddressReserve"));
    }
    fail(paste, &message);
}

/* The loader's last words, where nothing before them was copied. */
#define LAST_WORDS(trigger)                     \
    {                                           \
        trigger, NULL, &(const struct told)     \
        {                                       \
            .family = FAMILY_GGML, .last = true \
        }                                       \
    }

const struct sentence ggml_sentences[] = {
    {"allocating", read_malloc, NULL},
    {"failedtoallocate", read_failed, NULL},
    {"CUDAerror:outofmemory", read_check, NULL},
    {"CUDAerror2at", read_check, NULL},
    LAST_WORDS("unabletoallocateCUDA"),
    LAST_WORDS("failedtoallocatecomputebuffers"),
    LAST_WORDS("failedtoallocatebufferforkvcache"),
    {NULL, NULL, NULL},
};

/* ---- lines ------------------------------------------------------------------------------ */

static struct ggml_device *device_behind(struct paste *paste, struct cursor *line, const char *word)
{
    uint64_t device;
    if (!cursor_find(line, word, PASTE_LINE) || !cursor_count(line, &device) ||
        device >= PASTE_BUFFER_DEVICES)
        return NULL;
    return &paste->ggml[device];
}

/* "CUDA0 KV buffer size =   379.23 MiB"; "CUDA_Host …" is not a device. */
static void buffer_line(struct paste *paste, struct cursor line)
{
    struct ggml_device *device = device_behind(paste, &line, "CUDA");
    if (device == NULL)
        return;
    struct amount size = amount_after(line, "buffer size =", 40);
    if (size.known)
        device->buffers = device->buffers.known ? amount_sum(device->buffers, size) : size;
}

void ggml_line(struct paste *paste, struct cursor line)
{
    struct cursor start = line;
    buffer_line(paste, line);
    struct ggml_device *device = device_behind(paste, &start, "using device CUDA");
    if (device != NULL) {
        struct amount free_bytes = amount_before(start, " free", 200);
        if (free_bytes.known)
            device->free_at_start = free_bytes;
        device->buffers = (struct amount){0};
    }
    device = device_behind(paste, &line, "Device ");
    if (device != NULL && cursor_has(line, "compute capability", 120)) {
        struct amount total = amount_after(line, "VRAM:", 200);
        if (total.known)
            device->total = total;
    }
}
