/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated libnvidia-ml: which devices the machine has and who uses how
 * much of them, from the books of the simulated driver, which this library
 * needs: one process has one view of the shared state. Like the real
 * one it ignores CUDA_VISIBLE_DEVICES and sees every process. There is no
 * NVLink, no fabric and no MIG, and what cannot be measured here (power,
 * clocks, utilization) is "not supported", never an invented figure.
 */
#include "nvml.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "../common/config.h"
#include "../driver/books.h"

#define DRIVER_VERSION "595.00"
#define NVML_VERSION "13.595.00"
#define DEVICE_NAME "Simulated CUDA device"

enum { INSTANCE_NONE = -1, MAX_LISTED = 1024 };

/* A handle is the address of a device's entry. */
static struct nvmlDevice_st {
    unsigned index;
} devices[SIMGPU_MAX_DEVICES];

static struct {
    pthread_mutex_t lock;
    unsigned users; /* nvmlInit minus nvmlShutdown */
} nvml = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const struct {
    nvmlReturn_t code;
    const char *text;
} texts[] = {
    {NVML_SUCCESS, "Success"},
    {NVML_ERROR_UNINITIALIZED, "Uninitialized"},
    {NVML_ERROR_INVALID_ARGUMENT, "Invalid Argument"},
    {NVML_ERROR_NOT_SUPPORTED, "Not Supported"},
    {NVML_ERROR_NO_PERMISSION, "Insufficient Permissions"},
    {NVML_ERROR_NOT_FOUND, "Not Found"},
    {NVML_ERROR_INSUFFICIENT_SIZE, "Insufficient Size"},
    {NVML_ERROR_DRIVER_NOT_LOADED, "Driver Not Loaded"},
    {NVML_ERROR_FUNCTION_NOT_FOUND, "Function Not Found"},
    {NVML_ERROR_ARGUMENT_VERSION_MISMATCH, "Argument version mismatch"},
};

const char *nvmlErrorString(nvmlReturn_t result)
{
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        if (texts[i].code == result)
            return texts[i].text;
    return "Unknown Error";
}

/* Fails where the books cannot be had, as the real one does without its driver. */
static nvmlReturn_t number_devices(void)
{
    for (unsigned i = 0; i < SIMGPU_MAX_DEVICES; i++)
        devices[i].index = i;
    return simgpu_device_used(0) == UINT64_MAX ? NVML_ERROR_DRIVER_NOT_LOADED : NVML_SUCCESS;
}

nvmlReturn_t nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    pthread_mutex_lock(&nvml.lock);
    nvmlReturn_t result = nvml.users ? NVML_SUCCESS : number_devices();
    if (result == NVML_SUCCESS)
        nvml.users++;
    pthread_mutex_unlock(&nvml.lock);
    return result;
}

nvmlReturn_t nvmlInit_v2(void)
{
    return nvmlInitWithFlags(0);
}

nvmlReturn_t nvmlInit(void)
{
    return nvmlInitWithFlags(0);
}

nvmlReturn_t nvmlShutdown(void)
{
    pthread_mutex_lock(&nvml.lock);
    nvmlReturn_t result = nvml.users ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
    if (nvml.users)
        nvml.users--;
    pthread_mutex_unlock(&nvml.lock);
    return result;
}

static bool initialized(void)
{
    pthread_mutex_lock(&nvml.lock);
    bool yes = nvml.users > 0;
    pthread_mutex_unlock(&nvml.lock);
    return yes;
}

/* Checks a query's device and out-parameter. */
static nvmlReturn_t check(nvmlDevice_t device, const void *out)
{
    if (!initialized())
        return NVML_ERROR_UNINITIALIZED;
    if (!out || device < devices || device >= devices + simgpu_config()->device_count)
        return NVML_ERROR_INVALID_ARGUMENT;
    return NVML_SUCCESS;
}

