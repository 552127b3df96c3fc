/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the process ends. In a container's end the collector dies with it, so
 * each end that can be seen coming is recorded and waited for, a bounded time:
 * exit and return from main (on_exit has the status, and registered before
 * main began it runs behind every other handler and destructor), _exit, _Exit, quick_exit, abort,
 * exec*.
 *
 * A vfork child shares our memory and may call any of them: it is told from the
 * recorded process by its pid.
 */
#include <alloca.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "lifecycle.h"
#include "real_dl.h"
#include "ring_producer.h"
#include "sys.h"

#define NS_PER_MS 1000000ULL

extern char **environ;

static struct {
    void (*quick_exit)(int) __attribute__((noreturn));
    void (*abort)(void) __attribute__((noreturn));
    int (*execve)(const char *, char *const[], char *const[]);
    int (*execv)(const char *, char *const[]);
    int (*execvp)(const char *, char *const[]);
    int (*execvpe)(const char *, char *const[], char *const[]);
    int (*fexecve)(int, char *const[], char *const[]);
} process_end;

/* Fills a function pointer of any type with the next definition of `name`. */
static void resolve(void *pointer, const char *name)
{
    *(void **)pointer = real_next(name);
}

static void on_normal_exit(int status, void *unused)
{
    (void)unused;
    process_end_record(VS_END_EXIT, status & 0xff);
}

void process_end_resolve(void)
{
    resolve(&process_end.quick_exit, "quick_exit");
    resolve(&process_end.abort, "abort");
    resolve(&process_end.execve, "execve");
    resolve(&process_end.execv, "execv");
    resolve(&process_end.execvp, "execvp");
    resolve(&process_end.execvpe, "execvpe");
    resolve(&process_end.fexecve, "fexecve");
    if (!shim_config.disabled) {
        on_exit(on_normal_exit, NULL);
    }
}

/* ---- recording it ----------------------------------------------------------- */

void process_end_flush(void)
{
    if (shim_config.exit_wait_ms != 0) {
        ring_wait_drained(lifecycle_ring, shim_config.exit_wait_ms * NS_PER_MS);
    }
    lifecycle_print_messages();
}

static void set_end(enum vs_end kind, int value)
{
    atomic_store(&lifecycle_ring->end_value, value);
    atomic_store(&lifecycle_ring->end_ns, shim_now_ns());
    /* Last: who sees the kind finds the rest. */
    atomic_store(&lifecycle_ring->end_kind, kind);
}

static uint64_t emit_end(enum vs_end kind, int value)
{
    struct vs_event event = {.kind = VS_KIND_PROCESS_END,
                             .handle = kind,
                             .size = (uint64_t)(int64_t)value,
                             .device = VS_DEVICE_UNKNOWN,
                             .free_bytes = VS_FREE_UNKNOWN};
    return shim_emit(&event);
}

void process_end_record(uint32_t kind, int value)
{
    if (!lifecycle_is_recorded_process() || atomic_exchange(&lifecycle_page->ended, 1) != 0) {
        return;
    }
    int saved_errno = errno;
    set_end(kind, value);
    emit_end(kind, value);
    process_end_flush();
    errno = saved_errno;
}

/* ---- _exit and its kin ------------------------------------------------------- */

static void leave(int status) __attribute__((noreturn));
static void leave(int status)
{
    process_end_record(VS_END_EXIT, status & 0xff);
    for (;;) {
        sys_call1(SYS_exit_group, status);
    }
}

SHIM_EXPORT void _exit(int status)
{
    leave(status);
}

SHIM_EXPORT void _Exit(int status)
{
    leave(status);
}

/* Its handlers run after the end is recorded; what they free is recorded still. */
SHIM_EXPORT void quick_exit(int status)
{
    process_end_record(VS_END_EXIT, status & 0xff);
    if (process_end.quick_exit != NULL) {
        process_end.quick_exit(status);
    }
    leave(status);
}

/*
 * Whether it is the end is up to the program's handler of SIGABRT, if it has
 * one; where it has none, fatal_signals.c records the end.
 */
SHIM_EXPORT void abort(void)
{
    if (lifecycle_is_recorded_process() && atomic_load(&lifecycle_page->ended) == 0) {
        process_end_flush();
    }
    if (process_end.abort != NULL) {
        process_end.abort();
    }
    raise(SIGABRT);
    leave(128 + SIGABRT);
}

/* ---- exec -------------------------------------------------------------------- */

/* The new image is another program. Returns the end's sequence for exec_failed(), 0 if none. */
static uint64_t exec_begins(void)
{
    uint64_t sequence = 0;
    if (lifecycle_is_recorded_process() && atomic_load(&lifecycle_page->ended) == 0) {
        int saved_errno = errno;
        set_end(VS_END_EXEC, 0);
        sequence = emit_end(VS_END_EXEC, 0);
        process_end_flush();
        errno = saved_errno;
    }
    return sequence;
}

