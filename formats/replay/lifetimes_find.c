/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells lives apart by the steps that growth found. A marked step begins at its
 * mark; one that was found, after the last moment since the one before at which
 * fewest blocks were live, but for what the step keeps: then all its own are gone,
 * wherever the place that repeats lies in it. Of more steps than are kept apart only the length is
 * known.
 */
#include <errno.h>
#include <stdlib.h>

#include "lifetimes.h"

enum { SHORT_LIFE = 100 /* of the run's ticks */, HABIT = 9, HABIT_OF = 10, DEVICE_OFFSET = 128 };

/* The steps that are looked at, and what bounds them. */
struct steps {
    uint32_t *begins; /* ticks, `count` + 1: where the last one ends is known */
    size_t count;
    size_t first;                       /* the first of which all frees are kept */
    uint64_t per_window;                /* steps between two of `begins` */
    uint32_t *first_birth, *last_birth; /* of each, and of what follows the last; 0 none */
};

struct finder {
    const struct vs_lifetimes *lifetimes;
    const struct vs_state *state;
    struct vs_lifetimes_found *out;
    struct steps steps;
};

/* ---- steps ------------------------------------------------------------------------------ */

/* Index of the last beginning that is not later than a tick; -1 before the first. */
static long step_at(const struct steps *steps, uint32_t tick)
{
    size_t low = 0, high = steps->begins == NULL ? 0 : steps->count + 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (steps->begins[middle] <= tick)
            low = middle + 1;
        else
            high = middle;
    }
    return (long)low - 1;
}

static int take_steps(struct finder *finder, const struct vs_steps *found)
{
    struct steps *steps = &finder->steps;
    size_t skipped = found->source == VS_STEPS_FOUND; /* before the first nothing is known */
    if (found->beats == NULL || found->windows <= skipped)
        return 0;
    steps->count = found->windows - skipped;
    steps->per_window = found->steps_per_window;
    steps->begins = calloc(steps->count + 1, sizeof(*steps->begins));
    steps->first_birth = calloc(steps->count + 1, sizeof(*steps->first_birth));
    steps->last_birth = calloc(steps->count + 1, sizeof(*steps->last_birth));
    if (steps->begins == NULL || steps->first_birth == NULL || steps->last_birth == NULL)
        return -ENOMEM;
    for (size_t i = 0; i <= steps->count; i++) {
        const struct vs_beat *beat = &found->beats->items[i + skipped];
        steps->begins[i] = found->source == VS_STEPS_FOUND ? beat->low_tick + 1 : beat->tick;
    }
    uint64_t frees = finder->lifetimes->free_count;
    uint32_t since =
        frees <= VS_FREES_KEPT ? 0 : finder->lifetimes->frees[frees % VS_FREES_KEPT].died;
    while (steps->first < steps->count && steps->begins[steps->first] < since)
        steps->first++;
    finder->out->source = found->source;
    finder->out->first_step = vs_steps_number(found, steps->first + skipped);
    finder->out->steps = (steps->count - steps->first) * steps->per_window;
    if (finder->out->steps != 0)
        finder->out->rule = steps->per_window == 1 ? VS_LIFE_BY_STEP : VS_LIFE_BY_LENGTH;
    return 0;
}

/* Ticks of one step around a tick; 0 when there is none. */
static uint32_t step_length(const struct steps *steps, uint32_t tick)
{
    long at = step_at(steps, tick);
    if (steps->count == 0)
        return 0;
    size_t step = at < 0 ? 0 : (size_t)at < steps->count ? (size_t)at : steps->count - 1;
    uint64_t length = (steps->begins[step + 1] - steps->begins[step]) / steps->per_window;
    return (uint32_t)length;
}

/* ---- every life that is known ------------------------------------------------------------ */

typedef void visit_life(struct finder *finder, const struct vs_lifetime *life);

static void visit_live(struct finder *finder, visit_life *visit, uint32_t site, uint64_t bytes,
                       uint32_t born)
{
    const struct vs_site *of = vs_state_site(finder->state, site);
    if (of == NULL || of->kind != VS_SITE_CALL || of->segment)
        return;
    visit(finder, &(struct vs_lifetime){.bytes = (int64_t)bytes, .site = site, .born = born});
}

static void each_allocation(struct finder *finder, visit_life *visit,
                            const struct vs_allocations *map)
{
    const struct vs_allocation *allocation;
    uint64_t address;
    for (size_t at = 0; (allocation = vs_allocations_next(map, &at, &address)) != NULL;)
        if (allocation->note != 0)
            visit_live(finder, visit, allocation->site,
                       allocation->type == VS_ALLOCATION_POOL ? allocation->granted
                                                              : allocation->size,
                       allocation->note);
}

