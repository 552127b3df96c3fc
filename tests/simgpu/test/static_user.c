/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that carries a static CUDA runtime of its own, as cuBLAS, NCCL and
 * most extension modules do: it imports no CUDA symbol and exports none, so
 * what it allocates is visible at the driver level only. Every function returns
 * the runtime's error number.
 */
#include <cuda_runtime_api.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int static_user_set_device(int device)
{
    return cudaSetDevice(device);
}

EXPORT int static_user_malloc(void **pointer, size_t size)
{
    return cudaMalloc(pointer, size);
}

EXPORT int static_user_free(void *pointer)
{
    return cudaFree(pointer);
}

EXPORT int static_user_malloc_managed(void **pointer, size_t size)
{
    return cudaMallocManaged(pointer, size, cudaMemAttachGlobal);
}

EXPORT int static_user_malloc_async(void **pointer, size_t size, cudaStream_t stream)
{
    return cudaMallocAsync(pointer, size, stream);
}

EXPORT int static_user_free_async(void *pointer, cudaStream_t stream)
{
    return cudaFreeAsync(pointer, stream);
}

EXPORT int static_user_host_alloc(void **pointer, size_t size)
{
    return cudaHostAlloc(pointer, size, cudaHostAllocDefault);
}

EXPORT int static_user_free_host(void *pointer)
{
    return cudaFreeHost(pointer);
}

EXPORT int static_user_mem_get_info(size_t *free_bytes, size_t *total_bytes)
{
    return cudaMemGetInfo(free_bytes, total_bytes);
}

EXPORT int static_user_synchronize(void)
{
    return cudaDeviceSynchronize();
}
