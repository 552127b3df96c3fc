/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's memory calls, each family from beginning to end, one call at a
 * time. The entry points are those a linked program gets, or those that
 * cuGetProcAddress hands out.
 */
#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>

#include <dlfcn.h>
#include <string.h>

#include "call_log.h"
#include "driver.h"

/* symbol, the name and the version under which cuGetProcAddress knows it */
#define DRIVER_NAMES(X)                                                      \
    X(cuInit, "cuInit", 2000)                                                \
    X(cuDeviceGet, "cuDeviceGet", 2000)                                      \
    X(cuCtxCreate_v2, "cuCtxCreate", 3020)                                   \
    X(cuCtxDestroy_v2, "cuCtxDestroy", 4000)                                 \
    X(cuCtxSetCurrent, "cuCtxSetCurrent", 4000)                              \
    X(cuCtxSetLimit, "cuCtxSetLimit", 3010)                                  \
    X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000)            \
    X(cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease", 11000)      \
    X(cuDevicePrimaryCtxReset_v2, "cuDevicePrimaryCtxReset", 11000)          \
    X(cuMemAlloc_v2, "cuMemAlloc", 3020)                                     \
    X(cuMemAllocPitch_v2, "cuMemAllocPitch", 3020)                           \
    X(cuMemAllocManaged, "cuMemAllocManaged", 6000)                          \
    X(cuMemFree_v2, "cuMemFree", 3020)                                       \
    X(cuMemGetInfo_v2, "cuMemGetInfo", 3020)                                 \
    X(cuMemAllocHost_v2, "cuMemAllocHost", 3020)                             \
    X(cuMemHostAlloc, "cuMemHostAlloc", 2020)                                \
    X(cuMemFreeHost, "cuMemFreeHost", 2000)                                  \
    X(cuMemHostRegister_v2, "cuMemHostRegister", 6050)                       \
    X(cuMemHostUnregister, "cuMemHostUnregister", 4000)                      \
    X(cuArrayCreate_v2, "cuArrayCreate", 3020)                               \
    X(cuArray3DCreate_v2, "cuArray3DCreate", 3020)                           \
    X(cuArrayDestroy, "cuArrayDestroy", 2000)                                \
    X(cuMipmappedArrayCreate, "cuMipmappedArrayCreate", 5000)                \
    X(cuMipmappedArrayDestroy, "cuMipmappedArrayDestroy", 5000)              \
    X(cuMemAllocAsync, "cuMemAllocAsync", 11020)                             \
    X(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", 11020)             \
    X(cuMemFreeAsync, "cuMemFreeAsync", 11020)                               \
    X(cuMemPoolCreate, "cuMemPoolCreate", 11020)                             \
    X(cuMemPoolDestroy, "cuMemPoolDestroy", 11020)                           \
    X(cuMemPoolTrimTo, "cuMemPoolTrimTo", 11020)                             \
    X(cuMemPoolSetAttribute, "cuMemPoolSetAttribute", 11020)                 \
    X(cuDeviceGetDefaultMemPool, "cuDeviceGetDefaultMemPool", 11020)         \
    X(cuMemGetAllocationGranularity, "cuMemGetAllocationGranularity", 10020) \
    X(cuMemAddressReserve, "cuMemAddressReserve", 10020)                     \
    X(cuMemAddressFree, "cuMemAddressFree", 10020)                           \
    X(cuMemCreate, "cuMemCreate", 10020)                                     \
    X(cuMemRelease, "cuMemRelease", 10020)                                   \
    X(cuMemRetainAllocationHandle, "cuMemRetainAllocationHandle", 11000)     \
    X(cuMemMap, "cuMemMap", 10020)                                           \
    X(cuMemUnmap, "cuMemUnmap", 10020)                                       \
    X(cuMemSetAccess, "cuMemSetAccess", 10020)                               \
    X(cuIpcGetMemHandle, "cuIpcGetMemHandle", 4010)                          \
    X(cuCtxEnablePeerAccess, "cuCtxEnablePeerAccess", 4000)                  \
    X(cuCtxDisablePeerAccess, "cuCtxDisablePeerAccess", 4000)                \
    X(cuStreamCreate, "cuStreamCreate", 2000)                                \
    X(cuStreamSynchronize, "cuStreamSynchronize", 2000)                      \
    X(cuStreamDestroy_v2, "cuStreamDestroy", 4000)                           \
    X(cuEventCreate, "cuEventCreate", 2000)                                  \
    X(cuEventRecord, "cuEventRecord", 2000)                                  \
    X(cuEventQuery, "cuEventQuery", 2000)                                    \
    X(cuEventSynchronize, "cuEventSynchronize", 2000)                        \
    X(cuEventDestroy_v2, "cuEventDestroy", 4000)                             \
    X(cuStreamBeginCapture_v2, "cuStreamBeginCapture", 10010)                \
    X(cuStreamEndCapture, "cuStreamEndCapture", 10000)                       \
    X(cuGraphCreate, "cuGraphCreate", 10000)                                 \
    X(cuGraphAddMemAllocNode, "cuGraphAddMemAllocNode", 11040)               \
    X(cuGraphAddMemFreeNode, "cuGraphAddMemFreeNode", 11040)                 \
    X(cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags", 11040)     \
    X(cuGraphUpload, "cuGraphUpload", 11010)                                 \
    X(cuGraphLaunch, "cuGraphLaunch", 10000)                                 \
    X(cuGraphExecDestroy, "cuGraphExecDestroy", 10000)                       \
    X(cuGraphDestroy, "cuGraphDestroy", 10000)                               \
    X(cuDeviceGraphMemTrim, "cuDeviceGraphMemTrim", 11040)                   \
    X(cuModuleLoadData, "cuModuleLoadData", 2000)                            \
    X(cuModuleUnload, "cuModuleUnload", 2000)

#define DRIVER_POINTER(symbol, base, version) __typeof__(symbol) *symbol;
static struct {
    DRIVER_NAMES(DRIVER_POINTER)
} api;

typedef CUresult proc_address(const char *, void **, int, cuuint64_t,
                              CUdriverProcAddressQueryResult *);

static void *find(const char *symbol, const char *base, int version, proc_address *get)
{
    void *found = NULL;
    CUdriverProcAddressQueryResult status;
    if (get == NULL)
        return driver_need(RTLD_DEFAULT, symbol);
    if (get(base, &found, version, 0, &status) != CUDA_SUCCESS || found == NULL) {
        fprintf(stderr, "calls: cuGetProcAddress has no %s of %d\n", base, version);
        _exit(3);
    }
    return found;
}

static void find_all(int through_proc_address)
{
    proc_address *get = NULL;
    if (through_proc_address)
        *(void **)&get = driver_need(RTLD_DEFAULT, "cuGetProcAddress_v2");
#define DRIVER_FIND(symbol, base, version) \
    *(void **)&api.symbol = find(#symbol, base, version, get);
    DRIVER_NAMES(DRIVER_FIND)
}

#define CALL(name, ...) call_logged(#name, (int)api.name(__VA_ARGS__))

enum { MIB = 1 << 20 };

static void linear_memory(void)
{
    CUdeviceptr blocks[6] = {0};
    size_t pitch = 0;
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    CALL(cuMemAlloc_v2, &blocks[0], 512);
    CALL(cuMemAlloc_v2, &blocks[1], 3 * MIB + 17);
    CALL(cuMemAlloc_v2, &blocks[2], 256 * MIB);
    CALL(cuMemAllocPitch_v2, &blocks[3], &pitch, 1000, 700, 4);
    CALL(cuMemAllocManaged, &blocks[4], 8 * MIB, CU_MEM_ATTACH_GLOBAL);
    CALL(cuMemGetInfo_v2, &free_bytes, &total_bytes);
    CALL(cuMemAlloc_v2, &blocks[5], (size_t)1 << 50); /* out of memory */
    for (int i = 0; i < 5; i++)
        CALL(cuMemFree_v2, blocks[i]);
    CALL(cuMemFree_v2, blocks[2]); /* twice: an error, and no byte less */
    CALL(cuMemFree_v2, 0);
}

static void host_memory(void)
{
    void *pinned[2] = {NULL, NULL};
    static char own[4 * 4096] __attribute__((aligned(4096)));
    CALL(cuMemAllocHost_v2, &pinned[0], 3 * MIB);
    CALL(cuMemHostAlloc, &pinned[1], MIB, CU_MEMHOSTALLOC_PORTABLE);
    CALL(cuMemHostRegister_v2, own, sizeof(own), 0);
    CALL(cuMemHostRegister_v2, own, sizeof(own), 0); /* already registered */
    CALL(cuMemHostUnregister, own);
    CALL(cuMemFreeHost, pinned[0]);
    CALL(cuMemFreeHost, pinned[1]);
}

static void arrays(void)
{
    CUDA_ARRAY_DESCRIPTOR flat = {
        .Width = 1024, .Height = 512, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 4};
    CUDA_ARRAY3D_DESCRIPTOR deep = {.Width = 128,
                                    .Height = 128,
                                    .Depth = 64,
                                    .Format = CU_AD_FORMAT_UNSIGNED_INT8,
                                    .NumChannels = 1};
    CUarray array = NULL;
    CUarray volume = NULL;
    CUmipmappedArray mipmaps = NULL;
    CALL(cuArrayCreate_v2, &array, &flat);
    CALL(cuArray3DCreate_v2, &volume, &deep);
    CALL(cuMipmappedArrayCreate, &mipmaps, &deep, 3);
    CALL(cuArrayDestroy, array);
    CALL(cuArrayDestroy, volume);
    CALL(cuMipmappedArrayDestroy, mipmaps);
}

static void stream_ordered(CUstream stream)
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemoryPool own = NULL;
    CUmemoryPool standard = NULL;
    CUdeviceptr blocks[4] = {0};
    cuuint64_t keep = 64 * MIB;
    api.cuDeviceGetDefaultMemPool(&standard, 0);
    CALL(cuMemAllocAsync, &blocks[0], 5 * MIB, stream);
    CALL(cuMemAllocAsync, &blocks[1], 40 * MIB, stream);
    CALL(cuMemPoolCreate, &own, &props);
    CALL(cuMemPoolSetAttribute, own, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep);
    CALL(cuMemAllocFromPoolAsync, &blocks[2], 30 * MIB, own, stream);
    CALL(cuMemAllocFromPoolAsync, &blocks[3], 70 * MIB, own, stream);
    for (int i = 0; i < 4; i++)
        CALL(cuMemFreeAsync, blocks[i], stream);
    CALL(cuStreamSynchronize, stream);
    CALL(cuMemPoolTrimTo, own, 0);
    CALL(cuMemPoolTrimTo, standard, 0);
    CALL(cuMemPoolDestroy, own);
}

static void virtual_memory(void)
{
    CUmemAllocationProp props = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemAccessDesc access = {.location = props.location,
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    size_t unit = 0;
    CUdeviceptr range = 0;
    CUmemGenericAllocationHandle parts[2] = {0};
    CUmemGenericAllocationHandle again = 0;
    CALL(cuMemGetAllocationGranularity, &unit, &props, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    CALL(cuMemAddressReserve, &range, 16 * unit, 0, 0, 0);
    CALL(cuMemCreate, &parts[0], 4 * unit, &props, 0);
    CALL(cuMemMap, range, 4 * unit, 0, parts[0], 0);
    CALL(cuMemSetAccess, range, 4 * unit, &access, 1);
    CALL(cuMemRelease, parts[0]); /* still mapped: nothing goes */
    CALL(cuMemCreate, &parts[1], 2 * unit, &props, 0);
    CALL(cuMemMap, range + 8 * unit, 2 * unit, 0, parts[1], 0);
    CALL(cuMemRetainAllocationHandle, &again, (void *)(uintptr_t)(range + 8 * unit));
    CALL(cuMemUnmap, range, 4 * unit); /* the last use: now it goes */
    CALL(cuMemUnmap, range + 8 * unit, 2 * unit);
    CALL(cuMemRelease, parts[1]);
    CALL(cuMemMap, range, 2 * unit, 0, again, 0); /* kept by the retained handle */
    CALL(cuMemUnmap, range, 2 * unit);
    CALL(cuMemRelease, again);
    CALL(cuMemUnmap, range, 2 * unit); /* not mapped: an error */
    CALL(cuMemAddressFree, range, 16 * unit);
}

static void events(CUstream stream)
{
    CUevent event = NULL;
    CALL(cuEventCreate, &event, 0);
    CALL(cuEventRecord, event, stream);
    CALL(cuEventQuery, event);
    CALL(cuEventSynchronize, event);
    CALL(cuEventDestroy_v2, event);
}

static void graphs(CUstream stream)
{
    CUgraph graph = NULL;
    CUgraph captured = NULL;
    CUgraphNode alloc = NULL;
    CUgraphNode release = NULL;
    CUgraphExec exec = NULL;
    CUDA_MEM_ALLOC_NODE_PARAMS node = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
        .bytesize = 24 * MIB};
    CALL(cuGraphCreate, &graph, 0);
    CALL(cuGraphAddMemAllocNode, &alloc, graph, NULL, 0, &node);
    CALL(cuGraphAddMemFreeNode, &release, graph, &alloc, 1, node.dptr);
    CALL(cuGraphInstantiateWithFlags, &exec, graph, 0);
    CALL(cuGraphUpload, exec, stream);
    CALL(cuGraphLaunch, exec, stream);
    CALL(cuStreamSynchronize, stream);
    CALL(cuGraphExecDestroy, exec);
    CALL(cuGraphDestroy, graph);
    CALL(cuDeviceGraphMemTrim, 0);
    CALL(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    CALL(cuStreamEndCapture, stream, &captured);
    CALL(cuGraphDestroy, captured);
}

static void contexts(void)
{
    CUcontext own = NULL;
    CUcontext primary = NULL;
    CUdeviceptr block = 0;
    CALL(cuCtxSetLimit, CU_LIMIT_MALLOC_HEAP_SIZE, 16 * MIB);
    CALL(cuCtxCreate_v2, &own, 0, 0);
    CALL(cuMemAlloc_v2, &block, 6 * MIB);
    CALL(cuCtxDestroy_v2, own); /* its memory goes with it */
    CALL(cuDevicePrimaryCtxRetain, &primary, 0);
    CALL(cuCtxSetCurrent, primary);
    CALL(cuMemAlloc_v2, &block, 7 * MIB);
    CALL(cuDevicePrimaryCtxRelease_v2, 0);
    CALL(cuMemFree_v2, block);
}

static void modules(void)
{
    static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                              ".visible .entry nothing() { ret; }\n";
    CUmodule module = NULL;
    CALL(cuModuleLoadData, &module, ptx);
    CALL(cuModuleUnload, module);
}

void calls_driver(int through_proc_address)
{
    CUcontext context = NULL;
    CUstream stream = NULL;
    CUipcMemHandle handle;
    CUdeviceptr block = 0;
    CUdevice device = 0;
    find_all(through_proc_address);
    CALL(cuInit, 0);
    CALL(cuDeviceGet, &device, 0);
    CALL(cuDevicePrimaryCtxRetain, &context, device);
    CALL(cuCtxSetCurrent, context);
    CALL(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    linear_memory();
    host_memory();
    arrays();
    stream_ordered(stream);
    virtual_memory();
    events(stream);
    graphs(stream);
    modules();
    CALL(cuMemAlloc_v2, &block, 2 * MIB);
    CALL(cuIpcGetMemHandle, &handle, block);
    CALL(cuCtxEnablePeerAccess, context, 0); /* its own: an error */
    CALL(cuCtxDisablePeerAccess, context);
    CALL(cuMemFree_v2, block);
    contexts();
    CALL(cuStreamDestroy_v2, stream);
    CALL(cuMemAlloc_v2, &block, 9 * MIB);
    CALL(cuDevicePrimaryCtxReset_v2, device); /* everything of the device goes */
}
