/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The traced command as a child of `vramscope run`: started in the foreground
 * with the caller's own signal state, waited for without being reaped, its end
 * passed on exactly.
 */
#ifndef VS_CLI_RUN_CHILD_H
#define VS_CLI_RUN_CHILD_H

#include <stdint.h>
#include <sys/types.h>

/* Exit statuses of env(1) for a command that could not be started. */
enum { RUN_NOT_EXECUTABLE = 126, RUN_NOT_FOUND = 127 };

/*
 * Starts `argv` and waits until it is dead; it stays a zombie, so that its
 * collector can read how it ended. Signals sent to us alone are passed on; those
 * of the terminal reach it anyway. `every_second` is called about once a second
 * meanwhile. Returns 0 and the pid, or the negative errno value of the exec.
 */
int run_child(char **argv, pid_t *pid, void (*every_second)(void *context, pid_t pid),
              void *context);

/* Reaps the zombie. Returns its wait status. */
int run_child_reap(pid_t pid);

/* Ends this process as the wait status says: same exit status, or same signal, without a core. */
_Noreturn void run_child_end_like(int status);

#endif
