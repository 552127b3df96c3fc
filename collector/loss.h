/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the producers had to drop. They count it in the ring's header; here the
 * counters become LOSS events (what was added since the last look), so that
 * totals stay exact, and figures for the end of the trace.
 */
#ifndef VS_COLLECTOR_LOSS_H
#define VS_COLLECTOR_LOSS_H

#include <jansson.h>

#include "drain.h"

struct loss_total {
    uint64_t events;
    uint64_t bytes;
};

struct loss {
    /* What LOSS events already say, per counter of the header. */
    struct loss_total told[VS_LOSS_CAUSES][VS_RING_DEVICES][VS_RING_LOSS_KINDS];
    struct loss_total all;
};

/*
 * Puts a LOSS event into the ring for each counter that grew. Returns the number
 * of events made; what finds no room is told at the next call.
 */
unsigned loss_emit(struct loss *loss, struct drain *drain, uint64_t now_ns);

/* Name of an enum vs_loss_cause ("full_waited"). */
const char *loss_cause_name(unsigned cause);

/* What has been told so far, one JSON object per counter that is not 0. New reference, or NULL. */
json_t *loss_json(const struct loss *loss);

#endif
