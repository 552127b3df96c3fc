/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout tables of CPython 3.8 to 3.15: offsetof in each version's own
 * headers, equal on x86-64 and aarch64, in release and debug builds. The free-
 * threaded columns of 3.14 and 3.15 come from those headers too.
 */
#include "python_layout.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define VERSION_MAJOR 3U
#define MINOR_WITH_OFFSETS 13U /* the first that publishes _Py_DebugOffsets */

/* Objects and strings, with and without the wider head of free-threaded builds. */
#define OBJECTS_GIL .object_type = 8, .type_dealloc = 48, .bytes_size = 16, .bytes_data = 32
#define OBJECTS_FREE .object_type = 24, .type_dealloc = 64, .bytes_size = 32, .bytes_data = 48
#define TEXT_TO_11 \
    .text_length = 16, .text_state = 32, .text_ascii = 48, .text_compact = 72, .kind_shift = 2
#define TEXT_FROM_12 \
    .text_length = 16, .text_state = 32, .text_ascii = 40, .text_compact = 56, .kind_shift = 2
#define TEXT_FREE .text_length = 32, .text_state = 48, .text_ascii = 56, .text_compact = 72
#define CODE_FRAME_OBJECTS \
    .code_file = 104, .code_name = 112, .code_first_line = 40, .code_lines = 120, .code_bytes = 48
#define CODE_FROM_12                                                                 \
    .code_file = 112, .code_name = 120, .code_qualname = 128, .code_first_line = 68, \
    .code_version = 92, .code_lines = 136
#define CODE_FREE                                                                    \
    .code_file = 128, .code_name = 136, .code_qualname = 144, .code_first_line = 84, \
    .code_version = 108, .code_lines = 152
#define FRAME_OBJECTS \
    .chain = PYTHON_CHAIN_OBJECTS, .thread_top = 24, .frame_previous = 24, .frame_code = 32
#define FRAME_SHIMMED                                                                    \
    .chain = PYTHON_CHAIN_SHIMMED, .lines = PYTHON_LINES_LOCATIONS, .frame_previous = 8, \
    .frame_code = 0, .frame_ip = 56
#define THREAD .thread_interpreter = 16
#define TAGGED .reference_tag = 7

static const struct python_layout rows[] = {
    {.minor = 8,
     THREAD,
     FRAME_OBJECTS,
     .frame_ip = 104,
     .frame_generator = 96,
     .lines = PYTHON_LINES_PAIRS,
     CODE_FRAME_OBJECTS,
     OBJECTS_GIL,
     TEXT_TO_11},
    {.minor = 9,
     THREAD,
     FRAME_OBJECTS,
     .frame_ip = 104,
     .frame_generator = 96,
     .lines = PYTHON_LINES_PAIRS,
     CODE_FRAME_OBJECTS,
     OBJECTS_GIL,
     TEXT_TO_11},
    {.minor = 10,
     THREAD,
     FRAME_OBJECTS,
     .frame_ip = 96,
     .frame_generator = 88,
     .unit_shift = 1,
     .lines = PYTHON_LINES_RANGES,
     CODE_FRAME_OBJECTS,
     OBJECTS_GIL,
     TEXT_TO_11},
    {.minor = 11,
     THREAD,
     .chain = PYTHON_CHAIN_LINKED,
     .lines = PYTHON_LINES_LOCATIONS,
     .thread_top = 56,
     .top_is_indirect = true,
     .cframe_current = 8,
     .cframe_previous = 16,
     .frame_previous = 48,
     .frame_code = 32,
     .frame_ip = 56,
     .frame_entry = 68,
     .frame_owner = 69,
     .code_file = 112,
     .code_name = 120,
     .code_qualname = 128,
     .code_first_line = 72,
     .code_lines = 136,
     .code_bytes = 184,
     OBJECTS_GIL,
     TEXT_TO_11},
    {.minor = 12,
     THREAD,
     FRAME_SHIMMED,
     .thread_top = 56,
     .top_is_indirect = true,
     .frame_owner = 70,
     CODE_FROM_12,
     .code_bytes = 192,
     OBJECTS_GIL,
     TEXT_FROM_12},
    {.minor = 13,
     THREAD,
     FRAME_SHIMMED,
     .thread_top = 72,
     .frame_owner = 70,
     CODE_FROM_12,
     .code_bytes = 200,
     OBJECTS_GIL,
     TEXT_FROM_12},
    {.minor = 13,
     .free_threaded = true,
     THREAD,
     FRAME_SHIMMED,
     .thread_top = 72,
     .frame_owner = 70,
     CODE_FREE,
     .code_bytes = 216,
     OBJECTS_FREE,
     TEXT_FREE,
     .kind_shift = 2},
    {.minor = 14,
     THREAD,
     FRAME_SHIMMED,
     TAGGED,
     .thread_top = 72,
     .frame_owner = 74,
     CODE_FROM_12,
     .code_bytes = 208,
     OBJECTS_GIL,
     TEXT_FROM_12},
    {.minor = 14,
     .free_threaded = true,
     THREAD,
     FRAME_SHIMMED,
     TAGGED,
     .thread_top = 72,
     .frame_owner = 78,
     .frame_tlbc = 72,
     .code_tlbc = 224,
     CODE_FREE,
     .code_bytes = 232,
     OBJECTS_FREE,
     TEXT_FREE,
     .kind_shift = 8},
    {.minor = 15,
     THREAD,
     FRAME_SHIMMED,
     TAGGED,
     .thread_top = 72,
     .frame_owner = 74,
     CODE_FROM_12,
     .code_bytes = 208,
     OBJECTS_GIL,
     TEXT_FROM_12},
    {.minor = 15,
     .free_threaded = true,
     THREAD,
     FRAME_SHIMMED,
     TAGGED,
     .thread_top = 72,
     .frame_owner = 78,
     .frame_tlbc = 72,
     .code_tlbc = 224,
     CODE_FREE,
     .code_bytes = 232,
     OBJECTS_FREE,
     TEXT_FREE,
     .kind_shift = 8},
};

