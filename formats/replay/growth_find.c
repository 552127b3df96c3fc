/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What grows with the steps: places whose levels (growth.c) began one after the
 * other, step by step, up to the last one. What stopped growing, came in one go,
 * or comes ever more rarely does not grow: a cache that has warmed up, state made
 * at the first step, a list that was given back.
 */
#include <errno.h>
#include <stdlib.h>

#include "grow.h"
#include "growth.h"

enum {
    REGULAR_MEDIUM = 8, /* increments that are alike, for a confidence */
    REGULAR_HIGH = 16,
    IRREGULAR_MEDIUM = 32, /* increments that are not, evenly spread */
    IRREGULAR_HIGH = 64,
    PARTS = 8,
    LEAST_ROUNDS = 3, /* increments of a loop of its own, each of as many blocks: */
    ROUNDS_HIGH = 6,
    LEAST_IN_ROUND = 4,
    LEAST_BEHIND = 16, /* of a loop behind the last step */
    AFTER_A_FALL = 32, /* steps a place that was given back before has to grow */
    RECENT_GAPS = 16
};

/* What began to stay in each window. */
struct series {
    int64_t *bytes, *counts;
    size_t windows;
    bool objects; /* only counts matter */
};

/* The stretch at the end in which it grows. */
struct stretch {
    size_t first;          /* window */
    size_t increments;     /* windows in which something began to stay */
    size_t gap;            /* usual distance of two such windows */
    size_t alike;          /* increments of the most frequent amount */
    size_t even_gaps;      /* distances that are the usual one */
    int64_t bytes, counts; /* of the most frequent amount */
    int64_t all_bytes, all_counts;
};

static bool grows_in(const struct series *series, size_t window)
{
    return series->bytes[window] > 0 || series->counts[window] > 0;
}

/* ---- where it begins ---------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    size_t left = *(const size_t *)a, right = *(const size_t *)b;
    return (left > right) - (left < right);
}

static size_t usual_gap(const struct series *series, size_t last)
{
    size_t gaps[RECENT_GAPS], count = 0, newer = last;
    for (size_t i = last; i-- > 0 && count < RECENT_GAPS;) {
        if (!grows_in(series, i))
            continue;
        gaps[count++] = newer - i;
        newer = i;
    }
    qsort(gaps, count, sizeof(gaps[0]), by_size);
    return count == 0 ? 1 : gaps[count / 2];
}

/* False when it does not grow at the end. */
static bool find_stretch(const struct series *series, struct stretch *out)
{
    size_t last = series->windows;
    while (last > 0 && !grows_in(series, last - 1))
        last--;
    if (last-- == 0)
        return false;
    *out = (struct stretch){.gap = usual_gap(series, last), .first = last, .increments = 1};
    size_t longest = 3 * out->gap + 1;
    if (series->windows - 1 - last > longest)
        return false;
    for (size_t i = last; i-- > 0 && out->first - i <= longest;) {
        if (!grows_in(series, i))
            continue;
        out->even_gaps += out->first - i == out->gap;
        out->first = i;
        out->increments++;
    }
    return true;
}

/* ---- how it grows ---------------------------------------------------------------------------- */

struct amount {
    int64_t bytes, count;
};

static int by_amount(const void *a, const void *b)
{
    const struct amount *left = a, *right = b;
    if (left->bytes != right->bytes)
        return left->bytes < right->bytes ? -1 : 1;
    return (left->count > right->count) - (left->count < right->count);
}

static void most_frequent(const struct amount *sorted, size_t count, struct stretch *stretch)
{
    for (size_t i = 0, run = 0; i < count; i++) {
        run = i > 0 && by_amount(&sorted[i], &sorted[i - 1]) == 0 ? run + 1 : 1;
        if (run > stretch->alike) {
            stretch->alike = run;
            stretch->bytes = sorted[i].bytes;
            stretch->counts = sorted[i].count;
        }
    }
}

