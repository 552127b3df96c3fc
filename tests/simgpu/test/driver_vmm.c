/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory management. */
#include <string.h>
#include <unistd.h>

#include "driver_test.h"

static const CUmemAllocationProp on_device = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                              .requestedHandleTypes =
                                                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                              .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};

static const CUmemAccessDesc may_write = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                                          .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

TEST(vmm_use_follows_physical_memory)
{
    CUmemGenericAllocationHandle handle;
    CUdeviceptr range;
    size_t granularity = 0;
    START();
    OK(cuMemGetAllocationGranularity(&granularity, &on_device, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    EXPECT_EQ(granularity, 2 * MIB);
    OK(cuMemAddressReserve(&range, 64 * GIB, 0, 0, 0));
    EXPECT_EQ(test_used(), 0);
    OK(cuMemCreate(&handle, 20 * MIB, &on_device, 0));
    EXPECT_EQ(test_used(), 20 * MIB);
    OK(cuMemMap(range, 20 * MIB, 0, handle, 0));
    EXPECT_EQ(test_used(), 20 * MIB);
    OK(cuMemSetAccess(range, 20 * MIB, &may_write, 1));
    memset((void *)(uintptr_t)range, 5, 20 * MIB);
    OK(cuMemUnmap(range, 20 * MIB));
    EXPECT_EQ(test_used(), 20 * MIB);
    OK(cuMemMap(range + 4 * GIB, 20 * MIB, 0, handle, 0));
    OK(cuMemSetAccess(range + 4 * GIB, 20 * MIB, &may_write, 1));
    EXPECT_EQ(((char *)(uintptr_t)range)[4 * GIB + 20 * MIB - 1], 5);
    OK(cuMemRelease(handle));
    EXPECT_EQ(test_used(), 20 * MIB); /* lives until the last unmap */
    OK(cuMemUnmap(range + 4 * GIB, 20 * MIB));
    EXPECT_EQ(test_used(), 0);
    OK(cuMemAddressFree(range, 64 * GIB));
}

TEST(vmm_handles_are_counted)
{
    CUmemGenericAllocationHandle handle;
    CUmemGenericAllocationHandle again;
    CUdeviceptr range;
    START();
    OK(cuMemAddressReserve(&range, 4 * MIB, 0, 0, 0));
    OK(cuMemCreate(&handle, 4 * MIB, &on_device, 0));
    OK(cuMemMap(range, 4 * MIB, 0, handle, 0));
    OK(cuMemRelease(handle));
    EXPECT_EQ(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemMap(range, 4 * MIB, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(range + 100)));
    OK(cuMemUnmap(range, 4 * MIB));
    EXPECT_EQ(test_used(), 4 * MIB);
    OK(cuMemRelease(again));
    EXPECT_EQ(test_used(), 0);
    EXPECT_EQ(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)range),
              CUDA_ERROR_INVALID_VALUE);
}

