/* SPDX-License-Identifier: Apache-2.0 */
/* Times and sizes as people type them. */
#ifndef VS_CLI_TIME_SIZE_H
#define VS_CLI_TIME_SIZE_H

#include <stdbool.h>
#include <stdint.h>

/* "12.5" (seconds), "300ms", "-2": nanoseconds. False when it is none. */
bool time_of_text(const char *text, int64_t *time_ns);
/*
 * What --from or --to of a command takes; `text` NULL: it was not given. False with a line on
 * stderr when it is no time.
 */
bool take_bound(const char *command, const char *option, const char *text, bool *given,
                int64_t *time_ns);
/* "64K", "20M", "1.5G", "4096": bytes. False when it is none. */
bool size_of_text(const char *text, int64_t *bytes);

#endif
