/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA arrays: opaque to programs, plain rows of device memory here. */
#ifndef SIMGPU_DRIVER_ARRAY_H
#define SIMGPU_DRIVER_ARRAY_H

#include "driver.h"

struct sim_array {
    struct sim_object object;
    struct sim_context *context;
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    struct sim_alloc *memory; /* NULL: a level of a mipmap */
    uint64_t address;
    size_t row_bytes;
    size_t rows; /* per slice */
    size_t slices;
    struct sim_array *next;
};

#endif
