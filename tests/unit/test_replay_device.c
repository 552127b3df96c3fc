/* SPDX-License-Identifier: Apache-2.0 */
/* Measurements of free memory, what they explain, other processes. */
#include "replay_lab.h"

static void call(struct lab *lab, uint8_t kind, uint64_t free_bytes)
{
    lab_put(lab, (struct vs_event){.kind = kind,
                                   .handle = 0x42,
                                   .context = 0x77,
                                   .free_bytes = free_bytes,
                                   .flags = VS_EVENT_FREE_SAMPLED});
}

static void other(struct lab *lab, uint64_t pid, uint64_t bytes)
{
    lab_put(lab, (struct vs_event){.kind = VS_KIND_OTHER_PROCESS, .handle = pid, .size = bytes});
}

Test(device, nothing_is_known_without_a_measurement)
{
    struct lab lab = lab_open();
    lab_alloc(&lab, NCCL, 0x10000000, 8 * MIB);
    cr_assert_not(lab_bands(&lab).device_known);
    lab_close(&lab);
}

Test(device, the_context_by_difference)
{
    struct lab lab = lab_open();
    lab_device(&lab)->others_known = true;
    other(&lab, 4711, 100 * MIB);
    call(&lab, VS_KIND_CONTEXT_RETAIN, 16 * GIB - 500 * MIB);
    struct vs_bands bands = lab_bands(&lab);
    cr_assert_eq(bands.device, (int64_t)(500 * MIB));
    cr_assert_eq(bands.other_process, (int64_t)(100 * MIB));
    cr_assert_eq(bands.implicit[VS_IMPLICIT_CONTEXT], (int64_t)(400 * MIB));
    cr_assert_eq(bands.implicit_uncertainty, 0);
    cr_assert_eq(bands.unexplained, 0);
    lab_check_identities(&lab);
    lab_close(&lab);
}

Test(device, without_nvml_the_context_is_uncertain)
{
    struct lab lab = lab_open();
    call(&lab, VS_KIND_CONTEXT_RETAIN, 16 * GIB - 500 * MIB);
    cr_assert_eq(lab_bands(&lab).implicit_uncertainty, (int64_t)(500 * MIB));
    lab_close(&lab);
}

/* NVML answers after the first measurement: who was there before is not the context. */
Test(device, the_first_answer_is_about_before)
{
    struct lab lab = lab_open();
    call(&lab, VS_KIND_CONTEXT_RETAIN, 16 * GIB - 500 * MIB);
    cr_assert_eq(lab_bands(&lab).implicit_uncertainty, (int64_t)(500 * MIB));
    other(&lab, 0, 2);
    other(&lab, 9, 100 * MIB);
    other(&lab, 10, 50 * MIB);
    struct vs_bands bands = lab_bands(&lab);
    cr_assert_eq(bands.device, (int64_t)(500 * MIB));
    cr_assert_eq(bands.implicit[VS_IMPLICIT_CONTEXT], (int64_t)(350 * MIB));
    cr_assert_eq(bands.implicit_uncertainty, 0);
    other(&lab, 9, 120 * MIB);
    bands = lab_bands(&lab);
    cr_assert_eq(bands.device, (int64_t)(520 * MIB), "later ones move what is used");
    cr_assert_eq(bands.unexplained, 0);
    lab_check_identities(&lab);
    lab_close(&lab);
}

/* What a measurement has seen before NVML tells of it is not in use twice. */
Test(device, an_answer_that_comes_late_moves_nothing)
{
    struct lab lab = lab_open();
    other(&lab, 0, 0);
    call(&lab, VS_KIND_CONTEXT_RETAIN, 16 * GIB - 500 * MIB);
    lab_sample(&lab, 16 * GIB - 800 * MIB);
    other(&lab, 9, 200 * MIB);
    struct vs_bands bands = lab_bands(&lab);
    cr_assert_eq(bands.device, (int64_t)(800 * MIB));
    cr_assert_eq(bands.unexplained, (int64_t)(100 * MIB));
    other(&lab, 9, 350 * MIB);
    bands = lab_bands(&lab);
    cr_assert_eq(bands.device, (int64_t)(850 * MIB), "50 MiB are news");
    cr_assert_eq(bands.unexplained, 0);
    lab_sample(&lab, 16 * GIB - 500 * MIB); /* its end is seen before it is told, too */
    other(&lab, 9, 0);
    bands = lab_bands(&lab);
    cr_assert_eq(bands.device, (int64_t)(500 * MIB));
    cr_assert_eq(bands.implicit[VS_IMPLICIT_CONTEXT], (int64_t)(500 * MIB));
    cr_assert_eq(bands.unexplained, 0);
    cr_assert_eq(lab_device(&lab)->used_peak, (int64_t)(850 * MIB));
    lab_check_identities(&lab);
    lab_close(&lab);
}

