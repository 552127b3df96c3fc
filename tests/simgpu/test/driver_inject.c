/* SPDX-License-Identifier: Apache-2.0 */
/* Injected failures, delays and other processes' use. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "driver_test.h"

TEST(inject_nth_every_from_above)
{
    CUdeviceptr memory;
    void *host;
    CUstream stream;
    START_WITH("SIMGPU_FAIL=cuMemAlloc:2:out_of_memory,cuMemAlloc_v2:above=1M:unknown,"
               "cuMemHostAlloc:every/3:invalid_value,cuStreamCreate:from-2:not_permitted,"
               "cudaMalloc:1:invalid_value");
    OK(cuMemAlloc(&memory, 1));
    EXPECT_EQ(cuMemAlloc(&memory, 1), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemAlloc(&memory, 1 * MIB));
    EXPECT_EQ(cuMemAlloc(&memory, 1 * MIB + 1), CUDA_ERROR_UNKNOWN);
    for (int i = 1; i <= 6; i++)
        EXPECT_EQ(cuMemHostAlloc(&host, 1, 0), i % 3 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
    OK(cuStreamCreate(&stream, 0));
    EXPECT_EQ(cuStreamCreate(&stream, 0), CUDA_ERROR_NOT_PERMITTED);
    EXPECT_EQ(cuStreamCreate(&stream, 0), CUDA_ERROR_NOT_PERMITTED);
    EXPECT_EQ(test_used(), 2 * MIB);
}

TEST(inject_call_delay)
{
    CUdeviceptr memory;
    START_WITH("SIMGPU_DELAY=cuMemAlloc:50ms");
    uint64_t start = test_now_ms();
    OK(cuMemAlloc(&memory, 1));
    uint64_t after = test_now_ms();
    EXPECT(after - start >= 50 && after - start < 1000);
    OK(cuMemFree(memory));
    EXPECT(test_now_ms() - after < 40);
}

TEST(inject_other_use)
{
    CUdeviceptr memory;
    START_WITH("SIMGPU_MEMORY=1GiB", "SIMGPU_OTHER=100MiB@0,200MiB@300ms:4711,1GiB@1000s");
    EXPECT_EQ(test_used(), 100 * MIB);
    usleep(400000);
    EXPECT_EQ(test_used(), 300 * MIB);
    EXPECT_EQ(cuMemAlloc(&memory, 425 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemAlloc(&memory, 424 * MIB));
}

TEST(inject_integrated_free_follows_page_cache)
{
    int integrated = 0;
    char path[] = "/tmp/simgpu-cache.XXXXXX";
    static char block[4 << 20];
    START_WITH("SIMGPU_INTEGRATED=1");
    OK(cuDeviceGetAttribute(&integrated, CU_DEVICE_ATTRIBUTE_INTEGRATED, 0));
    EXPECT_EQ(integrated, 1);
    uint64_t before = simgpu_device_used(0);
    int fd = mkstemp(path);
    EXPECT(fd >= 0);
    unlink(path);
    for (int i = 0; i < 32; i++) {
        memset(block, i, sizeof block);
        EXPECT_EQ(write(fd, block, sizeof block), (ssize_t)sizeof block);
    }
    uint64_t after = simgpu_device_used(0);
    close(fd);
    EXPECT(after >= before + 64 * MIB); /* other programs move the cache too: not exact */
}
