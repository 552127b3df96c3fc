/* SPDX-License-Identifier: Apache-2.0 */
/* cuMemAlloc's kind of memory, host memory, managed memory, arrays, copies. */
#include <string.h>
#include <sys/mman.h>

#include "driver_test.h"

TEST(memory_comes_in_chunks)
{
    CUdeviceptr a;
    CUdeviceptr b;
    START();
    OK(cuMemAlloc(&a, 2 * MIB + 1));
    EXPECT_EQ(test_used(), 4 * MIB);
    OK(cuMemAlloc(&b, 2 * MIB));
    EXPECT_EQ(test_used(), 6 * MIB);
    OK(cuMemFree(a));
    EXPECT_EQ(test_used(), 2 * MIB);
    OK(cuMemFree(b));
    EXPECT_EQ(test_used(), 0);
}

TEST(memory_packs_small_requests)
{
    CUdeviceptr pieces[5000];
    START();
    for (int i = 0; i < 4096; i++) { /* exactly one chunk of 512-byte pieces */
        OK(cuMemAlloc(&pieces[i], 500));
        EXPECT_EQ(pieces[i] % 512, 0);
        EXPECT_EQ(test_used(), 2 * MIB);
    }
    OK(cuMemAlloc(&pieces[4096], 1));
    EXPECT_EQ(test_used(), 4 * MIB);
    for (int i = 1; i < 4096; i++)
        OK(cuMemFree(pieces[i]));
    EXPECT_EQ(test_used(), 4 * MIB); /* one live piece keeps its chunk */
    OK(cuMemFree(pieces[0]));
    EXPECT_EQ(test_used(), 2 * MIB);
    OK(cuMemFree(pieces[4096]));
    EXPECT_EQ(test_used(), 0);
}

TEST(memory_addresses_come_again)
{
    CUdeviceptr a;
    CUdeviceptr b;
    START();
    OK(cuMemAlloc(&a, 30 * MIB));
    OK(cuMemFree(a));
    OK(cuMemAlloc(&b, 30 * MIB));
    EXPECT_EQ(a, b);
}

