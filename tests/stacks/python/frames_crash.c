/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells a crash in the shim's rooms from one of CPython's own: a daemon thread that
 * waits for the GIL may go on with an interpreter that is gone already (3.10: take_gil
 * in Python/ceval_gil.h reads it), whether anybody looks at frames or not.
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "shim.h"

#define DEPTH 64

static const void *own_base;

static const void *base_of(const void *address)
{
    Dl_info info;
    return dladdr(address, &info) != 0 ? info.dli_fbase : NULL;
}

/* Whether code of this library crashed, or called what did. */
static bool is_own(const void *crashed)
{
    void *frames[DEPTH];
    int count = backtrace(frames, DEPTH);
    int first = 0;
    while (first < count && frames[first] != crashed) {
        first++; /* this function, the handler, the kernel's frame */
    }
    bool own = first == count; /* not told: rather ours */
    for (int i = first; i < count && !own; i++) {
        own = base_of(frames[i]) == own_base;
    }
    return own;
}

static void on_crash(int signal_number, siginfo_t *info, void *context)
{
    const ucontext_t *at = context;
#if defined(__x86_64__)
    const void *crashed = (const void *)(uintptr_t)at->uc_mcontext.gregs[REG_RIP];
#else
    const void *crashed = (const void *)(uintptr_t)at->uc_mcontext.pc;
#endif
    const char *said =
        is_own(crashed) ? "\ncrashed while frames were read\n" : "\ncrashed by itself\n";
    (void)info;
    (void)!write(STDOUT_FILENO, said, strlen(said));
    signal(signal_number, SIG_DFL); /* and once more, as it would have ended */
}

/* From here on a crash says on stdout whose it was. Call it once. */
SHIM_EXPORT void frames_tell_crashes(void)
{
    struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO};
    void *frame;
    backtrace(&frame, 1); /* it loads libgcc the first time */
    own_base = base_of((const void *)(uintptr_t)frames_tell_crashes);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
}
