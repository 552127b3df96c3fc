/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The analyses: each one file that subscribes to the fold and keeps its own
 * result. `…_start` subscribes; `…_finish` is called once after the last event;
 * `…_release` frees. Functions that return int give 0 or a negative errno value.
 */
#ifndef VS_REPLAY_ANALYSIS_H
#define VS_REPLAY_ANALYSIS_H

#include "free_blocks.h"
#include "state.h"

/* ---- peaks.c: the bands at each device's highest moments ------------------------ */

struct vs_device_peaks {
    struct vs_bands at_framework, at_driver, at_used;
};
struct vs_peaks {
    struct vs_device_peaks *devices[VS_DEVICE_SLOTS];
};
int vs_peaks_start(struct vs_peaks *peaks, struct vs_state *state);
/* The bands when the device's top layer held most; NULL when it never held anything. */
const struct vs_bands *vs_peaks_allocated(const struct vs_peaks *peaks,
                                          const struct vs_device_state *device);
/* The bands when most of the device was used; NULL when it was never measured. */
const struct vs_bands *vs_peaks_used(const struct vs_peaks *peaks,
                                     const struct vs_device_state *device);
void vs_peaks_release(struct vs_peaks *peaks);

/* ---- sites.c: per site, what it asked for and what it held at its layer's peak ---- */

struct vs_site_stats {
    uint64_t allocs, frees, failed;
    uint64_t bytes; /* asked for in all */
    int64_t live_bytes, live_count;
    int64_t peak_bytes, peak_count; /* at the peak of the device's layer; valid after finish */
    int64_t live_rounding;          /* of live pinned memory: at most so much is rounding */
    uint64_t epoch;
};
struct vs_sites {
    struct vs_site_stats *stats; /* index = site id - 1 */
    size_t count, room;
    int error;
};
/* All but the epoch. */
void vs_site_stats_add(struct vs_site_stats *sum, const struct vs_site_stats *part);
int vs_sites_start(struct vs_sites *sites, struct vs_state *state);
/* Calls and bytes asked for count from here on; what is live stays. */
void vs_sites_restart(struct vs_sites *sites);
int vs_sites_finish(struct vs_sites *sites, const struct vs_state *state);
void vs_sites_release(struct vs_sites *sites);

/* ---- ooms.c: requests that failed for want of memory ------------------------------- */

enum vs_oom_class {
    VS_OOM_UNKNOWN,
    VS_OOM_FULL,
    VS_OOM_FRAGMENTED,
    VS_OOM_HELD_BY_CACHE,
    VS_OOM_OUTSIDE,
    VS_OOM_OTHER_PROCESS,
    VS_OOM_REQUEST_EXCEEDS_DEVICE,
    VS_OOM_ADDRESS_SPACE,
    VS_OOM_HOST_MEMORY,
    VS_OOM_MULTICAST,
    VS_OOM_OTHER_STREAM,
    VS_OOM_PINNED_SEGMENT,
    VS_OOM_LIMIT,
    VS_OOM_WAITING_STREAMS,
    VS_OOM_FOLLOW_UP
};

enum { VS_OOM_ATTEMPTS = 16, VS_OOM_OTHERS = 4, VS_OOMS_KEPT = 4096 };

struct vs_oom_attempt {
    uint16_t label;
    int32_t result;
    uint64_t bytes;
};

