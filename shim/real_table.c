/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of real functions. Without us a caller would bind to the first
 * definition in its scope whose symbol version fits; the same is worked out
 * here for each hooked name and each kind of caller, from the loaded objects
 * themselves. "Kind of caller" is the CUDA runtime it was linked against, for
 * two of them may live in one process; the driver is unique.
 *
 * The caller is known by its return address, so a library whose call is a tail
 * call is taken for its own caller. With one runtime that changes nothing; with
 * two, the call may reach the other one, which works on the same driver handles.
 */
#include "real_table.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "elf_object.h"
#include "hook.h"
#include "stacks.h"
#include "sys.h"

#define RUNTIME_PREFIX "libcudart.so"
#define KEYS 9U /* key 0: linked against no runtime; 1 … 8: one for each soname seen */
#define KEY_BYTES 32U
#define CANDIDATES 6U /* definitions of one name that are told apart */
#define MODULE_KEYS 8192U
#define LINKED_MAX 512U /* objects linked against a CUDA runtime */
#define STALE_AFTER_NS 100000000ULL
#define REFRESH_WAIT_TRIES 20 /* milliseconds for another thread's refresh */

struct candidate {
    uintptr_t address;
    uint8_t key;    /* by the definition's version, else by the soname; 0 neither */
    bool versioned; /* the definition carries a version: other versions do not bind to it */
    bool start_up;  /* in the global scope, behind us */
};

static struct {
    _Atomic(void *) choice[KEYS][REAL_COUNT];
    _Atomic(void *) slot[REAL_COUNT][HOOK_SLOTS];
    _Atomic uint32_t slot_module[REAL_COUNT][HOOK_SLOTS]; /* module id; 0: not of this namespace */
    _Atomic(void *) offered[REAL_COUNT];
    _Atomic uint8_t module_key[MODULE_KEYS]; /* by module id */

    _Atomic uint32_t loads_begun;
    _Atomic uint32_t loads_seen;
    _Atomic uint64_t refreshed_ns;
    _Atomic int refreshing; /* thread id of who is at it; 0 nobody */

    /* The rest belongs to the refreshing thread. */
    char keys[KEYS][KEY_BYTES];
    unsigned start_up_objects; /* loaded before the program could load any itself */
    struct candidate candidates[REAL_COUNT][CANDIDATES];
    uint8_t candidate_count[REAL_COUNT];
} table;

/* The linker's: where this library begins and ends. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

bool real_is_ours(const void *address)
{
    return (const char *)address >= __ehdr_start && (const char *)address < _end;
}

/* ---- keys -------------------------------------------------------------------- */

/* Runtimes beyond the eighth share key 0: whoever was linked against them gets the first found. */
static uint8_t key_of(const char *soname)
{
    if (soname == NULL || strncmp(soname, RUNTIME_PREFIX, sizeof(RUNTIME_PREFIX) - 1) != 0 ||
        strlen(soname) >= KEY_BYTES) {
        return 0;
    }
    for (uint8_t key = 1; key < KEYS; key++) {
        if (table.keys[key][0] == '\0') {
            memcpy(table.keys[key], soname, strlen(soname) + 1);
        }
        if (strcmp(table.keys[key], soname) == 0) {
            return key;
        }
    }
    return 0;
}

/* ---- walking the loaded objects ------------------------------------------------ */

struct walk {
    unsigned objects;
    bool behind_us;
    unsigned linked_count;
    struct {
        uintptr_t address;
        uint8_t key;
    } linked[LINKED_MAX];
};

static void note_definition(const struct elf_object *object, unsigned id, bool start_up)
{
    const char *version = NULL;
    uintptr_t address =
        elf_object_find(object, real_names[id].name, real_names[id].gnu_hash, &version);
    unsigned count = table.candidate_count[id];
    if (address == 0 || count == CANDIDATES) {
        return;
    }
    uint8_t by_version = key_of(version);
    table.candidates[id][count] = (struct candidate){
        .address = address,
        .key = by_version != 0 ? by_version : key_of(object->soname),
        .versioned = by_version != 0,
        .start_up = start_up,
    };
    table.candidate_count[id] = (uint8_t)(count + 1);
}

static int visit_object(struct dl_phdr_info *info, size_t size, void *context)
{
    struct walk *walk = context;
    struct elf_object object;
    unsigned place = walk->objects++;
    (void)size;

    if (!elf_object_open(&object, info)) {
        return 0;
    }
    if (real_is_ours((const void *)object.first_byte)) {
        walk->behind_us = true;
        return 0;
    }
    bool at_start = table.start_up_objects == 0 || place < table.start_up_objects;
    for (unsigned id = 0; id < REAL_COUNT; id++) {
        note_definition(&object, id, walk->behind_us && at_start);
    }
    uint8_t key = key_of(elf_object_needs(&object, RUNTIME_PREFIX));
    if (key != 0 && walk->linked_count < LINKED_MAX) {
        walk->linked[walk->linked_count].address = object.first_byte;
        walk->linked[walk->linked_count++].key = key;
    }
    return 0;
}

/* Outside of the walk: finding a module may put its definition into the ring, and wait for room. */
static void publish_keys(const struct walk *walk)
{
    for (unsigned i = 0; i < walk->linked_count; i++) {
        uint32_t module = modules_find((const void *)walk->linked[i].address);
        if (module != 0 && module < MODULE_KEYS) {
            atomic_store_explicit(&table.module_key[module], walk->linked[i].key,
                                  memory_order_relaxed);
        }
    }
}

/* ---- choosing -------------------------------------------------------------------- */

