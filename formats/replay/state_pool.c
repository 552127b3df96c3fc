/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream-ordered pools. The driver's own figures ride along with allocations
 * (reserved and used after the call): they are taken as they come, the
 * difference to our count (frees that have not been reached in their stream)
 * goes to a site of its own. A pool a framework allocates from is its cache:
 * used = allocated, reserved = reserved.
 */
#include "state_internal.h"

/* Key of a device's default pool when the event does not name it. */
#define UNNAMED_POOL 0xfffffffffff00000ULL

static uint64_t pool_key(uint64_t handle, int8_t device)
{
    return handle != 0 ? handle : UNNAMED_POOL | (uint8_t)device;
}

static bool is_known(uint64_t figure)
{
    return figure != UINT64_MAX && figure <= INT64_MAX;
}

static void set_reserved(struct vs_state *state, struct vs_pool *pool, int64_t reserved)
{
    struct vs_device_state *device = state_device(state, pool->device);
    if (device == NULL)
        return;
    int64_t change = reserved - pool->reserved;
    pool->reserved = reserved;
    if (pool->framework) {
        device->pool_reserved += change;
    } else {
        device->own_pool_reserved += change;
        state_owner_add(state, device, pool->owner, change);
    }
}

static void add_used(struct vs_state *state, struct vs_pool *pool, int64_t change)
{
    struct vs_device_state *device = state_device(state, pool->device);
    if (device == NULL)
        return;
    pool->used += change;
    if (pool->used < pool->least_used)
        pool->least_used = pool->used;
    if (pool->framework)
        device->pool_used += change;
    else
        device->own_pool_used += change;
}

/* The first framework call on a pool makes it the framework's. */
static void give_to_framework(struct vs_state *state, struct vs_pool *pool)
{
    int64_t reserved = pool->reserved, used = pool->used;
    set_reserved(state, pool, 0);
    add_used(state, pool, -used);
    pool->framework = true;
    set_reserved(state, pool, reserved);
    add_used(state, pool, used);
}

static struct vs_pool *pool_at(struct vs_state *state, const struct vs_event *event)
{
    uint64_t key = pool_key(event->pool, event->device);
    struct vs_pool *known = vs_pools_get(&state->pools, key);
    if (known != NULL)
        return known;
    struct vs_pool *added = vs_pools_put(&state->pools, key);
    if (added == NULL) {
        state_fail(state);
        return NULL;
    }
    added->device = event->device;
    added->owner = state_owner(state, event);
    return added;
}

/* What the calls do not account for, so that the pool's use is the driver's figure. */
static void correct_used(struct vs_state *state, struct vs_pool *pool, int64_t change)
{
    enum vs_layer layer = pool->framework ? VS_LAYER_FRAMEWORK : VS_LAYER_DRIVER;
    add_used(state, pool, change);
    state_move(state, state_special_site(state, pool->device, layer, VS_SITE_UNCERTAIN), change, 0);
}

/* The figures were asked for before the latest ones, by a thread that told of it later. */
static bool is_stale(const struct vs_pool *pool, const struct vs_event *event)
{
    return event->time_ns < pool->reported_ns;
}

/* Whole pages beyond `used` bytes of what is reserved. */
static int64_t spare_pages(int64_t reserved, int64_t used)
{
    int64_t least = used > 0 ? (int64_t)vs_round_up((uint64_t)used, VS_GRANULARITY) : 0;
    return reserved > least ? reserved - least : 0;
}

/*
 * Since the driver's last figures the pool may have given memory back while the device rounded
 * direct memory otherwise: whose a difference was, or two that cancel out, is not known. What the
 * one was wrongly given the other lacks, and now shows.
 */
static int64_t undecided(const struct vs_device_state *device, const struct vs_pool *pool)
{
    int64_t most = spare_pages(pool->reserved + pool->given_back, pool->least_used);
    int64_t moved = device->slack_settled - pool->slack_settled;
    return most < moved ? most : moved;
}

static void take_reserved(struct vs_state *state, struct vs_pool *pool,
                          const struct vs_event *event)
{
    struct vs_device_state *device = state_device(state, pool->device);
    int64_t change = (int64_t)event->extra[0] - pool->reserved;
    if (device != NULL && !pool->framework)
        device->direct_slack += (change < 0 ? -change : change) + undecided(device, pool);
    pool->reserved_known = true;
    pool->reported_ns = event->time_ns;
    pool->given_back = 0;
    pool->least_used = pool->used;
    set_reserved(state, pool, (int64_t)event->extra[0]);
}

/* Takes over the driver's figures after a call on the pool. */
static void take_report(struct vs_state *state, struct vs_pool *pool, const struct vs_event *event)
{
    if (is_known(event->extra[1]) && (int64_t)event->extra[1] != pool->used)
        correct_used(state, pool, (int64_t)event->extra[1] - pool->used);
    if (is_known(event->extra[0])) {
        take_reserved(state, pool, event);
    } else {
        int64_t least =
            (int64_t)vs_round_up((uint64_t)(pool->used > 0 ? pool->used : 0), VS_GRANULARITY);
        if (least > pool->reserved)
            set_reserved(state, pool, least);
    }
}

void pool_report(struct vs_state *state, const struct vs_event *event, uint64_t handle)
{
    struct vs_pool *pool = vs_pools_get(&state->pools, pool_key(handle, event->device));
    if (pool != NULL && event->kind == VS_KIND_POOL_TRIM)
        pool->trimmed = event->size == 0;
    if (pool != NULL && !is_stale(pool, event) &&
        (event->extra[0] != 0 || event->extra[1] != 0 || pool->used == 0))
        take_report(state, pool, event);
}

