/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated runtime by its documented contract, over the simulated driver.
 * Each test is a process of its own with a device of its own.
 */
#include <criterion/criterion.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)
#define OK(call) cr_assert_eq((call), cudaSuccess, #call)
#define FAILS(call, error) cr_assert_eq((call), (error), #call)

static size_t used(void)
{
    size_t free_bytes = 0, total = 0;
    OK(cudaMemGetInfo(&free_bytes, &total));
    return total - free_bytes;
}

Test(memory, empty_requests_are_no_operations)
{
    void *pointer = &pointer;
    OK(cudaFree(NULL));
    OK(cudaMalloc(&pointer, 0));
    cr_assert_null(pointer);
    OK(cudaMallocHost(&pointer, 0));
    cr_assert_null(pointer);
    OK(cudaFreeHost(NULL));
    FAILS(cudaMalloc(NULL, 1), cudaErrorInvalidValue);
}

Test(memory, first_use_costs_a_context_and_allocations_come_in_chunks)
{
    void *pointer = NULL;
    size_t context = used();
    cr_assert_gt(context, 0);
    OK(cudaMalloc(&pointer, 3 * MIB));
    cr_assert_eq(used() - context, 4 * MIB);
    OK(cudaFree(pointer));
    cr_assert_eq(used(), context);
}

Test(memory, too_much_fails_and_leaves_no_trace)
{
    size_t free_bytes = 0, total = 0, before = used();
    void *pointer = NULL;
    OK(cudaMemGetInfo(&free_bytes, &total));
    FAILS(cudaMalloc(&pointer, total), cudaErrorMemoryAllocation);
    cr_assert_null(pointer);
    cr_assert_eq(used(), before);
}

Test(memory, wrong_frees_are_refused)
{
    void *pointer = NULL;
    int own = 0;
    OK(cudaMalloc(&pointer, MIB));
    FAILS(cudaFree((char *)pointer + 256), cudaErrorInvalidValue);
    FAILS(cudaFree(&own), cudaErrorInvalidValue);
    OK(cudaFree(pointer));
    FAILS(cudaFree(pointer), cudaErrorInvalidValue);
    FAILS(cudaFreeHost(&own), cudaErrorInvalidValue);
}