TEST(memory_capacity_is_exact)
{
    CUdeviceptr a;
    CUdeviceptr b;
    START_WITH("SIMGPU_MEMORY=1GiB");
    EXPECT_EQ(cuMemAlloc(&a, 724 * MIB + 1), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemAlloc(&a, 722 * MIB));
    EXPECT_EQ(cuMemAlloc(&b, 2 * MIB + 1), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemAlloc(&b, 1));
    EXPECT_EQ(test_used(), 724 * MIB);
    CUdeviceptr c;
    EXPECT_EQ(cuMemAlloc(&c, 3 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemFree(a));
    OK(cuMemAlloc(&c, 722 * MIB));
}

TEST(memory_wrong_use)
{
    CUdeviceptr a;
    char host[64];
    START();
    EXPECT_EQ(cuMemAlloc(&a, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemAlloc(NULL, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemAlloc(&a, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemFree(0));
    OK(cuMemAlloc(&a, 4096));
    EXPECT_EQ(cuMemFree(a + 512), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(a));
    EXPECT_EQ(cuMemFree(a), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemFree((CUdeviceptr)(uintptr_t)host), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemcpyDtoH(host, a, sizeof host), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAlloc(&a, 32));
    EXPECT_EQ(cuMemcpyHtoD(a, host, 33), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemsetD8(a, 1, 33), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemsetD32(a + 1, 1, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST(memory_holds_bytes)
{
    CUdeviceptr a;
    CUdeviceptr b;
    unsigned char host[300];
    START();
    OK(cuMemAlloc(&a, 8 * MIB));
    OK(cuMemAlloc(&b, 8 * MIB));
    OK(cuMemsetD8(a + 100, 0x5a, 4 * MIB));
    OK(cuMemcpyDtoD(b, a, 8 * MIB)); /* a long copy, of which most holds nothing */
    OK(cuMemcpyDtoH(host, b + 50, sizeof host));
    EXPECT_EQ(host[49], 0);
    EXPECT_EQ(host[50], 0x5a);
    EXPECT_EQ(((unsigned char *)(uintptr_t)b)[4 * MIB + 99], 0x5a);
    EXPECT_EQ(((unsigned char *)(uintptr_t)b)[4 * MIB + 100], 0);
    OK(cuMemsetD8(b, 0, 8 * MIB));
    OK(cuMemcpyDtoH(host, b + 50, sizeof host));
    EXPECT_EQ(host[50], 0);
    OK(cuMemsetD2D8(a, 1000, 7, 10, 3));
    OK(cuMemcpyDtoH(host, a + 2000, 11));
    EXPECT_EQ(host[9], 7);
    EXPECT_EQ(host[10], 0x5a);
}

TEST(memory_of_80_gib_costs_the_host_nothing)
{
    CUdeviceptr a;
    CUdeviceptr b;
    START();
    OK(cuMemAlloc(&a, 39 * GIB));
    OK(cuMemAlloc(&b, 39 * GIB));
    OK(cuMemsetD8(a, 0, 39 * GIB));
    OK(cuMemcpyDtoD(b, a, 39 * GIB));
    ((char *)(uintptr_t)b)[39 * GIB - 1] = 1;
    EXPECT_EQ(test_used(), 78 * GIB);
}

TEST(memory_pitched)
{
    CUdeviceptr a;
    size_t pitch = 0;
    START();
    OK(cuMemAllocPitch(&a, &pitch, 1000, 4096, 4));
    EXPECT_EQ(pitch, 1024);
    EXPECT_EQ(test_used(), 4 * MIB);
    EXPECT_EQ(cuMemAllocPitch(&a, &pitch, 1000, 10, 3), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(a));
}

TEST(memory_address_range_and_attributes)
{
    CUdeviceptr a;
    CUdeviceptr base;
    size_t size = 0;
    unsigned type = 0;
    int ordinal = -1;
    void *host;
    START();
    OK(cuMemAlloc(&a, 1000));
    OK(cuMemGetAddressRange(&base, &size, a + 999));
    EXPECT_EQ(base, a);
    EXPECT_EQ(size, 1000);
    EXPECT_EQ(cuMemGetAddressRange(&base, &size, a + 1000), CUDA_ERROR_NOT_FOUND);
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a));
    EXPECT_EQ(type, CU_MEMORYTYPE_DEVICE);
    OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, a));
    EXPECT_EQ(ordinal, 0);
    OK(cuMemHostAlloc(&host, 100, 0));
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                             (CUdeviceptr)(uintptr_t)host));
    EXPECT_EQ(type, CU_MEMORYTYPE_HOST);
    EXPECT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                    (CUdeviceptr)(uintptr_t)&type),
              CUDA_ERROR_INVALID_VALUE);
    CUpointer_attribute asked = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    void *answers[] = {&type};
    OK(cuPointerGetAttributes(1, &asked, answers, (CUdeviceptr)(uintptr_t)&type));
    EXPECT_EQ(type, 0);
}

