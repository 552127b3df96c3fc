/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rise adds one at the first bound it crosses and takes one off behind the last:
 * the sum up to a bound is how often it was crossed, at the same cost for any rise.
 */
#include "dwell.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static size_t part_of(const struct vs_dwell *dwell, int64_t height)
{
    return height <= 0 ? 0 : (size_t)(height / dwell->part_bytes);
}

/* Two parts become one, until a height has its part. */
static void widen(struct vs_dwell *dwell, int64_t height)
{
    while (part_of(dwell, height) >= VS_DWELL_PARTS) {
        for (size_t i = 0; i < VS_DWELL_PARTS / 2; i++) {
            dwell->time_ns[i] = dwell->time_ns[2 * i] + dwell->time_ns[2 * i + 1];
            dwell->rises[i] = dwell->rises[2 * i] + (i == 0 ? 0 : dwell->rises[2 * i - 1]);
        }
        dwell->rises[VS_DWELL_PARTS / 2] =
            dwell->rises[VS_DWELL_PARTS - 1] + dwell->rises[VS_DWELL_PARTS];
        memset(&dwell->time_ns[VS_DWELL_PARTS / 2], 0,
               VS_DWELL_PARTS / 2 * sizeof(dwell->time_ns[0]));
        memset(&dwell->rises[VS_DWELL_PARTS / 2 + 1], 0,
               VS_DWELL_PARTS / 2 * sizeof(dwell->rises[0]));
        dwell->part_bytes *= 2;
    }
}

/* The clock of an event may lie a little before that of the one in front of it. */
static void pass_time(struct vs_dwell *dwell, uint64_t now_ns)
{
    if (now_ns <= dwell->since_ns)
        return;
    dwell->time_ns[part_of(dwell, dwell->height)] += now_ns - dwell->since_ns;
    dwell->since_ns = now_ns;
}

static void change(struct vs_dwell *dwell, uint64_t now_ns, int64_t bytes)
{
    pass_time(dwell, now_ns);
    int64_t after = dwell->height + bytes;
    widen(dwell, after);
    size_t from = part_of(dwell, dwell->height), to = part_of(dwell, after);
    dwell->height = after;
    if (to <= from)
        return;
    dwell->rises[from + 1]++;
    dwell->rises[to + 1]--;
}

static struct vs_dwell *new_dwell(const struct vs_dwells *dwells, const struct vs_state *state)
{
    struct vs_dwell *dwell = calloc(1, sizeof(*dwell));
    if (dwell == NULL)
        return NULL;
    dwell->part_bytes = 1;
    dwell->since_ns = dwells->from_ns != 0 ? dwells->from_ns : state->start_ns;
    return dwell;
}

static void on_move(void *self, const struct vs_state *state, const struct vs_move *move)
{
    struct vs_dwells *dwells = self;
    const struct vs_site *site = &state->sites[move->site - 1];
    if (site->layer >= VS_DWELL_LAYERS || move->failed || move->bytes == 0)
        return;
    struct vs_dwell **slot = &dwells->devices[site->device + VS_DEVICE_OFFSET][site->layer];
    if (*slot == NULL)
        *slot = new_dwell(dwells, state);
    if (*slot == NULL)
        dwells->error = -ENOMEM;
    else
        change(*slot, state->last_time_ns, move->bytes);
}

int vs_dwells_start(struct vs_dwells *dwells, struct vs_state *state)
{
    struct vs_subscriber subscriber = {.self = dwells, .move = on_move};
    return vs_state_subscribe(state, &subscriber);
}

static struct vs_dwell *each(const struct vs_dwells *dwells, size_t index)
{
    return dwells->devices[index / VS_DWELL_LAYERS][index % VS_DWELL_LAYERS];
}

enum { ALL_DWELLS = VS_DEVICE_SLOTS * VS_DWELL_LAYERS };

void vs_dwells_restart(struct vs_dwells *dwells, uint64_t from_ns)
{
    dwells->from_ns = from_ns;
    for (size_t i = 0; i < ALL_DWELLS; i++) {
        struct vs_dwell *dwell = each(dwells, i);
        if (dwell == NULL)
            continue;
        memset(dwell->time_ns, 0, sizeof(dwell->time_ns));
        memset(dwell->rises, 0, sizeof(dwell->rises));
        dwell->since_ns = from_ns;
        /* What is held now was risen to before: one stretch, which the window begins in. */
        dwell->rises[0]++;
        dwell->rises[part_of(dwell, dwell->height) + 1]--;
    }
}

void vs_dwells_finish(struct vs_dwells *dwells, uint64_t end_ns)
{
    for (size_t i = 0; i < ALL_DWELLS; i++)
        if (each(dwells, i) != NULL)
            pass_time(each(dwells, i), end_ns);
}

void vs_dwells_release(struct vs_dwells *dwells)
{
    for (size_t i = 0; i < ALL_DWELLS; i++)
        free(each(dwells, i));
    *dwells = (struct vs_dwells){0};
}

bool vs_dwells_near_peak(const struct vs_dwells *dwells, const struct vs_device_state *device,
                         struct vs_near_peak *out)
{
    enum vs_layer top = vs_device_top_layer(device);
    const struct vs_dwell *dwell = dwells->devices[device->device + VS_DEVICE_OFFSET][top];
    int64_t peak = device->layers[top].peak_bytes;
    if (dwell == NULL || peak <= 0)
        return false;
    size_t least = part_of(dwell, peak - peak / 10);
    *out = (struct vs_near_peak){.least_bytes = (int64_t)least * dwell->part_bytes};
    for (size_t i = 0; i <= least; i++)
        out->times += (uint64_t)dwell->rises[i];
    for (size_t i = least; i < VS_DWELL_PARTS; i++)
        out->time_ns += dwell->time_ns[i];
    return true;
}
