/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens around every hooked call: which call is the event, which one the
 * label, what is recorded before and what after. The wrappers only translate
 * arguments; the rules live here, once.
 */
#include "hook.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "../formats/ring.h"
#include "devices.h"
#include "event_clock.h"
#include "lifecycle.h"
#include "real_table.h"

/* ---- what the kinds have in common --------------------------------------------- */

enum trait {
    TRAIT_INTENT = 1,       /* gives something back whose address or handle may be reused at once */
    TRAIT_SUBSTITUTED = 2,  /* other memory calls beneath it mean that they carried it out */
    TRAIT_MEMORY = 4,       /* such a memory call */
    TRAIT_SAMPLE_AFTER = 8, /* may change what the device has free */
    TRAIT_SAMPLE_BEFORE = 16,     /* by an amount that no argument tells */
    TRAIT_ONLY_FAILED = 32,       /* of interest when it failed */
    TRAIT_NO_DEVICE = 64,         /* concerns ranges or handles, not the current device */
    TRAIT_SAMPLE_APART = 128,     /* may, but the event itself has no place for the figure */
    TRAIT_SIZED_AFTER_LOSS = 256, /* gives back what the driver knows the size of */
};

#define GIVES_BACK (TRAIT_INTENT | TRAIT_SUBSTITUTED | TRAIT_MEMORY)
#define TAKES (TRAIT_SUBSTITUTED | TRAIT_MEMORY)
#define MEASURED (TRAIT_SAMPLE_BEFORE | TRAIT_SAMPLE_AFTER)

