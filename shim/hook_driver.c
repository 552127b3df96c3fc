/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's entry points: wrappers generated from hooks.def, and the look-up
 * through which the CUDA runtime, static or not, reaches everything else.
 */
#include <errno.h>
#include <string.h>

#include "../formats/ring.h"
#include "hook.h"
#include "hook_framework.h"
#include "lifecycle.h"
#include "real_table.h"

#include "hook_driver.inc"

#define NEWEST_VERSION 13050 /* CUDA version whose variants hooks.def knows in full */

/* ---- wrappers to hand out ------------------------------------------------------- */

static hook_entry *entry_of(unsigned hook, unsigned slot)
{
    return hook < HOOK_FIRST_RUNTIME ? hook_driver_entries[hook][slot]
                                     : hook_runtime_entries[hook - HOOK_FIRST_RUNTIME][slot];
}

void *hook_wrap(unsigned hook, void *found)
{
    if (hook_rows[hook].level == HOOK_LEVEL_FRAMEWORK) {
        return nccl_wrap(hook, found);
    }
    /* A pointer into this library is the preloaded symbol, or a wrapper already. */
    int slot = found == NULL || real_is_ours(found) ? -1 : real_slot_of(hook, found);
    if (slot < 0) {
        return found;
    }
    hook_entry *entry = entry_of(hook, (unsigned)slot);
    return *(void **)&entry;
}

/* ---- cuGetProcAddress ------------------------------------------------------------------ */

/* Copies and questions are not listed and need not be. */
static bool may_move_memory(const char *name)
{
    bool memory = strncmp(name, "cuMem", 5) == 0 && name[5] >= 'A' && name[5] <= 'Z';
    return (memory || strncmp(name, "cuMulticast", 11) == 0) && strstr(name, "Get") == NULL;
}

static void note_unknown(const char *name)
{
    if (may_move_memory(name)) {
        hook_warn(HOOK_WARNING_UNKNOWN_NAME);
    }
}

/*
 * The table tells which variant a name and a version mean. For a version newer
 * than the table the exported symbols decide: a pointer that is none of theirs
 * belongs to a variant that nobody here knows the arguments of.
 */
static unsigned variant_of(const char *name, int version, bool per_thread_stream, void *found)
{
    unsigned hook = hook_find_asked(name, version, per_thread_stream);
    if (hook >= HOOK_COUNT || version <= NEWEST_VERSION || real_any(hook) == found) {
        return hook;
    }
    hook_warn(HOOK_WARNING_UNKNOWN_VERSION);
    return HOOK_LEFT_ALONE;
}

void *hook_wrap_asked(const char *name, int version, bool per_thread_stream, void *found)
{
    if (name == NULL || found == NULL || real_is_ours(found)) {
        return found;
    }
    unsigned hook = variant_of(name, version, per_thread_stream, found);
    if (hook >= HOOK_COUNT) {
        if (hook == HOOK_COUNT) {
            note_unknown(name);
        }
        return found;
    }
    return hook_wrap(hook, found);
}

/* Own calls need these even where no symbol table shows the driver (another namespace). */
struct wanted {
    uint16_t id;
    const char *name;
    int version;
};

