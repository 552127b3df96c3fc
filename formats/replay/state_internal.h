/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the fold know of each other; no analysis includes this. */
#ifndef VS_REPLAY_STATE_INTERNAL_H
#define VS_REPLAY_STATE_INTERNAL_H

#include "state.h"

/* Driver allocations share pages of this size; cuMemGetInfo moves in steps of it. */
#define VS_GRANULARITY (2ULL << 20)
/* Allocations below it are packed several to a page. */
#define VS_SMALL_ALLOCATION (1ULL << 20)
#define VS_SMALL_ALIGNMENT 512ULL
#define VS_HOST_PAGE 4096ULL

static inline uint64_t vs_round_up(uint64_t bytes, uint64_t step)
{
    return bytes > UINT64_MAX - step ? bytes : (bytes + step - 1) / step * step;
}

/* Whom a segment of a cache serves. */
struct vs_cache_use {
    uint64_t stream;
    uint32_t pool; /* enum vs_cache_pool */
    uint32_t pool_site;
    bool stream_known;
};

struct vs_undo_range {
    enum { VS_UNDO_RESERVATION, VS_UNDO_SEGMENT, VS_UNDO_MAPPING } set;
    struct vs_range range;
    struct vs_physical physical; /* of a mapping */
};

/* What ends with a context: its allocations, or (context 0) all of its device. */
struct vs_ending {
    uint64_t context;
    int8_t device;
    bool pools; /* the device's primary context: stream-ordered memory goes, too */
};

struct vs_undo_dropped {
    struct vs_allocations *map; /* NULL: a pool, and `size` what it had reserved */
    uint64_t key;
    struct vs_allocation allocation;
};

/* What a device's state was before a context of it ended. */
struct vs_undo_context {
    uint64_t context;
    uint64_t measured_ns;
    uint32_t primary_retains;
    int64_t implicit_bytes[VS_IMPLICITS];
    int64_t implicit_uncertainty, others_uncertainty, rounding;
    int64_t removed; /* implicit bytes that went */
};

/* A free told before the call, with what is needed to take it back. */
struct vs_undo {
    uint64_t sequence; /* 0: unused */
    struct vs_event event;
    enum {
        VS_UNDO_NOTHING,
        VS_UNDO_ALLOCATION,
        VS_UNDO_HANDLE,
        VS_UNDO_RANGES,
        VS_UNDO_CONTEXT
    } what;
    bool unknown;                   /* it freed something nobody knew */
    int64_t lost_bytes, lost_count; /* counted as lost because of it */
    bool repeated;                  /* the call beneath it told the same free by itself */
    struct vs_allocation allocation;
    struct vs_cache_use use;      /* of an allocation that is a segment */
    uint32_t handle_object;       /* index of the physical memory + 1 */
    struct vs_physical physical;  /* as it was */
    struct vs_undo_range *ranges; /* owned */
    size_t range_count;
    struct vs_undo_dropped *dropped; /* owned */
    size_t dropped_count, dropped_room;
    struct vs_undo_context context;
};

/* state.c */
/* The device of an event, made when new, and touched by it; NULL without memory. */
struct vs_device_state *state_touch_device(struct vs_state *state, int device);
static inline struct vs_device_state *state_device(struct vs_state *state, int device)
{
    struct vs_device_state *known = vs_state_device(state, device);
    return known != NULL && known->touched ? known : state_touch_device(state, device);
}
void state_move(struct vs_state *state, uint32_t site, int64_t bytes, int32_t count);
/* The same of a single allocation, with the note that is kept with it. */
void state_move_of(struct vs_state *state, uint32_t site, int64_t bytes, int32_t count,
                   uint32_t *note);
void state_fail(struct vs_state *state);
/* Who caused the event: index into owners. */
uint16_t state_owner(struct vs_state *state, const struct vs_event *event);
uint32_t state_special_site(struct vs_state *state, int8_t device, enum vs_layer layer,
                            enum vs_site_kind kind);
void state_owner_add(struct vs_state *state, struct vs_device_state *device, uint16_t owner,
                     int64_t bytes);

/* state_memory.c: allocations by address or handle */
void memory_alloc(struct vs_state *state, const struct vs_event *event);
/* An allocation of a graph: a node, whose address a later free may name. */
void memory_graph_node(struct vs_state *state, const struct vs_event *event);
/* A new device allocation at `address`. */
void memory_remember(struct vs_state *state, uint64_t address,
                     const struct vs_allocation *allocation);