static const uint16_t traits[VS_RING_LOSS_KINDS] = {
    [VS_KIND_ALLOC] = TAKES | TRAIT_SAMPLE_AFTER,
    [VS_KIND_FREE] = GIVES_BACK | TRAIT_SAMPLE_AFTER | TRAIT_SIZED_AFTER_LOSS,
    [VS_KIND_POOL_ALLOC] = TAKES | TRAIT_SAMPLE_AFTER,
    [VS_KIND_POOL_FREE] = GIVES_BACK,
    [VS_KIND_POOL_CREATE] = TAKES,
    [VS_KIND_POOL_DESTROY] = GIVES_BACK | TRAIT_SAMPLE_AFTER,
    [VS_KIND_POOL_TRIM] = TAKES | TRAIT_SAMPLE_AFTER,
    [VS_KIND_RESERVE] = TAKES | TRAIT_NO_DEVICE,
    [VS_KIND_UNRESERVE] = GIVES_BACK | TRAIT_NO_DEVICE,
    [VS_KIND_PHYS_CREATE] = TAKES | TRAIT_SAMPLE_AFTER | TRAIT_NO_DEVICE,
    [VS_KIND_PHYS_RELEASE] = GIVES_BACK | TRAIT_SAMPLE_AFTER | TRAIT_NO_DEVICE,
    [VS_KIND_PHYS_RETAIN] = TAKES | TRAIT_NO_DEVICE,
    [VS_KIND_PHYS_IMPORT] = TAKES | TRAIT_NO_DEVICE,
    [VS_KIND_PHYS_EXPORT] = TAKES | TRAIT_NO_DEVICE,
    [VS_KIND_MAP] = TAKES | TRAIT_NO_DEVICE,
    [VS_KIND_UNMAP] = GIVES_BACK | TRAIT_SAMPLE_AFTER | TRAIT_NO_DEVICE,
    [VS_KIND_SET_ACCESS] = TRAIT_NO_DEVICE,
    [VS_KIND_HOST_ALLOC] = TAKES,
    [VS_KIND_HOST_FREE] = GIVES_BACK | TRAIT_SIZED_AFTER_LOSS,
    [VS_KIND_HOST_REGISTER] = TAKES,
    [VS_KIND_HOST_UNREGISTER] = GIVES_BACK | TRAIT_SIZED_AFTER_LOSS,
    [VS_KIND_IPC_GET] = TAKES,
    [VS_KIND_IPC_OPEN] = TAKES,
    [VS_KIND_IPC_CLOSE] = GIVES_BACK,
    [VS_KIND_ARRAY_CREATE] = TAKES | TRAIT_SAMPLE_AFTER,
    [VS_KIND_ARRAY_DESTROY] = GIVES_BACK | TRAIT_SAMPLE_AFTER,
    [VS_KIND_EXTERNAL_IMPORT] = TAKES,
    [VS_KIND_EXTERNAL_MAP] = TAKES,
    [VS_KIND_EXTERNAL_DESTROY] = GIVES_BACK,
    [VS_KIND_MULTICAST_CREATE] = TAKES | TRAIT_NO_DEVICE,
    [VS_KIND_MULTICAST_BIND] = TAKES | TRAIT_SAMPLE_AFTER | TRAIT_NO_DEVICE,
    [VS_KIND_MULTICAST_UNBIND] = GIVES_BACK | TRAIT_SAMPLE_AFTER | TRAIT_NO_DEVICE,
    [VS_KIND_GRAPH_TRIM] = TRAIT_SAMPLE_AFTER,
    [VS_KIND_CONTEXT_CREATE] = MEASURED,
    [VS_KIND_CONTEXT_DESTROY] = TRAIT_INTENT | MEASURED,
    [VS_KIND_CONTEXT_RETAIN] = MEASURED,
    [VS_KIND_CONTEXT_RELEASE] = TRAIT_INTENT | MEASURED,
    [VS_KIND_CONTEXT_RESET] = TRAIT_INTENT | MEASURED,
    [VS_KIND_LIMIT_SET] = MEASURED,
    [VS_KIND_MODULE_LOAD] = MEASURED,
    [VS_KIND_MODULE_UNLOAD] = TRAIT_INTENT | MEASURED,
    [VS_KIND_STREAM_CREATE] = MEASURED,
    [VS_KIND_STREAM_DESTROY] = TRAIT_INTENT | TRAIT_SAMPLE_AFTER,
    [VS_KIND_EVENT_DESTROY] = TRAIT_INTENT,
    [VS_KIND_GRAPH_INSTANTIATE] = MEASURED,
    [VS_KIND_GRAPH_LAUNCH] = TRAIT_SAMPLE_AFTER,
    [VS_KIND_GRAPH_UPLOAD] = TRAIT_SAMPLE_AFTER,
    [VS_KIND_GRAPH_EXEC_DESTROY] = TRAIT_INTENT | MEASURED,
    [VS_KIND_GRAPH_DESTROY] = TRAIT_INTENT,
    [VS_KIND_DEVICE_SET] = TRAIT_SAMPLE_APART, /* may make a context */
    [VS_KIND_OTHER_CALL] = TRAIT_ONLY_FAILED,
};

static bool has(unsigned kind, unsigned wanted)
{
    return (traits[kind & (VS_RING_LOSS_KINDS - 1)] & wanted) != 0;
}

static uint64_t bit(unsigned kind)
{
    return kind < 64 ? 1ULL << kind : 0;
}

static uint64_t memory_kinds(void)
{
    static _Atomic uint64_t mask;
    uint64_t known = atomic_load_explicit(&mask, memory_order_relaxed);
    for (unsigned kind = 0; known == 0 && kind < 64; kind++) {
        if (has(kind, TRAIT_MEMORY)) {
            atomic_fetch_or_explicit(&mask, bit(kind), memory_order_relaxed);
        }
    }
    return atomic_load_explicit(&mask, memory_order_relaxed);
}

/* ---- the thread ------------------------------------------------------------------ */

static SHIM_TLS struct hook_nesting hook_thread;

/* A driver hook ran beneath a runtime hook: the runtime's way to the driver leads through us. */
static _Atomic bool driver_is_visible;

