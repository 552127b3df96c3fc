/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Per site: calls, bytes, what is live, and what was live at the highest moment
 * of its device's layer. A new peak costs nothing here: a site's bytes at the
 * peak are those it still has when it changes for the first time after it.
 */
#include <errno.h>

#include "analysis.h"
#include "grow.h"

static void settle(struct vs_site_stats *stats, uint64_t epoch)
{
    if (stats->epoch == epoch)
        return;
    stats->epoch = epoch;
    stats->peak_bytes = stats->live_bytes;
    stats->peak_count = stats->live_count;
}

static uint64_t layer_epoch(const struct vs_state *state, const struct vs_site *site)
{
    const struct vs_device_state *device = vs_state_device(state, site->device);
    return device == NULL ? 0 : device->layers[site->layer].peak_epoch;
}

static void note_rounding(const struct vs_state *state, const struct vs_site *site,
                          const struct vs_move *move, struct vs_site_stats *stats)
{
    int64_t sign = move->bytes < 0 ? -1 : 1;
    stats->live_rounding +=
        sign * vs_state_host_rounding(state, site->owner, (uint64_t)(sign * move->bytes));
}

static void on_move(void *self, const struct vs_state *state, const struct vs_move *move)
{
    struct vs_sites *sites = self;
    if (!vs_grow(&sites->stats, &sites->room, move->site, sizeof(*sites->stats))) {
        sites->error = -ENOMEM;
        return;
    }
    if (move->site > sites->count)
        sites->count = move->site;
    struct vs_site_stats *stats = &sites->stats[move->site - 1];
    if (move->failed) {
        stats->failed++;
        return;
    }
    const struct vs_site *site = vs_state_site(state, move->site);
    settle(stats, layer_epoch(state, site));
    if (site->layer == VS_LAYER_HOST)
        note_rounding(state, site, move, stats);
    stats->live_bytes += move->bytes;
    stats->live_count += move->count;
    if (move->count > 0) {
        stats->allocs++;
        stats->bytes += (uint64_t)move->bytes;
    } else if (move->count < 0) {
        stats->frees++;
    }
}

int vs_sites_start(struct vs_sites *sites, struct vs_state *state)
{
    struct vs_subscriber subscriber = {.self = sites, .move = on_move};
    return vs_state_subscribe(state, &subscriber);
}

void vs_site_stats_add(struct vs_site_stats *sum, const struct vs_site_stats *part)
{
    sum->allocs += part->allocs;
    sum->frees += part->frees;
    sum->failed += part->failed;
    sum->bytes += part->bytes;
    sum->live_bytes += part->live_bytes;
    sum->live_count += part->live_count;
    sum->peak_bytes += part->peak_bytes;
    sum->peak_count += part->peak_count;
    sum->live_rounding += part->live_rounding;
}

void vs_sites_restart(struct vs_sites *sites)
{
    for (size_t i = 0; i < sites->count; i++) {
        struct vs_site_stats *stats = &sites->stats[i];
        stats->allocs = stats->frees = stats->failed = stats->bytes = 0;
    }
}

int vs_sites_finish(struct vs_sites *sites, const struct vs_state *state)
{
    /* Sites made for events that move nothing have statistics too: zeros. */
    if (!vs_grow(&sites->stats, &sites->room, state->site_count, sizeof(*sites->stats)))
        return -ENOMEM;
    sites->count = state->site_count;
    for (size_t i = 0; i < sites->count; i++)
        settle(&sites->stats[i], layer_epoch(state, &state->sites[i]));
    return sites->error;
}

void vs_sites_release(struct vs_sites *sites)
{
    free(sites->stats);
}