void memory_free(struct vs_state *state, const struct vs_event *event, struct vs_undo *undo);
void memory_host(struct vs_state *state, const struct vs_event *event);
void memory_host_free(struct vs_state *state, const struct vs_event *event, struct vs_undo *undo);
void memory_ipc_open(struct vs_state *state, const struct vs_event *event);
void memory_external_map(struct vs_state *state, const struct vs_event *event);
void memory_array(struct vs_state *state, const struct vs_event *event);
void memory_array_free(struct vs_state *state, const struct vs_event *event, struct vs_undo *undo);
void memory_restore(struct vs_state *state, const struct vs_undo *undo);
void memory_drop(struct vs_state *state, const struct vs_ending *ending, struct vs_undo *undo);
void memory_restore_dropped(struct vs_state *state, const struct vs_undo *undo);
/* A LOSS record: what it took or gave back counts, whose it was is not known. */
void memory_loss(struct vs_state *state, struct vs_device_state *device,
                 const struct vs_event *event);
/*
 * The device has `bytes` more in use than is known (less: below zero). What of it lost events may
 * have done is counted as lost.
 */
void memory_place_lost(struct vs_state *state, struct vs_device_state *device, int64_t bytes);
/* Counts an allocation in (+1) or out (-1) of the totals. */
void memory_count(struct vs_state *state, struct vs_allocation *allocation, int sign);
/* A direct allocation turns out to be a segment. `counted`: bytes the framework reserved for it. */
void memory_promote(struct vs_state *state, uint64_t address, struct vs_allocation *allocation,
                    uint64_t counted);

/* state_vmm.c */
void vmm_event(struct vs_state *state, const struct vs_event *event, struct vs_undo *undo);
void vmm_restore(struct vs_state *state, const struct vs_undo *undo);
/* Makes a segment of the range that backs `address`. True when there is one. */
bool vmm_promote(struct vs_state *state, struct vs_device_state *device, uint64_t address,
                 int64_t missing);
void vmm_drop_segment(struct vs_state *state, struct vs_range *segment);
/*
 * Drops segments under which an allocator of its own has unmapped everything,
 * at most `bytes` of them. Returns the bytes dropped.
 */
int64_t vmm_drop_unmapped(struct vs_state *state, const struct vs_device_state *device,
                          int64_t bytes);

/* state_pool.c */
void pool_alloc(struct vs_state *state, const struct vs_event *event);
void pool_count(struct vs_state *state, const struct vs_allocation *allocation, int sign);
void pool_report(struct vs_state *state, const struct vs_event *event, uint64_t handle);
void pool_create(struct vs_state *state, const struct vs_event *event);
void pool_destroy(struct vs_state *state, const struct vs_event *event);
/* The device's pools keep nothing any more. */
void pool_drop(struct vs_state *state, int8_t device, struct vs_undo *undo);
void pool_restore(struct vs_state *state, uint64_t key, int64_t reserved);
/*
 * The device has `bytes` more in use than is known (less: below zero). What of it
 * is unused reserve that pools outside of the framework gave back, or did not
 * after all, is taken over; returns how much.
 */
int64_t pool_adjust(struct vs_state *state, const struct vs_device_state *device, int64_t bytes);
/* The last measurement is explained; pools whose figures are as new hide nothing of it. */
void pool_settled(struct vs_state *state, const struct vs_device_state *device);

/* state_framework.c */
void framework_alloc(struct vs_state *state, const struct vs_sequenced_event *event);
void framework_free(struct vs_state *state, const struct vs_sequenced_event *event);
/* A gap of a cut trace begins, and is over: from there on everything is exact again. */
void framework_cut(struct vs_state *state, const struct vs_event *event);
void framework_cut_end(struct vs_state *state);

/* state_communicators.c */
void communicator_event(struct vs_state *state, const struct vs_sequenced_event *event);
/* An event of a communicator is taken back. */
void communicator_undo(struct vs_state *state, const struct vs_sequenced_event *event);
/* Index + 1 of the communicator an event's memory is for; 0 when that is not known. */
uint32_t communicator_of(struct vs_state *state, const struct vs_event *event);
void communicator_add(struct vs_state *state, uint32_t communicator, int64_t bytes, int sign);
bool communicator_kind(uint8_t kind);