Test(errors, last_error_is_kept_until_asked_for)
{
    FAILS(cudaSetDevice(99), cudaErrorInvalidDevice);
    cr_assert_eq(cudaPeekAtLastError(), cudaErrorInvalidDevice);
    OK(cudaFree(NULL));
    cr_assert_eq(cudaGetLastError(), cudaErrorInvalidDevice);
    cr_assert_eq(cudaGetLastError(), cudaSuccess);
    cr_assert_str_eq(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
    cr_assert_str_eq(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
    cr_assert_str_eq(cudaGetErrorString((cudaError_t)12345), "unrecognized error code");
}

static void *last_error_of_another_thread(void *out)
{
    *(cudaError_t *)out = cudaGetLastError();
    return NULL;
}

Test(errors, last_error_belongs_to_its_thread)
{
    pthread_t thread;
    cudaError_t seen = cudaErrorUnknown;
    FAILS(cudaSetDevice(99), cudaErrorInvalidDevice);
    cr_assert_eq(pthread_create(&thread, NULL, last_error_of_another_thread, &seen), 0);
    pthread_join(thread, NULL);
    cr_assert_eq(seen, cudaSuccess);
}

Test(pointers, attributes_tell_kinds_apart)
{
    struct cudaPointerAttributes attributes;
    void *device = NULL, *host = NULL, *managed = NULL;
    int own = 0;
    OK(cudaMalloc(&device, MIB));
    OK(cudaHostAlloc(&host, MIB, cudaHostAllocDefault));
    OK(cudaMallocManaged(&managed, MIB, cudaMemAttachGlobal));
    OK(cudaPointerGetAttributes(&attributes, (char *)device + 100));
    cr_assert_eq(attributes.type, cudaMemoryTypeDevice);
    cr_assert_eq(attributes.device, 0);
    OK(cudaPointerGetAttributes(&attributes, host));
    cr_assert_eq(attributes.type, cudaMemoryTypeHost);
    cr_assert_eq(attributes.hostPointer, host);
    OK(cudaPointerGetAttributes(&attributes, managed));
    cr_assert_eq(attributes.type, cudaMemoryTypeManaged);
    OK(cudaPointerGetAttributes(&attributes, &own));
    cr_assert_eq(attributes.type, cudaMemoryTypeUnregistered);
    cr_assert_eq(cudaGetLastError(), cudaSuccess);
}

Test(pointers, registered_memory_is_host_memory)
{
    struct cudaPointerAttributes attributes;
    void *memory = NULL;
    cr_assert_eq(posix_memalign(&memory, 4096, MIB), 0);
    OK(cudaHostRegister(memory, MIB, cudaHostRegisterDefault));
    OK(cudaPointerGetAttributes(&attributes, memory));
    cr_assert_eq(attributes.type, cudaMemoryTypeHost);
    FAILS(cudaHostRegister(memory, MIB, cudaHostRegisterDefault),
          cudaErrorHostMemoryAlreadyRegistered);
    OK(cudaHostUnregister(memory));
    FAILS(cudaHostUnregister(memory), cudaErrorHostMemoryNotRegistered);
    free(memory);
}

Test(copies, rows_and_fills)
{
    unsigned char host[8][16], back[8][16];
    size_t pitch = 0;
    void *device = NULL;
    for (int i = 0; i < 8 * 16; i++)
        host[i / 16][i % 16] = (unsigned char)i;
    OK(cudaMallocPitch(&device, &pitch, 16, 8));
    cr_assert_geq(pitch, 16);
    OK(cudaMemcpy2D(device, pitch, host, 16, 16, 8, cudaMemcpyHostToDevice));
    OK(cudaMemset2D((char *)device + 2 * pitch, pitch, 0xee, 4, 2));
    OK(cudaMemcpy2D(back, 16, device, pitch, 16, 8, cudaMemcpyDeviceToHost));
    memset(host[2], 0xee, 4);
    memset(host[3], 0xee, 4);
    cr_assert_eq(memcmp(host, back, sizeof(host)), 0);
}

Test(copies, three_dimensions)
{
    struct cudaExtent extent = {.width = 8, .height = 3, .depth = 2};
    struct cudaPitchedPtr device;
    unsigned char host[2][3][8], back[2][3][8];
    for (size_t i = 0; i < sizeof(host); i++)
        ((unsigned char *)host)[i] = (unsigned char)(i + 1);
    OK(cudaMalloc3D(&device, extent));
    struct cudaMemcpy3DParms copy = {.srcPtr = {host, 8, 8, 3},
                                     .dstPtr = device,
                                     .extent = extent,
                                     .kind = cudaMemcpyHostToDevice};
    OK(cudaMemcpy3D(&copy));
    copy = (struct cudaMemcpy3DParms){.srcPtr = device,
                                      .dstPtr = {back, 8, 8, 3},
                                      .extent = extent,
                                      .kind = cudaMemcpyDeviceToHost};
    OK(cudaMemcpy3D(&copy));
    cr_assert_eq(memcmp(host, back, sizeof(host)), 0);
    OK(cudaMemset3D(device, 5, extent));
    OK(cudaMemcpy3D(&copy));
    for (size_t i = 0; i < sizeof(back); i++)
        cr_assert_eq(((unsigned char *)back)[i], 5);
}

Test(arrays, hold_what_is_copied_to_them)
{
    struct cudaChannelFormatDesc channels =
        cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
    struct cudaChannelFormatDesc found;
    struct cudaExtent extent;
    float host[4][8], back[4][8];
    cudaArray_t array = NULL;
    size_t before = used();
    for (int i = 0; i < 32; i++)
        host[i / 8][i % 8] = (float)i;
    OK(cudaMallocArray(&array, &channels, 8, 4, cudaArrayDefault));
    cr_assert_gt(used(), before);
    OK(cudaArrayGetInfo(&found, &extent, NULL, array));
    cr_assert_eq(found.x, 32);
    cr_assert_eq(found.f, cudaChannelFormatKindFloat);
    cr_assert_eq(extent.width, 8);
    OK(cudaMemcpy2DToArray(array, 0, 0, host, 32, 32, 4, cudaMemcpyHostToDevice));
    OK(cudaMemcpy2DFromArray(back, 32, array, 0, 0, 32, 4, cudaMemcpyDeviceToHost));
    cr_assert_eq(memcmp(host, back, sizeof(host)), 0);
    OK(cudaFreeArray(array));
    cr_assert_eq(used(), before);
    channels.y = 16;
    FAILS(cudaMallocArray(&array, &channels, 8, 4, cudaArrayDefault),
          cudaErrorInvalidChannelDescriptor);
}

static uint64_t pool_attribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute)
{
    uint64_t value = 0;
    OK(cudaMemPoolGetAttribute(pool, attribute, &value));
    return value;
}

Test(pools, keep_what_is_freed_up_to_the_threshold)
{
    cudaMemPool_t pool = NULL;
    uint64_t all = UINT64_MAX;
    void *pointer = NULL;
    OK(cudaDeviceGetDefaultMemPool(&pool, 0));
    OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
    OK(cudaMallocAsync(&pointer, 5 * MIB, NULL));
    cr_assert_geq(pool_attribute(pool, cudaMemPoolAttrUsedMemCurrent), 5 * MIB);
    OK(cudaFreeAsync(pointer, NULL));
    OK(cudaStreamSynchronize(NULL));
    cr_assert_eq(pool_attribute(pool, cudaMemPoolAttrUsedMemCurrent), 0);
    cr_assert_geq(pool_attribute(pool, cudaMemPoolAttrReservedMemCurrent), 5 * MIB);
    OK(cudaMemPoolTrimTo(pool, 0));
    cr_assert_eq(pool_attribute(pool, cudaMemPoolAttrReservedMemCurrent), 0);
}

cudaError_t cudaMallocAsync_ptsz(void **pointer, size_t size, cudaStream_t stream);
cudaError_t cudaFreeAsync_ptsz(void *pointer, cudaStream_t stream);
cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream);

