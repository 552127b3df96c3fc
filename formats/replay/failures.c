/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every call on memory, IPC, VMM, graphs, contexts or multicast that failed for
 * another reason than want of memory, grouped by call and error.
 */
#include <errno.h>

#include "analysis.h"
#include "grow.h"

enum {
    RESULT_OUT_OF_MEMORY = 2,
    RESULT_SHUT_DOWN = 4,
    RESULT_NOT_READY = 600,
    RESULT_PEER_ENABLED = 704,
    RESULT_PEER_NOT_ENABLED = 705,
    FAILURES_KEPT = 4096 /* different (call, error) pairs; a damaged file has no more */
};

static bool concerns_memory(const struct vs_event *event)
{
    char layer = vs_kind_layer(event->kind);
    switch (event->kind) {
    case VS_KIND_EVENT_RECORD:
    case VS_KIND_EVENT_QUERY:
    case VS_KIND_EVENT_DESTROY:
    case VS_KIND_DEVICE_SET:
        return false;
    default:
        return layer == 'D' || layer == 'H' || layer == 'O';
    }
}

static struct vs_failure *entry(struct vs_failures *failures, const struct vs_event *event,
                                int32_t result)
{
    uint16_t label = event->label != 0 ? event->label : event->call;
    uint64_t key = (uint64_t)label | (uint64_t)event->kind << 16 | (uint64_t)(uint32_t)result << 32;
    uint64_t *position = vs_sizes_get(&failures->index, key);
    if (position != NULL)
        return &failures->items[*position];
    if (failures->count == FAILURES_KEPT)
        return NULL;
    position = vs_sizes_put(&failures->index, key);
    if (position == NULL || !vs_grow(&failures->items, &failures->room, failures->count + 1,
                                     sizeof(*failures->items))) {
        failures->error = -ENOMEM;
        return NULL;
    }
    *position = failures->count;
    struct vs_failure *added = &failures->items[failures->count++];
    enum vs_layer layer = vs_kind_layer(event->kind) == 'H' ? VS_LAYER_HOST : VS_LAYER_DRIVER;
    *added = (struct vs_failure){
        .label = label, .kind = event->kind, .result = result, .first_ns = failures->state->now_ns};
    added->site = vs_state_site_of(failures->state, event, event->device, layer, false);
    return added;
}

static void on_event(void *self, const struct vs_state *state,
                     const struct vs_sequenced_event *sequenced)
{
    struct vs_failures *failures = self;
    const struct vs_event *event = &sequenced->event;
    int32_t result = event->result;
    if (result == 0)
        return;
    if (event->kind == VS_KIND_UNDO)
        event = state->undone;
    if (event == NULL || result == RESULT_OUT_OF_MEMORY || result == RESULT_SHUT_DOWN ||
        result == RESULT_NOT_READY || !concerns_memory(event))
        return;
    struct vs_failure *failure = entry(failures, event, result);
    if (failure == NULL)
        return;
    failure->count++;
    failure->last_ns = state->now_ns;
    failures->last = (size_t)(failure - failures->items);
}

int vs_failures_start(struct vs_failures *failures, struct vs_state *state)
{
    struct vs_subscriber subscriber = {
        .self = failures, .interest = VS_INTEREST_OUTCOME, .event = on_event};
    failures->state = state;
    return vs_state_subscribe(state, &subscriber);
}

void vs_failures_release(struct vs_failures *failures)
{
    free(failures->items);
    vs_sizes_release(&failures->index);
}

/* ---- hints ----------------------------------------------------------------------------- */

/* The first line that fits is the hint. */
struct hint {
    int32_t result; /* CUresult and cudaError_t share these values; -1 any */
    uint8_t kind;   /* 0 any */
    const char *text;
};

enum { ANY_RESULT = -1, ANY_KIND = 0 };

