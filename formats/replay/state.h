/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fold: events in, the state of every device after each of them out. Memory
 * is bounded by what is live, never by the number of events. Analyses subscribe
 * and keep what they need; the state knows none of them.
 *
 * What each figure means, and how exact it is: docs/numbers.md.
 * Nothing here is thread-safe or signal-safe; different states are independent.
 */
#ifndef VS_REPLAY_STATE_H
#define VS_REPLAY_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "map.h"
#include "ranges.h"
#include "record.h"

/* Where names come from: the reader, or a test's own tables. NULL results mean "not defined". */
struct vs_names {
    const void *self;
    const char *(*string)(const void *self, uint32_t id);
    const char *(*module_path)(const void *self, uint32_t id);
    /*
     * Name and file of an interpreter's frame in a stack, 0 the innermost; NULL when there is none.
     * NULL itself where stacks are not known.
     */
    const char *(*code)(const void *self, uint32_t stack, unsigned index, const char **file);
};

/* ---- who and where ---------------------------------------------------------- */

enum vs_layer { VS_LAYER_FRAMEWORK, VS_LAYER_DRIVER, VS_LAYER_HOST, VS_LAYERS };

enum vs_site_kind {
    VS_SITE_CALL,             /* a call of the program */
    VS_SITE_BEFORE_RECORDING, /* live before the first event */
    VS_SITE_UNCERTAIN         /* what a loss left unknown, by the framework's own totals */
};

/* Where memory was asked for. Ids are indices + 1: 0 is "no site". */
struct vs_site {
    uint32_t stack; /* stack id of the event, 0 without stacks */
    uint16_t owner; /* index of an owner */
    uint16_t label; /* string id of the outermost call */
    int8_t device;
    uint8_t layer;
    uint8_t kind;
    bool segment;  /* memory a caching layer took to cut blocks from */
    uint32_t next; /* of the same hash */
};

/* A library or program that asks for memory, by the file name of its module. */
struct vs_owner {
    char name[64];
    bool framework; /* a caching allocator: its driver memory is segments */
    bool nccl;      /* its driver memory is that of communicators */
    bool bridge;    /* calls C for Python: who called through it is in the stack */
    bool host;      /* its pinned memory is a caching allocator's */
};

/* One change of what is live, told to subscribers before the totals move. */
struct vs_move {
    uint32_t site;
    int64_t bytes;
    int32_t count; /* +1 alloc, -1 free, 0 correction or failed call */
    bool failed;
    uint64_t asked_bytes; /* of a failed call */
    /* Kept with what was allocated, for the subscriber that follows it from its making to its
       end: 0 at first. NULL where the fold knows no single allocation. */
    uint32_t *note;
};

/* ---- devices ---------------------------------------------------------------- */

enum vs_implicit {
    VS_IMPLICIT_CONTEXT,
    VS_IMPLICIT_MODULES,
    VS_IMPLICIT_GRAPHS,
    VS_IMPLICIT_LOCAL_MEMORY,
    VS_IMPLICIT_OTHER,
    VS_IMPLICITS
};

struct vs_caching_layer;

struct vs_layer_total {
    int64_t live_bytes;
    int64_t peak_bytes;
    uint64_t peak_time_ns;
    uint64_t peak_epoch; /* one more at each new peak */
};

VS_MAP_DEFINE(vs_sizes, uint64_t);

/*
 * What was concluded from a measurement, as it was before. A call found later to
 * have been under way at that moment makes the conclusion void.
 */
struct vs_conclusion {
    uint64_t until_ns; /* the figure was read before */
    uint32_t thread;
    unsigned implicit_pending;
    int64_t direct_slack;
    int64_t implicit_bytes[VS_IMPLICITS];
    int64_t implicit_uncertainty, rounding;
    int64_t settled_used, settled_own, settled_others;
};
enum { VS_CONCLUSIONS_KEPT = 256 };

/* CUlimit: what the driver keeps memory for. */
enum { VS_LIMIT_STACK_SIZE, VS_LIMITS = 5 };
struct vs_limit {
    uint64_t bytes, time_ns; /* as it was set last */
    uint32_t site;
    uint16_t label;
    bool set;
};

