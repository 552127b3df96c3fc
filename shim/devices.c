/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measurement by real driver calls (decision 11): bounded to 1 % of wall time,
 * never while anything is being captured, never without a current context.
 */
#include "devices.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "../formats/ring.h"
#include "event_clock.h"
#include "hook.h"
#include "real_table.h"

#define CONTEXTS 64U
#define DEVICES 128 /* an event's ordinal has 7 bits */
#define CAPTURES 64U
#define SAMPLE_SHARE 100U            /* one part in so many of wall time */
#define SAMPLE_ALLOWANCE_NS 1000000U /* to begin with */
#define UNKNOWN_BYTES UINT64_MAX

static struct {
    _Atomic uint64_t contexts[CONTEXTS]; /* context << 8 | device + 1; 0 empty */
    _Atomic uint32_t sent[DEVICES];      /* shim_generation() of the trace that has the device */
    _Atomic uint64_t captures[CAPTURES]; /* streams whose capture has begun; 0 empty */
    _Atomic uint32_t capture_count;      /* of them; stays up when they did not fit */
    _Atomic uint64_t began_ns;           /* first sample */
    _Atomic uint64_t spent_ns;
} devices;

/* Declares `function` as the real entry point `name`; NULL when there is none. */
#define REAL(function, name, ...) \
    int (*function)(__VA_ARGS__); \
    *(void **)&function = real_any(name)

/* ---- identity of a device --------------------------------------------------------- */

static void ask_uuids(struct vs_record_device *record, int device)
{
    REAL(get_uuid, REAL_cuDeviceGetUuid, void *, int);
    REAL(get_uuid_v2, REAL_cuDeviceGetUuid_v2, void *, int);
    unsigned char slice[sizeof(record->uuid)] = {0};

    /* The first form names the whole device, the second the MIG slice where there is one. */
    bool has_slice = get_uuid_v2 != NULL && get_uuid_v2(slice, device) == ABI_SUCCESS;
    if (get_uuid == NULL || get_uuid(record->uuid, device) != ABI_SUCCESS) {
        memcpy(record->uuid, slice, sizeof(slice));
    } else if (has_slice && memcmp(slice, record->uuid, sizeof(slice)) != 0) {
        memcpy(record->mig_uuid, slice, sizeof(slice));
    }
}

static void ask_names(struct vs_record_device *record, int device)
{
    REAL(get_name, REAL_cuDeviceGetName, char *, int, int);
    REAL(get_pci, REAL_cuDeviceGetPCIBusId, char *, int, int);
    if (get_name != NULL) {
        get_name(record->name, (int)sizeof(record->name) - 1, device);
    }
    if (get_pci != NULL) {
        get_pci(record->pci_id, (int)sizeof(record->pci_id) - 1, device);
    }
}

static void ask_figures(struct vs_record_device *record, int device)
{
    REAL(get_total, REAL_cuDeviceTotalMem_v2, size_t *, int);
    REAL(get_attribute, REAL_cuDeviceGetAttribute, int *, int, int);
    REAL(get_version, REAL_cuDriverGetVersion, int *);
    size_t total = 0;
    int integrated = 0;
    if (get_total != NULL && get_total(&total, device) == ABI_SUCCESS) {
        record->total_bytes = total;
    }
    if (get_attribute != NULL &&
        get_attribute(&integrated, ABI_DEVICE_ATTRIBUTE_INTEGRATED, device) == ABI_SUCCESS) {
        record->integrated = integrated != 0;
    }
    if (get_version != NULL) {
        get_version(&record->driver_version);
    }
}

/* Once per device and trace; again when the record found no room. */
static void introduce(int device)
{
    uint32_t generation = shim_generation();
    if (atomic_load_explicit(&devices.sent[device], memory_order_relaxed) == generation) {
        return;
    }
    struct vs_record_device record;
    memset(&record, 0, sizeof(record));
    hook_own_calls_begin();
    ask_uuids(&record, device);
    ask_names(&record, device);
    ask_figures(&record, device);
    hook_own_calls_end();
    if (shim_emit_definition(VS_RECORD_DEVICE, (uint32_t)device, 0, &record, sizeof(record), NULL,
                             0)) {
        atomic_store_explicit(&devices.sent[device], generation, memory_order_relaxed);
    }
}