/*
 * _Py_DebugOffsets is a cookie, then 64-bit numbers: the version, whether the
 * build is free-threaded, and groups of offsets which grow with each minor
 * version, so that a field's place depends on it.
 */
#define OFFSETS_COOKIE "xdebugpy"
#define OFFSETS_VERSION 1U
#define OFFSETS_FREE_THREADED 2U

/* A field of struct python_layout and its place for 3.13, 3.14, 3.15; 0: not published. */
static const struct published {
    uint8_t field;
    uint8_t place[3];
    bool only_free_threaded;
} published[] = {
#define FIELD(name) offsetof(struct python_layout, name)
    {FIELD(thread_top), {23, 26, 26}, false},  {FIELD(frame_previous), {29, 32, 40}, false},
    {FIELD(frame_code), {30, 33, 41}, false},  {FIELD(frame_ip), {31, 34, 42}, false},
    {FIELD(frame_owner), {33, 36, 44}, false}, {FIELD(frame_tlbc), {0, 38, 46}, true},
    {FIELD(code_tlbc), {0, 49, 57}, true},     {FIELD(code_file), {35, 40, 48}, false},
    {FIELD(code_name), {36, 41, 49}, false},   {FIELD(code_qualname), {37, 42, 50}, false},
    {FIELD(code_lines), {38, 43, 51}, false},  {FIELD(code_first_line), {39, 44, 52}, false},
    {FIELD(code_bytes), {43, 48, 56}, false},  {FIELD(object_type), {45, 51, 59}, false},
    {FIELD(bytes_size), {65, 75, 87}, false},  {FIELD(bytes_data), {66, 76, 88}, false},
    {FIELD(text_state), {68, 78, 90}, false},  {FIELD(text_length), {69, 79, 91}, false},
    {FIELD(text_ascii), {70, 80, 92}, false},
#undef FIELD
};

static bool agrees(const struct python_layout *row, const uint64_t *offsets)
{
    for (unsigned i = 0; i < sizeof(published) / sizeof(published[0]); i++) {
        uint16_t ours;
        uint8_t place = published[i].place[row->minor - MINOR_WITH_OFFSETS];
        memcpy(&ours, (const char *)row + published[i].field, sizeof(ours));
        if (place != 0 && (row->free_threaded || !published[i].only_free_threaded) &&
            offsets[place] != ours) {
            return false;
        }
    }
    return true;
}

static bool has_cookie(const uint64_t *offsets, uint32_t version)
{
    return memcmp(offsets, OFFSETS_COOKIE, sizeof(offsets[0])) == 0 &&
           offsets[OFFSETS_VERSION] == version;
}

static const struct python_layout *find_row(unsigned minor, bool free_threaded)
{
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].minor == minor && rows[i].free_threaded == free_threaded) {
            return &rows[i];
        }
    }
    return NULL;
}

int python_layout_choose(uint32_t version, const void *runtime, struct python_layout *layout)
{
    unsigned minor = version >> 16 & 0xffU;
    const uint64_t *offsets = runtime;
    bool publishes = minor >= MINOR_WITH_OFFSETS;
    if (version >> 24 != VERSION_MAJOR || sizeof(void *) != 8 ||
        (publishes && (offsets == NULL || !has_cookie(offsets, version)))) {
        return -ENOTSUP;
    }
    const struct python_layout *row =
        find_row(minor, publishes && offsets[OFFSETS_FREE_THREADED] != 0);
    if (row == NULL || (publishes && !agrees(row, offsets))) {
        return -ENOTSUP;
    }
    *layout = *row;
    return 0;
}
