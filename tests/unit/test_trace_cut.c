/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cut trace against the one it was cut from, for random programs: at every event
 * of every window the whole state of the fold is the same, and so are peaks,
 * failures and verdicts.
 */
#include <criterion/criterion.h>
#include <errno.h>

#include "cut/cut.h"
#include "cut_programs.h"
#include "replay/reader_facts.h"
#include "replay/summary.h"
#include "shapes.h"
#include "trace_chunk.h"

/* ---- the state, as one number ------------------------------------------------------------------
 */

static uint64_t mix(uint64_t sum, uint64_t value)
{
    return (sum ^ value) * 0x9e3779b97f4a7c15ULL + (sum >> 29);
}

/* Sites by what they are, not by their numbers. */
static uint64_t site_mark(const struct vs_state *state, uint32_t id)
{
    const struct vs_site *site = vs_state_site(state, id);
    if (site == NULL)
        return 0;
    return mix(mix(mix(site->stack, site->label), (uint64_t)site->layer << 8 | site->kind),
               (uint8_t)site->device * 2U + site->segment);
}

static uint64_t blocks_mark(const struct vs_state *state)
{
    size_t index = 0;
    uint64_t key, sum = state->blocks.count;
    const struct vs_block *block;
    while ((block = vs_blocks_next(&state->blocks, &index, &key)) != NULL)
        sum += mix(mix(mix(key, block->size), site_mark(state, block->site)),
                   (uint8_t)block->device * 2U + block->private_pool);
    return sum;
}

static uint64_t allocations_mark(const struct vs_state *state, const struct vs_allocations *map)
{
    size_t index = 0;
    uint64_t key, sum = map->count;
    const struct vs_allocation *at;
    while ((at = vs_allocations_next(map, &index, &key)) != NULL)
        sum += mix(mix(mix(key, at->size), site_mark(state, at->site)),
                   mix(at->granted, at->pool + at->segment + at->type * 2U));
    return sum;
}

static uint64_t ranges_mark(const struct vs_ranges *ranges)
{
    uint64_t sum = ranges->count;
    struct vs_range *at = vs_ranges_from(ranges, 0);
    for (; at != NULL; at = vs_ranges_from(ranges, at->start + at->size))
        sum = mix(mix(mix(sum, at->start), at->size + at->bytes),
                  mix(at->backed + at->stream, at->pool * 2 + at->stream_known));
    return sum;
}

static uint64_t waits_mark(const struct vs_state *state)
{
    size_t index = 0;
    uint64_t key, sum = state->waits.count + state->wait_events.count * 77;
    const struct vs_wait *wait;
    while ((wait = vs_waits_next(&state->waits, &index, &key)) != NULL)
        sum += mix(mix(key, wait->size), wait->events);
    return mix(sum, state->recorders.count + state->capture_count * 99);
}

static uint64_t device_mark(const struct vs_state *state, const struct vs_device_state *device)
{
    struct vs_bands bands;
    vs_state_bands(state, device, &bands);
    for (size_t i = 0; i < bands.owners; i++)
        bands.by_owner[i].owner = 0; /* numbers of this replay */
    uint64_t sum = mix((uint64_t)bands.allocated, (uint64_t)bands.reserved);
    const int64_t figures[] = {bands.device,
                               bands.unexplained,
                               bands.backed,
                               bands.unbacked,
                               bands.pending,
                               bands.private_pool,
                               bands.direct,
                               bands.implicit[0],
                               bands.implicit[4],
                               bands.rounding,
                               bands.lost,
                               device->used_bytes,
                               device->segment_bytes,
                               device->unseen_reserved,
                               device->before_recording,
                               device->waiting_bytes,
                               device->private_reserved,
                               device->private_allocated,
                               device->direct_large,
                               device->direct_small,
                               (int64_t)device->reported_allocated,
                               bands.pending_known,
                               bands.private_pool_known,
                               (int64_t)device->reported_reserved,
                               device->direct_slack,
                               device->freed_in_capture,
                               (int64_t)device->deferred_waits};
    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
        sum = mix(sum, (uint64_t)figures[i]);
    for (int layer = 0; layer < VS_LAYERS; layer++)
        sum = mix(sum, (uint64_t)device->layers[layer].live_bytes);
    return sum;
}

