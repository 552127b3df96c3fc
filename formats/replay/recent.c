/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each block carries the tick it was made at: those of the peak's live set that are
 * not older than the step are summed up by site.
 */
#include "recent.h"

#include <errno.h>
#include <stdlib.h>

enum { SHARE = 100 /* of the run's ticks */, LEAST_TICKS = 10 /* of a share */ };

/* What is looked at of one device. */
struct view {
    const struct vs_state *state;
    struct vs_recents *out;
    struct vs_recent *recent;
    uint32_t peak_tick, last_from, before_from;
};

static void take(void *self, const struct vs_lifetime *life)
{
    struct view *view = self;
    const struct vs_site *site = vs_state_site(view->state, life->site);
    if (site->device != view->recent->device || site->layer != view->recent->layer ||
        life->born > view->peak_tick || life->born < view->before_from)
        return;
    struct vs_recent_sums *sums[] = {&view->recent->total, &view->out->sites[life->site - 1]};
    for (size_t i = 0; i < 2; i++) {
        bool last = life->born >= view->last_from;
        *(last ? &sums[i]->last_bytes : &sums[i]->before_bytes) += life->bytes;
        ++*(last ? &sums[i]->last_count : &sums[i]->before_count);
    }
}

static uint32_t ticks_back(uint32_t tick, uint64_t ticks)
{
    return tick > ticks ? (uint32_t)(tick - ticks) + 1 : 0;
}

/* The last step that begins at a tick or before it; -1 before the first. */
static long step_at(const struct vs_lifetimes_found *found, uint32_t tick)
{
    long low = 0, high = (long)found->begin_count;
    while (low < high) {
        long middle = low + (high - low) / 2;
        if (found->begins[middle] <= tick)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

static void by_length(struct view *view, enum vs_recent_rule rule, uint64_t ticks)
{
    view->recent->rule = rule;
    view->recent->steps_before = VS_RECENT_STEPS;
    view->last_from = ticks_back(view->peak_tick, ticks);
    view->before_from = ticks_back(view->peak_tick, ticks * (1 + VS_RECENT_STEPS));
}

static void by_step(struct view *view, const struct vs_lifetimes_found *found,
                    const struct vs_steps *steps, size_t step)
{
    size_t before = step < VS_RECENT_STEPS ? 0 : step - VS_RECENT_STEPS;
    view->recent->rule = VS_RECENT_BY_STEP;
    view->recent->step = vs_steps_number(steps, step + found->first_window);
    view->recent->steps_before = step - before;
    view->last_from = found->begins[step];
    view->before_from = found->begins[before];
}

/* Which ticks count as the last ones before the peak. */
static void bound(struct view *view, const struct vs_lifetimes *lifetimes,
                  const struct vs_lifetimes_found *found, const struct vs_steps *steps)
{
    long step = step_at(found, view->peak_tick);
    uint64_t share = lifetimes->growth->tick / SHARE;
    if (step < 0) {
        if (share >= LEAST_TICKS)
            by_length(view, VS_RECENT_BY_SHARE, share);
        return;
    }
    size_t whole = (size_t)step + 1 < found->begin_count ? (size_t)step : found->begin_count - 2;
    uint64_t length = (found->begins[whole + 1] - found->begins[whole]) / found->steps_apart;
    bool long_after = view->peak_tick - found->begins[step] > 2 * length && whole != (size_t)step;
    if (found->steps_apart > 1 || long_after)
        by_length(view, VS_RECENT_BY_LENGTH, length);
    else
        by_step(view, found, steps, (size_t)step);
}

int vs_recents_find(const struct vs_lifetimes *lifetimes, const struct vs_lifetimes_found *found,
                    const struct vs_steps *steps, const struct vs_state *state,
                    struct vs_recents *out)
{
    *out = (struct vs_recents){.site_count = state->site_count};
    out->sites = calloc(out->site_count + 1, sizeof(*out->sites));
    if (out->sites == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < found->peak_count; i++) {
        const struct vs_device_state *device = vs_state_device(state, found->peaks[i].device);
        struct vs_recent *recent = &out->items[out->count++];
        *recent =
            (struct vs_recent){.device = found->peaks[i].device, .layer = found->peaks[i].layer};
        struct view view = {.state = state, .out = out, .recent = recent};
        view.peak_tick =
            lifetimes->peaks[device->device + VS_DEVICE_OFFSET][recent->layer]->peak_tick;
        bound(&view, lifetimes, found, steps);
        if (recent->rule != VS_RECENT_UNKNOWN)
            vs_lifetimes_each_at_peak(lifetimes, state, device, take, &view);
    }
    return 0;
}

void vs_recents_release(struct vs_recents *recents)
{
    free(recents->sites);
    *recents = (struct vs_recents){0};
}

const struct vs_recent *vs_recent_of(const struct vs_recents *recents, int device)
{
    for (size_t i = 0; i < recents->count; i++)
        if (recents->items[i].device == device)
            return &recents->items[i];
    return NULL;
}

const char *vs_recent_rule_name(enum vs_recent_rule rule)
{
    static const char *const names[] = {"unknown", "steps", "step_length", "run_percent"};
    return names[rule];
}
