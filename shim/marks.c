/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program may tell us of itself: marks, steps and phases. Optional, any
 * thread; without a recording they do nothing. From Python:
 * ctypes.CDLL(None).vramscope_mark(b"epoch 3").
 */
#include <stddef.h>

#include "../formats/record.h"
#include "marks.h"
#include "shim.h"
#include "vramscope.h"

static void emit(struct vs_event event, const char *text, const void *caller)
{
    if (!shim_recording()) {
        return;
    }
    event.device = VS_DEVICE_UNKNOWN;
    event.free_bytes = VS_FREE_UNKNOWN;
    event.module = modules_find(caller);
    event.extra[0] = intern_text(text);
    shim_emit(&event);
}

void marks_mark(const char *text, const void *caller)
{
    emit((struct vs_event){.kind = VS_KIND_MARK}, text, caller);
}

void marks_begin(uint32_t nest, uint64_t id, const char *name, const void *caller)
{
    emit((struct vs_event){.kind = VS_KIND_PHASE_BEGIN, .handle = nest, .extra = {0, id}}, name,
         caller);
}

void marks_end(uint32_t nest, uint64_t id, const void *caller)
{
    emit((struct vs_event){.kind = VS_KIND_PHASE_END, .handle = nest, .extra = {0, id}}, NULL,
         caller);
}

SHIM_EXPORT void vramscope_mark(const char *text)
{
    marks_mark(text, __builtin_return_address(0));
}

SHIM_EXPORT void vramscope_step(uint64_t number)
{
    emit((struct vs_event){.kind = VS_KIND_STEP, .size = number}, NULL,
         __builtin_return_address(0));
}

SHIM_EXPORT void vramscope_begin(const char *name)
{
    marks_begin(MARKS_NEST_OWN, 0, name, __builtin_return_address(0));
}

SHIM_EXPORT void vramscope_end(void)
{
    marks_end(MARKS_NEST_OWN, 0, __builtin_return_address(0));
}
