/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program may tell us of itself: marks, steps and phases. Optional, any
 * thread; without a recording they do nothing. From Python:
 * ctypes.CDLL(None).vramscope_mark(b"epoch 3").
 */
#include <stddef.h>

#include "../formats/record.h"
#include "shim.h"
#include "vramscope.h"

static void emit(uint8_t kind, uint64_t size, const char *text, const void *caller)
{
    if (!shim_recording()) {
        return;
    }
    struct vs_event event = {.kind = kind,
                             .size = size,
                             .device = VS_DEVICE_UNKNOWN,
                             .free_bytes = VS_FREE_UNKNOWN,
                             .module = modules_find(caller),
                             .extra = {intern_text(text), 0}};
    shim_emit(&event);
}

SHIM_EXPORT void vramscope_mark(const char *text)
{
    emit(VS_KIND_MARK, 0, text, __builtin_return_address(0));
}

SHIM_EXPORT void vramscope_step(uint64_t number)
{
    emit(VS_KIND_STEP, number, NULL, __builtin_return_address(0));
}

SHIM_EXPORT void vramscope_begin(const char *name)
{
    emit(VS_KIND_PHASE_BEGIN, 0, name, __builtin_return_address(0));
}

SHIM_EXPORT void vramscope_end(void)
{
    emit(VS_KIND_PHASE_END, 0, NULL, __builtin_return_address(0));
}
