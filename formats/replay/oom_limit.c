/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request that the driver refused though enough was free on the device: where the process was
 * given a limit of its own by whoever started it (CUDA's MPS, HAMi), that is why.
 */
#include <string.h>

#include "format_size.h"
#include "reader_facts.h"
#include "summary.h"

static const char *const variables[] = {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
                                        "CUDA_DEVICE_MEMORY_LIMIT"};

/* The first setting whose name is or begins with one of them (…_LIMIT_0); NULL: none. */
static const char *find_limit(const json_t *settings, const char **value)
{
    const char *name;
    json_t *text;
    json_object_foreach((json_t *)settings, name, text)
    {
        for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
            if (strncmp(name, variables[i], strlen(variables[i])) == 0 &&
                (*value = json_string_value(text)) != NULL)
                return name;
    }
    return NULL;
}

static bool is_refused_with_room(const struct vs_oom *oom)
{
    return oom->class == VS_OOM_UNKNOWN && !oom->repaired && oom->device >= 0 &&
           oom->attempt_count != 0 && oom->requested != 0 && oom->free_bytes <= INT64_MAX &&
           oom->free_bytes >= oom->requested;
}

void vs_oom_explain_limits(struct vs_summary *summary)
{
    const char *value = NULL;
    const char *name = find_limit(json_object_get(summary->process, "settings"), &value);
    for (size_t i = 0; name != NULL && i < summary->ooms.count; i++) {
        struct vs_oom *oom = &summary->ooms.items[i];
        if (!is_refused_with_room(oom))
            continue;
        vs_oom_decide(oom, VS_OOM_LIMIT,
                      "%s were refused though %s were free on the device: %.60s=%.60s limits what "
                      "each process may hold",
                      vs_format_size((int64_t)oom->requested).text,
                      vs_format_size((int64_t)oom->free_bytes).text, name, value);
        oom->retry_known = true;
        oom->retry_fits = false;
    }
}
