/* SPDX-License-Identifier: Apache-2.0 */
/* Functions and lines from DWARF, by libdw: see dwarf_info.h. */
#include "dwarf_info.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>
#include <string.h>

#define INLINE_DEPTH_MAX 128U  /* nesting of blocks and inlined calls that is followed */
#define SCOPE_DEPTH_MAX 64U    /* nesting of namespaces and classes that is followed */
#define FAULT_BYTES 65536U     /* at most, that one look into a mapped file makes resident */
#define WALK_BYTES (32U << 20) /* of the file, before the pages of a walk are let go */

struct function {
    uint64_t start, end;
    Dwarf_Off die;
};

struct unit {
    Dwarf_Die lines;  /* of the unit in this file */
    Dwarf_Die scopes; /* the same, or the one in a split file that it stands for */
    struct function *functions;
    size_t function_count, function_capacity;
    bool indexed;
};

struct unit_range {
    uint64_t start, end;
    uint64_t reach; /* the highest end up to and including this range */
    size_t unit;
};

struct dwarf_info {
    const struct elf_file *file;
    Dwarf *dwarf;
    struct unit *units;
    size_t unit_count, unit_capacity;
    struct unit_range *ranges;
    size_t range_count, range_capacity;
    uint64_t walked; /* bytes of the file, since its pages were let go */
    Dwarf_Off walked_to;
};

/* Room for one more element: the array, grown if need be; NULL without memory (it stays as it is).
 */
static void *with_room(void *array, size_t count, size_t *capacity, size_t element_bytes)
{
    if (count < *capacity)
        return array;
    size_t wanted = *capacity ? *capacity * 2 : 64;
    void *grown = reallocarray(array, wanted, element_bytes);
    if (grown != NULL)
        *capacity = wanted;
    return grown;
}

/* A walk has come to a place. */
static void step(struct dwarf_info *info, Dwarf_Die *die)
{
    Dwarf_Off place = dwarf_dieoffset(die);
    uint64_t bytes = place > info->walked_to ? place - info->walked_to : FAULT_BYTES;
    info->walked_to = place;
    info->walked += bytes < FAULT_BYTES ? bytes : FAULT_BYTES;
    if (info->walked < WALK_BYTES)
        return;
    info->walked = 0;
    elf_file_drop_pages(info->file);
}

/* ---- units -------------------------------------------------------------------------- */

static void add_unit_ranges(struct dwarf_info *info, size_t unit)
{
    Dwarf_Addr base, start, end;
    ptrdiff_t at = 0;
    while ((at = dwarf_ranges(&info->units[unit].lines, at, &base, &start, &end)) > 0) {
        /* What the linker threw away has ranges too, at places where no code is. */
        if (end <= start || !elf_file_is_code(info->file, start))
            continue;
        struct unit_range *ranges =
            with_room(info->ranges, info->range_count, &info->range_capacity, sizeof *ranges);
        if (ranges == NULL)
            return;
        info->ranges = ranges;
        info->ranges[info->range_count++] =
            (struct unit_range){.start = start, .end = end, .unit = unit};
    }
}

static int by_start(const void *left, const void *right)
{
    const struct unit_range *a = left, *b = right;
    return a->start != b->start ? (a->start < b->start ? -1 : 1)
                                : (a->unit > b->unit) - (a->unit < b->unit);
}

