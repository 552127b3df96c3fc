/* SPDX-License-Identifier: Apache-2.0 */
/* What both forms of a report call things, and what its options leave out. */
#include <stdlib.h>
#include <string.h>

#include "replay/layers.h"
#include "report.h"

const char *report_owner_title(const struct vs_summary *summary, uint16_t owner)
{
    const char *name = vs_state_owner_name(summary->state, owner);
    const struct vs_caching_layer *layer = vs_layer_of_library(name);
    return layer != NULL ? layer->title : name;
}

const char *report_framework_name(const struct vs_summary *summary,
                                  const struct vs_device_state *device)
{
    if (device->caching_layer != NULL)
        return device->caching_layer->title;
    const struct vs_owner *owner = &summary->state->owners[device->framework_owner];
    return device->framework_owner < summary->state->owner_count && owner->framework
               ? report_owner_title(summary, device->framework_owner)
               : "the framework";
}

const char *report_layer_name(unsigned layer)
{
    return layer == VS_LAYER_FRAMEWORK ? "framework" : layer == VS_LAYER_DRIVER ? "driver" : "host";
}

const char *report_implicit_name(unsigned which)
{
    static const char *const names[VS_IMPLICITS] = {
        [VS_IMPLICIT_CONTEXT] = "context", [VS_IMPLICIT_MODULES] = "modules",
        [VS_IMPLICIT_GRAPHS] = "graphs",   [VS_IMPLICIT_LOCAL_MEMORY] = "local_memory",
        [VS_IMPLICIT_OTHER] = "other",
    };
    return names[which];
}

const char *report_group_name(enum vs_group_by by)
{
    static const char *const names[] = {[VS_BY_LINE] = "line",
                                        [VS_BY_FUNCTION] = "function",
                                        [VS_BY_MODULE] = "module",
                                        [VS_BY_STACK] = "stack"};
    return names[by];
}

uint64_t report_mismatches(const struct vs_summary *summary, const struct vs_device_state *device)
{
    return vs_state_lossy(summary->state) ? 0 : device->mismatches;
}

const char *report_error_name(const struct vs_summary *summary, uint16_t label, int32_t result,
                              char *buffer, size_t bytes)
{
    return vs_cuda_error_name(vs_state_string(summary->state, label), result, buffer, bytes);
}

static bool get_count(const json_t *object, const char *field, uint64_t *value)
{
    const json_t *number = json_object_get(object, field);
    if (!json_is_integer(number) || json_integer_value(number) < 0)
        return false;
    *value = (uint64_t)json_integer_value(number);
    return true;
}

bool report_overhead(const struct vs_summary *summary, uint64_t *spent_ns, uint64_t *waited_ns,
                     double *percent)
{
    uint64_t samples;
    if (!get_count(summary->hooks, "spent_ns", spent_ns) ||
        !get_count(summary->hooks, "waited_ns", waited_ns) ||
        (get_count(summary->hooks, "spent_samples", &samples) && samples == 0))
        return false;
    *percent = summary->duration_ns == 0
                   ? 0
                   : 100.0 * (double)(*spent_ns + *waited_ns) / (double)summary->duration_ns;
    return true;
}

bool report_hides_device(const struct report *report, int device)
{
    return report->options->device >= 0 && report->options->device != device;
}

bool report_is_small(const struct report *report, const struct vs_site_stats *stats)
{
    return llabs(stats->peak_bytes) < report->options->min_bytes &&
           llabs(stats->live_bytes) < report->options->min_bytes;
}

bool report_lists_oom(const struct report *report, const struct vs_oom *oom)
{
    return oom->device < 0 || !report_hides_device(report, oom->device);
}
