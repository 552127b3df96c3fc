/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated cuDNN: the calls frameworks make for convolution, batch
 * normalization and sampling, each a launch that computes nothing. No call asks
 * for a workspace. Recurrent nets and CTC loss are not simulated: they say so.
 */
#include "cudnn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../blas/kernel.h"

static const struct {
    int code;
    const char *name;
} statuses[] = {
    {DNN_SUCCESS, "CUDNN_STATUS_SUCCESS"},
    {DNN_NOT_INITIALIZED, "CUDNN_STATUS_NOT_INITIALIZED"},
    {DNN_BAD_PARAM, "CUDNN_STATUS_BAD_PARAM"},
    {DNN_BAD_PARAM_NULL_POINTER, "CUDNN_STATUS_BAD_PARAM_NULL_POINTER"},
    {DNN_NOT_SUPPORTED, "CUDNN_STATUS_NOT_SUPPORTED"},
    {DNN_INTERNAL_ERROR, "CUDNN_STATUS_INTERNAL_ERROR"},
    {DNN_ALLOC_FAILED, "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED"},
    {DNN_EXECUTION_FAILED, "CUDNN_STATUS_EXECUTION_FAILED"},
};

const char *cudnnGetErrorString(int status)
{
    for (size_t i = 0; i < sizeof(statuses) / sizeof(*statuses); i++)
        if (statuses[i].code == status)
            return statuses[i].name;
    return "CUDNN_UNKNOWN_STATUS";
}

void cudnnGetLastErrorString(char *message, size_t max_size)
{
    if (message && max_size)
        snprintf(message, max_size, "no further information on the simulated device");
}

size_t cudnnGetVersion(void)
{
    return SIMDNN_MAJOR * 10000 + SIMDNN_MINOR * 100 + SIMDNN_PATCH;
}

size_t cudnnGetCudartVersion(void)
{
    int version = 0;
    return cudaRuntimeGetVersion(&version) == cudaSuccess ? (size_t)version : 0;
}

int cudnnGetProperty(int type, int *value)
{
    static const int parts[] = {SIMDNN_MAJOR, SIMDNN_MINOR, SIMDNN_PATCH};
    if (!value || type < 0 || type > 2)
        return DNN_BAD_PARAM;
    *value = parts[type];
    return DNN_SUCCESS;
}

int simdnn_launch(struct dnn_handle *handle)
{
    if (!handle)
        return DNN_BAD_PARAM_NULL_POINTER;
    return simlib_launch(handle->stream) == cudaSuccess ? DNN_SUCCESS : DNN_EXECUTION_FAILED;
}

int cudnnCreate(struct dnn_handle **handle)
{
    if (!handle)
        return DNN_BAD_PARAM_NULL_POINTER;
    *handle = NULL;
    if (cudaFree(NULL) != cudaSuccess) /* a handle belongs to a context */
        return DNN_NOT_INITIALIZED;
    *handle = calloc(1, sizeof(**handle));
    return *handle ? DNN_SUCCESS : DNN_ALLOC_FAILED;
}

int cudnnDestroy(struct dnn_handle *handle)
{
    free(handle);
    return DNN_SUCCESS;
}

int cudnnSetStream(struct dnn_handle *handle, cudaStream_t stream)
{
    if (!handle)
        return DNN_BAD_PARAM_NULL_POINTER;
    handle->stream = stream;
    return DNN_SUCCESS;
}

int cudnnGetStream(struct dnn_handle *handle, cudaStream_t *stream)
{
    if (!handle || !stream)
        return DNN_BAD_PARAM_NULL_POINTER;
    *stream = handle->stream;
    return DNN_SUCCESS;
}

/* Tensor and filter descriptions can be asked for what they were told; the
 * others are only told. */
enum { MAX_DIMENSIONS = 8 };

struct dnn_description {
    int data_type, format, dimensions;
    int sizes[MAX_DIMENSIONS], strides[MAX_DIMENSIONS];
};

static int create(struct dnn_description **description)
{
    if (!description)
        return DNN_BAD_PARAM_NULL_POINTER;
    *description = calloc(1, sizeof(**description));
    return *description ? DNN_SUCCESS : DNN_ALLOC_FAILED;
}

#define DESCRIPTION(kind)                                                   \
    int cudnnCreate##kind##Descriptor(struct dnn_description **description) \
    {                                                                       \
        return create(description);                                         \
    }                                                                       \
    int cudnnDestroy##kind##Descriptor(struct dnn_description *description) \
    {                                                                       \
        free(description);                                                  \
        return DNN_SUCCESS;                                                 \
    }