static uint64_t state_mark(const struct vs_state *state)
{
    uint64_t sum = mix(blocks_mark(state), allocations_mark(state, &state->allocations));
    sum = mix(sum, ranges_mark(&state->segments));
    sum = mix(sum, ranges_mark(&state->mappings));
    sum = mix(sum, waits_mark(state));
    sum = mix(sum, state->now_ns);
    for (size_t i = 0; i < VS_DEVICE_SLOTS; i++)
        if (state->devices[i] != NULL && state->devices[i]->device >= 0)
            sum = mix(sum, device_mark(state, state->devices[i]));
    return sum;
}

/* ---- comparing
 * ------------------------------------------------------------------------------------ */

struct replay {
    struct vs_reader *reader;
    struct vs_state *state;
};

static struct replay begin(const char *path)
{
    struct replay replay;
    struct vs_error error;
    cr_assert_eq(vs_reader_open(path, &replay.reader, &error), 0, "%s", error.text);
    struct vs_names names = vs_reader_names(replay.reader);
    cr_assert_eq(vs_state_create(&names, &replay.state), 0);
    for (int8_t i = 0; i < DEVICES; i++)
        vs_state_device_total(replay.state, i, 16384 * MIB);
    return replay;
}

static void end(struct replay *replay)
{
    vs_state_destroy(replay->state);
    vs_reader_close(replay->reader);
}

static bool is_mark(const struct vs_sequenced_event *event)
{
    return event->event.kind == VS_KIND_CUT || event->event.kind == VS_KIND_CUT_END;
}

/* The whole one up to the event of the cut one. */
static void catch_up(struct replay *whole, const struct vs_sequenced_event *until)
{
    struct vs_sequenced_event event;
    do {
        cr_assert_eq(vs_reader_next(whole->reader, &event), 1);
        cr_assert_eq(vs_state_event(whole->state, &event), 0);
    } while (event.sequence < until->sequence);
    cr_assert_eq(memcmp(&event, until, sizeof(event)), 0, "sequence %lu", until->sequence);
}

/* How many events were compared. */
static uint64_t compare_states(const char *whole_path, const char *cut_path, const char *name)
{
    struct replay whole = begin(whole_path), cut = begin(cut_path);
    struct vs_sequenced_event event;
    uint64_t compared = 0, marks = 0;
    while (vs_reader_next(cut.reader, &event) == 1) {
        cr_assert_eq(vs_state_event(cut.state, &event), 0);
        if (is_mark(&event)) {
            marks++;
            continue;
        }
        catch_up(&whole, &event);
        if (cut.state->cut)
            continue;
        cr_assert_eq(state_mark(whole.state), state_mark(cut.state),
                     "%s: the state at sequence %lu, %lu events after the beginning", name,
                     event.sequence, compared);
        compared++;
    }
    cr_assert_eq(vs_reader_next(whole.reader, &event), 0);
    cr_assert_eq(cut.state->cut, false);
    const struct vs_trace_status *status = vs_reader_status(cut.reader);
    cr_assert_eq(marks, 2 * status->cut_gaps);
    cr_assert_eq(cut.state->cut_events, status->cut_events);
    cr_assert_eq(whole.state->counts.events, cut.state->counts.events - marks + status->cut_events);
    cr_assert_eq(vs_reader_status(whole.reader)->missing_events, status->missing_events);
    /* Two holes are one where nothing between them stays. */
    cr_assert_eq(vs_reader_status(whole.reader)->sequence_gaps != 0, status->sequence_gaps != 0);
    end(&whole);
    end(&cut);
    return compared;
}

