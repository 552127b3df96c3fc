/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel launches, which do nothing but keep order and fill captures; occupancy; linking. */
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "module.h"

/* ---- launching ---- */

static bool is_launchable(const CUDA_KERNEL_NODE_PARAMS_v2 *kernel)
{
    uint64_t threads = (uint64_t)kernel->blockDimX * kernel->blockDimY * kernel->blockDimZ;
    return kernel->gridDimX && kernel->gridDimX <= 2147483647U && kernel->gridDimY &&
           kernel->gridDimY <= 65535 && kernel->gridDimZ && kernel->gridDimZ <= 65535 && threads &&
           threads <= 1024 && kernel->blockDimX <= 1024 && kernel->blockDimY <= 1024 &&
           kernel->blockDimZ <= 64 && kernel->sharedMemBytes <= 166912;
}

static CUresult launch(CUDA_KERNEL_NODE_PARAMS_v2 kernel, CUstream handle)
{
    sim_lock();
    CUresult result;
    struct sim_stream *stream = sim_stream_of(handle, &result);
    if (!stream)
        return sim_leave(result);
    struct sim_function *function = sim_function_of(kernel.func);
    if (!function)
        return sim_leave(CUDA_ERROR_INVALID_HANDLE);
    if (!is_launchable(&kernel))
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    result = sim_module_bind(function->module, stream->context);
    if (result == CUDA_SUCCESS)
        result = sim_grow_local(stream->context);
    if (result == CUDA_SUCCESS)
        sim_capture_add(stream, CU_GRAPH_NODE_TYPE_KERNEL, &kernel, &result);
    return sim_leave(result);
}

SIM_STREAMED(cuLaunchKernel,
             (CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
              unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
              unsigned int sharedMemBytes, CUstream hStream, void **kernelParams, void **extra),
             (f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes,
              hStream, kernelParams, extra))
{
    SIM_ENTER(cuLaunchKernel, 0);
    if (kernelParams && extra)
        return CUDA_ERROR_INVALID_VALUE;
    return launch((CUDA_KERNEL_NODE_PARAMS_v2){f, gridDimX, gridDimY, gridDimZ, blockDimX,
                                               blockDimY, blockDimZ, sharedMemBytes, NULL, NULL,
                                               NULL, NULL},
                  hStream);
}

SIM_STREAMED(cuLaunchCooperativeKernel,
             (CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
              unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
              unsigned int sharedMemBytes, CUstream hStream, void **kernelParams),
             (f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes,
              hStream, kernelParams))
{
    SIM_ENTER(cuLaunchCooperativeKernel, 0);
    (void)kernelParams;
    return launch((CUDA_KERNEL_NODE_PARAMS_v2){f, gridDimX, gridDimY, gridDimZ, blockDimX,
                                               blockDimY, blockDimZ, sharedMemBytes, NULL, NULL,
                                               NULL, NULL},
                  hStream);
}

static CUresult launch_config(const CUlaunchConfig *config, CUstream stream, CUfunction f)
{
    return launch((CUDA_KERNEL_NODE_PARAMS_v2){f, config->gridDimX, config->gridDimY,
                                               config->gridDimZ, config->blockDimX,
                                               config->blockDimY, config->blockDimZ,
                                               config->sharedMemBytes, NULL, NULL, NULL, NULL},
                  stream);
}

CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams,
                                  void **extra)
{
    SIM_ENTER(cuLaunchKernelEx, 0);
    if (!config || (kernelParams && extra))
        return CUDA_ERROR_INVALID_VALUE;
    return launch_config(config, config->hStream, f);
}

CUresult CUDAAPI cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f,
                                       void **kernelParams, void **extra)
{
    SIM_ENTER(cuLaunchKernelEx, 0);
    if (!config || (kernelParams && extra))
        return CUDA_ERROR_INVALID_VALUE;
    return launch_config(config, sim_per_thread(config->hStream), f);
}

/* ---- occupancy: by threads alone ---- */

