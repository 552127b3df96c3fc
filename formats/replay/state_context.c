/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts: which are live on a device, and what goes when one ends. There is
 * nothing to measure with then, so the process's share is taken away by what is
 * known; a measurement that follows corrects it.
 */
#include "state_internal.h"

static void begin(struct vs_state *state, struct vs_device_state *device,
                  const struct vs_event *event)
{
    if (!device->context_seen) {
        device->context_seen = true;
        device->context_time_ns = state->now_ns;
        device->context_label = event->label != 0 ? event->label : event->call;
        device->context_site =
            vs_state_site_of(state, event, event->device, VS_LAYER_DRIVER, false);
    }
    if (event->kind == VS_KIND_CONTEXT_RETAIN) {
        device->primary_retains++;
        device->primary_context = event->context;
    }
    if (event->context != 0 && vs_sizes_put(&device->contexts, event->context) == NULL)
        state_fail(state);
}

/* The bytes that went with one of the device's contexts; with the last one, all. */
static int64_t take_implicit(struct vs_device_state *device)
{
    int64_t removed = 0;
    size_t live = device->contexts.count;
    if (live > 1) {
        removed = device->implicit_bytes[VS_IMPLICIT_CONTEXT] / (int64_t)live;
        device->implicit_bytes[VS_IMPLICIT_CONTEXT] -= removed;
        return removed;
    }
    for (int i = 0; i < VS_IMPLICITS; i++) {
        removed += device->implicit_bytes[i];
        device->implicit_bytes[i] = 0;
    }
    device->implicit_uncertainty = 0;
    device->others_uncertainty = 0;
    return removed;
}

static void keep(struct vs_undo *undo, const struct vs_device_state *device, uint64_t context)
{
    if (undo == NULL)
        return;
    undo->what = VS_UNDO_CONTEXT;
    undo->context = (struct vs_undo_context){.context = context,
                                             .measured_ns = device->measured_ns,
                                             .primary_retains = device->primary_retains,
                                             .implicit_uncertainty = device->implicit_uncertainty,
                                             .others_uncertainty = device->others_uncertainty,
                                             .rounding = device->rounding};
    memcpy(undo->context.implicit_bytes, device->implicit_bytes, sizeof(device->implicit_bytes));
}

static void end(struct vs_state *state, struct vs_device_state *device,
                const struct vs_ending *ending, struct vs_undo *undo)
{
    memory_drop(state, ending, undo);
    if (ending->pools)
        pool_drop(state, device->device, undo);
    if (device->direct_asked == 0)
        device->rounding = 0;
    int64_t removed = take_implicit(device);
    device->base_used -= removed;
    device->settled_used -= removed;
    device->conclusion_count = 0;
    if (undo != NULL)
        undo->context.removed = removed;
    vs_sizes_remove(&device->contexts, ending->context);
}

static void end_primary(struct vs_state *state, struct vs_device_state *device,
                        const struct vs_event *event, struct vs_undo *undo)
{
    uint64_t context = device->primary_context;
    keep(undo, device, context);
    if (event->kind == VS_KIND_CONTEXT_RELEASE && device->primary_retains > 1) {
        device->primary_retains--;
        return;
    }
    if (event->kind == VS_KIND_CONTEXT_RELEASE && device->primary_retains == 0)
        return;
    device->primary_retains = 0;
    struct vs_ending ending = {.context = context, .device = event->device, .pools = true};
    end(state, device, &ending, undo);
}

void context_event(struct vs_state *state, struct vs_device_state *device,
                   const struct vs_event *event, struct vs_undo *undo)
{
    struct vs_ending created = {.context = event->context, .device = event->device};
    switch (event->kind) {
    case VS_KIND_CONTEXT_CREATE:
    case VS_KIND_CONTEXT_RETAIN:
        begin(state, device, event);
        break;
    case VS_KIND_CONTEXT_DESTROY:
        if (event->context == 0)
            break;
        keep(undo, device, event->context);
        end(state, device, &created, undo);
        break;
    default:
        end_primary(state, device, event, undo);
        break;
    }
}

/* The call failed: everything is as it was. */
void context_restore(struct vs_state *state, const struct vs_undo *undo)
{
    struct vs_device_state *device = state_device(state, undo->event.device);
    const struct vs_undo_context *before = &undo->context;
    if (device == NULL)
        return;
    int64_t own = device_own(device);
    memory_restore_dropped(state, undo);
    device->primary_retains = before->primary_retains;
    memcpy(device->implicit_bytes, before->implicit_bytes, sizeof(before->implicit_bytes));
    device->implicit_uncertainty = before->implicit_uncertainty;
    device->others_uncertainty = before->others_uncertainty;
    device->rounding = before->rounding;
    device->settled_used += before->removed;
    if (device->measured_ns == before->measured_ns)
        device->base_used += before->removed;
    else /* measured since, with all of it still there */
        device->base_own += device_own(device) - own;
    if (before->context != 0 && vs_sizes_put(&device->contexts, before->context) == NULL)
        state_fail(state);
}
