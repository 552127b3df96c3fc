/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated cuBLAS: handles that remember what they are told, and products
 * that are a launch on the handle's stream. A handle keeps no workspace of its
 * own (a real one takes some device memory; PyTorch brings its own). Results
 * that a call gives to the host in host pointer mode are zero.
 */
#include "blas.h"

#include <stdlib.h>
#include <string.h>

enum { POINTER_MODE_HOST = 0, POINTER_MODE_DEVICE = 1 };

struct blas_handle {
    cudaStream_t stream;
    void *workspace;
    size_t workspace_bytes;
    int pointer_mode, math_mode, atomics_mode, sm_count_target;
};

int cublasCreate_v2(struct blas_handle **handle)
{
    if (!handle)
        return BLAS_NOT_INITIALIZED;
    *handle = NULL;
    int status = simblas_need_context();
    if (status != BLAS_SUCCESS)
        return status;
    *handle = calloc(1, sizeof(**handle));
    return *handle ? BLAS_SUCCESS : BLAS_ALLOC_FAILED;
}

int cublasDestroy_v2(struct blas_handle *handle)
{
    if (!handle)
        return BLAS_NOT_INITIALIZED;
    free(handle);
    return BLAS_SUCCESS;
}

int cublasSetStream_v2(struct blas_handle *handle, cudaStream_t stream)
{
    if (!handle)
        return BLAS_NOT_INITIALIZED;
    handle->stream = stream;
    return BLAS_SUCCESS;
}

int cublasGetStream_v2(struct blas_handle *handle, cudaStream_t *stream)
{
    if (!handle || !stream)
        return handle ? BLAS_INVALID_VALUE : BLAS_NOT_INITIALIZED;
    *stream = handle->stream;
    return BLAS_SUCCESS;
}

int cublasSetWorkspace_v2(struct blas_handle *handle, void *workspace, size_t bytes)
{
    if (!handle)
        return BLAS_NOT_INITIALIZED;
    if ((uintptr_t)workspace % 256)
        return BLAS_INVALID_VALUE;
    handle->workspace = workspace;
    handle->workspace_bytes = bytes;
    return BLAS_SUCCESS;
}

#define MODE(get, set, field)                                          \
    int get(struct blas_handle *handle, int *mode)                     \
    {                                                                  \
        if (!handle || !mode)                                          \
            return handle ? BLAS_INVALID_VALUE : BLAS_NOT_INITIALIZED; \
        *mode = handle->field;                                         \
        return BLAS_SUCCESS;                                           \
    }                                                                  \
    int set(struct blas_handle *handle, int mode)                      \
    {                                                                  \
        if (!handle)                                                   \
            return BLAS_NOT_INITIALIZED;                               \
        handle->field = mode;                                          \
        return BLAS_SUCCESS;                                           \
    }

MODE(cublasGetPointerMode_v2, cublasSetPointerMode_v2, pointer_mode)
MODE(cublasGetMathMode, cublasSetMathMode, math_mode)
MODE(cublasGetAtomicsMode, cublasSetAtomicsMode, atomics_mode)
MODE(cublasGetSmCountTarget, cublasSetSmCountTarget, sm_count_target)

int cublasGetVersion_v2(struct blas_handle *handle, int *version)
{
    (void)handle;
    if (!version)
        return BLAS_INVALID_VALUE;
    *version = SIMBLAS_VERSION;
    return BLAS_SUCCESS;
}

int cublasGetProperty(int type, int *value)
{
    return simblas_property(type, value);
}

size_t cublasGetCudartVersion(void)
{
    int version = 0;
    return cudaRuntimeGetVersion(&version) == cudaSuccess ? (size_t)version : 0;
}

const char *cublasGetStatusName(int status)
{
    return simblas_status_name(status);
}

const char *cublasGetStatusString(int status)
{
    return simblas_status_text(status);
}

/* Columns of `rows` elements, the first `rows` of each `lda` and `ldb`. */
static int copy_matrix(int rows, int columns, int element, const void *from, int from_stride,
                       void *to, int to_stride, enum cudaMemcpyKind kind, cudaStream_t stream,
                       int waits)
{
    if (rows < 0 || columns < 0 || element <= 0 || from_stride < rows || to_stride < rows)
        return BLAS_INVALID_VALUE;
    size_t width = (size_t)rows * (size_t)element;
    size_t from_pitch = (size_t)from_stride * (size_t)element;
    size_t to_pitch = (size_t)to_stride * (size_t)element;
    cudaError_t error =
        waits ? cudaMemcpy2D(to, to_pitch, from, from_pitch, width, (size_t)columns, kind)
              : cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, (size_t)columns, kind,
                                  stream);
    return error == cudaSuccess ? BLAS_SUCCESS : BLAS_MAPPING_ERROR;
}

#define MATRIX_COPY(name, kind)                                                                  \
    int cublas##name##Matrix(int rows, int columns, int element, const void *from, int lda,      \
                             void *to, int ldb)                                                  \
    {                                                                                            \
        return copy_matrix(rows, columns, element, from, lda, to, ldb, kind, NULL, 1);           \
    }                                                                                            \
    int cublas##name##MatrixAsync(int rows, int columns, int element, const void *from, int lda, \
                                  void *to, int ldb, cudaStream_t stream)                        \
    {                                                                                            \
        return copy_matrix(rows, columns, element, from, lda, to, ldb, kind, stream, 0);         \
    }                                                                                            \
    /* A vector with strides is a matrix of one row. */                                          \
    int cublas##name##Vector(int n, int element, const void *from, int incx, void *to, int incy) \
    {                                                                                            \
        return copy_matrix(1, n, element, from, incx, to, incy, kind, NULL, 1);                  \
    }                                                                                            \
    int cublas##name##VectorAsync(int n, int element, const void *from, int incx, void *to,      \
                                  int incy, cudaStream_t stream)                                 \
    {                                                                                            \
        return copy_matrix(1, n, element, from, incx, to, incy, kind, stream, 0);                \
    }

