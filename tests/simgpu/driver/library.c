/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries (code loaded without a context) and kernels in them. */
#include <stdlib.h>
#include <unistd.h>

#include "module.h"

/* The device that pays is the current context's, or that of the first context to use it. */
static CUresult load_library(CUlibrary *library)
{
    if (!library)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    struct sim_module *made = NULL;
    struct sim_context *context = sim_current(&result);
    result = sim_module_new(SIM_LIBRARY, context, &made);
    if (result == CUDA_SUCCESS)
        *library = (CUlibrary)made;
    return sim_leave(result);
}

CUresult CUDAAPI cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
                                   void **jitOptionsValues, unsigned int numJitOptions,
                                   CUlibraryOption *libraryOptions, void **libraryOptionValues,
                                   unsigned int numLibraryOptions)
{
    SIM_ENTER(cuLibraryLoadData, 0);
    if (!code || (numJitOptions && (!jitOptions || !jitOptionsValues)) ||
        (numLibraryOptions && (!libraryOptions || !libraryOptionValues)))
        return CUDA_ERROR_INVALID_VALUE;
    return load_library(library);
}

CUresult CUDAAPI cuLibraryLoadFromFile(CUlibrary *library, const char *fileName,
                                       CUjit_option *jitOptions, void **jitOptionsValues,
                                       unsigned int numJitOptions, CUlibraryOption *libraryOptions,
                                       void **libraryOptionValues, unsigned int numLibraryOptions)
{
    SIM_ENTER(cuLibraryLoadFromFile, 0);
    if (!fileName || (numJitOptions && (!jitOptions || !jitOptionsValues)) ||
        (numLibraryOptions && (!libraryOptions || !libraryOptionValues)))
        return CUDA_ERROR_INVALID_VALUE;
    return access(fileName, R_OK) ? CUDA_ERROR_FILE_NOT_FOUND : load_library(library);
}

static struct sim_module *library_of(CUlibrary handle)
{
    return sim_object_find(handle, SIM_LIBRARY);
}

CUresult CUDAAPI cuLibraryUnload(CUlibrary library)
{
    SIM_ENTER(cuLibraryUnload, 0);
    sim_lock();
    struct sim_module *found = library_of(library);
    if (found)
        sim_module_delete(found);
    return sim_leave(found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

CUresult CUDAAPI cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name)
{
    SIM_ENTER(cuLibraryGetKernel, 0);
    if (!pKernel || !name || !*name)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    return sim_module_give_function(library_of(library), name, (void **)pKernel);
}

#if CUDA_VERSION >= 12040
CUresult CUDAAPI cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib)
{
    SIM_ENTER(cuLibraryGetKernelCount, 0);
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    return sim_module_give_count(library_of(lib), count);
}

CUresult CUDAAPI cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int numKernels,
                                           CUlibrary lib)
{
    SIM_ENTER(cuLibraryEnumerateKernels, 0);
    if (!kernels && numKernels)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    return sim_module_give_functions(library_of(lib), (void **)kernels, numKernels);
}
#endif

CUresult CUDAAPI cuLibraryGetModule(CUmodule *pMod, CUlibrary library)
{
    SIM_ENTER(cuLibraryGetModule, 0);
    if (!pMod)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    struct sim_module *found = library_of(library);
    struct sim_context *context = sim_current(&result);
    if (context && !found)
        result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS)
        result = sim_module_bind(found, context);
    if (result == CUDA_SUCCESS && !found->view)
        found->view = sim_object_new(SIM_MODULE, sizeof *found->view);
    if (result == CUDA_SUCCESS && !found->view)
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS) {
        found->view->library = found;
        *pMod = (CUmodule)found->view;
    }
    return sim_leave(result);
}

static CUresult find_nothing(CUlibrary library, const void *out, const char *name)
{
    if (!out || !name)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    return sim_leave(library_of(library) ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE);
}

CUresult CUDAAPI cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library,
                                    const char *name)
{
    SIM_ENTER(cuLibraryGetGlobal, 0);
    return find_nothing(library, dptr ? (const void *)dptr : bytes, name);
}

CUresult CUDAAPI cuLibraryGetManaged(CUdeviceptr *dptr, size_t *bytes, CUlibrary library,
                                     const char *name)
{
    SIM_ENTER(cuLibraryGetManaged, 0);
    return find_nothing(library, dptr ? (const void *)dptr : bytes, name);
}

CUresult CUDAAPI cuLibraryGetUnifiedFunction(void **fptr, CUlibrary library, const char *symbol)
{
    SIM_ENTER(cuLibraryGetUnifiedFunction, 0);
    return find_nothing(library, fptr, symbol);
}

/* ---- kernels ---- */

CUresult CUDAAPI cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
    SIM_ENTER(cuKernelGetFunction, 0);
    if (!pFunc)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    struct sim_function *function = sim_function_of(kernel);
    struct sim_context *context = sim_current(&result);
    if (context && !function)
        result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS)
        result = sim_module_bind(function->module, context);
    if (result == CUDA_SUCCESS)
        *pFunc = (CUfunction)function;
    return sim_leave(result);
}

#if CUDA_VERSION >= 12050
CUresult CUDAAPI cuKernelGetLibrary(CUlibrary *pLib, CUkernel kernel)
{
    SIM_ENTER(cuKernelGetLibrary, 0);
    if (!pLib)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    const struct sim_function *function = sim_function_of(kernel);
    if (function)
        *pLib = (CUlibrary)function->module;
    return sim_leave(function ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}
#endif

CUresult CUDAAPI cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel kernel,
                                      CUdevice dev)
{
    SIM_ENTER(cuKernelGetAttribute, 0);
    if (!pi)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_is_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    const struct sim_function *function = sim_function_of(kernel);
    return sim_leave(function ? sim_function_get_attribute(function, (int)attrib, pi)
                              : CUDA_ERROR_INVALID_HANDLE);
}

CUresult CUDAAPI cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel,
                                      CUdevice dev)
{
    SIM_ENTER(cuKernelSetAttribute, 0);
    if (!sim_is_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    struct sim_function *function = sim_function_of(kernel);
    return sim_leave(function ? sim_function_set_attribute(function, (int)attrib, val)
                              : CUDA_ERROR_INVALID_HANDLE);
}

CUresult CUDAAPI cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev)
{
    SIM_ENTER(cuKernelSetCacheConfig, 0);
    if (config > CU_FUNC_CACHE_PREFER_EQUAL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_is_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    return sim_leave(sim_function_of(kernel) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

#if CUDA_VERSION >= 12030
CUresult CUDAAPI cuKernelGetName(const char **name, CUkernel hfunc)
{
    SIM_ENTER(cuKernelGetName, 0);
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    const struct sim_function *function = sim_function_of(hfunc);
    if (function)
        *name = function->name;
    return sim_leave(function ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}
#endif

#if CUDA_VERSION >= 12040
CUresult CUDAAPI cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t *paramOffset,
                                      size_t *paramSize)
{
    SIM_ENTER(cuKernelGetParamInfo, 0);
    (void)paramIndex;
    (void)paramSize;
    if (!paramOffset)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    bool known = sim_function_of(kernel) != NULL; /* parameters are not read from images */
    return sim_leave(known ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE);
}
#endif
