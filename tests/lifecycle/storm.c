/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that allocate and free as fast as they may, to be killed, starved or
 * timed. Usage: storm THREADS EVENTS [--log FILE ENTRIES] [--pause MICROSECONDS]
 * EVENTS 0: until killed. Each thread keeps up to 16 blocks; everything is freed at
 * the end. With --log the program keeps its own sequence (storm.h). Prints the
 * wall time of the loops and the number of calls made.
 */
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "driver.h"
#include "storm.h"

enum { KEPT_BLOCKS = 16 };

struct storm {
    struct driver driver;
    void *context;
    uint64_t events; /* per thread, 0 = for ever */
    unsigned pause_us;
    struct storm_header *log;
    pthread_barrier_t start;
};

struct worker {
    struct storm *storm;
    unsigned index;
    uint64_t done;
    uint64_t random;
    uint64_t blocks[KEPT_BLOCKS];
};

static void note(struct worker *worker, uint64_t time_ns, uint64_t address, uint64_t size)
{
    struct storm_header *log = worker->storm->log;
    struct storm_thread *thread = &log->thread[worker->index];
    uint64_t count = atomic_load_explicit(&thread->count, memory_order_relaxed);
    atomic_store_explicit(&thread->produced, worker->done + 1, memory_order_relaxed);
    if (count >= log->entries_per_thread)
        return;
    struct storm_entry *entries = (void *)((char *)log + STORM_HEADER_BYTES);
    entries[worker->index * log->entries_per_thread + count] =
        (struct storm_entry){time_ns, address, size, worker->done};
    atomic_store_explicit(&thread->count, count + 1, memory_order_release);
}

/* One call: frees the slot's block, or fills the empty slot. */
static void one_event(struct worker *worker)
{
    const struct driver *driver = &worker->storm->driver;
    struct storm_header *log = worker->storm->log;
    worker->random = worker->random * 6364136223846793005U + 1442695040888963407U;
    uint64_t *block = &worker->blocks[(worker->random >> 33) % KEPT_BLOCKS];
    uint64_t time_ns = log == NULL ? 0 : monotonic_ns();
    uint64_t size = 0;
    uint64_t address = *block;
    if (address != 0) {
        driver_check(driver->release(address), "cuMemFree_v2");
        *block = 0;
    } else {
        size = 512 + ((worker->random >> 40) % 64) * 512;
        address = *block = driver_alloc(driver, size);
    }
    if (log != NULL)
        note(worker, time_ns, address, size);
    worker->done++;
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    struct storm *storm = worker->storm;
    driver_check(storm->driver.context_set(storm->context), "cuCtxSetCurrent");
    if (storm->log != NULL)
        storm->log->thread[worker->index].tid = (uint32_t)syscall(SYS_gettid);
    pthread_barrier_wait(&storm->start);
    if (storm->log != NULL)
        atomic_fetch_add(&storm->log->started, 1);
    while (storm->events == 0 || worker->done < storm->events) {
        one_event(worker);
        if (storm->pause_us > 0)
            usleep(storm->pause_us);
    }
    return NULL;
}

static struct storm_header *open_log(const char *path, uint64_t entries, unsigned threads)
{
    size_t bytes = STORM_HEADER_BYTES + entries * threads * sizeof(struct storm_entry);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0) {
        fprintf(stderr, "storm: %s: %s\n", path, strerror(errno));
        exit(3);
    }
    struct storm_header *log = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (log == MAP_FAILED)
        exit(3);
    log->threads = threads;
    log->pid = (uint32_t)getpid();
    log->entries_per_thread = entries;
    log->magic = STORM_MAGIC;
    return log;
}

static uint64_t free_what_is_left(struct worker *workers, unsigned threads)
{
    uint64_t calls = 0;
    for (unsigned i = 0; i < threads; i++) {
        for (int block = 0; block < KEPT_BLOCKS; block++) {
            if (workers[i].blocks[block] == 0)
                continue;
            driver_check(workers[i].storm->driver.release(workers[i].blocks[block]), "free");
            calls++;
        }
        calls += workers[i].done;
    }
    return calls;
}

int main(int argc, char **argv)
{
    static struct storm storm;
    static struct worker workers[STORM_MAX_THREADS];
    pthread_t threads[STORM_MAX_THREADS];
    if (argc < 3)
        return 2;
    unsigned count = (unsigned)strtoul(argv[1], NULL, 10);
    if (count < 1 || count > STORM_MAX_THREADS)
        return 2;
    storm.events = strtoull(argv[2], NULL, 10);
    for (int i = 3; i < argc; i++) {
        if (strcmp(argv[i], "--log") == 0 && i + 2 < argc) {
            storm.log = open_log(argv[i + 1], strtoull(argv[i + 2], NULL, 10), count);
            i += 2;
        } else if (strcmp(argv[i], "--pause") == 0 && i + 1 < argc) {
            storm.pause_us = (unsigned)strtoul(argv[++i], NULL, 10);
        } else {
            return 2;
        }
    }
    storm.driver = driver_open();
    storm.context = driver_start(&storm.driver);
    pthread_barrier_init(&storm.start, NULL, count + 1);
    for (unsigned i = 0; i < count; i++) {
        workers[i] = (struct worker){.storm = &storm, .index = i, .random = i + 1};
        if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0)
            return 3;
    }
    pthread_barrier_wait(&storm.start);
    uint64_t begin_ns = monotonic_ns();
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    uint64_t wall_ns = monotonic_ns() - begin_ns;
    printf("wall_ns %llu calls %llu\n", (unsigned long long)wall_ns,
           (unsigned long long)free_what_is_left(workers, count));
    return 0;
}
