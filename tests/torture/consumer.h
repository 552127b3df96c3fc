/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The consumer's side of formats/ring.h, written from that text alone: what the
 * tests drain a ring with, in a thread or as a stand-in for the collector. It
 * checks more than a collector needs to: every stamp of every cell.
 */
#ifndef VS_TESTS_TORTURE_CONSUMER_H
#define VS_TESTS_TORTURE_CONSUMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../formats/ring.h"

struct consumer;

/* One record: its bytes (cells joined) and place. Called in the order of positions. */
typedef void consumer_record(struct consumer *consumer, uint64_t position, uint32_t thread,
                             uint32_t cells, const unsigned char *body, size_t bytes);

struct consumer {
    struct vs_ring_header *ring;
    consumer_record *on_record;
    void *context;
    bool (*thread_is_gone)(uint32_t thread); /* NULL: none ever is */
    bool process_is_dead;
    uint64_t records;
    uint64_t events; /* of `records`, those of two cells */
    uint64_t torn;   /* records passed over */
    uint64_t faults; /* stamps that contradict ring.h */
};

/* Takes everything that may be taken now, moves tail, wakes waiters. Returns records taken. */
uint64_t consumer_drain(struct consumer *consumer);
/* Sleeps until a producer wakes us, at most that long. */
void consumer_sleep(struct consumer *consumer, uint64_t longest_ns);
/* Says that everything below tail is in the file. */
void consumer_written(struct consumer *consumer);

#endif
