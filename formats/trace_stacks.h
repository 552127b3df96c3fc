/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks of a trace. There may be ten millions of them, so they stay packed
 * in the file: known here is which chunk defines which id (12 bytes a stack),
 * and the chunks asked for last are kept unpacked, up to a bound.
 */
#ifndef VS_FORMATS_TRACE_STACKS_H
#define VS_FORMATS_TRACE_STACKS_H

#include "trace.h"
#include "trace_chunk.h"
#include "trace_recovery.h"
#include "trace_source.h"
#include "trace_table.h"

struct vs_stacks;

/* Keeps both, which are used in turn with the reader. NULL: no memory. */
struct vs_stacks *vs_stacks_new(struct vs_source *source, struct vs_unpacker *unpacker);
void vs_stacks_free(struct vs_stacks *stacks);

/*
 * The raw payload of a chunk, checked again: since the file was indexed a
 * recorder may have written over it. Valid until the unpacker is used again.
 */
int vs_chunk_payload(struct vs_source *source, struct vs_unpacker *unpacker,
                     const struct vs_chunk_ref *ref, const uint8_t **raw);

/*
 * Notes what a chunk defines; chunks come in write order, a later one replaces.
 * All of its rows are looked at: 0, -EBADMSG, -ENOTSUP or -ENOMEM; with
 * -EBADMSG the good rows stay.
 */
int vs_stacks_take_chunk(struct vs_stacks *stacks, const struct vs_chunk_ref *ref,
                         const uint8_t *payload);
/* After the last chunk. */
void vs_stacks_ready(struct vs_stacks *stacks);

/* Valid until the next call. NULL: not defined, or its chunk can no longer be read. */
const struct vs_stack_def *vs_stacks_find(struct vs_stacks *stacks, uint32_t id);

size_t vs_stacks_count(const struct vs_stacks *stacks);
/* The id at a place in the order of ids. */
uint32_t vs_stacks_id(const struct vs_stacks *stacks, size_t index);

#endif
