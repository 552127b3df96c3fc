/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "groups" of the report: places that lead to the same line, function, module or
 * stack, by device and layer, the largest at the peak first.
 */
#include <stdlib.h>

#include "report_json.h"

/* ---- the stacks of the groups --------------------------------------------------------- */

/* Which places belong to which group, by group and stack. */
struct member {
    uint32_t group;
    uint64_t number;
};

struct members {
    struct member *items;
    size_t count;
    size_t *first; /* by group */
};

static int by_member(const void *a, const void *b)
{
    const struct member *left = a, *right = b;
    if (left->group != right->group)
        return left->group < right->group ? -1 : 1;
    return (left->number > right->number) - (left->number < right->number);
}

/* Each stack of a group once. False without memory. */
static bool list_members(const struct vs_places *places, struct members *members)
{
    members->items = calloc(places->count + 1, sizeof(*members->items));
    members->first = calloc(places->group_count + 1, sizeof(*members->first));
    if (members->items == NULL || members->first == NULL)
        return false;
    for (size_t i = 0; i < places->count; i++)
        members->items[i] = (struct member){places->items[i].group, places->items[i].number};
    qsort(members->items, places->count, sizeof(*members->items), by_member);
    for (size_t i = 0; i < places->count; i++) {
        if (i > 0 && by_member(&members->items[i], &members->items[i - 1]) == 0)
            continue;
        if (i == 0 || members->items[i].group != members->items[members->count - 1].group)
            members->first[members->items[i].group] = members->count;
        members->items[members->count++] = members->items[i];
    }
    return true;
}

static json_t *stacks_json(const struct members *members, uint32_t group)
{
    json_t *list = json_array();
    for (size_t i = members->first[group]; i < members->count && members->items[i].group == group;
         i++)
        json_array_append_new(list, json_count(members->items[i].number));
    return list;
}

/* ---- one group ---------------------------------------------------------------------------- */

static void add_meaning(const struct report *report, const struct vs_group *group, json_t *object)
{
    const struct vs_place *place = &report->places->items[group->place];
    const struct vs_frame *frames = NULL, nothing = {.kind = VS_FRAME_NOTE};
    long count = place->has_stack ? vs_places_frames(report->places, place, &frames) : 0;
    long named = count > 0 ? vs_places_frame(frames, (size_t)count) : -1;
    const struct vs_frame *frame = named >= 0 ? &frames[named] : &nothing;
    enum vs_group_by by = report->options->by;
    bool line = by == VS_BY_LINE || by == VS_BY_STACK;
    bool file = by != VS_BY_MODULE || frame->kind == VS_FRAME_PYTHON;
    json_set(object, "function", by == VS_BY_MODULE ? json_null() : json_text(frame->function));
    json_set(object, "file", file ? json_text(frame->file) : json_null());
    json_set(object, "line", json_integer_if(line && frame->line != 0, frame->line));
    json_set(object, "module", json_text(frame->module));
}

static json_t *group_json(const struct report *report, const struct vs_group *group,
                          const struct members *members)
{
    const struct vs_site *site =
        vs_places_site(report->places, &report->places->items[group->place]);
    json_t *object = json_object();
    json_set(object, "by", json_string(report_group_name(report->options->by)));
    json_set(object, "kind", json_string(report_site_kind(site->kind)));
    json_set(object, "layer", json_string(report_layer_name(site->layer)));
    json_set(object, "device", json_integer_if(site->device >= 0, site->device));
    json_set(object, "segment", json_boolean(site->segment));
    add_meaning(report, group, object);
    report_json_stats(object, &group->stats);
    json_set(object, "stacks", stacks_json(members, (uint32_t)(group - report->places->groups)));
    return object;
}

/* ---- which ------------------------------------------------------------------------------------
 */

/* A group with the layer and device it is of, for sorting. */
struct ranked {
    const struct vs_group *group;
    int device;
    unsigned layer;
};

static int by_rank(const void *a, const void *b)
{
    const struct ranked *left = a, *right = b;
    if (left->device != right->device)
        return left->device < right->device ? -1 : 1;
    if (left->layer != right->layer)
        return left->layer < right->layer ? -1 : 1;
    if (left->group->stats.peak_bytes != right->group->stats.peak_bytes)
        return left->group->stats.peak_bytes < right->group->stats.peak_bytes ? 1 : -1;
    return (left->group > right->group) - (left->group < right->group);
}

static size_t rank(const struct report *report, struct ranked *ranked)
{
    const struct vs_places *places = report->places;
    size_t count = 0;
    for (size_t i = 0; i < places->group_count; i++) {
        const struct vs_group *group = &places->groups[i];
        const struct vs_site *site = vs_places_site(places, &places->items[group->place]);
        if (!report_hides_device(report, site->device))
            ranked[count++] = (struct ranked){group, site->device, site->layer};
    }
    if (count > 1)
        qsort(ranked, count, sizeof(*ranked), by_rank);
    return count;
}

/* The groups of one layer of one device, and what is left out of them. Returns their number. */
static size_t add_layer(const struct report *report, const struct ranked *ranked, size_t count,
                        const struct members *members, struct json_writer *root)
{
    struct vs_site_stats rest = {0};
    size_t i = 0, left_out = 0, top = report->options->top;
    for (; i < count && ranked[i].device == ranked->device && ranked[i].layer == ranked->layer;
         i++) {
        const struct vs_group *group = ranked[i].group;
        if ((top == 0 || i < top) && !report_is_small(report, &group->stats)) {
            json_writer_item(root, group_json(report, group, members));
            continue;
        }
        vs_site_stats_add(&rest, &group->stats);
        left_out++;
    }
    if (left_out != 0)
        json_writer_item(root, report_json_rest(ranked->device, ranked->layer, left_out, &rest));
    return i;
}

void report_json_groups(const struct report *report, struct json_writer *root)
{
    struct members members = {0};
    struct ranked *ranked = calloc(report->places->group_count + 1, sizeof(*ranked));
    json_writer_begin_list(root, "groups");
    if (ranked != NULL && list_members(report->places, &members)) {
        size_t count = rank(report, ranked);
        for (size_t i = 0; i < count;)
            i += add_layer(report, ranked + i, count - i, &members, root);
    } else {
        root->failed = true;
    }
    json_writer_end_list(root);
    free(members.items);
    free(members.first);
    free(ranked);
}
