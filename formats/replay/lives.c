/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the blocks of a site are freed by the thread that made them before any
 * other allocates, or outlive that. Nothing is kept of a single block: a free
 * counts against the last allocation of its site.
 */
#include <errno.h>

#include "grow.h"
#include "growth.h"

static void count_one(uint32_t *count)
{
    if (*count != UINT32_MAX)
        ++*count;
}

static void on_alloc(struct vs_lives *lives, const struct vs_state *state, struct vs_life *life,
                     size_t device)
{
    if (lives->devices[device].thread != state->now_thread) {
        lives->devices[device].thread = state->now_thread;
        lives->devices[device].stretch++;
    }
    life->thread = state->now_thread;
    life->stretch = lives->devices[device].stretch;
}

static uint32_t ticks_lived(const struct vs_lives *lives, const struct vs_move *move)
{
    bool known = lives->growth != NULL && move->note != NULL && *move->note != 0;
    return known ? lives->growth->tick - *move->note : 0;
}

static void on_free(struct vs_lives *lives, const struct vs_state *state,
                    const struct vs_move *move, struct vs_life *life, size_t device)
{
    if (life->thread != state->now_thread) {
        life->freer = state->now_thread;
        count_one(&life->elsewhere);
    } else if (life->stretch != lives->devices[device].stretch) {
        count_one(&life->later);
    } else {
        count_one(&life->within);
        life->within_ticks += ticks_lived(lives, move);
    }
}

static void on_move(void *self, const struct vs_state *state, const struct vs_move *move)
{
    struct vs_lives *lives = self;
    const struct vs_site *site = vs_state_site(state, move->site);
    if (state->cut) /* only what stayed is there */
        return;
    if (site->layer != VS_LAYER_FRAMEWORK || move->failed || move->count == 0)
        return;
    if (!vs_grow(&lives->items, &lives->room, move->site, sizeof(*lives->items))) {
        lives->error = -ENOMEM;
        return;
    }
    if (move->site > lives->count)
        lives->count = move->site;
    struct vs_life *life = &lives->items[move->site - 1];
    size_t device = (size_t)site->device + VS_DEVICE_OFFSET;
    if (move->count > 0)
        on_alloc(lives, state, life, device);
    else
        on_free(lives, state, move, life, device);
}

int vs_lives_start(struct vs_lives *lives, struct vs_state *state, const struct vs_growth *growth)
{
    lives->growth = growth;
    struct vs_subscriber subscriber = {.self = lives, .move = on_move};
    return vs_state_subscribe(state, &subscriber);
}

void vs_lives_release(struct vs_lives *lives)
{
    free(lives->items);
}