struct vs_device_state {
    const struct vs_caching_layer
        *caching_layer;   /* of the first block; NULL none, or not a known one */
    uint64_t total_bytes; /* 0 unknown */
    struct vs_layer_total layers[VS_LAYERS];

    /* framework */
    uint64_t framework_events;
    uint64_t reported_allocated, reported_reserved;
    uint64_t mismatches;              /* events at which its totals and ours differed */
    uint64_t first_mismatch;          /* sequence */
    int64_t segment_bytes;            /* ranges it counts as reserved */
    int64_t segment_backed;           /* of these, with memory of this process behind them */
    int64_t before_recording;         /* blocks it had before the first event, not freed since */
    int64_t unseen_reserved;          /* what it reports beyond the segments seen */
    int64_t cut_allocated;            /* in a gap: what we had at its last report */
    bool cut_reported;                /* in a gap: it has reported */
    int64_t pool_reserved, pool_used; /* of driver pools it works on */
    int64_t waiting_bytes;            /* freed, and still waited for */
    uint64_t deferred_waits;          /* events of blocks that are not known */
    bool freed_in_capture;            /* since the last block outside of one: may wait */
    int64_t unknown_pool_bytes;       /* segments of which the pool is not known */
    int64_t private_reserved, private_allocated, private_waiting; /* of segments in private pools */
    int64_t reserved_peak;
    uint64_t reserved_peak_ns;

    /* memory outside of segments, as the device grants it */
    int64_t *owner_bytes; /* asked for, by owner */
    size_t owner_slots;
    int64_t direct_large;                     /* in pages of their own */
    int64_t direct_small;                     /* packed */
    int64_t physical_bytes;                   /* cuMemCreate, not mapped into segments */
    int64_t own_pool_reserved, own_pool_used; /* pools outside of the framework */
    int64_t rounding;                         /* correction of the model by measurements */
    int64_t managed_bytes;
    int64_t direct_asked;           /* of direct_large and direct_small, as asked for */
    int64_t asked_count;            /* live cuMemAlloc and its kin, segments included */
    int64_t lost_bytes, lost_count; /* of such allocations, by lost events: added less freed */
    int64_t held_bytes, held_count; /* the same, until a loss is known of */
    int64_t held_host_bytes;
    int64_t lost_pages;    /* what the device may round otherwise because of lost events */
    int64_t lost_rounding; /* what it did, by measurements */
    int64_t lost_room;     /* what other lost events may have taken at most */
    int64_t lost_measured; /* what they did take, or gave back, by measurements */

    /* measurements */
    int64_t used_bytes; /* now: the last measurement, moved by what is known since */
    int64_t base_used, base_own, base_others;
    uint64_t measured_ns, measured_until_ns; /* when the last measurement began and was over */
    uint64_t returned_ns;                    /* the latest return of a call that moved memory */
    int64_t settled_used, settled_own, settled_others; /* the last one that was explained */
    /* How far the model of direct memory may be off since then: a page for every call, and what
       a pool's reserve turned out to be. */
    int64_t direct_slack;
    int64_t slack_settled; /* of all measurements that were explained */
    struct vs_conclusion conclusions[VS_CONCLUSIONS_KEPT]; /* a ring */
    unsigned oldest_conclusion, conclusion_count;
    int64_t implicit_bytes[VS_IMPLICITS];
    int64_t implicit_uncertainty;
    int64_t others_uncertainty; /* of it, because it was not known who else was there */
    struct vs_sizes others;     /* by process id */
    int64_t other_bytes;
    uint64_t first_answers;    /* figures of NVML's first answer still to come */
    int64_t context_of_others; /* taken off the context by that answer */
    uint64_t last_free_bytes;  /* VS_FREE_UNKNOWN before the first measurement */
    int64_t used_peak;
    uint64_t used_peak_ns;

    uint64_t context_time_ns; /* of the first context */
    struct vs_sizes contexts; /* live ones, by handle */
    uint64_t primary_context;
    uint64_t losses; /* lost events of this device */