static const struct hint hints[] = {
    /* this call with this error */
    {1, VS_KIND_IPC_GET,
     "memory that has no legacy IPC handle: made by the VMM calls (expandable segments, sleep "
     "modes) or from a pool; only memory of cudaMalloc has one"},
    {801, VS_KIND_IPC_GET, "legacy IPC is not supported on this system"},
    {1, VS_KIND_IPC_OPEN,
     "not a handle of live memory of another process: the exporter freed it or ended, or the "
     "handle was changed on its way"},
    {201, VS_KIND_IPC_OPEN, "a process cannot open its own handle"},
    {208, VS_KIND_IPC_OPEN, "this process has that memory open already"},
    {801, VS_KIND_IPC_OPEN,
     "the two devices cannot reach each other, or the handle is of a kind that is not supported "
     "here"},
    {1, VS_KIND_MAP,
     "the range is not reserved, is mapped already, or is not in whole pages of the memory's "
     "granularity"},
    {1, VS_KIND_UNMAP, "the range does not begin and end with mappings"},
    {1, VS_KIND_SET_ACCESS, "part of the range is not mapped"},
    {1, VS_KIND_UNRESERVE, "not a whole reservation, or part of it is still mapped"},
    {1, VS_KIND_HOST_REGISTER, "the range is not memory that can be pinned as a whole"},
    {801, VS_KIND_HOST_REGISTER,
     "this device or driver cannot pin memory with these flags: read-only and I/O memory need an "
     "attribute of the device (cudaDevAttrHostRegisterReadOnlySupported) and of the host"},
    /* errors that say by themselves what is wrong */
    {3, ANY_KIND,
     "the driver is not initialised here: often a forked child of a process that used CUDA"},
    {100, ANY_KIND, "no device is visible: check CUDA_VISIBLE_DEVICES and the container's devices"},
    {101, ANY_KIND, "a device number out of range: check CUDA_VISIBLE_DEVICES"},
    {200, ANY_KIND, "the module's image is not usable on this device"},
    {201, ANY_KIND, "no context, or one that was destroyed: the device may have been reset"},
    {209, ANY_KIND, "the module holds no code for this device"},
    {700, ANY_KIND, "an earlier kernel wrote outside its memory; every later call fails with it"},
    {217, ANY_KIND,
     "the two devices cannot reach each other's memory: no link or bridge between them, "
     "different kinds of device, or switched off by the system (ACS, a virtual machine); copies go "
     "through the host"},
    {RESULT_PEER_ENABLED, ANY_KIND, "peer access was enabled before: harmless"},
    {RESULT_PEER_NOT_ENABLED, ANY_KIND,
     "peer access to that device was not enabled from this context: harmless"},
    {709, ANY_KIND, "the context was destroyed while it was in use"},
    {710, ANY_KIND, "an assertion in an earlier kernel failed; every later call fails with it"},
    {711, ANY_KIND,
     "as many peers as the device can have are enabled already; disable one that is not used"},
    {712, ANY_KIND,
     "this host memory, or a page of it, is pinned already: by another call, or by another "
     "library"},
    {713, ANY_KIND,
     "this host memory is not pinned: given back already, not the address it was registered at, or "
     "of cudaHostAlloc, which cudaFreeHost gives back"},
    {719, ANY_KIND, "an earlier kernel failed; every later call fails with it"},
    {802, ANY_KIND,
     "the system is not ready: on machines with NVSwitch the fabric manager must run"},
    {900, ANY_KIND, "not permitted while a stream is being captured into a graph"},
    {901, ANY_KIND, "the capture was broken by an earlier call"},
    {906, ANY_KIND, "the legacy stream was used while another stream was being captured"},
    {908, ANY_KIND, "the call comes from another thread than the one that began the capture"},
    /* whatever the error */
    {ANY_RESULT, VS_KIND_PHYS_EXPORT,
     "the memory was not made to be exported this way: the handle type must be asked for when it "
     "is created; fabric handles need NVLink and IMEX"},
    {ANY_RESULT, VS_KIND_PHYS_IMPORT,
     "the descriptor is not one of exported memory, or was closed; passing one by pidfd_getfd "
     "needs ptrace rights, which unprivileged containers refuse"},
    {ANY_RESULT, VS_KIND_MULTICAST_CREATE,
     "multicast needs NVSwitch and a running fabric manager; NCCL_NVLS_ENABLE=0 avoids it"},
    {ANY_RESULT, VS_KIND_MULTICAST_BIND,
     "multicast needs NVSwitch and a running fabric manager; NCCL_NVLS_ENABLE=0 avoids it"},
    {ANY_RESULT, VS_KIND_COMM_CREATE,
     "NCCL could not make the communicator; NCCL_DEBUG=INFO says why, and a call on memory that "
     "failed under it is listed by itself"},
    {ANY_RESULT, VS_KIND_COMM_DESTROY,
     "NCCL could not end the communicator; NCCL_DEBUG=INFO says why"},
    {ANY_RESULT, VS_KIND_IPC_OPEN, "the exporting process may have ended or freed the memory"},
    {ANY_RESULT, VS_KIND_HOST_REGISTER,
     "the range may be pinned already, read-only, or over the limit of locked memory"},
    /* errors of many meanings */
    {1, ANY_KIND,
     "an argument is wrong: a pointer that was freed already, is not the start of an "
     "allocation, or belongs to another allocator"},
    {400, ANY_KIND, "a handle that is not valid: released already, or of another process"},
    {800, ANY_KIND,
     "not permitted here: IPC of this kind of memory, or a call the stream's state forbids"},
    {801, ANY_KIND, "not supported by this device, driver or kind of memory"},
};

bool vs_failure_is_harmless(const struct vs_failure *failure)
{
    return failure->result == RESULT_PEER_ENABLED || failure->result == RESULT_PEER_NOT_ENABLED;
}

const char *vs_failure_hint(const struct vs_failure *failure)
{
    for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
        const struct hint *hint = &hints[i];
        if ((hint->result == failure->result || hint->result == ANY_RESULT) &&
            (hint->kind == failure->kind || hint->kind == ANY_KIND))
            return hint->text;
    }
    return "see the error's description in the CUDA manual";
}
