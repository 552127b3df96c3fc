/* SPDX-License-Identifier: Apache-2.0 */
/* What capture records, and what it forbids. */
#include <pthread.h>

#include "driver_test.h"

/* Forms of calls that changed with CUDA 13. */
#if CUDA_VERSION >= 13000
#define capture_info(stream, status, id) \
    cuStreamGetCaptureInfo(stream, status, id, NULL, NULL, NULL, NULL)
#define count_edges(graph, edges) cuGraphGetEdges(graph, NULL, NULL, NULL, edges)
#else
#define capture_info(stream, status, id) \
    cuStreamGetCaptureInfo(stream, status, id, NULL, NULL, NULL)
#define count_edges(graph, edges) cuGraphGetEdges(graph, NULL, NULL, edges)
#endif

static CUstream new_stream(unsigned flags)
{
    CUstream stream;
    OK(cuStreamCreate(&stream, flags));
    return stream;
}

static CUevent new_event(void)
{
    CUevent event;
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    return event;
}

static CUstreamCaptureStatus status_of(CUstream stream)
{
    CUstreamCaptureStatus status;
    OK(cuStreamIsCapturing(stream, &status));
    return status;
}

TEST(capture_records_instead_of_running)
{
    CUgraph graph;
    CUgraphExec exec;
    CUdeviceptr memory;
    char value = 0;
    size_t nodes = 0;
    START();
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    OK(cuMemAlloc(&memory, 16));
    OK(cuMemsetD8(memory, 1, 16));
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuMemsetD8Async(memory, 2, 16, stream));
    OK(cuMemcpyDtoDAsync(memory + 8, memory, 8, stream));
    EXPECT_EQ(*(volatile char *)(uintptr_t)memory, 1);
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphGetNodes(graph, NULL, &nodes));
    EXPECT_EQ(nodes, 2);
    OK(cuGraphInstantiate(&exec, graph, 0));
    EXPECT_EQ(*(volatile char *)(uintptr_t)memory, 1);
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH(&value, memory + 8, 1));
    EXPECT_EQ(value, 2);
}

TEST(capture_status_and_id)
{
    CUgraph graph;
    CUstreamCaptureStatus status;
    cuuint64_t first = 0;
    cuuint64_t second = 0;
    START();
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    EXPECT_EQ(status_of(stream), CU_STREAM_CAPTURE_STATUS_NONE);
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(capture_info(stream, &status, &first));
    EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED),
              CUDA_ERROR_ILLEGAL_STATE);
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(capture_info(stream, &status, &second));
    EXPECT(first != second);
    OK(cuStreamEndCapture(stream, &graph));
    EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_ILLEGAL_STATE);
    EXPECT(graph == NULL);
}

