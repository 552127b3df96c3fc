/* SPDX-License-Identifier: Apache-2.0 */
/* Why a trace could not be opened, in one line that says what to do. */
#ifndef VS_FORMATS_TRACE_WHY_H
#define VS_FORMATS_TRACE_WHY_H

#include "trace.h"
#include "trace_recovery.h"
#include "trace_source.h"

/* `error` may be NULL. */
void vs_say(struct vs_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* `why`: what opening returned; source and index as far as they came. */
void vs_say_why(struct vs_error *error, const char *path, const struct vs_source *source,
                const struct vs_index *index, int why);

#endif
