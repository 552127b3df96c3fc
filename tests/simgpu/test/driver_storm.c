/* SPDX-License-Identifier: Apache-2.0 */
/* Eight threads at once; afterwards the books are even. Also the pace of a lone pair of calls. */
#include <pthread.h>

#include "driver_test.h"

#define THREADS 8
#define ROUNDS 4000
#define LIVE 32

static unsigned next_random(unsigned *state)
{
    *state = *state * 1664525U + 1013904223U;
    return *state >> 8;
}

static CUdeviceptr make(unsigned kind, size_t bytes, CUstream stream)
{
    CUdeviceptr memory = 0;
    void *host = NULL;
    switch (kind) {
    case 0:
        OK(cuMemAlloc(&memory, bytes));
        break;
    case 1:
        OK(cuMemAllocAsync(&memory, bytes, stream));
        break;
    default:
        OK(cuMemHostAlloc(&host, bytes, 0));
        memory = (CUdeviceptr)(uintptr_t)host;
    }
    return memory;
}

static void drop(unsigned kind, CUdeviceptr memory, CUstream stream)
{
    if (kind == 0)
        OK(cuMemFree(memory));
    else if (kind == 1)
        OK(cuMemFreeAsync(memory, stream));
    else
        OK(cuMemFreeHost((void *)(uintptr_t)memory));
}

static void *work(void *seed)
{
    unsigned state = (unsigned)(uintptr_t)seed;
    CUdeviceptr live[LIVE] = {0};
    CUcontext context;
    CUstream stream;
    CUevent event;
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, 0));
    for (int i = 0; i < ROUNDS; i++) {
        unsigned slot = next_random(&state) % LIVE;
        if (live[slot]) {
            drop(slot % 3, live[slot], stream);
            live[slot] = 0;
        } else {
            live[slot] = make(slot % 3, next_random(&state) % (5 * MIB) + 1, stream);
        }
        if (i % 64 == 0) {
            OK(cuEventRecord(event, stream));
            OK(cuEventSynchronize(event));
        }
    }
    for (unsigned slot = 0; slot < LIVE; slot++)
        if (live[slot])
            drop(slot % 3, live[slot], stream);
    OK(cuStreamSynchronize(stream));
    OK(cuStreamDestroy(stream));
    OK(cuEventDestroy(event));
    OK(cuDevicePrimaryCtxRelease(0));
    return NULL;
}

static void storm(void)
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        EXPECT_EQ(pthread_create(&threads[i], NULL, work, (void *)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    OK(cuCtxSynchronize());
    EXPECT_EQ(test_used(), 0);
}

TEST(storm_of_eight_threads)
{
    START();
    storm();
}

TEST(storm_with_delays)
{
    START_WITH("SIMGPU_DELAY=events:200us");
    storm();
}

static void *pull(void *unused)
{
    CUcontext context;
    (void)unused;
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    for (int i = 0; i < 300; i++) {
        CUgraph graph;
        CUgraphExec exec;
        CUstream stream;
        CUdeviceptr memory;
        OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        OK(cuMemAllocAsync(&memory, 1000, stream));
        OK(cuMemsetD8Async(memory, 1, 1000, stream));
        OK(cuMemFreeAsync(memory, stream));
        OK(cuStreamEndCapture(stream, &graph));
        OK(cuGraphInstantiate(&exec, graph, 0));
        OK(cuGraphLaunch(exec, stream));
        OK(cuStreamSynchronize(stream));
        OK(cuGraphExecDestroy(exec));
        OK(cuGraphDestroy(graph));
        OK(cuStreamDestroy(stream));
    }
    return NULL;
}

TEST(storm_of_graphs)
{
    pthread_t threads[THREADS];
    START_WITH("SIMGPU_GRAPH_NODE=1K");
    for (int i = 0; i < THREADS; i++)
        EXPECT_EQ(pthread_create(&threads[i], NULL, pull, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    OK(cuDeviceGraphMemTrim(0));
    EXPECT_EQ(test_used(), 0);
}
