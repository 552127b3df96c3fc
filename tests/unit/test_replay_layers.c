/* SPDX-License-Identifier: Apache-2.0 */
/* A caching layer that names no device and has no totals, and the rows that tell layers apart. */
#include "replay/layers.h"
#include "replay_lab.h"

enum { ALLOCATE = 1, EXTEND };
#define EXTEND_NAME                                       \
    "_ZN7oneflow2vm12BinAllocatorINS0_14ThreadSafeLockEE" \
    "29AllocateBlockToExtendTotalMemEm"

static const char *call_name(const void *self, uint32_t id)
{
    static const char *const names[] = {
        "", "_ZN7oneflow2vm12BinAllocatorINS0_14ThreadSafeLockEE8AllocateEPPcm", EXTEND_NAME};
    (void)self;
    return id < 3 ? names[id] : NULL;
}

static struct lab layers_open(void)
{
    struct lab lab = lab_open();
    lab.state->names.string = call_name;
    return lab;
}

static void block(struct lab *lab, uint8_t kind, uint64_t address, uint64_t size)
{
    lab_put(lab, (struct vs_event){.kind = kind,
                                   .module = PROGRAM,
                                   .call = ALLOCATE,
                                   .label = ALLOCATE,
                                   .device = VS_DEVICE_UNKNOWN,
                                   .address = address,
                                   .size = size,
                                   .extra = {UINT64_MAX, UINT64_MAX}});
}

static void segment(struct lab *lab, int8_t device, uint64_t address, uint64_t size)
{
    lab_put(lab, (struct vs_event){.kind = VS_KIND_ALLOC,
                                   .module = PROGRAM,
                                   .label = EXTEND,
                                   .device = device,
                                   .address = address,
                                   .size = size});
}

static int64_t allocated(const struct lab *lab, int device)
{
    return vs_state_device(lab->state, device)->layers[VS_LAYER_FRAMEWORK].live_bytes;
}

Test(layers, the_device_of_a_block_is_that_of_its_segment)
{
    struct lab lab = layers_open();
    segment(&lab, 0, 0x1000000, 2 * MIB);
    segment(&lab, 1, 0x9000000, 20 * MIB);
    block(&lab, VS_KIND_FW_ALLOC, 0x1000000, 1000);
    block(&lab, VS_KIND_FW_ALLOC, 0x9000400, 3 * MIB);
    cr_expect_eq(allocated(&lab, 0), 1000);
    cr_expect_eq(allocated(&lab, 1), 3 * (int64_t)MIB);
    cr_expect_eq(vs_device_reserved(vs_state_device(lab.state, 1)), 20 * (int64_t)MIB);
    block(&lab, VS_KIND_FW_FREE, 0x9000400, 3 * MIB);
    cr_expect_eq(allocated(&lab, 1), 0);
    cr_expect_eq(lab.state->counts.blocks_outside, 0);
    lab_close(&lab);
}

Test(layers, blocks_in_no_device_memory_are_the_hosts)
{
    struct lab lab = layers_open();
    segment(&lab, 0, 0x1000000, 2 * MIB);
    block(&lab, VS_KIND_FW_ALLOC, 0x7f0000001000, 4096);
    block(&lab, VS_KIND_FW_FREE, 0x7f0000001000, 4096);
    cr_expect_eq(allocated(&lab, 0), 0);
    cr_expect_eq(lab.state->counts.framework_frees_unknown, 0);
    cr_expect_not(vs_state_device(lab.state, 0)->framework_seen);
    lab_close(&lab);
}

Test(layers, memory_that_a_block_begins_in_is_a_segment)
{
    struct lab lab = layers_open();
    lab_put(&lab,
            (struct vs_event){
                .kind = VS_KIND_ALLOC, .module = PROGRAM, .address = 0x1000000, .size = 2 * MIB});
    cr_expect_gt(vs_state_device(lab.state, 0)->direct_asked, 0);
    block(&lab, VS_KIND_FW_ALLOC, 0x1000000, 600);
    cr_expect_eq(vs_state_device(lab.state, 0)->direct_asked, 0);
    cr_expect_eq(vs_device_reserved(vs_state_device(lab.state, 0)), 2 * (int64_t)MIB);
    lab_close(&lab);
}

Test(layers, free_space_of_a_layer_without_totals_is_known)
{
    struct lab lab = layers_open();
    segment(&lab, 0, 0x1000000, 2 * MIB);
    block(&lab, VS_KIND_FW_ALLOC, 0x1000000, 512);
    block(&lab, VS_KIND_FW_ALLOC, 0x1000000 + MIB, 512);
    struct vs_layout space = lab_free_space(&lab);
    cr_expect(space.known);
    cr_expect_eq(space.free_bytes, 2 * MIB - 1024);
    cr_expect_eq(space.largest_free_bytes, MIB - 512);
    lab_close(&lab);
}

Test(layers, names_tell_them_apart)
{
    cr_expect_str_eq(vs_layer_of_library("libc10_cuda")->title, "PyTorch");
    cr_expect_str_eq(vs_layer_of_library("liboneflow")->title, "OneFlow");
    cr_expect_null(vs_layer_of_library("libnccl"));
    cr_expect_null(vs_layer_of_call("cudaMalloc"));
    cr_expect(vs_layer_takes_segments(EXTEND_NAME));
    cr_expect_not(vs_layer_takes_segments("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"));
}
