/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and fills. Every form becomes a 3D copy or a 2D fill that is checked, then run when its
 * stream comes to it, or becomes a node of a capture.
 */
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "capture.h"

/* ---- checking and running ---- */

struct side {
    uint64_t address; /* of the first byte to copy */
    size_t pitch;
    size_t height; /* rows per slice */
    bool host;     /* unknown memory counts as the host's */
};

static bool find_side(CUmemorytype type, const void *host, CUdeviceptr device, CUarray array,
                      size_t pitch, size_t height, struct side *side)
{
    const struct sim_array *found;
    side->pitch = pitch;
    side->height = height;
    side->host = type != CU_MEMORYTYPE_DEVICE;
    switch (type) {
    case CU_MEMORYTYPE_HOST:
        side->address = (uint64_t)(uintptr_t)host;
        return host != NULL;
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED:
        side->address = device;
        return device != 0;
    case CU_MEMORYTYPE_ARRAY:
        found = sim_object_find(array, SIM_ARRAY);
        if (!found)
            return false;
        side->address = found->address;
        side->pitch = found->row_bytes;
        side->height = found->rows;
        return true;
    default:
        return false;
    }
}

static bool find_sides(const CUDA_MEMCPY3D *copy, struct side *from, struct side *to)
{
    if (!find_side(copy->srcMemoryType, copy->srcHost, copy->srcDevice, copy->srcArray,
                   copy->srcPitch, copy->srcHeight, from) ||
        !find_side(copy->dstMemoryType, copy->dstHost, copy->dstDevice, copy->dstArray,
                   copy->dstPitch, copy->dstHeight, to))
        return false;
    if (copy->Height > 1 || copy->Depth > 1) {
        if (from->pitch < copy->WidthInBytes || to->pitch < copy->WidthInBytes)
            return false;
    }
    if (copy->Depth > 1 && (from->height < copy->Height || to->height < copy->Height))
        return false;
    from->address +=
        copy->srcXInBytes + copy->srcY * from->pitch + copy->srcZ * from->pitch * from->height;
    to->address += copy->dstXInBytes + copy->dstY * to->pitch + copy->dstZ * to->pitch * to->height;
    return true;
}

static uint64_t extent(const struct side *side, const CUDA_MEMCPY3D *copy)
{
    return copy->WidthInBytes + (copy->Height - 1) * side->pitch +
           (copy->Depth - 1) * side->pitch * side->height;
}

static bool is_empty(const CUDA_MEMCPY3D *copy)
{
    return !copy->WidthInBytes || !copy->Height || !copy->Depth;
}

CUresult sim_copy_check(const struct sim_context *context, const CUDA_MEMCPY3D *copy)
{
    struct side from;
    struct side to;
    if (is_empty(copy))
        return CUDA_SUCCESS;
    if (!find_sides(copy, &from, &to))
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_range_valid(context, from.address, extent(&from, copy), from.host) ||
        !sim_range_valid(context, to.address, extent(&to, copy), to.host))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

void sim_copy_run(const CUDA_MEMCPY3D *copy)
{
    struct side from;
    struct side to;
    if (is_empty(copy) || !find_sides(copy, &from, &to))
        return;
    for (size_t z = 0; z < copy->Depth; z++)
        for (size_t y = 0; y < copy->Height; y++)
            sim_copy(to.address + (z * to.height + y) * to.pitch,
                     from.address + (z * from.height + y) * from.pitch, copy->WidthInBytes);
}

CUresult sim_fill_check(const struct sim_context *context, const CUDA_MEMSET_NODE_PARAMS *fill)
{
    uint64_t row = fill->width * fill->elementSize;
    if (!fill->width || !fill->height)
        return CUDA_SUCCESS;
    if ((fill->height > 1 && fill->pitch < row) || fill->dst % fill->elementSize)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t bytes = row + (fill->height - 1) * (fill->height > 1 ? fill->pitch : 0);
    return sim_range_valid(context, fill->dst, bytes, false) ? CUDA_SUCCESS
                                                             : CUDA_ERROR_INVALID_VALUE;
}

