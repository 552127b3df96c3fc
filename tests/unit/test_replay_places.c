/* SPDX-License-Identifier: Apache-2.0 */
/* Which sites are one place, and which places one line: stacks of a table, not of a trace. */
#include "replay/places.h"
#include "replay_lab.h"

/* ---- stacks ------------------------------------------------------------------------- */

enum {
    STEP = 1,
    STEP_AGAIN,
    OTHER_LINE,
    OTHER_CALLER,
    UNNAMED,
    UNNAMED_AGAIN,
    LIBRARY,
    BACKWARD,
    NOTE_ONLY,
    UNDEFINED,
    SOUGHT,
    STACKS
};

#define PYTHON(name, path, at, is_own)                                                     \
    {                                                                                      \
        .kind = VS_FRAME_PYTHON, .function = name, .file = path, .line = at, .own = is_own \
    }
#define NATIVE(name, path, where)                                                   \
    {                                                                               \
        .kind = VS_FRAME_NATIVE, .function = name, .module = path, .address = where \
    }

#define MALLOC(where) NATIVE("c10::malloc(unsigned long)", "/v/libc10_cuda.so", where)
#define STEP_AT(at) PYTHON("step", "/home/ann/run/train.py", at, true)
#define MAIN_AT(at) PYTHON("main", "/home/ann/run/train.py", at, true)

static const struct vs_frame table[STACKS][4] = {
    [STEP] = {MALLOC(0x10), STEP_AT(7), MAIN_AT(1)},
    [STEP_AGAIN] = {MALLOC(0x20), STEP_AT(7), MAIN_AT(1)}, /* another call of the same function */
    [OTHER_LINE] = {MALLOC(0x10), STEP_AT(8), MAIN_AT(1)},
    [OTHER_CALLER] = {MALLOC(0x10), STEP_AT(7), MAIN_AT(2)},
    [UNNAMED] = {NATIVE(NULL, "/v/libfoo.so", 0x10), STEP_AT(9)},
    [UNNAMED_AGAIN] = {NATIVE(NULL, "/v/libfoo.so", 0x20), STEP_AT(9)},
    [LIBRARY] = {MALLOC(0x10), PYTHON("adam", "/usr/lib/python3.11/site-packages/o.py", 3, false)},
    [BACKWARD] = {MALLOC(0x10), NATIVE("at::empty()", "/v/libtorch_cpu.so", 1),
                  NATIVE("torch::autograd::generated::MmBackward0::apply(std::vector&&)",
                         "/v/libtorch_cpu.so", 2)},
    [SOUGHT] =
        {{.kind = VS_FRAME_NATIVE, .module = "/v/libfoo.so", .address = 0x30, .sought = true},
         NATIVE(NULL, NULL, 0x7f0000001000)},
    [NOTE_ONLY] = {{.kind = VS_FRAME_NOTE, .function = "no Python code runs in this thread"}},
};

static long frames_of(void *self, uint32_t stack, const struct vs_frame **out)
{
    uint32_t *asked = self;
    (*asked)++;
    *out = table[stack];
    long count = 0;
    while (count < 4 && (table[stack][count].function != NULL || table[stack][count].address != 0))
        count++;
    return count;
}

struct reading {
    struct lab lab;
    struct vs_sites sites;
    struct vs_places places;
    uint32_t asked;
    uint64_t next_address;
};

static void begin(struct reading *reading)
{
    *reading = (struct reading){.lab = lab_open(), .next_address = 0x10000};
    vs_sites_start(&reading->sites, reading->lab.state);
}

static void allocate(struct reading *reading, uint32_t stack, uint64_t size)
{
    lab_put(&reading->lab, (struct vs_event){.kind = VS_KIND_ALLOC,
                                             .module = PROGRAM,
                                             .address = reading->next_address,
                                             .size = size,
                                             .stack = stack});
    reading->next_address += 0x100000;
}

static void finish(struct reading *reading, enum vs_group_by by)
{
    struct vs_stack_source source = {&reading->asked, frames_of};
    cr_assert_eq(vs_sites_finish(&reading->sites, reading->lab.state), 0);
    cr_assert_eq(
        vs_places_create(reading->lab.state, &reading->sites, &source, by, &reading->places), 0);
}

static void end(struct reading *reading)
{
    vs_places_release(&reading->places);
    vs_sites_release(&reading->sites);
    lab_close(&reading->lab);
}

