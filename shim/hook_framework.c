/* SPDX-License-Identifier: Apache-2.0 */
/* Of a library above CUDA: one record, told before or after its own call, and that call. */
#include "hook_framework.h"

#include <errno.h>

#include "devices.h"
#include "real_table.h"

uint64_t framework_tell(unsigned hook, struct vs_event *event, const void *caller)
{
    struct thread_frame frame;
    struct shim_thread *thread = thread_enter(&frame);
    hook_label(thread, event, hook, hook_module_of(caller));
    event->free_bytes = VS_FREE_UNKNOWN;
    hook_count_call(HOOK_LEVEL_FRAMEWORK);
    bool of_block = event->kind == VS_KIND_FW_ALLOC || event->kind == VS_KIND_FW_FREE;
    if (event->device == VS_DEVICE_UNKNOWN && !of_block) {
        hook_own_calls_begin();
        event->device = (int8_t)devices_current(&event->context);
        hook_own_calls_end();
    }
    uint64_t sequence = shim_emit(event);
    thread_leave(thread, &frame);
    return sequence;
}

void framework_tell_guarded(unsigned hook, struct vs_event event, const void *caller)
{
    int saved_errno = errno;
    if (shim_recording() && !shim_config.disabled) {
        event.device = VS_DEVICE_UNKNOWN;
        framework_tell(hook, &event, caller);
    }
    errno = saved_errno;
}

void *framework_real(unsigned hook, const void *caller)
{
    int saved_errno = errno;
    void *real = real_for_module(hook, hook_module_of(caller));
    if (real == NULL) {
        hook_warn(HOOK_WARNING_REAL_MISSING);
    }
    errno = saved_errno;
    return real;
}