/* How many increments have the most frequent number of blocks, whatever their sizes. */
static size_t alike_counts(struct amount *amounts, size_t count)
{
    struct stretch only = {0};
    for (size_t i = 0; i < count; i++)
        amounts[i].bytes = 0;
    qsort(amounts, count, sizeof(*amounts), by_amount);
    most_frequent(amounts, count, &only);
    return only.counts == 0 ? 0 : only.alike;
}

static int measure(const struct series *series, struct stretch *stretch, size_t *counts_alike)
{
    struct amount *amounts = calloc(stretch->increments, sizeof(*amounts));
    size_t count = 0;
    if (amounts == NULL)
        return -ENOMEM;
    for (size_t i = stretch->first; i < series->windows; i++) {
        stretch->all_bytes += series->bytes[i];
        stretch->all_counts += series->counts[i];
        if (grows_in(series, i))
            amounts[count++] = (struct amount){series->bytes[i], series->counts[i]};
    }
    qsort(amounts, count, sizeof(*amounts), by_amount);
    most_frequent(amounts, count, stretch);
    *counts_alike = alike_counts(amounts, count);
    free(amounts);
    return 0;
}

static bool most_of(size_t part, size_t whole)
{
    return part * 10 >= whole * 9;
}

static bool is_regular(const struct stretch *stretch, size_t alike)
{
    return most_of(alike, stretch->increments) &&
           most_of(stretch->even_gaps + 1, stretch->increments);
}

/* What matters of a window. */
static int64_t weight(const struct series *series, size_t window)
{
    return series->objects ? series->counts[window] : series->bytes[window];
}

/* As much in each part of the stretch, and no less in its second half. */
static bool is_spread(const struct series *series, const struct stretch *stretch)
{
    double parts[PARTS] = {0}, halves[2] = {0};
    size_t length = series->windows - stretch->first;
    for (size_t i = stretch->first; i < series->windows; i++)
        parts[(i - stretch->first) * PARTS / length] += (double)weight(series, i);
    for (size_t i = 0; i < PARTS; i++)
        halves[i / (PARTS / 2)] += parts[i];
    for (size_t i = 0; i < PARTS; i++)
        if (parts[i] * PARTS < 0.4 * (halves[0] + halves[1]))
            return false;
    return halves[1] >= 0.75 * halves[0];
}

/* 0: none. */
static int evidence(const struct series *series, const struct stretch *stretch, size_t counts_alike)
{
    bool regular = is_regular(stretch, stretch->alike) || is_regular(stretch, counts_alike);
    int confidence = 0;
    if (regular)
        confidence = stretch->increments >= REGULAR_HIGH     ? VS_GROWTH_HIGH
                     : stretch->increments >= REGULAR_MEDIUM ? VS_GROWTH_MEDIUM
                                                             : 0;
    else if (stretch->increments >= IRREGULAR_MEDIUM && is_spread(series, stretch))
        confidence = stretch->increments >= IRREGULAR_HIGH ? VS_GROWTH_HIGH : VS_GROWTH_MEDIUM;
    bool late = (series->windows - stretch->first) * 8 < series->windows;
    return late && confidence != 0 ? confidence - 1 : confidence;
}

/* ---- ages ---------------------------------------------------------------------------- */

static uint64_t median_age(const struct series *series, const struct stretch *stretch,
                           uint64_t steps_per_window)
{
    int64_t sum = 0, all = series->objects ? stretch->all_counts : stretch->all_bytes;
    size_t window = series->windows;
    while (window > stretch->first && sum * 2 < all)
        sum += weight(series, --window);
    return (series->windows - window) * steps_per_window;
}

/* ---- one place
 * ------------------------------------------------------------------------------------ */

/* A track, and what it is summed up with. */
struct member {
    struct vs_track *track;
    uint32_t place;
};

static int by_place(const void *a, const void *b)
{
    const struct member *left = a, *right = b;
    if (left->track->object != right->track->object)
        return left->track->object < right->track->object ? -1 : 1;
    if (left->place != right->place)
        return left->place < right->place ? -1 : 1;
    return (left->track->site > right->track->site) - (left->track->site < right->track->site);
}

static bool is_same(const struct member *a, const struct member *b)
{
    return a->place == b->place && a->track->object == b->track->object;
}

