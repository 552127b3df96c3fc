/* SPDX-License-Identifier: Apache-2.0 */
/* Copies with rows, slices or arrays, each turned into one driver 3D copy. */
#include "runtime.h"

#include <cuda_runtime_api.h>
#include <string.h>

/* One side of a 3D copy. x is in bytes. */
struct side {
    CUmemorytype type;
    const void *pointer;
    CUarray array;
    size_t x, y, z, pitch, height;
};

static CUmemorytype side_type(enum cudaMemcpyKind kind, bool is_source)
{
    switch (kind) {
    case cudaMemcpyHostToHost:
        return CU_MEMORYTYPE_HOST;
    case cudaMemcpyHostToDevice:
        return is_source ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    case cudaMemcpyDeviceToHost:
        return is_source ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    case cudaMemcpyDeviceToDevice:
        return CU_MEMORYTYPE_DEVICE;
    case cudaMemcpyDefault:
        break;
    }
    return CU_MEMORYTYPE_UNIFIED;
}

static CUDA_MEMCPY3D copy_between(const struct side *from, const struct side *to, size_t width,
                                  size_t height, size_t depth)
{
    bool from_host = from->type == CU_MEMORYTYPE_HOST, to_host = to->type == CU_MEMORYTYPE_HOST;
    return (CUDA_MEMCPY3D){
        .srcXInBytes = from->x,
        .srcY = from->y,
        .srcZ = from->z,
        .srcMemoryType = from->type,
        .srcHost = from_host ? from->pointer : NULL,
        .srcDevice = from_host ? 0 : (CUdeviceptr)from->pointer,
        .srcArray = from->array,
        .srcPitch = from->pitch,
        .srcHeight = from->height,
        .dstXInBytes = to->x,
        .dstY = to->y,
        .dstZ = to->z,
        .dstMemoryType = to->type,
        .dstHost = to_host ? (void *)(size_t)to->pointer : NULL,
        .dstDevice = to_host ? 0 : (CUdeviceptr)to->pointer,
        .dstArray = to->array,
        .dstPitch = to->pitch,
        .dstHeight = to->height,
        .WidthInBytes = width,
        .Height = height,
        .Depth = depth,
    };
}

CUDA_MEMCPY3D simrt_linear_copy(void *destination, const void *source, size_t size,
                                enum cudaMemcpyKind kind)
{
    struct side from = {side_type(kind, true), source, NULL, 0, 0, 0, size, 1};
    struct side to = {side_type(kind, false), destination, NULL, 0, 0, 0, size, 1};
    return copy_between(&from, &to, size, 1, 1);
}

static size_t format_bytes(CUarray_format format)
{
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2;
    default:
        return 4;
    }
}

static cudaError_t element_bytes(CUarray array, size_t *bytes)
{
    CUDA_ARRAY3D_DESCRIPTOR description;
    cudaError_t error = DRV(Array3DGetDescriptor, &description, array);
    if (error == cudaSuccess)
        *bytes = format_bytes(description.Format) * description.NumChannels;
    return error;
}

static struct side side_of(enum cudaMemcpyKind kind, bool is_source, cudaArray_t array,
                           struct cudaPitchedPtr pitched, struct cudaPos position, size_t element)
{
    struct side side = {.y = position.y, .z = position.z};
    if (array) {
        side.type = CU_MEMORYTYPE_ARRAY;
        side.array = (CUarray)array;
        side.x = position.x * element;
        return side;
    }
    side.type = side_type(kind, is_source);
    side.pointer = pitched.ptr;
    side.pitch = pitched.pitch;
    side.height = pitched.ysize;
    side.x = position.x;
    return side;
}

