/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the traced process ended, from what it said itself (the mark in the ring's
 * header) and what the kernel says of it (the wait status). Pure.
 */
#ifndef VS_COLLECTOR_END_H
#define VS_COLLECTOR_END_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "../formats/record.h"

#define END_NUMBER_UNKNOWN (-1)

/* What is known at the end of recording. */
struct end_evidence {
    enum vs_end mark; /* set by the process itself; VS_END_UNKNOWN: it said nothing */
    int mark_value;   /* exit status or signal that goes with it, negative: unknown */
    bool replaced;    /* another program runs in the process now */
    bool running;     /* still alive: recording has not ended, this is a note on the way */
    bool have_status;
    int wait_status; /* as from wait(2) */
};

struct end {
    enum vs_end ended;
    int exit_code;   /* END_NUMBER_UNKNOWN unless known */
    int signal;      /* END_NUMBER_UNKNOWN unless killed by a known one */
    bool complete;   /* the process told its own end, and nothing contradicts it */
    const char *how; /* "program", "status", "program+status", "maps", "none" */
};

struct end end_decide(const struct end_evidence *evidence);

/* "exit", "killed", "exec", "unknown" */
const char *end_name(enum vs_end ended);

/* {"ended","exit_code","signal","complete","how"}; unknown numbers are null. New reference, or
 * NULL. */
json_t *end_json(const struct end *end);

#endif
