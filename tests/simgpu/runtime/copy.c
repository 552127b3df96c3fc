/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and fills. Contiguous copies go to the driver call of their kind;
 * everything with rows, slices or arrays becomes one driver 3D copy.
 */
#include "runtime.h"

#include <cuda_runtime_api.h>
#include <string.h>

static cudaError_t copy_now(enum simrt_lane lane, void *to, const void *from, size_t size,
                            enum cudaMemcpyKind kind)
{
    switch (kind) {
    case cudaMemcpyHostToHost:
        memmove(to, from, size);
        return cudaSuccess;
    case cudaMemcpyHostToDevice:
        return DRV_ON(lane, MemcpyHtoD, (CUdeviceptr)to, from, size);
    case cudaMemcpyDeviceToHost:
        return DRV_ON(lane, MemcpyDtoH, to, (CUdeviceptr)from, size);
    case cudaMemcpyDeviceToDevice:
        return DRV_ON(lane, MemcpyDtoD, (CUdeviceptr)to, (CUdeviceptr)from, size);
    case cudaMemcpyDefault:
        return DRV_ON(lane, Memcpy, (CUdeviceptr)to, (CUdeviceptr)from, size);
    }
    return cudaErrorInvalidMemcpyDirection;
}

static cudaError_t copy_on_stream(enum simrt_lane lane, void *to, const void *from, size_t size,
                                  enum cudaMemcpyKind kind, cudaStream_t stream)
{
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return DRV_ON(lane, MemcpyHtoDAsync, (CUdeviceptr)to, from, size, stream);
    case cudaMemcpyDeviceToHost:
        return DRV_ON(lane, MemcpyDtoHAsync, to, (CUdeviceptr)from, size, stream);
    case cudaMemcpyDeviceToDevice:
        return DRV_ON(lane, MemcpyDtoDAsync, (CUdeviceptr)to, (CUdeviceptr)from, size, stream);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        return DRV_ON(lane, MemcpyAsync, (CUdeviceptr)to, (CUdeviceptr)from, size, stream);
    }
    return cudaErrorInvalidMemcpyDirection;
}

RT_STREAM_ENTRY(cudaMemcpy, _ptds,
                (void *dst, const void *src, size_t count, enum cudaMemcpyKind kind),
                (dst, src, count, kind),
                RT_CALL(count ? copy_now(lane, dst, src, count, kind) : cudaSuccess))

RT_STREAM_ENTRY(cudaMemcpyAsync, _ptsz,
                (void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
                 cudaStream_t stream),
                (dst, src, count, kind, stream),
                RT_CALL(count ? copy_on_stream(lane, dst, src, count, kind, stream) : cudaSuccess))

/* Where in a device variable a copy of `size` bytes at `offset` goes. */
static cudaError_t symbol_place(const void *symbol, size_t size, size_t offset, void **place)
{
    CUdeviceptr address = 0;
    size_t bytes = 0;
    cudaError_t error = simrt_symbol(symbol, &address, &bytes);
    if (error == cudaSuccess && (offset > bytes || size > bytes - offset))
        error = cudaErrorInvalidValue;
    *place = (void *)(address + offset);
    return error;
}

static cudaError_t copy_to_symbol(enum simrt_lane lane, const void *symbol, const void *from,
                                  size_t size, size_t offset, enum cudaMemcpyKind kind)
{
    void *place = NULL;
    cudaError_t error = symbol_place(symbol, size, offset, &place);
    return error == cudaSuccess ? copy_now(lane, place, from, size, kind) : error;
}

RT_STREAM_ENTRY(cudaMemcpyToSymbol, _ptds,
                (const void *symbol, const void *src, size_t count, size_t offset,
                 enum cudaMemcpyKind kind),
                (symbol, src, count, offset, kind),
                RT_CALL(copy_to_symbol(lane, symbol, src, count, offset, kind)))

static cudaError_t copy_from_symbol(enum simrt_lane lane, void *to, const void *symbol, size_t size,
                                    size_t offset, enum cudaMemcpyKind kind)
{
    void *place = NULL;
    cudaError_t error = symbol_place(symbol, size, offset, &place);
    return error == cudaSuccess ? copy_now(lane, to, place, size, kind) : error;
}

RT_STREAM_ENTRY(cudaMemcpyFromSymbol, _ptds,
                (void *dst, const void *symbol, size_t count, size_t offset,
                 enum cudaMemcpyKind kind),
                (dst, symbol, count, offset, kind),
                RT_CALL(copy_from_symbol(lane, dst, symbol, count, offset, kind)))

static cudaError_t copy_to_symbol_on_stream(enum simrt_lane lane, const void *symbol,
                                            const void *from, size_t size, size_t offset,
                                            enum cudaMemcpyKind kind, cudaStream_t stream)
{
    void *place = NULL;
    cudaError_t error = symbol_place(symbol, size, offset, &place);
    return error == cudaSuccess ? copy_on_stream(lane, place, from, size, kind, stream) : error;
}

RT_STREAM_ENTRY(cudaMemcpyToSymbolAsync, _ptsz,
                (const void *symbol, const void *src, size_t count, size_t offset,
                 enum cudaMemcpyKind kind, cudaStream_t stream),
                (symbol, src, count, offset, kind, stream),
                RT_CALL(copy_to_symbol_on_stream(lane, symbol, src, count, offset, kind, stream)))

