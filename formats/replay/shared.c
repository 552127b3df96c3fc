/* SPDX-License-Identifier: Apache-2.0 */
#include "shared.h"

#include <errno.h>
#include <stdlib.h>

#include "segments.h"

static int by_bytes(const void *a, const void *b)
{
    const struct vs_shared_memory *left = a, *right = b;
    if (left->bytes != right->bytes)
        return left->bytes < right->bytes ? 1 : -1;
    if (left->time_ns != right->time_ns)
        return left->time_ns > right->time_ns ? 1 : -1;
    return (left->address > right->address) - (left->address < right->address);
}

static struct vs_shared_memory describe(const struct vs_state *state, uint64_t address,
                                        const struct vs_object *object)
{
    const struct vs_allocation *allocation = vs_allocations_get(&state->allocations, address);
    const struct vs_site *site = vs_state_site(state, object->site);
    struct vs_shared_memory memory = {
        .handle = object->handle,
        .address = address,
        .time_ns = object->time_ns,
        .site = object->site,
        .device = site == NULL ? VS_DEVICE_UNKNOWN : site->device,
    };
    if (allocation == NULL)
        return memory;
    memory.device = allocation->device;
    if (allocation->type == VS_ALLOCATION_IPC)
        memory.opens = allocation->granted;
    else
        memory.bytes = allocation->size;
    memory.live_known = allocation->segment;
    return memory;
}

static int list(const struct vs_state *state, const struct vs_live_objects *live,
                struct vs_shared_memory **items, size_t *count)
{
    size_t index = 0;
    uint64_t address;
    const struct vs_object *object;
    *items = calloc(live->count + 1, sizeof(**items));
    if (*items == NULL)
        return -ENOMEM;
    while ((object = vs_live_objects_next(live, &index, &address)) != NULL)
        (*items)[(*count)++] = describe(state, address, object);
    qsort(*items, *count, sizeof(**items), by_bytes);
    return 0;
}

/* One entry for all that one place exported, or imported, on a device. */
static struct vs_shared_memory *place_of(struct vs_shared_memory *items, size_t *count,
                                         const struct vs_physical *physical)
{
    for (size_t i = *count; i-- > 0;)
        if (items[i].pieces != 0 && items[i].site == physical->shared_site &&
            items[i].device == physical->device)
            return &items[i];
    items[*count] = (struct vs_shared_memory){
        .time_ns = physical->shared_ns, .site = physical->shared_site, .device = physical->device};
    return &items[(*count)++];
}

static bool is_shared(const struct vs_physical *physical, bool exported)
{
    return physical->live && physical->shared_site != 0 && physical->ours == exported;
}

/* Adds the memory of cuMemCreate to a list of handles. */
static int add_physical(const struct vs_state *state, bool exported,
                        struct vs_shared_memory **items, size_t *count)
{
    size_t more = 0;
    for (size_t i = 0; i < state->physical_count; i++)
        more += is_shared(&state->physicals[i], exported);
    if (more == 0)
        return 0;
    struct vs_shared_memory *grown = realloc(*items, (*count + more) * sizeof(**items));
    if (grown == NULL)
        return -ENOMEM;
    *items = grown;
    for (size_t i = 0; i < state->physical_count; i++) {
        const struct vs_physical *physical = &state->physicals[i];
        if (!is_shared(physical, exported))
            continue;
        struct vs_shared_memory *memory = place_of(grown, count, physical);
        memory->pieces++;
        memory->bytes += physical->size;
        if (physical->shared_ns < memory->time_ns)
            memory->time_ns = physical->shared_ns;
    }
    qsort(grown, *count, sizeof(*grown), by_bytes);
    return 0;
}

static const struct vs_segment *segment_at(const struct vs_layout *layout, uint64_t address)
{
    size_t low = 0, high = layout->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct vs_segment *segment = &layout->segments[middle];
        if (address < segment->address)
            high = middle;
        else if (address - segment->address >= segment->size)
            low = middle + 1;
        else
            return segment;
    }
    return NULL;
}

/* What of the exported segments of one device is in live blocks. */
static int find_live(const struct vs_state *state, const struct vs_device_state *device,
                     struct vs_shared *shared)
{
    struct vs_layout layout = {0};
    int result = 0;
    bool taken = false;
    for (size_t i = 0; i < shared->exported_count && result == 0; i++) {
        struct vs_shared_memory *memory = &shared->exported[i];
        if (!memory->live_known || memory->device != device->device)
            continue;
        if (!taken)
            result = vs_layout_take(state, device, &layout);
        taken = true;
        const struct vs_segment *segment =
            layout.known ? segment_at(&layout, memory->address) : NULL;
        memory->live_known = segment != NULL;
        memory->live_bytes = segment == NULL ? 0 : segment->live_bytes;
    }
    vs_layout_release(&layout);
    return result;
}

bool vs_shared_any(const struct vs_state *state, const struct vs_objects *objects)
{
    return objects->kinds[VS_OBJECT_IPC_HANDLE].created +
                   objects->kinds[VS_OBJECT_IPC_MAPPING].created !=
               0 ||
           state->shared_physicals;
}

int vs_shared_take(const struct vs_state *state, const struct vs_objects *objects,
                   struct vs_shared *out)
{
    *out = (struct vs_shared){0};
    int result = list(state, &objects->kinds[VS_OBJECT_IPC_HANDLE].live, &out->exported,
                      &out->exported_count);
    if (result == 0)
        result = list(state, &objects->kinds[VS_OBJECT_IPC_MAPPING].live, &out->opened,
                      &out->opened_count);
    if (result == 0)
        result = add_physical(state, true, &out->exported, &out->exported_count);
    if (result == 0)
        result = add_physical(state, false, &out->opened, &out->opened_count);
    for (size_t i = 0; i < VS_DEVICE_SLOTS && result == 0; i++)
        if (state->devices[i] != NULL)
            result = find_live(state, state->devices[i], out);
    return result;
}

void vs_shared_release(struct vs_shared *shared)
{
    free(shared->exported);
    free(shared->opened);
}
