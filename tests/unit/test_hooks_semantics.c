/* SPDX-License-Identifier: Apache-2.0 */
/* Which call is recorded, when, with what: the rules of shim/hook.c. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <string.h>

#include "../../formats/ring.h"
#include "../../shim/lifecycle.h"
#include "hook_lab.h"

int cuInit(unsigned flags);
int cuMemAlloc_v2(uint64_t *out, size_t bytes);
int cuMemFree_v2(uint64_t address);
int cuMemCreate(uint64_t *out, size_t bytes, const struct cu_memory_props *props,
                unsigned long long flags);
int cuEventQuery(void *event);
int cuDevicePrimaryCtxRetain(void **out, int device);
int cuMemAllocAsync(uint64_t *out, size_t bytes, void *stream);
int cuMemAllocAsync_ptsz(uint64_t *out, size_t bytes, void *stream);
int cuStreamBeginCapture_v2(void *stream, int mode);
int cuStreamEndCapture(void *stream, void **graph);
int cuMulticastCreate(uint64_t *out, const struct cu_multicast_props *props);

Test(semantics, an_allocation_is_recorded_after_the_call)
{
    lab_begin();
    uint64_t address = 0;
    cr_assert_eq(cuMemAlloc_v2(&address, 4096), 0);
    cr_assert_eq(lab.count, 1);
    const struct vs_event *event = lab_event(VS_KIND_ALLOC, 0);
    cr_expect_eq(event->address, address);
    cr_expect_eq(event->size, 4096);
    cr_expect_eq(event->device, 0);
    cr_expect_neq(event->context, 0);
    cr_expect_eq(event->flags, 0);
    cr_expect_eq(event->free_bytes, VS_FREE_UNKNOWN);
    cr_expect_gt(event->duration_ns, 0);
    cr_expect_str_eq(lab_call_name(event->call), "cuMemAlloc_v2");
    cr_expect_eq(event->call, event->label);
    cr_expect_neq(event->module, 0);
}

Test(semantics, a_device_is_introduced_once)
{
    struct fake_cuda *fake = lab_begin();
    uint64_t address = 0;
    cuMemAlloc_v2(&address, 1);
    cuMemAlloc_v2(&address, 1);
    cr_expect_eq(lab.devices, 1);
    cr_expect_str_eq(lab.last_device->name, "fake 0");
    cr_expect_eq(lab.last_device->total_bytes, 1ULL << 30);
    fake->device = 1;
    cuMemAlloc_v2(&address, 1);
    cr_expect_eq(lab.devices, 2);
    cr_expect_eq(lab_event(VS_KIND_ALLOC, 2)->device, 1);
}

Test(semantics, a_failed_call_is_an_event_and_asks_for_a_flush)
{
    struct fake_cuda *fake = lab_begin();
    uint64_t address = 0;
    fake->result = 2;
    cr_assert_eq(cuMemAlloc_v2(&address, 4096), 2);
    cr_expect_eq(lab_event(VS_KIND_ALLOC, 0)->result, 2);
    cr_expect_eq(lab_event(VS_KIND_ALLOC, 0)->address, 0);
    cr_expect_eq(lab.flushes, 1);
}

Test(semantics, a_free_is_recorded_before_the_call)
{
    struct fake_cuda *fake = lab_begin();
    fake->on_free = NULL;
    cr_assert_eq(cuMemFree_v2(0x5000), 0);
    cr_assert_eq(lab.count, 1);
    const struct vs_event *event = lab_event(VS_KIND_FREE, 0);
    cr_expect_eq(event->address, 0x5000);
    cr_expect_eq(event->flags, VS_EVENT_INTENT);
    cr_expect_eq(event->result, 0);
}

static unsigned events_when_freeing;

static void note_events(void)
{
    events_when_freeing = lab.count;
}

Test(semantics, nobody_can_get_the_address_before_its_free_is_recorded)
{
    lab_begin()->on_free = note_events;
    cuMemFree_v2(0x5000);
    cr_expect_eq(events_when_freeing, 1);
}

Test(semantics, a_failed_free_is_taken_back)
{
    lab_begin()->result = 1;
    cr_assert_eq(cuMemFree_v2(0x5000), 1);
    cr_assert_eq(lab.count, 2);
    const struct vs_event *undo = lab_event(VS_KIND_UNDO, 0);
    cr_expect_eq(undo->handle, 1, "the sequence of the free");
    cr_expect_eq(undo->result, 1);
    cr_expect_eq(undo->flags & VS_EVENT_INTENT, 0);
}

Test(semantics, freeing_null_is_no_event)
{
    struct fake_cuda *fake = lab_begin();
    cr_expect_eq(cuMemFree_v2(0), 0);
    cr_expect_eq(lab.count, 0);
    cr_expect_eq(fake->free_calls, 1);
}

Test(semantics, a_free_passed_on_to_another_driver_counts_once)
{
    struct fake_cuda *fake = lab_begin();
    fake->free_through_free = 1;
    cr_assert_eq(cuMemFree_v2(0x5000), 0);
    cr_expect_eq(fake->free_calls, 2);
    cr_expect_eq(lab_count(VS_KIND_FREE), 1);
    cr_expect_eq(lab.count, 1);
}

Test(semantics, a_free_carried_out_by_other_calls_is_taken_back)
{
    lab_begin()->free_through_unmap = 1;
    cuMemFree_v2(0x5000);
    cr_expect_eq(lab_count(VS_KIND_FREE), 1);
    cr_expect_eq(lab_count(VS_KIND_UNMAP), 1);
    cr_expect_eq(lab_event(VS_KIND_UNDO, 0)->result, 0);
    cr_expect_str_eq(lab_call_name(lab_event(VS_KIND_UNMAP, 0)->label), "cuMemFree_v2");
}

Test(semantics, an_allocation_made_of_others_counts_once)
{
    lab_begin()->alloc_through_create = 1;
    uint64_t address = 0;
    cuMemAlloc_v2(&address, 4096);
    cr_assert_eq(lab.count, 1);
    const struct vs_event *event = lab_event(VS_KIND_PHYS_CREATE, 0);
    cr_expect_eq(event->size, 4096);
    cr_expect_str_eq(lab_call_name(event->call), "cuMemCreate");
    cr_expect_str_eq(lab_call_name(event->label), "cuMemAlloc_v2");
}

Test(semantics, physical_memory_belongs_to_the_device_of_its_properties)
{
    lab_begin();
    struct cu_memory_props props = {.location = {1, 5}};
    uint64_t handle = 0;
    cuMemCreate(&handle, 64, &props, 0);
    cr_expect_eq(lab_event(VS_KIND_PHYS_CREATE, 0)->device, 5);
    cr_expect_eq(lab_event(VS_KIND_PHYS_CREATE, 0)->handle, 77);
}

Test(semantics, not_ready_is_no_failure)
{
    struct fake_cuda *fake = lab_begin();
    fake->result = 600;
    cr_assert_eq(cuEventQuery((void *)3), 600);
    cr_expect_eq(lab_event(VS_KIND_EVENT_QUERY, 0)->result, 600);
    cr_expect_eq(lab.flushes, 0);
}

Test(semantics, a_pool_is_resolved_and_asked)
{
    lab_begin();
    shim_config.sampling = SHIM_SAMPLE_AUTO;
    uint64_t address = 0;
    cuMemAllocAsync(&address, 512, (void *)0x33);
    const struct vs_event *event = lab_event(VS_KIND_POOL_ALLOC, 0);
    cr_expect_eq(event->pool, 0x9000);
    cr_expect_eq(event->stream, 0x33);
    cr_expect_eq(event->extra[0], 500);
    cr_expect_eq(event->extra[1], 700);
    cuMemAllocAsync_ptsz(&address, 512, NULL);
    cr_expect_eq(lab_event(VS_KIND_POOL_ALLOC, 1)->stream, ABI_STREAM_PER_THREAD);
}

Test(semantics, nothing_is_sampled_during_a_capture)
{
    struct fake_cuda *fake = lab_begin();
    shim_config.sampling = SHIM_SAMPLE_ALWAYS;
    uint64_t address = 0;
    void *graph = NULL;
    cuMemAlloc_v2(&address, 1);
    /* With the event, or after it when the machine was busy. */
    cr_expect((lab_event(VS_KIND_ALLOC, 0)->flags & VS_EVENT_FREE_SAMPLED) != 0 ||
              lab_event(VS_KIND_SAMPLE, 0)->free_bytes == 1000);
    int before = fake->free_questions;
    cuStreamBeginCapture_v2((void *)0x33, 0);
    cuMemAllocAsync(&address, 512, (void *)0x33);
    cuMemAllocAsync(&address, 512, (void *)0x44);
    cr_expect_eq(fake->free_questions, before);
    cuStreamEndCapture((void *)0x33, &graph);
    cuMemAlloc_v2(&address, 1);
    cr_expect_gt(fake->free_questions, before);
    cr_expect(lab_event(VS_KIND_POOL_ALLOC, 0)->flags & VS_EVENT_CAPTURING);
    cr_expect_not(lab_event(VS_KIND_POOL_ALLOC, 1)->flags & VS_EVENT_CAPTURING);
    cr_expect_eq(lab_event(VS_KIND_CAPTURE_END, 0)->handle, 0x6000);
}