static void index_units(struct dwarf_info *info)
{
    Dwarf_CU *cursor = NULL;
    Dwarf_Half version;
    uint8_t type;
    Dwarf_Die unit, split;
    while (dwarf_get_units(info->dwarf, cursor, &cursor, &version, &type, &unit, &split) == 0) {
        if (type != DW_UT_compile && type != DW_UT_skeleton)
            continue;
        struct unit *units =
            with_room(info->units, info->unit_count, &info->unit_capacity, sizeof *units);
        if (units == NULL)
            break;
        info->units = units;
        bool is_split = type == DW_UT_skeleton && dwarf_tag(&split) != DW_TAG_invalid;
        info->units[info->unit_count++] =
            (struct unit){.lines = unit, .scopes = is_split ? split : unit};
        add_unit_ranges(info, info->unit_count - 1);
        step(info, &unit);
    }
    if (info->range_count > 0)
        qsort(info->ranges, info->range_count, sizeof *info->ranges, by_start);
    uint64_t reach = 0;
    for (size_t i = 0; i < info->range_count; i++) {
        if (info->ranges[i].end > reach)
            reach = info->ranges[i].end;
        info->ranges[i].reach = reach;
    }
}

struct dwarf_info *dwarf_info_open(const struct elf_file *file)
{
    struct dwarf_info *info = calloc(1, sizeof *info);
    if (info == NULL)
        return NULL;
    info->file = file;
    info->dwarf = dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);
    if (info->dwarf != NULL)
        index_units(info);
    if (info->range_count > 0)
        return info;
    dwarf_info_close(info);
    return NULL;
}

void dwarf_info_close(struct dwarf_info *info)
{
    if (info == NULL)
        return;
    for (size_t i = 0; i < info->unit_count; i++)
        free(info->units[i].functions);
    free(info->units);
    free(info->ranges);
    dwarf_end(info->dwarf);
    free(info);
}

/* ---- functions of a unit --------------------------------------------------------------- */

static void add_function(const struct dwarf_info *info, struct unit *unit, Dwarf_Die *die)
{
    Dwarf_Addr base, start, end;
    ptrdiff_t at = 0;
    while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
        if (end <= start || !elf_file_is_code(info->file, start))
            continue;
        struct function *functions = with_room(unit->functions, unit->function_count,
                                               &unit->function_capacity, sizeof *functions);
        if (functions == NULL)
            return;
        unit->functions = functions;
        unit->functions[unit->function_count++] =
            (struct function){start, end, dwarf_dieoffset(die)};
    }
}

static bool holds_functions(int tag)
{
    return tag == DW_TAG_namespace || tag == DW_TAG_class_type || tag == DW_TAG_structure_type ||
           tag == DW_TAG_union_type || tag == DW_TAG_module || tag == DW_TAG_enumeration_type;
}

static void index_functions(struct dwarf_info *info, struct unit *unit, Dwarf_Die *parent,
                            unsigned depth)
{
    Dwarf_Die die;
    if (depth == SCOPE_DEPTH_MAX || dwarf_child(parent, &die) != 0)
        return;
    do {
        int tag = dwarf_tag(&die);
        step(info, &die);
        if (tag == DW_TAG_subprogram)
            add_function(info, unit, &die);
        else if (holds_functions(tag))
            index_functions(info, unit, &die, depth + 1);
    } while (dwarf_siblingof(&die, &die) == 0);
}

/* The smallest function of the unit that holds the address. */
static bool find_function(struct dwarf_info *info, struct unit *unit, uint64_t address,
                          Dwarf_Die *out)
{
    const struct function *found = NULL;
    if (!unit->indexed) {
        unit->indexed = true;
        index_functions(info, unit, &unit->scopes, 0);
    }
    for (size_t i = 0; i < unit->function_count; i++) {
        const struct function *function = &unit->functions[i];
        if (address >= function->start && address < function->end &&
            (found == NULL || function->end - function->start < found->end - found->start))
            found = function;
    }
    return found != NULL &&
           dwarf_offdie(dwarf_cu_getdwarf(unit->scopes.cu), found->die, out) != NULL;
}

/* ---- one address ------------------------------------------------------------------------ */

static const char *text_of(Dwarf_Die *die, unsigned attribute)
{
    Dwarf_Attribute found;
    return dwarf_formstring(dwarf_attr_integrate(die, attribute, &found));
}