/* What was freed from the last step on: the program's end gives back what had stayed. */
static bool fell_at_the_end(const struct vs_steps *steps, const struct vs_track *track)
{
    return track->fall_tick >= steps->beats->items[steps->windows - 1].tick;
}

/*
 * What the program's end gave back of what had stayed: its frees, less what the
 * last step had made.
 */
static struct vs_level given_back(const struct vs_steps *steps, const struct vs_track *track)
{
    struct vs_level back = {.bytes = track->fall_bytes, .count = track->fall_count};
    uint32_t last = steps->beats->items[steps->windows].tick;
    for (uint32_t i = track->level_count; i-- > 0 && track->levels[i].tick >= last;) {
        back.bytes -= track->levels[i].bytes;
        back.count -= track->levels[i].count;
    }
    back.bytes = back.bytes < 0 ? 0 : back.bytes;
    back.count = back.count < 0 ? 0 : back.count;
    return back;
}

static void note_heights(const struct vs_steps *steps, const struct member *members, size_t count,
                         struct vs_grown *grown)
{
    uint32_t recent = steps->beats->items[steps->windows - 1].tick;
    for (size_t i = 0; i < count; i++) {
        const struct vs_track *track = members[i].track;
        struct vs_level back = given_back(steps, track);
        bool by_count = track->object != 0 || track->high_bytes == 0;
        bool reached = by_count ? track->high_count >= track->count + track->fall_count
                                : track->high_bytes >= track->bytes + track->fall_bytes;
        grown->end_bytes += track->bytes + back.bytes;
        grown->end_count += track->count + back.count;
        grown->given_back_bytes += back.bytes;
        grown->given_back_count += back.count;
        if (reached && track->high_tick != 0 && track->high_tick < recent)
            grown->falls = true;
    }
}

static void fill_series(const struct vs_steps *steps, const struct member *members, size_t count,
                        struct series *series)
{
    memset(series->bytes, 0, series->windows * sizeof(*series->bytes));
    memset(series->counts, 0, series->windows * sizeof(*series->counts));
    series->objects = members[0].track->object != 0;
    for (size_t i = 0; i < count; i++) {
        const struct vs_track *track = members[i].track;
        for (uint32_t k = track->level_count; k-- > 0;) {
            long window = vs_steps_window(steps, track->levels[k].tick);
            if (window < 0)
                break;
            if ((size_t)window >= series->windows)
                continue;
            series->bytes[window] += track->levels[k].bytes;
            series->counts[window] += track->levels[k].count;
        }
    }
}

static void fill_rates(const struct vs_steps *steps, const struct series *series,
                       const struct stretch *stretch, struct vs_grown *grown)
{
    double windows = (double)(series->windows - stretch->first);
    double per_window = (double)steps->steps_per_window;
    bool each = is_regular(stretch, stretch->alike) && stretch->gap == 1;
    double bytes = each ? (double)stretch->bytes : (double)stretch->all_bytes / windows;
    double counts = each ? (double)stretch->counts : (double)stretch->all_counts / windows;
    grown->bytes_per_step = bytes / per_window;
    grown->count_per_step = counts / per_window;
    grown->steps = (series->windows - stretch->first) * steps->steps_per_window;
    grown->first_step = vs_steps_number(steps, stretch->first);
    grown->grown_bytes = stretch->all_bytes;
    grown->grown_count = stretch->all_counts;
    grown->oldest_steps = grown->steps;
    grown->median_steps = median_age(series, stretch, steps->steps_per_window);
}

/* All tracks of one place, and what they are judged by. */
struct trial {
    const struct vs_growth *growth;
    const struct vs_steps *steps;
    const struct vs_places *places;
    const struct member *members;
    size_t count;
    struct series *series, *loop_series; /* in the steps, in the rounds of another loop */
};

static int add(struct vs_grown_list *list, const struct vs_grown *grown)
{
    if (!vs_grow(&list->items, &list->room, list->count + 1, sizeof(*list->items)))
        return -ENOMEM;
    list->items[list->count++] = *grown;
    return 0;
}

