/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the commands that read one trace share: opening it, and the one line about
 * what is wrong with it.
 */
#ifndef VS_CLI_TRACE_ARGUMENT_H
#define VS_CLI_TRACE_ARGUMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "arguments.h"
#include "replay/summary.h"

/* Reads a trace or prints one line and returns NULL. */
struct vs_summary *load_trace(const char *path, vs_timeline_row *row, void *row_self);

/* One line on stderr when not all of the file could be read. True then. */
bool tell_damage(const char *path, const struct vs_trace_status *status, int read_error);

/* Flushes stdout; one line on stderr when what was printed did not arrive. Returns `status` or 1;
 * once it was said, a second call has nothing to say. */
int finish_output(int status);

#endif
