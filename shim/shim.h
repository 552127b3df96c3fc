/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the rooms of the shim know of each other. Everything here runs inside
 * somebody else's process: no function aborts, prints above `warn`, allocates,
 * takes a lock or makes a system call on the path of an event, and errno is the
 * same afterwards as before.
 *
 *   config.c         VRAMSCOPE_* → struct shim_config, once, in the constructor
 *   lifecycle.c      start of the collector, fork, exit, signals: when is recording on
 *   ring_producer.c  reserve / commit / wait / count losses
 *   thread_state.c   the few words every thread has
 *   intern.c         names → string ids, threads, modules: definitions sent once
 *   modules.c        the table of loaded objects (decision 5): caller → module id
 *   stacks.c         where an event came from: see stacks.h
 *   marks.c          what the program tells of itself; nvtx.c hears it from NVTX
 *   hook_*.c         thin: translate one call into one struct vs_event
 */
#ifndef VS_SHIM_SHIM_H
#define VS_SHIM_SHIM_H

#include <stdbool.h>
#include <stdint.h>

#include "../formats/record.h"

#define SHIM_EXPORT __attribute__((visibility("default")))
#define SHIM_TLS __thread __attribute__((tls_model("initial-exec")))

/* ---- config.c -------------------------------------------------------------- */

enum shim_when_full { SHIM_WHEN_FULL_WAIT, SHIM_WHEN_FULL_DROP };
enum shim_ring_at { SHIM_RING_IN_MEMORY, SHIM_RING_IN_FILE };
enum shim_sampling { SHIM_SAMPLE_AUTO, SHIM_SAMPLE_ALWAYS, SHIM_SAMPLE_NEVER };

struct shim_config {
    bool disabled; /* VRAMSCOPE_DISABLE, VRAMSCOPE_ONLY, secure execution, a second copy of us */
    uint64_t ring_bytes;
    enum shim_when_full when_full;
    enum shim_sampling sampling; /* VRAMSCOPE_SAMPLE: auto (≤ 1 % of wall time), always, never */
    enum shim_ring_at ring_at;
    uint32_t exit_wait_ms;
    bool want_native, want_python;
    bool nvtx; /* VRAMSCOPE_NVTX: its ranges are phases */
    uint32_t depth;
    int log_level;        /* 0 error … 3 debug */
    char output[4096];    /* VRAMSCOPE_OUTPUT made absolute at start */
    char collector[4096]; /* path of vramscope-collector */
};

extern struct shim_config shim_config;
void config_load(void);
/* One line on stderr when `level` ≤ VRAMSCOPE_LOG. Never from a hook body. */
void shim_log(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- thread_state.c -------------------------------------------------------- */

/* One cache line of initial-exec TLS; zero is the right start. */
struct shim_thread {
    uint32_t tid;        /* 0: not asked yet */
    uint32_t generation; /* of the process (forks): differs → tid and definitions are stale */
    uint16_t depth;      /* hooks of ours on this thread's stack now */
    uint16_t label;      /* string id of the outermost entry point; valid while depth > 0 */
    uint16_t busy; /* > 0: inside our own bookkeeping (ring, collector start): never re-enter */
    uint8_t named; /* this thread's name is in the trace */
    uint8_t after_mine;     /* low byte of the position behind this thread's latest record */
    uint32_t label_module;  /* module id of the outermost call's caller */
    uint32_t driver_events; /* driver-level events recorded beneath the outermost call */
    void *stack_mark;       /* stack address of the outermost hook: detects jumps out of hooks */
    uint32_t device;        /* last device known current on this thread + 1; 0 unknown */
    uint32_t events;        /* for 1-in-64 self timing */
    uint64_t waited_ns;     /* for room in the ring, since recording began */
    uint64_t pending;       /* reservation not committed yet: position << 7 | cells; 0 none */
    void *busy_mark;        /* the struct thread_frame of what `busy` counts */
};
_Static_assert(sizeof(struct shim_thread) <= 64, "static TLS is scarce");
extern SHIM_TLS struct shim_thread shim_thread;

/* ---- lifecycle.c ----------------------------------------------------------- */

/* True when events go to a ring now. One relaxed load. */
bool shim_recording(void);
/* Counts the forks down to this process; 0 before recording. thread_state.h has enter and leave. */
uint32_t shim_generation(void);
/*
 * Called by the hooks on the first sign of CUDA (cuInit, first look-up of a
 * driver name, first cuda* call): starts the collector, once per process.
 * Must not be called under a lock of the program (not in an allocation hook's
 * framework path). Safe from several threads; a nested call returns at once.
 * After a fork, the child's first CUDA sign starts a collector of its own.
 */
void lifecycle_cuda_seen(void);
/* Asks the collector to write everything it has now (a memory call failed). No waiting. */
void lifecycle_flush_soon(void);

/* ---- ring_producer.c ------------------------------------------------------- */

/* CLOCK_MONOTONIC, nanoseconds (vDSO). */
uint64_t shim_now_ns(void);

/*
 * Puts one event into the ring; fills time_ns when it is 0. Returns the
 * record's sequence, or 0 when it was not recorded (not recording, or lost: then
 * it has been counted). Async-signal-safe; nested calls never wait.
 */
uint64_t shim_emit(struct vs_event *event);

/*
 * The same for an event that gives memory back. Once anything was lost, this one
 * included, `size_of` is asked for its size: the loss counters need it.
 */
uint64_t shim_emit_free(struct vs_event *event, uint64_t (*size_of)(const struct vs_event *event));

/* Any other record (vs_record_head types). True when committed. Same rules. */
bool shim_emit_definition(uint8_t type, uint32_t id, uint32_t aux, const void *payload,
                          uint32_t bytes, const void *more, uint32_t more_bytes);

/* ---- intern.c -------------------------------------------------------------- */

/*
 * String id of a static name (an entry point of the hook table: `index` is its
 * row). Sends the definition on first use; "sent" only once committed, and
 * again in a forked child. No allocation.
 */
uint16_t intern_call(unsigned index, const char *name);
/* String id for a text given by the program (marks, phases). 0 when it cannot be kept. */
uint32_t intern_text(const char *text);
/* Sends this thread's name once. */
void intern_thread(void);

/* ---- modules.c ------------------------------------------------------------- */

/* Module id of the object that holds `address` (a caller's return address); 0 unknown. Lock-free.
 */
uint32_t modules_find(const void *address);
/* Rebuilds the table from dl_iterate_phdr: at start, after a hooked dlopen/dlclose returned. */
void modules_refresh(void);
/* An object is about to be loaded: the table is stale. */
void modules_loading(void);
/*
 * Refreshes when an object was loaded since the last time, or when one is
 * `missing` and that was a while ago. True when it did.
 */
bool modules_refresh_if_stale(bool missing);
/* Path (as loaded) of a module id, NULL if unknown. */
const char *modules_path(uint32_t id);

#endif