    struct vs_limit limits[VS_LIMITS];
    unsigned implicit_pending; /* bits of enum vs_implicit since the last explained measurement */
    uint32_t context_site;
    uint32_t primary_retains;
    uint16_t context_label;
    uint16_t framework_owner;
    int8_t device;
    bool framework_seen; /* it reported a block, or works on a driver's pool */
    bool reported;       /* its own totals are known */
    bool measured;
    bool used_is_measured; /* nothing moved since the last measurement */
    bool used_peak_is_measured;
    bool others_known;
    bool context_seen;
    bool limit_waits; /* a limit was set, and no rise was seen since: it may come with a launch */
    bool touched;
};

/* The bands at one moment; bytes. Signed: what is by difference can be below zero. */
enum { VS_BANDS_OWNERS = 48 };
struct vs_bands {
    bool device_known; /* device, implicit, other and unexplained are measured figures */
    int64_t device, other_process, unexplained;
    int64_t implicit[VS_IMPLICITS], implicit_uncertainty;
    int64_t context_of_others; /* what NVML's first answer had taken off the context by then */
    int64_t reserved, backed, unbacked, allocated, cached;
    int64_t pending, private_pool; /* parts of cached, without a byte in common */
    bool pending_known, private_pool_known;
    int64_t direct, managed;
    int64_t host_pinned, host_pinned_requested;
    int64_t host_registered;                                  /* of host_pinned */
    int64_t host_framework;                                   /* of it, in a framework's cache */
    int64_t host_rounding;                                    /* of that, at most its rounding */
    int64_t cgroup_limit, cgroup_used, host_rss, host_shared; /* -1 unknown */
    int64_t host_reclaimable; /* -1 unknown: no device shares the host's memory */
    size_t owners;
    struct {
        uint16_t owner;
        int64_t bytes;
    } by_owner[VS_BANDS_OWNERS];
    int64_t rounding;    /* what the device rounded on top of the owners' bytes */
    int64_t lost;        /* direct memory that lost events took or gave back, whose is not known */
    int64_t more_owners; /* bytes of owners beyond the table */
};

/* ---- live objects ------------------------------------------------------------ */

/* A block of a caching layer. */
struct vs_block {
    uint64_t size;
    uint32_t site;
    uint32_t note; /* vs_move.note, as of the next two */
    int8_t device;
    bool private_pool;
};

/* Which pool of a cache a segment belongs to. */
enum vs_cache_pool {
    VS_CACHE_POOL_UNSEEN, /* no block was cut from it yet */
    VS_CACHE_POOL_UNKNOWN,
    VS_CACHE_POOL_DEFAULT,
    VS_CACHE_POOL_PRIVATE, /* and above: + the number of the capture that first used it, from 0 */
    VS_CACHE_POOL_USER = 1 << 30 /* and above: + the number the framework gave a program's own */
};
static inline bool vs_pool_is_graphs(uint32_t pool)
{
    return pool >= VS_CACHE_POOL_PRIVATE && pool < VS_CACHE_POOL_USER;
}
/* The number people see: of a graph's pool from 1, of a program's own as the framework's. */
static inline uint32_t vs_pool_number(uint32_t pool)
{
    return pool >= VS_CACHE_POOL_USER ? pool - VS_CACHE_POOL_USER : pool - VS_CACHE_POOL_DEFAULT;
}

/* The pools of its own that a thread allocates from, the outermost first. */
enum { VS_POOL_USES = 4 };
struct vs_pool_use {
    uint32_t pools[VS_POOL_USES]; /* enum vs_cache_pool */
    uint32_t sites[VS_POOL_USES];
    int8_t devices[VS_POOL_USES];
    uint32_t depth; /* may exceed VS_POOL_USES: those are not known */
    bool ended;     /* the last question was of an end, which asks once more */
};

