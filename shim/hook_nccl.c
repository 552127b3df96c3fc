/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's communicators: when each is made and destroyed, and by whom. A record is
 * told before a communicator is made and another when its handle is known, so that the
 * memory NCCL takes in between on the same thread is known to be that one's. No
 * hook stays open around NCCL's own call: what it allocates is NCCL's, not its caller's.
 *
 * Inside ncclGroupStart/ncclGroupEnd the handle may be written as late as the end of
 * the group: where it will be is kept until then, in a table of fixed size.
 */
#include "hook_framework.h"

#include <errno.h>
#include <stdatomic.h>

#include "real_table.h"

enum { NCCL_SUCCESS = 0, NCCL_INTERNAL_ERROR = 3, NCCL_IN_PROGRESS = 7 };
enum { KEPT_MOST = 128, ALL_MOST = 64 };
#define RANK_UNKNOWN UINT64_MAX

/* A communicator that is being made. */
struct making {
    void **out; /* where NCCL puts the handle */
    const void *caller;
    uint64_t begin; /* sequence of its COMM_BEGIN; 0 not recorded */
    uint64_t ranks; /* 0 not known */
    uint64_t rank;
    uint16_t hook;
    int8_t device;
};

static struct {
    _Atomic uint32_t thread; /* whose group it is in; 0: free */
    struct making making;
} kept[KEPT_MOST];

static SHIM_TLS struct {
    uint16_t depth; /* groups begun and not ended */
    uint16_t kept;  /* entries of ours in the table */
} group;

/* Communicators may be made before anything else is asked of CUDA. */
static bool recording(void)
{
    if (shim_config.disabled) {
        return false;
    }
    if (!shim_recording() && shim_thread.busy == 0) {
        lifecycle_cuda_seen();
    }
    return shim_recording();
}

static bool succeeded(int result)
{
    return result == NCCL_SUCCESS || result == NCCL_IN_PROGRESS;
}

/* ---- making ----------------------------------------------------------------------- */

static void tell_begin(struct making *making, const void *parent)
{
    int saved_errno = errno;
    if (recording()) {
        struct vs_event event = {.kind = VS_KIND_COMM_BEGIN,
                                 .device = making->device,
                                 .handle = HOOK_U64(parent),
                                 .size = making->ranks,
                                 .extra = {making->rank, 0}};
        making->begin = framework_tell(making->hook, &event, making->caller);
        making->device = event.device;
    }
    errno = saved_errno;
}

static bool ask(unsigned id, void *communicator, int *answer)
{
    int (*question)(void *, int *);
    *(void **)&question = real_any(id);
    return question != NULL && question(communicator, answer) == NCCL_SUCCESS && *answer >= 0;
}

/* What the arguments did not say: NCCL knows it of a communicator that is ready. */
static void ask_communicator(struct making *making, void *communicator)
{
    int answer = -1;
    if (making->ranks == 0 && ask(REAL_ncclCommCount, communicator, &answer)) {
        making->ranks = (uint64_t)answer;
    }
    if (making->rank == RANK_UNKNOWN && ask(REAL_ncclCommUserRank, communicator, &answer)) {
        making->rank = (uint64_t)answer;
    }
    if (making->device == VS_DEVICE_UNKNOWN && ask(REAL_ncclCommCuDevice, communicator, &answer) &&
        answer <= INT8_MAX) {
        making->device = (int8_t)answer;
    }
}

static void tell_end(struct making *making, int result)
{
    int saved_errno = errno;
    void *communicator = NULL;
    if (succeeded(result) && making->out != NULL) {
        communicator = __atomic_load_n(making->out, __ATOMIC_ACQUIRE);
    }
    if (shim_recording() && !shim_config.disabled) {
        if (communicator != NULL && result == NCCL_SUCCESS) {
            ask_communicator(making, communicator);
        }
        struct vs_event event = {.kind = VS_KIND_COMM_CREATE,
                                 .device = making->device,
                                 .handle = HOOK_U64(communicator),
                                 .size = making->ranks,
                                 .extra = {making->begin, making->rank},
                                 .result = succeeded(result) ? 0 : VS_NCCL_RESULTS + result};
        framework_tell(making->hook, &event, making->caller);
    }
    errno = saved_errno;
}

/* ---- groups -------------------------------------------------------------------------- */

static bool keep(const struct making *making)
{
    for (unsigned i = 0; i < KEPT_MOST; i++) {
        uint32_t nobody = 0;
        if (atomic_compare_exchange_strong(&kept[i].thread, &nobody, shim_thread.tid)) {
            kept[i].making = *making;
            group.kept++;
            return true;
        }
    }
    return false;
}

static void settle_group(int result)
{
    for (unsigned i = 0; i < KEPT_MOST; i++) {
        if (atomic_load_explicit(&kept[i].thread, memory_order_relaxed) == shim_thread.tid) {
            struct making making = kept[i].making;
            atomic_store_explicit(&kept[i].thread, 0, memory_order_release);
            tell_end(&making, result);
        }
    }
    group.kept = 0;
}

