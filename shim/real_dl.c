/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlsym itself is interposed by this library (and perhaps by another preload),
 * so the real one is asked for by version, which nobody interposes in practice
 * and which dlvsym finds without going through dlsym.
 */
#include "real_dl.h"

#include <dlfcn.h>
#include <stddef.h>

#if defined(__x86_64__)
#define OLD_BASE "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define OLD_BASE "GLIBC_2.17"
#else
#error "the base symbol version of this architecture's glibc is not known here"
#endif

/* The version every glibc of this architecture has: 2.34 moved dlvsym and kept the old name. */
void *libc_dlvsym(void *handle, const char *name, const char *version);
__asm__(".symver libc_dlvsym, dlvsym@" OLD_BASE);

void *(*shim_real_dlsym_ptr)(void *handle, const char *name);

void real_dl_load(void)
{
    if (__atomic_load_n(&shim_real_dlsym_ptr, __ATOMIC_ACQUIRE) != NULL) {
        return;
    }
    void *found = libc_dlvsym(RTLD_NEXT, "dlsym", OLD_BASE);
    if (found == NULL) {
        found = libc_dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    }
    void *(*function)(void *, const char *);
    *(void **)&function = found;
    __atomic_store_n(&shim_real_dlsym_ptr, function, __ATOMIC_RELEASE);
}

void *real_dlsym(void *handle, const char *name)
{
    real_dl_load();
    return shim_real_dlsym_ptr != NULL ? shim_real_dlsym_ptr(handle, name) : NULL;
}