/* With an array on either side the extent counts its elements, else bytes. */
cudaError_t simrt_copy_3d_params(const struct cudaMemcpy3DParms *from, CUDA_MEMCPY3D *to)
{
    if (!from || (!from->srcArray && !from->srcPtr.ptr) || (!from->dstArray && !from->dstPtr.ptr))
        return cudaErrorInvalidValue;
    size_t element = 1;
    cudaArray_t array = from->srcArray ? from->srcArray : from->dstArray;
    cudaError_t error = array ? element_bytes((CUarray)array, &element) : cudaSuccess;
    if (error != cudaSuccess)
        return error;
    struct side source =
        side_of(from->kind, true, from->srcArray, from->srcPtr, from->srcPos, element);
    struct side target =
        side_of(from->kind, false, from->dstArray, from->dstPtr, from->dstPos, element);
    *to = copy_between(&source, &target, from->extent.width * element, from->extent.height,
                       from->extent.depth);
    return cudaSuccess;
}

static cudaError_t copy_3d(enum simrt_lane lane, const struct cudaMemcpy3DParms *params)
{
    CUDA_MEMCPY3D copy;
    cudaError_t error = simrt_copy_3d_params(params, &copy);
    return error == cudaSuccess ? DRV_ON(lane, Memcpy3D, &copy) : error;
}

RT_STREAM_ENTRY(cudaMemcpy3D, _ptds, (const struct cudaMemcpy3DParms *p), (p),
                RT_CALL(copy_3d(lane, p)))

static cudaError_t copy_3d_on_stream(enum simrt_lane lane, const struct cudaMemcpy3DParms *params,
                                     cudaStream_t stream)
{
    CUDA_MEMCPY3D copy;
    cudaError_t error = simrt_copy_3d_params(params, &copy);
    return error == cudaSuccess ? DRV_ON(lane, Memcpy3DAsync, &copy, stream) : error;
}

RT_STREAM_ENTRY(cudaMemcpy3DAsync, _ptsz, (const struct cudaMemcpy3DParms *p, cudaStream_t stream),
                (p, stream), RT_CALL(copy_3d_on_stream(lane, p, stream)))

/* Between devices of one unified address space the contexts say nothing more
 * than the addresses: the same copy. */
static struct cudaMemcpy3DParms without_devices(const struct cudaMemcpy3DPeerParms *peer)
{
    return (struct cudaMemcpy3DParms){
        .srcArray = peer->srcArray,
        .srcPos = peer->srcPos,
        .srcPtr = peer->srcPtr,
        .dstArray = peer->dstArray,
        .dstPos = peer->dstPos,
        .dstPtr = peer->dstPtr,
        .extent = peer->extent,
        .kind = cudaMemcpyDeviceToDevice,
    };
}

static cudaError_t copy_3d_peer(enum simrt_lane lane, const struct cudaMemcpy3DPeerParms *peer)
{
    if (!peer)
        return cudaErrorInvalidValue;
    if (simrt_check_device(peer->srcDevice) != cudaSuccess ||
        simrt_check_device(peer->dstDevice) != cudaSuccess)
        return cudaErrorInvalidDevice;
    struct cudaMemcpy3DParms params = without_devices(peer);
    return copy_3d(lane, &params);
}

RT_STREAM_ENTRY(cudaMemcpy3DPeer, _ptds, (const struct cudaMemcpy3DPeerParms *p), (p),
                RT_CALL(copy_3d_peer(lane, p)))

static cudaError_t copy_3d_peer_on_stream(enum simrt_lane lane,
                                          const struct cudaMemcpy3DPeerParms *peer,
                                          cudaStream_t stream)
{
    if (!peer)
        return cudaErrorInvalidValue;
    if (simrt_check_device(peer->srcDevice) != cudaSuccess ||
        simrt_check_device(peer->dstDevice) != cudaSuccess)
        return cudaErrorInvalidDevice;
    struct cudaMemcpy3DParms params = without_devices(peer);
    return copy_3d_on_stream(lane, &params, stream);
}

RT_STREAM_ENTRY(cudaMemcpy3DPeerAsync, _ptsz,
                (const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream), (p, stream),
                RT_CALL(copy_3d_peer_on_stream(lane, p, stream)))