static void compare_ooms(const struct vs_ooms *whole, const struct vs_ooms *cut, const char *name)
{
    cr_assert_eq(whole->total, cut->total, "%s: %lu and %lu out of memory", name, whole->total,
                 cut->total);
    for (size_t i = 0; i < whole->count; i++) {
        const struct vs_oom *a = &whole->items[i], *b = &cut->items[i];
        cr_assert_eq(a->sequence, b->sequence);
        cr_assert_eq(a->class, b->class, "%s: %s and %s", name, a->why, b->why);
        cr_assert_str_eq(a->why, b->why);
        cr_assert(a->handled == b->handled && a->repaired == b->repaired &&
                  a->largest_free == b->largest_free && a->cached == b->cached &&
                  a->attempt_count == b->attempt_count);
    }
}

static void compare_devices(const struct vs_summary *whole, const struct vs_summary *cut)
{
    for (size_t i = 0; i < VS_DEVICE_SLOTS; i++) {
        const struct vs_device_state *a = whole->state->devices[i], *b = cut->state->devices[i];
        cr_assert_eq(a == NULL, b == NULL);
        for (int layer = 0; a != NULL && layer < VS_LAYERS; layer++) {
            cr_assert_eq(a->layers[layer].peak_bytes, b->layers[layer].peak_bytes);
            cr_assert_eq(a->layers[layer].peak_time_ns, b->layers[layer].peak_time_ns);
        }
        cr_assert(a == NULL ||
                  (a->used_peak == b->used_peak && a->used_peak_ns == b->used_peak_ns &&
                   a->reserved_peak == b->reserved_peak));
        if (a != NULL && whole->peaks.devices[i] != NULL) {
            const struct vs_bands *x = &whole->peaks.devices[i]->at_framework;
            const struct vs_bands *y = &cut->peaks.devices[i]->at_framework;
            cr_assert(x->allocated == y->allocated && x->reserved == y->reserved &&
                      x->direct == y->direct && x->pending == y->pending);
        }
    }
}

/* At the peak and at the end, by stack. */
static uint64_t sites_mark(const struct vs_summary *summary)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < summary->sites.count; i++) {
        const struct vs_site_stats *stats = &summary->sites.stats[i];
        if (stats->peak_bytes != 0 || stats->live_bytes != 0 || stats->failed != 0)
            sum += mix(mix(site_mark(summary->state, (uint32_t)i + 1), (uint64_t)stats->peak_bytes),
                       mix((uint64_t)stats->live_bytes, stats->failed));
    }
    return sum;
}

static void compare_summaries(const char *whole_path, const char *cut_path, const char *name)
{
    struct vs_summary *whole, *cut;
    struct vs_error error;
    struct vs_check checks[VS_CHECKS], same[VS_CHECKS];
    cr_assert_eq(vs_summary_load(whole_path, NULL, NULL, &whole, &error), 0);
    cr_assert_eq(vs_summary_load(cut_path, NULL, NULL, &cut, &error), 0);
    compare_devices(whole, cut);
    compare_ooms(&whole->ooms, &cut->ooms, name);
    cr_assert_eq(sites_mark(whole), sites_mark(cut), "%s: what is live by stack", name);
    cr_assert_eq(whole->failures.count, cut->failures.count);
    for (size_t i = 0; i < whole->failures.count; i++)
        cr_assert_eq(whole->failures.items[i].count, cut->failures.items[i].count);
    cr_assert_eq(whole->duration_ns, cut->duration_ns);
    cr_assert_eq(whole->complete, cut->complete);
    size_t count = vs_checks_run(whole, checks), cut_count = vs_checks_run(cut, same);
    cr_assert_eq(cut_count, count + (cut->cuts.gaps != 0));
    for (size_t i = 0, at = 0; i < count; i++, at++) {
        at += strcmp(same[at].name, "cut") == 0;
        cr_assert(same[at].outcome <= checks[i].outcome, "%s: %s: %s", name, same[at].name,
                  same[at].text);
    }
    vs_summary_free(whole);
    vs_summary_free(cut);
}

/* Cuts with windows of `radius` and `kept` (NULL: none) into a file of its own. */
static void cut_into(const char *path, uint64_t radius, const uint64_t kept[2], char *cut_path,
                     struct vs_cut_made *made)
{
    struct vs_error error;
    struct vs_cut *cut;
    int fd = open_file(cut_path);
    cr_assert_eq(vs_cut_open(path, &cut, &error), 0, "%s", error.text);
    if (kept != NULL)
        cr_assert_eq(vs_cut_keep(cut, kept[0], kept[1]), 0);
    cr_assert_eq(vs_cut_write(cut, fd, radius, UINT64_MAX, made), 0);
    vs_cut_close(cut);
    close(fd);
}

