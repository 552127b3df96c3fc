/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the dynamic linker's look-up that needs no lock: hash tables,
 * symbol versions and needed libraries of one loaded object.
 */
#include "elf_object.h"

#include <elf.h>
#include <stddef.h>

#include "text.h"

#define VERSION_HIDDEN 0x8000U
#define VERSION_FIRST_NAMED 2U /* 0 local, 1 unversioned global */

static uint32_t sysv_hash(const char *name)
{
    uint32_t hash = 0;
    for (const unsigned char *c = (const unsigned char *)name; *c != '\0'; c++) {
        hash = (hash << 4) + *c;
        uint32_t high = hash & 0xf0000000U;
        hash = (hash ^ (high >> 24)) & ~high;
    }
    return hash;
}

/* Most dynamic sections are relocated in place; read-only ones (the vDSO's) are not. */
static uintptr_t dynamic_address(const struct elf_object *object, const ElfW(Dyn) * entry)
{
    uintptr_t address = entry->d_un.d_ptr;
    return address < object->base ? address + object->base : address;
}

static void note_entry(struct elf_object *object, const ElfW(Dyn) * entry)
{
    uintptr_t address = dynamic_address(object, entry);
    switch (entry->d_tag) {
    case DT_SYMTAB:
        object->symbols = (const ElfW(Sym) *)address;
        break;
    case DT_STRTAB:
        object->strings = (const char *)address;
        break;
    case DT_GNU_HASH:
        object->gnu_hash = (const uint32_t *)address;
        break;
    case DT_HASH:
        object->sysv_hash = (const uint32_t *)address;
        break;
    case DT_VERSYM:
        object->symbol_versions = (const ElfW(Half) *)address;
        break;
    case DT_VERDEF:
        object->version_definitions = address;
        break;
    case DT_VERNEED:
        object->version_needs = address;
        break;
    default:
        break;
    }
}

static bool open_dynamic(struct elf_object *object)
{
    size_t soname = 0;
    if (object->dynamic == NULL) {
        return false;
    }
    for (const ElfW(Dyn) *entry = object->dynamic; entry->d_tag != DT_NULL; entry++) {
        note_entry(object, entry);
        if (entry->d_tag == DT_SONAME) {
            soname = entry->d_un.d_val;
        }
    }
    if (object->symbols == NULL || object->strings == NULL) {
        return false;
    }
    object->soname = soname != 0 ? object->strings + soname : NULL;
    return true;
}

bool elf_object_open(struct elf_object *object, const struct dl_phdr_info *info)
{
    *object = (struct elf_object){.base = info->dlpi_addr};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type == PT_DYNAMIC) {
            object->dynamic = (const ElfW(Dyn) *)(object->base + header->p_vaddr);
        } else if (header->p_type == PT_LOAD && (header->p_flags & PF_X) != 0 &&
                   object->first_byte == 0) {
            object->first_byte = object->base + header->p_vaddr;
        }
    }
    return open_dynamic(object);
}

bool elf_object_open_map(struct elf_object *object, const struct link_map *map)
{
    *object = (struct elf_object){.base = map->l_addr, .dynamic = map->l_ld};
    return open_dynamic(object);
}

/* A definition (of this type, or of one that nobody told) that others may bind to, by its default
 * version. */
static bool usable(const struct elf_object *object, uint32_t index, unsigned wanted_type)
{
    const ElfW(Sym) *symbol = &object->symbols[index];
    unsigned type = ELF64_ST_TYPE(symbol->st_info);
    unsigned binding = ELF64_ST_BIND(symbol->st_info);
    return symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0 &&
           (type == wanted_type || type == STT_NOTYPE) &&
           (binding == STB_GLOBAL || binding == STB_WEAK) &&
           (object->symbol_versions == NULL ||
            (object->symbol_versions[index] & VERSION_HIDDEN) == 0);
}

static bool named(const struct elf_object *object, uint32_t index, const char *name, unsigned type)
{
    return text_compare(object->strings + object->symbols[index].st_name, name) == 0 &&
           usable(object, index, type);
}

