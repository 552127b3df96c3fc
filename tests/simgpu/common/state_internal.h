/* SPDX-License-Identifier: Apache-2.0 */
/* Layout of the shared state file, for the files that implement state.h only. */
#ifndef SIMGPU_COMMON_STATE_INTERNAL_H
#define SIMGPU_COMMON_STATE_INTERNAL_H

#include <pthread.h>

#include "state.h"

struct simgpu_header {
    uint64_t magic;
    uint64_t start_ns;        /* CLOCK_REALTIME */
    uint64_t page_cache_base; /* page cache when the devices came to be */
    pthread_mutex_t lock;     /* process-shared, robust: guards all below */
    uint64_t generation;      /* last number given to a slot or an export */
    uint64_t used_bytes[SIMGPU_MAX_DEVICES];
    uint32_t export_end;
    struct simgpu_process processes[SIMGPU_MAX_PROCESSES];
    struct simgpu_export exports[SIMGPU_MAX_EXPORTS];
} __attribute__((aligned(65536))); /* the records behind it start on a page of any size */

/* This process's view: the mapping, its own slot and records. */
struct simgpu_state_view {
    pthread_mutex_t attach_lock;
    struct simgpu_header *header;
    struct simgpu_record *records;
    int slot;
    uint64_t generation; /* of the slot, when it was taken */
    int fd;              /* the state file; -1: private memory */
    int lock_fd;         /* STATE.lock; never closed, a close would drop the slot's lock */
    uint64_t record_number;
    uint32_t *free_records; /* stack of free records below record_end */
    uint32_t free_count;
    uint32_t free_room;
};

extern struct simgpu_state_view simgpu_view;

void simgpu_state_lock(void);
void simgpu_state_unlock(void);

/* This process's part of the books. NULL without one, or when another process took it back because
 * this one closed STATE.lock (a program that closes all descriptors). Lock held. */
struct simgpu_process *simgpu_state_own(void);

/* Gives back what dead processes held. Lock held. */
void simgpu_state_reap(void);

struct simgpu_record *simgpu_state_map_records(int slot);
void simgpu_state_unmap_records(struct simgpu_record *records);

#define SIMGPU_ANY_PID (-1)
/* What the process PID outside, or all of them, use on DEVICE now. */
uint64_t simgpu_state_other_bytes(unsigned device, int pid);

#endif