static void fill_row(uint64_t address, const CUDA_MEMSET_NODE_PARAMS *fill)
{
    if (!fill->value) {
        sim_fill_zero(address, fill->width * fill->elementSize);
    } else if (fill->elementSize == 1) {
        memset((void *)(uintptr_t)address, (int)fill->value, fill->width);
    } else if (fill->elementSize == 2) {
        uint16_t *words = (uint16_t *)(uintptr_t)address;
        for (size_t i = 0; i < fill->width; i++)
            words[i] = (uint16_t)fill->value;
    } else {
        uint32_t *words = (uint32_t *)(uintptr_t)address;
        for (size_t i = 0; i < fill->width; i++)
            words[i] = fill->value;
    }
}

void sim_fill_run(const CUDA_MEMSET_NODE_PARAMS *fill)
{
    for (size_t y = 0; fill->width && y < fill->height; y++)
        fill_row(fill->dst + y * fill->pitch, fill);
}

/* ---- submitting ---- */

static void run_copy(void *argument)
{
    sim_copy_run(argument);
    free(argument);
}

static void run_fill(void *argument)
{
    sim_fill_run(argument);
    free(argument);
}

static CUresult submit(struct sim_stream *stream, const void *params, size_t size,
                       void (*run)(void *), bool synchronous)
{
    void *copy = malloc(size);
    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(copy, params, size);
    CUresult result = sim_submit(stream, SIM_OP_DEVICE, run, copy);
    if (result != CUDA_SUCCESS)
        free(copy);
    else if (synchronous)
        sim_stream_wait(stream);
    return result;
}

/* Copies in a stream; SYNCHRONOUS also forbids it in captures and waits. */
static CUresult copy_in(CUstream handle, const CUDA_MEMCPY3D *copy, bool synchronous)
{
    sim_lock();
    CUresult result;
    struct sim_stream *stream = sim_stream_of(handle, &result);
    if (stream)
        result = sim_copy_check(stream->context, copy);
    if (result == CUDA_SUCCESS && synchronous)
        result = sim_capture_forbids(stream);
    if (result != CUDA_SUCCESS)
        return sim_leave(result);
    if (!synchronous && sim_capture_add(stream, CU_GRAPH_NODE_TYPE_MEMCPY, copy, &result))
        return sim_leave(result);
    return sim_leave(submit(stream, copy, sizeof *copy, run_copy, synchronous));
}

static CUresult fill_in(CUstream handle, CUDA_MEMSET_NODE_PARAMS fill, bool synchronous)
{
    sim_lock();
    CUresult result;
    struct sim_stream *stream = sim_stream_of(handle, &result);
    if (stream)
        result = sim_fill_check(stream->context, &fill);
    if (result == CUDA_SUCCESS && synchronous)
        result = sim_capture_forbids(stream);
    if (result != CUDA_SUCCESS)
        return sim_leave(result);
    if (!synchronous && sim_capture_add(stream, CU_GRAPH_NODE_TYPE_MEMSET, &fill, &result))
        return sim_leave(result);
    return sim_leave(submit(stream, &fill, sizeof fill, run_fill, synchronous));
}

/* ---- one-dimensional forms ---- */

static CUDA_MEMCPY3D line(CUmemorytype to_type, uint64_t to, CUmemorytype from_type, uint64_t from,
                          size_t bytes)
{
    CUDA_MEMCPY3D copy = {.WidthInBytes = bytes, .Height = 1, .Depth = 1};
    copy.srcMemoryType = from_type;
    copy.srcDevice = from;
    copy.srcHost = (const void *)(uintptr_t)from;
    copy.dstMemoryType = to_type;
    copy.dstDevice = to;
    copy.dstHost = (void *)(uintptr_t)to;
    return copy;
}

#define ADDRESS(pointer) ((uint64_t)(uintptr_t)(pointer))
#define HOST CU_MEMORYTYPE_HOST
#define DEVICE CU_MEMORYTYPE_DEVICE
#define UNIFIED CU_MEMORYTYPE_UNIFIED

#define LINE_COPY(name, call, to_c, to_type, from_c, from_type)                               \
    SIM_DEFAULT_STREAMED(name, (to_c to, from_c from, size_t ByteCount),                      \
                         (CUstream hStream, to_c to, from_c from, size_t ByteCount),          \
                         (hStream, to, from, ByteCount))                                      \
    {                                                                                         \
        SIM_ENTER(call, ByteCount);                                                           \
        CUDA_MEMCPY3D copy = line(to_type, ADDRESS(to), from_type, ADDRESS(from), ByteCount); \
        return copy_in(hStream, &copy, true);                                                 \
    }

