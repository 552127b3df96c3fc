/* SPDX-License-Identifier: Apache-2.0 */
/* Who asks for memory and where: owners by module, sites by what tells them apart. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers.h"
#include "state_internal.h"

enum { FIRST_ROOM = 64, HASH_LENGTH = 8 };

/* ---- owners ------------------------------------------------------------------- */

/* Libraries whose driver memory a caching allocator cuts into blocks it reports. */
static bool is_framework_library(const char *name)
{
    const struct vs_caching_layer *layer = vs_layer_of_library(name);
    return layer != NULL && layer->library_takes_segments;
}

static bool is_nccl_library(const char *name)
{
    return strcmp(name, "libnccl") == 0 || strcmp(name, "librccl") == 0;
}

static bool is_hash(const char *text)
{
    return strspn(text, "0123456789abcdef") >= HASH_LENGTH;
}

/* Extension modules ("runtime.cpython-312-x86_64-linux-gnu.so") are called alike everywhere. */
static bool is_extension_module(const char *base)
{
    return strstr(base, ".cpython-") != NULL || strstr(base, ".abi3.so") != NULL;
}

/* The package of an extension module that is installed: "/x/site-packages/cupy/…" → "cupy". */
static bool package_name(const char *path, char *name, size_t room)
{
    static const char *const folders[] = {"/site-packages/", "/dist-packages/"};
    static const char cupy_bindings[] = "cupy_backends";
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        const char *start = strstr(path, folders[i]);
        if (start == NULL)
            continue;
        start += strlen(folders[i]);
        size_t length = strcspn(start, "/");
        if (start[length] == 0)
            return false; /* the module is its package */
        if (length == strlen(cupy_bindings) && strncmp(start, cupy_bindings, length) == 0)
            length = strlen("cupy");
        snprintf(name, room, "%.*s", (int)(length < room ? length : room - 1), start);
        return true;
    }
    return false;
}

/* "/x/libcudart-1a2b3c4d.so.12" → "libcudart": the directory, the version and a wheel's hash go. */
static void owner_name(const char *path, char *name, size_t room)
{
    const char *base = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;
    if (is_extension_module(base) && package_name(path, name, room))
        return;
    const char *suffix = strstr(base, is_extension_module(base) ? "." : ".so");
    size_t length = suffix != NULL ? (size_t)(suffix - base) : strlen(base);
    if (length > HASH_LENGTH && base[length - HASH_LENGTH - 1] == '-' &&
        is_hash(base + length - HASH_LENGTH))
        length -= HASH_LENGTH + 1;
    snprintf(name, room, "%.*s", (int)(length < room ? length : room - 1), base);
}

static uint16_t add_owner(struct vs_state *state, const char *name)
{
    for (size_t i = 0; i < state->owner_count; i++)
        if (strcmp(state->owners[i].name, name) == 0)
            return (uint16_t)i;
    if (state->owner_count == UINT16_MAX)
        return 0;
    if (state->owner_count == state->owner_room) {
        size_t room = state->owner_room == 0 ? FIRST_ROOM : state->owner_room * 2;
        struct vs_owner *owners = realloc(state->owners, room * sizeof(*owners));
        if (owners == NULL) {
            state_fail(state);
            return 0;
        }
        state->owners = owners;
        state->owner_room = room;
    }
    struct vs_owner *owner = &state->owners[state->owner_count];
    snprintf(owner->name, sizeof(owner->name), "%s", name);
    owner->framework = is_framework_library(name);
    owner->nccl = is_nccl_library(name);
    owner->host = vs_layer_keeps_host_memory(name);
    return (uint16_t)state->owner_count++;
}

static uint16_t find_owner(struct vs_state *state, uint32_t module)
{
    uint64_t *known = vs_sizes_get(&state->owner_by_module, module);
    if (known != NULL)
        return (uint16_t)*known;
    const char *path = state->names.module_path(state->names.self, module);
    char name[sizeof(state->owners[0].name)] = "unknown";
    if (path != NULL && path[0] != 0)
        owner_name(path, name, sizeof(name));
    uint16_t owner = add_owner(state, name);
    uint64_t *slot = vs_sizes_put(&state->owner_by_module, module);
    if (slot == NULL)
        state_fail(state);
    else
        *slot = owner;
    return owner;
}