TEST(vmm_wrong_use)
{
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp prop = on_device;
    CUdeviceptr range;
    char byte = 0;
    START();
    EXPECT_EQ(cuMemCreate(&handle, 2 * MIB + 1, &on_device, 0), CUDA_ERROR_INVALID_VALUE);
    prop.location.id = 1;
    EXPECT_EQ(cuMemCreate(&handle, 2 * MIB, &prop, 0), CUDA_ERROR_INVALID_DEVICE);
    EXPECT_EQ(cuMemCreate(&handle, 81 * GIB, &on_device, 0), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(cuMemAddressReserve(&range, 1, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAddressReserve(&range, 8 * MIB, 0, 0, 0));
    OK(cuMemCreate(&handle, 4 * MIB, &on_device, 0));
    EXPECT_EQ(cuMemMap(range + 8 * MIB, 4 * MIB, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemMap(range + 6 * MIB, 4 * MIB, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemMap(range, 6 * MIB, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemUnmap(range, 4 * MIB), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemSetAccess(range, 4 * MIB, &may_write, 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemMap(range, 4 * MIB, 0, handle, 0));
    EXPECT_EQ(cuMemMap(range + 2 * MIB, 4 * MIB, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemcpyDtoH(&byte, range, 1), CUDA_ERROR_INVALID_VALUE); /* no access yet */
    EXPECT_EQ(cuMemUnmap(range, 2 * MIB), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemAddressFree(range, 8 * MIB), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemSetAccess(range, 4 * MIB, &may_write, 1));
    OK(cuMemcpyDtoH(&byte, range, 1));
    EXPECT_EQ(cuMemcpyDtoH(&byte, range + 4 * MIB, 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemUnmap(range, 4 * MIB));
    EXPECT_EQ(cuMemcpyDtoH(&byte, range, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemAddressFree(range, 4 * MIB), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAddressFree(range, 8 * MIB));
    EXPECT_EQ(cuMemAddressFree(range, 8 * MIB), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemRelease(handle));
    EXPECT_EQ(test_used(), 0);
}

TEST(vmm_address_space_limit)
{
    CUdeviceptr range;
    START_WITH("SIMGPU_ADDRESS_SPACE=10GiB");
    EXPECT_EQ(cuMemAddressReserve(&range, 11 * GIB, 0, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemAddressReserve(&range, 9 * GIB, 0, 0, 0));
    CUdeviceptr more;
    EXPECT_EQ(cuMemAddressReserve(&more, 2 * GIB, 0, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemAddressFree(range, 9 * GIB));
    OK(cuMemAddressReserve(&more, 2 * GIB, 0, 0, 0));
    EXPECT_EQ(test_used(), 0);
}

TEST(vmm_export_and_import_in_one_process)
{
    CUmemGenericAllocationHandle handle;
    CUmemGenericAllocationHandle imported;
    int fd = -1;
    START();
    OK(cuMemCreate(&handle, 4 * MIB, &on_device, 0));
    OK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    OK(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)fd,
                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    EXPECT_EQ(test_used(), 4 * MIB);
    OK(cuMemRelease(handle));
    EXPECT_EQ(test_used(), 4 * MIB);
    OK(cuMemRelease(imported));
    EXPECT_EQ(test_used(), 0);
    close(fd);
    CUmemAllocationProp prop = on_device;
    prop.requestedHandleTypes = 0;
    OK(cuMemCreate(&handle, 4 * MIB, &prop, 0));
    EXPECT_EQ(
        cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
        CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)0,
                                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
              CUDA_ERROR_INVALID_VALUE);
}

TEST(vmm_multicast)
{
    CUmemGenericAllocationHandle multicast;
    CUmemGenericAllocationHandle memory;
    CUmulticastObjectProp prop = {.numDevices = 2, .size = 4 * MIB};
    CUmulticastObjectProp too_many = {.numDevices = 3, .size = 4 * MIB};
    START_WITH("SIMGPU_DEVICES=2");
    EXPECT_EQ(cuMulticastCreate(&multicast, &too_many), CUDA_ERROR_INVALID_VALUE);
    OK(cuMulticastCreate(&multicast, &prop));
    EXPECT_EQ(test_used(), 0);
    OK(cuMemCreate(&memory, 4 * MIB, &on_device, 0));
    OK(cuMulticastAddDevice(multicast, 0));
    EXPECT_EQ(cuMulticastAddDevice(multicast, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMulticastBindMem(multicast, 0, memory, 0, 4 * MIB, 0), CUDA_ERROR_ILLEGAL_STATE);
    OK(cuMulticastAddDevice(multicast, 1));
    OK(cuMulticastBindMem(multicast, 0, memory, 0, 4 * MIB, 0));
    EXPECT_EQ(cuMulticastBindMem(multicast, 0, memory, 0, 6 * MIB, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuMulticastUnbind(multicast, 0, 0, 4 * MIB));
    OK(cuMemRelease(memory));
    OK(cuMemRelease(multicast));
    EXPECT_EQ(test_used(), 0);
}
