/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring without a life cycle: what ring_producer.c asks the other rooms of the
 * shim for, answered by a test. Static on purpose: one test program, one ring.
 */
#ifndef VS_TESTS_UNIT_RING_LAB_H
#define VS_TESTS_UNIT_RING_LAB_H

#include <sys/mman.h>

#include <unistd.h>

#include "../../shim/lifecycle.h"
#include "../../shim/ring_producer.h"
#include "../../shim/shim.h"
#include "../../shim/stacks.h"
#include "../../shim/thread_state.h"
#include "../torture/consumer.h"

struct shim_config shim_config;
struct vs_ring_header *lifecycle_ring;
static struct lifecycle_page lab_page = {.recording = 1, .generation = 1};
struct lifecycle_page *lifecycle_page = &lab_page;
static _Atomic uint64_t lab_unrecorded;
static _Atomic uint64_t lab_abandoned;

bool shim_recording(void)
{
    return atomic_load(&lab_page.recording) != 0;
}

uint32_t shim_generation(void)
{
    return atomic_load(&lab_page.generation);
}

bool lifecycle_wait_until_recording(uint64_t longest_ns)
{
    (void)longest_ns;
    return false;
}

void lifecycle_lose_unrecorded(const struct vs_event *event)
{
    (void)event;
    lab_unrecorded++;
}

void lifecycle_count_abandoned(void)
{
    lab_abandoned++;
}

bool lifecycle_collector_lives(void)
{
    return true;
}

void intern_thread(void)
{
    if (shim_thread.tid == 0) {
        thread_first_use();
    }
    shim_thread.named = 1;
}

#ifndef LAB_HAS_STACKS /* else the test links shim/stacks.c */
uint32_t stacks_capture(void)
{
    return 0;
}
#endif

/* A fresh ring of `bytes`, of which nothing is left from the test before. */
static struct consumer lab_open(uint64_t bytes)
{
    uint64_t cells = ring_cells_for(bytes);
    lifecycle_ring = mmap(NULL, ring_bytes_for(cells), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ring_initialize(lifecycle_ring, cells, (uint32_t)getpid());
    return (struct consumer){.ring = lifecycle_ring};
}

__attribute__((unused)) static struct vs_event lab_event(uint64_t number)
{
    return (struct vs_event){.kind = VS_KIND_ALLOC,
                             .address = number,
                             .size = 1000 + number,
                             .handle = ~number,
                             .device = 3};
}

#endif
