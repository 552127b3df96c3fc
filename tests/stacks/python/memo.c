/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remembered Python walks against made ones, on chains of frames that are made up
 * word by word in the layouts of three versions. Between walks one word is changed,
 * and often changed back. What a walk tells is reckoned here once more, in the
 * simplest way. Two threads at once, whose memos take each other's places.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "python_memo.h"

#define FRAMES 24U
#define CODES 6U
#define FRAME_BYTES 128U
#define CODE_BYTES 512U
#define THREAD_BYTES 64U
#define DEPTH 12U /* of a walk, shorter than some chains */
#define CHAINS 20000U
#define CHANGES 12U
#define THREADS 2U
#define OWNER_LAST 4U
#define YIELDS 86U /* in the bytecode: a walk of 3.11 looks for such */

struct world {
    char thread[THREAD_BYTES];
    char frame[FRAMES][FRAME_BYTES];
    char code[CODES][CODE_BYTES];
    const struct python_layout *layout;
    uint64_t first, random;
    unsigned long recalled, different;
};

static uint64_t any(struct world *world, uint64_t below)
{
    world->random ^= world->random << 13;
    world->random ^= world->random >> 7;
    world->random ^= world->random << 17;
    return world->random % below;
}

static uint64_t address_of(const void *place)
{
    return (uint64_t)(uintptr_t)place;
}

static uint64_t get(uint64_t object, unsigned place, size_t bytes)
{
    uint64_t value = 0;
    memcpy(&value, (const char *)(uintptr_t)object + place, bytes);
    return value;
}

static void put(uint64_t object, unsigned place, uint64_t value, size_t bytes)
{
    memcpy((char *)(uintptr_t)object + place, &value, bytes);
}

/* ---- what a walk tells ----------------------------------------------------------------- */

struct told {
    uint64_t sum;
    unsigned count;
    enum vs_stack_note note;
    bool by_content; /* a version is 0: such a walk is not to be remembered */
};

static void mix(struct told *told, uint64_t value)
{
    told->sum = (told->sum ^ value) * 0x9e3779b97f4a7c15ULL;
    told->sum ^= told->sum >> 29;
}

static uint64_t ip_of(const struct world *world, uint64_t frame)
{
    bool is_number = world->layout->chain == PYTHON_CHAIN_OBJECTS;
    return get(frame, world->layout->frame_ip, is_number ? 4 : 8);
}

static bool is_entry(const struct world *world, uint64_t frame)
{
    const struct python_layout *layout = world->layout;
    if (layout->chain == PYTHON_CHAIN_OBJECTS) {
        return get(frame, layout->frame_generator, 8) == 0;
    }
    uint64_t ip = ip_of(world, frame);
    bool is_inside = ip - get(frame, layout->frame_code, 8) - layout->code_bytes < CODE_BYTES;
    return get(frame, layout->frame_entry, 1) != 0 &&
           (get(frame, layout->frame_owner, 1) != PYTHON_OWNER_GENERATOR || !is_inside ||
            get(ip, 0, 1) != YIELDS);
}

static void tell_frame(const struct world *world, struct told *told, uint64_t frame)
{
    const struct python_layout *layout = world->layout;
    uint64_t code = get(frame, layout->frame_code, 8);
    mix(told, code);
    mix(told, ip_of(world, frame));
    if (layout->chain == PYTHON_CHAIN_SHIMMED) {
        uint64_t version = get(code, layout->code_version, 4);
        told->by_content |= version == 0;
        mix(told, version);
    } else {
        mix(told, is_entry(world, frame));
    }
}

static struct told tell(const struct world *world)
{
    const struct python_layout *layout = world->layout;
    struct told told = {.note = VS_STACK_NOTE_NONE};
    uint64_t frame = world->first;
    for (; frame != 0; frame = get(frame, layout->frame_previous, 8)) {
        if (layout->chain == PYTHON_CHAIN_SHIMMED &&
            get(frame, layout->frame_owner, 1) >= PYTHON_OWNER_NO_FRAME) {
            mix(&told, 1); /* the one before was a call's last */
            continue;
        }
        if (told.count == DEPTH) {
            told.note = VS_STACK_NOTE_PYTHON_CUT;
            told.by_content |= layout->chain == PYTHON_CHAIN_SHIMMED &&
                               get(get(frame, layout->frame_code, 8), layout->code_version, 4) == 0;
            break;
        }
        tell_frame(world, &told, frame);
        told.count++;
    }
    mix(&told, get(address_of(world->thread), layout->thread_interpreter, 8));
    return told;
}

/* ---- chains ------------------------------------------------------------------------------ */

static void set_code(struct world *world, uint64_t frame)
{
    const struct python_layout *layout = world->layout;
    uint64_t code = address_of(world->code[any(world, CODES)]);
    bool is_number = layout->chain == PYTHON_CHAIN_OBJECTS;
    put(frame, layout->frame_code, code, 8);
    put(frame, layout->frame_ip, (is_number ? 0 : code + layout->code_bytes) + 2 * any(world, 4),
        is_number ? 4 : 8);
}

static void set_kind(struct world *world, uint64_t frame)
{
    const struct python_layout *layout = world->layout;
    if (layout->chain == PYTHON_CHAIN_OBJECTS) {
        put(frame, layout->frame_generator, any(world, 2) * frame, 8);
        return;
    }
    put(frame, layout->frame_owner, any(world, OWNER_LAST + 1), 1);
    if (layout->chain == PYTHON_CHAIN_LINKED) {
        put(frame, layout->frame_entry, any(world, 2), 1);
    }
}

