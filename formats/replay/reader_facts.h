/* SPDX-License-Identifier: Apache-2.0 */
/* What a fold takes from a trace's reader besides its events: names, and the facts as JSON. */
#ifndef VS_REPLAY_READER_FACTS_H
#define VS_REPLAY_READER_FACTS_H

#include <jansson.h>

#include "state.h"
#include "trace.h"

/* The names of a trace, valid as long as its reader. */
struct vs_names vs_reader_names(const struct vs_reader *reader);
/* A fact such as "process"; a new object, without members when there is none. NULL: no memory. */
json_t *vs_reader_fact(const struct vs_reader *reader, const char *name);
/*
 * Tells a new state what the facts say before the first event: each device's memory, whether
 * other processes were asked about, what a host cache rounds, when the trace begins and whose it
 * is. 0 or -ENOMEM.
 */
int vs_reader_prepare(const struct vs_reader *reader, struct vs_state *state);
/* A field that counts; 0 when it is not there, or no such number. */
uint64_t vs_fact_count(const json_t *object, const char *field);
/* A field that is a text, as long as the object; "" when it is not there, or none. */
const char *vs_fact_text(const json_t *object, const char *field);
/* Whether the fact "end" says that the process ended with status 0. */
bool vs_fact_ended_well(const json_t *end);

#endif
