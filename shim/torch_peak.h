/* SPDX-License-Identifier: Apache-2.0 */
/* The most that PyTorch reported per device, for a program that asks while it runs (vramscope.h).
 */
#ifndef VS_SHIM_TORCH_PEAK_H
#define VS_SHIM_TORCH_PEAK_H

#include <stdint.h>

/*
 * PyTorch's own totals after a block was given out or taken back. Called under the lock
 * of the device's allocator: two relaxed stores at most, no call, any thread.
 */
void torch_peak_note(int device, uint64_t allocated_bytes, uint64_t reserved_bytes);

#endif
