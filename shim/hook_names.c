/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names to rows of hooks.def: exact ones for dlsym, (name, version, flags) for
 * cuGetProcAddress. Runs in every dlsym of the program, even before main.
 */
#include "hook.h"
#include "text.h"

unsigned hook_find(const char *name)
{
    unsigned low = 0;
    unsigned high = hook_rows_by_name_count;
    /* Every name in the table begins so; the program looks up many that do not. */
    if ((name[0] != 'c' || name[1] != 'u') && (name[0] != 'n' || name[1] != 'c')) {
        return HOOK_COUNT;
    }
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        int order = text_compare(name, hook_rows[hook_rows_by_name[middle]].name);
        if (order == 0) {
            return hook_rows_by_name[middle];
        }
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return HOOK_COUNT;
}

/* First entry of the table that is not before `name`. */
static unsigned first_asked(const char *name)
{
    unsigned low = 0;
    unsigned high = hook_asked_count;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        if (text_compare(hook_asked[middle].name, name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

unsigned hook_find_asked(const char *name, int version, bool per_thread_stream)
{
    unsigned found = HOOK_COUNT;
    int since = -1;
    for (unsigned i = first_asked(name); i < hook_asked_count; i++) {
        const struct hook_asked *asked = &hook_asked[i];
        if (text_compare(asked->name, name) != 0) {
            break;
        }
        /* Of one version, the entry for per-thread streams comes second. */
        if (asked->since <= version && asked->since >= since &&
            (per_thread_stream || !asked->per_thread_stream)) {
            found = asked->hook;
            since = asked->since;
        }
    }
    return found;
}
