/* SPDX-License-Identifier: Apache-2.0 */
/* The unwinder's entry points for the tests, and what it would find in the rest of the shim. */
#include "lab.h"
#include "lab_memo.h"

#include <time.h>

#include "shim.h"
#include "stacks.h"
#include "unwind_choice.h"
#include "unwind_rules.h"

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

struct shim_config shim_config;

uint64_t shim_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

bool shim_recording(void)
{
    return false;
}

uint32_t shim_generation(void)
{
    return 0;
}

bool shim_emit_definition(uint8_t type, uint32_t id, uint32_t aux, const void *payload,
                          uint32_t bytes, const void *more, uint32_t more_bytes)
{
    (void)type;
    (void)id;
    (void)aux;
    (void)payload;
    (void)bytes;
    (void)more;
    (void)more_bytes;
    return false;
}

__attribute__((constructor)) static void start(void)
{
    modules_refresh();
    unwind_prepare();
}

SHIM_EXPORT unsigned lab_unwind(uint64_t *words, unsigned max, enum vs_stack_note *note)
{
    const struct unwind_start start = UNWIND_START();
    return lab_memo_walk(&start, words, max, note);
}

SHIM_EXPORT unsigned lab_unwind_by_tables(uint64_t *words, unsigned max, enum vs_stack_note *note)
{
    return unwind_here_by_tables(words, max, note);
}

SHIM_EXPORT enum vs_native_method lab_method(void)
{
    return unwind_method();
}

SHIM_EXPORT void lab_refresh(void)
{
    modules_refresh();
}

SHIM_EXPORT uint32_t lab_generation(void)
{
    return modules_generation();
}

SHIM_EXPORT void lab_use_frame_pointers(void)
{
    atomic_store(&unwind_choices.choice, UNWIND_BY_CHAIN);
}

SHIM_EXPORT void lab_use_tables(void)
{
    unwind_proved_wrong();
}

SHIM_EXPORT int lab_call(int (*function)(void *), void *context)
{
    int result = function(context);
    __asm__ volatile("" : "+r"(result)); /* no tail call */
    return result;
}

SHIM_EXPORT bool lab_holds(uint64_t address)
{
    return address >= (uint64_t)(uintptr_t)__ehdr_start && address < (uint64_t)(uintptr_t)_end;
}

SHIM_EXPORT bool lab_spoil(uint64_t address, int bytes)
{
    uint32_t place;
    uint64_t rule = unwind_rule_find(unwind_rules_open(), address, &place);
    if ((rule & UNWIND_RULE_UNCOMMON) != 0) {
        return false;
    }
    atomic_store(&unwind_rules.kept[place].rule, rule + (uint64_t)(int64_t)bytes);
    return true;
}
