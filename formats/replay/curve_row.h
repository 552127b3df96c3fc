/* SPDX-License-Identifier: Apache-2.0 */
/* One row of the curves of a device: the columns of `timeline` and of the exports' samples. */
#ifndef VS_REPLAY_CURVE_ROW_H
#define VS_REPLAY_CURVE_ROW_H

#include "free_blocks.h"

enum { VS_CURVE_COLUMNS = 19 };
/* In bytes all of them; docs/numbers.md says what each means. */
extern const char *const vs_curve_columns[VS_CURVE_COLUMNS];

struct vs_curve_row {
    int64_t value[VS_CURVE_COLUMNS]; /* bytes */
    bool known[VS_CURVE_COLUMNS];
};

/* Fills `row` from a device's bands; NULL: nothing of it is known. */
void vs_curve_row(struct vs_free_blocks *free_blocks, const struct vs_state *state,
                  const struct vs_device_state *device, const struct vs_bands *bands,
                  struct vs_curve_row *row);

#endif
