/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy of a trace that can be shown to strangers: host, users, paths outside of
 * packages, titles and what a fact or a mark says of them become tokens
 * (private_path.h); numbers, events, stacks and the structure of the file stay.
 */
#ifndef VS_FORMATS_REDACT_H
#define VS_FORMATS_REDACT_H

#include "trace.h"
#include "trace_table.h"

/* How many texts were replaced, of each sort; a text that comes again counts again. */
struct vs_redacted {
    uint64_t paths, names, titles, threads, settings;
    uint64_t
        unread_chunks; /* of definitions, damaged: left out, since nobody knows what they say */
    uint64_t bytes;    /* of the copy */
};

/*
 * Writes the copy of the trace at `path`, packed or not, to `fd` (regular, empty,
 * for reading and writing). `status`: how whole the original is. What is only in a
 * ring left over beside the trace is not copied. 0, or as vs_reader_open with
 * `error` in one line, or the write's error.
 */
int vs_redact(const char *path, int fd, struct vs_redacted *redacted,
              struct vs_trace_status *status, struct vs_error *error);

/*
 * Calls `row` for every row of every definition chunk, in write order, events and
 * stacks left out; damaged chunks are passed over. 0, the first non-zero value of
 * `row`, or an error as above.
 */
typedef int vs_definition_row(void *self, uint16_t chunk_type, const struct vs_table_row *row);
int vs_definition_rows(const char *path, vs_definition_row *row, void *self,
                       struct vs_error *error);

#endif
