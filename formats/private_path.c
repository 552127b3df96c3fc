/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens in the place of names and paths: see private_path.h. */
#include "private_path.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "python_path.h"

enum { EXTENSION_MOST = 4, WHEEL_HASH = 8 };

void vs_private_token(const char *text, size_t bytes, char *out)
{
    snprintf(out, VS_PRIVATE_TOKEN_BYTES, "h-%016" PRIx64, (uint64_t)XXH3_64bits(text, bytes));
}

bool vs_private_is_token(const char *text)
{
    const size_t digits = VS_PRIVATE_TOKEN_BYTES - sizeof "h-";
    return text[0] == 'h' && text[1] == '-' && strspn(text + 2, "0123456789abcdef") >= digits;
}

static bool begins_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static bool is_system_path(const char *path)
{
    static const char *const roots[] = {"/usr/", "/lib/", "/lib64/", "/opt/"};
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++)
        if (begins_with(path, roots[i]))
            return true;
    return false;
}

/* "python3.11": nothing but a version behind it. */
static bool is_interpreter(const char *name)
{
    static const char python[] = "python";
    return begins_with(name, python) &&
           name[sizeof python - 1 + strspn(name + sizeof python - 1, "0123456789.")] == 0;
}

/* Libraries that say nothing about who uses them, and that readers know by name. */
static bool is_public_library(const char *name)
{
    static const char *const names[] = {
        "ld-linux",      "libc.so",    "libc10",    "libcublas",    "libcuda",     "libcudnn",
        "libcufft",      "libcupti",   "libcurand", "libcusolver",  "libcusparse", "libdl.so",
        "libgcc_s",      "libm.so",    "libnccl",   "libnvJitLink", "libnvidia",   "libnvrtc",
        "libnvToolsExt", "libpthread", "libpython", "libstdc++",    "libtorch",    "libvramscope"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (begins_with(name, names[i]))
            return true;
    return false;
}

/* ".so", ".so.3", ".cpython-312-x86_64-linux-gnu.so": NULL when it is no library's name. */
static const char *library_suffix(const char *name)
{
    if (strstr(name, ".cpython-") != NULL || strstr(name, ".abi3.so") != NULL)
        return strchr(name, '.');
    const char *found = strstr(name, ".so");
    return found != NULL && found[3 + strspn(found + 3, ".0123456789")] == 0 ? found : NULL;
}

/* ".py", ".cpp". */
static const char *file_suffix(const char *name)
{
    const char *dot = strrchr(name, '.');
    size_t length = dot == NULL ? 0 : strlen(dot + 1);
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)dot[1 + i]))
            return NULL;
    return length > 0 && length <= EXTENSION_MOST && dot != name ? dot : NULL;
}

/* A wheel gives the libraries in it names like "libfoo-1a2b3c4d.so.1": the same library. */
static const char *wheel_hash(const char *name, const char *end)
{
    const char *dash = end - name > WHEEL_HASH ? end - WHEEL_HASH - 1 : NULL;
    return dash != NULL && *dash == '-' && strspn(dash + 1, "0123456789abcdef") >= WHEEL_HASH ? dash
                                                                                              : end;
}

static void hide_name(const char *name, char *out, size_t room)
{
    char token[VS_PRIVATE_TOKEN_BYTES];
    const char *suffix = library_suffix(name), *end;
    if (suffix == NULL)
        suffix = file_suffix(name);
    end = suffix == NULL ? name + strlen(name) : wheel_hash(name, suffix);
    vs_private_token(name, (size_t)(end - name), token);
    snprintf(out, room, "%s%s", token, end);
}

void vs_private_path(const char *path, char *out, size_t room)
{
    char token[VS_PRIVATE_TOKEN_BYTES];
    const char *kept = vs_python_library_part(path);
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    if (path[0] == 0 || vs_private_is_token(path)) {
        snprintf(out, room, "%s", path);
        return;
    }
    if (kept == NULL && slash != NULL &&
        (is_system_path(path) || is_interpreter(name) || is_public_library(name)))
        kept = slash;
    if (kept != NULL) {
        vs_private_token(path, (size_t)(kept - path), token);
        snprintf(out, room, "%s%s", token, kept);
    } else if (slash == NULL) {
        hide_name(name, out, room);
    } else {
        vs_private_token(path, (size_t)(slash - path), token);
        int folder = snprintf(out, room, "%s/", token);
        if (folder > 0 && (size_t)folder < room)
            hide_name(name, out + folder, room - (size_t)folder);
    }
}
