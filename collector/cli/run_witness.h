/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells a signal sent to `vramscope run` alone, which must be passed on, from
 * one sent to its whole process group or job step, which the command has got
 * already: a handler that saves a checkpoint or requeues a job must not run
 * twice. The kernel does not say which it was, so a small process in the same
 * group listens for the same signals.
 */
#ifndef VS_CLI_RUN_WITNESS_H
#define VS_CLI_RUN_WITNESS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct run_witness {
    pid_t pid; /* 0: there is none, and every signal counts as sent to us alone */
    int reports;
};

/* Starts it, with `signals` blocked in the caller. Without a process to spare there is none. */
void run_witness_start(struct run_witness *witness, const sigset_t *signals);

/* True when the witness got the signal `number`, too, at the time that we did (now). Takes up to 30
 * ms. */
bool run_witness_saw(const struct run_witness *witness, int number);

void run_witness_stop(struct run_witness *witness);

#endif