uint16_t state_owner(struct vs_state *state, uint32_t module)
{
    if (module != state->last_module || state->owner_count == 0) {
        state->last_owner = find_owner(state, module);
        state->last_module = module;
    }
    return state->last_owner;
}

const char *vs_state_owner_name(const struct vs_state *state, uint16_t owner)
{
    return owner < state->owner_count ? state->owners[owner].name : "unknown";
}

static bool takes_segments(struct vs_state *state, uint16_t label)
{
    if (label != state->last_label) {
        state->last_label = label;
        state->last_label_takes_segments = vs_layer_takes_segments(vs_state_string(state, label));
    }
    return label != 0 && state->last_label_takes_segments;
}

bool vs_state_by_framework(struct vs_state *state, const struct vs_event *event)
{
    uint16_t owner = state_owner(state, event->module);
    return (owner < state->owner_count && state->owners[owner].framework) ||
           takes_segments(state, event->label);
}

const char *vs_state_string(const struct vs_state *state, uint32_t id)
{
    const char *text = id == 0 ? NULL : state->names.string(state->names.self, id);
    return text == NULL ? "" : text;
}

/* ---- sites ---------------------------------------------------------------------- */

static bool same_site(const struct vs_site *a, const struct vs_site *b)
{
    return a->stack == b->stack && a->owner == b->owner && a->label == b->label &&
           a->device == b->device && a->layer == b->layer && a->kind == b->kind &&
           a->segment == b->segment;
}

static uint64_t site_key(const struct vs_site *site)
{
    uint64_t place = (uint64_t)site->owner | (uint64_t)site->label << 16 |
                     (uint64_t)(uint8_t)site->device << 32 | (uint64_t)site->layer << 40 |
                     (uint64_t)site->kind << 44 | (uint64_t)site->segment << 48;
    return place ^ (uint64_t)site->stack * 0x9e3779b97f4a7c15ULL;
}

static uint32_t add_site(struct vs_state *state, const struct vs_site *wanted, uint64_t *head)
{
    if (state->site_count == state->site_room) {
        size_t room = state->site_room == 0 ? FIRST_ROOM : state->site_room * 2;
        struct vs_site *sites =
            room > UINT32_MAX ? NULL : realloc(state->sites, room * sizeof(*sites));
        if (sites == NULL) {
            state_fail(state);
            return 0;
        }
        state->sites = sites;
        state->site_room = room;
    }
    state->sites[state->site_count] = *wanted;
    state->sites[state->site_count].next = (uint32_t)*head;
    *head = ++state->site_count;
    return (uint32_t)*head;
}

static uint32_t find_site(struct vs_state *state, const struct vs_site *wanted, uint64_t key)
{
    uint64_t *head = vs_sizes_put(&state->site_index, key);
    if (head == NULL) {
        state_fail(state);
        return 0;
    }
    for (uint32_t id = (uint32_t)*head; id != 0; id = state->sites[id - 1].next)
        if (same_site(&state->sites[id - 1], wanted))
            return id;
    return add_site(state, wanted, head);
}

static uint32_t site_id(struct vs_state *state, const struct vs_site *wanted)
{
    uint64_t key = site_key(wanted);
    uint32_t *cached = &state->site_cache[(key ^ key >> 32) % VS_SITE_CACHE];
    if (*cached == 0 || !same_site(&state->sites[*cached - 1], wanted))
        *cached = find_site(state, wanted, key);
    return *cached;
}

uint32_t vs_state_site_of(struct vs_state *state, const struct vs_event *event, int8_t device,
                          enum vs_layer layer, bool segment)
{
    struct vs_site wanted = {.stack = event->stack,
                             .owner = state_owner(state, event->module),
                             .label = event->label != 0 ? event->label : event->call,
                             .device = device,
                             .layer = (uint8_t)layer,
                             .kind = VS_SITE_CALL,
                             .segment = segment};
    return site_id(state, &wanted);
}

uint32_t state_special_site(struct vs_state *state, int8_t device, enum vs_layer layer,
                            enum vs_site_kind kind)
{
    struct vs_site wanted = {.device = device, .layer = (uint8_t)layer, .kind = (uint8_t)kind};
    return site_id(state, &wanted);
}
