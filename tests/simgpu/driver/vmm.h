/* SPDX-License-Identifier: Apache-2.0 */
/* Physical memory, reservations and mappings. All functions expect sim_lock held. */
#ifndef SIMGPU_DRIVER_VMM_H
#define SIMGPU_DRIVER_VMM_H

#include "driver.h"

struct sim_physical {
    struct sim_object object;
    CUmemAllocationProp properties;
    int ordinal; /* -1: host memory, or a multicast object */
    uint64_t bytes;
    int fd; /* file and place of the bytes */
    uint64_t offset;
    unsigned handles;  /* what cuMemRelease gives back */
    unsigned mappings; /* and other uses that keep the memory alive */
    uint64_t export_id;
    bool is_imported;
    bool is_multicast;
    unsigned multicast_devices; /* how many there must be */
    uint32_t multicast_added;   /* bit per ordinal */
    uint64_t multicast_granularity;
    uint32_t record;
};

struct sim_physical *sim_physical_of(CUmemGenericAllocationHandle handle);

/* Frees the object when nothing refers to it any more. */
void sim_physical_settle(struct sim_physical *physical);

/* A range of the arena for BYTES; 0: none. */
uint64_t sim_physical_offset(uint64_t bytes);

struct sim_physical *sim_physical_at(uint64_t address);

/* Opens (or finds again) the file behind a descriptor that holds a process's memory. */
int sim_known_file(int fd);

#endif
