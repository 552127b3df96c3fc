/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code objects: an id for each, and the record that names it, sent once.
 *
 * An address alone does not name a code object, for it is soon used again. What
 * tells two of them apart is the interpreter's own version number of each (3.12
 * on), or the count of deaths at the address (up to 3.11), for which the type's
 * dealloc function is wrapped, or a hash of what its frames show. The address
 * and that number are the key of a table that knows no lock; an entry whose
 * number has passed belongs to a dead object and is used again.
 *
 * The kernel wipes the table in a forked child, which has to send all of it
 * again; only the ids count on.
 */
#include "python_memo.h"
#include "python_parts.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "shim.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

#define ENTRIES (1U << 18)
#define PROBES_MAX 64U
#define NAME_BYTES_MAX 1024U

/* Both words 0: free. The address stays for good. */
struct entry {
    _Atomic uint64_t code;
    _Atomic uint64_t named; /* version << 32 | id, in one word lest a reader see half of each */
};

_Atomic uint32_t python_deaths[PYTHON_DEATH_SLOTS];
_Atomic bool python_any_deaths;

static struct {
    struct entry *entries;
    _Atomic uint32_t last_id;
    _Atomic bool overflowed; /* there is a code object with an id that is not in the table */
    void (*dealloc)(void *object);
} codes;

/* ---- the table ---------------------------------------------------------------- */

static uint32_t place_of(uint64_t code)
{
    return (uint32_t)((code >> 4) * 0x9e3779b97f4a7c15ULL >> 40) & (ENTRIES - 1);
}

static struct entry *entry_at(uint64_t code, unsigned probe)
{
    return &codes.entries[(place_of(code) + probe) & (ENTRIES - 1)];
}

uint32_t python_code_find(uint64_t code, uint32_t version)
{
    for (unsigned probe = 0; probe < PROBES_MAX; probe++) {
        struct entry *entry = entry_at(code, probe);
        uint64_t owner = atomic_load_explicit(&entry->code, memory_order_relaxed);
        if (owner == code) {
            /* Acquire: the record was committed before the id was stored. */
            uint64_t named = atomic_load_explicit(&entry->named, memory_order_acquire);
            return named >> 32 == version ? (uint32_t)named : 0;
        }
        if (owner == 0) {
            return 0;
        }
    }
    return 0;
}

/* The entry of an address, a free one taken if need be; NULL when there is none near its place. */
static struct entry *claim(uint64_t code)
{
    for (unsigned probe = 0; probe < PROBES_MAX; probe++) {
        struct entry *entry = entry_at(code, probe);
        uint64_t owner = 0;
        if (atomic_compare_exchange_strong(&entry->code, &owner, code) || owner == code) {
            return entry;
        }
    }
    return NULL;
}

static void keep(uint64_t code, uint32_t version, uint32_t id)
{
    struct entry *entry = claim(code);
    if (entry == NULL) {
        atomic_store(&codes.overflowed, true);
        return;
    }
    uint64_t named = atomic_load_explicit(&entry->named, memory_order_relaxed);
    if ((uint32_t)named == 0 || named >> 32 != version) {
        /* Another thread's id for the same object is as good: both were sent. */
        atomic_compare_exchange_strong_explicit(&entry->named, &named, (uint64_t)version << 32 | id,
                                                memory_order_release, memory_order_relaxed);
    }
}

int python_code_prepare(void)
{
    size_t bytes = ENTRIES * sizeof(struct entry);
    if (codes.entries != NULL) {
        return 0;
    }
    void *entries = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (entries == MAP_FAILED) {
        return -errno;
    }
    if (madvise(entries, bytes, MADV_WIPEONFORK) != 0) {
        int status = -errno;
        munmap(entries, bytes);
        return status;
    }
    codes.entries = entries;
    return 0;
}

/* ---- records ------------------------------------------------------------------- */

