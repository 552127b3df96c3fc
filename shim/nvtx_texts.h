/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that NVTX gives once and uses by handle: of domains and registered
 * strings. They are kept in tables of fixed size, for the life of the process.
 * And the way from what a program says to the UTF-8 that is recorded.
 */
#ifndef VS_SHIM_NVTX_TEXTS_H
#define VS_SHIM_NVTX_TEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

enum { NVTX_TEXT_BYTES = 1025 };

/* Text under construction; what does not fit is left out, no character is cut in two. */
struct nvtx_text {
    char bytes[NVTX_TEXT_BYTES];
    size_t used;
};

void nvtx_text_start(struct nvtx_text *text);
void nvtx_text_add(struct nvtx_text *text, const char *more);
void nvtx_text_add_wide(struct nvtx_text *text, const wchar_t *more);

/*
 * A handle for a copy of `text`, the same for the same text; NULL when the table is full. Any
 * thread; no lock, no allocation.
 */
const void *nvtx_text_keep(const struct nvtx_text *text);
/* The text of a handle; NULL for one that was never given out. */
const char *nvtx_text_of(const void *handle);
/* From 1, another one for each handle; 0 for one that was never given out. */
uint32_t nvtx_text_number(const void *handle);

#endif