/* The memory of a limit may be taken by a launch, long after the call. */
Test(device, a_limit_costs_when_it_takes_effect)
{
    struct lab lab = lab_open();
    other(&lab, 0, 0);
    call(&lab, VS_KIND_CONTEXT_RETAIN, 16 * GIB - 500 * MIB);
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_LIMIT_SET,
                                    .handle = VS_LIMIT_STACK_SIZE,
                                    .size = 8192,
                                    .free_bytes = 16 * GIB - 500 * MIB,
                                    .flags = VS_EVENT_FREE_SAMPLED});
    lab_sample(&lab, 16 * GIB - 500 * MIB);
    cr_assert_eq(lab_bands(&lab).implicit[VS_IMPLICIT_LOCAL_MEMORY], 0);
    lab_sample(&lab, 16 * GIB - 1400 * MIB);
    lab_sample(&lab, 16 * GIB - 1600 * MIB); /* once: what comes later is not the limit's */
    struct vs_bands bands = lab_bands(&lab);
    cr_assert_eq(bands.implicit[VS_IMPLICIT_LOCAL_MEMORY], (int64_t)(900 * MIB));
    cr_assert_eq(bands.implicit[VS_IMPLICIT_CONTEXT], (int64_t)(500 * MIB));
    cr_assert_eq(bands.unexplained, (int64_t)(200 * MIB));
    const struct vs_limit *limit = &lab_device(&lab)->limits[VS_LIMIT_STACK_SIZE];
    cr_assert(limit->set);
    cr_assert_eq(limit->bytes, 8192);
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_LIMIT_SET, .handle = 5, .size = 128});
    lab_sample(&lab, 16 * GIB - 1600 * MIB);
    lab_sample(&lab, 16 * GIB - 1700 * MIB); /* a cache's granularity keeps no memory */
    cr_assert_eq(lab_bands(&lab).implicit[VS_IMPLICIT_LOCAL_MEMORY], (int64_t)(900 * MIB));
    lab_check_identities(&lab);
    lab_close(&lab);
}

/* … and what came after it, and nobody explained, is not taken off the context. */
Test(device, the_first_answer_is_about_what_came_since)
{
    struct lab lab = lab_open();
    call(&lab, VS_KIND_CONTEXT_RETAIN, 16 * GIB - 500 * MIB);
    lab_sample(&lab, 16 * GIB - 800 * MIB);
    cr_assert_eq(lab_bands(&lab).unexplained, (int64_t)(300 * MIB));
    other(&lab, 0, 2);
    other(&lab, 9, 280 * MIB);
    other(&lab, 10, 50 * MIB);
    struct vs_bands bands = lab_bands(&lab);
    cr_assert_eq(bands.other_process, (int64_t)(330 * MIB));
    cr_assert_eq(bands.implicit[VS_IMPLICIT_CONTEXT], (int64_t)(470 * MIB));
    cr_assert_eq(bands.unexplained, 0);
    lab_check_identities(&lab);
    lab_close(&lab);
}

/* The peak may lie before the answer, which comes once a second: it is told with it all the same.
 */