void python_code_read(const struct python_layout *layout, uint64_t code,
                      struct python_code_text *text)
{
    unsigned name_field = layout->code_qualname != 0 ? layout->code_qualname : layout->code_name;
    size_t name = python_text(layout, python_word(code, name_field), text->text, NAME_BYTES_MAX,
                              PYTHON_CUT_END);
    size_t file = python_text(layout, python_word(code, layout->code_file), text->text + name,
                              sizeof(text->text) - name, PYTHON_CUT_BEGINNING);
    int32_t first_line = (int32_t)python_half(code, layout->code_first_line);
    text->head.first_line = first_line > 0 ? (uint32_t)first_line : 0;
    text->head.name_bytes = (uint32_t)name;
    text->bytes = (uint32_t)(name + file);
}

uint32_t python_code_send(uint64_t code, uint32_t version, const struct python_code_text *text)
{
    if (atomic_load_explicit(&codes.last_id, memory_order_relaxed) >= VS_FRAME_CODE_MAX) {
        return 0;
    }
    uint32_t id = atomic_fetch_add_explicit(&codes.last_id, 1, memory_order_relaxed) + 1;
    if (!shim_emit_definition(VS_RECORD_CODE, id, 0, &text->head, sizeof(text->head), text->text,
                              text->bytes)) {
        return 0;
    }
    keep(code, version, id);
    return id;
}

/* ---- telling code objects apart --------------------------------------------------- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
    return hash ^ hash >> 29;
}

static uint64_t mix_bytes(uint64_t hash, const char *bytes, uint64_t count)
{
    hash = mix(hash, count);
    for (; count >= sizeof(uint64_t); count -= sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, bytes, sizeof(word));
        bytes += sizeof(word);
        hash = mix(hash, word);
    }
    for (; count > 0; count--) {
        hash = mix(hash, (uint8_t)*bytes++);
    }
    return hash;
}

static uint64_t mix_text(uint64_t hash, const struct python_layout *layout, uint64_t object)
{
    char text[512];
    size_t bytes = python_text(layout, object, text, sizeof(text), PYTHON_CUT_BEGINNING);
    return mix_bytes(hash, text, bytes);
}

uint32_t python_code_content(const struct python_layout *layout, uint64_t code)
{
    unsigned name_field = layout->code_qualname != 0 ? layout->code_qualname : layout->code_name;
    uint64_t lines = python_word(code, layout->code_lines);
    uint64_t hash = mix(1, python_half(code, layout->code_first_line));
    hash = mix_text(hash, layout, python_word(code, layout->code_file));
    hash = mix_text(hash, layout, python_word(code, name_field));
    hash = mix_bytes(hash, (const char *)(uintptr_t)(lines + layout->bytes_data),
                     python_word(lines, layout->bytes_size));
    return (uint32_t)(hash >> 32);
}

/*
 * A dying code object is on nobody's stack. Whoever will use its address got it
 * through the interpreter's own lock, and so sees what is stored here.
 */
static void code_dies(void *object)
{
    uint64_t code = (uint64_t)(uintptr_t)object;
    if (atomic_load_explicit(&codes.overflowed, memory_order_relaxed) ||
        python_code_find(code, python_code_deaths(code)) != 0) {
        atomic_fetch_add_explicit(&python_deaths[python_death_slot(code)], 1, memory_order_relaxed);
        atomic_store_explicit(&python_any_deaths, true, memory_order_relaxed);
        python_memo_begin_age();
    }
    codes.dealloc(object);
}

void python_code_watch_deaths(const struct python_layout *layout, const void *code_type)
{
    void (*_Atomic *dealloc)(void *) =
        (void (*_Atomic *)(void *))((uintptr_t)code_type + layout->type_dealloc);
    void (*before)(void *) = atomic_load(dealloc);
    if (before != code_dies) {
        codes.dealloc = before;
        atomic_compare_exchange_strong(dealloc, &before, code_dies);
    }
}
