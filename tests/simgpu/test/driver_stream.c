/* SPDX-License-Identifier: Apache-2.0 */
/* Order in and between streams, events, delays. */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "driver_test.h"

static atomic_int steps[4];
static atomic_int next_step;

static void CUDA_CB note_step(void *which)
{
    usleep(20000);
    steps[(intptr_t)which] = ++next_step;
}

TEST(stream_events_complete_at_once_without_delay)
{
    CUevent event;
    START();
    OK(cuEventCreate(&event, 0));
    OK(cuEventQuery(event)); /* never recorded counts as complete */
    OK(cuEventRecord(event, NULL));
    OK(cuEventQuery(event));
    OK(cuEventDestroy(event));
    EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(cuEventCreate(&event, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
}

TEST(stream_events_take_the_delay)
{
    CUevent a;
    CUevent b;
    CUstream stream;
    float elapsed = -1;
    START_WITH("SIMGPU_DELAY=events:100ms");
    OK(cuEventCreate(&a, 0));
    OK(cuEventCreate(&b, 0));
    OK(cuStreamCreate(&stream, 0));
    uint64_t start = test_now_ms();
    OK(cuEventRecord(a, stream));
    EXPECT_EQ(cuEventQuery(a), CUDA_ERROR_NOT_READY);
    EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    EXPECT_EQ(cuEventElapsedTime(&elapsed, a, a), CUDA_ERROR_NOT_READY);
    usleep(30000);
    OK(cuEventRecord(b, stream));
    OK(cuEventSynchronize(a));
    EXPECT(test_now_ms() - start >= 99);
    EXPECT_EQ(cuEventQuery(b), CUDA_ERROR_NOT_READY);
    OK(cuStreamSynchronize(stream));
    OK(cuEventQuery(b));
    OK(cuEventElapsedTime(&elapsed, a, b));
    EXPECT(elapsed >= 10 && elapsed < 1000);
    EXPECT_EQ(cuEventElapsedTime(&elapsed, a, (CUevent)&b), CUDA_ERROR_INVALID_HANDLE);
}

TEST(stream_host_functions_run_in_order_elsewhere)
{
    CUstream stream;
    START();
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (intptr_t i = 0; i < 3; i++)
        OK(cuLaunchHostFunc(stream, note_step, (void *)i));
    EXPECT_EQ(steps[2], 0); /* did not run in the call */
    EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    OK(cuStreamSynchronize(stream));
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(steps[i], i + 1);
}

static void CUDA_CB wait_for_flag(void *flag)
{
    while (!*(atomic_int *)flag)
        usleep(1000);
}

TEST(stream_work_behind_a_host_function_waits)
{
    static atomic_int flag;
    CUstream one;
    CUstream other;
    CUevent event;
    CUdeviceptr memory;
    char value = 7;
    START();
    OK(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, 0));
    OK(cuMemAlloc(&memory, 1));
    OK(cuLaunchHostFunc(one, wait_for_flag, &flag));
    OK(cuMemsetD8Async(memory, 1, 1, one));
    OK(cuEventRecord(event, one));
    OK(cuStreamWaitEvent(other, event, 0));
    OK(cuMemcpyDtoHAsync(&value, memory, 1, other));
    usleep(20000);
    EXPECT_EQ(*(volatile char *)&value, 7);
    EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    flag = 1;
    OK(cuStreamSynchronize(other));
    EXPECT_EQ(*(volatile char *)&value, 1);
}

TEST(stream_legacy_waits_for_blocking_streams)
{
    static atomic_int flag;
    CUstream blocking;
    CUstream free_one;
    START();
    OK(cuStreamCreate(&blocking, 0));
    OK(cuStreamCreate(&free_one, CU_STREAM_NON_BLOCKING));
    OK(cuLaunchHostFunc(blocking, wait_for_flag, &flag));
    OK(cuLaunchHostFunc(NULL, note_step, (void *)0));
    EXPECT_EQ(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
    OK(cuStreamQuery(free_one));
    flag = 1;
    OK(cuCtxSynchronize());
    EXPECT_EQ(steps[0], 1);
}

TEST(stream_waits_for_values)
{
    CUdeviceptr memory;
    CUstream one;
    CUstream other;
    unsigned value = 0;
    START();
    OK(cuMemAlloc(&memory, 8));
    OK(cuMemsetD32(memory, 0, 2));
    OK(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    OK(cuStreamWaitValue32(one, memory, 5, CU_STREAM_WAIT_VALUE_GEQ));
    OK(cuMemsetD32Async(memory + 4, 9, 1, one));
    EXPECT_EQ(cuStreamQuery(one), CUDA_ERROR_NOT_READY);
    OK(cuStreamWriteValue32(other, memory, 6, 0));
    OK(cuStreamSynchronize(one));
    OK(cuMemcpyDtoH(&value, memory + 4, 4));
    EXPECT_EQ(value, 9);
    EXPECT_EQ(cuStreamWriteValue32(one, memory + 2, 1, 0), CUDA_ERROR_INVALID_VALUE);
}

static void *own_default_stream(void *id)
{
    CUcontext context;
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    OK(cuStreamGetId(CU_STREAM_PER_THREAD, id));
    return NULL;
}

TEST(stream_per_thread_default)
{
    unsigned long long ids[2] = {0, 0};
    unsigned long long legacy = 0;
    pthread_t thread;
    START();
    own_default_stream(&ids[0]);
    EXPECT_EQ(pthread_create(&thread, NULL, own_default_stream, &ids[1]), 0);
    pthread_join(thread, NULL);
    OK(cuStreamGetId(NULL, &legacy));
    EXPECT(ids[0] != ids[1] && ids[0] != legacy);
}

TEST(stream_properties)
{
    CUstream stream;
    int priority = 1;
    unsigned flags = 99;
    START();
    OK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -100));
    OK(cuStreamGetPriority(stream, &priority));
    EXPECT_EQ(priority, -5);
    OK(cuStreamGetFlags(stream, &flags));
    EXPECT_EQ(flags, CU_STREAM_NON_BLOCKING);
    EXPECT_EQ(cuStreamCreate(&stream, 8), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuStreamSynchronize((CUstream)&flags), CUDA_ERROR_INVALID_HANDLE);
}
