/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the chunks of a trace, whole or damaged (docs/format.md §8): hops from
 * header to header, looks for the next one where that fails, follows the slots
 * of a circular file; then decides which chunk speaks for which events.
 */
#ifndef VS_FORMATS_TRACE_RECOVERY_H
#define VS_FORMATS_TRACE_RECOVERY_H

#include "trace.h"
#include "trace_chunk.h"
#include "trace_source.h"

struct vs_chunk_ref {
    uint64_t offset;
    struct vs_chunk_header header;
    bool bad; /* its checksum holds but it does not decode: found later */
};

struct vs_index {
    struct vs_chunk_ref *refs; /* sound chunks of known types, in write order */
    size_t count, capacity;
    uint32_t version;
    bool circular;
    bool has_end;
    uint64_t cut_at;       /* linear, cut inside a chunk: where the last whole one ends; else 0 */
    uint64_t end_index;    /* events of the whole trace, from END */
    uint64_t end_sequence; /* position behind the last event, from END */
    uint16_t unsupported_type; /* a critical chunk type nobody here knows */
};

/*
 * 0; -EINVAL not a trace (nothing of ours in it); -ENOTSUP a later version or a
 * critical chunk (`version`, `unsupported_type` say which); -ENOMEM; a read
 * error. Fills the file's part of `status`.
 */
int vs_index_build(struct vs_source *source, struct vs_index *index,
                   struct vs_trace_status *status);
void vs_index_free(struct vs_index *index);

/* Events [first, end) by index come from chunk `ref`. */
struct vs_segment {
    uint64_t first, end;
    size_t ref;
};

struct vs_plan {
    struct vs_segment *segments; /* increasing, disjoint */
    size_t count, capacity;
};

/*
 * For every event index covered by at least one EVENTS chunk that is not bad,
 * the longest chunk covering it; of equally long ones, the one written last.
 * 0 or -ENOMEM.
 */
int vs_plan_build(const struct vs_index *index, struct vs_plan *plan);
/* Takes away events from index `end` on. */
void vs_plan_end(struct vs_plan *plan, uint64_t end);
void vs_plan_free(struct vs_plan *plan);

#endif