/* It returned: nothing ended. */
static int exec_failed(uint64_t sequence, int result)
{
    if (!lifecycle_is_recorded_process() || atomic_load(&lifecycle_page->ended) != 0 ||
        atomic_load(&lifecycle_ring->end_kind) != VS_END_EXEC) {
        return result;
    }
    int saved_errno = errno;
    atomic_store(&lifecycle_ring->end_kind, VS_END_UNKNOWN);
    atomic_store(&lifecycle_ring->end_ns, 0);
    if (sequence != 0) {
        struct vs_event event = {.kind = VS_KIND_UNDO,
                                 .handle = sequence,
                                 .result = saved_errno,
                                 .device = VS_DEVICE_UNKNOWN,
                                 .free_bytes = VS_FREE_UNKNOWN};
        shim_emit(&event);
    }
    errno = saved_errno;
    return result;
}

static int fail_with(long status)
{
    errno = (int)-status;
    return -1;
}

SHIM_EXPORT int execve(const char *path, char *const arguments[], char *const environment[])
{
    uint64_t sequence = exec_begins();
    int result = process_end.execve != NULL
                     ? process_end.execve(path, arguments, environment)
                     : fail_with(sys_call3(SYS_execve, path, arguments, environment));
    return exec_failed(sequence, result);
}

SHIM_EXPORT int execv(const char *path, char *const arguments[])
{
    uint64_t sequence = exec_begins();
    int result = process_end.execv != NULL
                     ? process_end.execv(path, arguments)
                     : fail_with(sys_call3(SYS_execve, path, arguments, environ));
    return exec_failed(sequence, result);
}

/* Before our constructor there is no search along PATH, and nobody who would exec. */
SHIM_EXPORT int execvp(const char *file, char *const arguments[])
{
    uint64_t sequence = exec_begins();
    int result =
        process_end.execvp != NULL ? process_end.execvp(file, arguments) : fail_with(-ENOSYS);
    return exec_failed(sequence, result);
}

SHIM_EXPORT int execvpe(const char *file, char *const arguments[], char *const environment[])
{
    uint64_t sequence = exec_begins();
    int result = process_end.execvpe != NULL ? process_end.execvpe(file, arguments, environment)
                                             : fail_with(-ENOSYS);
    return exec_failed(sequence, result);
}

SHIM_EXPORT int fexecve(int descriptor, char *const arguments[], char *const environment[])
{
    uint64_t sequence = exec_begins();
    int result = process_end.fexecve != NULL
                     ? process_end.fexecve(descriptor, arguments, environment)
                     : fail_with(-ENOSYS);
    return exec_failed(sequence, result);
}

/* Newer than the oldest libc we run on, so by system call. */
SHIM_EXPORT int execveat(int folder, const char *path, char *const arguments[],
                         char *const environment[], int flags)
{
    uint64_t sequence = exec_begins();
    long status =
        sys_call6(SYS_execveat, folder, (long)path, (long)arguments, (long)environment, flags, 0);
    return exec_failed(sequence, fail_with(status));
}

/* The arguments of execl and its kin, on the caller's stack: these functions may follow a fork. */
static size_t count_arguments(const char *first, va_list list)
{
    size_t count = first != NULL;
    while (first != NULL && va_arg(list, const char *) != NULL) {
        count++;
    }
    return count;
}

static void copy_arguments(const char **arguments, size_t count, const char *first, va_list list)
{
    arguments[0] = first;
    for (size_t i = 1; i <= count; i++) {
        arguments[i] = va_arg(list, const char *);
    }
}

/* Declares `arguments`, and `list` that stands behind them. */
#define COLLECT_ARGUMENTS(arguments, list, first)                               \
    va_list list;                                                               \
    va_start(list, first);                                                      \
    size_t argument_count = count_arguments(first, list);                       \
    va_end(list);                                                               \
    const char **arguments = alloca((argument_count + 1) * sizeof(*arguments)); \
    va_start(list, first);                                                      \
    copy_arguments(arguments, argument_count, first, list)

SHIM_EXPORT int execl(const char *path, const char *first, ...)
{
    COLLECT_ARGUMENTS(arguments, list, first);
    va_end(list);
    return execv(path, (char *const *)arguments);
}

SHIM_EXPORT int execlp(const char *file, const char *first, ...)
{
    COLLECT_ARGUMENTS(arguments, list, first);
    va_end(list);
    return execvp(file, (char *const *)arguments);
}

SHIM_EXPORT int execle(const char *path, const char *first, ...)
{
    COLLECT_ARGUMENTS(arguments, list, first);
    char *const *environment = va_arg(list, char *const *);
    va_end(list);
    return execve(path, (char *const *)arguments, environment);
}
