/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loader's functions that programs find CUDA with. libc tells its caller by
 * the return address (RTLD_NEXT, RTLD_DEFAULT, RUNPATH, $ORIGIN, namespaces), so
 * the interposers of dlsym, dlvsym, dlopen and dlmopen are written in assembly:
 * they ask where to go and jump there with registers and stack as they came.
 * Only a look-up of a listed name in a real handle is answered here, for there
 * the caller does not matter.
 *
 * dlopen is left by that jump too, so nothing of ours runs when it returns: what
 * is known is marked stale before, and looked at again in the next look-up, or
 * in the first hook whose caller or whose real function is not known.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

#include "hook.h"
#include "real_dl.h"
#include "real_table.h"

typedef void *dlsym_function(void *handle, const char *name);
typedef void *dlvsym_function(void *handle, const char *name, const char *version);

/* ---- libc's own functions --------------------------------------------------------------- */

enum { REAL_DLVSYM, REAL_DLOPEN, REAL_DLMOPEN, REAL_DLCLOSE, REAL_DL_COUNT };

static const char *const real_dl_names[REAL_DL_COUNT] = {"dlvsym", "dlopen", "dlmopen", "dlclose"};
static _Atomic(void *) real_dl[REAL_DL_COUNT];

static void *real_dl_function(unsigned which)
{
    void *found = atomic_load_explicit(&real_dl[which], memory_order_acquire);
    if (found == NULL) {
        found = real_dlsym(RTLD_NEXT, real_dl_names[which]);
        found = found != NULL ? found : real_next(real_dl_names[which]);
        atomic_store_explicit(&real_dl[which], found, memory_order_release);
    }
    return found;
}

/* What is jumped to when libc's function is nowhere: a loader that knows nothing. */
static void *found_nothing(void)
{
    return NULL;
}

static void *or_nothing(void *function)
{
    void *(*nothing)(void) = found_nothing;
    return function != NULL ? function : *(void **)&nothing;
}

/* ---- look-ups of listed names ---------------------------------------------------------------- */

static void look_up_done(unsigned hook)
{
    int saved_errno = errno;
    real_refresh_if_stale();
    if (hook_rows[hook].level == HOOK_LEVEL_DRIVER) {
        lifecycle_cuda_seen();
    }
    errno = saved_errno;
}

static void *look_up(void *handle, const char *name)
{
    unsigned hook = hook_find(name);
    void *found = real_dlsym(handle, name);
    if (found != NULL && !shim_config.disabled) {
        look_up_done(hook);
    }
    return shim_config.disabled ? found : hook_wrap(hook, found);
}

static void *look_up_version(void *handle, const char *name, const char *version)
{
    unsigned hook = hook_find(name);
    dlvsym_function *real;
    *(void **)&real = real_dl_function(REAL_DLVSYM);
    void *found = real != NULL ? real(handle, name, version) : NULL;
    if (found != NULL && !shim_config.disabled) {
        look_up_done(hook);
    }
    return shim_config.disabled ? found : hook_wrap(hook, found);
}

/* ---- where the assembly goes --------------------------------------------------------------------
 */

/* RTLD_DEFAULT (null) and RTLD_NEXT depend on the caller, and find the preloaded symbol by
 * themselves. */
static bool answered_here(const void *handle, const char *name)
{
    return handle != RTLD_DEFAULT && handle != RTLD_NEXT && name != NULL &&
           hook_find(name) != HOOK_COUNT;
}

__attribute__((used)) dlsym_function *hook_dlsym_target(void *handle, const char *name);
__attribute__((used)) dlvsym_function *hook_dlvsym_target(void *handle, const char *name);
__attribute__((used)) void *hook_dlopen_target(const void *path, int mode);
__attribute__((used)) void *hook_dlmopen_target(long space, const void *path, int mode);

dlsym_function *hook_dlsym_target(void *handle, const char *name)
{
    if (answered_here(handle, name)) {
        return look_up;
    }
    if (__builtin_expect(shim_real_dlsym_ptr == NULL, 0)) {
        real_dl_load();
    }
    dlsym_function *target = shim_real_dlsym_ptr;
    if (target == NULL) {
        *(void **)&target = or_nothing(NULL);
    }
    return target;
}

