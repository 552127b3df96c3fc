/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which stack ids mean the same frames, and which frame a place is named after.
 * Nothing of a stack but its hashes is kept, so that memory is bounded by the sites.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "places_internal.h"

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
    static const char *const modules[] = {"libc10", "libcuda", "libnvidia", "liboneflow",
                                          "libvramscope"};
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
    if (frame->kind != VS_FRAME_NATIVE || frame->function != NULL || frame->sought ||
        frame->module == NULL)
        return 0;
    uint64_t key = XXH3_64bits_withSeed(frame->module, strlen(frame->module), frame->address);
    return vs_sizes_put(&making->unnamed, key) == NULL ? -ENOMEM : 0;
}

static void hash_group(struct making *making, struct stack *stack, const struct vs_frame *frames,
                       size_t count)
{
    static const unsigned with[] = {
        [VS_BY_LINE] = WITH_ALL, [VS_BY_FUNCTION] = WITH_FILE | WITH_FUNCTION, [VS_BY_MODULE] = 0};
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

int places_merge_stacks(struct making *making)
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

const struct stack *places_stack(const struct making *making, uint32_t id)
{
    struct stack wanted = {.id = id};
    return making->stack_count == 0
               ? NULL
               : bsearch(&wanted, making->stacks, making->stack_count, sizeof(wanted), by_id);
}
