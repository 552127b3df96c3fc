/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the shim asks the driver itself: which device is current, what it is,
 * how much of it is free, how much a pool holds, whether a stream is being
 * captured. Driver calls only, so that cudaGetLastError() never changes; their
 * failures are ignored. Only from active hooks (hook.h); errno may change.
 */
#ifndef VS_SHIM_DEVICES_H
#define VS_SHIM_DEVICES_H

#include <stdbool.h>
#include <stdint.h>

#include "../formats/record.h"

/*
 * Ordinal of the calling thread's current device, VS_DEVICE_UNKNOWN without a
 * current context. Fills `context` where it is 0. The device's definition is
 * sent the first time.
 */
int devices_current(uint64_t *context);

/* Sets VS_EVENT_CAPTURING when the event's stream is being captured. */
void devices_note_stream(struct vs_event *event);

/*
 * The event's pool, the pool's figures, and with `sample` the free bytes of its
 * device. True when these must be told by a sample of their own, after the event.
 */
bool devices_complete(struct vs_event *event, bool sample);

/* Bytes of the allocation at the event's address; 0 when the driver does not know it. */
uint64_t devices_size_of(const struct vs_event *event);

/* A SAMPLE event of the current device, if one may be taken now. `near` gives call, label and
 * module. */
void devices_sample_apart(const struct vs_event *near);

/* Keeps track of captures and contexts that begin and end with a call. */
void devices_after(const struct vs_event *event);

#endif
