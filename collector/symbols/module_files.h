/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that describe one module: the object itself, its separate debug
 * file, the small symbol table packed into it. None is used unless its build id
 * is the module's. Nothing is asked of the network.
 */
#ifndef VS_SYMBOLS_MODULE_FILES_H
#define VS_SYMBOLS_MODULE_FILES_H

#include "../symbol_wire.h"
#include "dwarf_info.h"
#include "elf_file.h"

struct module_name {
    const char *path;
    uint8_t build_id[SYMBOL_BUILD_ID_BYTES];
    size_t build_id_bytes; /* 0: the module has none */
};

struct module_files {
    struct elf_file object;   /* fd -1: not found */
    struct elf_file debug;    /* separate debug file; fd -1: none */
    struct elf_file packed;   /* .gnu_debugdata; fd -1: none */
    struct dwarf_info *dwarf; /* of `debug` or `object`; NULL: none, or not wanted */
    enum symbol_status state; /* SYMBOL_FOUND: at least one file is open */
};

/* Folders to look in besides the module's own path, NULL at the end. */
void module_files_open(struct module_files *files, const struct module_name *name,
                       const char *const *folders, bool plain);
void module_files_close(struct module_files *files);

#endif
