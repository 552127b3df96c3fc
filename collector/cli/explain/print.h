/* SPDX-License-Identifier: Apache-2.0 */
/* The two outputs of `vramscope explain`. */
#ifndef VS_EXPLAIN_PRINT_H
#define VS_EXPLAIN_PRINT_H

#include <stdio.h>

#include "verdict.h"

/* The page for people: the verdict first. */
void verdict_print_page(FILE *out, const struct verdict *verdict);
/* Schema "vramscope-explain/1". False if it could not be written. */
bool verdict_print_json(FILE *out, const struct verdict *verdict);

#endif
