/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's steps. Marked ones win. Else a step is what comes back: some site
 * allocates once in each, and most other sites a whole number of times. Where the
 * live set at that site rises and falls in regular rounds (the micro-batches
 * between two optimizer steps, the layers of a model) a step is a round.
 */
#include <errno.h>
#include <stdlib.h>

#include "grow.h"
#include "growth.h"

enum {
    LEAST_STEPS = 4,
    LEAST_RESETS = 3,
    LONGEST_ROUND = 256,
    SHORT_ROUND = 8,
    CHURN_ALLOCS = 3,
    STEPS_OF_A_GRAPH = 4, /* at most, for a graph's capture to be the step */
    ALONE_STEPS = 1000,   /* of a site whose memory never comes back, to be taken for steps */
    FEW_STEPS = 32        /* where nothing at all comes back, and that up to the end */
};

/* ---- the list of occurrences ------------------------------------------------------------- */

/*
 * A round: at regular occurrences less is live than at the one before, or was for a
 * moment since, or more is. Between two layers the batch is there, between two
 * micro-batches the gradients are, from one layer's backward pass to the next
 * activations go; from step to step all this begins anew.
 */
enum round_view { ROUND_FALLS, ROUND_DIPS, ROUND_RISES, ROUND_VIEWS };

struct round {
    uint64_t length;
    size_t last_reset;
    size_t resets, plateaus; /* of them, after which all that is gone comes back at once */
    int64_t dropped;         /* blocks, in all */
};

static int64_t seen_as(const struct vs_beat *beat, enum round_view view)
{
    return view == ROUND_DIPS    ? beat->low
           : view == ROUND_RISES ? -(int64_t)beat->level
                                 : beat->level;
}

/* How much lower than the one before; 0 unless a dip is lower than the one behind it, too. */
static int64_t drop_at(const struct vs_beats *beats, size_t at, enum round_view view)
{
    const struct vs_beat *beat = &beats->items[at];
    if (view == ROUND_DIPS && at + 1 < beats->count && beat[1].low <= beat->low)
        return 0;
    return seen_as(beat - 1, view) - seen_as(beat, view);
}

static void note_reset(const struct vs_beats *beats, size_t at, enum round_view view,
                       struct round *round, uint32_t *spacings)
{
    if (round->resets != 0 && at - round->last_reset <= LONGEST_ROUND)
        spacings[at - round->last_reset]++;
    round->resets++;
    round->last_reset = at;
    const struct vs_beat *beat = &beats->items[at];
    int64_t drop = drop_at(beats, at, view);
    int64_t rise = at + 1 < beats->count ? seen_as(beat + 1, view) - seen_as(beat, view) : drop;
    round->dropped += drop;
    round->plateaus += rise * 10 >= drop * 7;
}

/* Of the live set, to be more than chance: a part of what comes and goes meanwhile. */
static int64_t least_drop(const struct vs_beats *beats)
{
    uint32_t ticks =
        beats->count < 2 ? 0 : beats->items[beats->count - 1].tick - beats->items[0].tick;
    uint64_t least = beats->count < 2 ? 0 : ticks / (beats->count - 1) / 20;
    return least < 2 ? 2 : (int64_t)least;
}

static struct round find_round(const struct vs_beats *beats, enum round_view view)
{
    struct round round = {.length = 1};
    uint32_t spacings[LONGEST_ROUND + 1] = {0}, most = 0;
    int64_t least = least_drop(beats);
    for (size_t i = 1; i < beats->count; i++)
        if (drop_at(beats, i, view) >= least)
            note_reset(beats, i, view, &round, spacings);
    for (uint32_t spacing = 2; spacing <= LONGEST_ROUND; spacing++)
        if (spacings[spacing] > most) {
            most = spacings[spacing];
            round.length = spacing;
        }
    if (round.resets < LEAST_RESETS || most * 10 < (round.resets - 1) * 8)
        round.length = 1;
    return round;
}

/* ---- how often every site allocates --------------------------------------------------------- */

struct rates {
    uint32_t *counts; /* of allocations, sorted */
    size_t count;
    uint64_t sum;
};

