/* SPDX-License-Identifier: Apache-2.0 */
/* ELF files and their symbol tables: see elf_file.h. */
#include "elf_file.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the file ------------------------------------------------------------------ */

static void note_code(struct elf_file *file)
{
    size_t count = 0;
    if (elf_getphdrnum(file->elf, &count) != 0)
        return;
    for (size_t i = 0; i < count && file->code_count < ELF_CODE_RANGES_MAX; i++) {
        GElf_Phdr header;
        uint64_t end;
        if (gelf_getphdr(file->elf, (int)i, &header) == NULL || header.p_type != PT_LOAD ||
            !(header.p_flags & PF_X) ||
            __builtin_add_overflow(header.p_vaddr, header.p_memsz, &end))
            continue;
        file->code[file->code_count++] = (struct elf_range){header.p_vaddr, end};
    }
}

static int take_elf(struct elf_file *file, int fd, Elf *elf)
{
    *file = (struct elf_file){.fd = fd, .elf = elf};
    if (file->elf == NULL || elf_kind(file->elf) != ELF_K_ELF) {
        elf_file_close(file);
        return -ENOEXEC;
    }
    note_code(file);
    return 0;
}

/* True when /proc/self/maps says that a mapping of this very file begins at `start`. */
static bool is_mapping(const void *start, ino_t inode)
{
    char line[512];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps != NULL && !found && fgets(line, sizeof line, maps) != NULL) {
        uintptr_t at;
        uint64_t number;
        found = sscanf(line, "%" SCNxPTR "-%*x %*s %*x %*x:%*x %" SCNu64, &at, &number) == 2 &&
                at == (uintptr_t)start && number == inode;
    }
    if (maps != NULL)
        fclose(maps);
    return found;
}

static void note_mapping(struct elf_file *file, ino_t inode)
{
    size_t bytes = 0;
    char *start = elf_rawfile(file->elf, &bytes);
    if (start == NULL || !is_mapping(start, inode))
        return;
    file->mapped = start;
    file->mapped_bytes = bytes;
}

void elf_file_drop_pages(const struct elf_file *file)
{
    if (file->mapped != NULL)
        madvise(file->mapped, file->mapped_bytes, MADV_DONTNEED);
}

int elf_file_open_packed(struct elf_file *file, int fd)
{
    elf_version(EV_CURRENT);
    return take_elf(file, fd, dwelf_elf_begin(fd));
}

int elf_file_open(struct elf_file *file, const char *path)
{
    struct stat status;
    *file = (struct elf_file){.fd = -1};
    /* Not to be held up by a pipe or a device of that name. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        close(fd);
        return -ENOEXEC;
    }
    elf_version(EV_CURRENT);
    /* Mapped for reading only: the pages stay the page cache's, however large the file is. */
    int error = take_elf(file, fd, elf_begin(fd, ELF_C_READ_MMAP, NULL));
    if (error == 0)
        note_mapping(file, status.st_ino);
    return error;
}

void elf_file_close(struct elf_file *file)
{
    free(file->full.sorted);
    free(file->dynamic.sorted);
    elf_end(file->elf);
    if (file->fd >= 0)
        close(file->fd);
    *file = (struct elf_file){.fd = -1};
}

bool elf_file_build_id(const struct elf_file *file, const void **id, size_t *bytes)
{
    ssize_t got = dwelf_elf_gnu_build_id(file->elf, id);
    *bytes = got > 0 ? (size_t)got : 0;
    return got > 0;
}

bool elf_file_is_code(const struct elf_file *file, uint64_t address)
{
    for (size_t i = 0; i < file->code_count; i++)
        if (address >= file->code[i].start && address < file->code[i].end)
            return true;
    return false;
}

Elf_Data *elf_file_section(const struct elf_file *file, const char *name)
{
    size_t names;
    if (elf_getshdrstrndx(file->elf, &names) != 0)
        return NULL;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(file->elf, section)) != NULL;) {
        GElf_Shdr header;
        const char *found = gelf_getshdr(section, &header) == NULL
                                ? NULL
                                : elf_strptr(file->elf, names, header.sh_name);
        if (found != NULL && strcmp(found, name) == 0 && header.sh_type != SHT_NOBITS)
            return elf_getdata(section, NULL);
    }
    return NULL;
}

/* ---- indexing a table -------------------------------------------------------------- */

static Elf_Scn *find_table(Elf *elf, uint32_t type)
{
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section)) != NULL;) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) != NULL && header.sh_type == type)
            return section;
    }
    return NULL;
}

/* End of the section a symbol lies in: nothing without a size of its own reaches beyond it. */
static uint64_t section_end(Elf *elf, const GElf_Sym *symbol)
{
    Elf_Scn *section = symbol->st_shndx < SHN_LORESERVE ? elf_getscn(elf, symbol->st_shndx) : NULL;
    GElf_Shdr header;
    uint64_t end;
    if (section == NULL || gelf_getshdr(section, &header) == NULL ||
        !(header.sh_flags & SHF_EXECINSTR) ||
        __builtin_add_overflow(header.sh_addr, header.sh_size, &end))
        return 0;
    return end;
}

static bool is_function(const struct elf_file *file, const GElf_Sym *symbol)
{
    unsigned char type = GELF_ST_TYPE(symbol->st_info);
    return (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE) &&
           symbol->st_shndx != SHN_UNDEF && symbol->st_name != 0 &&
           elf_file_is_code(file, symbol->st_value);
}

static int by_start(const void *left, const void *right)
{
    const struct elf_symbol *a = left, *b = right;
    return a->start != b->start ? (a->start < b->start ? -1 : 1)
                                : (a->index > b->index) - (a->index < b->index);
}