/* ---- loops beside the steps ---------------------------------------------------------------- */

static uint64_t allocs_of(const struct trial *trial)
{
    uint64_t allocs = 0;
    for (size_t i = 0; i < trial->count; i++)
        allocs += trial->members[i].track->allocs;
    return allocs;
}

/* The windows of the steps in which a loop goes around. */
static size_t windows_of_loop(const struct vs_steps *steps, const struct vs_steps *loop)
{
    size_t windows = 0;
    long before = -2;
    for (size_t i = 0; i <= loop->windows; i++) {
        long window = vs_steps_window(steps, loop->beats->items[i].tick);
        windows += window != before;
        before = window;
    }
    return windows;
}

/* It goes around several times in each of few steps, and nearly each round keeps something. */
static bool keeps_to(const struct trial *trial, const struct vs_steps *loop)
{
    size_t growing = 0;
    if (windows_of_loop(trial->steps, loop) * LEAST_IN_ROUND >
        (loop->windows + 1) * loop->steps_per_window)
        return false;
    trial->loop_series->windows = loop->windows;
    fill_series(loop, trial->members, trial->count, trial->loop_series);
    for (size_t i = 0; i < loop->windows; i++)
        growing += grows_in(trial->loop_series, i);
    return most_of(growing, loop->windows);
}

/*
 * An evaluation after each of a few epochs: as many blocks stay of each, as evenly apart, and
 * they are what the rounds of a loop of its own keep. Parts of a model that are made one after
 * the other have no such loop. 0: none.
 */
static int evidence_of_rounds(const struct trial *trial, const struct stretch *stretch,
                              size_t counts_alike)
{
    struct vs_steps loop;
    if (!is_regular(stretch, counts_alike) ||
        stretch->all_counts < (int64_t)stretch->increments * LEAST_IN_ROUND)
        return 0;
    for (size_t at = 0;
         vs_steps_next_loop(trial->growth, trial->steps, allocs_of(trial), &at, &loop);)
        if (keeps_to(trial, &loop))
            return stretch->increments >= ROUNDS_HIGH ? VS_GROWTH_HIGH : VS_GROWTH_MEDIUM;
    return 0;
}

/* ---- a program that frees nothing ------------------------------------------------------------ */

static bool builds(const struct vs_frame *frame)
{
    const char *dot = strrchr(frame->function, '.');
    const char *name = dot == NULL ? frame->function : dot + 1;
    return strcmp(name, "__init__") == 0 || strcmp(name, "_apply") == 0 ||
           strstr(name, "load") != NULL;
}

/* Asked for by Python, but not to build a model or to load its weights. */
static bool is_in_a_loop(const struct trial *trial)
{
    const struct vs_frame *frames = NULL;
    const struct vs_place *place = &trial->places->items[trial->members[0].place];
    long count = vs_places_frames(trial->places, place, &frames);
    bool python = false;
    for (long i = 0; i < count; i++) {
        if (frames[i].kind != VS_FRAME_PYTHON || frames[i].function == NULL)
            continue;
        python = true;
        if (builds(&frames[i]))
            return false;
    }
    return python;
}

/* A model's layers are of different sizes, and buffers of C programs are made at the start. */
static bool may_be_set_up(const struct trial *trial, const struct stretch *stretch)
{
    return trial->steps->few && (!is_regular(stretch, stretch->alike) || !is_in_a_loop(trial));
}