static const struct wanted wanted[] = {
    {REAL_cuCtxGetCurrent, "cuCtxGetCurrent", 4000},
    {REAL_cuCtxGetDevice, "cuCtxGetDevice", 2000},
    {REAL_cuDeviceGetMemPool, "cuDeviceGetMemPool", 11020},
    {REAL_cuMemPoolGetAttribute, "cuMemPoolGetAttribute", 11020},
    {REAL_cuStreamIsCapturing, "cuStreamIsCapturing", 10000},
    {REAL_cuDeviceGetUuid, "cuDeviceGetUuid", 9020},
    {REAL_cuDeviceGetUuid_v2, "cuDeviceGetUuid", 11040},
    {REAL_cuDeviceGetName, "cuDeviceGetName", 2000},
    {REAL_cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId", 4010},
    {REAL_cuDeviceTotalMem_v2, "cuDeviceTotalMem", 3020},
    {REAL_cuDeviceGetAttribute, "cuDeviceGetAttribute", 2000},
    {REAL_cuDriverGetVersion, "cuDriverGetVersion", 2020},
    {REAL_cuMemGetAddressRange_v2, "cuMemGetAddressRange", 3020},
    {REAL_cuPointerGetAttribute, "cuPointerGetAttribute", 4000},
    {REAL_cuCtxPushCurrent_v2, "cuCtxPushCurrent", 4000},
    {REAL_cuCtxPopCurrent_v2, "cuCtxPopCurrent", 4000},
    {HOOK_cuMemGetInfo_v2, "cuMemGetInfo", 3020},
};

typedef int proc_address_v1(const char *, void **, int, uint64_t);
typedef int proc_address_v2(const char *, void **, int, uint64_t, int *);

static void find_wanted(proc_address_v1 *v1, proc_address_v2 *v2)
{
    for (unsigned i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        void *found = NULL;
        int status = 0;
        if (real_any(wanted[i].id) != NULL) {
            continue;
        }
        int result = v2 != NULL ? v2(wanted[i].name, &found, wanted[i].version, 0, &status)
                                : v1(wanted[i].name, &found, wanted[i].version, 0);
        if (result == ABI_SUCCESS && found != NULL) {
            real_offer(wanted[i].id, found);
        }
    }
}

/* A look-up is a place where the loader's state may be looked at, and the collector started. */
static void *look_up_begins(unsigned hook, unsigned slot, const void *caller)
{
    int saved_errno = errno;
    void *real = slot == HOOK_SLOT_OF_CALLER ? real_for_module(hook, hook_module_of(caller))
                                             : real_in_slot(hook, slot);
    if (!shim_config.disabled) {
        lifecycle_cuda_seen();
    }
    if (real == NULL) {
        hook_warn(HOOK_WARNING_REAL_MISSING);
    }
    errno = saved_errno;
    return real;
}

/* A CUDA runtime begins by asking for the empty name, and nobody else does: asked by a
 * library that is not libcudart itself, it is a runtime linked statically. */
static void notice_static_runtime(const char *name, const void *caller)
{
    if (name == NULL || name[0] != '\0' || !shim_recording()) {
        return;
    }
    const char *path = modules_path(hook_module_of(caller));
    const char *slash = path == NULL ? NULL : strrchr(path, '/');
    if (path != NULL && strncmp(slash == NULL ? path : slash + 1, "libcudart", 9) != 0) {
        atomic_fetch_add_explicit(&lifecycle_ring->static_runtimes, 1, memory_order_relaxed);
    }
}

static int hook_body_cuGetProcAddress(unsigned slot, const void *caller, const char *name,
                                      void **out, int version, uint64_t query_flags)
{
    proc_address_v1 *real;
    *(void **)&real = look_up_begins(HOOK_cuGetProcAddress, slot, caller);
    if (real == NULL) {
        return ABI_NOT_FOUND;
    }
    notice_static_runtime(name, caller);
    int result = real(name, out, version, query_flags);
    if (result == ABI_SUCCESS && out != NULL && !shim_config.disabled) {
        find_wanted(real, NULL);
        *out =
            hook_wrap_asked(name, version, (query_flags & ABI_QUERY_PER_THREAD_STREAM) != 0, *out);
    }
    return result;
}

static int hook_body_cuGetProcAddress_v2(unsigned slot, const void *caller, const char *name,
                                         void **out, int version, uint64_t query_flags, int *status)
{
    proc_address_v2 *real;
    *(void **)&real = look_up_begins(HOOK_cuGetProcAddress_v2, slot, caller);
    if (real == NULL) {
        return ABI_NOT_FOUND;
    }
    notice_static_runtime(name, caller);
    int result = real(name, out, version, query_flags, status);
    if (result == ABI_SUCCESS && out != NULL && !shim_config.disabled) {
        find_wanted(NULL, real);
        *out =
            hook_wrap_asked(name, version, (query_flags & ABI_QUERY_PER_THREAD_STREAM) != 0, *out);
    }
    return result;
}