static void each_live(struct finder *finder, visit_life *visit)
{
    const struct vs_state *state = finder->state;
    const struct vs_block *block;
    uint64_t address;
    for (size_t at = 0; (block = vs_blocks_next(&state->blocks, &at, &address)) != NULL;)
        visit_live(finder, visit, block->site, block->size, block->note);
    each_allocation(finder, visit, &state->allocations);
    each_allocation(finder, visit, &state->hosts);
    each_allocation(finder, visit, &state->arrays);
    for (size_t i = 0; i < state->physical_count; i++)
        if (state->physicals[i].live && state->physicals[i].note != 0)
            visit_live(finder, visit, state->physicals[i].site, state->physicals[i].size,
                       state->physicals[i].note);
}

static void each_life(struct finder *finder, visit_life *visit)
{
    const struct vs_lifetimes *lifetimes = finder->lifetimes;
    uint64_t kept = lifetimes->free_count < VS_FREES_KEPT ? lifetimes->free_count : VS_FREES_KEPT;
    for (uint64_t i = 0; i < kept; i++)
        visit(finder, &lifetimes->frees[i]);
    each_live(finder, visit);
}

/* ---- what became of what the steps made ---------------------------------------------------- */

static void note_birth(struct finder *finder, const struct vs_lifetime *life)
{
    struct steps *steps = &finder->steps;
    long step = step_at(steps, life->born);
    if (step < 0)
        return;
    if (steps->first_birth[step] == 0 || life->born < steps->first_birth[step])
        steps->first_birth[step] = life->born;
    if (life->born > steps->last_birth[step])
        steps->last_birth[step] = life->born;
}

static enum vs_life_end life_by_length(const struct steps *steps, const struct vs_lifetime *life)
{
    uint64_t length = step_length(steps, life->born), lived = life->died - life->born;
    return lived < length       ? VS_LIFE_IN_STEP
           : lived < length * 2 ? VS_LIFE_NEXT_STEP
                                : VS_LIFE_LATER;
}

static enum vs_life_end life_by_step(const struct steps *steps, const struct vs_lifetime *life,
                                     size_t step)
{
    uint32_t next_birth = steps->first_birth[step + 1];
    bool before_next =
        next_birth != 0 ? life->died < next_birth : step_at(steps, life->died) <= (long)step + 1;
    if (life->died < steps->last_birth[step])
        return VS_LIFE_IN_STEP;
    if (before_next)
        return VS_LIFE_AT_STEP_END;
    return step_at(steps, life->died) == (long)step + 1 ? VS_LIFE_NEXT_STEP : VS_LIFE_LATER;
}

static void add_life(struct finder *finder, const struct vs_lifetime *life)
{
    const struct steps *steps = &finder->steps;
    long step = step_at(steps, life->born);
    if (step < (long)steps->first || step >= (long)steps->count)
        return;
    enum vs_life_end what = life->died == 0         ? VS_LIFE_NOT_FREED
                            : steps->per_window > 1 ? life_by_length(steps, life)
                                                    : life_by_step(steps, life, (size_t)step);
    struct vs_life_sums *sums[] = {&finder->out->total, &finder->out->sites[life->site - 1].sums};
    for (size_t i = 0; i < 2; i++) {
        sums[i]->count[what]++;
        sums[i]->bytes[what] += life->bytes;
    }
}

/* ---- at the peaks -------------------------------------------------------------------------- */

/* A rule, and the ticks it goes by. */
struct temporary {
    enum vs_temporary_rule rule;
    uint32_t from, to; /* made from, freed before */
    uint32_t length;   /* lived less than */
};

static struct temporary rule_at(const struct finder *finder, uint32_t peak_tick)
{
    const struct steps *steps = &finder->steps;
    if (steps->count == 0)
        return (struct temporary){.rule = VS_TEMPORARY_SHORT,
                                  .to = UINT32_MAX,
                                  .length = finder->lifetimes->growth->tick / SHORT_LIFE};
    long step = step_at(steps, peak_tick);
    if (step >= (long)steps->count)
        return (struct temporary){.rule = finder->out->rule == VS_LIFE_UNKNOWN
                                              ? VS_TEMPORARY_UNKNOWN
                                              : VS_TEMPORARY_BY_PLACE};
    if (steps->per_window > 1)
        return (struct temporary){.rule = VS_TEMPORARY_BY_LENGTH,
                                  .to = UINT32_MAX,
                                  .length = step_length(steps, peak_tick)};
    return (struct temporary){.rule = VS_TEMPORARY_IN_STEP,
                              .from = step < 0 ? 0 : steps->begins[step],
                              .to = steps->begins[step + 1],
                              .length = UINT32_MAX};
}

