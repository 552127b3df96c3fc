/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For how long a layer of a device held how much, and how often it rose to that:
 * whether somebody who looks now and then can have seen the peak. Heights are kept
 * in equal parts whose size doubles with the peak: memory is fixed.
 */
#ifndef VS_REPLAY_DWELL_H
#define VS_REPLAY_DWELL_H

#include "analysis.h"

enum { VS_DWELL_PARTS = 2048, VS_DWELL_LAYERS = 2 /* framework and driver have a peak */ };

struct vs_dwell {
    int64_t part_bytes;
    uint64_t time_ns[VS_DWELL_PARTS];  /* in which the height lay in this part */
    int64_t rises[VS_DWELL_PARTS + 1]; /* sum up to a part: rises to its lower bound or above it */
    uint64_t since_ns;                 /* of the last change */
    int64_t height;                    /* now */
};

struct vs_dwells {
    struct vs_dwell *devices[VS_DEVICE_SLOTS][VS_DWELL_LAYERS];
    uint64_t from_ns; /* of a window; 0: all */
    int error;
};
int vs_dwells_start(struct vs_dwells *dwells, struct vs_state *state);
/* Times and rises count from a moment on; the height stays. */
void vs_dwells_restart(struct vs_dwells *dwells, uint64_t from_ns);
/* `end_ns`: up to when the last height lasts. */
void vs_dwells_finish(struct vs_dwells *dwells, uint64_t end_ns);
void vs_dwells_release(struct vs_dwells *dwells);

/* The time spent near the peak. */
struct vs_near_peak {
    int64_t least_bytes; /* at least this height: nine tenths of the peak or, as far as the parts
                            allow, a little less */
    uint64_t time_ns;
    uint64_t times; /* stretches of it */
};
/* False when nothing was held. */
bool vs_dwells_near_peak(const struct vs_dwells *dwells, const struct vs_device_state *device,
                         struct vs_near_peak *out);

#endif
