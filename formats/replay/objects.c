/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts what costs memory without a size of its own: modules, executable
 * graphs, streams, contexts, exported and opened IPC memory, pools, communicators.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis.h"

/* CUDA_ERROR_DEINITIALIZED: the driver has shut down, and all objects with it. */
enum { RESULT_SHUT_DOWN = 4 };

struct change {
    enum vs_object_kind kind;
    uint64_t key;
    bool created;
};

static uint64_t context_key(const struct vs_event *event)
{
    return event->context != 0 ? event->context : (uint64_t)(uint8_t)event->device;
}

static bool context_change(const struct vs_state *state, const struct vs_event *event,
                           struct change *change)
{
    const struct vs_device_state *device = vs_state_device(state, event->device);
    *change = (struct change){.kind = VS_OBJECT_CONTEXT, .key = context_key(event)};
    switch (event->kind) {
    case VS_KIND_CONTEXT_CREATE:
    case VS_KIND_CONTEXT_RETAIN:
        change->created = true;
        return true;
    case VS_KIND_CONTEXT_DESTROY:
        return true;
    case VS_KIND_CONTEXT_RELEASE:
        /* Taken back, it ended nothing unless it was the last one. */
        if (device == NULL || (device->primary_retains != 0 && event != state->undone))
            return false;
        change->key = device->primary_context != 0 ? device->primary_context : change->key;
        return true;
    case VS_KIND_CONTEXT_RESET:
        if (device == NULL)
            return false;
        change->key = device->primary_context != 0 ? device->primary_context : change->key;
        return true;
    default:
        return false;
    }
}

static bool change_of(const struct vs_state *state, const struct vs_event *event,
                      struct change *change)
{
    switch (event->kind) {
    case VS_KIND_MODULE_LOAD:
        *change = (struct change){VS_OBJECT_MODULE, event->handle, true};
        return true;
    case VS_KIND_MODULE_UNLOAD:
        *change = (struct change){VS_OBJECT_MODULE, event->handle, false};
        return true;
    case VS_KIND_GRAPH_INSTANTIATE:
        *change = (struct change){VS_OBJECT_GRAPH_EXEC, event->handle, true};
        return true;
    case VS_KIND_GRAPH_EXEC_DESTROY:
        *change = (struct change){VS_OBJECT_GRAPH_EXEC, event->handle, false};
        return true;
    case VS_KIND_STREAM_CREATE:
        *change = (struct change){VS_OBJECT_STREAM, event->stream, true};
        return true;
    case VS_KIND_STREAM_DESTROY:
        *change = (struct change){VS_OBJECT_STREAM, event->stream, false};
        return true;
    case VS_KIND_POOL_CREATE:
        *change = (struct change){VS_OBJECT_POOL, event->pool, true};
        return true;
    case VS_KIND_POOL_DESTROY:
        *change = (struct change){VS_OBJECT_POOL, event->pool, false};
        return true;
    case VS_KIND_IPC_GET:
        *change = (struct change){VS_OBJECT_IPC_HANDLE, event->address, true};
        return true;
    case VS_KIND_FREE:
    case VS_KIND_POOL_FREE:
        *change = (struct change){VS_OBJECT_IPC_HANDLE, event->address, false};
        return true;
    case VS_KIND_IPC_OPEN:
        *change = (struct change){VS_OBJECT_IPC_MAPPING, event->address, true};
        return true;
    case VS_KIND_COMM_CREATE:
    case VS_KIND_COMM_DESTROY:
        /* Not by handle: that of some is known late or never. */
        *change = (struct change){VS_OBJECT_COMMUNICATOR, state->communicator_now,
                                  event->kind == VS_KIND_COMM_CREATE};
        return state->communicator_now != 0;
    case VS_KIND_IPC_CLOSE:
        /* Opened several times, it is there until it was closed as often. */
        *change = (struct change){VS_OBJECT_IPC_MAPPING, event->address, false};
        return vs_allocations_get(&state->allocations, event->address) == NULL;
    default:
        return context_change(state, event, change);
    }
}

static bool is_ipc(enum vs_object_kind kind)
{
    return kind == VS_OBJECT_IPC_HANDLE || kind == VS_OBJECT_IPC_MAPPING;
}

/* A library outlives every context; what else is made in one ends with it. */
static uint64_t ends_with(const struct vs_state *state, const struct change *change,
                          const struct vs_event *event)
{
    const char *call = vs_state_string(state, event->call);
    bool library = strncmp(call, "cuLibrary", 9) == 0 || strncmp(call, "cudaLibrary", 11) == 0;
    bool belongs = change->kind == VS_OBJECT_MODULE || change->kind == VS_OBJECT_GRAPH_EXEC ||
                   change->kind == VS_OBJECT_STREAM || is_ipc(change->kind);
    return belongs && !library ? event->context : 0;
}

/* Where a communicator was asked for: its handle may have come at the end of a group of calls. */
static uint32_t site_of(const struct vs_objects *objects, const struct change *change,
                        const struct vs_event *event)
{
    const struct vs_communicator *communicator =
        change->kind == VS_OBJECT_COMMUNICATOR ? vs_state_communicator(objects->state, change->key)
                                               : NULL;
    return communicator != NULL
               ? communicator->site
               : vs_state_site_of(objects->state, event, event->device, VS_LAYER_DRIVER, false);
}

