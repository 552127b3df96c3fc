/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What other processes' own traces change in the class of a failed request: memory
 * that looks like nobody's, or somebody else's, is the cache of one of them, or its
 * use. What the failing process explains by itself stays as it is.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "format_size.h"
#include "siblings.h"
#include "summary.h"

static struct vs_size_text size(int64_t bytes)
{
    return vs_format_size(bytes);
}

/* All of them at one failure, and the one that counts most. */
struct together {
    int64_t device_bytes;
    uint64_t releasable;
    size_t holders, caches; /* how many */
    const struct vs_sibling *holder, *cache;
    const struct vs_sibling_use *holder_use, *cache_use;
};

static struct together add_up(const struct vs_siblings *siblings, size_t oom)
{
    struct together all = {0};
    for (size_t i = 0; i < siblings->count; i++) {
        const struct vs_sibling_use *use = &siblings->items[i].use[oom];
        if (!use->there)
            continue;
        all.device_bytes += use->device_bytes;
        all.releasable += use->releasable;
        all.holders++;
        all.caches += use->releasable != 0;
        if (all.holder == NULL || use->device_bytes > all.holder_use->device_bytes) {
            all.holder = &siblings->items[i];
            all.holder_use = use;
        }
        if (use->releasable != 0 &&
            (all.cache == NULL || use->releasable > all.cache_use->releasable)) {
            all.cache = &siblings->items[i];
            all.cache_use = use;
        }
    }
    return all;
}

/*
 * Whether the failing process's own memory does not explain it. `full` is by what its own
 * memory was taken for: where others had the missing bytes, some of it was theirs.
 */
static bool is_open(const struct vs_oom *oom)
{
    return vs_siblings_concern(oom) && oom->free_bytes != VS_FREE_UNKNOWN &&
           oom->free_bytes < oom->requested &&
           (oom->class == VS_OOM_UNKNOWN || oom->class == VS_OOM_FULL ||
            oom->class == VS_OOM_OUTSIDE || oom->class == VS_OOM_OTHER_PROCESS);
}

__attribute__((format(printf, 3, 4))) static void
decide(struct vs_oom *oom, enum vs_oom_class class, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(oom->why, sizeof(oom->why), format, arguments);
    va_end(arguments);
    oom->class = class;
}

static void explain(const struct vs_siblings *siblings, size_t at, struct vs_oom *oom)
{
    struct together all = add_up(siblings, at);
    uint64_t need = oom->requested - oom->free_bytes;
    struct vs_size_text asked = size((int64_t)oom->requested),
                        free_text = size((int64_t)oom->free_bytes);
    if (all.cache != NULL && all.cache_use->releasable >= need)
        decide(oom, VS_OOM_HELD_BY_CACHE,
               "%s were asked for and %s were free, while pid %" PRIu64
               " (%.40s) cached %s on the same device and could have given %s of it back",
               asked.text, free_text.text, all.cache->pid, vs_sibling_name(all.cache),
               size(all.cache_use->reserved - all.cache_use->allocated).text,
               size((int64_t)all.cache_use->releasable).text);
    else if (all.releasable >= need)
        decide(oom, VS_OOM_HELD_BY_CACHE,
               "%s were asked for and %s were free, while %zu other traced processes could have "
               "given %s of their caches back, pid %" PRIu64 " (%.40s) alone %s",
               asked.text, free_text.text, all.caches, size((int64_t)all.releasable).text,
               all.cache->pid, vs_sibling_name(all.cache),
               size((int64_t)all.cache_use->releasable).text);
    else if (oom->class != VS_OOM_OTHER_PROCESS && all.device_bytes > 0 &&
             (uint64_t)all.device_bytes >= need)
        decide(oom, VS_OOM_OTHER_PROCESS,
               "%zu other traced process%s held %s, pid %" PRIu64
               " (%.40s) alone %s; %s were asked for and %s free",
               all.holders, all.holders == 1 ? "" : "es", size(all.device_bytes).text,
               all.holder->pid, vs_sibling_name(all.holder),
               size(all.holder_use->device_bytes).text, asked.text, free_text.text);
}

void vs_siblings_explain(struct vs_summary *summary)
{
    for (size_t i = 0; i < summary->ooms.count && summary->siblings.count != 0; i++)
        if (is_open(&summary->ooms.items[i]))
            explain(&summary->siblings, i, &summary->ooms.items[i]);
}
