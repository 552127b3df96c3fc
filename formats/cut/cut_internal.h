/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the cut know of each other. */
#ifndef VS_FORMATS_CUT_INTERNAL_H
#define VS_FORMATS_CUT_INTERNAL_H

#include "cut.h"

/* Requests that fail one soon after the other are one moment. */
enum { VS_CUT_NEAR = 32 };

/* Events [first, end). */
struct vs_cut_window {
    uint64_t first, end;
};

struct vs_cut {
    const char *path;
    struct vs_reader *reader;
    uint64_t events;
    /* A bit for each event, in the order of reading. */
    uint8_t *stays; /* look.c: it does more than to make or to free a block, or than nothing */
    uint8_t *out;   /* gaps.c: taken out */
    /* look.c: events that matter, increasing. */
    uint64_t *points;
    size_t point_count, point_room;
    /* look.c: gaps that the trace came with, increasing; what is in them stays as it is. */
    struct vs_cut_window *old;
    size_t old_count, old_room;
    struct vs_cut_window kept; /* look.c: all of it stays, too */
    /* gaps.c */
    struct vs_cut_gap *gaps;
    size_t gap_count, gap_room;
    uint64_t taken_out;
    uint64_t written; /* cut.c: events passed the last time; not all when it became too large */
};

static inline bool cut_bit(const uint8_t *bits, uint64_t at)
{
    return (bits[at / 8] >> (at % 8) & 1) != 0;
}

static inline void cut_set(uint8_t *bits, uint64_t at, bool value)
{
    uint8_t bit = (uint8_t)(1U << (at % 8));
    bits[at / 8] = (uint8_t)(value ? bits[at / 8] | bit : bits[at / 8] & ~bit);
}

/* look.c: reads the trace once, for what matters in it and which events must stay. */
int cut_look(struct vs_cut *cut);

/* gaps.c: how many events lie in windows of `radius`. */
uint64_t cut_covered(const struct vs_cut *cut, uint64_t radius);

/* gaps.c: lays the gaps between windows of `radius`, and decides what is taken out of them. */
int cut_lay_gaps(struct vs_cut *cut, uint64_t radius);

/* used.c: the definitions that what stays refers to, written once each. */
struct vs_cut_used;
struct vs_cut_used *cut_used_new(const struct vs_reader *reader, struct vs_writer *writer);
void cut_used_free(struct vs_cut_used *used);
/* Devices and facts about the process, which belong to no event. `whole`: the trace is. */
int cut_used_facts(struct vs_cut_used *used, const char *path, bool whole);
/* What an event refers to; its stack is written with the next call of the function below. */
int cut_used_event(struct vs_cut_used *used, const struct vs_sequenced_event *event);
int cut_used_stacks(struct vs_cut_used *used);

#endif
