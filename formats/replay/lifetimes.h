/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long memory lives, measured in the program's steps: freed within the step
 * that allocated it, at its end, in the next one, later, or not at all; and which
 * of what was live at a device's peak were temporaries of their step.
 *
 * While the events pass, two lists are kept: the last frees, a fixed number of
 * them, and those of what was live at each device's peak, never more than that. The
 * steps are known only at the end; then both are told apart. Times are the growth
 * analysis's ticks. lifetimes.c keeps, lifetimes_find.c tells.
 */
#ifndef VS_REPLAY_LIFETIMES_H
#define VS_REPLAY_LIFETIMES_H

#include "growth.h"

enum { VS_FREES_KEPT = 1 << 16, VS_LIFE_LAYERS = 2 /* framework and driver have a peak */ };

/* One allocation from its making to its free. */
struct vs_lifetime {
    int64_t bytes;
    uint32_t site;
    uint32_t born, died; /* ticks; died 0: it is live */
    /* Freed by the thread that made it before another one allocated on its device. */
    bool within;
};

/* What was live at the peak of one layer of a device, and has been freed since. */
struct vs_peak_frees {
    struct vs_lifetime *items;
    size_t count, room;
    uint32_t peak_tick;
};

/* Since when one thread alone has allocated on a device. */
struct vs_alone {
    uint32_t thread, since; /* tick */
};

struct vs_lifetimes {
    struct vs_alone alone[VS_DEVICE_SLOTS];
    struct vs_lifetime *frees; /* VS_FREES_KEPT, a ring */
    uint64_t free_count;       /* of all so far */
    struct vs_peak_frees *peaks[VS_DEVICE_SLOTS][VS_LIFE_LAYERS];
    const struct vs_growth *growth; /* its clock */
    int error;
};
/* `growth` must have subscribed before: its clock has passed the move already. */
int vs_lifetimes_start(struct vs_lifetimes *lifetimes, struct vs_state *state,
                       const struct vs_growth *growth);
void vs_lifetimes_release(struct vs_lifetimes *lifetimes);

typedef void vs_lifetime_visit(void *self, const struct vs_lifetime *life);
/*
 * All that was live at the peak of a device's top layer, once all events have passed; besides
 * it, what is live at the end: a visitor takes that device and layer, and what was born in time.
 */
void vs_lifetimes_each_at_peak(const struct vs_lifetimes *lifetimes, const struct vs_state *state,
                               const struct vs_device_state *device, vs_lifetime_visit *visit,
                               void *self);

/* ---- lifetimes_find.c ------------------------------------------------------------------ */

enum vs_life_end {
    VS_LIFE_IN_STEP,     /* freed before the last allocation of the step that made it */
    VS_LIFE_AT_STEP_END, /* between that allocation and the first one of the next step */
    VS_LIFE_NEXT_STEP,   /* in the next step */
    VS_LIFE_LATER,
    VS_LIFE_NOT_FREED, /* live at the end */
    VS_LIVES
};

/* How steps tell lives apart. */
enum vs_life_rule {
    VS_LIFE_UNKNOWN,   /* no steps, or none of which all frees are kept */
    VS_LIFE_BY_STEP,   /* where each step begins is known */
    VS_LIFE_BY_LENGTH, /* only how long one is: freed after less than that, than twice that */
};

struct vs_life_sums {
    uint64_t count[VS_LIVES];
    int64_t bytes[VS_LIVES];
};

/* Why memory that was live at a peak is a temporary. */
enum vs_temporary_rule {
    VS_TEMPORARY_UNKNOWN,
    VS_TEMPORARY_IN_STEP,   /* made in the step of the peak and freed before it was over */
    VS_TEMPORARY_BY_LENGTH, /* it lived for less than a step takes */
    VS_TEMPORARY_BY_PLACE,  /* in whole steps its place freed nine bytes in ten within the step */
    VS_TEMPORARY_SHORT      /* without steps: it lived for less than a hundredth of the run */
};

struct vs_peak_life {
    int8_t device;
    uint8_t layer; /* the device's top one */
    enum vs_temporary_rule rule;
    int64_t temporary_bytes;
    uint64_t temporary_count;
};

/* What one site made. */
struct vs_site_life {
    struct vs_life_sums sums; /* in the steps looked at */
    int64_t temporary_bytes;  /* at the peak of its layer */
    uint64_t temporary_count;
};

struct vs_lifetimes_found {
    enum vs_life_rule rule;
    enum vs_step_source source;
    uint64_t steps; /* whole ones, the last of the run of which all frees are kept */
    int64_t first_step;
    uint32_t *begins; /* ticks at which steps begin, `steps_apart` between two; NULL without */
    size_t begin_count;
    uint64_t steps_apart;
    size_t first_window; /* of growth's steps: the one that the first of them begins */
    struct vs_life_sums total;
    struct vs_site_life *sites; /* by site id - 1 */
    size_t site_count;
    struct vs_peak_life peaks[VS_DEVICE_SLOTS];
    size_t peak_count;
};
/* `steps` as growth found them. 0 or -ENOMEM; release in any case. */
int vs_lifetimes_find(const struct vs_lifetimes *lifetimes, const struct vs_state *state,
                      const struct vs_sites *sites, const struct vs_steps *steps,
                      struct vs_lifetimes_found *out);
void vs_lifetimes_found_release(struct vs_lifetimes_found *found);
const char *vs_life_name(enum vs_life_end life);
const char *vs_life_rule_name(enum vs_life_rule rule);
const char *vs_temporary_rule_name(enum vs_temporary_rule rule);

#endif
