/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the dynamic symbol table of an object that is loaded in this process:
 * what dlsym would find in it, without dlsym. Only from a dl_iterate_phdr
 * callback, where the object cannot be unmapped.
 */
#ifndef VS_SHIM_ELF_OBJECT_H
#define VS_SHIM_ELF_OBJECT_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct elf_object {
    uintptr_t base;
    const ElfW(Dyn) * dynamic;
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *gnu_hash;
    const uint32_t *sysv_hash;
    const ElfW(Half) * symbol_versions;
    const char *soname; /* NULL: none */
    uintptr_t version_definitions;
    uintptr_t version_needs;
    uintptr_t first_byte; /* of an executable segment */
};

/* False when the object has no symbol table. */
bool elf_object_open(struct elf_object *object, const struct dl_phdr_info *info);
/* The same from the loader's own list (struct link_map); first_byte stays 0. */
bool elf_object_open_map(struct elf_object *object, const struct link_map *map);

/*
 * Address of the default definition of `name`, 0 when there is none. `version`
 * gets the definition's version, NULL when the object's symbols have none.
 */
uintptr_t elf_object_find(const struct elf_object *object, const char *name, uint32_t gnu_hash,
                          const char **version);

/* The same for a variable. */
uintptr_t elf_object_find_data(const struct elf_object *object, const char *name,
                               uint32_t gnu_hash);

/* The first library it needs, by versioned reference or else by name, that begins with `prefix`. */
const char *elf_object_needs(const struct elf_object *object, const char *prefix);

#endif