Test(semantics, sampling_takes_one_percent_of_the_time)
{
    struct fake_cuda *fake = lab_begin();
    shim_config.sampling = SHIM_SAMPLE_AUTO;
    fake->free_question_us = 1000;
    uint64_t address = 0;
    uint64_t end = shim_now_ns() + 300000000U;
    while (shim_now_ns() < end) {
        cuMemAlloc_v2(&address, 1);
        lab.count = 0;
    }
    /* 3 ms of 300, an allowance of 1 to begin with, and the one that goes beyond. */
    cr_expect_geq(fake->free_questions, 1);
    cr_expect_leq(fake->free_questions, 6);
    cr_expect_geq(lifecycle_ring->sample_spent_ns, 1000000U);
}

Test(semantics, no_context_no_questions)
{
    struct fake_cuda *fake = lab_begin();
    shim_config.sampling = SHIM_SAMPLE_ALWAYS;
    fake->has_context = 0;
    uint64_t address = 0;
    cuMemAlloc_v2(&address, 1);
    cr_expect_eq(fake->free_questions, 0);
    cr_expect_eq(lab_event(VS_KIND_ALLOC, 0)->device, VS_DEVICE_UNKNOWN);
}

/* Of two figures the one asked for later is right: the time is that before the question. */
Test(semantics, a_measurement_is_stamped_before_it_is_taken)
{
    struct fake_cuda *fake = lab_begin();
    shim_config.sampling = SHIM_SAMPLE_ALWAYS;
    fake->free_question_us = 3000;
    cuMemFree_v2(0x5000);
    uint64_t after_ns = shim_now_ns();
    const struct vs_event *event = lab_event(VS_KIND_SAMPLE, 0);
    cr_expect_geq(event->duration_ns, 3000000U);
    cr_expect_gt(event->time_ns, 0);
    cr_expect_leq(event->time_ns + event->duration_ns, after_ns);
}

