/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start of the driver in a process: cuInit, the lock, the check every call starts with, fork
 * detection, handles, and unimplemented entry points.
 */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct sim_driver sim = {.arena_fd = -1};

/* Says "this process called cuInit" and reads as zero in any forked child, however it was forked.
 */
static _Atomic(atomic_uchar *) initialised;

static struct {
    pthread_mutex_t lock;
    pthread_mutex_t init_lock;
    bool tracing;
} core = {.lock = PTHREAD_MUTEX_INITIALIZER, .init_lock = PTHREAD_MUTEX_INITIALIZER};

static const char *const call_names[] = {
#define CALL(name) #name,
#include "calls.def"
#undef CALL
};

void sim_lock(void)
{
    pthread_mutex_lock(&core.lock);
}

void sim_unlock(void)
{
    pthread_mutex_unlock(&core.lock);
}

pthread_mutex_t *sim_mutex(void)
{
    return &core.lock;
}

bool sim_tracing(void)
{
    return core.tracing;
}

const char *sim_call_text(unsigned call)
{
    return call < SIM_CALL_COUNT ? call_names[call] : "unknown";
}

/* What the page says; a forked child finds it wiped. */
enum { PHASE_NONE, PHASE_RUNNING, PHASE_ENDED };

CUresult sim_enter(enum sim_call call, uint64_t bytes)
{
    /* Acquire pairs with the store in start(): whoever sees the page sees the attached state. */
    atomic_uchar *page = atomic_load_explicit(&initialised, memory_order_acquire);
    int phase = page ? atomic_load_explicit(page, memory_order_relaxed) : PHASE_NONE;
    if (phase != PHASE_RUNNING)
        return phase == PHASE_ENDED ? CUDA_ERROR_DEINITIALIZED : CUDA_ERROR_NOT_INITIALIZED;
    simgpu_state_count_call(call);
    if (core.tracing)
        fprintf(stderr, "simgpu: %s\n", call_names[call]);
    if (!simgpu_inject_active)
        return CUDA_SUCCESS;
    return (CUresult)simgpu_inject_call(call_names[call], bytes);
}

CUresult sim_unsupported(const char *symbol)
{
    fprintf(stderr, "simgpu: %s is not simulated (returning CUDA_ERROR_NOT_SUPPORTED)\n", symbol);
    return CUDA_ERROR_NOT_SUPPORTED;
}

/* ---- start and end ---- */

static CUresult start(void)
{
    sim.visible_count = simgpu_visible_devices(sim.visible);
    if (!sim.visible_count)
        return CUDA_ERROR_NO_DEVICE;
    if (simgpu_state_attach(true))
        return CUDA_ERROR_OPERATING_SYSTEM;
    void *page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return CUDA_ERROR_OPERATING_SYSTEM;
    madvise(page, (size_t)sysconf(_SC_PAGESIZE), MADV_WIPEONFORK);
    simgpu_inject_init("cu", sim_error_number);
    const char *trace = getenv("SIMGPU_TRACE");
    core.tracing = trace && *trace == '1';
    atomic_store((atomic_uchar *)page, PHASE_RUNNING);
    atomic_store_explicit(&initialised, page, memory_order_release);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuInit(unsigned int Flags)
{
    if (Flags)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&core.init_lock);
    if (!initialised)
        result = start();
    pthread_mutex_unlock(&core.init_lock);
    if (result != CUDA_SUCCESS)
        return result;
    SIM_ENTER(cuInit, 0);
    return CUDA_SUCCESS;
}

/* Libraries unloaded after this one still call: they are told that the driver is gone. The slot is
 * not given back here, where other threads may be inside a call: the process's end does it. */
CUresult CUDAAPI cuDriverGetVersion(int *driverVersion)
{
    if (!driverVersion)
        return CUDA_ERROR_INVALID_VALUE;
    *driverVersion = simgpu_config()->driver_version;
    return CUDA_SUCCESS;
}

/* ---- handles ---- */

void *sim_object_new(enum sim_type type, size_t size)
{
    struct sim_object *object = calloc(1, size);
    if (!object)
        return NULL;
    object->type = type;
    object->node.key = (uint64_t)(uintptr_t)object;
    object->node.size = size;
    sim_tree_insert(&sim.objects, &object->node);
    return object;
}

void sim_object_hide(void *object)
{
    sim_tree_remove(&sim.objects, &((struct sim_object *)object)->node);
}

void sim_object_delete(void *object)
{
    sim_object_hide(object);
    free(object);
}

void *sim_object_find(const void *handle, enum sim_type type)
{
    struct sim_node *node = sim_tree_find(&sim.objects, (uint64_t)(uintptr_t)handle);
    struct sim_object *object = (struct sim_object *)node;
    return object && object->type == type ? object : NULL;
}

/* ---- charging by ordinal ---- */

int sim_charge(unsigned ordinal, enum simgpu_kind kind, uint64_t bytes)
{
    return simgpu_state_charge(sim_machine_index(ordinal), kind, bytes);
}

void sim_discharge(unsigned ordinal, enum simgpu_kind kind, uint64_t bytes)
{
    simgpu_state_release(sim_machine_index(ordinal), kind, bytes);
}
