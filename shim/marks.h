/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program tells of itself, for those who hear it (vramscope_*, NVTX).
 * Any thread, async-signal-safe; nothing happens without a recording. `caller`
 * is a return address in the program.
 */
#ifndef VS_SHIM_MARKS_H
#define VS_SHIM_MARKS_H

#include <stdint.h>

/* What a phase nests in, in its thread: an end is the innermost one's of the same. */
enum marks_nest {
    MARKS_NEST_OWN = 0,  /* vramscope_begin and vramscope_end */
    MARKS_NEST_NVTX = 1, /* NVTX without a domain; from here on its domains, by number */
};

void marks_mark(const char *text, const void *caller);
/* `id`: of a phase that is ended by it, on any thread; 0: that nests. */
void marks_begin(uint32_t nest, uint64_t id, const char *name, const void *caller);
void marks_end(uint32_t nest, uint64_t id, const void *caller);

#endif
