/* SPDX-License-Identifier: Apache-2.0 */
/* Error-log callbacks: they can be registered, and are never called, since nothing is logged. */
#include "driver.h"

#if CUDA_VERSION >= 12090

#define MAX_CALLBACKS 64

/* A handle is the address of its entry. */
static struct {
    CUlogsCallback callback;
    void *user_data;
} callbacks[MAX_CALLBACKS];

CUresult CUDAAPI cuLogsRegisterCallback(CUlogsCallback callbackFunc, void *userData,
                                        CUlogsCallbackHandle *callback_out)
{
    SIM_ENTER(cuLogsRegisterCallback, 0);
    if (!callbackFunc)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    sim_lock();
    for (unsigned i = 0; i < MAX_CALLBACKS && result != CUDA_SUCCESS; i++) {
        if (callbacks[i].callback)
            continue;
        callbacks[i].callback = callbackFunc;
        callbacks[i].user_data = userData;
        if (callback_out)
            *callback_out = (CUlogsCallbackHandle)(void *)&callbacks[i];
        result = CUDA_SUCCESS;
    }
    return sim_leave(result);
}

CUresult CUDAAPI cuLogsUnregisterCallback(CUlogsCallbackHandle callback)
{
    SIM_ENTER(cuLogsUnregisterCallback, 0);
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    for (unsigned i = 0; i < MAX_CALLBACKS; i++) {
        if ((void *)&callbacks[i] != (void *)callback || !callbacks[i].callback)
            continue;
        callbacks[i].callback = NULL;
        callbacks[i].user_data = NULL;
        result = CUDA_SUCCESS;
    }
    return sim_leave(result);
}

#endif
