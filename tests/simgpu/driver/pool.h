/* SPDX-License-Identifier: Apache-2.0 */
/* Stream-ordered memory pools. */
#ifndef SIMGPU_DRIVER_POOL_H
#define SIMGPU_DRIVER_POOL_H

#include "stream.h"

struct sim_pool {
    struct sim_object object;
    unsigned ordinal;
    bool is_default;
    bool is_imported;
    bool doomed; /* destroyed by the program; goes with its last block */
    CUmemAllocationHandleType handle_types;
    uint64_t max_bytes; /* 0: no limit of its own */
    uint64_t threshold; /* bytes kept at synchronisation points */
    int reuse[3];       /* follow event dependencies, opportunistic, internal dependencies */
    uint32_t access;    /* bit per ordinal that may use the memory */
    struct sim_extents free;
    uint64_t reserved, reserved_high;
    uint64_t used, used_high;
    uint64_t blocks; /* live or with a free that is pending */
    struct sim_pending_free *pending;
    struct sim_pool *next;
};

struct sim_pool *sim_pool_of(CUmemoryPool handle);

struct sim_pool *sim_pool_new(unsigned ordinal); /* registered, NULL without memory */

#endif