#define LINE_COPY_ASYNC(name, call, to_c, to_type, from_c, from_type)                         \
    SIM_STREAMED(name, (to_c to, from_c from, size_t ByteCount, CUstream hStream),            \
                 (to, from, ByteCount, hStream))                                              \
    {                                                                                         \
        SIM_ENTER(call, ByteCount);                                                           \
        CUDA_MEMCPY3D copy = line(to_type, ADDRESS(to), from_type, ADDRESS(from), ByteCount); \
        return copy_in(hStream, &copy, false);                                                \
    }

LINE_COPY(cuMemcpy, cuMemcpy, CUdeviceptr, UNIFIED, CUdeviceptr, UNIFIED)
LINE_COPY(cuMemcpyHtoD_v2, cuMemcpyHtoD, CUdeviceptr, DEVICE, const void *, HOST)
LINE_COPY(cuMemcpyDtoH_v2, cuMemcpyDtoH, void *, HOST, CUdeviceptr, DEVICE)
LINE_COPY(cuMemcpyDtoD_v2, cuMemcpyDtoD, CUdeviceptr, DEVICE, CUdeviceptr, DEVICE)
LINE_COPY_ASYNC(cuMemcpyAsync, cuMemcpyAsync, CUdeviceptr, UNIFIED, CUdeviceptr, UNIFIED)
LINE_COPY_ASYNC(cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync, CUdeviceptr, DEVICE, const void *, HOST)
LINE_COPY_ASYNC(cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync, void *, HOST, CUdeviceptr, DEVICE)
LINE_COPY_ASYNC(cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync, CUdeviceptr, DEVICE, CUdeviceptr, DEVICE)

#if CUDA_VERSION >= 12080
/* The attributes say when sources may change, which nothing here depends on. */
static CUresult copy_batch(const CUdeviceptr *to, const CUdeviceptr *from, const size_t *bytes,
                           size_t count, CUstream stream, size_t *failed)
{
    if (!to || !from || !bytes || !count || !stream)
        return CUDA_ERROR_INVALID_VALUE; /* the legacy stream is not allowed */
    for (size_t i = 0; i < count; i++) {
        CUDA_MEMCPY3D copy = line(UNIFIED, to[i], UNIFIED, from[i], bytes[i]);
        CUresult result = copy_in(stream, &copy, false);
        if (result != CUDA_SUCCESS) {
            if (failed)
                *failed = i;
            return result;
        }
    }
    return CUDA_SUCCESS;
}

SIM_STREAMED(cuMemcpyBatchAsync,
             (CUdeviceptr * dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
              CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs, size_t *failIdx,
              CUstream hStream),
             (dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, failIdx, hStream))
{
    SIM_ENTER(cuMemcpyBatchAsync, 0);
    if (failIdx)
        *failIdx = SIZE_MAX;
    if (!attrs || !attrsIdxs || !numAttrs)
        return CUDA_ERROR_INVALID_VALUE;
    return copy_batch(dsts, srcs, sizes, count, hStream, failIdx);
}
#endif

#if CUDA_VERSION >= 13000
SIM_STREAMED(cuMemcpyBatchAsync_v2,
             (CUdeviceptr * dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
              CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs, CUstream hStream),
             (dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, hStream))
{
    SIM_ENTER(cuMemcpyBatchAsync, 0);
    if (!attrs || !attrsIdxs || !numAttrs)
        return CUDA_ERROR_INVALID_VALUE;
    return copy_batch(dsts, srcs, sizes, count, hStream, NULL);
}
#endif

static CUresult check_peers(CUcontext to, CUcontext from)
{
    sim_lock();
    CUresult result;
    if (sim_context_of(to, &result))
        sim_context_of(from, &result);
    return sim_leave(result);
}

SIM_DEFAULT_STREAMED(cuMemcpyPeer,
                     (CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                      CUcontext from_context, size_t ByteCount),
                     (CUstream hStream, CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                      CUcontext from_context, size_t ByteCount),
                     (hStream, to, to_context, from, from_context, ByteCount))
{
    SIM_ENTER(cuMemcpyPeer, ByteCount);
    CUDA_MEMCPY3D copy = line(DEVICE, to, DEVICE, from, ByteCount);
    CUresult result = check_peers(to_context, from_context);
    return result == CUDA_SUCCESS ? copy_in(hStream, &copy, true) : result;
}