static void made(struct making *making, int result)
{
    bool later = group.depth != 0 && succeeded(result) && shim_thread.tid != 0;
    if (!later || !keep(making)) {
        tell_end(making, result);
    }
}

SHIM_EXPORT int ncclGroupStart(void);
int ncclGroupStart(void)
{
    int (*real)(void);
    *(void **)&real = framework_real(HOOK_ncclGroupStart, __builtin_return_address(0));
    int result = real != NULL ? real() : NCCL_INTERNAL_ERROR;
    if (result == NCCL_SUCCESS) {
        group.depth++;
    }
    return result;
}

SHIM_EXPORT int ncclGroupEnd(void);
int ncclGroupEnd(void)
{
    int (*real)(void);
    *(void **)&real = framework_real(HOOK_ncclGroupEnd, __builtin_return_address(0));
    int result = real != NULL ? real() : NCCL_INTERNAL_ERROR;
    if (group.depth != 0) {
        group.depth--;
    }
    if (group.depth == 0 && group.kept != 0) {
        settle_group(result);
    }
    return result;
}

/* ---- the calls ---------------------------------------------------------------------------- */

#define MAKING(name, ...)                                                       \
    {                                                                           \
        .hook = HOOK_##name, .caller = __builtin_return_address(0), .out = out, \
        .rank = RANK_UNKNOWN, .device = VS_DEVICE_UNKNOWN, __VA_ARGS__          \
    }