struct vs_oom {
    uint64_t time_ns;
    uint64_t sequence;
    uint32_t thread;
    uint32_t site;
    int8_t device;
    uint8_t layer;
    uint16_t label;
    uint64_t requested;
    uint64_t free_bytes; /* VS_FREE_UNKNOWN */
    bool handled;
    bool repaired; /* the framework's own retry succeeded */
    /* Valid with `repaired`: what its cache gave back to the driver before that retry (-1 where the
       window ended before), and the time from the start of the first refused call to that of the
       first one that was met. */
    int64_t given_back;
    uint64_t lost_ns;
    bool largest_known, cached_known, stream_known;
    bool retry_known, retry_fits;   /* whether the same request would have been met right after */
    uint64_t stream;                /* that the framework asked for */
    uint32_t pool;                  /* enum vs_cache_pool that it asked for, 0 not known */
    bool by_pools;                  /* private pools are what `why` is about */
    uint64_t largest_free, waiting; /* valid with largest_known */
    uint64_t waited_stream, waited_bytes; /* of `waiting`, for the stream most wait for; 0 B none */
    int64_t cached;
    enum vs_oom_class class;
    char why[480];
    struct vs_oom_attempt attempts[VS_OOM_ATTEMPTS];
    size_t attempt_count; /* may exceed VS_OOM_ATTEMPTS: the later ones are counted only */
    /*
     * The other processes that held most, as of NVML's last answer, or of its first one
     * when that came right after the failure; most first.
     */
    struct vs_oom_other {
        uint64_t pid, bytes;
    } others[VS_OOM_OTHERS];
    size_t other_count;   /* may exceed VS_OOM_OTHERS */
    int64_t own_if_alone; /* what is in use, of a device that is full if nobody else was there */
};

struct vs_oom_pending;
struct vs_oom_slot {
    struct vs_oom_pending *pending;
};
VS_MAP_DEFINE(vs_oom_threads, struct vs_oom_slot);

enum { VS_OOMS_OPEN = 64 };

struct vs_ooms {
    struct vs_oom *items;
    size_t count, room;
    uint64_t
        total; /* `count` unless there were more than VS_OOMS_KEPT: then the last is kept too */
    struct {
        uint64_t count, lost_ns;
        int64_t given_back;
        int8_t device;             /* of the last one */
    } repairs;                     /* of all, kept or not */
    struct vs_oom_threads pending; /* failed attempts of a framework, by thread */
    size_t open[VS_OOMS_OPEN];     /* entries not yet known to be handled */
    size_t open_count;
    uint64_t walked_blocks;
    uint64_t now_ns; /* of the event being looked at */
    struct vs_state *state;
    int error;
};
int vs_ooms_start(struct vs_ooms *ooms, struct vs_state *state);
/*
 * An event behind the last one folded: no failure of its own, but it may tell
 * what became of an earlier one.
 */
void vs_ooms_outcome(struct vs_ooms *ooms, const struct vs_sequenced_event *event);
/* `ended_well`: the process ended with status 0. */
int vs_ooms_finish(struct vs_ooms *ooms, bool ended_well);
void vs_ooms_release(struct vs_ooms *ooms);
const char *vs_oom_class_name(enum vs_oom_class class);

/* oom_class.c: decides `class` and writes `why` from the state at the failure. */
void vs_oom_classify(struct vs_ooms *ooms, struct vs_oom *oom, uint8_t kind);
/* Sets the class, and the sentence with its figures, which is cut where it is too long. */
__attribute__((format(printf, 3, 4))) void
vs_oom_decide(struct vs_oom *oom, enum vs_oom_class class, const char *format, ...);
/* The same once it is known, too late, what others held: `full` and `unknown` may be theirs. */
void vs_oom_blame_others(struct vs_oom *oom, int64_t other_bytes);
/* Once NVML's first answer has come: `full` where it depended on nobody else being there. */
void vs_oom_clear_others(struct vs_oom *oom, const struct vs_device_state *device);

/* ---- failures.c: failed calls that are not out of memory ------------------------------ */

struct vs_failure {
    uint16_t label;
    uint8_t kind;
    int32_t result;
    uint32_t site;
    uint64_t count, first_ns, last_ns;
};
struct vs_failures {
    struct vs_failure *items;
    size_t count, room;
    struct vs_sizes index;
    size_t last; /* the one that failed last; valid when count > 0 */
    struct vs_state *state;
    int error;
};
int vs_failures_start(struct vs_failures *failures, struct vs_state *state);
void vs_failures_release(struct vs_failures *failures);
/* What such a failure usually means; never NULL. */
const char *vs_failure_hint(const struct vs_failure *failure);
/* Peer access that was on, or off, as was asked for: programs try and go on. */
bool vs_failure_is_harmless(const struct vs_failure *failure);

