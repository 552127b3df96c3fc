/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cut trace against the one it was cut from, for random programs: at every event
 * of every window the whole state of the fold is the same, and so are peaks,
 * failures and verdicts.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "cut/cut.h"
#include "frame_word.h"
#include "redact.h"
#include "replay/reader_facts.h"
#include "replay/summary.h"
#include "shapes.h"
#include "trace_chunk.h"

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

/* ---- the state, as one number ------------------------------------------------------------------
 */

static uint64_t mix(uint64_t sum, uint64_t value)
{
    return (sum ^ value) * 0x9e3779b97f4a7c15ULL + (sum >> 29);
}

/* Sites by what they are, not by their numbers. */
static uint64_t site_mark(const struct vs_state *state, uint32_t id)
{
    const struct vs_site *site = vs_state_site(state, id);
    if (site == NULL)
        return 0;
    return mix(mix(mix(site->stack, site->label), (uint64_t)site->layer << 8 | site->kind),
               (uint8_t)site->device * 2U + site->segment);
}

static uint64_t blocks_mark(const struct vs_state *state)
{
    size_t index = 0;
    uint64_t key, sum = state->blocks.count;
    const struct vs_block *block;
    while ((block = vs_blocks_next(&state->blocks, &index, &key)) != NULL)
        sum += mix(mix(mix(key, block->size), site_mark(state, block->site)),
                   (uint8_t)block->device * 2U + block->private_pool);
    return sum;
}

static uint64_t allocations_mark(const struct vs_state *state, const struct vs_allocations *map)
{
    size_t index = 0;
    uint64_t key, sum = map->count;
    const struct vs_allocation *at;
    while ((at = vs_allocations_next(map, &index, &key)) != NULL)
        sum += mix(mix(mix(key, at->size), site_mark(state, at->site)),
                   mix(at->granted, at->pool + at->segment + at->type * 2U));
    return sum;
}

static uint64_t ranges_mark(const struct vs_ranges *ranges)
{
    uint64_t sum = ranges->count;
    struct vs_range *at = vs_ranges_from(ranges, 0);
    for (; at != NULL; at = vs_ranges_from(ranges, at->start + at->size))
        sum = mix(mix(mix(sum, at->start), at->size + at->bytes),
                  mix(at->backed + at->stream, at->pool * 2 + at->stream_known));
    return sum;
}

static uint64_t waits_mark(const struct vs_state *state)
{
    size_t index = 0;
    uint64_t key, sum = state->waits.count + state->wait_events.count * 77;
    const struct vs_wait *wait;
    while ((wait = vs_waits_next(&state->waits, &index, &key)) != NULL)
        sum += mix(mix(key, wait->size), wait->events);
    return mix(sum, state->recorders.count + state->capture_count * 99);
}

static uint64_t device_mark(const struct vs_state *state, const struct vs_device_state *device)
{
    struct vs_bands bands;
    vs_state_bands(state, device, &bands);
    for (size_t i = 0; i < bands.owners; i++)
        bands.by_owner[i].owner = 0; /* numbers of this replay */
    uint64_t sum = mix((uint64_t)bands.allocated, (uint64_t)bands.reserved);
    const int64_t figures[] = {bands.device,
                               bands.unexplained,
                               bands.backed,
                               bands.unbacked,
                               bands.pending,
                               bands.private_pool,
                               bands.direct,
                               bands.implicit[0],
                               bands.implicit[4],
                               bands.rounding,
                               bands.lost,
                               device->used_bytes,
                               device->segment_bytes,
                               device->unseen_reserved,
                               device->before_recording,
                               device->waiting_bytes,
                               device->private_reserved,
                               device->private_allocated,
                               device->direct_large,
                               device->direct_small,
                               (int64_t)device->reported_allocated,
                               bands.pending_known,
                               bands.private_pool_known,
                               (int64_t)device->reported_reserved,
                               device->direct_slack,
                               device->freed_in_capture,
                               (int64_t)device->deferred_waits};
    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
        sum = mix(sum, (uint64_t)figures[i]);
    for (int layer = 0; layer < VS_LAYERS; layer++)
        sum = mix(sum, (uint64_t)device->layers[layer].live_bytes);
    return sum;
}

