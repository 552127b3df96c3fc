/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one consumer of the ring (formats/ring.h). It takes whole records in the
 * order of their reservation and never passes a cell that may still be written:
 * a producer that was stalled and wakes would overwrite its successor. A record
 * is passed unread only when nobody can write it any more (the process is dead,
 * or that thread is gone), and then counted as torn.
 *
 * The ring is written by a process that must not be trusted: every word is read
 * once, checked, and used from the copy.
 */
#ifndef VS_COLLECTOR_DRAIN_H
#define VS_COLLECTOR_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "../formats/ring.h"

#define DRAIN_BODY_MAX (VS_CELL_FIRST_BODY + (VS_RECORD_MAX_CELLS - 1) * VS_CELL_NEXT_BODY)

/* Thread id of records that the collector itself put into the ring. */
#define DRAIN_OWN_THREAD 0U

enum drain_result {
    DRAIN_EMPTY,   /* nothing reserved beyond what was taken */
    DRAIN_BLOCKED, /* the next record is reserved but not committed, and may still be */
    DRAIN_RECORD,  /* `out` holds a record */
    DRAIN_TORN     /* `out` holds only place, cells and thread of a record passed over */
};

struct drain_record {
    uint64_t sequence;
    uint32_t cells;
    uint32_t thread;
    uint32_t body_bytes;
    _Alignas(8) uint8_t body[DRAIN_BODY_MAX];
};

/* True when no thread `thread` exists any more. Called for a blocked record only. */
typedef bool drain_thread_gone(void *context, uint32_t thread);

struct drain {
    struct vs_ring_header *header;
    union vs_cell *cells;
    uint64_t cell_count; /* power of two */
    uint32_t shift;
    uint64_t position;              /* of the next record to take */
    uint64_t released;              /* what `tail` was last set to */
    bool process_dead;              /* set by the owner: no producer is left */
    drain_thread_gone *thread_gone; /* NULL: never assume a thread gone */
    void *thread_gone_context;
    uint64_t torn_records;
    uint64_t torn_cells;
};

/*
 * Checks a mapped ring of `mapped_bytes` and sets up its consumer at the ring's
 * tail. Returns 0, or -EINVAL when the header makes no sense.
 */
int drain_open(struct drain *drain, void *ring, uint64_t mapped_bytes);

/* Takes the next record. Its room stays taken until drain_release. */
enum drain_result drain_next(struct drain *drain, struct drain_record *out);

/* Gives the room of everything taken so far back to the producers. `now_ns`: CLOCK_MONOTONIC. */
void drain_release(struct drain *drain, uint64_t now_ns);

/* Cells reserved and not yet taken. */
uint64_t drain_backlog(const struct drain *drain);

/*
 * Puts an event of the collector's own into the order, as a producer would;
 * drain_next returns it in its place. Returns 0, or -EAGAIN when the ring has no
 * room: nothing was done.
 */
int drain_inject(struct drain *drain, const struct vs_event *event);

#endif