static CUresult active_blocks(int *blocks, CUfunction func, int block_size)
{
    if (!blocks || block_size <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    if (!sim_function_of(func))
        return sim_leave(CUDA_ERROR_INVALID_HANDLE);
    int by_threads = (int)SIM_THREADS_PER_SM / block_size;
    *blocks = block_size > 1024 ? 0 : by_threads > 32 ? 32 : by_threads;
    return sim_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, CUfunction func,
                                                             int blockSize, size_t dynamicSMemSize)
{
    SIM_ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessor, 0);
    (void)dynamicSMemSize;
    return active_blocks(numBlocks, func, blockSize);
}

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize, unsigned int flags)
{
    SIM_ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 0);
    (void)dynamicSMemSize;
    if (flags & ~(unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
        return CUDA_ERROR_INVALID_VALUE;
    return active_blocks(numBlocks, func, blockSize);
}

static CUresult potential_block(int *grid, int *block, CUfunction func, int limit)
{
    if (!grid || !block || limit < 0)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    if (!sim_function_of(func))
        return sim_leave(CUDA_ERROR_INVALID_HANDLE);
    *block = limit && limit < 1024 ? limit : 1024;
    *grid = (int)(SIM_SM_COUNT * SIM_THREADS_PER_SM) / *block;
    return sim_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize, CUfunction func,
                                                  CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                                  size_t dynamicSMemSize, int blockSizeLimit)
{
    SIM_ENTER(cuOccupancyMaxPotentialBlockSize, 0);
    (void)blockSizeToDynamicSMemSize;
    (void)dynamicSMemSize;
    return potential_block(minGridSize, blockSize, func, blockSizeLimit);
}

CUresult CUDAAPI cuOccupancyMaxPotentialBlockSizeWithFlags(
    int *minGridSize, int *blockSize, CUfunction func,
    CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize, int blockSizeLimit,
    unsigned int flags)
{
    SIM_ENTER(cuOccupancyMaxPotentialBlockSizeWithFlags, 0);
    (void)blockSizeToDynamicSMemSize;
    (void)dynamicSMemSize;
    if (flags & ~(unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
        return CUDA_ERROR_INVALID_VALUE;
    return potential_block(minGridSize, blockSize, func, blockSizeLimit);
}

CUresult CUDAAPI cuOccupancyAvailableDynamicSMemPerBlock(size_t *dynamicSmemSize, CUfunction func,
                                                         int numBlocks, int blockSize)
{
    SIM_ENTER(cuOccupancyAvailableDynamicSMemPerBlock, 0);
    if (!dynamicSmemSize || numBlocks <= 0 || blockSize <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    bool known = sim_function_of(func) != NULL;
    if (known)
        *dynamicSmemSize = 166912U / (unsigned)numBlocks;
    return sim_leave(known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

CUresult CUDAAPI cuOccupancyMaxActiveClusters(int *numClusters, CUfunction func,
                                              const CUlaunchConfig *config)
{
    SIM_ENTER(cuOccupancyMaxActiveClusters, 0);
    if (!numClusters || !config)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    bool known = sim_function_of(func) != NULL;
    if (known)
        *numClusters = 0; /* clusters need compute capability 9.0 */
    return sim_leave(known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

CUresult CUDAAPI cuOccupancyMaxPotentialClusterSize(int *clusterSize, CUfunction func,
                                                    const CUlaunchConfig *config)
{
    SIM_ENTER(cuOccupancyMaxPotentialClusterSize, 0);
    if (!clusterSize || !config)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    bool known = sim_function_of(func) != NULL;
    if (known)
        *clusterSize = 1;
    return sim_leave(known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

/* ---- linking: gives back the bytes added, as an image that loads ---- */

struct link_state {
    struct sim_object object;
    unsigned char *image;
    size_t bytes;
};

CUresult CUDAAPI cuLinkCreate_v2(unsigned int numOptions, CUjit_option *options,
                                 void **optionValues, CUlinkState *stateOut)
{
    SIM_ENTER(cuLinkCreate, 0);
    if (!stateOut || (numOptions && (!options || !optionValues)))
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    struct link_state *state =
        sim_current(&result) ? sim_object_new(SIM_LINK, sizeof *state) : NULL;
    if (result == CUDA_SUCCESS && !state)
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (state)
        *stateOut = (CUlinkState)state;
    return sim_leave(result);
}

CUresult CUDAAPI cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size,
                                  const char *name, unsigned int numOptions, CUjit_option *options,
                                  void **optionValues)
{
    SIM_ENTER(cuLinkAddData, size);
    (void)name;
    if (!data || !size || type >= CU_JIT_NUM_INPUT_TYPES ||
        (numOptions && (!options || !optionValues)))
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct link_state *found = sim_object_find(state, SIM_LINK);
    if (!found)
        return sim_leave(CUDA_ERROR_INVALID_HANDLE);
    unsigned char *grown = realloc(found->image, found->bytes + size);
    if (!grown)
        return sim_leave(CUDA_ERROR_OUT_OF_MEMORY);
    memcpy(grown + found->bytes, data, size);
    found->image = grown;
    found->bytes += size;
    return sim_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuLinkComplete(CUlinkState state, void **cubinOut, size_t *sizeOut)
{
    SIM_ENTER(cuLinkComplete, 0);
    if (!cubinOut || !sizeOut)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    const struct link_state *found = sim_object_find(state, SIM_LINK);
    if (!found || !found->bytes)
        return sim_leave(found ? CUDA_ERROR_INVALID_IMAGE : CUDA_ERROR_INVALID_HANDLE);
    *cubinOut = found->image;
    *sizeOut = found->bytes;
    return sim_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuLinkDestroy(CUlinkState state)
{
    SIM_ENTER(cuLinkDestroy, 0);
    sim_lock();
    struct link_state *found = sim_object_find(state, SIM_LINK);
    if (!found)
        return sim_leave(CUDA_ERROR_INVALID_HANDLE);
    free(found->image);
    sim_object_delete(found);
    return sim_leave(CUDA_SUCCESS);
}

/* ---- profiler: nothing to start ---- */

CUresult CUDAAPI cuProfilerStart(void)
{
    SIM_ENTER(cuProfilerStart, 0);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuProfilerStop(void)
{
    SIM_ENTER(cuProfilerStop, 0);
    return CUDA_SUCCESS;
}