/* Adds the place to the list if it grows with the steps. 0 or -ENOMEM. */
static int judge(const struct trial *trial, struct vs_grown_list *list)
{
    const struct vs_steps *steps = trial->steps;
    struct vs_grown grown = {.place = trial->members[0].place,
                             .site = trial->members[0].track->site,
                             .object = trial->members[0].track->object};
    struct stretch stretch;
    size_t counts_alike = 0;
    fill_series(steps, trial->members, trial->count, trial->series);
    if (!find_stretch(trial->series, &stretch) || stretch.increments < LEAST_ROUNDS)
        return 0;
    int result = measure(trial->series, &stretch, &counts_alike);
    if (result != 0)
        return result;
    if (may_be_set_up(trial, &stretch))
        return 0;
    int confidence = evidence(trial->series, &stretch, counts_alike);
    if (confidence == 0)
        confidence = evidence_of_rounds(trial, &stretch, counts_alike);
    note_heights(steps, trial->members, trial->count, &grown);
    fill_rates(steps, trial->series, &stretch, &grown);
    if (grown.falls && confidence > VS_GROWTH_MEDIUM)
        confidence = VS_GROWTH_MEDIUM;
    if (confidence == 0 || (grown.falls && grown.steps < AFTER_A_FALL))
        return 0;
    grown.confidence = steps->churning ? (enum vs_growth_confidence)confidence : VS_GROWTH_MEDIUM;
    return add(list, &grown);
}

/* ---- behind the last step ----------------------------------------------------------------------
 */

/* Of what is made behind the last step, it goes around up to the end. */
static bool is_behind(const struct trial *trial, const struct vs_steps *loop)
{
    const struct vs_beat *beats = loop->beats->items, *last = &beats[loop->windows];
    uint32_t steps_end = trial->steps->beats->items[trial->steps->windows].tick;
    uint32_t made = trial->growth->made_tick;
    if (beats[0].tick < steps_end || loop->count < LEAST_BEHIND)
        return false;
    uint64_t span = last->tick - beats[0].tick;
    uint64_t rest = made > last->tick ? made - last->tick : 0;
    return rest * loop->windows <= span * LEAST_IN_ROUND && (made - steps_end) <= span * 2;
}

/* Something was made after what had stayed was given back: the program did that, not its end. */
static bool was_given_back(const struct trial *trial)
{
    for (size_t i = 0; i < trial->count; i++) {
        const struct vs_track *track = trial->members[i].track;
        if (track->fall_count != 0 && trial->growth->made_tick > track->fall_tick)
            return true;
    }
    return false;
}

static int judge_loop(const struct trial *trial, const struct vs_steps *loop,
                      struct vs_grown_list *list)
{
    struct vs_grown grown = {.place = trial->members[0].place,
                             .site = trial->members[0].track->site,
                             .object = trial->members[0].track->object,
                             .behind = true,
                             .confidence = VS_GROWTH_MEDIUM};
    struct stretch stretch;
    size_t counts_alike = 0;
    trial->loop_series->windows = loop->windows;
    fill_series(loop, trial->members, trial->count, trial->loop_series);
    if (!find_stretch(trial->loop_series, &stretch))
        return 0;
    int result = measure(trial->loop_series, &stretch, &counts_alike);
    if (result != 0 || evidence(trial->loop_series, &stretch, counts_alike) == 0)
        return result;
    note_heights(loop, trial->members, trial->count, &grown);
    fill_rates(loop, trial->loop_series, &stretch, &grown);
    return grown.falls || grown.steps + 1 < LEAST_BEHIND ? 0 : add(list, &grown);
}

/* The steps ended and another loop went on (an evaluation behind the training). 0 or -ENOMEM. */
static int judge_behind(const struct trial *trial, struct vs_grown_list *list)
{
    struct vs_steps loop;
    size_t before = list->count;
    int result = 0;
    if (was_given_back(trial))
        return 0;
    for (size_t at = 0;
         result == 0 && list->count == before &&
         vs_steps_next_loop(trial->growth, trial->steps, allocs_of(trial), &at, &loop);)
        if (is_behind(trial, &loop))
            result = judge_loop(trial, &loop, list);
    return result;
}

/* ---- all
 * -------------------------------------------------------------------------------------------- */

/* Tracks of which something has stayed since a step began. */
static struct member *collect(struct vs_growth *growth, const struct vs_places *places,
                              const struct vs_steps *steps, size_t *count)
{
    struct member *members =
        malloc((growth->track_count + growth->object_count + 1) * sizeof(*members));
    struct vs_track *track;
    *count = 0;
    for (size_t i = 0; members != NULL && (track = vs_growth_track(growth, i)) != NULL; i++) {
        if (!fell_at_the_end(steps, track))
            vs_track_settle(track);
        if (track->level_count != 0 &&
            track->levels[track->level_count - 1].tick >= steps->beats->items[0].tick)
            members[(*count)++] = (struct member){track, places->of_site[track->site - 1]};
    }
    if (members != NULL)
        qsort(members, *count, sizeof(*members), by_place);
    return members;
}