static void tell(const struct vs_objects *objects, enum vs_object_kind kind, uint32_t site,
                 int32_t count)
{
    if (objects->watch != NULL)
        objects->watch(objects->watch_self, kind, site, count);
}

static void create(struct vs_objects *objects, const struct change *change,
                   const struct vs_event *event)
{
    struct vs_live_objects *live = &objects->kinds[change->kind].live;
    if (vs_live_objects_get(live, change->key) != NULL)
        return; /* the same one again: a handle exported twice, a context retained */
    uint32_t site = site_of(objects, change, event);
    struct vs_object *object = vs_live_objects_put(live, change->key);
    if (object == NULL)
        objects->error = -ENOMEM;
    else
        *object = (struct vs_object){.context = ends_with(objects->state, change, event),
                                     .handle = is_ipc(change->kind) ? event->extra[0] : 0,
                                     .time_ns = objects->state->now_ns,
                                     .site = site};
    objects->kinds[change->kind].created++;
    objects->kinds[change->kind].site = site;
    tell(objects, change->kind, site, +1);
}

static void destroy(struct vs_objects *objects, enum vs_object_kind kind, uint64_t key,
                    uint64_t sequence)
{
    struct vs_live_objects *live = &objects->kinds[kind].live;
    const struct vs_object *object = vs_live_objects_get(live, key);
    if (object == NULL)
        return;
    size_t at = objects->next_removed++ % VS_OBJECTS_REMOVED;
    objects->removed[at].key = key;
    objects->removed[at].object = *object;
    objects->removed[at].sequence = sequence;
    objects->removed[at].kind = (uint8_t)kind;
    objects->kinds[kind].destroyed++;
    tell(objects, kind, object->site, -1);
    vs_live_objects_remove(live, key);
}

static void destroy_in_context(struct vs_objects *objects, uint64_t context, uint64_t sequence)
{
    for (unsigned kind = 0; kind < VS_OBJECT_KINDS; kind++) {
        struct vs_live_objects *live = &objects->kinds[kind].live;
        uint64_t *keys = malloc((live->count + 1) * sizeof(*keys));
        if (keys == NULL) {
            objects->error = -ENOMEM;
            return;
        }
        size_t count = 0, index = 0;
        uint64_t key;
        const struct vs_object *object;
        while ((object = vs_live_objects_next(live, &index, &key)) != NULL)
            if (object->context == context)
                keys[count++] = key;
        for (size_t i = 0; i < count; i++)
            destroy(objects, (enum vs_object_kind)kind, keys[i], sequence);
        free(keys);
    }
}

/* The event's call failed: what it removed is still there. */
static void bring_back(struct vs_objects *objects, uint64_t sequence)
{
    for (size_t i = 0; i < VS_OBJECTS_REMOVED; i++) {
        if (objects->removed[i].sequence != sequence)
            continue;
        objects->removed[i].sequence = 0;
        objects->kinds[objects->removed[i].kind].destroyed--;
        struct vs_object *object = vs_live_objects_put(
            &objects->kinds[objects->removed[i].kind].live, objects->removed[i].key);
        if (object == NULL)
            objects->error = -ENOMEM;
        else
            *object = objects->removed[i].object;
        tell(objects, (enum vs_object_kind)objects->removed[i].kind,
             objects->removed[i].object.site, +1);
    }
}

static void on_event(void *self, const struct vs_state *state,
                     const struct vs_sequenced_event *sequenced)
{
    struct vs_objects *objects = self;
    const struct vs_event *event = &sequenced->event;
    struct change change;
    if (event->kind == VS_KIND_UNDO) {
        if (event->result != RESULT_SHUT_DOWN && state->undone != NULL)
            bring_back(objects, event->handle);
    } else if (event->result == 0 && change_of(state, event, &change)) {
        if (change.created)
            create(objects, &change, event);
        else
            destroy(objects, change.kind, change.key, sequenced->sequence);
        if (!change.created && change.kind == VS_OBJECT_CONTEXT && change.key != 0)
            destroy_in_context(objects, change.key, sequenced->sequence);
    }
}

int vs_objects_start(struct vs_objects *objects, struct vs_state *state)
{
    struct vs_subscriber subscriber = {
        .self = objects, .interest = VS_INTEREST_MEMORY, .event = on_event};
    objects->state = state;
    return vs_state_subscribe(state, &subscriber);
}

void vs_objects_release(struct vs_objects *objects)
{
    for (size_t i = 0; i < VS_OBJECT_KINDS; i++)
        vs_live_objects_release(&objects->kinds[i].live);
}

const char *vs_object_name(enum vs_object_kind kind)
{
    static const char *const names[] = {
        [VS_OBJECT_MODULE] = "module",
        [VS_OBJECT_GRAPH_EXEC] = "graph_exec",
        [VS_OBJECT_STREAM] = "stream",
        [VS_OBJECT_CONTEXT] = "context",
        [VS_OBJECT_IPC_HANDLE] = "ipc_handle",
        [VS_OBJECT_IPC_MAPPING] = "ipc_mapping",
        [VS_OBJECT_POOL] = "pool",
        [VS_OBJECT_COMMUNICATOR] = "communicator",
    };
    return names[kind];
}
