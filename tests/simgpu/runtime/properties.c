/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a device is: attributes, PCI ids and the two layouts of struct
 * cudaDeviceProp. CUDA 13 dropped fields from it under the same name, so the
 * 12 and the 13 library answer with different structures; both are built from
 * one list and neither depends on which headers are installed.
 */
#include "runtime.h"

#include <string.h>

#define RAW(declaration) declaration;
#define INT(field, attribute) int field;
#define INT2(field, ...) int field[2];
#define INT3(field, ...) int field[3];
#define SIZE(field, attribute) size_t field;

struct device_prop_12 {
#define INT_12(field, attribute) int field;
#define INT_13(field, attribute)
#include "device_prop.def"
    int reserved[63];
#undef INT_12
#undef INT_13
};

struct device_prop_13 {
#define INT_12(field, attribute)
#define INT_13(field, attribute) int field;
#include "device_prop.def"
    int reserved[56];
#undef INT_12
#undef INT_13
};

#undef RAW
#undef INT
#undef INT2
#undef INT3
#undef SIZE

_Static_assert(sizeof(struct device_prop_12) == 1032, "cudaDeviceProp of CUDA 12");
_Static_assert(sizeof(struct device_prop_13) == 1008, "cudaDeviceProp of CUDA 13");

static int attribute_of(CUdevice device, CUdevice_attribute attribute)
{
    int value = 0;
    return DRV(DeviceGetAttribute, &value, attribute, device) == cudaSuccess ? value : 0;
}

/* Fields that have no attribute. */
static cudaError_t describe(CUdevice device, char name[256], cudaUUID_t *uuid, size_t *bytes)
{
    cudaError_t error = DRV(DeviceGetName, name, 256, device);
    if (error == cudaSuccess)
        error = DRV(DeviceGetUuid, (CUuuid *)uuid, device);
    return error == cudaSuccess ? DRV(DeviceTotalMem, bytes, device) : error;
}

#define RAW(declaration)
#define ATTRIBUTE(name) attribute_of(device, CU_DEVICE_ATTRIBUTE_##name)
#define INT(field, name) prop->field = ATTRIBUTE(name);
#define INT2(field, first, second)     \
    prop->field[0] = ATTRIBUTE(first); \
    prop->field[1] = ATTRIBUTE(second);
#define INT3(field, first, second, third) \
    INT2(field, first, second)            \
    prop->field[2] = ATTRIBUTE(third);
#define SIZE(field, name) prop->field = (size_t)ATTRIBUTE(name);

/* Both libraries carry both fillers' sources; each is used by one of them only. */
__attribute__((unused)) static cudaError_t properties_12(struct device_prop_12 *prop, int ordinal)
{
    cudaError_t error = prop ? simrt_check_device(ordinal) : cudaErrorInvalidValue;
    if (error != cudaSuccess)
        return error;
    CUdevice device = simrt.devices[ordinal].handle;
    memset(prop, 0, sizeof(*prop));
#define INT_12(field, name) prop->field = ATTRIBUTE(name);
#define INT_13(field, number)
#include "device_prop.def"
#undef INT_12
#undef INT_13
    return describe(device, prop->name, &prop->uuid, &prop->totalGlobalMem);
}

__attribute__((unused)) static cudaError_t properties_13(struct device_prop_13 *prop, int ordinal)
{
    cudaError_t error = prop ? simrt_check_device(ordinal) : cudaErrorInvalidValue;
    if (error != cudaSuccess)
        return error;
    CUdevice device = simrt.devices[ordinal].handle;
    memset(prop, 0, sizeof(*prop));
#define INT_12(field, name)
#define INT_13(field, number) prop->field = attribute_of(device, (CUdevice_attribute)number);
#include "device_prop.def"
#undef INT_12
#undef INT_13
    return describe(device, prop->name, &prop->uuid, &prop->totalGlobalMem);
}

#if SIMRT_MAJOR >= 13
cudaError_t cudaGetDeviceProperties(struct device_prop_13 *prop, int device)
{
    return RT_CALL_WITHOUT_CONTEXT(properties_13(prop, device));
}
#else
cudaError_t cudaGetDeviceProperties_v2(struct device_prop_12 *prop, int device)
{
    return RT_CALL_WITHOUT_CONTEXT(properties_12(prop, device));
}

/* The name without _v2 answers programs built for CUDA 11: the same fields, cut
 * after the last that existed then. */
static cudaError_t properties_11(void *prop, int device)
{
    struct device_prop_12 full;
    cudaError_t error = prop ? properties_12(&full, device) : cudaErrorInvalidValue;
    if (error == cudaSuccess)
        memcpy(prop, &full, offsetof(struct device_prop_12, hostRegisterSupported));
    return error;
}

cudaError_t cudaGetDeviceProperties(void *prop, int device)
{
    return RT_CALL_WITHOUT_CONTEXT(properties_11(prop, device));
}
#endif

static cudaError_t device_attribute(int *value, int attribute, int device)
{
    cudaError_t error = value ? simrt_check_device(device) : cudaErrorInvalidValue;
    return error == cudaSuccess ? DRV(DeviceGetAttribute, value, (CUdevice_attribute)attribute,
                                      simrt.devices[device].handle)
                                : error;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device)
{
    return RT_CALL_WITHOUT_CONTEXT(device_attribute(value, (int)attr, device));
}

static cudaError_t peer_attribute(int *value, int attribute, int source, int destination)
{
    if (simrt_check_device(source) != cudaSuccess || simrt_check_device(destination) != cudaSuccess)
        return cudaErrorInvalidDevice;
    return DRV(DeviceGetP2PAttribute, value, (CUdevice_P2PAttribute)attribute,
               simrt.devices[source].handle, simrt.devices[destination].handle);
}

cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attr, int srcDevice,
                                      int dstDevice)
{
    return RT_CALL_WITHOUT_CONTEXT(peer_attribute(value, (int)attr, srcDevice, dstDevice));
}

static cudaError_t pci_bus_id(char *text, int length, int device)
{
    cudaError_t error = simrt_check_device(device);
    return error == cudaSuccess ? DRV(DeviceGetPCIBusId, text, length, simrt.devices[device].handle)
                                : error;
}

cudaError_t cudaDeviceGetPCIBusId(char *pciBusId, int len, int device)
{
    return RT_CALL_WITHOUT_CONTEXT(pci_bus_id(pciBusId, len, device));
}

static cudaError_t device_by_pci_bus_id(int *device, const char *text)
{
    CUdevice handle;
    cudaError_t error =
        device && text ? DRV(DeviceGetByPCIBusId, &handle, text) : cudaErrorInvalidValue;
    for (int i = 0; error == cudaSuccess && i < simrt.device_count; i++)
        if (simrt.devices[i].handle == handle)
            *device = i;
    return error;
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *pciBusId)
{
    return RT_CALL_WITHOUT_CONTEXT(device_by_pci_bus_id(device, pciBusId));
}

cudaError_t cudaDriverGetVersion(int *version)
{
    if (!version)
        return simrt_leave(cudaErrorInvalidValue);
    cudaError_t error = simrt_begin_without_context(__func__, 0);
    *version = 0;
    /* Without a driver the documented answer is version 0 and success. */
    if (error == cudaErrorInsufficientDriver)
        return cudaSuccess;
    return simrt_leave(DRV(DriverGetVersion, version));
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    if (!version)
        return simrt_leave(cudaErrorInvalidValue);
    *version = SIMRT_VERSION;
    return cudaSuccess;
}
