/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many threads over every kind of memory at once; at each barrier, with nobody
 * inside a call, the first thread logs what the simulated device says is used.
 * Usage: barriers LOG THREADS ROUNDS [PAUSE_MS CALLS PID_FILE]. Half the threads use
 * the driver's blocks, the others virtual memory or stream-ordered memory, on two
 * devices, CALLS (40) calls a round. With a pause the first thread gives the collector
 * time to tell of what was lost; PID_FILE, awaited, names the collector, which is
 * stopped while the calls are made, so that a small ring must lose some.
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>

#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>

#include "call_log.h"
#include "driver.h"

enum { MAX_THREADS = 16, KEPT = 8, DEVICES = CALL_LOG_DEVICES };

#define BARRIER_NAMES(X)   \
    X(cuMemAllocAsync)     \
    X(cuMemFreeAsync)      \
    X(cuStreamCreate)      \
    X(cuStreamSynchronize) \
    X(cuMemAddressReserve) \
    X(cuMemAddressFree)    \
    X(cuMemCreate)         \
    X(cuMemRelease)        \
    X(cuMemMap)            \
    X(cuMemUnmap)

#define BARRIER_POINTER(name) __typeof__(name) *name;
static struct {
    BARRIER_NAMES(BARRIER_POINTER)
} api;

static struct {
    struct driver driver;
    void *contexts[DEVICES];
    pthread_barrier_t barrier;
    unsigned rounds, pause_ms, calls;
    pid_t collector; /* 0: let it run */
} shared;

struct worker {
    unsigned index;
    int device;
    uint64_t random;
    CUstream stream;
    struct {
        CUdeviceptr address;
        size_t bytes;
    } kept[KEPT];
};

static size_t random_size(struct worker *worker)
{
    worker->random = worker->random * 6364136223846793005U + 1442695040888963407U;
    return 4096 + (size_t)(worker->random >> 40) % (3U << 20);
}

static void use_blocks(struct worker *worker, unsigned slot)
{
    CUdeviceptr *address = &worker->kept[slot].address;
    if (*address != 0) {
        driver_check((int)shared.driver.release(*address), "cuMemFree_v2");
        *address = 0;
    } else {
        *address = (CUdeviceptr)driver_alloc(&shared.driver, random_size(worker));
    }
}

static void use_streams(struct worker *worker, unsigned slot)
{
    CUdeviceptr *address = &worker->kept[slot].address;
    if (*address != 0) {
        driver_check((int)api.cuMemFreeAsync(*address, worker->stream), "cuMemFreeAsync");
        *address = 0;
    } else {
        driver_check((int)api.cuMemAllocAsync(address, random_size(worker), worker->stream),
                     "cuMemAllocAsync");
    }
}

static void map(struct worker *worker, unsigned slot)
{
    CUmemAllocationProp props = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = worker->device}};
    CUmemGenericAllocationHandle handle = 0;
    size_t bytes = (1 + random_size(worker) % 3) << 21;
    CUdeviceptr address = 0;
    driver_check((int)api.cuMemAddressReserve(&address, bytes, 0, 0, 0), "cuMemAddressReserve");
    driver_check((int)api.cuMemCreate(&handle, bytes, &props, 0), "cuMemCreate");
    driver_check((int)api.cuMemMap(address, bytes, 0, handle, 0), "cuMemMap");
    driver_check((int)api.cuMemRelease(handle), "cuMemRelease");
    worker->kept[slot].address = address;
    worker->kept[slot].bytes = bytes;
}

static void use_mappings(struct worker *worker, unsigned slot)
{
    CUdeviceptr address = worker->kept[slot].address;
    if (address == 0) {
        map(worker, slot);
        return;
    }
    driver_check((int)api.cuMemUnmap(address, worker->kept[slot].bytes), "cuMemUnmap");
    driver_check((int)api.cuMemAddressFree(address, worker->kept[slot].bytes), "cuMemAddressFree");
    worker->kept[slot].address = 0;
}

static void one_round(struct worker *worker)
{
    static void (*const uses[])(struct worker *, unsigned) = {use_blocks, use_mappings, use_blocks,
                                                              use_streams};
    for (unsigned i = 0; i < shared.calls; i++)
        uses[worker->index % 4](worker, (unsigned)random_size(worker) % KEPT);
    if (worker->stream != NULL)
        driver_check((int)api.cuStreamSynchronize(worker->stream), "cuStreamSynchronize");
}

/* Waiting for a stream gives a pool's memory back, and is no hooked call: asking is one. */
static void ask(const struct worker *worker)
{
    size_t free_bytes, total;
    for (int device = 0; device < DEVICES; device++) {
        driver_check(shared.driver.context_set(shared.contexts[device]), "cuCtxSetCurrent");
        driver_check(shared.driver.mem_info(&free_bytes, &total), "cuMemGetInfo");
    }
    driver_check(shared.driver.context_set(shared.contexts[worker->device]), "cuCtxSetCurrent");
}

static void signal_collector(int number)
{
    if (shared.collector != 0 && kill(shared.collector, number) != 0) {
        perror("the collector");
        exit(3);
    }
}

/* The file appears whole, once somebody has found the collector. */
static pid_t read_pid(const char *path)
{
    FILE *file;
    int pid = 0;
    for (int tries = 0; (file = fopen(path, "r")) == NULL && tries < 30000; tries++)
        usleep(1000);
    if (file == NULL || fscanf(file, "%d", &pid) != 1 || pid <= 1)
        exit(2);
    fclose(file);
    return pid;
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    driver_check(shared.driver.context_set(shared.contexts[worker->device]), "cuCtxSetCurrent");
    if (worker->index % 4 == 3)
        driver_check((int)api.cuStreamCreate(&worker->stream, CU_STREAM_NON_BLOCKING), "stream");
    for (unsigned round = 0; round < shared.rounds; round++) {
        if (worker->index == 0)
            signal_collector(SIGSTOP);
        pthread_barrier_wait(&shared.barrier);
        one_round(worker);
        pthread_barrier_wait(&shared.barrier);
        if (worker->index == 0) {
            signal_collector(SIGCONT);
            usleep(shared.pause_ms * 1000);
            ask(worker);
            call_logged("barrier", 0);
        }
        pthread_barrier_wait(&shared.barrier);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static struct worker workers[MAX_THREADS];
    pthread_t threads[MAX_THREADS];
    if (argc < 4)
        return 2;
    unsigned count = (unsigned)strtoul(argv[2], NULL, 10);
    shared.rounds = (unsigned)strtoul(argv[3], NULL, 10);
    shared.pause_ms = argc > 4 ? (unsigned)strtoul(argv[4], NULL, 10) : 0;
    shared.calls = argc > 5 ? (unsigned)strtoul(argv[5], NULL, 10) : 40;
    if (count < 1 || count > MAX_THREADS)
        return 2;
    call_log_open(argv[1], DEVICES);
    shared.driver = driver_open();
#define BARRIER_FIND(name) *(void **)&api.name = driver_need(shared.driver.library, #name);
    BARRIER_NAMES(BARRIER_FIND)
    driver_start(&shared.driver);
    for (int device = 0; device < DEVICES; device++)
        driver_check(shared.driver.context_retain(&shared.contexts[device], device), "retain");
    if (argc > 6)
        shared.collector = read_pid(argv[6]);
    pthread_barrier_init(&shared.barrier, NULL, count);
    for (unsigned i = 0; i < count; i++) {
        workers[i] = (struct worker){.index = i, .device = (int)(i / 4) % DEVICES, .random = i + 7};
        if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0)
            return 3;
    }
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    call_log_close();
    return 0;
}
