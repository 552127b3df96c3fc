/* SPDX-License-Identifier: Apache-2.0 */
/* vramscope dump --stacks: the merged frames of events, as text and as JSON. */
#ifndef VS_CLI_DUMP_STACKS_H
#define VS_CLI_DUMP_STACKS_H

#include "frames.h"
#include "trace.h"

struct dump_stacks;

/* Keeps `reader`. 0 or -ENOMEM. */
int dump_stacks_new(const struct vs_reader *reader, struct dump_stacks **out);
void dump_stacks_free(struct dump_stacks *stacks);

/* The frames of a stack id below the event's line, innermost first. 0 or -ENOMEM. */
int dump_stacks_text(struct dump_stacks *stacks, uint32_t stack);
/* One object {"stack":id,"frames":[…]} a line, the first time an id is met. 0 or -ENOMEM. */
int dump_stacks_json(struct dump_stacks *stacks, uint32_t stack);

#endif