/* ---- the current context ------------------------------------------------------------ */

static unsigned home_of(uint64_t context)
{
    return (unsigned)((context * 0x9e3779b97f4a7c15ULL) >> 58); /* CONTEXTS is 2^6 */
}

/* Device of a context seen before, or -1. */
static int known_device(uint64_t context)
{
    uint64_t entry =
        atomic_load_explicit(&devices.contexts[home_of(context)], memory_order_relaxed);
    return entry >> 8 == context ? (int)(entry & 0xff) - 1 : -1;
}

static int ask_device(uint64_t context)
{
    REAL(get_device, REAL_cuCtxGetDevice, int *);
    int device = -1;
    if (get_device == NULL || get_device(&device) != ABI_SUCCESS || device < 0 ||
        device >= DEVICES) {
        return -1;
    }
    /* Two contexts with one home take turns; each answer is right by itself. */
    atomic_store_explicit(&devices.contexts[home_of(context)],
                          context << 8 | (uint64_t)(device + 1), memory_order_relaxed);
    return device;
}

static void forget_contexts(void)
{
    for (unsigned i = 0; i < CONTEXTS; i++) {
        atomic_store_explicit(&devices.contexts[i], 0, memory_order_relaxed);
    }
}

int devices_current(uint64_t *context)
{
    REAL(get_current, REAL_cuCtxGetCurrent, void **);
    void *current = NULL;
    int device = -1;

    hook_own_calls_begin();
    if (get_current != NULL && get_current(&current) == ABI_SUCCESS && current != NULL) {
        device = known_device(HOOK_U64(current));
        device = device >= 0 ? device : ask_device(HOOK_U64(current));
    }
    hook_own_calls_end();
    if (*context == 0) {
        *context = HOOK_U64(current);
    }
    if (device < 0) {
        return VS_DEVICE_UNKNOWN;
    }
    shim_thread.device = (uint32_t)device + 1;
    introduce(device);
    return device;
}

/* ---- captures -------------------------------------------------------------------------- */

/* The thread's own stream has one name in all threads. */
static uint64_t capture_key(uint64_t stream)
{
    return stream == ABI_STREAM_PER_THREAD ? (uint64_t)shim_thread.tid << 8 | stream : stream;
}

static void capture_began(uint64_t stream)
{
    uint64_t key = capture_key(stream);
    for (unsigned i = 0; i < CAPTURES; i++) {
        if (atomic_load(&devices.captures[i]) == key) {
            return;
        }
    }
    for (unsigned i = 0; i < CAPTURES; i++) {
        uint64_t empty = 0;
        if (atomic_compare_exchange_strong(&devices.captures[i], &empty, key)) {
            break;
        }
    }
    atomic_fetch_add(&devices.capture_count, 1);
}

static void capture_ended(uint64_t stream)
{
    uint64_t key = capture_key(stream);
    for (unsigned i = 0; i < CAPTURES; i++) {
        uint64_t seen = key;
        if (atomic_compare_exchange_strong(&devices.captures[i], &seen, 0)) {
            atomic_fetch_sub(&devices.capture_count, 1);
            return;
        }
    }
}

static bool capturing_somewhere(void)
{
    return atomic_load_explicit(&devices.capture_count, memory_order_relaxed) != 0;
}

void devices_note_stream(struct vs_event *event)
{
    if (!capturing_somewhere() ||
        (event->kind != VS_KIND_POOL_ALLOC && event->kind != VS_KIND_POOL_FREE &&
         event->kind != VS_KIND_EVENT_RECORD && event->kind != VS_KIND_FW_ALLOC &&
         event->kind != VS_KIND_FW_OOM)) {
        return;
    }
    REAL(is_capturing, REAL_cuStreamIsCapturing, void *, int *);
    int status = ABI_CAPTURE_STATUS_NONE;
    hook_own_calls_begin();
    if (is_capturing != NULL &&
        is_capturing((void *)(uintptr_t)event->stream, &status) == ABI_SUCCESS &&
        status != ABI_CAPTURE_STATUS_NONE) {
        event->flags |= VS_EVENT_CAPTURING;
    }
    hook_own_calls_end();
}

