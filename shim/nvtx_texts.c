/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of NVTX: see nvtx_texts.h. */
#include "nvtx_texts.h"

#include <stdatomic.h>
#include <string.h>

enum { SLOTS = 4096, TRIED = 64, KEPT_BYTES = 256 << 10 };
enum { STATE_EMPTY, STATE_WRITING, STATE_KEPT };

struct slot {
    _Atomic uint32_t state;
    uint32_t hash;
    uint32_t at; /* where its bytes begin */
};

static struct {
    struct slot slots[SLOTS];
    _Atomic uint32_t used;
    char bytes[KEPT_BYTES];
} kept;

/* ---- making one -------------------------------------------------------------------- */

void nvtx_text_start(struct nvtx_text *text)
{
    text->used = 0;
    text->bytes[0] = '\0';
}

static bool add_bytes(struct nvtx_text *text, const char *bytes, size_t count)
{
    if (text->used + count >= sizeof(text->bytes)) {
        return false;
    }
    memcpy(text->bytes + text->used, bytes, count);
    text->used += count;
    text->bytes[text->used] = '\0';
    return true;
}

/* Bytes of the character that begins with `first`; 1 where it cannot begin one. */
static size_t character_bytes(unsigned char first)
{
    return first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
}

void nvtx_text_add(struct nvtx_text *text, const char *more)
{
    while (*more != '\0') {
        size_t bytes = strnlen(more, character_bytes((unsigned char)*more));
        if (!add_bytes(text, more, bytes)) {
            return;
        }
        more += bytes;
    }
}

/* RFC 3629; what is no character becomes U+FFFD. */
static size_t encode(uint32_t code, char out[4])
{
    if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
        code = 0xfffd;
    }
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t bytes = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = bytes - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    out[0] = (char)(leads[bytes] | code);
    return bytes;
}

void nvtx_text_add_wide(struct nvtx_text *text, const wchar_t *more)
{
    char bytes[4];
    for (; *more != L'\0'; more++) {
        if (!add_bytes(text, bytes, encode((uint32_t)*more, bytes))) {
            return;
        }
    }
}

/* ---- keeping it ---------------------------------------------------------------------- */

static uint32_t hash_of(const struct nvtx_text *text)
{
    uint32_t hash = 0x811c9dc5U; /* FNV-1a */
    for (size_t i = 0; i < text->used; i++) {
        hash = (hash ^ (unsigned char)text->bytes[i]) * 0x01000193U;
    }
    return hash;
}

/* Fills a slot that nobody has. False: somebody was faster, or there is no room for the bytes. */
static bool fill(struct slot *slot, const struct nvtx_text *text, uint32_t hash)
{
    uint32_t state = STATE_EMPTY;
    uint32_t bytes = (uint32_t)text->used + 1;
    if (atomic_load_explicit(&kept.used, memory_order_relaxed) > KEPT_BYTES - bytes ||
        !atomic_compare_exchange_strong(&slot->state, &state, STATE_WRITING)) {
        return false;
    }
    uint32_t at = atomic_fetch_add(&kept.used, bytes);
    if (at > KEPT_BYTES - bytes) { /* others took it meanwhile: no room from here on */
        atomic_fetch_sub(&kept.used, bytes);
        atomic_store(&slot->state, STATE_EMPTY);
        return false;
    }
    memcpy(kept.bytes + at, text->bytes, bytes);
    slot->hash = hash;
    slot->at = at;
    /* Release: who finds it kept finds its bytes. */
    atomic_store_explicit(&slot->state, STATE_KEPT, memory_order_release);
    return true;
}

const void *nvtx_text_keep(const struct nvtx_text *text)
{
    uint32_t hash = hash_of(text);
    for (uint32_t i = 0; i < TRIED; i++) {
        struct slot *slot = &kept.slots[(hash + i) % SLOTS];
        /* Acquire: pairs with the release of who filled it. A slot being written is passed by; at
           worst the text is kept twice. */
        uint32_t state = atomic_load_explicit(&slot->state, memory_order_acquire);
        if (state == STATE_KEPT && slot->hash == hash &&
            strcmp(kept.bytes + slot->at, text->bytes) == 0) {
            return slot;
        }
        if (state == STATE_EMPTY && fill(slot, text, hash)) {
            return slot;
        }
    }
    return NULL;
}

static const struct slot *slot_of(const void *handle)
{
    uintptr_t offset = (uintptr_t)handle - (uintptr_t)kept.slots;
    if (offset >= sizeof(kept.slots) || offset % sizeof(struct slot) != 0) {
        return NULL;
    }
    const struct slot *slot = &kept.slots[offset / sizeof(struct slot)];
    return atomic_load_explicit(&slot->state, memory_order_acquire) == STATE_KEPT ? slot : NULL;
}

const char *nvtx_text_of(const void *handle)
{
    const struct slot *slot = slot_of(handle);
    return slot != NULL ? kept.bytes + slot->at : NULL;
}

uint32_t nvtx_text_number(const void *handle)
{
    const struct slot *slot = slot_of(handle);
    return slot != NULL ? (uint32_t)(slot - kept.slots) + 1 : 0;
}
