/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OneFlow's caching allocator: each block it gives out and takes back, told with
 * the size that was asked for. It has no totals to tell, names no device, and serves the
 * host as well: where a block lies tells. What it takes from the device while it
 * extends itself gets that call's name, by which replay knows its segments.
 *
 * These run in allocations of the program's: nothing here starts the collector,
 * takes a lock or allocates.
 */
#include "hook_framework.h"

#include <errno.h>

#include "real_table.h"

/* oneflow::Maybe<void>: by hidden pointer; its first byte is 1 on success. */
struct maybe {
    uint8_t is_good;
    uint8_t unused[7];
    void *error[2];
};

#define ALLOCATE _ZN7oneflow2vm12BinAllocatorINS0_14ThreadSafeLockEE8AllocateEPPcm
#define DEALLOCATE _ZN7oneflow2vm12BinAllocatorINS0_14ThreadSafeLockEE10DeallocateEPcm
#define EXTEND _ZN7oneflow2vm12BinAllocatorINS0_14ThreadSafeLockEE29AllocateBlockToExtendTotalMemEm
#define HOOK_OF(name) HOOK_OF_NAME(name)
#define HOOK_OF_NAME(name) HOOK_##name

static void tell(unsigned hook, uint8_t kind, const void *address, size_t bytes, const void *caller)
{
    framework_tell_guarded(hook,
                           (struct vs_event){.kind = kind,
                                             .address = HOOK_U64(address),
                                             .size = bytes,
                                             .extra = {UINT64_MAX, UINT64_MAX}},
                           caller);
}

SHIM_EXPORT struct maybe ALLOCATE(void *self, char **out, size_t bytes);
struct maybe ALLOCATE(void *self, char **out, size_t bytes) {
    const void *caller = __builtin_return_address(0);
    struct maybe (*real)(void *, char **, size_t);
    *(void **)&real = framework_real(HOOK_OF(ALLOCATE), caller);
    if (real == NULL) {
        return (struct maybe){0};
    }
    struct maybe result = real(self, out, bytes);
    if (result.is_good == 1 && *out != NULL) {
        tell(HOOK_OF(ALLOCATE), VS_KIND_FW_ALLOC, *out, bytes, caller);
    } else if (result.is_good != 1) {
        tell(HOOK_OF(ALLOCATE), VS_KIND_FW_OOM, NULL, bytes, caller);
        lifecycle_flush_soon();
    }
    return result;
}

SHIM_EXPORT void
DEALLOCATE(void *self, char *address, size_t bytes);
void DEALLOCATE(void *self, char *address, size_t bytes)
{
    const void *caller = __builtin_return_address(0);
    void (*real)(void *, char *, size_t);
    *(void **)&real = framework_real(HOOK_OF(DEALLOCATE), caller);
    if (address != NULL) {
        tell(HOOK_OF(DEALLOCATE), VS_KIND_FW_FREE, address, bytes, caller);
    }
    if (real != NULL) {
        real(self, address, bytes);
    }
}

SHIM_EXPORT struct maybe EXTEND(void *self, size_t bytes);
struct maybe EXTEND(void *self, size_t bytes) {
    const void *caller = __builtin_return_address(0);
    struct maybe (*real)(void *, size_t);
    *(void **)&real = framework_real(HOOK_OF(EXTEND), caller);
    if (real == NULL) {
        return (struct maybe){0};
    }
    if (!shim_recording() || shim_config.disabled) {
        return real(self, bytes);
    }
    int saved_errno = errno;
    struct thread_frame frame;
    struct shim_thread *thread = thread_enter(&frame);
    struct vs_event label = {.kind = 0};
    hook_label(thread, &label, HOOK_OF(EXTEND), hook_module_of(caller));
    hook_count_call(HOOK_LEVEL_FRAMEWORK);
    errno = saved_errno;
    struct maybe result = real(self, bytes);
    thread_leave(thread, &frame);
    return result;
}
