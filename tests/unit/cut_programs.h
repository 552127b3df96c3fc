/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random programs for the tests of the cut: what a framework, and a program beside
 * it, may do to two devices, written as a trace.
 */
#ifndef VS_TESTS_CUT_PROGRAMS_H
#define VS_TESTS_CUT_PROGRAMS_H

#include <criterion/criterion.h>
#include <fcntl.h>
#include <unistd.h>

#include "frame_word.h"
#include "trace.h"

#define MIB (1ULL << 20)
#define BASE 0x700000000000ULL

enum { DEVICES = 2, SEGMENTS = 24, BLOCKS = 16, THREADS = 3, NAMES = 3, STACKS = 40 };
enum { TORCH = 1, PROGRAM = 2 };
enum { CUDA_MALLOC = 1, MEM_ALLOC = 2, EVENT = 3 };
enum { OUT_OF_MEMORY = 2 };

/* ---- a program ------------------------------------------------------------------------------- */

/* What random calls a program makes; each in so many of a thousand events. */
struct habits {
    const char *name;
    unsigned segments, samples, failures, ooms, waits, captures, losses, holes, direct, pools, vmm;
    bool totals, under;
    size_t chunk;
};

struct segment {
    uint64_t size, blocks[BLOCKS]; /* 0: free */
};

struct program {
    const struct habits *habits;
    struct vs_writer *writer;
    uint64_t random, sequence, time_ns, events, pending;
    uint64_t allocated[DEVICES], reserved[DEVICES];
    struct segment segments[DEVICES][SEGMENTS];
    uint64_t capturing, direct[16];
    bool pool[16], mapped[16];
};

static uint64_t draw(struct program *program, uint64_t below)
{
    program->random = program->random * 6364136223846793005ULL + 1442695040888963407ULL;
    return (program->random >> 33) % below;
}

static void put(struct program *program, struct vs_event event)
{
    struct vs_sequenced_event sequenced = {
        .sequence = program->sequence, .thread = 10 + (uint32_t)draw(program, THREADS), .cells = 2};
    program->sequence += 2 + 2 * draw(program, 2);
    program->time_ns += draw(program, 600);
    event.time_ns = program->time_ns - draw(program, 300); /* threads overtake each other */
    if (event.module == 0)
        event.module = TORCH;
    if (event.call == 0)
        event.call = event.label = CUDA_MALLOC;
    if (event.kind != VS_KIND_SAMPLE)
        event.free_bytes = VS_FREE_UNKNOWN;
    event.stack = 1 + (uint32_t)draw(program, STACKS);
    sequenced.event = event;
    cr_assert_eq(vs_writer_event(program->writer, &sequenced), 0);
    program->events++;
}

static uint64_t address_of(int device, uint64_t segment)
{
    return BASE + ((uint64_t)device << 40) + segment * 64 * MIB;
}

static void put_block(struct program *program, uint8_t kind, int device, uint64_t at,
                      uint64_t block)
{
    struct segment *segment = &program->segments[device][at];
    uint64_t size = segment->blocks[block];
    bool totals = program->habits->totals;
    program->allocated[device] += kind == VS_KIND_FW_ALLOC ? size : 0 - size;
    put(program, (struct vs_event){.kind = kind,
                                   .device = (int8_t)device,
                                   .address = address_of(device, at) + block * 2 * MIB,
                                   .size = size,
                                   .handle = 1,
                                   .stream = 0x5000 + at % 3,
                                   .extra = {totals ? program->allocated[device] : UINT64_MAX,
                                             totals ? program->reserved[device] : UINT64_MAX}});
}

static void free_blocks(struct program *program, int device, uint64_t at)
{
    struct segment *segment = &program->segments[device][at];
    for (uint64_t block = 0; block < BLOCKS; block++)
        if (segment->blocks[block] != 0) {
            put_block(program, VS_KIND_FW_FREE, device, at, block);
            segment->blocks[block] = 0;
        }
}

