/* SPDX-License-Identifier: Apache-2.0 */
/* Time the program spent inside memory calls, per entry point. */
#include <errno.h>

#include "analysis.h"
#include "grow.h"

enum { CALL_IDS = 65536 };

static struct vs_call_time *entry(struct vs_slow_calls *calls, uint16_t call)
{
    uint32_t *position = &calls->index[call];
    if (*position == 0) {
        if (!vs_grow(&calls->items, &calls->room, calls->count + 1, sizeof(*calls->items))) {
            calls->error = -ENOMEM;
            return NULL;
        }
        calls->items[calls->count].call = call;
        *position = (uint32_t)++calls->count;
    }
    return &calls->items[*position - 1];
}

static void on_event(void *self, const struct vs_state *state,
                     const struct vs_sequenced_event *sequenced)
{
    struct vs_slow_calls *calls = self;
    const struct vs_event *event = &sequenced->event;
    (void)state;
    if (event->duration_ns == 0 || event->call == 0)
        return;
    struct vs_call_time *time = entry(calls, event->call);
    if (time == NULL)
        return;
    time->count++;
    time->total_ns += event->duration_ns;
    if (event->duration_ns > time->max_ns)
        time->max_ns = event->duration_ns;
}

int vs_slow_calls_start(struct vs_slow_calls *calls, struct vs_state *state)
{
    calls->index = calloc(CALL_IDS, sizeof(*calls->index));
    if (calls->index == NULL)
        return -ENOMEM;
    struct vs_subscriber subscriber = {.self = calls,
                                       .interest = VS_INTEREST_MEMORY | VS_INTEREST_OUTCOME |
                                                   VS_INTEREST_OTHER,
                                       .event = on_event};
    return vs_state_subscribe(state, &subscriber);
}

static int by_total(const void *a, const void *b)
{
    const struct vs_call_time *left = a, *right = b;
    if (left->total_ns != right->total_ns)
        return left->total_ns < right->total_ns ? 1 : -1;
    return (left->call > right->call) - (left->call < right->call);
}

void vs_slow_calls_finish(struct vs_slow_calls *calls)
{
    if (calls->count > 1)
        qsort(calls->items, calls->count, sizeof(*calls->items), by_total);
}

void vs_slow_calls_release(struct vs_slow_calls *calls)
{
    free(calls->items);
    free(calls->index);
}
