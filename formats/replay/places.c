/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merging by sorting: stacks by a hash of what their frames mean, sites by what
 * makes them one place, places by what makes them one group.
 */
#include <errno.h>
#include <stdlib.h>

#include "places_internal.h"

/* ---- places ------------------------------------------------------------------------------- */

/* Sorted by what makes two sites one place, then by site. */
struct keyed {
    XXH128_hash_t key;
    uint32_t item;
};

static int by_key(const void *a, const void *b)
{
    const struct keyed *left = a, *right = b;
    int order = XXH128_cmp(&left->key, &right->key);
    return order != 0 ? order : (left->item > right->item) - (left->item < right->item);
}

static XXH128_hash_t place_key(const struct making *making, const struct vs_site *site)
{
    const struct stack *stack = site->stack == 0 ? NULL : places_stack(making, site->stack);
    uint32_t parts[] = {stack == NULL ? 0 : stack->lowest,
                        site->owner,
                        site->label,
                        (uint32_t)(uint8_t)site->device,
                        site->layer,
                        site->kind,
                        site->segment};
    return XXH3_128bits(parts, sizeof(parts));
}

static struct keyed *sort_sites(const struct making *making)
{
    const struct vs_state *state = making->places->state;
    struct keyed *sorted = calloc(state->site_count + 1, sizeof(*sorted));
    for (size_t i = 0; sorted != NULL && i < state->site_count; i++)
        sorted[i] = (struct keyed){place_key(making, &state->sites[i]), (uint32_t)i};
    if (sorted != NULL)
        qsort(sorted, state->site_count, sizeof(*sorted), by_key);
    return sorted;
}

/* After it `of_site` holds for each site the lowest site of its place. */
static int merge_sites(struct making *making)
{
    struct vs_places *places = making->places;
    size_t count = places->state->site_count;
    struct keyed *sorted = sort_sites(making);
    places->of_site = calloc(count + 1, sizeof(*places->of_site));
    places->items = calloc(count + 1, sizeof(*places->items));
    bool done = sorted != NULL && places->of_site != NULL && places->items != NULL;
    size_t first = 0;
    for (size_t i = 0; done && i < count; i++) {
        if (!XXH128_isEqual(sorted[i].key, sorted[first].key))
            first = i;
        places->of_site[sorted[i].item] = sorted[first].item;
    }
    free(sorted);
    return done ? 0 : -ENOMEM;
}

static void fill_place(const struct making *making, uint32_t site, struct vs_place *place)
{
    const struct vs_site *at = &making->places->state->sites[site];
    const struct stack *stack = at->stack == 0 ? NULL : places_stack(making, at->stack);
    uint64_t highest = making->stack_count == 0 ? 0 : making->stacks[making->stack_count - 1].id;
    place->site = site + 1;
    place->has_stack = stack != NULL && stack->known;
    place->number = stack != NULL ? stack->lowest : highest + site + 1;
}

static int make_places(struct making *making)
{
    struct vs_places *places = making->places;
    int result = merge_sites(making);
    if (result != 0)
        return result;
    for (size_t i = 0; i < places->state->site_count; i++) {
        uint32_t lowest = places->of_site[i];
        if (lowest == i) {
            places->of_site[i] = (uint32_t)places->count;
            fill_place(making, lowest, &places->items[places->count++]);
        } else {
            places->of_site[i] = places->of_site[lowest]; /* a lower one: done already */
        }
        vs_site_stats_add(&places->items[places->of_site[i]].stats, &making->sites->stats[i]);
    }
    return 0;
}

/* ---- groups -------------------------------------------------------------------------------- */