SIM_STREAMED(cuMemcpyPeerAsync,
             (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
              size_t ByteCount, CUstream hStream),
             (to, to_context, from, from_context, ByteCount, hStream))
{
    SIM_ENTER(cuMemcpyPeerAsync, ByteCount);
    CUDA_MEMCPY3D copy = line(DEVICE, to, DEVICE, from, ByteCount);
    CUresult result = check_peers(to_context, from_context);
    return result == CUDA_SUCCESS ? copy_in(hStream, &copy, false) : result;
}

/* ---- arrays ---- */

static void from_array(CUDA_MEMCPY3D *copy, CUarray array, size_t offset)
{
    copy->srcMemoryType = CU_MEMORYTYPE_ARRAY;
    copy->srcArray = array;
    copy->srcXInBytes = offset;
}

static void to_array(CUDA_MEMCPY3D *copy, CUarray array, size_t offset)
{
    copy->dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy->dstArray = array;
    copy->dstXInBytes = offset;
}

SIM_DEFAULT_STREAMED(cuMemcpyDtoA_v2,
                     (CUarray array, size_t offset, CUdeviceptr from, size_t ByteCount),
                     (CUstream hStream, CUarray array, size_t offset, CUdeviceptr from,
                      size_t ByteCount),
                     (hStream, array, offset, from, ByteCount))
{
    SIM_ENTER(cuMemcpyDtoA, ByteCount);
    CUDA_MEMCPY3D copy = line(DEVICE, from, DEVICE, from, ByteCount);
    to_array(&copy, array, offset);
    return copy_in(hStream, &copy, true);
}

SIM_DEFAULT_STREAMED(cuMemcpyAtoD_v2,
                     (CUdeviceptr to, CUarray array, size_t offset, size_t ByteCount),
                     (CUstream hStream, CUdeviceptr to, CUarray array, size_t offset,
                      size_t ByteCount),
                     (hStream, to, array, offset, ByteCount))
{
    SIM_ENTER(cuMemcpyAtoD, ByteCount);
    CUDA_MEMCPY3D copy = line(DEVICE, to, DEVICE, to, ByteCount);
    from_array(&copy, array, offset);
    return copy_in(hStream, &copy, true);
}

SIM_DEFAULT_STREAMED(cuMemcpyHtoA_v2,
                     (CUarray array, size_t offset, const void *from, size_t ByteCount),
                     (CUstream hStream, CUarray array, size_t offset, const void *from,
                      size_t ByteCount),
                     (hStream, array, offset, from, ByteCount))
{
    SIM_ENTER(cuMemcpyHtoA, ByteCount);
    CUDA_MEMCPY3D copy = line(HOST, ADDRESS(from), HOST, ADDRESS(from), ByteCount);
    to_array(&copy, array, offset);
    return copy_in(hStream, &copy, true);
}

SIM_DEFAULT_STREAMED(cuMemcpyAtoH_v2, (void *to, CUarray array, size_t offset, size_t ByteCount),
                     (CUstream hStream, void *to, CUarray array, size_t offset, size_t ByteCount),
                     (hStream, to, array, offset, ByteCount))
{
    SIM_ENTER(cuMemcpyAtoH, ByteCount);
    CUDA_MEMCPY3D copy = line(HOST, ADDRESS(to), HOST, ADDRESS(to), ByteCount);
    from_array(&copy, array, offset);
    return copy_in(hStream, &copy, true);
}

SIM_DEFAULT_STREAMED(cuMemcpyAtoA_v2,
                     (CUarray to, size_t to_offset, CUarray from, size_t from_offset,
                      size_t ByteCount),
                     (CUstream hStream, CUarray to, size_t to_offset, CUarray from,
                      size_t from_offset, size_t ByteCount),
                     (hStream, to, to_offset, from, from_offset, ByteCount))
{
    SIM_ENTER(cuMemcpyAtoA, ByteCount);
    CUDA_MEMCPY3D copy = line(DEVICE, 0, DEVICE, 0, ByteCount);
    to_array(&copy, to, to_offset);
    from_array(&copy, from, from_offset);
    return copy_in(hStream, &copy, true);
}

