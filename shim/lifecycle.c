/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When recording is on: from the first sign of CUDA, in each process anew. A
 * fork of any kind is noticed by a page that the kernel wipes in the child, so
 * nothing has to run there and no call has to be interposed.
 */
#include "lifecycle.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "collector_start.h"
#include "config.h"
#include "event_clock.h"
#include "real_dl.h"
#include "ring_producer.h"
#include "stacks.h"
#include "sys.h"
#include "thread_state.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

#define PAGE_BYTES 4096U
#define NS_PER_MS 1000000ULL
#define START_WAIT_NS (2000 * NS_PER_MS) /* another thread is starting the collector */
#define READY_WAIT_NS (250 * NS_PER_MS)  /* the collector opens its file */

/* Stands in until the first sign of CUDA; nobody writes to it. */
static struct lifecycle_page idle_page;
struct lifecycle_page *lifecycle_page = &idle_page;
struct vs_ring_header *lifecycle_ring;

static struct {
    uint32_t generation;       /* survives a fork, unlike the page's */
    int pid;                   /* of the process that is recorded */
    int collector_pid;         /* 0: not known */
    uint32_t messages_printed; /* collector_messages at the last print */
} lifecycle;

/* Events between a fork and the child's own ring; they reach its header when it exists. */
static struct {
    _Atomic uint64_t total;
    struct vs_loss_counter by_device[VS_RING_DEVICES][VS_RING_LOSS_KINDS];
} unrecorded;

static struct lifecycle_page *current_page(void)
{
    return __atomic_load_n(&lifecycle_page, __ATOMIC_ACQUIRE);
}

bool shim_recording(void)
{
    return atomic_load_explicit(&lifecycle_page->recording, memory_order_acquire) != 0;
}

uint32_t shim_generation(void)
{
    return atomic_load_explicit(&lifecycle_page->generation, memory_order_relaxed);
}

bool lifecycle_is_recorded_process(void)
{
    return shim_recording() && sys_getpid() == lifecycle.pid;
}

bool lifecycle_collector_lives(void)
{
    return lifecycle.collector_pid == 0 ||
           sys_call2(SYS_kill, lifecycle.collector_pid, 0) != -ESRCH;
}

void lifecycle_count_abandoned(void)
{
    if (shim_recording()) {
        atomic_fetch_add_explicit(&lifecycle_ring->abandoned_hooks, 1, memory_order_relaxed);
    }
}

void lifecycle_flush_soon(void)
{
    if (shim_recording()) {
        ring_request_flush(lifecycle_ring);
    }
}

/* ---- events without a ring ------------------------------------------------- */

void lifecycle_lose_unrecorded(const struct vs_event *event)
{
    struct lifecycle_page *page = current_page();
    if (page == &idle_page || atomic_load(&page->phase) == LIFECYCLE_FAILED) {
        return;
    }
    unsigned slot = event->device >= 0 && event->device < (int)VS_RING_DEVICES - 1
                        ? (unsigned)event->device
                        : VS_RING_DEVICES - 1;
    struct vs_loss_counter *counter =
        &unrecorded.by_device[slot][event->kind & (VS_RING_LOSS_KINDS - 1)];
    atomic_fetch_add_explicit(&counter->bytes, event->size, memory_order_relaxed);
    atomic_fetch_add_explicit(&counter->events, 1, memory_order_relaxed);
    /* Release: who finds a total finds the counters behind it. */
    atomic_fetch_add_explicit(&unrecorded.total, 1, memory_order_release);
}

static void hand_over_unrecorded(struct vs_ring_header *ring)
{
    if (atomic_exchange_explicit(&unrecorded.total, 0, memory_order_acquire) == 0) {
        return;
    }
    for (unsigned device = 0; device < VS_RING_DEVICES; device++) {
        for (unsigned kind = 0; kind < VS_RING_LOSS_KINDS; kind++) {
            struct vs_loss_counter *counter = &unrecorded.by_device[device][kind];
            uint64_t events = atomic_exchange(&counter->events, 0);
            uint64_t bytes = atomic_exchange(&counter->bytes, 0);
            if (events != 0) {
                ring_count_loss(ring, VS_LOSS_FORKED, (int)device, kind, events, bytes);
            }
        }
    }
}

/* ---- start ----------------------------------------------------------------- */

/* The page on which a fork shows; made once and inherited, wiped, by every child. */
static struct lifecycle_page *make_page(void)
{
    struct lifecycle_page *page = current_page();
    if (page != &idle_page) {
        return page;
    }
    void *fresh =
        mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED) {
        return NULL;
    }
    if (madvise(fresh, PAGE_BYTES, MADV_WIPEONFORK) != 0) {
        munmap(fresh, PAGE_BYTES);
        return NULL;
    }
    if (!__atomic_compare_exchange_n(&lifecycle_page, &page, (struct lifecycle_page *)fresh, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        munmap(fresh, PAGE_BYTES);
        return page;
    }
    return fresh;
}

