/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The little that doctor wants to know of an ELF file: is it static or of 32
 * bits, what does it need, which dynamic symbols does it define or ask for. The
 * file is not trusted: every offset is checked against its size.
 */
#include "doctor_elf.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* `count` items of `item` bytes at `offset` lie inside the file. */
static const void *inside(const struct elf_file *file, uint64_t offset, uint64_t item,
                          uint64_t count)
{
    if (offset > file->size || (item != 0 && count > (file->size - offset) / item))
        return NULL;
    return file->bytes + offset;
}

static const Elf64_Phdr *program_headers(const struct elf_file *file, unsigned *count)
{
    const Elf64_Ehdr *header = inside(file, 0, sizeof(*header), 1);
    *count = 0;
    if (header == NULL || !file->is_64_bit || header->e_phentsize != sizeof(Elf64_Phdr))
        return NULL;
    const Elf64_Phdr *found = inside(file, header->e_phoff, sizeof(*found), header->e_phnum);
    if (found != NULL)
        *count = header->e_phnum;
    return found;
}

static const Elf64_Phdr *find_segment(const struct elf_file *file, uint32_t type)
{
    unsigned count;
    const Elf64_Phdr *segments = program_headers(file, &count);
    for (unsigned i = 0; i < count; i++)
        if (segments[i].p_type == type)
            return &segments[i];
    return NULL;
}

static enum elf_kind find_kind(const struct elf_file *file)
{
    const Elf64_Ehdr *header = inside(file, 0, sizeof(*header), 1);
    bool interpreter = find_segment(file, PT_INTERP) != NULL;
    if (interpreter)
        return ELF_DYNAMIC;
    if (header->e_type == ET_DYN && find_segment(file, PT_DYNAMIC) != NULL && header->e_entry == 0)
        return ELF_LIBRARY;
    /* A static program may be position independent and then has a dynamic segment
     * too. */
    return header->e_type == ET_EXEC || header->e_entry != 0 ? ELF_STATIC : ELF_LIBRARY;
}

int elf_open(const char *path, struct elf_file *file)
{
    struct stat about;
    *file = (struct elf_file){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size == 0) {
        close(fd);
        return -EINVAL;
    }
    void *bytes = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    int error = errno;
    close(fd);
    if (bytes == MAP_FAILED)
        return -error;
    file->bytes = bytes;
    file->size = (size_t)about.st_size;
    if (file->size < sizeof(Elf32_Ehdr) || memcmp(bytes, ELFMAG, SELFMAG) != 0)
        return 0;
    file->is_64_bit = file->bytes[EI_CLASS] == ELFCLASS64 && file->size >= sizeof(Elf64_Ehdr);
    file->kind = file->is_64_bit ? find_kind(file) : ELF_DYNAMIC;
    return 0;
}

void elf_close(struct elf_file *file)
{
    if (file->bytes != NULL)
        munmap((void *)(uintptr_t)file->bytes, file->size);
    *file = (struct elf_file){0};
}

/* File position of a virtual address, through the loaded segments. */
static bool file_position(const struct elf_file *file, uint64_t address, uint64_t *position)
{
    unsigned count;
    const Elf64_Phdr *segments = program_headers(file, &count);
    for (unsigned i = 0; i < count; i++) {
        const Elf64_Phdr *segment = &segments[i];
        if (segment->p_type != PT_LOAD || address < segment->p_vaddr ||
            address - segment->p_vaddr >= segment->p_filesz)
            continue;
        *position = segment->p_offset + (address - segment->p_vaddr);
        return *position < file->size;
    }
    return false;
}

static const Elf64_Dyn *dynamic_table(const struct elf_file *file, uint64_t *count)
{
    const Elf64_Phdr *segment = find_segment(file, PT_DYNAMIC);
    *count = segment == NULL ? 0 : segment->p_filesz / sizeof(Elf64_Dyn);
    return segment == NULL ? NULL : inside(file, segment->p_offset, sizeof(Elf64_Dyn), *count);
}

/* Value of one dynamic entry; false when there is none. */
static bool dynamic_value(const struct elf_file *file, int64_t tag, uint64_t *value)
{
    uint64_t count;
    const Elf64_Dyn *table = dynamic_table(file, &count);
    for (uint64_t i = 0; table != NULL && i < count && table[i].d_tag != DT_NULL; i++) {
        if (table[i].d_tag == tag) {
            *value = table[i].d_un.d_val;
            return true;
        }
    }
    return false;
}

