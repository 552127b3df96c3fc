/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of "vramscope-report/1" and the small change of building JSON. */
#ifndef VS_CLI_REPORT_JSON_H
#define VS_CLI_REPORT_JSON_H

#include <string.h>

#include "json_writer.h"
#include "report.h"

enum { ERROR_NAME_BYTES = 32, DEVICE_OFFSET = 128 };

/* report_json_devices.c */
json_t *report_json_devices(const struct report *report);
/* report_json_sites.c */
void report_json_sites(const struct report *report, struct json_writer *root);
/* Number of a site's place as in "sites"; null for 0. */
json_t *report_json_stack(const struct report *report, uint32_t site);
const char *report_site_kind(uint8_t kind);
void report_json_stats(json_t *object, const struct vs_site_stats *stats);
/* One entry for what --top and --min-bytes leave out of a layer of a device. */
json_t *report_json_rest(int device, unsigned layer, size_t count, const struct vs_site_stats *sum);
/* report_json_categories.c */
json_t *report_json_categories(const struct report *report, const struct vs_device_state *device);
void report_json_category(const struct report *report, const struct vs_place *place,
                          json_t *object);
/* report_json_groups.c */
void report_json_groups(const struct report *report, struct json_writer *root);
/* report_json_peak.c: parts of a device's peak, or null. */
json_t *report_json_recent(const struct report *report, const struct vs_device_state *device);
json_t *report_json_near(const struct report *report, const struct vs_device_state *device);
json_t *report_json_step_ends(const struct report *report, const struct vs_device_state *device);
/* report_json_growth.c */
json_t *report_json_growth(const struct report *report);
/* report_json_lifetimes.c */
json_t *report_json_lifetimes(const struct report *report);
json_t *report_json_cache_releases(const struct report *report);
json_t *report_json_churn(const struct report *report);
/* report_json_shared.c */
json_t *report_json_shared(const struct report *report);
/* report_json_communicators.c */
json_t *report_json_communicators(const struct report *report);
/* report_json_calls.c */
json_t *report_json_ooms(const struct report *report);
json_t *report_json_failures(const struct report *report);
json_t *report_json_objects(const struct report *report);
json_t *report_json_slow_calls(const struct report *report);
/* report_json_siblings.c: other processes at a failure; the traces beside this one, or null. */
json_t *report_json_others_then(const struct report *report, size_t oom);
json_t *report_json_siblings(const struct report *report);
/* report_json_phases.c */
json_t *report_json_phases(const struct report *report);
/* Those that began after the first VS_PHASES_MARKED_KEPT, by pattern of name. */
json_t *report_json_phases_summed(const struct report *report);

static inline void json_set(json_t *object, const char *name, json_t *value)
{
    json_object_set_new(object, name, value);
}

static inline void json_set_bytes(json_t *object, const char *name, int64_t bytes)
{
    json_set(object, name, json_integer(bytes));
}

static inline json_t *json_count(uint64_t value)
{
    return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

static inline json_t *json_integer_if(bool known, int64_t value)
{
    return known ? json_integer(value) : json_null();
}

/* Text of the trace that may not be UTF-8: null then, rather than an invalid document. */
static inline json_t *json_text(const char *value)
{
    json_t *string = value == NULL || value[0] == 0 ? NULL : json_string(value);
    return string != NULL ? string : json_null();
}

static inline json_t *json_copy_of(const json_t *object, const char *field)
{
    json_t *value = json_object_get(object, field);
    return value != NULL ? json_incref(value) : json_null();
}

static inline json_t *time_at(const struct vs_summary *summary, uint64_t time_ns)
{
    return json_count(vs_summary_at(summary, time_ns));
}

static inline const char *label_text(const struct vs_summary *summary, uint16_t label)
{
    return vs_state_string(summary->state, label);
}

#endif
