/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the rooms of the core know of the state of recording. The state page is
 * wiped by the kernel in every forked child, whichever call forked it: there it
 * reads as "not recording, not started".
 */
#ifndef VS_SHIM_LIFECYCLE_H
#define VS_SHIM_LIFECYCLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct vs_ring_header;
struct vs_event;

enum lifecycle_phase {
    LIFECYCLE_IDLE = 0,     /* also: forked, and no CUDA seen since */
    LIFECYCLE_STARTING = 1, /* a thread is starting the collector */
    LIFECYCLE_RECORDING = 2,
    LIFECYCLE_FAILED = 3
};

/* On a page of its own, MADV_WIPEONFORK. */
struct lifecycle_page {
    _Atomic uint32_t recording;
    _Atomic uint32_t phase; /* enum lifecycle_phase; a futex */
    _Atomic uint32_t generation;
    _Atomic uint32_t ended; /* the end has been recorded */
};

extern struct lifecycle_page *lifecycle_page;
/* The ring of this process. Only to be touched after shim_recording() said true. */
extern struct vs_ring_header *lifecycle_ring;

/* The event could not be recorded because there is no ring (yet): waits for a start in progress. */
bool lifecycle_wait_until_recording(uint64_t longest_ns);
/* Remembers an event that fell between a fork and the new ring; it reaches the header later. */
void lifecycle_lose_unrecorded(const struct vs_event *event);
void lifecycle_count_abandoned(void);

/* True when recording, and in the recorded process itself rather than a vfork child of it. */
bool lifecycle_is_recorded_process(void);
/* True while the collector can still answer. */
bool lifecycle_collector_lives(void);
/* Prints what the collector has to say, once each. Not from a hook body. */
void lifecycle_print_messages(void);

/* process_end.c: real functions found at start. */
void process_end_resolve(void);
/* fatal_signals.c */
void fatal_signals_resolve(void);
void fatal_signals_install(void);

/* Asks for everything to be written and waits for it, VRAMSCOPE_EXIT_WAIT_MS at most. */
void process_end_flush(void);
/* Records the end once and waits for the collector. kind and value as in enum vs_end. */
void process_end_record(uint32_t kind, int value);

#endif
