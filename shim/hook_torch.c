/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's caching allocator tells c10's profiler of every block it gives out
 * and takes back, with its own totals, whether a profiler runs or not. These
 * functions stand in front of c10's under all the names they have had. They run
 * under the allocator's lock, possibly with the GIL held: nothing here starts
 * the collector, takes a lock or allocates.
 */
#include <errno.h>
#include <string.h>

#include "devices.h"
#include "hook_framework.h"
#include "real_table.h"
#include "torch_peak.h"

enum { DEVICE_CPU = 0, DEVICE_CUDA = 1, DEVICE_HIP = 6 };

/* The stream a block is given out on, or refused to, is the thread's current one there. */
static bool current_stream(int8_t device, uint64_t *out)
{
    struct c10_stream (*get_current)(int8_t);
    void *(*get_handle)(const struct c10_stream *);
    *(void **)&get_current = real_any(REAL__ZN3c104cuda20getCurrentCUDAStreamEa);
    *(void **)&get_handle = real_any(REAL__ZNK3c104cuda10CUDAStream6streamEv);
    if (get_current == NULL || get_handle == NULL || device < 0) {
        return false;
    }
    struct c10_stream stream = get_current(device);
    *out = HOOK_U64(get_handle(&stream));
    return true;
}

static bool on_device(struct c10_device device)
{
    return device.type == DEVICE_CUDA || device.type == DEVICE_HIP;
}

/* Fills what every report has and puts it into the ring. */
static void emit(unsigned hook, struct vs_event *event, struct c10_device device, uint32_t module)
{
    struct thread_frame frame;
    struct shim_thread *thread = thread_enter(&frame);
    hook_label(thread, event, hook, module);
    event->device = on_device(device) ? device.index : VS_DEVICE_UNKNOWN;
    event->free_bytes = VS_FREE_UNKNOWN;
    hook_count_call(HOOK_LEVEL_FRAMEWORK);
    if (event->kind == VS_KIND_FW_ALLOC || event->kind == VS_KIND_FW_OOM) {
        hook_own_calls_begin();
        bool known = current_stream(device.index, &event->stream);
        event->handle = known;
        hook_own_calls_end();
        devices_note_stream(event);
    }
    shim_emit(event);
    thread_leave(thread, &frame);
}

static uint8_t kind_of(struct c10_device device, int64_t bytes)
{
    if (on_device(device)) {
        return bytes >= 0 ? VS_KIND_FW_ALLOC : VS_KIND_FW_FREE;
    }
    return bytes >= 0 ? VS_KIND_FW_HOST_ALLOC : VS_KIND_FW_HOST_FREE;
}

static bool of_interest(struct c10_device device)
{
    return shim_recording() && !shim_config.disabled &&
           (on_device(device) || device.type == DEVICE_CPU);
}

static void report_usage(unsigned hook, const void *caller, void *address, int64_t bytes,
                         uint64_t allocated, uint64_t reserved, struct c10_device device)
{
    int saved_errno = errno;
    uint32_t module = hook_module_of(caller);
    if (of_interest(device)) {
        struct vs_event event = {.kind = kind_of(device, bytes),
                                 .address = HOOK_U64(address),
                                 .size = bytes >= 0 ? (uint64_t)bytes : 0 - (uint64_t)bytes,
                                 .extra = {allocated, reserved}};
        if (on_device(device)) {
            torch_peak_note(device.index, allocated, reserved);
        }
        emit(hook, &event, device, module);
    }
    void (*real)(void *, int64_t, uint64_t, uint64_t, struct c10_device);
    *(void **)&real = real_for_module(hook, module);
    errno = saved_errno;
    if (real != NULL) {
        real(address, bytes, allocated, reserved, device);
    }
}

static void report_oom(unsigned hook, const void *caller, int64_t bytes, uint64_t allocated,
                       uint64_t reserved, struct c10_device device)
{
    int saved_errno = errno;
    uint32_t module = hook_module_of(caller);
    if (of_interest(device) && on_device(device)) {
        struct vs_event event = {
            .kind = VS_KIND_FW_OOM, .size = (uint64_t)bytes, .extra = {allocated, reserved}};
        emit(hook, &event, device, module);
        lifecycle_flush_soon();
    }
    void (*real)(int64_t, uint64_t, uint64_t, struct c10_device);
    *(void **)&real = real_for_module(hook, module);
    errno = saved_errno;
    if (real != NULL) {
        real(bytes, allocated, reserved, device);
    }
}

