/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls every entry point of shim/hooks.def once or more, rightly where it can,
 * and logs what it did: NAME RESULT, one call a line, on standard output.
 *
 *   all_calls symbol|handle DRIVER RUNTIME12 RUNTIME13
 *
 * `symbol` reaches functions through the names as the program sees them (the
 * preloaded ones), `handle` by dlsym in the libraries themselves.
 * test_all_calls.py holds the trace against the log, and the log against the table.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../shim/cuda_abi.h"

static struct {
    int by_handle;
    void *driver;
    void *runtime; /* the one in use */
} reach_by;

static int absent(void)
{
    return ABI_NOT_FOUND;
}

typedef void any_function(void);

static any_function *reach(const char *name)
{
    void *library = strncmp(name, "cuda", 4) == 0 ? reach_by.runtime : reach_by.driver;
    any_function *function;
    *(void **)&function = dlsym(reach_by.by_handle ? library : RTLD_DEFAULT, name);
    return function != NULL ? function : (any_function *)absent;
}

static int note(const char *name, int result)
{
    printf("%s %d\n", name, result);
    return result;
}

#define CALL(name, params, ...) note(#name, ((int(*) params)reach(#name))(__VA_ARGS__))
#define CALL_BOTH(name, params, ...)            \
    do {                                        \
        CALL(name, params, __VA_ARGS__);        \
        CALL(name##_ptsz, params, __VA_ARGS__); \
    } while (0)

#define BYTES (3U << 20)
#define GRANULE (2U << 20)

/* ---- driver ------------------------------------------------------------------------- */

static void driver_memory(void)
{
    uint64_t address = 0;
    size_t pitch = 0;
    size_t total = 0;
    CALL(cuMemAlloc_v2, (uint64_t *, size_t), &address, BYTES);
    CALL(cuMemGetInfo_v2, (size_t *, size_t *), &pitch, &total);
    CALL(cuMemFree_v2, (uint64_t), address);
    CALL(cuMemFree_v2, (uint64_t), address); /* twice: refused */
    CALL(cuMemAlloc_v2, (uint64_t *, size_t), &address, (size_t)1 << 50);
    CALL(cuMemAllocPitch_v2, (uint64_t *, size_t *, size_t, size_t, unsigned), &address, &pitch,
         1000, 1000, 4);
    CALL(cuMemFree_v2, (uint64_t), address);
    CALL(cuMemAllocManaged, (uint64_t *, size_t, unsigned), &address, BYTES, 1);
    CALL(cuMemFree_v2, (uint64_t), address);
}

static void driver_host(void)
{
    static char registered[1 << 16] __attribute__((aligned(4096)));
    void *pinned = NULL;
    CALL(cuMemAllocHost_v2, (void **, size_t), &pinned, 8192);
    CALL(cuMemFreeHost, (void *), pinned);
    CALL(cuMemHostAlloc, (void **, size_t, unsigned), &pinned, 8192, 1);
    CALL(cuMemFreeHost, (void *), pinned);
    CALL(cuMemHostRegister_v2, (void *, size_t, unsigned), registered, sizeof(registered), 0);
    CALL(cuMemHostUnregister, (void *), registered);
    CALL(cuMemHostRegister, (void *, size_t, unsigned), registered, sizeof(registered), 0);
    CALL(cuMemHostUnregister, (void *), registered);
}

static void driver_arrays(void)
{
    struct cu_array flat = {1024, 256, 0x20, 1};
    struct cu_array3d box = {64, 64, 8, 0x20, 1, 0};
    void *array = NULL;
    CALL(cuArrayCreate_v2, (void **, const struct cu_array *), &array, &flat);
    CALL(cuArrayDestroy, (void *), array);
    CALL(cuArray3DCreate_v2, (void **, const struct cu_array3d *), &array, &box);
    CALL(cuArrayDestroy, (void *), array);
    CALL(cuMipmappedArrayCreate, (void **, const struct cu_array3d *, unsigned), &array, &box, 3);
    CALL(cuMipmappedArrayDestroy, (void *), array);
}

static void driver_pools(void)
{
    struct cu_pool_props props = {.type = 1, .handle_types = 1, .location = {1, 0}};
    struct cu_access access = {{1, 0}, 3};
    struct cu_ipc_handle exported;
    uint64_t threshold = BYTES;
    uint64_t address = 0;
    uint64_t shared = 0;
    void *pool = NULL;
    void *imported = NULL;
    int descriptor = -1;
    CALL(cuMemPoolCreate, (void **, const struct cu_pool_props *), &pool, &props);
    CALL(cuMemPoolSetAttribute, (void *, int, void *), pool, 4, &threshold);
    CALL(cuMemPoolSetAccess, (void *, const void *, size_t), pool, &access, 1);
    CALL(cuMemAllocFromPoolAsync, (uint64_t *, size_t, void *, void *), &address, BYTES, pool,
         NULL);
    CALL(cuMemFreeAsync_ptsz, (uint64_t, void *), address, NULL);
    CALL(cuMemAllocFromPoolAsync_ptsz, (uint64_t *, size_t, void *, void *), &address, BYTES, pool,
         NULL);
    CALL(cuMemPoolExportPointer, (struct cu_ipc_handle *, uint64_t), &exported, address);
    CALL(cuMemPoolExportToShareableHandle, (void *, void *, int, unsigned long long), &descriptor,
         pool, 1, 0);
    CALL(cuMemPoolImportFromShareableHandle, (void **, void *, int, unsigned long long), &imported,
         (void *)(intptr_t)descriptor, 1, 0);
    CALL(cuMemPoolImportPointer, (uint64_t *, void *, struct cu_ipc_handle *), &shared, imported,
         &exported);
    CALL(cuMemFreeAsync, (uint64_t, void *), shared, NULL);
    CALL(cuMemFreeAsync, (uint64_t, void *), address, NULL);
    CALL(cuDeviceSetMemPool, (int, void *), 0, pool);
    CALL(cuMemAllocAsync, (uint64_t *, size_t, void *), &address, BYTES, NULL);
    CALL(cuMemFreeAsync, (uint64_t, void *), address, NULL);
    CALL(cuMemAllocAsync_ptsz, (uint64_t *, size_t, void *), &address, BYTES, NULL);
    CALL(cuMemFreeAsync, (uint64_t, void *), address, NULL);
    CALL(cuMemPoolTrimTo, (void *, size_t), pool, 0);
    CALL(cuMemSetMemPool, (void *, int, void *), &props.location, 1, pool);
    CALL(cuMemPoolDestroy, (void *), pool);
}

static void driver_virtual(void)
{
    struct {
        struct cu_memory_props named;
        char room[64];
    } props = {.named = {1, 1, {1, 0}}};
    struct cu_access access = {{1, 0}, 3};
    uint64_t range = 0;
    uint64_t handle = 0;
    uint64_t second = 0;
    int descriptor = -1;
    CALL(cuMemAddressReserve, (uint64_t *, size_t, size_t, uint64_t, unsigned long long), &range,
         GRANULE, 0, 0, 0);
    CALL(cuMemCreate, (uint64_t *, size_t, const void *, unsigned long long), &handle, GRANULE,
         &props, 0);
    CALL(cuMemMap, (uint64_t, size_t, size_t, uint64_t, unsigned long long), range, GRANULE, 0,
         handle, 0);
    CALL(cuMemSetAccess, (uint64_t, size_t, const struct cu_access *, size_t), range, GRANULE,
         &access, 1);
    CALL(cuMemRetainAllocationHandle, (uint64_t *, void *), &second, (void *)(uintptr_t)range);
    CALL(cuMemRelease, (uint64_t), second);
    CALL(cuMemExportToShareableHandle, (void *, uint64_t, int, unsigned long long), &descriptor,
         handle, 1, 0);
    CALL(cuMemImportFromShareableHandle, (uint64_t *, void *, int), &second,
         (void *)(intptr_t)descriptor, 1);
    CALL(cuMemRelease, (uint64_t), second);
    CALL(cuMemGetHandleForAddressRange, (void *, uint64_t, size_t, int, unsigned long long),
         &descriptor, range, GRANULE, 1, 0);
    CALL_BOTH(cuMemMapArrayAsync, (void *, unsigned, void *), NULL, 0, NULL);
    CALL(cuMemUnmap, (uint64_t, size_t), range, GRANULE);
    CALL(cuMemRelease, (uint64_t), handle);
    CALL(cuMemAddressFree, (uint64_t, size_t), range, GRANULE);
}

static void driver_multicast(void)
{
    struct {
        struct cu_multicast_props named;
        unsigned long long handle_types, flags;
    } props = {.named = {2, GRANULE}, .handle_types = 1};
    uint64_t object = 0;
    CALL(cuMulticastCreate, (uint64_t *, const void *), &object, &props);
    CALL(cuMulticastAddDevice, (uint64_t, int), object, 0);
    CALL(cuMulticastAddDevice, (uint64_t, int), object, 1);
    CALL(cuMulticastBindMem, (uint64_t, size_t, uint64_t, size_t, size_t, unsigned long long),
         object, 0, 0, 0, GRANULE, 0);
    CALL(cuMulticastBindMem_v2,
         (uint64_t, int, size_t, uint64_t, size_t, size_t, unsigned long long), object, 0, 0, 0, 0,
         GRANULE, 0);
    CALL(cuMulticastBindAddr, (uint64_t, size_t, uint64_t, size_t, unsigned long long), object, 0,
         0, GRANULE, 0);
    CALL(cuMulticastBindAddr_v2, (uint64_t, int, size_t, uint64_t, size_t, unsigned long long),
         object, 0, 0, 0, GRANULE, 0);
    CALL(cuMulticastUnbind, (uint64_t, int, size_t, size_t), object, 0, 0, GRANULE);
    CALL(cuMemRelease, (uint64_t), object);
}

static void driver_others(void)
{
    struct {
        struct cu_external_memory named;
        unsigned flags, reserved[16];
    } external = {.named = {1, {NULL, NULL}, GRANULE}};
    struct {
        struct cu_external_buffer named;
        unsigned flags, reserved[16];
    } buffer = {.named = {0, GRANULE}};
    struct cu_ipc_handle ipc = {{0}};
    uint64_t address = 0;
    uint64_t opened = 0;
    size_t bytes = 0;
    void *memory = NULL;
    void *array = NULL;
    CALL(cuMemAlloc_v2, (uint64_t *, size_t), &address, BYTES);
    CALL(cuIpcGetMemHandle, (struct cu_ipc_handle *, uint64_t), &ipc, address);
    CALL(cuIpcOpenMemHandle_v2, (uint64_t *, struct cu_ipc_handle, unsigned), &opened, ipc, 1);
    CALL(cuIpcOpenMemHandle, (uint64_t *, struct cu_ipc_handle, unsigned), &opened, ipc, 1);
    CALL(cuIpcCloseMemHandle, (uint64_t), opened);
    CALL(cuCtxEnablePeerAccess, (void *, unsigned), NULL, 0);
    CALL(cuCtxDisablePeerAccess, (void *), NULL);
    CALL(cuMemFree_v2, (uint64_t), address);
    CALL(cuImportExternalMemory, (void **, const void *), &memory, &external);
    CALL(cuExternalMemoryGetMappedBuffer, (uint64_t *, void *, const void *), &address, memory,
         &buffer);
    CALL(cuExternalMemoryGetMappedMipmappedArray, (void **, void *, const void *), &array, memory,
         NULL);
    CALL(cuDestroyExternalMemory, (void *), memory);
    CALL_BOTH(cuGraphicsMapResources, (unsigned, void **, void *), 0, NULL, NULL);
    CALL_BOTH(cuGraphicsUnmapResources, (unsigned, void **, void *), 0, NULL, NULL);
    CALL(cuGraphicsResourceGetMappedPointer_v2, (uint64_t *, size_t *, void *), &address, &bytes,
         NULL);
}

static void driver_graph_nodes(void *graph)
{
    struct cu_alloc_node alloc = {.pool = {.type = 1, .location = {1, 0}}, .bytes = BYTES};
    struct {
        struct cu_node named;
        char room[256];
    } node = {.named = {.type = ABI_NODE_ALLOC}};
    void *made = NULL;
    void *allocated = NULL;
    CALL(cuGraphAddMemAllocNode, (void **, void *, void *const *, size_t, struct cu_alloc_node *),
         &allocated, graph, NULL, 0, &alloc);
    CALL(cuGraphAddMemFreeNode, (void **, void *, void *const *, size_t, uint64_t), &made, graph,
         &allocated, 1, alloc.address);
    node.named.u.alloc = alloc;
    node.named.u.alloc.address = 0;
    CALL(cuGraphAddNode_v2, (void **, void *, void *const *, const void *, size_t, void *),
         &allocated, graph, NULL, NULL, 0, &node);
    uint64_t address = node.named.u.alloc.address;
    memset(&node, 0, sizeof(node));
    node.named.type = ABI_NODE_FREE;
    node.named.u.freed = address;
    CALL(cuGraphAddNode, (void **, void *, void *const *, size_t, void *), &made, graph, &allocated,
         1, &node);
    CALL(cuGraphAddNode_v3, (void **, void *, void *const *, const void *, size_t, void *), &made,
         graph, NULL, NULL, 0, &node);
}

static void driver_graphs(void)
{
    struct {
        unsigned long long flags;
        void *upload, *error;
        int result;
    } params = {0, NULL, NULL, 0};
    void *graph = NULL;
    void *exec[6] = {NULL};
    void *failed = NULL;
    int (*create)(void **, unsigned) = (int (*)(void **, unsigned))reach("cuGraphCreate");
    create(&graph, 0);
    driver_graph_nodes(graph);
    CALL(cuGraphInstantiateWithFlags, (void **, void *, unsigned long long), &exec[0], graph, 0);
    CALL_BOTH(cuGraphLaunch, (void *, void *), exec[0], NULL);
    CALL_BOTH(cuGraphUpload, (void *, void *), exec[0], NULL);
    CALL(cuGraphExecDestroy, (void *), exec[0]);
    CALL(cuGraphInstantiate, (void **, void *, void **, char *, size_t), &exec[1], graph, &failed,
         NULL, 0);
    CALL(cuGraphExecDestroy, (void *), exec[1]);
    CALL(cuGraphInstantiate_v2, (void **, void *, void **, char *, size_t), &exec[2], graph,
         &failed, NULL, 0);
    CALL(cuGraphExecDestroy, (void *), exec[2]);
    CALL_BOTH(cuGraphInstantiateWithParams, (void **, void *, void *), &exec[3], graph, &params);
    CALL(cuGraphExecDestroy, (void *), exec[3]);
    CALL(cuDeviceGraphMemTrim, (int), 0);
    CALL(cuGraphDestroy, (void *), graph);
}

static void driver_contexts(void)
{
    void *context = NULL;
    CALL(cuCtxCreate, (void **, unsigned, int), &context, 0, 0);
    CALL(cuCtxDestroy, (void *), context);
    CALL(cuCtxCreate_v2, (void **, unsigned, int), &context, 0, 0);
    CALL(cuCtxDestroy_v2, (void *), context);
    CALL(cuCtxCreate_v3, (void **, void *, int, unsigned, int), &context, NULL, 0, 0, 0);
    CALL(cuCtxDestroy_v2, (void *), context);
    CALL(cuCtxCreate_v4, (void **, void *, unsigned, int), &context, NULL, 0, 0);
    CALL(cuCtxDestroy_v2, (void *), context);
    context = NULL;
    CALL(cuGreenCtxCreate, (void **, void *, int, unsigned), &context, NULL, 0, 1);
    CALL(cuGreenCtxStreamCreate, (void **, void *, unsigned, int), &context, NULL, 1, 0);
    CALL(cuGreenCtxRecordEvent, (void *, void *), NULL, NULL);
    CALL(cuGreenCtxDestroy, (void *), NULL);
}

static void driver_modules(void)
{
    static const uint64_t image[64] = {0x464c457f};
    void *module = NULL;
    CALL(cuCtxSetLimit, (int, size_t), 0, 2048);
    CALL(cuModuleLoad, (void **, const char *), &module, "/dev/null");
    CALL(cuModuleLoadFatBinary, (void **, const void *), &module, image);
    CALL(cuModuleLoadDataEx, (void **, const void *, unsigned, int *, void **), &module, image, 0,
         NULL, NULL);
    CALL(cuModuleLoadData, (void **, const void *), &module, image);
    CALL(cuModuleUnload, (void *), module);
    CALL(cuLibraryLoadFromFile,
         (void **, const char *, int *, void **, unsigned, int *, void **, unsigned), &module,
         "/dev/null", NULL, NULL, 0, NULL, NULL, 0);
    CALL(cuLibraryLoadData,
         (void **, const void *, int *, void **, unsigned, int *, void **, unsigned), &module,
         image, NULL, NULL, 0, NULL, NULL, 0);
    CALL(cuLibraryUnload, (void *), module);
}

static void driver_events(void *context)
{
    int (*create)(void **, unsigned) = (int (*)(void **, unsigned))reach("cuEventCreate");
    void *event = NULL;
    void *second = NULL;
    create(&event, 0);
    create(&second, 0);
    CALL_BOTH(cuEventRecord, (void *, void *), event, NULL);
    CALL_BOTH(cuEventRecordWithFlags, (void *, void *, unsigned), event, NULL, 0);
    CALL(cuCtxRecordEvent, (void *, void *), context, event);
    CALL(cuEventQuery, (void *), event);
    CALL(cuEventSynchronize, (void *), event);
    CALL(cuEventDestroy_v2, (void *), event);
    CALL(cuEventDestroy, (void *), second);
}

static void end_capture(void *stream)
{
    void *graph = NULL;
    CALL(cuStreamEndCapture, (void *, void **), stream, &graph);
    CALL(cuGraphDestroy, (void *), graph);
}

static void driver_streams(void)
{
    void *stream = NULL;
    void *other = NULL;
    void *graph = NULL;
    uint64_t address = 0;
    CALL(cuStreamCreate, (void **, unsigned), &stream, 1);
    CALL(cuStreamCreateWithPriority, (void **, unsigned, int), &other, 1, 0);
    CALL(cuStreamBeginCapture_v2, (void *, int), stream, 2);
    CALL(cuMemAllocAsync, (uint64_t *, size_t, void *), &address, BYTES, stream);
    CALL(cuMemFreeAsync, (uint64_t, void *), address, stream);
    end_capture(stream);
    CALL(cuStreamBeginCapture, (void *), stream);
    end_capture(stream);
    CALL(cuStreamBeginCapture_ptsz, (void *), stream);
    CALL(cuStreamEndCapture_ptsz, (void *, void **), stream, &graph);
    CALL(cuStreamBeginCapture_v2_ptsz, (void *, int), stream, 2);
    end_capture(stream);
    CALL_BOTH(cuStreamBeginCaptureToGraph,
              (void *, void *, void *const *, const void *, size_t, int), stream, graph, NULL, NULL,
              0, 2);
    CALL(cuStreamEndCapture, (void *, void **), stream, &graph);
    CALL_BOTH(cuStreamBeginRecaptureToGraph, (void *, int, void *, void *, void *), stream, 2,
              graph, NULL, NULL);
    CALL_BOTH(cuStreamBeginCaptureToCig, (void *, void *), stream, NULL);
    CALL_BOTH(cuStreamEndCaptureToCig, (void *), stream);
    CALL(cuStreamDestroy, (void *), other);
    CALL(cuStreamDestroy_v2, (void *), stream);
}

static void driver_look_up(void)
{
    void *found = NULL;
    int status = 0;
    CALL(cuGetProcAddress, (const char *, void **, int, uint64_t), "cuMemAlloc", &found, 3020, 0);
    CALL(cuGetProcAddress_v2, (const char *, void **, int, uint64_t, int *), "cuMemAlloc", &found,
         3020, 0, &status);
}

static void driver(void)
{
    void *context = NULL;
    CALL(cuInit, (unsigned), 0);
    driver_look_up();
    CALL(cuDevicePrimaryCtxRetain, (void **, int), &context, 0);
    int (*make_current)(void *) = (int (*)(void *))reach("cuCtxSetCurrent");
    make_current(context);
    driver_memory();
    driver_host();
    driver_arrays();
    driver_pools();
    driver_virtual();
    driver_multicast();
    driver_others();
    driver_graphs();
    driver_modules();
    driver_events(context);
    driver_streams();
    driver_contexts();
    make_current(context);
    CALL(cuDevicePrimaryCtxReset_v2, (int), 0);
    CALL(cuDevicePrimaryCtxReset, (int), 0);
    CALL(cuDevicePrimaryCtxRetain, (void **, int), &context, 0);
    CALL(cuDevicePrimaryCtxRelease_v2, (int), 0);
    CALL(cuDevicePrimaryCtxRetain, (void **, int), &context, 0);
    CALL(cuDevicePrimaryCtxRelease, (int), 0);
}

/* ---- runtime ------------------------------------------------------------------------ */

static void runtime_memory(void)
{
    static char registered[1 << 16] __attribute__((aligned(4096)));
    struct cuda_pitched pitched = {0};
    struct cuda_extent extent = {1024, 16, 4};
    void *address = NULL;
    size_t pitch = 0;
    size_t total = 0;
    CALL(cudaMalloc, (void **, size_t), &address, BYTES);
    CALL(cudaMemGetInfo, (size_t *, size_t *), &pitch, &total);
    CALL(cudaFree, (void *), address);
    CALL(cudaMalloc, (void **, size_t), &address, (size_t)1 << 50);
    CALL(cudaMallocManaged, (void **, size_t, unsigned), &address, BYTES, 1);
    CALL(cudaFree, (void *), address);
    CALL(cudaMallocPitch, (void **, size_t *, size_t, size_t), &address, &pitch, 1000, 1000);
    CALL(cudaFree, (void *), address);
    CALL(cudaMalloc3D, (struct cuda_pitched *, struct cuda_extent), &pitched, extent);
    CALL(cudaFree, (void *), pitched.address);
    CALL(cudaMallocHost, (void **, size_t), &address, 8192);
    CALL(cudaFreeHost, (void *), address);
    CALL(cudaHostAlloc, (void **, size_t, unsigned), &address, 8192, 0);
    CALL(cudaFreeHost, (void *), address);
    CALL(cudaHostRegister, (void *, size_t, unsigned), registered, sizeof(registered), 0);
    CALL(cudaHostUnregister, (void *), registered);
}

static void runtime_arrays(void)
{
    struct cuda_channel channel = {{32, 0, 0, 0}, 2};
    struct cuda_extent extent = {64, 64, 8};
    void *array = NULL;
    CALL(cudaMallocArray, (void **, const struct cuda_channel *, size_t, size_t, unsigned), &array,
         &channel, 256, 256, 0);
    CALL(cudaFreeArray, (void *), array);
    CALL(cudaMalloc3DArray, (void **, const struct cuda_channel *, struct cuda_extent, unsigned),
         &array, &channel, extent, 0);
    CALL(cudaFreeArray, (void *), array);
    CALL(cudaMallocMipmappedArray,
         (void **, const struct cuda_channel *, struct cuda_extent, unsigned, unsigned), &array,
         &channel, extent, 3, 0);
    CALL(cudaFreeMipmappedArray, (void *), array);
}

static void runtime_pools(void)
{
    struct cu_pool_props props = {.type = 1, .handle_types = 1, .location = {1, 0}};
    struct cu_access access = {{1, 0}, 3};
    struct cu_ipc_handle exported;
    uint64_t threshold = BYTES;
    void *address = NULL;
    void *shared = NULL;
    void *pool = NULL;
    void *imported = NULL;
    int descriptor = -1;
    CALL(cudaMemPoolCreate, (void **, const struct cu_pool_props *), &pool, &props);
    CALL(cudaMemPoolSetAttribute, (void *, int, void *), pool, 4, &threshold);
    CALL(cudaMemPoolSetAccess, (void *, const void *, size_t), pool, &access, 1);
    CALL(cudaMallocFromPoolAsync, (void **, size_t, void *, void *), &address, BYTES, pool, NULL);
    CALL(cudaFreeAsync_ptsz, (void *, void *), address, NULL);
    CALL(cudaMallocFromPoolAsync_ptsz, (void **, size_t, void *, void *), &address, BYTES, pool,
         NULL);
    CALL(cudaMemPoolExportPointer, (struct cu_ipc_handle *, void *), &exported, address);
    CALL(cudaMemPoolExportToShareableHandle, (void *, void *, int, unsigned), &descriptor, pool, 1,
         0);
    CALL(cudaMemPoolImportFromShareableHandle, (void **, void *, int, unsigned), &imported,
         (void *)(intptr_t)descriptor, 1, 0);
    CALL(cudaMemPoolImportPointer, (void **, void *, struct cu_ipc_handle *), &shared, imported,
         &exported);
    CALL(cudaFreeAsync, (void *, void *), shared, NULL);
    CALL(cudaFreeAsync, (void *, void *), address, NULL);
    CALL(cudaMallocAsync, (void **, size_t, void *), &address, BYTES, NULL);
    CALL(cudaFreeAsync, (void *, void *), address, NULL);
    CALL(cudaMallocAsync_ptsz, (void **, size_t, void *), &address, BYTES, NULL);
    CALL(cudaFreeAsync, (void *, void *), address, NULL);
    CALL(cudaDeviceSetMemPool, (int, void *), 0, pool);
    CALL(cudaMemPoolTrimTo, (void *, size_t), pool, 0);
    CALL(cudaMemSetMemPool, (void *, int, void *), &props.location, 1, pool);
    CALL(cudaMemPoolDestroy, (void *), pool);
}

static void runtime_others(void)
{
    struct {
        struct cu_external_memory named;
        unsigned flags, reserved[16];
    } external = {.named = {1, {NULL, NULL}, GRANULE}};
    struct {
        struct cu_external_buffer named;
        unsigned flags, reserved[16];
    } buffer = {.named = {0, GRANULE}};
    struct cu_ipc_handle ipc = {{0}};
    void *address = NULL;
    void *opened = NULL;
    void *memory = NULL;
    size_t bytes = 0;
    CALL(cudaMalloc, (void **, size_t), &address, BYTES);
    CALL(cudaIpcGetMemHandle, (struct cu_ipc_handle *, void *), &ipc, address);
    CALL(cudaIpcOpenMemHandle, (void **, struct cu_ipc_handle, unsigned), &opened, ipc, 1);
    CALL(cudaIpcCloseMemHandle, (void *), opened);
    CALL(cudaDeviceEnablePeerAccess, (int, unsigned), 1, 0);
    CALL(cudaDeviceDisablePeerAccess, (int), 1);
    CALL(cudaFree, (void *), address);
    CALL(cudaImportExternalMemory, (void **, const void *), &memory, &external);
    CALL(cudaExternalMemoryGetMappedBuffer, (void **, void *, const void *), &address, memory,
         &buffer);
    CALL(cudaExternalMemoryGetMappedMipmappedArray, (void **, void *, const void *), &address,
         memory, NULL);
    CALL(cudaDestroyExternalMemory, (void *), memory);
    CALL(cudaGraphicsMapResources, (int, void **, void *), 0, NULL, NULL);
    CALL(cudaGraphicsUnmapResources, (int, void **, void *), 0, NULL, NULL);
    CALL(cudaGraphicsResourceGetMappedPointer, (void **, size_t *, void *), &address, &bytes, NULL);
}

static void runtime_graphs(void)
{
    struct cu_alloc_node alloc = {.pool = {.type = 1, .location = {1, 0}}, .bytes = BYTES};
    struct {
        struct cu_node named;
        char room[256];
    } node = {.named = {.type = ABI_NODE_ALLOC}};
    struct {
        unsigned long long flags;
        void *upload, *error;
        int result;
    } params = {0, NULL, NULL, 0};
    int (*create)(void **, unsigned) = (int (*)(void **, unsigned))reach("cudaGraphCreate");
    void *graph = NULL;
    void *allocated = NULL;
    void *made = NULL;
    void *exec = NULL;
    create(&graph, 0);
    CALL(cudaGraphAddMemAllocNode, (void **, void *, void *const *, size_t, struct cu_alloc_node *),
         &allocated, graph, NULL, 0, &alloc);
    CALL(cudaGraphAddMemFreeNode, (void **, void *, void *const *, size_t, void *), &made, graph,
         &allocated, 1, (void *)(uintptr_t)alloc.address);
    node.named.u.alloc = alloc;
    CALL(cudaGraphAddNode, (void **, void *, void *const *, const void *, size_t, void *),
         &allocated, graph, NULL, NULL, 0, &node);
    CALL(cudaGraphInstantiate, (void **, void *, unsigned long long), &exec, graph, 0);
    CALL_BOTH(cudaGraphLaunch, (void *, void *), exec, NULL);
    CALL_BOTH(cudaGraphUpload, (void *, void *), exec, NULL);
    CALL(cudaGraphExecDestroy, (void *), exec);
    CALL(cudaGraphInstantiateWithFlags, (void **, void *, unsigned long long), &exec, graph, 0);
    CALL(cudaGraphExecDestroy, (void *), exec);
    CALL_BOTH(cudaGraphInstantiateWithParams, (void **, void *, void *), &exec, graph, &params);
    CALL(cudaDeviceGraphMemTrim, (int), 0);
    CALL(cudaGraphDestroy, (void *), graph);
}

static void runtime_implicit(void)
{
    static const uint64_t image[64] = {0x464c457f};
    void *made = NULL;
    CALL(cudaDeviceSetLimit, (int, size_t), 0, 2048);
    CALL(cudaLibraryLoadFromFile,
         (void **, const char *, int *, void **, unsigned, int *, void **, unsigned), &made,
         "/dev/null", NULL, NULL, 0, NULL, NULL, 0);
    CALL(cudaLibraryLoadData,
         (void **, const void *, int *, void **, unsigned, int *, void **, unsigned), &made, image,
         NULL, NULL, 0, NULL, NULL, 0);
    CALL(cudaLibraryUnload, (void *), made);
    CALL(cudaGreenCtxCreate, (void **, void *, int, unsigned), &made, NULL, 0, 1);
    CALL(cudaExecutionCtxStreamCreate, (void **, void *, unsigned, int), &made, NULL, 1, 0);
    CALL(cudaExecutionCtxRecordEvent, (void *, void *), NULL, NULL);
    CALL(cudaExecutionCtxDestroy, (void *), NULL);
}

static void runtime_captures(void *stream)
{
    void *graph = NULL;
    CALL(cudaStreamBeginCapture, (void *, int), stream, 2);
    CALL(cudaStreamEndCapture, (void *, void **), stream, &graph);
    CALL(cudaStreamBeginCapture_ptsz, (void *, int), stream, 2);
    CALL(cudaStreamEndCapture_ptsz, (void *, void **), stream, &graph);
    CALL_BOTH(cudaStreamBeginCaptureToGraph,
              (void *, void *, void *const *, const void *, size_t, int), stream, graph, NULL, NULL,
              0, 2);
    CALL(cudaStreamEndCapture, (void *, void **), stream, &graph);
    CALL_BOTH(cudaStreamBeginRecaptureToGraph, (void *, int, void *, void *), stream, 2, graph,
              NULL);
}

static void runtime_order(void)
{
    int (*create)(void **) = (int (*)(void **))reach("cudaEventCreate");
    void *stream[3] = {NULL};
    void *event = NULL;
    CALL(cudaStreamCreate, (void **), &stream[0]);
    CALL(cudaStreamCreateWithFlags, (void **, unsigned), &stream[1], 1);
    CALL(cudaStreamCreateWithPriority, (void **, unsigned, int), &stream[2], 1, 0);
    create(&event);
    CALL_BOTH(cudaEventRecord, (void *, void *), event, stream[0]);
    CALL_BOTH(cudaEventRecordWithFlags, (void *, void *, unsigned), event, stream[0], 0);
    CALL(cudaEventQuery, (void *), event);
    CALL(cudaEventSynchronize, (void *), event);
    CALL(cudaEventDestroy, (void *), event);
    runtime_captures(stream[1]);
    for (int i = 0; i < 3; i++) {
        CALL(cudaStreamDestroy, (void *), stream[i]);
    }
}

static void runtime_look_up(void)
{
    void *found = NULL;
    int status = 0;
    CALL_BOTH(cudaGetDriverEntryPoint, (const char *, void **, unsigned long long, int *),
              "cuMemAlloc", &found, 0, &status);
    CALL_BOTH(cudaGetDriverEntryPointByVersion,
              (const char *, void **, unsigned, unsigned long long, int *), "cuMemAlloc", &found,
              12000, 0, &status);
}

static void runtime(void)
{
    CALL(cudaInitDevice, (int, unsigned, unsigned), 0, 0, 0);
    CALL(cudaSetDevice, (int), 1);
    CALL(cudaSetDevice, (int), 0);
    runtime_look_up();
    runtime_memory();
    runtime_arrays();
    runtime_pools();
    runtime_others();
    runtime_graphs();
    runtime_implicit();
    runtime_order();
    CALL(cudaDeviceReset, (void));
}

/* Gone in CUDA 13. */
static void runtime_12(void)
{
    struct {
        struct cu_node named;
        char room[256];
    } node = {.named = {.type = ABI_NODE_ALLOC}};
    void *made = NULL;
    CALL(cudaGraphAddNode_v2, (void **, void *, void *const *, const void *, size_t, void *), &made,
         NULL, NULL, NULL, 0, &node);
    CALL(cudaThreadSetLimit, (int, size_t), 0, 2048);
    CALL(cudaThreadExit, (void));
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: all_calls symbol|handle DRIVER RUNTIME12 RUNTIME13\n");
        return 2;
    }
    reach_by.by_handle = strcmp(argv[1], "handle") == 0;
    /* What both runtimes have, the program as a whole has from the first that is loaded. */
    int scope = RTLD_NOW | (reach_by.by_handle ? RTLD_LOCAL : RTLD_GLOBAL);
    reach_by.driver = dlopen(argv[2], scope);
    void *runtime_of_13 = dlopen(argv[4], scope);
    void *runtime_of_12 = dlopen(argv[3], scope);
    if (reach_by.driver == NULL || runtime_of_12 == NULL || runtime_of_13 == NULL) {
        fprintf(stderr, "all_calls: %s\n", dlerror());
        return 1;
    }
    driver();
    reach_by.runtime = runtime_of_13;
    runtime();
    reach_by.runtime = runtime_of_12;
    runtime_12();
    return 0;
}
