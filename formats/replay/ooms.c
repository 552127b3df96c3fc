/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that failed for want of memory, as a person would count them: a
 * framework's give-up is one entry with the driver calls that led to it inside;
 * a failure the framework repaired by itself (cache released, retry succeeded)
 * is an entry that was handled. Other failed requests are entries of their own.
 */
#include <errno.h>
#include <stdio.h>

#include "analysis.h"
#include "format_size.h"
#include "grow.h"

/* CUDA_ERROR_OUT_OF_MEMORY and cudaErrorMemoryAllocation. */
enum { RESULT_OUT_OF_MEMORY = 2 };
/* Other threads that still allocate this long after a failure: the process went on. */
#define WENT_ON_NS 2000000000ULL

/* Failed driver calls of a framework's thread, not yet known to be a give-up or repaired. */
struct vs_oom_pending {
    struct vs_oom oom; /* as of the first attempt */
    int64_t reserved, least_reserved;
    uint64_t began_ns;
    uint64_t met_ns;  /* start of the first call after it that was met, 0 none */
    bool past_window; /* the state stands still from there */
};

static uint16_t label_of(const struct vs_event *event)
{
    return event->label != 0 ? event->label : event->call;
}

static enum vs_layer layer_of(const struct vs_event *event)
{
    bool host_memory = event->kind == VS_KIND_PHYS_CREATE && event->extra[0] != 1;
    return host_memory || vs_kind_layer(event->kind) == 'H' ? VS_LAYER_HOST : VS_LAYER_DRIVER;
}

static void note_other(struct vs_oom *oom, struct vs_oom_other other)
{
    size_t kept = oom->other_count < VS_OOM_OTHERS ? oom->other_count : VS_OOM_OTHERS, at = 0;
    while (at < kept && (oom->others[at].bytes > other.bytes ||
                         (oom->others[at].bytes == other.bytes && oom->others[at].pid < other.pid)))
        at++;
    oom->other_count++;
    for (size_t i = kept < VS_OOM_OTHERS ? kept : VS_OOM_OTHERS - 1; i > at; i--)
        oom->others[i] = oom->others[i - 1];
    if (at < VS_OOM_OTHERS)
        oom->others[at] = other;
}

static void note_others(const struct vs_device_state *device, struct vs_oom *oom)
{
    size_t index = 0;
    uint64_t pid;
    const uint64_t *bytes;
    while ((bytes = vs_sizes_next(&device->others, &index, &pid)) != NULL)
        if (*bytes != 0)
            note_other(oom, (struct vs_oom_other){pid, *bytes});
}

/* A mapping is a call of no device, but the memory it maps is of one. */
static int8_t device_of(const struct vs_state *state, const struct vs_event *event)
{
    if (event->device >= 0)
        return event->device;
    if (event->kind == VS_KIND_SET_ACCESS)
        return event->extra[0] <= INT8_MAX ? (int8_t)event->extra[0] : VS_DEVICE_UNKNOWN;
    const struct vs_handle *handle =
        event->kind == VS_KIND_MAP ? vs_handles_get(&state->handles, event->handle) : NULL;
    if (handle == NULL || handle->physical == 0 || handle->physical > state->physical_count)
        return VS_DEVICE_UNKNOWN;
    return state->physicals[handle->physical - 1].device;
}

static void describe(struct vs_ooms *ooms, const struct vs_sequenced_event *sequenced,
                     enum vs_layer layer, struct vs_oom *oom)
{
    const struct vs_event *event = &sequenced->event;
    int8_t ordinal = device_of(ooms->state, event);
    const struct vs_device_state *device = vs_state_device(ooms->state, ordinal);
    *oom = (struct vs_oom){.time_ns = ooms->now_ns,
                           .sequence = sequenced->sequence,
                           .thread = sequenced->thread,
                           .device = ordinal,
                           .layer = (uint8_t)layer,
                           .label = label_of(event),
                           .requested = event->size,
                           .free_bytes = event->free_bytes,
                           .stream_known = event->kind == VS_KIND_FW_OOM && event->handle == 1,
                           .stream = event->stream};
    if (event->kind == VS_KIND_FW_OOM)
        oom->pool = vs_state_request_pool(ooms->state, sequenced);
    if (oom->free_bytes == VS_FREE_UNKNOWN && device != NULL)
        oom->free_bytes = device->last_free_bytes;
    if (device != NULL)
        note_others(device, oom);
    oom->site = vs_state_site_of(ooms->state, event, event->device, layer, false);
}

