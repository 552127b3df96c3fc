/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX's ranges and marks become phases and marks. The NVTX header asks the
 * environment for a tool's library when a program first uses it, loads that and
 * calls InitializeInjectionNvtx2 there. Where no tool is named it is told of us
 * (`getenv` below): nothing in the environment changes, and a tool that is
 * named, as Nsight Systems names its own, is left alone.
 *
 * A push is ended by the pop of its thread and domain, a start by its id on any
 * thread: both are in the record, and readers match them. Only levels are kept
 * here, for NVTX returns them.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "../formats/ring.h"
#include "lifecycle.h"
#include "marks.h"
#include "nvtx_abi.h"
#include "nvtx_texts.h"
#include "real_dl.h"
#include "shim.h"
#include "text.h"

#define INJECTION_VARIABLE "NVTX_INJECTION64_PATH"

extern char **environ;

/* ---- being found ------------------------------------------------------------------- */

static _Atomic(void *) real_getenv;

/* Before our constructor has run: an allocator asks that early, when even strlen may not be there.
 */
static char *look_up(const char *name)
{
    for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
        const char *value = *entry;
        const char *rest = name;
        while (*rest != '\0' && *rest == *value) {
            rest++;
            value++;
        }
        if (*rest == '\0' && *value == '=') {
            return *entry + (value - *entry) + 1;
        }
    }
    return NULL;
}

/* The path we were loaded by: dlopen gives us again. */
static char *injection_path(void)
{
    static char path[sizeof(shim_config.collector)];
    const char *ours = modules_path(modules_find(&shim_config));
    size_t bytes = ours != NULL ? strlen(ours) + 1 : sizeof(path) + 1;
    if (bytes > sizeof(path)) {
        return NULL;
    }
    memcpy(path, ours, bytes); /* the same bytes each time */
    return path;
}

SHIM_EXPORT char *getenv(const char *name)
{
    char *(*real)(const char *);
    *(void **)&real = atomic_load_explicit(&real_getenv, memory_order_acquire);
    if (real == NULL) {
        return look_up(name);
    }
    char *value = real(name);
    if (value == NULL && name[0] == 'N' && text_compare(name, INJECTION_VARIABLE) == 0 &&
        !shim_config.disabled && shim_config.nvtx) {
        value = injection_path();
    }
    return value;
}

__attribute__((constructor)) static void on_load(void)
{
    atomic_store_explicit(&real_getenv, real_next("getenv"), memory_order_release);
}

/* ---- texts --------------------------------------------------------------------------- */

static const char no_name[] = "(no name)";

/* PyTorch's emit_nvtx adds to an operator's name what is another in each call. */
static void leave_out_numbers(struct nvtx_text *text)
{
    static const char *const added[] = {", seq = ", ", op_id = ", ", sizes = ["};
    for (size_t i = 0; i < sizeof(added) / sizeof(added[0]); i++) {
        char *found = strstr(text->bytes, added[i]);
        if (found != NULL) {
            *found = '\0';
            text->used = (size_t)(found - text->bytes);
        }
    }
}

/* "domain:name"; what has no domain is just the name. */
static void start_in(struct nvtx_text *text, const void *domain)
{
    const char *name = nvtx_text_of(domain);
    nvtx_text_start(text);
    if (name != NULL) {
        nvtx_text_add(text, name);
        nvtx_text_add(text, ":");
    }
}

static void add_ascii(struct nvtx_text *text, const char *message)
{
    nvtx_text_add(text, message != NULL ? message : no_name);
    leave_out_numbers(text);
}

static void add_wide(struct nvtx_text *text, const wchar_t *message)
{
    if (message == NULL) {
        nvtx_text_add(text, no_name);
    } else {
        nvtx_text_add_wide(text, message);
    }
}

/* What a registered string that had no room in the table is known by. */
static const char string_left_out;

static bool is_whole(const struct nvtx_attributes *attributes)
{
    return attributes != NULL && attributes->struct_bytes >= sizeof(*attributes);
}

