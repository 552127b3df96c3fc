/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA arrays and mipmapped arrays: device memory of their own kind, whole chunks each. */
#include "array.h"

#include <stdlib.h>
#include <string.h>

#define MAX_LEVELS 17
#define ROW_ALIGNMENT 512U

struct sim_mipmap {
    struct sim_object object;
    struct sim_context *context;
    struct sim_alloc *memory;
    struct sim_array *levels[MAX_LEVELS];
    unsigned level_count;
    struct sim_mipmap *next;
};

static struct sim_array *arrays;
static struct sim_mipmap *mipmaps;

static size_t element_bytes(CUarray_format format, unsigned channels)
{
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return channels;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2U * channels;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 4U * channels;
    default:
        return 0;
    }
}

static bool is_valid(const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    unsigned channels = descriptor->NumChannels;
    return descriptor->Width && descriptor->Width <= 131072 && descriptor->Height <= 65536 &&
           descriptor->Depth <= 16384 && (channels == 1 || channels == 2 || channels == 4) &&
           element_bytes(descriptor->Format, channels);
}

static void lay_out(struct sim_array *array)
{
    const CUDA_ARRAY3D_DESCRIPTOR *descriptor = &array->descriptor;
    size_t row = descriptor->Width * element_bytes(descriptor->Format, descriptor->NumChannels);
    array->row_bytes = (row + ROW_ALIGNMENT - 1) / ROW_ALIGNMENT * ROW_ALIGNMENT;
    array->rows = descriptor->Height ? descriptor->Height : 1;
    array->slices = descriptor->Depth ? descriptor->Depth : 1;
}

static uint64_t array_bytes(const struct sim_array *array)
{
    return array->row_bytes * array->rows * array->slices;
}

static CUresult create(CUarray *handle, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    if (!handle || !is_valid(descriptor))
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    struct sim_context *context = sim_current(&result);
    if (!context)
        return sim_leave(result);
    struct sim_array *array = sim_object_new(SIM_ARRAY, sizeof *array);
    if (!array)
        return sim_leave(CUDA_ERROR_OUT_OF_MEMORY);
    array->context = context;
    array->descriptor = *descriptor;
    lay_out(array);
    result = sim_device_alloc(context, SIMGPU_ARRAY, array_bytes(array), &array->memory);
    if (result != CUDA_SUCCESS) {
        sim_object_delete(array);
        return sim_leave(result);
    }
    array->address = array->memory->node.key;
    array->next = arrays;
    arrays = array;
    *handle = (CUarray)array;
    return sim_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray)
{
    SIM_ENTER(cuArray3DCreate, 0);
    return pAllocateArray ? create(pHandle, pAllocateArray) : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray)
{
    SIM_ENTER(cuArrayCreate, 0);
    if (!pAllocateArray)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR descriptor = {.Width = pAllocateArray->Width,
                                          .Height = pAllocateArray->Height,
                                          .Format = pAllocateArray->Format,
                                          .NumChannels = pAllocateArray->NumChannels};
    return create(pHandle, &descriptor);
}

CUresult CUDAAPI cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *pArrayDescriptor,
                                           CUarray hArray)
{
    SIM_ENTER(cuArray3DGetDescriptor, 0);
    if (!pArrayDescriptor)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    const struct sim_array *array = sim_object_find(hArray, SIM_ARRAY);
    if (array)
        *pArrayDescriptor = array->descriptor;
    return sim_leave(array ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

CUresult CUDAAPI cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
    SIM_ENTER(cuArrayGetDescriptor, 0);
    if (!pArrayDescriptor)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    const struct sim_array *array = sim_object_find(hArray, SIM_ARRAY);
    if (array)
        *pArrayDescriptor = (CUDA_ARRAY_DESCRIPTOR){.Width = array->descriptor.Width,
                                                    .Height = array->descriptor.Height,
                                                    .Format = array->descriptor.Format,
                                                    .NumChannels = array->descriptor.NumChannels};
    return sim_leave(array ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

static CUresult requirements(const struct sim_alloc *memory, CUDA_ARRAY_MEMORY_REQUIREMENTS *out)
{
    memset(out, 0, sizeof *out);
    out->size = memory->span_bytes;
    out->alignment = SIMGPU_CHUNK;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements,
                                              CUarray array, CUdevice device)
{
    SIM_ENTER(cuArrayGetMemoryRequirements, 0);
    if (!memoryRequirements)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    const struct sim_array *found = sim_object_find(array, SIM_ARRAY);
    return sim_leave(found && found->memory ? requirements(found->memory, memoryRequirements)
                                            : CUDA_ERROR_INVALID_HANDLE);
}

static void delete_array(struct sim_array *array)
{
    struct sim_array **link = &arrays;
    while (*link != array)
        link = &(*link)->next;
    *link = array->next;
    sim_alloc_free(array->memory);
    sim_object_delete(array);
}

CUresult CUDAAPI cuArrayDestroy(CUarray hArray)
{
    SIM_ENTER(cuArrayDestroy, 0);
    sim_lock();
    struct sim_array *array = sim_object_find(hArray, SIM_ARRAY);
    if (!array || !array->memory) /* a mipmap's level goes with the mipmap */
        return sim_leave(CUDA_ERROR_INVALID_HANDLE);
    sim_context_wait(array->context);
    delete_array(array);
    return sim_leave(CUDA_SUCCESS);
}

/* ---- mipmaps ---- */

static void delete_levels(struct sim_mipmap *mipmap)
{
    for (unsigned i = 0; i < mipmap->level_count; i++)
        sim_object_delete(mipmap->levels[i]);
    mipmap->level_count = 0;
}

static size_t halved(size_t extent, unsigned level)
{
    return extent >> level ? extent >> level : extent > 0;
}

static bool make_levels(struct sim_mipmap *mipmap, const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
                        unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct sim_array *level = sim_object_new(SIM_ARRAY, sizeof *level);
        if (!level)
            return false;
        level->context = mipmap->context;
        level->descriptor = *descriptor;
        level->descriptor.Width = halved(descriptor->Width, i);
        level->descriptor.Height = halved(descriptor->Height, i);
        level->descriptor.Depth = halved(descriptor->Depth, i);
        lay_out(level);
        mipmap->levels[mipmap->level_count++] = level;
    }
    return true;
}

static CUresult back_levels(struct sim_mipmap *mipmap)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < mipmap->level_count; i++)
        bytes += array_bytes(mipmap->levels[i]);
    CUresult result = sim_device_alloc(mipmap->context, SIMGPU_ARRAY, bytes, &mipmap->memory);
    uint64_t address = result == CUDA_SUCCESS ? mipmap->memory->node.key : 0;
    for (unsigned i = 0; address && i < mipmap->level_count; i++) {
        mipmap->levels[i]->address = address;
        address += array_bytes(mipmap->levels[i]);
    }
    return result;
}

