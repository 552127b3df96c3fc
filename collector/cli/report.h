/* SPDX-License-Identifier: Apache-2.0 */
/* The two forms of a report over one summary: the page and the JSON. */
#ifndef VS_CLI_REPORT_H
#define VS_CLI_REPORT_H

#include <stdio.h>

#include "replay/summary.h"

/* Another trace of the same folder, listed beside the one reported. */
struct report_other {
    const char *path;
    const char *ended;
    bool ended_badly;
    int64_t peak_bytes; /* of its fullest device's top layer */
    json_int_t rank;    /* -1 unknown */
};

struct report_others {
    struct report_other *items;
    size_t count;
};

void report_print(FILE *out, const struct vs_summary *summary, const struct report_others *others);
/* New reference; NULL without memory. The fields are those of "vramscope-report/1". */
json_t *report_json(const struct vs_summary *summary, const struct report_others *others);

/* Name of an owner for people: "PyTorch" for its allocator's library. */
const char *report_owner_title(const struct vs_summary *summary, uint16_t owner);
/* The same of a device's framework. */
const char *report_framework_name(const struct vs_summary *summary,
                                  const struct vs_device_state *device);
const char *report_layer_name(unsigned layer);
const char *report_implicit_name(unsigned which);
/* Events at which the framework's totals and ours differed and no loss explains it. */
uint64_t report_mismatches(const struct vs_summary *summary, const struct vs_device_state *device);
/* Error name of a result, by the call's prefix; into `buffer` when it has no name. */
const char *report_error_name(const struct vs_summary *summary, uint16_t label, int32_t result,
                              char *buffer, size_t bytes);
/* Time in the shim and waiting for room; false when the trace does not say. */
bool report_overhead(const struct vs_summary *summary, uint64_t *spent_ns, uint64_t *waited_ns,
                     double *percent);

#endif
