/* SPDX-License-Identifier: Apache-2.0 */
/* PyTorch's reports, under each name they have had. The real functions are absent here. */
#include <criterion/criterion.h>
#include <errno.h>

#include "hook_lab.h"
#include "vramscope.h"

void _ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE(void *block, int64_t bytes,
                                                         struct c10_device device);
void _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE(void *address, int64_t bytes,
                                                           uint64_t allocated, uint64_t reserved,
                                                           struct c10_device device);
void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *address, int64_t bytes,
                                                           uint64_t allocated, uint64_t reserved,
                                                           struct c10_device device);
void _ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE(int64_t bytes, uint64_t allocated,
                                                         uint64_t reserved,
                                                         struct c10_device device);
void _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE(int64_t bytes, uint64_t allocated,
                                                         uint64_t reserved,
                                                         struct c10_device device);
void _ZN3c1027reportOutOfMemoryToProfilerEmmmNS_6DeviceE(int64_t bytes, uint64_t allocated,
                                                         uint64_t reserved,
                                                         struct c10_device device);

void _ZN2at4cuda7MemPoolD1Ev(void *pool);
void _ZN3c104cuda7MemPoolD1Ev(void *pool);

static const struct c10_device cuda_1 = {1, 1};
static const struct c10_device hip_0 = {6, 0};
static const struct c10_device cpu = {0, -1};
static const struct c10_device xpu_0 = {12, 0};

Test(torch, blocks_given_out_and_taken_back)
{
    lab_begin();
    _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE((void *)0x7000, 512, 1024, 2048, cuda_1);
    _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE((void *)0x7000, -512, 512, 2048, hip_0);
    cr_assert_eq(lab.count, 2);
    const struct vs_event *given = lab_event(VS_KIND_FW_ALLOC, 0);
    cr_expect_eq(given->address, 0x7000);
    cr_expect_eq(given->size, 512);
    cr_expect_eq(given->device, 1);
    cr_expect_eq(given->extra[0], 1024);
    cr_expect_eq(given->extra[1], 2048);
    cr_expect_eq(given->call, given->label);
    const struct vs_event *taken = lab_event(VS_KIND_FW_FREE, 0);
    cr_expect_eq(taken->size, 512);
    cr_expect_eq(taken->device, 0);
    cr_expect_eq(taken->extra[0], 512);
}

Test(torch, memory_of_the_host_is_told_apart)
{
    lab_begin();
    _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE((void *)0x7000, 64, 64, 0, cpu);
    _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE((void *)0x7000, -64, 0, 0, cpu);
    _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE((void *)0x7000, 64, 64, 0, xpu_0);
    cr_expect_eq(lab.count, 2, "another kind of device is not ours to report");
    cr_expect_eq(lab_event(VS_KIND_FW_HOST_ALLOC, 0)->device, VS_DEVICE_UNKNOWN);
    cr_expect_eq(lab_event(VS_KIND_FW_HOST_FREE, 0)->size, 64);
}

Test(torch, the_form_without_totals_says_so)
{
    lab_begin();
    _ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE((void *)0x7000, 512, cuda_1);
    cr_expect_eq(lab_event(VS_KIND_FW_ALLOC, 0)->extra[0], UINT64_MAX);
    cr_expect_eq(lab_event(VS_KIND_FW_ALLOC, 0)->extra[1], UINT64_MAX);
}

Test(torch, out_of_memory_under_three_names_asks_for_a_flush)
{
    lab_begin();
    _ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE(1 << 20, 10, 20, cuda_1);
    _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE(1 << 20, 10, 20, cuda_1);
    _ZN3c1027reportOutOfMemoryToProfilerEmmmNS_6DeviceE(1 << 20, 10, 20, cuda_1);
    cr_expect_eq(lab_count(VS_KIND_FW_OOM), 3);
    cr_expect_eq(lab_event(VS_KIND_FW_OOM, 2)->size, 1 << 20);
    cr_expect_eq(lab_event(VS_KIND_FW_OOM, 2)->extra[1], 20);
    cr_expect_eq(lab.flushes, 3);
}

Test(torch, nothing_is_started_under_the_allocators_lock)
{
    lab_begin();
    lab.recording = false;
    errno = 77;
    _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE((void *)0x7000, 64, 64, 0, cuda_1);
    cr_expect_eq(lab.starts, 0);
    cr_expect_eq(lab.count, 0);
    cr_expect_eq(errno, 77);
}

Test(torch, the_peak_so_far_can_be_asked_for)
{
    struct vramscope_peak peak;
    lab_begin();
    cr_expect_eq(vramscope_peak(1, &peak), -ENODATA, "nothing was reported yet");
    _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE((void *)0x7000, 512, 512, 2048, cuda_1);
    _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE((void *)0x8000, 256, 768, 4096, cuda_1);
    _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE((void *)0x8000, -256, 512, 2048, cuda_1);
    cr_assert_eq(vramscope_peak(1, &peak), 0);
    cr_expect_eq(peak.allocated_bytes, 768);
    cr_expect_eq(peak.reserved_bytes, 4096);
    cr_expect_eq(peak.now_bytes, 512);
    vramscope_reset_peak(1);
    cr_assert_eq(vramscope_peak(1, &peak), 0);
    cr_expect_eq(peak.allocated_bytes, 512);
    cr_expect_eq(peak.reserved_bytes, 2048);
    cr_expect_eq(vramscope_peak(0, &peak), -ENODATA, "each device has its own");
}

Test(torch, a_peak_is_of_the_device_alone_and_of_a_device_that_can_be)
{
    struct vramscope_peak peak;
    lab_begin();
    _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE((void *)0x7000, 64, 64, 0, cpu);
    cr_expect_eq(vramscope_peak(0, &peak), -ENODATA);
    cr_expect_eq(vramscope_peak(-1, &peak), -EINVAL);
    cr_expect_eq(vramscope_peak(64, &peak), -EINVAL);
    cr_expect_eq(vramscope_peak(0, NULL), -EINVAL);
    vramscope_reset_peak(64);
}

Test(torch, pools_that_are_destroyed)
{
    lab_begin();
    _ZN2at4cuda7MemPoolD1Ev((void *)0x9000);
    _ZN3c104cuda7MemPoolD1Ev((void *)0xa000);
    cr_expect_eq(lab_event(VS_KIND_MEM_POOL_DESTROY, 0)->handle, 0x9000);
    cr_expect_eq(lab_event(VS_KIND_MEM_POOL_DESTROY, 1)->handle, 0xa000);
}
