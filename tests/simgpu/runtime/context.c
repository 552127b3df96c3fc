/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which device a thread works on, and the primary contexts: created by a
 * thread's first call that needs one, or by cudaSetDevice as since CUDA 12.
 */
#include "runtime.h"

#include <cuda_runtime_api.h>

static __thread int chosen_device;

cudaError_t simrt_check_device(int device)
{
    return device >= 0 && device < simrt.device_count ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t simrt_primary_context(int device, CUcontext *context)
{
    cudaError_t error = simrt_check_device(device);
    if (error != cudaSuccess)
        return error;
    struct simrt_device *state = &simrt.devices[device];
    pthread_mutex_lock(&simrt.lock);
    if (!state->retained) {
        error = DRV(DevicePrimaryCtxRetain, &state->primary, state->handle);
        state->retained = error == cudaSuccess;
    }
    *context = state->primary;
    pthread_mutex_unlock(&simrt.lock);
    return error;
}

cudaError_t simrt_make_current(int device)
{
    CUcontext context = NULL;
    cudaError_t error = simrt_primary_context(device, &context);
    return error == cudaSuccess ? DRV(CtxSetCurrent, context) : error;
}

/* True for the handle of a primary context that cudaDeviceReset destroyed:
 * another thread may still have it current. */
static bool was_reset(CUcontext context)
{
    if (__atomic_load_n(&simrt.reset_count, __ATOMIC_ACQUIRE) == 0)
        return false;
    bool reset = false;
    pthread_mutex_lock(&simrt.lock);
    for (int i = 0; i < simrt.device_count && !reset; i++)
        reset = simrt.devices[i].primary == context && !simrt.devices[i].retained;
    pthread_mutex_unlock(&simrt.lock);
    return reset;
}

cudaError_t simrt_ensure_context(void)
{
    CUcontext current = NULL;
    cudaError_t error = DRV(CtxGetCurrent, &current);
    if (error != cudaSuccess)
        return error;
    if (current && !was_reset(current))
        return cudaSuccess;
    return simrt_make_current(chosen_device);
}

cudaError_t simrt_current_device(int *device)
{
    CUcontext current = NULL;
    cudaError_t error = DRV(CtxGetCurrent, &current);
    if (error != cudaSuccess)
        return error;
    *device = chosen_device;
    if (!current || was_reset(current))
        return cudaSuccess;
    CUdevice handle;
    error = DRV(CtxGetDevice, &handle);
    for (int i = 0; error == cudaSuccess && i < simrt.device_count; i++)
        if (simrt.devices[i].handle == handle)
            *device = i;
    return error;
}

static cudaError_t set_device(int device)
{
    cudaError_t error = simrt_check_device(device);
    if (error != cudaSuccess)
        return error;
    error = simrt_make_current(device);
    if (error == cudaSuccess)
        chosen_device = device;
    return error;
}

cudaError_t cudaSetDevice(int device)
{
    return RT_CALL_WITHOUT_CONTEXT(set_device(device));
}

cudaError_t cudaGetDevice(int *device)
{
    if (!device)
        return simrt_leave(cudaErrorInvalidValue);
    return RT_CALL_WITHOUT_CONTEXT(simrt_current_device(device));
}

cudaError_t cudaGetDeviceCount(int *count)
{
    if (!count)
        return simrt_leave(cudaErrorInvalidValue);
    cudaError_t error = simrt_begin_without_context(__func__, 0);
    *count = error == cudaSuccess ? simrt.device_count : 0;
    return simrt_leave(error);
}

static cudaError_t init_device(int device, unsigned flags, unsigned what)
{
    cudaError_t error = simrt_check_device(device);
    if (error == cudaSuccess && (what & cudaInitDeviceFlagsAreValid))
        error = DRV(DevicePrimaryCtxSetFlags, simrt.devices[device].handle, flags);
    CUcontext context;
    return error == cudaSuccess ? simrt_primary_context(device, &context) : error;
}

cudaError_t cudaInitDevice(int device, unsigned deviceFlags, unsigned flags)
{
    return RT_CALL_WITHOUT_CONTEXT(init_device(device, deviceFlags, flags));
}

/* No device is better than another here: the first that exists. */
cudaError_t cudaChooseDevice(int *device, const struct cudaDeviceProp *prop)
{
    if (!device || !prop)
        return simrt_leave(cudaErrorInvalidValue);
    *device = 0;
    return RT_CALL_WITHOUT_CONTEXT(cudaSuccess);
}

static cudaError_t set_valid_devices(const int *devices, int count)
{
    cudaError_t error = count < 0 || (count && !devices) ? cudaErrorInvalidValue : cudaSuccess;
    for (int i = 0; error == cudaSuccess && i < count; i++)
        error = simrt_check_device(devices[i]);
    if (error == cudaSuccess && count)
        chosen_device = devices[0];
    return error;
}

cudaError_t cudaSetValidDevices(int *device_arr, int len)
{
    return RT_CALL_WITHOUT_CONTEXT(set_valid_devices(device_arr, len));
}

static cudaError_t set_flags(unsigned flags)
{
    int device = 0;
    cudaError_t error = simrt_current_device(&device);
    return error == cudaSuccess ? DRV(DevicePrimaryCtxSetFlags, simrt.devices[device].handle, flags)
                                : error;
}

cudaError_t cudaSetDeviceFlags(unsigned flags)
{
    return RT_CALL_WITHOUT_CONTEXT(set_flags(flags));
}

static cudaError_t get_flags(unsigned *flags)
{
    int device = 0, active = 0;
    cudaError_t error = simrt_current_device(&device);
    return error == cudaSuccess
               ? DRV(DevicePrimaryCtxGetState, simrt.devices[device].handle, flags, &active)
               : error;
}

cudaError_t cudaGetDeviceFlags(unsigned *flags)
{
    return RT_CALL_WITHOUT_CONTEXT(get_flags(flags));
}

cudaError_t simrt_reset_device(void)
{
    int device = 0;
    cudaError_t error = simrt_current_device(&device);
    if (error != cudaSuccess)
        return error;
    struct simrt_device *state = &simrt.devices[device];
    pthread_mutex_lock(&simrt.lock);
    error = DRV(DevicePrimaryCtxReset, state->handle);
    if (error == cudaSuccess) {
        state->retained = false;
        __atomic_add_fetch(&simrt.reset_count, 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&simrt.lock);
    chosen_device = device;
    return error == cudaSuccess ? DRV(CtxSetCurrent, NULL) : error;
}

cudaError_t cudaDeviceReset(void)
{
    return RT_CALL_WITHOUT_CONTEXT(simrt_reset_device());
}

cudaError_t cudaDeviceSynchronize(void)
{
    return RT_CALL(DRV(CtxSynchronize));
}

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
    return RT_CALL(DRV(CtxSetLimit, (CUlimit)limit, value));
}

cudaError_t cudaDeviceGetLimit(size_t *pValue, enum cudaLimit limit)
{
    return RT_CALL(DRV(CtxGetLimit, pValue, (CUlimit)limit));
}

cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *pCacheConfig)
{
    return RT_CALL(DRV(CtxGetCacheConfig, (CUfunc_cache *)pCacheConfig));
}

cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache cacheConfig)
{
    return RT_CALL(DRV(CtxSetCacheConfig, (CUfunc_cache)cacheConfig));
}

/* Bank sizes exist no more on the devices simulated: one answer, any setting accepted. */
cudaError_t cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig *pConfig)
{
    if (!pConfig)
        return simrt_leave(cudaErrorInvalidValue);
    *pConfig = cudaSharedMemBankSizeFourByte;
    return RT_CALL(cudaSuccess);
}

cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config)
{
    return RT_CALL((int)config > (int)cudaSharedMemBankSizeEightByte ? cudaErrorInvalidValue
                                                                     : cudaSuccess);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
    return RT_CALL(DRV(CtxGetStreamPriorityRange, leastPriority, greatestPriority));
}

cudaError_t cudaCtxResetPersistingL2Cache(void)
{
    return RT_CALL(DRV(CtxResetPersistingL2Cache));
}

cudaError_t cudaDeviceFlushGPUDirectRDMAWrites(enum cudaFlushGPUDirectRDMAWritesTarget target,
                                               enum cudaFlushGPUDirectRDMAWritesScope scope)
{
    return RT_CALL(DRV(FlushGPUDirectRDMAWrites, (CUflushGPUDirectRDMAWritesTarget)target,
                       (CUflushGPUDirectRDMAWritesScope)scope));
}

static cudaError_t can_access_peer(int *can, int device, int peer)
{
    if (simrt_check_device(device) != cudaSuccess || simrt_check_device(peer) != cudaSuccess)
        return cudaErrorInvalidDevice;
    return DRV(DeviceCanAccessPeer, can, simrt.devices[device].handle, simrt.devices[peer].handle);
}

cudaError_t cudaDeviceCanAccessPeer(int *canAccessPeer, int device, int peerDevice)
{
    return RT_CALL_WITHOUT_CONTEXT(can_access_peer(canAccessPeer, device, peerDevice));
}

static cudaError_t enable_peer(int peer, unsigned flags)
{
    CUcontext context = NULL;
    cudaError_t error = simrt_primary_context(peer, &context);
    return error == cudaSuccess ? DRV(CtxEnablePeerAccess, context, flags) : error;
}

cudaError_t cudaDeviceEnablePeerAccess(int peerDevice, unsigned flags)
{
    return RT_CALL(enable_peer(peerDevice, flags));
}

static cudaError_t disable_peer(int peer)
{
    CUcontext context = NULL;
    cudaError_t error = simrt_primary_context(peer, &context);
    return error == cudaSuccess ? DRV(CtxDisablePeerAccess, context) : error;
}

cudaError_t cudaDeviceDisablePeerAccess(int peerDevice)
{
    return RT_CALL(disable_peer(peerDevice));
}
