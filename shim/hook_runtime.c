/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA runtime's entry points: wrappers generated from hooks.def, and its
 * way of handing out driver functions.
 */
#include "hook.h"
#include "real_table.h"

#include "hook_runtime.inc"

/* Without a version of its own, a look-up means that of the runtime. */
static int runtime_version(const void *caller)
{
    int (*get_version)(int *);
    int version = 0;
    *(void **)&get_version = real_for_module(REAL_cudaRuntimeGetVersion, hook_module_of(caller));
    if (get_version == NULL || get_version(&version) != ABI_SUCCESS) {
        return 0;
    }
    return version;
}

/* cudaEnablePerThreadDefaultStream equals the driver's flag; the _ptsz twins mean it by default. */
static bool per_thread(unsigned long long query_flags, bool twin)
{
    return query_flags == ABI_QUERY_PER_THREAD_STREAM || (twin && query_flags == 0);
}

static int by_runtime(unsigned hook, unsigned slot, const void *caller, bool twin, const char *name,
                      void **out, unsigned long long query_flags, int *status)
{
    struct hook_call call;
    int (*real)(const char *, void **, unsigned long long, int *);
    *(void **)&real = hook_begin(&call, hook, slot, caller);
    if (real == NULL) {
        return ABI_NOT_FOUND;
    }
    int result = real(name, out, query_flags, status);
    if (result == ABI_SUCCESS && out != NULL && !shim_config.disabled) {
        *out = hook_wrap_asked(name, runtime_version(caller), per_thread(query_flags, twin), *out);
    }
    return call.active ? hook_after(&call, result) : result;
}

static int by_version(unsigned hook, unsigned slot, const void *caller, bool twin, const char *name,
                      void **out, unsigned version, unsigned long long query_flags, int *status)
{
    struct hook_call call;
    int (*real)(const char *, void **, unsigned, unsigned long long, int *);
    *(void **)&real = hook_begin(&call, hook, slot, caller);
    if (real == NULL) {
        return ABI_NOT_FOUND;
    }
    int result = real(name, out, version, query_flags, status);
    if (result == ABI_SUCCESS && out != NULL && !shim_config.disabled) {
        *out = hook_wrap_asked(name, (int)version, per_thread(query_flags, twin), *out);
    }
    return call.active ? hook_after(&call, result) : result;
}

static int hook_body_cudaGetDriverEntryPoint(unsigned slot, const void *caller, const char *name,
                                             void **out, unsigned long long query_flags,
                                             int *status)
{
    return by_runtime(HOOK_cudaGetDriverEntryPoint, slot, caller, false, name, out, query_flags,
                      status);
}

static int hook_body_cudaGetDriverEntryPoint_ptsz(unsigned slot, const void *caller,
                                                  const char *name, void **out,
                                                  unsigned long long query_flags, int *status)
{
    return by_runtime(HOOK_cudaGetDriverEntryPoint_ptsz, slot, caller, true, name, out, query_flags,
                      status);
}

static int hook_body_cudaGetDriverEntryPointByVersion(unsigned slot, const void *caller,
                                                      const char *name, void **out,
                                                      unsigned version,
                                                      unsigned long long query_flags, int *status)
{
    return by_version(HOOK_cudaGetDriverEntryPointByVersion, slot, caller, false, name, out,
                      version, query_flags, status);
}

static int hook_body_cudaGetDriverEntryPointByVersion_ptsz(unsigned slot, const void *caller,
                                                           const char *name, void **out,
                                                           unsigned version,
                                                           unsigned long long query_flags,
                                                           int *status)
{
    return by_version(HOOK_cudaGetDriverEntryPointByVersion_ptsz, slot, caller, true, name, out,
                      version, query_flags, status);
}
