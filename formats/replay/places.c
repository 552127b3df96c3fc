/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merging by sorting: stacks by a 128-bit hash of what their frames mean, sites
 * by what makes them one place, places by what makes them one group. Nothing of
 * a stack but its hashes is kept, so that memory is bounded by the sites.
 */
#include "places.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

/* ---- what a frame is ---------------------------------------------------------------- */

static void add_text(XXH3_state_t *hash, const char *text)
{
    if (text == NULL)
        text = "";
    XXH3_128bits_update(hash, text, strlen(text) + 1);
}

/* Which parts of a frame tell two apart. */
enum { WITH_FILE = 1, WITH_FUNCTION = 2, WITH_LINE = 4, WITH_ALL = 7 };

static void add_frame(XXH3_state_t *hash, const struct vs_frame *frame, unsigned with)
{
    uint64_t numbers[3] = {(uint64_t)frame->kind, 0, 0};
    bool named = frame->function != NULL;
    if (with & WITH_LINE)
        numbers[1] = frame->line | (uint64_t)frame->inlined << 32;
    if (!named && (with & (WITH_FUNCTION | WITH_LINE)))
        numbers[2] = frame->address;
    XXH3_128bits_update(hash, numbers, sizeof(numbers));
    add_text(hash, frame->module);
    if (with & WITH_FUNCTION)
        add_text(hash, frame->function);
    if (with & WITH_FILE || frame->kind == VS_FRAME_PYTHON)
        add_text(hash, frame->file);
}

/* ---- which frame a place is named after ------------------------------------------------ */

static bool is_plumbing(const struct vs_frame *frame)
{
    static const char *const modules[] = {"libc10", "libcuda", "libnvidia", "libvramscope"};
    const char *base = frame->module == NULL ? NULL : strrchr(frame->module, '/');
    base = base != NULL ? base + 1 : frame->module;
    for (size_t i = 0; base != NULL && i < sizeof(modules) / sizeof(modules[0]); i++)
        if (strncmp(base, modules[i], strlen(modules[i])) == 0)
            return true;
    return false;
}

const char *vs_frame_backward_node(const struct vs_frame *frame)
{
    static const char space[] = "torch::autograd::", method[] = "::apply(";
    if (frame->kind != VS_FRAME_NATIVE || frame->function == NULL ||
        strncmp(frame->function, space, sizeof(space) - 1) != 0)
        return NULL;
    const char *end = strstr(frame->function, method);
    if (end == NULL)
        return NULL;
    const char *start = end;
    while (start > frame->function && start[-1] != ':')
        start--;
    return start;
}

long vs_places_frame(const struct vs_frame *frames, size_t count)
{
    long own = vs_frames_own(frames, count);
    if (own >= 0 && vs_frame_is_own(&frames[own]))
        return own;
    for (size_t i = 0; i < count; i++)
        if (frames[i].kind == VS_FRAME_PYTHON)
            return (long)i;
    for (size_t i = 0; i < count; i++)
        if (vs_frame_backward_node(&frames[i]) != NULL)
            return (long)i;
    for (size_t i = 0; i < count; i++)
        if (frames[i].kind == VS_FRAME_NATIVE && !is_plumbing(&frames[i]))
            return (long)i;
    return own;
}

/* ---- stacks ------------------------------------------------------------------------------ */

struct stack {
    XXH128_hash_t frames, group;
    uint32_t id;
    uint32_t lowest; /* id of those with the same frames */
    bool known;      /* it has a frame to be named after */
};

struct making {
    struct vs_places *places;
    const struct vs_sites *sites;
    struct stack *stacks; /* by id */
    size_t stack_count;
    struct vs_sizes unnamed;
    XXH3_state_t *hash;
};

