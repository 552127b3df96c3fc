/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA arrays and mipmapped arrays: the runtime's channel descriptions as the
 * driver's formats, and back. */
#include "runtime.h"

#include <cuda_runtime_api.h>
#include <string.h>

static const struct {
    enum cudaChannelFormatKind kind;
    int bits;
    CUarray_format format;
} formats[] = {
    {cudaChannelFormatKindUnsigned, 8, CU_AD_FORMAT_UNSIGNED_INT8},
    {cudaChannelFormatKindUnsigned, 16, CU_AD_FORMAT_UNSIGNED_INT16},
    {cudaChannelFormatKindUnsigned, 32, CU_AD_FORMAT_UNSIGNED_INT32},
    {cudaChannelFormatKindSigned, 8, CU_AD_FORMAT_SIGNED_INT8},
    {cudaChannelFormatKindSigned, 16, CU_AD_FORMAT_SIGNED_INT16},
    {cudaChannelFormatKindSigned, 32, CU_AD_FORMAT_SIGNED_INT32},
    {cudaChannelFormatKindFloat, 16, CU_AD_FORMAT_HALF},
    {cudaChannelFormatKindFloat, 32, CU_AD_FORMAT_FLOAT},
};

enum { FORMATS = sizeof(formats) / sizeof(*formats) };

struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                   enum cudaChannelFormatKind f)
{
    return (struct cudaChannelFormatDesc){.x = x, .y = y, .z = z, .w = w, .f = f};
}

/* One, two or four channels of one width: what the driver can describe. */
static cudaError_t channels_of(const struct cudaChannelFormatDesc *description,
                               CUarray_format *format, unsigned *channels)
{
    int widths[] = {description->x, description->y, description->z, description->w};
    unsigned count = 0;
    while (count < 4 && widths[count] != 0)
        count++;
    for (unsigned i = 1; i < count; i++)
        if (widths[i] != widths[0])
            return cudaErrorInvalidChannelDescriptor;
    if (count != 1 && count != 2 && count != 4)
        return cudaErrorInvalidChannelDescriptor;
    for (size_t i = 0; i < FORMATS; i++) {
        if (formats[i].kind != description->f || formats[i].bits != widths[0])
            continue;
        *format = formats[i].format;
        *channels = count;
        return cudaSuccess;
    }
    return cudaErrorInvalidChannelDescriptor;
}

static cudaError_t array_description(CUDA_ARRAY3D_DESCRIPTOR *array,
                                     const struct cudaChannelFormatDesc *channels,
                                     struct cudaExtent extent, unsigned flags)
{
    if (!channels)
        return cudaErrorInvalidValue;
    *array = (CUDA_ARRAY3D_DESCRIPTOR){
        .Width = extent.width, .Height = extent.height, .Depth = extent.depth, .Flags = flags};
    return channels_of(channels, &array->Format, &array->NumChannels);
}

static cudaError_t create_array(cudaArray_t *array, const struct cudaChannelFormatDesc *channels,
                                struct cudaExtent extent, unsigned flags)
{
    CUDA_ARRAY3D_DESCRIPTOR description;
    cudaError_t error = array_description(&description, channels, extent, flags);
    return error == cudaSuccess ? DRV(Array3DCreate, (CUarray *)array, &description) : error;
}

cudaError_t cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc,
                            size_t width, size_t height, unsigned flags)
{
    struct cudaExtent extent = {.width = width, .height = height, .depth = 0};
    return RT_CALL(create_array(array, desc, extent, flags));
}

cudaError_t cudaMalloc3DArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc,
                              struct cudaExtent extent, unsigned flags)
{
    return RT_CALL(create_array(array, desc, extent, flags));
}

cudaError_t cudaFreeArray(cudaArray_t array)
{
    return RT_CALL(array ? DRV(ArrayDestroy, (CUarray)array) : cudaSuccess);
}

static cudaError_t create_mipmap(cudaMipmappedArray_t *mipmap,
                                 const struct cudaChannelFormatDesc *channels,
                                 struct cudaExtent extent, unsigned levels, unsigned flags)
{
    CUDA_ARRAY3D_DESCRIPTOR description;
    cudaError_t error = array_description(&description, channels, extent, flags);
    return error == cudaSuccess
               ? DRV(MipmappedArrayCreate, (CUmipmappedArray *)mipmap, &description, levels)
               : error;
}

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *mipmappedArray,
                                     const struct cudaChannelFormatDesc *desc,
                                     struct cudaExtent extent, unsigned numLevels, unsigned flags)
{
    return RT_CALL(create_mipmap(mipmappedArray, desc, extent, numLevels, flags));
}

cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t mipmappedArray)
{
    return RT_CALL(mipmappedArray ? DRV(MipmappedArrayDestroy, (CUmipmappedArray)mipmappedArray)
                                  : cudaSuccess);
}

cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t *levelArray,
                                       cudaMipmappedArray_const_t mipmappedArray, unsigned level)
{
    return RT_CALL(DRV(MipmappedArrayGetLevel, (CUarray *)levelArray,
                       (CUmipmappedArray)(size_t)mipmappedArray, level));
}

