/* SPDX-License-Identifier: Apache-2.0 */
/* "fragmentation" of the report: free bytes in segments, and what keeps them there. */
#include "report_fragmentation.h"
#include "report_json.h"

/* Several sites can be one place. */
static void add_stack(json_t *stacks, json_t *stack)
{
    for (size_t i = 0; i < json_array_size(stacks); i++)
        if (json_equal(json_array_get(stacks, i), stack)) {
            json_decref(stack);
            return;
        }
    json_array_append_new(stacks, stack);
}

static json_t *pinned_json(const struct report *report, const struct vs_pinned *pinned)
{
    json_t *object = json_object(), *stacks = json_array();
    json_set(object, "address", json_count(pinned->address));
    json_set(object, "bytes", json_count(pinned->bytes));
    json_set(object, "live_bytes", json_count(pinned->live_bytes));
    json_set(object, "live_count", json_count(pinned->live_count));
    json_set(object, "held_bytes", json_count(pinned->held_bytes));
    for (size_t i = 0; i < pinned->site_count && i < VS_PINNED_SITES; i++)
        add_stack(stacks, report_json_stack(report, pinned->sites[i]));
    json_set(object, "stacks", stacks);
    return object;
}

static json_t *all_pinned_json(const struct report *report,
                               const struct vs_fragmentation *fragmentation)
{
    json_t *list = json_array();
    for (size_t i = 0; i < fragmentation->kept; i++)
        json_array_append_new(list, pinned_json(report, &fragmentation->pinned[i]));
    return list;
}

static json_t *fragmentation_json(const struct report *report,
                                  const struct vs_fragmentation *fragmentation)
{
    bool known = fragmentation->known;
    json_t *object = json_object();
    json_set(object, "free_in_segments_bytes",
             json_integer_if(known, (int64_t)fragmentation->free_bytes));
    json_set(object, "largest_free_block_bytes",
             json_integer_if(known, (int64_t)fragmentation->largest_free_bytes));
    json_set(object, "releasable_bytes",
             json_integer_if(known, (int64_t)fragmentation->releasable_bytes));
    json_set(object, "pinned_segments",
             known ? all_pinned_json(report, fragmentation) : json_null());
    json_set(object, "pinned_count", json_integer_if(known, (int64_t)fragmentation->pinned_count));
    json_set(object, "pinned_held_bytes",
             json_integer_if(known, (int64_t)fragmentation->pinned_held_bytes));
    return object;
}

json_t *report_json_fragmentation(const struct report *report, const struct vs_device_state *device)
{
    struct vs_fragmentation now;
    if (vs_fragmentation_of(report->summary->state, device, &now) != 0)
        now.known = false;
    return fragmentation_json(report, &now);
}

json_t *report_json_fragmentation_then(const struct report *report, const struct vs_oom *oom)
{
    const struct vs_fragmentation *then =
        vs_fragmentations_at(&report->summary->fragmentations, oom->sequence);
    return then == NULL ? json_null() : fragmentation_json(report, then);
}