static void add_attempt(struct vs_oom *oom, const struct vs_event *event)
{
    if (oom->attempt_count < VS_OOM_ATTEMPTS)
        oom->attempts[oom->attempt_count] = (struct vs_oom_attempt){
            .label = label_of(event), .result = event->result, .bytes = event->size};
    oom->attempt_count++;
}

/* ---- entries ------------------------------------------------------------------------ */

static void keep_open(struct vs_ooms *ooms, size_t position)
{
    if (ooms->open_count == VS_OOMS_OPEN) {
        /* So many more failures: the process went on after the first of them. */
        ooms->items[ooms->open[0]].handled = true;
        ooms->open_count--;
        memmove(ooms->open, ooms->open + 1, ooms->open_count * sizeof(ooms->open[0]));
    }
    ooms->open[ooms->open_count++] = position;
}

static void add_entry(struct vs_ooms *ooms, const struct vs_oom *oom)
{
    ooms->total++;
    if (ooms->count < VS_OOMS_KEPT) {
        if (!vs_grow(&ooms->items, &ooms->room, ooms->count + 1, sizeof(*ooms->items))) {
            ooms->error = -ENOMEM;
            return;
        }
        ooms->count++;
    } else if (ooms->open_count > 0 && ooms->open[ooms->open_count - 1] == ooms->count - 1) {
        ooms->open_count--; /* the last place is taken over */
    }
    ooms->items[ooms->count - 1] = *oom;
    if (!oom->handled)
        keep_open(ooms, ooms->count - 1);
}

static void went_on(struct vs_ooms *ooms, uint32_t thread)
{
    size_t left = 0;
    for (size_t i = 0; i < ooms->open_count; i++) {
        struct vs_oom *oom = &ooms->items[ooms->open[i]];
        oom->handled = oom->thread == thread || ooms->now_ns - oom->time_ns > WENT_ON_NS;
        if (!oom->handled)
            ooms->open[left++] = ooms->open[i];
    }
    ooms->open_count = left;
}

/* ---- a framework's attempts ------------------------------------------------------------ */

static struct vs_oom_pending *pending_of(struct vs_ooms *ooms, uint32_t thread)
{
    const struct vs_oom_slot *slot = vs_oom_threads_get(&ooms->pending, thread);
    return slot == NULL ? NULL : slot->pending;
}

static void drop_pending(struct vs_ooms *ooms, uint32_t thread)
{
    free(pending_of(ooms, thread));
    vs_oom_threads_remove(&ooms->pending, thread);
}

static void give_up(struct vs_ooms *ooms, uint32_t thread)
{
    add_entry(ooms, &pending_of(ooms, thread)->oom);
    drop_pending(ooms, thread);
}

static bool gives_memory(uint8_t kind)
{
    return kind == VS_KIND_FW_ALLOC || kind == VS_KIND_ALLOC || kind == VS_KIND_POOL_ALLOC ||
           kind == VS_KIND_PHYS_CREATE || kind == VS_KIND_HOST_ALLOC;
}

/* When the call began: a call that gives memory is told at its end. */
static uint64_t began(const struct vs_event *event, uint64_t end_ns)
{
    return end_ns > event->duration_ns ? end_ns - event->duration_ns : 0;
}

/* What the thread does about its refused request: only it moves the device's cache meanwhile. */
static void follow_pending(struct vs_ooms *ooms, const struct vs_sequenced_event *sequenced,
                           bool past_window)
{
    struct vs_oom_pending *pending =
        ooms->pending.count == 0 ? NULL : pending_of(ooms, sequenced->thread);
    if (sequenced->event.result != 0 || pending == NULL)
        return;
    const struct vs_device_state *device = vs_state_device(ooms->state, pending->oom.device);
    pending->past_window = past_window;
    if (pending->met_ns == 0 && gives_memory(sequenced->event.kind))
        pending->met_ns = began(&sequenced->event, ooms->now_ns);
    if (device != NULL && vs_device_reserved(device) < pending->least_reserved)
        pending->least_reserved = vs_device_reserved(device);
}

static void begin_pending(struct vs_ooms *ooms, const struct vs_sequenced_event *sequenced,
                          struct vs_oom_pending *pending)
{
    const struct vs_device_state *device = vs_state_device(ooms->state, sequenced->event.device);
    describe(ooms, sequenced, VS_LAYER_FRAMEWORK, &pending->oom);
    pending->began_ns = began(&sequenced->event, ooms->now_ns);
    pending->reserved = device == NULL ? 0 : vs_device_reserved(device);
    pending->least_reserved = pending->reserved;
}

