/* SPDX-License-Identifier: Apache-2.0 */
/* See pytorch_snapshot.h. */
#include "pytorch_snapshot.h"

void vs_snapshot_number(struct vs_snapshot *snapshot, const char *name, uint64_t value)
{
    vs_pickle_name(&snapshot->pickle, name);
    vs_pickle_number(&snapshot->pickle, value);
}

bool vs_snapshot_is_over(const struct vs_snapshot *snapshot, const struct vs_sequenced_event *event)
{
    const struct vs_export *export = snapshot->export;
    uint64_t time = event->event.time_ns;
    return time > export->to_ns || (export->at == VS_AT_TIME && time > export->moment_ns) ||
           (snapshot->over_sequence != 0 && event->sequence > snapshot->over_sequence);
}
