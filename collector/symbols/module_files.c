/* SPDX-License-Identifier: Apache-2.0 */
/* Finding a module's files: see module_files.h. */
#include "module_files.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SYSTEM_DEBUG_FOLDER "/usr/lib/debug"
#define CHECKSUM_POLYNOMIAL 0xedb88320U

/* One search: what is looked for, and the best reason so far why it is not there. */
struct search {
    const struct module_name *name;
    enum symbol_status state;
};

static enum symbol_status reason(int error)
{
    return error == -ENOENT || error == -ENOTDIR ? SYMBOL_NO_FILE : SYMBOL_UNREADABLE;
}

static bool is_wanted_build(const struct elf_file *file, const struct module_name *name)
{
    const void *id = NULL;
    size_t bytes;
    elf_file_build_id(file, &id, &bytes);
    if (bytes > SYMBOL_BUILD_ID_BYTES)
        bytes = SYMBOL_BUILD_ID_BYTES;
    return bytes == name->build_id_bytes && (bytes == 0 || memcmp(id, name->build_id, bytes) == 0);
}

/* Notes why a file is of no use; another build tells more than no file. */
static void note_failure(struct search *search, enum symbol_status why)
{
    if (search->state == SYMBOL_NO_FILE || why == SYMBOL_OTHER_BUILD)
        search->state = why;
}

static bool try_path(struct search *search, const char *path, struct elf_file *out)
{
    int error = elf_file_open(out, path);
    if (error != 0) {
        note_failure(search, reason(error));
        return false;
    }
    if (is_wanted_build(out, search->name)) {
        search->state = SYMBOL_FOUND;
        return true;
    }
    note_failure(search, SYMBOL_OTHER_BUILD);
    elf_file_close(out);
    return false;
}

/* "FOLDER/.build-id/ab/cdef…SUFFIX" */
static bool try_build_id(struct search *search, const char *folder, const char *suffix,
                         struct elf_file *out)
{
    char path[PATH_MAX], digits[2 * SYMBOL_BUILD_ID_BYTES + 1];
    size_t bytes = search->name->build_id_bytes;
    if (bytes < 2)
        return false;
    for (size_t i = 0; i < bytes; i++)
        snprintf(digits + 2 * i, 3, "%02x", search->name->build_id[i]);
    int length =
        snprintf(path, sizeof path, "%s/.build-id/%.2s/%s%s", folder, digits, digits + 2, suffix);
    return length > 0 && (size_t)length < sizeof path && try_path(search, path, out);
}

static bool try_in(struct search *search, const char *folder, const char *name, const char *suffix,
                   struct elf_file *out)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s%s", folder, name, suffix);
    return length > 0 && (size_t)length < sizeof path && try_path(search, path, out);
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/* At its own path, then in the folders: by build id, by path, by name. */
static bool find_object(struct search *search, const char *const *folders, struct elf_file *out)
{
    const char *path = search->name->path;
    if (path[0] == '/' && try_path(search, path, out))
        return true;
    for (size_t i = 0; folders[i] != NULL; i++)
        if (try_build_id(search, folders[i], "", out) ||
            (path[0] == '/' && try_in(search, folders[i], path + 1, "", out)) ||
            try_in(search, folders[i], file_name(path), "", out))
            return true;
    return false;
}

/* ---- separate debug files -------------------------------------------------------------- */

static uint32_t checksum(const uint8_t *data, size_t bytes)
{
    uint32_t table[256], sum = UINT32_MAX;
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int bit = 0; bit < 8; bit++)
            table[i] = table[i] >> 1 ^ (table[i] & 1 ? CHECKSUM_POLYNOMIAL : 0);
    }
    for (size_t i = 0; i < bytes; i++)
        sum = table[(sum ^ data[i]) & 0xff] ^ sum >> 8;
    return ~sum;
}

