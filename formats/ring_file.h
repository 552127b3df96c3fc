/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring that was left over beside a trace (VRAMSCOPE_RING_AT=file, target and
 * collector killed together): its committed records behind the trace's last
 * event, and what its counters say that no event of the trace has told.
 */
#ifndef VS_FORMATS_RING_FILE_H
#define VS_FORMATS_RING_FILE_H

#include "ring.h"
#include "trace_definitions.h"
#include "trace_source.h"

#define VS_RING_FILE_SUFFIX ".ring" /* behind the trace's own name */

struct vs_ring_loss {
    uint64_t events, bytes;
};

struct vs_ring_file {
    struct vs_source source;
    uint32_t pid;
    uint64_t start_monotonic_ns;
    uint64_t cell_count;
    uint32_t cell_shift;
    uint64_t head, tail, drained; /* positions, as of opening */
    uint32_t end_kind;            /* enum vs_end; 0 when told by the trace */
    int32_t end_value;
    uint64_t end_ns;
    uint64_t last_time_ns;
    struct vs_ring_loss loss[VS_LOSS_CAUSES][VS_RING_DEVICES][VS_RING_LOSS_KINDS];

    struct vs_sequenced_event *events;
    size_t count, capacity;
    uint64_t skipped_cells; /* between `from` and the oldest record still there */
};

/* 0; -EINVAL when it is no ring of this version; a system error. Large: allocate it. */
int vs_ring_file_open(const char *path, struct vs_ring_file *ring);
void vs_ring_file_close(struct vs_ring_file *ring);

/*
 * Takes all committed records from position `from` on (0: the oldest there is):
 * definitions into `set`, events into `ring->events`; unfinished ones as TORN.
 */
int vs_ring_file_read(struct vs_ring_file *ring, uint64_t from, struct vs_definitions *set);

/* True when the counters or the end mark may hold something the trace has not told. */
bool vs_ring_file_has_counters(const struct vs_ring_file *ring);
/* An event of the trace: takes what it tells (LOSS, PROCESS_END) off the counters. */
void vs_ring_file_told(struct vs_ring_file *ring, const struct vs_event *event);
/* Appends LOSS and PROCESS_END events for what is left of the counters. 0 or -ENOMEM. */
int vs_ring_file_rest(struct vs_ring_file *ring);

#endif
