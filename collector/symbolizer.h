/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names while the program runs: what stacks lead to is asked of
 * vramscope-symbolizer by a thread of its own, at the lowest priority, so that
 * draining never waits for it. Names go into the trace as they come, because the
 * collector may die with the program.
 */
#ifndef VS_COLLECTOR_SYMBOLIZER_H
#define VS_COLLECTOR_SYMBOLIZER_H

#include <jansson.h>
#include <stdbool.h>

#include "write.h"

struct symbolizer;

/* `hide`: paths are hashed before they reach the file. NULL without memory. */
struct symbolizer *symbolizer_new(struct output *output, bool hide);

void symbolizer_module(struct symbolizer *symbolizer, const struct vs_module_def *module);
void symbolizer_stack(struct symbolizer *symbolizer, const struct vs_stack_def *stack);

/* Hands the names that have come to the output. True when there were some. */
bool symbolizer_take(struct symbolizer *symbolizer);

/* Waits for the outstanding names, at most so long, and hands them to the output. */
void symbolizer_settle(struct symbolizer *symbolizer, unsigned most_ms);

/* The "symbols" facts (docs/format.md §8); NULL when nothing was asked yet. */
json_t *symbolizer_json(struct symbolizer *symbolizer);

/* Ends the thread and the process it asks; bounded. The process is about to end after it. */
void symbolizer_stop(struct symbolizer *symbolizer);

#endif