static void note_attempt(struct vs_ooms *ooms, const struct vs_sequenced_event *sequenced)
{
    const struct vs_event *event = &sequenced->event;
    struct vs_oom_pending *known = pending_of(ooms, sequenced->thread);
    if (known != NULL && event->kind == VS_KIND_POOL_ALLOC && known->oom.requested != event->size) {
        give_up(ooms, sequenced->thread); /* a pool's user: another request, another failure */
        known = NULL;
    }
    if (known == NULL) {
        struct vs_oom_slot *slot = vs_oom_threads_put(&ooms->pending, sequenced->thread);
        if (slot != NULL)
            slot->pending = calloc(1, sizeof(*slot->pending));
        if (slot == NULL || slot->pending == NULL) {
            ooms->error = -ENOMEM;
            vs_oom_threads_remove(&ooms->pending, sequenced->thread);
            return;
        }
        known = slot->pending;
        begin_pending(ooms, sequenced, known);
    }
    known->met_ns = 0;
    add_attempt(&known->oom, event);
    bool by_pool = event->kind == VS_KIND_POOL_ALLOC; /* no event tells that its user gave up */
    if (by_pool && event->free_bytes != VS_FREE_UNKNOWN)
        known->oom.free_bytes = event->free_bytes;
    if (known->oom.attempt_count == 1 || by_pool)
        vs_oom_classify(ooms, &known->oom, event->kind);
}

static void note_give_up(struct vs_ooms *ooms, const struct vs_sequenced_event *sequenced)
{
    struct vs_oom oom;
    describe(ooms, sequenced, VS_LAYER_FRAMEWORK, &oom);
    const struct vs_oom_pending *pending = pending_of(ooms, sequenced->thread);
    if (pending != NULL) {
        memcpy(oom.attempts, pending->oom.attempts, sizeof(oom.attempts));
        oom.attempt_count = pending->oom.attempt_count;
        size_t kept = oom.attempt_count < VS_OOM_ATTEMPTS ? oom.attempt_count : VS_OOM_ATTEMPTS;
        oom.label = oom.attempts[kept - 1].label;
        drop_pending(ooms, sequenced->thread);
    }
    vs_oom_classify(ooms, &oom, VS_KIND_FW_OOM);
    add_entry(ooms, &oom);
}

/* What the first attempt was judged by stood in the way no more once the cache was given back. */
static void explain_repair(struct vs_oom *oom)
{
    char free_bytes[64] = "";
    if (oom->given_back <= 0 || oom->class == VS_OOM_WAITING_STREAMS ||
        oom->class == VS_OOM_OTHER_STREAM)
        return;
    if (oom->free_bytes != VS_FREE_UNKNOWN && oom->free_bytes <= INT64_MAX)
        snprintf(free_bytes, sizeof(free_bytes), "%s were free on the device and ",
                 vs_format_size((int64_t)oom->free_bytes).text);
    vs_oom_decide(
        oom, VS_OOM_FRAGMENTED,
        "%s were asked for; %sno cached block was large enough; it fitted after %s of the "
        "cache had gone back to the driver",
        vs_format_size((int64_t)oom->requested).text, free_bytes,
        vs_format_size(oom->given_back).text);
}

static void count_repair(struct vs_ooms *ooms, const struct vs_oom *oom)
{
    ooms->repairs.count++;
    ooms->repairs.lost_ns += oom->lost_ns;
    ooms->repairs.given_back += oom->given_back > 0 ? oom->given_back : 0;
    ooms->repairs.device = oom->device;
}

/* A framework's thread got memory after attempts that failed. */
static void note_repair(struct vs_ooms *ooms, const struct vs_sequenced_event *sequenced)
{
    struct vs_oom_pending *pending = pending_of(ooms, sequenced->thread);
    const struct vs_event *event = &sequenced->event;
    if (pending == NULL)
        return;
    if (event->kind == VS_KIND_POOL_ALLOC && event->size != pending->oom.requested) {
        give_up(ooms, sequenced->thread);
        return;
    }
    pending->oom.handled = true;
    pending->oom.repaired = true;
    pending->oom.given_back =
        pending->past_window ? -1 : pending->reserved - pending->least_reserved;
    pending->oom.lost_ns = pending->met_ns - pending->began_ns;
    pending->oom.requested = event->size;
    explain_repair(&pending->oom);
    count_repair(ooms, &pending->oom);
    add_entry(ooms, &pending->oom);
    drop_pending(ooms, sequenced->thread);
}

/* ---- events ------------------------------------------------------------------------------- */