TEST(capture_spreads_by_events)
{
    CUgraph graph;
    CUdeviceptr memory;
    size_t roots = 0;
    size_t edges = 0;
    START();
    CUstream a = new_stream(CU_STREAM_NON_BLOCKING);
    CUstream b = new_stream(CU_STREAM_NON_BLOCKING);
    CUevent fork = new_event();
    CUevent join = new_event();
    OK(cuMemAlloc(&memory, 16));
    OK(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuMemsetD8Async(memory, 1, 1, a));
    OK(cuEventRecord(fork, a));
    OK(cuStreamWaitEvent(b, fork, 0));
    EXPECT_EQ(status_of(b), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    OK(cuMemsetD8Async(memory + 1, 1, 1, b));
    OK(cuMemsetD8Async(memory + 2, 1, 1, a));
    OK(cuEventRecord(join, b));
    OK(cuStreamWaitEvent(a, join, 0));
    OK(cuMemsetD8Async(memory + 3, 1, 1, a));
    OK(cuStreamEndCapture(a, &graph));
    EXPECT_EQ(status_of(b), CU_STREAM_CAPTURE_STATUS_NONE);
    OK(cuGraphGetRootNodes(graph, NULL, &roots));
    EXPECT_EQ(roots, 1);
    OK(count_edges(graph, &edges));
    EXPECT_EQ(edges, 4);
}

TEST(capture_unjoined)
{
    CUgraph graph;
    CUdeviceptr memory;
    START();
    CUstream a = new_stream(CU_STREAM_NON_BLOCKING);
    CUstream b = new_stream(CU_STREAM_NON_BLOCKING);
    CUevent fork = new_event();
    OK(cuMemAlloc(&memory, 16));
    OK(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuEventRecord(fork, a));
    OK(cuStreamWaitEvent(b, fork, 0));
    OK(cuMemsetD8Async(memory, 1, 1, b));
    EXPECT_EQ(cuStreamEndCapture(a, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    EXPECT(graph == NULL);
    EXPECT_EQ(status_of(b), CU_STREAM_CAPTURE_STATUS_NONE);
}

TEST(capture_forbids_unsafe_calls)
{
    CUgraph graph;
    CUdeviceptr memory;
    START();
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT_EQ(cuMemAlloc(&memory, 1), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_EQ(status_of(stream), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    EXPECT_EQ(cuLaunchHostFunc(stream, free, NULL), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    OK(cuMemAlloc(&memory, 1));
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    OK(cuMemFree(memory));
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

static void *allocate_elsewhere(void *result)
{
    CUcontext context;
    CUdeviceptr memory;
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    *(CUresult *)result = cuMemAlloc(&memory, 1);
    return NULL;
}

static CUresult in_other_thread(void)
{
    pthread_t thread;
    CUresult result = CUDA_SUCCESS;
    EXPECT_EQ(pthread_create(&thread, NULL, allocate_elsewhere, &result), 0);
    pthread_join(thread, NULL);
    return result;
}

TEST(capture_modes_between_threads)
{
    CUgraph graph;
    START();
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT_EQ(in_other_thread(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    OK(in_other_thread());
    OK(cuStreamEndCapture(stream, &graph));
}

TEST(capture_and_the_legacy_stream)
{
    CUgraph graph;
    CUdeviceptr memory;
    START();
    CUstream blocking = new_stream(0);
    OK(cuMemAlloc(&memory, 1));
    EXPECT_EQ(cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL),
              CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    OK(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT_EQ(cuMemsetD8Async(memory, 1, 1, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    EXPECT_EQ(cuStreamEndCapture(blocking, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CUstream free_one = new_stream(CU_STREAM_NON_BLOCKING);
    OK(cuStreamBeginCapture(free_one, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuMemsetD8Async(memory, 1, 1, NULL));
    OK(cuStreamEndCapture(free_one, &graph));
}

TEST(capture_events_cross_no_border)
{
    CUgraph graph;
    START();
    CUstream a = new_stream(CU_STREAM_NON_BLOCKING);
    CUstream b = new_stream(CU_STREAM_NON_BLOCKING);
    CUevent outside = new_event();
    CUevent inside = new_event();
    OK(cuEventRecord(outside, b));
    OK(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuEventRecord(inside, a));
    EXPECT_EQ(cuStreamWaitEvent(a, outside, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    EXPECT_EQ(cuStreamEndCapture(a, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(cuEventQuery(inside), CUDA_ERROR_CAPTURED_EVENT);
    OK(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuStreamBeginCapture(b, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuEventRecord(inside, a));
    EXPECT_EQ(cuStreamWaitEvent(b, inside, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
    EXPECT_EQ(cuStreamEndCapture(a, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(cuStreamEndCapture(b, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

static void *end_elsewhere(void *stream)
{
    CUgraph graph;
    CUcontext context;
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    return NULL;
}

TEST(capture_ends_where_it_began)
{
    CUgraph graph;
    pthread_t thread;
    START();
    CUstream a = new_stream(CU_STREAM_NON_BLOCKING);
    CUstream b = new_stream(CU_STREAM_NON_BLOCKING);
    CUevent fork = new_event();
    OK(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT_EQ(pthread_create(&thread, NULL, end_elsewhere, a), 0);
    pthread_join(thread, NULL);
    OK(cuEventRecord(fork, a));
    OK(cuStreamWaitEvent(b, fork, 0));
    EXPECT_EQ(cuStreamEndCapture(b, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    EXPECT_EQ(cuStreamEndCapture(a, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}