static int by_number(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

static int by_id(const void *a, const void *b)
{
    const struct stack *left = a, *right = b;
    return (left->id > right->id) - (left->id < right->id);
}

static int by_frames(const void *a, const void *b)
{
    const struct stack *left = a, *right = b;
    int order = XXH128_cmp(&left->frames, &right->frames);
    return order != 0 ? order : by_id(a, b);
}

/* Every stack id of the sites, once. */
static int list_stacks(struct making *making)
{
    const struct vs_state *state = making->places->state;
    uint32_t *ids = malloc((state->site_count + 1) * sizeof(*ids));
    if (ids == NULL)
        return -ENOMEM;
    size_t count = 0, different = 0;
    for (size_t i = 0; i < state->site_count; i++)
        if (state->sites[i].stack != 0)
            ids[count++] = state->sites[i].stack;
    qsort(ids, count, sizeof(*ids), by_number);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || ids[i] != ids[i - 1])
            ids[different++] = ids[i];
    making->stacks = calloc(different + 1, sizeof(*making->stacks));
    making->stack_count = different;
    for (size_t i = 0; making->stacks != NULL && i < different; i++)
        making->stacks[i].id = ids[i];
    free(ids);
    return making->stacks == NULL ? -ENOMEM : 0;
}

static int note_unnamed(struct making *making, const struct vs_frame *frame)
{
    if (frame->kind != VS_FRAME_NATIVE || frame->function != NULL)
        return 0;
    const char *module = frame->module == NULL ? "" : frame->module;
    uint64_t key = XXH3_64bits_withSeed(module, strlen(module), frame->address);
    return vs_sizes_put(&making->unnamed, key) == NULL ? -ENOMEM : 0;
}

static void hash_group(struct making *making, struct stack *stack, const struct vs_frame *frames,
                       size_t count)
{
    static const unsigned with[] = {[VS_BY_LINE] = WITH_ALL,
                                    [VS_BY_FUNCTION] = WITH_FILE | WITH_FUNCTION,
                                    [VS_BY_MODULE] = 0};
    long named = vs_places_frame(frames, count);
    stack->known = named >= 0;
    stack->group = stack->frames;
    if (named < 0 || making->places->by == VS_BY_STACK)
        return;
    XXH3_128bits_reset(making->hash);
    add_frame(making->hash, &frames[named], with[making->places->by]);
    stack->group = XXH3_128bits_digest(making->hash);
}

/* A stack without frames is like no other. */
static void hash_nothing(struct stack *stack)
{
    stack->frames = XXH3_128bits(&stack->id, sizeof(stack->id));
    stack->group = stack->frames;
}

/* Shortens `root` to what it has in common with the folder of `file`. */
static void note_folder(char *root, size_t room, const char *file)
{
    const char *slash = strrchr(file, '/');
    size_t length = slash == NULL ? 0 : (size_t)(slash - file) + 1;
    if (length == 0 || length >= room)
        return;
    if (root[0] == 0) {
        memcpy(root, file, length);
        root[length] = 0;
        return;
    }
    size_t same = 0, kept = 0;
    for (; same < length && root[same] == file[same]; same++)
        if (file[same] == '/')
            kept = same + 1;
    if (kept == 0)
        root[kept++] = '/';
    root[kept] = 0;
}

static void note_program(struct vs_places *places, const struct vs_frame *frame)
{
    if (frame->kind == VS_FRAME_PYTHON && frame->file != NULL && vs_frame_is_own(frame))
        note_folder(places->root, sizeof(places->root), frame->file);
}

static int hash_stack(struct making *making, struct stack *stack)
{
    const struct vs_stack_source *source = &making->places->source;
    const struct vs_frame *frames;
    long count = source->frames(source->self, stack->id, &frames);
    if (count < 0)
        return (int)count;
    if (count == 0) {
        hash_nothing(stack);
        return 0;
    }
    int result = 0;
    XXH3_128bits_reset(making->hash);
    for (long i = 0; i < count && result == 0; i++) {
        add_frame(making->hash, &frames[i], WITH_ALL);
        result = note_unnamed(making, &frames[i]);
        note_program(making->places, &frames[i]);
    }
    stack->frames = XXH3_128bits_digest(making->hash);
    hash_group(making, stack, frames, (size_t)count);
    return result;
}

