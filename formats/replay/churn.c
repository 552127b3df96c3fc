/* SPDX-License-Identifier: Apache-2.0 */
/* Follows segments that go back to the driver, and calls that go past every cache. */
#include "churn.h"

#include <errno.h>

#include "grow.h"

enum {
    LEAST_ROUNDS = 5,
    STEPS_OF_A_ROUND = 4, /* at most */
    LEAST_CHURN = 256,    /* allocations, and one in each step */
};

/* ---- moves ------------------------------------------------------------------------------- */

static void on_move(void *self, const struct vs_state *state, const struct vs_move *move)
{
    struct vs_churn *churn = self;
    const struct vs_site *site = &state->sites[move->site - 1];
    if (site->layer == VS_LAYER_FRAMEWORK || site->kind != VS_SITE_CALL)
        return;
    if (move->failed) {
        churn->now.refused = churn->now.refused || site->segment;
        return;
    }
    if (!site->segment) {
        *(move->count > 0 ? &churn->now.made_site : &churn->now.freed_site) =
            move->count == 0 ? 0 : move->site;
        return;
    }
    churn->now.device = site->device;
    if (move->count > 0) {
        churn->now.requested += move->bytes;
    } else if (move->count < 0) {
        churn->now.released -= move->bytes;
        churn->now.segments++;
    }
}

/* ---- rounds of segments ------------------------------------------------------------------- */

static void end_round(struct vs_churn *churn)
{
    if (churn->round.release == 0)
        return;
    struct vs_release *release = &churn->releases[churn->round.release - 1];
    int64_t again = churn->round.requested < churn->round.released ? churn->round.requested
                                                                   : churn->round.released;
    release->rounds++;
    release->again_rounds += again * 2 >= churn->round.released;
    release->bytes += churn->round.released;
    release->again_bytes += again;
    churn->round.release = 0;
}

static void begin_round(struct vs_churn *churn, const struct vs_event *event)
{
    end_round(churn);
    uint32_t site = vs_state_site_of(churn->state, event, churn->now.device, VS_LAYER_DRIVER, true);
    size_t at = 0;
    while (at < churn->release_count && churn->releases[at].site != site)
        at++;
    if (site == 0 || at == VS_RELEASES_KEPT)
        return;
    if (!vs_grow(&churn->releases, &churn->release_room, at + 1, sizeof(*churn->releases))) {
        churn->error = -ENOMEM;
        return;
    }
    if (at == churn->release_count) {
        churn->release_count++;
        churn->releases[at] = (struct vs_release){.site = site, .first_tick = churn->growth->tick};
    }
    churn->releases[at].last_tick = churn->growth->tick;
    churn->round.release = at + 1;
    churn->round.released = churn->round.requested = 0;
}

static void note_release(struct vs_churn *churn, const struct vs_sequenced_event *sequenced)
{
    const struct vs_event *event = &sequenced->event;
    if (churn->refused && churn->refused_thread == sequenced->thread)
        return;
    if (churn->round.release == 0 || churn->round.requested != 0)
        begin_round(churn, event);
    if (churn->round.release == 0)
        return;
    churn->releases[churn->round.release - 1].segments += churn->now.segments;
    churn->releases[churn->round.release - 1].calls++;
    churn->round.released += churn->now.released;
}

static void note_request(struct vs_churn *churn, const struct vs_sequenced_event *sequenced)
{
    if (churn->refused_thread == sequenced->thread)
        churn->refused = false;
    if (churn->round.release == 0)
        return;
    struct vs_release *release = &churn->releases[churn->round.release - 1];
    churn->round.requested += churn->now.requested;
    release->calls++;
    release->timed_calls++;
    release->time_ns += sequenced->event.duration_ns;
}

/* ---- calls of the program ---------------------------------------------------------------------
 */

static struct vs_call_cost *cost_of(struct vs_churn *churn, uint32_t site)
{
    if (!vs_grow(&churn->costs, &churn->cost_room, site, sizeof(*churn->costs))) {
        churn->error = -ENOMEM;
        return NULL;
    }
    if (site > churn->cost_count)
        churn->cost_count = site;
    return &churn->costs[site - 1];
}

static void note_made(struct vs_churn *churn, const struct vs_event *event)
{
    struct vs_call_cost *cost = cost_of(churn, churn->now.made_site);
    if (cost == NULL)
        return;
    cost->allocs++;
    cost->time_ns += event->duration_ns;
    cost->pool = event->kind == VS_KIND_POOL_ALLOC;
}

