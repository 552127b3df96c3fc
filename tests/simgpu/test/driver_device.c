/* SPDX-License-Identifier: Apache-2.0 */
/* Start, devices, and finding entry points. */
#include <string.h>

#include "driver_test.h"

#undef cuDeviceGetUuid
#undef cuMemAlloc
#undef cuGetProcAddress
CUresult cuMemAlloc(void);
CUresult cuGetProcAddress(const char *, void **, int, cuuint64_t);
CUresult cuMemAllocAsync_ptsz(CUdeviceptr *, size_t, CUstream);
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *, CUipcMemHandle, unsigned);
#undef cuIpcOpenMemHandle
CUresult cuIpcOpenMemHandle(CUdeviceptr *, CUipcMemHandle, unsigned);

TEST(device_calls_before_init_fail)
{
    int count = -1;
    EXPECT_EQ(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT_EQ(cuInit(1), CUDA_ERROR_INVALID_VALUE);
    OK(cuInit(0));
    OK(cuDeviceGetCount(&count));
    EXPECT_EQ(count, 1);
}

TEST(device_identities_differ)
{
    CUuuid uuids[3];
    char buses[3][32];
    test_init((const char *const[]){"SIMGPU_DEVICES=3", NULL});
    for (int i = 0; i < 3; i++) {
        CUdevice found = -1;
        OK(cuDeviceGetUuid_v2(&uuids[i], i));
        OK(cuDeviceGetPCIBusId(buses[i], sizeof buses[i], i));
        OK(cuDeviceGetByPCIBusId(&found, buses[i]));
        EXPECT_EQ(found, i);
    }
    EXPECT(memcmp(&uuids[0], &uuids[1], sizeof *uuids) != 0);
    EXPECT(memcmp(&uuids[1], &uuids[2], sizeof *uuids) != 0);
    EXPECT(strcmp(buses[0], buses[1]) != 0);
    CUdevice device;
    EXPECT_EQ(cuDeviceGet(&device, 3), CUDA_ERROR_INVALID_DEVICE);
    EXPECT_EQ(cuDeviceGet(NULL, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST(device_visible_by_index)
{
    char bus[32];
    int count = 0;
    test_init((const char *const[]){"SIMGPU_DEVICES=4", "CUDA_VISIBLE_DEVICES=2,0,9,1", NULL});
    OK(cuDeviceGetCount(&count));
    EXPECT_EQ(count, 2); /* the list ends at the first that is none */
    OK(cuDeviceGetPCIBusId(bus, sizeof bus, 0));
    EXPECT_EQ(strcmp(bus, "0000:12:00.0"), 0);
}

TEST(device_visible_by_uuid)
{
    char bus[32];
    int count = 0;
    test_init((const char *const[]){"SIMGPU_DEVICES=4",
                                    "CUDA_VISIBLE_DEVICES=GPU-5ed16e70-0001-4a10-8000-767261"
                                    "6d7302",
                                    NULL});
    OK(cuDeviceGetCount(&count));
    EXPECT_EQ(count, 1);
    OK(cuDeviceGetPCIBusId(bus, sizeof bus, 0));
    EXPECT_EQ(strcmp(bus, "0000:11:00.0"), 0);
}

TEST(device_none_visible)
{
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    EXPECT_EQ(cuInit(0), CUDA_ERROR_NO_DEVICE);
}

TEST(device_attributes)
{
    static const struct {
        CUdevice_attribute attribute;
        int value;
    } expected[] = {{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
                    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
                    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
                    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
                    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 8},
                    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
                    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
                    {CU_DEVICE_ATTRIBUTE_INTEGRATED, 0}};
    int value = -1;
    size_t total = 0;
    test_init((const char *const[]){"SIMGPU_MEMORY=3GiB", NULL});
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        OK(cuDeviceGetAttribute(&value, expected[i].attribute, 0));
        EXPECT_EQ(value, expected[i].value);
    }
    EXPECT_EQ(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 1),
              CUDA_ERROR_INVALID_DEVICE);
    OK(cuDeviceTotalMem(&total, 0));
    EXPECT_EQ(total, 3 * GIB);
}

TEST(entry_versions_and_streams)
{
    void *pfn = NULL;
    CUdriverProcAddressQueryResult status;
    OK(cuGetProcAddress_v2("cuMemAlloc", &pfn, 3020, 0, &status));
    EXPECT((uintptr_t)pfn == (uintptr_t)cuMemAlloc_v2);
    EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SUCCESS);
    OK(cuGetProcAddress_v2("cuMemAlloc", &pfn, 2000, 0, NULL));
    EXPECT((uintptr_t)pfn == (uintptr_t)cuMemAlloc);
    OK(cuGetProcAddress_v2("cuIpcOpenMemHandle", &pfn, 4010, 0, NULL));
    EXPECT((uintptr_t)pfn == (uintptr_t)cuIpcOpenMemHandle);
    OK(cuGetProcAddress_v2("cuIpcOpenMemHandle", &pfn, 11000, 0, NULL));
    EXPECT((uintptr_t)pfn == (uintptr_t)cuIpcOpenMemHandle_v2);
    OK(cuGetProcAddress_v2("cuMemAllocAsync", &pfn, 11020, 0, NULL));
    EXPECT((uintptr_t)pfn == (uintptr_t)cuMemAllocAsync);
    OK(cuGetProcAddress_v2("cuMemAllocAsync", &pfn, 11020,
                           CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, NULL));
    EXPECT((uintptr_t)pfn == (uintptr_t)cuMemAllocAsync_ptsz);
    OK(cuGetProcAddress_v2("cuMemAlloc", &pfn, 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
                           NULL));
    EXPECT((uintptr_t)pfn == (uintptr_t)cuMemAlloc_v2);
}

TEST(entry_finds_itself_and_says_what_is_missing)
{
    void *pfn = (void *)1;
    CUdriverProcAddressQueryResult status;
    OK(cuGetProcAddress_v2("cuGetProcAddress", &pfn, 12000, 0, NULL));
    EXPECT((uintptr_t)pfn == (uintptr_t)cuGetProcAddress_v2);
    OK(cuGetProcAddress("cuGetProcAddress", &pfn, 11030, 0));
    EXPECT((uintptr_t)pfn == (uintptr_t)cuGetProcAddress);
    EXPECT_EQ(cuGetProcAddress_v2("cuNoSuchThing", &pfn, 13000, 0, &status), CUDA_ERROR_NOT_FOUND);
    EXPECT(pfn == NULL);
    EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    EXPECT_EQ(cuGetProcAddress_v2("cuMemAllocAsync", &pfn, 11010, 0, &status),
              CUDA_ERROR_NOT_FOUND);
    EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    const void *table = (void *)1;
    CUuuid uuid = {{0}};
    EXPECT_EQ(cuGetExportTable(&table, &uuid), CUDA_ERROR_NOT_FOUND);
    EXPECT(table == NULL);
}

TEST(entry_unsimulated_fails_clearly)
{
    CUtexObject texture = 0;
    OK(cuInit(0));
    EXPECT_EQ(cuTexObjectDestroy(texture), CUDA_ERROR_NOT_SUPPORTED);
}

TEST(error_names_and_texts)
{
    const char *text = NULL;
    OK(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text));
    EXPECT_EQ(strcmp(text, "CUDA_ERROR_OUT_OF_MEMORY"), 0);
    OK(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
    EXPECT_EQ(strcmp(text, "out of memory"), 0);
    EXPECT_EQ(cuGetErrorName((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
    EXPECT(text == NULL);
}