static void add_message(struct nvtx_text *text, const struct nvtx_attributes *attributes)
{
    int type = is_whole(attributes) ? attributes->message_type : 0;
    if (type == NVTX_MESSAGE_UNICODE) {
        add_wide(text, attributes->message.unicode);
    } else if (type == NVTX_MESSAGE_REGISTERED) {
        add_ascii(text, nvtx_text_of(attributes->message.registered));
    } else {
        add_ascii(text, type == NVTX_MESSAGE_ASCII ? attributes->message.ascii : NULL);
    }
}

/* ---- levels ---------------------------------------------------------------------------- */

enum { NESTS = 8 };

/* How deep a thread is in a domain; free while the depth is 0. */
static SHIM_TLS struct nest {
    uint32_t which; /* enum marks_nest */
    uint32_t depth;
} nests[NESTS];

/* NULL: the thread is in ranges of NESTS other domains, or in none of this one (and `begins` not).
 */
static struct nest *nest_of(uint32_t which, bool begins)
{
    struct nest *free_one = NULL;
    for (size_t i = 0; i < NESTS; i++) {
        if (nests[i].depth != 0 && nests[i].which == which) {
            return &nests[i];
        }
        if (nests[i].depth == 0) {
            free_one = &nests[i];
        }
    }
    if (begins && free_one != NULL) {
        free_one->which = which;
    }
    return begins ? free_one : NULL;
}

static bool all_taken(void)
{
    size_t taken = 0;
    for (size_t i = 0; i < NESTS; i++) {
        taken += nests[i].depth != 0;
    }
    return taken == NESTS;
}

static int push(uint32_t which, const struct nvtx_text *text, const void *caller)
{
    struct nest *nest = nest_of(which, true);
    marks_begin(which, 0, text->bytes, caller);
    return nest != NULL ? (int)nest->depth++ : NVTX_LEVEL_NOT_TRACKED;
}

static int pop(uint32_t which, const void *caller)
{
    struct nest *nest = nest_of(which, false);
    if (nest == NULL && !all_taken()) {
        return NVTX_LEVEL_ERROR; /* nothing was pushed */
    }
    marks_end(which, 0, caller);
    return nest != NULL ? (int)--nest->depth : NVTX_LEVEL_NOT_TRACKED;
}

/* ---- domains --------------------------------------------------------------------------- */

/* What a domain that had no room in the table is known by: nothing of it is recorded. */
static const char domain_left_out;

/* False for that one. A handle that we never gave is taken for the default domain's. */
static bool domain_nest(const void *domain, uint32_t *which)
{
    *which = MARKS_NEST_NVTX + nvtx_text_number(domain);
    return domain != &domain_left_out;
}

static bool lost_its_name(const struct nvtx_attributes *attributes)
{
    return is_whole(attributes) && attributes->message_type == NVTX_MESSAGE_REGISTERED &&
           attributes->message.registered == &string_left_out;
}

/* Before a range or mark is recorded: which nest it is of; what is missing of it is counted. */
static bool admit(const void *domain, const struct nvtx_attributes *attributes, uint32_t *which)
{
    struct vs_ring_header *ring = shim_recording() ? lifecycle_ring : NULL;
    bool known = domain_nest(domain, which);
    if (ring != NULL && (!known || lost_its_name(attributes))) {
        atomic_fetch_add_explicit(known ? &ring->nvtx_unnamed : &ring->nvtx_left_out, 1,
                                  memory_order_relaxed);
    }
    return known;
}

static const void *keep_string(const struct nvtx_text *text)
{
    const void *kept = nvtx_text_keep(text);
    return kept != NULL ? kept : &string_left_out;
}

static const void *keep_domain(const struct nvtx_text *text)
{
    const void *kept = nvtx_text_keep(text);
    return kept != NULL ? kept : &domain_left_out;
}

static const void *domain_create_a(const char *name)
{
    struct nvtx_text text;
    nvtx_text_start(&text);
    add_ascii(&text, name);
    return keep_domain(&text);
}

