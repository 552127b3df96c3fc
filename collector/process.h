/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The META objects of a trace: what process this is, its clocks, how healthy the
 * hooks were (docs/format.md §9 lists the fields). Each function returns a new
 * reference, or NULL without memory.
 */
#ifndef VS_COLLECTOR_PROCESS_H
#define VS_COLLECTOR_PROCESS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "../formats/ring.h"
#include "target.h"

/* Host name as the system has it, or its hash. `out_bytes` ≥ 65. */
void process_host(char *out, size_t out_bytes, bool hide);

/* "process": who is traced. `environment` is the program's own. */
json_t *process_start_json(const struct target *target, const struct vs_ring_header *header,
                           const char *const *environment, bool hide);

/* "process" once more: what was learned later. `driver_version` as CUDA has it (13000), 0 unknown.
 */
json_t *process_driver_json(int driver_version);

/* The CUDA runtimes that were loaded, by the versions in their files' names. */
enum { PROCESS_RUNTIMES_MAX = 8, PROCESS_RUNTIME_BYTES = 24 };
struct process_runtimes {
    unsigned count;
    char versions[PROCESS_RUNTIMES_MAX][PROCESS_RUNTIME_BYTES];
};
/* Takes the path of a loaded object; nothing unless it is a runtime not known yet. */
void process_note_runtime(struct process_runtimes *runtimes, const char *path);
/* NULL when there is none. */
json_t *process_runtimes_json(const struct process_runtimes *runtimes);
json_t *process_title_end_json(const char *title);

/* "clock" with the start's anchors of the ring, or with the anchors of now. */
json_t *process_clock_start_json(const struct vs_ring_header *header, uint64_t resolution_ns);
json_t *process_clock_now_json(void);

struct hooks_figures {
    uint64_t recorded;    /* records taken from the ring */
    uint64_t bad_records; /* of them, not understood */
    uint64_t lost, torn;
    uint64_t ring_bytes;
};
/* "hooks": counters of the ring's header and the collector's own. */
json_t *process_hooks_json(struct vs_ring_header *header, const struct hooks_figures *figures);

#endif