/* The same; events compared. */
static uint64_t cut_and_compare(const char *path, uint64_t radius, const uint64_t kept[2],
                                const char *name, struct vs_cut_made *made)
{
    char cut_path[64];
    cut_into(path, radius, kept, cut_path, made);
    uint64_t compared = compare_states(path, cut_path, name);
    compare_summaries(path, cut_path, name);
    unlink(cut_path);
    return compared;
}

static const struct habits all_habits[] = {
    {.name = "a framework alone", .segments = 4, .samples = 5, .totals = true, .chunk = 1000},
    {.name = "without totals", .segments = 4, .samples = 2, .chunk = 333},
    {.name = "memory besides",
     .segments = 4,
     .samples = 20,
     .direct = 20,
     .pools = 10,
     .vmm = 10,
     .totals = true,
     .chunk = 4096},
    {.name = "failures",
     .segments = 4,
     .samples = 5,
     .failures = 2,
     .ooms = 2,
     .totals = true,
     .chunk = 500},
    {.name = "streams and captures",
     .segments = 6,
     .waits = 20,
     .captures = 3,
     .totals = true,
     .chunk = 700},
    {.name = "many streams",
     .segments = 6,
     .waits = 150,
     .captures = 1,
     .totals = true,
     .chunk = 700},
    {.name = "an allocator under the layer's",
     .segments = 2,
     .samples = 2,
     .totals = true,
     .under = true,
     .chunk = 1500},
    {.name = "losses and holes",
     .segments = 4,
     .samples = 5,
     .losses = 3,
     .holes = 3,
     .ooms = 1,
     .direct = 5,
     .totals = true,
     .chunk = 900},
};
enum { HABITS = sizeof(all_habits) / sizeof(all_habits[0]) };

Test(trace_cut, every_window_is_as_it_was, .timeout = 120)
{
    static const uint64_t radii[] = {0, 7, 60, 300};
    for (size_t i = 0; i < HABITS; i++) {
        uint64_t taken_out = 0, compared = 0;
        for (uint64_t seed = 1; seed <= 3; seed++) {
            char path[64];
            record(&all_habits[i], seed * 77 + i, 6000, path);
            for (size_t at = 0; at < sizeof(radii) / sizeof(radii[0]); at++) {
                struct vs_cut_made made;
                compared += cut_and_compare(path, radii[at], NULL, all_habits[i].name, &made);
                taken_out += made.events;
            }
            unlink(path);
        }
        cr_assert_gt(taken_out, 1000, "%s: %lu taken out", all_habits[i].name, taken_out);
        cr_assert_gt(compared, 1000, "%s: %lu compared", all_habits[i].name, compared);
    }
}

/* The times of two events, a quarter and half of the way. */
static void middle_of(const char *path, uint64_t kept[2])
{
    struct vs_reader *reader;
    struct vs_sequenced_event event;
    struct vs_error error;
    cr_assert_eq(vs_reader_open(path, &reader, &error), 0);
    uint64_t events = vs_reader_status(reader)->events;
    for (uint64_t i = 0; vs_reader_next(reader, &event) == 1 && i <= events / 2; i++)
        kept[i > events / 4] = event.event.time_ns;
    vs_reader_close(reader);
}

Test(trace_cut, a_window_that_was_chosen_is_as_it_was, .timeout = 120)
{
    for (size_t i = 0; i < HABITS; i++) {
        char path[64];
        uint64_t kept[2];
        struct vs_cut_made narrow, made;
        record(&all_habits[i], 91 + i, 6000, path);
        middle_of(path, kept);
        uint64_t without = cut_and_compare(path, 0, NULL, all_habits[i].name, &narrow);
        uint64_t compared = cut_and_compare(path, 0, kept, all_habits[i].name, &made);
        cr_assert_geq(compared, 6000 / 4, "%s: %lu compared", all_habits[i].name, compared);
        cr_assert_gt(compared, without, "%s", all_habits[i].name);
        cr_assert_gt(made.events, 100, "%s: %lu taken out", all_habits[i].name, made.events);
        unlink(path);
    }
}

