/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_cases NAME [healthy]: one problem of device memory at driver or runtime level;
 * with `healthy` the same program with the fix. The requests a case is about may be
 * refused; any other call that fails ends the program with 3.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cache_library.h"
#include "pinned_library.h"
#include "vmm_shared.h"

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)
/* What asks for memory has a function of its own, by which the check knows its site. */
#define SITE __attribute__((noinline)) static

static void need(int result, const char *what)
{
    if (result != 0) {
        fprintf(stderr, "%s returned %d\n", what, result);
        _Exit(3);
    }
}
#define NEED(call) need((int)(call), #call)

static void *device_memory(size_t bytes)
{
    void *memory = NULL;
    NEED(cudaMalloc(&memory, bytes));
    return memory;
}

/* ---- memory that no call asks for ------------------------------------------------------- */

SITE void first_call(void)
{
    NEED(cudaFree(NULL));
}

SITE void load_modules(int count)
{
    for (int i = 0; i < count; i++) {
        CUmodule module;
        NEED(cuModuleLoadData(&module, "kernels"));
    }
}

/* One small tensor, and the kernels of everything that might be used. */
static void context_and_modules(bool healthy)
{
    first_call();
    load_modules(healthy ? 1 : 64);
    device_memory(2 * MIB);
}

SITE void look_at_the_checkpoint(void)
{
    device_memory(4 * MIB);
}

/* A process of device 1 that touches device 0 first. */
static void context_elsewhere(bool healthy)
{
    if (healthy)
        NEED(cudaSetDevice(1));
    look_at_the_checkpoint();
    NEED(cudaSetDevice(1));
    device_memory(512 * MIB);
}

SITE void raise_the_limit(size_t stack_bytes)
{
    NEED(cudaDeviceSetLimit(cudaLimitStackSize, stack_bytes));
}