/* state_user_pools.c: pools that the program made and uses without a capture */
void user_pool_asked(struct vs_state *state, const struct vs_sequenced_event *event);
/* Whom a segment taken for this block is to serve. */
struct vs_cache_owner {
    uint32_t pool; /* enum vs_cache_pool */
    uint32_t site; /* where it was made or used, 0 not known */
};
/* A request outside of captures: for a pool of the program's, for the default one, or unknown. */
struct vs_cache_owner user_pool_of(const struct vs_state *state,
                                   const struct vs_sequenced_event *event);
/* Whether the thread uses a pool of the program's own. */
bool user_pool_used(const struct vs_state *state, uint32_t thread);
/* Whether any thread does. */
bool user_pools_used(const struct vs_state *state);

/* state_cache.c */
/* An object that keeps a pool alive (a graph, an executable, a pool of the program's) comes or
 * goes. */
void cache_keeper_comes(struct vs_state *state, uint64_t handle, uint32_t pool);
void cache_keeper_goes(struct vs_state *state, uint64_t handle);
/* Before anything else is made of the event: events recorded and complete, captures. */
void cache_order(struct vs_state *state, const struct vs_sequenced_event *event);
/* A block was cut: its segments get the stream and pool it was asked for on. */
void cache_block(struct vs_state *state, struct vs_device_state *device,
                 const struct vs_sequenced_event *event, struct vs_block *block);
/* A block was freed. */
void cache_block_freed(struct vs_state *state, struct vs_device_state *device,
                       const struct vs_sequenced_event *event, const struct vs_block *block);
/* An allocator under the cache gave it the segment at `address`: for which pool is not known. */
void cache_pool_unknown(struct vs_state *state, struct vs_device_state *device, uint64_t address,
                        uint64_t size);
/* Counts a segment in (+1) or out (-1) of the totals of its pool. */
void cache_count(struct vs_device_state *device, const struct vs_range *segment, int sign);
/* Keeps whom the segment at `address` serves, and gives it back to one that is there again. */
void cache_keep(struct vs_state *state, uint64_t address, struct vs_undo *undo);
void cache_restore(struct vs_state *state, uint64_t address, const struct vs_undo *undo);
void cache_bands(const struct vs_state *state, const struct vs_device_state *device,
                 struct vs_bands *bands);

/* state_device.c */
void device_note(struct vs_state *state, const struct vs_event *event, struct vs_undo *undo);
/* The enum vs_implicit that the call's cost is counted in, -1 for other calls. */
int device_implicit_of(const struct vs_event *event);
int64_t device_direct(const struct vs_device_state *device);
void device_settle(struct vs_state *state, struct vs_device_state *device);
int64_t device_own(const struct vs_device_state *device);
/* How much lost events may change, up or down, of what the device rounds on what is live. */
int64_t device_lost_pages(const struct vs_device_state *device);
/* What no band has of the last measurement. */
int64_t device_unexplained(const struct vs_device_state *device);

/* state_measure.c */
void measure_event(struct vs_state *state, const struct vs_sequenced_event *event);
/*
 * A call that had returned before the latest measurement began, and was told
 * after it: the figure has it. `own` is what the process held before the event.
 */
bool measure_has_seen(const struct vs_device_state *device, const struct vs_event *event);
void measure_told_late(struct vs_state *state, struct vs_device_state *device, int64_t own,
                       uint32_t thread);
/* Events turn out to have been lost: the last measurement may show what they did. */
void measure_lost(struct vs_state *state, struct vs_device_state *device);
/* Before anything else is made of the event: what it says about calls under way. */
void measure_calls(struct vs_state *state, const struct vs_sequenced_event *event);

/* state_context.c */
void context_event(struct vs_state *state, struct vs_device_state *device,
                   const struct vs_event *event, struct vs_undo *undo);
void context_restore(struct vs_state *state, const struct vs_undo *undo);

/* state_undo.c */
struct vs_undo *undo_begin(struct vs_state *state, const struct vs_sequenced_event *event);
void undo_take(struct vs_state *state, const struct vs_sequenced_event *event);
/* A free of what an announced free took already, told again by the call beneath it. */
bool undo_repeats(struct vs_state *state, uint64_t address);
/* Something that went with its context. False without memory. */
bool undo_keep_dropped(struct vs_undo *undo, struct vs_allocations *map, uint64_t key,
                       const struct vs_allocation *allocation);
void undo_release(struct vs_state *state);

#endif