static const void *domain_create_w(const wchar_t *name)
{
    struct nvtx_text text;
    nvtx_text_start(&text);
    add_wide(&text, name);
    return keep_domain(&text);
}

static const void *register_string_a(const void *domain, const char *string)
{
    struct nvtx_text text;
    (void)domain;
    nvtx_text_start(&text);
    add_ascii(&text, string);
    return keep_string(&text);
}

static const void *register_string_w(const void *domain, const wchar_t *string)
{
    struct nvtx_text text;
    (void)domain;
    nvtx_text_start(&text);
    add_wide(&text, string);
    return keep_string(&text);
}

/* ---- ranges and marks -------------------------------------------------------------------- */

static _Atomic uint64_t last_id;

static uint64_t start(uint32_t which, const struct nvtx_text *text, const void *caller)
{
    uint64_t id = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
    marks_begin(which, id, text->bytes, caller);
    return id;
}

static void end(uint32_t which, uint64_t id, const void *caller)
{
    if (id != 0 && id <= atomic_load_explicit(&last_id, memory_order_relaxed)) {
        marks_end(which, id, caller);
    }
}

#define CALLER __builtin_return_address(0)

/* Each in three ways: a message, a wide one, attributes in a domain; NULL is the default one. */
static void mark_a(const char *message)
{
    struct nvtx_text text;
    nvtx_text_start(&text);
    add_ascii(&text, message);
    marks_mark(text.bytes, CALLER);
}

static void mark_w(const wchar_t *message)
{
    struct nvtx_text text;
    nvtx_text_start(&text);
    add_wide(&text, message);
    marks_mark(text.bytes, CALLER);
}

static void domain_mark(const void *domain, const struct nvtx_attributes *attributes)
{
    struct nvtx_text text;
    uint32_t which;
    start_in(&text, domain);
    add_message(&text, attributes);
    if (admit(domain, attributes, &which)) {
        marks_mark(text.bytes, CALLER);
    }
}

static void mark_ex(const struct nvtx_attributes *attributes)
{
    struct nvtx_text text;
    uint32_t which;
    nvtx_text_start(&text);
    add_message(&text, attributes);
    admit(NULL, attributes, &which);
    marks_mark(text.bytes, CALLER);
}

static int push_a(const char *message)
{
    struct nvtx_text text;
    nvtx_text_start(&text);
    add_ascii(&text, message);
    return push(MARKS_NEST_NVTX, &text, CALLER);
}

static int push_w(const wchar_t *message)
{
    struct nvtx_text text;
    nvtx_text_start(&text);
    add_wide(&text, message);
    return push(MARKS_NEST_NVTX, &text, CALLER);
}

static int domain_push(const void *domain, const struct nvtx_attributes *attributes)
{
    struct nvtx_text text;
    uint32_t which;
    start_in(&text, domain);
    add_message(&text, attributes);
    return admit(domain, attributes, &which) ? push(which, &text, CALLER) : NVTX_LEVEL_NOT_TRACKED;
}

static int push_ex(const struct nvtx_attributes *attributes)
{
    struct nvtx_text text;
    uint32_t which;
    nvtx_text_start(&text);
    add_message(&text, attributes);
    admit(NULL, attributes, &which);
    return push(which, &text, CALLER);
}

static int domain_pop(const void *domain)
{
    uint32_t which;
    return domain_nest(domain, &which) ? pop(which, CALLER) : NVTX_LEVEL_NOT_TRACKED;
}

static int pop_default(void)
{
    return pop(MARKS_NEST_NVTX, CALLER);
}

static uint64_t start_a(const char *message)
{
    struct nvtx_text text;
    nvtx_text_start(&text);
    add_ascii(&text, message);
    return start(MARKS_NEST_NVTX, &text, CALLER);
}

static uint64_t start_w(const wchar_t *message)
{
    struct nvtx_text text;
    nvtx_text_start(&text);
    add_wide(&text, message);
    return start(MARKS_NEST_NVTX, &text, CALLER);
}

