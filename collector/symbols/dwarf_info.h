/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug information of one file: the functions at an address, inlined ones
 * first, with their source lines. Compilation units are found by an index of
 * their address ranges (files without .debug_aranges have none of their own), and
 * each unit's functions are indexed when it is first asked.
 */
#ifndef VS_SYMBOLS_DWARF_INFO_H
#define VS_SYMBOLS_DWARF_INFO_H

#include <stddef.h>
#include <stdint.h>

#include "elf_file.h"

/* One function at an address; texts are the file's own and live as long as it is open. */
struct dwarf_frame {
    const char *linkage_name; /* NULL: has none, or is C */
    const char *name;         /* NULL: not known */
    const char *file;         /* NULL: not known */
    uint32_t line;
};

struct dwarf_info;

/* NULL: the file has no debug information. `file` must outlive it. */
struct dwarf_info *dwarf_info_open(const struct elf_file *file);
void dwarf_info_close(struct dwarf_info *info);

/*
 * Frames at `address`, the innermost first; the last one is the function that
 * really is there, or a frame with only a line where functions are not described.
 * Returns their number, 0 when nothing is known.
 */
size_t dwarf_info_find(struct dwarf_info *info, uint64_t address, struct dwarf_frame *frames,
                       size_t max);

#endif