/* A block that was freed while other streams may use it: not free before their events complete. */
struct vs_wait {
    uint64_t size;
    uint32_t events; /* still to complete */
    int8_t device;
    bool private_pool;
};
/* An event recorded for such a block; `block` 0: which one is not known (yet). */
struct vs_wait_event {
    uint64_t block;
    uint64_t previous; /* handle of the one its thread recorded before, 0 none */
    uint64_t stream;   /* that it was recorded on */
    int8_t device;
    bool deferred; /* counted in deferred_waits */
};
/* A stream capture under way. */
struct vs_capture {
    uint64_t stream;
    uint32_t thread;
    uint32_t pool; /* enum vs_cache_pool */
    uint32_t site; /* where the pool was made: by this capture, or an earlier one */
    bool has_segments;
};
enum { VS_CAPTURES_OPEN = 64 };

enum vs_allocation_type {
    VS_ALLOCATION_DIRECT,
    VS_ALLOCATION_MANAGED,
    VS_ALLOCATION_POOL,
    VS_ALLOCATION_IPC,      /* another process's memory */
    VS_ALLOCATION_EXTERNAL, /* another API's memory */
    VS_ALLOCATION_ARRAY,
    VS_ALLOCATION_HOST,
    VS_ALLOCATION_REGISTERED
};

struct vs_allocation {
    uint64_t size;    /* asked for */
    uint64_t granted; /* pool: what the pool counts; IPC: times opened */
    uint64_t context;
    uint64_t pool;
    uint32_t site;
    uint32_t note;
    uint32_t communicator; /* index + 1, 0 none known */
    uint16_t owner;
    int8_t device;
    uint8_t type;
    bool segment;
};

/* Physical memory of cuMemCreate; alive while handles or mappings refer to it. */
struct vs_physical {
    uint64_t size;
    uint64_t mapped_in_segments; /* bytes counted as backing of segments */
    uint64_t mappings;
    uint64_t serial; /* never used twice: tells a reused slot from the one that was meant */
    uint32_t handles;
    uint32_t site;
    uint32_t note;
    uint32_t communicator; /* index + 1, 0 none known */
    uint32_t shared_site;  /* where it was exported, or imported if not ours; 0 neither */
    uint64_t shared_ns;    /* the first time */
    uint16_t owner;
    int8_t device;
    bool ours; /* memory of this process on a device */
    bool host;
    bool live;
};

/* A communicator of NCCL, from the call that makes it until it is destroyed and holds nothing. */
enum vs_communicator_phase {
    VS_COMMUNICATOR_GONE, /* or never made */
    VS_COMMUNICATOR_MAKING,
    VS_COMMUNICATOR_LIVE
};
enum { VS_RANK_UNKNOWN = -1 };
struct vs_communicator {
    uint64_t serial;    /* never used twice */
    uint64_t handle;    /* 0 not known */
    uint64_t begin;     /* sequence of the record before it was made */
    uint64_t destroyed; /* sequence of the record of its end; 0 none */
    uint64_t ranks;     /* 0 not known */
    int64_t rank;       /* VS_RANK_UNKNOWN */
    int64_t bytes;      /* of device memory that is known to be its own */
    uint32_t pieces;    /* in so many allocations */
    uint32_t thread;    /* that makes it */
    uint32_t site;
    int8_t device;
    uint8_t phase;
};

struct vs_handle {
    uint32_t physical;
    uint32_t references;
};

struct vs_pool {
    int64_t reserved, used;
    uint64_t reported_ns;  /* of the driver's latest figures */
    int64_t given_back;    /* taken off `reserved` since, by what was measured */
    int64_t least_used;    /* since then */
    int64_t slack_settled; /* of the device, when both were last known at one moment */
    bool reserved_known;
    bool framework;
    bool trimmed; /* all of it was told to go back, and nothing was freed since */
    uint16_t owner;
    int8_t device;
};

enum vs_segment_kind {
    VS_SEGMENT_DIRECT,  /* one cudaMalloc */
    VS_SEGMENT_PIECE,   /* a mapping the framework made itself */
    VS_SEGMENT_RESERVED /* a range kept by an allocator under it */
};

VS_MAP_DEFINE(vs_blocks, struct vs_block);
VS_MAP_DEFINE(vs_waits, struct vs_wait);
VS_MAP_DEFINE(vs_pool_uses, struct vs_pool_use);
VS_MAP_DEFINE(vs_wait_events, struct vs_wait_event);
VS_MAP_DEFINE(vs_allocations, struct vs_allocation);
VS_MAP_DEFINE(vs_handles, struct vs_handle);
VS_MAP_DEFINE(vs_pools, struct vs_pool);