void hook_own_calls_begin(void)
{
    hook_thread.own_calls++;
}

void hook_own_calls_end(void)
{
    hook_thread.own_calls--;
}

/* From the arguments alone, so that a runtime call and the driver call beneath it agree. */
static uint64_t key_of_call(const struct hook_call *call)
{
    const struct vs_event *event = &call->event;
    uint64_t device = call->device_given ? (uint64_t)(uint8_t)event->device : 0;
    return event->address ^ event->handle ^ (event->stream << 1) ^ (event->context << 2) ^
           (event->pool << 3) ^ (device << 56);
}

/*
 * A hook that was jumped out of may have left its frame, guard and all, just
 * where this one's lies now; two live ones never overlap.
 */
static void forget_overlaid(const struct shim_thread *thread, const struct hook_call *call)
{
    uintptr_t above = (uintptr_t)thread->stack_mark - (uintptr_t)&call->frame;
    if (thread->depth != 0 && above < sizeof(*call) - offsetof(struct hook_call, frame)) {
        thread_repair();
    }
}

/* An own call that was jumped out of left its mark behind; its hook's frame tells. */
static bool inside_own_call(const struct shim_thread *thread, const struct hook_call *call)
{
    return hook_thread.own_calls != 0 && thread->depth != 0 &&
           thread_frame_is_live((const struct thread_frame *)thread->stack_mark, &call->frame);
}

/* ---- accounting --------------------------------------------------------------------- */

void hook_warn(enum hook_warning warning)
{
    if (shim_recording()) {
        atomic_fetch_or_explicit(&lifecycle_ring->hook_warnings, (uint32_t)warning,
                                 memory_order_relaxed);
    }
}

void hook_count_call(enum hook_level level)
{
    _Atomic uint64_t *counters[] = {&lifecycle_ring->driver_calls, &lifecycle_ring->runtime_calls,
                                    &lifecycle_ring->framework_calls};
    atomic_fetch_add_explicit(counters[level], 1, memory_order_relaxed);
}

void hook_count_missing(void)
{
    if (shim_recording()) {
        atomic_fetch_add_explicit(&lifecycle_ring->missing_real, 1, memory_order_relaxed);
    }
}

void hook_count_sample_ns(uint64_t ns)
{
    if (shim_recording()) {
        atomic_fetch_add_explicit(&lifecycle_ring->sample_spent_ns, ns, memory_order_relaxed);
    }
}

/* ---- begin ----------------------------------------------------------------------------- */

uint32_t hook_module_of(const void *caller)
{
    uint32_t module = modules_find(caller);
    if (module == 0 && real_refresh_if_stale()) {
        module = modules_find(caller);
    }
    return module;
}

static bool recording_on(const struct shim_thread *thread)
{
    if (shim_config.disabled) {
        return false;
    }
    if (!shim_recording() && thread->busy == 0) {
        lifecycle_cuda_seen();
    }
    return shim_recording();
}

void hook_label(struct shim_thread *thread, struct vs_event *event, unsigned hook, uint32_t module)
{
    event->call = intern_call(hook, hook_rows[hook].name);
    if (thread->depth == 1) {
        thread->label = event->call;
        thread->label_module = module;
        thread->driver_events = 0;
        intern_thread();
    }
    event->label = thread->label;
    event->module = thread->label_module;
}

static void enter(struct hook_call *call, unsigned hook, uint32_t module)
{
    struct shim_thread *thread = thread_enter(&call->frame);
    memset(&call->event, 0, sizeof(call->event));
    call->event.kind = hook_rows[hook].kind;
    call->event.device = VS_DEVICE_UNKNOWN;
    call->event.free_bytes = VS_FREE_UNKNOWN;
    call->intent = 0;
    call->skip = hook_rows[hook].kind == 0;
    call->device_given = false;
    call->passed_on = false;
    call->intent_wanted = false;
    if (thread->depth == 1) {
        memset(&hook_thread, 0, sizeof(hook_thread)); /* whatever a jump out of a hook left */
    }
    call->outer = hook_thread;
    hook_thread.beneath = 0;
    hook_label(thread, &call->event, hook, module);
    hook_count_call((enum hook_level)hook_rows[hook].level);
}

