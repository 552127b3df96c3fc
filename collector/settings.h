/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which variables of the traced program's environment may be kept (decision
 * 13): an allow-list of names, never one that looks like a credential. Nothing
 * else of the environment is ever copied.
 */
#ifndef VS_COLLECTOR_SETTINGS_H
#define VS_COLLECTOR_SETTINGS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Longest value kept; a longer one is cut and ends in "...". */
#define SETTINGS_VALUE_MAX 1024U

/* True when a variable of this name may be kept. `name_bytes` without the '='. */
bool settings_allowed(const char *name, size_t name_bytes);

/* Value of a variable in `environment` (NULL-terminated "NAME=value" list); NULL when unset or
 * empty. */
const char *settings_find(const char *const *environment, const char *name);

/* RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK or PMI_RANK, the first that is a number; NULL without.
 */
const char *settings_rank(const char *const *environment);
const char *settings_local_rank(const char *const *environment);
const char *settings_world_size(const char *const *environment);
const char *settings_job_id(const char *const *environment);

/*
 * The allowed variables as one JSON object (a new reference; NULL without
 * memory). With `hide_paths`, values that hold a '/' are replaced by their hash.
 */
json_t *settings_collect(const char *const *environment, bool hide_paths);

#endif
