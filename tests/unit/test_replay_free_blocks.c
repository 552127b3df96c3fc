/* SPDX-License-Identifier: Apache-2.0 */
/* The largest free block after every event of random programs, against a walk over the segments. */
#include "replay/free_blocks.h"

#include "replay_lab.h"

#define BASE 0x7000000000ULL
#define RESERVED 0x9000000000ULL
#define EVENT 0x5000ULL

enum { SEGMENTS = 12, BLOCKS = 200, STEPS = 6000, PIECES = 64 };

struct program {
    struct lab lab;
    struct vs_free_blocks free_blocks;
    uint32_t random;
    uint64_t segments[SEGMENTS];          /* bytes, 0 free; at BASE + i GiB, some side by side */
    struct vs_segment_block live[BLOCKS]; /* size 0: none */
    bool pieces[PIECES];                  /* of an expandable segment: mapped */
    uint64_t event;                       /* the last one recorded, 0 none */
    unsigned questions, answers;
};

static uint32_t roll(struct program *program, uint32_t sides)
{
    program->random = program->random * 1664525U + 1013904223U;
    return (program->random >> 8) % sides;
}

static void on_event(void *self, const struct vs_state *state,
                     const struct vs_sequenced_event *event)
{
    struct program *program = self;
    vs_free_blocks_event(&program->free_blocks, state, &event->event);
}

static void compare(struct program *program)
{
    const struct vs_device_state *device = lab_device(&program->lab);
    uint64_t largest = 0;
    program->questions++;
    if (device == NULL ||
        !vs_free_blocks_largest(&program->free_blocks, program->lab.state, device, &largest))
        return;
    struct vs_layout now = lab_free_space(&program->lab);
    program->answers++;
    cr_assert(now.known);
    cr_assert_eq(largest, now.largest_free_bytes, "%llu kept, %llu walked",
                 (unsigned long long)largest, (unsigned long long)now.largest_free_bytes);
}

/* ---- what it does ------------------------------------------------------------------------ */

/* By a block that lives or waits. */
static bool is_used(const struct program *program, uint64_t address, uint64_t bytes)
{
    struct vs_layout layout;
    bool used = false;
    cr_assert_eq(vs_layout_take(program->lab.state, lab_device(&program->lab), &layout), 0);
    for (size_t i = 0; i < layout.block_count; i++)
        used = used || (layout.blocks[i].address < address + bytes &&
                        layout.blocks[i].address + layout.blocks[i].size > address);
    vs_layout_release(&layout);
    return used;
}

static void change_segment(struct program *program)
{
    uint32_t at = roll(program, SEGMENTS);
    uint64_t address = BASE + at / 2 * GIB + at % 2 * 64 * MIB; /* pairs side by side */
    if (program->segments[at] == 0) {
        program->segments[at] = 64 * MIB;
        lab_segment(&program->lab, address, program->segments[at]);
        return;
    }
    if (is_used(program, address, program->segments[at]))
        return;
    program->lab.reserved -= program->segments[at];
    program->segments[at] = 0;
    lab_free(&program->lab, address);
}

static void change_piece(struct program *program)
{
    uint32_t at = roll(program, PIECES);
    uint64_t address = RESERVED + at * 2 * MIB;
    struct lab *lab = &program->lab;
    if (!program->pieces[at]) {
        lab_create(lab, TORCH, at + 1, 2 * MIB);
        lab->reserved += 2 * MIB;
        lab_map(lab, TORCH, address, 2 * MIB, at + 1);
        program->pieces[at] = true;
        return;
    }
    if (is_used(program, address, 2 * MIB))
        return;
    lab->reserved -= 2 * MIB;
    lab_range(lab, VS_KIND_UNMAP, TORCH, address, 2 * MIB, 0);
    lab_range(lab, VS_KIND_PHYS_RELEASE, TORCH, 0, 0, at + 1);
    program->pieces[at] = false;
}

/* Somewhere in the free space: the walk says where. */
static void new_block(struct program *program, size_t slot)
{
    struct vs_layout layout;
    uint64_t size = (1 + roll(program, 4096)) * 512;
    cr_assert_eq(vs_layout_take(program->lab.state, lab_device(&program->lab), &layout), 0);
    const struct vs_segment *segment =
        layout.count == 0 ? NULL : &layout.segments[roll(program, (uint32_t)layout.count)];
    uint64_t from = segment == NULL ? 0 : segment->address, limit = 0, skip = roll(program, 3);
    for (size_t i = 0; segment != NULL && i <= segment->block_count; i++) {
        bool last = i == segment->block_count;
        const struct vs_segment_block *block = &layout.blocks[segment->first_block + i];
        limit = last ? segment->address + segment->size : block->address;
        if (limit - from >= size && skip-- == 0)
            break;
        from = last ? limit : block->address + block->size;
    }
    vs_layout_release(&layout);
    if (segment == NULL || limit - from < size || from == 0)
        return;
    if (roll(program, 2) == 0)
        from = limit - size;
    program->live[slot] = (struct vs_segment_block){.address = from, .size = size};
    lab_block_on(&program->lab, from, size, 1, 0);
}

static void free_block(struct program *program, size_t slot)
{
    struct vs_segment_block *block = &program->live[slot];
    if (roll(program, 20) == 0) {
        program->event = EVENT + roll(program, 1000);
        lab_put(&program->lab, (struct vs_event){.kind = VS_KIND_EVENT_RECORD,
                                                 .module = TORCH,
                                                 .handle = program->event,
                                                 .stream = 9});
    }
    lab_block_free(&program->lab, block->address, block->size);
    block->size = 0;
}

static void step(struct program *program)
{
    size_t slot = roll(program, BLOCKS);
    uint32_t what = roll(program, 400);
    if (what < 4)
        change_segment(program);
    else if (what < 8)
        change_piece(program);
    else if (what < 14 && program->event != 0)
        lab_put(&program->lab, (struct vs_event){.kind = VS_KIND_EVENT_QUERY,
                                                 .module = TORCH,
                                                 .handle = program->event});
    else if (what == 14) /* of a block that was never seen */
        lab_put(&program->lab, (struct vs_event){.kind = VS_KIND_FW_FREE,
                                                 .module = TORCH,
                                                 .address = BASE + roll(program, 1 << 20) * 512,
                                                 .size = 512});
    else if (program->live[slot].size == 0)
        new_block(program, slot);
    else
        free_block(program, slot);
}

Test(free_blocks, largest_is_that_of_a_walk)
{
    for (uint32_t seed = 1; seed <= 20; seed++) {
        struct program program = {.lab = lab_open(), .random = seed};
        struct vs_subscriber watch = {.self = &program, .event = on_event};
        cr_assert_eq(vs_state_subscribe(program.lab.state, &watch), 0);
        lab_range(&program.lab, VS_KIND_RESERVE, TORCH, RESERVED, PIECES * 2 * MIB, 0);
        change_segment(&program);
        for (unsigned i = 0; i < STEPS; i++) {
            step(&program);
            compare(&program);
        }
        cr_assert_gt(program.answers * 4, program.questions * 3, "%u of %u", program.answers,
                     program.questions);
        vs_free_blocks_release(&program.free_blocks);
        lab_close(&program.lab);
    }
}