static void change_segment(struct program *program)
{
    int device = (int)draw(program, DEVICES);
    uint64_t at = draw(program, SEGMENTS);
    struct segment *segment = &program->segments[device][at];
    struct vs_event event = {
        .kind = VS_KIND_ALLOC, .device = (int8_t)device, .address = address_of(device, at)};
    if (segment->size == 0) {
        event.size = segment->size = 2 * MIB * BLOCKS;
        program->reserved[device] += segment->size;
    } else {
        free_blocks(program, device, at);
        event.kind = VS_KIND_FREE;
        event.flags = VS_EVENT_INTENT;
        program->reserved[device] -= segment->size;
        segment->size = 0;
    }
    put(program, event);
}

static void change_block(struct program *program)
{
    int device = (int)draw(program, DEVICES);
    uint64_t at = draw(program, SEGMENTS), block = draw(program, BLOCKS);
    struct segment *segment = &program->segments[device][at];
    if (segment->size == 0)
        return;
    if (segment->blocks[block] != 0) {
        if (draw(program, 1000) < program->habits->waits) {
            struct vs_event record = {.kind = VS_KIND_EVENT_RECORD,
                                      .device = (int8_t)device,
                                      .call = EVENT,
                                      .label = EVENT,
                                      .handle = 0x900 + draw(program, 8)};
            put(program, record);
        }
        put_block(program, VS_KIND_FW_FREE, device, at, block);
        segment->blocks[block] = 0;
    } else {
        segment->blocks[block] = 512 * (1 + draw(program, 4096));
        put_block(program, VS_KIND_FW_ALLOC, device, at, block);
    }
}

/* Memory besides the framework's: plain, of a pool, mapped; each there or not. */
static void change_direct(struct program *program)
{
    uint64_t at = draw(program, 16), address = BASE + (1ULL << 44) + at * 64 * MIB;
    bool there = program->direct[at] != 0;
    program->direct[at] = there ? 0 : 4096 * (1 + draw(program, 2000));
    put(program, (struct vs_event){.kind = there ? VS_KIND_FREE : VS_KIND_ALLOC,
                                   .flags = there ? VS_EVENT_INTENT : 0,
                                   .module = PROGRAM,
                                   .call = MEM_ALLOC,
                                   .label = MEM_ALLOC,
                                   .address = address,
                                   .size = program->direct[at]});
}

static void change_pool(struct program *program)
{
    uint64_t at = draw(program, 16);
    program->pool[at] = !program->pool[at];
    put(program,
        (struct vs_event){.kind = program->pool[at] ? VS_KIND_POOL_ALLOC : VS_KIND_POOL_FREE,
                          .module = PROGRAM,
                          .address = BASE + (2ULL << 44) + at * MIB,
                          .pool = 0xabc,
                          .size = program->pool[at] ? 65536 : 0,
                          .extra = {UINT64_MAX, UINT64_MAX}});
}

static void change_mapping(struct program *program)
{
    uint64_t at = draw(program, 16), address = BASE + (3ULL << 44) + at * 2 * MIB;
    struct vs_event event = {
        .module = PROGRAM, .handle = 0x100 + at, .size = 2 * MIB, .address = address};
    program->mapped[at] = !program->mapped[at];
    if (program->mapped[at]) {
        event.kind = VS_KIND_PHYS_CREATE;
        event.extra[0] = 1;
        event.address = 0;
        put(program, event);
        event.extra[0] = 0;
        event.address = address;
        event.kind = VS_KIND_MAP;
    } else {
        event.kind = VS_KIND_UNMAP;
        event.handle = 0;
        put(program, event);
        event = (struct vs_event){.kind = VS_KIND_PHYS_RELEASE,
                                  .module = PROGRAM,
                                  .handle = 0x100 + at,
                                  .flags = VS_EVENT_INTENT};
    }
    put(program, event);
}

static void fail(struct program *program, bool framework)
{
    int device = (int)draw(program, DEVICES);
    struct vs_event event = {.kind = VS_KIND_ALLOC,
                             .device = (int8_t)device,
                             .size = 900 * MIB,
                             .result = framework ? OUT_OF_MEMORY : (int32_t)(1 + draw(program, 2))};
    event.module = framework ? TORCH : PROGRAM;
    put(program, event);
    if (framework && draw(program, 2) == 0)
        put(program,
            (struct vs_event){.kind = VS_KIND_FW_OOM,
                              .device = (int8_t)device,
                              .size = 900 * MIB,
                              .extra = {program->allocated[device], program->reserved[device]}});
}

