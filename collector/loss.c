/* SPDX-License-Identifier: Apache-2.0 */
/* LOSS events from the counters in the ring's header. */
#include "loss.h"

#include <stdbool.h>
#include <string.h>

static struct vs_event loss_event(unsigned cause, unsigned device, unsigned kind,
                                  const struct loss_total *lost, uint64_t now_ns)
{
    struct vs_event event;
    memset(&event, 0, sizeof event);
    event.time_ns = now_ns;
    event.kind = VS_KIND_LOSS;
    event.handle = cause;
    event.size = lost->bytes;
    event.extra[0] = lost->events;
    event.label = (uint16_t)kind;
    event.device = device + 1 < VS_RING_DEVICES ? (int8_t)device : VS_DEVICE_UNKNOWN;
    event.free_bytes = VS_FREE_UNKNOWN;
    return event;
}

static bool emit_one(struct loss *loss, struct drain *drain, unsigned cause, unsigned device,
                     unsigned kind, uint64_t now_ns)
{
    struct vs_loss_counter *counter = &drain->header->loss[cause][device][kind];
    struct loss_total *told = &loss->told[cause][device][kind];
    /* Relaxed: the two figures may be one event apart now, never at the end. */
    struct loss_total lost = {
        atomic_load_explicit(&counter->events, memory_order_relaxed) - told->events,
        atomic_load_explicit(&counter->bytes, memory_order_relaxed) - told->bytes,
    };
    if (lost.events == 0 && lost.bytes == 0)
        return false;
    struct vs_event event = loss_event(cause, device, kind, &lost, now_ns);
    if (drain_inject(drain, &event) < 0)
        return false;
    told->events += lost.events;
    told->bytes += lost.bytes;
    loss->all.events += lost.events;
    loss->all.bytes += lost.bytes;
    return true;
}

unsigned loss_emit(struct loss *loss, struct drain *drain, uint64_t now_ns)
{
    unsigned made = 0;
    for (unsigned cause = 0; cause < VS_LOSS_CAUSES; cause++)
        for (unsigned device = 0; device < VS_RING_DEVICES; device++)
            for (unsigned kind = 0; kind < VS_RING_LOSS_KINDS; kind++)
                made += emit_one(loss, drain, cause, device, kind, now_ns);
    return made;
}

const char *loss_cause_name(unsigned cause)
{
    static const char *const names[VS_LOSS_CAUSES] = {"full_waited", "full_drop", "stalled",
                                                      "nested",      "too_large", "forked"};
    return cause < VS_LOSS_CAUSES ? names[cause] : "unknown";
}

static json_t *counter_json(unsigned cause, unsigned device, unsigned kind,
                            const struct loss_total *lost)
{
    int ordinal = device + 1 < VS_RING_DEVICES ? (int)device : VS_DEVICE_UNKNOWN;
    return json_pack("{s:s, s:i, s:s, s:I, s:I}", "cause", loss_cause_name(cause), "device",
                     ordinal, "kind", vs_kind_name(kind), "events", (json_int_t)lost->events,
                     "bytes", (json_int_t)lost->bytes);
}

json_t *loss_json(const struct loss *loss)
{
    json_t *list = json_array();
    for (unsigned cause = 0; list && cause < VS_LOSS_CAUSES; cause++)
        for (unsigned device = 0; device < VS_RING_DEVICES; device++)
            for (unsigned kind = 0; kind < VS_RING_LOSS_KINDS; kind++) {
                const struct loss_total *told = &loss->told[cause][device][kind];
                if (told->events || told->bytes)
                    json_array_append_new(list, counter_json(cause, device, kind, told));
            }
    return list;
}
