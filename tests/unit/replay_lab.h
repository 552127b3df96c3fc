/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events by hand for the tests of the fold: a state with fixed names, and one
 * function per kind of call. Module 1 is PyTorch's allocator, 2 is NCCL, 3 the
 * program, 4 a sleep-mode library.
 */
#ifndef VS_TESTS_REPLAY_LAB_H
#define VS_TESTS_REPLAY_LAB_H

#include <criterion/criterion.h>

#include "replay/analysis.h"
#include "replay/segments.h"

enum { TORCH = 1, NCCL = 2, PROGRAM = 3, SAVER = 4 };
enum { CUDA_MALLOC = 1, MEM_ALLOC, MEM_MAP, OTHER_LABEL };

#define MIB (1024ULL * 1024ULL)
#define GIB (1024ULL * MIB)

struct lab {
    struct vs_state *state;
    uint64_t sequence, time_ns;
    uint32_t thread;
    uint64_t allocated, reserved; /* what the imitated framework reports */
};

static inline const char *lab_string(const void *self, uint32_t id)
{
    static const char *const names[] = {"", "cudaMalloc", "cuMemAlloc_v2", "cuMemMap", "other"};
    (void)self;
    return id < 5 ? names[id] : NULL;
}

static inline const char *lab_module(const void *self, uint32_t id)
{
    static const char *const paths[] = {NULL, "/x/torch/lib/libc10_cuda.so",
                                        "/y/libnccl-1a2b3c4d.so.2", "/usr/bin/train",
                                        "/z/torch_memory_saver.so"};
    (void)self;
    return id < 5 ? paths[id] : NULL;
}

/* Stacks in which a pool's id is asked for: a use begins, a use ends, the program reads it. */
enum { LAB_USE_BEGINS = 0x7001, LAB_USE_ENDS, LAB_POOL_READ };

static inline const char *lab_code(const void *self, uint32_t stack, unsigned index,
                                   const char **file)
{
    static const char *const files[] = {"/x/torch/cuda/memory.py", "/x/torch/cuda/memory.py",
                                        "/usr/lib/contextlib.py", "/x/train.py"};
    const char *names[] = {"MemPool.id", "use_mem_pool", "_GeneratorContextManager.__enter__",
                           "main"};
    (void)self;
    if (stack < LAB_USE_BEGINS || stack > LAB_POOL_READ)
        return NULL;
    if (stack == LAB_USE_ENDS)
        names[2] = "_GeneratorContextManager.__exit__";
    if (stack == LAB_POOL_READ && index > 0)
        index += 2;
    *file = index < 4 ? files[index] : NULL;
    return index < 4 ? names[index] : NULL;
}

static inline struct lab lab_open(void)
{
    struct lab lab = {.sequence = 100, .time_ns = 1000, .thread = 7};
    struct vs_names names = {.string = lab_string, .module_path = lab_module, .code = lab_code};
    cr_assert_eq(vs_state_create(&names, &lab.state), 0);
    cr_assert_eq(vs_state_device_total(lab.state, 0, 16 * GIB), 0);
    return lab;
}

static inline void lab_close(struct lab *lab)
{
    vs_state_destroy(lab->state);
}

/* Folds an event; fills sequence, time and what most events have. Returns its sequence. */
static inline uint64_t lab_put(struct lab *lab, struct vs_event event)
{
    struct vs_sequenced_event sequenced = {
        .sequence = lab->sequence, .thread = lab->thread, .cells = 2};
    lab->sequence += 2;
    lab->time_ns += 10;
    event.time_ns = lab->time_ns;
    if (event.label == 0)
        event.label = CUDA_MALLOC;
    if (!(event.flags & VS_EVENT_FREE_SAMPLED) && event.kind != VS_KIND_SAMPLE)
        event.free_bytes = VS_FREE_UNKNOWN;
    sequenced.event = event;
    cr_assert_eq(vs_state_event(lab->state, &sequenced), 0);
    return sequenced.sequence;
}

static inline uint64_t lab_alloc(struct lab *lab, uint32_t module, uint64_t address, uint64_t size)
{
    return lab_put(lab,
                   (struct vs_event){
                       .kind = VS_KIND_ALLOC, .module = module, .address = address, .size = size});
}

static inline uint64_t lab_free(struct lab *lab, uint64_t address)
{
    return lab_put(
        lab, (struct vs_event){.kind = VS_KIND_FREE, .address = address, .flags = VS_EVENT_INTENT});
}

static inline void lab_undo(struct lab *lab, uint64_t sequence, int32_t result)
{
    lab_put(lab, (struct vs_event){.kind = VS_KIND_UNDO, .handle = sequence, .result = result});
}