/* ---- objects.c: what costs memory without a size of its own ----------------------------- */

enum vs_object_kind {
    VS_OBJECT_MODULE,
    VS_OBJECT_GRAPH_EXEC,
    VS_OBJECT_STREAM,
    VS_OBJECT_CONTEXT,
    VS_OBJECT_IPC_HANDLE,  /* exported by this process */
    VS_OBJECT_IPC_MAPPING, /* of another process, opened here */
    VS_OBJECT_POOL,
    VS_OBJECT_COMMUNICATOR,
    VS_OBJECT_KINDS
};
enum { VS_OBJECTS_REMOVED = 1024 };
struct vs_object {
    uint64_t context; /* that it ends with, 0 none */
    uint64_t handle;  /* of IPC: hash of the handle */
    uint64_t time_ns; /* when it was made */
    uint32_t site;
};
VS_MAP_DEFINE(vs_live_objects, struct vs_object);
/* Told of each object that was made (+1) or is gone (-1). */
typedef void vs_object_watch(void *self, enum vs_object_kind kind, uint32_t site, int32_t count);
struct vs_objects {
    /* The last ones destroyed: an UNDO brings back what its event removed. */
    struct {
        uint64_t key;
        struct vs_object object;
        uint64_t sequence; /* of that event; 0: none */
        uint8_t kind;
    } removed[VS_OBJECTS_REMOVED];
    size_t next_removed;
    vs_object_watch *watch; /* may be NULL */
    void *watch_self;
    struct {
        struct vs_live_objects live;
        uint64_t created, destroyed;
        uint32_t site; /* of the last one made */
    } kinds[VS_OBJECT_KINDS];
    struct vs_state *state;
    int error;
};
int vs_objects_start(struct vs_objects *objects, struct vs_state *state);
void vs_objects_release(struct vs_objects *objects);
const char *vs_object_name(enum vs_object_kind kind);

/* ---- slow_calls.c: time spent in memory calls ----------------------------------------- */

struct vs_call_time {
    uint16_t call;
    uint64_t count, total_ns, max_ns;
};
struct vs_slow_calls {
    struct vs_call_time *items; /* after finish: most time first */
    size_t count, room;
    uint32_t *index; /* by string id: position + 1 */
    int error;
};
int vs_slow_calls_start(struct vs_slow_calls *calls, struct vs_state *state);
void vs_slow_calls_finish(struct vs_slow_calls *calls);
void vs_slow_calls_release(struct vs_slow_calls *calls);

/* ---- phases.c: marked phases and steps; phases_found.c: those the events tell ------------ */

enum {
    VS_PHASES_KEPT = 4608,
    VS_PHASES_MARKED_KEPT = 4096, /* of these at most; room stays for those that are found */
    VS_PHASES_OPEN = 256,
    VS_PHASE_FIRSTS = 4096,
    VS_PHASE_SUMS = 1024
};

enum vs_phase_kind {
    VS_PHASE_MARKED,         /* vramscope_begin and vramscope_end, ranges of NVTX */
    VS_PHASE_BEFORE_CAPTURE, /* up to the first capture of a graph */
    VS_PHASE_CAPTURE,        /* a capture up to where its graph is instantiated */
    VS_PHASE_AFTER_CAPTURE,  /* after the last capture */
    VS_PHASE_BEFORE_STEP     /* up to the first allocation in an optimizer's step */
};

enum vs_phase_band {
    VS_PHASE_ALLOCATED,
    VS_PHASE_RESERVED,
    VS_PHASE_DIRECT,
    VS_PHASE_GRAPHS, /* what executable graphs take, by difference */
    VS_PHASE_DEVICE,
    VS_PHASE_BANDS
};
struct vs_levels {
    int64_t bytes[VS_PHASE_BANDS];
};

