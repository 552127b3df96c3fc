/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows every site's live bytes from below: a stack of levels, each with the
 * moment since which at least that much has been live. What an allocation adds is
 * a new level, what a free takes is taken off the newest, whichever block it was:
 * a queue that gives back its oldest block for every new one stays flat, and one
 * block that is made anew a little larger each time grows.
 */
#include "growth.h"

#include <errno.h>

#include "grow.h"

enum { FOLLOWED = 1, NOT_FOLLOWED = 2, SPARE_LEVELS = 64 };

/* ---- levels --------------------------------------------------------------------------- */

void vs_track_settle(struct vs_track *track)
{
    int64_t bytes = track->fall_bytes;
    int32_t count = track->fall_count;
    struct vs_level *below = track->levels + track->level_count;
    while (below != track->levels && (bytes != 0 || count != 0)) {
        below--;
        int64_t taken_bytes = below->bytes < bytes ? below->bytes : bytes;
        int32_t taken_count = below->count < count ? below->count : count;
        below->bytes -= taken_bytes;
        below->count -= taken_count;
        bytes -= taken_bytes;
        count -= taken_count;
    }
    while (track->level_count != 0 && track->levels[track->level_count - 1].bytes == 0 &&
           track->levels[track->level_count - 1].count == 0)
        track->level_count--;
    track->fall_bytes = 0;
    track->fall_count = 0;
    track->fall_tick = 0;
}

/*
 * One block that is made anew larger each time has a level for each time: those
 * closest to each other become one, until half are left.
 */
static void thin(struct vs_track *track)
{
    const struct vs_level *newest = &track->levels[track->level_count - 1];
    uint32_t apart = (newest->tick - track->levels[0].tick) / (track->level_count / 2 + 1),
             kept = 0;
    for (uint32_t i = 0; i < track->level_count; i++) {
        struct vs_level *below = kept == 0 ? NULL : &track->levels[kept - 1];
        if (below != NULL && track->levels[i].tick - below->tick <= apart) {
            below->bytes += track->levels[i].bytes;
            below->count += track->levels[i].count;
        } else {
            track->levels[kept++] = track->levels[i];
        }
    }
    track->level_count = kept;
}

/* The common case: what was made last is what was freed. */
static inline bool fell_by_one_level(const struct vs_track *track)
{
    const struct vs_level *newest = track->levels + track->level_count - 1;
    return track->level_count != 0 && newest->count == track->fall_count &&
           newest->bytes == track->fall_bytes;
}

static inline void end_fall(struct vs_track *track)
{
    if (!fell_by_one_level(track)) {
        vs_track_settle(track);
        return;
    }
    track->level_count--;
    track->fall_count = 0;
    track->fall_bytes = 0;
    track->fall_tick = 0;
}

/* Room for one more level. */
static bool make_room(struct vs_track *track)
{
    if (track->level_count > 2 * (uint32_t)track->count + SPARE_LEVELS + VS_BEATS_KEPT)
        thin(track);
    size_t room = track->level_room;
    if (!vs_grow(&track->levels, &room, track->level_count + 1, sizeof(*track->levels)))
        return false;
    track->level_room = (uint32_t)room;
    return true;
}

/* ---- one change ---------------------------------------------------------------------------- */

static inline void note_more(struct vs_growth *growth, struct vs_track *track, int64_t bytes,
                             int32_t count)
{
    if (track->fall_count != 0 || track->fall_bytes != 0)
        end_fall(track);
    if (track->level_count == track->level_room && !make_room(track)) {
        growth->error = -ENOMEM;
        return;
    }
    track->levels[track->level_count++] = (struct vs_level){growth->tick, count, bytes};
    growth->made_tick = growth->tick;
    growth->made_ns = growth->state->now_ns;
    if (growth->began_ns == 0)
        growth->began_ns = growth->made_ns;
    if (track->graphs != growth->graphs) {
        track->graphs = growth->graphs;
        track->allocs_before = track->allocs;
    }
    track->captured += growth->state->capture_count != 0;
    if (count != 0 && ++track->allocs == track->next_beat)
        vs_steps_beat(growth, track);
}

/* Before the first of a row of frees. */
static void note_fall(struct vs_track *track, uint32_t tick)
{
    track->fall_tick = tick;
    if (track->count <= track->high_count && track->bytes <= track->high_bytes)
        return;
    track->high_tick = tick;
    if (track->count > track->high_count)
        track->high_count = track->count;
    if (track->bytes > track->high_bytes)
        track->high_bytes = track->bytes;
}

static inline void note_less(struct vs_growth *growth, struct vs_track *track, int64_t bytes,
                             int32_t count)
{
    if (track->fall_count == 0 && track->fall_bytes == 0)
        note_fall(track, growth->tick);
    if (growth->made_tick + 1 == growth->tick)
        growth->over_ns = growth->state->now_ns;
    track->fall_bytes -= bytes;
    track->fall_count -= count;
    track->frees += count != 0;
}

static bool make_fall_room(struct vs_growth *growth, size_t count)
{
    return vs_grow(&growth->fell_to, &growth->fell_room, count, sizeof(*growth->fell_to)) &&
           vs_grow(&growth->fell_held, &growth->fell_held_room, count, sizeof(*growth->fell_held));
}

/*
 * Remembers the last fall to each number of live blocks or to fewer. `top_bytes`: of the
 * change, what the watched device's top layer gets or loses by it; its total moves later.
 */
