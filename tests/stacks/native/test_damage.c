/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Damaged unwind tables: copies of this program's and the C library's, as they
 * are, then with bytes changed where it hurts, then cut short. Each copy ends where its
 * allocation does, so that a sanitizer sees a read outside it. What a damaged
 * table says is of no interest; that it is read to its end, and no further, is.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim.h"
#include "stacks.h"
#include "unwind_cfi.h"
#include "unwind_rules.h"

#define ROUNDS 200000
#define DAMAGE_MAX 4
#define NEAR_BYTES 96
#define HEADER_BYTES 12
#define ROW_BYTES 8

static uint64_t random_state = 88172645463325252ULL;

static uint64_t random_word(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static uint64_t below(uint64_t bound)
{
    return random_word() % bound;
}

/* An object's tables. */
struct subject {
    const char *name;
    struct modules_tables original;
    uint8_t *image; /* of the segment; taken through the kernel: parts of it a sanitizer guards */
    uint64_t bytes;
    uint64_t rows;     /* of the search table */
    uint64_t sensible; /* damaged, and yet a row came out */
};

static uint64_t address_of(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

static int32_t word_at(uint64_t address)
{
    int32_t word;
    memcpy(&word, (const void *)(uintptr_t)address, sizeof(word));
    return word;
}

static bool open_subject(struct subject *subject, const char *name, const void *inside)
{
    subject->name = name;
    if (!modules_tables(inside, &subject->original) || subject->original.header == 0) {
        printf("%s has no unwind tables\n", name);
        return false;
    }
    subject->rows = (uint32_t)word_at(subject->original.header + 8);
    subject->bytes = subject->original.end - subject->original.start;
    subject->image = malloc(subject->bytes);
    int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    ssize_t taken = pread(memory, subject->image, subject->bytes, (off_t)subject->original.start);
    close(memory);
    return subject->rows > 10 && taken == (ssize_t)subject->bytes &&
           subject->original.frames_start == subject->original.start;
}

static uint64_t row_address(const struct subject *subject, uint64_t row)
{
    return subject->original.header + HEADER_BYTES + row * ROW_BYTES;
}

static uint64_t function_at(const struct subject *subject, uint64_t row)
{
    return subject->original.header + (uint64_t)(int64_t)word_at(row_address(subject, row));
}

static uint64_t entry_at(const struct subject *subject, uint64_t row)
{
    return subject->original.header + (uint64_t)(int64_t)word_at(row_address(subject, row) + 4);
}

/* ---- all that is done with tables -------------------------------------------------------- */

static bool use(const struct modules_tables *tables, uint64_t address)
{
    uint64_t here[64] = {0};
    struct unwind_entry entry;
    struct unwind_row row;
    struct unwind_registers registers = {.known = (uint32_t)random_word()};
    struct unwind_stack stack;
    for (unsigned i = 0; i < UNWIND_REGISTERS; i++) {
        registers.value[i] = address_of(&here[below(64)]);
    }
    if (unwind_tables_find(tables, address, &entry) != 0 ||
        unwind_row_at(&entry, address, &row) != 0) {
        return false;
    }
    (void)unwind_rule_make(&entry, &row);
    unwind_stack_open(&stack, address_of(here));
    return unwind_row_apply(&entry, &row, &registers, &stack) == 0;
}

/* ---- as they are ---------------------------------------------------------------------------- */

static int read_whole(const struct subject *subject)
{
    int failures = 0;
    for (uint64_t row = 0; row < subject->rows; row++) {
        struct unwind_entry entry;
        struct unwind_row result;
        uint64_t first = function_at(subject, row);
        if (unwind_tables_find(&subject->original, first, &entry) != 0) {
            failures++; /* an entry that the search table names has to be found */
            continue;
        }
        for (uint64_t at = entry.first; at < entry.last; at += 1 + below(16)) {
            failures += unwind_row_at(&entry, at, &result) != 0;
        }
    }
    printf("%s: %lu entries read whole, %d failures\n", subject->name, (unsigned long)subject->rows,
           failures);
    return failures;
}

/* ---- damaged -----------------------------------------------------------------------------------
 */

/* In the header, the row searched for, its entry, or the entry's common part. */
static uint64_t place_to_damage(const struct subject *subject, uint64_t row)
{
    uint64_t entry = entry_at(subject, row);
    uint64_t common = entry + 4 - (uint32_t)word_at(entry + 4);
    switch (below(8)) {
    case 0:
        return subject->original.header + below(HEADER_BYTES);
    case 1:
        return row_address(subject, row) + below(ROW_BYTES);
    case 2:
    case 3:
        return common + below(NEAR_BYTES / 4);
    default:
        return entry + below(NEAR_BYTES);
    }
}

static void damage(const struct subject *subject, uint8_t *copy, uint64_t bytes, uint64_t row)
{
    static const uint8_t nasty[] = {0x00, 0x01, 0x7f, 0x80, 0xff, 0x0f, 0x10, 0x16, 0x0a, 0x0b};
    for (uint64_t i = 0; i < 1 + below(DAMAGE_MAX); i++) {
        uint64_t place = place_to_damage(subject, row) - subject->original.start;
        if (place < bytes) {
            copy[place] = below(2) == 0 ? (uint8_t)random_word() : nasty[below(sizeof(nasty))];
        }
    }
}

/* Restores what damage() may have changed. */
static void restore(const struct subject *subject, uint8_t *copy, uint64_t row)
{
    uint64_t entry = entry_at(subject, row);
    const uint64_t places[] = {subject->original.header, row_address(subject, row), entry,
                               entry + 4 - (uint32_t)word_at(entry + 4)};
    for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        uint64_t at = places[i] - subject->original.start;
        uint64_t bytes = at + NEAR_BYTES < subject->bytes ? NEAR_BYTES : subject->bytes - at;
        memcpy(copy + at, subject->image + at, bytes);
    }
}

static uint64_t shifted(const struct subject *subject, const uint8_t *copy, uint64_t address)
{
    return address - subject->original.start + address_of(copy);
}

static void use_damaged(struct subject *subject)
{
    uint8_t *copy = malloc(subject->bytes);
    memcpy(copy, subject->image, subject->bytes);
    struct modules_tables tables = {.header = shifted(subject, copy, subject->original.header),
                                    .start = address_of(copy),
                                    .end = address_of(copy) + subject->bytes,
                                    .frames_start = address_of(copy),
                                    .frames_end = address_of(copy) + subject->bytes};
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t row = below(subject->rows - 1);
        uint64_t address = function_at(subject, row) + below(64);
        damage(subject, copy, subject->bytes, row);
        subject->sensible += use(&tables, shifted(subject, copy, address));
        restore(subject, copy, row);
    }
    free(copy);
}

