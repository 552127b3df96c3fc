/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who asks for memory: the module that called, by its name, or behind a bridge from
 * Python to C the Python package that called through it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../frames.h"
#include "../python_path.h"
#include "layers.h"
#include "state_internal.h"

enum { FIRST_ROOM = 64, HASH_LENGTH = 8 };
static const char the_program[] = "the program";

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

/* What calls C for Python: ctypes, cffi, and NVIDIA's bindings ("/site-packages/cuda/bindings/").
 */
static bool is_bridge(const char *name)
{
    static const char *const bridges[] = {"libffi", "_ctypes", "_cffi_backend", "cffi", "cuda"};
    for (size_t i = 0; i < sizeof(bridges) / sizeof(bridges[0]); i++)
        if (strcmp(name, bridges[i]) == 0)
            return true;
    return false;
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
    owner->bridge = is_bridge(name);
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

/* The installed package a Python file belongs to; false for the standard library's. */
static bool package_of_file(const char *file, char *name, size_t room)
{
    const char *library = vs_python_library_part(file);
    if (library == NULL || strstr(library, "-packages/") == NULL)
        return false;
    const char *package = strstr(library, "-packages/") + strlen("-packages/");
    size_t length = strcspn(package, "/");
    if (package[length] == 0)
        length = strcspn(package, "."); /* a module of one file */
    snprintf(name, room, "%.*s", (int)(length < room ? length : room - 1), package);
    return true;
}

/* The program or the package that has this code; false for code that calls for somebody else. */
static bool python_owner(const char *file, const char *function, char *name, size_t room)
{
    if (file[0] == 0 || !vs_python_is_own(file, function))
        return package_of_file(file, name, room) && !is_bridge(name);
    snprintf(name, room, "%s", the_program);
    return true;
}

/* Of the Python code nearest to the call; the bridge itself where no such frame is known. */
static uint16_t find_owner_behind(struct vs_state *state, uint16_t bridge, uint32_t stack)
{
    uint64_t *known = vs_sizes_get(&state->owner_by_stack, stack);
    if (known != NULL)
        return (uint16_t)*known;
    char name[sizeof(state->owners[0].name)] = "";
    bool found = false;
    for (unsigned i = 0; !found && state->names.code != NULL; i++) {
        const char *file = "";
        const char *function = state->names.code(state->names.self, stack, i, &file);
        if (function == NULL)
            break;
        found = python_owner(file, function, name, sizeof(name));
    }
    uint16_t owner = found ? add_owner(state, name) : bridge;
    uint64_t *slot = vs_sizes_put(&state->owner_by_stack, stack);
    if (slot == NULL)
        state_fail(state);
    else
        *slot = owner;
    return owner;
}

uint16_t state_owner(struct vs_state *state, const struct vs_event *event)
{
    if (event->module != state->last_module || state->owner_count == 0) {
        state->last_owner = find_owner(state, event->module);
        state->last_module = event->module;
    }
    uint16_t owner = state->last_owner;
    bool bridged = owner < state->owner_count && state->owners[owner].bridge && event->stack != 0;
    return bridged ? find_owner_behind(state, owner, event->stack) : owner;
}

const char *vs_state_owner_name(const struct vs_state *state, uint16_t owner)
{
    return owner < state->owner_count ? state->owners[owner].name : "unknown";
}
