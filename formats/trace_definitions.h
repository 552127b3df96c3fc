/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a reader knows of the ids in events: filled from definition chunks (and
 * from a left-over ring), asked by id. Later definitions replace earlier ones;
 * pointers handed out stay valid until the set is freed.
 */
#ifndef VS_FORMATS_TRACE_DEFINITIONS_H
#define VS_FORMATS_TRACE_DEFINITIONS_H

#include "trace.h"
#include "trace_table.h"

struct vs_definitions;

struct vs_definitions *vs_definitions_new(void);
void vs_definitions_free(struct vs_definitions *set);

/* All rows of a definition chunk. 0, -EBADMSG, -ENOTSUP or -ENOMEM; the good rows stay. */
int vs_definitions_take_chunk(struct vs_definitions *set, const struct vs_table_shape *shape,
                              const uint8_t *payload, size_t bytes, size_t rows);
/* One row, as `chunk_type` has it. 0, -EBADMSG (a value its field cannot hold) or -ENOMEM. */
int vs_definitions_take(struct vs_definitions *set, uint16_t chunk_type,
                        const struct vs_table_row *row);

const char *vs_definitions_string(const struct vs_definitions *set, uint32_t id);
const struct vs_thread_def *vs_definitions_thread(const struct vs_definitions *set, uint32_t id);
const struct vs_module_def *vs_definitions_module(const struct vs_definitions *set, uint32_t id);
/* Stacks taken row by row; those of chunks are trace_stacks.c's. */
const struct vs_stack_def *vs_definitions_stack(const struct vs_definitions *set, uint32_t id);
const struct vs_code_def *vs_definitions_code(const struct vs_definitions *set, uint32_t id);
const struct vs_module_def *vs_definitions_module_at(struct vs_definitions *set, uint64_t address,
                                                     uint32_t generation);
/* All modules, in order of their start; NULL behind the last. */
size_t vs_definitions_module_count(struct vs_definitions *set);
const struct vs_module_def *vs_definitions_module_number(struct vs_definitions *set, size_t index);
const struct vs_symbol_def *vs_definitions_symbol(const struct vs_definitions *set, uint32_t module,
                                                  uint64_t address);
size_t vs_definitions_device_count(const struct vs_definitions *set);
const struct vs_device_def *vs_definitions_device(const struct vs_definitions *set, size_t index);
/* Merged JSON text, NULL when there is none. */
const char *vs_definitions_meta(struct vs_definitions *set, const char *name);

#endif
