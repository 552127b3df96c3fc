/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of loaded objects: which object an address lies in, without the
 * loader. Entries are never moved or reused; what changes is the index, sorted
 * by address, of which there are two: readers use the one that `version` names
 * while the other is filled, and look at `version` again afterwards.
 *
 * The generation of the whole map moves when an object went away. An object's
 * own is the map's when it appeared: an address of generation G lies in the
 * latest object that held it and appeared at or before G.
 *
 * modules_refresh() is called where the loader may be asked (start, after a
 * hooked dlopen or dlclose returned); modules_find() anywhere.
 */
#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "../formats/ring.h"
#include "shim.h"
#include "stacks.h"
#include "sys.h"

#define MODULES_MAX 8192U
#define PATH_ARENA_BYTES (256U * 1024U)
#define PATH_BYTES_MAX 4096U
#define EH_FRAME_HEADER_BYTES 8U
#define EH_FRAME_POINTER_ENCODING 0x1bU /* four signed bytes, relative to where they are */
#define NOTHING_NEW 1 /* from visit_object: nothing was loaded or unloaded since */
#define FIND_TRIES 4  /* two refreshes during one search are rare, four do not happen */
#define FOUND_BITS 6U /* callers are few: 1 KiB */
#define STALE_AFTER_NS 100000000ULL /* objects that were loaded without a call we see */

struct module {
    struct vs_record_module description;
    struct modules_tables tables;
    const char *path;
    uint32_t path_bytes;
    uint32_t appeared;        /* generation of the map when it did */
    _Atomic uint32_t seen;    /* the last walk that saw it */
    _Atomic uint32_t sent_to; /* shim_generation() + 1 of the process whose trace has it */
};

struct index_entry {
    _Atomic uint64_t start;
    _Atomic uint64_t end;
    _Atomic uint32_t module; /* 0-based */
};

static struct {
    struct module table[MODULES_MAX];
    _Atomic uint32_t count;
    struct index_entry index[2][MODULES_MAX];
    uint32_t index_count[2];
    _Atomic uint32_t version; /* of the index: odd and even name the two */
    _Atomic uint32_t generation;
    uint32_t walks;  /* through the loader's list: those that found it changed */
    uint32_t cursor; /* where the next object is expected: the loader keeps its order */
    unsigned long long adds, subs; /* the loader's counters at the last walk */
    _Atomic uint32_t refreshing;   /* 0 idle, 1 a thread is at it, 2 and it must look again */
    _Atomic uint32_t loads_begun, loads_seen;
    _Atomic uint64_t refreshed_ns;
    char *arena;
    size_t arena_left;
} modules;

/* ---- describing one object -------------------------------------------------- */

static void copy_build_id(struct vs_record_module *module, const char *notes, size_t bytes)
{
    while (bytes >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, notes, sizeof(note));
        size_t name = (note.n_namesz + 3U) & ~3U;
        size_t body = (note.n_descsz + 3U) & ~3U;
        if (name > bytes || body > bytes || sizeof(note) + name + body > bytes) {
            return;
        }
        const char *text = notes + sizeof(note);
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(text, "GNU", 4) == 0) {
            size_t kept =
                note.n_descsz < sizeof(module->build_id) ? note.n_descsz : sizeof(module->build_id);
            memcpy(module->build_id, text + name, kept);
            module->build_id_bytes = (uint8_t)kept;
            return;
        }
        notes += sizeof(note) + name + body;
        bytes -= sizeof(note) + name + body;
    }
}

/* From its first to its last loaded byte. False when nothing of it is loaded. */
static bool describe(const struct dl_phdr_info *info, struct vs_record_module *module)
{
    memset(module, 0, sizeof(*module));
    module->load_bias = info->dlpi_addr;
    module->start = UINT64_MAX;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uint64_t start = info->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_LOAD) {
            module->start = start < module->start ? start : module->start;
            module->end =
                start + header->p_memsz > module->end ? start + header->p_memsz : module->end;
        } else if (header->p_type == PT_NOTE && module->build_id_bytes == 0) {
            copy_build_id(module, (const char *)(uintptr_t)start, header->p_filesz);
        }
    }
    return module->start < module->end;
}

/* The loaded, readable segment that holds `address`: what the file gives of it. */
static bool find_segment(const struct dl_phdr_info *info, uint64_t address, uint64_t *start,
                         uint64_t *end)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        *start = info->dlpi_addr + segment->p_vaddr;
        *end = *start + segment->p_filesz;
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_R) != 0 && address >= *start &&
            address < *end) {
            return true;
        }
    }
    return false;
}

