/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules and the functions in them. Images are not parsed: every name is a function, no name is a
 * global. A loaded module costs its device the configured bytes.
 */
#include "module.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct sim_module *modules;

/* ---- shared with libraries ---- */

CUresult sim_module_bind(struct sim_module *module, struct sim_context *context)
{
    if (module->context)
        return CUDA_SUCCESS;
    if (sim_charge(context->device, SIMGPU_MODULE, simgpu_config()->module_bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    module->context = context;
    return CUDA_SUCCESS;
}

CUresult sim_module_new(enum sim_type type, struct sim_context *context, struct sim_module **module)
{
    struct sim_module *made = sim_object_new(type, sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = context ? sim_module_bind(made, context) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS) {
        sim_object_delete(made);
        return result;
    }
    made->next = modules;
    modules = made;
    *module = made;
    return CUDA_SUCCESS;
}

static void unbind(struct sim_module *module)
{
    if (module->context)
        sim_discharge(module->context->device, SIMGPU_MODULE, simgpu_config()->module_bytes);
    module->context = NULL;
}

static void free_functions(struct sim_module *module)
{
    while (module->functions) {
        struct sim_function *function = module->functions;
        module->functions = function->next;
        free(function->name);
        sim_object_delete(function);
    }
}

void sim_module_delete(struct sim_module *module)
{
    struct sim_module **link = &modules;
    while (*link != module)
        link = &(*link)->next;
    *link = module->next;
    if (module->view)
        sim_object_delete(module->view);
    unbind(module);
    free_functions(module);
    sim_object_delete(module);
}

void sim_modules_of_context_end(const struct sim_context *context)
{
    struct sim_module *module = modules;
    while (module) {
        struct sim_module *next = module->next;
        if (module->context == context && module->object.type == SIM_MODULE)
            sim_module_delete(module);
        else if (module->context == context)
            unbind(module); /* libraries outlive contexts */
        module = next;
    }
}

struct sim_function *sim_module_function(struct sim_module *module, const char *name)
{
    for (struct sim_function *known = module->functions; known; known = known->next)
        if (strcmp(known->name, name) == 0)
            return known;
    struct sim_function *function = sim_object_new(SIM_FUNCTION, sizeof *function);
    if (!function)
        return NULL;
    function->name = strdup(name);
    if (!function->name) {
        sim_object_delete(function);
        return NULL;
    }
    function->module = module;
    function->attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 1024;
    function->attributes[CU_FUNC_ATTRIBUTE_NUM_REGS] = 32;
    function->attributes[CU_FUNC_ATTRIBUTE_PTX_VERSION] = 80;
    function->attributes[CU_FUNC_ATTRIBUTE_BINARY_VERSION] = 80;
    function->attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = 49152;
    function->attributes[CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] = -1;
    function->next = module->functions;
    module->functions = function;
    module->function_count++;
    return function;
}

CUresult sim_module_give_function(struct sim_module *module, const char *name, void **out)
{
    if (!module)
        return sim_leave(CUDA_ERROR_INVALID_HANDLE);
    struct sim_function *function = sim_module_function(module, name);
    if (function)
        *out = function;
    return sim_leave(function ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult sim_module_give_count(const struct sim_module *module, unsigned *count)
{
    if (module)
        *count = (unsigned)module->function_count;
    return sim_leave(module ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

CUresult sim_module_give_functions(const struct sim_module *module, void **out, unsigned room)
{
    if (!module)
        return sim_leave(CUDA_ERROR_INVALID_HANDLE);
    unsigned i = 0;
    for (struct sim_function *function = module->functions; function && i < room;
         function = function->next)
        out[i++] = function;
    for (; i < room; i++)
        out[i] = NULL;
    return sim_leave(CUDA_SUCCESS);
}

struct sim_function *sim_function_of(const void *handle)
{
    return sim_object_find(handle, SIM_FUNCTION);
}

CUresult sim_function_get_attribute(const struct sim_function *function, int attribute, int *value)
{
    if (attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    *value = function->attributes[attribute];
    return CUDA_SUCCESS;
}

CUresult sim_function_set_attribute(struct sim_function *function, int attribute, int value)
{
    bool settable = attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ||
                    attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT ||
                    (attribute >= CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH &&
                     attribute < CU_FUNC_ATTRIBUTE_MAX);
    if (!settable)
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
        (value < 0 || value > 166912))
        return CUDA_ERROR_INVALID_VALUE;
    function->attributes[attribute] = value;
    return CUDA_SUCCESS;
}

/* ---- loading ---- */

static CUresult load(CUmodule *module)
{
    if (!module)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    struct sim_context *context = sim_current(&result);
    struct sim_module *made = NULL;
    if (context)
        result = sim_module_new(SIM_MODULE, context, &made);
    if (result == CUDA_SUCCESS)
        *module = (CUmodule)made;
    return sim_leave(result);
}

CUresult CUDAAPI cuModuleLoad(CUmodule *module, const char *fname)
{
    SIM_ENTER(cuModuleLoad, 0);
    if (!fname)
        return CUDA_ERROR_INVALID_VALUE;
    return access(fname, R_OK) ? CUDA_ERROR_FILE_NOT_FOUND : load(module);
}

CUresult CUDAAPI cuModuleLoadData(CUmodule *module, const void *image)
{
    SIM_ENTER(cuModuleLoadData, 0);
    return image ? load(module) : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
                                    CUjit_option *options, void **optionValues)
{
    SIM_ENTER(cuModuleLoadDataEx, 0);
    if (!image || (numOptions && (!options || !optionValues)))
        return CUDA_ERROR_INVALID_VALUE;
    return load(module);
}

CUresult CUDAAPI cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
    SIM_ENTER(cuModuleLoadFatBinary, 0);
    return fatCubin ? load(module) : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuModuleUnload(CUmodule hmod)
{
    SIM_ENTER(cuModuleUnload, 0);
    sim_lock();
    CUresult result;
    struct sim_module *module = sim_object_find(hmod, SIM_MODULE);
    if (sim_current(&result) && (!module || module->library))
        result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS)
        sim_module_delete(module);
    return sim_leave(result);
}

CUresult CUDAAPI cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    SIM_ENTER(cuModuleGetLoadingMode, 0);
    if (!mode)
        return CUDA_ERROR_INVALID_VALUE;
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

/* ---- functions and globals ---- */

/* The module behind a handle; that of a library's view is the library itself. */
static struct sim_module *module_of(CUmodule handle)
{
    struct sim_module *module = sim_object_find(handle, SIM_MODULE);
    return module && module->library ? module->library : module;
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
    SIM_ENTER(cuModuleGetFunction, 0);
    if (!hfunc || !name || !*name)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    return sim_module_give_function(module_of(hmod), name, (void **)hfunc);
}

#if CUDA_VERSION >= 12040
CUresult CUDAAPI cuModuleGetFunctionCount(unsigned int *count, CUmodule mod)
{
    SIM_ENTER(cuModuleGetFunctionCount, 0);
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    return sim_module_give_count(module_of(mod), count);
}

CUresult CUDAAPI cuModuleEnumerateFunctions(CUfunction *functions, unsigned int numFunctions,
                                            CUmodule mod)
{
    SIM_ENTER(cuModuleEnumerateFunctions, 0);
    if (!functions && numFunctions)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    return sim_module_give_functions(module_of(mod), (void **)functions, numFunctions);
}
#endif

CUresult CUDAAPI cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod,
                                      const char *name)
{
    SIM_ENTER(cuModuleGetGlobal, 0);
    if (!name || (!dptr && !bytes))
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    bool known = module_of(hmod) != NULL;
    return sim_leave(known ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE);
}

CUresult CUDAAPI cuFuncGetModule(CUmodule *hmod, CUfunction hfunc)
{
    SIM_ENTER(cuFuncGetModule, 0);
    if (!hmod)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    const struct sim_function *function = sim_function_of(hfunc);
    if (function)
        *hmod = (CUmodule)function->module;
    return sim_leave(function ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

CUresult CUDAAPI cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc)
{
    SIM_ENTER(cuFuncGetAttribute, 0);
    if (!pi)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    const struct sim_function *function = sim_function_of(hfunc);
    return sim_leave(function ? sim_function_get_attribute(function, (int)attrib, pi)
                              : CUDA_ERROR_INVALID_HANDLE);
}

CUresult CUDAAPI cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value)
{
    SIM_ENTER(cuFuncSetAttribute, 0);
    sim_lock();
    struct sim_function *function = sim_function_of(hfunc);
    return sim_leave(function ? sim_function_set_attribute(function, (int)attrib, value)
                              : CUDA_ERROR_INVALID_HANDLE);
}

CUresult CUDAAPI cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config)
{
    SIM_ENTER(cuFuncSetCacheConfig, 0);
    if (config > CU_FUNC_CACHE_PREFER_EQUAL)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    return sim_leave(sim_function_of(hfunc) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

#if CUDA_VERSION >= 12030
CUresult CUDAAPI cuFuncGetName(const char **name, CUfunction hfunc)
{
    SIM_ENTER(cuFuncGetName, 0);
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
CUresult CUDAAPI cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t *paramOffset,
                                    size_t *paramSize)
{
    SIM_ENTER(cuFuncGetParamInfo, 0);
    (void)paramIndex;
    (void)paramSize;
    if (!paramOffset)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    bool known = sim_function_of(func) != NULL; /* parameters are not read from images */
    return sim_leave(known ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE);
}

CUresult CUDAAPI cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
    SIM_ENTER(cuFuncIsLoaded, 0);
    if (!state)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    bool known = sim_function_of(function) != NULL;
    if (known)
        *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return sim_leave(known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

CUresult CUDAAPI cuFuncLoad(CUfunction function)
{
    SIM_ENTER(cuFuncLoad, 0);
    sim_lock();
    return sim_leave(sim_function_of(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}
#endif
