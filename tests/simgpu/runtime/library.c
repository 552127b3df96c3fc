/* SPDX-License-Identifier: Apache-2.0 */
/* Code loaded at run time, driver entry points, profiler control. */
#include "runtime.h"

#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>

cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code,
                                enum cudaJitOption *jitOptions, void **jitOptionsValues,
                                unsigned numJitOptions, enum cudaLibraryOption *libraryOptions,
                                void **libraryOptionValues, unsigned numLibraryOptions)
{
    return RT_CALL(DRV(LibraryLoadData, (CUlibrary *)library, code, (CUjit_option *)jitOptions,
                       jitOptionsValues, numJitOptions, (CUlibraryOption *)libraryOptions,
                       libraryOptionValues, numLibraryOptions));
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t *library, const char *fileName,
                                    enum cudaJitOption *jitOptions, void **jitOptionsValues,
                                    unsigned numJitOptions, enum cudaLibraryOption *libraryOptions,
                                    void **libraryOptionValues, unsigned numLibraryOptions)
{
    return RT_CALL(DRV(LibraryLoadFromFile, (CUlibrary *)library, fileName,
                       (CUjit_option *)jitOptions, jitOptionsValues, numJitOptions,
                       (CUlibraryOption *)libraryOptions, libraryOptionValues, numLibraryOptions));
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library)
{
    return RT_CALL(DRV(LibraryUnload, (CUlibrary)library));
}

static cudaError_t library_kernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name)
{
    cudaError_t error = DRV(LibraryGetKernel, (CUkernel *)kernel, (CUlibrary)library, name);
    return error == cudaSuccess ? simrt_remember_kernel((CUkernel)*kernel) : error;
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *pKernel, cudaLibrary_t library, const char *name)
{
    return RT_CALL(library_kernel(pKernel, library, name));
}

cudaError_t cudaLibraryGetGlobal(void **dptr, size_t *bytes, cudaLibrary_t library,
                                 const char *name)
{
    return RT_CALL(DRV(LibraryGetGlobal, (CUdeviceptr *)dptr, bytes, (CUlibrary)library, name));
}

cudaError_t cudaLibraryGetManaged(void **dptr, size_t *bytes, cudaLibrary_t library,
                                  const char *name)
{
    return RT_CALL(DRV(LibraryGetManaged, (CUdeviceptr *)dptr, bytes, (CUlibrary)library, name));
}

cudaError_t cudaLibraryGetUnifiedFunction(void **fptr, cudaLibrary_t library, const char *symbol)
{
    return RT_CALL(DRV(LibraryGetUnifiedFunction, fptr, (CUlibrary)library, symbol));
}

cudaError_t cudaLibraryGetKernelCount(unsigned *count, cudaLibrary_t lib)
{
    return RT_CALL(DRV(LibraryGetKernelCount, count, (CUlibrary)lib));
}

static cudaError_t library_kernels(cudaKernel_t *kernels, unsigned count, cudaLibrary_t library)
{
    cudaError_t error =
        DRV(LibraryEnumerateKernels, (CUkernel *)kernels, count, (CUlibrary)library);
    for (unsigned i = 0; error == cudaSuccess && i < count; i++)
        error = simrt_remember_kernel((CUkernel)kernels[i]);
    return error;
}

cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t *kernels, unsigned numKernels,
                                        cudaLibrary_t lib)
{
    return RT_CALL(library_kernels(kernels, numKernels, lib));
}

static cudaError_t set_kernel_attribute(cudaKernel_t kernel, enum cudaFuncAttribute attribute,
                                        int value, int device)
{
    cudaError_t error = simrt_check_device(device);
    return error == cudaSuccess ? DRV(KernelSetAttribute, (CUfunction_attribute)attribute, value,
                                      (CUkernel)kernel, simrt.devices[device].handle)
                                : error;
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, enum cudaFuncAttribute attr,
                                            int value, int device)
{
    return RT_CALL(set_kernel_attribute(kernel, attr, value, device));
}

/* A name that is not found is told by the status, where the caller asks for
 * one, and is an error of the call where it does not. */
static cudaError_t entry_point(const char *symbol, void **pointer, unsigned version,
                               unsigned long long flags,
                               enum cudaDriverEntryPointQueryResult *status)
{
    if (!symbol || !pointer)
        return cudaErrorInvalidValue;
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
    *pointer = NULL;
    cudaError_t error =
        DRV(GetProcAddress, symbol, pointer, (int)version, (cuuint64_t)flags, &found);
    if (status)
        *status = (enum cudaDriverEntryPointQueryResult)found;
    return status && error == cudaErrorSymbolNotFound ? cudaSuccess : error;
}

/* The _ptsz names ask for the per-thread stream unless the caller says otherwise. */
static unsigned long long lane_flags(enum simrt_lane lane, unsigned long long flags)
{
    return lane == SIMRT_PER_THREAD && flags == cudaEnableDefault ? cudaEnablePerThreadDefaultStream
                                                                  : flags;
}

RT_STREAM_ENTRY(cudaGetDriverEntryPoint, _ptsz,
                (const char *symbol, void **funcPtr, unsigned long long flags,
                 enum cudaDriverEntryPointQueryResult *driverStatus),
                (symbol, funcPtr, flags, driverStatus),
                RT_CALL_WITHOUT_CONTEXT(entry_point(symbol, funcPtr, SIMRT_VERSION,
                                                    lane_flags(lane, flags), driverStatus)))

RT_STREAM_ENTRY(cudaGetDriverEntryPointByVersion, _ptsz,
                (const char *symbol, void **funcPtr, unsigned cudaVersion, unsigned long long flags,
                 enum cudaDriverEntryPointQueryResult *driverStatus),
                (symbol, funcPtr, cudaVersion, flags, driverStatus),
                RT_CALL_WITHOUT_CONTEXT(entry_point(symbol, funcPtr, cudaVersion,
                                                    lane_flags(lane, flags), driverStatus)))

/* No profiler listens here: starting and stopping one always works. */
cudaError_t cudaProfilerStart(void)
{
    return RT_CALL(cudaSuccess);
}

cudaError_t cudaProfilerStop(void)
{
    return RT_CALL(cudaSuccess);
}