/* Rows between plain memory: no array, so no elements. */
static CUDA_MEMCPY3D rows(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                          size_t width, size_t height, enum cudaMemcpyKind kind)
{
    struct side source = {side_type(kind, true), from, NULL, 0, 0, 0, from_pitch, height};
    struct side target = {side_type(kind, false), to, NULL, 0, 0, 0, to_pitch, height};
    return copy_between(&source, &target, width, height, 1);
}

static cudaError_t copy_rows(enum simrt_lane lane, CUDA_MEMCPY3D copy)
{
    if (!copy.WidthInBytes || !copy.Height)
        return cudaSuccess;
    return DRV_ON(lane, Memcpy3D, &copy);
}

static cudaError_t copy_rows_on_stream(enum simrt_lane lane, CUDA_MEMCPY3D copy,
                                       cudaStream_t stream)
{
    if (!copy.WidthInBytes || !copy.Height)
        return cudaSuccess;
    return DRV_ON(lane, Memcpy3DAsync, &copy, stream);
}

RT_STREAM_ENTRY(cudaMemcpy2D, _ptds,
                (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                 size_t height, enum cudaMemcpyKind kind),
                (dst, dpitch, src, spitch, width, height, kind),
                RT_CALL(copy_rows(lane, rows(dst, dpitch, src, spitch, width, height, kind))))

RT_STREAM_ENTRY(
    cudaMemcpy2DAsync, _ptsz,
    (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
     enum cudaMemcpyKind kind, cudaStream_t stream),
    (dst, dpitch, src, spitch, width, height, kind, stream),
    RT_CALL(copy_rows_on_stream(lane, rows(dst, dpitch, src, spitch, width, height, kind), stream)))

/* The array calls count x and width in bytes, as the driver does. */
static struct side array_side(cudaArray_const_t array, size_t x, size_t y)
{
    return (struct side){
        .type = CU_MEMORYTYPE_ARRAY, .array = (CUarray)(size_t)array, .x = x, .y = y};
}

static CUDA_MEMCPY3D rows_to_array(cudaArray_t to, size_t x, size_t y, const void *from,
                                   size_t pitch, size_t width, size_t height,
                                   enum cudaMemcpyKind kind)
{
    struct side source = {side_type(kind, true), from, NULL, 0, 0, 0, pitch, height};
    struct side target = array_side(to, x, y);
    return copy_between(&source, &target, width, height, 1);
}

static CUDA_MEMCPY3D rows_from_array(void *to, size_t pitch, cudaArray_const_t from, size_t x,
                                     size_t y, size_t width, size_t height,
                                     enum cudaMemcpyKind kind)
{
    struct side source = array_side(from, x, y);
    struct side target = {side_type(kind, false), to, NULL, 0, 0, 0, pitch, height};
    return copy_between(&source, &target, width, height, 1);
}

static CUDA_MEMCPY3D rows_between_arrays(cudaArray_t to, size_t to_x, size_t to_y,
                                         cudaArray_const_t from, size_t from_x, size_t from_y,
                                         size_t width, size_t height)
{
    struct side source = array_side(from, from_x, from_y);
    struct side target = array_side(to, to_x, to_y);
    return copy_between(&source, &target, width, height, 1);
}

RT_STREAM_ENTRY(cudaMemcpy2DToArray, _ptds,
                (cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src, size_t spitch,
                 size_t width, size_t height, enum cudaMemcpyKind kind),
                (dst, wOffset, hOffset, src, spitch, width, height, kind),
                RT_CALL(copy_rows(lane, rows_to_array(dst, wOffset, hOffset, src, spitch, width,
                                                      height, kind))))

RT_STREAM_ENTRY(cudaMemcpy2DToArrayAsync, _ptsz,
                (cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src, size_t spitch,
                 size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t stream),
                (dst, wOffset, hOffset, src, spitch, width, height, kind, stream),
                RT_CALL(copy_rows_on_stream(
                    lane, rows_to_array(dst, wOffset, hOffset, src, spitch, width, height, kind),
                    stream)))

