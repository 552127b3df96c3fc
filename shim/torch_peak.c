/* SPDX-License-Identifier: Apache-2.0 */
/* The most that PyTorch reported per device since the start or the last reset. */
#include "torch_peak.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "shim.h"
#include "vramscope.h"

enum { DEVICES = 64 };

/*
 * Relaxed throughout: a figure is read for itself and orders nothing. The allocator's lock keeps
 * the writers of one device apart; a reset at the same moment as a report may miss that one report.
 */
static struct {
    struct {
        _Atomic uint64_t allocated_bytes, reserved_bytes, now_bytes, now_reserved_bytes;
        atomic_bool reported;
    } device[DEVICES];
} peaks;

static void raise_to(_Atomic uint64_t *most, uint64_t bytes)
{
    if (bytes > atomic_load_explicit(most, memory_order_relaxed)) {
        atomic_store_explicit(most, bytes, memory_order_relaxed);
    }
}

void torch_peak_note(int device, uint64_t allocated_bytes, uint64_t reserved_bytes)
{
    if (device < 0 || device >= DEVICES) {
        return;
    }
    atomic_store_explicit(&peaks.device[device].now_bytes, allocated_bytes, memory_order_relaxed);
    atomic_store_explicit(&peaks.device[device].now_reserved_bytes, reserved_bytes,
                          memory_order_relaxed);
    raise_to(&peaks.device[device].allocated_bytes, allocated_bytes);
    raise_to(&peaks.device[device].reserved_bytes, reserved_bytes);
    atomic_store_explicit(&peaks.device[device].reported, true, memory_order_relaxed);
}

SHIM_EXPORT int vramscope_peak(int device, struct vramscope_peak *out)
{
    if (device < 0 || device >= DEVICES || out == NULL) {
        return -EINVAL;
    }
    if (!atomic_load_explicit(&peaks.device[device].reported, memory_order_relaxed)) {
        return -ENODATA;
    }
    out->allocated_bytes =
        atomic_load_explicit(&peaks.device[device].allocated_bytes, memory_order_relaxed);
    out->reserved_bytes =
        atomic_load_explicit(&peaks.device[device].reserved_bytes, memory_order_relaxed);
    out->now_bytes = atomic_load_explicit(&peaks.device[device].now_bytes, memory_order_relaxed);
    return 0;
}

SHIM_EXPORT void vramscope_reset_peak(int device)
{
    if (device < 0 || device >= DEVICES) {
        return;
    }
    uint64_t now = atomic_load_explicit(&peaks.device[device].now_bytes, memory_order_relaxed);
    uint64_t reserved =
        atomic_load_explicit(&peaks.device[device].now_reserved_bytes, memory_order_relaxed);
    atomic_store_explicit(&peaks.device[device].allocated_bytes, now, memory_order_relaxed);
    atomic_store_explicit(&peaks.device[device].reserved_bytes, reserved, memory_order_relaxed);
}
