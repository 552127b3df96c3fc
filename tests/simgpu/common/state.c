/* SPDX-License-Identifier: Apache-2.0 */
/* Shared state of the simulated devices: attaching, liveness, charging; see state.h. */
#include "state_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define STATE_MAGIC 0x73696d6770753031ULL
#define LOWEST_LOCK_FD 700 /* above what programs that close their descriptors loop over */
#define RECORDS_BYTES ((size_t)SIMGPU_MAX_RECORDS * sizeof(struct simgpu_record))

struct simgpu_state_view simgpu_view = {
    .attach_lock = PTHREAD_MUTEX_INITIALIZER, .slot = -1, .lock_fd = -1};

const char *simgpu_kind_name(enum simgpu_kind kind)
{
    static const char *const names[] = {
#define X(name, text) text,
        SIMGPU_KINDS(X)
#undef X
    };
    return kind < SIMGPU_KIND_COUNT ? names[kind] : "unknown";
}

/* ---- locks on bytes of STATE.lock: byte 0 guards creation, byte 1 + slot says "alive" ---- */

static int lock_byte(int command, short type, off_t byte)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    return fcntl(simgpu_view.lock_fd, command, &lock) ? -errno : lock.l_type;
}

static bool is_alive(int slot)
{
    if (slot == simgpu_view.slot || simgpu_view.lock_fd < 0)
        return true;
    return lock_byte(F_GETLK, F_WRLCK, 1 + slot) != F_UNLCK;
}

static int open_lock_file(const char *path)
{
    char name[PATH_MAX];
    if (snprintf(name, sizeof name, "%s.lock", path) >= (int)sizeof name)
        return -ENAMETOOLONG;
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, LOWEST_LOCK_FD);
    if (high >= 0) {
        close(fd);
        fd = high;
    }
    simgpu_view.lock_fd = fd;
    return 0;
}

/* ---- mapping ---- */

static void init_header(struct simgpu_header *header)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&header->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);

    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t start_ns = simgpu_config()->start_ns;
    header->start_ns =
        start_ns ? start_ns : (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
    header->page_cache_base = simgpu_page_cache_bytes();
    header->magic = STATE_MAGIC;
}

