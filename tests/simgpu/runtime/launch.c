/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel launches, what is known of kernels, occupancy, host functions. */
#include "runtime.h"

#include <cuda_runtime_api.h>
#include <string.h>

/* What <<<...>>> pushes and the launching stub pops. */
struct call_configuration {
    dim3 grid, block;
    size_t shared_bytes;
    cudaStream_t stream;
};

enum { CONFIGURATIONS = 16 };
static __thread struct call_configuration configurations[CONFIGURATIONS];
static __thread unsigned configuration_count;

unsigned __cudaPushCallConfiguration(dim3 gridDim, dim3 blockDim, size_t sharedMem,
                                     struct CUstream_st *stream);
unsigned __cudaPushCallConfiguration(dim3 gridDim, dim3 blockDim, size_t sharedMem,
                                     struct CUstream_st *stream)
{
    if (configuration_count == CONFIGURATIONS)
        return 1;
    configurations[configuration_count++] =
        (struct call_configuration){gridDim, blockDim, sharedMem, stream};
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *gridDim, dim3 *blockDim, size_t *sharedMem,
                                       void *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *gridDim, dim3 *blockDim, size_t *sharedMem,
                                       void *stream)
{
    if (!configuration_count)
        return simrt_leave(cudaErrorMissingConfiguration);
    struct call_configuration *top = &configurations[--configuration_count];
    *gridDim = top->grid;
    *blockDim = top->block;
    *sharedMem = top->shared_bytes;
    memcpy(stream, &top->stream, sizeof(top->stream));
    return cudaSuccess;
}

static cudaError_t launch_kernel(enum simrt_lane lane, CUfunction kernel, dim3 grid, dim3 block,
                                 void **args, size_t shared_bytes, cudaStream_t stream)
{
    return DRV_ON(lane, LaunchKernel, kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                  (unsigned)shared_bytes, stream, args, NULL);
}

static cudaError_t launch(enum simrt_lane lane, const void *function, dim3 grid, dim3 block,
                          void **args, size_t shared_bytes, cudaStream_t stream)
{
    CUfunction kernel = NULL;
    cudaError_t error = simrt_kernel_of(function, &kernel);
    return error == cudaSuccess
               ? launch_kernel(lane, kernel, grid, block, args, shared_bytes, stream)
               : error;
}

RT_STREAM_ENTRY(cudaLaunchKernel, _ptsz,
                (const void *func, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem,
                 cudaStream_t stream),
                (func, gridDim, blockDim, args, sharedMem, stream),
                RT_CALL(launch(lane, func, gridDim, blockDim, args, sharedMem, stream)))

/* The launch stub of newer compilers passes the handle __cudaGetKernel gave it. */
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 gridDim, dim3 blockDim, void **args,
                               size_t sharedMem, cudaStream_t stream);
RT_STREAM_ENTRY(__cudaLaunchKernel, _ptsz,
                (cudaKernel_t kernel, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem,
                 cudaStream_t stream),
                (kernel, gridDim, blockDim, args, sharedMem, stream),
                RT_CALL(kernel ? launch_kernel(lane, (CUfunction)kernel, gridDim, blockDim, args,
                                               sharedMem, stream)
                               : cudaErrorInvalidDeviceFunction))

static cudaError_t launch_cooperative(enum simrt_lane lane, const void *function, dim3 grid,
                                      dim3 block, void **args, size_t shared_bytes,
                                      cudaStream_t stream)
{
    CUfunction kernel = NULL;
    cudaError_t error = simrt_kernel_of(function, &kernel);
    return error == cudaSuccess
               ? DRV_ON(lane, LaunchCooperativeKernel, kernel, grid.x, grid.y, grid.z, block.x,
                        block.y, block.z, (unsigned)shared_bytes, stream, args)
               : error;
}

RT_STREAM_ENTRY(cudaLaunchCooperativeKernel, _ptsz,
                (const void *func, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem,
                 cudaStream_t stream),
                (func, gridDim, blockDim, args, sharedMem, stream),
                RT_CALL(launch_cooperative(lane, func, gridDim, blockDim, args, sharedMem, stream)))

_Static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute), "one layout, two names");

static CUlaunchConfig driver_config(const cudaLaunchConfig_t *config)
{
    return (CUlaunchConfig){
        .gridDimX = config->gridDim.x,
        .gridDimY = config->gridDim.y,
        .gridDimZ = config->gridDim.z,
        .blockDimX = config->blockDim.x,
        .blockDimY = config->blockDim.y,
        .blockDimZ = config->blockDim.z,
        .sharedMemBytes = (unsigned)config->dynamicSmemBytes,
        .hStream = config->stream,
        .attrs = (CUlaunchAttribute *)config->attrs,
        .numAttrs = config->numAttrs,
    };
}