/* ---- what was odd ------------------------------------------------------------ */

/* Counters of the fold. After a loss they are consequences, not faults. */
struct vs_counts {
    uint64_t events;
    uint64_t driver_events, runtime_events, framework_events;
    uint64_t frees, frees_unknown; /* frees of addresses nobody allocated */
    uint64_t alloc_on_live;        /* ordering faults, repaired */
    uint64_t framework_frees_unknown, framework_alloc_on_live;
    uint64_t free_size_differs;              /* a block freed with another size */
    uint64_t blocks_checked, blocks_outside; /* of segments */
    uint64_t totals_compared;
    uint64_t handles_unknown, ranges_unknown;
    uint64_t undone, undo_unmatched;
    uint64_t frees_at_shutdown; /* the driver was gone: nothing to free */
    uint64_t lost_events, lost_bytes, torn;
    uint64_t sequence_backwards;
};

struct vs_state;

/* Which events a subscriber's `event` is called for. */
enum vs_interest {
    VS_INTEREST_ALL = 0,
    VS_INTEREST_MEMORY = 1 << 0,  /* calls on memory and objects, and UNDO: rare beside blocks */
    VS_INTEREST_BLOCKS = 1 << 1,  /* a framework's blocks */
    VS_INTEREST_OUTCOME = 1 << 2, /* FW_OOM, and whatever failed */
    VS_INTEREST_OTHER = 1 << 3    /* marks, losses, measurements, order */
};

/* Any of the functions may be NULL. */
struct vs_subscriber {
    void *self;
    unsigned interest; /* bits of enum vs_interest */
    /* Before the totals move. */
    void (*move)(void *self, const struct vs_state *state, const struct vs_move *move);
    /* After the event took effect. For an UNDO, state->undone is the event taken back. */
    void (*event)(void *self, const struct vs_state *state, const struct vs_sequenced_event *event);
    /* A new highest value of a device, after the event. */
    void (*peak)(void *self, const struct vs_state *state, const struct vs_device_state *device,
                 unsigned which);
};

enum { VS_SUBSCRIBERS = 24, VS_INTERESTS = 16 };

/* Indices of subscribers, in the order in which they subscribed. */
struct vs_audience {
    uint8_t count;
    uint8_t members[VS_SUBSCRIBERS];
};

/* Bits of `which` in vs_subscriber.peak. */
enum vs_peak {
    VS_PEAK_FRAMEWORK = 1 << VS_LAYER_FRAMEWORK,
    VS_PEAK_DRIVER = 1 << VS_LAYER_DRIVER,
    VS_PEAK_HOST = 1 << VS_LAYER_HOST,
    VS_PEAK_RESERVED = 1 << 3,
    VS_PEAK_USED = 1 << 4
};

enum { VS_SITE_CACHE = 1024 };
enum { VS_DEVICE_SLOTS = 257, VS_DEVICE_OFFSET = 128, VS_UNDO_KEPT = 1024 };

struct vs_undo; /* a free that may still be taken back */

/* A call that was told before it began, and whose thread has told nothing since. */
struct vs_call_under_way {
    uint64_t since_ns;
    int8_t device;
};
VS_MAP_DEFINE(vs_calls_under_way, struct vs_call_under_way);

struct vs_state {
    struct vs_names names;
    uint64_t own_pid; /* of the traced process, as NVML sees it; 0 unknown */
    struct vs_device_state *devices[VS_DEVICE_SLOTS]; /* index = device + 128 */
    struct vs_subscriber subscribers[VS_SUBSCRIBERS];
    size_t subscriber_count;
    /* Of them, who hears of what: moves, peaks, and events by the interests they meet. */
    struct vs_audience movers, peakers, listeners[VS_INTERESTS];

