/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the wrappers generated from hooks.def are made of. Each is
 *
 *     real = hook_begin(&call, HOOK_name, slot, caller);    label, nesting, real function
 *     if (!call.active) return real(...);                   not recording: nothing of ours runs
 *     call.event.<field> = ...;                             arguments
 *     hook_before(&call);                                   frees are recorded here
 *     result = real(...);
 *     call.event.<field> = ...;                             results, when it succeeded
 *     return hook_after(&call, result);                     everything else is recorded here
 *
 * No function here aborts, allocates, takes a lock of the program's or asks the
 * loader; errno is the same afterwards as before.
 */
#ifndef VS_SHIM_HOOK_H
#define VS_SHIM_HOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda_abi.h"
#include "hook_ids.h"
#include "shim.h"
#include "thread_state.h"

#define HOOK_SLOTS 4U /* real functions known by one name, each with an entry point of its own */
#define HOOK_SLOT_OF_CALLER HOOK_SLOTS /* the preloaded symbol: the caller's scope decides */
#define HOOK_LEFT_ALONE UINT16_MAX
#define HOOK_BODY __attribute__((noinline))

#define OUT(pointer) ((pointer) != NULL ? *(pointer) : 0)
#define HOOK_U64(value) ((uint64_t)(uintptr_t)(value))

enum hook_level { HOOK_LEVEL_DRIVER, HOOK_LEVEL_RUNTIME, HOOK_LEVEL_FRAMEWORK };

/* ---- tables, generated from hooks.def ---------------------------------------- */

struct hook_row {
    const char *name;
    uint8_t level; /* enum hook_level */
    uint8_t kind;  /* enum vs_kind; 0: no event, or one by hand */
};

/* Everything whose real function is looked for: enum hook_id, then REAL_*. */
struct real_name {
    const char *name;
    uint32_t gnu_hash;
    uint8_t level;
};

/* What cuGetProcAddress hands out for a name, from which CUDA version on. */
struct hook_asked {
    const char *name;
    int since;
    int per_thread_stream;
    uint16_t hook; /* enum hook_id, or HOOK_LEFT_ALONE */
};

extern const struct hook_row hook_rows[HOOK_COUNT];
extern const struct real_name real_names[REAL_COUNT];
/* Those that programs look up: all but mangled names. */
extern const uint16_t hook_rows_by_name[];
extern const unsigned hook_rows_by_name_count;
extern const struct hook_asked hook_asked[];
extern const unsigned hook_asked_count;

/* Entry points per hook: one for each slot, then the exported symbol. By row within the level. */
typedef void hook_entry(void);
extern hook_entry *const hook_driver_entries[][HOOK_SLOTS + 1];
extern hook_entry *const hook_runtime_entries[][HOOK_SLOTS + 1];

/* ---- one call ------------------------------------------------------------------ */

/* What the hooks know of the calls on this thread's stack, beside struct shim_thread. */
struct hook_nesting {
    uint64_t beneath;      /* kinds recorded beneath the innermost hook so far */
    uint64_t pending_key;  /* the free that an enclosing hook has recorded ahead of its real call */
    uint8_t pending_kind;  /* 0: none */
    uint8_t own_calls;     /* > 0: a real function that we call for ourselves is running */
    uint8_t runtime_depth; /* runtime hooks on the stack */
};

struct hook_call {
    struct vs_event event;
    struct thread_frame frame;
    struct hook_nesting outer; /* as it was on entry */
    uint64_t start_ns;
    uint64_t key;         /* tells two frees of the same kind apart */
    uint64_t intent;      /* sequence of the record made before the call; 0 none */
    uint16_t hook;        /* enum hook_id */
    int8_t device_before; /* current device */
    bool active;
    bool skip;          /* no event: a null pointer freed */
    bool device_given;  /* by the arguments; else the current context's */
    bool passed_on;     /* the enclosing hook has recorded this very call already */
    bool intent_wanted; /* recorded before the call, even if the record was lost */
};

/* Returns the real function, NULL when there is none. `caller` is the wrapper's return address. */
void *hook_begin(struct hook_call *call, unsigned hook, unsigned slot, const void *caller);
void hook_before(struct hook_call *call);
/* Returns `result`. */
int hook_after(struct hook_call *call, int result);

static inline void hook_set_device(struct hook_call *call, int device)
{
    call->event.device = device >= 0 && device <= INT8_MAX ? (int8_t)device : VS_DEVICE_UNKNOWN;
    call->device_given = true;
}

/* In the _ptsz variants the null stream is the thread's own. */
static inline void *hook_per_thread_stream(void *stream)
{
    return stream != NULL ? stream : (void *)ABI_STREAM_PER_THREAD;
}

/* Module id of a caller; looks for objects loaded since when it is not known. */
uint32_t hook_module_of(const void *caller);
/* Label, call and module of an event, from the outermost call; that one's own when depth is 1. */
void hook_label(struct shim_thread *thread, struct vs_event *event, unsigned hook, uint32_t module);

/* Own calls of real functions run between these: hooks they meet are not recorded. */
void hook_own_calls_begin(void);
void hook_own_calls_end(void);

/* ---- look-ups -------------------------------------------------------------------- */

/* The entry point of a hook that stands for the real function `found`, or `found` when none is
 * free. */
void *hook_wrap(unsigned hook, void *found);
/* Row of an exact name that programs look up; HOOK_COUNT when it is not in the table. */
unsigned hook_find(const char *name);
/* What (name, version, flags) asks the driver for: a row, HOOK_LEFT_ALONE, or HOOK_COUNT: not
 * listed. */
unsigned hook_find_asked(const char *name, int version, bool per_thread_stream);
/* The wrapper to hand out in place of `found`, or `found` itself when it cannot be wrapped. */
void *hook_wrap_asked(const char *name, int version, bool per_thread_stream, void *found);

/* ---- accounting ------------------------------------------------------------------- */

enum hook_warning {
    HOOK_WARNING_SLOTS_FULL = 1U << 0,   /* more than HOOK_SLOTS real functions of one name */
    HOOK_WARNING_REAL_MISSING = 1U << 1, /* a wrapper found nothing to call */
    HOOK_WARNING_UNKNOWN_NAME =
        1U << 2, /* a cuMem or cuMulticast name not in the table was asked for */
    HOOK_WARNING_UNKNOWN_VERSION =
        1U << 3,                     /* a newer variant of a hooked name was handed out unwrapped */
    HOOK_WARNING_DEEPBIND = 1U << 4, /* an object was loaded with RTLD_DEEPBIND: it may bypass us */
};

void hook_warn(enum hook_warning warning);
void hook_count_call(enum hook_level level);
void hook_count_missing(void);
void hook_count_sample_ns(uint64_t ns);

#endif
