/* SPDX-License-Identifier: Apache-2.0 */
/* The tracepoint's probe. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_event.h"
