/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Below a request that failed and would have fitted without them: the segments that
 * few live bytes keep from it, and whose those are.
 */
#include <inttypes.h>

#include "report_fragmentation.h"
#include "report_sections.h"

enum { PINNED_SHOWN = 3, SITES_SHOWN = 3, INDENT = 12 };

static bool is_among(const struct page_text *texts, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(texts[i].text, text) == 0)
            return true;
    return false;
}

static void print_sites(const struct page *page, const struct report *report,
                        const struct vs_pinned *pinned)
{
    struct page_text shown[SITES_SHOWN];
    size_t count = 0;
    for (size_t i = 0; i < pinned->site_count && i < VS_PINNED_SITES && count < SITES_SHOWN; i++) {
        struct page_text by = report_by(report, pinned->sites[i]);
        if (by.text[0] == 0 || is_among(shown, count, by.text))
            continue;
        fprintf(page->out, "%*sby %s\n", INDENT + 2, "", by.text);
        if (count == 0)
            report_print_stack(page, report, INDENT + 6,
                               vs_places_of(report->places, pinned->sites[i]), true);
        shown[count++] = by;
    }
}

/* ---- the cache when most was reserved ------------------------------------------------------ */

/* A cache that keeps less than this part of what it reserved, or less than this, is at work. */
enum { CACHE_SHOWN_FROM_PART = 4 };
#define CACHE_SHOWN_FROM_BYTES (64ULL << 20)

static uint64_t free_in_private_pools(const struct vs_fragmentation *then)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < then->part_count; i++)
        if (then->parts[i].pool >= VS_CACHE_POOL_PRIVATE)
            bytes += then->parts[i].free_bytes;
    return bytes;
}

void report_print_cache(const struct page *page, const struct vs_summary *summary,
                        const struct vs_device_state *device)
{
    const struct vs_fragmentation *then =
        vs_fragmentation_at_peak(&summary->fragmentations, device);
    if (then == NULL)
        return;
    uint64_t unused = then->free_bytes + then->waiting_bytes;
    if (unused < CACHE_SHOWN_FROM_BYTES ||
        unused < (uint64_t)device->reserved_peak / CACHE_SHOWN_FROM_PART)
        return;
    uint64_t private_bytes = free_in_private_pools(then);
    fprintf(page->out, "  cache  at most reserved: %s free in segments, largest %s, %s releasable",
            size_text((int64_t)then->free_bytes).text,
            size_text((int64_t)then->largest_free_bytes).text,
            size_text((int64_t)then->releasable_bytes).text);
    if (private_bytes != 0)
        fprintf(page->out, ";\n         %s of it in private pools",
                size_text((int64_t)private_bytes).text);
    if (then->waiting_bytes != 0)
        fprintf(page->out, "%s%s more wait for streams", private_bytes != 0 ? ", " : ";\n         ",
                size_text((int64_t)then->waiting_bytes).text);
    fputc('\n', page->out);
}

/* ---- below a failed request ------------------------------------------------------------------ */

/* No hole was large enough, but what is held and the device's free memory together were. */
static bool kept_from_it(const struct vs_fragmentation *then, const struct vs_oom *oom)
{
    return !oom->repaired && oom->layer == VS_LAYER_FRAMEWORK &&
           then->largest_free_bytes < oom->requested && oom->free_bytes < oom->requested &&
           then->pinned_held_bytes >= oom->requested - oom->free_bytes;
}

void report_print_pinned(const struct page *page, const struct report *report,
                         const struct vs_oom *oom)
{
    const struct vs_fragmentation *then =
        vs_fragmentations_at(&report->summary->fragmentations, oom->sequence);
    if (then == NULL || !kept_from_it(then, oom))
        return;
    uint64_t shown_bytes = 0;
    size_t shown = then->kept < PINNED_SHOWN ? then->kept : PINNED_SHOWN;
    for (size_t i = 0; i < shown; i++) {
        const struct vs_pinned *pinned = &then->pinned[i];
        fprintf(page->out, "%*s%s segment kept by %s in %s live block%s, %s of it free\n", INDENT,
                "", size_text((int64_t)pinned->bytes).text,
                size_text((int64_t)pinned->live_bytes).text, page_count(pinned->live_count).text,
                plural(pinned->live_count), size_text((int64_t)pinned->held_bytes).text);
        print_sites(page, report, pinned);
        shown_bytes += pinned->held_bytes;
    }
    uint64_t more = then->pinned_count - shown;
    if (more != 0)
        fprintf(page->out, "%*s%s more such segment%s, %s of them free\n", INDENT, "",
                page_count(more).text, plural(more),
                size_text((int64_t)(then->pinned_held_bytes - shown_bytes)).text);
}

/* ---- below it: whose the private pools are ------------------------------------------------------
 */

enum { POOLS_SHOWN = 4 };

/* A pool with all its streams; false: an earlier part of it was shown. */
static bool sum_pool(const struct vs_fragmentation *then, size_t first, struct vs_cache_part *sum)
{
    *sum = (struct vs_cache_part){.pool = then->parts[first].pool,
                                  .made_by = then->parts[first].made_by};
    for (size_t i = 0; i < then->part_count; i++) {
        if (then->parts[i].pool != sum->pool)
            continue;
        if (i < first)
            return false;
        sum->reserved_bytes += then->parts[i].reserved_bytes;
        sum->free_bytes += then->parts[i].free_bytes;
    }
    return true;
}

static void print_pool(const struct page *page, const struct report *report,
                       const struct vs_cache_part *pool)
{
    fprintf(page->out, "%*s%s %" PRIu32 ": %s free of the %s it holds\n", INDENT, "",
            vs_pool_is_graphs(pool->pool) ? "private pool" : "MemPool", vs_pool_number(pool->pool),
            size_text((int64_t)pool->free_bytes).text,
            size_text((int64_t)pool->reserved_bytes).text);
    struct page_text by = report_by(report, pool->made_by);
    if (by.text[0] != 0)
        fprintf(page->out, "%*s%s by %s\n", INDENT + 2, "",
                vs_pool_is_graphs(pool->pool) ? "made" : "used", by.text);
}

void report_print_pools(const struct page *page, const struct report *report,
                        const struct vs_oom *oom)
{
    const struct vs_fragmentation *then =
        vs_fragmentations_at(&report->summary->fragmentations, oom->sequence);
    uint64_t more = 0, more_free = 0, shown = 0;
    for (size_t i = 0; oom->by_pools && then != NULL && i < then->part_count; i++) {
        struct vs_cache_part pool;
        if (then->parts[i].pool < VS_CACHE_POOL_PRIVATE || then->parts[i].pool == oom->pool ||
            !sum_pool(then, i, &pool) || pool.free_bytes == 0)
            continue;
        if (shown++ < POOLS_SHOWN) {
            print_pool(page, report, &pool);
            continue;
        }
        more++;
        more_free += pool.free_bytes;
    }
    if (more != 0)
        fprintf(page->out, "%*s%s more private pool%s, %s of them free\n", INDENT, "",
                page_count(more).text, plural(more), size_text((int64_t)more_free).text);
}