static void capture(struct program *program)
{
    bool begins = program->capturing == 0;
    uint64_t stream = begins ? 0x5000 + draw(program, 3) : program->capturing;
    put(program, (struct vs_event){.kind = begins ? VS_KIND_CAPTURE_BEGIN : VS_KIND_CAPTURE_END,
                                   .stream = stream});
    program->capturing = begins ? stream : 0;
}

/* A block in memory that an allocator under the layer's mapped: in one of its two ranges. */
static void put_under(struct program *program, uint8_t kind, uint64_t range)
{
    program->allocated[0] += kind == VS_KIND_FW_ALLOC ? MIB : 0 - MIB;
    put(program, (struct vs_event){.kind = kind,
                                   .address = BASE + (4ULL << 44) + range * 64 * MIB,
                                   .size = MIB,
                                   .handle = 1,
                                   .stream = 0x5000,
                                   .extra = {program->allocated[0], program->reserved[0]}});
}

/* Two ranges of it come, each with its first blocks. */
static void map_under(struct program *program)
{
    for (uint64_t range = 0; range < 2; range++) {
        struct vs_event event = {.module = PROGRAM,
                                 .kind = VS_KIND_RESERVE,
                                 .address = BASE + (4ULL << 44) + range * 64 * MIB,
                                 .size = 32 * MIB};
        put(program, event);
        put(program, (struct vs_event){.kind = VS_KIND_PHYS_CREATE,
                                       .module = PROGRAM,
                                       .handle = 0x200 + range,
                                       .size = 32 * MIB,
                                       .extra = {1}});
        event.kind = VS_KIND_MAP;
        event.handle = 0x200 + range;
        put(program, event);
        program->reserved[0] += 32 * MIB;
        for (int i = 0; i < 2; i++) {
            put_under(program, VS_KIND_FW_ALLOC, range);
            put_under(program, VS_KIND_FW_FREE, range);
        }
    }
}

/* Both are unmapped while the first has a block, so that the second is what is given back. */
static void unmap_under(struct program *program)
{
    put_under(program, VS_KIND_FW_ALLOC, 0);
    for (uint64_t range = 0; range < 2; range++)
        put(program, (struct vs_event){.kind = VS_KIND_UNMAP,
                                       .module = PROGRAM,
                                       .address = BASE + (4ULL << 44) + range * 64 * MIB,
                                       .size = 32 * MIB});
    program->reserved[0] -= 32 * MIB;
    for (int i = 0; i < 20; i++)
        change_block(program);
    put_under(program, VS_KIND_FW_FREE, 0);
}

static bool one_in_thousand(struct program *program, unsigned count)
{
    return draw(program, 1000) < count;
}

static void step(struct program *program)
{
    const struct habits *habits = program->habits;
    if (one_in_thousand(program, habits->segments))
        change_segment(program);
    if (one_in_thousand(program, habits->direct))
        change_direct(program);
    if (one_in_thousand(program, habits->pools))
        change_pool(program);
    if (one_in_thousand(program, habits->vmm))
        change_mapping(program);
    if (one_in_thousand(program, habits->failures))
        fail(program, false);
    if (one_in_thousand(program, habits->ooms))
        fail(program, true);
    if (one_in_thousand(program, program->capturing != 0 ? 20 : habits->captures))
        capture(program);
    if (one_in_thousand(program, habits->waits))
        put(program, (struct vs_event){.kind = VS_KIND_EVENT_QUERY,
                                       .call = EVENT,
                                       .label = EVENT,
                                       .handle = 0x900 + draw(program, 8)});
    if (one_in_thousand(program, 10 * habits->waits)) /* the program's own */
        put(program, (struct vs_event){.kind = VS_KIND_EVENT_RECORD,
                                       .module = PROGRAM,
                                       .call = EVENT,
                                       .label = EVENT,
                                       .handle = 0x904 + draw(program, 8)});
    if (one_in_thousand(program, habits->samples))
        put(program, (struct vs_event){.kind = VS_KIND_SAMPLE,
                                       .size = 16384 * MIB,
                                       .free_bytes = 12000 * MIB + draw(program, 4096) * MIB});
    if (one_in_thousand(program, habits->losses))
        put(program, (struct vs_event){.kind = VS_KIND_LOSS,
                                       .label = VS_KIND_FW_FREE,
                                       .call = CUDA_MALLOC,
                                       .size = MIB,
                                       .extra = {1 + draw(program, 3)}});
    if (one_in_thousand(program, habits->losses)) /* what was lost */
        program->allocated[draw(program, DEVICES)] += 512;
    if (one_in_thousand(program, habits->holes))
        cr_assert_eq(vs_writer_hole(program->writer, 5), 0);
    change_block(program);
}

