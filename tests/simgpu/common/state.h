/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The devices' shared state: one file mapped by every process under one scripts/simgpu (or private
 * memory without it). It holds what each process uses on each device, each process's live
 * allocations and call counts, and exported memory. It is the books that tests read, and the only
 * place where capacity is decided.
 *
 * A process owns one slot. It is alive while it holds a lock on its byte of STATE.lock, which the
 * kernel drops with the process (and on exec); whoever next looks gives a dead slot's memory back.
 * A process never gives its slot back itself: its last calls, from exit handlers too, still count.
 * All functions are thread-safe; the lock inside is process-shared and robust.
 */
#ifndef SIMGPU_COMMON_STATE_H
#define SIMGPU_COMMON_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "config.h"

#define SIMGPU_MAX_PROCESSES 256
#define SIMGPU_MAX_RECORDS (1U << 20) /* live allocations per process */
#define SIMGPU_MAX_CALLS 1024
#define SIMGPU_MAX_EXPORTS 8192

/* What device memory is used for. "Packed" and "pool" count whole chunks. */
#define SIMGPU_KINDS(X)           \
    X(CONTEXT, "context")         \
    X(LOCAL, "local_memory")      \
    X(MODULE, "module")           \
    X(GRAPH_NODE, "graph_node")   \
    X(STREAM, "stream")           \
    X(LINEAR, "linear")           \
    X(PACKED, "packed")           \
    X(MANAGED, "managed")         \
    X(ARRAY, "array")             \
    X(PHYSICAL, "physical")       \
    X(POOL, "pool")               \
    X(GRAPH_POOL, "graph_pool")   \
    X(HOST, "host")               \
    X(REGISTERED, "registered")   \
    X(POOL_BLOCK, "pool_block")   \
    X(GRAPH_BLOCK, "graph_block") \
    X(RESERVATION, "reservation") \
    X(MAPPING, "mapping")         \
    X(IMPORT, "import")           \
    X(EXTERNAL, "external")       \
    X(MULTICAST, "multicast")

enum simgpu_kind {
#define X(name, text) SIMGPU_##name,
    SIMGPU_KINDS(X)
#undef X
        SIMGPU_KIND_COUNT
};

const char *simgpu_kind_name(enum simgpu_kind kind);

/* One live allocation. kind_plus_one is 0 in an empty record. */
struct simgpu_record {
    uint64_t address;
    uint64_t requested_bytes;
    uint64_t number; /* order of creation in its process */
    uint32_t kind_plus_one;
    int32_t device;
};

struct simgpu_process {
    uint64_t generation; /* 0: free slot */
    int32_t pid;
    char name[60];
    uint64_t used_bytes[SIMGPU_MAX_DEVICES][SIMGPU_KIND_COUNT];
    uint32_t record_end; /* records above were never used */
    uint32_t record_count;
    atomic_uint_fast64_t calls[SIMGPU_MAX_CALLS];
};

/* One identity of exported physical memory. holders: bit per slot that has a handle. */
struct simgpu_export {
    uint64_t id;
    uint64_t offset; /* in the file of the process that made it */
    uint64_t bytes;
    int32_t device;
    int32_t payer; /* slot whose books carry the bytes; -1: nobody */
    int32_t maker; /* slot of the process that made it; -1: gone */
    uint64_t holders[SIMGPU_MAX_PROCESSES / 64];
};

/* Maps the state (SIMGPU_STATE, else private memory). OWNER: also takes a slot for this process.
 * Returns 0 or a negative errno. Must not be called twice with OWNER; thread-safe otherwise. */
int simgpu_state_attach(bool owner);

/* This process's slot, or -1. */
int simgpu_state_slot(void);

/* Takes BYTES of DEVICE for KIND. Returns 0, or -ENOMEM when the device has no room. */
int simgpu_state_charge(unsigned device, enum simgpu_kind kind, uint64_t bytes);
void simgpu_state_release(unsigned device, enum simgpu_kind kind, uint64_t bytes);

/* Enters a live allocation into the books; returns its record, UINT32_MAX if the books are full. */
uint32_t simgpu_state_record(enum simgpu_kind kind, int device, uint64_t address,
                             uint64_t requested_bytes);
void simgpu_state_forget(uint32_t record);

/* Counts one call in this process's slot. */
void simgpu_state_count_call(unsigned call);

/* Bytes used on DEVICE: all processes, other uses, and on integrated devices the page cache. */
uint64_t simgpu_state_used(unsigned device);

/* Bytes that the processes of this simulation use on DEVICE (no page cache). */
uint64_t simgpu_state_charged(unsigned device);

/* Exported memory: publish returns the entry's id (0: table full); join adds this process as a
 * holder and fills *copy, charging it when nobody pays any more; leave drops this process and, when
 * it paid and others hold, lets the next one pay. Ids of unknown memory return -ENOENT. */
uint64_t simgpu_state_publish(unsigned device, uint64_t offset, uint64_t bytes);
int simgpu_state_join(uint64_t id, struct simgpu_export *copy);
void simgpu_state_leave(uint64_t id);

/* A process that uses DEVICE, for NVML: INDEX 0… Returns false past the last one. */
bool simgpu_state_user(unsigned device, unsigned index, int32_t *pid, uint64_t *bytes);

/* Names of calls for the books (set by the driver; the reader has its own table). */
typedef const char *(*simgpu_call_name)(unsigned call);

/* Writes all books, as JSON or for people. */
void simgpu_state_print(FILE *out, bool json, simgpu_call_name name);

#endif
