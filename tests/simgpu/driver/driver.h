/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the simulated driver share: its one state struct, the entry macros every
 * exported function starts with, handles, address look-up, and the services of each file.
 *
 * One mutex (sim_lock) guards everything of a process; functions here expect it held unless they
 * say otherwise. It is released only while waiting and while user callbacks run.
 */
#ifndef SIMGPU_DRIVER_H
#define SIMGPU_DRIVER_H

/* Declares every version of every function by its own symbol, none renamed by a macro. */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../common/config.h"
#include "../common/inject.h"
#include "../common/state.h"
#include "tree.h"

#define SIM_ALIGNMENT 512U  /* of small allocations */
#define SIM_HOST_PAGE 4096U /* of pinned host memory */
#define SIM_SM_COUNT 108U
#define SIM_THREADS_PER_SM 2048U
#define SIM_PHYSICAL_OFFSETS ((uint64_t)1 << 45) /* in the arena: physical memory from here on */
#define SIM_DEFAULT_STACK 1024U                  /* CU_LIMIT_STACK_SIZE that costs nothing */

/* ---- calls ---- */

enum sim_call {
#define CALL(name) SIM_CALL_##name,
#include "calls.def"
#undef CALL
    SIM_CALL_COUNT
};

/* Counts and injects; refuses calls before cuInit and in forked children. Takes no lock. */
CUresult sim_enter(enum sim_call call, uint64_t bytes);