static void define(struct vs_writer *writer)
{
    static const char process[] = "{\"pid\":7,\"exe\":\"/usr/bin/python3.11\",\"other\":[1,2]}";
    static const char clock[] = "{\"start\":{\"monotonic_ns\":1000000000}}";
    static const char own[] = "{\"kept\":true}";
    static const char end[] = "{\"ended\":\"exit\",\"exit_code\":1,\"complete\":true}";
    static const char *const names[] = {"cudaMalloc", "cuMemAlloc_v2", "cudaEventRecord"};
    static const char *const paths[] = {"/x/torch/lib/libc10_cuda.so", "/usr/bin/train"};
    vs_writer_meta(writer, "process", process, strlen(process));
    vs_writer_meta(writer, "clock", clock, strlen(clock));
    vs_writer_meta(writer, "end", end, strlen(end));
    vs_writer_meta(writer, "its own", own, strlen(own));
    for (int32_t i = 0; i < DEVICES; i++) {
        struct vs_device_def device = {.device = i, .total_bytes = 16384 * MIB, .name = "Test"};
        vs_writer_device(writer, &device);
    }
    for (uint32_t i = 0; i < NAMES; i++)
        vs_writer_string(writer, i + 1, names[i], strlen(names[i]));
    for (uint32_t i = 0; i < 2; i++) {
        struct vs_module_def module = {.id = i + 1,
                                       .start = 0x10000 * (i + 1),
                                       .end = 0x10000 * (i + 2),
                                       .load_bias = 0x10000 * (i + 1),
                                       .path = paths[i]};
        vs_writer_module(writer, &module);
    }
    for (uint32_t i = 1; i <= STACKS; i++) {
        struct vs_symbol_frame frame = {"function", "file.c", i};
        struct vs_symbol_def symbol = {1 + i % 2, 16 * i - 1, 1, &frame};
        struct vs_code_def code = {i, 1, "Layer.forward", "/home/u/m.py"};
        uint64_t frames[] = {0x10000 * (1 + i % 2) + 16 * i, vs_frame_interpreter(i, i, true)};
        struct vs_stack_def stack = {.id = i, .frame_count = 2, .frames = frames};
        vs_writer_code(writer, &code);
        vs_writer_symbol(writer, &symbol);
        vs_writer_stack(writer, &stack);
    }
}

static int open_file(char *path)
{
    strcpy(path, "/tmp/vramscope-cut-XXXXXX");
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    return fd;
}

static void record(const struct habits *habits, uint64_t seed, uint64_t events, char *path)
{
    struct program *program = calloc(1, sizeof(*program));
    int fd = open_file(path);
    *program =
        (struct program){.habits = habits, .random = seed, .sequence = 64, .time_ns = 1000001000};
    cr_assert_eq(vs_writer_create(fd, habits->chunk, 3, &program->writer), 0);
    define(program->writer);
    for (int device = 0; device < DEVICES; device++) /* something to begin with */
        for (int i = 0; i < 8; i++)
            change_segment(program);
    while (program->events < events / 2)
        step(program);
    if (habits->under)
        map_under(program);
    for (int i = 0; i < 500; i++)
        step(program);
    if (habits->under)
        unmap_under(program);
    while (program->events < events)
        step(program);
    put(program, (struct vs_event){.kind = VS_KIND_PROCESS_END, .handle = VS_END_EXIT, .size = 1});
    cr_assert_eq(vs_writer_close(program->writer, true), 0);
    close(fd);
    free(program);
}

#endif