static XXH128_hash_t group_key(const struct making *making, const struct vs_place *place)
{
    const struct vs_site *site = &making->places->state->sites[place->site - 1];
    struct {
        XXH128_hash_t frames;
        uint64_t device, layer, segment, kind;
    } parts = {.device = (uint8_t)site->device,
               .layer = site->layer,
               .segment = site->segment,
               .kind = site->kind};
    if (place->has_stack)
        parts.frames = places_stack(making, site->stack)->group;
    else if (making->places->by == VS_BY_MODULE)
        parts.frames = XXH3_128bits(&site->owner, sizeof(site->owner));
    else
        parts.frames = XXH3_128bits(&place->number, sizeof(place->number));
    return XXH3_128bits(&parts, sizeof(parts));
}

static void add_to_group(struct vs_places *places, uint32_t index, uint32_t number)
{
    struct vs_place *place = &places->items[index];
    struct vs_group *group = &places->groups[number];
    const struct vs_place *heaviest = &places->items[group->place];
    place->group = number;
    if (group->places == 0 || place->stats.peak_bytes > heaviest->stats.peak_bytes)
        group->place = index;
    group->places++;
    vs_site_stats_add(&group->stats, &place->stats);
}

/* For each place the lowest place of its group. NULL without memory. */
static uint32_t *find_groups(const struct making *making)
{
    const struct vs_places *places = making->places;
    struct keyed *sorted = calloc(places->count + 1, sizeof(*sorted));
    uint32_t *lowest = calloc(places->count + 1, sizeof(*lowest));
    if (sorted == NULL || lowest == NULL) {
        free(sorted);
        free(lowest);
        return NULL;
    }
    for (size_t i = 0; i < places->count; i++)
        sorted[i] = (struct keyed){group_key(making, &places->items[i]), (uint32_t)i};
    qsort(sorted, places->count, sizeof(*sorted), by_key);
    size_t first = 0;
    for (size_t i = 0; i < places->count; i++) {
        if (!XXH128_isEqual(sorted[i].key, sorted[first].key))
            first = i;
        lowest[sorted[i].item] = sorted[first].item;
    }
    free(sorted);
    return lowest;
}

static int make_groups(struct making *making)
{
    struct vs_places *places = making->places;
    uint32_t *lowest = find_groups(making);
    places->groups = calloc(places->count + 1, sizeof(*places->groups));
    if (lowest == NULL || places->groups == NULL) {
        free(lowest);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < places->count; i++) {
        bool known = lowest[i] < i;
        uint32_t number = known ? places->items[lowest[i]].group : (uint32_t)places->group_count++;
        add_to_group(places, i, number);
    }
    free(lowest);
    return 0;
}

/* ---- public ---------------------------------------------------------------------------------- */

int vs_places_create(const struct vs_state *state, const struct vs_sites *sites,
                     const struct vs_stack_source *source, enum vs_group_by by,
                     struct vs_places *out)
{
    *out = (struct vs_places){.state = state, .source = *source, .by = by};
    struct making making = {.places = out, .sites = sites, .hash = XXH3_createState()};
    int result = making.hash == NULL ? -ENOMEM : places_merge_stacks(&making);
    if (result == 0)
        result = make_places(&making);
    if (result == 0)
        result = make_groups(&making);
    XXH3_freeState(making.hash);
    vs_sizes_release(&making.unnamed);
    free(making.stacks);
    if (result != 0)
        vs_places_release(out);
    return result;
}

void vs_places_release(struct vs_places *places)
{
    free(places->items);
    free(places->of_site);
    free(places->groups);
    *places = (struct vs_places){0};
}

const struct vs_place *vs_places_of(const struct vs_places *places, uint32_t site)
{
    return site == 0 || site > places->state->site_count
               ? NULL
               : &places->items[places->of_site[site - 1]];
}

const struct vs_site *vs_places_site(const struct vs_places *places, const struct vs_place *place)
{
    return &places->state->sites[place->site - 1];
}

long vs_places_frames(const struct vs_places *places, const struct vs_place *place,
                      const struct vs_frame **out)
{
    const struct vs_site *site = vs_places_site(places, place);
    return site->stack == 0 ? 0 : places->source.frames(places->source.self, site->stack, out);
}
