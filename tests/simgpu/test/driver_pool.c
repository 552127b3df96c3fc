/* SPDX-License-Identifier: Apache-2.0 */
/* Stream-ordered allocation. */
#include "driver_test.h"

static cuuint64_t attribute(CUmemoryPool pool, CUmemPool_attribute which)
{
    cuuint64_t value = 0;
    OK(cuMemPoolGetAttribute(pool, which, &value));
    return value;
}

TEST(pool_keeps_until_synchronisation)
{
    CUdeviceptr a;
    CUmemoryPool pool;
    START();
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    OK(cuMemAllocAsync(&a, 5 * MIB, NULL));
    EXPECT_EQ(test_used(), 6 * MIB);
    EXPECT_EQ(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 5 * MIB);
    EXPECT_EQ(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 6 * MIB);
    OK(cuMemFreeAsync(a, NULL));
    EXPECT_EQ(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
    EXPECT_EQ(test_used(), 6 * MIB);
    OK(cuStreamSynchronize(NULL));
    EXPECT_EQ(test_used(), 0);
    EXPECT_EQ(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 5 * MIB);
    EXPECT_EQ(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 6 * MIB);
    cuuint64_t zero = 0;
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
    EXPECT_EQ(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 0);
}

TEST(pool_threshold_and_trim)
{
    CUdeviceptr memory[4];
    CUmemoryPool pool;
    cuuint64_t threshold = 20 * MIB;
    START();
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    for (int i = 0; i < 4; i++)
        OK(cuMemAllocAsync(&memory[i], 10 * MIB, NULL));
    EXPECT_EQ(test_used(), 40 * MIB);
    for (int i = 0; i < 3; i++)
        OK(cuMemFreeAsync(memory[i], NULL));
    OK(cuCtxSynchronize());
    EXPECT_EQ(test_used(), 20 * MIB);
    OK(cuMemPoolTrimTo(pool, 12 * MIB));
    EXPECT_EQ(test_used(), 12 * MIB);
    OK(cuMemPoolTrimTo(pool, 0));
    EXPECT_EQ(test_used(), 10 * MIB); /* what is in use stays */
    OK(cuMemFree(memory[3]));
    EXPECT_EQ(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
}

TEST(pool_reuses_addresses)
{
    CUdeviceptr a;
    CUdeviceptr b;
    START();
    OK(cuMemAllocAsync(&a, 3 * MIB, NULL));
    OK(cuMemFreeAsync(a, NULL));
    OK(cuMemAllocAsync(&b, 3 * MIB, NULL));
    EXPECT_EQ(a, b);
    EXPECT_EQ(test_used(), 4 * MIB);
}

TEST(pool_wrong_use)
{
    CUdeviceptr a;
    CUdeviceptr plain;
    CUmemoryPool pool;
    cuuint64_t one = 1;
    START();
    EXPECT_EQ(cuMemAllocAsync(&a, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAllocAsync(&a, 100, NULL));
    OK(cuMemFreeAsync(a, NULL));
    EXPECT_EQ(cuMemFreeAsync(a, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemFree(a), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAlloc(&plain, 100));
    EXPECT_EQ(cuMemFreeAsync(plain, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    EXPECT_EQ(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &one),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &one),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemAllocFromPoolAsync(&a, 1, (CUmemoryPool)&one, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemAllocAsync(&a, 1, (CUstream)&one), CUDA_ERROR_INVALID_HANDLE);
}

TEST(pool_of_its_own)
{
    CUdeviceptr a;
    CUmemoryPool pool;
    CUmemoryPool current;
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                            .maxSize = 8 * MIB};
    START();
    OK(cuMemPoolCreate(&pool, &props));
    OK(cuDeviceSetMemPool(0, pool));
    OK(cuDeviceGetMemPool(&current, 0));
    EXPECT(current == pool);
    OK(cuMemAllocAsync(&a, 8 * MIB, NULL));
    CUdeviceptr b;
    EXPECT_EQ(cuMemAllocAsync(&b, 1, NULL), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 8 * MIB);
    OK(cuMemPoolDestroy(pool));
    EXPECT_EQ(cuMemPoolTrimTo(pool, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuDeviceGetMemPool(&current, 0));
    EXPECT(current != pool);
    EXPECT_EQ(test_used(), 8 * MIB); /* goes with its last allocation */
    OK(cuMemFreeAsync(a, NULL));
    EXPECT_EQ(test_used(), 0);
}

TEST(pool_frees_in_stream_order)
{
    CUdeviceptr a;
    CUdeviceptr b;
    CUstream one;
    CUstream other;
    CUevent event;
    CUmemoryPool pool;
    START_WITH("SIMGPU_DELAY=events:150ms");
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    OK(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, 0));
    OK(cuMemAllocAsync(&a, 2 * MIB, one));
    OK(cuEventRecord(event, one)); /* the stream is busy for 150 ms */
    OK(cuMemFreeAsync(a, one));
    EXPECT_EQ(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 2 * MIB);
    OK(cuMemAllocAsync(&b, 2 * MIB, other));
    EXPECT(b != a); /* another stream must not have it yet */
    EXPECT_EQ(test_used(), 4 * MIB);
    CUdeviceptr c;
    OK(cuMemAllocAsync(&c, 2 * MIB, one));
    EXPECT_EQ(c, a); /* its own stream may */
    OK(cuMemFreeAsync(c, one));
    OK(cuStreamSynchronize(one));
    EXPECT_EQ(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 2 * MIB);
    EXPECT_EQ(test_used(), 2 * MIB);
}

TEST(pool_access)
{
    CUmemoryPool pool;
    CUmemAccess_flags flags;
    CUmemLocation other = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1};
    CUmemAccessDesc grant = {.location = other, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    START_WITH("SIMGPU_DEVICES=2");
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    OK(cuMemPoolGetAccess(&flags, pool, &other));
    EXPECT_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    OK(cuMemPoolSetAccess(pool, &grant, 1));
    OK(cuMemPoolGetAccess(&flags, pool, &other));
    EXPECT_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    grant.location.id = 0;
    grant.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    EXPECT_EQ(cuMemPoolSetAccess(pool, &grant, 1), CUDA_ERROR_INVALID_DEVICE);
}
