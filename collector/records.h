/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the ring's records to the trace: each is checked, translated and handed
 * to the output. What the collector itself must know on the way (failed calls,
 * devices, the end) is noted here.
 */
#ifndef VS_COLLECTOR_RECORDS_H
#define VS_COLLECTOR_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "drain.h"
#include "process.h"
#include "symbolizer.h"
#include "write.h"

struct records {
    struct output *output;
    struct symbolizer *symbolizer; /* is told of modules and stacks; NULL: there is none */
    uint64_t resolution_ns;
    bool hide;

    uint64_t taken;     /* records, torn ones not counted */
    uint64_t bad;       /* of them, not understood */
    bool urgent;        /* a memory call failed since the owner last cleared this */
    bool process_end;   /* a PROCESS_END event was among them */
    int driver_version; /* CUDA's, 0 unknown */
    struct process_runtimes runtimes;
    uint64_t out_of_memory_count;
    uint64_t allocations_since_out_of_memory;
    /* Called for each device record; may be NULL. */
    void (*device_seen)(void *context, int device, const uint8_t uuid[16]);
    void *device_context;
    bool integrated; /* one of the devices shares the host's memory */
};

void records_take(struct records *records, const struct drain_record *record);

/* A TORN event in the place of a record that was passed over. */
void records_torn(struct records *records, const struct drain_record *record, uint64_t now_ns);

/* True when running out of memory was the last thing that happened to the process's memory. */
bool records_ended_out_of_memory(const struct records *records);

#endif
