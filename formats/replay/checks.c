/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of `vramscope verify`. */
#include "checks.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "summary.h"

/* ---- while the events pass ------------------------------------------------------------ */

static void check_device(struct vs_invariants *invariants, const struct vs_device_state *device)
{
    if (!device->framework_seen || !device->reported)
        return;
    int64_t reserved = vs_device_reserved(device);
    int64_t unseen = device->unseen_reserved > 0 ? device->unseen_reserved : 0;
    invariants->checked++;
    if (device->layers[VS_LAYER_FRAMEWORK].live_bytes > reserved)
        invariants->cached_negative++;
    if (device->segment_backed + device->pool_reserved + unseen > reserved)
        invariants->backed_too_large++;
}

static void on_event(void *self, const struct vs_state *state,
                     const struct vs_sequenced_event *event)
{
    (void)event;
    for (size_t i = 0; i < state->touched_count; i++)
        check_device(self, state->touched[i]);
}

static int64_t bands_sum(const struct vs_bands *bands)
{
    int64_t sum = bands->backed + bands->direct + bands->other_process + bands->unexplained;
    for (int i = 0; i < VS_IMPLICITS; i++)
        sum += bands->implicit[i];
    return sum;
}

static void on_peak(void *self, const struct vs_state *state, const struct vs_device_state *device,
                    unsigned which)
{
    struct vs_invariants *invariants = self;
    if (!(which & VS_PEAK_USED))
        return;
    struct vs_bands bands;
    vs_state_bands(state, device, &bands);
    int64_t owners = bands.rounding + bands.lost + bands.more_owners;
    for (size_t i = 0; i < bands.owners; i++)
        owners += bands.by_owner[i].bytes;
    if (bands_sum(&bands) != bands.device || owners != bands.direct ||
        bands.backed + bands.unbacked != bands.reserved)
        invariants->identity_broken++;
}

int vs_invariants_start(struct vs_invariants *invariants, struct vs_state *state)
{
    struct vs_subscriber subscriber = {.self = invariants, .event = on_event, .peak = on_peak};
    return vs_state_subscribe(state, &subscriber);
}

/* ---- afterwards -------------------------------------------------------------------------- */

struct report {
    const struct vs_summary *summary;
    struct vs_check *checks;
    size_t count;
};

__attribute__((format(printf, 4, 5))) static void
add(struct report *report, const char *name, enum vs_check_outcome outcome, const char *format, ...)
{
    if (report->count == VS_CHECKS)
        return;
    struct vs_check *check = &report->checks[report->count++];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(check->text, sizeof(check->text), format, arguments);
    va_end(arguments);
    check->name = name;
    check->outcome = outcome;
}

/* After a loss, what does not fit together is its consequence. */
static enum vs_check_outcome outcome(const struct report *report, uint64_t off)
{
    const struct vs_summary *summary = report->summary;
    if (off == 0)
        return VS_CHECK_OK;
    bool incomplete = vs_state_lossy(summary->state) || summary->status.sequence_gaps != 0;
    return incomplete ? VS_CHECK_NOTE : VS_CHECK_OFF;
}

static void check_file(struct report *report)
{
    const struct vs_trace_status *status = &report->summary->status;
    bool whole = status->damaged_chunks == 0 && status->damaged_bytes == 0 && !status->truncated &&
                 report->summary->read_error == 0;
    add(report, "checksums", whole ? VS_CHECK_OK : VS_CHECK_OFF,
        "%" PRIu64 " chunks good, %" PRIu64 " damaged, %" PRIu64 " bytes skipped%s", status->chunks,
        status->damaged_chunks, status->damaged_bytes,
        status->truncated ? ", the file ends inside a chunk" : "");
    uint64_t backwards = report->summary->state->counts.sequence_backwards;
    add(report, "sequence",
        backwards == 0 && status->sequence_gaps == 0 ? VS_CHECK_OK : VS_CHECK_OFF,
        "%" PRIu64 " events, %" PRIu64 " out of order, %" PRIu64 " holes of %" PRIu64 " cells",
        status->events, backwards, status->sequence_gaps, status->missing_cells);
    const struct vs_cuts *cuts = &report->summary->cuts;
    if (cuts->gaps != 0 || status->cut_gaps != 0) {
        bool told = cuts->gaps == status->cut_gaps && cuts->events == status->cut_events;
        char first[120] = "";
        if (cuts->count != 0)
            vs_gap_text(&cuts->items[0], report->summary->start_ns, first, sizeof(first));
        add(report, "cut", told || !whole ? VS_CHECK_NOTE : VS_CHECK_OFF,
            "%" PRIu64 " events were taken out, in %" PRIu64 " gap%s: %s%s", cuts->events,
            cuts->gaps, cuts->gaps == 1 ? "" : "s", first, cuts->count > 1 ? ", …" : "");
    }
    if (status->unknown_chunks != 0)
        add(report, "newer parts", VS_CHECK_NOTE, "%" PRIu64 " chunks of a later version skipped",
            status->unknown_chunks);
}