/* A string of the dynamic string table; NULL when it does not end inside the
 * file. */
static const char *dynamic_string(const struct elf_file *file, uint64_t offset)
{
    uint64_t address;
    uint64_t position;
    if (!dynamic_value(file, DT_STRTAB, &address) || !file_position(file, address, &position) ||
        offset > file->size - position)
        return NULL;
    const char *text = (const char *)file->bytes + position + offset;
    size_t room = file->size - (size_t)(position + offset);
    return memchr(text, '\0', room) == NULL ? NULL : text;
}

int elf_each_needed(const struct elf_file *file, int (*visit)(const char *name, void *context),
                    void *context)
{
    uint64_t count;
    const Elf64_Dyn *table = dynamic_table(file, &count);
    for (uint64_t i = 0; table != NULL && i < count && table[i].d_tag != DT_NULL; i++) {
        if (table[i].d_tag != DT_NEEDED)
            continue;
        const char *name = dynamic_string(file, table[i].d_un.d_val);
        int result = name == NULL ? 0 : visit(name, context);
        if (result != 0)
            return result;
    }
    return 0;
}

static const Elf64_Shdr *find_section(const struct elf_file *file, uint32_t type)
{
    const Elf64_Ehdr *header = inside(file, 0, sizeof(*header), 1);
    if (header == NULL || !file->is_64_bit || header->e_shentsize != sizeof(Elf64_Shdr))
        return NULL;
    const Elf64_Shdr *sections = inside(file, header->e_shoff, sizeof(*sections), header->e_shnum);
    for (unsigned i = 0; sections != NULL && i < header->e_shnum; i++)
        if (sections[i].sh_type == type)
            return &sections[i];
    return NULL;
}

int elf_each_symbol(const struct elf_file *file,
                    int (*visit)(const char *name, bool defined, void *context), void *context)
{
    const Elf64_Shdr *section = find_section(file, SHT_DYNSYM);
    if (section == NULL)
        return 0;
    uint64_t count = section->sh_size / sizeof(Elf64_Sym);
    const Elf64_Sym *symbols = inside(file, section->sh_offset, sizeof(*symbols), count);
    for (uint64_t i = 1; symbols != NULL && i < count; i++) {
        const char *name = dynamic_string(file, symbols[i].st_name);
        int result = name == NULL ? 0 : visit(name, symbols[i].st_shndx != SHN_UNDEF, context);
        if (result != 0)
            return result;
    }
    return 0;
}

int elf_each_version(const struct elf_file *file, int (*visit)(const char *version, void *context),
                     void *context)
{
    const Elf64_Shdr *section = find_section(file, SHT_GNU_verneed);
    uint64_t at = section == NULL ? 0 : section->sh_offset;
    for (uint32_t left = section == NULL ? 0 : section->sh_info; left > 0; left--) {
        const Elf64_Verneed *need = inside(file, at, sizeof(*need), 1);
        if (need == NULL)
            return 0;
        uint64_t entry_at = at + need->vn_aux;
        for (unsigned i = 0; i < need->vn_cnt; i++) {
            const Elf64_Vernaux *entry = inside(file, entry_at, sizeof(*entry), 1);
            const char *name = entry == NULL ? NULL : dynamic_string(file, entry->vna_name);
            int result = name == NULL ? 0 : visit(name, context);
            if (result != 0 || entry == NULL)
                return result;
            entry_at += entry->vna_next;
        }
        at += need->vn_next;
    }
    return 0;
}

bool elf_holds(const struct elf_file *file, const char *text)
{
    return memmem(file->bytes, file->size, text, strlen(text)) != NULL;
}

struct wanted_symbol {
    const char *name;
    bool defined;
};

static int is_wanted(const char *name, bool defined, void *context)
{
    const struct wanted_symbol *wanted = context;
    return defined == wanted->defined && strcmp(name, wanted->name) == 0;
}

bool elf_has_symbol(const struct elf_file *file, const char *name, bool defined)
{
    struct wanted_symbol wanted = {name, defined};
    return elf_each_symbol(file, is_wanted, &wanted) != 0;
}