SIM_STREAMED(cuMemcpyHtoAAsync_v2,
             (CUarray array, size_t offset, const void *from, size_t ByteCount, CUstream hStream),
             (array, offset, from, ByteCount, hStream))
{
    SIM_ENTER(cuMemcpyHtoAAsync, ByteCount);
    CUDA_MEMCPY3D copy = line(HOST, ADDRESS(from), HOST, ADDRESS(from), ByteCount);
    to_array(&copy, array, offset);
    return copy_in(hStream, &copy, false);
}

SIM_STREAMED(cuMemcpyAtoHAsync_v2,
             (void *to, CUarray array, size_t offset, size_t ByteCount, CUstream hStream),
             (to, array, offset, ByteCount, hStream))
{
    SIM_ENTER(cuMemcpyAtoHAsync, ByteCount);
    CUDA_MEMCPY3D copy = line(HOST, ADDRESS(to), HOST, ADDRESS(to), ByteCount);
    from_array(&copy, array, offset);
    return copy_in(hStream, &copy, false);
}

/* ---- two and three dimensions ---- */

static CUDA_MEMCPY3D plane(const CUDA_MEMCPY2D *flat)
{
    return (CUDA_MEMCPY3D){.srcXInBytes = flat->srcXInBytes,
                           .srcY = flat->srcY,
                           .srcMemoryType = flat->srcMemoryType,
                           .srcHost = flat->srcHost,
                           .srcDevice = flat->srcDevice,
                           .srcArray = flat->srcArray,
                           .srcPitch = flat->srcPitch ? flat->srcPitch : flat->WidthInBytes,
                           .dstXInBytes = flat->dstXInBytes,
                           .dstY = flat->dstY,
                           .dstMemoryType = flat->dstMemoryType,
                           .dstHost = flat->dstHost,
                           .dstDevice = flat->dstDevice,
                           .dstArray = flat->dstArray,
                           .dstPitch = flat->dstPitch ? flat->dstPitch : flat->WidthInBytes,
                           .WidthInBytes = flat->WidthInBytes,
                           .Height = flat->Height,
                           .Depth = 1};
}

SIM_DEFAULT_STREAMED(cuMemcpy2D_v2, (const CUDA_MEMCPY2D *pCopy),
                     (CUstream hStream, const CUDA_MEMCPY2D *pCopy), (hStream, pCopy))
{
    SIM_ENTER(cuMemcpy2D, 0);
    if (!pCopy)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D copy = plane(pCopy);
    return copy_in(hStream, &copy, true);
}

SIM_DEFAULT_STREAMED(cuMemcpy2DUnaligned_v2, (const CUDA_MEMCPY2D *pCopy),
                     (CUstream hStream, const CUDA_MEMCPY2D *pCopy), (hStream, pCopy))
{
    SIM_ENTER(cuMemcpy2DUnaligned, 0);
    if (!pCopy)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D copy = plane(pCopy);
    return copy_in(hStream, &copy, true);
}

SIM_STREAMED(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D *pCopy, CUstream hStream), (pCopy, hStream))
{
    SIM_ENTER(cuMemcpy2DAsync, 0);
    if (!pCopy)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D copy = plane(pCopy);
    return copy_in(hStream, &copy, false);
}

SIM_DEFAULT_STREAMED(cuMemcpy3D_v2, (const CUDA_MEMCPY3D *pCopy),
                     (CUstream hStream, const CUDA_MEMCPY3D *pCopy), (hStream, pCopy))
{
    SIM_ENTER(cuMemcpy3D, 0);
    return pCopy ? copy_in(hStream, pCopy, true) : CUDA_ERROR_INVALID_VALUE;
}

SIM_STREAMED(cuMemcpy3DAsync_v2, (const CUDA_MEMCPY3D *pCopy, CUstream hStream), (pCopy, hStream))
{
    SIM_ENTER(cuMemcpy3DAsync, 0);
    return pCopy ? copy_in(hStream, pCopy, false) : CUDA_ERROR_INVALID_VALUE;
}