/* The bands of one device during one phase. */
struct vs_phase {
    uint64_t start_ns, end_ns;
    uint64_t key;  /* of a capture: its stream, then its graph; of a marked one: its id, or 0 */
    uint32_t name; /* string id of a marked one; of a capture its number, from 1 */
    uint32_t thread;
    uint64_t nest; /* of a marked one without an id: ends are told apart by it */
    int8_t device;
    uint8_t kind;
    bool ended;
    bool framework, measured; /* whose bands are known */
    struct vs_levels entry, peak, exit;
    struct vs_levels capture_peak; /* of a capture: up to its end, without the instantiation */
};

/* Marked phases of one device that began after the first VS_PHASES_MARKED_KEPT, by pattern of name.
 */
struct vs_phase_sum {
    struct vs_phase first;
    uint64_t pattern;
    size_t count;
    bool numbered;                        /* names that differ in their numbers */
    int64_t entry, peak, exit, transient; /* the highest, of the main band */
    int64_t resident;                     /* the sum */
};

/* What is kept of a device for the phases that are found. */
struct vs_phase_watch {
    struct vs_levels peak; /* since the beginning */
    uint32_t captures;     /* begun */
    bool between;          /* after a capture, none is open */
    struct vs_phase after; /* since the last one ended */
};

/* A framework's site when it was first asked for memory. */
struct vs_phase_first {
    uint64_t time_ns;
    uint32_t site;
    struct vs_levels peak, now;
};

struct vs_phases {
    struct vs_phase *items;
    size_t count, room;
    uint64_t omitted; /* neither kept nor in a sum */
    size_t open[VS_PHASES_OPEN];
    size_t open_count;
    struct vs_phase *late; /* marked ones under way for which there was no room */
    size_t late_count, late_room;
    struct vs_phase_sum *sums;
    size_t sum_count, sum_room;
    uint64_t steps, first_step, last_step;
    struct vs_phase_watch *watches[VS_DEVICE_SLOTS];
    struct vs_phase_first *firsts;
    size_t first_count, first_room;
    uint32_t newest_site; /* that a move was told of */
    int error;
};
int vs_phases_start(struct vs_phases *phases, struct vs_state *state);
void vs_phases_finish(struct vs_phases *phases, const struct vs_state *state);
void vs_phases_release(struct vs_phases *phases);

struct vs_places;
/* Adds what stacks tell: the phase up to the first optimizer step. Brings all into order. */
void vs_phases_find_step(struct vs_phases *phases, const struct vs_state *state,
                         const struct vs_places *places);

/* What a phase is called on a page; `room`: of `out`. */
void vs_phase_name(const struct vs_state *state, const struct vs_phase *phase, char *out,
                   size_t room);
/* The band it is told by where only one is: allocated, or direct without a framework. */
enum vs_phase_band vs_phase_main_band(const struct vs_phase *phase);

/* The same for names that differ in their numbers only: "step 1" and "step 22". */
uint64_t vs_name_pattern(const char *name);
/* That name with # for each number; `room`: of `out`. */
void vs_name_pattern_text(const char *name, char *out, size_t room);

/* phases.c for phases_found.c. */
struct vs_levels vs_phase_levels(const struct vs_device_state *device);
/* A phase that begins now; NULL when there is no room for it. */
struct vs_phase *vs_phases_add(struct vs_phases *phases, const struct vs_phase *phase);
void vs_phases_open(struct vs_phases *phases, const struct vs_phase *phase);
void vs_phases_close(struct vs_phases *phases, const struct vs_state *state, size_t position,
                     bool ended);

/* phases_found.c for phases.c. */
void vs_phases_find(struct vs_phases *phases, const struct vs_state *state,
                    const struct vs_sequenced_event *event);
void vs_phases_watch(struct vs_phases *phases, const struct vs_state *state,
                     const struct vs_device_state *device, const struct vs_levels *now);
void vs_phases_note_site(struct vs_phases *phases, const struct vs_state *state, uint32_t site);
void vs_phases_found(struct vs_phases *phases, const struct vs_state *state);