static void use_cut_short(struct subject *subject)
{
    for (int i = 0; i < ROUNDS / 100; i++) {
        uint64_t row = below(subject->rows - 1);
        uint64_t end = below(2) == 0 ? entry_at(subject, row) + below(NEAR_BYTES)
                                     : subject->original.header + 1 + below(4096);
        uint64_t bytes = end - subject->original.start;
        bytes = bytes < subject->bytes ? bytes : subject->bytes;
        uint8_t *copy = malloc(bytes);
        memcpy(copy, subject->image, bytes);
        struct modules_tables tables = {.header = shifted(subject, copy, subject->original.header),
                                        .start = address_of(copy),
                                        .end = address_of(copy) + bytes,
                                        .frames_start = address_of(copy),
                                        .frames_end = address_of(copy) + bytes};
        damage(subject, copy, bytes, row);
        subject->sensible += use(&tables, shifted(subject, copy, function_at(subject, row)));
        free(copy);
    }
}

int main(void)
{
    static struct subject subjects[2];
    int failures = 0;
    modules_refresh();
    if (!open_subject(&subjects[0], "this program", subjects) ||
        !open_subject(&subjects[1], "the C library", dlsym(RTLD_DEFAULT, "gnu_get_libc_version"))) {
        return 1;
    }
    for (int i = 0; i < 2; i++) {
        failures += read_whole(&subjects[i]);
        use_damaged(&subjects[i]);
        use_cut_short(&subjects[i]);
        printf("%s: survived; of %d damaged tables %lu still led somewhere\n", subjects[i].name,
               ROUNDS + ROUNDS / 100, (unsigned long)subjects[i].sensible);
    }
    free(subjects[0].image);
    free(subjects[1].image);
    return failures != 0;
}