TEST(host_memory)
{
    void *a;
    CUdeviceptr device;
    unsigned flags = 0;
    START();
    OK(cuMemHostAlloc(&a, 10000, CU_MEMHOSTALLOC_PORTABLE));
    memset(a, 1, 10000);
    EXPECT_EQ(test_used(), 0);
    OK(cuMemHostGetDevicePointer(&device, a, 0));
    OK(cuMemHostGetFlags(&flags, a));
    EXPECT(flags & CU_MEMHOSTALLOC_PORTABLE);
    EXPECT_EQ(cuMemFree(device), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFreeHost(a));
    EXPECT_EQ(cuMemFreeHost(a), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemHostAlloc(&a, 0, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemHostAlloc(&a, 1, 0x100), CUDA_ERROR_INVALID_VALUE);
}

TEST(host_registration)
{
    char *a = mmap(NULL, 1 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CUdeviceptr device;
    START();
    EXPECT_EQ(cuMemHostGetDevicePointer(&device, a, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemHostRegister(a, 1 * MIB, 0));
    EXPECT_EQ(cuMemHostRegister(a, 1 * MIB, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    EXPECT_EQ(cuMemHostRegister(a + 4096, 10, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    OK(cuMemHostGetDevicePointer(&device, a + 5, 0));
    EXPECT_EQ(device, (uintptr_t)a + 5);
    EXPECT_EQ(cuMemFreeHost(a), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemHostUnregister(a));
    EXPECT_EQ(cuMemHostUnregister(a), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

TEST(managed_memory_costs_what_is_prefetched)
{
    CUdeviceptr a;
    int managed = 0;
    START_WITH("SIMGPU_MEMORY=1GiB");
    OK(cuMemAllocManaged(&a, 2 * GIB, CU_MEM_ATTACH_GLOBAL));
    EXPECT_EQ(test_used(), 0);
    ((char *)(uintptr_t)a)[GIB] = 1;
    OK(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, a));
    EXPECT_EQ(managed, 1);
    CUmemLocation device = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
    CUmemLocation host = {.type = CU_MEM_LOCATION_TYPE_HOST, .id = 0};
    OK(cuMemPrefetchAsync_v2(a, 100 * MIB, device, 0, NULL));
    EXPECT_EQ(test_used(), 100 * MIB);
    OK(cuMemPrefetchAsync_v2(a, 100 * MIB, host, 0, NULL));
    EXPECT_EQ(test_used(), 0);
    EXPECT_EQ(cuMemAllocManaged(&a, 1, 77), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(a));
    EXPECT_EQ(cuMemPrefetchAsync_v2(a, 1, device, 0, NULL), CUDA_ERROR_INVALID_VALUE);
}

TEST(arrays_and_mipmaps)
{
    CUarray array;
    CUarray level;
    CUmipmappedArray mipmap;
    char in[64];
    char out[64] = {0};
    CUDA_ARRAY3D_DESCRIPTOR descriptor = {
        .Width = 1024, .Height = 1024, .Depth = 3, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    START();
    OK(cuArray3DCreate(&array, &descriptor));
    EXPECT_EQ(test_used(), 12 * MIB);
    memset(in, 3, sizeof in);
    OK(cuMemcpyHtoA(array, 128, in, sizeof in));
    OK(cuMemcpyAtoH(out, array, 128, sizeof out));
    EXPECT_EQ(memcmp(in, out, sizeof in), 0);
    EXPECT_EQ(cuMemcpyHtoA(array, 12 * MIB, in, sizeof in), CUDA_ERROR_INVALID_VALUE);
    OK(cuArrayDestroy(array));
    EXPECT_EQ(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(test_used(), 0);
    descriptor.Depth = 0;
    OK(cuMipmappedArrayCreate(&mipmap, &descriptor, 3));
    EXPECT_EQ(test_used(), 6 * MIB); /* 4 + 1 + 0.25 MiB and padding of rows */
    OK(cuMipmappedArrayGetLevel(&level, mipmap, 2));
    OK(cuArray3DGetDescriptor(&descriptor, level));
    EXPECT_EQ(descriptor.Width, 256);
    EXPECT_EQ(cuMipmappedArrayGetLevel(&level, mipmap, 3), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuArrayDestroy(level), CUDA_ERROR_INVALID_HANDLE);
    OK(cuMipmappedArrayDestroy(mipmap));
    EXPECT_EQ(test_used(), 0);
}

TEST(books_list_live_allocations)
{
    CUdeviceptr a;
    char text[65536];
    char wanted[64];
    START();
    OK(cuMemAlloc(&a, 12345));
    EXPECT(simgpu_books_json(text, sizeof text) < sizeof text);
    snprintf(wanted, sizeof wanted, "\"address\":%llu,\"requested_bytes\":12345", a);
    EXPECT(strstr(text, wanted));
    EXPECT(strstr(text, "\"cuMemAlloc\":1"));
    OK(cuMemFree(a));
    simgpu_books_json(text, sizeof text);
    EXPECT(!strstr(text, wanted));
    EXPECT(strstr(text, "\"cuMemFree\":1"));
}
