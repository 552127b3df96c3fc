/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The producers' side of formats/ring.h, beyond what shim.h offers the hooks.
 */
#ifndef VS_SHIM_RING_PRODUCER_H
#define VS_SHIM_RING_PRODUCER_H

#include "../formats/ring.h"
#include "shim.h"

/* Sets every field of a zeroed header that producers and consumer rely on. */
void ring_initialize(struct vs_ring_header *ring, uint64_t cell_count, uint32_t pid);
/* Cells for a ring of about `bytes`: a power of two, RING_MIN_CELLS at least. */
uint64_t ring_cells_for(uint64_t bytes);
uint64_t ring_bytes_for(uint64_t cell_count);

/* Wakes the consumer if it sleeps. One system call then, none otherwise. */
void ring_wake_consumer(struct vs_ring_header *ring);
/* Asks the consumer to write everything up to here. */
void ring_request_flush(struct vs_ring_header *ring);
/*
 * Waits until everything reserved before the call is in the file. False when
 * `longest_ns` went by, or when the consumer has failed or ended.
 */
bool ring_wait_drained(struct vs_ring_header *ring, uint64_t longest_ns);

/* Adds to the counters of what was lost. `device` as in struct vs_event. */
void ring_count_loss(struct vs_ring_header *ring, enum vs_loss_cause cause, int device,
                     unsigned kind, uint64_t events, uint64_t bytes);

/* FUTEX_WAIT / FUTEX_WAKE on a word shared between processes. */
void ring_futex_wait(_Atomic uint32_t *word, uint32_t seen, uint64_t longest_ns);
void ring_futex_wake(_Atomic uint32_t *word);

#ifdef VS_TEST_POINTS
/* Where a test may stop a producer. Set by the test; called with the record's position. */
enum ring_test_point { RING_RESERVED, RING_CLAIMED, RING_BODY_WRITTEN };
extern void (*ring_test_point)(enum ring_test_point where, uint64_t position);
#endif

#endif
