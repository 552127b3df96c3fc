/* SPDX-License-Identifier: Apache-2.0 */
/* What the simulated cuBLAS libraries share: status texts, the way to a launch. */
#include "blas.h"

#include "kernel.h"

static const struct {
    int code;
    const char *name, *text;
} statuses[] = {
    {BLAS_SUCCESS, "CUBLAS_STATUS_SUCCESS", "success"},
    {BLAS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED", "the library was not initialized"},
    {BLAS_ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed"},
    {BLAS_INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE",
     "an unsupported value or parameter was passed to the function"},
    {BLAS_ARCH_MISMATCH, "CUBLAS_STATUS_ARCH_MISMATCH",
     "a required feature is missing from the device architecture"},
    {BLAS_MAPPING_ERROR, "CUBLAS_STATUS_MAPPING_ERROR", "an access to GPU memory space failed"},
    {BLAS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED", "the GPU program failed to execute"},
    {BLAS_INTERNAL_ERROR, "CUBLAS_STATUS_INTERNAL_ERROR", "an internal operation failed"},
    {BLAS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED",
     "the functionality requested is not supported"},
    {BLAS_LICENSE_ERROR, "CUBLAS_STATUS_LICENSE_ERROR", "a licensing error was detected"},
};

const char *simblas_status_name(int status)
{
    for (size_t i = 0; i < sizeof(statuses) / sizeof(*statuses); i++)
        if (statuses[i].code == status)
            return statuses[i].name;
    return "<unknown>";
}

const char *simblas_status_text(int status)
{
    for (size_t i = 0; i < sizeof(statuses) / sizeof(*statuses); i++)
        if (statuses[i].code == status)
            return statuses[i].text;
    return "unknown status";
}

int simblas_property(int type, int *value)
{
    static const int parts[] = {SIMBLAS_MAJOR, SIMBLAS_MINOR, SIMBLAS_PATCH};
    if (!value || type < 0 || type > 2)
        return BLAS_INVALID_VALUE;
    *value = parts[type];
    return BLAS_SUCCESS;
}

int simblas_need_context(void)
{
    switch (cudaFree(NULL)) {
    case cudaSuccess:
        return BLAS_SUCCESS;
    case cudaErrorMemoryAllocation:
        return BLAS_ALLOC_FAILED;
    default:
        return BLAS_NOT_INITIALIZED;
    }
}

int simblas_launch(cudaStream_t stream)
{
    cudaError_t error = simlib_launch(stream);
    return error == cudaSuccess                 ? BLAS_SUCCESS
           : error == cudaErrorMemoryAllocation ? BLAS_ALLOC_FAILED
                                                : BLAS_EXECUTION_FAILED;
}

int simblas_unsupported(const char *name)
{
    simlib_say_unsupported(name);
    return BLAS_NOT_SUPPORTED;
}
