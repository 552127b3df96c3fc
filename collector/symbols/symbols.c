/* SPDX-License-Identifier: Apache-2.0 */
/* Names of addresses: see symbols.h. */
#include "symbols.h"

#include <stdlib.h>
#include <string.h>

#include "demangle.h"

#define OPEN_MODULES 6U

struct open_module {
    char *path; /* NULL: free */
    uint8_t build_id[SYMBOL_BUILD_ID_BYTES];
    size_t build_id_bytes;
    bool plain;
    uint64_t used; /* when, as a count of questions */
    struct module_files files;
};

struct symbols {
    const char *const *folders;
    struct open_module modules[OPEN_MODULES];
    uint64_t questions;
};

struct symbols *symbols_new(const char *const *folders)
{
    struct symbols *symbols = calloc(1, sizeof *symbols);
    if (symbols != NULL)
        symbols->folders = folders;
    return symbols;
}

static void close_module(struct open_module *module)
{
    if (module->path == NULL)
        return;
    module_files_close(&module->files);
    free(module->path);
    module->path = NULL;
}

void symbols_close_all(struct symbols *symbols)
{
    for (size_t i = 0; i < OPEN_MODULES; i++)
        close_module(&symbols->modules[i]);
}

void symbols_drop_pages(const struct symbols *symbols)
{
    for (size_t i = 0; i < OPEN_MODULES; i++) {
        const struct open_module *module = &symbols->modules[i];
        if (module->path == NULL)
            continue;
        elf_file_drop_pages(&module->files.object);
        elf_file_drop_pages(&module->files.debug);
    }
}

static bool is_module(const struct open_module *module, const struct module_name *name, bool plain)
{
    return module->path != NULL && strcmp(module->path, name->path) == 0 &&
           module->plain == plain && module->build_id_bytes == name->build_id_bytes &&
           memcmp(module->build_id, name->build_id, name->build_id_bytes) == 0;
}

/* The module's place, opened if need be. NULL without memory. */
static struct open_module *module_of(struct symbols *symbols, const struct module_name *name,
                                     bool plain)
{
    struct open_module *oldest = &symbols->modules[0];
    symbols->questions++;
    for (size_t i = 0; i < OPEN_MODULES; i++) {
        struct open_module *module = &symbols->modules[i];
        if (is_module(module, name, plain)) {
            module->used = symbols->questions;
            return module;
        }
        if (oldest->path != NULL && (module->path == NULL || module->used < oldest->used))
            oldest = module;
    }
    close_module(oldest);
    oldest->path = strdup(name->path);
    if (oldest->path == NULL)
        return NULL;
    memcpy(oldest->build_id, name->build_id, sizeof oldest->build_id);
    oldest->build_id_bytes = name->build_id_bytes;
    oldest->plain = plain;
    oldest->used = symbols->questions;
    module_files_open(&oldest->files, name, symbols->folders, plain);
    return oldest;
}

/* ---- naming -------------------------------------------------------------------------- */

/* From the fullest table that knows the address. */
static const char *symbol_at(struct module_files *files, uint64_t address)
{
    struct elf_file *const by_fullness[] = {&files->debug, &files->object, &files->packed};
    const char *found = NULL;
    for (size_t i = 0; i < 3 && found == NULL; i++)
        if (by_fullness[i]->fd >= 0)
            found = elf_file_symbol(by_fullness[i], address, true);
    if (found == NULL && files->object.fd >= 0)
        found = elf_file_symbol(&files->object, address, false);
    return found;
}

/* A symbol's name without its version ("memcpy@@GLIBC_2.14"). */
static void write_symbol(const char *symbol, char *out, size_t out_bytes)
{
    size_t bytes = strcspn(symbol, "@");
    char *bare = bytes > 0 ? strndup(symbol, bytes) : NULL;
    demangle(bare == NULL ? symbol : bare, out, out_bytes);
    free(bare);
}

/* A path that is too long loses its beginning: the file's name is at its end. */
static void write_file(const char *path, struct symbol_text *out)
{
    size_t bytes = strlen(path), room = sizeof out->file - 1;
    clean_text(path + (bytes > room ? bytes - room : 0), bytes > room ? room : bytes, out->file,
               sizeof out->file);
}

static bool is_mangled(const char *name)
{
    return name != NULL && (strncmp(name, "_Z", 2) == 0 || strncmp(name, "_R", 2) == 0);
}

/*
 * The name to show. Debug information comes first; the symbol (NULL: an inlined
 * call has none) where it alone has scope and parameters, as for constructors,
 * and where it is what users call the function: malloc, not __libc_malloc.
 */
static const char *choose_name(const struct dwarf_frame *frame, const char *symbol)
{
    if (is_mangled(frame->linkage_name))
        return frame->linkage_name;
    if (frame->name == NULL)
        return symbol != NULL ? symbol : frame->linkage_name;
    bool shorter = symbol != NULL && strspn(symbol, "_") < strspn(frame->name, "_");
    return is_mangled(symbol) || shorter ? symbol : frame->name;
}

static void write_frame(const struct dwarf_frame *frame, const char *symbol,
                        struct symbol_text *out)
{
    const char *name = choose_name(frame, symbol);
    out->function[0] = out->file[0] = 0;
    out->line = frame->line;
    if (name != NULL)
        write_symbol(name, out->function, sizeof out->function);
    if (frame->file != NULL)
        write_file(frame->file, out);
}

static uint32_t by_dwarf(struct module_files *files, uint64_t address, struct symbol_text *out)
{
    struct dwarf_frame frames[SYMBOL_FRAMES_MAX];
    size_t count = files->dwarf == NULL
                       ? 0
                       : dwarf_info_find(files->dwarf, address, frames, SYMBOL_FRAMES_MAX);
    for (size_t i = 0; i < count; i++) {
        bool outermost = i + 1 == count;
        write_frame(&frames[i], outermost ? symbol_at(files, address) : NULL, &out[i]);
    }
    return (uint32_t)count;
}

static uint32_t by_symbol(struct module_files *files, uint64_t address, struct symbol_text *out)
{
    static const struct dwarf_frame nothing = {0};
    const char *symbol = symbol_at(files, address);
    if (symbol == NULL)
        return 0;
    write_frame(&nothing, symbol, out);
    return 1;
}

enum symbol_status symbols_find(struct symbols *symbols, const struct module_name *name, bool plain,
                                uint64_t address, struct symbol_text *frames, uint32_t *count)
{
    struct open_module *module = module_of(symbols, name, plain);
    *count = 0;
    if (module == NULL)
        return SYMBOL_UNREADABLE;
    if (module->files.state != SYMBOL_FOUND)
        return module->files.state;
    *count = by_dwarf(&module->files, address, frames);
    if (*count == 0)
        *count = by_symbol(&module->files, address, frames);
    return *count > 0 ? SYMBOL_FOUND : SYMBOL_NOTHING_KNOWN;
}