/* ---- places ---------------------------------------------------------------------------- */

Test(places, ids_that_mean_the_same_frames_are_one)
{
    struct reading reading;
    begin(&reading);
    allocate(&reading, STEP_AGAIN, 5);
    allocate(&reading, OTHER_LINE, 70);
    allocate(&reading, STEP, 600);
    finish(&reading, VS_BY_STACK);
    cr_assert_eq(reading.places.count, 2);
    cr_assert_eq(reading.places.stacks, 2);
    const struct vs_place *place = vs_places_of(&reading.places, 1);
    cr_assert_eq(place, vs_places_of(&reading.places, 3));
    cr_assert_eq(place->number, STEP, "the lowest id");
    cr_assert_eq(place->stats.peak_bytes, 605);
    cr_assert_eq(place->stats.allocs, 2);
    cr_assert_eq(vs_places_of(&reading.places, 2)->stats.peak_bytes, 70);
    cr_assert_null(vs_places_of(&reading.places, 0));
    end(&reading);
}

Test(places, addresses_without_a_name_keep_stacks_apart)
{
    struct reading reading;
    begin(&reading);
    allocate(&reading, UNNAMED, 1);
    allocate(&reading, UNNAMED_AGAIN, 2);
    finish(&reading, VS_BY_LINE);
    cr_assert_eq(reading.places.count, 2);
    cr_assert_eq(reading.places.unnamed, 2);
    cr_assert_eq(reading.places.group_count, 1, "they lead to the same line");
    end(&reading);
}

/* What was looked for in vain, and what is in no object, is not worth another try. */
Test(places, only_names_that_were_not_looked_for_are_missing)
{
    struct reading reading;
    begin(&reading);
    allocate(&reading, SOUGHT, 1);
    finish(&reading, VS_BY_LINE);
    cr_assert_eq(reading.places.unnamed, 0);
    cr_assert(reading.places.items[0].has_stack);
    end(&reading);
}

Test(places, one_stack_by_two_calls_or_owners_is_two)
{
    struct reading reading;
    begin(&reading);
    allocate(&reading, STEP, 1);
    lab_put(
        &reading.lab,
        (struct vs_event){
            .kind = VS_KIND_ALLOC, .module = NCCL, .address = 0x9000000, .size = 2, .stack = STEP});
    finish(&reading, VS_BY_LINE);
    cr_assert_eq(reading.places.count, 2);
    cr_assert_eq(reading.places.stacks, 1);
    cr_assert_eq(reading.places.items[0].number, reading.places.items[1].number);
    cr_assert_eq(reading.places.group_count, 1);
    cr_assert_eq(reading.places.groups[0].stats.peak_bytes, 3);
    end(&reading);
}

Test(places, without_a_stack_have_numbers_above_all_stacks)
{
    struct reading reading;
    begin(&reading);
    allocate(&reading, 0, 1);
    allocate(&reading, OTHER_CALLER, 2);
    allocate(&reading, UNDEFINED, 4);
    allocate(&reading, NOTE_ONLY, 8);
    finish(&reading, VS_BY_LINE);
    cr_assert_eq(reading.places.count, 4);
    cr_assert_gt(reading.places.items[0].number, UNDEFINED);
    cr_assert_not(reading.places.items[0].has_stack);
    cr_assert(reading.places.items[1].has_stack);
    cr_assert_not(reading.places.items[2].has_stack, "its definition is not there");
    cr_assert_eq(reading.places.items[2].number, UNDEFINED);
    cr_assert_not(reading.places.items[3].has_stack, "a remark is no frame");
    cr_assert_eq(reading.places.group_count, 4);
    end(&reading);
}

/* ---- groups -------------------------------------------------------------------------------- */

static size_t groups_by(enum vs_group_by by)
{
    static const uint32_t all[] = {STEP,     STEP_AGAIN, OTHER_LINE, OTHER_CALLER, UNNAMED, LIBRARY,
                                   BACKWARD, NOTE_ONLY,  0};
    struct reading reading;
    begin(&reading);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        allocate(&reading, all[i], 1ULL << i);
    finish(&reading, by);
    int64_t sum = 0;
    for (size_t i = 0; i < reading.places.group_count; i++)
        sum += reading.places.groups[i].stats.peak_bytes;
    cr_assert_eq(sum, lab_device(&reading.lab)->layers[VS_LAYER_DRIVER].peak_bytes);
    size_t count = reading.places.group_count;
    end(&reading);
    return count;
}