Test(device, the_first_answer_is_about_earlier_peaks_too)
{
    struct lab lab = lab_open();
    struct vs_peaks peaks = {{0}};
    vs_peaks_start(&peaks, lab.state);
    call(&lab, VS_KIND_CONTEXT_RETAIN, 16 * GIB - 500 * MIB);
    lab_alloc(&lab, NCCL, 0x10000000, 8 * MIB);
    lab_sample(&lab, 16 * GIB - 508 * MIB);
    lab_free(&lab, 0x10000000);
    lab_sample(&lab, 16 * GIB - 500 * MIB);
    const struct vs_bands *used = vs_peaks_used(&peaks, lab_device(&lab));
    cr_assert_eq(used->implicit[VS_IMPLICIT_CONTEXT], (int64_t)(500 * MIB));
    other(&lab, 0, 2);
    other(&lab, 9, 100 * MIB);
    other(&lab, 10, 50 * MIB);
    const struct vs_bands *allocated = vs_peaks_allocated(&peaks, lab_device(&lab));
    for (int again = 0; again < 2; again++) {
        used = vs_peaks_used(&peaks, lab_device(&lab));
        cr_assert_eq(used->implicit[VS_IMPLICIT_CONTEXT], (int64_t)(350 * MIB));
        cr_assert_eq(used->other_process, (int64_t)(150 * MIB));
        cr_assert_eq(used->device, (int64_t)(508 * MIB));
    }
    cr_assert_eq(allocated->implicit[VS_IMPLICIT_CONTEXT], (int64_t)(350 * MIB));
    vs_peaks_release(&peaks);
    lab_close(&lab);
}

Test(device, nobody_else_is_an_answer)
{
    struct lab lab = lab_open();
    call(&lab, VS_KIND_CONTEXT_RETAIN, 16 * GIB - 500 * MIB);
    other(&lab, 0, 0);
    cr_assert_eq(lab_bands(&lab).implicit_uncertainty, 0);
    cr_assert_eq(lab_bands(&lab).implicit[VS_IMPLICIT_CONTEXT], (int64_t)(500 * MIB));
    lab_close(&lab);
}

Test(device, each_cause_has_its_band)
{
    struct lab lab = lab_open();
    lab_device(&lab)->others_known = true;
    uint64_t free_bytes = 15 * GIB;
    call(&lab, VS_KIND_CONTEXT_RETAIN, free_bytes);
    call(&lab, VS_KIND_MODULE_LOAD, free_bytes -= 8 * MIB);
    call(&lab, VS_KIND_GRAPH_INSTANTIATE, free_bytes -= 6 * MIB);
    call(&lab, VS_KIND_LIMIT_SET, free_bytes -= 200 * MIB);
    call(&lab, VS_KIND_STREAM_CREATE, free_bytes -= 2 * MIB);
    call(&lab, VS_KIND_MODULE_UNLOAD, free_bytes += 4 * MIB);
    struct vs_bands bands = lab_bands(&lab);
    cr_assert_eq(bands.implicit[VS_IMPLICIT_CONTEXT], (int64_t)GIB);
    cr_assert_eq(bands.implicit[VS_IMPLICIT_MODULES], (int64_t)(4 * MIB));
    cr_assert_eq(bands.implicit[VS_IMPLICIT_GRAPHS], (int64_t)(6 * MIB));
    cr_assert_eq(bands.implicit[VS_IMPLICIT_LOCAL_MEMORY], (int64_t)(200 * MIB));
    cr_assert_eq(bands.implicit[VS_IMPLICIT_OTHER], (int64_t)(2 * MIB));
    cr_assert_eq(bands.unexplained, 0);
    cr_assert(lab_device(&lab)->context_seen);
    lab_close(&lab);
}

Test(device, two_causes_between_two_measurements_are_uncertain)
{
    struct lab lab = lab_open();
    lab_device(&lab)->others_known = true;
    call(&lab, VS_KIND_CONTEXT_RETAIN, 15 * GIB);
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_MODULE_LOAD, .handle = 1});
    call(&lab, VS_KIND_STREAM_CREATE, 15 * GIB - 10 * MIB);
    struct vs_bands bands = lab_bands(&lab);
    cr_assert_eq(bands.implicit[VS_IMPLICIT_MODULES], 0);
    cr_assert_eq(bands.implicit[VS_IMPLICIT_OTHER], (int64_t)(10 * MIB));
    cr_assert_eq(bands.implicit_uncertainty, (int64_t)(10 * MIB));
    lab_close(&lab);
}

