/* SPDX-License-Identifier: Apache-2.0 */
/* The report on fragmentation: see formats/replay/fragmentation.h. */
#ifndef VS_CLI_REPORT_FRAGMENTATION_H
#define VS_CLI_REPORT_FRAGMENTATION_H

#include "page.h"
#include "report.h"

/* report_fragmentation.c: below a failed request, the segments that blocks keep from it. */
void report_print_pinned(const struct page *page, const struct report *report,
                         const struct vs_oom *oom);

/* Below a failed request, the private pools that kept what it lacked, and who made them. */
void report_print_pools(const struct page *page, const struct report *report,
                        const struct vs_oom *oom);

/* Below a device: what its cache kept unused when most was reserved, if that was much. */
void report_print_cache(const struct page *page, const struct vs_summary *summary,
                        const struct vs_device_state *device);

/* report_json_fragmentation.c: of a device at the end, and when most was reserved; of a
   failed request then; or null. */
json_t *report_json_fragmentation(const struct report *report,
                                  const struct vs_device_state *device);
json_t *report_json_fragmentation_at_peak(const struct report *report,
                                          const struct vs_device_state *device);
json_t *report_json_fragmentation_then(const struct report *report, const struct vs_oom *oom);

#endif
