/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the PyTorch export share. */
#ifndef VS_EXPORT_PYTORCH_SNAPSHOT_H
#define VS_EXPORT_PYTORCH_SNAPSHOT_H

#include "export.h"
#include "pickle.h"

struct vs_written_frame {
    const char *function, *file;
    uint64_t address; /* of a frame without a name */
    uint32_t line;
    uint32_t memo; /* number + 1 */
};
VS_MAP_DEFINE(vs_written_frames, struct vs_written_frame);

struct vs_snapshot {
    struct vs_export *export;
    struct vs_pickle pickle;
    struct vs_frames *frames;
    struct vs_written_frames written; /* frames, by a hash of what they are */
    struct vs_pickle_memos stacks;    /* by id: number + 1 */
    uint64_t last[VS_DEVICE_SLOTS];   /* sequence of the instant; UINT64_MAX: to the end */
    bool framework[VS_DEVICE_SLOTS];  /* the segments are those of a caching layer */
    bool taken[VS_DEVICE_SLOTS];      /* the instant was reached */
    bool uncertain[VS_DEVICE_SLOTS];  /* blocks and segments do not fit together */
    uint64_t time_offset_ns;          /* from the trace's clock to that of the day */
    uint64_t left_out;                /* entries that need what is not known */
    uint64_t over_sequence;           /* VS_AT_OOM: where all devices end; else 0 */
};

static inline int vs_snapshot_slot(int8_t device)
{
    return device + 128;
}

/* True for events behind the instant of all devices. */
bool vs_snapshot_is_over(const struct vs_snapshot *snapshot,
                         const struct vs_sequenced_event *event);

/* Memory of this process on a device. */
static inline bool vs_snapshot_shows(const struct vs_allocation *allocation)
{
    return allocation->type == VS_ALLOCATION_DIRECT || allocation->type == VS_ALLOCATION_MANAGED ||
           allocation->type == VS_ALLOCATION_POOL;
}

static inline bool vs_snapshot_shows_mapping(const struct vs_state *state,
                                             const struct vs_range *mapping)
{
    const struct vs_physical *physical =
        mapping->object == 0 ? NULL : &state->physicals[mapping->object - 1];
    return physical != NULL && physical->ours && !physical->host;
}

/* {"name": number} */
void vs_snapshot_number(struct vs_snapshot *snapshot, const char *name, uint64_t value);

#endif
