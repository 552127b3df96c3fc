/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for ring, life cycle, names and configuration. */
#include "hook_lab.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../formats/ring.h"
#include "../../shim/lifecycle.h"
#include "../../shim/real_dl.h"
#include "../../shim/stacks.h"

struct lab lab;
struct shim_config shim_config;
static struct vs_ring_header ring_header;
struct vs_ring_header *lifecycle_ring = &ring_header;
static struct vs_record_device last_device;

/* Not Criterion's own: this file is part of each test program, not one itself. */
static void require(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "hook_lab: wanted: %s\n", what);
        abort();
    }
}

bool shim_recording(void)
{
    return lab.recording;
}

uint32_t shim_generation(void)
{
    return 1;
}

void lifecycle_cuda_seen(void)
{
    if (!lab.recording) {
        lab.starts++;
    }
}

void lifecycle_flush_soon(void)
{
    lab.flushes++;
}

void stacks_objects_changed(void)
{
}

void lifecycle_count_abandoned(void)
{
    ring_header.abandoned_hooks++;
}

void shim_log(int level, const char *format, ...)
{
    (void)level, (void)format;
}

uint64_t shim_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

uint64_t shim_emit(struct vs_event *event)
{
    unsigned at = lab.count++;
    if (at >= LAB_EVENTS_MAX) {
        return 0;
    }
    lab.events[at] = *event;
    return at + 1;
}

uint64_t shim_emit_free(struct vs_event *event, uint64_t (*size_of)(const struct vs_event *event))
{
    event->size = lab.lossy ? size_of(event) : 0;
    return shim_emit(event);
}

bool shim_emit_definition(uint8_t type, uint32_t id, uint32_t aux, const void *payload,
                          uint32_t bytes, const void *more, uint32_t more_bytes)
{
    (void)id, (void)aux, (void)more, (void)more_bytes;
    if (type == VS_RECORD_DEVICE) {
        require(bytes == sizeof(last_device), "a DEVICE record of the right size");
        memcpy(&last_device, payload, bytes);
        lab.last_device = &last_device;
        lab.devices++;
    }
    return true;
}

uint16_t intern_call(unsigned index, const char *name)
{
    require(strcmp(name, hook_rows[index].name) == 0, "the name of the row");
    return (uint16_t)(index + 1);
}

void intern_thread(void)
{
}

const char *lab_call_name(uint16_t id)
{
    return id == 0 ? "" : hook_rows[id - 1].name;
}

void *lab_raw_symbol(void *handle, const char *name)
{
    return real_dlsym(handle, name);
}

struct fake_cuda *lab_begin(void)
{
    void *driver = dlopen(FAKE_CUDA_PATH, RTLD_NOW | RTLD_LOCAL);
    require(driver != NULL, FAKE_CUDA_PATH);
    struct fake_cuda *fake = lab_raw_symbol(driver, "fake_cuda");
    memset(fake, 0, sizeof(*fake));
    fake->has_context = 1;
    fake->raw_symbol = lab_raw_symbol;
    memset(&lab, 0, sizeof(lab));
    lab.recording = true;
    shim_config.sampling = SHIM_SAMPLE_NEVER;
    return fake;
}

unsigned lab_count(unsigned kind)
{
    unsigned found = 0;
    for (unsigned i = 0; i < lab.count; i++) {
        found += lab.events[i].kind == kind;
    }
    return found;
}

const struct vs_event *lab_event(unsigned kind, unsigned n)
{
    for (unsigned i = 0; i < lab.count; i++) {
        if (lab.events[i].kind == kind && n-- == 0) {
            return &lab.events[i];
        }
    }
    fprintf(stderr, "hook_lab: no event %u of kind %u\n", n, kind);
    abort();
}
