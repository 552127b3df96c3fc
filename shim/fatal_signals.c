/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals that a program sends itself by mistake. Where the program leaves them
 * to the system when recording begins, a handler of ours has what was recorded
 * written, puts the default back and lets the signal happen again: status, core
 * file and the place in it are what they would have been.
 *
 * The program does not see the handler: sigaction and its kin report the
 * default instead, and whatever the program installs replaces ours for good.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>

#include "lifecycle.h"
#include "real_dl.h"
#include "shim.h"
#include "sys.h"

static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
#define FATAL_SIGNALS (sizeof(fatal) / sizeof(fatal[0]))

typedef int sigaction_function(int, const struct sigaction *, struct sigaction *);
typedef sighandler_t signal_function(int, sighandler_t);

static struct {
    sigaction_function *sigaction;
    signal_function *signal, *sysv_signal, *bsd_signal, *sigset;
} real;

void fatal_signals_resolve(void)
{
    *(void **)&real.sigaction = real_next("sigaction");
    *(void **)&real.signal = real_next("signal");
    *(void **)&real.sysv_signal = real_next("sysv_signal");
    *(void **)&real.bsd_signal = real_next("bsd_signal");
    *(void **)&real.sigset = real_next("sigset");
}

/* ---- the handler -------------------------------------------------------------- */

static void on_fatal_signal(int number, siginfo_t *info, void *context);

static bool is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) != 0 && action->sa_sigaction == on_fatal_signal;
}

static void put_default_back(int number)
{
    struct sigaction current;
    struct sigaction fresh;
    memset(&fresh, 0, sizeof(fresh));
    fresh.sa_handler = SIG_DFL;
    if (real.sigaction(number, NULL, &current) == 0 && is_ours(&current)) {
        real.sigaction(number, &fresh, NULL);
    }
}

/*
 * A faulting instruction faults again when we return. What was sent, and what
 * the processor reports after the fact, has to be sent again, with its
 * siginfo: it stays pending until we return.
 */
static bool happens_again(int number, const siginfo_t *info)
{
    return info->si_code > 0 &&
           (number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL);
}

static void on_fatal_signal(int number, siginfo_t *info, void *context)
{
    int saved_errno = errno;
    (void)context;
    process_end_record(VS_END_KILLED, number);
    put_default_back(number);
    if (!happens_again(number, info)) {
        sys_call4(SYS_rt_tgsigqueueinfo, sys_getpid(), sys_gettid(), number, info);
    }
    errno = saved_errno;
}

void fatal_signals_install(void)
{
    struct sigaction ours;
    memset(&ours, 0, sizeof(ours));
    ours.sa_sigaction = on_fatal_signal;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigfillset(&ours.sa_mask);
    for (size_t i = 0; real.sigaction != NULL && i < FATAL_SIGNALS; i++) {
        struct sigaction current;
        if (real.sigaction(fatal[i], NULL, &current) == 0 && current.sa_handler == SIG_DFL) {
            real.sigaction(fatal[i], &ours, NULL);
        }
    }
}

/* ---- what the program sees ------------------------------------------------------ */

static void hide(struct sigaction *action)
{
    if (is_ours(action)) {
        memset(action, 0, sizeof(*action));
        action->sa_handler = SIG_DFL;
    }
}

static sighandler_t hidden(sighandler_t handler)
{
    union {
        void (*with_info)(int, siginfo_t *, void *);
        sighandler_t plain;
    } ours = {.with_info = on_fatal_signal};
    return handler == ours.plain ? SIG_DFL : handler;
}

SHIM_EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
    if (real.sigaction == NULL) {
        /* Before our constructor: another library's. */
        fatal_signals_resolve();
    }
    int result = real.sigaction(number, action, old);
    if (result == 0 && old != NULL) {
        hide(old);
    }
    return result;
}

static sighandler_t set_handler(signal_function **function, int number, sighandler_t handler)
{
    if (*function == NULL) {
        fatal_signals_resolve();
    }
    if (*function == NULL) {
        errno = ENOSYS;
        return SIG_ERR;
    }
    return hidden((*function)(number, handler));
}

SHIM_EXPORT sighandler_t signal(int number, sighandler_t handler)
{
    return set_handler(&real.signal, number, handler);
}

SHIM_EXPORT sighandler_t ssignal(int number, sighandler_t handler)
{
    return set_handler(&real.signal, number, handler);
}

SHIM_EXPORT sighandler_t bsd_signal(int number, sighandler_t handler)
{
    return set_handler(&real.bsd_signal, number, handler);
}

SHIM_EXPORT sighandler_t sysv_signal(int number, sighandler_t handler)
{
    return set_handler(&real.sysv_signal, number, handler);
}

SHIM_EXPORT sighandler_t __sysv_signal(int number, sighandler_t handler)
{
    return set_handler(&real.sysv_signal, number, handler);
}

SHIM_EXPORT sighandler_t sigset(int number, sighandler_t handler)
{
    return set_handler(&real.sigset, number, handler);
}
