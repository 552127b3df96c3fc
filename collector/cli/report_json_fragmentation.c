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

static json_t *part_json(const struct report *report, const struct vs_cache_part *part)
{
    json_t *object = json_object();
    bool pool_known = part->pool >= VS_CACHE_POOL_DEFAULT;
    json_set(object, "pool", json_integer_if(pool_known, vs_pool_number(part->pool)));
    json_set(object, "mem_pool", json_boolean(part->pool >= VS_CACHE_POOL_USER));
    json_set(object, "made_by", report_json_stack(report, part->made_by));
    json_set(object, "stream", json_integer_if(part->stream_known, (int64_t)part->stream));
    json_set(object, "segments", json_count(part->segments));
    json_set(object, "reserved_bytes", json_count(part->reserved_bytes));
    json_set(object, "live_bytes", json_count(part->live_bytes));
    json_set(object, "pending_bytes", json_count(part->waiting_bytes));
    json_set(object, "free_bytes", json_count(part->free_bytes));
    json_set(object, "largest_free_block_bytes", json_count(part->largest_free_bytes));
    json_set(object, "releasable_bytes", json_count(part->releasable_bytes));
    return object;
}

static json_t *parts_json(const struct report *report, const struct vs_fragmentation *fragmentation)
{
    json_t *list = json_array();
    for (size_t i = 0; i < fragmentation->part_count; i++)
        json_array_append_new(list, part_json(report, &fragmentation->parts[i]));
    return list;
}

/* Free blocks by size, the smallest first. */
static json_t *holes_json(const struct vs_fragmentation *fragmentation)
{
    json_t *list = json_array();
    for (size_t i = 0; i < VS_HOLE_SIZES; i++) {
        if (fragmentation->holes[i].count == 0)
            continue;
        json_t *object = json_object();
        json_set(object, "from_bytes", json_count(1ULL << i));
        json_set(object, "count", json_count(fragmentation->holes[i].count));
        json_set(object, "bytes", json_count(fragmentation->holes[i].bytes));
        json_array_append_new(list, object);
    }
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
    json_set(object, "split_free_bytes",
             json_integer_if(
                 known, (int64_t)(fragmentation->free_bytes - fragmentation->unsplit_free_bytes)));
    json_set(object, "unsplit_free_bytes",
             json_integer_if(known, (int64_t)fragmentation->unsplit_free_bytes));
    json_set(object, "free_blocks", known ? holes_json(fragmentation) : json_null());
    json_set(object, "parts", known ? parts_json(report, fragmentation) : json_null());
    json_set(object, "parts_left_out",
             json_integer_if(known, (int64_t)fragmentation->parts_left_out));
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

json_t *report_json_fragmentation_at_peak(const struct report *report,
                                          const struct vs_device_state *device)
{
    const struct vs_fragmentation *then =
        vs_fragmentation_at_peak(&report->summary->fragmentations, device);
    return then == NULL ? json_null() : fragmentation_json(report, then);
}
