/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of one collector: take records, write them in time, notice how the
 * target ends, finish the file. It sleeps on the ring's futex between passes
 * and wakes about four times a second when nothing happens.
 */
#ifndef VS_COLLECTOR_COLLECT_H
#define VS_COLLECTOR_COLLECT_H

#include "drain.h"
#include "end.h"
#include "loss.h"
#include "nvml.h"
#include "oom_kills.h"
#include "options.h"
#include "others.h"
#include "records.h"
#include "rundir.h"
#include "shared_files.h"
#include "symbolizer.h"
#include "target.h"
#include "watch.h"
#include "write.h"

struct collect {
    struct options options;
    struct drain drain;
    uint64_t ring_bytes;
    struct target target;
    struct watch watch;
    struct output output;
    struct records records;
    struct loss loss;
    struct nvml *nvml; /* NULL: no memory for it */
    struct others others;
    struct symbolizer *symbolizer; /* NULL: no memory for it */
    char ring_path[PATH_MAX];      /* of a ring that is a file; empty: none */

    struct rundir_report report; /* our file in VRAMSCOPE_RUN_DIR */
    struct rundir_outcome outcome;

    struct drain_record record; /* the one in work */
    bool blocked;               /* the last pass ended at an unfinished record */
    bool pending;               /* something was handed to the output since the last flush */
    bool replaced;              /* another program runs in the target now */
    bool failure_told;
    uint32_t flushes_answered; /* value of flush_request that the last flush covers */
    uint64_t last_flush_ns, last_sample_ns, last_facts_ns, last_asked_ns, last_replaced_check_ns;
    uint64_t blocked_sleep_ns, idle_sleep_ns;
    struct target_memory last_memory;
    struct oom_kills oom_kills;
    uint64_t last_reclaimable_bytes;
    bool reclaimable_known; /* it was told */
    struct shared_files last_shared;
    bool shared_known;       /* last_shared was measured and told */
    bool sampled_end;        /* memory was looked at once more when the end was announced */
    uint64_t next_shared_ns; /* no earlier look at /dev/shm */
    char title[64];
};

/*
 * Maps the ring and makes the trace. Returns 0 also when the trace cannot be
 * written (then it drains and discards); a negative errno value when the ring
 * makes no sense.
 */
int collect_open(struct collect *collect, const struct options *options,
                 const char *const *environment);

/* Runs until the target is gone and the file is finished. */
void collect_run(struct collect *collect);

#endif