/* A capture that ended in an error has ended too, unless the call was not this capture's end. */
static bool ends_capture(int result)
{
    return result != ABI_CAPTURE_UNMATCHED && result != ABI_CAPTURE_WRONG_THREAD;
}

void devices_after(const struct vs_event *event)
{
    switch (event->kind) {
    case VS_KIND_CAPTURE_BEGIN:
        if (event->result == ABI_SUCCESS) {
            capture_began(event->stream);
        }
        break;
    case VS_KIND_CAPTURE_END:
        if (ends_capture(event->result)) {
            capture_ended(event->stream);
        }
        break;
    case VS_KIND_STREAM_DESTROY:
        if (event->result == ABI_SUCCESS) {
            capture_ended(event->stream);
        }
        break;
    case VS_KIND_CONTEXT_DESTROY:
    case VS_KIND_CONTEXT_RELEASE:
    case VS_KIND_CONTEXT_RESET:
        forget_contexts();
        break;
    default:
        break;
    }
}

/* ---- free memory ------------------------------------------------------------------------- */

static bool may_sample(uint64_t now_ns)
{
    if (shim_config.sampling == SHIM_SAMPLE_NEVER || capturing_somewhere()) {
        return false;
    }
    if (shim_config.sampling == SHIM_SAMPLE_ALWAYS) {
        return true;
    }
    uint64_t none = 0;
    atomic_compare_exchange_strong(&devices.began_ns, &none, now_ns);
    uint64_t elapsed_ns =
        event_ns_between(atomic_load_explicit(&devices.began_ns, memory_order_relaxed), now_ns);
    return atomic_load_explicit(&devices.spent_ns, memory_order_relaxed) <=
           elapsed_ns / SAMPLE_SHARE + SAMPLE_ALLOWANCE_NS;
}

struct measurement {
    uint64_t began_ns, ended_ns;
    size_t free_bytes, total_bytes;
};

/* False when there is no current context or no budget. */
static bool measure(struct measurement *measurement)
{
    REAL(get_info, HOOK_cuMemGetInfo_v2, size_t *, size_t *);
    measurement->began_ns = event_now_ns();
    if (get_info == NULL || !may_sample(measurement->began_ns)) {
        return false;
    }
    hook_own_calls_begin();
    bool known = get_info(&measurement->free_bytes, &measurement->total_bytes) == ABI_SUCCESS;
    hook_own_calls_end();
    measurement->ended_ns = event_now_ns();
    uint64_t spent_ns = measurement->ended_ns - measurement->began_ns;
    atomic_fetch_add_explicit(&devices.spent_ns, spent_ns, memory_order_relaxed);
    hook_count_sample_ns(spent_ns);
    return known;
}

/* Stamped with the time before: of two figures the one that was asked for later is right. */
static void tell_measurement(const struct measurement *measurement, int device, uint64_t context,
                             const struct vs_event *near)
{
    uint64_t duration_ns = measurement->ended_ns - measurement->began_ns;
    struct vs_event event = {.kind = VS_KIND_SAMPLE,
                             .time_ns = measurement->began_ns,
                             .duration_ns =
                                 duration_ns < UINT32_MAX ? (uint32_t)duration_ns : UINT32_MAX,
                             .device = (int8_t)device,
                             .context = context,
                             .size = measurement->total_bytes,
                             .free_bytes = measurement->free_bytes,
                             .flags = VS_EVENT_FREE_SAMPLED,
                             .call = near->call,
                             .label = near->label,
                             .module = near->module};
    shim_emit(&event);
}

/* A context that the call has made, and that is not current: made so for a moment. */
static void measure_new_context(const struct vs_event *event)
{
    REAL(push, REAL_cuCtxPushCurrent_v2, void *);
    REAL(pop, REAL_cuCtxPopCurrent_v2, void **);
    struct measurement measurement;
    void *context = NULL;
    bool known = false;
    hook_own_calls_begin();
    if (push != NULL && pop != NULL && !capturing_somewhere() &&
        push((void *)(uintptr_t)event->context) == ABI_SUCCESS) {
        known = measure(&measurement);
        pop(&context);
    }
    hook_own_calls_end();
    if (known) {
        introduce(event->device);
        tell_measurement(&measurement, event->device, event->context, event);
    }
}