    struct vs_site *sites;
    size_t site_count, site_room;
    struct vs_sizes site_index;
    uint32_t site_cache[VS_SITE_CACHE]; /* ids found last, by hash */
    struct vs_owner *owners;
    size_t owner_count, owner_room;
    struct vs_sizes owner_by_module;
    struct vs_sizes owner_by_stack; /* of calls through a bridge */
    uint32_t last_module; /* asked for last, and its owner; valid while there are owners */
    uint16_t last_owner;
    /* Of the call asked about last, and of the label: what layers.h says. */
    uint16_t last_call, last_label;
    bool last_label_takes_segments;
    const struct vs_caching_layer *last_layer;

    struct vs_blocks blocks;
    struct vs_waits waits;             /* by address of the block */
    struct vs_wait_events wait_events; /* by handle */
    struct vs_sizes recorders;         /* by thread: the event it just recorded */
    struct vs_capture captures[VS_CAPTURES_OPEN];
    size_t capture_count, captures_missed; /* open ones; of them not kept */
    uint32_t capture_number;               /* of all so far */
    struct vs_sizes graph_pools;   /* by handle of a graph or an executable: the pool it works in */
    struct vs_sizes pool_graphs;   /* by pool: how many of these live */
    struct vs_pool_uses pool_uses; /* by thread */
    bool pool_of_all;              /* a use of a pool counts for all threads */
    bool pools_seen;               /* the id of a pool was asked for */
    bool pools_unclear; /* by somebody who may allocate from it in a way that is not seen */
    struct vs_allocations allocations; /* by device address */
    struct vs_allocations hosts;       /* by host address */
    struct vs_allocations arrays;      /* by handle */
    struct vs_sizes
        graph_addresses; /* of allocation nodes: a free of one is a node's, or a launch's */
    struct vs_handles handles;
    struct vs_pools pools;
    struct vs_physical *physicals;
    size_t physical_count, physical_room;
    uint32_t spare_physical; /* index + 1 */
    uint64_t physical_serial;
    bool shared_physicals; /* some were exported or imported */
    struct vs_ranges reservations, mappings, segments;

    struct vs_communicator *communicators;
    size_t communicator_count, communicator_room;
    uint64_t communicator_serial; /* of the last one */
    uint64_t communicator_now;    /* that the event being folded made or ended; 0 none */
    uint32_t thread_now;          /* of the event being folded */

    bool cut;            /* in a gap of a cut trace: what came and went in it is not there */
    uint64_t cut_events; /* taken out of it so far */
    bool lost_gave_back; /* a lost event released memory: whose and how much is not known */
    int64_t host_pinned, host_pinned_requested;
    int64_t host_registered, host_framework, host_rounding; /* parts of host_pinned */
    uint64_t
        host_round_limit; /* larger requests its cache does not round; UINT64_MAX: rounds all */
    int64_t host_rss, cgroup_limit, cgroup_used, host_shared; /* -1 unknown */
    int64_t host_reclaimable;
    uint64_t host_oom_kills; /* processes of its control group that the kernel killed */
    int64_t host_shared_torch, host_shared_files; /* valid with host_shared */

    struct vs_calls_under_way under_way; /* by thread */
    struct vs_undo *undos;               /* VS_UNDO_KEPT, a ring */
    size_t undo_next;
    const struct vs_event *undone;
    struct vs_device_state *touched[4]; /* by the event being folded; the first four */
    size_t touched_count;

    struct vs_counts counts;
    uint64_t start_ns; /* of the trace: set before the first event when known, else its time */
    uint64_t last_time_ns;
    uint64_t last_sequence;
    uint64_t now_ns; /* of the event being folded, never backwards */
    uint32_t now_thread;
    int error; /* sticky: -ENOMEM */
};

/* ---- functions ----------------------------------------------------------------- */

/* Returns 0 or -ENOMEM. */
int vs_state_create(const struct vs_names *names, struct vs_state **out);
void vs_state_destroy(struct vs_state *state);

/* Returns 0, or -ENOSPC when there are VS_SUBSCRIBERS already. */
int vs_state_subscribe(struct vs_state *state, const struct vs_subscriber *subscriber);

/* Total memory of a device where an event does not say it. Returns 0 or -ENOMEM. */
int vs_state_device_total(struct vs_state *state, int8_t device, uint64_t total_bytes);