static cudaError_t launch_extended(enum simrt_lane lane, const cudaLaunchConfig_t *config,
                                   const void *function, void **args)
{
    if (!config)
        return cudaErrorInvalidConfiguration;
    CUfunction kernel = NULL;
    cudaError_t error = simrt_kernel_of(function, &kernel);
    if (error != cudaSuccess)
        return error;
    CUlaunchConfig wanted = driver_config(config);
    return DRV_ON(lane, LaunchKernelEx, &wanted, kernel, args, NULL);
}

RT_STREAM_ENTRY(cudaLaunchKernelExC, _ptsz,
                (const cudaLaunchConfig_t *config, const void *func, void **args),
                (config, func, args), RT_CALL(launch_extended(lane, config, func, args)))

RT_STREAM_ENTRY(cudaLaunchHostFunc, _ptsz, (cudaStream_t stream, cudaHostFn_t fn, void *userData),
                (stream, fn, userData),
                RT_CALL(DRV_ON(lane, LaunchHostFunc, stream, (CUhostFn)fn, userData)))

static cudaError_t get_kernel(cudaKernel_t *kernel, const void *function)
{
    CUfunction handle = NULL;
    cudaError_t error = simrt_kernel_of(function, &handle);
    if (error == cudaSuccess)
        error = simrt_remember_kernel((CUkernel)handle);
    *kernel = error == cudaSuccess ? (cudaKernel_t)handle : NULL;
    return error;
}

cudaError_t cudaGetKernel(cudaKernel_t *kernelPtr, const void *entryFuncAddr)
{
    if (!kernelPtr)
        return simrt_leave(cudaErrorInvalidValue);
    return RT_CALL(get_kernel(kernelPtr, entryFuncAddr));
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernelPtr, const void *entryFuncAddr);
cudaError_t __cudaGetKernel(cudaKernel_t *kernelPtr, const void *entryFuncAddr)
{
    if (!kernelPtr)
        return simrt_leave(cudaErrorInvalidValue);
    return RT_CALL(get_kernel(kernelPtr, entryFuncAddr));
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t *functionPtr, const void *symbolPtr)
{
    return RT_CALL(functionPtr ? simrt_function_of(symbolPtr, functionPtr) : cudaErrorInvalidValue);
}

static cudaError_t function_attribute(CUfunction function, CUfunction_attribute attribute, int *to)
{
    return DRV(FuncGetAttribute, to, attribute, function);
}

/* Cluster attributes come from newer drivers: absent means none required. */
static cudaError_t cluster_attributes(struct cudaFuncAttributes *attributes, CUfunction function)
{
    const struct {
        CUfunction_attribute attribute;
        int *to;
    } wanted[] = {
        {CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, &attributes->clusterDimMustBeSet},
        {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, &attributes->requiredClusterWidth},
        {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, &attributes->requiredClusterHeight},
        {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, &attributes->requiredClusterDepth},
        {CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
         &attributes->nonPortableClusterSizeAllowed},
    };
    cudaError_t error = cudaSuccess;
    for (size_t i = 0; error == cudaSuccess && i < sizeof(wanted) / sizeof(*wanted); i++)
        error = function_attribute(function, wanted[i].attribute, wanted[i].to);
    return error;
}

static cudaError_t function_attributes(struct cudaFuncAttributes *attributes, const void *host)
{
    CUfunction function = NULL;
    cudaError_t error = simrt_function_of(host, &function);
    if (error != cudaSuccess)
        return error;
    memset(attributes, 0, sizeof(*attributes));
    int shared_bytes = 0, constant_bytes = 0, local_bytes = 0;
    const struct {
        CUfunction_attribute attribute;
        int *to;
    } wanted[] = {
        {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &shared_bytes},
        {CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, &constant_bytes},
        {CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &local_bytes},
        {CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &attributes->maxThreadsPerBlock},
        {CU_FUNC_ATTRIBUTE_NUM_REGS, &attributes->numRegs},
        {CU_FUNC_ATTRIBUTE_PTX_VERSION, &attributes->ptxVersion},
        {CU_FUNC_ATTRIBUTE_BINARY_VERSION, &attributes->binaryVersion},
        {CU_FUNC_ATTRIBUTE_CACHE_MODE_CA, &attributes->cacheModeCA},
        {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &attributes->maxDynamicSharedSizeBytes},
        {CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, &attributes->preferredShmemCarveout},
    };
    for (size_t i = 0; error == cudaSuccess && i < sizeof(wanted) / sizeof(*wanted); i++)
        error = function_attribute(function, wanted[i].attribute, wanted[i].to);
    attributes->sharedSizeBytes = (size_t)shared_bytes;
    attributes->constSizeBytes = (size_t)constant_bytes;
    attributes->localSizeBytes = (size_t)local_bytes;
    return error == cudaSuccess ? cluster_attributes(attributes, function) : error;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attr, const void *func)
{
    return RT_CALL(attr ? function_attributes(attr, func) : cudaErrorInvalidValue);
}

static cudaError_t set_function_attribute(const void *host, enum cudaFuncAttribute attribute,
                                          int value)
{
    CUfunction function = NULL;
    cudaError_t error = simrt_function_of(host, &function);
    return error == cudaSuccess
               ? DRV(FuncSetAttribute, function, (CUfunction_attribute)attribute, value)
               : error;
}

