/* SPDX-License-Identifier: Apache-2.0 */
/* What a hook does, callable by name: the core's tests have no CUDA calls. */
#include <stddef.h>

#include "../../../formats/record.h"
#include "../../../shim/ring_producer.h"
#include "../../../shim/shim.h"

SHIM_EXPORT void core_cuda_seen(void);
SHIM_EXPORT uint64_t core_emit(uint64_t address, uint64_t size);
SHIM_EXPORT int core_recording(void);
SHIM_EXPORT void core_stop_thread_at(int where, void (*then)(void));

void core_cuda_seen(void)
{
    lifecycle_cuda_seen();
}

uint64_t core_emit(uint64_t address, uint64_t size)
{
    struct vs_event event = {.kind = VS_KIND_ALLOC,
                             .address = address,
                             .size = size,
                             .device = 0,
                             .free_bytes = VS_FREE_UNKNOWN,
                             .module = modules_find(__builtin_return_address(0)),
                             .call = intern_call(4, "coreAlloc")};
    event.label = event.call;
    return shim_emit(&event);
}

int core_recording(void)
{
    return shim_recording();
}

static int stop_where;
static void (*stop_then)(void);

static void at_point(enum ring_test_point where, uint64_t position)
{
    (void)position;
    if ((int)where == stop_where) {
        ring_test_point = NULL;
        stop_then();
    }
}

/* The next record to reach that point runs `then` between its reservation and its commit. */
void core_stop_thread_at(int where, void (*then)(void))
{
    stop_where = where;
    stop_then = then;
    ring_test_point = at_point;
}
