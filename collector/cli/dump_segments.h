/* SPDX-License-Identifier: Apache-2.0 */
/* vramscope dump --segments-at: a framework's segments and blocks at given moments. */
#ifndef VS_CLI_DUMP_SEGMENTS_H
#define VS_CLI_DUMP_SEGMENTS_H

#include <stdbool.h>

#include "trace.h"

/*
 * Prints them at `when`: "peak", "end", or the marks whose text matches the pattern.
 * Returns the number of moments printed, or a negative errno value.
 */
long dump_segments(struct vs_reader *reader, const char *when, bool json);

#endif
