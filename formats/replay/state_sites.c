/* SPDX-License-Identifier: Apache-2.0 */
/* Where memory is asked for: sites by what tells them apart. */
#include <stdlib.h>
#include <string.h>

#include "layers.h"
#include "state_internal.h"

enum { FIRST_ROOM = 64 };

static bool takes_segments(struct vs_state *state, uint16_t label)
{
    if (label != state->last_label) {
        state->last_label = label;
        state->last_label_takes_segments = vs_layer_takes_segments(vs_state_string(state, label));
    }
    return label != 0 && state->last_label_takes_segments;
}

bool vs_state_by_framework(struct vs_state *state, const struct vs_event *event)
{
    uint16_t owner = state_owner(state, event);
    return (owner < state->owner_count && state->owners[owner].framework) ||
           takes_segments(state, event->label);
}

const char *vs_state_string(const struct vs_state *state, uint32_t id)
{
    const char *text = id == 0 ? NULL : state->names.string(state->names.self, id);
    return text == NULL ? "" : text;
}

static bool same_site(const struct vs_site *a, const struct vs_site *b)
{
    return a->stack == b->stack && a->owner == b->owner && a->label == b->label &&
           a->device == b->device && a->layer == b->layer && a->kind == b->kind &&
           a->segment == b->segment;
}

static uint64_t site_key(const struct vs_site *site)
{
    uint64_t place = (uint64_t)site->owner | (uint64_t)site->label << 16 |
                     (uint64_t)(uint8_t)site->device << 32 | (uint64_t)site->layer << 40 |
                     (uint64_t)site->kind << 44 | (uint64_t)site->segment << 48;
    return place ^ (uint64_t)site->stack * 0x9e3779b97f4a7c15ULL;
}

static uint32_t add_site(struct vs_state *state, const struct vs_site *wanted, uint64_t *head)
{
    if (state->site_count == state->site_room) {
        size_t room = state->site_room == 0 ? FIRST_ROOM : state->site_room * 2;
        struct vs_site *sites =
            room > UINT32_MAX ? NULL : realloc(state->sites, room * sizeof(*sites));
        if (sites == NULL) {
            state_fail(state);
            return 0;
        }
        state->sites = sites;
        state->site_room = room;
    }
    state->sites[state->site_count] = *wanted;
    state->sites[state->site_count].next = (uint32_t)*head;
    *head = ++state->site_count;
    return (uint32_t)*head;
}

static uint32_t find_site(struct vs_state *state, const struct vs_site *wanted, uint64_t key)
{
    uint64_t *head = vs_sizes_put(&state->site_index, key);
    if (head == NULL) {
        state_fail(state);
        return 0;
    }
    for (uint32_t id = (uint32_t)*head; id != 0; id = state->sites[id - 1].next)
        if (same_site(&state->sites[id - 1], wanted))
            return id;
    return add_site(state, wanted, head);
}

static uint32_t site_id(struct vs_state *state, const struct vs_site *wanted)
{
    uint64_t key = site_key(wanted);
    uint32_t *cached = &state->site_cache[(key ^ key >> 32) % VS_SITE_CACHE];
    if (*cached == 0 || !same_site(&state->sites[*cached - 1], wanted))
        *cached = find_site(state, wanted, key);
    return *cached;
}

uint32_t vs_state_site_of(struct vs_state *state, const struct vs_event *event, int8_t device,
                          enum vs_layer layer, bool segment)
{
    struct vs_site wanted = {.stack = event->stack,
                             .owner = state_owner(state, event),
                             .label = event->label != 0 ? event->label : event->call,
                             .device = device,
                             .layer = (uint8_t)layer,
                             .kind = VS_SITE_CALL,
                             .segment = segment};
    return site_id(state, &wanted);
}

uint32_t state_special_site(struct vs_state *state, int8_t device, enum vs_layer layer,
                            enum vs_site_kind kind)
{
    struct vs_site wanted = {.device = device, .layer = (uint8_t)layer, .kind = (uint8_t)kind};
    return site_id(state, &wanted);
}
