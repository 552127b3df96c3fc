/* SPDX-License-Identifier: Apache-2.0 */
/* The functions behind the ones we interpose, found without dlsym: see real_dl.h. */
#include "real_dl.h"

#include <link.h>
#include <stddef.h>
#include <stdint.h>

#include "elf_object.h"

/* An address inside this library. */
static const char ourselves;

void *(*shim_real_dlsym_ptr)(void *handle, const char *name);

struct next_search {
    const char *name;
    uint32_t gnu_hash;
    bool behind_us;
    uintptr_t elsewhere; /* the first definition before us */
    uintptr_t found;
};

static uint32_t gnu_hash(const char *name)
{
    uint32_t hash = 5381;
    for (const unsigned char *c = (const unsigned char *)name; *c != '\0'; c++) {
        hash = hash * 33 + *c;
    }
    return hash;
}

static bool is_this_library(const struct dl_phdr_info *info)
{
    uintptr_t address = (uintptr_t)&ourselves;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_LOAD && address >= start && address - start < header->p_memsz) {
            return true;
        }
    }
    return false;
}

static int look_into(struct dl_phdr_info *info, size_t size, void *context)
{
    struct next_search *search = context;
    struct elf_object object;
    const char *version;
    (void)size;

    if (is_this_library(info)) {
        search->behind_us = true;
        return 0;
    }
    if (!elf_object_open(&object, info)) {
        return 0;
    }
    uintptr_t address = elf_object_find(&object, search->name, search->gnu_hash, &version);
    if (search->behind_us) {
        search->found = address;
    } else if (search->elsewhere == 0) {
        search->elsewhere = address;
    }
    return search->found != 0;
}

void *real_next(const char *name)
{
    struct next_search search = {.name = name, .gnu_hash = gnu_hash(name)};
    dl_iterate_phdr(look_into, &search);
    return (void *)(search.found != 0 ? search.found : search.elsewhere);
}

bool real_defined_before(const char *name)
{
    struct next_search search = {.name = name, .gnu_hash = gnu_hash(name)};
    dl_iterate_phdr(look_into, &search);
    return search.elsewhere != 0;
}

extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

/*
 * A sanitizer's runtime comes here before any constructor, to look up the very
 * functions that it stands in front of (dl_iterate_phdr is one): nothing of libc's
 * can be called yet. Nobody loads or unloads then, so the loader's list may be
 * read without its lock.
 */
static void *dlsym_at_start(void)
{
    bool behind_us = false;
    for (const struct link_map *map = _r_debug.r_map; map != NULL; map = map->l_next) {
        struct elf_object object;
        const char *version;
        if (map->l_ld == _DYNAMIC) {
            behind_us = true;
        } else if (behind_us && elf_object_open_map(&object, map)) {
            uintptr_t address = elf_object_find(&object, "dlsym", gnu_hash("dlsym"), &version);
            if (address != 0) {
                return (void *)address;
            }
        }
    }
    return NULL;
}

void real_dl_load(void)
{
    void *(*function)(void *, const char *);
    if (__atomic_load_n(&shim_real_dlsym_ptr, __ATOMIC_ACQUIRE) == NULL) {
        void *found = dlsym_at_start();
        *(void **)&function = found != NULL ? found : real_next("dlsym");
        __atomic_store_n(&shim_real_dlsym_ptr, function, __ATOMIC_RELEASE);
    }
}

void *real_dlsym(void *handle, const char *name)
{
    real_dl_load();
    return shim_real_dlsym_ptr != NULL ? shim_real_dlsym_ptr(handle, name) : NULL;
}