static uint64_t state_mark(const struct vs_state *state)
{
    uint64_t sum = mix(blocks_mark(state), allocations_mark(state, &state->allocations));
    sum = mix(sum, ranges_mark(&state->segments));
    sum = mix(sum, ranges_mark(&state->mappings));
    sum = mix(sum, waits_mark(state));
    sum = mix(sum, state->now_ns);
    for (size_t i = 0; i < VS_DEVICE_SLOTS; i++)
        if (state->devices[i] != NULL && state->devices[i]->device >= 0)
            sum = mix(sum, device_mark(state, state->devices[i]));
    return sum;
}

/* ---- comparing
 * ------------------------------------------------------------------------------------ */

struct replay {
    struct vs_reader *reader;
    struct vs_state *state;
};

static struct replay begin(const char *path)
{
    struct replay replay;
    struct vs_error error;
    cr_assert_eq(vs_reader_open(path, &replay.reader, &error), 0, "%s", error.text);
    struct vs_names names = vs_reader_names(replay.reader);
    cr_assert_eq(vs_state_create(&names, &replay.state), 0);
    for (int8_t i = 0; i < DEVICES; i++)
        vs_state_device_total(replay.state, i, 16384 * MIB);
    return replay;
}

static void end(struct replay *replay)
{
    vs_state_destroy(replay->state);
    vs_reader_close(replay->reader);
}

static bool is_mark(const struct vs_sequenced_event *event)
{
    return event->event.kind == VS_KIND_CUT || event->event.kind == VS_KIND_CUT_END;
}

/* The whole one up to the event of the cut one. */
static void catch_up(struct replay *whole, const struct vs_sequenced_event *until)
{
    struct vs_sequenced_event event;
    do {
        cr_assert_eq(vs_reader_next(whole->reader, &event), 1);
        cr_assert_eq(vs_state_event(whole->state, &event), 0);
    } while (event.sequence < until->sequence);
    cr_assert_eq(memcmp(&event, until, sizeof(event)), 0, "sequence %lu", until->sequence);
}

/* How many events were compared. */
static uint64_t compare_states(const char *whole_path, const char *cut_path, const char *name)
{
    struct replay whole = begin(whole_path), cut = begin(cut_path);
    struct vs_sequenced_event event;
    uint64_t compared = 0, marks = 0;
    while (vs_reader_next(cut.reader, &event) == 1) {
        cr_assert_eq(vs_state_event(cut.state, &event), 0);
        if (is_mark(&event)) {
            marks++;
            continue;
        }
        catch_up(&whole, &event);
        if (cut.state->cut)
            continue;
        cr_assert_eq(state_mark(whole.state), state_mark(cut.state),
                     "%s: the state at sequence %lu, %lu events after the beginning", name,
                     event.sequence, compared);
        compared++;
    }
    cr_assert_eq(vs_reader_next(whole.reader, &event), 0);
    cr_assert_eq(cut.state->cut, false);
    const struct vs_trace_status *status = vs_reader_status(cut.reader);
    cr_assert_eq(marks, 2 * status->cut_gaps);
    cr_assert_eq(cut.state->cut_events, status->cut_events);
    cr_assert_eq(whole.state->counts.events, cut.state->counts.events - marks + status->cut_events);
    cr_assert_eq(vs_reader_status(whole.reader)->missing_events, status->missing_events);
    /* Two holes are one where nothing between them stays. */
    cr_assert_eq(vs_reader_status(whole.reader)->sequence_gaps != 0, status->sequence_gaps != 0);
    end(&whole);
    end(&cut);
    return compared;
}

static void compare_ooms(const struct vs_ooms *whole, const struct vs_ooms *cut, const char *name)
{
    cr_assert_eq(whole->total, cut->total, "%s: %lu and %lu out of memory", name, whole->total,
                 cut->total);
    for (size_t i = 0; i < whole->count; i++) {
        const struct vs_oom *a = &whole->items[i], *b = &cut->items[i];
        cr_assert_eq(a->sequence, b->sequence);
        cr_assert_eq(a->class, b->class, "%s: %s and %s", name, a->why, b->why);
        cr_assert_str_eq(a->why, b->why);
        cr_assert(a->handled == b->handled && a->repaired == b->repaired &&
                  a->largest_free == b->largest_free && a->cached == b->cached &&
                  a->attempt_count == b->attempt_count);
    }
}

