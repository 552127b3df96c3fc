/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One ELF file: who it is (build id), where its code lies, which symbol holds an
 * address. Symbol tables are indexed once, sorted by address. Addresses are the
 * file's own (what a module's load bias is added to).
 */
#ifndef VS_SYMBOLS_ELF_FILE_H
#define VS_SYMBOLS_ELF_FILE_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ELF_CODE_RANGES_MAX 16U

struct elf_range {
    uint64_t start, end;
};

struct elf_symbol {
    uint64_t start, end;
    uint64_t reach; /* the highest end up to and including this symbol */
    uint32_t index;
    bool sized; /* its end is its own, not where the next one begins */
};

struct elf_symbols {
    struct elf_symbol *sorted;
    size_t count;
    Elf_Scn *section; /* NULL: no such table */
};

struct elf_file {
    int fd;
    Elf *elf;
    void *mapped; /* the whole file, where it is a mapping of it; NULL: libelf has read it */
    size_t mapped_bytes;
    struct elf_range code[ELF_CODE_RANGES_MAX];
    size_t code_count;
    bool indexed;
    struct elf_symbols full, dynamic; /* .symtab, .dynsym */
};

/* 0, or a negative errno value: -ENOEXEC for what is not an ELF file. */
int elf_file_open(struct elf_file *file, const char *path);
/* The same for a packed file (xz and the like), which is unpacked into memory. Takes over `fd`. */
int elf_file_open_packed(struct elf_file *file, int fd);
void elf_file_close(struct elf_file *file);

/* False when the file has none. */
bool elf_file_build_id(const struct elf_file *file, const void **id, size_t *bytes);

bool elf_file_is_code(const struct elf_file *file, uint64_t address);

/*
 * Lets go of the file's pages that were touched: they come back from the page
 * cache when they are needed. So that a walk through a large file stays small.
 */
void elf_file_drop_pages(const struct elf_file *file);

/* A section's bytes, or NULL. */
Elf_Data *elf_file_section(const struct elf_file *file, const char *name);

/*
 * Name of the function that holds `address` (owned by the file), NULL none.
 * `full`: from .symtab, else from .dynsym.
 */
const char *elf_file_symbol(struct elf_file *file, uint64_t address, bool full);

#endif
