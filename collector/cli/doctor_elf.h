/* SPDX-License-Identifier: Apache-2.0 */
/* What an object file needs, exports and asks for. */
#ifndef VS_CLI_DOCTOR_ELF_H
#define VS_CLI_DOCTOR_ELF_H

#include <stdbool.h>
#include <stddef.h>

enum elf_kind { ELF_NONE, ELF_STATIC, ELF_DYNAMIC, ELF_LIBRARY };

struct elf_file {
    const unsigned char *bytes; /* the whole file, mapped */
    size_t size;
    bool is_64_bit;
    enum elf_kind kind;
};

/* Maps a file. 0, or a negative errno value; kind is ELF_NONE for what is no
 * ELF file. */
int elf_open(const char *path, struct elf_file *file);
void elf_close(struct elf_file *file);

/* For each name needed (DT_NEEDED); the visitor's non-zero result ends the walk
 * and is returned. */
int elf_each_needed(const struct elf_file *file, int (*visit)(const char *name, void *context),
                    void *context);
/* For each dynamic symbol; `defined`: the file has it, else it asks for it. */
int elf_each_symbol(const struct elf_file *file,
                    int (*visit)(const char *name, bool defined, void *context), void *context);
/* For each version needed of other libraries ("GLIBC_2.17"). */
int elf_each_version(const struct elf_file *file, int (*visit)(const char *version, void *context),
                     void *context);
/* Is the text anywhere in the file? */
bool elf_holds(const struct elf_file *file, const char *text);
/* Does the file define (or ask for) this dynamic symbol? */
bool elf_has_symbol(const struct elf_file *file, const char *name, bool defined);

#endif
