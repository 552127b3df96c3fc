/* SPDX-License-Identifier: Apache-2.0 */
/* Who the processes are that NVML named: the facts "others" of a trace. */
#include <inttypes.h>

#include "replay/reader_facts.h"
#include "report.h"

static const char *text_of(const json_t *object, const char *field)
{
    const char *text = json_string_value(json_object_get(object, field));
    return text != NULL ? text : "";
}

struct report_other_process report_name_other(const struct vs_summary *summary, uint64_t pid,
                                              uint64_t time_ns)
{
    char key[24];
    snprintf(key, sizeof(key), "%" PRIu64, pid);
    const json_t *facts = json_object_get(summary->others, key),
                 *start = json_object_get(summary->clock, "start");
    uint64_t started_ns = vs_fact_count(facts, "started_boot_ns"),
             boot_ns = vs_fact_count(start, "boot_ns"),
             monotonic_ns = vs_fact_count(start, "monotonic_ns");
    struct report_other_process who = {text_of(facts, "title"), text_of(facts, "exe"),
                                       vs_fact_count(facts, "parent_pid"), false, 0};
    if (started_ns == 0 || boot_ns == 0 || monotonic_ns == 0)
        return who;
    uint64_t then_ns = time_ns - monotonic_ns + boot_ns; /* the two clocks run alike while awake */
    who.age_known = then_ns >= started_ns;
    who.age_ns = who.age_known ? then_ns - started_ns : 0;
    return who;
}