Test(pools, per_thread_variants_and_pools_of_ones_own)
{
    struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                     .location = {.type = cudaMemLocationTypeDevice, .id = 0}};
    cudaMemPool_t pool = NULL;
    void *pointer = NULL;
    OK(cudaMallocAsync_ptsz(&pointer, MIB, NULL));
    OK(cudaFreeAsync_ptsz(pointer, NULL));
    OK(cudaStreamSynchronize_ptsz(NULL));
    OK(cudaMemPoolCreate(&pool, &props));
    OK(cudaMallocFromPoolAsync(&pointer, MIB, pool, NULL));
    cr_assert_geq(pool_attribute(pool, cudaMemPoolAttrUsedMemCurrent), MIB);
    OK(cudaFreeAsync(pointer, NULL));
    OK(cudaDeviceSynchronize());
    OK(cudaMemPoolDestroy(pool));
}

static void *allocate_in_another_thread(void *out)
{
    void *pointer = NULL;
    *(cudaError_t *)out = cudaMalloc(&pointer, MIB);
    return NULL;
}

Test(devices, reset_gives_all_back_and_the_next_use_starts_again)
{
    void *pointer = NULL;
    pthread_t thread;
    cudaError_t error = cudaErrorUnknown;
    size_t fresh = used();
    OK(cudaMalloc(&pointer, 64 * MIB));
    OK(cudaDeviceReset());
    cr_assert_eq(used(), fresh);
    FAILS(cudaFree(pointer), cudaErrorInvalidValue);
    OK(cudaMalloc(&pointer, MIB));
    cr_assert_eq(pthread_create(&thread, NULL, allocate_in_another_thread, &error), 0);
    pthread_join(thread, NULL);
    cr_assert_eq(error, cudaSuccess);
}

Test(devices, properties_and_attributes_agree)
{
    struct cudaDeviceProp prop;
    size_t free_bytes = 0, total = 0;
    int count = 0, value = 0, device = -1;
    char bus[32];
    OK(cudaGetDeviceCount(&count));
    cr_assert_geq(count, 1);
    OK(cudaGetDeviceProperties(&prop, 0));
    OK(cudaMemGetInfo(&free_bytes, &total));
    cr_assert_eq(prop.totalGlobalMem, total);
    OK(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
    cr_assert_eq(prop.multiProcessorCount, value);
    cr_assert_eq(prop.warpSize, 32);
    cr_assert_gt(strlen(prop.name), 0);
    OK(cudaDeviceGetPCIBusId(bus, sizeof(bus), 0));
    OK(cudaDeviceGetByPCIBusId(&device, bus));
    cr_assert_eq(device, 0);
    FAILS(cudaGetDeviceProperties(&prop, count), cudaErrorInvalidDevice);
}

/* What a compiler's start-up code does for one kernel and one variable. */
void **__cudaRegisterFatBinary(void *fatCubin);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int limit, void *tid, void *bid, void *bdim, void *gdim, int *warp);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext,
                       size_t size, int constant, int global);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);

static const struct {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes;
} fat_image = {0xba55ed50u, 1, 16, 0};
static struct {
    int magic, version;
    const void *data;
    void *file;
} fat_wrapper = {0x466243b1, 1, &fat_image, NULL};
static char kernel, variable[64];