Test(device, what_nothing_explains_is_unexplained)
{
    struct lab lab = lab_open();
    call(&lab, VS_KIND_CONTEXT_RETAIN, 15 * GIB);
    lab_sample(&lab, 15 * GIB - 77 * MIB);
    cr_assert_eq(lab_bands(&lab).unexplained, (int64_t)(77 * MIB));
    lab_check_identities(&lab);
    lab_close(&lab);
}

Test(device, between_measurements_by_what_is_known)
{
    struct lab lab = lab_open();
    call(&lab, VS_KIND_CONTEXT_RETAIN, 15 * GIB);
    cr_assert(lab_device(&lab)->used_is_measured);
    lab_alloc(&lab, NCCL, 0x10000000, 3 * MIB);
    cr_assert_eq(lab_bands(&lab).device, (int64_t)(GIB + 4 * MIB));
    cr_assert_not(lab_device(&lab)->used_is_measured);
    lab_free(&lab, 0x10000000);
    cr_assert_eq(lab_bands(&lab).device, (int64_t)GIB);
    cr_assert_eq(lab_device(&lab)->used_peak, (int64_t)(GIB + 4 * MIB));
    other(&lab, 9, 50 * MIB);
    cr_assert_eq(lab_bands(&lab).device, (int64_t)(GIB + 50 * MIB));
    lab_check_identities(&lab);
    lab_close(&lab);
}

Test(device, measurements_correct_the_rounding)
{
    struct lab lab = lab_open();
    call(&lab, VS_KIND_CONTEXT_RETAIN, 15 * GIB);
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_ALLOC,
                                    .module = NCCL,
                                    .address = 0x10000000,
                                    .size = 3 * MIB,
                                    .free_bytes = 15 * GIB - 3 * MIB,
                                    .flags = VS_EVENT_FREE_SAMPLED});
    struct vs_bands bands = lab_bands(&lab);
    cr_assert_eq(bands.direct, (int64_t)(3 * MIB), "this device took no more than was asked");
    cr_assert_eq(bands.rounding, 0);
    cr_assert_eq(bands.unexplained, 0);
    lab_check_identities(&lab);
    lab_close(&lab);
}

Test(device, other_processes_come_and_go)
{
    struct lab lab = lab_open();
    lab.state->own_pid = 42;
    other(&lab, 0, 0);
    other(&lab, 42, GIB);
    cr_assert_eq(lab_device(&lab)->other_bytes, 0, "this process is not another one");
    other(&lab, 9, 50 * MIB);
    other(&lab, 9, 70 * MIB);
    other(&lab, 10, MIB);
    cr_assert_eq(lab_device(&lab)->other_bytes, (int64_t)(71 * MIB));
    other(&lab, 9, 0);
    cr_assert_eq(lab_device(&lab)->other_bytes, (int64_t)MIB);
    cr_assert_eq(lab_device(&lab)->others.count, 1);
    lab_close(&lab);
}

Test(device, more_used_than_there_is_does_not_wrap)
{
    struct lab lab = lab_open();
    call(&lab, VS_KIND_CONTEXT_RETAIN, 15 * GIB);
    lab_sample(&lab, UINT64_MAX - 5);
    cr_assert_eq(lab_bands(&lab).device, (int64_t)GIB, "an absurd figure is no measurement");
    lab_close(&lab);
}

Test(device, a_primary_context_dies_with_its_last_release)
{
    struct lab lab = lab_open();
    call(&lab, VS_KIND_CONTEXT_RETAIN, 15 * GIB);
    call(&lab, VS_KIND_CONTEXT_RETAIN, 15 * GIB);
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_ALLOC,
                                    .module = NCCL,
                                    .address = 0x10000000,
                                    .size = 4 * MIB,
                                    .context = 0x77});
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_CONTEXT_RELEASE});
    cr_assert_eq(lab_bands(&lab).direct, (int64_t)(4 * MIB));
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_CONTEXT_RELEASE});
    cr_assert_eq(lab_bands(&lab).direct, 0);
    lab_close(&lab);
}
