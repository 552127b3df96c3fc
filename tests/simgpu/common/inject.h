/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failures and delays that a test asks for: SIMGPU_FAIL ("CALL:WHEN:ERROR,…") and SIMGPU_DELAY
 * ("CALL:DURATION,…", "events:DURATION"). Calls are counted over one process. Used by the driver
 * for cu* names and by the runtime for cuda* names.
 */
#ifndef SIMGPU_COMMON_INJECT_H
#define SIMGPU_COMMON_INJECT_H

#include <stddef.h>
#include <stdint.h>

/* Turns an error's name without prefix ("out_of_memory") into its number, or -1. */
typedef int (*simgpu_error_number)(const char *name);

/* Reads both variables; rules for calls whose name does not start with PREFIX ("cuda", or "cu" for
 * names that are not "cuda…") are left to the other library. Errors are reported on stderr. */
void simgpu_inject_init(const char *prefix, simgpu_error_number number);

/* True when any rule exists: the only cost of a program without injection. */
extern int simgpu_inject_active;

/* Counts one call of NAME (base name, no _v2 / _ptsz) asking for BYTES (0: no size); sleeps its
 * delay, and returns the error to fail with, or 0. */
int simgpu_inject_call(const char *name, uint64_t bytes);

/* Time until a recorded event completes. */
uint64_t simgpu_inject_event_delay_ns(void);

#endif
