/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adding to a trace that is finished: names that were found later, and a fact
 * about them. Chunks go behind the end of the file, in the order of their
 * numbers; nothing that is there is touched, and a failure leaves the file as it
 * was. Errors and threads as in trace.h.
 */
#ifndef VS_FORMATS_TRACE_APPEND_H
#define VS_FORMATS_TRACE_APPEND_H

#include "trace.h"

struct vs_appender;

/*
 * 0; -EBUSY the trace is still being written, or somebody else adds to it;
 * -ENOTSUP a circular file, in which there is no end; -EINVAL no trace; or the
 * system's error. `error` says which in one line.
 */
int vs_append_open(const char *path, struct vs_appender **out, struct vs_error *error);

/* Buffered. 0, -EINVAL for a symbol that no trace holds, or the write's error. */
int vs_append_symbol(struct vs_appender *appender, const struct vs_symbol_def *symbol);
/* As vs_writer_meta. */
int vs_append_meta(struct vs_appender *appender, const char *name, const char *json, size_t bytes);

/* Writes the rest, or with the first error met takes back all that was added. Frees. */
int vs_append_close(struct vs_appender *appender, struct vs_error *error);

#endif