#define SIM_ENTER(call, bytes)                                             \
    do {                                                                   \
        CUresult entered_ = sim_enter(SIM_CALL_##call, (uint64_t)(bytes)); \
        if (entered_ != CUDA_SUCCESS)                                      \
            return entered_;                                               \
    } while (0)

void sim_lock(void);
void sim_unlock(void);
pthread_mutex_t *sim_mutex(void); /* the lock itself, for waiting */

/* Name of a call, "unknown" past the last one. */
const char *sim_call_text(unsigned call);

/* Unlocks and hands a result through: `return sim_leave(result);`. */
static inline CUresult sim_leave(CUresult result)
{
    sim_unlock();
    return result;
}

/* Tells once on stderr that SYMBOL is not simulated. Returns CUDA_ERROR_NOT_SUPPORTED. */
CUresult sim_unsupported(const char *symbol);

/* True when SIMGPU_TRACE=1. */
bool sim_tracing(void);

/* CUDA error number of a name without prefix ("out_of_memory"), or -1. */
int sim_error_number(const char *name);

/* Functions that take a stream come in two variants: NULL is the legacy stream, or (_ptsz) the
 * thread's own. BODY follows the macro. */
static inline CUstream sim_per_thread(CUstream stream)
{
    return stream ? stream : CU_STREAM_PER_THREAD;
}

#define SIM_STREAMED(name, parameters, arguments) \
    static CUresult body_##name parameters;       \
    CUresult CUDAAPI name parameters              \
    {                                             \
        return body_##name arguments;             \
    }                                             \
    CUresult CUDAAPI name##_ptsz parameters       \
    {                                             \
        hStream = sim_per_thread(hStream);        \
        return body_##name arguments;             \
    }                                             \
    static CUresult body_##name parameters

/* The same for functions without a stream argument, which use the default one: the body gets it as
 * hStream, its first parameter. */
#define SIM_DEFAULT_STREAMED(name, parameters, body_parameters, arguments) \
    static CUresult body_##name body_parameters;                           \
    CUresult CUDAAPI name parameters                                       \
    {                                                                      \
        CUstream hStream = NULL;                                           \
        return body_##name arguments;                                      \
    }                                                                      \
    CUresult CUDAAPI name##_ptds parameters                                \
    {                                                                      \
        CUstream hStream = CU_STREAM_PER_THREAD;                           \
        return body_##name arguments;                                      \
    }                                                                      \
    static CUresult body_##name body_parameters

/* ---- handles ---- */

enum sim_type {
    SIM_CONTEXT = 1,
    SIM_STREAM,
    SIM_EVENT,
    SIM_MODULE,
    SIM_LIBRARY,
    SIM_FUNCTION,
    SIM_POOL,
    SIM_GRAPH,
    SIM_NODE,
    SIM_EXEC,
    SIM_ARRAY,
    SIM_MIPMAP,
    SIM_USER_OBJECT,
    SIM_PHYSICAL,
    SIM_EXTERNAL,
    SIM_LINK,
};

/* First member of whatever is handed out as a handle. */
struct sim_object {
    struct sim_node node; /* key: its own address */
    enum sim_type type;
};

void *sim_object_new(enum sim_type type, size_t size); /* zeroed and registered; NULL: no memory */
void sim_object_delete(void *object);                  /* unregistered and freed */
void sim_object_hide(void *object);                    /* unregistered only */
void *sim_object_find(const void *handle, enum sim_type type); /* NULL: not a live handle */

/* ---- devices and contexts ---- */

struct sim_stream;
struct sim_physical;

struct sim_context {
    struct sim_object object;
    unsigned device;
    bool is_primary;
    bool active; /* false: destroyed, or a primary context nobody retains */
    bool torn;   /* a cuCtxDestroy'ed context: stale in stacks of threads */
    unsigned flags;
    unsigned retained; /* primary only */
    unsigned long long id;
    size_t limits[CU_LIMIT_MAX];
    CUfunc_cache cache_config;
    uint64_t local_bytes; /* charged for CU_LIMIT_STACK_SIZE, since a launch */
    uint32_t peers;       /* bit per device whose memory this context may reach */
    struct sim_stream *legacy;
    struct sim_context *next; /* of all contexts ever made */
};

struct sim_device {
    bool reserved; /* address region exists */
    uint64_t region_base;
    uint64_t region_bytes;
    uint64_t region_offset;       /* of region_base in the arena */
    struct sim_extents addresses; /* free chunk ranges of the region */
    struct sim_extents small;     /* free pieces of packed chunks */
    uint64_t dirty_bytes;         /* freed since holes were last punched */
    struct sim_extents dirty;     /* freed ranges that still have pages */
    struct sim_context primary;
    bool primary_known;
    CUmemoryPool default_pool;
    CUmemoryPool current_pool;
    uint64_t graph_reserved;
    uint64_t graph_reserved_high;
    uint64_t graph_used;
    uint64_t graph_used_high;
};

/* Everything a process knows. */
struct sim_driver {
    unsigned visible_count;
    unsigned visible[SIMGPU_MAX_DEVICES];          /* ordinal → device of the machine */
    struct sim_device devices[SIMGPU_MAX_DEVICES]; /* by ordinal */
    struct sim_tree objects;
    struct sim_tree allocations; /* struct sim_alloc by address */
    struct sim_context *contexts;
    uint64_t next_id; /* contexts, streams, buffers, captures: unique numbers */
    int arena_fd;
    uint64_t arena_end; /* next device's region in the arena */
    struct sim_extents physical_offsets;
};

extern struct sim_driver sim;

/* Machine-wide index of an ordinal: what the shared state and identities use. */
static inline unsigned sim_machine_index(unsigned ordinal)
{
    return sim.visible[ordinal];
}

static inline bool sim_is_device(CUdevice ordinal)
{
    return ordinal >= 0 && (unsigned)ordinal < sim.visible_count;
}

/* The calling thread's context; NULL with *error told when there is none that works. */
struct sim_context *sim_current(CUresult *error);

/* Looks a context handle up; NULL means the current one. */
struct sim_context *sim_context_of(CUcontext handle, CUresult *error);

/* The primary context of an ordinal, without retaining it. */
struct sim_context *sim_primary(unsigned ordinal);

int sim_charge(unsigned ordinal, enum simgpu_kind kind, uint64_t bytes);
void sim_discharge(unsigned ordinal, enum simgpu_kind kind, uint64_t bytes);

/* Tells whether MEMORY of another device may be reached from CONTEXT. */
/* Charges what a launch needs for the stacks of its threads. */
CUresult sim_grow_local(struct sim_context *context);
bool sim_peer_enabled(const struct sim_context *context, unsigned ordinal);

/* ---- memory ---- */

struct sim_pool;

/* What the driver knows by address. Kinds are the books' kinds. */
struct sim_alloc {
    struct sim_node node; /* key, size: the address range a program may use */
    enum simgpu_kind kind;
    int device; /* ordinal; -1: host */
    struct sim_context *context;
    uint64_t id;         /* CU_POINTER_ATTRIBUTE_BUFFER_ID */
    uint64_t span_bytes; /* chunk bytes behind it; 0: a piece of a shared chunk */
    uint32_t record;
    unsigned flags;
    bool sync_memops;
    uint64_t device_address; /* of host memory, for the device */
    /* pool blocks */
    struct sim_pool *pool;
    void *graph_owner; /* executable graph that made it */
    struct sim_graph_memory *graph_memory;
    /* managed memory */
    uint64_t resident_bytes;
    int resident_device;
    /* imported by IPC */
    uint64_t map_base;
    int owner_pid;
    uint64_t owner_id;
    unsigned opens;
};

/* The allocation that contains ADDRESS, or NULL. */
struct sim_alloc *sim_alloc_at(uint64_t address);

/* Enters / removes an allocation in look-up and books. Returns NULL without memory. */
struct sim_alloc *sim_alloc_new(enum simgpu_kind kind, int device, uint64_t address,
                                uint64_t requested_bytes);
void sim_alloc_delete(struct sim_alloc *alloc);

/* Frees cuMemAlloc-like memory, whatever its kind, with all it holds. */
void sim_alloc_free(struct sim_alloc *alloc);

/* Device memory of its own: small pieces share chunks. *ADDRESS is set. */
CUresult sim_device_alloc(struct sim_context *context, enum simgpu_kind kind, uint64_t bytes,
                          struct sim_alloc **alloc);

/* Chunk ranges of a device's address region (not charged). 0: none left. */
uint64_t sim_span_take(unsigned ordinal, uint64_t bytes);
void sim_span_give(unsigned ordinal, uint64_t address, uint64_t bytes);

/* Bytes free on and of a device, as cuMemGetInfo tells. */
void sim_memory_info(unsigned ordinal, uint64_t *free_bytes, uint64_t *total_bytes);

/* Whether [address, address + bytes) may be read and written from CONTEXT: memory of ours inside
 * one allocation or mapping; or, if HOST_TOO, memory we do not know, taken for the host's. */
bool sim_range_valid(const struct sim_context *context, uint64_t address, uint64_t bytes,
                     bool host_too);

/* Drops the pages behind [address, address + bytes) of the arena: it reads as zeros again. */
void sim_punch(uint64_t address, uint64_t bytes);

/* Copies / fills, without touching pages that hold nothing. */
void sim_copy(uint64_t destination, uint64_t source, uint64_t bytes);
void sim_fill_zero(uint64_t address, uint64_t bytes);

/* The process's arena file, made on first use; negative errno. */
int sim_arena(void);

/* Whether a graph's allocation node will give [address, address + bytes): other nodes may use it
 * before any launch has made it. */
bool sim_graph_memory_holds(uint64_t address, uint64_t bytes);

/* ---- VMM (vmm.c) ---- */

/* Sizes of what is mapped at ADDRESS; false where nothing is. */
bool sim_mapping_at(uint64_t address, uint64_t *base, uint64_t *bytes, int *device,
                    bool *accessible);
bool sim_reservation_at(uint64_t address, uint64_t *base, uint64_t *bytes);

/* ---- streams (stream.c) ---- */

struct sim_stream {
    struct sim_object object;
    struct sim_context *context;
    unsigned flags;
    int priority;
    unsigned long long id;
    bool is_legacy;
    bool is_thread_default;
    bool charged;
    struct sim_op *head, *tail;
    CUstreamAttrValue attributes[CU_LAUNCH_ATTRIBUTE_MAX]; /* only remembered */
    struct sim_stream *next_active;
    bool is_active;
    struct sim_capture *capture;
    struct sim_graph_node **frontier; /* dependencies of the next captured node */
    size_t frontier_count;
    struct sim_stream *next_captured; /* streams of the same capture */
    struct sim_stream *next;          /* all streams of all contexts */
};

extern struct sim_stream *sim_streams;

/* Finds the stream behind a handle (NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD included) of the
 * current context. NULL with *error told. */
struct sim_stream *sim_stream_of(CUstream handle, CUresult *error);

enum sim_op_kind {
    SIM_OP_DEVICE, /* runs under the lock, wherever progress is made */
    SIM_OP_HOST,   /* runs on the worker thread without the lock */
};

/* Does RUN(ARGUMENT) when the stream comes to it, at once if it is idle. Returns 0 or an error;
 * ARGUMENT belongs to RUN after success. */
CUresult sim_submit(struct sim_stream *stream, enum sim_op_kind kind, void (*run)(void *),
                    void *argument);

/* The same, not before READY_NS (CLOCK_MONOTONIC). */
CUresult sim_submit_at(struct sim_stream *stream, enum sim_op_kind kind, uint64_t ready_ns,
                       void (*run)(void *), void *argument);

/* Makes later work of STREAM wait for the tail of OTHER. */
CUresult sim_stream_join(struct sim_stream *stream, struct sim_stream *other);

bool sim_stream_idle(struct sim_stream *stream);

/* Waits until idle (lock released meanwhile). */
void sim_stream_wait(struct sim_stream *stream);
void sim_context_wait(const struct sim_context *context);

/* Destroys the streams and events of a context that ends. */
void sim_streams_of_context_end(const struct sim_context *context);

uint64_t sim_now_ns(void);

/* ---- capture (capture.c) ---- */

/* CUDA_SUCCESS, or the error of a call that is not allowed while captures are under way, which
 * invalidates them. */
CUresult sim_capture_unsafe_call(void);

/* The same for a call on a stream that must not be capturing. */
CUresult sim_capture_forbids(struct sim_stream *stream);

/* ---- pools (pool.c) ---- */

/* Synchronisation points: pools give back what exceeds their release threshold. */
void sim_pools_at_synchronization(unsigned ordinal);
struct sim_pool *sim_default_pool(unsigned ordinal); /* NULL without memory */
CUresult sim_pool_free_now(struct sim_alloc *alloc);
void sim_pools_of_device_end(unsigned ordinal);

/* ---- modules, graphs ---- */

void sim_modules_of_context_end(const struct sim_context *context);
void sim_graphs_of_context_end(const struct sim_context *context);
void sim_arrays_of_context_end(const struct sim_context *context);

#endif