static int merge_stacks(struct making *making)
{
    int result = list_stacks(making);
    for (size_t i = 0; i < making->stack_count && result == 0; i++)
        result = hash_stack(making, &making->stacks[i]);
    if (result != 0)
        return result;
    qsort(making->stacks, making->stack_count, sizeof(*making->stacks), by_frames);
    const struct stack *first = making->stacks;
    for (size_t i = 0; i < making->stack_count; i++) {
        struct stack *stack = &making->stacks[i];
        if (i == 0 || !XXH128_isEqual(first->frames, stack->frames)) {
            first = stack;
            making->places->stacks++;
        }
        stack->lowest = first->id;
    }
    qsort(making->stacks, making->stack_count, sizeof(*making->stacks), by_id);
    making->places->unnamed = making->unnamed.count;
    return 0;
}

static const struct stack *find_stack(const struct making *making, uint32_t id)
{
    struct stack wanted = {.id = id};
    return making->stack_count == 0 ? NULL
                                    : bsearch(&wanted, making->stacks, making->stack_count,
                                              sizeof(wanted), by_id);
}

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
    const struct stack *stack = site->stack == 0 ? NULL : find_stack(making, site->stack);
    uint32_t parts[] = {stack == NULL ? 0 : stack->lowest,
                        site->owner,
                        site->label,
                        (uint32_t)(uint8_t)site->device,
                        site->layer,
                        site->kind,
                        site->segment};
    return XXH3_128bits(parts, sizeof(parts));
}

static void add_stats(struct vs_site_stats *sum, const struct vs_site_stats *part)
{
    sum->allocs += part->allocs;
    sum->frees += part->frees;
    sum->failed += part->failed;
    sum->bytes += part->bytes;
    sum->live_bytes += part->live_bytes;
    sum->live_count += part->live_count;
    sum->peak_bytes += part->peak_bytes;
    sum->peak_count += part->peak_count;
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
    const struct stack *stack = at->stack == 0 ? NULL : find_stack(making, at->stack);
    uint64_t highest =
        making->stack_count == 0 ? 0 : making->stacks[making->stack_count - 1].id;
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
        add_stats(&places->items[places->of_site[i]].stats, &making->sites->stats[i]);
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
        parts.frames = find_stack(making, site->stack)->group;
    else if (making->places->by == VS_BY_MODULE)
        parts.frames = XXH3_128bits(&site->owner, sizeof(site->owner));
    else
        parts.frames = XXH3_128bits(&place->number, sizeof(place->number));
    return XXH3_128bits(&parts, sizeof(parts));
}

static void add_to_group(struct vs_places *places, uint32_t index)
{
    struct vs_place *place = &places->items[index];
    struct vs_group *group = &places->groups[places->group_count - 1];
    const struct vs_place *heaviest = &places->items[group->place];
    place->group = (uint32_t)places->group_count - 1;
    if (group->places == 0 || place->stats.peak_bytes > heaviest->stats.peak_bytes)
        group->place = index;
    group->places++;
    add_stats(&group->stats, &place->stats);
}

static int make_groups(struct making *making)
{
    struct vs_places *places = making->places;
    struct keyed *sorted = calloc(places->count + 1, sizeof(*sorted));
    places->groups = calloc(places->count + 1, sizeof(*places->groups));
    if (sorted == NULL || places->groups == NULL) {
        free(sorted);
        return -ENOMEM;
    }
    for (size_t i = 0; i < places->count; i++)
        sorted[i] = (struct keyed){group_key(making, &places->items[i]), (uint32_t)i};
    qsort(sorted, places->count, sizeof(*sorted), by_key);
    for (size_t i = 0; i < places->count; i++) {
        if (i == 0 || !XXH128_isEqual(sorted[i].key, sorted[i - 1].key))
            places->group_count++;
        add_to_group(places, sorted[i].item);
    }
    free(sorted);
    return 0;
}

/* ---- public ---------------------------------------------------------------------------------- */

int vs_places_create(const struct vs_state *state, const struct vs_sites *sites,
                     const struct vs_stack_source *source, enum vs_group_by by,
                     struct vs_places *out)
{
    *out = (struct vs_places){.state = state, .source = *source, .by = by};
    struct making making = {.places = out, .sites = sites, .hash = XXH3_createState()};
    int result = making.hash == NULL ? -ENOMEM : merge_stacks(&making);
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
    return site->stack == 0 ? 0
                            : places->source.frames(places->source.self, site->stack, out);
}