DESCRIPTION(Activation)
DESCRIPTION(CTCLoss)
DESCRIPTION(Convolution)
DESCRIPTION(Dropout)
DESCRIPTION(Filter)
DESCRIPTION(Pooling)
DESCRIPTION(RNNData)
DESCRIPTION(RNN)
DESCRIPTION(SpatialTransformer)
DESCRIPTION(Tensor)

static int describe(struct dnn_description *description, int type, int format, int dimensions,
                    const int *sizes, const int *strides)
{
    if (!description || !sizes)
        return DNN_BAD_PARAM_NULL_POINTER;
    if (dimensions < 1 || dimensions > MAX_DIMENSIONS)
        return DNN_NOT_SUPPORTED;
    description->data_type = type;
    description->format = format;
    description->dimensions = dimensions;
    memcpy(description->sizes, sizes, sizeof(int) * (size_t)dimensions);
    if (strides)
        memcpy(description->strides, strides, sizeof(int) * (size_t)dimensions);
    return DNN_SUCCESS;
}

int cudnnSetTensorNdDescriptor(struct dnn_description *description, int type, int dimensions,
                               const int *sizes, const int *strides)
{
    return describe(description, type, 0, dimensions, sizes, strides);
}

int cudnnSetFilterNdDescriptor(struct dnn_description *description, int type, int format,
                               int dimensions, const int *sizes)
{
    return describe(description, type, format, dimensions, sizes, NULL);
}

static void give(const struct dnn_description *description, int wanted, int *type, int *dimensions,
                 int *sizes, int *strides)
{
    int count = wanted < description->dimensions ? wanted : description->dimensions;
    *type = description->data_type;
    *dimensions = description->dimensions;
    for (int i = 0; i < count; i++) {
        sizes[i] = description->sizes[i];
        if (strides)
            strides[i] = description->strides[i];
    }
}

int cudnnGetTensorNdDescriptor(const struct dnn_description *description, int wanted, int *type,
                               int *dimensions, int *sizes, int *strides)
{
    if (!description || !type || !dimensions || !sizes || !strides)
        return DNN_BAD_PARAM_NULL_POINTER;
    give(description, wanted, type, dimensions, sizes, strides);
    return DNN_SUCCESS;
}

int cudnnGetFilterNdDescriptor(const struct dnn_description *description, int wanted, int *type,
                               int *format, int *dimensions, int *sizes)
{
    if (!description || !type || !format || !dimensions || !sizes)
        return DNN_BAD_PARAM_NULL_POINTER;
    give(description, wanted, type, dimensions, sizes, NULL);
    *format = description->format;
    return DNN_SUCCESS;
}

/* Settings that nothing here depends on and nobody can ask for again. */
#define ACCEPT(name)                                                   \
    int name(void *description)                                        \
    {                                                                  \
        return description ? DNN_SUCCESS : DNN_BAD_PARAM_NULL_POINTER; \
    }
ACCEPT(cudnnSetActivationDescriptor)
ACCEPT(cudnnSetConvolutionGroupCount)
ACCEPT(cudnnSetConvolutionMathType)
ACCEPT(cudnnSetConvolutionNdDescriptor)
ACCEPT(cudnnSetPooling2dDescriptor)
ACCEPT(cudnnSetSpatialTransformerNdDescriptor)

/* Operations: the arguments after the handle are never looked at. */
#define LAUNCH(name)                    \
    int name(struct dnn_handle *handle) \
    {                                   \
        return simdnn_launch(handle);   \
    }
LAUNCH(cudnnBatchNormalizationBackwardEx)
LAUNCH(cudnnBatchNormalizationForwardInference)
LAUNCH(cudnnBatchNormalizationForwardTrainingEx)
LAUNCH(cudnnConvolutionBackwardData)
LAUNCH(cudnnConvolutionBackwardFilter)
LAUNCH(cudnnConvolutionBiasActivationForward)
LAUNCH(cudnnConvolutionForward)
LAUNCH(cudnnPoolingForward)
LAUNCH(cudnnSpatialTfGridGeneratorBackward)
LAUNCH(cudnnSpatialTfGridGeneratorForward)
LAUNCH(cudnnSpatialTfSamplerBackward)
LAUNCH(cudnnSpatialTfSamplerForward)

