/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's communicators, and which of NCCL's device memory is whose. What is taken
 * on a thread that is making exactly one communicator is that one's; so is what is
 * taken while only one exists. Anything else stays without one: it is not guessed.
 */
#include "grow.h"
#include "state_internal.h"

bool communicator_kind(uint8_t kind)
{
    return kind == VS_KIND_COMM_BEGIN || kind == VS_KIND_COMM_CREATE ||
           kind == VS_KIND_COMM_DESTROY;
}

const struct vs_communicator *vs_state_communicator(const struct vs_state *state, uint64_t serial)
{
    for (size_t i = 0; i < state->communicator_count; i++)
        if (state->communicators[i].serial == serial)
            return &state->communicators[i];
    return NULL;
}

/* ---- slots ---------------------------------------------------------------------------- */

static bool is_spare(const struct vs_communicator *communicator)
{
    return communicator->phase == VS_COMMUNICATOR_GONE && communicator->pieces == 0;
}

/* The spare slot that ended first: the end of the last ones may still be taken back. */
static struct vs_communicator *take_slot(struct vs_state *state)
{
    struct vs_communicator *oldest = NULL;
    for (size_t i = 0; i < state->communicator_count; i++) {
        struct vs_communicator *each = &state->communicators[i];
        if (is_spare(each) && (oldest == NULL || each->destroyed < oldest->destroyed))
            oldest = each;
    }
    if (oldest != NULL)
        return oldest;
    if (!vs_grow(&state->communicators, &state->communicator_room, state->communicator_count + 1,
                 sizeof(*state->communicators))) {
        state_fail(state);
        return NULL;
    }
    return &state->communicators[state->communicator_count++];
}

static struct vs_communicator *add(struct vs_state *state, const struct vs_sequenced_event *from)
{
    const struct vs_event *event = &from->event;
    bool begins = event->kind == VS_KIND_COMM_BEGIN;
    uint64_t rank = event->extra[begins ? 0 : 1];
    struct vs_communicator *slot = take_slot(state);
    if (slot == NULL)
        return NULL;
    *slot = (struct vs_communicator){.serial = ++state->communicator_serial,
                                     .begin = begins ? from->sequence : 0,
                                     .ranks = event->size,
                                     .rank = rank <= INT32_MAX ? (int64_t)rank : VS_RANK_UNKNOWN,
                                     .thread = from->thread,
                                     .device = event->device,
                                     .phase = VS_COMMUNICATOR_MAKING};
    slot->site = vs_state_site_of(state, event, event->device, VS_LAYER_DRIVER, false);
    return slot;
}

/* ---- their life ------------------------------------------------------------------------ */

static struct vs_communicator *find_making(const struct vs_state *state, uint64_t begin)
{
    for (size_t i = 0; begin != 0 && i < state->communicator_count; i++)
        if (state->communicators[i].begin == begin &&
            state->communicators[i].phase == VS_COMMUNICATOR_MAKING)
            return &state->communicators[i];
    return NULL;
}

static struct vs_communicator *find_live(const struct vs_state *state, uint64_t handle)
{
    for (size_t i = 0; i < state->communicator_count; i++)
        if (state->communicators[i].handle == handle &&
            state->communicators[i].phase == VS_COMMUNICATOR_LIVE)
            return &state->communicators[i];
    return NULL;
}

static void complete(struct vs_communicator *communicator, const struct vs_event *event)
{
    communicator->phase = VS_COMMUNICATOR_LIVE;
    communicator->handle = event->handle;
    if (event->size != 0)
        communicator->ranks = event->size;
    if (event->extra[1] <= INT32_MAX)
        communicator->rank = (int64_t)event->extra[1];
    if (communicator->device < 0)
        communicator->device = event->device;
}

static void create(struct vs_state *state, const struct vs_sequenced_event *sequenced)
{
    const struct vs_event *event = &sequenced->event;
    struct vs_communicator *made = find_making(state, event->extra[0]);
    bool again = event->handle != 0 && find_live(state, event->handle) != NULL;
    if (event->result != 0 || again) {
        if (made != NULL)
            made->phase = VS_COMMUNICATOR_GONE;
        return;
    }
    if (made == NULL)
        made = add(state, sequenced); /* the record of its beginning was lost */
    if (made == NULL)
        return;
    complete(made, event);
    state->communicator_now = made->serial;
}

static void destroy(struct vs_state *state, const struct vs_sequenced_event *event)
{
    struct vs_communicator *ended = find_live(state, event->event.handle);
    if (ended == NULL)
        ended = find_live(state, 0); /* one whose handle was not known when it was made */
    if (ended == NULL)
        return;
    ended->phase = VS_COMMUNICATOR_GONE;
    ended->destroyed = event->sequence;
    state->communicator_now = ended->serial;
}

void communicator_event(struct vs_state *state, const struct vs_sequenced_event *event)
{
    if (event->event.kind == VS_KIND_COMM_BEGIN)
        add(state, event);
    else if (event->event.kind == VS_KIND_COMM_CREATE)
        create(state, event);
    else
        destroy(state, event);
}

void communicator_undo(struct vs_state *state, const struct vs_sequenced_event *event)
{
    if (state->undone->kind != VS_KIND_COMM_DESTROY)
        return;
    for (size_t i = 0; i < state->communicator_count; i++)
        if (state->communicators[i].destroyed == event->event.handle) {
            state->communicators[i].phase = VS_COMMUNICATOR_LIVE;
            state->communicators[i].destroyed = 0;
            return;
        }
}

/* ---- their memory ---------------------------------------------------------------------- */

/* The only one there is; 0 beside others, or where the record of another may be lost. */
static uint32_t only_one(const struct vs_state *state)
{
    uint32_t found = 0;
    if (vs_state_lossy(state))
        return 0;
    for (size_t i = 0; i < state->communicator_count; i++) {
        if (state->communicators[i].phase == VS_COMMUNICATOR_GONE)
            continue;
        if (found != 0)
            return 0;
        found = (uint32_t)i + 1;
    }
    return found;
}

uint32_t communicator_of(struct vs_state *state, const struct vs_event *event)
{
    uint16_t owner = state->communicator_count == 0 ? UINT16_MAX : state_owner(state, event);
    if (owner >= state->owner_count || !state->owners[owner].nccl)
        return 0;
    uint32_t found = 0;
    for (size_t i = 0; i < state->communicator_count; i++) {
        const struct vs_communicator *each = &state->communicators[i];
        if (each->phase != VS_COMMUNICATOR_MAKING || each->thread != state->thread_now)
            continue;
        if (found != 0)
            return 0;
        found = (uint32_t)i + 1;
    }
    return found != 0 ? found : only_one(state);
}

void communicator_add(struct vs_state *state, uint32_t communicator, int64_t bytes, int sign)
{
    if (communicator == 0)
        return;
    state->communicators[communicator - 1].bytes += sign * bytes;
    state->communicators[communicator - 1].pieces += (uint32_t)sign;
}

void vs_state_communicator_bytes(const struct vs_state *state, int64_t *known, int64_t *all)
{
    *known = *all = 0;
    for (size_t i = 0; i < state->communicator_count; i++)
        *known += state->communicators[i].bytes;
    for (size_t i = 0; i < VS_DEVICE_SLOTS; i++) {
        const struct vs_device_state *device = state->devices[i];
        for (size_t owner = 0; device != NULL && owner < device->owner_slots; owner++)
            if (owner < state->owner_count && state->owners[owner].nccl)
                *all += device->owner_bytes[owner];
    }
}