/* What a caller with `key` binds to: global scope first, then its own library, then anything. */
static uintptr_t choose(unsigned id, uint8_t key)
{
    const struct candidate *candidates = table.candidates[id];
    unsigned count = table.candidate_count[id];
    for (unsigned i = 0; i < count; i++) {
        if (candidates[i].start_up &&
            (key == 0 || !candidates[i].versioned || candidates[i].key == key)) {
            return candidates[i].address;
        }
    }
    for (unsigned i = 0; i < count; i++) {
        if (key != 0 && candidates[i].key == key) {
            return candidates[i].address;
        }
    }
    return count > 0 ? candidates[0].address : 0;
}

static void publish_choices(void)
{
    for (unsigned id = 0; id < REAL_COUNT; id++) {
        for (uint8_t key = 0; key < KEYS; key++) {
            if (key == 0 || table.keys[key][0] != '\0') {
                atomic_store_explicit(&table.choice[key][id], (void *)choose(id, key),
                                      memory_order_release);
            }
        }
    }
}

/* An entry point whose library is gone may serve another one. */
static void forget_unloaded(void)
{
    for (unsigned id = 0; id < REAL_COUNT; id++) {
        for (unsigned slot = 0; slot < HOOK_SLOTS; slot++) {
            void *real = atomic_load(&table.slot[id][slot]);
            if (real != NULL && atomic_load(&table.slot_module[id][slot]) != 0 &&
                modules_find(real) == 0) {
                atomic_compare_exchange_strong(&table.slot[id][slot], &real, NULL);
            }
        }
    }
}

/* ---- one refresh at a time --------------------------------------------------------- */

/* Not for ever: the owner may be a thread that is gone, or one of our parent's before a fork. */
static bool owner_is_gone(int owner)
{
    return sys_call3(SYS_tgkill, sys_getpid(), owner, 0) == -ESRCH;
}

static bool take_turn(void)
{
    int self = sys_gettid();
    for (int try = 0; try < REFRESH_WAIT_TRIES; try++) {
        int owner = 0;
        if (atomic_compare_exchange_strong(&table.refreshing, &owner, self)) {
            return true;
        }
        if (owner == self) {
            return false; /* a signal handler's hook inside our own refresh */
        }
        if (owner_is_gone(owner) &&
            atomic_compare_exchange_strong(&table.refreshing, &owner, self)) {
            return true;
        }
        struct timespec millisecond = {.tv_sec = 0, .tv_nsec = 1000000};
        sys_call2(SYS_nanosleep, &millisecond, NULL);
    }
    return false;
}

static void look(void)
{
    struct walk walk;
    uint32_t loads = atomic_load(&table.loads_begun);
    walk.objects = 0;
    walk.behind_us = false;
    walk.linked_count = 0;
    modules_refresh();
    memset(table.candidate_count, 0, sizeof(table.candidate_count));
    dl_iterate_phdr(visit_object, &walk);
    if (table.start_up_objects == 0) {
        table.start_up_objects = walk.objects;
    }
    publish_keys(&walk);
    publish_choices();
    forget_unloaded();
    stacks_objects_changed();
    atomic_store(&table.loads_seen, loads);
    atomic_store(&table.refreshed_ns, shim_now_ns());
}

void real_refresh(void)
{
    if (take_turn()) {
        look();
        atomic_store(&table.refreshing, 0);
    }
}

bool real_refresh_if_stale(void)
{
    bool loaded = atomic_load(&table.loads_begun) != atomic_load(&table.loads_seen);
    if (!loaded && shim_now_ns() - atomic_load(&table.refreshed_ns) < STALE_AFTER_NS) {
        return false;
    }
    real_refresh();
    return true;
}

void real_loading(void)
{
    atomic_fetch_add(&table.loads_begun, 1);
    modules_loading();
}

/* ---- reading ---------------------------------------------------------------------- */

static void *first_known(unsigned id)
{
    void *real = atomic_load_explicit(&table.choice[0][id], memory_order_acquire);
    for (unsigned slot = 0; real == NULL && slot < HOOK_SLOTS; slot++) {
        real = atomic_load_explicit(&table.slot[id][slot], memory_order_acquire);
    }
    return real != NULL ? real : atomic_load_explicit(&table.offered[id], memory_order_acquire);
}

static void *chosen(unsigned id, uint32_t module)
{
    uint8_t key = module < MODULE_KEYS
                      ? atomic_load_explicit(&table.module_key[module], memory_order_relaxed)
                      : 0;
    return atomic_load_explicit(&table.choice[key][id], memory_order_acquire);
}

void *real_for_module(unsigned id, uint32_t module)
{
    void *real = chosen(id, module);
    if (real == NULL && real_refresh_if_stale()) {
        real = chosen(id, module);
    }
    if (real == NULL) {
        real = first_known(id);
        hook_count_missing();
    }
    return real;
}

void *real_any(unsigned id)
{
    return first_known(id);
}

void *real_in_slot(unsigned id, unsigned slot)
{
    void *real = atomic_load_explicit(&table.slot[id][slot], memory_order_acquire);
    return real != NULL ? real : first_known(id);
}

int real_slot_of(unsigned id, void *found)
{
    for (unsigned slot = 0; slot < HOOK_SLOTS; slot++) {
        void *real = NULL;
        /* Acquire and release: who sees the function sees the library behind it. */
        if (atomic_compare_exchange_strong(&table.slot[id][slot], &real, found)) {
            atomic_store(&table.slot_module[id][slot], modules_find(found));
            return (int)slot;
        }
        if (real == found) {
            return (int)slot;
        }
    }
    hook_warn(HOOK_WARNING_SLOTS_FULL);
    return -1;
}

void real_offer(unsigned id, void *found)
{
    void *none = NULL;
    atomic_compare_exchange_strong(&table.offered[id], &none, found);
}
