/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that allocates as many bytes as it is told. Built under the names of
 * the libraries that users know (libnccl, libcublas, an extension module of CuPy),
 * each with a CUDA runtime of its own inside, or with the program's.
 */
#include <cuda_runtime_api.h>
#include <stddef.h>

__attribute__((visibility("default"))) int owner_take(size_t bytes);
int owner_take(size_t bytes)
{
    void *memory = NULL;
    return (int)cudaMalloc(&memory, bytes);
}