/* Without a build id the link's checksum of the whole file is what tells that it belongs. */
static bool is_linked_file(const struct elf_file *file, const struct module_name *name,
                           uint32_t wanted)
{
    if (name->build_id_bytes > 0)
        return true;
    size_t bytes = 0;
    const char *data = elf_rawfile(file->elf, &bytes);
    return data != NULL && checksum((const uint8_t *)data, bytes) == wanted;
}

/* By .gnu_debuglink of the object: beside it, in .debug there, in the debug folders. */
static bool find_linked(struct search *search, const struct elf_file *object,
                        const char *const *folders, struct elf_file *out)
{
    GElf_Word sum = 0;
    const char *link = dwelf_elf_gnu_debuglink(object->elf, &sum);
    char own[PATH_MAX];
    if (link == NULL || strchr(link, '/') != NULL)
        return false;
    snprintf(own, sizeof own, "%s", search->name->path);
    char *slash = strrchr(own, '/');
    if (slash == NULL || own[0] != '/')
        return false;
    slash[1] = 0;
    bool found = try_in(search, own, link, "", out) || try_in(search, own, ".debug/", link, out);
    for (size_t i = 0; !found && folders[i] != NULL; i++)
        found = try_in(search, folders[i], own + 1, link, out) ||
                try_in(search, folders[i], link, "", out);
    if (!found)
        found = try_in(search, SYSTEM_DEBUG_FOLDER, own + 1, link, out);
    if (found && !is_linked_file(out, search->name, sum)) {
        elf_file_close(out);
        return false;
    }
    return found;
}

static void find_debug(struct module_files *files, const struct module_name *name,
                       const char *const *folders)
{
    struct search search = {name, SYMBOL_NO_FILE};
    bool found = false;
    for (size_t i = 0; !found && folders[i] != NULL; i++)
        found = try_build_id(&search, folders[i], ".debug", &files->debug) ||
                try_in(&search, folders[i], file_name(name->path), ".debug", &files->debug);
    if (!found)
        found = try_build_id(&search, SYSTEM_DEBUG_FOLDER, ".debug", &files->debug);
    if (!found && files->object.fd >= 0)
        find_linked(&search, &files->object, folders, &files->debug);
}

/* Symbols that some distributions pack into the object itself. */
static void unpack_symbols(struct module_files *files)
{
    Elf_Data *data =
        files->object.fd < 0 ? NULL : elf_file_section(&files->object, ".gnu_debugdata");
    int fd = data == NULL ? -1 : memfd_create("vramscope-symbols", MFD_CLOEXEC);
    if (fd < 0)
        return;
    if (write(fd, data->d_buf, data->d_size) != (ssize_t)data->d_size)
        close(fd);
    else
        elf_file_open_packed(&files->packed, fd);
}

/* ---- all of it ----------------------------------------------------------------------------- */

static bool has_section(const struct elf_file *file, const char *name)
{
    return file->fd >= 0 && elf_file_section(file, name) != NULL;
}

void module_files_open(struct module_files *files, const struct module_name *name,
                       const char *const *folders, bool plain)
{
    struct search search = {name, SYMBOL_NO_FILE};
    *files = (struct module_files){.object.fd = -1, .debug.fd = -1, .packed.fd = -1};
    find_object(&search, folders, &files->object);
    if (!has_section(&files->object, ".debug_info"))
        find_debug(files, name, folders);
    unpack_symbols(files);
    files->state = files->debug.fd >= 0 ? SYMBOL_FOUND : search.state;
    if (plain || files->state != SYMBOL_FOUND)
        return;
    if (files->debug.fd >= 0)
        files->dwarf = dwarf_info_open(&files->debug);
    if (files->dwarf == NULL && files->object.fd >= 0)
        files->dwarf = dwarf_info_open(&files->object);
}

void module_files_close(struct module_files *files)
{
    dwarf_info_close(files->dwarf);
    files->dwarf = NULL;
    elf_file_close(&files->packed);
    elf_file_close(&files->debug);
    elf_file_close(&files->object);
    files->state = SYMBOL_NO_FILE;
}