static inline void note_live(struct vs_growth *growth, int32_t count, int64_t top_bytes)
{
    int32_t before = growth->live, after = before + count < 0 ? 0 : before + count;
    if (!make_fall_room(growth, (size_t)after + 1)) {
        growth->error = -ENOMEM;
        return;
    }
    for (int32_t i = before + 1; i <= after; i++) {
        growth->fell_to[i] = growth->fell_to[i - 1];
        growth->fell_held[i] = growth->fell_held[i - 1];
    }
    if (after < before) {
        growth->fell_to[after] = growth->tick;
        growth->fell_held[after] = vs_growth_held(growth) + top_bytes;
    }
    growth->live = after;
}

static inline void note(struct vs_growth *growth, struct vs_track *track, int64_t bytes,
                        int32_t count, int64_t top_bytes)
{
    if (growth->tick != UINT32_MAX)
        growth->tick++;
    if (count > 0 || (count == 0 && bytes > 0))
        note_more(growth, track, bytes, count);
    else
        note_less(growth, track, bytes, count);
    track->bytes += bytes;
    track->count += count;
    note_live(growth, count, top_bytes);
}

/* ---- who tells of changes -------------------------------------------------------------------- */

/* Segments are where a cache keeps its blocks: these are followed. */
static void decide(struct vs_growth *growth, struct vs_track *track, uint32_t id)
{
    const struct vs_site *site = vs_state_site(growth->state, id);
    bool followed = site != NULL && site->kind == VS_SITE_CALL && !site->segment;
    track->site = id;
    track->next_beat = 1;
    track->followed = followed ? FOLLOWED : NOT_FOLLOWED;
}

/* What of a change is on the watched device's top layer: its total moves after this. */
static inline int64_t top_bytes_of(struct vs_growth *growth, const struct vs_state *state,
                                   const struct vs_move *move)
{
    const struct vs_site *site = &state->sites[move->site - 1];
    if (site->device < 0)
        return 0;
    if (growth->watched == NULL)
        growth->watched = vs_state_device(state, site->device);
    if (growth->watched == NULL || growth->watched->device != site->device)
        return 0;
    return site->layer == vs_device_top_layer(growth->watched) ? move->bytes : 0;
}

static void on_move(void *self, const struct vs_state *state, const struct vs_move *move)
{
    struct vs_growth *growth = self;
    if (move->failed)
        return;
    if (move->site > growth->track_count) {
        if (!vs_grow(&growth->tracks, &growth->track_room, move->site, sizeof(*growth->tracks))) {
            growth->error = -ENOMEM;
            return;
        }
        growth->track_count = move->site;
    }
    struct vs_track *track = &growth->tracks[move->site - 1];
    if (track->followed == 0)
        decide(growth, track, move->site);
    if (track->followed == FOLLOWED)
        note(growth, track, move->bytes, move->count, top_bytes_of(growth, state, move));
}

static struct vs_track *object_track(struct vs_growth *growth, enum vs_object_kind kind,
                                     uint32_t site)
{
    uint64_t *position = vs_sizes_put(&growth->object_index, (uint64_t)kind << 32 | site);
    if (position == NULL)
        return NULL;
    if (*position == 0) {
        if (!vs_grow(&growth->objects, &growth->object_room, growth->object_count + 1,
                     sizeof(*growth->objects)))
            return NULL;
        *position = ++growth->object_count;
        growth->objects[*position - 1] = (struct vs_track){
            .site = site, .object = (uint8_t)(kind + 1), .followed = FOLLOWED, .next_beat = 1};
    }
    return &growth->objects[*position - 1];
}

static void on_object(void *self, enum vs_object_kind kind, uint32_t site, int32_t count)
{
    struct vs_growth *growth = self;
    struct vs_track *track = site == 0 ? NULL : object_track(growth, kind, site);
    if (track == NULL)
        growth->error = -ENOMEM;
    else
        note(growth, track, 0, count, 0);
    if (kind == VS_OBJECT_GRAPH_EXEC && count > 0) {
        growth->graph_tick = growth->tick;
        growth->graphs++;
    }
}

static void on_event(void *self, const struct vs_state *state,
                     const struct vs_sequenced_event *event)
{
    (void)state;
    vs_steps_mark(self, event);
}

/* ---- life ---------------------------------------------------------------------------- */

int vs_growth_start(struct vs_growth *growth, struct vs_state *state, struct vs_objects *objects)
{
    struct vs_subscriber subscriber = {
        .self = growth, .interest = VS_INTEREST_OTHER, .move = on_move, .event = on_event};
    growth->state = state;
    objects->watch = on_object;
    objects->watch_self = growth;
    return vs_state_subscribe(state, &subscriber);
}

void vs_growth_restart(struct vs_growth *growth)
{
    growth->from_tick = growth->tick;
}

struct vs_track *vs_growth_track(const struct vs_growth *growth, size_t position)
{
    if (position < growth->track_count)
        return &growth->tracks[position];
    position -= growth->track_count;
    return position < growth->object_count ? &growth->objects[position] : NULL;
}

static void release_tracks(struct vs_track *tracks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(tracks[i].levels);
    free(tracks);
}

void vs_growth_release(struct vs_growth *growth)
{
    release_tracks(growth->tracks, growth->track_count);
    release_tracks(growth->objects, growth->object_count);
    vs_sizes_release(&growth->object_index);
    for (size_t i = 0; i < VS_CANDIDATES; i++) {
        if (growth->candidates[i] != NULL)
            free(growth->candidates[i]->items);
        free(growth->candidates[i]);
    }
    free(growth->fell_to);
    free(growth->fell_held);
    free(growth->marked.items);
    for (size_t i = 0; i < growth->named_count; i++)
        free(growth->named[i].beats.items);
    *growth = (struct vs_growth){0};
}