static bool is_new_context(const struct vs_event *event)
{
    return event->kind == VS_KIND_CONTEXT_RETAIN && event->result == ABI_SUCCESS &&
           event->context != 0 && event->device >= 0;
}

void devices_sample_apart(const struct vs_event *near)
{
    uint64_t context = 0;
    struct measurement measurement;
    int device = devices_current(&context);
    if (is_new_context(near) && context != near->context) {
        measure_new_context(near);
    } else if (device != VS_DEVICE_UNKNOWN && measure(&measurement)) {
        tell_measurement(&measurement, device, context, near);
    }
}

/*
 * False when the figure cannot go with the event: which device it concerns is
 * not known, its context is not current, or reading took too long.
 */
static bool measure_into(struct vs_event *event)
{
    uint64_t context = 0;
    struct measurement measurement;
    int device = devices_current(&context);
    if (event->device == VS_DEVICE_UNKNOWN ||
        (is_new_context(event) && context != event->context)) {
        return false;
    }
    if (event->device != device || !measure(&measurement)) {
        return true;
    }
    if (measurement.ended_ns - event->time_ns > VS_SAMPLED_WITHIN_NS) {
        return false;
    }
    event->free_bytes = measurement.free_bytes;
    event->flags |= VS_EVENT_FREE_SAMPLED;
    return true;
}

/* ---- allocations ---------------------------------------------------------------------------- */

/* Of memory that no address range tells of: pinned by the driver, or registered. */
static uint64_t host_size_of(uint64_t address)
{
    REAL(get_attribute, REAL_cuPointerGetAttribute, void *, int, uint64_t);
    size_t bytes = 0;
    bool known = get_attribute != NULL &&
                 get_attribute(&bytes, ABI_POINTER_RANGE_SIZE, address) == ABI_SUCCESS;
    return known ? bytes : 0;
}

static uint64_t device_size_of(uint64_t address)
{
    REAL(get_range, REAL_cuMemGetAddressRange_v2, uint64_t *, size_t *, uint64_t);
    uint64_t base = 0;
    size_t bytes = 0;
    bool known =
        get_range != NULL && get_range(&base, &bytes, address) == ABI_SUCCESS && base == address;
    return known ? bytes : 0;
}

uint64_t devices_size_of(const struct vs_event *event)
{
    hook_own_calls_begin();
    uint64_t bytes =
        event->kind == VS_KIND_FREE ? device_size_of(event->address) : host_size_of(event->address);
    hook_own_calls_end();
    return bytes;
}

/* ---- pools ----------------------------------------------------------------------------------- */

static void find_pool(struct vs_event *event)
{
    REAL(get_pool, REAL_cuDeviceGetMemPool, void **, int);
    void *pool = NULL;
    if (get_pool != NULL && event->device != VS_DEVICE_UNKNOWN &&
        get_pool(&pool, event->device) == ABI_SUCCESS) {
        event->pool = HOOK_U64(pool);
    }
}

static uint64_t pool_figure(const struct vs_event *event, int attribute)
{
    REAL(get_attribute, REAL_cuMemPoolGetAttribute, void *, int, void *);
    uint64_t value = 0;
    if (get_attribute == NULL || event->pool == 0 || (event->flags & VS_EVENT_CAPTURING) != 0 ||
        shim_config.sampling == SHIM_SAMPLE_NEVER ||
        get_attribute((void *)(uintptr_t)event->pool, attribute, &value) != ABI_SUCCESS) {
        return UNKNOWN_BYTES;
    }
    return value;
}

bool devices_complete(struct vs_event *event, bool sampled)
{
    if (event->kind == VS_KIND_POOL_ALLOC || event->kind == VS_KIND_POOL_TRIM) {
        hook_own_calls_begin();
        if (event->pool == 0) {
            find_pool(event);
        }
        event->extra[0] = pool_figure(event, ABI_POOL_RESERVED_CURRENT);
        event->extra[1] = pool_figure(event, ABI_POOL_USED_CURRENT);
        hook_own_calls_end();
    }
    return sampled && !measure_into(event);
}