static void note_levels(unsigned hook)
{
    if (hook_rows[hook].level == HOOK_LEVEL_RUNTIME) {
        hook_thread.runtime_depth++;
    } else if (hook_thread.runtime_depth > 0) {
        atomic_store_explicit(&driver_is_visible, true, memory_order_relaxed);
    }
}

void *hook_begin(struct hook_call *call, unsigned hook, unsigned slot, const void *caller)
{
    int saved_errno = errno;
    const struct shim_thread *thread = &shim_thread;
    bool on = recording_on(thread);
    uint32_t module = 0;

    call->hook = (uint16_t)hook;
    call->active = false;
    forget_overlaid(thread, call);
    if (slot == HOOK_SLOT_OF_CALLER || (on && thread->depth == 0)) {
        module = hook_module_of(caller);
    }
    void *real =
        slot == HOOK_SLOT_OF_CALLER ? real_for_module(hook, module) : real_in_slot(hook, slot);
    if (real == NULL) {
        hook_warn(HOOK_WARNING_REAL_MISSING);
    } else if (on && !inside_own_call(thread, call)) {
        call->active = true;
        enter(call, hook, module);
        note_levels(hook);
    }
    errno = saved_errno;
    return real;
}

/* ---- before the real call ---------------------------------------------------------------- */

static bool at_driver_level(const struct hook_call *call)
{
    return hook_rows[call->hook].level == HOOK_LEVEL_DRIVER;
}

/* Driver calls, and runtime calls while nothing shows that the driver beneath them is seen. */
static bool is_innermost_level(const struct hook_call *call)
{
    return at_driver_level(call) || !atomic_load_explicit(&driver_is_visible, memory_order_relaxed);
}

/* Which context and device: the arguments', else the current ones. */
static void identify(struct hook_call *call)
{
    struct vs_event *event = &call->event;
    int device = devices_current(&event->context);
    call->device_before = (int8_t)device;
    if (!call->device_given && !has(event->kind, TRAIT_NO_DEVICE)) {
        event->device = (int8_t)device;
    }
}

/* What is measured is the current device. */
static bool on_current_device(const struct hook_call *call)
{
    return !call->device_given || call->event.device == call->device_before;
}

/*
 * A free that an enclosing hook has announced already is that hook's event;
 * else it is announced here.
 */
static void announce(struct hook_call *call)
{
    struct vs_event *event = &call->event;
    if (hook_thread.pending_kind == event->kind && hook_thread.pending_key == call->key) {
        call->passed_on = true;
        return;
    }
    if (!is_innermost_level(call)) {
        return;
    }
    event->time_ns = call->start_ns;
    event->flags |= VS_EVENT_INTENT | (at_driver_level(call) ? 0U : VS_EVENT_RUNTIME);
    call->intent = has(event->kind, TRAIT_SIZED_AFTER_LOSS) ? shim_emit_free(event, devices_size_of)
                                                            : shim_emit(event);
    call->intent_wanted = true;
    hook_thread.pending_kind = event->kind;
    hook_thread.pending_key = call->key;
}

void hook_before(struct hook_call *call)
{
    int saved_errno = errno;
    if (!call->skip) {
        call->key = key_of_call(call);
        identify(call);
        devices_note_stream(&call->event);
        if (has(call->event.kind, TRAIT_SAMPLE_BEFORE) && is_innermost_level(call) &&
            on_current_device(call)) {
            devices_sample_apart(&call->event);
        }
        call->start_ns = event_now_ns();
        if (has(call->event.kind, TRAIT_INTENT)) {
            announce(call);
        }
    }
    errno = saved_errno;
}