static void channels_from(const CUDA_ARRAY3D_DESCRIPTOR *array,
                          struct cudaChannelFormatDesc *description)
{
    *description = (struct cudaChannelFormatDesc){.f = cudaChannelFormatKindNone};
    for (size_t i = 0; i < FORMATS; i++) {
        if (formats[i].format != array->Format)
            continue;
        int bits = formats[i].bits;
        description->f = formats[i].kind;
        description->x = bits;
        description->y = array->NumChannels > 1 ? bits : 0;
        description->z = array->NumChannels > 2 ? bits : 0;
        description->w = array->NumChannels > 3 ? bits : 0;
    }
}

static cudaError_t array_info(struct cudaChannelFormatDesc *channels, struct cudaExtent *extent,
                              unsigned *flags, cudaArray_const_t array)
{
    CUDA_ARRAY3D_DESCRIPTOR description;
    cudaError_t error = DRV(Array3DGetDescriptor, &description, (CUarray)(size_t)array);
    if (error != cudaSuccess)
        return error;
    if (channels)
        channels_from(&description, channels);
    if (extent)
        *extent = (struct cudaExtent){
            .width = description.Width, .height = description.Height, .depth = description.Depth};
    if (flags)
        *flags = description.Flags;
    return cudaSuccess;
}

cudaError_t cudaArrayGetInfo(struct cudaChannelFormatDesc *desc, struct cudaExtent *extent,
                             unsigned *flags, cudaArray_t array)
{
    return RT_CALL(array_info(desc, extent, flags, array));
}

cudaError_t cudaGetChannelDesc(struct cudaChannelFormatDesc *desc, cudaArray_const_t array)
{
    return RT_CALL(array_info(desc, NULL, NULL, array));
}

cudaError_t cudaArrayGetPlane(cudaArray_t *pPlaneArray, cudaArray_t hArray, unsigned planeIdx)
{
    return RT_CALL(DRV(ArrayGetPlane, (CUarray *)pPlaneArray, (CUarray)hArray, planeIdx));
}

/* A requirement is asked of a named device; the arrays are all of one kind. */
cudaError_t cudaArrayGetMemoryRequirements(struct cudaArrayMemoryRequirements *memoryRequirements,
                                           cudaArray_t array, int device)
{
    return RT_CALL(simrt_check_device(device) != cudaSuccess
                       ? cudaErrorInvalidDevice
                       : DRV(ArrayGetMemoryRequirements,
                             (CUDA_ARRAY_MEMORY_REQUIREMENTS *)memoryRequirements, (CUarray)array,
                             simrt.devices[device].handle));
}

cudaError_t
cudaMipmappedArrayGetMemoryRequirements(struct cudaArrayMemoryRequirements *memoryRequirements,
                                        cudaMipmappedArray_t mipmap, int device)
{
    return RT_CALL(simrt_check_device(device) != cudaSuccess
                       ? cudaErrorInvalidDevice
                       : DRV(MipmappedArrayGetMemoryRequirements,
                             (CUDA_ARRAY_MEMORY_REQUIREMENTS *)memoryRequirements,
                             (CUmipmappedArray)mipmap, simrt.devices[device].handle));
}

static cudaError_t
map_external_mipmap(cudaMipmappedArray_t *mipmap, cudaExternalMemory_t memory,
                    const struct cudaExternalMemoryMipmappedArrayDesc *description)
{
    if (!mipmap || !description)
        return cudaErrorInvalidValue;
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC wanted = {
        .offset = description->offset,
        .numLevels = description->numLevels,
    };
    cudaError_t error = array_description(&wanted.arrayDesc, &description->formatDesc,
                                          description->extent, description->flags);
    return error == cudaSuccess ? DRV(ExternalMemoryGetMappedMipmappedArray,
                                      (CUmipmappedArray *)mipmap, (CUexternalMemory)memory, &wanted)
                                : error;
}

cudaError_t cudaExternalMemoryGetMappedMipmappedArray(
    cudaMipmappedArray_t *mipmap, cudaExternalMemory_t extMem,
    const struct cudaExternalMemoryMipmappedArrayDesc *mipmapDesc)
{
    return RT_CALL(map_external_mipmap(mipmap, extMem, mipmapDesc));
}

static cudaError_t linear_texture_width(size_t *elements,
                                        const struct cudaChannelFormatDesc *channels, int device)
{
    CUarray_format format;
    unsigned count;
    cudaError_t error = simrt_check_device(device);
    if (error == cudaSuccess)
        error =
            elements && channels ? channels_of(channels, &format, &count) : cudaErrorInvalidValue;
    return error == cudaSuccess ? DRV(DeviceGetTexture1DLinearMaxWidth, elements, format, count,
                                      simrt.devices[device].handle)
                                : error;
}

cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t *maxWidthInElements,
                                                 const struct cudaChannelFormatDesc *fmtDesc,
                                                 int device)
{
    return RT_CALL_WITHOUT_CONTEXT(linear_texture_width(maxWidthInElements, fmtDesc, device));
}
