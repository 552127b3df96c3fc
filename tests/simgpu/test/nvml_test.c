/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated NVML: it says of the devices what the driver says, and reading
 * them changes nothing. */
#include "../nvml/nvml.h"

#include <criterion/criterion.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

nvmlReturn_t nvmlInit_v2(void);
nvmlReturn_t nvmlShutdown(void);
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length);
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                     nvmlProcessInfo_t *infos);
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *milliwatts);

static char state_file[64];

/* A state shared between processes, as scripts/simgpu makes it. */
static void share_state(void)
{
    snprintf(state_file, sizeof(state_file), "/tmp/simgpu-nvml-test.XXXXXX");
    int fd = mkstemp(state_file);
    cr_assert_geq(fd, 0);
    close(fd);
    setenv("SIMGPU_STATE", state_file, 1);
    setenv("SIMGPU_DEVICES", "2", 1);
}

static void forget_state(void)
{
    char lock_file[80];
    snprintf(lock_file, sizeof(lock_file), "%s.lock", state_file);
    unlink(lock_file);
    unlink(state_file);
}

static size_t used_by_driver(void)
{
    size_t free_bytes = 0, total = 0;
    cr_assert_eq(cudaMemGetInfo(&free_bytes, &total), cudaSuccess);
    return total - free_bytes;
}

Test(nvml, refuses_before_init)
{
    unsigned count = 0;
    cr_assert_eq(nvmlDeviceGetCount_v2(&count), NVML_ERROR_UNINITIALIZED);
    cr_assert_eq(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
}

Test(nvml, finds_a_device_by_each_of_its_names, .init = share_state, .fini = forget_state)
{
    unsigned count = 0;
    nvmlDevice_t second = NULL, found = NULL;
    char uuid[64], bus[32];
    cr_assert_eq(nvmlInit_v2(), NVML_SUCCESS);
    cr_assert_eq(nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
    cr_assert_eq(count, 2);
    cr_assert_eq(nvmlDeviceGetHandleByIndex_v2(1, &second), NVML_SUCCESS);
    cr_assert_eq(nvmlDeviceGetHandleByIndex_v2(2, &found), NVML_ERROR_INVALID_ARGUMENT);
    cr_assert_eq(nvmlDeviceGetUUID(second, uuid, sizeof(uuid)), NVML_SUCCESS);
    cr_assert_eq(nvmlDeviceGetHandleByUUID(uuid, &found), NVML_SUCCESS);
    cr_assert_eq(found, second);
    cr_assert_eq(cudaDeviceGetPCIBusId(bus, sizeof(bus), 1), cudaSuccess);
    cr_assert_eq(nvmlDeviceGetHandleByPciBusId_v2(bus, &found), NVML_SUCCESS);
    cr_assert_eq(found, second);
    cr_assert_eq(nvmlDeviceGetHandleByPciBusId_v2("0000:ff:00.0", &found), NVML_ERROR_NOT_FOUND);
}

Test(nvml, tells_what_the_driver_tells_and_changes_nothing, .init = share_state,
     .fini = forget_state)
{
    nvmlDevice_t device = NULL;
    nvmlMemory_t memory;
    nvmlProcessInfo_t processes[4];
    unsigned count = 4, milliwatts = 0;
    void *pointer = NULL;
    cr_assert_eq(cudaMalloc(&pointer, (size_t)64 << 20), cudaSuccess);
    size_t used = used_by_driver();
    cr_assert_eq(nvmlInit_v2(), NVML_SUCCESS);
    cr_assert_eq(nvmlDeviceGetHandleByIndex_v2(0, &device), NVML_SUCCESS);
    cr_assert_eq(nvmlDeviceGetMemoryInfo(device, &memory), NVML_SUCCESS);
    cr_assert_eq(memory.used, used);
    cr_assert_eq(memory.free, memory.total - used);
    cr_assert_eq(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, processes), NVML_SUCCESS);
    cr_assert_eq(count, 1);
    cr_assert_eq(processes[0].pid, (unsigned)getpid());
    cr_assert_eq(processes[0].usedGpuMemory, used);
    count = 0;
    cr_assert_eq(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, NULL),
                 NVML_ERROR_INSUFFICIENT_SIZE);
    cr_assert_eq(nvmlDeviceGetPowerUsage(device, &milliwatts), NVML_ERROR_NOT_SUPPORTED);
    cr_assert_eq(used_by_driver(), used);
    cr_assert_eq(cudaFree(pointer), cudaSuccess);
    cr_assert_eq(nvmlDeviceGetMemoryInfo(device, &memory), NVML_SUCCESS);
    cr_assert_eq(memory.used, used - ((size_t)64 << 20));
}

static void share_state_with_others(void)
{
    share_state();
    setenv("SIMGPU_OTHER", "2GiB@0:4242,1GiB@0,512M@0:4242,1GiB@1000s:77,3GiB@0:55/1", 1);
}

Test(nvml, lists_the_processes_outside, .init = share_state_with_others, .fini = forget_state)
{
    nvmlDevice_t device = NULL;
    nvmlProcessInfo_t processes[4];
    unsigned count = 4;
    void *pointer = NULL;
    cr_assert_eq(cudaMalloc(&pointer, (size_t)64 << 20), cudaSuccess);
    cr_assert_eq(nvmlInit_v2(), NVML_SUCCESS);
    cr_assert_eq(nvmlDeviceGetHandleByIndex_v2(0, &device), NVML_SUCCESS);
    cr_assert_eq(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, processes), NVML_SUCCESS);
    cr_assert_eq(count, 2);
    cr_assert_eq(processes[0].pid, (unsigned)getpid());
    cr_assert_eq(processes[1].pid, 4242);
    cr_assert_eq(processes[1].usedGpuMemory, (unsigned long long)2560 << 20);
    cr_assert_eq(nvmlDeviceGetHandleByIndex_v2(1, &device), NVML_SUCCESS);
    count = 4;
    cr_assert_eq(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, processes), NVML_SUCCESS);
    cr_assert_eq(count, 1);
    cr_assert_eq(processes[0].pid, 55);
}
