/* SPDX-License-Identifier: Apache-2.0 */
/* Notices the target's death in a thread of its own, at no cost until then, and wakes the drain. */
#ifndef VS_COLLECTOR_WATCH_H
#define VS_COLLECTOR_WATCH_H

#include <stdatomic.h>
#include <stdbool.h>

#include "../formats/ring.h"
#include "target.h"

struct watch {
    const struct target *target;
    struct vs_ring_header *header;
    _Atomic bool dead;
    bool threaded; /* no: a limit forbids threads, then each question looks */
};

/* Starts watching; `watch` must live as long as the process. */
void watch_start(struct watch *watch, const struct target *target, struct vs_ring_header *header);

/* True once the target is dead: no thread of it runs any more. */
bool watch_is_dead(struct watch *watch);

#endif