static void check_end(struct report *report)
{
    const struct vs_summary *summary = report->summary;
    add(report, "end", summary->complete ? VS_CHECK_OK : VS_CHECK_NOTE, "%s: ended by %s%s",
        summary->complete ? "complete" : "incomplete", summary->ended,
        summary->complete ? "" : "; what is live at the cut is not a leak");
    bool none = summary->lost == 0 && summary->torn == 0;
    add(report, "losses", none ? VS_CHECK_OK : VS_CHECK_NOTE,
        "%" PRIu64 " events lost and counted, %" PRIu64 " torn", summary->lost, summary->torn);
}

static void check_memory(struct report *report)
{
    const struct vs_counts *counts = &report->summary->state->counts;
    add(report, "frees match", outcome(report, counts->frees_unknown),
        "%" PRIu64 " driver and host frees, %" PRIu64 " of unknown addresses", counts->frees,
        counts->frees_unknown);
    add(report, "order of addresses",
        outcome(report, counts->alloc_on_live + counts->framework_alloc_on_live),
        "%" PRIu64 " allocations and %" PRIu64 " blocks on live addresses, repaired",
        counts->alloc_on_live, counts->framework_alloc_on_live);
    add(report, "virtual memory", outcome(report, counts->handles_unknown + counts->ranges_unknown),
        "%" PRIu64 " unknown handles, %" PRIu64 " unknown ranges", counts->handles_unknown,
        counts->ranges_unknown);
    add(report, "frees taken back", outcome(report, counts->undo_unmatched),
        "%" PRIu64 " failed frees restored, %" PRIu64 " unmatched, %" PRIu64 " at shutdown",
        counts->undone, counts->undo_unmatched, counts->frees_at_shutdown);
}

static void check_framework(struct report *report)
{
    const struct vs_state *state = report->summary->state;
    const struct vs_counts *counts = &state->counts;
    uint64_t mismatches = 0;
    for (size_t i = 0; i < VS_DEVICE_SLOTS; i++)
        if (state->devices[i] != NULL)
            mismatches += state->devices[i]->mismatches;
    uint64_t odd = counts->framework_frees_unknown + counts->free_size_differs;
    add(report, "framework totals", outcome(report, mismatches),
        "%" PRIu64 " events compared, %" PRIu64 " where its totals and ours differed",
        counts->totals_compared, mismatches);
    add(report, "framework frees", outcome(report, odd),
        "%" PRIu64 " events, %" PRIu64 " frees of unknown blocks, %" PRIu64 " of another size",
        counts->framework_events, counts->framework_frees_unknown, counts->free_size_differs);
    add(report, "blocks in segments", outcome(report, counts->blocks_outside),
        "%" PRIu64 " blocks checked, %" PRIu64 " outside", counts->blocks_checked,
        counts->blocks_outside);
}

static bool sites_sum_up(const struct vs_summary *summary)
{
    const struct vs_state *state = summary->state;
    for (size_t slot = 0; slot < VS_DEVICE_SLOTS; slot++) {
        const struct vs_device_state *device = state->devices[slot];
        if (device == NULL)
            continue;
        int64_t live[VS_LAYERS] = {0}, peak[VS_LAYERS] = {0};
        for (size_t i = 0; i < summary->sites.count; i++) {
            if (state->sites[i].device != device->device)
                continue;
            live[state->sites[i].layer] += summary->sites.stats[i].live_bytes;
            peak[state->sites[i].layer] += summary->sites.stats[i].peak_bytes;
        }
        for (int layer = 0; layer < VS_LAYERS; layer++)
            if (live[layer] != device->layers[layer].live_bytes ||
                peak[layer] != device->layers[layer].peak_bytes)
                return false;
    }
    return true;
}

static void check_bands(struct report *report)
{
    const struct vs_invariants *seen = &report->summary->invariants;
    uint64_t off = seen->cached_negative + seen->backed_too_large;
    add(report, "bands", seen->identity_broken != 0 ? VS_CHECK_OFF : outcome(report, off),
        "%" PRIu64 " moments: %" PRIu64 " with more allocated than reserved, %" PRIu64
        " more backed, %" PRIu64 " sums broken",
        seen->checked, seen->cached_negative, seen->backed_too_large, seen->identity_broken);
    bool sums = sites_sum_up(report->summary);
    add(report, "sites sum up", sums ? VS_CHECK_OK : VS_CHECK_OFF,
        "%zu sites %s the live bytes and the peak of every layer", report->summary->sites.count,
        sums ? "add up to" : "do not add up to");
}

size_t vs_checks_run(const struct vs_summary *summary, struct vs_check checks[VS_CHECKS])
{
    struct report report = {.summary = summary, .checks = checks};
    check_file(&report);
    check_end(&report);
    check_memory(&report);
    check_framework(&report);
    check_bands(&report);
    return report.count;
}
