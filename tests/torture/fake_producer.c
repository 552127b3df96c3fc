/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for a traced process: makes a ring, starts a collector on it as
 * shim/collector_start.h describes, produces events by formats/ring.h and ends as
 * told. It shares no code with the shim, so that the collector is tested against
 * the text and not against our other half.
 *
 *   fake_producer COLLECTOR OUTPUT [WORD=VALUE …]
 *     events=N     ALLOC events to produce (1000)
 *     rate=N       events a second; 0: as fast as the ring takes them (0)
 *     cells=N      cells of the ring, a power of two (65536)
 *     leave=claimed|reserved    an unfinished record of a thread that is gone, before the last
 * event oom=1        the last event is a failed allocation, and asks for a flush lose=N       count
 * N lost events of 10 bytes each idle=MS      sleep before the end
 *     end=exit|silent|kill|exec|exec_silent   (exit); value=N: exit status
 *
 * Prints "produced N" and, once the collector has written all of it, "drained".
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../../formats/ring.h"

#define RING_FD 3
#define PIDFD 4
#define DESCRIPTORS 256 /* more than this program ever has */
#define NS_PER_SECOND 1000000000ULL
#define SETTLE_SECONDS 20

struct plan {
    const char *collector, *output, *leave, *end;
    uint64_t events, rate, cells, lose, idle_ms, file_limit;
    bool oom, device;
    int value;
};

static struct vs_ring_header *ring;
static union vs_cell *cells;

static void die(const char *what)
{
    perror(what);
    exit(99);
}

static uint64_t now_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

static void sleep_ns(uint64_t ns)
{
    struct timespec pause = {(time_t)(ns / NS_PER_SECOND), (long)(ns % NS_PER_SECOND)};
    nanosleep(&pause, NULL);
}

/* ---- the ring ------------------------------------------------------------------- */

static int make_ring(uint64_t cell_count)
{
    uint64_t bytes = VS_RING_HEADER_BYTES + cell_count * VS_CELL_BYTES;
    int fd = memfd_create("fake-ring", 0);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0)
        die("memfd");
    ring = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (ring == MAP_FAILED)
        die("mmap");
    cells = (union vs_cell *)((char *)ring + VS_RING_HEADER_BYTES);
    ring->magic = VS_RING_MAGIC;
    ring->version = VS_RING_VERSION;
    ring->header_bytes = VS_RING_HEADER_BYTES;
    ring->cell_count = cell_count;
    ring->cell_shift = (uint32_t)__builtin_ctzll(cell_count);
    ring->pid = (uint32_t)getpid();
    ring->parent = (uint32_t)getppid();
    ring->start_monotonic_ns = now_ns(CLOCK_MONOTONIC);
    ring->start_boot_ns = now_ns(CLOCK_BOOTTIME);
    ring->start_real_ns = now_ns(CLOCK_REALTIME);
    ring->head = ring->tail = ring->drained = cell_count;
    return fd;
}

static void start_collector(const struct plan *plan, int ring_fd)
{
    char pid[16];
    pid_t self = getpid();
    snprintf(pid, sizeof pid, "%d", (int)self);
    setenv("FAKE_NVML_OWN", pid, 1);
    pid_t child = fork();
    if (child < 0)
        die("fork");
    if (child == 0) {
        int pidfd = (int)syscall(SYS_pidfd_open, self, 0);
        int high_ring = fcntl(ring_fd, F_DUPFD, 100), high_pidfd = fcntl(pidfd, F_DUPFD, 100);
        dup2(high_ring, RING_FD);
        dup2(high_pidfd, PIDFD);
        for (int fd = PIDFD + 1; fd < DESCRIPTORS; fd++)
            close(fd);
        if (plan->file_limit)
            setrlimit(RLIMIT_FSIZE, &(struct rlimit){plan->file_limit, plan->file_limit});
        execl(plan->collector, "vramscope-collector", "--ring-fd", "3", "--pidfd", "4", "--pid",
              pid, "--output", plan->output, (char *)NULL);
        die(plan->collector);
    }
    close(ring_fd);
    for (int i = 0; i < 2000 && ring->collector_state == VS_COLLECTOR_STARTING; i++)
        sleep_ns(NS_PER_SECOND / 1000);
    printf("collector_state %u\n", ring->collector_state);
}

