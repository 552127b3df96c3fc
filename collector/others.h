/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who the processes are that NVML names: looked up once each, while they live. They
 * are no target of ours, so that most is refused for those of other users.
 */
#ifndef VS_COLLECTOR_OTHERS_H
#define VS_COLLECTOR_OTHERS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum { OTHERS_NAMED = 64 };

struct others {
    uint32_t pids[OTHERS_NAMED]; /* that were looked up */
    unsigned count;
};

/*
 * Facts for the META object "others" about a process that was not looked up before;
 * NULL when it was, when OTHERS_NAMED were, or when nothing is known. A new reference.
 */
json_t *others_name(struct others *others, uint32_t pid, bool hide);

#endif