/* ---- lives.c: how long the blocks of each site live ---------------------------------------- */

/*
 * A stretch of a device is the time in which one thread alone allocates on it: with
 * PyTorch a forward pass, or a backward pass, which has a thread of its own. The
 * counts stop at their highest value.
 */
struct vs_life {
    uint32_t within;    /* frees by the thread that allocated last, in the same stretch */
    uint32_t later;     /* by that thread, in a later stretch */
    uint32_t elsewhere; /* by another thread */
    uint32_t thread;    /* that allocated last */
    uint32_t freer;     /* of the last free by another thread */
    uint32_t stretch;
    uint64_t within_ticks; /* that those of `within` lived, in all */
};
struct vs_growth;
struct vs_lives {
    struct vs_life *items; /* index = site id - 1 */
    size_t count, room;
    struct {
        uint32_t thread, stretch;
    } devices[VS_DEVICE_SLOTS];
    const struct vs_growth *growth; /* the clock, NULL: without ticks */
    int error;
};
/* `growth`: the clock of vs_lifetimes, which must have subscribed; NULL: `within_ticks` stay 0. */
int vs_lives_start(struct vs_lives *lives, struct vs_state *state, const struct vs_growth *growth);
void vs_lives_release(struct vs_lives *lives);

/* ---- timeline.c: the curves -------------------------------------------------------------- */

/* A device's bands after an event that moved them; NULL: not known from here to its next row, since
   the trace is cut there. `free_blocks` costs nothing unless asked. */
typedef void vs_timeline_row(void *self, const struct vs_state *state,
                             const struct vs_device_state *device, const struct vs_bands *bands,
                             struct vs_free_blocks *free_blocks);

enum { VS_CURVE_BUCKETS = 512 };

/* Highest values per stretch of time, in at most VS_CURVE_BUCKETS equal stretches. */
struct vs_curve {
    int64_t allocated[VS_CURVE_BUCKETS], reserved[VS_CURVE_BUCKETS], used[VS_CURVE_BUCKETS];
    int64_t now_allocated, now_reserved, now_used;
    size_t filled; /* buckets the time has reached */
};
struct vs_timeline {
    uint64_t bucket_ns;
    struct vs_curve *curves[VS_DEVICE_SLOTS];
    vs_timeline_row *row; /* may be NULL */
    void *row_self;
    struct vs_free_blocks free_blocks;
    int error;
};
int vs_timeline_start(struct vs_timeline *timeline, struct vs_state *state, vs_timeline_row *row,
                      void *row_self);
/* Brings every curve up to the end of the trace. */
void vs_timeline_finish(struct vs_timeline *timeline, const struct vs_state *state);
void vs_timeline_release(struct vs_timeline *timeline);

/* ---- losses.c: what was lost, by kind of call ---------------------------------------------- */

struct vs_loss {
    uint16_t kind; /* of the lost events */
    uint8_t cause;
    int8_t device;
    uint64_t events, bytes;
};
struct vs_losses {
    struct vs_loss *items;
    size_t count, room;
    int error;
};
int vs_losses_start(struct vs_losses *losses, struct vs_state *state);
void vs_losses_release(struct vs_losses *losses);
const char *vs_loss_cause_name(unsigned cause);

/* ---- cuts.c: what was taken out of a cut trace ---------------------------------------------- */

enum { VS_CUTS_KEPT = 4096 };
struct vs_gap {
    uint64_t events; /* taken out */
    uint64_t from_ns, to_ns;
};
struct vs_cuts {
    struct vs_gap *items; /* the first VS_CUTS_KEPT */
    size_t count, room;
    uint64_t gaps, events; /* all */
    int error;
};
int vs_cuts_start(struct vs_cuts *cuts, struct vs_state *state);
void vs_cuts_release(struct vs_cuts *cuts);
/* "12 events between 1.2 s and 3.4 s", since the trace's beginning. */
void vs_gap_text(const struct vs_gap *gap, uint64_t start_ns, char *out, size_t room);

#endif