/* What the pool counts for a request: its own figure where the difference can be nothing else. */
static uint64_t granted_bytes(const struct vs_pool *pool, const struct vs_event *event)
{
    if (!is_known(event->extra[1]) || is_stale(pool, event))
        return event->size;
    int64_t more = (int64_t)event->extra[1] - pool->used;
    if (more >= (int64_t)event->size && (uint64_t)more - event->size < VS_GRANULARITY)
        return (uint64_t)more;
    return event->size;
}

void pool_alloc(struct vs_state *state, const struct vs_event *event)
{
    if (event->address == 0 || event->size == 0 || event->size > INT64_MAX)
        return;
    if (event->flags & VS_EVENT_CAPTURING) {
        memory_graph_node(state, event);
        return;
    }
    struct vs_pool *pool = pool_at(state, event);
    struct vs_device_state *device = state_device(state, event->device);
    if (pool == NULL || device == NULL)
        return;
    if (vs_state_by_framework(state, event) && !pool->framework) {
        give_to_framework(state, pool);
        pool->owner = state_owner(state, event);
    }
    enum vs_layer layer = pool->framework ? VS_LAYER_FRAMEWORK : VS_LAYER_DRIVER;
    if (pool->framework && !device->framework_seen) {
        device->framework_seen = true;
        device->framework_owner = pool->owner;
    }
    struct vs_allocation allocation = {.size = event->size,
                                       .granted = granted_bytes(pool, event),
                                       .context = event->context,
                                       .pool = pool_key(event->pool, event->device),
                                       .owner = pool->owner,
                                       .device = event->device,
                                       .type = VS_ALLOCATION_POOL};
    allocation.site = vs_state_site_of(state, event, event->device, layer, false);
    allocation.communicator = communicator_of(state, event);
    memory_remember(state, event->address, &allocation);
    if (is_stale(pool, event)) /* the latest figures have this allocation in them */
        correct_used(state, pool, -(int64_t)allocation.granted);
    else
        take_report(state, pool, event);
}

void pool_count(struct vs_state *state, const struct vs_allocation *allocation, int sign)
{
    struct vs_pool *pool = vs_pools_get(&state->pools, allocation->pool);
    if (pool == NULL)
        return;
    add_used(state, pool, sign * (int64_t)allocation->granted);
    pool->trimmed = pool->trimmed && sign > 0;
}

struct vs_pools_kept vs_state_pools_kept(const struct vs_state *state, int8_t device)
{
    struct vs_pools_kept kept = {0};
    int64_t of_framework = 0;
    size_t index = 0;
    uint64_t key;
    const struct vs_pool *pool;
    while ((pool = vs_pools_next(&state->pools, &index, &key)) != NULL) {
        int64_t unused = pool->reserved - (pool->used > 0 ? pool->used : 0);
        if (pool->device != device || unused <= 0)
            continue;
        *(pool->trimmed ? &kept.stuck : &kept.trimmable) += unused;
        of_framework += pool->framework ? unused : 0;
    }
    kept.framework = of_framework * 2 > kept.trimmable + kept.stuck;
    return kept;
}

void pool_create(struct vs_state *state, const struct vs_event *event)
{
    if (event->pool != 0)
        pool_at(state, event);
}

void pool_destroy(struct vs_state *state, const struct vs_event *event)
{
    struct vs_pool *pool = vs_pools_get(&state->pools, event->pool);
    if (pool == NULL)
        return;
    set_reserved(state, pool, 0);
    if (pool->used == 0)
        vs_pools_remove(&state->pools, event->pool);
}

/* What the pool may have given back unasked since the driver's latest figures. */
static int64_t spare_bytes(const struct vs_pool *pool, uint64_t measured_ns)
{
    return pool->reported_ns < measured_ns ? spare_pages(pool->reserved, pool->used) : 0;
}

int64_t pool_adjust(struct vs_state *state, const struct vs_device_state *device, int64_t bytes)
{
    int64_t left = bytes;
    size_t index = 0;
    uint64_t key;
    struct vs_pool *pool;
    while (left != 0 && (pool = vs_pools_next(&state->pools, &index, &key)) != NULL) {
        if (pool->device != device->device || pool->framework)
            continue;
        int64_t most = left < 0 ? spare_bytes(pool, device->measured_ns) : pool->given_back;
        int64_t change = left < 0 ? (-left < most ? left : -most) : (left < most ? left : most);
        set_reserved(state, pool, pool->reserved + change);
        pool->given_back -= change;
        left -= change;
    }
    return bytes - left;
}

void pool_settled(struct vs_state *state, const struct vs_device_state *device)
{
    size_t index = 0;
    uint64_t key;
    struct vs_pool *pool;
    while ((pool = vs_pools_next(&state->pools, &index, &key)) != NULL)
        if (pool->device == device->device && pool->reported_ns >= device->measured_ns)
            pool->slack_settled = device->slack_settled;
}

void pool_drop(struct vs_state *state, int8_t device, struct vs_undo *undo)
{
    size_t index = 0;
    uint64_t key;
    struct vs_pool *pool;
    while ((pool = vs_pools_next(&state->pools, &index, &key)) != NULL) {
        if (pool->device != device || pool->reserved == 0)
            continue;
        struct vs_allocation reserve = {.size = (uint64_t)pool->reserved};
        if (undo != NULL && !undo_keep_dropped(undo, NULL, key, &reserve))
            state_fail(state);
        set_reserved(state, pool, 0);
    }
}

void pool_restore(struct vs_state *state, uint64_t key, int64_t reserved)
{
    struct vs_pool *pool = vs_pools_get(&state->pools, key);
    if (pool != NULL)
        set_reserved(state, pool, reserved);
}