static void wake(void)
{
    ring->wake_futex++;
    if (ring->consumer_sleeping)
        syscall(SYS_futex, &ring->wake_futex, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static union vs_cell *cell(uint64_t position)
{
    return &cells[position & (ring->cell_count - 1)];
}

static uint64_t reserve(uint32_t count)
{
    uint64_t head = ring->head, eighth = ring->cell_count / 8;
    while (head + count - ring->tail > ring->cell_count) {
        struct timespec longest = {1, 0};
        uint32_t seen = ring->space_futex;
        ring->producers_waiting++;
        wake();
        if (head + count - ring->tail > ring->cell_count)
            syscall(SYS_futex, &ring->space_futex, FUTEX_WAIT, seen, &longest, NULL, 0);
        ring->producers_waiting--;
    }
    while (!atomic_compare_exchange_weak(&ring->head, &head, head + count))
        continue;
    if (head / eighth != (head + count) / eighth)
        wake();
    return head;
}

static void claim(uint64_t position, uint32_t count)
{
    uint32_t thread = (uint32_t)syscall(SYS_gettid);
    cell(position)->first.claim = VS_CLAIM(position, count, thread, ring->cell_shift);
    cell(position)->first.stamp = VS_STAMP_CLAIMED | (position + 1);
}

static void put_event(const struct vs_event *event)
{
    uint64_t position = reserve(2);
    claim(position, 2);
    memcpy(cell(position)->first.body, event, VS_CELL_FIRST_BODY);
    memcpy(cell(position + 1)->next.body, (const char *)event + VS_CELL_FIRST_BODY,
           VS_CELL_NEXT_BODY);
    cell(position + 1)->next.stamp = position + 2;
    cell(position)->first.stamp = position + 1;
}

static void request_flush(void)
{
    ring->flush_request++;
    wake();
}

/* ---- what is produced --------------------------------------------------------------- */

static void *leave_claimed(void *unused)
{
    (void)unused;
    claim(reserve(3), 3);
    return NULL;
}

static void *leave_reserved(void *unused)
{
    (void)unused;
    reserve(3);
    return NULL;
}

static void leave_unfinished(const char *how)
{
    pthread_t thread;
    if (!how)
        return;
    if (pthread_create(&thread, NULL, strcmp(how, "claimed") == 0 ? leave_claimed : leave_reserved,
                       NULL) != 0)
        die("pthread_create");
    pthread_join(thread, NULL);
}

/* A record of any length: the body is cut over its cells. */
static void put_bytes(const void *bytes, size_t size)
{
    uint32_t count =
        (uint32_t)(1 + (size - VS_CELL_FIRST_BODY + VS_CELL_NEXT_BODY - 1) / VS_CELL_NEXT_BODY);
    uint64_t position = reserve(count);
    const char *from = (const char *)bytes + VS_CELL_FIRST_BODY;
    size_t left = size - VS_CELL_FIRST_BODY;
    claim(position, count);
    memcpy(cell(position)->first.body, bytes, VS_CELL_FIRST_BODY);
    for (uint32_t i = 1; i < count; i++) {
        size_t part = left < VS_CELL_NEXT_BODY ? left : VS_CELL_NEXT_BODY;
        memcpy(cell(position + i)->next.body, from, part);
        from += part;
        left -= part;
    }
    for (uint32_t i = count; i-- > 0;)
        cell(position + i)->next.stamp = position + i + 1;
}

static void tell_device(void)
{
    struct {
        struct vs_record_head head;
        struct vs_record_device device;
    } record = {.head = {.type = VS_RECORD_DEVICE, .bytes = sizeof record.device},
                .device = {.total_bytes = 1ULL << 30, .name = "Fake", .driver_version = 13010}};
    memset(record.device.uuid, 0xab, sizeof record.device.uuid);
    put_bytes(&record, sizeof record);
}

static void produce(const struct plan *plan)
{
    if (plan->device)
        tell_device();
    uint64_t began = now_ns(CLOCK_MONOTONIC);
    for (uint64_t i = 0; i < plan->events; i++) {
        bool last = i + 1 == plan->events;
        if (last)
            leave_unfinished(plan->leave);
        struct vs_event event = {.time_ns = now_ns(CLOCK_MONOTONIC),
                                 .address = 0x700000000000 + i * 4096,
                                 .size = i,
                                 .kind = VS_KIND_ALLOC,
                                 .free_bytes = VS_FREE_UNKNOWN,
                                 .result = plan->oom && last ? 2 : 0};
        put_event(&event);
        if (plan->oom && last)
            request_flush();
        uint64_t due = plan->rate ? began + i * NS_PER_SECOND / plan->rate : 0;
        if (due > event.time_ns + NS_PER_SECOND / 1000)
            sleep_ns(due - event.time_ns);
    }
    ring->loss[VS_LOSS_STALLED][0][VS_KIND_ALLOC].events = plan->lose;
    ring->loss[VS_LOSS_STALLED][0][VS_KIND_ALLOC].bytes = plan->lose * 10;
    printf("produced %llu\n", (unsigned long long)plan->events);
}

static void wait_drained(void)
{
    uint64_t head = ring->head;
    request_flush();
    for (int i = 0; i < SETTLE_SECONDS * 1000; i++, sleep_ns(NS_PER_SECOND / 1000))
        if (ring->drained >= head || ring->collector_state >= VS_COLLECTOR_FAILED) {
            puts(ring->drained >= head ? "drained" : "failed");
            return;
        }
    puts("not drained");
}

static void end_as_planned(const struct plan *plan)
{
    bool exec = strncmp(plan->end, "exec", 4) == 0;
    bool told = strcmp(plan->end, "exit") == 0 || strcmp(plan->end, "exec") == 0;
    if (told) {
        ring->end_value = plan->value;
        ring->end_ns = now_ns(CLOCK_MONOTONIC);
        ring->end_kind = exec ? VS_END_EXEC : VS_END_EXIT;
        if (!plan->leave)
            wait_drained();
    }
    if (ring->collector_messages)
        printf("message %s\n", ring->collector_message);
    fflush(stdout);
    if (strcmp(plan->end, "kill") == 0)
        raise(SIGKILL);
    if (exec)
        execl("/bin/sleep", "sleep", "4", (char *)NULL);
    _exit(plan->value);
}

/* ---- the plan -------------------------------------------------------------------------- */

static const char *value_of(char **words, const char *name, const char *otherwise)
{
    size_t bytes = strlen(name);
    for (; *words; words++)
        if (strncmp(*words, name, bytes) == 0 && (*words)[bytes] == '=')
            return *words + bytes + 1;
    return otherwise;
}

static uint64_t number_of(char **words, const char *name, const char *otherwise)
{
    return strtoull(value_of(words, name, otherwise), NULL, 10);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fputs("usage: fake_producer COLLECTOR OUTPUT [WORD=VALUE …]\n", stderr);
        return 2;
    }
    struct plan plan = {.collector = argv[1],
                        .output = argv[2],
                        .events = number_of(argv + 3, "events", "1000"),
                        .rate = number_of(argv + 3, "rate", "0"),
                        .cells = number_of(argv + 3, "cells", "65536"),
                        .leave = value_of(argv + 3, "leave", NULL),
                        .device = number_of(argv + 3, "device", "0") != 0,
                        .oom = number_of(argv + 3, "oom", "0") != 0,
                        .lose = number_of(argv + 3, "lose", "0"),
                        .file_limit = number_of(argv + 3, "file_limit", "0"),
                        .idle_ms = number_of(argv + 3, "idle", "0"),
                        .end = value_of(argv + 3, "end", "exit"),
                        .value = (int)number_of(argv + 3, "value", "0")};
    start_collector(&plan, make_ring(plan.cells));
    produce(&plan);
    fflush(stdout);
    sleep_ns(plan.idle_ms * (NS_PER_SECOND / 1000));
    end_as_planned(&plan);
}