/* Folds one event; sequences should increase. Returns 0 or the sticky error. */
int vs_state_event(struct vs_state *state, const struct vs_sequenced_event *event);

/*
 * From here on peaks are those since now: every device's highest values become
 * what it holds at this moment, which subscribers are told as peaks. `time_ns` is
 * the moment, at or after the last event's.
 */
void vs_state_restart_peaks(struct vs_state *state, uint64_t time_ns);

/* NULL when nothing was ever said of the device. */
static inline struct vs_device_state *vs_state_device(const struct vs_state *state, int device)
{
    int slot = device + VS_DEVICE_OFFSET;
    return slot >= 0 && slot < VS_DEVICE_SLOTS ? state->devices[slot] : NULL;
}

void vs_state_bands(const struct vs_state *state, const struct vs_device_state *device,
                    struct vs_bands *out);
/* Held outside of the framework's segments now, as the device grants it. */
int64_t vs_device_direct(const struct vs_device_state *device);
/* Reserved by the framework now. */
static inline int64_t vs_device_reserved(const struct vs_device_state *device)
{
    if (!device->framework_seen)
        return 0;
    return device->segment_bytes + device->pool_reserved + device->unseen_reserved;
}
/* The layer a person asks about first on this device: the framework if there is one. */
static inline enum vs_layer vs_device_top_layer(const struct vs_device_state *device)
{
    return device->framework_seen ? VS_LAYER_FRAMEWORK : VS_LAYER_DRIVER;
}

/* True when events were lost: what looks inconsistent is uncertain, not a fault. */
bool vs_state_lossy(const struct vs_state *state);

static inline const struct vs_site *vs_state_site(const struct vs_state *state, uint32_t site)
{
    return site == 0 || site > state->site_count ? NULL : &state->sites[site - 1];
}
/*
 * What of a block of pinned memory may be its owner's rounding, at most: a framework's host cache
 * rounds up to a power of two, or not at all. 0 for other owners.
 */
int64_t vs_state_host_rounding(const struct vs_state *state, uint16_t owner, uint64_t bytes);
const char *vs_state_owner_name(const struct vs_state *state, uint16_t owner);
/* Name of a string id, "" when it is not defined. */
const char *vs_state_string(const struct vs_state *state, uint32_t id);
/* True when the event's caller is a caching allocator. */
bool vs_state_by_framework(struct vs_state *state, const struct vs_event *event);
/* Site of an event, made when new; 0 without memory. */
uint32_t vs_state_site_of(struct vs_state *state, const struct vs_event *event, int8_t device,
                          enum vs_layer layer, bool segment);

/* The pool of a cache that a framework's request (FW_ALLOC, FW_OOM) is for, as of now. */
uint32_t vs_state_request_pool(const struct vs_state *state,
                               const struct vs_sequenced_event *event);
/* Whether a private pool has a graph, an executable one, a capture or an owner that may use it. */
bool vs_state_pool_in_use(const struct vs_state *state, uint32_t pool);

/* The communicator of a serial; NULL when it is gone and forgotten. */
const struct vs_communicator *vs_state_communicator(const struct vs_state *state, uint64_t serial);

/*
 * Bytes asked for by NCCL now: those known to be a communicator's, and all outside of
 * stream-ordered pools, which count by their reserve.
 */
void vs_state_communicator_bytes(const struct vs_state *state, int64_t *known, int64_t *all);

/* What stream-ordered pools of a device reserve and do not use. */
struct vs_pools_kept {
    int64_t trimmable; /* a trim may give pages of it back */
    int64_t stuck;     /* one was made, and this is what it left */
    bool framework;    /* most of it is a framework's */
};
/* O(pools). */
struct vs_pools_kept vs_state_pools_kept(const struct vs_state *state, int8_t device);

/*
 * The stream that most of a device's freed blocks wait for, and their bytes; a block may wait for
 * several. 0 bytes: none is known. O(blocks that wait). Returns 0 or -ENOMEM.
 */
int vs_state_waited_stream(const struct vs_state *state, const struct vs_device_state *device,
                           uint64_t *stream, uint64_t *bytes);

#endif