dlvsym_function *hook_dlvsym_target(void *handle, const char *name)
{
    dlvsym_function *target = look_up_version;
    if (!answered_here(handle, name)) {
        *(void **)&target = or_nothing(real_dl_function(REAL_DLVSYM));
    }
    return target;
}

void *hook_dlopen_target(const void *path, int mode)
{
    if (path != NULL && (mode & RTLD_NOLOAD) == 0) {
        real_loading();
    }
    if ((mode & RTLD_DEEPBIND) != 0) {
        hook_warn(HOOK_WARNING_DEEPBIND);
    }
    return or_nothing(real_dl_function(REAL_DLOPEN));
}

void *hook_dlmopen_target(long space, const void *path, int mode)
{
    (void)space;
    hook_dlopen_target(path, mode);
    return or_nothing(real_dl_function(REAL_DLMOPEN));
}

/* dlclose does not look at its caller. */
SHIM_EXPORT int dlclose(void *handle)
{
    int (*real)(void *);
    *(void **)&real = real_dl_function(REAL_DLCLOSE);
    int result = real != NULL ? real(handle) : -1;
    if (!shim_config.disabled) {
        int saved_errno = errno;
        real_refresh(); /* another object may come to lie where this one was */
        errno = saved_errno;
    }
    return result;
}

/*
 * NAME: keep the three argument registers, ask NAME's target function, put them
 * back, jump. At entry the stack is 8 bytes off its 16-byte alignment; three
 * pushes put that right for the call.
 */
#if defined(__x86_64__)
#define INTERPOSER(name, target)                     \
    __asm__(".text\n"                                \
            ".p2align 4\n"                           \
            ".globl " name "\n"                      \
            ".type " name ", @function\n" name ":\n" \
            "    .cfi_startproc\n"                   \
            "    endbr64\n"                          \
            "    pushq %rdi\n"                       \
            "    .cfi_adjust_cfa_offset 8\n"         \
            "    pushq %rsi\n"                       \
            "    .cfi_adjust_cfa_offset 8\n"         \
            "    pushq %rdx\n"                       \
            "    .cfi_adjust_cfa_offset 8\n"         \
            "    call " target "\n"                  \
            "    popq %rdx\n"                        \
            "    .cfi_adjust_cfa_offset -8\n"        \
            "    popq %rsi\n"                        \
            "    .cfi_adjust_cfa_offset -8\n"        \
            "    popq %rdi\n"                        \
            "    .cfi_adjust_cfa_offset -8\n"        \
            "    jmp *%rax\n"                        \
            "    .cfi_endproc\n"                     \
            ".size " name ", . - " name "\n")
#elif defined(__aarch64__)
#define INTERPOSER(name, target)                     \
    __asm__(".text\n"                                \
            ".p2align 4\n"                           \
            ".globl " name "\n"                      \
            ".type " name ", %function\n" name ":\n" \
            "    .cfi_startproc\n"                   \
            "    stp x29, x30, [sp, #-48]!\n"        \
            "    .cfi_def_cfa_offset 48\n"           \
            "    .cfi_offset 29, -48\n"              \
            "    .cfi_offset 30, -40\n"              \
            "    stp x0, x1, [sp, #16]\n"            \
            "    str x2, [sp, #32]\n"                \
            "    bl " target "\n"                    \
            "    mov x16, x0\n"                      \
            "    ldr x2, [sp, #32]\n"                \
            "    ldp x0, x1, [sp, #16]\n"            \
            "    ldp x29, x30, [sp], #48\n"          \
            "    .cfi_restore 29\n"                  \
            "    .cfi_restore 30\n"                  \
            "    .cfi_def_cfa_offset 0\n"            \
            "    br x16\n"                           \
            "    .cfi_endproc\n"                     \
            ".size " name ", . - " name "\n")
#else
#error "no loader interposers for this architecture yet"
#endif

INTERPOSER("dlsym", "hook_dlsym_target");
INTERPOSER("dlvsym", "hook_dlvsym_target");
INTERPOSER("dlopen", "hook_dlopen_target");
INTERPOSER("dlmopen", "hook_dlmopen_target");

/* At start: what is loaded already is known before the first hook runs. */
__attribute__((constructor)) static void on_load(void)
{
    int saved_errno = errno;
    real_dl_load();
    for (unsigned i = 0; i < REAL_DL_COUNT; i++) {
        real_dl_function(i);
    }
    real_refresh();
    errno = saved_errno;
}