static CUDA_MEMCPY3D without_contexts(const CUDA_MEMCPY3D_PEER *peer)
{
    return (CUDA_MEMCPY3D){.srcXInBytes = peer->srcXInBytes,
                           .srcY = peer->srcY,
                           .srcZ = peer->srcZ,
                           .srcMemoryType = peer->srcMemoryType,
                           .srcHost = peer->srcHost,
                           .srcDevice = peer->srcDevice,
                           .srcArray = peer->srcArray,
                           .srcPitch = peer->srcPitch,
                           .srcHeight = peer->srcHeight,
                           .dstXInBytes = peer->dstXInBytes,
                           .dstY = peer->dstY,
                           .dstZ = peer->dstZ,
                           .dstMemoryType = peer->dstMemoryType,
                           .dstHost = peer->dstHost,
                           .dstDevice = peer->dstDevice,
                           .dstArray = peer->dstArray,
                           .dstPitch = peer->dstPitch,
                           .dstHeight = peer->dstHeight,
                           .WidthInBytes = peer->WidthInBytes,
                           .Height = peer->Height,
                           .Depth = peer->Depth};
}

SIM_DEFAULT_STREAMED(cuMemcpy3DPeer, (const CUDA_MEMCPY3D_PEER *pCopy),
                     (CUstream hStream, const CUDA_MEMCPY3D_PEER *pCopy), (hStream, pCopy))
{
    SIM_ENTER(cuMemcpy3DPeer, 0);
    if (!pCopy)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D copy = without_contexts(pCopy);
    return copy_in(hStream, &copy, true);
}

SIM_STREAMED(cuMemcpy3DPeerAsync, (const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream),
             (pCopy, hStream))
{
    SIM_ENTER(cuMemcpy3DPeerAsync, 0);
    if (!pCopy)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D copy = without_contexts(pCopy);
    return copy_in(hStream, &copy, false);
}

/* ---- fills ---- */

#define FILL(bits, c_type)                                                                        \
    SIM_DEFAULT_STREAMED(cuMemsetD##bits##_v2, (CUdeviceptr dst, c_type value, size_t N),         \
                         (CUstream hStream, CUdeviceptr dst, c_type value, size_t N),             \
                         (hStream, dst, value, N))                                                \
    {                                                                                             \
        SIM_ENTER(cuMemsetD##bits, N * sizeof value);                                             \
        return fill_in(hStream, (CUDA_MEMSET_NODE_PARAMS){dst, 0, value, sizeof value, N, 1},     \
                       true);                                                                     \
    }                                                                                             \
    SIM_STREAMED(cuMemsetD##bits##Async,                                                          \
                 (CUdeviceptr dst, c_type value, size_t N, CUstream hStream),                     \
                 (dst, value, N, hStream))                                                        \
    {                                                                                             \
        SIM_ENTER(cuMemsetD##bits##Async, N * sizeof value);                                      \
        return fill_in(hStream, (CUDA_MEMSET_NODE_PARAMS){dst, 0, value, sizeof value, N, 1},     \
                       false);                                                                    \
    }                                                                                             \
    SIM_DEFAULT_STREAMED(                                                                         \
        cuMemsetD2D##bits##_v2,                                                                   \
        (CUdeviceptr dst, size_t pitch, c_type value, size_t Width, size_t Height),               \
        (CUstream hStream, CUdeviceptr dst, size_t pitch, c_type value, size_t Width,             \
         size_t Height),                                                                          \
        (hStream, dst, pitch, value, Width, Height))                                              \
    {                                                                                             \
        SIM_ENTER(cuMemsetD2D##bits, Width *Height * sizeof value);                               \
        return fill_in(hStream,                                                                   \
                       (CUDA_MEMSET_NODE_PARAMS){dst, pitch, value, sizeof value, Width, Height}, \
                       true);                                                                     \
    }                                                                                             \
    SIM_STREAMED(cuMemsetD2D##bits##Async,                                                        \
                 (CUdeviceptr dst, size_t pitch, c_type value, size_t Width, size_t Height,       \
                  CUstream hStream),                                                              \
                 (dst, pitch, value, Width, Height, hStream))                                     \
    {                                                                                             \
        SIM_ENTER(cuMemsetD2D##bits##Async, Width *Height * sizeof value);                        \
        return fill_in(hStream,                                                                   \
                       (CUDA_MEMSET_NODE_PARAMS){dst, pitch, value, sizeof value, Width, Height}, \
                       false);                                                                    \
    }

FILL(8, unsigned char)
FILL(16, unsigned short)
FILL(32, unsigned int)
