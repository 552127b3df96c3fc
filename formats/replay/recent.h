/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of the live set at a device's peak was made last: since the step began in
 * which the peak lies, and in the few steps before it. Where no steps are known, in
 * the last hundredth of the run's allocations and frees, and in three more before it.
 */
#ifndef VS_REPLAY_RECENT_H
#define VS_REPLAY_RECENT_H

#include "lifetimes.h"

enum { VS_RECENT_STEPS = 3 /* before the peak's own */ };

enum vs_recent_rule {
    VS_RECENT_UNKNOWN,
    VS_RECENT_BY_STEP,   /* since a step began that is known */
    VS_RECENT_BY_LENGTH, /* within as much as a step takes before the peak */
    VS_RECENT_BY_SHARE   /* within a hundredth of the run's ticks before the peak */
};

struct vs_recent_sums {
    int64_t last_bytes, before_bytes; /* since the step began; in the steps before it */
    uint64_t last_count, before_count;
};

/* Of one device's top layer. */
struct vs_recent {
    int8_t device;
    uint8_t layer;
    enum vs_recent_rule rule;
    int64_t step;          /* number of the peak's; by step only */
    uint64_t steps_before; /* how many `before` is of, or as many times as long as `last` */
    struct vs_recent_sums total;
};

struct vs_recents {
    struct vs_recent items[VS_DEVICE_SLOTS];
    size_t count;
    struct vs_recent_sums *sites; /* by site id - 1 */
    size_t site_count;
};

/* `found` and `steps` of the same run. 0 or -ENOMEM; release in any case. */
int vs_recents_find(const struct vs_lifetimes *lifetimes, const struct vs_lifetimes_found *found,
                    const struct vs_steps *steps, const struct vs_state *state,
                    struct vs_recents *out);
void vs_recents_release(struct vs_recents *recents);
/* NULL when the device has no peak. */
const struct vs_recent *vs_recent_of(const struct vs_recents *recents, int device);
const char *vs_recent_rule_name(enum vs_recent_rule rule);

#endif
