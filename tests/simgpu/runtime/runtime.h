/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the simulated CUDA runtime share: its one state, the way
 * every entry point enters and leaves, and the driver's function pointers.
 *
 * The runtime knows nothing of the simulated device. Like a real libcudart it
 * opens libcuda.so.1, asks dlsym for cuGetProcAddress_v2 and for nothing else,
 * and gets every other driver call from the pointer that returned, so that a
 * profiler's hooks meet the nesting they meet in production.
 */
#ifndef SIMGPU_RUNTIME_H
#define SIMGPU_RUNTIME_H

#include <cuda.h>
#include <cudaTypedefs.h>
#include <driver_types.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <vector_types.h>

#ifndef SIMRT_MAJOR
#error "SIMRT_MAJOR must name the runtime's major version (12 or 13)"
#endif

/* The version this library reports: that of the runtime whose contract it follows. */
#if SIMRT_MAJOR >= 13
#define SIMRT_VERSION 13020
#else
#define SIMRT_VERSION 12080
#endif

enum { SIMRT_MAX_DEVICES = 64 };

/* Which default stream a call without a stream means: index into the pointers
 * that exist in a legacy and in a per-thread (_ptsz) variant. */
enum simrt_lane { SIMRT_LEGACY, SIMRT_PER_THREAD, SIMRT_LANES };

struct simrt_driver {
#define DRIVER_CALL(name, version) PFN_cu##name##_v##version name;
#define DRIVER_STREAM_CALL(name, version) PFN_cu##name##_v##version name[SIMRT_LANES];
#include "driver_calls.def"
#undef DRIVER_CALL
#undef DRIVER_STREAM_CALL
};

struct simrt_device {
    CUdevice handle;
    CUcontext primary; /* kept after a reset: the driver keeps the handle */
    bool retained;
};

struct simrt {
    struct simrt_driver driver;
    cudaError_t load_error;
    int device_count;
    pthread_mutex_t lock; /* guards devices[] */
    struct simrt_device devices[SIMRT_MAX_DEVICES];
    unsigned reset_count; /* devices reset so far; 0 keeps the common path short */
};

extern struct simrt simrt;

/*
 * How every entry point begins. `function` is the C function's name, for
 * injected failures and delays; `bytes` what it asks for (0: no size). The
 * driver is loaded and initialised, once. simrt_begin also makes sure that the
 * calling thread has a context: a thread that has none gets the primary context
 * of its device, created by its first use.
 */
cudaError_t simrt_begin(const char *function, uint64_t bytes);
cudaError_t simrt_begin_without_context(const char *function, uint64_t bytes);
/* The loading alone. */
cudaError_t simrt_load(void);
/* The context alone. */
cudaError_t simrt_ensure_context(void);
/* Remembers a failure as the thread's last error and passes it on. */
cudaError_t simrt_leave(cudaError_t error);
/* The last error of the calling thread; reset forgets it. */
cudaError_t simrt_last_error(bool reset);

/* Makes the primary context of `device` current for the calling thread. */
cudaError_t simrt_make_current(int device);
/* The device of the thread's context, or the one it chose before having any. */
cudaError_t simrt_current_device(int *device);
/* The primary context of a device, retained; for calls that name a device. */
cudaError_t simrt_primary_context(int device, CUcontext *context);
/* Destroys the primary context of the current device; the next use makes another. */
cudaError_t simrt_reset_device(void);
/* cudaErrorInvalidDevice unless `device` is one of this process's. */
cudaError_t simrt_check_device(int device);

/* A driver result as a runtime error: since CUDA 10.1 the numbers agree. */
static inline cudaError_t simrt_error(CUresult result)
{
    return (cudaError_t)result;
}

/* The number of an error named as in --fail ("out_of_memory"), or -1. */
int simrt_error_number(const char *name);

/* Prints once per name that the simulated runtime lacks it; cudaErrorNotSupported. */
cudaError_t simrt_unsupported(const char *name);
/* The driver lacks a call this runtime wants; names it once. */
cudaError_t simrt_driver_lacks(const char *name);

/* One call of the driver, as a runtime error. */
#define DRV(call, ...)                                               \
    (simrt.driver.call ? simrt_error(simrt.driver.call(__VA_ARGS__)) \
                       : simrt_driver_lacks("cu" #call))
#define DRV_ON(lane, call, ...)                                                  \
    (simrt.driver.call[lane] ? simrt_error(simrt.driver.call[lane](__VA_ARGS__)) \
                             : simrt_driver_lacks("cu" #call))

/* The body of most entry points: begin, do, leave. */
#define RT_CALL_OF(bytes, ...)                                       \
    __extension__({                                                  \
        cudaError_t begun_ = simrt_begin(__func__, bytes);           \
        simrt_leave(begun_ != cudaSuccess ? begun_ : (__VA_ARGS__)); \
    })
#define RT_CALL(...) RT_CALL_OF(0, __VA_ARGS__)
#define RT_CALL_WITHOUT_CONTEXT(...)                                   \
    __extension__({                                                    \
        cudaError_t begun_ = simrt_begin_without_context(__func__, 0); \
        simrt_leave(begun_ != cudaSuccess ? begun_ : (__VA_ARGS__));   \
    })

/*
 * Defines an entry point and its per-thread-default-stream twin. `params` and
 * `args` are parenthesised; the body is an expression that may use `lane`.
 */
#define RT_UNWRAP(...) __VA_ARGS__
#define RT_STREAM_ENTRY(name, suffix, params, args, ...)                      \
    static cudaError_t name##_on_lane(enum simrt_lane lane, RT_UNWRAP params) \
    {                                                                         \
        return __VA_ARGS__;                                                   \
    }                                                                         \
    cudaError_t name params                                                   \
    {                                                                         \
        return name##_on_lane(SIMRT_LEGACY, RT_UNWRAP args);                  \
    }                                                                         \
    cudaError_t name##suffix params;                                          \
    cudaError_t name##suffix params                                           \
    {                                                                         \
        return name##_on_lane(SIMRT_PER_THREAD, RT_UNWRAP args);              \
    }

/* The driver's handle of a kernel named by a host function or a kernel handle. */
cudaError_t simrt_kernel_of(const void *function, CUfunction *kernel);
/* The same for calls that want a function of the current context. */
cudaError_t simrt_function_of(const void *function, CUfunction *function_out);
/* Address and size of a registered device variable in the current context. */
cudaError_t simrt_symbol(const void *symbol, CUdeviceptr *address, size_t *size);
/* Makes a kernel handle acceptable where a host function is expected. */
cudaError_t simrt_remember_kernel(CUkernel kernel);

/* A 3D copy as the driver describes it; false for descriptions that name no source or target. */
cudaError_t simrt_copy_3d_params(const struct cudaMemcpy3DParms *from, CUDA_MEMCPY3D *to);
/* A copy of `size` contiguous bytes as a 3D copy. */
CUDA_MEMCPY3D simrt_linear_copy(void *destination, const void *source, size_t size,
                                enum cudaMemcpyKind kind);

#endif
