/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the simulated cuBLAS and cuBLASLt share. Like the real libraries each
 * carries a static CUDA runtime of its own, hidden, so that its kernels reach
 * the driver by a way that no runtime-level hook sees. A matrix product is one
 * launch of a kernel that does nothing; results stay what the memory held.
 */
#ifndef SIMGPU_BLAS_H
#define SIMGPU_BLAS_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#ifndef SIMBLAS_MAJOR
#error "SIMBLAS_MAJOR must name the library's major version (12 or 13)"
#endif

#if SIMBLAS_MAJOR >= 13
enum { SIMBLAS_MINOR = 4, SIMBLAS_PATCH = 1, SIMBLAS_VERSION = 130401 };
#else
enum { SIMBLAS_MINOR = 8, SIMBLAS_PATCH = 4, SIMBLAS_VERSION = 120804 };
#endif

/* cublasStatus_t, with its own numbers: toolkits do not always carry cublas.h. */
enum blas_status {
    BLAS_SUCCESS = 0,
    BLAS_NOT_INITIALIZED = 1,
    BLAS_ALLOC_FAILED = 3,
    BLAS_INVALID_VALUE = 7,
    BLAS_ARCH_MISMATCH = 8,
    BLAS_MAPPING_ERROR = 11,
    BLAS_EXECUTION_FAILED = 13,
    BLAS_INTERNAL_ERROR = 14,
    BLAS_NOT_SUPPORTED = 15,
    BLAS_LICENSE_ERROR = 16,
};

const char *simblas_status_name(int status);
const char *simblas_status_text(int status);
/* libraryPropertyType 0, 1, 2: major, minor, patch. */
int simblas_property(int type, int *value);

/* Makes sure the calling thread has a context, as creating a handle does. */
int simblas_need_context(void);

/* One launch of the kernel that does nothing; a node while the stream captures. */
int simblas_launch(cudaStream_t stream);

/* Says once per name that a call is not simulated; BLAS_NOT_SUPPORTED. */
int simblas_unsupported(const char *name);

#endif
