/* SPDX-License-Identifier: Apache-2.0 */
/* Which of what comes and goes at the driver the report tells of. */
#ifndef VS_CLI_REPORT_CHURN_H
#define VS_CLI_REPORT_CHURN_H

#include "report.h"

/* True when the program called the framework's `empty_cache` for it. */
bool report_release_empties(const struct report *report, const struct vs_release *release);
bool report_tells_release(const struct report *report, const struct vs_release *release);
/* Of the cost at a position: a site id - 1. */
bool report_tells_cost(const struct report *report, size_t position);

#endif