#define USAGE(name)                                                                            \
    SHIM_EXPORT void name(void *address, int64_t bytes, uint64_t allocated, uint64_t reserved, \
                          struct c10_device device);                                           \
    void name(void *address, int64_t bytes, uint64_t allocated, uint64_t reserved,             \
              struct c10_device device)                                                        \
    {                                                                                          \
        report_usage(HOOK_##name, __builtin_return_address(0), address, bytes, allocated,      \
                     reserved, device);                                                        \
    }

#define OUT_OF_MEMORY(name)                                                                       \
    SHIM_EXPORT void name(int64_t bytes, uint64_t allocated, uint64_t reserved,                   \
                          struct c10_device device);                                              \
    void name(int64_t bytes, uint64_t allocated, uint64_t reserved, struct c10_device device)     \
    {                                                                                             \
        report_oom(HOOK_##name, __builtin_return_address(0), bytes, allocated, reserved, device); \
    }

USAGE(_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE)
USAGE(_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE)
OUT_OF_MEMORY(_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE)
OUT_OF_MEMORY(_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE)
OUT_OF_MEMORY(_ZN3c1027reportOutOfMemoryToProfilerEmmmNS_6DeviceE)

/*
 * Up to PyTorch 1.9: no totals, and for a device the host's block descriptor in
 * place of the address. The descriptor is recorded as the address: unique while
 * the block lives, like one. UINT64_MAX in both totals says that they are not known.
 */
SHIM_EXPORT void _ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE(void *block, int64_t bytes,
                                                                     struct c10_device device);
void _ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE(void *block, int64_t bytes,
                                                         struct c10_device device)
{
    const unsigned hook = HOOK__ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE;
    const void *caller = __builtin_return_address(0);
    int saved_errno = errno;
    uint32_t module = hook_module_of(caller);
    if (of_interest(device)) {
        struct vs_event event = {.kind = kind_of(device, bytes),
                                 .address = HOOK_U64(block),
                                 .size = bytes >= 0 ? (uint64_t)bytes : 0 - (uint64_t)bytes,
                                 .extra = {UINT64_MAX, UINT64_MAX}};
        emit(hook, &event, device, module);
    }
    void (*real)(void *, int64_t, struct c10_device);
    *(void **)&real = real_for_module(hook, module);
    errno = saved_errno;
    if (real != NULL) {
        real(block, bytes, device);
    }
}

/* ---- pools of the program's own ---------------------------------------------------------- */

/*
 * torch.cuda.use_mem_pool asks for the pool's id as it begins and as it ends; what it does then is
 * a virtual call, which nobody can stand in front of. The stack of the question says which it was.
 */
struct c10_pool_id {
    uint64_t graph, user;
};

enum { USE_OF_THREAD, USE_OF_ALL };

static struct c10_pool_id ask_pool(unsigned hook, const void *caller, void *pool, uint64_t use)
{
    struct c10_pool_id (*real)(void *);
    *(void **)&real = framework_real(hook, caller);
    if (real == NULL) {
        return (struct c10_pool_id){0};
    }
    struct c10_pool_id id = real(pool);
    framework_tell_guarded(hook,
                           (struct vs_event){.kind = VS_KIND_MEM_POOL_ID,
                                             .handle = HOOK_U64(pool),
                                             .pool = use,
                                             .extra = {id.graph, id.user}},
                           caller);
    return id;
}

static void destroy_pool(unsigned hook, const void *caller, void *pool)
{
    void (*real)(void *);
    *(void **)&real = framework_real(hook, caller);
    framework_tell_guarded(
        hook, (struct vs_event){.kind = VS_KIND_MEM_POOL_DESTROY, .handle = HOOK_U64(pool)},
        caller);
    if (real != NULL) {
        real(pool);
    }
}

#define POOL_ID(name, use)                                                    \
    SHIM_EXPORT struct c10_pool_id name(void *pool);                          \
    struct c10_pool_id name(void *pool)                                       \
    {                                                                         \
        return ask_pool(HOOK_##name, __builtin_return_address(0), pool, use); \
    }

#define POOL_END(name)                                                \
    SHIM_EXPORT void name(void *pool);                                \
    void name(void *pool)                                             \
    {                                                                 \
        destroy_pool(HOOK_##name, __builtin_return_address(0), pool); \
    }

/* While it was c10's, other threads allocated from the pool as well. */
POOL_ID(_ZN3c104cuda7MemPool2idEv, USE_OF_ALL)
POOL_ID(_ZN2at4cuda7MemPool2idEv, USE_OF_THREAD)
POOL_END(_ZN3c104cuda7MemPoolD1Ev)
POOL_END(_ZN2at4cuda7MemPoolD1Ev)