/* Tells, calls and tells again; `name` as it is called with the arguments in parentheses. */
#define CALL(name, types, arguments, parent)                      \
    int(*real) types;                                             \
    *(void **)&real = framework_real(HOOK_##name, making.caller); \
    if (real == NULL) {                                           \
        return NCCL_INTERNAL_ERROR;                               \
    }                                                             \
    tell_begin(&making, parent);                                  \
    int result = real arguments;                                  \
    made(&making, result);                                        \
    return result

SHIM_EXPORT int ncclCommInitRank(void **out, int ranks, struct nccl_unique_id id, int rank);
int ncclCommInitRank(void **out, int ranks, struct nccl_unique_id id, int rank)
{
    struct making making = MAKING(ncclCommInitRank, .ranks = (uint32_t)ranks);
    making.rank = (uint32_t)rank;
    CALL(ncclCommInitRank, (void **, int, struct nccl_unique_id, int), (out, ranks, id, rank),
         NULL);
}

SHIM_EXPORT int ncclCommInitRankConfig(void **out, int ranks, struct nccl_unique_id id, int rank,
                                       void *config);
int ncclCommInitRankConfig(void **out, int ranks, struct nccl_unique_id id, int rank, void *config)
{
    struct making making = MAKING(ncclCommInitRankConfig, .ranks = (uint32_t)ranks);
    making.rank = (uint32_t)rank;
    CALL(ncclCommInitRankConfig, (void **, int, struct nccl_unique_id, int, void *),
         (out, ranks, id, rank, config), NULL);
}

SHIM_EXPORT int ncclCommInitRankScalable(void **out, int ranks, int rank, int ids, void *id,
                                         void *config);
int ncclCommInitRankScalable(void **out, int ranks, int rank, int ids, void *id, void *config)
{
    struct making making = MAKING(ncclCommInitRankScalable, .ranks = (uint32_t)ranks);
    making.rank = (uint32_t)rank;
    CALL(ncclCommInitRankScalable, (void **, int, int, int, void *, void *),
         (out, ranks, rank, ids, id, config), NULL);
}

/* A process that belongs to no part (color below zero) gets no communicator. */
SHIM_EXPORT int ncclCommSplit(void *parent, int color, int key, void **out, void *config);
int ncclCommSplit(void *parent, int color, int key, void **out, void *config)
{
    struct making making = MAKING(ncclCommSplit, .ranks = 0);
    if (color < 0) {
        int (*split)(void *, int, int, void **, void *);
        *(void **)&split = framework_real(HOOK_ncclCommSplit, making.caller);
        return split != NULL ? split(parent, color, key, out, config) : NCCL_INTERNAL_ERROR;
    }
    CALL(ncclCommSplit, (void *, int, int, void **, void *), (parent, color, key, out, config),
         parent);
}

SHIM_EXPORT int ncclCommShrink(void *parent, int *excluded, int count, void **out, void *config,
                               int shrink_flags);
int ncclCommShrink(void *parent, int *excluded, int count, void **out, void *config,
                   int shrink_flags)
{
    struct making making = MAKING(ncclCommShrink, .ranks = 0);
    CALL(ncclCommShrink, (void *, int *, int, void **, void *, int),
         (parent, excluded, count, out, config, shrink_flags), parent);
}

/* One communicator for each of the process's devices. */
SHIM_EXPORT int ncclCommInitAll(void **out, int count, const int *devices);
int ncclCommInitAll(void **out, int count, const int *devices)
{
    const void *caller = __builtin_return_address(0);
    struct making all[ALL_MOST];
    int told = out == NULL || count < 0 ? 0 : count < ALL_MOST ? count : ALL_MOST;
    int (*real)(void **, int, const int *);
    *(void **)&real = framework_real(HOOK_ncclCommInitAll, caller);
    if (real == NULL) {
        return NCCL_INTERNAL_ERROR;
    }
    for (int i = 0; i < told; i++) {
        int device = devices != NULL ? devices[i] : i;
        all[i] = (struct making){.hook = HOOK_ncclCommInitAll,
                                 .caller = caller,
                                 .out = &out[i],
                                 .ranks = (uint64_t)count,
                                 .rank = (uint64_t)i,
                                 .device = device >= 0 && device <= INT8_MAX ? (int8_t)device
                                                                             : VS_DEVICE_UNKNOWN};
        tell_begin(&all[i], NULL);
    }
    int result = real(out, count, devices);
    for (int i = 0; i < told; i++) {
        made(&all[i], result);
    }
    return result;
}

/* ---- the end of one ---------------------------------------------------------------------- */

static void take_back(unsigned hook, const struct vs_event *intent, uint64_t sequence, int result,
                      const void *caller)
{
    struct vs_event undo = *intent;
    undo.kind = VS_KIND_UNDO;
    undo.flags = 0;
    undo.stack = 0; /* the record that it names has it */
    undo.time_ns = 0;
    undo.handle = sequence;
    undo.result = VS_NCCL_RESULTS + result;
    framework_tell(hook, &undo, caller);
}

static int end(unsigned hook, const void *caller, void *communicator)
{
    struct vs_event event = {.kind = VS_KIND_COMM_DESTROY,
                             .flags = VS_EVENT_INTENT,
                             .device = VS_DEVICE_UNKNOWN,
                             .handle = HOOK_U64(communicator)};
    uint64_t sequence = 0;
    int (*real)(void *);
    *(void **)&real = framework_real(hook, caller);
    if (real == NULL) {
        return NCCL_INTERNAL_ERROR;
    }
    int saved_errno = errno;
    if (communicator != NULL && recording()) {
        sequence = framework_tell(hook, &event, caller);
    }
    errno = saved_errno;
    int result = real(communicator);
    saved_errno = errno;
    if (sequence != 0 && !succeeded(result) && shim_recording()) {
        take_back(hook, &event, sequence, result, caller);
    }
    errno = saved_errno;
    return result;
}

SHIM_EXPORT int ncclCommDestroy(void *communicator);
int ncclCommDestroy(void *communicator)
{
    return end(HOOK_ncclCommDestroy, __builtin_return_address(0), communicator);
}

SHIM_EXPORT int ncclCommAbort(void *communicator);
int ncclCommAbort(void *communicator)
{
    return end(HOOK_ncclCommAbort, __builtin_return_address(0), communicator);
}

/* ---- memory for the caller -------------------------------------------------------------- */

/* Its driver calls are the caller's, under this name: no communicator's. */
SHIM_EXPORT int ncclMemAlloc(void **out, size_t bytes);
int ncclMemAlloc(void **out, size_t bytes)
{
    const void *caller = __builtin_return_address(0);
    int (*real)(void **, size_t);
    *(void **)&real = framework_real(HOOK_ncclMemAlloc, caller);
    if (real == NULL) {
        return NCCL_INTERNAL_ERROR;
    }
    int saved_errno = errno;
    if (!recording()) {
        errno = saved_errno;
        return real(out, bytes);
    }
    struct thread_frame frame;
    struct shim_thread *thread = thread_enter(&frame);
    struct vs_event label = {.kind = 0};
    hook_label(thread, &label, HOOK_ncclMemAlloc, hook_module_of(caller));
    hook_count_call(HOOK_LEVEL_FRAMEWORK);
    errno = saved_errno;
    int result = real(out, bytes);
    thread_leave(thread, &frame);
    return result;
}

/* ---- look-ups ------------------------------------------------------------------------------ */

static const struct {
    uint16_t hook;
    hook_entry *entry;
} entries[] = {
    {HOOK_ncclCommInitRank, (hook_entry *)ncclCommInitRank},
    {HOOK_ncclCommInitRankConfig, (hook_entry *)ncclCommInitRankConfig},
    {HOOK_ncclCommInitRankScalable, (hook_entry *)ncclCommInitRankScalable},
    {HOOK_ncclCommInitAll, (hook_entry *)ncclCommInitAll},
    {HOOK_ncclCommSplit, (hook_entry *)ncclCommSplit},
    {HOOK_ncclCommShrink, (hook_entry *)ncclCommShrink},
    {HOOK_ncclCommDestroy, (hook_entry *)ncclCommDestroy},
    {HOOK_ncclCommAbort, (hook_entry *)ncclCommAbort},
    {HOOK_ncclGroupStart, (hook_entry *)ncclGroupStart},
    {HOOK_ncclGroupEnd, (hook_entry *)ncclGroupEnd},
    {HOOK_ncclMemAlloc, (hook_entry *)ncclMemAlloc},
};

/* Our entry points lead to one NCCL: the functions of another are handed out as they are. */
void *nccl_wrap(unsigned hook, void *found)
{
    for (unsigned i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        if (entries[i].hook == hook && found != NULL && found == real_any(hook)) {
            return *(void *const *)&entries[i].entry;
        }
    }
    return found;
}