/* What is left of a cut trace that is cut again with narrower windows. */
Test(trace_cut, cut_again_every_window_is_as_it_was, .timeout = 120)
{
    uint64_t taken_out = 0, taken_out_once = 0;
    for (size_t i = 0; i < HABITS; i++) {
        char path[64], once_path[64], twice_path[64];
        struct vs_cut_made once, twice;
        record(&all_habits[i], 191 + i, 6000, path);
        cut_into(path, 300, NULL, once_path, &once);
        cut_into(once_path, 7, NULL, twice_path, &twice);
        taken_out_once += once.events;
        taken_out += twice.events;
        compare_states(path, twice_path, all_habits[i].name);
        compare_summaries(path, twice_path, all_habits[i].name);
        unlink(path);
        unlink(once_path);
        unlink(twice_path);
    }
    cr_assert(taken_out > 1000 && taken_out_once > 1000, "%lu taken out after %lu", taken_out,
              taken_out_once);
}

Test(trace_cut, wide_windows_leave_all_of_it)
{
    char path[64];
    struct vs_cut_made made;
    record(&all_habits[0], 5, 3000, path);
    uint64_t compared = cut_and_compare(path, 1U << 20, NULL, "all of it", &made);
    cr_assert_eq(made.events, 0);
    cr_assert_eq(made.gaps, 0);
    cr_assert_geq(compared, 3000);
    unlink(path);
}

/* ---- files of every shape -------------------------------------------------------------------- */

static uint64_t count_kind(struct vs_reader *reader, bool marks)
{
    struct vs_sequenced_event event;
    uint64_t count = 0;
    vs_reader_rewind(reader);
    while (vs_reader_next(reader, &event) == 1)
        count += is_mark(&event) == marks;
    return count;
}

static void cut_shape(const struct shape *shape)
{
    char path[64], cut_path[64];
    struct vs_bytes file = {0};
    struct vs_reader *whole, *cut_reader;
    struct vs_cut *cut;
    struct vs_cut_made made;
    struct vs_error error;
    int fd = open_file(path), cut_fd = open_file(cut_path);
    shape->make(&file);
    cr_assert_eq(write(fd, file.data, file.bytes), (ssize_t)file.bytes);
    cr_assert_eq(vs_reader_open(path, &whole, &error), 0);
    uint64_t old_marks = count_kind(whole, true), others = count_kind(whole, false);
    cr_assert_eq(vs_cut_open(path, &cut, &error), 0, "%s", shape->name);
    cr_assert_eq(vs_cut_write(cut, cut_fd, 0, UINT64_MAX, &made), 0, "%s", shape->name);
    cr_assert_eq(vs_reader_open(cut_path, &cut_reader, &error), 0, "%s", shape->name);
    const struct vs_trace_status *before = vs_reader_status(whole);
    const struct vs_trace_status *after = vs_reader_status(cut_reader);
    cr_assert_eq(count_kind(cut_reader, true), old_marks + 2 * made.gaps, "%s", shape->name);
    cr_assert_eq(count_kind(cut_reader, false), others - made.events, "%s", shape->name);
    cr_assert_eq(after->closed, before->closed, "%s", shape->name);
    cr_assert_eq(after->damaged_chunks, 0);
    cr_assert_eq(after->missing_events, before->missing_events, "%s: %lu and %lu", shape->name,
                 after->missing_events, before->missing_events);
    vs_reader_close(cut_reader);
    vs_cut_close(cut);
    vs_reader_close(whole);
    vs_bytes_free(&file);
    close(fd);
    close(cut_fd);
    unlink(path);
    unlink(cut_path);
}

Test(trace_cut, files_of_every_shape_can_be_cut)
{
    for (size_t i = 0; i < shape_count; i++)
        if (shapes[i].opens == 0)
            cut_shape(&shapes[i]);
}