/* A figure that was long in coming is not the event's. */
Test(semantics, a_late_measurement_is_an_event_of_its_own)
{
    struct fake_cuda *fake = lab_begin();
    shim_config.sampling = SHIM_SAMPLE_ALWAYS;
    fake->free_question_us = 3000;
    uint64_t address = 0;
    cuMemAlloc_v2(&address, 64);
    cr_expect_eq(lab_event(VS_KIND_ALLOC, 0)->free_bytes, VS_FREE_UNKNOWN);
    cr_expect_eq(lab_event(VS_KIND_ALLOC, 0)->flags, 0);
    cr_expect_eq(lab_event(VS_KIND_SAMPLE, 0)->free_bytes, 1000);
    cr_expect_geq(lab_event(VS_KIND_SAMPLE, 0)->time_ns, lab_event(VS_KIND_ALLOC, 0)->time_ns);
    cr_expect_eq(lab.events[0].kind, VS_KIND_ALLOC);
}

/* A retained context is current nowhere: it is made so to look, and nothing stays. */
Test(semantics, a_new_context_is_measured)
{
    struct fake_cuda *fake = lab_begin();
    shim_config.sampling = SHIM_SAMPLE_ALWAYS;
    fake->has_context = 0;
    void *context = NULL;
    cr_expect_eq(cuDevicePrimaryCtxRetain(&context, 1), 0);
    cr_expect_eq(lab_event(VS_KIND_CONTEXT_RETAIN, 0)->device, 1);
    const struct vs_event *event = lab_event(VS_KIND_SAMPLE, 0);
    cr_expect_eq(event->device, 1);
    cr_expect_eq(event->context, HOOK_U64(context));
    cr_expect_eq(event->free_bytes, 1700);
    cr_expect_eq(fake->pushed, 0);
    cr_expect_str_eq(lab.last_device->name, "fake 1");
}