static int map_file(const char *path)
{
    int error = open_lock_file(path);
    if (error)
        return error;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    lock_byte(F_SETLKW, F_WRLCK, 0);
    struct stat status;
    size_t header_size = sizeof(struct simgpu_header);
    off_t whole = (off_t)(header_size + RECORDS_BYTES * SIMGPU_MAX_PROCESSES);
    bool fresh = fstat(fd, &status) == 0 && status.st_size < whole;
    if (fresh && ftruncate(fd, whole))
        error = -errno;
    void *map =
        error ? MAP_FAILED : mmap(NULL, header_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        error = error ? error : -errno;
    else if (fresh)
        init_header(map);
    lock_byte(F_SETLK, F_UNLCK, 0);
    if (error) {
        close(fd);
        return error;
    }
    simgpu_view.header = map;
    simgpu_view.fd = fd;
    return simgpu_view.header->magic == STATE_MAGIC ? 0 : -EPROTO;
}

static int map_private(void)
{
    void *map = mmap(NULL, sizeof(struct simgpu_header), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED)
        return -errno;
    simgpu_view.header = map;
    simgpu_view.fd = -1;
    init_header(map);
    return 0;
}

struct simgpu_record *simgpu_state_map_records(int slot)
{
    int flags = simgpu_view.fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
    off_t offset = (off_t)(sizeof(struct simgpu_header) + RECORDS_BYTES * (size_t)slot);
    void *map = mmap(NULL, RECORDS_BYTES, PROT_READ | PROT_WRITE, flags, simgpu_view.fd,
                     simgpu_view.fd < 0 ? 0 : offset);
    return map == MAP_FAILED ? NULL : map;
}

void simgpu_state_unmap_records(struct simgpu_record *records)
{
    munmap(records, RECORDS_BYTES);
}

/* ---- the lock, and what a death leaves behind ---- */

static uint64_t slot_bytes(const struct simgpu_process *process, unsigned device)
{
    uint64_t bytes = 0;
    for (unsigned kind = 0; kind < SIMGPU_KIND_COUNT; kind++)
        bytes += process->used_bytes[device][kind];
    return bytes;
}

/* A process died inside the lock: the per-slot figures are the truth, the sums follow. */
static void recompute_sums(struct simgpu_header *header)
{
    for (unsigned device = 0; device < SIMGPU_MAX_DEVICES; device++) {
        header->used_bytes[device] = 0;
        for (int slot = 0; slot < SIMGPU_MAX_PROCESSES; slot++)
            if (header->processes[slot].generation)
                header->used_bytes[device] += slot_bytes(&header->processes[slot], device);
    }
}

void simgpu_state_lock(void)
{
    if (pthread_mutex_lock(&simgpu_view.header->lock) == EOWNERDEAD) {
        pthread_mutex_consistent(&simgpu_view.header->lock);
        recompute_sums(simgpu_view.header);
    }
}

void simgpu_state_unlock(void)
{
    pthread_mutex_unlock(&simgpu_view.header->lock);
}

static bool is_held(const struct simgpu_export *entry)
{
    for (unsigned word = 0; word < SIMGPU_MAX_PROCESSES / 64; word++)
        if (entry->holders[word])
            return true;
    return false;
}

static int first_holder(const struct simgpu_export *entry)
{
    for (int slot = 0; slot < SIMGPU_MAX_PROCESSES; slot++)
        if (entry->holders[slot / 64] >> (slot % 64) & 1)
            return slot;
    return -1;
}

/* SLOT no longer holds ENTRY; if it paid, the next holder does. The bytes move within one device,
 * so the device's sum changes only when nobody is left. Lock held. */
static void drop_holder(struct simgpu_export *entry, int slot)
{
    struct simgpu_header *header = simgpu_view.header;
    entry->holders[slot / 64] &= ~(UINT64_C(1) << (slot % 64));
    if (entry->payer != slot)
        return;
    int next = first_holder(entry);
    header->processes[slot].used_bytes[entry->device][SIMGPU_PHYSICAL] -= entry->bytes;
    if (next >= 0)
        header->processes[next].used_bytes[entry->device][SIMGPU_PHYSICAL] += entry->bytes;
    else
        header->used_bytes[entry->device] -= entry->bytes;
    entry->payer = next;
}

static void clear_slot(int slot)
{
    struct simgpu_header *header = simgpu_view.header;
    struct simgpu_process *process = &header->processes[slot];
    for (unsigned i = 0; i < header->export_end; i++) {
        struct simgpu_export *entry = &header->exports[i];
        if (!entry->id)
            continue;
        if (entry->holders[slot / 64] >> (slot % 64) & 1)
            drop_holder(entry, slot);
        if (entry->maker == slot)
            entry->maker = -1;
        if (entry->maker < 0 && !is_held(entry))
            entry->id = 0;
    }
    for (unsigned device = 0; device < SIMGPU_MAX_DEVICES; device++)
        header->used_bytes[device] -= slot_bytes(process, device);
    struct simgpu_record *records = process->record_end ? simgpu_state_map_records(slot) : NULL;
    if (records) {
        memset(records, 0, process->record_end * sizeof *records);
        simgpu_state_unmap_records(records);
    }
    memset(process, 0, sizeof *process);
}

void simgpu_state_reap(void)
{
    if (simgpu_view.fd < 0)
        return;
    for (int slot = 0; slot < SIMGPU_MAX_PROCESSES; slot++)
        if (simgpu_view.header->processes[slot].generation && !is_alive(slot))
            clear_slot(slot);
}

/* ---- slots ---- */

static void name_process(struct simgpu_process *process)
{
    process->pid = (int32_t)getpid();
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    const char *slash = strrchr(path, '/');
    snprintf(process->name, sizeof process->name, "%.59s", slash ? slash + 1 : path);
}

static int take_slot(void)
{
    struct simgpu_header *header = simgpu_view.header;
    int result = -ENOSPC;
    simgpu_state_lock();
    simgpu_state_reap();
    for (int slot = 0; slot < SIMGPU_MAX_PROCESSES && result == -ENOSPC; slot++) {
        struct simgpu_process *process = &header->processes[slot];
        if (process->generation)
            continue;
        if (simgpu_view.lock_fd >= 0 && lock_byte(F_SETLK, F_WRLCK, 1 + slot) < 0)
            continue;
        struct simgpu_record *records = simgpu_state_map_records(slot);
        if (!records) {
            result = -ENOMEM;
            break;
        }
        simgpu_view.records = records;
        simgpu_view.slot = slot;
        name_process(process);
        process->generation = ++header->generation;
        simgpu_view.generation = process->generation;
        result = 0;
    }
    simgpu_state_unlock();
    return result;
}

int simgpu_state_attach(bool owner)
{
    const char *path = getenv("SIMGPU_STATE");
    int error = 0;
    pthread_mutex_lock(&simgpu_view.attach_lock);
    if (!simgpu_view.header)
        error = path && *path ? map_file(path) : map_private();
    if (!error && owner)
        error = take_slot();
    pthread_mutex_unlock(&simgpu_view.attach_lock);
    return error;
}

int simgpu_state_slot(void)
{
    return simgpu_view.slot;
}

/* ---- charging ---- */

struct simgpu_process *simgpu_state_own(void)
{
    struct simgpu_process *process =
        simgpu_view.slot < 0 ? NULL : &simgpu_view.header->processes[simgpu_view.slot];
    return process && process->generation == simgpu_view.generation ? process : NULL;
}

uint64_t simgpu_state_other_bytes(unsigned device, int pid)
{
    const struct simgpu_config *config = simgpu_config();
    if (!config->other_count)
        return 0;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
    uint64_t bytes = 0;
    for (unsigned i = 0; i < config->other_count; i++) {
        const struct simgpu_other *other = &config->others[i];
        if (other->device == (int)device && (pid == SIMGPU_ANY_PID || other->pid == pid) &&
            now_ns >= simgpu_view.header->start_ns + other->after_ns)
            bytes += other->bytes;
    }
    return bytes;
}

static bool has_room(unsigned device, uint64_t bytes)
{
    uint64_t used =
        simgpu_view.header->used_bytes[device] + simgpu_state_other_bytes(device, SIMGPU_ANY_PID);
    uint64_t total = simgpu_config()->memory_bytes;
    return used <= total && bytes <= total - used;
}

int simgpu_state_charge(unsigned device, enum simgpu_kind kind, uint64_t bytes)
{
    struct simgpu_header *header = simgpu_view.header;
    int result = -ENOMEM;
    simgpu_state_lock();
    if (!has_room(device, bytes))
        simgpu_state_reap();
    struct simgpu_process *process = simgpu_state_own();
    if (has_room(device, bytes)) {
        if (process) {
            process->used_bytes[device][kind] += bytes;
            header->used_bytes[device] += bytes;
        }
        result = 0;
    }
    simgpu_state_unlock();
    return result;
}

void simgpu_state_release(unsigned device, enum simgpu_kind kind, uint64_t bytes)
{
    struct simgpu_header *header = simgpu_view.header;
    simgpu_state_lock();
    struct simgpu_process *process = simgpu_state_own();
    if (process) {
        process->used_bytes[device][kind] -= bytes;
        header->used_bytes[device] -= bytes;
    }
    simgpu_state_unlock();
}

uint64_t simgpu_state_charged(unsigned device)
{
    if (device >= SIMGPU_MAX_DEVICES)
        return 0;
    simgpu_state_lock();
    simgpu_state_reap();
    uint64_t bytes = simgpu_view.header->used_bytes[device];
    simgpu_state_unlock();
    return bytes;
}

uint64_t simgpu_state_used(unsigned device)
{
    if (device >= SIMGPU_MAX_DEVICES)
        return 0;
    uint64_t total = simgpu_config()->memory_bytes;
    uint64_t used = simgpu_state_charged(device) + simgpu_state_other_bytes(device, SIMGPU_ANY_PID);
    if (simgpu_config()->integrated) {
        uint64_t cache = simgpu_page_cache_bytes();
        uint64_t base = simgpu_view.header->page_cache_base;
        used += cache > base ? cache - base : 0;
    }
    return used < total ? used : total;
}

void simgpu_state_count_call(unsigned call)
{
    atomic_fetch_add_explicit(&simgpu_view.header->processes[simgpu_view.slot].calls[call], 1,
                              memory_order_relaxed); /* a statistic: orders nothing */
}

/* ---- exported memory ---- */

static struct simgpu_export *find_export(uint64_t id)
{
    struct simgpu_header *header = simgpu_view.header;
    for (unsigned i = 0; id && i < header->export_end; i++)
        if (header->exports[i].id == id)
            return &header->exports[i];
    return NULL;
}

static void hold(struct simgpu_export *entry)
{
    entry->holders[simgpu_view.slot / 64] |= UINT64_C(1) << (simgpu_view.slot % 64);
}

uint64_t simgpu_state_publish(unsigned device, uint64_t offset, uint64_t bytes)
{
    struct simgpu_header *header = simgpu_view.header;
    uint64_t id = 0;
    simgpu_state_lock();
    /* Entries that nobody holds are kept for descriptors under way, as long as there is room. */
    bool is_full = header->export_end == SIMGPU_MAX_EXPORTS;
    for (unsigned i = 0; i < SIMGPU_MAX_EXPORTS; i++) {
        struct simgpu_export *entry = &header->exports[i];
        if (entry->id && !(is_full && !is_held(entry)))
            continue;
        *entry = (struct simgpu_export){.offset = offset, .bytes = bytes};
        entry->device = (int32_t)device;
        entry->payer = simgpu_view.slot;
        entry->maker = simgpu_view.slot;
        hold(entry);
        id = entry->id = ++header->generation;
        if (header->export_end <= i)
            header->export_end = i + 1;
        break;
    }
    simgpu_state_unlock();
    return id;
}

int simgpu_state_join(uint64_t id, struct simgpu_export *copy)
{
    struct simgpu_header *header = simgpu_view.header;
    int result = -ENOENT;
    simgpu_state_lock();
    struct simgpu_export *entry = find_export(id);
    if (entry && entry->payer < 0 && !has_room((unsigned)entry->device, entry->bytes)) {
        result = -ENOMEM;
    } else if (entry) {
        hold(entry);
        if (entry->payer < 0) {
            entry->payer = simgpu_view.slot;
            header->processes[entry->payer].used_bytes[entry->device][SIMGPU_PHYSICAL] +=
                entry->bytes;
            header->used_bytes[entry->device] += entry->bytes;
        }
        *copy = *entry;
        result = 0;
    }
    simgpu_state_unlock();
    return result;
}

void simgpu_state_leave(uint64_t id)
{
    simgpu_state_lock();
    struct simgpu_export *entry = find_export(id);
    if (entry) {
        drop_holder(entry, simgpu_view.slot);
        if (entry->maker < 0 && !is_held(entry))
            entry->id =
                0; /* while its maker lives, a descriptor under way may still bring it back */
    }
    simgpu_state_unlock();
}