/* The bytes that grew, then objects, the most first. */
static int by_harm(const void *a, const void *b)
{
    const struct vs_grown *left = a, *right = b;
    if (left->grown_bytes != right->grown_bytes)
        return left->grown_bytes < right->grown_bytes ? 1 : -1;
    if (left->grown_count != right->grown_count)
        return left->grown_count < right->grown_count ? 1 : -1;
    return (left->site > right->site) - (left->site < right->site);
}

/* Room for as many windows as are ever kept. */
static bool make_series(struct series *series, size_t windows)
{
    *series = (struct series){.bytes = calloc(VS_BEATS_KEPT, sizeof(*series->bytes)),
                              .counts = calloc(VS_BEATS_KEPT, sizeof(*series->counts)),
                              .windows = windows};
    return series->bytes != NULL && series->counts != NULL;
}

static void release_series(struct series *series)
{
    free(series->bytes);
    free(series->counts);
}

static int judge_all(const struct vs_growth *growth, const struct vs_places *places,
                     const struct vs_steps *steps, const struct member *members, size_t count,
                     struct vs_grown_list *out)
{
    struct series series = {0}, loop_series = {0};
    struct trial trial = {.growth = growth,
                          .steps = steps,
                          .places = places,
                          .series = &series,
                          .loop_series = &loop_series};
    bool room = make_series(&series, steps->windows) && make_series(&loop_series, 0);
    int result = room ? 0 : -ENOMEM;
    for (size_t first = 0, next; first < count && result == 0; first = next) {
        size_t listed = out->count;
        for (next = first + 1; next < count && is_same(&members[first], &members[next]);)
            next++;
        trial.members = members + first;
        trial.count = next - first;
        result = judge(&trial, out);
        if (result == 0 && out->count == listed)
            result = judge_behind(&trial, out);
    }
    release_series(&series);
    release_series(&loop_series);
    return result;
}

int vs_growth_find(struct vs_growth *growth, const struct vs_places *places,
                   struct vs_grown_list *out)
{
    *out = (struct vs_grown_list){0};
    if (growth->state->cut_events != 0)
        return 0; /* steps are found in events that are not all there */
    int result = vs_steps_find(growth, &out->steps);
    if (result != 0 || out->steps.windows == 0)
        return result;
    size_t count;
    struct member *members = collect(growth, places, &out->steps, &count);
    result =
        members == NULL ? -ENOMEM : judge_all(growth, places, &out->steps, members, count, out);
    free(members);
    if (out->steps.few && out->count == 0)
        out->steps = (struct vs_steps){0}; /* set-up is no step */
    if (result != 0)
        vs_grown_release(out);
    else if (out->count > 1)
        qsort(out->items, out->count, sizeof(*out->items), by_harm);
    return result;
}

void vs_grown_release(struct vs_grown_list *list)
{
    free(list->items);
    *list = (struct vs_grown_list){0};
}

const char *vs_growth_word(enum vs_growth_confidence confidence, bool falls)
{
    return falls ? "rises and falls" : confidence == VS_GROWTH_HIGH ? "sure" : "likely";
}

const char *vs_step_source_name(enum vs_step_source source)
{
    static const char *const names[] = {[VS_STEPS_NONE] = "none",
                                        [VS_STEPS_MARKED] = "marked",
                                        [VS_STEPS_NAMED] = "phases",
                                        [VS_STEPS_FOUND] = "found",
                                        [VS_STEPS_BEHIND] = "behind_steps"};
    return names[source];
}

enum vs_step_source vs_grown_source(const struct vs_grown_list *list, const struct vs_grown *grown)
{
    return grown->behind ? VS_STEPS_BEHIND : list->steps.source;
}
