/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: cost, life, stacks, limits, peers. */
#include "driver_test.h"

#undef cuCtxCreate
CUresult cuCtxCreate_v2(CUcontext *, unsigned, CUdevice);

TEST(context_costs_on_first_use)
{
    CUcontext first;
    CUcontext second;
    unsigned flags;
    int active = -1;
    test_init((const char *const[]){"SIMGPU_CONTEXT=123MiB", NULL});
    EXPECT_EQ(simgpu_device_used(0), 0);
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    EXPECT_EQ(active, 0);
    OK(cuDevicePrimaryCtxRetain(&first, 0));
    OK(cuDevicePrimaryCtxRetain(&second, 0));
    EXPECT(first == second);
    EXPECT_EQ(simgpu_device_used(0), 123 * MIB);
    OK(cuCtxCreate_v2(&second, 0, 0));
    EXPECT_EQ(simgpu_device_used(0), 246 * MIB);
    OK(cuCtxDestroy(second));
    OK(cuDevicePrimaryCtxRelease(0));
    EXPECT_EQ(simgpu_device_used(0), 123 * MIB);
    OK(cuDevicePrimaryCtxRelease(0));
    EXPECT_EQ(simgpu_device_used(0), 0);
    EXPECT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
}

TEST(context_without_room)
{
    CUcontext context;
    test_init((const char *const[]){"SIMGPU_MEMORY=200MiB", NULL});
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST(context_end_frees_all)
{
    CUdeviceptr memory;
    CUstream stream;
    START_WITH("SIMGPU_STREAM=5MiB", "SIMGPU_MODULE=7MiB");
    CUmodule module;
    OK(cuMemAlloc(&memory, 10 * MIB));
    OK(cuMemAlloc(&memory, 100));
    OK(cuMemAllocAsync(&memory, 100, NULL));
    OK(cuStreamCreate(&stream, 0));
    OK(cuModuleLoadData(&module, "image"));
    EXPECT_EQ(test_used(), (10 + 2 + 2 + 5 + 7) * MIB);
    OK(cuDevicePrimaryCtxReset(0));
    EXPECT_EQ(simgpu_device_used(0), 0);
    EXPECT_EQ(cuMemAlloc(&memory, 100), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CUcontext context;
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuMemAlloc(&memory, 100));
    EXPECT_EQ(test_used(), 2 * MIB);
}

TEST(context_stack)
{
    CUcontext primary;
    CUcontext a;
    CUcontext b;
    CUcontext current;
    CUdeviceptr memory;
    test_init((const char *const[]){"SIMGPU_DEVICES=2", NULL});
    EXPECT_EQ(cuMemAlloc(&memory, 1), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuCtxCreate_v2(&a, 0, 0));
    OK(cuCtxCreate_v2(&b, 0, 1));
    CUdevice device = -1;
    OK(cuCtxGetDevice(&device));
    EXPECT_EQ(device, 1);
    OK(cuCtxPopCurrent(&current));
    EXPECT(current == b);
    OK(cuCtxGetCurrent(&current));
    EXPECT(current == a);
    OK(cuCtxPushCurrent(b));
    OK(cuCtxDestroy(b));
    OK(cuCtxGetCurrent(&current));
    EXPECT(current == a);
    EXPECT_EQ(cuCtxPushCurrent(b), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuCtxDestroy((CUcontext)&device), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuDevicePrimaryCtxRetain(&primary, 0));
    EXPECT_EQ(cuCtxDestroy(primary), CUDA_ERROR_INVALID_CONTEXT);
}

TEST(context_stack_limit_costs_local_memory)
{
    size_t value = 0;
    CUmodule module;
    CUfunction kernel;
    START_WITH("SIMGPU_MEMORY=8GiB");
    OK(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    EXPECT_EQ(value, 1024);
    OK(cuModuleLoadData(&module, "kernels"));
    OK(cuModuleGetFunction(&kernel, module, "kernel"));
    OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 8192));
    EXPECT_EQ(test_used(), 0);
    OK(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    EXPECT_EQ(test_used(), (8192 - 1024) * (size_t)108 * 2048);
    OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024));
    EXPECT_EQ(test_used(), 0);
    OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 200 * KIB));
    EXPECT_EQ(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
              CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(cuCtxGetLimit(&value, (CUlimit)77), CUDA_ERROR_UNSUPPORTED_LIMIT);
}

TEST(context_peers)
{
    CUcontext contexts[2];
    int can = 0;
    test_init((const char *const[]){"SIMGPU_DEVICES=2", NULL});
    OK(cuDevicePrimaryCtxRetain(&contexts[0], 0));
    OK(cuDevicePrimaryCtxRetain(&contexts[1], 1));
    OK(cuCtxSetCurrent(contexts[0]));
    OK(cuDeviceCanAccessPeer(&can, 0, 1));
    EXPECT_EQ(can, 1);
    OK(cuDeviceCanAccessPeer(&can, 0, 0));
    EXPECT_EQ(can, 0);
    OK(cuCtxEnablePeerAccess(contexts[1], 0));
    EXPECT_EQ(cuCtxEnablePeerAccess(contexts[1], 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    OK(cuCtxDisablePeerAccess(contexts[1]));
    EXPECT_EQ(cuCtxDisablePeerAccess(contexts[1]), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    EXPECT_EQ(cuCtxEnablePeerAccess(contexts[0], 0), CUDA_ERROR_INVALID_CONTEXT);
}

TEST(context_costs_of_modules_and_streams)
{
    CUmodule modules[3];
    CUstream streams[4];
    START_WITH("SIMGPU_MODULE=3MiB", "SIMGPU_STREAM=2MiB");
    for (int i = 0; i < 3; i++)
        OK(cuModuleLoadData(&modules[i], "image"));
    EXPECT_EQ(test_used(), 9 * MIB);
    for (int i = 0; i < 4; i++)
        OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    EXPECT_EQ(test_used(), 17 * MIB);
    OK(cuModuleUnload(modules[1]));
    EXPECT_EQ(cuModuleUnload(modules[1]), CUDA_ERROR_INVALID_HANDLE);
    OK(cuStreamDestroy(streams[0]));
    EXPECT_EQ(cuStreamDestroy(streams[0]), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(test_used(), 12 * MIB);
    CUlibrary library;
    CUkernel kernel;
    CUfunction function;
    OK(cuLibraryLoadData(&library, "image", NULL, NULL, 0, NULL, NULL, 0));
    EXPECT_EQ(test_used(), 15 * MIB);
    OK(cuLibraryGetKernel(&kernel, library, "f"));
    OK(cuKernelGetFunction(&function, kernel));
    OK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
    EXPECT_EQ(cuLaunchKernel(function, 0, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuLaunchKernel(function, 1, 1, 1, 1025, 1, 1, 0, NULL, NULL, NULL),
              CUDA_ERROR_INVALID_VALUE);
    OK(cuLibraryUnload(library));
    EXPECT_EQ(test_used(), 12 * MIB);
}