Test(semantics, a_context_that_failed_is_not_measured)
{
    struct fake_cuda *fake = lab_begin();
    shim_config.sampling = SHIM_SAMPLE_ALWAYS;
    fake->has_context = 0;
    fake->result = 2;
    void *context = NULL;
    cr_expect_eq(cuDevicePrimaryCtxRetain(&context, 1), 2);
    cr_expect_eq(lab_count(VS_KIND_SAMPLE), 0);
}

/* Totals after losses need the size of what is freed; before, it is not asked for. */
Test(semantics, frees_after_a_loss_have_sizes)
{
    lab_begin();
    cuMemFree_v2(0x5000);
    cr_expect_eq(lab_event(VS_KIND_FREE, 0)->size, 0);
    lab.lossy = true;
    cuMemFree_v2(0x5000);
    cr_expect_eq(lab_event(VS_KIND_FREE, 1)->size, 0x1234);
    cuMemFree_v2(0x5004);
    cr_expect_eq(lab_event(VS_KIND_FREE, 2)->size, 0, "no allocation begins there");
}

static sigjmp_buf out_of_the_hook;

static void jump(void)
{
    siglongjmp(out_of_the_hook, 1);
}

Test(semantics, a_jump_out_of_a_hook_is_forgotten_and_counted)
{
    struct fake_cuda *fake = lab_begin();
    fake->on_free = jump;
    if (sigsetjmp(out_of_the_hook, 1) == 0) {
        cuMemFree_v2(0x5000);
    }
    fake->on_free = NULL;
    uint64_t address = 0;
    cuMemAlloc_v2(&address, 64);
    cr_expect_str_eq(lab_call_name(lab_event(VS_KIND_ALLOC, 0)->label), "cuMemAlloc_v2");
    cr_expect_eq(lifecycle_ring->abandoned_hooks, 1);
    cr_expect_eq(shim_thread.depth, 0);
    cuMemFree_v2(0x5000);
    cr_expect_eq(lab_count(VS_KIND_FREE), 2, "the same address again is another free");
}

Test(semantics, errno_stays)
{
    lab_begin();
    shim_config.sampling = SHIM_SAMPLE_ALWAYS;
    uint64_t address = 0;
    errno = 1234;
    cuMemAlloc_v2(&address, 64);
    cuMemFree_v2(address);
    cr_expect_eq(errno, 1234);
}

Test(semantics, disabled_passes_through)
{
    struct fake_cuda *fake = lab_begin();
    shim_config.disabled = true;
    uint64_t address = 0;
    cr_expect_eq(cuMemAlloc_v2(&address, 64), 0);
    cr_expect_eq(fake->alloc_calls, 1);
    cr_expect_eq(lab.count, 0);
    shim_config.disabled = false;
}

Test(semantics, a_name_the_driver_lacks_answers_not_found)
{
    lab_begin();
    uint64_t handle = 0;
    cr_expect_eq(cuMulticastCreate(&handle, NULL), ABI_NOT_FOUND);
    cr_expect_eq(lab.count, 0);
    cr_expect(lifecycle_ring->hook_warnings & HOOK_WARNING_REAL_MISSING);
}

Test(semantics, the_first_call_starts_the_collector)
{
    lab_begin();
    lab.recording = false;
    cuInit(0);
    cr_expect_eq(lab.starts, 1);
}