static void **register_code(void)
{
    void **handle = __cudaRegisterFatBinary(&fat_wrapper);
    __cudaRegisterFunction(handle, &kernel, NULL, "kernel", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterVar(handle, variable, NULL, "variable", 0, sizeof(variable), 0, 0);
    __cudaRegisterFatBinaryEnd(handle);
    return handle;
}

Test(code, kernels_launch_and_variables_have_addresses)
{
    dim3 one = {1, 1, 1}, grid, block;
    size_t shared = 0, size = 0;
    cudaStream_t stream = NULL;
    char back[64] = "";
    void *address = NULL;
    int blocks = 0;
    struct cudaFuncAttributes attributes;
    register_code();
    cr_assert_eq(__cudaPushCallConfiguration(one, (dim3){64, 1, 1}, 128, NULL), 0);
    OK(__cudaPopCallConfiguration(&grid, &block, &shared, &stream));
    cr_assert_eq(block.x, 64);
    cr_assert_eq(shared, 128);
    OK(cudaLaunchKernel(&kernel, grid, block, NULL, shared, stream));
    FAILS(cudaLaunchKernel(&blocks, grid, block, NULL, 0, NULL), cudaErrorInvalidDeviceFunction);
    OK(cudaFuncGetAttributes(&attributes, &kernel));
    cr_assert_gt(attributes.maxThreadsPerBlock, 0);
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &kernel, 128, 0));
    cr_assert_gt(blocks, 0);
    OK(cudaGetSymbolSize(&size, variable));
    cr_assert_eq(size, sizeof(variable));
    OK(cudaGetSymbolAddress(&address, variable));
    cr_assert_not_null(address);
    OK(cudaMemcpyToSymbol(variable, "written", 8, 8, cudaMemcpyHostToDevice));
    OK(cudaMemcpyFromSymbol(back, variable, 8, 8, cudaMemcpyDeviceToHost));
    cr_assert_str_eq(back, "written");
    FAILS(cudaGetSymbolAddress(&address, &blocks), cudaErrorInvalidSymbol);
}

Test(code, unregistered_names_are_forgotten)
{
    dim3 one = {1, 1, 1};
    void **handle = register_code();
    OK(cudaLaunchKernel(&kernel, one, one, NULL, 0, NULL));
    __cudaUnregisterFatBinary(handle);
    FAILS(cudaLaunchKernel(&kernel, one, one, NULL, 0, NULL), cudaErrorInvalidDeviceFunction);
}

static void count_call(void *counter)
{
    ++*(int *)counter;
}

Test(graphs, nodes_run_at_launch_in_order)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    cudaGraphNode_t fill_node, copy_node, host_node;
    size_t nodes = 0;
    unsigned char host[256];
    void *device = NULL;
    int calls = 0;
    memset(host, 0, sizeof(host));
    OK(cudaMalloc(&device, sizeof(host)));
    OK(cudaGraphCreate(&graph, 0));
    struct cudaMemsetParams fill = {
        .dst = device, .value = 7, .elementSize = 1, .width = sizeof(host), .height = 1};
    OK(cudaGraphAddMemsetNode(&fill_node, graph, NULL, 0, &fill));
    OK(cudaGraphAddMemcpyNode1D(&copy_node, graph, &fill_node, 1, host, device, sizeof(host),
                                cudaMemcpyDeviceToHost));
    struct cudaHostNodeParams call = {.fn = count_call, .userData = &calls};
    OK(cudaGraphAddHostNode(&host_node, graph, &copy_node, 1, &call));
    OK(cudaGraphGetNodes(graph, NULL, &nodes));
    cr_assert_eq(nodes, 3);
    OK(cudaGraphInstantiate(&exec, graph, 0));
    cr_assert_eq(host[0], 0);
    OK(cudaGraphLaunch(exec, NULL));
    OK(cudaStreamSynchronize(NULL));
    cr_assert_eq(host[0], 7);
    cr_assert_eq(host[255], 7);
    cr_assert_eq(calls, 1);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
}

Test(graphs, allocation_nodes_take_memory_at_launch)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    cudaGraphNode_t alloc_node, free_node;
    uint64_t reserved = 0;
    OK(cudaGraphCreate(&graph, 0));
    struct cudaMemAllocNodeParams params = {
        .poolProps = {.allocType = cudaMemAllocationTypePinned,
                      .location = {.type = cudaMemLocationTypeDevice, .id = 0}},
        .bytesize = 4 * MIB};
    OK(cudaGraphAddMemAllocNode(&alloc_node, graph, NULL, 0, &params));
    cr_assert_not_null(params.dptr);
    OK(cudaGraphAddMemFreeNode(&free_node, graph, &alloc_node, 1, params.dptr));
    OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, NULL));
    OK(cudaStreamSynchronize(NULL));
    OK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemCurrent, &reserved));
    cr_assert_geq(reserved, 4 * MIB);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaDeviceGraphMemTrim(0));
    OK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemCurrent, &reserved));
    cr_assert_eq(reserved, 0);
    OK(cudaGraphDestroy(graph));
}