static void on_failed(struct vs_ooms *ooms, const struct vs_sequenced_event *sequenced)
{
    const struct vs_event *event = &sequenced->event;
    char layer = vs_kind_layer(event->kind);
    if (event->result != RESULT_OUT_OF_MEMORY || (layer != 'D' && layer != 'H' && layer != 'O'))
        return;
    if (layer == 'D' && vs_state_by_framework(ooms->state, event)) {
        note_attempt(ooms, sequenced);
        return;
    }
    struct vs_oom oom;
    describe(ooms, sequenced, layer_of(event), &oom);
    add_attempt(&oom, event);
    vs_oom_classify(ooms, &oom, event->kind);
    add_entry(ooms, &oom);
}

static void note_memory(struct vs_ooms *ooms, const struct vs_sequenced_event *sequenced)
{
    const struct vs_event *event = &sequenced->event;
    if (ooms->pending.count != 0 &&
        (event->kind == VS_KIND_FW_ALLOC ||
         (event->kind == VS_KIND_POOL_ALLOC && vs_state_by_framework(ooms->state, event))))
        note_repair(ooms, sequenced);
    if (ooms->open_count != 0)
        went_on(ooms, sequenced->thread);
}

static void on_event(void *self, const struct vs_state *state,
                     const struct vs_sequenced_event *sequenced)
{
    struct vs_ooms *ooms = self;
    const struct vs_event *event = &sequenced->event;
    ooms->now_ns = state->now_ns;
    follow_pending(ooms, sequenced, false);
    if (event->kind == VS_KIND_FW_OOM)
        note_give_up(ooms, sequenced);
    else if (event->result != 0)
        on_failed(ooms, sequenced);
    else if (gives_memory(event->kind))
        note_memory(ooms, sequenced);
}

void vs_ooms_outcome(struct vs_ooms *ooms, const struct vs_sequenced_event *sequenced)
{
    const struct vs_event *event = &sequenced->event;
    if (event->time_ns > ooms->now_ns)
        ooms->now_ns = event->time_ns;
    follow_pending(ooms, sequenced, true);
    if (event->kind == VS_KIND_FW_OOM && pending_of(ooms, sequenced->thread) != NULL)
        note_give_up(ooms, sequenced);
    else if (event->result == 0 && gives_memory(event->kind))
        note_memory(ooms, sequenced);
}

int vs_ooms_start(struct vs_ooms *ooms, struct vs_state *state)
{
    struct vs_subscriber subscriber = {.self = ooms,
                                       .interest = VS_INTEREST_OUTCOME | VS_INTEREST_MEMORY |
                                                   VS_INTEREST_BLOCKS,
                                       .event = on_event};
    ooms->state = state;
    return vs_state_subscribe(state, &subscriber);
}

static int in_order(const void *a, const void *b)
{
    const struct vs_oom *left = a, *right = b;
    return (left->sequence > right->sequence) - (left->sequence < right->sequence);
}

/* NVML may answer for the first time when the process is already ending of its failure. */
static void note_late_others(const struct vs_ooms *ooms, struct vs_oom *oom)
{
    const struct vs_device_state *device = vs_state_device(ooms->state, oom->device);
    if (device != NULL && oom->other_count == 0 && !oom->handled &&
        ooms->state->last_time_ns - oom->time_ns <= WENT_ON_NS) {
        note_others(device, oom);
        vs_oom_blame_others(oom, device->other_bytes);
    }
    if (device != NULL && oom->other_count == 0)
        vs_oom_clear_others(oom, device);
}

int vs_ooms_finish(struct vs_ooms *ooms, bool ended_well)
{
    size_t index = 0;
    uint64_t thread;
    const struct vs_oom_slot *slot;
    while ((slot = vs_oom_threads_next(&ooms->pending, &index, &thread)) != NULL)
        add_entry(ooms, &slot->pending->oom);
    if (ended_well)
        for (size_t i = 0; i < ooms->open_count; i++)
            ooms->items[ooms->open[i]].handled = true;
    ooms->open_count = 0;
    for (size_t i = 0; i < ooms->count; i++)
        note_late_others(ooms, &ooms->items[i]);
    if (ooms->count > 1)
        qsort(ooms->items, ooms->count, sizeof(*ooms->items), in_order);
    return ooms->error;
}

void vs_ooms_release(struct vs_ooms *ooms)
{
    size_t index = 0;
    uint64_t thread;
    const struct vs_oom_slot *slot;
    while ((slot = vs_oom_threads_next(&ooms->pending, &index, &thread)) != NULL)
        free(slot->pending);
    vs_oom_threads_release(&ooms->pending);
    free(ooms->items);
}