RT_STREAM_ENTRY(cudaMemcpy2DFromArray, _ptds,
                (void *dst, size_t dpitch, cudaArray_const_t src, size_t wOffset, size_t hOffset,
                 size_t width, size_t height, enum cudaMemcpyKind kind),
                (dst, dpitch, src, wOffset, hOffset, width, height, kind),
                RT_CALL(copy_rows(lane, rows_from_array(dst, dpitch, src, wOffset, hOffset, width,
                                                        height, kind))))

RT_STREAM_ENTRY(cudaMemcpy2DFromArrayAsync, _ptsz,
                (void *dst, size_t dpitch, cudaArray_const_t src, size_t wOffset, size_t hOffset,
                 size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t stream),
                (dst, dpitch, src, wOffset, hOffset, width, height, kind, stream),
                RT_CALL(copy_rows_on_stream(
                    lane, rows_from_array(dst, dpitch, src, wOffset, hOffset, width, height, kind),
                    stream)))

RT_STREAM_ENTRY(
    cudaMemcpy2DArrayToArray, _ptds,
    (cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst, cudaArray_const_t src,
     size_t wOffsetSrc, size_t hOffsetSrc, size_t width, size_t height, enum cudaMemcpyKind kind),
    (dst, wOffsetDst, hOffsetDst, src, wOffsetSrc, hOffsetSrc, width, height, kind),
    RT_CALL(((void)kind,
             copy_rows(lane, rows_between_arrays(dst, wOffsetDst, hOffsetDst, src, wOffsetSrc,
                                                 hOffsetSrc, width, height)))))

RT_STREAM_ENTRY(cudaMemcpyToArray, _ptds,
                (cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src, size_t count,
                 enum cudaMemcpyKind kind),
                (dst, wOffset, hOffset, src, count, kind),
                RT_CALL(copy_rows(lane, rows_to_array(dst, wOffset, hOffset, src, count, count, 1,
                                                      kind))))

RT_STREAM_ENTRY(cudaMemcpyToArrayAsync, _ptsz,
                (cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src, size_t count,
                 enum cudaMemcpyKind kind, cudaStream_t stream),
                (dst, wOffset, hOffset, src, count, kind, stream),
                RT_CALL(copy_rows_on_stream(
                    lane, rows_to_array(dst, wOffset, hOffset, src, count, count, 1, kind),
                    stream)))

RT_STREAM_ENTRY(cudaMemcpyFromArray, _ptds,
                (void *dst, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t count,
                 enum cudaMemcpyKind kind),
                (dst, src, wOffset, hOffset, count, kind),
                RT_CALL(copy_rows(lane, rows_from_array(dst, count, src, wOffset, hOffset, count, 1,
                                                        kind))))

RT_STREAM_ENTRY(cudaMemcpyFromArrayAsync, _ptsz,
                (void *dst, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t count,
                 enum cudaMemcpyKind kind, cudaStream_t stream),
                (dst, src, wOffset, hOffset, count, kind, stream),
                RT_CALL(copy_rows_on_stream(
                    lane, rows_from_array(dst, count, src, wOffset, hOffset, count, 1, kind),
                    stream)))

RT_STREAM_ENTRY(cudaMemcpyArrayToArray, _ptds,
                (cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst, cudaArray_const_t src,
                 size_t wOffsetSrc, size_t hOffsetSrc, size_t count, enum cudaMemcpyKind kind),
                (dst, wOffsetDst, hOffsetDst, src, wOffsetSrc, hOffsetSrc, count, kind),
                RT_CALL(((void)kind,
                         copy_rows(lane, rows_between_arrays(dst, wOffsetDst, hOffsetDst, src,
                                                             wOffsetSrc, hOffsetSrc, count, 1)))))