/* A symbol without a size reaches to the next one, at most to the end of its section. */
static void close_gaps(struct elf_symbols *symbols)
{
    uint64_t next = UINT64_MAX;
    for (size_t i = symbols->count; i-- > 0;) {
        struct elf_symbol *symbol = &symbols->sorted[i];
        if (i + 1 < symbols->count && symbols->sorted[i + 1].start != symbol->start)
            next = symbols->sorted[i + 1].start;
        if (!symbol->sized && symbol->end > next)
            symbol->end = next;
    }
    uint64_t reach = 0;
    for (size_t i = 0; i < symbols->count; i++) {
        if (symbols->sorted[i].end > reach)
            reach = symbols->sorted[i].end;
        symbols->sorted[i].reach = reach;
    }
}

static void add_symbol(struct elf_symbols *symbols, Elf *elf, const GElf_Sym *symbol,
                       uint32_t index)
{
    struct elf_symbol added = {
        .start = symbol->st_value, .index = index, .sized = symbol->st_size > 0};
    if (!added.sized)
        added.end = section_end(elf, symbol);
    else if (__builtin_add_overflow(added.start, symbol->st_size, &added.end))
        return;
    if (added.end > added.start)
        symbols->sorted[symbols->count++] = added;
}

static void index_table(const struct elf_file *file, uint32_t type, struct elf_symbols *symbols)
{
    symbols->section = find_table(file->elf, type);
    Elf_Data *data = symbols->section == NULL ? NULL : elf_getdata(symbols->section, NULL);
    size_t entry = gelf_fsize(file->elf, ELF_T_SYM, 1, EV_CURRENT), functions = 0;
    size_t count = data == NULL || entry == 0 ? 0 : data->d_size / entry;
    GElf_Sym symbol;
    for (size_t i = 0; i < count && i <= INT32_MAX; i++)
        functions += gelf_getsym(data, (int)i, &symbol) != NULL && is_function(file, &symbol);
    symbols->sorted = functions == 0 ? NULL : calloc(functions, sizeof *symbols->sorted);
    if (symbols->sorted == NULL)
        return;
    for (size_t i = 0; i < count && symbols->count < functions; i++)
        if (gelf_getsym(data, (int)i, &symbol) != NULL && is_function(file, &symbol))
            add_symbol(symbols, file->elf, &symbol, (uint32_t)i);
    qsort(symbols->sorted, symbols->count, sizeof *symbols->sorted, by_start);
    close_gaps(symbols);
}

/* ---- looking up ---------------------------------------------------------------------- */

struct named_symbol {
    const char *name;
    bool weak, local;
    size_t underscores;
};

static struct named_symbol name_of(const struct elf_file *file, const struct elf_symbols *symbols,
                                   const struct elf_symbol *symbol)
{
    struct named_symbol named = {NULL, false, false, 0};
    GElf_Shdr header;
    GElf_Sym entry;
    Elf_Data *data = elf_getdata(symbols->section, NULL);
    if (gelf_getshdr(symbols->section, &header) == NULL ||
        gelf_getsym(data, (int)symbol->index, &entry) == NULL)
        return named;
    named.name = elf_strptr(file->elf, header.sh_link, entry.st_name);
    named.weak = GELF_ST_BIND(entry.st_info) == STB_WEAK;
    named.local = GELF_ST_BIND(entry.st_info) == STB_LOCAL;
    named.underscores = named.name == NULL ? 0 : strspn(named.name, "_");
    return named;
}

/* Of several names for one function: the one that its users know. */
static bool better(const struct named_symbol *a, const struct named_symbol *b)
{
    if (a->name == NULL || b->name == NULL)
        return a->name != NULL;
    if (a->local != b->local)
        return b->local;
    if (a->underscores != b->underscores)
        return a->underscores < b->underscores;
    if (a->weak != b->weak)
        return b->weak;
    return strcmp(a->name, b->name) < 0;
}

static const char *best_name(const struct elf_file *file, const struct elf_symbols *symbols,
                             size_t at)
{
    const struct elf_symbol *chosen = &symbols->sorted[at];
    struct named_symbol best = name_of(file, symbols, chosen);
    for (size_t i = at; i-- > 0 && symbols->sorted[i].start == chosen->start;) {
        struct named_symbol other = name_of(file, symbols, &symbols->sorted[i]);
        if (symbols->sorted[i].sized == chosen->sized && symbols->sorted[i].end == chosen->end &&
            better(&other, &best))
            best = other;
    }
    return best.name;
}

/* The number of symbols that begin at or below `address`. */
static size_t begun(const struct elf_symbols *symbols, uint64_t address)
{
    size_t low = 0, high = symbols->sorted == NULL ? 0 : symbols->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (symbols->sorted[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const char *look_up(const struct elf_file *file, const struct elf_symbols *symbols,
                           uint64_t address)
{
    size_t unsized_one = SIZE_MAX;
    for (size_t i = begun(symbols, address); i-- > 0 && symbols->sorted[i].reach > address;) {
        if (symbols->sorted[i].end <= address)
            continue;
        if (symbols->sorted[i].sized)
            return best_name(file, symbols, i);
        if (unsized_one == SIZE_MAX)
            unsized_one = i;
    }
    return unsized_one == SIZE_MAX ? NULL : best_name(file, symbols, unsized_one);
}

const char *elf_file_symbol(struct elf_file *file, uint64_t address, bool full)
{
    if (!file->indexed) {
        index_table(file, SHT_SYMTAB, &file->full);
        index_table(file, SHT_DYNSYM, &file->dynamic);
        file->indexed = true;
    }
    return look_up(file, full ? &file->full : &file->dynamic, address);
}