CUresult CUDAAPI cuMipmappedArrayCreate(CUmipmappedArray *pHandle,
                                        const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc,
                                        unsigned int numMipmapLevels)
{
    SIM_ENTER(cuMipmappedArrayCreate, 0);
    if (!pHandle || !pMipmappedArrayDesc || !is_valid(pMipmappedArrayDesc) || !numMipmapLevels)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    struct sim_context *context = sim_current(&result);
    if (!context)
        return sim_leave(result);
    struct sim_mipmap *mipmap = sim_object_new(SIM_MIPMAP, sizeof *mipmap);
    if (!mipmap)
        return sim_leave(CUDA_ERROR_OUT_OF_MEMORY);
    mipmap->context = context;
    unsigned count = numMipmapLevels > MAX_LEVELS ? MAX_LEVELS : numMipmapLevels;
    result = make_levels(mipmap, pMipmappedArrayDesc, count) ? back_levels(mipmap)
                                                             : CUDA_ERROR_OUT_OF_MEMORY;
    if (result != CUDA_SUCCESS) {
        delete_levels(mipmap);
        sim_object_delete(mipmap);
        return sim_leave(result);
    }
    mipmap->next = mipmaps;
    mipmaps = mipmap;
    *pHandle = (CUmipmappedArray)mipmap;
    return sim_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuMipmappedArrayGetLevel(CUarray *pLevelArray, CUmipmappedArray hMipmappedArray,
                                          unsigned int level)
{
    SIM_ENTER(cuMipmappedArrayGetLevel, 0);
    if (!pLevelArray)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    const struct sim_mipmap *mipmap = sim_object_find(hMipmappedArray, SIM_MIPMAP);
    if (!mipmap)
        return sim_leave(CUDA_ERROR_INVALID_HANDLE);
    if (level >= mipmap->level_count)
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    *pLevelArray = (CUarray)mipmap->levels[level];
    return sim_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuMipmappedArrayGetMemoryRequirements(
    CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements, CUmipmappedArray mipmap, CUdevice device)
{
    SIM_ENTER(cuMipmappedArrayGetMemoryRequirements, 0);
    if (!memoryRequirements)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    const struct sim_mipmap *found = sim_object_find(mipmap, SIM_MIPMAP);
    return sim_leave(found ? requirements(found->memory, memoryRequirements)
                           : CUDA_ERROR_INVALID_HANDLE);
}

static void delete_mipmap(struct sim_mipmap *mipmap)
{
    struct sim_mipmap **link = &mipmaps;
    while (*link != mipmap)
        link = &(*link)->next;
    *link = mipmap->next;
    delete_levels(mipmap);
    sim_alloc_free(mipmap->memory);
    sim_object_delete(mipmap);
}

CUresult CUDAAPI cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray)
{
    SIM_ENTER(cuMipmappedArrayDestroy, 0);
    sim_lock();
    struct sim_mipmap *mipmap = sim_object_find(hMipmappedArray, SIM_MIPMAP);
    if (mipmap) {
        sim_context_wait(mipmap->context);
        delete_mipmap(mipmap);
    }
    return sim_leave(mipmap ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

void sim_arrays_of_context_end(const struct sim_context *context)
{
    struct sim_array *array = arrays;
    while (array) {
        struct sim_array *next = array->next;
        if (array->context == context)
            delete_array(array);
        array = next;
    }
    struct sim_mipmap *mipmap = mipmaps;
    while (mipmap) {
        struct sim_mipmap *next = mipmap->next;
        if (mipmap->context == context)
            delete_mipmap(mipmap);
        mipmap = next;
    }
}