/* Table: buckets, first symbol, Bloom words, shift | Bloom filter | buckets | chains. */
static uint32_t find_gnu(const struct elf_object *object, const char *name, uint32_t hash,
                         unsigned type)
{
    const uint32_t *table = object->gnu_hash;
    uint32_t bucket_count = table[0];
    uint32_t first_symbol = table[1];
    uint32_t bloom_words = table[2];
    const ElfW(Addr) *bloom = (const ElfW(Addr) *)(table + 4);
    uint32_t word_bits = sizeof(ElfW(Addr)) * 8;
    if (bucket_count == 0 || bloom_words == 0) {
        return 0;
    }
    ElfW(Addr) word = bloom[(hash / word_bits) % bloom_words];
    if ((word >> (hash % word_bits) & word >> ((hash >> table[3]) % word_bits) & 1) == 0) {
        return 0;
    }
    const uint32_t *buckets = (const uint32_t *)(bloom + bloom_words);
    const uint32_t *chains = buckets + bucket_count;
    uint32_t index = buckets[hash % bucket_count];
    if (index < first_symbol) {
        return 0;
    }
    for (;; index++) {
        uint32_t link = chains[index - first_symbol];
        if ((link | 1U) == (hash | 1U) && named(object, index, name, type)) {
            return index;
        }
        if ((link & 1U) != 0) {
            return 0;
        }
    }
}

static uint32_t find_sysv(const struct elf_object *object, const char *name, unsigned type)
{
    uint32_t bucket_count = object->sysv_hash[0];
    const uint32_t *buckets = object->sysv_hash + 2;
    const uint32_t *chains = buckets + bucket_count;
    if (bucket_count == 0) {
        return 0;
    }
    for (uint32_t index = buckets[sysv_hash(name) % bucket_count]; index != 0;
         index = chains[index]) {
        if (named(object, index, name, type)) {
            return index;
        }
    }
    return 0;
}

static const char *version_name(const struct elf_object *object, uint32_t index)
{
    if (object->symbol_versions == NULL || object->version_definitions == 0) {
        return NULL;
    }
    unsigned wanted = object->symbol_versions[index] & ~VERSION_HIDDEN;
    if (wanted < VERSION_FIRST_NAMED) {
        return NULL;
    }
    uintptr_t at = object->version_definitions;
    for (;;) {
        const ElfW(Verdef) *definition = (const ElfW(Verdef) *)at;
        if (definition->vd_ndx == wanted) {
            const ElfW(Verdaux) *name = (const ElfW(Verdaux) *)(at + definition->vd_aux);
            return object->strings + name->vda_name;
        }
        if (definition->vd_next == 0) {
            return NULL;
        }
        at += definition->vd_next;
    }
}

static uint32_t find(const struct elf_object *object, const char *name, uint32_t hash,
                     unsigned type)
{
    if (object->gnu_hash != NULL) {
        return find_gnu(object, name, hash, type);
    }
    return object->sysv_hash != NULL ? find_sysv(object, name, type) : 0;
}

uintptr_t elf_object_find_data(const struct elf_object *object, const char *name, uint32_t gnu_hash)
{
    uint32_t index = find(object, name, gnu_hash, STT_OBJECT);
    return index != 0 ? object->base + object->symbols[index].st_value : 0;
}

uintptr_t elf_object_find(const struct elf_object *object, const char *name, uint32_t gnu_hash,
                          const char **version)
{
    uint32_t index = find(object, name, gnu_hash, STT_FUNC);
    if (index == 0) {
        return 0;
    }
    *version = version_name(object, index);
    return object->base + object->symbols[index].st_value;
}

static const char *version_needed(const struct elf_object *object, const char *prefix)
{
    uintptr_t at = object->version_needs;
    while (at != 0) {
        const ElfW(Verneed) *need = (const ElfW(Verneed) *)at;
        const char *file = object->strings + need->vn_file;
        if (text_begins_with(file, prefix)) {
            return file;
        }
        at = need->vn_next != 0 ? at + need->vn_next : 0;
    }
    return NULL;
}

const char *elf_object_needs(const struct elf_object *object, const char *prefix)
{
    const char *file = version_needed(object, prefix);
    for (const ElfW(Dyn) *entry = object->dynamic; file == NULL && entry->d_tag != DT_NULL;
         entry++) {
        if (entry->d_tag == DT_NEEDED &&
            text_begins_with(object->strings + entry->d_un.d_val, prefix)) {
            file = object->strings + entry->d_un.d_val;
        }
    }
    return file;
}
