/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the simulated cuDNN share. It is declared here and not
 * taken from cudnn.h, which toolkits do not carry; numbers are cuDNN's own.
 */
#ifndef SIMGPU_CUDNN_H
#define SIMGPU_CUDNN_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

enum { SIMDNN_MAJOR = 9, SIMDNN_MINOR = 26, SIMDNN_PATCH = 0 };

enum dnn_status {
    DNN_SUCCESS = 0,
    DNN_NOT_INITIALIZED = 1001,
    DNN_BAD_PARAM = 2000,
    DNN_BAD_PARAM_NULL_POINTER = 2002,
    DNN_NOT_SUPPORTED = 3000,
    DNN_INTERNAL_ERROR = 4000,
    DNN_ALLOC_FAILED = 4003,
    DNN_EXECUTION_FAILED = 5000,
};

struct dnn_handle {
    cudaStream_t stream;
};

/* One launch on the handle's stream, as any cuDNN operation. */
int simdnn_launch(struct dnn_handle *handle);

#endif
