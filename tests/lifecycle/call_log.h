/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of the programs that call every hooked entry point: after each call its
 * name, its result, the time and what the simulated device itself says is used on
 * each device. test_driver.py holds the trace against it.
 */
#ifndef LIFECYCLE_CALL_LOG_H
#define LIFECYCLE_CALL_LOG_H

#include <stdint.h>

enum { CALL_LOG_DEVICES = 2 };

/* Opens the log; `devices` whose use is noted after each call. */
void call_log_open(const char *path, int devices);
/* Notes one call that has returned, and returns its result. */
int call_logged(const char *name, int result);
/* Calls by name, with zeros, every name in the list that was not called yet. */
void call_log_touch_rest(int count, char **names);
void call_log_close(void);

/* The two scenarios. */
void calls_driver(int through_proc_address);
void calls_runtime(void);

#endif
