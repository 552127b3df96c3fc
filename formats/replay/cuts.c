/* SPDX-License-Identifier: Apache-2.0 */
/* The gaps of a cut trace, and what to say of them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis.h"
#include "format_size.h"
#include "grow.h"

static void on_event(void *self, const struct vs_state *state,
                     const struct vs_sequenced_event *sequenced)
{
    struct vs_cuts *cuts = self;
    const struct vs_event *event = &sequenced->event;
    (void)state;
    if (event->kind != VS_KIND_CUT)
        return;
    cuts->gaps++;
    cuts->events += event->size;
    if (cuts->count == VS_CUTS_KEPT)
        return;
    if (!vs_grow(&cuts->items, &cuts->room, cuts->count + 1, sizeof(*cuts->items))) {
        cuts->error = -ENOMEM;
        return;
    }
    cuts->items[cuts->count++] =
        (struct vs_gap){.events = event->size, .from_ns = event->time_ns, .to_ns = event->extra[0]};
}

int vs_cuts_start(struct vs_cuts *cuts, struct vs_state *state)
{
    struct vs_subscriber subscriber = {
        .self = cuts, .interest = VS_INTEREST_OTHER, .event = on_event};
    return vs_state_subscribe(state, &subscriber);
}

void vs_cuts_release(struct vs_cuts *cuts)
{
    free(cuts->items);
}

static uint64_t since(uint64_t time_ns, uint64_t start_ns)
{
    return time_ns > start_ns ? time_ns - start_ns : 0;
}

void vs_gap_text(const struct vs_gap *gap, uint64_t start_ns, char *out, size_t room)
{
    snprintf(out, room, "%" PRIu64 " events between %s and %s", gap->events,
             vs_format_time(since(gap->from_ns, start_ns)).text,
             vs_format_time(since(gap->to_ns, start_ns)).text);
}