/* A deep stack for every thread that the device could ever run at once. */
static void stack_limit(bool healthy)
{
    CUmodule module;
    CUfunction kernel;
    device_memory(2 * MIB);
    NEED(cuModuleLoadData(&module, "kernels"));
    NEED(cuModuleGetFunction(&kernel, module, "kernel"));
    if (!healthy)
        raise_the_limit(8192);
    NEED(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    NEED(cudaDeviceSynchronize());
    device_memory(2 * MIB);
}

/* ---- memory shared between processes ------------------------------------------------------ */

SITE void produce(int to, int from)
{
    cudaIpcMemHandle_t handle;
    void *tensor = device_memory(16 * GIB);
    char done;
    NEED(cudaIpcGetMemHandle(&handle, tensor));
    NEED(write(to, &handle, sizeof(handle)) != sizeof(handle));
    /* What the consumer does not give back stays until the producer ends. */
    if (read(from, &done, 1) == 1)
        NEED(cudaFree(tensor));
    else
        device_memory(MIB);
}

SITE void consume(int from, int to, bool healthy)
{
    cudaIpcMemHandle_t handle;
    void *tensor;
    NEED(read(from, &handle, sizeof(handle)) != sizeof(handle));
    NEED(cudaIpcOpenMemHandle(&tensor, handle, cudaIpcMemLazyEnablePeerAccess));
    device_memory(MIB);
    if (healthy) {
        NEED(cudaIpcCloseMemHandle(tensor));
        NEED(write(to, "", 1) != 1);
    }
    close(to);
}

/* A tensor given to another process, which drops it without closing it. */
static void exported(bool healthy)
{
    int there[2], back[2], status = 0;
    NEED(pipe(there));
    NEED(pipe(back));
    pid_t child = fork();
    if (child == 0) {
        close(back[0]);
        consume(there[0], back[1], healthy);
        exit(0);
    }
    close(back[1]);
    produce(there[1], back[0]);
    NEED(waitpid(child, &status, 0) != child || status != 0);
}

/* ---- caches ---------------------------------------------------------------------------------- */

SITE void *take(size_t bytes)
{
    return cache_malloc(bytes, NULL);
}

/* Each message is freed right after it was handed to a stream that is slow. */
static void waiting_streams(bool healthy)
{
    cudaStream_t communication;
    NEED(cudaStreamCreateWithFlags(&communication, cudaStreamNonBlocking));
    for (int i = 0; i < 120; i++) {
        void *message = take(100 * MIB);
        if (message == NULL)
            return;
        cache_free(message, healthy ? NULL : communication);
    }
}

/* A pool that begins small and grows: its two blocks do not join. */
static void upstream_blocks(bool healthy)
{
    cache_limit(1024 * MIB);
    if (!healthy) {
        void *first = take(256 * MIB), *second = take(768 * MIB);
        cache_free(first, NULL);
        cache_free(second, NULL);
    }
    take(1024 * MIB);
}

/* The framework's host cache rounds up to a power of two. */
static void pinned_rounding(bool healthy)
{
    void *memory = NULL;
    if (healthy)
        NEED(cudaHostAlloc(&memory, 8292 * MIB, cudaHostAllocDefault));
    else
        NEED(!pinned_malloc(8292 * MIB));
    device_memory(MIB);
}

/* ---- pools of the driver ------------------------------------------------------------------- */

SITE void *take_ordered(size_t bytes)
{
    void *memory = NULL;
    return cudaMallocAsync(&memory, bytes, NULL) == cudaSuccess ? memory : NULL;
}

/* Batches of a pool that keeps all it ever had: half of it is free again, in pieces. */
static void fill_pool(bool trimmed)
{
    uint64_t keep = UINT64_MAX;
    cudaMemPool_t pool;
    void *batches[6];
    NEED(cudaDeviceGetDefaultMemPool(&pool, 0));
    NEED(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
    for (int i = 0; i < 6; i++) {
        batches[i] = take_ordered(300 * MIB);
        take_ordered(200 * MIB);
    }
    for (int i = 0; i < 6; i++)
        NEED(cudaFreeAsync(batches[i], NULL));
    NEED(cudaDeviceSynchronize());
    if (trimmed)
        NEED(cudaMemPoolTrimTo(pool, 0));
}

/* The pool itself is asked for more than its largest piece. */
static void pool_keeps(bool healthy)
{
    fill_pool(healthy);
    take_ordered(1100 * MIB);
}

/* Beside a pool, or above the limit of the process, which the launcher lets the driver refuse. */
SITE void ask_for_more(size_t bytes)
{
    void *memory = NULL;
    (void)cudaMalloc(&memory, bytes);
}

/* A client of MPS whose limit is far below what the device has. */
static void client_limit(bool healthy)
{
    device_memory(512 * MIB);
    ask_for_more(healthy ? 256 * MIB : 2 * GIB);
}

/* One block for all that a framework will ever need; a library beside it finds nothing left. */
static void preallocated(bool healthy)
{
    device_memory(healthy ? 18 * GIB : 24166 * MIB); /* of 24 GiB */
    ask_for_more(120 * MIB);
}

/* Somebody else asks the device, of which the pool keeps what it does not use. */
static void pool_starves(bool healthy)
{
    fill_pool(healthy);
    ask_for_more(1100 * MIB);
}

/* ---- virtual memory ---------------------------------------------------------------------------
 */

static const CUmemAllocationProp on_device = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED,
    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};

SITE CUdeviceptr reserve(size_t bytes)
{
    CUdeviceptr range = 0;
    return cuMemAddressReserve(&range, bytes, 0, 0, 0) == CUDA_SUCCESS ? range : 0;
}

SITE CUmemGenericAllocationHandle create(size_t bytes)
{
    CUmemGenericAllocationHandle memory = 0;
    NEED(cuMemCreate(&memory, bytes, &on_device, 0));
    return memory;
}

/* The pool of a device wants more addresses than there are. */
static void address_space(bool healthy)
{
    first_call();
    CUdeviceptr range = reserve(healthy ? 32 * GIB : 128 * GIB);
    CUmemGenericAllocationHandle memory = create(64 * MIB);
    if (range != 0)
        NEED(cuMemMap(range, 64 * MIB, 0, memory, 0));
}

SITE void map_and_open(CUdeviceptr range, CUmemGenericAllocationHandle memory)
{
    CUmemAccessDesc access = {.location = on_device.location,
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    if (cuMemMap(range, 64 * MIB, 0, memory, 0) == CUDA_SUCCESS)
        (void)cuMemSetAccess(range, 64 * MIB, &access, 1);
}

/* The range is used again while the old mapping is still there. */
static void map_refused(bool healthy)
{
    first_call();
    CUdeviceptr range = reserve(GIB);
    map_and_open(range, create(64 * MIB));
    if (healthy)
        NEED(cuMemUnmap(range, 64 * MIB));
    map_and_open(range, create(64 * MIB));
}

/* Two mappings, of which the launcher lets one call fail for want of memory. */
static void no_page_tables(bool healthy)
{
    first_call();
    CUdeviceptr range = reserve(GIB);
    map_and_open(range, create(64 * MIB));
    if (!healthy)
        map_and_open(range + 64 * MIB, create(64 * MIB));
}

/* The right to use the range is asked for with no memory behind it. */
static void access_refused(bool healthy)
{
    first_call();
    CUdeviceptr range = reserve(GIB);
    CUmemAccessDesc access = {.location = on_device.location,
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    if (healthy)
        NEED(cuMemMap(range, 64 * MIB, 0, create(64 * MIB), 0));
    (void)cuMemSetAccess(range, 64 * MIB, &access, 1);
}

/* ---- multicast, peers, host memory
 * --------------------------------------------------------------- */

SITE void make_multicast(void)
{
    CUmulticastObjectProp wanted = {.numDevices = 1, .size = 512 * MIB};
    CUmemGenericAllocationHandle multicast;
    (void)cuMulticastCreate(&multicast, &wanted);
}

/* Multicast where no fabric manager runs (the launcher lets the call fail). */
static void multicast_refused(bool healthy)
{
    first_call();
    if (!healthy)
        make_multicast();
    device_memory(MIB);
}

SITE void bind_multicast(CUmemGenericAllocationHandle multicast,
                         CUmemGenericAllocationHandle memory)
{
    (void)cuMulticastBindMem(multicast, 0, memory, 0, 512 * MIB, 0);
}

/* A group whose memory the switch has no room for (the launcher lets the call fail). */
static void multicast_full(bool healthy)
{
    CUmulticastObjectProp wanted = {.numDevices = 1, .size = 512 * MIB};
    CUmemGenericAllocationHandle multicast;
    first_call();
    if (!healthy) {
        NEED(cuMulticastCreate(&multicast, &wanted));
        NEED(cuMulticastAddDevice(multicast, 0));
        bind_multicast(multicast, create(512 * MIB));
    }
    device_memory(MIB);
}

SITE void reach_peer(int peer)
{
    (void)cudaDeviceEnablePeerAccess(peer, 0);
}

static void leave_peer(int peer)
{
    (void)cudaDeviceDisablePeerAccess(peer);
}

/* Peer access switched on twice, and off twice. */
static void peer_twice(bool healthy)
{
    first_call();
    reach_peer(1);
    if (!healthy)
        reach_peer(1);
    leave_peer(1);
    if (!healthy)
        leave_peer(1);
}

/* Two devices that cannot reach each other (the launcher lets the call fail). */
static void peer_unsupported(bool healthy)
{
    first_call();
    if (!healthy)
        reach_peer(1);
    device_memory(MIB);
}

SITE void pin(void *memory, size_t bytes, unsigned flags)
{
    (void)cudaHostRegister(memory, bytes, flags);
}

/* Host memory pinned twice, and given back twice. */
static void pinned_twice(bool healthy)
{
    void *memory = mmap(NULL, 64 * MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pin(memory, 64 * MIB, cudaHostRegisterReadOnly);
    if (!healthy)
        pin(memory, 64 * MIB, cudaHostRegisterReadOnly);
    NEED(cudaHostUnregister(memory));
    if (!healthy)
        (void)cudaHostUnregister(memory);
    device_memory(MIB);
}

static const struct {
    const char *name;
    void (*play)(bool healthy);
} cases[] = {
    {"context_and_modules", context_and_modules},
    {"context_elsewhere", context_elsewhere},
    {"stack_limit", stack_limit},
    {"exported", exported},
    {"exported_pieces", exported_pieces},
    {"ipc_of_pieces", ipc_of_pieces},
    {"waiting_streams", waiting_streams},
    {"pinned_rounding", pinned_rounding},
    {"upstream_blocks", upstream_blocks},
    {"preallocated", preallocated},
    {"client_limit", client_limit},
    {"refused_with_room", client_limit},
    {"pool_keeps", pool_keeps},
    {"pool_starves", pool_starves},
    {"address_space", address_space},
    {"map_refused", map_refused},
    {"access_refused", access_refused},
    {"map_without_memory", no_page_tables},
    {"access_without_memory", no_page_tables},
    {"multicast_refused", multicast_refused},
    {"multicast_full", multicast_full},
    {"peer_twice", peer_twice},
    {"peer_unsupported", peer_unsupported},
    {"pinned_twice", pinned_twice},
};

int main(int count, char **arguments)
{
    for (size_t i = 0; count > 1 && i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (strcmp(arguments[1], cases[i].name) == 0) {
            cases[i].play(count > 2 && strcmp(arguments[2], "healthy") == 0);
            return 0;
        }
    }
    return 2;
}