static void compare_devices(const struct vs_summary *whole, const struct vs_summary *cut)
{
    for (size_t i = 0; i < VS_DEVICE_SLOTS; i++) {
        const struct vs_device_state *a = whole->state->devices[i], *b = cut->state->devices[i];
        cr_assert_eq(a == NULL, b == NULL);
        for (int layer = 0; a != NULL && layer < VS_LAYERS; layer++) {
            cr_assert_eq(a->layers[layer].peak_bytes, b->layers[layer].peak_bytes);
            cr_assert_eq(a->layers[layer].peak_time_ns, b->layers[layer].peak_time_ns);
        }
        cr_assert(a == NULL ||
                  (a->used_peak == b->used_peak && a->used_peak_ns == b->used_peak_ns &&
                   a->reserved_peak == b->reserved_peak));
        if (a != NULL && whole->peaks.devices[i] != NULL) {
            const struct vs_bands *x = &whole->peaks.devices[i]->at_framework;
            const struct vs_bands *y = &cut->peaks.devices[i]->at_framework;
            cr_assert(x->allocated == y->allocated && x->reserved == y->reserved &&
                      x->direct == y->direct && x->pending == y->pending);
        }
    }
}

/* At the peak and at the end, by stack. */
static uint64_t sites_mark(const struct vs_summary *summary)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < summary->sites.count; i++) {
        const struct vs_site_stats *stats = &summary->sites.stats[i];
        if (stats->peak_bytes != 0 || stats->live_bytes != 0 || stats->failed != 0)
            sum += mix(mix(site_mark(summary->state, (uint32_t)i + 1), (uint64_t)stats->peak_bytes),
                       mix((uint64_t)stats->live_bytes, stats->failed));
    }
    return sum;
}

static void compare_summaries(const char *whole_path, const char *cut_path, const char *name)
{
    struct vs_summary *whole, *cut;
    struct vs_error error;
    struct vs_check checks[VS_CHECKS], same[VS_CHECKS];
    cr_assert_eq(vs_summary_load(whole_path, NULL, NULL, &whole, &error), 0);
    cr_assert_eq(vs_summary_load(cut_path, NULL, NULL, &cut, &error), 0);
    compare_devices(whole, cut);
    compare_ooms(&whole->ooms, &cut->ooms, name);
    cr_assert_eq(sites_mark(whole), sites_mark(cut), "%s: what is live by stack", name);
    cr_assert_eq(whole->failures.count, cut->failures.count);
    for (size_t i = 0; i < whole->failures.count; i++)
        cr_assert_eq(whole->failures.items[i].count, cut->failures.items[i].count);
    cr_assert_eq(whole->duration_ns, cut->duration_ns);
    cr_assert_eq(whole->complete, cut->complete);
    size_t count = vs_checks_run(whole, checks), cut_count = vs_checks_run(cut, same);
    cr_assert_eq(cut_count, count + (cut->cuts.gaps != 0));
    for (size_t i = 0, at = 0; i < count; i++, at++) {
        at += strcmp(same[at].name, "cut") == 0;
        cr_assert(same[at].outcome <= checks[i].outcome, "%s: %s: %s", name, same[at].name,
                  same[at].text);
    }
    vs_summary_free(whole);
    vs_summary_free(cut);
}

/* Cuts with windows of `radius`; events compared. */
static uint64_t cut_and_compare(const char *path, uint64_t radius, const char *name,
                                struct vs_cut_made *made)
{
    char cut_path[64];
    struct vs_error error;
    struct vs_cut *cut;
    int fd = open_file(cut_path);
    cr_assert_eq(vs_cut_open(path, &cut, &error), 0, "%s", error.text);
    cr_assert_eq(vs_cut_write(cut, fd, radius, UINT64_MAX, made), 0);
    vs_cut_close(cut);
    close(fd);
    uint64_t compared = compare_states(path, cut_path, name);
    compare_summaries(path, cut_path, name);
    unlink(cut_path);
    return compared;
}

static const struct habits all_habits[] = {
    {.name = "a framework alone", .segments = 4, .samples = 5, .totals = true, .chunk = 1000},
    {.name = "without totals", .segments = 4, .samples = 2, .chunk = 333},
    {.name = "memory besides",
     .segments = 4,
     .samples = 20,
     .direct = 20,
     .pools = 10,
     .vmm = 10,
     .totals = true,
     .chunk = 4096},
    {.name = "failures",
     .segments = 4,
     .samples = 5,
     .failures = 2,
     .ooms = 2,
     .totals = true,
     .chunk = 500},
    {.name = "streams and captures",
     .segments = 6,
     .waits = 20,
     .captures = 3,
     .totals = true,
     .chunk = 700},
    {.name = "many streams",
     .segments = 6,
     .waits = 150,
     .captures = 1,
     .totals = true,
     .chunk = 700},
    {.name = "an allocator under the layer's",
     .segments = 2,
     .samples = 2,
     .totals = true,
     .under = true,
     .chunk = 1500},
    {.name = "losses and holes",
     .segments = 4,
     .samples = 5,
     .losses = 3,
     .holes = 3,
     .ooms = 1,
     .direct = 5,
     .totals = true,
     .chunk = 900},
};
enum { HABITS = sizeof(all_habits) / sizeof(all_habits[0]) };