static void add_temporary(struct finder *finder, struct vs_peak_life *peak, uint32_t site,
                          int64_t bytes, uint64_t count)
{
    finder->out->sites[site - 1].temporary_bytes += bytes;
    finder->out->sites[site - 1].temporary_count += count;
    peak->temporary_bytes += bytes;
    peak->temporary_count += count;
}

static void add_by_place(struct finder *finder, const struct vs_sites *sites,
                         struct vs_peak_life *peak)
{
    for (size_t i = 0; i < finder->out->site_count && i < sites->count; i++) {
        const struct vs_site *site = &finder->state->sites[i];
        const struct vs_life_sums *sums = &finder->out->sites[i].sums;
        int64_t within = sums->bytes[VS_LIFE_IN_STEP] + sums->bytes[VS_LIFE_AT_STEP_END], all = 0;
        for (size_t life = 0; life < VS_LIVES; life++)
            all += sums->bytes[life];
        if (site->device == peak->device && site->layer == peak->layer && all != 0 &&
            within / HABIT >= all / HABIT_OF && sites->stats[i].peak_bytes > 0)
            add_temporary(finder, peak, (uint32_t)i + 1, sites->stats[i].peak_bytes,
                          (uint64_t)sites->stats[i].peak_count);
    }
}

static void find_peak(struct finder *finder, const struct vs_sites *sites,
                      const struct vs_device_state *device)
{
    enum vs_layer layer = vs_device_top_layer(device);
    const struct vs_peak_frees *frees =
        finder->lifetimes->peaks[device->device + DEVICE_OFFSET][layer];
    if (frees == NULL)
        return;
    struct temporary temporary = rule_at(finder, frees->peak_tick);
    struct vs_peak_life *peak = &finder->out->peaks[finder->out->peak_count++];
    *peak = (struct vs_peak_life){
        .device = device->device, .layer = (uint8_t)layer, .rule = temporary.rule};
    if (temporary.rule == VS_TEMPORARY_BY_PLACE)
        add_by_place(finder, sites, peak);
    if (temporary.rule == VS_TEMPORARY_BY_PLACE || temporary.rule == VS_TEMPORARY_UNKNOWN)
        return;
    for (size_t i = 0; i < frees->count; i++) {
        const struct vs_lifetime *life = &frees->items[i];
        if (life->born >= temporary.from && life->died < temporary.to &&
            life->died - life->born < temporary.length)
            add_temporary(finder, peak, life->site, life->bytes, 1);
    }
}

/* ---- public -------------------------------------------------------------------------------- */

int vs_lifetimes_find(const struct vs_lifetimes *lifetimes, const struct vs_state *state,
                      const struct vs_sites *sites, const struct vs_steps *steps,
                      struct vs_lifetimes_found *out)
{
    struct finder finder = {.lifetimes = lifetimes, .state = state, .out = out};
    *out = (struct vs_lifetimes_found){.site_count = state->site_count};
    out->sites = calloc(out->site_count + 1, sizeof(*out->sites));
    int result = out->sites == NULL ? -ENOMEM : take_steps(&finder, steps);
    if (result == 0 && out->rule != VS_LIFE_UNKNOWN) {
        each_life(&finder, note_birth);
        each_life(&finder, add_life);
    }
    for (size_t i = 0; i < VS_DEVICE_SLOTS && result == 0; i++)
        if (state->devices[i] != NULL && state->devices[i]->device >= 0)
            find_peak(&finder, sites, state->devices[i]);
    free(finder.steps.begins);
    free(finder.steps.first_birth);
    free(finder.steps.last_birth);
    return result;
}

void vs_lifetimes_found_release(struct vs_lifetimes_found *found)
{
    free(found->sites);
    *found = (struct vs_lifetimes_found){0};
}

const char *vs_life_name(enum vs_life_end life)
{
    static const char *const names[VS_LIVES] = {"in_step", "at_step_end", "next_step", "later",
                                                "not_freed"};
    return life < VS_LIVES ? names[life] : "unknown";
}

const char *vs_life_rule_name(enum vs_life_rule rule)
{
    static const char *const names[] = {"unknown", "steps", "step_length"};
    return names[rule];
}

const char *vs_temporary_rule_name(enum vs_temporary_rule rule)
{
    static const char *const names[] = {"unknown", "freed_in_step", "shorter_than_step",
                                        "place_frees_in_step", "shorter_than_run_percent"};
    return names[rule];
}
