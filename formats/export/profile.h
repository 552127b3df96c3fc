/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stack profiles (folded, pprof) are made of: per place what it allocated in
 * the window and what was in use at the instant asked for. Only each device's top
 * layer, so that the bytes in use at the peak sum to the peak that a report shows.
 */
#ifndef VS_EXPORT_PROFILE_H
#define VS_EXPORT_PROFILE_H

#include "export.h"
#include "replay/places.h"

/* A place, or all that `min_bytes` left out of one device. */
struct vs_profile_sample {
    uint32_t stack;      /* 0: none */
    const char *instead; /* without a stack: what stands for it; else NULL */
    int8_t device;
    uint8_t layer;
    int64_t values[VS_METRICS];
    bool step_known;
    uint64_t step; /* under way at the instant */
};

struct vs_profile {
    struct vs_export *export;
    struct vs_state *state;
    struct vs_sites sites;
    struct vs_places places;
    struct vs_frames *frames;
    struct vs_profile_sample *rest; /* by device slot: what is left out */
    size_t next;
    uint64_t over_sequence; /* VS_AT_OOM: the last event folded */
    bool begun;
    bool step_known;
    uint64_t step;
    struct {
        bool known;
        uint64_t step;
    } at_peak[VS_DEVICE_SLOTS];
    uint64_t instant_ns; /* of the last event folded, monotonic */
};

/* Reads the trace; release the profile in any case. */
int vs_profile_make(struct vs_export *export, struct vs_profile *profile);
/* The same in two steps: analyses may subscribe to `state` between them. */
int vs_profile_begin(struct vs_export *export, struct vs_profile *profile);
int vs_profile_fold(struct vs_profile *profile);
void vs_profile_release(struct vs_profile *profile);

/* Each sample with a value that is not 0, in a fixed order; false behind the last. */
bool vs_profile_next(struct vs_profile *profile, struct vs_profile_sample *sample);
/* Devices whose top layer held anything. */
size_t vs_profile_devices(const struct vs_profile *profile);
/* Remarks in a stack that say that frames are missing where they stand. */
bool vs_profile_shows(const struct vs_frame *frame);

#endif