Test(trace_cut, every_window_is_as_it_was, .timeout = 120)
{
    static const uint64_t radii[] = {0, 7, 60, 300};
    for (size_t i = 0; i < HABITS; i++) {
        uint64_t taken_out = 0, compared = 0;
        for (uint64_t seed = 1; seed <= 3; seed++) {
            char path[64];
            record(&all_habits[i], seed * 77 + i, 6000, path);
            for (size_t at = 0; at < sizeof(radii) / sizeof(radii[0]); at++) {
                struct vs_cut_made made;
                compared += cut_and_compare(path, radii[at], all_habits[i].name, &made);
                taken_out += made.events;
            }
            unlink(path);
        }
        cr_assert_gt(taken_out, 1000, "%s: %lu taken out", all_habits[i].name, taken_out);
        cr_assert_gt(compared, 1000, "%s: %lu compared", all_habits[i].name, compared);
    }
}

Test(trace_cut, wide_windows_leave_all_of_it)
{
    char path[64];
    struct vs_cut_made made;
    record(&all_habits[0], 5, 3000, path);
    uint64_t compared = cut_and_compare(path, 1U << 20, "all of it", &made);
    cr_assert_eq(made.events, 0);
    cr_assert_eq(made.gaps, 0);
    cr_assert_geq(compared, 3000);
    unlink(path);
}

/* ---- files of every shape -------------------------------------------------------------------- */

static uint64_t count_kind(struct vs_reader *reader, bool marks)
{
    struct vs_sequenced_event event;
    uint64_t count = 0;
    vs_reader_rewind(reader);
    while (vs_reader_next(reader, &event) == 1)
        count += is_mark(&event) == marks;
    return count;
}

static void cut_shape(const struct shape *shape)
{
    char path[64], cut_path[64];
    struct vs_bytes file = {0};
    struct vs_reader *whole, *cut_reader;
    struct vs_cut *cut;
    struct vs_cut_made made;
    struct vs_error error;
    int fd = open_file(path), cut_fd = open_file(cut_path);
    shape->make(&file);
    cr_assert_eq(write(fd, file.data, file.bytes), (ssize_t)file.bytes);
    cr_assert_eq(vs_reader_open(path, &whole, &error), 0);
    bool is_cut = vs_reader_status(whole)->cut_gaps != 0;
    cr_assert_eq(vs_cut_open(path, &cut, &error), is_cut ? -EALREADY : 0, "%s", shape->name);
    if (!is_cut) {
        cr_assert_eq(vs_cut_write(cut, cut_fd, 0, UINT64_MAX, &made), 0, "%s", shape->name);
        cr_assert_eq(vs_reader_open(cut_path, &cut_reader, &error), 0, "%s", shape->name);
        const struct vs_trace_status *before = vs_reader_status(whole);
        const struct vs_trace_status *after = vs_reader_status(cut_reader);
        cr_assert_eq(count_kind(cut_reader, true), 2 * made.gaps, "%s", shape->name);
        cr_assert_eq(count_kind(cut_reader, false), before->events - made.events, "%s",
                     shape->name);
        cr_assert_eq(after->closed, before->closed, "%s", shape->name);
        cr_assert_eq(after->damaged_chunks, 0);
        cr_assert_eq(after->missing_events, before->missing_events, "%s: %lu and %lu", shape->name,
                     after->missing_events, before->missing_events);
        vs_reader_close(cut_reader);
    }
    vs_cut_close(cut);
    vs_reader_close(whole);
    vs_bytes_free(&file);
    close(fd);
    close(cut_fd);
    unlink(path);
    unlink(cut_path);
}

Test(trace_cut, files_of_every_shape_can_be_cut)
{
    for (size_t i = 0; i < shape_count; i++)
        if (shapes[i].opens == 0)
            cut_shape(&shapes[i]);
}
