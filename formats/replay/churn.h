/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that goes back to the driver and is asked for again: segments that a cache
 * gives back in rounds (`empty_cache` in a loop), and what the program itself
 * allocates and frees over and over, with the time that takes.
 */
#ifndef VS_REPLAY_CHURN_H
#define VS_REPLAY_CHURN_H

#include "growth.h"

enum { VS_RELEASES_KEPT = 256 /* places */ };

/*
 * A round: segments given back without one asked for in between. Rounds inside a
 * request that the driver had refused are the cache's own, and not counted.
 */
struct vs_release {
    uint32_t site;                        /* of the first call of its first round; its device */
    uint64_t rounds, again_rounds;        /* after which half of it or more was asked for again */
    uint64_t segments;                    /* given back */
    int64_t bytes, again_bytes;           /* given back; of it, asked for again */
    uint64_t calls, timed_calls, time_ns; /* of both; of calls of which it is known */
    uint32_t first_tick, last_tick;
};

/* What a site's own calls took. */
struct vs_call_cost {
    uint64_t allocs, frees, timed_frees, time_ns;
    bool pool; /* stream-ordered: a pool is a cache */
};

struct vs_churn {
    struct vs_release *releases;
    size_t release_count, release_room;
    struct vs_call_cost *costs; /* by site id - 1 */
    size_t cost_count, cost_room;
    /* What the event being folded moved. */
    struct {
        int64_t released, requested;
        uint64_t segments;
        uint32_t made_site, freed_site;
        int8_t device;
        bool refused;
    } now;
    /* The round under way; release 0: none, else its index + 1. */
    struct {
        size_t release;
        int64_t released, requested;
    } round;
    /* A free of which the time is told by the measurement behind it. */
    struct {
        uint64_t began_ns;
        uint32_t thread;
        uint32_t site; /* 0: of a segment, and of the round */
        uint16_t call;
        bool waits;
    } timed;
    uint32_t refused_thread;
    bool refused; /* a request of that thread, which is mending it */
    const struct vs_growth *growth;
    struct vs_state *state;
    int error;
};
int vs_churn_start(struct vs_churn *churn, struct vs_state *state, const struct vs_growth *growth);
void vs_churn_finish(struct vs_churn *churn);
void vs_churn_release(struct vs_churn *churn);

/* Segments given back and taken again, time after time. `steps`: as growth found them. */
bool vs_release_is_loop(const struct vs_release *release, const struct vs_steps *steps);
/* A site whose memory comes and goes with the steps, without a cache in between. */
bool vs_cost_is_churn(const struct vs_call_cost *cost, const struct vs_steps *steps);
/* True when a function of that name is the framework's `empty_cache`. */
bool vs_frame_empties_cache(const struct vs_frame *frame);

#endif