static uint64_t domain_start(const void *domain, const struct nvtx_attributes *attributes)
{
    struct nvtx_text text;
    uint32_t which;
    start_in(&text, domain);
    add_message(&text, attributes);
    return admit(domain, attributes, &which) ? start(which, &text, CALLER) : 0;
}

static uint64_t start_ex(const struct nvtx_attributes *attributes)
{
    struct nvtx_text text;
    uint32_t which;
    nvtx_text_start(&text);
    add_message(&text, attributes);
    admit(NULL, attributes, &which);
    return start(which, &text, CALLER);
}

static void domain_end(const void *domain, uint64_t id)
{
    uint32_t which;
    if (domain_nest(domain, &which)) {
        end(which, id, CALLER);
    }
}

static void end_default(uint64_t id)
{
    end(MARKS_NEST_NVTX, id, CALLER);
}

/* ---- being called -------------------------------------------------------------------------- */

struct function {
    unsigned index;
    nvtx_function *function;
};

#define FUNCTION(index, name)                     \
    {                                             \
        index, (nvtx_function *)(uintptr_t)(name) \
    }

static const struct function core[] = {
    FUNCTION(NVTX_CORE_MARK_EX, mark_ex),       FUNCTION(NVTX_CORE_MARK_A, mark_a),
    FUNCTION(NVTX_CORE_MARK_W, mark_w),         FUNCTION(NVTX_CORE_RANGE_START_EX, start_ex),
    FUNCTION(NVTX_CORE_RANGE_START_A, start_a), FUNCTION(NVTX_CORE_RANGE_START_W, start_w),
    FUNCTION(NVTX_CORE_RANGE_END, end_default), FUNCTION(NVTX_CORE_RANGE_PUSH_EX, push_ex),
    FUNCTION(NVTX_CORE_RANGE_PUSH_A, push_a),   FUNCTION(NVTX_CORE_RANGE_PUSH_W, push_w),
    FUNCTION(NVTX_CORE_RANGE_POP, pop_default),
};

static const struct function core2[] = {
    FUNCTION(NVTX_CORE2_MARK_EX, domain_mark),
    FUNCTION(NVTX_CORE2_RANGE_START_EX, domain_start),
    FUNCTION(NVTX_CORE2_RANGE_END, domain_end),
    FUNCTION(NVTX_CORE2_RANGE_PUSH_EX, domain_push),
    FUNCTION(NVTX_CORE2_RANGE_POP, domain_pop),
    FUNCTION(NVTX_CORE2_REGISTER_STRING_A, register_string_a),
    FUNCTION(NVTX_CORE2_REGISTER_STRING_W, register_string_w),
    FUNCTION(NVTX_CORE2_DOMAIN_CREATE_A, domain_create_a),
    FUNCTION(NVTX_CORE2_DOMAIN_CREATE_W, domain_create_w),
};

/* False when the header has no such module. */
static bool fill(const struct nvtx_callbacks *callbacks, int module,
                 const struct function *functions, size_t count)
{
    nvtx_function ***table = NULL;
    unsigned last = 0;
    if (callbacks->module_table(module, (nvtx_function ***)&table, &last) == 0 || table == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (functions[i].index <= last && table[functions[i].index] != NULL) {
            *table[functions[i].index] = functions[i].function;
        }
    }
    return true;
}

/* Once for each copy of NVTX in the process. 0: it shall do without a tool. */
SHIM_EXPORT int InitializeInjectionNvtx2(nvtx_export_table *export_table);

SHIM_EXPORT int InitializeInjectionNvtx2(nvtx_export_table *export_table)
{
    const struct nvtx_callbacks *callbacks = export_table(NVTX_TABLE_CALLBACKS);
    if (shim_config.disabled || !shim_config.nvtx || callbacks == NULL ||
        callbacks->struct_bytes < sizeof(*callbacks)) {
        return 0;
    }
    bool filled = fill(callbacks, NVTX_MODULE_CORE, core, sizeof(core) / sizeof(core[0]));
    filled = fill(callbacks, NVTX_MODULE_CORE2, core2, sizeof(core2) / sizeof(core2[0])) || filled;
    return filled;
}
