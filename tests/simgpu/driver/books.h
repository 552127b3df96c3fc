/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the simulated driver exports beside CUDA: its own books, as an oracle for tests.
 * Machine-wide device numbers (CUDA_VISIBLE_DEVICES does not apply). Thread-safe; callable before
 * cuInit.
 */
#ifndef SIMGPU_DRIVER_BOOKS_H
#define SIMGPU_DRIVER_BOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes used on a device by all processes; always total − what cuMemGetInfo calls free.
 * UINT64_MAX: no such device. */
uint64_t simgpu_device_used(int device);
uint64_t simgpu_device_total(int device);

/* A process that uses a device, for NVML: INDEX 0… False past the last one. */
bool simgpu_device_user(int device, unsigned index, int32_t *pid, uint64_t *bytes);

/* Writes the books as JSON ("simgpu-books/1") into BUFFER, NUL-terminated and cut to SIZE. Returns
 * the length of the whole text (so a second call with room gets it all), 0 if there are none. */
size_t simgpu_books_json(char *buffer, size_t size);

#endif
