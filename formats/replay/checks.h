/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `vramscope verify` checks: the file is whole, the events fit together,
 * the figures keep their identities. A check is off when the trace or this
 * program is wrong; a note when something is incomplete but accounted for.
 */
#ifndef VS_REPLAY_CHECKS_H
#define VS_REPLAY_CHECKS_H

#include "analysis.h"
#include "trace.h"

/* Counts, while the events pass, at how many of them a band was impossible. */
struct vs_invariants {
    uint64_t checked;
    uint64_t cached_negative;  /* more allocated than reserved */
    uint64_t backed_too_large; /* more backed than reserved */
    uint64_t identity_broken;  /* the bands do not sum up to the device */
};
int vs_invariants_start(struct vs_invariants *invariants, struct vs_state *state);

enum vs_check_outcome { VS_CHECK_OK, VS_CHECK_NOTE, VS_CHECK_OFF };

struct vs_check {
    const char *name;
    enum vs_check_outcome outcome;
    char text[200]; /* counts, and what is off */
};

enum { VS_CHECKS = 16 };

struct vs_summary;
/* Fills `checks` and returns how many there are. */
size_t vs_checks_run(const struct vs_summary *summary, struct vs_check checks[VS_CHECKS]);

#endif
