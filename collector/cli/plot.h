/* SPDX-License-Identifier: Apache-2.0 */
/* Curves drawn with characters. */
#ifndef VS_CLI_PLOT_H
#define VS_CLI_PLOT_H

#include <stdio.h>

#include "replay/summary.h"

/* Draws every device's curves, `width` columns wide. */
void plot_timeline(FILE *out, const struct vs_summary *summary, int width);

#endif