static int by_number(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

/* What comes and goes: not all of it at once. */
static bool churns(const struct vs_track *track)
{
    int64_t highest = (int64_t)track->count + track->fall_count;
    if (highest < track->high_count)
        highest = track->high_count;
    return track->allocs >= CHURN_ALLOCS && (uint64_t)track->frees * 2 >= track->allocs &&
           (uint64_t)highest * 2 <= track->allocs + 1ULL;
}

/* Which part of the run is looked at. */
enum part { ALL_OF_IT, BEHIND_THE_GRAPHS };

static uint32_t part_begins(const struct vs_growth *growth, enum part part)
{
    return part == BEHIND_THE_GRAPHS && growth->graph_tick > growth->from_tick ? growth->graph_tick
                                                                               : growth->from_tick;
}

static uint32_t allocs_in(const struct vs_growth *growth, const struct vs_track *track,
                          enum part part)
{
    if (part == ALL_OF_IT)
        return track->allocs;
    return track->graphs == growth->graphs ? track->allocs - track->allocs_before : 0;
}

static int collect_rates(const struct vs_growth *growth, enum part part, struct rates *rates)
{
    size_t room = growth->track_count + growth->object_count;
    *rates = (struct rates){.counts = malloc((room + 1) * sizeof(*rates->counts))};
    if (rates->counts == NULL)
        return -ENOMEM;
    const struct vs_track *track;
    for (size_t i = 0; (track = vs_growth_track(growth, i)) != NULL; i++) {
        uint32_t allocs = allocs_in(growth, track, part);
        if (allocs < CHURN_ALLOCS || !churns(track))
            continue;
        rates->counts[rates->count++] = allocs;
        rates->sum += allocs;
    }
    qsort(rates->counts, rates->count, sizeof(*rates->counts), by_number);
    return 0;
}

static bool is_about(uint64_t number, uint64_t wanted)
{
    uint64_t off = number > wanted ? number - wanted : wanted - number;
    return off <= 1 || off * 50 <= wanted;
}

/* What allocates a whole number of times in each step. */
struct in_step {
    double sites, allocs; /* shares of them */
};

static struct in_step share_in_step(const struct rates *rates, uint64_t steps)
{
    size_t sites = 0;
    uint64_t allocs = 0;
    for (size_t i = 0; i < rates->count; i++) {
        uint64_t times = (rates->counts[i] + steps / 2) / steps;
        if (times == 0 || !is_about(rates->counts[i], times * steps))
            continue;
        sites++;
        allocs += rates->counts[i];
    }
    if (rates->count == 0)
        return (struct in_step){0};
    return (struct in_step){(double)sites / (double)rates->count,
                            (double)allocs / (double)rates->sum};
}

static size_t sites_at(const struct rates *rates, uint64_t times)
{
    size_t found = 0;
    for (size_t i = 0; i < rates->count; i++)
        found += is_about(rates->counts[i], times);
    return found;
}

/* ---- rounds -------------------------------------------------------------------------- */

/*
 * Whether rounds are the program's: their live memory comes back at once (the
 * gradients of the first micro-batch), it is a good part of all that comes and goes
 * in a few occurrences (two layers), or a good part of the sites goes with them. A
 * list that grows until it is dropped rises and falls, too.
 */
static bool is_a_step(const struct vs_beats *beats, const struct round *round,
                      const struct rates *rates)
{
    int64_t ticks = beats->items[beats->count - 1].tick - beats->items[0].tick;
    if (round->plateaus * 10 >= round->resets * 8 && round->length > 2)
        return true;
    if (round->length <= SHORT_ROUND && round->dropped * 20 >= ticks)
        return true;
    return sites_at(rates, beats->seen / beats->every / round->length) * 10 >=
           sites_at(rates, beats->seen / beats->every);
}

/* Keeps one item in `every`, from `first` on, with the lowest of those left out before it. */
static void keep_some(struct vs_beats *beats, size_t first, uint64_t every)
{
    size_t kept = 0;
    int32_t low = INT32_MAX;
    for (size_t i = 0; i < beats->count; i++) {
        low = beats->items[i].low < low ? beats->items[i].low : low;
        if (i < first || (i - first) % every != 0)
            continue;
        beats->items[kept] = beats->items[i];
        beats->items[kept++].low = low;
        low = INT32_MAX;
    }
    beats->count = kept;
    beats->first += first * beats->period;
    beats->period *= every;
    beats->next = beats->first + kept * beats->period;
}

/* Makes a round one step. False if there is none. */
static bool take_round(struct vs_beats *beats, const struct rates *rates)
{
    for (enum round_view view = 0; view < ROUND_VIEWS; view++) {
        struct round round = find_round(beats, view);
        if (round.length == 1 || !is_a_step(beats, &round, rates))
            continue;
        keep_some(beats, round.last_reset % round.length, round.length);
        beats->every = beats->period;
        return true;
    }
    return false;
}

/* Layers have rounds, and micro-batches of them again. */
static void settle(struct vs_beats *beats, const struct rates *rates)
{
    beats->settled = true;
    while (take_round(beats, rates))
        continue;
}

static void make_room(struct vs_growth *growth, struct vs_beats *beats)
{
    struct rates rates;
    if (!beats->settled) {
        if (collect_rates(growth, ALL_OF_IT, &rates) != 0) {
            growth->error = -ENOMEM;
            return;
        }
        settle(beats, &rates);
        free(rates.counts);
    }
    if (beats->count > VS_BEATS_KEPT / 2)
        keep_some(beats, 0, 2);
}

/* The fewest blocks that a free has left since a tick; as many as are live without one. */
static int32_t lowest_since(const struct vs_growth *growth, uint32_t tick)
{
    int32_t low = 0, high = growth->live;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (growth->fell_to[middle] > tick)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/*
 * The last free between two beats that left the fewest blocks: of a step that keeps some, as many
 * more as it keeps. Without one the beat stays as it is.
 */
static void note_last_low(const struct vs_growth *growth, const struct vs_beat *before, int32_t low,
                          struct vs_beat *beat)
{
    int32_t kept = beat->level - before->level;
    int32_t above = growth->live - low; /* a marked step's level is its number, however large */
    int32_t most = kept <= 0 ? low : low + (kept < above ? kept : above);
    if (growth->fell_to[most] <= before->tick)
        return;
    beat->low_tick = growth->fell_to[most];
    beat->held_bytes = growth->fell_held[most];
}

static bool are_marks(const struct vs_beats *beats)
{
    return beats->owner == 0;
}

/* The next occurrence, if it is one of those to keep. */
static void add_beat(struct vs_growth *growth, struct vs_beats *beats, uint32_t tick, int32_t level)
{
    if (beats->seen++ != beats->next)
        return;
    if (!vs_grow(&beats->items, &beats->room, beats->count + 1, sizeof(*beats->items))) {
        growth->error = -ENOMEM;
        return;
    }
    struct vs_beat beat = {.tick = tick,
                           .level = level,
                           .low = level,
                           .low_tick = tick,
                           .held_bytes = vs_growth_held(growth)};
    if (beats->count != 0 && growth->fell_to != NULL && !are_marks(beats)) {
        const struct vs_beat *before = &beats->items[beats->count - 1];
        int32_t low = lowest_since(growth, before->tick);
        note_last_low(growth, before, low, &beat);
        if (!beats->settled)
            beat.low = low;
    }
    beats->items[beats->count++] = beat;
    beats->next += beats->period;
    if (beats->count == VS_BEATS_KEPT)
        make_room(growth, beats);
}

/* ---- candidates ---------------------------------------------------------------------- */

static unsigned size_of(uint32_t gap)
{
    return gap < 2 ? 0 : 31U - (unsigned)__builtin_clz(gap);
}

/* It has not come back for far longer than it used to. */
static bool is_over(const struct vs_beats *beats, uint32_t tick, unsigned size)
{
    return tick - beats->items[beats->count - 1].tick > beats->period * 8 << size;
}

/* A slot for one whose occurrences are `gap` apart: unused, or one that came to an end. */
static struct vs_beats **find_slot(struct vs_growth *growth, uint32_t gap)
{
    unsigned size = size_of(gap);
    struct vs_beats **slots = &growth->candidates[size * VS_BEATS_OF_A_SIZE];
    for (size_t i = 0; i < VS_BEATS_OF_A_SIZE; i++)
        if (slots[i] == NULL || is_over(slots[i], growth->tick, size))
            return &slots[i];
    return NULL;
}

static void admit(struct vs_growth *growth, struct vs_track *track)
{
    uint32_t gap = (growth->tick - track->first_tick) / (track->allocs - 1);
    struct vs_beats **slot = find_slot(growth, gap);
    if (slot == NULL)
        return;
    if (*slot == NULL)
        *slot = calloc(1, sizeof(**slot));
    if (*slot == NULL) {
        growth->error = -ENOMEM;
        return;
    }
    struct vs_beat *items = (*slot)->items;
    size_t room = (*slot)->room;
    uint64_t before = track->allocs == 2 ? 0 : track->allocs - 1; /* not known when */
    **slot = (struct vs_beats){.items = items,
                               .room = room,
                               .seen = before,
                               .first = before,
                               .next = before,
                               .period = 1,
                               .every = 1,
                               .owner = vs_track_key(track)};
    track->candidate = (uint16_t)(slot - growth->candidates + 1);
    if (track->allocs == 2)
        add_beat(growth, *slot, track->first_tick, growth->live);
    add_beat(growth, *slot, growth->tick, growth->live);
}

void vs_steps_beat(struct vs_growth *growth, struct vs_track *track)
{
    struct vs_beats *beats =
        track->candidate == 0 ? NULL : growth->candidates[track->candidate - 1];
    if (beats != NULL && beats->owner != vs_track_key(track)) {
        beats = NULL; /* another one has its slot */
        track->candidate = 0;
    }
    if (track->allocs == 1)
        track->first_tick = growth->tick;
    else if (beats == NULL)
        admit(growth, track);
    else
        beats->seen = track->allocs - 1;
    if (beats != NULL)
        add_beat(growth, beats, growth->tick, growth->live);
    if (track->candidate != 0)
        track->next_beat = (uint32_t)growth->candidates[track->candidate - 1]->next + 1;
    else
        track->next_beat = track->allocs < 4 ? track->allocs + 1 : track->allocs * 2;
}

/* ---- marks
 * ---------------------------------------------------------------------------------------- */

/* NVTX's ranges are also a library's and each operator's: only one that says so is a step. */
static struct vs_beats *named_beats(struct vs_growth *growth, const struct vs_event *event)
{
    const char *name = vs_state_string(growth->state, (uint32_t)event->extra[0]);
    if ((event->handle != 0 || event->extra[1] != 0) && vs_step_name_says(name) == VS_SAYS_NOTHING)
        return NULL;
    uint64_t pattern = vs_name_pattern(name);
    for (size_t i = 0; i < growth->named_count; i++)
        if (growth->named[i].kind == event->kind && growth->named[i].pattern == pattern)
            return &growth->named[i].beats;
    if (growth->named_count == VS_MARKS_KEPT)
        return NULL;
    struct vs_named_beats *named = &growth->named[growth->named_count++];
    *named = (struct vs_named_beats){.pattern = pattern,
                                     .name = (uint32_t)event->extra[0],
                                     .kind = event->kind,
                                     .beats = {.period = 1, .every = 1, .settled = true}};
    return &named->beats;
}

void vs_steps_mark(struct vs_growth *growth, const struct vs_sequenced_event *sequenced)
{
    const struct vs_event *event = &sequenced->event;
    struct vs_beats *beats = NULL;
    int32_t level = growth->live;
    if (event->kind == VS_KIND_STEP) {
        if (growth->marked.period == 0)
            growth->marked = (struct vs_beats){.period = 1, .every = 1, .settled = true};
        beats = &growth->marked;
        level = event->size > INT32_MAX ? INT32_MAX : (int32_t)event->size;
    } else if (event->kind == VS_KIND_PHASE_BEGIN || event->kind == VS_KIND_MARK) {
        beats = named_beats(growth, event);
    }
    if (beats != NULL)
        add_beat(growth, beats, growth->tick == UINT32_MAX ? growth->tick : growth->tick + 1,
                 level);
}

/* ---- which one
 * --------------------------------------------------------------------------------------- */

/* Leaves out what came before a window. */
static void cut(struct vs_beats *beats, uint32_t from_tick)
{
    size_t before = 0;
    while (before < beats->count && beats->items[before].tick <= from_tick)
        before++;
    if (before == 0 || from_tick == 0)
        return;
    memmove(beats->items, beats->items + before, (beats->count - before) * sizeof(*beats->items));
    beats->count -= before;
    beats->first += before * beats->period;
}

static uint64_t steps_of(const struct vs_beats *beats)
{
    return beats->count < 2 ? 0 : (beats->count - 1) * (beats->period / beats->every);
}

/* With the last one, of which the end is not known, and those before it was a candidate. */
static uint64_t rounds_of(const struct vs_beats *beats)
{
    return beats->seen / beats->every;
}

static uint32_t span_of(const struct vs_beats *beats)
{
    return beats->count < 2 ? 0 : beats->items[beats->count - 1].tick - beats->items[0].tick;
}

/*
 * Most steps take about as many ticks as the middle one, and these a good part of the
 * time: the batches of an evaluation now and then are close to each other, too.
 */
static bool is_even(const struct vs_beats *beats)
{
    uint32_t gaps[VS_BEATS_KEPT];
    size_t count = beats->count - 1, fitting = 0;
    uint64_t ticks = 0;
    for (size_t i = 0; i < count; i++)
        gaps[i] = beats->items[i + 1].tick - beats->items[i].tick;
    qsort(gaps, count, sizeof(gaps[0]), by_number);
    uint64_t middle = gaps[count / 2];
    for (size_t i = 0; i < count; i++) {
        if (gaps[i] * 2ULL < middle || gaps[i] > middle * 2)
            continue;
        fitting++;
        ticks += gaps[i];
    }
    return fitting * 10 >= count * 6 && ticks * 4 >= span_of(beats);
}

struct candidate {
    struct vs_beats *beats;
    struct in_step share;
    bool churning;
};

/* Buffers that are made at the start are used for far longer than it took to make them. */
static bool goes_on_to_the_end(const struct vs_growth *growth)
{
    uint64_t end = growth->over_ns > growth->made_ns ? growth->over_ns : growth->state->now_ns;
    return (growth->made_ns - growth->began_ns) * 2 >= end - growth->began_ns;
}

static bool are_enough_alone(const struct vs_growth *growth, const struct vs_track *track,
                             const struct vs_beats *beats, const struct rates *rates)
{
    return steps_of(beats) >= ALONE_STEPS || (steps_of(beats) >= FEW_STEPS && track->object == 0 &&
                                              rates->count == 0 && goes_on_to_the_end(growth));
}

static bool is_eligible(const struct vs_growth *growth, const struct vs_track *track,
                        enum part part, const struct rates *rates)
{
    const struct vs_beats *beats =
        track->candidate == 0 ? NULL : growth->candidates[track->candidate - 1];
    if (beats == NULL || beats->owner != vs_track_key(track) || steps_of(beats) < LEAST_STEPS)
        return false;
    uint32_t from = part_begins(growth, part);
    uint64_t whole = growth->made_tick > from ? growth->made_tick - from : 0;
    uint64_t span = span_of(beats);
    if (churns(track))
        return span * 10 >= whole * 3 && is_even(beats);
    return are_enough_alone(growth, track, beats, rates) && span * 10 >= whole * 8 &&
           is_even(beats);
}

/* Of those about as frequent: the one known from its beginning, then where least is live. */
static bool is_better(const struct candidate *one, const struct candidate *other)
{
    uint64_t steps = steps_of(one->beats), others = steps_of(other->beats);
    if (!is_about(steps, others))
        return steps > others;
    const struct vs_beats *a = one->beats, *b = other->beats;
    if ((a->first < a->every) != (b->first < b->every))
        return a->first < a->every;
    return a->items[a->count / 2].level < b->items[b->count / 2].level;
}

/* None of its occurrences is later: left as it is. */
static bool is_before(const struct vs_beats *beats, uint32_t tick)
{
    return beats->count == 0 || beats->items[beats->count - 1].tick <= tick;
}

static size_t list_candidates(struct vs_growth *growth, enum part part, const struct rates *rates,
                              struct candidate *out)
{
    uint32_t from = part_begins(growth, part);
    size_t count = 0;
    const struct vs_track *track;
    for (size_t i = 0; (track = vs_growth_track(growth, i)) != NULL && count < VS_CANDIDATES; i++) {
        struct vs_beats *beats =
            track->candidate == 0 ? NULL : growth->candidates[track->candidate - 1];
        if (beats == NULL || beats->owner != vs_track_key(track) || is_before(beats, from))
            continue;
        beats->seen = track->allocs;
        if (!beats->settled)
            settle(beats, rates);
        cut(beats, from);
        uint64_t steps = allocs_in(growth, track, part) / beats->every;
        if (steps != 0 && is_eligible(growth, track, part, rates))
            out[count++] = (struct candidate){beats, share_in_step(rates, steps), churns(track)};
    }
    return count;
}

/* Few sites that make most of it are about as good as many that make less: squared. */
static double fit_of(const struct candidate *candidate)
{
    return candidate->share.sites * candidate->share.allocs;
}

static const struct candidate *best_fit(const struct candidate *candidates, size_t count)
{
    const struct candidate *best = NULL;
    for (size_t i = 0; i < count; i++)
        if (best == NULL || candidates[i].churning > best->churning ||
            (candidates[i].churning == best->churning && fit_of(&candidates[i]) > fit_of(best)))
            best = &candidates[i];
    return best;
}

/* About as good, and a whole number of them in each of the best: else the layers of a model that
 * changes. */
static bool is_as_good(const struct candidate *candidate, const struct candidate *best)
{
    uint64_t steps = rounds_of(candidate->beats), least = rounds_of(best->beats);
    uint64_t times = (steps + least / 2) / least;
    return candidate->churning == best->churning && fit_of(candidate) * 100 >= fit_of(best) * 36 &&
           (steps < least || is_about(steps, times * least));
}

/*
 * The most frequent one that a good part of the sites keeps to, or most of what is
 * allocated: everything keeps to the evaluation after every tenth step as well.
 */
static const struct candidate *choose(const struct candidate *candidates, size_t count)
{
    const struct candidate *chosen = NULL, *best = best_fit(candidates, count);
    for (size_t i = 0; i < count; i++)
        if (is_as_good(&candidates[i], best) &&
            (chosen == NULL || is_better(&candidates[i], chosen)))
            chosen = &candidates[i];
    return chosen;
}

static int find_in(struct vs_growth *growth, enum part part, struct vs_steps *out)
{
    struct rates rates;
    struct candidate *candidates = calloc(VS_CANDIDATES, sizeof(*candidates));
    int result = candidates == NULL ? -ENOMEM : collect_rates(growth, part, &rates);
    if (result == 0) {
        const struct candidate *chosen =
            choose(candidates, list_candidates(growth, part, &rates, candidates));
        if (chosen != NULL)
            *out = (struct vs_steps){.source = VS_STEPS_FOUND,
                                     .beats = chosen->beats,
                                     .confidence = chosen->share.sites,
                                     .churning = chosen->churning,
                                     .few = !chosen->churning &&
                                            steps_of(chosen->beats) < ALONE_STEPS};
        free(rates.counts);
    }
    free(candidates);
    return result;
}

/* Nine in ten of the allocations that tell the steps were made in captures: of a graph's layers. */
static bool are_in_captures(const struct vs_growth *growth, const struct vs_beats *beats)
{
    const struct vs_track *track =
        beats->owner - 1 < growth->track_count ? &growth->tracks[beats->owner - 1] : NULL;
    return track != NULL && track->captured * 10ULL >= track->allocs * 9ULL;
}

/*
 * Steps that ended with the last graph, and captured them: about every one made some, or they lie
 * within the captures.
 */
static bool are_captures(const struct vs_growth *growth, const struct vs_steps *steps)
{
    return is_before(steps->beats, growth->graph_tick) &&
           (steps_of(steps->beats) <= STEPS_OF_A_GRAPH * (uint64_t)growth->graphs ||
            are_in_captures(growth, steps->beats));
}

/* They are made anew for the steps, not once before them. */
static bool graphs_come_and_go(const struct vs_growth *growth)
{
    for (size_t i = 0; i < growth->object_count; i++)
        if (growth->objects[i].object == VS_OBJECT_GRAPH_EXEC + 1 && churns(&growth->objects[i]))
            return true;
    return false;
}

/* Capturing is set-up where graphs stay, and something else comes back behind the last one. */
static int find_unmarked(struct vs_growth *growth, struct vs_steps *out)
{
    int result = find_in(growth, ALL_OF_IT, out);
    if (result != 0 || growth->graph_tick <= growth->from_tick || graphs_come_and_go(growth) ||
        (out->beats != NULL && !are_captures(growth, out)))
        return result;
    if (out->beats != NULL && are_in_captures(growth, out->beats))
        *out = (struct vs_steps){0}; /* a graph's layers: no steps, even where nothing follows */
    return find_in(growth, BEHIND_THE_GRAPHS, out);
}

/* A name that says so, else the most frequent of those that go on over most of the run. */
static void find_named(struct vs_growth *growth, struct vs_steps *out)
{
    const struct vs_beats *best = NULL;
    bool best_says = false;
    for (size_t i = 0; i < growth->named_count; i++) {
        struct vs_beats *beats = &growth->named[i].beats;
        const char *name = vs_state_string(growth->state, growth->named[i].name);
        bool step = vs_step_name_says(name) == VS_SAYS_STEP;
        cut(beats, growth->from_tick);
        if (steps_of(beats) < LEAST_STEPS ||
            span_of(beats) * 2ULL < growth->tick - growth->from_tick)
            continue;
        if (best == NULL || (step && !best_says) ||
            (step == best_says && steps_of(beats) > steps_of(best))) {
            best = beats;
            best_says = step;
        }
    }
    if (best != NULL)
        *out = (struct vs_steps){
            .source = VS_STEPS_NAMED, .beats = best, .confidence = 1, .churning = true};
}

int vs_steps_find(struct vs_growth *growth, struct vs_steps *out)
{
    int result = 0;
    *out = (struct vs_steps){0};
    cut(&growth->marked, growth->from_tick);
    if (steps_of(&growth->marked) >= LEAST_STEPS)
        *out = (struct vs_steps){
            .source = VS_STEPS_MARKED, .beats = &growth->marked, .confidence = 1, .churning = true};
    else
        find_named(growth, out);
    if (out->source == VS_STEPS_NONE)
        result = find_unmarked(growth, out);
    if (out->beats == NULL)
        return result;
    out->windows = out->beats->count - 1;
    out->steps_per_window = out->beats->period / out->beats->every;
    out->count = steps_of(out->beats);
    return result;
}

/* ---- loops beside the steps ---------------------------------------------------------------- */

/* So many times as something that a loop makes once, or a few times, in each round. */
static bool is_in_rounds(uint64_t allocs, uint64_t rounds)
{
    uint64_t times = rounds == 0 ? 0 : (allocs + rounds / 2) / rounds;
    return times != 0 && is_about(allocs, times * rounds);
}

bool vs_steps_next_loop(const struct vs_growth *growth, const struct vs_steps *steps,
                        uint64_t allocs, size_t *at, struct vs_steps *out)
{
    while (*at < VS_CANDIDATES) {
        const struct vs_beats *beats = growth->candidates[(*at)++];
        if (beats == NULL || beats == steps->beats || beats->owner - 1 >= growth->track_count ||
            beats->count < LEAST_STEPS || beats->items[0].tick < steps->beats->items[0].tick)
            continue;
        const struct vs_track *track = &growth->tracks[beats->owner - 1]; /* of memory: its site */
        if (!churns(track) || !is_in_rounds(allocs, track->allocs / beats->every))
            continue;
        *out = (struct vs_steps){.source = VS_STEPS_BEHIND,
                                 .beats = beats,
                                 .windows = beats->count - 1,
                                 .steps_per_window = beats->period / beats->every,
                                 .count = steps_of(beats),
                                 .confidence = 1,
                                 .churning = true};
        return true;
    }
    return false;
}

long vs_steps_window(const struct vs_steps *steps, uint32_t tick)
{
    size_t low = 0, high = steps->windows + 1; /* items before `low` are not later than tick */
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (steps->beats->items[middle].tick <= tick)
            low = middle + 1;
        else
            high = middle;
    }
    return (long)low - 1;
}

bool vs_steps_highest_end(const struct vs_growth *growth, const struct vs_steps *steps,
                          const struct vs_device_state *device, struct vs_step_ends *out)
{
    if (steps->beats == NULL || growth->watched != device)
        return false;
    *out = (struct vs_step_ends){.count = steps->windows};
    for (size_t i = 1; i <= steps->windows; i++) /* the first begins the first step */
        if (steps->beats->items[i].held_bytes > out->highest_bytes)
            out->highest_bytes = steps->beats->items[i].held_bytes;
    return true;
}

int64_t vs_steps_number(const struct vs_steps *steps, size_t window)
{
    const struct vs_beats *beats = steps->beats;
    if (steps->source == VS_STEPS_MARKED)
        return beats->items[window].level;
    return (int64_t)((beats->first + window * beats->period) / beats->every) + 1;
}