MATRIX_COPY(Set, cudaMemcpyHostToDevice)
MATRIX_COPY(Get, cudaMemcpyDeviceToHost)

/* The arguments after the handle are never looked at, so they are not declared. */
#define COMPUTE(name)                                                          \
    int name(struct blas_handle *handle)                                       \
    {                                                                          \
        return handle ? simblas_launch(handle->stream) : BLAS_NOT_INITIALIZED; \
    }
#include "compute.def"

/* Launches, and gives a zero where the result goes to the host. */
static int reduce(struct blas_handle *handle, void *result, size_t bytes)
{
    if (!handle || !result)
        return handle ? BLAS_INVALID_VALUE : BLAS_NOT_INITIALIZED;
    int status = simblas_launch(handle->stream);
    if (status == BLAS_SUCCESS && handle->pointer_mode == POINTER_MODE_HOST)
        memset(result, 0, bytes);
    return status;
}

/* Bytes of a cudaDataType: real and complex double, real and complex single, half kinds. */
static size_t data_type_bytes(int type)
{
    enum { R_32F = 0, R_64F = 1, R_16F = 2, C_32F = 4, C_64F = 5, C_16F = 6, R_16BF = 14 };
    switch (type) {
    case R_16F:
    case R_16BF:
        return 2;
    case R_32F:
    case C_16F:
        return 4;
    case R_64F:
    case C_32F:
        return 8;
    case C_64F:
        return 16;
    default:
        return 0;
    }
}

#define DOT_OF(name, count, bytes)                                                          \
    int name(struct blas_handle *handle, count n, const void *x, count incx, const void *y, \
             count incy, void *result)                                                      \
    {                                                                                       \
        (void)n, (void)x, (void)incx, (void)y, (void)incy;                                  \
        return reduce(handle, result, bytes);                                               \
    }
#define DOT(name, bytes) DOT_OF(name, int, bytes)
#define DOT_64(name, bytes) DOT_OF(name, int64_t, bytes)

#define NORM_OF(name, count, bytes)                                                        \
    int name(struct blas_handle *handle, count n, const void *x, count incx, void *result) \
    {                                                                                      \
        (void)n, (void)x, (void)incx;                                                      \
        return reduce(handle, result, bytes);                                              \
    }
#define NORM(name, bytes) NORM_OF(name, int, bytes)
#define NORM_64(name, bytes) NORM_OF(name, int64_t, bytes)
#define INDEX(name) NORM_OF(name, int, sizeof(int))
#define INDEX_64(name) NORM_OF(name, int64_t, sizeof(int64_t))

#define DOT_EX_OF(name, count)                                                               \
    int name(struct blas_handle *handle, count n, const void *x, int x_type, count incx,     \
             const void *y, int y_type, count incy, void *result, int result_type, int type) \
    {                                                                                        \
        (void)n, (void)x, (void)x_type, (void)incx, (void)y, (void)y_type, (void)incy;       \
        (void)type;                                                                          \
        return reduce(handle, result, data_type_bytes(result_type));                         \
    }
#define DOT_EX(name) DOT_EX_OF(name, int)
#define DOT_EX_64(name) DOT_EX_OF(name, int64_t)

/* The batched solvers tell the host whether their arguments were right. */
static int solve(struct blas_handle *handle, int *info)
{
    if (!handle || !info)
        return handle ? BLAS_INVALID_VALUE : BLAS_NOT_INITIALIZED;
    *info = 0;
    return simblas_launch(handle->stream);
}

#define FACTORIZE(name)                                                                           \
    int name(struct blas_handle *handle, int m, int n, void *const *a, int lda, void *const *tau, \
             int *info, int batch)                                                                \
    {                                                                                             \
        (void)m, (void)n, (void)a, (void)lda, (void)tau, (void)batch;                             \
        return solve(handle, info);                                                               \
    }
#define SOLVE(name)                                                                        \
    int name(struct blas_handle *handle, int trans, int n, int nrhs, const void *const *a, \
             int lda, const int *pivots, void *const *b, int ldb, int *info, int batch)    \
    {                                                                                      \
        (void)trans, (void)n, (void)nrhs, (void)a, (void)lda, (void)pivots, (void)b;       \
        (void)ldb, (void)batch;                                                            \
        return solve(handle, info);                                                        \
    }
#define LEAST_SQUARES(name)                                                                 \
    int name(struct blas_handle *handle, int trans, int m, int n, int nrhs, void *const *a, \
             int lda, void *const *c, int ldc, int *info, int *infos, int batch)            \
    {                                                                                       \
        (void)trans, (void)m, (void)n, (void)nrhs, (void)a, (void)lda, (void)c, (void)ldc;  \
        (void)infos, (void)batch;                                                           \
        return solve(handle, info);                                                         \
    }
#include "results.def"

#define UNSUPPORTED(name)                  \
    int name(void)                         \
    {                                      \
        return simblas_unsupported(#name); \
    }
#include "unsupported.def"