/* ---- after the real call ------------------------------------------------------------------- */

static bool failed(const struct hook_call *call, int result)
{
    return result != ABI_SUCCESS &&
           !(call->event.kind == VS_KIND_EVENT_QUERY && result == ABI_NOT_READY);
}

/* True when calls beneath this one, recorded with their own arguments, are what it did. */
static bool carried_out_beneath(const struct hook_call *call)
{
    uint64_t same = bit(call->event.kind);
    if (has(call->event.kind, TRAIT_SUBSTITUTED)) {
        same |= memory_kinds();
    }
    return (hook_thread.beneath & same) != 0;
}

static void take_back(struct hook_call *call, int result)
{
    struct vs_event undo = call->event;
    undo.kind = VS_KIND_UNDO;
    undo.stack = 0; /* the record that it names has it */
    undo.handle = call->intent;
    undo.time_ns = 0;
    undo.result = result;
    undo.flags &= (uint16_t)~VS_EVENT_INTENT;
    shim_emit(&undo);
}

static void settle_intent(struct hook_call *call, bool is_failed, bool is_beneath)
{
    if (call->intent != 0 && (is_failed || is_beneath)) {
        take_back(call, is_failed ? call->event.result : ABI_SUCCESS);
    } else if (!is_failed && has(call->event.kind, TRAIT_SAMPLE_AFTER)) {
        devices_sample_apart(&call->event);
    }
}

static void record(struct hook_call *call)
{
    struct vs_event *event = &call->event;
    if (event->context == 0 || event->kind == VS_KIND_DEVICE_SET) {
        event->context = 0;
        identify(call); /* the call itself may have made a context current */
    }
    bool apart = devices_complete(event, has(event->kind, TRAIT_SAMPLE_AFTER));
    event->flags |= at_driver_level(call) ? 0U : VS_EVENT_RUNTIME;
    shim_emit(event);
    if (apart) {
        devices_sample_apart(event);
    }
}

/* Succeeded and changed nothing that anybody asks about: a device chosen again. */
static bool is_dull(const struct hook_call *call)
{
    return has(call->event.kind, TRAIT_ONLY_FAILED) ||
           (call->event.kind == VS_KIND_DEVICE_SET && call->event.device == call->device_before);
}

static void conclude(struct hook_call *call, uint64_t end_ns)
{
    struct vs_event *event = &call->event;
    uint64_t duration = end_ns - call->start_ns;
    bool is_failed = failed(call, event->result);
    bool is_beneath = carried_out_beneath(call);
    event->duration_ns = duration < UINT32_MAX ? (uint32_t)duration : UINT32_MAX;
    if (call->intent_wanted) {
        settle_intent(call, is_failed, is_beneath);
    } else if (!is_beneath && (is_failed || !is_dull(call))) {
        event->time_ns = end_ns;
        record(call);
    }
    if (!is_failed && !is_beneath && has(event->kind, TRAIT_SAMPLE_APART)) {
        devices_sample_apart(event);
    }
    if (!is_beneath) {
        hook_thread.beneath |= bit(event->kind);
        shim_thread.driver_events++;
    }
    if (is_failed && has(event->kind, TRAIT_MEMORY)) {
        lifecycle_flush_soon();
    }
}

static void leave(struct hook_call *call)
{
    uint64_t beneath = hook_thread.beneath;
    hook_thread = call->outer;
    hook_thread.beneath |= beneath;
    thread_leave(&shim_thread, &call->frame);
}

int hook_after(struct hook_call *call, int result)
{
    int saved_errno = errno;
    call->event.result = result;
    if (!call->skip && shim_recording()) {
        uint64_t end_ns = event_now_ns();
        devices_after(&call->event);
        if (!call->passed_on) {
            conclude(call, end_ns);
        }
    }
    leave(call);
    errno = saved_errno;
    return result;
}