static void set_phase(struct lifecycle_page *page, enum lifecycle_phase phase)
{
    atomic_store(&page->phase, phase);
    ring_futex_wake(&page->phase);
}

bool lifecycle_wait_until_recording(uint64_t longest_ns)
{
    struct lifecycle_page *page = current_page();
    if (atomic_load(&page->phase) == LIFECYCLE_STARTING) {
        ring_futex_wait(&page->phase, LIFECYCLE_STARTING, longest_ns);
    }
    return shim_recording();
}

/* The ring that the parent of this fork recorded into; its mapping did not come along. */
static uint32_t forked_from(void)
{
    return lifecycle.pid != 0 && lifecycle.pid != sys_getpid() ? (uint32_t)lifecycle.pid : 0;
}

static int begin_recording(struct lifecycle_page *page)
{
    struct collector_started started;
    int status = collector_start(&started, forked_from());
    if (status < 0) {
        return status;
    }
    lifecycle.generation++;
    lifecycle.pid = sys_getpid();
    lifecycle.collector_pid = started.pid;
    lifecycle.messages_printed = 0;
    lifecycle_ring = started.ring;
    event_clock_start(started.clock_is_counter);
    atomic_store(&page->generation, lifecycle.generation);
    stacks_begin();
    hand_over_unrecorded(started.ring);
    /* Release: the ring and the generation come before it. */
    atomic_store_explicit(&page->recording, 1, memory_order_release);
    return 0;
}

static void wait_until_ready(struct vs_ring_header *ring)
{
    uint64_t deadline = shim_now_ns() + READY_WAIT_NS;
    uint64_t now = deadline - READY_WAIT_NS;
    while (atomic_load(&ring->collector_state) == VS_COLLECTOR_STARTING && now < deadline &&
           lifecycle_collector_lives()) {
        uint64_t left = deadline - now;
        ring_futex_wait(&ring->collector_state, VS_COLLECTOR_STARTING,
                        left < NS_PER_MS ? left : NS_PER_MS);
        now = shim_now_ns();
    }
}

static void start(struct lifecycle_page *page)
{
    modules_refresh();
    config_find_collector();
    int status = begin_recording(page);
    if (status < 0) {
        set_phase(page, LIFECYCLE_FAILED);
        shim_log(1, "not recording pid %d: the collector could not be started: %s (%s)",
                 sys_getpid(), strerror(-status), shim_config.collector);
        return;
    }
    fatal_signals_install();
    stacks_prepare();
    set_phase(page, LIFECYCLE_RECORDING);
    wait_until_ready(lifecycle_ring);
    lifecycle_print_messages();
}

void lifecycle_cuda_seen(void)
{
    struct shim_thread *thread = &shim_thread;
    uint32_t idle = LIFECYCLE_IDLE;

    if (shim_recording() || shim_config.disabled || thread->busy != 0 ||
        atomic_load(&current_page()->phase) == LIFECYCLE_FAILED) {
        return;
    }
    int saved_errno = errno;
    struct lifecycle_page *page = make_page();
    struct thread_frame frame;
    thread_frame_open(&frame);
    thread->busy_mark = &frame;
    thread->busy++;
    if (page == NULL) {
        shim_config.disabled = true;
        shim_log(1, "not recording: this kernel cannot wipe a page on fork (Linux 4.14 can)");
    } else if (atomic_compare_exchange_strong(&page->phase, &idle, LIFECYCLE_STARTING)) {
        start(page);
    } else {
        lifecycle_wait_until_recording(START_WAIT_NS);
    }
    thread->busy--;
    errno = saved_errno;
}

/* ---- messages -------------------------------------------------------------- */

void lifecycle_print_messages(void)
{
    char text[sizeof(lifecycle_ring->collector_message)];
    if (!shim_recording()) {
        return;
    }
    /* Acquire: the text was written before the counter moved. */
    uint32_t messages =
        atomic_load_explicit(&lifecycle_ring->collector_messages, memory_order_acquire);
    if (messages == __atomic_exchange_n(&lifecycle.messages_printed, messages, __ATOMIC_RELAXED)) {
        return;
    }
    memcpy(text, lifecycle_ring->collector_message, sizeof(text));
    text[sizeof(text) - 1] = '\0';
    for (char *c = text; *c != '\0'; c++) {
        if ((unsigned char)*c < ' ') {
            *c = '?';
        }
    }
    shim_log(1, "%s", text);
}

/* ---- load and unload ------------------------------------------------------- */

__attribute__((constructor)) static void on_load(void)
{
    int saved_errno = errno;
    config_load();
    /* A second copy of us, at another path: the first one records. */
    shim_config.disabled = shim_config.disabled || real_defined_before("vramscope_mark");
    real_dl_load();
    process_end_resolve();
    fatal_signals_resolve();
    if (!shim_config.disabled) {
        modules_refresh();
        stacks_prepare();
    }
    errno = saved_errno;
}
