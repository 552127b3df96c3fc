/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of the host's memory the kernel can give back, by /proc/meminfo (proc(5)): page cache, above
 * all. A device that shares the host's memory counts it as used.
 */
#ifndef VS_COLLECTOR_HOST_MEMORY_H
#define VS_COLLECTOR_HOST_MEMORY_H

#include <stdint.h>

struct host_memory {
    uint64_t available_bytes, free_bytes;
    uint64_t reclaimable_bytes; /* available, but not free */
};

/* Reads the text of such a file. 0; -ENODATA where one of the two lines is missing. */
int host_memory_parse(const char *text, struct host_memory *out);
/* 0, or a negative errno value. */
int host_memory_measure(struct host_memory *out);

#endif
