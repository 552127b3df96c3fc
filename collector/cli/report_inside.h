/* SPDX-License-Identifier: Apache-2.0 */
/* What a trace discloses: `vramscope report --what-is-inside`, and what pack shows before it is
 * sent. */
#ifndef VS_CLI_REPORT_INSIDE_H
#define VS_CLI_REPORT_INSIDE_H

#include <stdbool.h>
#include <stdio.h>

/*
 * `name`: what the file is called there. `full`: all values, not a few. `whole` (may be NULL):
 * false with a line on stderr when not all of it could be read. False with a line on stderr when
 * nothing.
 */
bool report_print_inside(FILE *out, const char *path, const char *name, bool full, bool *whole);

#endif
