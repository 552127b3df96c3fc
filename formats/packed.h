/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace as it travels: inside gzip, zstd or a zip archive, known by its first
 * bytes and never by its name. It is unpacked into a temporary file without a
 * name, as far as it goes: a damaged or cut archive gives what stands before the
 * damage. What comes out is bounded by what went in.
 */
#ifndef VS_FORMATS_PACKED_H
#define VS_FORMATS_PACKED_H

#include "trace.h"
#include "trace_source.h"

enum vs_packing { VS_PACKING_NONE, VS_PACKING_GZIP, VS_PACKING_ZSTD, VS_PACKING_ZIP };

/* How the bytes of a source are packed; NONE also when they cannot be read. */
enum vs_packing vs_packing_of(struct vs_source *source);

/*
 * Puts an unpacked file in the place of a packed source; one that is not packed
 * stays. Of a zip archive the first member that is a trace is taken. The source's
 * `cut`: the packed file ends early or is damaged, and what could be unpacked is there.
 * 0; -EFBIG it unpacks to far more than any trace does; -EINVAL there is no trace
 * in it; or the system's error: `error` says it in one line then. On failure the
 * source is as it was.
 */
int vs_packed_open(struct vs_source *source, const char *path, struct vs_error *error);

#endif