static cudaError_t copy_from_symbol_on_stream(enum simrt_lane lane, void *to, const void *symbol,
                                              size_t size, size_t offset, enum cudaMemcpyKind kind,
                                              cudaStream_t stream)
{
    void *place = NULL;
    cudaError_t error = symbol_place(symbol, size, offset, &place);
    return error == cudaSuccess ? copy_on_stream(lane, to, place, size, kind, stream) : error;
}

RT_STREAM_ENTRY(cudaMemcpyFromSymbolAsync, _ptsz,
                (void *dst, const void *symbol, size_t count, size_t offset,
                 enum cudaMemcpyKind kind, cudaStream_t stream),
                (dst, symbol, count, offset, kind, stream),
                RT_CALL(copy_from_symbol_on_stream(lane, dst, symbol, count, offset, kind, stream)))

static cudaError_t two_contexts(int first, CUcontext *first_out, int second, CUcontext *second_out)
{
    cudaError_t error = simrt_primary_context(first, first_out);
    return error == cudaSuccess ? simrt_primary_context(second, second_out) : error;
}

static cudaError_t copy_peer(void *to, int to_device, const void *from, int from_device,
                             size_t size)
{
    CUcontext to_context = NULL, from_context = NULL;
    cudaError_t error = two_contexts(to_device, &to_context, from_device, &from_context);
    return error == cudaSuccess && size ? DRV_ON(SIMRT_LEGACY, MemcpyPeer, (CUdeviceptr)to,
                                                 to_context, (CUdeviceptr)from, from_context, size)
                                        : error;
}

cudaError_t cudaMemcpyPeer(void *dst, int dstDevice, const void *src, int srcDevice, size_t count)
{
    return RT_CALL(copy_peer(dst, dstDevice, src, srcDevice, count));
}

static cudaError_t copy_peer_on_stream(void *to, int to_device, const void *from, int from_device,
                                       size_t size, cudaStream_t stream)
{
    CUcontext to_context = NULL, from_context = NULL;
    cudaError_t error = two_contexts(to_device, &to_context, from_device, &from_context);
    return error == cudaSuccess && size
               ? DRV_ON(SIMRT_LEGACY, MemcpyPeerAsync, (CUdeviceptr)to, to_context,
                        (CUdeviceptr)from, from_context, size, stream)
               : error;
}

cudaError_t cudaMemcpyPeerAsync(void *dst, int dstDevice, const void *src, int srcDevice,
                                size_t count, cudaStream_t stream)
{
    return RT_CALL(copy_peer_on_stream(dst, dstDevice, src, srcDevice, count, stream));
}

RT_STREAM_ENTRY(cudaMemset, _ptds, (void *devPtr, int value, size_t count), (devPtr, value, count),
                RT_CALL(count ? DRV_ON(lane, MemsetD8, (CUdeviceptr)devPtr, (unsigned char)value,
                                       count)
                              : cudaSuccess))

RT_STREAM_ENTRY(cudaMemsetAsync, _ptsz,
                (void *devPtr, int value, size_t count, cudaStream_t stream),
                (devPtr, value, count, stream),
                RT_CALL(count ? DRV_ON(lane, MemsetD8Async, (CUdeviceptr)devPtr,
                                       (unsigned char)value, count, stream)
                              : cudaSuccess))

RT_STREAM_ENTRY(cudaMemset2D, _ptds,
                (void *devPtr, size_t pitch, int value, size_t width, size_t height),
                (devPtr, pitch, value, width, height),
                RT_CALL(DRV_ON(lane, MemsetD2D8, (CUdeviceptr)devPtr, pitch, (unsigned char)value,
                               width, height)))

RT_STREAM_ENTRY(cudaMemset2DAsync, _ptsz,
                (void *devPtr, size_t pitch, int value, size_t width, size_t height,
                 cudaStream_t stream),
                (devPtr, pitch, value, width, height, stream),
                RT_CALL(DRV_ON(lane, MemsetD2D8Async, (CUdeviceptr)devPtr, pitch,
                               (unsigned char)value, width, height, stream)))

static cudaError_t fill_3d(enum simrt_lane lane, struct cudaPitchedPtr to, int value,
                           struct cudaExtent extent)
{
    cudaError_t error = cudaSuccess;
    for (size_t z = 0; error == cudaSuccess && z < extent.depth; z++)
        error = DRV_ON(lane, MemsetD2D8, (CUdeviceptr)to.ptr + z * to.pitch * to.ysize, to.pitch,
                       (unsigned char)value, extent.width, extent.height);
    return error;
}

RT_STREAM_ENTRY(cudaMemset3D, _ptds,
                (struct cudaPitchedPtr pitchedDevPtr, int value, struct cudaExtent extent),
                (pitchedDevPtr, value, extent),
                RT_CALL(fill_3d(lane, pitchedDevPtr, value, extent)))

static cudaError_t fill_3d_on_stream(enum simrt_lane lane, struct cudaPitchedPtr to, int value,
                                     struct cudaExtent extent, cudaStream_t stream)
{
    cudaError_t error = cudaSuccess;
    for (size_t z = 0; error == cudaSuccess && z < extent.depth; z++)
        error = DRV_ON(lane, MemsetD2D8Async, (CUdeviceptr)to.ptr + z * to.pitch * to.ysize,
                       to.pitch, (unsigned char)value, extent.width, extent.height, stream);
    return error;
}

RT_STREAM_ENTRY(cudaMemset3DAsync, _ptsz,
                (struct cudaPitchedPtr pitchedDevPtr, int value, struct cudaExtent extent,
                 cudaStream_t stream),
                (pitchedDevPtr, value, extent, stream),
                RT_CALL(fill_3d_on_stream(lane, pitchedDevPtr, value, extent, stream)))