cudaError_t cudaFuncSetAttribute(const void *func, enum cudaFuncAttribute attr, int value)
{
    return RT_CALL(set_function_attribute(func, attr, value));
}

static cudaError_t set_cache(const void *host, enum cudaFuncCache cache)
{
    CUfunction kernel = NULL;
    int device = 0;
    cudaError_t error = simrt_kernel_of(host, &kernel);
    if (error == cudaSuccess)
        error = simrt_current_device(&device);
    return error == cudaSuccess ? DRV(KernelSetCacheConfig, (CUkernel)kernel, (CUfunc_cache)cache,
                                      simrt.devices[device].handle)
                                : error;
}

cudaError_t cudaFuncSetCacheConfig(const void *func, enum cudaFuncCache cacheConfig)
{
    return RT_CALL(set_cache(func, cacheConfig));
}

static cudaError_t known_kernel(const void *host)
{
    CUfunction kernel = NULL;
    return simrt_kernel_of(host, &kernel);
}

/* Bank sizes exist no more: the kernel must exist, the setting changes nothing. */
cudaError_t cudaFuncSetSharedMemConfig(const void *func, enum cudaSharedMemConfig config)
{
    (void)config;
    return RT_CALL(known_kernel(func));
}

static cudaError_t function_name(const char **name, const void *host)
{
    CUfunction kernel = NULL;
    cudaError_t error = simrt_kernel_of(host, &kernel);
    return error == cudaSuccess ? DRV(KernelGetName, name, (CUkernel)kernel) : error;
}

cudaError_t cudaFuncGetName(const char **name, const void *func)
{
    return RT_CALL(function_name(name, func));
}

static cudaError_t parameter(const void *host, size_t index, size_t *offset, size_t *size)
{
    CUfunction kernel = NULL;
    cudaError_t error = simrt_kernel_of(host, &kernel);
    return error == cudaSuccess ? DRV(KernelGetParamInfo, (CUkernel)kernel, index, offset, size)
                                : error;
}

cudaError_t cudaFuncGetParamInfo(const void *func, size_t paramIndex, size_t *paramOffset,
                                 size_t *paramSize)
{
    return RT_CALL(parameter(func, paramIndex, paramOffset, paramSize));
}

static cudaError_t active_blocks(int *blocks, const void *host, int block_size, size_t shared_bytes,
                                 unsigned flags)
{
    CUfunction function = NULL;
    cudaError_t error = simrt_function_of(host, &function);
    return error == cudaSuccess ? DRV(OccupancyMaxActiveBlocksPerMultiprocessorWithFlags, blocks,
                                      function, block_size, shared_bytes, flags)
                                : error;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, const void *func,
                                                          int blockSize, size_t dynamicSMemSize)
{
    return RT_CALL(active_blocks(numBlocks, func, blockSize, dynamicSMemSize, 0));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, const void *func,
                                                                   int blockSize,
                                                                   size_t dynamicSMemSize,
                                                                   unsigned flags)
{
    return RT_CALL(active_blocks(numBlocks, func, blockSize, dynamicSMemSize, flags));
}

static cudaError_t available_shared(size_t *bytes, const void *host, int blocks, int block_size)
{
    CUfunction function = NULL;
    cudaError_t error = simrt_function_of(host, &function);
    return error == cudaSuccess
               ? DRV(OccupancyAvailableDynamicSMemPerBlock, bytes, function, blocks, block_size)
               : error;
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *dynamicSmemSize, const void *func,
                                                      int numBlocks, int blockSize)
{
    return RT_CALL(available_shared(dynamicSmemSize, func, numBlocks, blockSize));
}

static cudaError_t cluster_size(int *size, const void *host, const cudaLaunchConfig_t *config)
{
    CUfunction function = NULL;
    cudaError_t error = config ? simrt_function_of(host, &function) : cudaErrorInvalidValue;
    if (error != cudaSuccess)
        return error;
    CUlaunchConfig wanted = driver_config(config);
    return DRV(OccupancyMaxPotentialClusterSize, size, function, &wanted);
}

cudaError_t cudaOccupancyMaxPotentialClusterSize(int *clusterSize, const void *func,
                                                 const cudaLaunchConfig_t *launchConfig)
{
    return RT_CALL(cluster_size(clusterSize, func, launchConfig));
}

static cudaError_t active_clusters(int *count, const void *host, const cudaLaunchConfig_t *config)
{
    CUfunction function = NULL;
    cudaError_t error = config ? simrt_function_of(host, &function) : cudaErrorInvalidValue;
    if (error != cudaSuccess)
        return error;
    CUlaunchConfig wanted = driver_config(config);
    return DRV(OccupancyMaxActiveClusters, count, function, &wanted);
}

cudaError_t cudaOccupancyMaxActiveClusters(int *numClusters, const void *func,
                                           const cudaLaunchConfig_t *launchConfig)
{
    return RT_CALL(active_clusters(numClusters, func, launchConfig));
}
