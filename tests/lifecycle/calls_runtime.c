/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime's memory calls, one at a time. Built twice: against the shared
 * runtime, whose calls are hooked by name, and with the static one inside, whose
 * calls can only be seen where they reach the driver.
 */
#include <cuda_runtime_api.h>

#include <stdint.h>

#include "call_log.h"

#define CALL(name, ...) call_logged(#name, (int)name(__VA_ARGS__))

enum { MIB = 1 << 20 };

static void linear_memory(void)
{
    void *blocks[6] = {0};
    size_t pitch = 0;
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    struct cudaPitchedPtr volume = {0};
    CALL(cudaMalloc, &blocks[0], 1000);
    CALL(cudaMalloc, &blocks[1], 5 * MIB);
    CALL(cudaMalloc, &blocks[2], 300 * MIB);
    CALL(cudaMallocPitch, &blocks[3], &pitch, 4000, 900);
    CALL(cudaMallocManaged, &blocks[4], 6 * MIB, cudaMemAttachGlobal);
    CALL(cudaMalloc3D, &volume, (struct cudaExtent){256, 128, 32});
    CALL(cudaMemGetInfo, &free_bytes, &total_bytes);
    CALL(cudaMalloc, &blocks[5], (size_t)1 << 50);
    CALL(cudaFree, volume.ptr);
    for (int i = 0; i < 5; i++)
        CALL(cudaFree, blocks[i]);
    CALL(cudaFree, blocks[1]);
    CALL(cudaFree, NULL);
    cudaGetLastError();
}

static void host_memory(void)
{
    void *pinned[2] = {0};
    static char own[4 * 4096] __attribute__((aligned(4096)));
    CALL(cudaMallocHost, &pinned[0], 2 * MIB);
    CALL(cudaHostAlloc, &pinned[1], 3 * MIB, cudaHostAllocPortable);
    CALL(cudaHostRegister, own, sizeof(own), cudaHostRegisterDefault);
    CALL(cudaHostUnregister, own);
    CALL(cudaFreeHost, pinned[0]);
    CALL(cudaFreeHost, pinned[1]);
}

static void arrays(void)
{
    struct cudaChannelFormatDesc channel = {32, 0, 0, 0, cudaChannelFormatKindFloat};
    cudaArray_t array = NULL;
    cudaArray_t volume = NULL;
    cudaMipmappedArray_t mipmaps = NULL;
    struct cudaExtent extent = {64, 64, 64};
    CALL(cudaMallocArray, &array, &channel, 2048, 1024, 0);
    CALL(cudaMalloc3DArray, &volume, &channel, extent, 0);
    CALL(cudaMallocMipmappedArray, &mipmaps, &channel, extent, 3, 0);
    CALL(cudaFreeArray, array);
    CALL(cudaFreeArray, volume);
    CALL(cudaFreeMipmappedArray, mipmaps);
    cudaGetLastError();
}

static void stream_ordered(cudaStream_t stream)
{
    struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                     .location = {.type = cudaMemLocationTypeDevice}};
    cudaMemPool_t own = NULL;
    cudaMemPool_t standard = NULL;
    void *blocks[4] = {0};
    uint64_t keep = 32 * MIB;
    cudaDeviceGetDefaultMemPool(&standard, 0);
    CALL(cudaMallocAsync, &blocks[0], 9 * MIB, stream);
    CALL(cudaMallocAsync, &blocks[1], 33 * MIB, stream);
    CALL(cudaMemPoolCreate, &own, &props);
    CALL(cudaMemPoolSetAttribute, own, cudaMemPoolAttrReleaseThreshold, &keep);
    CALL(cudaMallocFromPoolAsync, &blocks[2], 10 * MIB, own, stream);
    CALL(cudaMallocFromPoolAsync, &blocks[3], 50 * MIB, own, stream);
    for (int i = 0; i < 4; i++)
        CALL(cudaFreeAsync, blocks[i], stream);
    CALL(cudaStreamSynchronize, stream);
    CALL(cudaMemPoolTrimTo, own, 0);
    CALL(cudaMemPoolTrimTo, standard, 0);
    CALL(cudaMemPoolDestroy, own);
}

static void graphs(cudaStream_t stream)
{
    cudaGraph_t graph = NULL;
    cudaGraph_t captured = NULL;
    cudaGraphExec_t exec = NULL;
    cudaGraphNode_t alloc = NULL;
    cudaGraphNode_t release = NULL;
    struct cudaMemAllocNodeParams node = {
        .poolProps = {.allocType = cudaMemAllocationTypePinned,
                      .location = {.type = cudaMemLocationTypeDevice}},
        .bytesize = 12 * MIB};
    CALL(cudaGraphCreate, &graph, 0);
    CALL(cudaGraphAddMemAllocNode, &alloc, graph, NULL, 0, &node);
    CALL(cudaGraphAddMemFreeNode, &release, graph, &alloc, 1, node.dptr);
    CALL(cudaGraphInstantiateWithFlags, &exec, graph, 0);
    CALL(cudaGraphUpload, exec, stream);
    CALL(cudaGraphLaunch, exec, stream);
    CALL(cudaStreamSynchronize, stream);
    CALL(cudaGraphExecDestroy, exec);
    CALL(cudaGraphDestroy, graph);
    CALL(cudaDeviceGraphMemTrim, 0);
    CALL(cudaStreamBeginCapture, stream, cudaStreamCaptureModeRelaxed);
    CALL(cudaStreamEndCapture, stream, &captured);
    CALL(cudaGraphDestroy, captured);
}

static void events(cudaStream_t stream)
{
    cudaEvent_t event = NULL;
    CALL(cudaEventCreate, &event);
    CALL(cudaEventRecord, event, stream);
    CALL(cudaEventQuery, event);
    CALL(cudaEventSynchronize, event);
    CALL(cudaEventDestroy, event);
}

void calls_runtime(void)
{
    cudaStream_t stream = NULL;
    cudaIpcMemHandle_t handle;
    void *block = NULL;
    CALL(cudaSetDevice, 0);
    linear_memory();
    CALL(cudaStreamCreateWithFlags, &stream, cudaStreamNonBlocking);
    host_memory();
    arrays();
    stream_ordered(stream);
    events(stream);
    graphs(stream);
    CALL(cudaMalloc, &block, 4 * MIB);
    CALL(cudaIpcGetMemHandle, &handle, block);
    CALL(cudaSetDevice, 1);
    CALL(cudaMalloc, &block, 11 * MIB);
    CALL(cudaFree, block);
    CALL(cudaSetDevice, 0);
    CALL(cudaDeviceSetLimit, cudaLimitMallocHeapSize, 8 * MIB);
    CALL(cudaStreamDestroy, stream);
    CALL(cudaDeviceReset);
    CALL(cudaMalloc, &block, MIB);
    CALL(cudaFree, block);
}