static void name_frame(Dwarf_Die *die, struct dwarf_frame *frame)
{
    frame->linkage_name = text_of(die, DW_AT_linkage_name);
    if (frame->linkage_name == NULL)
        frame->linkage_name = text_of(die, DW_AT_MIPS_linkage_name);
    frame->name = text_of(die, DW_AT_name);
}

/* Where an inlined function was called, in the function around it. */
static void place_call(Dwarf_Die *inlined, struct dwarf_frame *caller)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value;
    Dwarf_Die unit;
    Dwarf_Files *files;
    if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &value) == 0)
        caller->line = value <= UINT32_MAX ? (uint32_t)value : 0;
    if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &value) == 0 &&
        dwarf_diecu(inlined, &unit, NULL, NULL) != NULL &&
        dwarf_getsrcfiles(&unit, &files, NULL) == 0)
        caller->file = dwarf_filesrc(files, (size_t)value, NULL, NULL);
}

/* The child of `parent` whose code holds the address. */
static bool step_in(Dwarf_Die *parent, uint64_t address, Dwarf_Die *out)
{
    if (dwarf_child(parent, out) != 0)
        return false;
    do {
        int tag = dwarf_tag(out);
        if ((tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block ||
             tag == DW_TAG_try_block || tag == DW_TAG_catch_block) &&
            dwarf_haspc(out, address) > 0)
            return true;
    } while (dwarf_siblingof(out, out) == 0);
    return false;
}

/* The function and the calls inlined into it at the address, the outermost first. */
static size_t inline_chain(Dwarf_Die *function, uint64_t address, Dwarf_Die *chain)
{
    size_t count = 1;
    chain[0] = *function;
    Dwarf_Die at = *function, child;
    for (unsigned depth = 0; depth < INLINE_DEPTH_MAX && step_in(&at, address, &child); depth++) {
        if (dwarf_tag(&child) == DW_TAG_inlined_subroutine)
            chain[count++] = child;
        at = child;
    }
    return count;
}

static void source_line(struct unit *unit, uint64_t address, struct dwarf_frame *frame)
{
    Dwarf_Line *line = dwarf_getsrc_die(&unit->lines, address);
    int number = 0;
    if (line == NULL)
        return;
    frame->file = dwarf_linesrc(line, NULL, NULL);
    frame->line = dwarf_lineno(line, &number) == 0 && number > 0 ? (uint32_t)number : 0;
}

/* `chain`: outermost first; `frames`: innermost first, the outermost one always among them. */
static size_t fill_frames(Dwarf_Die *chain, size_t count, struct dwarf_frame *frames, size_t max)
{
    size_t filled = 0;
    for (size_t i = count; i-- > 0;) {
        bool last_room = filled + 1 == max;
        if (last_room && i > 0)
            continue; /* the calls in between are left out */
        name_frame(&chain[i], &frames[filled]);
        if (i + 1 < count)
            place_call(&chain[i + 1], &frames[filled]);
        filled++;
    }
    return filled;
}

static size_t find_in_unit(struct dwarf_info *info, struct unit *unit, uint64_t address,
                           struct dwarf_frame *frames, size_t max)
{
    Dwarf_Die function, chain[INLINE_DEPTH_MAX + 1];
    memset(frames, 0, max * sizeof *frames);
    source_line(unit, address, &frames[0]);
    if (find_function(info, unit, address, &function))
        return fill_frames(chain, inline_chain(&function, address, chain), frames, max);
    return frames[0].file != NULL;
}

size_t dwarf_info_find(struct dwarf_info *info, uint64_t address, struct dwarf_frame *frames,
                       size_t max)
{
    size_t low = 0, high = info->range_count, best = 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (info->ranges[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t i = low; i-- > 0 && info->ranges[i].reach > address && best == 0;)
        if (info->ranges[i].end > address)
            best = find_in_unit(info, &info->units[info->ranges[i].unit], address, frames, max);
    return best;
}