/* A free is told before it is made: how long it took shows when something is measured behind it. */
static void time_free(struct vs_churn *churn, const struct vs_sequenced_event *sequenced,
                      uint32_t site)
{
    churn->timed.waits = true;
    churn->timed.began_ns = sequenced->event.time_ns;
    churn->timed.thread = sequenced->thread;
    churn->timed.call = sequenced->event.call;
    churn->timed.site = site;
}

static void note_time(struct vs_churn *churn, const struct vs_sequenced_event *sample)
{
    churn->timed.waits = false;
    if (sample->thread != churn->timed.thread || sample->event.call != churn->timed.call ||
        sample->event.time_ns < churn->timed.began_ns)
        return;
    uint64_t time_ns = sample->event.time_ns - churn->timed.began_ns;
    if (churn->timed.site != 0) {
        struct vs_call_cost *cost = cost_of(churn, churn->timed.site);
        if (cost != NULL) {
            cost->timed_frees++;
            cost->time_ns += time_ns;
        }
    } else if (churn->round.release != 0) {
        churn->releases[churn->round.release - 1].timed_calls++;
        churn->releases[churn->round.release - 1].time_ns += time_ns;
    }
}

static void note_freed(struct vs_churn *churn)
{
    struct vs_call_cost *cost = cost_of(churn, churn->now.freed_site);
    if (cost != NULL)
        cost->frees++;
}

/* ---- events
 * -------------------------------------------------------------------------------------- */

static void on_event(void *self, const struct vs_state *state,
                     const struct vs_sequenced_event *sequenced)
{
    struct vs_churn *churn = self;
    (void)state;
    if (sequenced->event.kind == VS_KIND_SAMPLE && churn->timed.waits)
        note_time(churn, sequenced);
    if (churn->now.refused) {
        churn->refused = true;
        churn->refused_thread = sequenced->thread;
    }
    if (sequenced->event.kind == VS_KIND_FW_OOM)
        churn->refused = false;
    if (churn->now.requested > 0)
        note_request(churn, sequenced);
    if (churn->now.made_site != 0)
        note_made(churn, &sequenced->event);
    if (churn->now.released > 0)
        note_release(churn, sequenced);
    if (churn->now.freed_site != 0)
        note_freed(churn);
    if (churn->now.released > 0 || churn->now.freed_site != 0)
        time_free(churn, sequenced, churn->now.released > 0 ? 0 : churn->now.freed_site);
    memset(&churn->now, 0, sizeof(churn->now));
}

int vs_churn_start(struct vs_churn *churn, struct vs_state *state, const struct vs_growth *growth)
{
    struct vs_subscriber subscriber = {.self = churn,
                                       .interest = VS_INTEREST_MEMORY | VS_INTEREST_OUTCOME |
                                                   VS_INTEREST_OTHER,
                                       .move = on_move,
                                       .event = on_event};
    churn->state = state;
    churn->growth = growth;
    return vs_state_subscribe(state, &subscriber);
}

void vs_churn_finish(struct vs_churn *churn)
{
    end_round(churn);
}

void vs_churn_release(struct vs_churn *churn)
{
    free(churn->releases);
    free(churn->costs);
    *churn = (struct vs_churn){0};
}

/* ---- what is a finding -------------------------------------------------------------------------
 */

static uint64_t steps_between(const struct vs_steps *steps, uint32_t from, uint32_t to)
{
    long first = vs_steps_window(steps, from), last = vs_steps_window(steps, to);
    return (uint64_t)(last - first) * steps->steps_per_window;
}

bool vs_release_is_loop(const struct vs_release *release, const struct vs_steps *steps)
{
    if (release->rounds < LEAST_ROUNDS || release->again_rounds * 5 < release->rounds * 4)
        return false;
    return steps->beats == NULL ||
           release->rounds * STEPS_OF_A_ROUND >=
               steps_between(steps, release->first_tick, release->last_tick);
}

bool vs_cost_is_churn(const struct vs_call_cost *cost, const struct vs_steps *steps)
{
    if (cost->pool || cost->allocs < LEAST_CHURN || cost->frees * 10 < cost->allocs * 9)
        return false;
    return steps->beats == NULL || cost->allocs >= steps->count;
}

bool vs_frame_empties_cache(const struct vs_frame *frame)
{
    return frame->function != NULL && (strcmp(frame->function, "empty_cache") == 0 ||
                                       strstr(frame->function, "emptyCache") != NULL);
}
