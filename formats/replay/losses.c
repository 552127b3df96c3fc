/* SPDX-License-Identifier: Apache-2.0 */
/* Sums up the LOSS records: what was lost, of which kind, and why. */
#include <errno.h>

#include "analysis.h"
#include "grow.h"

/* Kinds × causes × devices: a bound that a damaged file cannot exceed. */
enum { LOSSES_KEPT = 4096 };

static const char *const causes[VS_LOSS_CAUSES] = {
    [VS_LOSS_FULL_WAITED] = "full_waited", [VS_LOSS_FULL_DROP] = "full_drop",
    [VS_LOSS_STALLED] = "stalled",         [VS_LOSS_NESTED] = "nested",
    [VS_LOSS_TOO_LARGE] = "too_large",     [VS_LOSS_FORKED] = "forked",
};

const char *vs_loss_cause_name(unsigned cause)
{
    return cause < VS_LOSS_CAUSES ? causes[cause] : "unknown";
}

static void on_event(void *self, const struct vs_state *state,
                     const struct vs_sequenced_event *sequenced)
{
    struct vs_losses *losses = self;
    const struct vs_event *event = &sequenced->event;
    (void)state;
    if (event->kind != VS_KIND_LOSS)
        return;
    for (size_t i = 0; i < losses->count; i++) {
        struct vs_loss *known = &losses->items[i];
        if (known->kind == event->label && known->cause == (uint8_t)event->handle &&
            known->device == event->device) {
            known->events += event->extra[0];
            known->bytes += event->size;
            return;
        }
    }
    if (losses->count == LOSSES_KEPT)
        return;
    if (!vs_grow(&losses->items, &losses->room, losses->count + 1, sizeof(*losses->items))) {
        losses->error = -ENOMEM;
        return;
    }
    losses->items[losses->count++] = (struct vs_loss){.kind = event->label,
                                                      .cause = (uint8_t)event->handle,
                                                      .device = event->device,
                                                      .events = event->extra[0],
                                                      .bytes = event->size};
}

int vs_losses_start(struct vs_losses *losses, struct vs_state *state)
{
    struct vs_subscriber subscriber = {
        .self = losses, .interest = VS_INTEREST_OTHER, .event = on_event};
    return vs_state_subscribe(state, &subscriber);
}

void vs_losses_release(struct vs_losses *losses)
{
    free(losses->items);
}