/* Where .eh_frame begins: the usual form of the pointer in .eh_frame_hdr, relative to itself. */
static uint64_t frames_of(uint64_t header)
{
    const uint8_t *bytes = (const uint8_t *)(uintptr_t)header;
    int32_t distance;
    memcpy(&distance, bytes + 4, sizeof(distance));
    return bytes[1] == EH_FRAME_POINTER_ENCODING ? header + 4 + (uint64_t)(int64_t)distance
                                                 : header;
}

/* Its unwind tables; all zero when it has none. */
static void describe_tables(const struct dl_phdr_info *info, struct modules_tables *tables)
{
    memset(tables, 0, sizeof(*tables));
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME) {
            tables->header = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        }
    }
    if (tables->header == 0 || !find_segment(info, tables->header, &tables->start, &tables->end) ||
        tables->end - tables->header < EH_FRAME_HEADER_BYTES ||
        !find_segment(info, frames_of(tables->header), &tables->frames_start,
                      &tables->frames_end)) {
        memset(tables, 0, sizeof(*tables));
    }
}

/* ---- the table --------------------------------------------------------------- */

static const char *keep_path(const char *path, size_t bytes)
{
    if (bytes + 1 > modules.arena_left) {
        void *fresh = mmap(NULL, PATH_ARENA_BYTES, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (fresh == MAP_FAILED) {
            return NULL;
        }
        modules.arena = fresh;
        modules.arena_left = PATH_ARENA_BYTES;
    }
    char *kept = modules.arena;
    memcpy(kept, path, bytes);
    kept[bytes] = '\0';
    modules.arena += bytes + 1;
    modules.arena_left -= bytes + 1;
    return kept;
}

static bool same_object(const struct module *module, const struct vs_record_module *description,
                        const struct modules_tables *tables, const char *path, size_t path_bytes)
{
    return memcmp(&module->description, description, sizeof(*description)) == 0 &&
           memcmp(&module->tables, tables, sizeof(*tables)) == 0 &&
           module->path_bytes == path_bytes && memcmp(module->path, path, path_bytes) == 0;
}

static bool overlap(const struct vs_record_module *a, const struct vs_record_module *b)
{
    return a->start < b->end && b->start < a->end;
}

/*
 * Entry `i` may stand for the object that was just found: it is there still, or
 * it came back and nothing else lay at its place in the meantime. Otherwise the
 * latest object at an address would not be the right one.
 */
static bool may_stand(uint32_t i, uint32_t count)
{
    struct module *module = &modules.table[i];
    if (atomic_load_explicit(&module->seen, memory_order_relaxed) + 1 >= modules.walks) {
        return true;
    }
    for (uint32_t later = i + 1; later < count; later++) {
        if (overlap(&modules.table[later].description, &module->description)) {
            return false;
        }
    }
    return true;
}

static void add_object(const struct vs_record_module *description,
                       const struct modules_tables *tables, const char *path, size_t path_bytes)
{
    uint32_t count = atomic_load_explicit(&modules.count, memory_order_relaxed);
    const char *kept = count < MODULES_MAX ? keep_path(path, path_bytes) : NULL;
    if (kept == NULL) {
        return;
    }
    struct module *module = &modules.table[count];
    module->description = *description;
    module->tables = *tables;
    module->path = kept;
    module->path_bytes = (uint32_t)path_bytes;
    atomic_store_explicit(&module->seen, modules.walks, memory_order_relaxed);
    /* Release: an id below count names a finished entry. Nobody finds it before the index does. */
    atomic_store_explicit(&modules.count, count + 1, memory_order_release);
}

static void note_object(const struct vs_record_module *description,
                        const struct modules_tables *tables, const char *path)
{
    uint32_t count = atomic_load_explicit(&modules.count, memory_order_relaxed);
    size_t path_bytes = strnlen(path, PATH_BYTES_MAX);
    for (uint32_t step = 0; step < count; step++) {
        uint32_t i = (modules.cursor + step) % count;
        if (same_object(&modules.table[i], description, tables, path, path_bytes) &&
            may_stand(i, count)) {
            atomic_store_explicit(&modules.table[i].seen, modules.walks, memory_order_relaxed);
            modules.cursor = i + 1;
            return;
        }
    }
    add_object(description, tables, path, path_bytes);
}

static int visit_object(struct dl_phdr_info *info, size_t size, void *context)
{
    static const char self[] = "/proc/self/exe";
    struct vs_record_module description;
    struct modules_tables tables;
    char path[PATH_BYTES_MAX];
    bool *first = context;
    (void)size;

    if (*first) {
        if (info->dlpi_adds == modules.adds && info->dlpi_subs == modules.subs) {
            return NOTHING_NEW;
        }
        modules.adds = info->dlpi_adds;
        modules.subs = info->dlpi_subs;
        modules.walks++;
    }
    if (describe(info, &description)) {
        const char *name = info->dlpi_name;
        if (*first && (name == NULL || name[0] == '\0')) {
            long length = sys_call4(SYS_readlinkat, -100, self, path, sizeof(path) - 1);
            path[length > 0 ? length : 0] = '\0';
            name = path;
        }
        describe_tables(info, &tables);
        note_object(&description, &tables, name != NULL && name[0] != '\0' ? name : "[unnamed]");
    }
    *first = false;
    return 0;
}

/* ---- the index ---------------------------------------------------------------- */

static void put(struct index_entry *entry, uint64_t start, uint64_t end, uint32_t module)
{
    atomic_store_explicit(&entry->start, start, memory_order_relaxed);
    atomic_store_explicit(&entry->end, end, memory_order_relaxed);
    atomic_store_explicit(&entry->module, module, memory_order_relaxed);
}

static void move(struct index_entry *to, const struct index_entry *from)
{
    put(to, atomic_load_explicit(&from->start, memory_order_relaxed),
        atomic_load_explicit(&from->end, memory_order_relaxed),
        atomic_load_explicit(&from->module, memory_order_relaxed));
}

/* Insertion from the end: the loader places most objects below the one before. */
static void insert(struct index_entry *index, uint32_t used, uint32_t module)
{
    const struct vs_record_module *description = &modules.table[module].description;
    uint32_t at = used;
    while (at > 0 &&
           atomic_load_explicit(&index[at - 1].start, memory_order_relaxed) > description->start) {
        move(&index[at], &index[at - 1]);
        at--;
    }
    put(&index[at], description->start, description->end, module);
}

/* After a walk over the first `before` entries and new ones behind them. */
static void move_generation(uint32_t before)
{
    uint32_t count = atomic_load_explicit(&modules.count, memory_order_relaxed);
    uint32_t generation = atomic_load_explicit(&modules.generation, memory_order_relaxed);
    for (uint32_t i = 0; i < before; i++) {
        if (atomic_load_explicit(&modules.table[i].seen, memory_order_relaxed) + 1 ==
            modules.walks) {
            generation = atomic_load_explicit(&modules.generation, memory_order_relaxed) + 1;
        }
    }
    for (uint32_t i = before; i < count; i++) {
        modules.table[i].appeared = generation;
    }
    /* Before the index: whoever finds a new object in an address's place has the new generation. */
    atomic_store_explicit(&modules.generation, generation, memory_order_release);
}

static void rebuild_index(void)
{
    uint32_t version = atomic_load_explicit(&modules.version, memory_order_relaxed);
    uint32_t spare = (version + 1) & 1U;
    uint32_t count = atomic_load_explicit(&modules.count, memory_order_relaxed);
    uint32_t used = 0;
    /* Readers that are two versions behind may be looking at what we now overwrite; they notice. */
    for (uint32_t i = count; i-- > 0;) {
        if (atomic_load_explicit(&modules.table[i].seen, memory_order_relaxed) == modules.walks) {
            insert(modules.index[spare], used++, i);
        }
    }
    __atomic_store_n(&modules.index_count[spare], used, __ATOMIC_RELAXED);
    /* Release: the index is complete when its version shows. */
    atomic_store_explicit(&modules.version, version + 1, memory_order_release);
}

void modules_refresh(void)
{
    uint32_t idle = 0;
    if (!atomic_compare_exchange_strong(&modules.refreshing, &idle, 1)) {
        /* Whoever is at it looks once more, so that nobody waits and nothing is missed. */
        atomic_store(&modules.refreshing, 2);
        return;
    }
    uint32_t mine;
    do {
        atomic_store(&modules.refreshing, 1);
        bool first = true;
        uint32_t loads = atomic_load(&modules.loads_begun);
        uint32_t before = atomic_load_explicit(&modules.count, memory_order_relaxed);
        if (dl_iterate_phdr(visit_object, &first) != NOTHING_NEW) {
            move_generation(before);
            rebuild_index();
        }
        atomic_store(&modules.loads_seen, loads);
        atomic_store(&modules.refreshed_ns, shim_now_ns());
        mine = 1;
    } while (!atomic_compare_exchange_strong(&modules.refreshing, &mine, 0));
}

void modules_loading(void)
{
    atomic_fetch_add(&modules.loads_begun, 1);
}

bool modules_refresh_if_stale(bool missing)
{
    bool loaded = atomic_load(&modules.loads_begun) != atomic_load(&modules.loads_seen);
    if (!loaded &&
        !(missing && shim_now_ns() - atomic_load(&modules.refreshed_ns) >= STALE_AFTER_NS)) {
        return false;
    }
    modules_refresh();
    return true;
}

uint32_t modules_generation(void)
{
    return atomic_load_explicit(&modules.generation, memory_order_acquire);
}

/* ---- finding ------------------------------------------------------------------- */

/* Index of the last entry that starts at or before `address` and ends behind it; -1 none. */
static int64_t search(const struct index_entry *index, uint32_t count, uint64_t address)
{
    uint32_t low = 0;
    uint32_t high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (atomic_load_explicit(&index[middle].start, memory_order_relaxed) <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == 0 || address >= atomic_load_explicit(&index[low - 1].end, memory_order_relaxed)) {
        return -1;
    }
    return atomic_load_explicit(&index[low - 1].module, memory_order_relaxed);
}

/* Sent once per process; again when the first attempt found no room. */
static void send_definition(uint32_t id)
{
    struct module *module = &modules.table[id - 1];
    uint32_t process = shim_generation() + 1;
    if (atomic_load_explicit(&module->sent_to, memory_order_relaxed) == process ||
        !shim_recording()) {
        return;
    }
    if (shim_emit_definition(VS_RECORD_MODULE, id, module->appeared, &module->description,
                             sizeof(module->description), module->path, module->path_bytes)) {
        atomic_store_explicit(&module->sent_to, process, memory_order_relaxed);
    }
}

/*
 * What was found lately, of one index: no search for a caller that calls again. The
 * two words belong together, whoever wrote them, if the one makes the address of the
 * other.
 */
static struct {
    _Atomic uint64_t mixed; /* address, with `what` mixed in */
    _Atomic uint64_t what;  /* version << 32 | id */
} found_lately[1U << FOUND_BITS];

static uint64_t mix(uint64_t address, uint64_t what)
{
    return address ^ what * 0x9e3779b97f4a7c15ULL;
}

static unsigned place_of(uint64_t address)
{
    return (unsigned)(address * 0xd6e8feb86659fd93ULL >> (64 - FOUND_BITS));
}

/* Id, 0: not among them. */
static uint32_t find_again(uint64_t address)
{
    unsigned place = place_of(address);
    uint64_t what = atomic_load_explicit(&found_lately[place].what, memory_order_relaxed);
    uint64_t mixed = atomic_load_explicit(&found_lately[place].mixed, memory_order_relaxed);
    uint32_t version = atomic_load_explicit(&modules.version, memory_order_acquire);
    return mixed == mix(address, what) && what >> 32 == version ? (uint32_t)what : 0;
}

static void note_found(uint64_t address, uint32_t version, uint32_t id)
{
    unsigned place = place_of(address);
    uint64_t what = (uint64_t)version << 32 | id;
    atomic_store_explicit(&found_lately[place].what, what, memory_order_relaxed);
    atomic_store_explicit(&found_lately[place].mixed, mix(address, what), memory_order_relaxed);
}

static uint32_t find(const void *address)
{
    for (int try = 0; try < FIND_TRIES; try++) {
        uint32_t version = atomic_load_explicit(&modules.version, memory_order_acquire);
        uint32_t count = __atomic_load_n(&modules.index_count[version & 1U], __ATOMIC_RELAXED);
        int64_t found = search(modules.index[version & 1U], count, (uint64_t)(uintptr_t)address);
        /* The loads above come before the second look. */
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(&modules.version, memory_order_relaxed) == version) {
            if (found >= 0) {
                note_found((uint64_t)(uintptr_t)address, version, (uint32_t)found + 1);
            }
            return found < 0 ? 0 : (uint32_t)found + 1;
        }
    }
    return 0;
}

uint32_t modules_find(const void *address)
{
    uint32_t id = find_again((uint64_t)(uintptr_t)address);
    if (id == 0) {
        id = find(address);
    }
    if (id != 0) {
        send_definition(id);
    }
    return id;
}

bool modules_tables(const void *address, struct modules_tables *tables)
{
    uint32_t id = find(address);
    if (id != 0) {
        *tables = modules.table[id - 1].tables;
        tables->first = modules.table[id - 1].description.start;
        tables->last = modules.table[id - 1].description.end;
    }
    return id != 0;
}

const char *modules_path(uint32_t id)
{
    if (id == 0 || id > atomic_load_explicit(&modules.count, memory_order_acquire)) {
        return NULL;
    }
    return modules.table[id - 1].path;
}