static void set_previous(struct world *world, unsigned frame)
{
    unsigned next = frame + 1 + (any(world, 6) == 0 ? (unsigned)any(world, 4) : 0);
    put(address_of(world->frame[frame]), world->layout->frame_previous,
        next < FRAMES ? address_of(world->frame[next]) : 0, 8);
}

static void make(struct world *world)
{
    world->first = address_of(world->frame[any(world, FRAMES)]);
    for (unsigned i = 0; i < FRAMES; i++) {
        set_code(world, address_of(world->frame[i]));
        set_kind(world, address_of(world->frame[i]));
        set_previous(world, i);
    }
    for (unsigned i = 0; i < CODES; i++) {
        put(address_of(world->code[i]), world->layout->code_version, 1 + any(world, 100), 4);
    }
}

/* One word of anything. Returns where, and in *was what it was. */
static char *change(struct world *world, char *was, size_t *bytes)
{
    const struct python_layout *layout = world->layout;
    unsigned number = (unsigned)any(world, FRAMES);
    uint64_t frame = address_of(world->frame[number]);
    char *place = world->frame[number];
    *bytes = FRAME_BYTES;
    switch (any(world, 7)) {
    case 0:
        place = world->code[any(world, CODES)];
        *bytes = CODE_BYTES;
        memcpy(was, place, *bytes);
        put(address_of(place), layout->code_version, any(world, 3), 4);
        break;
    case 1:
        place = world->code[any(world, CODES)];
        *bytes = CODE_BYTES;
        memcpy(was, place, *bytes);
        put(address_of(place), layout->code_bytes + 2 * (unsigned)any(world, 4),
            any(world, 2) * YIELDS, 1);
        break;
    case 2:
        place = world->thread;
        *bytes = THREAD_BYTES;
        memcpy(was, place, *bytes);
        put(address_of(place), layout->thread_interpreter, any(world, 3), 8);
        break;
    case 3:
        memcpy(was, place, *bytes);
        set_kind(world, frame);
        break;
    case 4:
        memcpy(was, place, *bytes);
        set_previous(world, number);
        break;
    case 5: /* another code object, the same number in it */
        memcpy(was, place, *bytes);
        put(frame, layout->frame_code, address_of(world->code[any(world, CODES)]), 8);
        break;
    default:
        memcpy(was, place, *bytes);
        set_code(world, frame);
    }
    return place;
}

/* ---- walks ------------------------------------------------------------------------------- */

static void walk(struct world *world)
{
    struct python_known known;
    uint64_t thread = address_of(world->thread);
    uint64_t age = atomic_load(&python_memo_age);
    bool recalled = python_memo_recall(world->layout, thread, world->first, &known);
    bool same_age = age == atomic_load(&python_memo_age);
    struct told told = tell(world);
    if (recalled) {
        world->recalled++;
        world->different += told.by_content || known.count != told.count ||
                            known.note != told.note || known.sum[0] != told.sum ||
                            (same_age && known.sum[1] != age);
        return;
    }
    known.count = told.count;
    known.note = told.note;
    known.sum[0] = told.sum;
    known.sum[1] = known.age;
    if (told.note == VS_STACK_NOTE_NONE && any(world, 50) == 0) { /* of another chain */
        known.count++;
        known.sum[0]++;
    }
    python_memo_keep(world->layout, thread, world->first, &known);
}

static void walk_often(struct world *world)
{
    for (int i = 0; i < 3; i++) {
        walk(world);
    }
}

static void *change_chains(void *argument)
{
    struct world *world = argument;
    char was[CODE_BYTES];
    for (unsigned i = 0; i < CHAINS; i++) {
        make(world);
        walk_often(world);
        for (unsigned j = 0; j < CHANGES; j++) {
            size_t bytes;
            char *place = change(world, was, &bytes);
            walk(world);
            if (any(world, 2) == 0) {
                walk_often(world);
            }
            if (any(world, 4) != 0) {
                memcpy(place, was, bytes);
            }
            walk(world);
        }
        if (any(world, 20) == 0) {
            python_memo_begin_age();
            walk_often(world);
        }
    }
    return NULL;
}

/* ---- all of it ------------------------------------------------------------------------------ */

static bool run(uint32_t version, unsigned long least)
{
    static struct world worlds[THREADS];
    struct python_layout layout;
    pthread_t thread[THREADS];
    unsigned long recalled = 0;
    unsigned long different = 0;
    if (python_layout_choose(version, NULL, &layout) != 0) {
        return false;
    }
    memset(worlds, 0, sizeof(worlds));
    for (unsigned i = 0; i < THREADS; i++) {
        worlds[i].layout = &layout;
        worlds[i].random = version + i;
        if (pthread_create(&thread[i], NULL, change_chains, &worlds[i]) != 0) {
            return false;
        }
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        recalled += worlds[i].recalled;
        different += worlds[i].different;
    }
    printf("3.%u: %lu walks recalled, %lu of them not the ones made\n", version >> 16 & 0xffU,
           recalled, different);
    return different == 0 && recalled >= least;
}

int main(int count, char **arguments)
{
    unsigned long least = count > 1 ? strtoul(arguments[1], NULL, 10) : 1;
    bool right = run(0x03080000, least);
    python_memo_begin_age();
    right &= run(0x030b0000, least);
    python_memo_begin_age();
    right &= run(0x030c0000, least);
    return right ? 0 : 1;
}
