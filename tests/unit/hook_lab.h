/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hooks without ring and collector: what they emit is kept here, in order.
 * The program under test is the test itself, which exports the hooked names.
 */
#ifndef VS_TESTS_HOOK_LAB_H
#define VS_TESTS_HOOK_LAB_H

#include <stdbool.h>

#include "../../shim/hook.h"
#include "fakes/fake_cuda.h"

#define LAB_EVENTS_MAX 4096

struct lab {
    struct vs_event events[LAB_EVENTS_MAX];
    _Atomic unsigned count;
    bool recording;
    bool lossy;       /* events were lost before: frees are asked for their size */
    unsigned starts;  /* lifecycle_cuda_seen while not recording */
    unsigned flushes; /* lifecycle_flush_soon */
    unsigned devices; /* DEVICE records */
    struct vs_record_device *last_device;
};

extern struct lab lab;

/* Opens the fake driver (RTLD_LOCAL), gives it a context on device 0, records, forgets events. */
struct fake_cuda *lab_begin(void);
/* The n-th event of `kind`; fails the test when there is none. */
const struct vs_event *lab_event(unsigned kind, unsigned n);
unsigned lab_count(unsigned kind);
/* Name of a call or label id. */
const char *lab_call_name(uint16_t id);
/* libc's own dlsym. */
void *lab_raw_symbol(void *handle, const char *name);

#endif
