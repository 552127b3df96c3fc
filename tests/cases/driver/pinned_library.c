/* SPDX-License-Identifier: Apache-2.0 */
#include "pinned_library.h"

#include <cuda_runtime_api.h>

__attribute__((visibility("default"))) void *pinned_malloc(size_t bytes)
{
    void *memory = NULL;
    size_t granted = 1;
    while (granted < bytes)
        granted *= 2;
    return cudaHostAlloc(&memory, granted, cudaHostAllocDefault) == cudaSuccess ? memory : NULL;
}
