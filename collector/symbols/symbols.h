/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an address of a module to names: debug information first, else the symbol
 * tables. Few modules are open at a time, the one used longest ago is closed
 * first, so that memory stays bounded.
 */
#ifndef VS_SYMBOLS_SYMBOLS_H
#define VS_SYMBOLS_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "../symbol_wire.h"
#include "module_files.h"

struct symbol_text {
    uint32_t line; /* 0 not known */
    char function[SYMBOL_FUNCTION_BYTES];
    char file[SYMBOL_FILE_BYTES];
};

struct symbols;

/* `folders` as in module_files_open; it must outlive the result. NULL without memory. */
struct symbols *symbols_new(const char *const *folders);

/* Frames at an address, the innermost first: at most SYMBOL_FRAMES_MAX. Other than FOUND: none. */
enum symbol_status symbols_find(struct symbols *symbols, const struct module_name *name, bool plain,
                                uint64_t address, struct symbol_text *frames, uint32_t *count);

/* Gives back all that was unpacked: modules are opened again when they are needed. */
void symbols_close_all(struct symbols *symbols);

/* Lets go of the pages of all open files. */
void symbols_drop_pages(const struct symbols *symbols);

#endif
