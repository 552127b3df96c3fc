/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What other processes use of the traced process's devices, by NVML. It runs in
 * a thread of its own, for NVML may take seconds or never come back; the drain
 * must not wait for it. Without NVML, without permission or in a container that
 * hides process ids there is simply nothing to report, and the status says why.
 */
#ifndef VS_COLLECTOR_NVML_H
#define VS_COLLECTOR_NVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target.h"

struct nvml;

/*
 * One process on one device; `bytes` 0: it is gone. Before the first ones of a
 * device comes one of pid 0, whose `bytes` is how many processes follow.
 */
struct nvml_use {
    int device; /* the traced process's ordinal */
    uint32_t pid;
    uint64_t bytes;
};

/* Starts nothing yet. NULL without memory. `target` must outlive it. */
struct nvml *nvml_create(const struct target *target);

/* Notes where the target's driver lies: a short program may be gone when the library is opened. */
void nvml_look(struct nvml *nvml);

/* A device of the traced process became known. The first one starts the thread. */
void nvml_add_device(struct nvml *nvml, int device, const uint8_t uuid[16]);

/* Ask again now (a memory call failed): every figure is reported, changed or not. */
void nvml_ask(struct nvml *nvml);

/* Takes up to `room` reports that came in since the last call. */
unsigned nvml_take(struct nvml *nvml, struct nvml_use *out, unsigned room);

/* Waits until what was asked for is answered, at most `most_ms`. */
void nvml_settle(struct nvml *nvml, unsigned most_ms);

/* "ok", "not asked", "no library", "error N", "own process not identifiable" … into `out`. */
void nvml_status(struct nvml *nvml, char *out, size_t out_bytes);

/*
 * Stops asking. A call that is under way is not waited for: the object stays
 * valid, and goes with the process.
 */
void nvml_stop(struct nvml *nvml);

#endif