Test(places, are_grouped_by_line_function_module_and_stack)
{
    cr_assert_eq(groups_by(VS_BY_STACK), 8);
    cr_assert_eq(groups_by(VS_BY_LINE), 7);     /* 7, 8, 9, the library, backward, two without */
    cr_assert_eq(groups_by(VS_BY_FUNCTION), 5); /* step, the library, backward, two without */
    cr_assert_eq(groups_by(VS_BY_MODULE), 4);   /* those without by their owner */
}

Test(places, a_group_is_named_after_its_heaviest)
{
    struct reading reading;
    begin(&reading);
    allocate(&reading, STEP, 1);
    allocate(&reading, OTHER_CALLER, 20);
    finish(&reading, VS_BY_LINE);
    cr_assert_eq(reading.places.group_count, 1);
    cr_assert_eq(reading.places.groups[0].place, 1);
    cr_assert_eq(reading.places.groups[0].places, 2);
    end(&reading);
}

/* ---- which frame ----------------------------------------------------------------------------- */

Test(places, are_named_after_the_programs_own_line)
{
    cr_assert_eq(vs_places_frame(table[STEP], 3), 1);
    cr_assert_eq(vs_places_frame(table[LIBRARY], 2), 1, "a library's line before an allocator's");
    cr_assert_eq(vs_places_frame(table[BACKWARD], 3), 2, "the node of the backward pass");
    cr_assert_eq(vs_places_frame(table[BACKWARD], 2), 1, "not the allocator");
    cr_assert_eq(vs_places_frame(table[BACKWARD], 1), 0, "there is nothing else");
    cr_assert_eq(vs_places_frame(table[NOTE_ONLY], 1), -1);
    cr_assert_eq(vs_places_frame(NULL, 0), -1);
}

Test(places, know_the_folder_of_the_program)
{
    struct reading reading;
    begin(&reading);
    allocate(&reading, STEP, 1);
    allocate(&reading, LIBRARY, 1);
    finish(&reading, VS_BY_LINE);
    cr_assert_str_eq(reading.places.root, "/home/ann/run/");
    end(&reading);
}

Test(places, each_stack_is_asked_for_once)
{
    struct reading reading;
    begin(&reading);
    for (int i = 0; i < 10; i++) {
        allocate(&reading, STEP, 1);
        lab_put(&reading.lab, (struct vs_event){.kind = VS_KIND_HOST_ALLOC,
                                                .module = 1 + (uint32_t)i % 3,
                                                .address = 0x100 + (uint64_t)i * 0x1000,
                                                .size = 1,
                                                .stack = STEP});
    }
    finish(&reading, VS_BY_LINE);
    cr_assert_eq(reading.asked, 1);
    end(&reading);
}

/* ---- windows ------------------------------------------------------------------------------------
 */

Test(places, peaks_start_again_with_a_window)
{
    struct reading reading;
    begin(&reading);
    allocate(&reading, STEP, 100);
    allocate(&reading, OTHER_LINE, 50);
    lab_free(&reading.lab, 0x10000);
    cr_assert_eq(lab_device(&reading.lab)->layers[VS_LAYER_DRIVER].peak_bytes, 150);
    vs_state_restart_peaks(reading.lab.state, reading.lab.time_ns);
    vs_sites_restart(&reading.sites);
    allocate(&reading, UNNAMED, 20);
    lab_free(&reading.lab, 0x110000);
    finish(&reading, VS_BY_LINE);
    cr_assert_eq(lab_device(&reading.lab)->layers[VS_LAYER_DRIVER].peak_bytes, 70);
    cr_assert_eq(vs_places_of(&reading.places, 1)->stats.peak_bytes, 0);
    cr_assert_eq(vs_places_of(&reading.places, 1)->stats.frees, 0, "before the window");
    cr_assert_eq(vs_places_of(&reading.places, 2)->stats.peak_bytes, 50);
    cr_assert_eq(vs_places_of(&reading.places, 2)->stats.live_bytes, 0);
    cr_assert_eq(vs_places_of(&reading.places, 2)->stats.frees, 1);
    cr_assert_eq(vs_places_of(&reading.places, 3)->stats.peak_bytes, 20);
    end(&reading);
}
