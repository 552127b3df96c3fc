/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the last frees, and those of what was live at each device's peak. Each
 * allocation carries the tick it was made at; a free that is later than a peak, of
 * what was made before it, belongs to that peak. A new peak forgets the ones before.
 */
#include "lifetimes.h"

#include <errno.h>

#include "grow.h"

static bool is_followed(const struct vs_site *site)
{
    return site->kind == VS_SITE_CALL && !site->segment;
}

static void note_peak_free(struct vs_lifetimes *lifetimes, const struct vs_site *site,
                           const struct vs_lifetime *life)
{
    struct vs_peak_frees *peak = lifetimes->peaks[site->device + VS_DEVICE_OFFSET][site->layer];
    if (peak == NULL || life->born > peak->peak_tick)
        return;
    if (!vs_grow(&peak->items, &peak->room, peak->count + 1, sizeof(*peak->items))) {
        lifetimes->error = -ENOMEM;
        return;
    }
    peak->items[peak->count++] = *life;
}

static void on_move(void *self, const struct vs_state *state, const struct vs_move *move)
{
    struct vs_lifetimes *lifetimes = self;
    if (move->note == NULL || move->count == 0)
        return;
    uint32_t tick = lifetimes->growth->tick;
    const struct vs_site *site = &state->sites[move->site - 1];
    struct vs_alone *alone = &lifetimes->alone[site->device + VS_DEVICE_OFFSET];
    if (move->count > 0) {
        *move->note = tick;
        if (alone->thread != state->now_thread)
            *alone = (struct vs_alone){state->now_thread, tick};
        return;
    }
    if (!is_followed(site))
        return;
    struct vs_lifetime *life = &lifetimes->frees[lifetimes->free_count++ % VS_FREES_KEPT];
    *life = (struct vs_lifetime){.bytes = -move->bytes,
                                 .site = move->site,
                                 .born = *move->note,
                                 .died = tick,
                                 .within = alone->thread == state->now_thread &&
                                           *move->note >= alone->since};
    if (site->layer < VS_LIFE_LAYERS)
        note_peak_free(lifetimes, site, life);
}

static void begin_peak(struct vs_lifetimes *lifetimes, struct vs_peak_frees **slot)
{
    if (*slot == NULL)
        *slot = calloc(1, sizeof(**slot));
    if (*slot == NULL) {
        lifetimes->error = -ENOMEM;
        return;
    }
    (*slot)->peak_tick = lifetimes->growth->tick;
    (*slot)->count = 0;
}

static void on_peak(void *self, const struct vs_state *state, const struct vs_device_state *device,
                    unsigned which)
{
    struct vs_lifetimes *lifetimes = self;
    (void)state;
    for (unsigned layer = 0; layer < VS_LIFE_LAYERS; layer++)
        if (which & 1U << layer)
            begin_peak(lifetimes, &lifetimes->peaks[device->device + VS_DEVICE_OFFSET][layer]);
}

int vs_lifetimes_start(struct vs_lifetimes *lifetimes, struct vs_state *state,
                       const struct vs_growth *growth)
{
    struct vs_subscriber subscriber = {.self = lifetimes, .move = on_move, .peak = on_peak};
    lifetimes->growth = growth;
    lifetimes->frees = calloc(VS_FREES_KEPT, sizeof(*lifetimes->frees));
    return lifetimes->frees == NULL ? -ENOMEM : vs_state_subscribe(state, &subscriber);
}

void vs_lifetimes_release(struct vs_lifetimes *lifetimes)
{
    for (size_t i = 0; i < VS_DEVICE_SLOTS; i++) {
        for (size_t layer = 0; layer < VS_LIFE_LAYERS; layer++) {
            if (lifetimes->peaks[i][layer] != NULL)
                free(lifetimes->peaks[i][layer]->items);
            free(lifetimes->peaks[i][layer]);
        }
    }
    free(lifetimes->frees);
    *lifetimes = (struct vs_lifetimes){0};
}