/* Workspaces: none. */
static int no_bytes(const void *handle, size_t *bytes)
{
    if (!handle || !bytes)
        return DNN_BAD_PARAM_NULL_POINTER;
    *bytes = 0;
    return DNN_SUCCESS;
}

int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(struct dnn_handle *handle, int mode,
                                                             int operations, const void *x,
                                                             const void *z, const void *y,
                                                             const void *scale,
                                                             const void *activation, size_t *bytes)
{
    (void)mode, (void)operations, (void)x, (void)z, (void)y, (void)scale, (void)activation;
    return no_bytes(handle, bytes);
}

int cudnnGetBatchNormalizationBackwardExWorkspaceSize(struct dnn_handle *handle, int mode,
                                                      int operations, const void *x, const void *y,
                                                      const void *dy, const void *dz,
                                                      const void *dx, const void *scale,
                                                      const void *activation, size_t *bytes)
{
    (void)mode, (void)operations, (void)x, (void)y, (void)dy, (void)dz, (void)dx;
    (void)scale, (void)activation;
    return no_bytes(handle, bytes);
}

int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(struct dnn_handle *handle, int mode,
                                                         int operations, const void *activation,
                                                         const void *x, size_t *bytes)
{
    (void)mode, (void)operations, (void)activation, (void)x;
    return no_bytes(handle, bytes);
}

#define CONVOLUTION_WORKSPACE(name)                                                    \
    int name(struct dnn_handle *handle, const void *first, const void *second,         \
             const void *convolution, const void *third, int algorithm, size_t *bytes) \
    {                                                                                  \
        (void)first, (void)second, (void)convolution, (void)third, (void)algorithm;    \
        return no_bytes(handle, bytes);                                                \
    }
CONVOLUTION_WORKSPACE(cudnnGetConvolutionForwardWorkspaceSize)
CONVOLUTION_WORKSPACE(cudnnGetConvolutionBackwardDataWorkspaceSize)
CONVOLUTION_WORKSPACE(cudnnGetConvolutionBackwardFilterWorkspaceSize)

/* cudnnConvolution…AlgoPerf_t. */
struct performance {
    int algorithm, status;
    float time_ms;
    size_t memory_bytes;
    int determinism, math_type, reserved[3];
};

/* One algorithm, number 0, which fits everything. */
static int one_algorithm(const void *handle, int wanted, int *found, struct performance *results)
{
    if (!handle || !found || !results)
        return DNN_BAD_PARAM_NULL_POINTER;
    if (wanted < 1)
        return DNN_BAD_PARAM;
    memset(results, 0, sizeof(*results));
    results->determinism = 1;
    *found = 1;
    return DNN_SUCCESS;
}

#define GET_ALGORITHM(name)                                                      \
    int name(struct dnn_handle *handle, const void *first, const void *second,   \
             const void *convolution, const void *third, int wanted, int *found, \
             struct performance *results)                                        \
    {                                                                            \
        (void)first, (void)second, (void)convolution, (void)third;               \
        return one_algorithm(handle, wanted, found, results);                    \
    }
GET_ALGORITHM(cudnnGetConvolutionForwardAlgorithm_v7)
GET_ALGORITHM(cudnnGetConvolutionBackwardDataAlgorithm_v7)
GET_ALGORITHM(cudnnGetConvolutionBackwardFilterAlgorithm_v7)

#define FIND_ALGORITHM(name)                                                               \
    int name(struct dnn_handle *handle, const void *first, const void *first_data,         \
             const void *second, const void *second_data, const void *convolution,         \
             const void *third, void *third_data, int wanted, int *found,                  \
             struct performance *results, void *workspace, size_t workspace_bytes)         \
    {                                                                                      \
        (void)first, (void)first_data, (void)second, (void)second_data, (void)convolution; \
        (void)third, (void)third_data, (void)workspace, (void)workspace_bytes;             \
        return one_algorithm(handle, wanted, found, results);                              \
    }
FIND_ALGORITHM(cudnnFindConvolutionForwardAlgorithmEx)
FIND_ALGORITHM(cudnnFindConvolutionBackwardDataAlgorithmEx)
FIND_ALGORITHM(cudnnFindConvolutionBackwardFilterAlgorithmEx)

#define UNSUPPORTED(name)              \
    int name(void)                     \
    {                                  \
        simlib_say_unsupported(#name); \
        return DNN_NOT_SUPPORTED;      \
    }
#include "unsupported.def"
