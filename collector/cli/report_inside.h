/* SPDX-License-Identifier: Apache-2.0 */
/* What a trace discloses: `vramscope report --what-is-inside`, and what pack shows before it is
 * sent. */
#ifndef VS_CLI_REPORT_INSIDE_H
#define VS_CLI_REPORT_INSIDE_H

#include <stdbool.h>
#include <stdio.h>

/* `name`: what the file is called there. `full`: all values, not a few. False with a line on
 * stderr. */
bool report_print_inside(FILE *out, const char *path, const char *name, bool full);

#endif
