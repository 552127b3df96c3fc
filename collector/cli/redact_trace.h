/* SPDX-License-Identifier: Apache-2.0 */
/* Redacting for commands: what could not be copied is told on stderr. */
#ifndef VS_CLI_REDACT_TRACE_H
#define VS_CLI_REDACT_TRACE_H

#include <stdbool.h>

#include "redact.h"

/* False with a line on stderr. `*whole`: all of it was copied; a line on stderr when not. */
bool redact_trace(const char *path, int fd, struct vs_redacted *redacted, bool *whole);

#endif