Test(graphs, capture_records_instead_of_running)
{
    cudaStream_t stream = NULL;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    unsigned char host[64] = {0};
    void *device = NULL;
    OK(cudaMalloc(&device, 64));
    OK(cudaStreamCreate(&stream));
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    OK(cudaStreamIsCapturing(stream, &status));
    cr_assert_eq(status, cudaStreamCaptureStatusActive);
    OK(cudaMemsetAsync(device, 9, 64, stream));
    OK(cudaMemcpyAsync(host, device, 64, cudaMemcpyDeviceToHost, stream));
    OK(cudaStreamEndCapture(stream, &graph));
    cr_assert_eq(host[0], 0);
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    cr_assert_eq(host[63], 9);
}

Test(graphs, captured_allocations_can_be_used_before_they_exist)
{
    cudaStream_t stream = NULL;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    unsigned char host[64] = {0};
    void *device = NULL;
    size_t before = 0;
    OK(cudaStreamCreate(&stream));
    before = used();
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    OK(cudaMallocAsync(&device, MIB, stream));
    OK(cudaMemsetAsync(device, 6, MIB, stream));
    OK(cudaMemcpyAsync(host, (char *)device + MIB - 64, 64, cudaMemcpyDeviceToHost, stream));
    OK(cudaFreeAsync(device, stream));
    OK(cudaStreamEndCapture(stream, &graph));
    cr_assert_eq(used(), before);
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    cr_assert_eq(host[63], 6);
}

Test(entry_points, are_the_drivers)
{
    void *pointer = NULL;
    enum cudaDriverEntryPointQueryResult found;
    OK(cudaGetDriverEntryPointByVersion("cuMemAlloc", &pointer, 12000, cudaEnableDefault, &found));
    cr_assert_eq(found, cudaDriverEntryPointSuccess);
    Dl_info where;
    cr_assert_neq(dladdr(pointer, &where), 0);
    cr_assert_not_null(strstr(where.dli_fname, "libcuda.so.1"));
    OK(cudaGetDriverEntryPointByVersion("cuNoSuchCall", &pointer, 12000, cudaEnableDefault,
                                        &found));
    cr_assert_eq(found, cudaDriverEntryPointSymbolNotFound);
    cr_assert_null(pointer);
}

static void fail_second_malloc(void)
{
    setenv("SIMGPU_FAIL", "cudaMalloc:2:out_of_memory", 1);
}

Test(injection, fails_the_call_it_names, .init = fail_second_malloc)
{
    void *pointer = NULL;
    OK(cudaMalloc(&pointer, MIB));
    FAILS(cudaMalloc(&pointer, MIB), cudaErrorMemoryAllocation);
    OK(cudaMalloc(&pointer, MIB));
}

Test(unsupported, fails_and_never_pretends)
{
    cudaTextureObject_t texture = 0;
    FAILS(cudaCreateTextureObject(&texture, NULL, NULL, NULL), cudaErrorNotSupported);
    cr_assert_eq(cudaGetLastError(), cudaErrorNotSupported);
}

Test(static_twin, shares_the_device_and_its_own_errors)
{
    void *library = dlopen(STATIC_USER, RTLD_NOW | RTLD_LOCAL);
    cr_assert_not_null(library, "%s", dlerror());
    int (*allocate)(void **, size_t);
    int (*release)(void *);
    *(void **)&allocate = dlsym(library, "static_user_malloc");
    *(void **)&release = dlsym(library, "static_user_free");
    cr_assert_null(dlsym(library, "cudaGetErrorName") == (void *)cudaGetErrorName
                       ? NULL
                       : dlsym(library, "cudaGetErrorName"));
    void *pointer = NULL;
    size_t before = used();
    cr_assert_eq(allocate(&pointer, 2 * MIB), cudaSuccess);
    cr_assert_eq(used() - before, 2 * MIB);
    cr_assert_eq(release(pointer), cudaSuccess);
    cr_assert_eq(release(pointer), cudaErrorInvalidValue);
    cr_assert_eq(cudaGetLastError(), cudaSuccess);
}
