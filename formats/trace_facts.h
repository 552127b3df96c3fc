/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The facts about a process (META) as a writer keeps them: told again and again
 * with a few fields changed, they are laid over each other here, so that one
 * chunk with all of them can replace the one before.
 */
#ifndef VS_FORMATS_TRACE_FACTS_H
#define VS_FORMATS_TRACE_FACTS_H

#include <stdbool.h>
#include <stddef.h>

#include "trace_table.h"

struct vs_facts {
    void *objects; /* by name */
    bool changed;  /* since they were last put into a table */
};

void vs_facts_free(struct vs_facts *facts);
/* Lays one JSON object over the one of that name. 0, -EINVAL when it is none, -ENOMEM. */
int vs_facts_lay(struct vs_facts *facts, const char *name, const char *json, size_t bytes);
/* All of them as rows of a table of META. 0 or -ENOMEM. */
int vs_facts_rows(struct vs_facts *facts, struct vs_table *table);

#endif