static nvmlReturn_t give_text(char *to, unsigned length, const char *text)
{
    if (strlen(text) >= length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(to, text);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length)
{
    if (!initialized())
        return NVML_ERROR_UNINITIALIZED;
    return version ? give_text(version, length, DRIVER_VERSION) : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned length)
{
    return version ? give_text(version, length, NVML_VERSION) : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    if (!version)
        return NVML_ERROR_INVALID_ARGUMENT;
    *version = simgpu_config()->driver_version;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    return nvmlSystemGetCudaDriverVersion_v2(version);
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count)
{
    if (!initialized())
        return NVML_ERROR_UNINITIALIZED;
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = simgpu_config()->device_count;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned *count)
{
    return nvmlDeviceGetCount_v2(count);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device)
{
    if (!initialized())
        return NVML_ERROR_UNINITIALIZED;
    if (!device || index >= simgpu_config()->device_count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *device = &devices[index];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

/* "0000:01:00.0" and "00000000:01:00.0" name the same device. */
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *pciBusId, nvmlDevice_t *device)
{
    unsigned domain = 0, bus = 0, slot = 0;
    if (!initialized())
        return NVML_ERROR_UNINITIALIZED;
    if (!pciBusId || !device || sscanf(pciBusId, "%x:%x:%x", &domain, &bus, &slot) != 3)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; i < simgpu_config()->device_count; i++) {
        if (domain || slot || simgpu_device_pci_bus(i) != bus)
            continue;
        *device = &devices[i];
        return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *pciBusId, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByPciBusId_v2(pciBusId, device);
}

enum { UUID_TEXT = 41 };

static void uuid_text(unsigned index, char text[UUID_TEXT])
{
    uint8_t u[16];
    simgpu_device_uuid(index, u);
    snprintf(text, UUID_TEXT,
             "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
             u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14],
             u[15]);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    if (!initialized())
        return NVML_ERROR_UNINITIALIZED;
    if (!uuid || !device)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; i < simgpu_config()->device_count; i++) {
        char text[UUID_TEXT];
        uuid_text(i, text);
        if (strcasecmp(text, uuid) != 0)
            continue;
        *device = &devices[i];
        return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length)
{
    nvmlReturn_t result = check(device, uuid);
    if (result != NVML_SUCCESS)
        return result;
    char text[UUID_TEXT];
    uuid_text(device->index, text);
    return give_text(uuid, length, text);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length)
{
    nvmlReturn_t result = check(device, name);
    return result == NVML_SUCCESS ? give_text(name, length, DEVICE_NAME) : result;
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index)
{
    nvmlReturn_t result = check(device, index);
    if (result == NVML_SUCCESS)
        *index = device->index;
    return result;
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *minor)
{
    return nvmlDeviceGetIndex(device, minor);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    nvmlReturn_t result = check(device, pci);
    if (result != NVML_SUCCESS)
        return result;
    memset(pci, 0, sizeof(*pci));
    pci->bus = simgpu_device_pci_bus(device->index);
    snprintf(pci->busIdLegacy, sizeof(pci->busIdLegacy), "0000:%02X:00.0", pci->bus & 0xffu);
    snprintf(pci->busId, sizeof(pci->busId), "00000000:%02X:00.0", pci->bus & 0xffu);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
    nvmlReturn_t result = minor ? check(device, major) : NVML_ERROR_INVALID_ARGUMENT;
    if (result != NVML_SUCCESS)
        return result;
    *major = 8;
    *minor = 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    nvmlReturn_t result = check(device, memory);
    if (result != NVML_SUCCESS)
        return result;
    memory->total = simgpu_config()->memory_bytes;
    memory->used = simgpu_device_used((int)device->index);
    memory->free = memory->total > memory->used ? memory->total - memory->used : 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    enum { VERSION = 2 };
    nvmlMemory_t plain;
    nvmlReturn_t result = check(device, memory);
    if (result == NVML_SUCCESS && memory->version != (sizeof(*memory) | (unsigned)VERSION << 24))
        result = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (result == NVML_SUCCESS)
        result = nvmlDeviceGetMemoryInfo(device, &plain);
    if (result != NVML_SUCCESS)
        return result;
    memory->total = plain.total;
    memory->reserved = 0;
    memory->free = plain.free;
    memory->used = plain.used;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *memory)
{
    nvmlReturn_t result = check(device, memory);
    return result == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : result;
}

/* Counts the processes on a device and fills the first `room` of `infos`. */
static unsigned list_processes(unsigned index, nvmlProcessInfo_t *infos, unsigned room)
{
    unsigned count = 0;
    int32_t pid;
    uint64_t bytes;
    for (; simgpu_device_user((int)index, count, &pid, &bytes); count++)
        if (count < room)
            infos[count] = (nvmlProcessInfo_t){
                .pid = (unsigned)pid,
                .usedGpuMemory = bytes,
                .gpuInstanceId = (unsigned)INSTANCE_NONE,
                .computeInstanceId = (unsigned)INSTANCE_NONE,
            };
    return count;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *infoCount,
                                                     nvmlProcessInfo_t *infos)
{
    nvmlReturn_t result = check(device, infoCount);
    if (result != NVML_SUCCESS)
        return result;
    unsigned room = infos ? *infoCount : 0;
    *infoCount = list_processes(device->index, infos, room);
    return *infoCount > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned *infoCount,
                                                     nvmlProcessInfo_t *infos)
{
    return nvmlDeviceGetComputeRunningProcesses_v3(device, infoCount, infos);
}

/* The first version of the structure ends after the bytes. */
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned *infoCount,
                                                  nvmlProcessInfo_v1_t *infos)
{
    nvmlReturn_t result = check(device, infoCount);
    if (result != NVML_SUCCESS)
        return result;
    static nvmlProcessInfo_t listed[MAX_LISTED];
    unsigned room = infos ? *infoCount : 0;
    pthread_mutex_lock(&nvml.lock);
    *infoCount = list_processes(device->index, listed, sizeof(listed) / sizeof(*listed));
    for (unsigned i = 0; i < *infoCount && i < room && i < MAX_LISTED; i++)
        infos[i] = (nvmlProcessInfo_v1_t){listed[i].pid, listed[i].usedGpuMemory};
    pthread_mutex_unlock(&nvml.lock);
    return *infoCount > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

/* Nothing draws on these devices. */
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned *infoCount,
                                                      nvmlProcessInfo_t *infos)
{
    (void)infos;
    nvmlReturn_t result = check(device, infoCount);
    if (result == NVML_SUCCESS)
        *infoCount = 0;
    return result;
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device, unsigned *infoCount,
                                                      nvmlProcessInfo_t *infos)
{
    return nvmlDeviceGetGraphicsRunningProcesses_v3(device, infoCount, infos);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device, unsigned *infoCount,
                                                   nvmlProcessInfo_v1_t *infos)
{
    (void)infos;
    return nvmlDeviceGetGraphicsRunningProcesses_v3(device, infoCount, NULL);
}

/* Peers reach each other over PCIe: status 0 is "OK". */
nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t first, nvmlDevice_t second, int index, int *status)
{
    (void)index;
    nvmlReturn_t result = check(first, status);
    if (result == NVML_SUCCESS)
        result = check(second, status);
    if (result == NVML_SUCCESS)
        *status = 0;
    return result;
}