/* A block of the imitated framework, which keeps its own totals. */
static inline void lab_block_of(struct lab *lab, const struct vs_event *asked)
{
    struct vs_event event = *asked;
    lab->allocated += event.size;
    event.kind = VS_KIND_FW_ALLOC;
    event.module = TORCH;
    event.extra[0] = lab->allocated;
    event.extra[1] = lab->reserved;
    lab_put(lab, event);
}

static inline void lab_block(struct lab *lab, uint64_t address, uint64_t size)
{
    lab_block_of(lab, &(struct vs_event){.address = address, .size = size});
}

/* One that it gives out on `stream`. */
static inline void lab_block_on(struct lab *lab, uint64_t address, uint64_t size, uint64_t stream,
                                uint16_t flags)
{
    lab_block_of(
        lab, &(struct vs_event){
                 .address = address, .size = size, .stream = stream, .handle = 1, .flags = flags});
}

static inline void lab_block_free(struct lab *lab, uint64_t address, uint64_t size)
{
    lab->allocated -= size;
    lab_put(lab, (struct vs_event){.kind = VS_KIND_FW_FREE,
                                   .module = TORCH,
                                   .address = address,
                                   .size = size,
                                   .extra = {lab->allocated, lab->reserved}});
}

static inline void lab_segment(struct lab *lab, uint64_t address, uint64_t size)
{
    lab->reserved += size;
    lab_alloc(lab, TORCH, address, size);
}

static inline void lab_range(struct lab *lab, uint8_t kind, uint32_t module, uint64_t address,
                             uint64_t size, uint64_t handle)
{
    lab_put(lab, (struct vs_event){.kind = kind,
                                   .module = module,
                                   .address = address,
                                   .size = size,
                                   .handle = handle,
                                   .extra = {0, 0}});
}

static inline void lab_create(struct lab *lab, uint32_t module, uint64_t handle, uint64_t size)
{
    lab_put(lab, (struct vs_event){.kind = VS_KIND_PHYS_CREATE,
                                   .module = module,
                                   .handle = handle,
                                   .size = size,
                                   .extra = {1, 0}});
}

static inline void lab_map(struct lab *lab, uint32_t module, uint64_t address, uint64_t size,
                           uint64_t handle)
{
    lab_range(lab, VS_KIND_MAP, module, address, size, handle);
}

static inline void lab_sample(struct lab *lab, uint64_t free_bytes)
{
    lab_put(lab,
            (struct vs_event){.kind = VS_KIND_SAMPLE, .size = 16 * GIB, .free_bytes = free_bytes});
}

static inline struct vs_bands lab_bands(const struct lab *lab)
{
    struct vs_bands bands;
    vs_state_bands(lab->state, vs_state_device(lab->state, 0), &bands);
    return bands;
}

static inline struct vs_device_state *lab_device(const struct lab *lab)
{
    return vs_state_device(lab->state, 0);
}

/* What is free in the segments now, by a walk: the sums of a layout, without its lists. */
static inline struct vs_layout lab_free_space(const struct lab *lab)
{
    struct vs_layout layout, sums;
    cr_assert_eq(vs_layout_take(lab->state, lab_device(lab), &layout), 0);
    sums = layout;
    vs_layout_release(&layout);
    sums.segments = NULL;
    sums.blocks = NULL;
    return sums;
}

static inline int64_t lab_owned(const struct lab *lab, const char *name)
{
    struct vs_bands bands = lab_bands(lab);
    for (size_t i = 0; i < bands.owners; i++)
        if (strcmp(vs_state_owner_name(lab->state, bands.by_owner[i].owner), name) == 0)
            return bands.by_owner[i].bytes;
    return 0;
}

/* The identities every set of bands keeps. */
static inline void lab_check_identities(const struct lab *lab)
{
    struct vs_bands bands = lab_bands(lab);
    int64_t owners = bands.rounding + bands.lost + bands.more_owners, implicit = 0;
    for (size_t i = 0; i < bands.owners; i++)
        owners += bands.by_owner[i].bytes;
    for (int i = 0; i < VS_IMPLICITS; i++)
        implicit += bands.implicit[i];
    cr_assert_eq(owners, bands.direct);
    cr_assert_eq(bands.backed + bands.unbacked, bands.reserved);
    cr_assert_eq(bands.allocated + bands.cached, bands.reserved);
    if (bands.device_known)
        cr_assert_eq(implicit + bands.backed + bands.direct + bands.other_process +
                         bands.unexplained,
                     bands.device);
}

#endif
